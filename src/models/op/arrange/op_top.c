// op/arrange/op_top.c — the greatest or least by value: TopK, rondo.BestRows.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/arrange/sort_key.h"
#include "op/bounds.h"
#include "op/op.h"
#include "op/support.h"

// ---- TopK -------------------------------------------------------------------------------------

static rondo_status infer_top_k(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    rondo_dtype dtype = infer->inputs[0].dtype;
    int32_t axis = 0;
    int64_t k = 0;
    if (!rondo__dtype_is_float(dtype) && !rondo__dtype_is_integer(dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    for (size_t i = 0; i < infer->output_count; ++i) {
        infer->outputs[i].dtype = i == 0 ? dtype : RONDO_DTYPE_I64;
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", -1),
                                           x->rank, &axis));
    if (infer->op->opset < 10) {
        k = rondo__op_get_int(infer->op, "k", -1);
    } else {
        const rondo_tensor *value = infer->inputs[1].constant;
        if (infer->inputs[1].dtype != RONDO_DTYPE_I64 ||
            rondo_shape_get_count(&infer->inputs[1].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "k must be one i64 number");
        }
        if (value == NULL) {
            rondo_shape shape = *x;
            shape.extent[axis] = -1;
            (void)rondo__infer_needs_value(infer, 1);
            (void)rondo__infer_set_partial(infer, 0, &shape);
            return rondo__infer_set_partial(infer, 1, &shape);
        }
        k = rondo__tensor_get_int(value, 0);
    }
    if (k < 0 || k > x->extent[axis]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "k is %lld, axis %d has %lld elements",
                             (long long)k, axis, (long long)x->extent[axis]);
    }
    rondo_shape shape = *x;
    shape.extent[axis] = k;
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, dtype, &shape));
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_I64, &shape);
}

// Splits the items [begin, end) by one of them: those up to *out_high come no later than it, those
// from *out_low on no earlier, and what is between them is in its place.
static void split_items(rondo__sort_item *items, int64_t begin, int64_t end, int64_t *out_low,
                        int64_t *out_high) {
    const rondo__sort_item middle = items[begin + (end - begin) / 2];
    int64_t low = begin, high = end - 1;
    while (low <= high) {
        while (rondo__sort_compare(&items[low], &middle) < 0) {
            ++low;
        }
        while (rondo__sort_compare(&items[high], &middle) > 0) {
            --high;
        }
        if (low <= high) {
            const rondo__sort_item item = items[low];
            items[low++] = items[high];
            items[high--] = item;
        }
    }
    *out_low = low;
    *out_high = high;
}

enum {
    ROUNDS_MAX = 64,  // beyond so many splits, the choice of the middle goes wrong each time
    FEW_ITEMS = 24,   // fewer are put in order one by one
};

// Brings the first k of the items to the front, in any order.
static void select_first(rondo__sort_item *items, int64_t count, int64_t k) {
    int64_t begin = 0, end = count;
    for (int round = 0; end - begin > 1 && k < count; ++round) {
        if (round == ROUNDS_MAX) {
            qsort(items + begin, (size_t)(end - begin), sizeof *items, rondo__sort_compare);
            return;
        }
        int64_t low, high;
        split_items(items, begin, end, &low, &high);
        if (k <= high) {
            end = high + 1;
        } else if (k >= low) {
            begin = low;
        } else {
            return;
        }
    }
}

static void sort_items(rondo__sort_item *items, int64_t count) {
    for (int round = 0; count > FEW_ITEMS; ++round) {
        if (round == ROUNDS_MAX) {
            qsort(items, (size_t)count, sizeof *items, rondo__sort_compare);
            return;
        }
        int64_t low, high;
        split_items(items, 0, count, &low, &high);
        const bool is_left_short = high + 1 < count - low;  // the shorter part by a call of its own
        sort_items(is_left_short ? items : items + low, is_left_short ? high + 1 : count - low);
        items += is_left_short ? low : 0;
        count = is_left_short ? count - low : high + 1;
    }
    for (int64_t i = 1; i < count; ++i) {
        const rondo__sort_item item = items[i];
        int64_t at = i;
        for (; at > 0 && rondo__sort_compare(&item, &items[at - 1]) < 0; --at) {
            items[at] = items[at - 1];
        }
        items[at] = item;
    }
}

enum { LOOK_PART = 512 };  // elements that are looked at together

// The first k items of a line, sorted; there is room for 2 k. What cannot be among them any more is
// compared with one key and nothing else.
static void select_items(const rondo_tensor *input, int64_t first, int64_t step, int64_t extent,
                         bool takes_largest, int64_t k, rondo__sort_item *items) {
    uint64_t keys[LOOK_PART];
    const uint64_t flip = takes_largest ? UINT64_MAX : 0;
    uint64_t limit = UINT64_MAX;  // the greatest key that may be among them
    int64_t count = 0;
    for (int64_t i = 0; i < extent; i += LOOK_PART) {
        const int64_t part = extent - i < LOOK_PART ? extent - i : LOOK_PART;
        rondo__sort_keys(input, first + i * step, step, part, keys);
        for (int64_t p = 0; p < part; ++p) {
            const uint64_t key = keys[p] ^ flip;
            if (key > limit) {
                continue;
            }
            items[count++] = (rondo__sort_item){key, i + p};
            if (count == 2 * k) {
                select_first(items, count, k);
                count = k;
                limit = 0;
                for (int64_t n = 0; n < k; ++n) {
                    limit = items[n].key > limit ? items[n].key : limit;
                }
                if (limit == 0) {  // all ties, and the first of them are here
                    goto sort;
                }
                --limit;
            }
        }
    }
sort:
    select_first(items, count, k);
    sort_items(items, k);
}

