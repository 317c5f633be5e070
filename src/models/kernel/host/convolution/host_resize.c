// kernel/host/convolution/host_resize.c — Resize and Upsample: nearest of any element type, and
// sums of taps (linear, cubic, antialias) on f32. Crops take the reference.
//
// The axes that change are levels, the first outermost. A level sees its source as
//
//   [outer, input, inner]      inner: all that lies behind the axis, at the extents of the input
//
// and makes, for each of `outer` and each output position, one row of `inner` elements: a row of
// the source (nearest) or a sum of some. The last level writes such rows into the output; another
// one hands its row to the next level while it is still in the cache.
//
//   level 0   height: a row of the image, as wide as the input
//   level 1   width: into the output
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread_count.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/image/resize.h"
#include "op/support.h"

enum {
    TAPS_MAX = 64,  // of one position; more take the reference
};

typedef struct level {
    int64_t outer, input, output, inner;
    int64_t result;      // elements that one row becomes in the output
    int64_t tap_count;   // of a position
    int64_t *indices;    // output * tap_count
    float *weights;      // the same; NULL: nearest
    int64_t scratch_at;  // of its row, in floats of a part's scratch memory
} level;

typedef struct resize_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    size_t element_bytes;
    int32_t level_count;
    level levels[RONDO_RANK_MAX];
    int64_t part_count;      // of the first level's rows, each on one thread
    int64_t scratch_floats;  // of a part
} resize_kernel;

// ---- running ----------------------------------------------------------------------------------

// Single elements along the last axis.
static void gather_elements(const level *now, size_t bytes, const void *x, void *y) {
#define GATHER(type)                                         \
    for (int64_t i = 0; i < now->output; ++i) {              \
        ((type *)y)[i] = ((const type *)x)[now->indices[i]]; \
    }
    switch (bytes) {
        case 1:
            GATHER(uint8_t)
            break;
        case 2:
            GATHER(uint16_t)
            break;
        case 4:
            GATHER(uint32_t)
            break;
        default:
            GATHER(uint64_t)
            break;
    }
#undef GATHER
}

static void sum_elements(const level *now, const float *x, float *y) {
    const int64_t *indices = now->indices;
    const float *weights = now->weights;
    if (now->tap_count == 2) {
        for (int64_t i = 0; i < now->output; ++i) {
            y[i] = weights[2 * i] * x[indices[2 * i]] + weights[2 * i + 1] * x[indices[2 * i + 1]];
        }
        return;
    }
    for (int64_t i = 0; i < now->output; ++i) {
        float sum = 0.0f;
        for (int64_t tap = 0; tap < now->tap_count; ++tap) {
            sum += weights[i * now->tap_count + tap] * x[indices[i * now->tap_count + tap]];
        }
        y[i] = sum;
    }
}

// One row of a level: where the source has it, or as a sum in `target`.
static const char *make_row(const resize_kernel *kernel, const level *now, const char *source,
                            int64_t position, char *target) {
    const size_t row_bytes = (size_t)now->inner * kernel->element_bytes;
    const int64_t *indices = now->indices + position * now->tap_count;
    if (now->weights == NULL) {
        return source + (size_t)indices[0] * row_bytes;
    }
    const float *rows[TAPS_MAX];
    for (int64_t tap = 0; tap < now->tap_count; ++tap) {
        rows[tap] = (const float *)(const void *)(source + (size_t)indices[tap] * row_bytes);
    }
    kernel->simd->sum_of_rows(rows, now->weights + position * now->tap_count, now->tap_count,
                              (float *)(void *)target, now->inner);
    return target;
}

static void run_block(const resize_kernel *kernel, int32_t index, const char *source, char *target,
                      float *scratch);

