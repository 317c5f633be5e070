// kernel/host/rows/host_choice.c — Where of f32, whose operands have the result's shape or one
// element: loops that compilers turn into vector code.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "op/support.h"

enum { CHUNK = 16 * 1024 };  // elements of one piece of work

typedef struct choice_kernel choice_kernel;

typedef struct choice_run {
    const choice_kernel *kernel;
    const void *const *inputs;
    void *output;
} choice_run;

struct choice_kernel {
    rondo__host_kernel head;
    int64_t count;
    int64_t step[3];  // of operands: 1, or 0 where they are one element
};

// Each loop knows which operands move, so that it can be vector code.
#define CHOOSE(c_step, a_step, b_step)                             \
    for (int64_t i = first; i < end; ++i) {                        \
        y[i] = c[(c_step)*i] != 0 ? a[(a_step)*i] : b[(b_step)*i]; \
    }

static void choose(const choice_run *run, int64_t first, int64_t end) {
    const int64_t *step = run->kernel->step;
    const uint8_t *c = run->inputs[0];
    const float *a = run->inputs[1];
    const float *b = run->inputs[2];
    float *y = run->output;
    if (step[0] == 1 && step[1] == 1 && step[2] == 1) {
        CHOOSE(1, 1, 1)
    } else if (step[0] == 1 && step[1] == 0 && step[2] == 1) {
        const float one = *a;
        for (int64_t i = first; i < end; ++i) {
            y[i] = c[i] != 0 ? one : b[i];
        }
    } else if (step[0] == 1 && step[1] == 1 && step[2] == 0) {
        const float one = *b;
        for (int64_t i = first; i < end; ++i) {
            y[i] = c[i] != 0 ? a[i] : one;
        }
    } else {
        CHOOSE(step[0], step[1], step[2])
    }
}

static void run_chunks(void *data, int64_t first, int64_t end) {
    const choice_run *run = data;
    const int64_t count = run->kernel->count;
    choose(run, first * CHUNK, end * CHUNK < count ? end * CHUNK : count);
}

static rondo_status run_choice(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    (void)workspace;
    const choice_kernel *kernel = (const choice_kernel *)head;
    choice_run run = {kernel, inputs, outputs[0]};
    rondo__workers_loop((kernel->count + CHUNK - 1) / CHUNK, 1, run_chunks, &run);
    return RONDO_STATUS_OK;
}

// Whether all operands have the result's shape, or one element.
static bool read_steps(const rondo__kernel_request *request, choice_kernel *kernel) {
    const rondo_shape *shape = &request->outputs[0].shape;
    kernel->count = rondo_shape_get_count(shape);
    for (size_t i = 0; i < request->input_count; ++i) {
        const rondo_shape *own = &request->inputs[i].shape;
        const bool is_whole = rondo_shape_is_equal(own, shape);
        if (!is_whole && rondo_shape_get_count(own) != 1) {
            return false;
        }
        kernel->step[i] = is_whole ? 1 : 0;
    }
    return true;
}

rondo_status rondo__host_prepare_choice(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    bool fits = request->input_count == 3;
    for (size_t i = 1; i < request->input_count && fits; ++i) {
        fits = request->inputs[i].dtype == RONDO_DTYPE_F32;
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
    if (!read_steps(request, kernel)) {
        rondo__kernel_destroy(&head->base);
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = 1; i < 3; ++i) {
        head->base.in_place_inputs |= kernel->step[i] == 1 ? UINT64_C(1) << i : 0;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
