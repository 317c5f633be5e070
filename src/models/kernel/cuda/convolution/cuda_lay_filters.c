// kernel/cuda/convolution/cuda_lay_filters.c — rondo.LayFilters; see lay_filters.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/support.h"

enum { TAPS_MAX = 16, TILE = 32, EIGHT = 8, FILTERS_MAX = RONDO__STEP_ADDRESSES_MAX / 3 };

static int64_t count_tiles(const int64_t *extent) {
    return (extent[0] + TILE - 1) / TILE * ((extent[1] + TILE - 1) / TILE);
}

// Filters from `first` up to `end`.
static void add(rondo__cuda_kernel *kernel, const rondo__defines *common, size_t first,
                size_t end) {
    int64_t blocks[FILTERS_MAX + 1] = {0};
    rondo__defines defines = *common;
    for (size_t i = first; i < end; i++) {
        blocks[i - first + 1] =
            blocks[i - first] + count_tiles(rondo__cuda_input(kernel, i)->shape.extent);
    }
    rondo__define_int(&defines, "FILTERS", (int64_t)(end - first));
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_lay_filters, &defines, "lay_filters",
                               blocks[end - first], RONDO__CUDA_BLOCK);
    for (int axis = 0; axis < 2; axis++) {
        for (size_t i = first; i < end; i++) {
            rondo__step_int(step, rondo__cuda_input(kernel, i)->shape.extent[axis]);
        }
    }
    rondo__step_ints(step, blocks, (int32_t)(end - first));
    for (size_t i = first; i < end; i++) {
        rondo__step_input(step, i);
    }
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = first; i < end; i++) {
            rondo__step_optional_output(step, kernel, 2 * i + k);
        }
    }
}

void rondo__cuda_prepare_lay_filters(rondo__cuda_kernel *kernel) {
    const rondo__kernel_request *request = kernel->request;
    const int64_t *taps = rondo__cuda_input(kernel, 0)->shape.extent + 2;
    const rondo_dtype to = rondo__dtype_from_onnx(rondo__op_get_int(request->op, "to", 0));
    for (size_t i = 0; i < request->input_count; i++) {
        const rondo__tensor_info *w = rondo__cuda_input(kernel, i);
        const int64_t *extent = w->shape.extent;
        if (w->dtype != RONDO_DTYPE_F32 || to != RONDO_DTYPE_F16 || taps[0] * taps[1] > TAPS_MAX ||
            extent[0] % EIGHT != 0 || extent[1] % EIGHT != 0 || extent[0] > INT32_MAX ||
            extent[1] > INT32_MAX || count_tiles(extent) > INT32_MAX / FILTERS_MAX) {
            rondo__cuda_refuse(kernel, "filters of this type or form");
            return;
        }
    }
    rondo__defines defines = {0};
    rondo__define_int(&defines, "TAPS", taps[0] * taps[1]);
    rondo__define_int(&defines, "SATURATES", rondo__op_get_int(request->op, "saturate", 0));
    for (size_t i = 0; i < request->input_count; i += FILTERS_MAX) {
        const size_t end = i + FILTERS_MAX;
        add(kernel, &defines, i, end < request->input_count ? end : request->input_count);
    }
}
