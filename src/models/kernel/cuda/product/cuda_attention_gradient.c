// kernel/cuda/product/cuda_attention_gradient.c — rondo.AttentionGradient; see
// cu/product/attention_gradient.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum { THREADS = 128, TENSOR_ROWS = 64, TENSOR_WIDTH_MAX = 128, SHARED_MAX = 40 << 10 };

typedef struct problem {
    int64_t batch, heads, m, n, width, v_width;
    bool is_tensor, is_joined;
    rondo__address rows;
} problem;

static bool read_problem(rondo__cuda_kernel *kernel, problem *p) {
    const rondo__tensor_info *q = rondo__cuda_input(kernel, 1), *v = rondo__cuda_input(kernel, 3);
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return false;
    }
    p->heads = rondo__op_get_int(kernel->request->op, "num_heads", 1);
    p->is_joined = rondo__op_get_int(kernel->request->op, "joined", 0) != 0;
    p->batch = q->shape.extent[0];
    p->m = q->shape.extent[1];
    p->n = v->shape.extent[1];
    p->width = q->shape.extent[2] / p->heads;
    p->v_width = v->shape.extent[2] / p->heads;
    p->is_tensor = q->dtype == RONDO_DTYPE_F16 && info.arch_major >= 8 && p->width == p->v_width &&
                   p->width % 16 == 0 && p->width <= TENSOR_WIDTH_MAX && p->m < INT32_MAX / 2 &&
                   p->n < INT32_MAX / 2;
    if (!rondo__cuda_is_float(q->dtype) || p->heads > UINT16_MAX || p->batch > UINT16_MAX ||
        (!p->is_tensor && 2 * p->n * (int64_t)sizeof(float) > SHARED_MAX)) {
        rondo__cuda_refuse(kernel, "rows of this type, or so many of them");
        return false;
    }
    return true;
}

static void add(rondo__cuda_kernel *kernel, const problem *p, const char *name, int64_t lines,
                uint32_t shared_bytes) {
    const rondo__op *op = kernel->request->op;
    const int64_t pitch = p->heads * p->width, v_pitch = p->heads * p->v_width;
    const size_t element_bytes = rondo_dtype_get_bytes(rondo__cuda_input(kernel, 1)->dtype);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_int(&defines, "WIDTH", p->width);
    rondo__define_int(&defines, "V_WIDTH", p->v_width);
    rondo__define_int(&defines, "CAUSAL", rondo__op_get_int(op, "is_causal", 0) != 0);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, p->is_tensor ? rondo__cu_attention_gradient_tensor : rondo__cu_attention_gradient,
        &defines, name, p->is_tensor ? (lines + TENSOR_ROWS - 1) / TENSOR_ROWS : lines, THREADS);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)p->heads;
        step->launch.grid[2] = (uint32_t)p->batch;
        step->launch.shared_bytes = p->is_tensor ? 0 : shared_bytes;
    }
    for (size_t i = 0; i < 4; i++) {
        rondo__step_input(step, i);
    }
    for (size_t i = 0; i < 3; i++) {
        if (p->is_joined) {
            rondo__step_address(step, rondo__address_offset(rondo__address_output(0),
                                                            i * (size_t)pitch * element_bytes));
        } else {
            rondo__step_optional_output(step, kernel, i);
        }
    }
    rondo__step_address(step, p->rows);
    rondo__step_int(step, p->heads);
    rondo__step_int(step, p->m);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->is_joined ? 2 * pitch + v_pitch : pitch);
    rondo__step_int(step, p->is_joined ? 2 * pitch + v_pitch : v_pitch);
    rondo__step_float(step, (double)rondo__op_get_float(op, "scale", 1.0f));
}

void rondo__cuda_prepare_attention_gradient(rondo__cuda_kernel *kernel) {
    problem p = {0};
    if (!read_problem(kernel, &p)) {
        return;
    }
    p.rows = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, (size_t)(p.batch * p.heads * p.m) * 2 * sizeof(float)));
    add(kernel, &p, "gradient_rows", p.m, (uint32_t)(2 * p.n * (int64_t)sizeof(float)));
    if (p.is_joined || rondo__cuda_wants_output(kernel, 1) || rondo__cuda_wants_output(kernel, 2)) {
        add(kernel, &p, "gradient_keys", p.n, 0);
    }
}
