// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/packed_matrix.h"

#include <string.h>

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

typedef struct panel_form {
    char kind[8];
    int64_t width;
    rondo__matrix_places places;
} panel_form;

static int64_t count_panels(const panel_form *form) {
    return (form->places.n + form->width - 1) / form->width;
}

static rondo_status fill_panels(const rondo__weight_want *want, void *bytes) {
    const panel_form *form = want->form;
    const rondo__matrix_places *places = &form->places;
    const int64_t panel_count = count_panels(form);
    const float *from = want->constant->data;
    float *to = bytes;
    for (int64_t matrix = 0; matrix < places->count; ++matrix) {
        for (int64_t panel = 0; panel < panel_count; ++panel) {
            rondo__pack_panel(want->data, from + places->first + matrix * places->step, places->row,
                              places->column, places->k, places->n, panel,
                              to + (matrix * panel_count + panel) * places->k * form->width);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pack_constant(rondo__weight_list *list, const rondo__simd *simd,
                                  const rondo_tensor *constant, const rondo__matrix_places *places,
                                  const float **out_panels) {
    const panel_form form = {.kind = "panels", .width = simd->panel_columns, .places = *places};
    const rondo__weight_want want = {
        .constant = constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes =
            (size_t)(places->count * count_panels(&form) * places->k * form.width) * sizeof(float),
        .fill = fill_panels,
        .data = simd,
    };
    void *panels = NULL;
    const rondo_status status = rondo__weight_list_add(list, &want, &panels);
    *out_panels = panels;
    return status;
}

rondo_status rondo__packed_matrix_init(rondo__packed_matrix *matrix, rondo__weight_list *list,
                                       const rondo_tensor *constant,
                                       const rondo__matrix_places *places) {
    *matrix = (rondo__packed_matrix){.simd = rondo__simd_get(), .k = places->k, .n = places->n};
    return rondo__pack_constant(list, matrix->simd, constant, places, &matrix->panels);
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
