// op/attention/op_linear_attention.c — LinearAttention and CausalConvWithState: what a state
// remembers of all rows before.
//
// Source: ONNX operators LinearAttention and CausalConvWithState, version 27.
// SPDX-License-Identifier: Apache-2.0
#include "op/attention/linear_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/reference.h"

static rondo_status fail_input(const rondo__infer *infer, size_t input, const char *expected) {
    char text[96];
    return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu has shape %s, %s is expected", input,
                         rondo_shape_format(&infer->inputs[input].shape, text, sizeof text),
                         expected);
}

// ---- LinearAttention --------------------------------------------------------------------------

rondo_status rondo__linear_attention_read(const rondo__op *op, const rondo_shape *q,
                                          const rondo_shape *v, const rondo_shape *decay,
                                          const rondo_shape *beta,
                                          rondo__linear_attention *out_form) {
    rondo__linear_attention f = {
        .heads = rondo__op_get_int(op, "q_num_heads", 0),
        .kv_heads = rondo__op_get_int(op, "kv_num_heads", 0),
    };
    if (f.heads < 1 || f.kv_heads < 1 || f.heads % f.kv_heads != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "%lld heads of key and value do not divide %lld of query",
                             (long long)f.kv_heads, (long long)f.heads);
    }
    const char *rule = rondo__op_get_string(op, "update_rule", "gated_delta");
    f.has_decay = strncmp(rule, "gated", 5) == 0;
    f.has_beta = strstr(rule, "delta") != NULL;
    if ((decay != NULL) != f.has_decay || (beta != NULL) != f.has_beta) {
        return RONDO_OP_FAIL(op, BAD_DATA, "update_rule %s takes %s decay and %s beta", rule,
                             f.has_decay ? "a" : "no", f.has_beta ? "a" : "no");
    }
    if (q->rank != 3 || v->rank != 3 || q->extent[2] % f.heads != 0 ||
        v->extent[2] % f.kv_heads != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "query and value are no rows of so many heads");
    }
    f.batch = q->extent[0];
    f.rows = q->extent[1];
    f.width = q->extent[2] / f.heads;
    f.v_width = v->extent[2] / f.kv_heads;
    f.decay_width =
        decay != NULL && decay->rank == 3 && decay->extent[2] != f.kv_heads ? f.width : 1;
    f.has_betas = beta != NULL && beta->rank == 3 && beta->extent[2] != 1;
    const float scale = rondo__op_get_float(op, "scale", 0.0f);
    f.scale = scale != 0.0f ? scale : 1.0f / sqrtf((float)(f.width > 0 ? f.width : 1));
    *out_form = f;
    return RONDO_STATUS_OK;
}

static const rondo_shape *get_shape(const rondo__infer *infer, size_t input) {
    return rondo__infer_has_input(infer, input) ? &infer->inputs[input].shape : NULL;
}

static rondo_status check_rows(const rondo__infer *infer, size_t input,
                               const rondo__linear_attention *f, int64_t width,
                               const char *expected) {
    const rondo_shape shape = {3, {f->batch, f->rows, width}};
    return !rondo__infer_has_input(infer, input) ||
                   rondo_shape_is_equal(&infer->inputs[input].shape, &shape)
               ? RONDO_STATUS_OK
               : fail_input(infer, input, expected);
}

static rondo_status infer_linear(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    rondo__linear_attention f;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    RETURN_IF_ERROR(rondo__linear_attention_read(infer->op, &inputs[0].shape, &inputs[2].shape,
                                                 get_shape(infer, 4), get_shape(infer, 5), &f));
    RETURN_IF_ERROR(check_rows(infer, 1, &f, f.kv_heads * f.width, "as many rows as of query"));
    RETURN_IF_ERROR(check_rows(infer, 2, &f, f.kv_heads * f.v_width, "as many rows as of query"));
    RETURN_IF_ERROR(check_rows(infer, 4, &f, f.kv_heads * f.decay_width,
                               "a decay for each head or each key's element"));
    RETURN_IF_ERROR(
        check_rows(infer, 5, &f, f.has_betas ? f.kv_heads : 1, "one beta, or one for each head"));
    const rondo_shape state = {4, {f.batch, f.kv_heads, f.width, f.v_width}};
    const bool has_past = rondo__infer_has_input(infer, 3);
    if (has_past) {
        RETURN_IF_ERROR(rondo__infer_check_float(infer, 3, 1));
        if (!rondo_shape_is_equal(&inputs[3].shape, &state)) {
            return fail_input(infer, 3, "[batch, kv_num_heads, width of key, width of value]");
        }
    }
    const rondo_shape y = {3, {f.batch, f.rows, f.heads * f.v_width}};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[0].dtype, &y));
    return infer->output_count < 2
               ? RONDO_STATUS_OK
               : rondo__infer_set_output(infer, 1, inputs[has_past ? 3 : 0].dtype, &state);
}

