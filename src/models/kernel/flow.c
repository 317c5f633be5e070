// kernel/flow.c — see flow.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/flow.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cu_sources.h"
#include "device/device.h"

enum { CHOOSE, ENTER, NEXT, SLICE };
enum { BLOCK = 256, BLOCKS_MAX = 1024 };

const char *const rondo__flow_kernel_names[RONDO__FLOW_KERNEL_COUNT] = {
    "rondo_flow_choose", "rondo_flow_enter", "rondo_flow_next", "rondo_flow_slice"};

// ---- arguments: words, as all kernels have them -----------------------------------------------

typedef struct choose_arguments {
    rondo__flow_state *state;
    const uint8_t *condition;
} choose_arguments;

typedef struct slice_arguments {
    const rondo__flow_state *state;
    char *tensor;
    char *slice;
    int64_t outer;
    int64_t length;
    int64_t inner;  // elements of `element_bytes`
    int64_t is_written;
    int64_t is_backward;
    int64_t element_bytes;  // for the host; on CUDA it chose the kernel
} slice_arguments;

static_assert(sizeof(rondo__flow_state) == 40 && sizeof(rondo__flow_loop) == 64,
              "cu/flow.cu has the same");

// ---- on the host ------------------------------------------------------------------------------

static void run_choose(void *arguments) {
    const choose_arguments *a = arguments;
    a->state->predicate = *a->condition != 0;
}

// Whether one more turn begins.
static void decide(const rondo__flow_loop *a, bool goes_on) {
    rondo__flow_state *outermost = a->outermost;
    uint64_t reason = 0;
    goes_on = goes_on && a->state->turn < a->state->count && outermost->is_stopped == 0;
    if (goes_on && a->limit > 0 && outermost->taken >= a->limit) {
        reason = a->owner;
    } else if (goes_on && a->watch != NULL && a->state->turn % RONDO__FLOW_POLL_TURNS == 0 &&
               atomic_load(&a->watch->call) == RONDO__FLOW_CANCELLED) {
        reason = RONDO__FLOW_CANCELLED;
    }
    if (reason != 0) {
        outermost->is_stopped = 1;
        atomic_store(&a->watch->stopped, reason);
    }
    goes_on = goes_on && reason == 0;
    outermost->taken += goes_on && a->limit > 0 ? 1 : 0;
    a->state->predicate = goes_on;
}

static void run_enter(void *arguments) {
    const rondo__flow_loop *a = arguments;
    a->state->turn = 0;
    a->state->count = a->count != NULL ? *a->count : a->fixed_count;
    a->state->condition = 1;
    if (a->outermost == a->state) {
        a->state->taken = 0;
        a->state->is_stopped = 0;
    }
    decide(a, a->condition == NULL || *a->condition != 0);
}

static void run_next(void *arguments) {
    const rondo__flow_loop *a = arguments;
    a->state->turn += 1;
    decide(a, a->condition == NULL || *a->condition != 0);
}

static void run_slice(void *arguments) {
    const slice_arguments *a = arguments;
    const size_t bytes = (size_t)(a->inner * a->element_bytes);
    const int64_t turn = a->state->turn;
    if (turn < 0 || turn >= a->length) {
        return;
    }
    const int64_t index = a->is_backward != 0 ? a->length - 1 - turn : turn;
    for (int64_t o = 0; o < a->outer; ++o) {
        char *strided = a->tensor + (size_t)(o * a->length + index) * bytes;
        char *dense = a->slice + (size_t)o * bytes;
        memcpy(a->is_written != 0 ? strided : dense, a->is_written != 0 ? dense : strided, bytes);
    }
}

static const rondo_host_function host_functions[RONDO__FLOW_KERNEL_COUNT] = {run_choose, run_enter,
                                                                             run_next, run_slice};

rondo_host_function rondo__flow_get_host_function(size_t index) {
    return host_functions[index];
}

// ---- which functions --------------------------------------------------------------------------

