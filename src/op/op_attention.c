// op/op_attention.c — rondo.Attention; see attention.h.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "op/attention.h"
#include "op/reference.h"

// ---- shapes -----------------------------------------------------------------------------------

typedef struct operand {
    int64_t batch, heads, rows, width;
} operand;

// Extents and strides of a tensor in a layout. False when it has not that rank.
static bool read_operand(const rondo_shape *shape, int64_t layout, operand *out_operand,
                         rondo__attention_strides *out_strides) {
    const bool is_split = layout == RONDO__ATTENTION_SPLIT;
    const bool is_turned = layout == RONDO__ATTENTION_TURNED;
    const int32_t rank = shape->rank;
    if (layout < 0 || layout > RONDO__ATTENTION_TURNED || rank > 4 || rank < (is_split ? 4 : 3)) {
        return false;
    }
    const int64_t *extent = shape->extent + (rank - 3);  // of the last three
    const operand o = {
        .batch = rank == 4 ? shape->extent[0] : 1,
        .heads = extent[is_split ? 1 : 0],
        .rows = extent[is_split    ? 0
                       : is_turned ? 2
                                   : 1],
        .width = extent[is_turned ? 1 : 2],
    };
    *out_operand = o;
    *out_strides = (rondo__attention_strides){
        .batch = o.heads * o.rows * o.width,
        .head = is_split ? o.width : o.rows * o.width,
        .row = is_split    ? o.heads * o.width
               : is_turned ? 1
                           : o.width,
        .column = is_turned ? o.rows : 1,
    };
    return true;
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
    *out_strides = (rondo__attention_strides){strides[0], strides[1], strides[2], strides[3]};
    return true;
}

rondo_status rondo__attention_init(const rondo__op *op, const rondo_shape *q, const rondo_shape *k,
                                   const rondo_shape *v, const rondo_shape *mask,
                                   rondo__attention *out_attention) {
    static const int64_t rows[4] = {0};
    size_t count = 0;
    const int64_t *layouts = rondo__op_get_ints(op, "layouts", &count);
    layouts = count == 4 ? layouts : rows;
    rondo__attention a = {.scale = rondo__op_get_float(op, "scale", 1.0f)};
    operand oq, ok, ov, oy;
    if (!read_operand(q, layouts[0], &oq, &a.q) || !read_operand(k, layouts[1], &ok, &a.k) ||
        !read_operand(v, layouts[2], &ov, &a.v) || oq.batch != ok.batch || oq.batch != ov.batch ||
        oq.heads != ok.heads || oq.heads != ov.heads || oq.width != ok.width ||
        ok.rows != ov.rows || oq.width > RONDO__ATTENTION_WIDTH_MAX ||
        ov.width > RONDO__ATTENTION_WIDTH_MAX || oq.heads > RONDO__ATTENTION_COUNT_MAX ||
        oq.batch > RONDO__ATTENTION_COUNT_MAX) {
        char texts[3][96];
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs have shapes %s, %s and %s, which do not fit",
                             rondo_shape_format(q, texts[0], sizeof texts[0]),
                             rondo_shape_format(k, texts[1], sizeof texts[1]),
                             rondo_shape_format(v, texts[2], sizeof texts[2]));
    }
    a.batch = oq.batch;
    a.heads = oq.heads;
    a.m = oq.rows;
    a.n = ok.rows;
    a.width = oq.width;
    a.v_width = ov.width;
    const int64_t extents[4] = {a.batch, a.heads, a.m, a.n};
    if (mask != NULL && !read_mask(mask, extents, &a.mask)) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "mask has shape %s, the scores have [%lld, %lld, %lld, %lld]",
                             rondo_shape_format(mask, text, sizeof text), (long long)a.batch,
                             (long long)a.heads, (long long)a.m, (long long)a.n);
    }
    const bool is_split = layouts[3] == RONDO__ATTENTION_SPLIT;
    a.output = (rondo_shape){
        .rank = 4,
        .extent = {a.batch, is_split ? a.m : a.heads, is_split ? a.heads : a.m, a.v_width}};
    if (!is_split && q->rank == 3) {
        a.output = (rondo_shape){.rank = 3, .extent = {a.heads, a.m, a.v_width}};
    }
    if (layouts[3] == RONDO__ATTENTION_TURNED || !read_operand(&a.output, layouts[3], &oy, &a.y)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute layouts[3] is %lld, which y cannot have",
                             (long long)layouts[3]);
    }
    *out_attention = a;
    return RONDO_STATUS_OK;
}

static rondo_status infer_attention(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 4));
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__attention attention;
    RETURN_IF_ERROR(rondo__attention_init(
        infer->op, &inputs[0].shape, &inputs[1].shape, &inputs[2].shape,
        rondo__infer_has_input(infer, 3) ? &inputs[3].shape : NULL, &attention));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &attention.output);
}

// ---- the reference ----------------------------------------------------------------------------

typedef struct arrays {
    const double *q, *k, *v, *mask;
    double *y;
    double *scores;  // of one row
} arrays;

static int64_t find(const rondo__attention_strides *strides, int64_t batch, int64_t head,
                    int64_t row) {
    return batch * strides->batch + head * strides->head + row * strides->row;
}

static void run_row(const rondo__attention *a, const arrays *x, int64_t batch, int64_t head,
                    int64_t row) {
    const double *q = x->q + find(&a->q, batch, head, row);
    double peak = -(double)INFINITY;
    double sum = 0.0;
    for (int64_t j = 0; j < a->n; j++) {
        const double *k = x->k + find(&a->k, batch, head, j);
        double score = 0.0;
        for (int64_t i = 0; i < a->width; i++) {
            score += q[i * a->q.column] * k[i * a->k.column];
        }
        score *= (double)a->scale;
        if (x->mask != NULL) {
            score += x->mask[find(&a->mask, batch, head, row) + j * a->mask.column];
        }
        x->scores[j] = score;
        peak = score > peak ? score : peak;
    }
    for (int64_t j = 0; j < a->n; j++) {
        x->scores[j] = exp(x->scores[j] - peak);
        sum += x->scores[j];
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
        .y = rondo__scratch_create(&scratch, rondo_shape_get_count(&a.output)),
        .scores = rondo__scratch_create(&scratch, a.n),
    };
    for (int64_t row = 0; scratch.status == RONDO_STATUS_OK && row < a.batch * a.heads * a.m;
         row++) {
        run_row(&a, &x, row / a.m / a.heads, row / a.m % a.heads, row % a.m);
    }
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = rondo__narrow(compute, 0, x.y);
    }
    return rondo__scratch_end(&scratch);
}

const rondo__op_def rondo__op_table_attention[] = {
    {
        .domain = "rondo",
        .name = "Attention",
        .opset_min = 1,
        .opset_max = RONDO_OP_OPSET_MAX,
        .input_min = 3,
        .input_max = 4,
        .output_min = 1,
        .output_max = 1,
        .flags = RONDO__OP_INTERNAL,
        .capture = RONDO__CAPTURE_YES,
        .infer = infer_attention,
        .compute = compute_attention,
    },
    {.name = NULL},
};