typedef struct linear_arrays {
    const double *q, *k, *v, *decay, *beta;
    double *state, *y, *change;
} linear_arrays;

// One row of one head of k and v: the state forgets, is corrected, and takes in.
static void update(const rondo__linear_attention *f, const linear_arrays *x, int64_t line,
                   int64_t head, double *state) {
    const double *k = x->k + (line * f->kv_heads + head) * f->width;
    const double *v = x->v + (line * f->kv_heads + head) * f->v_width;
    for (int64_t i = 0; f->has_decay && i < f->width; i++) {
        const int64_t at = f->decay_width > 1 ? i : 0;
        const double kept = exp(x->decay[(line * f->kv_heads + head) * f->decay_width + at]);
        for (int64_t j = 0; j < f->v_width; j++) {
            state[i * f->v_width + j] *= kept;
        }
    }
    for (int64_t j = 0; j < f->v_width; j++) {
        double known = 0.0;
        for (int64_t i = 0; f->has_beta && i < f->width; i++) {
            known += state[i * f->v_width + j] * k[i];
        }
        const double beta =
            !f->has_beta ? 1.0 : x->beta[f->has_betas ? line * f->kv_heads + head : line];
        x->change[j] = beta * (v[j] - known);
    }
    for (int64_t i = 0; i < f->width; i++) {
        for (int64_t j = 0; j < f->v_width; j++) {
            state[i * f->v_width + j] += k[i] * x->change[j];
        }
    }
}

static void run_head(const rondo__linear_attention *f, const linear_arrays *x, int64_t batch,
                     int64_t head) {
    const int64_t group = f->heads / f->kv_heads;
    double *state = x->state + (batch * f->kv_heads + head) * f->width * f->v_width;
    for (int64_t line = batch * f->rows; line < (batch + 1) * f->rows; line++) {
        update(f, x, line, head, state);
        for (int64_t h = head * group; h < (head + 1) * group; h++) {
            const double *q = x->q + (line * f->heads + h) * f->width;
            for (int64_t j = 0; j < f->v_width; j++) {
                double sum = 0.0;
                for (int64_t i = 0; i < f->width; i++) {
                    sum += q[i] * state[i * f->v_width + j];
                }
                x->y[(line * f->heads + h) * f->v_width + j] = (double)f->scale * sum;
            }
        }
    }
}

static rondo_status compute_linear(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    const rondo_tensor *past = rondo__compute_get_input(compute, 3);
    const rondo_tensor *decay = rondo__compute_get_input(compute, 4);
    const rondo_tensor *beta = rondo__compute_get_input(compute, 5);
    rondo__linear_attention f;
    RETURN_IF_ERROR(rondo__linear_attention_read(compute->op, &inputs[0]->shape, &inputs[2]->shape,
                                                 decay != NULL ? &decay->shape : NULL,
                                                 beta != NULL ? &beta->shape : NULL, &f));
    rondo__scratch scratch = {0};
    const int64_t state_count = f.batch * f.kv_heads * f.width * f.v_width;
    linear_arrays x = {
        .q = rondo__scratch_widen(&scratch, inputs[0]),
        .k = rondo__scratch_widen(&scratch, inputs[1]),
        .v = rondo__scratch_widen(&scratch, inputs[2]),
        .decay = rondo__scratch_widen(&scratch, decay),
        .beta = rondo__scratch_widen(&scratch, beta),
        .state = past != NULL ? rondo__scratch_widen(&scratch, past)
                              : rondo__scratch_create(&scratch, state_count),
        .y = rondo__scratch_create(&scratch, f.batch * f.rows * f.heads * f.v_width),
        .change = rondo__scratch_create(&scratch, f.v_width),
    };
    for (int64_t i = 0; scratch.status == RONDO_STATUS_OK && i < f.batch * f.kv_heads; i++) {
        run_head(&f, &x, i / f.kv_heads, i % f.kv_heads);
    }
    const double *outputs[2] = {x.y, x.state};
    for (size_t i = 0; scratch.status == RONDO_STATUS_OK && i < compute->output_count; i++) {
        scratch.status = rondo__narrow(compute, i, outputs[i]);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status check_linear(const rondo__op *op) {
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    const char *rule = rondo__op_get_string(op, "update_rule", "gated_delta");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(rule, rules[i]) == 0) {
            return RONDO_STATUS_OK;
        }
    }
    char detail[96];
    (void)snprintf(detail, sizeof detail, "attribute update_rule=%.60s", rule);
    return rondo__op_fail_unsupported(op, detail);
}

