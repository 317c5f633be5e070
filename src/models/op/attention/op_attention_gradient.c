// op/attention/op_attention_gradient.c — rondo.AttentionGradient(dy, q, k, v): how attention
// changes with q, k and v, which are [batch, rows, heads * width].
//
//   p = softmax(scale * q k' where row i sees key j)      is_causal: keys up to the row
//   dv = p' dy,  ds = p * (dy v' - sum(p * dy v')),  dq = scale * ds k,  dk = scale * ds' q
//
// `joined`: one output has all three, a row of each behind the other.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/reference.h"
#include "op/support.h"

static bool is_joined(const rondo__op *op) {
    return rondo__op_get_int(op, "joined", 0) != 0;
}

static rondo_status infer_gradient(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const int64_t heads = rondo__op_get_int(infer->op, "num_heads", 1);
    const rondo_shape *dy = &inputs[0].shape, *q = &inputs[1].shape, *k = &inputs[2].shape,
                      *v = &inputs[3].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 4));
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || dy->rank != 3 || heads < 1 ||
        q->extent[2] % heads != 0 || v->extent[2] % heads != 0 || q->extent[2] != k->extent[2] ||
        dy->extent[2] != v->extent[2] || k->extent[1] != v->extent[1] ||
        dy->extent[1] != q->extent[1] || q->extent[0] != k->extent[0] ||
        q->extent[0] != v->extent[0] || q->extent[0] != dy->extent[0]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "q, k, v and the change do not fit together");
    }
    if (is_joined(infer->op)) {
        rondo_shape all = *q;
        all.extent[2] += k->extent[2] + v->extent[2];
        return q->extent[1] != k->extent[1]
                   ? RONDO_OP_FAIL(infer->op, BAD_DATA, "rows of q and k differ")
                   : rondo__infer_set_output(infer, 0, inputs[1].dtype, &all);
    }
    for (size_t i = 0; i < infer->output_count; i++) {
        RETURN_IF_ERROR(
            rondo__infer_set_output(infer, i, inputs[1 + i].dtype, &inputs[1 + i].shape));
    }
    return RONDO_STATUS_OK;
}

// Of one batch and head; rows of tensors lie `pitch` and `v_pitch` apart.
typedef struct head {
    const double *dy, *q, *k, *v;
    double *dq, *dk, *dv;
    double *p, *change;  // of a row's keys
    int64_t rows, keys, width, v_width, pitch, v_pitch;
    double scale;
    bool is_causal;
} head;

static double multiply(const double *a, const double *b, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void add(double factor, const double *from, double *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        to[i] += factor * from[i];
    }
}

static void run_row(const head *h, int64_t row) {
    const int64_t seen = h->is_causal && row + 1 < h->keys ? row + 1 : h->keys;
    const double *q = h->q + row * h->pitch, *dy = h->dy + row * h->v_pitch;
    double most = (double)-INFINITY, sum = 0.0, mean = 0.0;
    for (int64_t j = 0; j < seen; j++) {
        h->p[j] = h->scale * multiply(q, h->k + j * h->pitch, h->width);
        h->change[j] = multiply(dy, h->v + j * h->v_pitch, h->v_width);
        most = rondo__maximum(h->p[j], most);
    }
    for (int64_t j = 0; j < seen; j++) {
        h->p[j] = exp(h->p[j] - most);
        sum += h->p[j];
    }
    for (int64_t j = 0; j < seen; j++) {
        h->p[j] /= sum;
        mean += h->p[j] * h->change[j];
    }
    for (int64_t j = 0; j < seen; j++) {
        const double share = h->scale * h->p[j] * (h->change[j] - mean);
        add(h->p[j], dy, h->dv + j * h->v_pitch, h->v_width);
        add(share, h->k + j * h->pitch, h->dq + row * h->pitch, h->width);
        add(share, q, h->dk + j * h->pitch, h->width);
    }
}

