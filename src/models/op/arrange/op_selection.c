// op/arrange/op_selection.c — picking elements by value: Compress, NonMaxSuppression, NonZero,
// TopK, rondo.BestRows.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
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

// ---- Compress ---------------------------------------------------------------------------------

static rondo_status infer_compress(rondo__infer *infer) {
    const rondo__tensor_info *condition = &infer->inputs[1];
    if (condition->dtype != RONDO_DTYPE_BOOL || condition->shape.rank != 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the condition must be a list of bool");
    }
    rondo_shape shape = {.rank = 1, .extent = {-1}};
    if (rondo__op_find(infer->op, "axis") != NULL) {
        int32_t axis = 0;
        RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0),
                                               infer->inputs[0].shape.rank, &axis));
        shape = infer->inputs[0].shape;
        shape.extent[axis] = -1;
    }
    (void)rondo__infer_set_data_dependent(infer, infer->inputs[0].dtype);
    return rondo__infer_set_partial(infer, 0, &shape);
}

static rondo_status compute_compress(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *condition = compute->inputs[1];
    const uint8_t *keeps = condition->data;
    // Without an axis the input counts as a list.
    rondo_shape x = {.rank = 1, .extent = {rondo_shape_get_count(&input->shape)}};
    int32_t axis = 0;
    if (rondo__op_find(compute->op, "axis") != NULL) {
        x = input->shape;
        RETURN_IF_ERROR(rondo__op_resolve_axis(
            compute->op, rondo__op_get_int(compute->op, "axis", 0), x.rank, &axis));
    }
    int64_t condition_count = condition->shape.extent[0];
    int64_t extent = x.extent[axis];
    int64_t kept = 0;
    for (int64_t i = 0; i < condition_count; ++i) {
        if (keeps[i] != 0) {
            ++kept;
            if (i >= extent) {
                return RONDO_OP_FAIL(compute->op, BAD_DATA,
                                     "the condition picks element %lld of %lld", (long long)i,
                                     (long long)extent);
            }
        }
    }
    rondo_shape shape = x;
    shape.extent[axis] = kept;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, input->dtype, &shape, &output));
    int64_t outer = rondo__shape_multiply(&x, 0, axis);
    size_t bytes =
        (size_t)rondo__shape_multiply(&x, axis + 1, x.rank) * rondo_dtype_get_bytes(input->dtype);
    uint8_t *to = output;
    for (int64_t o = 0; bytes > 0 && o < outer; ++o) {
        for (int64_t i = 0; i < condition_count && i < extent; ++i) {
            if (keeps[i] != 0) {
                memcpy(to, (const uint8_t *)input->data + (size_t)(o * extent + i) * bytes, bytes);
                to += bytes;
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- NonZero ----------------------------------------------------------------------------------

static rondo_status infer_non_zero(rondo__infer *infer) {
    // A scalar counts as a list of one.
    const int32_t rank = infer->inputs[0].shape.rank > 0 ? infer->inputs[0].shape.rank : 1;
    (void)rondo__infer_set_data_dependent(infer, RONDO_DTYPE_I64);
    return rondo__infer_set_partial(infer, 0, &(rondo_shape){.rank = 2, .extent = {rank, -1}});
}

enum { LOOK_PART = 512 };  // elements that are looked at together

// 1 for each of `count` elements that is not zero, else 0.
static void mark_elements(const rondo_tensor *x, int64_t first, int64_t count, uint8_t *marks) {
    const uint8_t *from =
        (const uint8_t *)x->data + (size_t)first * rondo_dtype_get_bytes(x->dtype);
    rondo__convert_elements(x->dtype, from, RONDO_DTYPE_BOOL, marks, (size_t)count);
}

// Writes the positions of the marked elements; *column counts those of `found` that are written.
static void list_marks(const uint8_t *marks, int64_t count, int64_t first, int64_t found,
                       int64_t *places, int64_t *column) {
    int64_t at = *column;
    for (int64_t i = 0; i < count && at < found; ++i) {
        places[at] = first + i;
        at += marks[i] != 0;
    }
    *column = at;
}

static rondo_status compute_non_zero(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const int64_t count = rondo_shape_get_count(&input->shape);
    uint8_t marks[LOOK_PART];
    int64_t found = 0;
    for (int64_t i = 0; i < count; i += LOOK_PART) {
        const int64_t part = count - i < LOOK_PART ? count - i : LOOK_PART;
        mark_elements(input, i, part, marks);
        for (int64_t k = 0; k < part; ++k) {
            found += marks[k] != 0;
        }
    }
    // A scalar counts as a list of one.
    rondo_shape x = input->shape;
    if (x.rank == 0) {
        x = (rondo_shape){.rank = 1, .extent = {1}};
    }
    rondo_shape shape = {.rank = 2, .extent = {x.rank, found}};
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, RONDO_DTYPE_I64, &shape, &output));
    int64_t *y = output;
    const int32_t last = x.rank - 1;
    const int64_t width = x.extent[last];
    int64_t column = 0;
    for (int64_t row = 0; column < found; ++row) {
        const int64_t begin = column;
        for (int64_t i = 0; i < width; i += LOOK_PART) {
            const int64_t part = width - i < LOOK_PART ? width - i : LOOK_PART;
            mark_elements(input, row * width + i, part, marks);
            list_marks(marks, part, i, found, y + last * found, &column);
        }
        int64_t rest = row;
        for (int32_t d = last - 1; d >= 0; --d) {
            for (int64_t k = begin; k < column; ++k) {
                y[d * found + k] = rest % x.extent[d];
            }
            rest /= x.extent[d];
        }
    }
    return RONDO_STATUS_OK;
}

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

typedef struct sort_item {
    uint64_t key;
    int64_t index;
} sort_item;

// Ties go to the lower index.
static inline int compare_items(const void *a_, const void *b_) {
    const sort_item *a = a_;
    const sort_item *b = b_;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->index < b->index ? -1 : a->index > b->index;
}

// Moves item `at` of a heap down to its place; item 0 is the one that comes first.
static void sift_down(sort_item *heap, int64_t count, int64_t at) {
    const sort_item item = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && compare_items(&heap[child + 1], &heap[child]) < 0) {
            ++child;
        }
        if (compare_items(&heap[child], &item) >= 0) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

// Splits the items [begin, end) by one of them: those up to *out_high come no later than it, those
// from *out_low on no earlier, and what is between them is in its place.
static void split_items(sort_item *items, int64_t begin, int64_t end, int64_t *out_low,
                        int64_t *out_high) {
    const sort_item middle = items[begin + (end - begin) / 2];
    int64_t low = begin, high = end - 1;
    while (low <= high) {
        while (compare_items(&items[low], &middle) < 0) {
            ++low;
        }
        while (compare_items(&items[high], &middle) > 0) {
            --high;
        }
        if (low <= high) {
            const sort_item item = items[low];
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
static void select_first(sort_item *items, int64_t count, int64_t k) {
    int64_t begin = 0, end = count;
    for (int round = 0; end - begin > 1 && k < count; ++round) {
        if (round == ROUNDS_MAX) {
            qsort(items + begin, (size_t)(end - begin), sizeof *items, compare_items);
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

static void sort_items(sort_item *items, int64_t count) {
    for (int round = 0; count > FEW_ITEMS; ++round) {
        if (round == ROUNDS_MAX) {
            qsort(items, (size_t)count, sizeof *items, compare_items);
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
        const sort_item item = items[i];
        int64_t at = i;
        for (; at > 0 && compare_items(&item, &items[at - 1]) < 0; --at) {
            items[at] = items[at - 1];
        }
        items[at] = item;
    }
}

// The first k items of a line, sorted; there is room for 2 k. What cannot be among them any more is
// compared with one key and nothing else.
static void select_items(const rondo_tensor *input, int64_t first, int64_t step, int64_t extent,
                         bool takes_largest, int64_t k, sort_item *items) {
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
            items[count++] = (sort_item){key, i + p};
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
    sort_item *items = rondo__calloc((size_t)k, 2 * sizeof *items);
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
                         sort_item *items, int64_t *best) {
    const int64_t count = scores->shape.extent[0], width = scores->shape.extent[1];
    int64_t candidates = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (((const float *)scores->data)[i * width + column] > b->threshold) {
            uint64_t key = 0;
            rondo__sort_keys(scores, i * width + column, width, 1, &key);
            items[candidates++] = (sort_item){.key = ~key, .index = i};
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
    sort_item *items = rondo__calloc((size_t)count + 1, sizeof *items);
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

// ---- NonMaxSuppression ------------------------------------------------------------------------

static rondo_status infer_suppression(rondo__infer *infer) {
    const rondo_shape *boxes = &infer->inputs[0].shape;
    const rondo_shape *scores = &infer->inputs[1].shape;
    if (infer->inputs[0].dtype != RONDO_DTYPE_F32 || infer->inputs[1].dtype != RONDO_DTYPE_F32) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "boxes and scores must be f32");
    }
    if (boxes->rank != 3 || scores->rank != 3 || boxes->extent[2] != 4 ||
        boxes->extent[0] != scores->extent[0] || boxes->extent[1] != scores->extent[2]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "boxes must be [batches, n, 4] and scores [batches, classes, n]");
    }
    for (size_t i = 2; i < infer->input_count; ++i) {
        rondo_dtype wanted = i == 2 ? RONDO_DTYPE_I64 : RONDO_DTYPE_F32;
        if (rondo__infer_has_input(infer, i) &&
            (infer->inputs[i].dtype != wanted ||
             rondo_shape_get_count(&infer->inputs[i].shape) != 1)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one %s number", i,
                                 rondo_dtype_get_name(wanted));
        }
    }
    (void)rondo__infer_set_data_dependent(infer, RONDO_DTYPE_I64);
    return rondo__infer_set_partial(infer, 0, &(rondo_shape){.rank = 2, .extent = {-1, 3}});
}

// All in f32, as ONNX Runtime and the reference of ONNX compare it: an overlap that equals the
// threshold in f32 does not exceed it.
enum { LOW_0, LOW_1, HIGH_0, HIGH_1, AREA, BOX_MEMBERS };
typedef struct box {
    float member[BOX_MEMBERS];
} box;

// Corners may come in either order; a center box is (x, y, width, height), and one of a negative
// extent covers nothing.
static box read_box(const float *values, bool is_center) {
    box b = {.member[AREA] = 1.0f};
    for (int i = 0; i < 2; ++i) {
        const float first = values[i];
        const float second = values[i + 2];
        float *low = &b.member[LOW_0 + i], *high = &b.member[HIGH_0 + i];
        if (is_center) {
            *low = first - second / 2.0f;
            *high = first + second / 2.0f;
        } else {
            *low = first < second ? first : second;
            *high = first < second ? second : first;
        }
        b.member[AREA] *= *high - *low;
    }
    return b;
}

typedef struct suppression {
    int64_t box_count;
    int64_t most;  // boxes to keep of each class
    float overlap_threshold;
    bool has_score_threshold;
    float score_threshold;
    bool is_center;
    sort_item *items;   // box_count
    uint64_t *keys;     // box_count
    int64_t *kept;      // box_count
    float *kept_boxes;  // [BOX_MEMBERS, box_count]
} suppression;

static float get_greater(float a, float b) {
    return a > b ? a : b;
}

static float get_lesser(float a, float b) {
    return a < b ? a : b;
}

// Whether one of the boxes that have been kept covers too much of this one; without branches inside
// of a part, which becomes vector code.
static bool is_covered(const suppression *s, const box *mine, int64_t kept) {
    enum { COVER_PART = 16 };
    const float *m = mine->member;
    const float *low_0 = s->kept_boxes + LOW_0 * s->box_count;
    const float *low_1 = s->kept_boxes + LOW_1 * s->box_count;
    const float *high_0 = s->kept_boxes + HIGH_0 * s->box_count;
    const float *high_1 = s->kept_boxes + HIGH_1 * s->box_count;
    const float *areas = s->kept_boxes + AREA * s->box_count;
    int covered = 0;
    for (int64_t first = 0; first < kept && covered == 0; first += COVER_PART) {
        const int64_t end = kept - first < COVER_PART ? kept : first + COVER_PART;
        for (int64_t k = first; k < end; ++k) {
            const float across = get_lesser(m[HIGH_0], high_0[k]) - get_greater(m[LOW_0], low_0[k]);
            const float down = get_lesser(m[HIGH_1], high_1[k]) - get_greater(m[LOW_1], low_1[k]);
            const float shared = (across > 0.0f ? across : 0.0f) * (down > 0.0f ? down : 0.0f);
            const float all = m[AREA] + areas[k] - shared;
            const int meets = (shared > 0.0f) & (m[AREA] > 0.0f) & (areas[k] > 0.0f) & (all > 0.0f);
            covered |= (meets ? shared / all : 0.0f) > s->overlap_threshold;
        }
    }
    return covered != 0;
}

// Keeps boxes of one class, best score first. Returns how many stand in s->kept.
static int64_t suppress_class(const suppression *s, const float *boxes, const rondo_tensor *scores,
                              int64_t first_score) {
    const float *score = (const float *)scores->data + first_score;
    int64_t candidates = 0;
    rondo__sort_keys(scores, first_score, 1, s->box_count, s->keys);
    for (int64_t i = 0; i < s->box_count; ++i) {
        if (!s->has_score_threshold || score[i] > s->score_threshold) {
            s->items[candidates++] = (sort_item){.key = ~s->keys[i], .index = i};
        }
    }
    for (int64_t at = candidates / 2 - 1; at >= 0; --at) {  // a heap: mostly few of them are taken
        sift_down(s->items, candidates, at);
    }
    int64_t kept = 0;
    while (candidates > 0 && kept < s->most) {
        const int64_t index = s->items[0].index;
        const box mine = read_box(boxes + 4 * index, s->is_center);
        if (!is_covered(s, &mine, kept)) {
            for (int i = 0; i < BOX_MEMBERS; ++i) {
                s->kept_boxes[i * s->box_count + kept] = mine.member[i];
            }
            s->kept[kept++] = index;
        }
        s->items[0] = s->items[--candidates];
        sift_down(s->items, candidates, 0);
    }
    return kept;
}

static float get_option(const rondo__compute *compute, size_t input) {
    return rondo__compute_has_input(compute, input) ? *(const float *)compute->inputs[input]->data
                                                    : 0.0f;
}

static rondo_status compute_suppression(rondo__compute *compute) {
    const rondo_tensor *boxes = compute->inputs[0];
    const rondo_tensor *scores = compute->inputs[1];
    int64_t batches = scores->shape.extent[0];
    int64_t classes = scores->shape.extent[1];
    int64_t most =
        rondo__compute_has_input(compute, 2) ? rondo__tensor_get_int(compute->inputs[2], 0) : 0;
    suppression s = {
        .box_count = boxes->shape.extent[1],
        .most = most < 0 ? 0 : most,
        .overlap_threshold = get_option(compute, 3),
        .has_score_threshold = rondo__compute_has_input(compute, 4),
        .score_threshold = get_option(compute, 4),
        .is_center = rondo__op_get_int(compute->op, "center_point_box", 0) != 0,
    };
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    int64_t *picked = NULL;  // triples of batch, class, box
    size_t capacity = 0;
    size_t count = 0;
    s.kept = rondo__calloc((size_t)s.box_count, sizeof *s.kept);
    s.kept_boxes = s.kept != NULL ? rondo__calloc((size_t)s.box_count, sizeof(box)) : NULL;
    s.keys = s.kept_boxes != NULL ? rondo__calloc((size_t)s.box_count, sizeof *s.keys) : NULL;
    s.items = s.keys != NULL ? rondo__calloc((size_t)s.box_count, sizeof *s.items) : NULL;
    if (s.items == NULL) {
        goto done;
    }
    for (int64_t line = 0; line < batches * classes; ++line) {
        int64_t batch = line / classes;
        int64_t kept = suppress_class(&s, (const float *)boxes->data + batch * s.box_count * 4,
                                      scores, line * s.box_count);
        status = RONDO__ARRAY_RESERVE(picked, capacity, count + 3 * (size_t)kept);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
        for (int64_t i = 0; i < kept; ++i) {
            int64_t *triple = picked + count;
            triple[0] = batch;
            triple[1] = line % classes;
            triple[2] = s.kept[i];
            count += 3;
        }
    }
    rondo_shape shape = {.rank = 2, .extent = {(int64_t)(count / 3), 3}};
    void *output = NULL;
    status = rondo__compute_get_output(compute, 0, RONDO_DTYPE_I64, &shape, &output);
    if (status == RONDO_STATUS_OK && count > 0) {
        memcpy(output, picked, count * sizeof(int64_t));
    }
done:
    rondo__free(picked);
    rondo__free(s.items);
    rondo__free(s.keys);
    rondo__free(s.kept_boxes);
    rondo__free(s.kept);
    return status;
}

// ---- bounds ------------------------------------------------------------------------------------

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool bound_non_zero(const rondo__bounding *b, rondo__op_bound *out_bound) {
    const rondo_shape *x = &b->inputs[0].shape;
    // A scalar counts as a list of one.
    *out_bound = (rondo__op_bound){
        .shape = {.rank = 2, .extent = {x->rank > 0 ? x->rank : 1, rondo_shape_get_count(x)}},
        .axis = 1};
    return true;
}

static bool bound_compress(const rondo__bounding *b, rondo__op_bound *out_bound) {
    if (!rondo__bound_axis(b, out_bound)) {
        return false;
    }
    int64_t *extent = &out_bound->shape.extent[out_bound->axis];
    *extent = least(*extent, b->inputs[1].shape.extent[0]);
    return true;
}

static bool bound_suppression(const rondo__bounding *b, rondo__op_bound *out_bound) {
    enum { MOST = 2 };  // boxes to keep of each class; absent: none
    const rondo_shape *scores = &b->inputs[1].shape;
    const bool has_most = MOST < b->input_count && b->inputs[MOST].dtype != RONDO_DTYPE_NONE;
    const rondo_tensor *most = has_most ? b->inputs[MOST].constant : NULL;
    int64_t kept = has_most ? scores->extent[2] : 0;
    if (most != NULL) {
        const int64_t wanted = rondo__tensor_get_int(most, 0);
        kept = least(kept, wanted < 0 ? 0 : wanted);
    }
    int64_t lines;
    *out_bound = (rondo__op_bound){.shape = {.rank = 2, .extent = {0, 3}}, .axis = 0};
    return rondo__mul_i64(scores->extent[0], scores->extent[1], &lines) &&
           rondo__mul_i64(lines, kept, &out_bound->shape.extent[0]);
}

static bool bound_best_rows(const rondo__bounding *b, rondo__op_bound *out_bound) {
    const best_rows best = read_best_rows(b->op);
    const int64_t most = least(best.most, b->inputs[0].shape.extent[0]);
    *out_bound = (rondo__op_bound){.shape = {.rank = b->output == 0 ? 2 : 1}, .axis = 0};
    out_bound->shape.extent[1] = b->output == 0 ? b->inputs[1].shape.extent[1] : 0;
    return rondo__mul_i64(best.columns, most, &out_bound->shape.extent[0]);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const axis_attributes[] = {"axis", NULL};
static const char *const suppression_attributes[] = {"center_point_box", NULL};
static const char *const top_k_attributes[] = {"axis", "k", NULL};
static const char *const top_k_10_attributes[] = {"axis", NULL};
static const char *const top_k_11_attributes[] = {"axis", "largest", "sorted", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, outputs, half, attribute_list,    \
              infer_function, ...)                                                       \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, outputs, .flags = half, \
                 .attributes = attribute_list, .infer = infer_function, .compute = __VA_ARGS__)
#define HALF RONDO__OP_NATIVE_HALF

const rondo__op_def rondo__op_table_selection[] = {
    ENTRY(Compress, 9, 28, 2, 2, 1, HALF, axis_attributes, infer_compress, compute_compress,
          .strings = RONDO__INPUT_0, .bound = bound_compress, .moved = RONDO__INPUT_0),
    ENTRY(NonMaxSuppression, 10, 28, 2, 5, 1, 0, suppression_attributes, infer_suppression,
          compute_suppression, .bound = bound_suppression,
          .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED}),
    ENTRY(NonZero, 9, 28, 1, 1, 1, HALF, no_attributes, infer_non_zero, compute_non_zero,
          .bound = bound_non_zero),
    RONDO_OP_ROW(FUSED, BestRows, 1, RONDO_OP_OPSET_MAX, 2, 2, 1, 3, .flags = RONDO__OP_INTERNAL,
                 .infer = infer_best_rows, .compute = compute_best_rows, .bound = bound_best_rows),
    ENTRY(TopK, 1, 9, 1, 1, 2, HALF, top_k_attributes, infer_top_k, compute_top_k),
    ENTRY(TopK, 10, 10, 2, 2, 2, HALF, top_k_10_attributes, infer_top_k, compute_top_k),
    ENTRY(TopK, 11, 28, 2, 2, 2, HALF, top_k_11_attributes, infer_top_k, compute_top_k),
    {0},
};
