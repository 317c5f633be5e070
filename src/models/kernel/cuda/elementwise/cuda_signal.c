// kernel/cuda/elementwise/cuda_signal.c — DFT, STFT and the windows of cosines; see signal.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/reference.h"

typedef struct transform {
    int64_t outputs;  // complex ones
    size_t window;    // input; 0: none
    int64_t length, extent, inner, bins, parts, out_parts;
    bool is_inverse, is_mirrored;
    int64_t frames, step;
} transform;

static void push_transform(rondo__step *step, const transform *t, rondo__address roots) {
    rondo__step_int(step, t->outputs);
    rondo__step_input(step, 0);
    if (t->window > 0) {
        rondo__step_input(step, t->window);
    } else {
        rondo__step_int(step, 0);
    }
    rondo__step_output(step, 0);
    rondo__step_address(step, roots);
    rondo__step_int(step, t->length);
    rondo__step_int(step, t->extent);
    rondo__step_int(step, t->inner);
    rondo__step_int(step, t->bins);
    rondo__step_int(step, t->parts);
    rondo__step_int(step, t->out_parts);
    rondo__step_int(step, t->is_inverse);
    rondo__step_int(step, t->is_mirrored);
    rondo__step_int(step, t->frames);
    rondo__step_int(step, t->step);
    rondo__step_float(step, t->is_inverse ? 1.0 / (double)t->length : 1.0);
}

static void add_transform(rondo__cuda_kernel *kernel, const transform *t) {
    rondo__defines defines = {0};
    const rondo__address roots = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)t->length * 2 * sizeof(double)));
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    push_transform(rondo__cuda_add_launch(kernel, rondo__cu_signal, &defines, "transform_roots",
                                          rondo__cuda_blocks(t->length), RONDO__CUDA_BLOCK),
                   t, roots);
    push_transform(rondo__cuda_add_launch(kernel, rondo__cu_signal, &defines, "transform",
                                          rondo__cuda_blocks(t->outputs), RONDO__CUDA_BLOCK),
                   t, roots);
}

void rondo__cuda_prepare_dft(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    int64_t given = op->opset >= 20 ? -2 : rondo__op_get_int(op, "axis", 1);
    if (rondo__cuda_has_input(kernel, 2) && rondo__cuda_read_ints(kernel, 2, &given, 1) != 1) {
        return;
    }
    const int32_t axis = rondo__cuda_wrap_axis(given, x->rank);
    transform t = {
        .parts = x->extent[x->rank - 1],
        .out_parts = y->extent[y->rank - 1],
        .extent = x->extent[axis],
        .bins = y->extent[axis],
        .inner = rondo__cuda_product(x, axis + 1, x->rank - 1),
        .is_inverse = rondo__op_get_int(op, "inverse", 0) != 0,
    };
    const bool is_onesided = rondo__op_get_int(op, "onesided", 0) != 0;
    t.is_mirrored = t.is_inverse && is_onesided;
    t.length = t.is_mirrored ? 2 * (t.extent - 1) : t.extent;
    t.outputs = rondo_shape_get_count(y) / t.out_parts;
    if (rondo__cuda_has_input(kernel, 1) && rondo__cuda_read_ints(kernel, 1, &t.length, 1) != 1) {
        return;
    }
    add_transform(kernel, &t);
}

void rondo__cuda_prepare_stft(rondo__cuda_kernel *kernel) {
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *y = &rondo__cuda_output(kernel, 0)->shape;
    transform t = {
        .parts = x->rank == 3 ? x->extent[2] : 1,
        .out_parts = 2,
        .extent = x->extent[1],
        .inner = 1,
        .length = x->extent[1],
        .frames = y->extent[1],
        .bins = y->extent[2],
        .outputs = rondo_shape_get_count(y) / 2,
    };
    if (rondo__cuda_has_input(kernel, 2)) {
        t.window = 2;
        t.length = rondo__cuda_input(kernel, 2)->shape.extent[0];
    }
    if (rondo__cuda_read_ints(kernel, 1, &t.step, 1) != 1 ||
        (rondo__cuda_has_input(kernel, 3) && rondo__cuda_read_ints(kernel, 3, &t.length, 1) != 1)) {
        return;
    }
    add_transform(kernel, &t);
}

void rondo__cuda_prepare_cosine_window(rondo__cuda_kernel *kernel) {
    static const struct {
        rondo__op_id op;
        double factors[3];
    } windows[] = {{RONDO__OP_HannWindow, {0.5, 0.5, 0.0}},
                   {RONDO__OP_HammingWindow, {25.0 / 46.0, 21.0 / 46.0, 0.0}},
                   {RONDO__OP_BlackmanWindow, {0.42, 0.5, 0.08}}};
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const int64_t size = y->shape.extent[0];
    rondo__defines defines = {0};
    size_t which = 0;
    while (which < 2 && op->def->id != windows[which].op) {
        which++;
    }
    rondo__define_type(&defines, "T", y->dtype);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_signal, &defines, "cosine_window",
                                               rondo__cuda_blocks(size), RONDO__CUDA_BLOCK);
    rondo__step_int(step, size);
    rondo__step_output(step, 0);
    rondo__step_int(step, rondo__op_get_int(op, "periodic", 1) != 0 ? size : size - 1);
    rondo__step_int(step, rondo__dtype_is_integer(y->dtype));
    for (int i = 0; i < 3; i++) {
        rondo__step_float(step, windows[which].factors[i]);
    }
}