static void copy_element(const void *from, int64_t from_at, void *to, int64_t to_at, size_t bytes) {
    if (bytes == sizeof(uint32_t)) {
        ((uint32_t *)to)[to_at] = ((const uint32_t *)from)[from_at];
    } else {
        memcpy((uint8_t *)to + (size_t)to_at * bytes,
               (const uint8_t *)from + (size_t)from_at * bytes, bytes);
    }
}

static rondo_status compute_top_k(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_shape *x = &input->shape;
    bool takes_largest = rondo__op_get_int(compute->op, "largest", 1) != 0;
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", -1),
                                           x->rank, &axis));
    bool wants_values = rondo__compute_wants_output(compute, 0);
    bool wants_indices = rondo__compute_wants_output(compute, 1);
    void *values = NULL;
    void *indices = NULL;
    if (wants_values) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &values));
    }
    if (wants_indices) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 1, &indices));
    }
    int64_t k = compute->inferred[0].shape.extent[axis];
    int64_t extent = x->extent[axis];
    int64_t outer = rondo__shape_multiply(x, 0, axis);
    int64_t inner = rondo__shape_multiply(x, axis + 1, x->rank);
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    rondo__sort_item *items = rondo__calloc((size_t)k, 2 * sizeof *items);
    if (items == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (int64_t line = 0; k > 0 && line < outer * inner; ++line) {
        int64_t first = line / inner * extent * inner + line % inner;
        int64_t to = line / inner * k * inner + line % inner;
        select_items(input, first, inner, extent, takes_largest, k, items);
        for (int64_t i = 0; wants_values && i < k; ++i) {
            copy_element(input->data, first + items[i].index * inner, values, to + i * inner,
                         bytes);
        }
        for (int64_t i = 0; wants_indices && i < k; ++i) {
            ((int64_t *)indices)[to + i * inner] = items[i].index;
        }
    }
    rondo__free(items);
    return RONDO_STATUS_OK;
}

// ---- rondo.BestRows ---------------------------------------------------------------------------

// What attributes say: see op/fused/fused.h.
typedef struct best_rows {
    int64_t first, columns, label, most;
    float threshold;
} best_rows;

static best_rows read_best_rows(const rondo__op *op) {
    return (best_rows){.first = rondo__op_get_int(op, "first", 0),
                       .columns = rondo__op_get_int(op, "columns", 0),
                       .label = rondo__op_get_int(op, "label", 0),
                       .most = rondo__op_get_int(op, "most", 0),
                       .threshold = rondo__op_get_float(op, "threshold", 0.0f)};
}

static rondo_status infer_best_rows(rondo__infer *infer) {
    const rondo_shape *scores = &infer->inputs[0].shape;
    const rondo_shape *rows = &infer->inputs[1].shape;
    const best_rows b = read_best_rows(infer->op);
    if (infer->inputs[0].dtype != RONDO_DTYPE_F32 || infer->inputs[1].dtype != RONDO_DTYPE_F32 ||
        scores->rank != 2 || rows->rank != 2 || scores->extent[0] != rows->extent[0] ||
        b.first < 0 || b.columns < 1 || b.columns > scores->extent[1] - b.first || b.most < 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "the scores or rows are not f32 [n, m] and [n, w] with such columns");
    }
    (void)rondo__infer_set_data_dependent(infer, RONDO_DTYPE_F32);
    for (size_t i = 1; i < infer->output_count; ++i) {
        infer->outputs[i].dtype = i == 1 ? RONDO_DTYPE_F32 : RONDO_DTYPE_I64;
        (void)rondo__infer_set_rank(infer, i, 1);
    }
    return rondo__infer_set_partial(infer, 0,
                                    &(rondo_shape){.rank = 2, .extent = {-1, rows->extent[1]}});
}

// Writes the best rows of one column into `best`, and returns their number.
static int64_t find_best(const best_rows *b, const rondo_tensor *scores, int64_t column,
                         rondo__sort_item *items, int64_t *best) {
    const int64_t count = scores->shape.extent[0], width = scores->shape.extent[1];
    int64_t candidates = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (((const float *)scores->data)[i * width + column] > b->threshold) {
            uint64_t key = 0;
            rondo__sort_keys(scores, i * width + column, width, 1, &key);
            items[candidates++] = (rondo__sort_item){.key = ~key, .index = i};
        }
    }
    const int64_t found = candidates < b->most ? candidates : b->most;
    select_first(items, candidates, found);
    sort_items(items, found);
    for (int64_t i = 0; i < found; ++i) {
        best[i] = items[i].index;
    }
    return found;
}

