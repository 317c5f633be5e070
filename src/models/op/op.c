// op/op.c — see op.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/op.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

rondo_status rondo__op_fail(const rondo__op *op, rondo_status status, const char *file,
                            int32_t line, const char *call, const char *format, ...) {
    char message[1024];  // the record keeps both ends of what is too long for it
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

rondo_status rondo__op_fail_dtype(const rondo__op *op, size_t input, rondo_dtype dtype) {
    char detail[64];
    (void)snprintf(detail, sizeof detail, "input %zu of type %s", input,
                   rondo_dtype_get_name(dtype));
    return rondo__op_fail_unsupported(op, detail);
}

// Attributes that say yes or no, whatever the op. Others would be read as yes by one and as no by
// another.
static rondo_status check_flags(const rondo__op *op) {
    static const char *const flags[] = {
        "align_corners",
        "allowzero",
        "antialias",
        "ceil_mode",
        "center_point_box",
        "count_include_pad",
        "detect_negative",
        "detect_positive",
        "exclude_outside",
        "exclusive",
        "fmod",
        "input_forget",
        "inverse",
        "keepdims",
        "largest",
        "layout",
        "linear_before_reset",
        "noop_with_empty_axes",
        "onesided",
        "periodic",
        "reverse",
        "saturate",
        "select_last_index",
        "sorted",
        "storage_order",
        "training_mode",
        "transA",
        "transB",
        "upper",
    };
    for (size_t i = 0; i < op->attribute_count; ++i) {
        const rondo__attribute *attribute = &op->attributes[i];
        if (attribute->kind != RONDO__ATTRIBUTE_INT ||
            (attribute->int_value == 0 || attribute->int_value == 1)) {
            continue;
        }
        for (size_t f = 0; f < sizeof flags / sizeof flags[0]; ++f) {
            if (strcmp(attribute->name, flags[f]) == 0) {
                return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is %lld; it is 0 or 1", flags[f],
                                     (long long)attribute->int_value);
            }
        }
    }
    return RONDO_STATUS_OK;
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
    rondo_status status = check_flags(op);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    return op->def->check != NULL ? op->def->check(op) : RONDO_STATUS_OK;
}

rondo_status rondo__op_check_counts(const rondo__op_def *def, size_t input_count,
                                    size_t output_count) {
    if (input_count < def->input_min ||
        (def->input_max != RONDO_OP_ANY_COUNT && input_count > def->input_max)) {
        return RONDO_FAIL(BAD_DATA, "has %zu inputs; the op takes %d to %d", input_count,
                          def->input_min, def->input_max);
    }
    if (output_count < def->output_min ||
        (def->output_max != RONDO_OP_ANY_COUNT && output_count > def->output_max)) {
        return RONDO_FAIL(BAD_DATA, "has %zu outputs; the op makes %d to %d", output_count,
                          def->output_min, def->output_max);
    }
    return RONDO_STATUS_OK;
}
