// op/fused/op_attention.c — rondo.Attention; see attention.h.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "op/fused/attention.h"
#include "op/reference.h"

// ---- shapes -----------------------------------------------------------------------------------

enum { EXTENTS = 6, STRIDES = 5, Y_STRIDES = 3 };

static bool count_results(const rondo__attention *a, int64_t *out_count) {
    return rondo__mul_i64(a->heads, a->m, out_count) &&
           rondo__mul_i64(*out_count, a->v_width, out_count) &&
           rondo__mul_i64(*out_count, a->batch, out_count);
}

// Extents and strides where attributes do not tell: q, k and v are rows of heads.
static bool read_rows(const rondo_shape *q, const rondo_shape *k, const rondo_shape *v,
                      rondo__attention *a) {
    const int32_t rank = q->rank;
    if (rank < 3 || rank > 4 || k->rank != rank || v->rank != rank) {
        return false;
    }
    const int64_t *of_q = q->extent + (rank - 3), *of_k = k->extent + (rank - 3);
    const int64_t *of_v = v->extent + (rank - 3);
    a->batch = rank == 4 ? q->extent[0] : 1;
    a->heads = of_q[0];
    a->m = of_q[1];
    a->n = of_k[1];
    a->width = of_q[2];
    a->v_width = of_v[2];
    const bool is_alike = of_k[0] == a->heads && of_v[0] == a->heads && of_k[2] == a->width &&
                          of_v[1] == a->n &&
                          (rank == 3 || (k->extent[0] == a->batch && v->extent[0] == a->batch));
    int64_t count;
    if (!is_alike || rondo_shape_get_count(q) < 0 || rondo_shape_get_count(k) < 0 ||
        rondo_shape_get_count(v) < 0 || !count_results(a, &count)) {
        return false;
    }
    a->q = (rondo__attention_strides){a->heads * a->m * a->width, a->m * a->width, a->width, 1, 0};
    a->k = (rondo__attention_strides){a->heads * a->n * a->width, a->n * a->width, a->width, 1, 0};
    a->v = (rondo__attention_strides){a->heads * a->n * a->v_width, a->n * a->v_width, a->v_width,
                                      1, 0};
    a->y = (rondo__attention_strides){a->heads * a->m * a->v_width, a->m * a->v_width, a->v_width,
                                      1, 0};
    a->output = *q;
    a->output.extent[rank - 1] = a->v_width;
    return true;
}

// Whether all elements lie within a tensor of so many.
static bool lies_within(const rondo__attention_strides *s, int64_t batch, int64_t heads,
                        int64_t rows, int64_t width, int64_t count) {
    const int64_t extents[4] = {batch, heads, rows, width};
    const int64_t strides[4] = {s->batch, s->head, s->row, s->column};
    int64_t last = s->offset;
    if (last < 0) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        if (extents[i] == 0) {
            return true;
        }
        if (extents[i] < 0 || strides[i] < 0 ||
            (extents[i] > 1 && strides[i] > (count - 1) / (extents[i] - 1))) {
            return false;
        }
        last += (extents[i] - 1) * strides[i];
        if (last >= count) {
            return false;
        }
    }
    return true;
}

static bool read_strides(const rondo__op *op, const char *name, rondo__attention_strides *out) {
    size_t count = 0;
    const int64_t *s = rondo__op_get_ints(op, name, &count);
    if (count != STRIDES) {
        return false;
    }
    *out = (rondo__attention_strides){s[1], s[2], s[3], s[4], s[0]};
    return true;
}

// The same where attributes tell.
static bool read_attributes(const rondo__op *op, const int64_t *extents, rondo__attention *a) {
    size_t y_count = 0, rank = 0;
    const int64_t *y = rondo__op_get_ints(op, "y", &y_count);
    const int64_t *shape = rondo__op_get_ints(op, "shape", &rank);
    a->batch = extents[0];
    a->heads = extents[1];
    a->m = extents[2];
    a->n = extents[3];
    a->width = extents[4];
    a->v_width = extents[5];
    if (y_count != Y_STRIDES || rank < 1 || rank > RONDO_RANK_MAX ||
        !read_strides(op, "q", &a->q) || !read_strides(op, "k", &a->k) ||
        !read_strides(op, "v", &a->v)) {
        return false;
    }
    a->y = (rondo__attention_strides){y[0], y[1], y[2], 1, 0};
    a->output.rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        a->output.extent[i] = shape[i];
    }
    return true;
}