// ---- CausalConvWithState ----------------------------------------------------------------------

static rondo_status infer_causal(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *x = &inputs[0].shape, *w = &inputs[1].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 4));
    if (x->rank != 3) {
        return fail_input(infer, 0, "[batch, channels, length]");
    }
    if (w->rank != 3 || w->extent[0] != x->extent[1] || w->extent[1] != 1 || w->extent[2] < 1) {
        return fail_input(infer, 1, "[channels, 1, at least 1]");
    }
    const rondo_shape channels = {1, {x->extent[1]}};
    const rondo_shape state = {3, {x->extent[0], x->extent[1], w->extent[2] - 1}};
    if (rondo__infer_has_input(infer, 2) && !rondo_shape_is_equal(&inputs[2].shape, &channels)) {
        return fail_input(infer, 2, "[channels]");
    }
    if (rondo__infer_has_input(infer, 3) && !rondo_shape_is_equal(&inputs[3].shape, &state)) {
        return fail_input(infer, 3, "[batch, channels, kernel - 1]");
    }
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, inputs[0].dtype, x));
    return infer->output_count < 2 ? RONDO_STATUS_OK
                                   : rondo__infer_set_output(infer, 1, inputs[0].dtype, &state);
}

static rondo_status compute_causal(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    const rondo_shape *shape = &inputs[0]->shape;
    const int64_t lines = shape->extent[0] * shape->extent[1], length = shape->extent[2];
    const int64_t taps = inputs[1]->shape.extent[2], kept = taps - 1;
    const bool has_silu =
        strcmp(rondo__op_get_string(compute->op, "activation", "none"), "none") != 0;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *w = rondo__scratch_widen(&scratch, inputs[1]);
    const double *bias = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 2));
    const double *past = rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, 3));
    double *y = rondo__scratch_create(&scratch, lines * length);
    double *present = rondo__scratch_create(&scratch, lines * kept);
    double *row = rondo__scratch_create(&scratch, kept + length);
    for (int64_t line = 0; scratch.status == RONDO_STATUS_OK && line < lines; line++) {
        const int64_t channel = line % shape->extent[1];
        for (int64_t i = 0; i < kept + length; i++) {
            const double before = past != NULL && i < kept ? past[line * kept + i] : 0.0;
            row[i] = i < kept ? before : x[line * length + i - kept];
        }
        for (int64_t i = 0; i < length; i++) {
            double sum = bias != NULL ? bias[channel] : 0.0;
            for (int64_t t = 0; t < taps; t++) {
                sum += row[i + t] * w[channel * taps + t];
            }
            y[line * length + i] = has_silu ? sum / (1.0 + exp(-sum)) : sum;
        }
        for (int64_t i = 0; i < kept; i++) {
            present[line * kept + i] = row[length + i];
        }
    }
    const double *outputs[2] = {y, present};
    for (size_t i = 0; scratch.status == RONDO_STATUS_OK && i < compute->output_count; i++) {
        scratch.status = rondo__narrow(compute, i, outputs[i]);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status check_causal(const rondo__op *op) {
    const char *name = rondo__op_get_string(op, "activation", "none");
    if (strcmp(name, "none") == 0 || strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0) {
        return RONDO_STATUS_OK;
    }
    char detail[96];
    (void)snprintf(detail, sizeof detail, "attribute activation=%.60s", name);
    return rondo__op_fail_unsupported(op, detail);
}

static const char *const linear_attributes[] = {"chunk_size", "kv_num_heads", "q_num_heads",
                                                "scale",      "update_rule",  NULL};
static const char *const causal_attributes[] = {"activation", NULL};

const rondo__op_def rondo__op_table_linear_attention[] = {
    RONDO_OP_ROW(OP, LinearAttention, 27, 28, 3, 6, 1, 2, .capture = RONDO__CAPTURE_YES,
                 .attributes = linear_attributes, .infer = infer_linear, .compute = compute_linear,
                 .check = check_linear),
    RONDO_OP_ROW(OP, CausalConvWithState, 27, 28, 2, 4, 1, 2, .capture = RONDO__CAPTURE_YES,
                 .attributes = causal_attributes, .infer = infer_causal, .compute = compute_causal,
                 .check = check_causal),
    {.name = NULL},
};
