// kernel/cuda/product/cuda_tokens.c — RotaryEmbedding, TensorScatter, LinearAttention and
// CausalConvWithState; see cu/tokens.cu.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/attention/linear_attention.h"
#include "op/math/rotary.h"

enum { COLUMNS = 32, WIDTH_MAX = 512, GRID_MAX = 65535 };

static bool are_alike(const rondo__cuda_kernel *kernel, size_t first, size_t end, size_t but) {
    for (size_t i = first; i < end; i++) {
        if (i != but && rondo__cuda_has_input(kernel, i) &&
            rondo__cuda_input(kernel, i)->dtype != rondo__cuda_input(kernel, 0)->dtype) {
            return false;
        }
    }
    return rondo__cuda_is_float(rondo__cuda_input(kernel, 0)->dtype);
}

void rondo__cuda_prepare_rotary(rondo__cuda_kernel *kernel) {
    const bool is_onnx = kernel->request->op->def->domain[0] == '\0';
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    rondo__rotary f;
    if (!rondo__cuda_check(
            kernel, rondo__rotary_read(kernel->request->op, &x->shape,
                                       &rondo__cuda_input(kernel, is_onnx ? 1 : 2)->shape, &f))) {
        return;
    }
    if (!are_alike(kernel, 0, 4, f.ids)) {
        rondo__cuda_refuse(kernel, "tensors of these types");
        return;
    }
    const bool has_ids = rondo__cuda_has_input(kernel, f.ids);
    const rondo_shape *ids = &rondo__cuda_input(kernel, f.ids)->shape;
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "INTERLEAVED", f.is_interleaved);
    const int64_t count = f.batches * f.places * f.heads * (f.size - f.turned / 2);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_tokens, &defines, "rotary",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_input(step, f.cosines);
    rondo__step_input(step, f.sines);
    rondo__step_optional_input(step, kernel, f.ids);
    rondo__step_output(step, 0);
    rondo__step_int(step, f.batches);
    rondo__step_int(step, f.places);
    rondo__step_int(step, f.heads);
    rondo__step_int(step, f.size);
    rondo__step_int(step, f.turned);
    rondo__step_int(step, rondo__cuda_input(kernel, f.cosines)->shape.extent[0]);
    rondo__step_int(step, f.batch_step);
    rondo__step_int(step, f.place_step);
    rondo__step_int(step, f.head_step);
    rondo__step_int(step, has_ids && ids->rank == 1);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

void rondo__cuda_prepare_cache_write(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *past = rondo__cuda_input(kernel, 0);
    const rondo_shape *update = &rondo__cuda_input(kernel, 1)->shape;
    const int32_t rank = past->shape.rank;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", -2), rank);
    const int64_t lines = rondo__cuda_product(&past->shape, 0, axis);
    const int64_t inner = rondo__cuda_product(&past->shape, axis + 1, rank);
    rondo__defines defines = {0};
    rondo__define_bytes(&defines, "T", rondo_dtype_get_bytes(past->dtype));
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_tokens, &defines, "cache_write",
        rondo__cuda_blocks(lines * past->shape.extent[axis] * inner), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_optional_input(step, kernel, 2);
    rondo__step_output(step, 0);
    rondo__step_int(step, lines);
    rondo__step_int(step, rondo__cuda_product(&past->shape, 1, axis));
    rondo__step_int(step, past->shape.extent[axis]);
    rondo__step_int(step, update->extent[axis]);
    rondo__step_int(step, inner);
    rondo__step_int(step, strcmp(rondo__op_get_string(op, "mode", "linear"), "circular") == 0);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
    kernel->head.in_place_inputs = 1;
}

void rondo__cuda_prepare_linear_attention(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *q = rondo__cuda_input(kernel, 0);
    const bool has_past = rondo__cuda_has_input(kernel, 3);
    rondo__linear_attention f;
    if (!rondo__cuda_check(
            kernel,
            rondo__linear_attention_read(
                kernel->request->op, &q->shape, &rondo__cuda_input(kernel, 2)->shape,
                rondo__cuda_has_input(kernel, 4) ? &rondo__cuda_input(kernel, 4)->shape : NULL,
                rondo__cuda_has_input(kernel, 5) ? &rondo__cuda_input(kernel, 5)->shape : NULL,
                &f))) {
        return;
    }
    const rondo_dtype state = has_past ? rondo__cuda_input(kernel, 3)->dtype : q->dtype;
    if (!are_alike(kernel, 0, 6, 3) || !rondo__cuda_is_float(state) || f.width > WIDTH_MAX ||
        f.kv_heads > GRID_MAX || f.batch > GRID_MAX) {
        rondo__cuda_refuse(kernel, "tensors of these types or extents");
        return;
    }
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", q->dtype);
    rondo__define_type(&defines, "S", state);
    rondo__define_int(&defines, "WIDTH", f.width);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_tokens, &defines, "linear_attention",
                               (f.v_width + COLUMNS - 1) / COLUMNS, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)f.kv_heads;
        step->launch.grid[2] = (uint32_t)f.batch;
    }
    for (size_t i = 0; i < 6; i++) {
        rondo__step_optional_input(step, kernel, i);
    }
    rondo__step_output(step, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_int(step, f.rows);
    rondo__step_int(step, f.heads);
    rondo__step_int(step, f.kv_heads);
    rondo__step_int(step, f.v_width);
    rondo__step_int(step, f.decay_width);
    rondo__step_int(step, f.has_betas);
    rondo__step_float(step, (double)f.scale);
}

static void add_causal(rondo__cuda_kernel *kernel, const char *name, int64_t count) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const char *activation = rondo__op_get_string(kernel->request->op, "activation", "none");
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_tokens, &defines, name,
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    for (size_t i = 0; i < 4; i++) {
        rondo__step_optional_input(step, kernel, i);
    }
    rondo__step_output(step, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_int(step, x->extent[0] * x->extent[1]);
    rondo__step_int(step, x->extent[1]);
    rondo__step_int(step, x->extent[2]);
    rondo__step_int(step, rondo__cuda_input(kernel, 1)->shape.extent[2]);
    rondo__step_int(step, strcmp(activation, "none") != 0);
}

void rondo__cuda_prepare_causal_conv(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const int64_t lines = x->extent[0] * x->extent[1];
    const int64_t kept = lines * (rondo__cuda_input(kernel, 1)->shape.extent[2] - 1);
    if (!are_alike(kernel, 0, 4, 4)) {
        rondo__cuda_refuse(kernel, "tensors of this type");
        return;
    }
    add_causal(kernel, "causal_conv", lines * x->extent[2]);
    if (rondo__cuda_wants_output(kernel, 1) && kept > 0) {
        add_causal(kernel, "causal_state", kept);
    }
}
