// op/fused/op_append_attention.c — rondo.AppendAttention; see op/fused/append_attention.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/append_attention.h"

#include <math.h>
#include <string.h>

#include "op/reference.h"

enum { ROW, PAST_K, PAST_V, COSINES, SINES };

rondo_status rondo__append_attention_init(const rondo__op *op, const rondo_shape *row,
                                          const rondo_shape *past_k, const rondo_shape *past_v,
                                          rondo__append_attention *out_attention) {
    size_t rank = 0;
    const int64_t *shape = rondo__op_get_ints(op, "shape", &rank);
    rondo__append_attention a = {.heads = rondo__op_get_int(op, "heads", 0),
                                 .scale = rondo__op_get_float(op, "scale", 1.0f)};
    if (past_k->rank == 4) {
        a.batch = past_k->extent[0];
        a.kv_heads = past_k->extent[1];
        a.past = past_k->extent[2];
        a.width = past_k->extent[3];
    }
    a.present = *past_k;
    a.present.extent[2] = a.past + 1;
    a.output.rank = (int32_t)rank;
    for (size_t i = 0; i < rank && i < RONDO_RANK_MAX; i++) {
        a.output.extent[i] = shape[i];
    }
    const int64_t limit = RONDO__APPEND_COUNT_MAX;
    const bool is_small = a.batch > 0 && a.kv_heads > 0 && a.heads > 0 && a.width > 0 &&
                          a.batch <= limit && a.kv_heads <= limit && a.heads <= limit &&
                          a.width <= limit;
    if (past_k->rank != 4 || !rondo_shape_is_equal(past_k, past_v) || rank < 1 ||
        rank > RONDO_RANK_MAX || !is_small || a.width % 2 != 0 || a.heads % a.kv_heads != 0 ||
        rondo_shape_get_count(row) != a.batch * (a.heads + 2 * a.kv_heads) * a.width ||
        rondo_shape_get_count(&a.output) != a.batch * a.heads * a.width) {
        return RONDO_OP_FAIL(op, BAD_DATA, "shapes of row, past and result do not fit together");
    }
    *out_attention = a;
    return RONDO_STATUS_OK;
}

static rondo_status infer_append(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__append_attention a;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 5));
    RETURN_IF_ERROR(rondo__append_attention_init(infer->op, &inputs[ROW].shape,
                                                 &inputs[PAST_K].shape, &inputs[PAST_V].shape, &a));
    for (size_t i = COSINES; i <= SINES; i++) {
        if (rondo_shape_get_count(&inputs[i].shape) != a.width) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "there is not one angle for each column");
        }
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[ROW].dtype, &a.output));
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 1, inputs[ROW].dtype, &a.present));
    return rondo__infer_set_output(infer, 2, inputs[ROW].dtype, &a.present);
}

// ---- the reference ----------------------------------------------------------------------------

typedef struct arrays {
    const double *row, *cosines, *sines;
    double *rows[2];  // k and v with the new ones
    double *query, *scores;
    double *y;
} arrays;

static void rotate(const rondo__append_attention *a, const arrays *x, const double *from,
                   double *to) {
    const int64_t half = a->width / 2;
    for (int64_t i = 0; i < a->width; i++) {
        const double other = i < half ? -from[i + half] : from[i - half];
        to[i] = from[i] * x->cosines[i] + other * x->sines[i];
    }
}

// Both caches, the new row behind the past.
static void append(const rondo__append_attention *a, const arrays *x, const double *past_k,
                   const double *past_v) {
    const int64_t old = a->past * a->width, now = old + a->width;
    for (int64_t line = 0; line < a->batch * a->kv_heads; line++) {
        const int64_t batch = line / a->kv_heads, head = line % a->kv_heads;
        const double *fresh =
            x->row + (batch * (a->heads + 2 * a->kv_heads) + a->heads + head) * a->width;
        memcpy(x->rows[0] + line * now, past_k + line * old, (size_t)old * sizeof *past_k);
        memcpy(x->rows[1] + line * now, past_v + line * old, (size_t)old * sizeof *past_v);
        rotate(a, x, fresh, x->rows[0] + line * now + old);
        memcpy(x->rows[1] + line * now + old, fresh + a->kv_heads * a->width,
               (size_t)a->width * sizeof *fresh);
    }
}

static void attend(const rondo__append_attention *a, const arrays *x, int64_t batch, int64_t head) {
    const int64_t n = a->past + 1, width = a->width;
    const int64_t line = batch * a->kv_heads + head / (a->heads / a->kv_heads);
    const double *k = x->rows[0] + line * n * width, *v = x->rows[1] + line * n * width;
    double *y = x->y + (batch * a->heads + head) * width;
    double peak = -(double)INFINITY, sum = 0.0;
    rotate(a, x, x->row + (batch * (a->heads + 2 * a->kv_heads) + head) * width, x->query);
    for (int64_t j = 0; j < n; j++) {
        double score = 0.0;
        for (int64_t i = 0; i < width; i++) {
            score += x->query[i] * k[j * width + i];
        }
        x->scores[j] = score * (double)a->scale;
        peak = x->scores[j] > peak ? x->scores[j] : peak;
    }
    for (int64_t j = 0; j < n; j++) {
        x->scores[j] = exp(x->scores[j] - peak);
        sum += x->scores[j];
    }
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < width; i++) {
            y[i] += x->scores[j] / sum * v[j * width + i];
        }
    }
}

static rondo_status compute_append(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__append_attention a;
    RETURN_IF_ERROR(rondo__append_attention_init(
        compute->op, &inputs[ROW]->shape, &inputs[PAST_K]->shape, &inputs[PAST_V]->shape, &a));
    const int64_t count = rondo_shape_get_count(&a.present);
    rondo__scratch scratch = {0};
    const double *past_k = rondo__scratch_widen(&scratch, inputs[PAST_K]);
    const double *past_v = rondo__scratch_widen(&scratch, inputs[PAST_V]);
    const arrays x = {
        .row = rondo__scratch_widen(&scratch, inputs[ROW]),
        .cosines = rondo__scratch_widen(&scratch, inputs[COSINES]),
        .sines = rondo__scratch_widen(&scratch, inputs[SINES]),
        .rows = {rondo__scratch_create(&scratch, count), rondo__scratch_create(&scratch, count)},
        .query = rondo__scratch_create(&scratch, a.width),
        .scores = rondo__scratch_create(&scratch, a.past + 1),
        .y = rondo__scratch_create(&scratch, rondo_shape_get_count(&a.output)),
    };
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    append(&a, &x, past_k, past_v);
    for (int64_t i = 0; i < a.batch * a.heads; i++) {
        attend(&a, &x, i / a.heads, i % a.heads);
    }
    scratch.status = rondo__narrow(compute, 0, x.y);
    for (size_t i = 0; i < 2 && scratch.status == RONDO_STATUS_OK; i++) {
        scratch.status = rondo__narrow(compute, 1 + i, x.rows[i]);
    }
    return rondo__scratch_end(&scratch);
}

const rondo__op_def rondo__op_table_append_attention[] = {
    RONDO_OP_ROW(FUSED, AppendAttention, 1, RONDO_OP_OPSET_MAX, 5, 5, 3, 3,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES, .infer = infer_append,
                 .compute = compute_append),
    {.name = NULL},
};