static const char *const slice_types[5] = {"u8", "u16", "u32", "u64", "uint4"};

// A host function as the pointer that a launch takes.
static void *as_pointer(rondo_host_function function) {
    union {
        rondo_host_function function;
        void *pointer;
    } both = {.function = function};
    return both.pointer;
}

rondo_status rondo__flow_get_kernels(rondo_device *device, rondo__flow_kernels *out_kernels) {
    rondo__flow_kernels kernels = {
        as_pointer(run_choose), as_pointer(run_enter), as_pointer(run_next), {NULL}};
    void **const single[] = {&kernels.choose, &kernels.enter, &kernels.next};
    const bool is_host = rondo_device_is_host(device);
    for (size_t i = 0; !is_host && i < 3; ++i) {
        RETURN_IF_ERROR(rondo__device_get_function(device, rondo__cu_flow, NULL, 0,
                                                   rondo__flow_kernel_names[i], single[i]));
    }
    for (size_t i = 0; i < 5; ++i) {
        char option[32];
        const char *options[] = {option};
        kernels.slice[i] = as_pointer(run_slice);
        (void)snprintf(option, sizeof option, "-DRONDO_T=%s", slice_types[i]);
        if (!is_host) {
            RETURN_IF_ERROR(rondo__device_get_function(device, rondo__cu_flow, options, 1,
                                                       rondo__flow_kernel_names[SLICE],
                                                       &kernels.slice[i]));
        }
    }
    *out_kernels = kernels;
    return RONDO_STATUS_OK;
}

// ---- launches ---------------------------------------------------------------------------------

static rondo_status launch(rondo_stream *stream, size_t kernel, void *function, uint32_t blocks,
                           uint32_t threads, const void *arguments, size_t bytes) {
    const rondo_launch work = {.struct_size = sizeof work,
                               .name = rondo__flow_kernel_names[kernel],
                               .function = function,
                               .grid = {blocks, 1, 1},
                               .block = {threads, 1, 1},
                               .arguments = arguments,
                               .argument_bytes = bytes};
    return rondo_stream_launch(stream, &work);
}

rondo_status rondo__flow_choose(const rondo__flow_kernels *kernels, rondo_stream *stream,
                                rondo__flow_state *state, const uint8_t *condition) {
    const choose_arguments arguments = {state, condition};
    return launch(stream, CHOOSE, kernels->choose, 1, 1, &arguments, sizeof arguments);
}

rondo_status rondo__flow_enter(const rondo__flow_kernels *kernels, rondo_stream *stream,
                               const rondo__flow_loop *loop) {
    return launch(stream, ENTER, kernels->enter, 1, 1, loop, sizeof *loop);
}

rondo_status rondo__flow_next(const rondo__flow_kernels *kernels, rondo_stream *stream,
                              const rondo__flow_loop *loop) {
    return launch(stream, NEXT, kernels->next, 1, 1, loop, sizeof *loop);
}

rondo_status rondo__flow_move(const rondo__flow_kernels *kernels, rondo_stream *stream,
                              const rondo__flow_slice *slice) {
    size_t width = 4;  // as powers of two
    while ((slice->inner_bytes & (((int64_t)1 << width) - 1)) != 0) {
        width -= 1;
    }
    const slice_arguments arguments = {.state = slice->state,
                                       .tensor = slice->tensor,
                                       .slice = slice->slice,
                                       .outer = slice->outer,
                                       .length = slice->length,
                                       .inner = slice->inner_bytes >> width,
                                       .is_written = slice->is_written,
                                       .is_backward = slice->is_backward,
                                       .element_bytes = (int64_t)1 << width};
    const int64_t elements = slice->outer * arguments.inner;
    if (elements == 0) {
        return RONDO_STATUS_OK;
    }
    const int64_t blocks = (elements + BLOCK - 1) / BLOCK;
    return launch(stream, SLICE, kernels->slice[width],
                  (uint32_t)(blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX), BLOCK, &arguments,
                  sizeof arguments);
}
