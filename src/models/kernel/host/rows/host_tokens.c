// kernel/host/rows/host_tokens.c — RotaryEmbedding and SwiGLU on f32.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/math/rotary.h"

static bool is_f32(const rondo__kernel_request *request, size_t input) {
    return request->inputs[input].dtype == RONDO_DTYPE_F32;
}

// ---- RotaryEmbedding --------------------------------------------------------------------------

typedef struct rotary_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__rotary form;
    int64_t rows;  // of cosines and sines
    bool has_ids, has_one_id;
    int64_t grain;
} rotary_kernel;

typedef struct rotary_run {
    const rotary_kernel *kernel;
    const float *x, *cosines, *sines;
    const int64_t *ids;
    float *y;
} rotary_run;

static int64_t find_row(const rotary_run *run, int64_t at) {
    const rotary_kernel *kernel = run->kernel;
    return !kernel->has_ids     ? at
           : kernel->has_one_id ? rondo__rotary_add(run->ids[0], at % kernel->form.places)
                                : run->ids[at];
}

static void turn_places(void *data, int64_t first, int64_t end) {
    const rotary_run *run = data;
    const rondo__rotary *f = &run->kernel->form;
    const int64_t pairs = f->turned / 2;
    for (int64_t at = first; at < end; ++at) {
        const int64_t base = at / f->places * f->batch_step + at % f->places * f->place_step;
        const float *cosines = run->cosines + find_row(run, at) * pairs;
        const float *sines = run->sines + find_row(run, at) * pairs;
        for (int64_t h = 0; h < f->heads; ++h) {
            const float *x = run->x + base + h * f->head_step;
            float *y = run->y + base + h * f->head_step;
            if (x != y) {
                memcpy(y, x, (size_t)f->size * sizeof(float));
            }
            if (!f->is_interleaved) {
                run->kernel->simd->turn(cosines, sines, y, y + pairs, pairs);
                continue;
            }
            for (int64_t i = 0; i < pairs; ++i) {
                const float a = y[2 * i], b = y[2 * i + 1];
                y[2 * i] = cosines[i] * a - sines[i] * b;
                y[2 * i + 1] = sines[i] * a + cosines[i] * b;
            }
        }
    }
}

static rondo_status run_rotary(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const rotary_kernel *kernel = (const rotary_kernel *)head;
    const rondo__rotary *f = &kernel->form;
    rotary_run run = {kernel, inputs[0], inputs[f->cosines], inputs[f->sines], NULL, outputs[0]};
    run.ids = kernel->has_ids ? inputs[f->ids] : NULL;
    for (int64_t at = 0; kernel->has_ids && at < f->batches * f->places; ++at) {
        const int64_t row = find_row(&run, at);
        if (row < 0 || row >= kernel->rows) {
            return RONDO_OP_FAIL(head->op, BAD_DATA, "position %lld is outside [0, %lld)",
                                 (long long)row, (long long)kernel->rows);
        }
    }
    rondo__workers_loop(f->batches * f->places, kernel->grain, turn_places, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_rotary(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const bool is_onnx = request->op->def->id == RONDO__OP_RotaryEmbedding;
    rondo__rotary f;
    RETURN_IF_ERROR(rondo__rotary_read(request->op, &request->inputs[0].shape,
                                       &request->inputs[is_onnx ? 1 : 2].shape, &f));
    if (!is_f32(request, 0) || !is_f32(request, f.cosines) || !is_f32(request, f.sines)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rotary_kernel *kernel = (rotary_kernel *)rondo__host_kernel_create(request, sizeof *kernel,
                                                                       "simd", run_rotary, NULL);
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->simd = rondo__simd_get();
    kernel->form = f;
    kernel->rows = request->inputs[f.cosines].shape.extent[0];
    kernel->has_ids =
        f.ids < request->input_count && request->inputs[f.ids].dtype != RONDO_DTYPE_NONE;
    kernel->has_one_id = kernel->has_ids && request->inputs[f.ids].shape.rank == 1;
    const double bytes = (double)(f.batches * f.places) * (double)(f.heads * f.size) * 8.0;
    kernel->grain = rondo__host_get_grain(f.batches * f.places, bytes, 0.0);
    kernel->head.base.in_place_inputs = 1;
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

// ---- SwiGLU -----------------------------------------------------------------------------------

enum { PIECE = 1024 };  // that stays in the cache between the loops

typedef struct gate_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    float alpha;
    int64_t count, grain;
} gate_kernel;

typedef struct gate_run {
    const gate_kernel *kernel;
    const float *gate, *value;
    float *y;
} gate_run;

static void open_gates(void *data, int64_t first, int64_t end) {
    const gate_run *run = data;
    const rondo__simd *simd = run->kernel->simd;
    float share[PIECE];
    for (int64_t piece = first; piece < end; ++piece) {
        const int64_t at = piece * PIECE, rest = run->kernel->count - at;
        const int64_t count = rest < PIECE ? rest : PIECE;
        simd->unary[RONDO__SCALAR_Affine](run->gate + at, share, count, run->kernel->alpha, 0.0f);
        simd->unary[RONDO__SCALAR_Sigmoid](share, share, count, 0.0f, 0.0f);
        simd->binary[RONDO__SCALAR_Mul](run->gate + at, share, share, count);
        simd->binary[RONDO__SCALAR_Mul](share, run->value + at, run->y + at, count);
    }
}

static rondo_status run_gates(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    (void)workspace;
    const gate_kernel *kernel = (const gate_kernel *)head;
    gate_run run = {kernel, inputs[0], inputs[1], outputs[0]};
    rondo__workers_loop((kernel->count + PIECE - 1) / PIECE, kernel->grain, open_gates, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_swiglu(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    if (!is_f32(request, 0) || !is_f32(request, 1)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    gate_kernel *kernel =
        (gate_kernel *)rondo__host_kernel_create(request, sizeof *kernel, "simd", run_gates, NULL);
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->simd = rondo__simd_get();
    kernel->alpha = rondo__op_get_float(request->op, "alpha", 1.0f);
    kernel->count = rondo_shape_get_count(&request->inputs[0].shape);
    kernel->grain = rondo__host_get_grain((kernel->count + PIECE - 1) / PIECE,
                                          (double)kernel->count * 12.0, 0.0);
    kernel->head.base.in_place_inputs = 3;
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}
