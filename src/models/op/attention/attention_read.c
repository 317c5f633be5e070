// op/attention/attention_read.c — see attention_form.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "base/error.h"
#include "op/attention/attention_form.h"

static bool can_count(int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t count;
    return rondo__mul_i64(a, b, &count) && rondo__mul_i64(count, c, &count) &&
           rondo__mul_i64(count, d, &count);
}

rondo_status rondo__attention_read(const rondo__op *op, const rondo__tensor_info *inputs,
                                   size_t input_count, size_t output_count,
                                   rondo__attention_form *out_form) {
    rondo__attention_form f;
    const bool is_onnx = op->def->domain[0] == '\0';
    RETURN_IF_ERROR(
        is_onnx ? rondo__attention_read_onnx(op, inputs, input_count, output_count, &f)
                : rondo__attention_read_microsoft(op, inputs, input_count, output_count, &f));
    if (!can_count(f.batch, f.heads, f.m, f.width) ||
        !can_count(f.batch, f.heads, f.m, f.v_width) ||
        !can_count(f.batch, f.kv_heads, f.n, f.width) ||
        !can_count(f.batch, f.kv_heads, f.n, f.v_width) ||
        (f.shown.output >= 0 && !can_count(f.batch, f.heads, f.m, f.n))) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the result has more elements than can be counted");
    }
    *out_form = f;
    return RONDO_STATUS_OK;
}
