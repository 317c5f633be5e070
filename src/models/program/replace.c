// program/replace.c — a program with another constant.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>

#include "base/error.h"
#include "program/program.h"

static void put(rondo__value *value, const rondo_tensor *tensor) {
    rondo_tensor_deinit(&value->constant);
    rondo_tensor_share(tensor, &value->constant);
}

// Bodies have constants of the program around them. They nest only so deep, so this may recurse.
void rondo__program_put_constant(rondo_program *program, int32_t value,
                                 const rondo_tensor *tensor) {
    put(&program->values[value], tensor);
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__op *op = &program->nodes[n].op;
        for (size_t a = 0; a < op->attribute_count; ++a) {
            rondo_program *body = op->attributes[a].body;
            if (op->attributes[a].kind != RONDO__ATTRIBUTE_BODY || body == NULL) {
                continue;
            }
            for (size_t v = 0; v < body->value_count; ++v) {
                if (body->values[v].origin == value) {
                    rondo__program_put_constant(body, (int32_t)v, tensor);
                }
            }
        }
    }
}

// Bytes other than 0 and 1 must never be looked at as a C bool.
static void tidy_bools(const rondo_tensor *tensor) {
    uint8_t *bytes = tensor->data;
    const size_t count = tensor->dtype == RONDO_DTYPE_BOOL ? rondo_tensor_get_bytes(tensor) : 0;
    for (size_t i = 0; i < count; ++i) {
        bytes[i] = bytes[i] != 0;
    }
}

rondo_status rondo__program_replace_constant(const rondo_program *program, int32_t value,
                                             const rondo_tensor *tensor,
                                             rondo_program **out_program) {
    rondo_program *copy = NULL;
    *out_program = NULL;
    RETURN_IF_ERROR(rondo__program_clone_whole(program, &copy));
    tidy_bools(tensor);
    rondo__program_put_constant(copy, value, tensor);
    *out_program = copy;
    return RONDO_STATUS_OK;
}