typedef struct best_outputs {
    float *rows, *scores;
    int64_t *labels;
} best_outputs;

static void write_best(const rondo__compute *compute, int64_t column, int64_t label,
                       const int64_t *best, int64_t count, best_outputs *at) {
    const int64_t width = compute->inputs[0]->shape.extent[1];
    const int64_t row = compute->inputs[1]->shape.extent[1];
    for (int64_t k = 0; k < count; ++k) {
        if (at->rows != NULL) {
            memcpy(at->rows, (const float *)compute->inputs[1]->data + best[k] * row,
                   (size_t)row * sizeof(float));
            at->rows += row;
        }
        if (at->scores != NULL) {
            *at->scores++ = ((const float *)compute->inputs[0]->data)[best[k] * width + column];
        }
        if (at->labels != NULL) {
            *at->labels++ = label;
        }
    }
}

static rondo_status get_best_outputs(rondo__compute *compute, int64_t count, best_outputs *out) {
    const rondo_shape rows = {.rank = 2, .extent = {count, compute->inputs[1]->shape.extent[1]}};
    const rondo_shape list = {.rank = 1, .extent = {count}};
    void *data[3] = {NULL, NULL, NULL};
    for (size_t i = 0; i < 3; ++i) {
        if (rondo__compute_wants_output(compute, i)) {
            RETURN_IF_ERROR(rondo__compute_get_output(compute, i,
                                                      i < 2 ? RONDO_DTYPE_F32 : RONDO_DTYPE_I64,
                                                      i == 0 ? &rows : &list, &data[i]));
        }
    }
    *out = (best_outputs){data[0], data[1], data[2]};
    return RONDO_STATUS_OK;
}

static rondo_status compute_best_rows(rondo__compute *compute) {
    const best_rows b = read_best_rows(compute->op);
    const int64_t count = compute->inputs[0]->shape.extent[0];
    const int64_t most = b.most < count ? b.most : count;
    rondo__sort_item *items = rondo__calloc((size_t)count + 1, sizeof *items);
    int64_t *best = rondo__calloc((size_t)(b.columns * most) + 1, sizeof *best);
    int64_t *counts = rondo__calloc((size_t)b.columns, sizeof *counts);
    best_outputs outputs;
    int64_t all = 0;
    rondo_status status =
        items == NULL || best == NULL || counts == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    for (int64_t c = 0; status == RONDO_STATUS_OK && c < b.columns; ++c) {
        counts[c] = find_best(&b, compute->inputs[0], b.first + c, items, best + c * most);
        all += counts[c];
    }
    if (status == RONDO_STATUS_OK) {
        status = get_best_outputs(compute, all, &outputs);
    }
    for (int64_t c = 0; status == RONDO_STATUS_OK && c < b.columns; ++c) {
        write_best(compute, b.first + c, b.label + c, best + c * most, counts[c], &outputs);
    }
    rondo__free(items);
    rondo__free(best);
    rondo__free(counts);
    return status;
}

static bool bound_best_rows(const rondo__bounding *b, rondo__op_bound *out_bound) {
    const best_rows best = read_best_rows(b->op);
    const int64_t most =
        best.most < b->inputs[0].shape.extent[0] ? best.most : b->inputs[0].shape.extent[0];
    *out_bound = (rondo__op_bound){.shape = {.rank = b->output == 0 ? 2 : 1}, .axis = 0};
    out_bound->shape.extent[1] = b->output == 0 ? b->inputs[1].shape.extent[1] : 0;
    return rondo__mul_i64(best.columns, most, &out_bound->shape.extent[0]);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const top_k_attributes[] = {"axis", "k", NULL};
static const char *const top_k_10_attributes[] = {"axis", NULL};
static const char *const top_k_11_attributes[] = {"axis", "largest", "sorted", NULL};

const rondo__op_def rondo__op_table_top[] = {
    RONDO_OP_ROW(FUSED, BestRows, 1, RONDO_OP_OPSET_MAX, 2, 2, 1, 3, .flags = RONDO__OP_INTERNAL,
                 .infer = infer_best_rows, .compute = compute_best_rows, .bound = bound_best_rows),
    RONDO_OP_ROW(OP, TopK, 1, 9, 1, 1, 1, 2, .flags = RONDO__OP_NATIVE_HALF,
                 .attributes = top_k_attributes, .infer = infer_top_k, .compute = compute_top_k),
    RONDO_OP_ROW(OP, TopK, 10, 10, 2, 2, 1, 2, .flags = RONDO__OP_NATIVE_HALF,
                 .attributes = top_k_10_attributes, .infer = infer_top_k, .compute = compute_top_k),
    RONDO_OP_ROW(OP, TopK, 11, 28, 2, 2, 1, 2, .flags = RONDO__OP_NATIVE_HALF,
                 .attributes = top_k_11_attributes, .infer = infer_top_k, .compute = compute_top_k),
    {0},
};
