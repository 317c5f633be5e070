// kernel/host/rows/host_cast.c — Cast and CastLike of numbers: the reference's conversions by
// several threads, and 32-bit integers to f32 by vector code.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/byte_simd.h"
#include "op/math/cast_rule.h"
#include "op/support.h"
#include "tensor/elements.h"

enum { CHUNK = 16 * 1024 };  // elements of one piece of work

typedef struct cast_kernel {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;  // NULL: no code of its own
    rondo_dtype from, to;
    rondo__narrow_rule rule;
    int64_t count;
} cast_kernel;

typedef struct cast_run {
    const cast_kernel *kernel;
    const char *x;
    char *y;
} cast_run;

static void cast_chunks(void *data, int64_t first, int64_t end) {
    const cast_run *run = data;
    const cast_kernel *kernel = run->kernel;
    const size_t from_bytes = rondo_dtype_get_bytes(kernel->from);
    const size_t to_bytes = rondo_dtype_get_bytes(kernel->to);
    for (int64_t i = first; i < end; ++i) {
        const int64_t rest = kernel->count - i * CHUNK;
        const int64_t count = rest < CHUNK ? rest : CHUNK;
        const char *x = run->x + (size_t)(i * CHUNK) * from_bytes;
        char *y = run->y + (size_t)(i * CHUNK) * to_bytes;
        if (kernel->simd != NULL) {
            kernel->simd->widen_i32((const int32_t *)(const void *)x, (float *)(void *)y, count);
        } else {
            rondo__convert_elements_by(kernel->from, x, kernel->to, y, (size_t)count,
                                       &kernel->rule);
        }
    }
}

static rondo_status run_cast(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const cast_kernel *kernel = (const cast_kernel *)head;
    cast_run run = {kernel, inputs[0], outputs[0]};
    rondo__workers_loop((kernel->count + CHUNK - 1) / CHUNK, 1, cast_chunks, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_cast(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel) {
    const rondo_dtype from = request->inputs[0].dtype;
    const rondo_dtype to = request->outputs[0].dtype;
    if (!rondo__dtype_is_plain(from) || !rondo__dtype_is_plain(to)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const rondo_status plain = rondo__host_prepare_plain(request, out_kernel);
    if (plain != RONDO_STATUS_UNSUPPORTED) {
        return plain;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(cast_kernel), "simd", run_cast, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    cast_kernel *kernel = (cast_kernel *)head;
    const bool is_widening = from == RONDO_DTYPE_I32 && to == RONDO_DTYPE_F32;
    kernel->simd = is_widening ? rondo__byte_simd_get() : NULL;
    kernel->from = from;
    kernel->to = to;
    kernel->count = rondo_shape_get_count(&request->inputs[0].shape);
    head->base.in_place_inputs = is_widening ? 1 : 0;
    const rondo_status status = rondo__cast_read_rule(request->op, &kernel->rule);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
