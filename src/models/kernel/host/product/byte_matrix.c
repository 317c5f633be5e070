// kernel/host/product/byte_matrix.c — see byte_matrix.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/host/product/byte_matrix.h"

#include <string.h>

#include "base/checked.h"
#include "kernel/host/host_threads.h"

static const int32_t *get_sums(const rondo__byte_form *form, const void *matrix) {
    return (const int32_t *)(const void *)((const char *)matrix +
                                           (size_t)form->panel_count * form->panel_bytes);
}

rondo__byte_form rondo__byte_form_make(const rondo__byte_simd *simd, int64_t k, int64_t n,
                                       bool is_signed, bool is_kept) {
    enum { WEIGHTS_OF_A_CUT = 256 };  // with more cuts, widening is quicker
    rondo__byte_form form = {.simd = simd, .k = k, .n = n, .is_signed = is_signed};
    form.blocks = (k + simd->group - 1) / simd->group;
    form.panel_count = (n + simd->panel_columns - 1) / simd->panel_columns;
    form.panel_bytes = (size_t)form.blocks * (size_t)simd->group * (size_t)simd->panel_columns;
    form.matrix_bytes = (size_t)form.panel_count *
                        (form.panel_bytes + (size_t)simd->panel_columns * sizeof(int32_t));
    if (is_kept && simd->wants_cuts) {
        form.cut_limit = (int32_t)(form.panel_bytes / WEIGHTS_OF_A_CUT) + 1;
        form.matrix_bytes +=
            rondo__align_up((size_t)form.panel_count * sizeof(int32_t), 64) +
            (size_t)form.panel_count * (size_t)form.cut_limit * sizeof(rondo__byte_cut);
        form.matrix_bytes = rondo__align_up(form.matrix_bytes, 64);
    }
    return form;
}

// ---- cuts -------------------------------------------------------------------------------------

static int32_t *get_cut_counts(const rondo__byte_form *form, const void *matrix) {
    const int32_t *sums = get_sums(form, matrix);
    return (int32_t *)(uintptr_t)(sums + form->panel_count * form->simd->panel_columns);
}

static rondo__byte_cut *get_cuts(const rondo__byte_form *form, const void *matrix, int64_t panel) {
    char *counts = (char *)get_cut_counts(form, matrix);
    counts += rondo__align_up((size_t)form->panel_count * sizeof(int32_t), 64);
    return (rondo__byte_cut *)(void *)counts + panel * form->cut_limit;
}

// The part to cut from the larger of two neighbours of one sign, so that 255 times their sum stays
// within 16 bits.
static int32_t find_excess(int32_t x, int32_t y) {
    const int32_t above = (x > 0 ? x : 0) + (y > 0 ? y : 0);
    const int32_t below = (x < 0 ? x : 0) + (y < 0 ? y : 0);
    return above > 128 ? above - 128 : below < -128 ? below + 128 : 0;
}

const rondo__byte_simd *rondo__byte_simd_choose(const rondo_tensor *constant) {
    enum { SAMPLE = 4096, WEIGHTS_OF_A_CUT = 512 };
    const rondo__byte_simd *simd = rondo__byte_simd_get();
    if (simd->wide == NULL) {
        return simd;
    }
    if (constant == NULL) {
        return simd->wide;
    }
    // Neighbours in a row stand for those in a column.
    const bool is_signed = constant->dtype == RONDO_DTYPE_I8;
    const int64_t count = rondo_shape_get_count(&constant->shape);
    const int64_t step = 2 * (count / SAMPLE / 2) + 2;
    const uint8_t *weights = constant->data;
    int64_t cuts = 0, seen = 0;
    for (int64_t i = 0; i + 1 < count; i += step, seen += 2) {
        const int32_t offset = is_signed ? 0 : 128;
        const int32_t x = rondo__byte_get(weights, is_signed, i) - offset;
        const int32_t y = rondo__byte_get(weights, is_signed, i + 1) - offset;
        cuts += find_excess(x, y) != 0;
    }
    return cuts * WEIGHTS_OF_A_CUT > seen ? simd->wide : simd;
}