// Rows of all three, one behind the other.
static rondo_status narrow_joined(rondo__compute *compute, rondo__scratch *s, const head *h,
                                  int64_t rows) {
    const int64_t all = 2 * h->pitch + h->v_pitch;
    double *joined = rondo__scratch_create(s, rows * all);
    for (int64_t i = 0; joined != NULL && i < rows; i++) {
        memcpy(joined + i * all, h->dq + i * h->pitch, (size_t)h->pitch * sizeof *joined);
        memcpy(joined + i * all + h->pitch, h->dk + i * h->pitch,
               (size_t)h->pitch * sizeof *joined);
        memcpy(joined + i * all + 2 * h->pitch, h->dv + i * h->v_pitch,
               (size_t)h->v_pitch * sizeof *joined);
    }
    return joined != NULL ? rondo__narrow(compute, 0, joined) : s->status;
}

static rondo_status compute_gradient(rondo__compute *compute) {
    const rondo_shape *q = &compute->inputs[1]->shape, *k = &compute->inputs[2]->shape;
    const rondo_shape *v = &compute->inputs[3]->shape;
    const int64_t heads = rondo__op_get_int(compute->op, "num_heads", 1);
    rondo__scratch s = {0};
    const head all = {.dy = rondo__scratch_widen(&s, compute->inputs[0]),
                      .q = rondo__scratch_widen(&s, compute->inputs[1]),
                      .k = rondo__scratch_widen(&s, compute->inputs[2]),
                      .v = rondo__scratch_widen(&s, compute->inputs[3]),
                      .dq = rondo__scratch_create(&s, rondo_shape_get_count(q)),
                      .dk = rondo__scratch_create(&s, rondo_shape_get_count(k)),
                      .dv = rondo__scratch_create(&s, rondo_shape_get_count(v)),
                      .p = rondo__scratch_create(&s, k->extent[1]),
                      .change = rondo__scratch_create(&s, k->extent[1]),
                      .rows = q->extent[1],
                      .keys = k->extent[1],
                      .width = q->extent[2] / heads,
                      .v_width = v->extent[2] / heads,
                      .pitch = q->extent[2],
                      .v_pitch = v->extent[2],
                      .scale = (double)rondo__op_get_float(compute->op, "scale", 1.0f),
                      .is_causal = rondo__op_get_int(compute->op, "is_causal", 0) != 0};
    for (int64_t i = 0; s.status == RONDO_STATUS_OK && i < q->extent[0] * heads; i++) {
        const int64_t batch = i / heads, of = i % heads;
        const int64_t at_q = batch * all.rows * all.pitch + of * all.width;
        const int64_t at_k = batch * all.keys * all.pitch + of * all.width;
        const int64_t at_v = batch * all.keys * all.v_pitch + of * all.v_width;
        head h = all;
        h.q += at_q;
        h.dq += at_q;
        h.k += at_k;
        h.dk += at_k;
        h.v += at_v;
        h.dv += at_v;
        h.dy += batch * all.rows * all.v_pitch + of * all.v_width;
        for (int64_t row = 0; row < h.rows; row++) {
            run_row(&h, row);
        }
    }
    const double *const results[] = {all.dq, all.dk, all.dv};
    if (s.status == RONDO_STATUS_OK && is_joined(compute->op)) {
        s.status = narrow_joined(compute, &s, &all, q->extent[0] * q->extent[1]);
        return rondo__scratch_end(&s);
    }
    for (size_t i = 0; s.status == RONDO_STATUS_OK && i < compute->output_count; i++) {
        s.status = rondo__narrow(compute, i, results[i]);
    }
    return rondo__scratch_end(&s);
}

const rondo__op_def rondo__op_table_attention_gradient[] = {
    RONDO_OP_ROW(FUSED, AttentionGradient, 1, RONDO_OP_OPSET_MAX, 4, 4, 1, 3,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_gradient, .compute = compute_gradient, .half.kind = HALF_PRODUCT),
    {.name = NULL},
};
