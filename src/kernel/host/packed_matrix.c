// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/packed_matrix.h"

#include <string.h>

#include "base/block.h"

void rondo__pack_panel(const rondo__simd *simd, const float *b, int64_t b_row, int64_t b_column,
                       int64_t k, int64_t n, int64_t panel, float *out) {
    const int64_t width = simd->panel_columns;
    const int64_t first = panel * width;
    const int64_t columns = n - first < width ? n - first : width;
    if (columns < width) {
        memset(out, 0, (size_t)(k * width) * sizeof(float));
    }
    if (b_column == 1) {
        for (int64_t p = 0; p < k; ++p) {
            memcpy(out + p * width, b + p * b_row + first, (size_t)columns * sizeof(float));
        }
        return;
    }
    for (int64_t c = 0; c < columns; ++c) {
        const float *column = b + (first + c) * b_column;
        for (int64_t p = 0; p < k; ++p) {
            out[p * width + c] = column[p * b_row];
        }
    }
}

rondo_status rondo__packed_matrix_init(rondo__packed_matrix *matrix, const float *b, int64_t b_row,
                                       int64_t b_column, int64_t k, int64_t n) {
    const rondo__simd *simd = rondo__simd_get();
    const int64_t panel_count = (n + simd->panel_columns - 1) / simd->panel_columns;
    const int64_t panel_floats = k * simd->panel_columns;
    *matrix = (rondo__packed_matrix){.simd = simd, .k = k, .n = n};
    matrix->panels =
        rondo__block_allocate((size_t)(panel_count * panel_floats) * sizeof(float), 64);
    if (matrix->panels == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (int64_t panel = 0; panel < panel_count; ++panel) {
        rondo__pack_panel(simd, b, b_row, b_column, k, n, panel,
                          matrix->panels + panel * panel_floats);
    }
    return RONDO_STATUS_OK;
}

void rondo__packed_matrix_deinit(rondo__packed_matrix *matrix) {
    rondo__block_free(matrix->panels);
    matrix->panels = NULL;
}

void rondo__packed_multiply(const rondo__packed_matrix *matrix, const float *a, int64_t a_row,
                            int64_t m, const float *bias, const float *z, int64_t z_row, float *y,
                            int64_t y_row) {
    const rondo__simd *simd = matrix->simd;
    const int64_t width = simd->panel_columns;
    for (int64_t column = 0; column < matrix->n; column += width) {
        for (int64_t row = 0; row < m; row += simd->tile_rows) {
            const rondo__tile tile = {
                .k = matrix->k,
                .a = a + row * a_row,
                .a_row = a_row,
                .a_column = 1,
                .b = matrix->panels + column * matrix->k,
                .b_row = width,
                .rows = (int32_t)(m - row < simd->tile_rows ? m - row : simd->tile_rows),
                .columns = (int32_t)(matrix->n - column < width ? matrix->n - column : width),
                .scale = 1.0f,
                .bias = bias != NULL ? bias + column : NULL,
                .z = z != NULL ? z + row * z_row + column : NULL,
                .z_row = z_row,
                .y = y + row * y_row + column,
                .y_row = y_row,
            };
            simd->multiply_tile(&tile);
        }
    }
}