// Rows begin .. end - 1 of a level, of all its `outer` blocks counted through.
static void run_rows(const resize_kernel *kernel, int32_t index, const char *source, char *target,
                     float *scratch, int64_t begin, int64_t end) {
    const level *now = &kernel->levels[index];
    const size_t bytes = kernel->element_bytes;
    const size_t result_bytes = (size_t)now->result * bytes;
    for (int64_t i = begin; i < end; ++i) {
        const int64_t position = i % now->output;
        const char *block = source + (size_t)(i / now->output * now->input * now->inner) * bytes;
        char *to = target + (size_t)i * result_bytes;
        if (index + 1 == kernel->level_count) {
            const char *row = make_row(kernel, now, block, position, to);
            if (row != to) {
                memcpy(to, row, result_bytes);
            }
        } else if (now->weights == NULL && i > begin && position > 0 &&
                   now->indices[position] == now->indices[position - 1]) {
            memcpy(to, to - result_bytes, result_bytes);
        } else {
            char *own = (char *)(scratch + now->scratch_at);
            run_block(kernel, index + 1, make_row(kernel, now, block, position, own), to, scratch);
        }
    }
}

// All of a level.
static void run_block(const resize_kernel *kernel, int32_t index, const char *source, char *target,
                      float *scratch) {
    const level *now = &kernel->levels[index];
    if (now->inner != 1 || index + 1 < kernel->level_count) {
        run_rows(kernel, index, source, target, scratch, 0, now->outer * now->output);
        return;
    }
    const size_t bytes = kernel->element_bytes;
    for (int64_t i = 0; i < now->outer; ++i) {
        const void *x = source + (size_t)(i * now->input) * bytes;
        void *y = target + (size_t)(i * now->output) * bytes;
        if (now->weights == NULL) {
            gather_elements(now, bytes, x, y);
        } else {
            sum_elements(now, x, y);
        }
    }
}

typedef struct resize_run {
    const resize_kernel *kernel;
    const char *x;
    char *y;
    float *workspace;
} resize_run;

static void run_part(const resize_run *run, int64_t part) {
    const resize_kernel *kernel = run->kernel;
    const level *first = &kernel->levels[0];
    const bool is_by_block = kernel->level_count == 1 && first->inner == 1;
    const int64_t count = is_by_block ? first->outer : first->outer * first->output;
    const int64_t parts = kernel->part_count;
    const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
    float *scratch = run->workspace + part * kernel->scratch_floats;
    if (!is_by_block) {
        run_rows(kernel, 0, run->x, run->y, scratch, begin, end);
        return;
    }
    resize_kernel of_part = *kernel;
    of_part.levels[0].outer = end - begin;
    run_block(&of_part, 0, run->x + (size_t)(begin * first->input) * kernel->element_bytes,
              run->y + (size_t)(begin * first->output) * kernel->element_bytes, scratch);
}

static void run_parts(void *data, int64_t first, int64_t end) {
    for (int64_t part = first; part < end; ++part) {
        run_part(data, part);
    }
}

static rondo_status run_resize(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    const resize_kernel *kernel = (const resize_kernel *)head;
    resize_run run = {kernel, inputs[0], outputs[0], workspace};
    rondo__workers_loop(kernel->part_count, 1, run_parts, &run);
    return RONDO_STATUS_OK;
}

static void deinit_resize(rondo__host_kernel *head) {
    resize_kernel *kernel = (resize_kernel *)head;
    for (int32_t i = 0; i < kernel->level_count; ++i) {
        rondo__free(kernel->levels[i].indices);
        rondo__free(kernel->levels[i].weights);
    }
}

// ---- preparing --------------------------------------------------------------------------------

