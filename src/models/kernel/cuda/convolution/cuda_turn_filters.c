// kernel/cuda/convolution/cuda_turn_filters.c — rondo.TurnFilters; see turn_filters.cu.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum { TAPS_MAX = 8192, TILE_ELEMENTS = 4096, TILE_MAX = 16, TILE_LEAST = 4, BLOCKS_WANTED = 132 };

void rondo__cuda_prepare_turn_filters(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const int64_t *extent = x->shape.extent;
    const int64_t taps = extent[2] * extent[3];
    int64_t tile = TILE_MAX;
    rondo__defines defines = {0};
    if (taps > TAPS_MAX || rondo_dtype_get_bytes(x->dtype) > sizeof(float)) {
        rondo__cuda_refuse(kernel, "filters of this type, or of so many taps");
        return;
    }
    while (tile > 1 &&
           (tile * tile * taps > TILE_ELEMENTS ||
            (tile > TILE_LEAST && extent[0] * extent[1] < tile * tile * BLOCKS_WANTED))) {
        tile /= 2;
    }
    rondo__define_bytes(&defines, "T", rondo_dtype_get_bytes(x->dtype));
    rondo__define_int(&defines, "TAPS", taps);
    rondo__define_int(&defines, "TILE", tile);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_turn_filters, &defines, "turn_filters",
        (extent[0] + tile - 1) / tile * ((extent[1] + tile - 1) / tile), RONDO__CUDA_BLOCK);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
    rondo__step_int(step, extent[0]);
    rondo__step_int(step, extent[1]);
}