static bool is_within(const rondo__attention *a, const rondo_shape *q, const rondo_shape *k,
                      const rondo_shape *v) {
    const int64_t limit = RONDO__ATTENTION_COUNT_MAX, count = rondo_shape_get_count(&a->output);
    int64_t results;
    return count_results(a, &results) && a->width <= RONDO__ATTENTION_WIDTH_MAX &&
           a->v_width <= RONDO__ATTENTION_WIDTH_MAX && a->heads <= limit && a->batch <= limit &&
           count == results &&
           lies_within(&a->q, a->batch, a->heads, a->m, a->width, rondo_shape_get_count(q)) &&
           lies_within(&a->k, a->batch, a->heads, a->n, a->width, rondo_shape_get_count(k)) &&
           lies_within(&a->v, a->batch, a->heads, a->n, a->v_width, rondo_shape_get_count(v)) &&
           lies_within(&a->y, a->batch, a->heads, a->m, a->v_width, count);
}

// Strides of a mask that repeats along extents of 1 and those it lacks. False when it does not fit.
static bool read_mask(const rondo_shape *mask, const int64_t extents[4],
                      rondo__attention_strides *out_strides) {
    int64_t strides[4] = {0};
    int64_t stride = 1;
    for (int32_t i = 0; i < mask->rank; i++) {
        const int64_t extent = mask->extent[mask->rank - 1 - i];
        if (i > 3 ? extent != 1 : extent != 1 && extent != extents[3 - i]) {
            return false;
        }
        if (i < 4 && extent != 1) {
            strides[3 - i] = stride;
        }
        stride *= extent;
    }
    *out_strides = (rondo__attention_strides){strides[0], strides[1], strides[2], strides[3], 0};
    return true;
}

rondo_status rondo__attention_init(const rondo__op *op, const rondo_shape *q, const rondo_shape *k,
                                   const rondo_shape *v, const rondo_shape *mask,
                                   rondo__attention *out_attention) {
    size_t count = 0;
    const int64_t *told = rondo__op_get_ints(op, "extents", &count);
    rondo__attention a = {.scale = rondo__op_get_float(op, "scale", 1.0f),
                          .zero_rows = rondo__op_get_int(op, "zero_rows", 0) != 0,
                          .unit_rows = rondo__op_get_int(op, "unit_rows", 0) != 0};
    const bool fits = count == EXTENTS ? read_attributes(op, told, &a) : read_rows(q, k, v, &a);
    if (!fits || !is_within(&a, q, k, v)) {
        char texts[3][96];
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs have shapes %s, %s and %s, which do not fit",
                             rondo_shape_format(q, texts[0], sizeof texts[0]),
                             rondo_shape_format(k, texts[1], sizeof texts[1]),
                             rondo_shape_format(v, texts[2], sizeof texts[2]));
    }
    const int64_t extents[4] = {a.batch, a.heads, a.m, a.n};
    if (mask != NULL && !read_mask(mask, extents, &a.mask)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "mask has shape %s, the scores have [%lld, %lld, %lld, %lld]",
                             rondo_shape_format(mask, text, sizeof text), (long long)a.batch,
                             (long long)a.heads, (long long)a.m, (long long)a.n);
    }
    *out_attention = a;
    return RONDO_STATUS_OK;
}

static rondo_status infer_attention(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 5));
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__attention attention;
    RETURN_IF_ERROR(rondo__attention_init(
        infer->op, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape,
        rondo__infer_has_input(infer, 3) ? &inputs[3].shape : NULL, &attention));
    if (rondo__infer_has_input(infer, 4) &&
        (inputs[4].shape.rank != 1 || inputs[4].shape.extent[0] != attention.heads)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "factors are not one for each of %lld heads",
                             (long long)attention.heads);
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &attention.output);
}

// ---- the reference ----------------------------------------------------------------------------