// UNSUPPORTED where a position lies outside of a crop.
static rondo_status fill_taps(const rondo__resize_plan *plan, int32_t axis,
                              const rondo__resize_taps *taps, level *now) {
    double weights[TAPS_MAX];
    now->tap_count = taps->count;
    now->indices = rondo__calloc((size_t)(now->output * taps->count), sizeof *now->indices);
    if (plan->mode != RONDO__RESIZE_NEAREST) {
        now->weights = rondo__calloc((size_t)(now->output * taps->count), sizeof *now->weights);
    }
    if (now->indices == NULL || (plan->mode != RONDO__RESIZE_NEAREST && now->weights == NULL)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (int64_t i = 0; i < now->output; ++i) {
        if (!rondo__resize_find_taps(plan, axis, i, taps, now->indices + i * taps->count,
                                     weights)) {
            return RONDO_STATUS_UNSUPPORTED;
        }
        for (int64_t tap = 0; tap < taps->count && now->weights != NULL; ++tap) {
            now->weights[i * taps->count + tap] = (float)weights[tap];
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status add_levels(const rondo__kernel_request *request, const rondo__resize_plan *plan,
                               resize_kernel *kernel) {
    int32_t former = 0;
    for (int32_t axis = 0; axis < plan->input.rank; ++axis) {
        if (rondo__resize_keeps_axis(plan, axis)) {
            continue;
        }
        rondo__resize_taps taps;
        RETURN_IF_ERROR(rondo__resize_count_taps(request->op, plan, axis, &taps));
        if (taps.count > TAPS_MAX) {
            return RONDO_STATUS_UNSUPPORTED;
        }
        level *now = &kernel->levels[kernel->level_count++];
        now->outer = rondo__shape_multiply(&plan->input, former, axis);
        now->input = plan->input.extent[axis];
        now->output = plan->output.extent[axis];
        now->inner = rondo__shape_multiply(&plan->input, axis + 1, plan->input.rank);
        now->result = rondo__shape_multiply(&plan->output, axis + 1, plan->output.rank);
        now->scratch_at = kernel->scratch_floats;
        kernel->scratch_floats += (now->inner + 15) / 16 * 16;
        RETURN_IF_ERROR(fill_taps(plan, axis, &taps, now));
        former = axis + 1;
    }
    return kernel->level_count > 0 ? RONDO_STATUS_OK : RONDO_STATUS_UNSUPPORTED;
}

static void choose_parts(const rondo__kernel_request *request, resize_kernel *kernel) {
    const level *first = &kernel->levels[0];
    const int64_t rows = first->outer * (first->inner == 1 ? 1 : first->output);
    const double bytes = (double)rondo_shape_get_count(&request->outputs[0].shape) *
                         (double)kernel->element_bytes * 2.0;
    kernel->part_count = rondo__host_count_parts(rows, bytes, 0.0);
    // Rows that are sums, or are looked at by a further level, need a place of their own.
    kernel->scratch_floats = first->weights == NULL ? 0 : kernel->scratch_floats;
    kernel->head.base.workspace_bytes =
        (size_t)(kernel->part_count * kernel->scratch_floats) * sizeof(float);
}

rondo_status rondo__host_prepare_resize(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel) {
    const rondo_dtype dtype = request->inputs[0].dtype;
    const size_t bytes = rondo_dtype_get_bytes(dtype);
    const rondo_tensor *values[RONDO__RESIZE_INPUT_COUNT] = {NULL};
    for (size_t i = 1; i < RONDO__RESIZE_INPUT_COUNT && i < request->input_count; ++i) {
        values[i] = request->inputs[i].constant;
        if (values[i] == NULL && request->inputs[i].dtype != RONDO_DTYPE_NONE &&
            rondo_shape_get_count(&request->inputs[i].shape) > 0) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    rondo__resize_plan plan;
    RETURN_IF_ERROR(rondo__resize_make_plan(request->op, &request->inputs[0].shape, values, &plan));
    const bool is_known = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    if (plan.mode == RONDO__RESIZE_NEAREST ? !is_known : dtype != RONDO_DTYPE_F32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(resize_kernel), "simd",
                                                         run_resize, deinit_resize);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    resize_kernel *kernel = (resize_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->element_bytes = bytes;
    const rondo_status status = add_levels(request, &plan, kernel);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    choose_parts(request, kernel);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
