// kernel/host/rows/host_choice.c — Where of f32: loops over rows of the broadcast operands, which
// compilers turn into vector code.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/broadcast.h"
#include "op/support.h"

enum { CHUNK = 16 * 1024 };  // elements of one piece of work

typedef struct choice_kernel {
    rondo__host_kernel head;
    rondo__broadcast walk;
    int64_t pieces;  // of a row
    int64_t grain;
} choice_kernel;

typedef struct choice_run {
    const choice_kernel *kernel;
    const uint8_t *c;
    const float *a, *b;
    float *y;
} choice_run;

// Each loop knows which operands move, so that it can be vector code.
static void choose(const int64_t *step, const uint8_t *c, const float *a, const float *b, float *y,
                   int64_t count) {
    const float a_one = *a, b_one = *b;
    if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = c[i] != 0 ? a[i] : b[i];
        }
    } else if (step[0] == 1 && step[1] == 0 && step[2] == 1) {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = c[i] != 0 ? a_one : b[i];
        }
    } else if (step[0] == 1 && step[1] == 1 && step[2] == 0) {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = c[i] != 0 ? a[i] : b_one;
        }
    } else {
        for (int64_t i = 0; i < count; ++i) {
            y[i] = c[step[0] * i] != 0 ? a[step[1] * i] : b[step[2] * i];
        }
    }
}

static void run_pieces(void *data, int64_t first, int64_t end) {
    const choice_run *run = data;
    const choice_kernel *kernel = run->kernel;
    rondo__broadcast walk = kernel->walk;
    const int64_t *step = walk.row_stride, *offset = walk.offset;
    int64_t row = first / kernel->pieces, at = first % kernel->pieces * CHUNK;
    rondo__broadcast_seek(&walk, row);
    for (int64_t unit = first; unit < end; ++unit) {
        const int64_t rest = walk.row_length - at;
        choose(step, run->c + offset[0] + at * step[0], run->a + offset[1] + at * step[1],
               run->b + offset[2] + at * step[2], run->y + row * walk.row_length + at,
               rest < CHUNK ? rest : CHUNK);
        at += CHUNK;
        if (rest <= CHUNK) {
            rondo__broadcast_advance(&walk);
            row += 1;
            at = 0;
        }
    }
}

static rondo_status run_choice(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const choice_kernel *kernel = (const choice_kernel *)head;
    choice_run run = {kernel, inputs[0], inputs[1], inputs[2], outputs[0]};
    rondo__workers_loop(kernel->walk.row_count * kernel->pieces, kernel->grain, run_pieces, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_choice(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_shape *operands[3], *y = &request->outputs[0].shape;
    bool fits = request->input_count == 3;
    for (size_t i = 0; i < request->input_count && fits; ++i) {
        operands[i] = &request->inputs[i].shape;
        fits = i == 0 || request->inputs[i].dtype == RONDO_DTYPE_F32;
    }
    if (!fits) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(choice_kernel), "simd", run_choice, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    choice_kernel *kernel = (choice_kernel *)head;
    const int64_t count = rondo_shape_get_count(y);
    rondo__broadcast_init(&kernel->walk, y, operands, 3);
    kernel->pieces = (kernel->walk.row_length + CHUNK - 1) / CHUNK;
    kernel->grain = rondo__host_get_grain(kernel->walk.row_count * kernel->pieces,
                                          (double)count * 4.0 * sizeof(float), 0.0);
    for (size_t i = 1; i < 3; ++i) {
        head->base.in_place_inputs |=
            rondo_shape_get_count(operands[i]) == count ? UINT64_C(1) << i : 0;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
