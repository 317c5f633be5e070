#include "op/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

rondo_status rondo__op_fail(const rondo__op *op, rondo_status status, const char *file,
                            int32_t line, const char *call, const char *format, ...) {
    char message[240];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    (void)rondo__error_set(status, 0, "", file, line, call, "%s node \"%.64s\": %s", op->def->name,
                           op->name == NULL ? "" : op->name, message);
    rondo__error_set_op(op->name);
    return status;
}

rondo_status rondo__op_fail_unsupported(const rondo__op *op, const char *detail) {
    (void)RONDO_FAIL(UNSUPPORTED, "unsupported: op %s version %d (%s)", op->def->name,
                     (int)op->opset, detail);
    rondo__error_set_op(op->name);
    return RONDO_STATUS_UNSUPPORTED;
}

rondo_status rondo__op_check(const rondo__op *op) {
    const char *const *known = op->def->attributes;
    for (size_t i = 0; known != NULL && i < op->attribute_count; ++i) {
        const char *name = op->attributes[i].name;
        size_t k = 0;
        while (known[k] != NULL && strcmp(known[k], name) != 0) {
            ++k;
        }
        if (known[k] == NULL) {
            char detail[96];
            (void)snprintf(detail, sizeof detail, "attribute %s", name);
            return rondo__op_fail_unsupported(op, detail);
        }
    }
    return op->def->check != NULL ? op->def->check(op) : RONDO_STATUS_OK;
}
