// kernel/host/product/packed_matrix.c — see packed_matrix.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/product/packed_matrix.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

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
    enum { ROWS = 16 };  // lines of a few rows stay in the cache while all columns go by
    for (int64_t row = 0; row < k; row += ROWS) {
        const int64_t end = k - row < ROWS ? k : row + ROWS;
        for (int64_t c = 0; c < columns; ++c) {
            const float *column = b + (first + c) * b_column;
            for (int64_t p = row; p < end; ++p) {
                out[p * width + c] = column[p * b_row];
            }
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

// ---- multiplying ------------------------------------------------------------------------------

enum {
    ROWS_MAX = 16,            // of a group
    SPLIT_ROWS_MAX = 3,       // of a product whose sums are split
    PANEL_MAX = 32,           // columns
    LONG_ROWS = 128,          // that go by a part of a long panel
    HELD_BYTES = 256 * 1024,  // of panels: with them and the rows, the next ones find room
    AHEAD_FLOATS = RONDO__CACHE_LINE_BYTES / (int)sizeof(float),
};

int64_t rondo__panels_get_cache_bytes(void) {
    enum { LEAST = 128 * 1024, MOST = 1024 * 1024, UNKNOWN = 256 * 1024 };
    static atomic_long kept;
    long bytes = atomic_load_explicit(&kept, memory_order_relaxed);
    if (bytes == 0) {
#ifdef _SC_LEVEL2_CACHE_SIZE
        bytes = sysconf(_SC_LEVEL2_CACHE_SIZE) / 2;
#endif
        bytes = bytes <= 0 ? UNKNOWN : bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes;
        atomic_store_explicit(&kept, bytes, memory_order_relaxed);
    }
    return (int64_t)bytes;
}

// Its tiles are of about the same height, and one description goes from tile to tile: with few
// numbers along k, a copy for each takes as long as some steps of it.
void rondo__multiply_group(const rondo__simd *simd, const rondo__tile *group, const float *panels,
                           int64_t panel_step) {
    const int32_t width = simd->panel_columns;
    const int32_t wide = (group->rows + simd->tile_rows - 1) / simd->tile_rows;
    rondo__tile tile = *group;
    for (int32_t column = 0; column < group->columns; column += width, panels += panel_step) {
        const int32_t rest = group->columns - column;
        const bool is_narrow = 2 * rest <= width;
        const int32_t height = simd->narrow_tile_rows;
        const int32_t tiles = is_narrow ? (group->rows + height - 1) / height : wide;
        tile.columns = rest < width ? rest : width;
        tile.b = panels;
        tile.bias = group->bias != NULL ? group->bias + column : NULL;
        for (int32_t i = 0, first = 0; i < tiles; ++i, first += tile.rows) {
            const int32_t end = tiles > 1 ? group->rows * (i + 1) / tiles : group->rows;
            tile.rows = end - first;
            tile.starts = group->starts + first;
            tile.sums = group->sums != NULL ? group->sums + (int64_t)first * width : NULL;
            tile.z = group->z != NULL ? group->z + column + first * group->z_row : NULL;
            tile.y = group->y + column + first * group->y_row;
            tile.b_ahead = group->b_ahead + (group->b_ahead != 0 && i % 2 != 0 ? AHEAD_FLOATS : 0);
            simd->multiply_tile(&tile);
        }
    }
}

int64_t rondo__panels_count_held(int64_t panel_floats) {
    const int64_t held = HELD_BYTES / (panel_floats * (int64_t)sizeof(float) + 1);
    return held > 1 ? held : 1;
}

int64_t rondo__panels_count_parts(int64_t panel_floats) {
    return (panel_floats * (int64_t)sizeof(float) + HELD_BYTES - 1) / HELD_BYTES;
}

int64_t rondo__panels_get_ahead(const rondo__simd *simd, int64_t panel_floats, int64_t pass) {
    // A tile fetches one line of the cache in some steps along k, which read so many. Every second
    // line comes first: where there are few passes, processors fetch the one beside.
    const int64_t read = simd->tile_steps * simd->panel_columns / AHEAD_FLOATS;
    const int64_t lines = read > 1 ? read : 1, evens = (lines + 1) / 2, at = pass % lines;
    return rondo__panels_count_held(panel_floats) * panel_floats +
           (at < evens ? 2 * at : 2 * (at - evens) + 1) * AHEAD_FLOATS;
}

static int64_t count_parts(const rondo__row_product *p) {
    const bool is_cut =
        p->streams && p->m > p->simd->tile_rows && p->b_row == p->simd->panel_columns;
    return is_cut ? rondo__panels_count_parts(p->panel_step) : 1;
}

// Rows [row, next) of k from `from` to `to` with the panels of columns [first, end): one group of
// tiles. What is not the last of k leaves its sums in `sums`, which the next one goes on from.
typedef struct group_part {
    int64_t row, next, first, end, from, to, pass;
    float *sums;  // NULL: all of k at once
} group_part;

static void multiply_part(const rondo__row_product *p, const group_part *part) {
    const int64_t width = p->simd->panel_columns, step = part->to - part->from;
    const bool is_last = part->to == p->k;
    const float *starts[ROWS_MAX];
    rondo__tile group = {
        .run_count = 1,
        .run_length = step,
        .starts = starts,
        .starts_row = p->simd->narrow_tile_rows,
        .offsets = p->a_offsets != NULL ? p->a_offsets + part->from : NULL,
        .b_row = p->b_row,
        .b_ahead = p->streams ? rondo__panels_get_ahead(p->simd, step * width, part->pass) : 0,
        .rows = (int32_t)(part->next - part->row),
        .columns = (int32_t)(part->end - part->first),
        .is_split = p->m <= SPLIT_ROWS_MAX,
        .sums = part->from > 0 ? part->sums : NULL,
        .scale = 1.0f,
        .low = -INFINITY,
        .high = INFINITY,
        .y = part->sums,
        .y_row = width,
    };
    if (is_last) {
        group.scale = p->scale;
        group.low = p->low;
        group.high = p->high;
        group.bias = p->bias != NULL ? p->bias + part->first : NULL;
        group.z = p->z != NULL ? p->z + part->row * p->z_row + part->first : NULL;
        group.z_row = p->z_row;
        group.y = p->y + part->row * p->y_row + part->first;
        group.y_row = p->y_row;
    }
    for (int32_t r = 0; r < group.rows; ++r) {
        starts[r] = p->a + (part->row + r) * p->a_row + (p->a_offsets != NULL ? 0 : part->from);
    }
    rondo__multiply_group(p->simd, &group,
                          p->panels + part->first / width * p->panel_step + part->from * width,
                          p->panel_step);
}

// All rows with the panels of columns [first, end).
static void multiply_columns(const rondo__row_product *p, int64_t first, int64_t end) {
    // Groups of whole tiles, all tiles of about the same height.
    const int64_t height = p->simd->narrow_tile_rows;
    const int64_t tiles = (p->m + p->simd->tile_rows - 1) / p->simd->tile_rows;
    const int64_t held = height / p->simd->tile_rows, groups = (tiles + held - 1) / held;
    for (int64_t i = 0; i < groups; ++i) {
        const group_part part = {
            .row = p->m * (tiles * i / groups) / tiles,
            .next = p->m * (tiles * (i + 1) / groups) / tiles,
            .first = first,
            .end = end,
            .to = p->k,
            .pass = i,
        };
        multiply_part(p, &part);
    }
}

// The same in parts of k: each part of the panel is used for all rows, or for a block of them,
// before the next.
static void multiply_long(const rondo__row_product *p, int64_t first, int64_t end) {
    float sums[LONG_ROWS * PANEL_MAX] = {0};
    const int64_t width = p->simd->panel_columns, height = p->simd->tile_rows;
    const int64_t parts = count_parts(p), blocks = (p->m + LONG_ROWS - 1) / LONG_ROWS;
    for (int64_t b = 0; b < blocks; ++b) {
        const int64_t row = p->m * b / blocks, rows = p->m * (b + 1) / blocks - row;
        const int64_t groups = (rows + height - 1) / height;
        for (int64_t i = 0; i < parts * groups; ++i) {
            const int64_t at = i % groups;
            const group_part part = {
                .row = row + rows * at / groups,
                .next = row + rows * (at + 1) / groups,
                .first = first,
                .end = end,
                .from = p->k * (i / groups) / parts,
                .to = p->k * (i / groups + 1) / parts,
                .pass = at,
                .sums = sums + rows * at / groups * width,
            };
            multiply_part(p, &part);
        }
    }
}

void rondo__multiply_rows(const rondo__row_product *product) {
    const int64_t width = product->simd->panel_columns;
    const int64_t held = rondo__panels_count_held(product->k * width);
    const bool by_panels = product->streams || product->b_row != width;
    const int64_t columns = by_panels ? held * width : product->n;
    const bool is_long = count_parts(product) > 1;
    for (int64_t first = 0; first < product->n; first += columns) {
        const int64_t rest = product->n - first;
        const int64_t end = first + (rest < columns ? rest : columns);
        if (is_long) {
            multiply_long(product, first, end);
        } else {
            multiply_columns(product, first, end);
        }
    }
}

void rondo__packed_multiply(const rondo__packed_matrix *matrix, const float *a, int64_t a_row,
                            int64_t m, const float *bias, const float *z, int64_t z_row, float *y,
                            int64_t y_row) {
    const rondo__row_product product = {
        .simd = matrix->simd,
        .m = m,
        .k = matrix->k,
        .n = matrix->n,
        .a = a,
        .a_row = a_row,
        .panels = matrix->panels,
        .panel_step = matrix->k * matrix->simd->panel_columns,
        .b_row = matrix->simd->panel_columns,
        .streams = matrix->k * matrix->n * (int64_t)sizeof(float) > rondo__panels_get_cache_bytes(),
        .scale = 1.0f,
        .low = -INFINITY,
        .high = INFINITY,
        .bias = bias,
        .z = z,
        .z_row = z_row,
        .y = y,
        .y_row = y_row,
    };
    rondo__multiply_rows(&product);
}