// Cuts a packed panel; where that would be too much, it stays as it is.
static void cut_panel(const rondo__byte_form *form, int64_t panel, void *matrix) {
    const int64_t group = form->simd->group, columns = form->simd->panel_columns;
    int8_t *b = (int8_t *)matrix + (size_t)panel * form->panel_bytes;
    int32_t *count = get_cut_counts(form, matrix) + panel;
    rondo__byte_cut *cuts = get_cuts(form, matrix, panel);
    *count = 0;
    for (size_t i = 0; i < form->panel_bytes; i += 2) {
        const int32_t excess = find_excess(b[i], b[i + 1]);
        if (excess == 0) {
            continue;
        }
        if (*count == form->cut_limit) {
            *count = -1;
            break;
        }
        const size_t at = (excess > 0) == (b[i] >= b[i + 1]) ? i : i + 1;
        b[at] = (int8_t)(b[at] - excess);
        cuts[(*count)++] = (rondo__byte_cut){
            .k = (int32_t)((int64_t)at / (group * columns) * group + (int64_t)at % group),
            .column = (int16_t)((int64_t)at / group % columns),
            .rest = (int16_t)excess,
        };
    }
    for (int32_t i = 0; *count < 0 && i < form->cut_limit; ++i) {
        const int64_t k = cuts[i].k;
        int8_t *from = b + k / group * group * columns + cuts[i].column * group + k % group;
        *from = (int8_t)(*from + cuts[i].rest);
    }
}

void rondo__byte_pack_panel(const rondo__byte_form *form, const uint8_t *b, int64_t b_row,
                            int64_t b_column, int64_t panel, void *matrix) {
    const rondo__byte_simd *simd = form->simd;
    const int64_t width = simd->panel_columns, group = simd->group;
    const int64_t first = panel * width;
    const int64_t columns = form->n - first < width ? form->n - first : width;
    int8_t *to = (int8_t *)matrix + (size_t)panel * form->panel_bytes;
    int32_t *sums =
        (int32_t *)(void *)((char *)matrix + (size_t)form->panel_count * form->panel_bytes) + first;
    uint8_t rows[RONDO__BYTE_GROUP_MAX * RONDO__BYTE_COLUMNS_MAX];
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int64_t block = 0; block < form->blocks; ++block) {
        const int64_t rest = form->k - block * group;
        if (rest < group || columns < width) {  // what is packed as 0
            memset(rows, form->is_signed ? 0 : 0x80, sizeof rows);
        }
        for (int64_t g = 0; g < group && g < rest; ++g) {
            const uint8_t *from = b + (block * group + g) * b_row + first * b_column;
            uint8_t *row = rows + g * width;
            if (b_column == 1) {
                memcpy(row, from, (size_t)columns);
            } else {
                for (int64_t c = 0; c < columns; ++c) {
                    row[c] = from[c * b_column];
                }
            }
        }
        simd->pack_block(rows, form->is_signed, to, sums);
        to += group * width;
    }
    if (form->cut_limit > 0) {
        cut_panel(form, panel, matrix);
    }
}

// What decides the packed form.
typedef struct weight_form {
    char kind[8];
    int64_t width, group, is_signed, cut_limit;
    rondo__matrix_places places;
} weight_form;