typedef struct arrays {
    const double *q, *k, *v, *mask, *factors;
    double *y;
    double *scores;  // of one row
} arrays;

static int64_t find(const rondo__attention_strides *strides, int64_t batch, int64_t head,
                    int64_t row) {
    return strides->offset + batch * strides->batch + head * strides->head + row * strides->row;
}

// One by the length of a row, or 0.
static double get_inverse_length(const double *row, int64_t width, int64_t column) {
    double sum = 0.0;
    for (int64_t i = 0; i < width; i++) {
        sum += row[i * column] * row[i * column];
    }
    return sum > 0.0 || sum != sum ? 1.0 / sqrt(sum) : 0.0;
}

static void run_row(const rondo__attention *a, const arrays *x, int64_t batch, int64_t head,
                    int64_t row) {
    const double *q = x->q + find(&a->q, batch, head, row);
    const double scale = (double)a->scale * (x->factors != NULL ? x->factors[head] : 1.0);
    const double of_q = a->unit_rows ? get_inverse_length(q, a->width, a->q.column) : 1.0;
    double peak = -(double)INFINITY;
    double sum = 0.0;
    bool is_empty = true;
    for (int64_t j = 0; j < a->n; j++) {
        const double *k = x->k + find(&a->k, batch, head, j);
        double score = 0.0;
        for (int64_t i = 0; i < a->width; i++) {
            score += q[i * a->q.column] * k[i * a->k.column];
        }
        score *= scale;
        if (a->unit_rows) {
            score *= of_q * get_inverse_length(k, a->width, a->k.column);
        }
        if (x->mask != NULL) {
            const double added = x->mask[find(&a->mask, batch, head, row) + j * a->mask.column];
            score = a->zero_rows && added == -(double)INFINITY ? added : score + added;
        }
        x->scores[j] = score;
        peak = score > peak ? score : peak;
        is_empty = is_empty && score == -(double)INFINITY;
    }
    for (int64_t j = 0; j < a->n; j++) {
        x->scores[j] = exp(x->scores[j] - peak);
        sum += x->scores[j];
    }
    if (a->zero_rows && is_empty) {
        memset(x->scores, 0, (size_t)a->n * sizeof *x->scores);
        sum = 1.0;
    }
    for (int64_t i = 0; i < a->v_width; i++) {
        double total = 0.0;
        for (int64_t j = 0; j < a->n; j++) {
            total += x->scores[j] / sum * x->v[find(&a->v, batch, head, j) + i * a->v.column];
        }
        x->y[find(&a->y, batch, head, row) + i] = total;
    }
}

static rondo_status compute_attention(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    const rondo_tensor *mask = rondo__compute_get_input(compute, 3);
    rondo__attention a;
    RETURN_IF_ERROR(rondo__attention_init(compute->op, &inputs[0]->shape, &inputs[1]->shape,
                                          &inputs[2]->shape, mask == NULL ? NULL : &mask->shape,
                                          &a));
    rondo__scratch scratch = {0};
    const arrays x = {
        .q = rondo__scratch_widen(&scratch, inputs[0]),
        .k = rondo__scratch_widen(&scratch, inputs[1]),
        .v = rondo__scratch_widen(&scratch, inputs[2]),
        .mask = rondo__scratch_widen(&scratch, mask),
        .factors = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 4)),
        .y = rondo__scratch_create(&scratch, rondo_shape_get_count(&a.output)),
        .scores = rondo__scratch_create(&scratch, a.n),
    };
    for (int64_t row = 0; scratch.status == RONDO_STATUS_OK && row < a.batch * a.heads * a.m;
         row++) {
        run_row(&a, &x, row / a.m / a.heads, row / a.m % a.heads, row % a.m);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x.y);
}

const rondo__op_def rondo__op_table_attention[] = {
    RONDO_OP_ROW(FUSED, Attention, 1, RONDO_OP_OPSET_MAX, 3, 5, 1, 1, .flags = RONDO__OP_INTERNAL,
                 .capture = RONDO__CAPTURE_YES, .infer = infer_attention,
                 .compute = compute_attention, .weights = 1),
    {.name = NULL},
};