static rondo_status fill_matrices(const rondo__weight_want *want, void *bytes) {
    const rondo__byte_form *form = want->data;
    const rondo__matrix_places *places = &((const weight_form *)want->form)->places;
    const uint8_t *from = (const uint8_t *)want->constant->data + places->first;
    for (int64_t matrix = 0; matrix < places->count; ++matrix) {
        for (int64_t panel = 0; panel < form->panel_count; ++panel) {
            rondo__byte_pack_panel(form, from + matrix * places->step, places->row, places->column,
                                   panel, (char *)bytes + (size_t)matrix * form->matrix_bytes);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__byte_pack_constant(rondo__weight_list *list, const rondo__byte_form *form,
                                       const rondo_tensor *constant,
                                       const rondo__matrix_places *places,
                                       const void **out_matrices) {
    const weight_form key = {.kind = "bytes",
                             .width = form->simd->panel_columns,
                             .group = form->simd->group,
                             .is_signed = form->is_signed,
                             .cut_limit = form->cut_limit,
                             .places = *places};
    const rondo__weight_want want = {
        .constant = constant,
        .form = &key,
        .form_bytes = sizeof key,
        .bytes = (size_t)places->count * form->matrix_bytes,
        .fill = fill_matrices,
        .data = form,
    };
    void *matrices = NULL;
    const rondo_status status = rondo__weight_list_add(list, &want, &matrices);
    *out_matrices = matrices;
    return status;
}

bool rondo__byte_spread_zeros(const rondo__byte_form *form, const uint8_t *zeros, int64_t count,
                              int32_t *out_zeros) {
    const int64_t all = form->panel_count * form->simd->panel_columns;
    const int32_t offset = form->is_signed ? 0 : -128;
    bool is_any = false;
    for (int64_t c = 0; c < all; ++c) {
        int32_t zero = 0;
        if (c < form->n) {
            zero = offset;
            zero += zeros != NULL ? rondo__byte_get(zeros, form->is_signed, count == 1 ? 0 : c) : 0;
        }
        out_zeros[c] = zero;
        is_any = is_any || zero != 0;
    }
    return is_any;
}

// ---- rows of a --------------------------------------------------------------------------------

static int64_t get_row_bytes(const rondo__byte_simd *simd, int64_t k) {
    return (k + simd->group - 1) / simd->group * 4;
}

size_t rondo__byte_rows_get_bytes(const rondo__byte_simd *simd, int64_t k, int64_t count) {
    return rondo__align_up((size_t)(get_row_bytes(simd, k) * count), 64) +
           3 * (size_t)count * sizeof(int32_t);
}

// The zero point of row r as it is prepared.
static int32_t get_zero(const rondo__byte_simd *simd, bool is_signed, const uint8_t *zeros,
                        int64_t zero_count, int64_t r) {
    const int32_t offset = is_signed ? simd->signed_offset : 0;
    return offset + (zeros != NULL ? rondo__byte_get(zeros, is_signed, r % zero_count) : 0);
}

static bool has_factors(const int32_t *factors, int64_t count) {
    int32_t all = 0;
    for (int64_t r = 0; r < count; ++r) {
        all |= factors[r];
    }
    return all != 0;
}

static int32_t find_rest(int64_t k, int32_t zero, int32_t sum) {
    return (int32_t)((uint32_t)k * (uint32_t)zero - (uint32_t)sum);
}

typedef struct row_source {
    const rondo__byte_simd *simd;
    const uint8_t *x;
    bool is_signed, is_wanted;  // is_wanted: the prepared row, or its sum
    int64_t k, row_bytes;
    const uint8_t *zeros;
    int64_t zero_count;
    char *rows;
    int32_t *factors, *rests;
} row_source;

static void prepare_rows(void *data, int64_t first, int64_t end) {
    const row_source *from = data;
    for (int64_t r = first; r < end; ++r) {
        const int32_t zero =
            get_zero(from->simd, from->is_signed, from->zeros, from->zero_count, r);
        from->factors[r] = -zero;
        if (from->is_wanted) {
            const int32_t sum = from->simd->prepare_row(from->x + r * from->k, from->is_signed,
                                                        from->k, from->rows + r * from->row_bytes);
            from->rests[r] = find_rest(from->k, zero, sum);
        }
    }
}

rondo__byte_rows rondo__byte_rows_prepare(const rondo__byte_simd *simd, const uint8_t *x,
                                          bool is_signed, int64_t k, int64_t count,
                                          const uint8_t *zeros, int64_t zero_count, bool needs_sums,
                                          void *work) {
    const int64_t row_bytes = get_row_bytes(simd, k);
    const bool stays = simd->group == 4 && !is_signed && k % 4 == 0;
    char *rows = work;
    int32_t *factors = (int32_t *)(void *)(rows + rondo__align_up((size_t)(row_bytes * count), 64));
    // Where the rows stay, a prepared row is the same once more, and thrown away.
    row_source from = {simd,       x,    is_signed, !stays || needs_sums, k, row_bytes, zeros,
                       zero_count, rows, factors,   factors + count};
    rondo__workers_loop(count, rondo__host_get_grain(count, (double)(count * k), 0.0), prepare_rows,
                        &from);
    return (rondo__byte_rows){
        .data = stays ? (const void *)x : rows,
        .row_bytes = row_bytes,
        .factors = factors,
        .has_factors = has_factors(factors, count),
        .rests = factors + count,
    };
}

// What decides the form of kept rows. They are followed by their sums, and where they are cut by
// the number of cuts of each row, and room for cut_limit of each.
typedef struct rows_form {
    char kind[8];
    int64_t group, is_signed, k, count, cut_limit;
} rows_form;

// Makes a prepared row one of signed bytes, cut. Returns how many cuts there are; cuts NULL: only
// that.
static int32_t cut_row(const rondo__byte_rows_form *form, const uint8_t *x, int8_t *row,
                       rondo__byte_cut *cuts) {
    const int32_t offset = form->is_signed ? 0 : 128;
    int32_t count = 0;
    for (int64_t i = 0; i < form->k; i += 2) {
        int32_t pair[2] = {rondo__byte_get(x, form->is_signed, i) - offset, 0};
        pair[1] = i + 1 < form->k ? rondo__byte_get(x, form->is_signed, i + 1) - offset : 0;
        const int32_t excess = find_excess(pair[0], pair[1]);
        const int larger = (excess > 0) == (pair[0] >= pair[1]) ? 0 : 1;
        if (excess != 0 && cuts != NULL) {
            pair[larger] -= excess;
            cuts[count] = (rondo__byte_cut){.k = (int32_t)i + larger, .rest = (int16_t)excess};
        }
        count += excess != 0;
        for (int g = 0; g < 2 && cuts != NULL && i + g < form->k; ++g) {
            row[i + g] = (int8_t)pair[g];
        }
    }
    return count;
}

rondo__byte_rows_form rondo__byte_rows_choose(const rondo_tensor *constant, int64_t k,
                                              int64_t count) {
    // With more cuts, widening is quicker; each row has room for as many as that with most.
    enum { WEIGHTS_OF_A_CUT = 32, OF_A_CUT_IN_A_ROW = 8 };
    const rondo__byte_simd *simd = rondo__byte_simd_get();
    rondo__byte_rows_form form = {
        .simd = simd,
        .is_signed = constant != NULL && constant->dtype == RONDO_DTYPE_I8,
        .k = k,
        .count = count,
        .cut_limit = -1};
    if (!simd->wants_cuts || constant == NULL) {
        form.simd = rondo__byte_simd_choose(NULL);
        return form;
    }
    int64_t all = 0;
    int32_t most = 0;
    for (int64_t r = 0; r < count && all * WEIGHTS_OF_A_CUT <= k * count; ++r) {
        const int32_t own = cut_row(&form, (const uint8_t *)constant->data + r * k, NULL, NULL);
        all += own;
        most = own > most ? own : most;
    }
    if (all * WEIGHTS_OF_A_CUT > k * count || (most - 1) * OF_A_CUT_IN_A_ROW > k) {
        form.simd = rondo__byte_simd_choose(NULL);
        return form;
    }
    form.cut_limit = most;
    return form;
}

static size_t get_kept_bytes(const rondo__byte_rows_form *form) {
    const size_t counts = form->cut_limit >= 0 ? 2 : 1;
    const size_t cuts = form->cut_limit >= 0 ? (size_t)form->cut_limit : 0;
    return (size_t)form->count * ((size_t)get_row_bytes(form->simd, form->k) +
                                  counts * sizeof(int32_t) + cuts * sizeof(rondo__byte_cut));
}

// Where the parts of kept rows are.
typedef struct kept_rows {
    int32_t *sums;
    int32_t *cut_counts;  // NULL: rows are not cut
    rondo__byte_cut *cuts;
} kept_rows;

static kept_rows find_parts(const rondo__byte_rows_form *form, const void *prepared) {
    char *rows = (char *)(uintptr_t)prepared;
    kept_rows kept = {(int32_t *)(void *)(rows + form->count * get_row_bytes(form->simd, form->k)),
                      NULL, NULL};
    if (form->cut_limit >= 0) {
        kept.cut_counts = kept.sums + form->count;
        kept.cuts = (rondo__byte_cut *)(void *)(kept.cut_counts + form->count);
    }
    return kept;
}

static rondo_status fill_rows(const rondo__weight_want *want, void *bytes) {
    const rondo__byte_rows_form *form = want->data;
    const int64_t row_bytes = get_row_bytes(form->simd, form->k);
    const kept_rows kept = find_parts(form, bytes);
    for (int64_t r = 0; r < form->count; ++r) {
        const uint8_t *x = (const uint8_t *)want->constant->data + r * form->k;
        char *row = (char *)bytes + r * row_bytes;
        kept.sums[r] = form->simd->prepare_row(x, form->is_signed, form->k, row);
        if (form->cut_limit >= 0) {
            kept.cut_counts[r] = cut_row(form, x, (int8_t *)row, kept.cuts + r * form->cut_limit);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__byte_rows_keep(rondo__weight_list *list, const rondo__byte_rows_form *form,
                                   const rondo_tensor *constant, const void **out_prepared) {
    const rows_form key = {.kind = "rows",
                           .group = form->simd->group,
                           .is_signed = form->is_signed,
                           .k = form->k,
                           .count = form->count,
                           .cut_limit = form->cut_limit};
    const rondo__weight_want want = {
        .constant = constant,
        .form = &key,
        .form_bytes = sizeof key,
        .bytes = get_kept_bytes(form),
        .fill = fill_rows,
        .data = form,
    };
    void *prepared = NULL;
    const rondo_status status = rondo__weight_list_add(list, &want, &prepared);
    *out_prepared = prepared;
    return status;
}

rondo__byte_rows rondo__byte_rows_use(const rondo__byte_rows_form *form, const void *prepared,
                                      const uint8_t *zeros, int64_t zero_count, void *work) {
    enum { TURN = 128 };
    const int64_t count = form->count;
    const kept_rows kept = find_parts(form, prepared);
    int32_t *factors = work;
    int32_t *rests = factors + count, *constants = rests + count;
    for (int64_t r = 0; r < count; ++r) {
        const int32_t zero = get_zero(form->simd, form->is_signed, zeros, zero_count, r);
        factors[r] = form->cut_limit >= 0 ? TURN - zero : -zero;
        rests[r] = find_rest(form->k, zero, kept.sums[r]);
        constants[r] = (int32_t)(TURN * TURN * (uint32_t)form->k - TURN * (uint32_t)kept.sums[r]);
    }
    return (rondo__byte_rows){
        .data = prepared,
        .row_bytes = get_row_bytes(form->simd, form->k),
        .factors = factors,
        .has_factors = has_factors(factors, count),
        .rests = rests,
        .cuts = {kept.cut_counts, kept.cuts, form->cut_limit, constants},
    };
}

// ---- products ---------------------------------------------------------------------------------

static rondo__byte_row_cuts find_cuts(const rondo__byte_row_cuts *all, int64_t row) {
    if (all->counts == NULL) {
        return (rondo__byte_row_cuts){0};
    }
    return (rondo__byte_row_cuts){all->counts + row, all->cuts + row * all->limit, all->limit,
                                  all->constants + row};
}

static void run_tile(const rondo__byte_product *p, int64_t panel, int64_t row_block) {
    const rondo__byte_form *form = p->form;
    const rondo__byte_simd *simd = form->simd;
    const int64_t width = simd->panel_columns;
    const int64_t column = panel * width, row = row_block * simd->tile_rows;
    const int64_t rows = p->rows - row < simd->tile_rows ? p->rows - row : simd->tile_rows;
    const rondo__byte_tile tile = {
        .blocks = form->blocks,
        .a = (const char *)p->a->data + (p->first + row) * p->a->row_bytes,
        .a_row = p->a->row_bytes,
        .b = (const int8_t *)p->matrix + (size_t)panel * form->panel_bytes,
        .cuts = form->cut_limit > 0 ? get_cuts(form, p->matrix, panel) : NULL,
        .cut_count = form->cut_limit > 0 ? get_cut_counts(form, p->matrix)[panel] : -1,
        .row_cuts = find_cuts(&p->a->cuts, p->first + row),
        .rows = (int32_t)rows,
        .columns = (int32_t)(form->n - column < width ? form->n - column : width),
        .b_sums = get_sums(form, p->matrix) + column,
        .a_factors = p->a->factors + p->first + row,
        .b_zeros = p->b_zeros == NULL ? NULL : p->b_zeros + (p->has_one_zero ? 0 : column),
        .has_one_zero = p->has_one_zero,
        .a_rests = p->a->rests + p->first + row,
        .scales = p->scales != NULL ? p->scales + column : NULL,
        .addend = p->addend != NULL ? p->addend + row * p->addend_row + column : NULL,
        .addend_row = p->addend_row,
        .y = (char *)p->y + (size_t)(row * p->y_row + column) * sizeof(int32_t),
        .y_row = p->y_row,
    };
    simd->multiply(&tile);
}

static int64_t count_row_blocks(const rondo__byte_product *product) {
    const int64_t height = product->form->simd->tile_rows;
    return (product->rows + height - 1) / height;
}

static void run_tiles(void *data, int64_t first, int64_t end) {
    const rondo__byte_product *product = data;
    const int64_t row_blocks = count_row_blocks(product);
    int64_t panel = first / row_blocks, row_block = first % row_blocks;
    for (int64_t unit = first; unit < end; ++unit) {
        run_tile(product, panel, row_block);
        if (++row_block == row_blocks) {
            row_block = 0;
            ++panel;
        }
    }
}

void rondo__byte_product_run(const rondo__byte_product *product) {
    const rondo__byte_form *form = product->form;
    const int64_t units = form->panel_count * count_row_blocks(product);
    // A few rows are read faster than they are multiplied, so that is what their work is.
    const double work = (double)product->rows * (double)form->n * (double)form->k * 2.0;
    rondo__byte_product own = *product;
    rondo__workers_loop(units, rondo__host_get_grain(units, 0.0, work), run_tiles, &own);
}
