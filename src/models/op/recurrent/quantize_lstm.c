// op/recurrent/quantize_lstm.c — see quantize_lstm.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/recurrent/quantize_lstm.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/support.h"

// ---- the plan ---------------------------------------------------------------------------------

static bool has(const rondo__tensor_info *inputs, size_t count, size_t input) {
    return input < count && inputs[input].dtype != RONDO_DTYPE_NONE;
}

// Only the usual functions are known: Sigmoid, Tanh, Tanh.
static rondo_status check_activations(const rondo__op *op) {
    static const char *const usual[] = {"Sigmoid", "Tanh", "Tanh"};
    const rondo__attribute *names = rondo__op_find(op, "activations");
    for (size_t i = 0; names != NULL && i < names->count; ++i) {
        if (names->kind != RONDO__ATTRIBUTE_STRINGS ||
            strcasecmp(names->strings[i], usual[i % 3]) != 0) {
            return rondo__op_fail_unsupported(op, "attribute activations");
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_direction(const rondo__op *op, rondo__quantize_lstm *plan) {
    const char *direction = rondo__op_get_string(op, "direction", "forward");
    plan->directions = 1;
    if (strcmp(direction, "bidirectional") == 0) {
        plan->directions = 2;
        plan->is_reverse[1] = true;
    } else if (strcmp(direction, "reverse") == 0) {
        plan->is_reverse[0] = true;
    } else if (strcmp(direction, "forward") != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute direction is \"%.40s\", which is unknown",
                             direction);
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_shape(const rondo__op *op, const rondo__tensor_info *inputs, size_t input,
                                int32_t rank, const int64_t *extents) {
    const rondo_shape *shape = &inputs[input].shape;
    bool fits = shape->rank == rank;
    for (int32_t d = 0; fits && d < rank; ++d) {
        fits = shape->extent[d] == extents[d];
    }
    if (!fits) {
        rondo_shape expected = {.rank = rank};
        char have[96];
        char want[96];
        memcpy(expected.extent, extents, (size_t)rank * sizeof *extents);
        return RONDO_OP_FAIL(op, BAD_DATA, "input %zu has shape %s, %s is expected", input,
                             rondo_shape_format(shape, have, sizeof have),
                             rondo_shape_format(&expected, want, sizeof want));
    }
    return RONDO_STATUS_OK;
}

// Weights and what stands beside them: a scale and a zero point for each direction, or each column.
static rondo_status check_weights(const rondo__op *op, const rondo__tensor_info *inputs,
                                  size_t count, size_t weights, size_t scale, int64_t depth,
                                  const rondo__quantize_lstm *plan, bool *out_is_for_each) {
    const int64_t columns = 4 * plan->hidden;
    rondo_dtype dtype = inputs[weights].dtype;
    if (dtype != RONDO_DTYPE_I8 && dtype != RONDO_DTYPE_U8) {
        return rondo__op_fail_dtype(op, weights, dtype);
    }
    RETURN_IF_ERROR(
        check_shape(op, inputs, weights, 3, (int64_t[]){plan->directions, depth, columns}));
    if (!has(inputs, count, scale) || inputs[scale].dtype != RONDO_DTYPE_F32) {
        return has(inputs, count, scale)
                   ? rondo__op_fail_dtype(op, scale, inputs[scale].dtype)
                   : RONDO_OP_FAIL(op, BAD_DATA, "input %zu is missing; it is required", scale);
    }
    *out_is_for_each = inputs[scale].shape.rank == 2;
    for (size_t i = scale; i <= scale + 1; ++i) {  // the zero point follows the scale
        if (!has(inputs, count, i)) {
            continue;
        }
        RETURN_IF_ERROR(check_shape(op, inputs, i, *out_is_for_each ? 2 : 1,
                                    (int64_t[]){plan->directions, columns}));
        if (i > scale && inputs[i].dtype != dtype) {
            return rondo__op_fail_dtype(op, i, inputs[i].dtype);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_optional(const rondo__op *op, const rondo__tensor_info *inputs,
                                   size_t count, const rondo__quantize_lstm *plan) {
    const int64_t directions = plan->directions;
    const struct {
        size_t input;
        rondo_dtype dtype;
        int32_t rank;
        int64_t extents[3];
    } rows[] = {
        {RONDO__QLSTM_B, RONDO_DTYPE_F32, 2, {directions, 8 * plan->hidden}},
        {RONDO__QLSTM_LENGTHS, RONDO_DTYPE_I32, 1, {plan->batch}},
        {RONDO__QLSTM_INITIAL_H, RONDO_DTYPE_F32, 3, {directions, plan->batch, plan->hidden}},
        {RONDO__QLSTM_INITIAL_C, RONDO_DTYPE_F32, 3, {directions, plan->batch, plan->hidden}},
        {RONDO__QLSTM_P, RONDO_DTYPE_F32, 2, {directions, 3 * plan->hidden}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (!has(inputs, count, rows[i].input)) {
            continue;
        }
        if (inputs[rows[i].input].dtype != rows[i].dtype) {
            return rondo__op_fail_dtype(op, rows[i].input, inputs[rows[i].input].dtype);
        }
        RETURN_IF_ERROR(check_shape(op, inputs, rows[i].input, rows[i].rank, rows[i].extents));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__quantize_lstm_plan(const rondo__op *op, const rondo__tensor_info *inputs,
                                       size_t input_count, rondo__quantize_lstm *out_plan) {
    enum { EXTENT_MAX = 1 << 24 };  // sums of products fit 32 bits with far less
    rondo__quantize_lstm plan = {0};
    const rondo_shape *x = &inputs[RONDO__QLSTM_X].shape;
    const rondo_shape *r = &inputs[RONDO__QLSTM_R].shape;
    RETURN_IF_ERROR(check_activations(op));
    RETURN_IF_ERROR(read_direction(op, &plan));
    if (inputs[RONDO__QLSTM_X].dtype != RONDO_DTYPE_F32) {
        return rondo__op_fail_dtype(op, RONDO__QLSTM_X, inputs[RONDO__QLSTM_X].dtype);
    }
    if (x->rank != 3 || r->rank != 3 || x->extent[2] > EXTENT_MAX || r->extent[1] > EXTENT_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs X and R must have rank 3, not %d and %d",
                             x->rank, r->rank);
    }
    plan.seq = x->extent[0];
    plan.batch = x->extent[1];
    plan.input = x->extent[2];
    plan.hidden = r->extent[1];
    plan.has_coupled_gates = rondo__op_get_int(op, "input_forget", 0) != 0;
    // 0 stands for no limit, as in ONNX Runtime.
    float clip = rondo__op_get_float(op, "clip", 0.0f);
    plan.clip = clip > 0.0f ? clip : INFINITY;
    if (rondo__op_get_int(op, "hidden_size", plan.hidden) != plan.hidden) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute hidden_size is %lld, input R has %lld",
                             (long long)rondo__op_get_int(op, "hidden_size", 0),
                             (long long)plan.hidden);
    }
    RETURN_IF_ERROR(check_weights(op, inputs, input_count, RONDO__QLSTM_W, RONDO__QLSTM_W_SCALE,
                                  plan.input, &plan, &plan.has_scale_for_each[0]));
    RETURN_IF_ERROR(check_weights(op, inputs, input_count, RONDO__QLSTM_R, RONDO__QLSTM_R_SCALE,
                                  plan.hidden, &plan, &plan.has_scale_for_each[1]));
    RETURN_IF_ERROR(check_optional(op, inputs, input_count, &plan));
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

// ---- weights ----------------------------------------------------------------------------------

void rondo__quantize_lstm_unpack(const rondo__quantize_lstm *plan, const rondo_tensor *weights,
                                 const rondo_tensor *zero_point, int16_t *out_columns) {
    const int64_t depth = weights->shape.extent[1];
    const int64_t columns = 4 * plan->hidden;
    for (int64_t d = 0; d < plan->directions; ++d) {
        for (int64_t n = 0; n < columns; ++n) {
            int64_t zero = 0;
            if (zero_point != NULL) {
                zero = rondo__tensor_get_int(zero_point,
                                             zero_point->shape.rank == 2 ? d * columns + n : d);
            }
            int16_t *to = out_columns + (d * columns + n) * depth;
            for (int64_t k = 0; k < depth; ++k) {
                to[k] =
                    (int16_t)(rondo__tensor_get_int(weights, (d * depth + k) * columns + n) - zero);
            }
        }
    }
}

// ---- one product ------------------------------------------------------------------------------

// Brings values to steps of u8, less the step of 0; the size of a step is the result.
static float quantize(const float *values, int64_t count, int16_t *steps) {
    float low = 0.0f;
    float high = 0.0f;
    for (int64_t i = 0; i < count; ++i) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const float zero = rintf(fminf(fmaxf(-low / scale, 0.0f), 255.0f));
    for (int64_t i = 0; i < count; ++i) {
        const float step = fminf(fmaxf(rintf(values[i] / scale) + zero, 0.0f), 255.0f);
        steps[i] = (int16_t)(step - zero);
    }
    return scale;
}

// The operands of one of the two products.
typedef struct product {
    const int16_t *columns;  // of this direction
    const float *scales;
    bool has_scale_for_each;
    int64_t depth;
} product;

static int32_t sum_products(const int16_t *a, const int16_t *b, int64_t count) {
    uint32_t sum = 0;  // wraps, as a sum of vectors does
    for (int64_t i = 0; i < count; ++i) {
        sum += (uint32_t)((int32_t)a[i] * b[i]);
    }
    return (int32_t)sum;
}

// gates[rows][columns] (+)= x [rows, depth] x weights, on quantized values.
static void multiply(const product *p, const float *x, int64_t rows, int64_t columns,
                     bool accumulates, int16_t *steps, float *gates) {
    const float scale = quantize(x, rows * p->depth, steps);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t n = 0; n < columns; ++n) {
            const int32_t sum =
                sum_products(steps + row * p->depth, p->columns + n * p->depth, p->depth);
            const float value = (float)sum * (scale * p->scales[p->has_scale_for_each ? n : 0]);
            gates[row * columns + n] = accumulates ? gates[row * columns + n] + value : value;
        }
    }
}

// ---- the gates --------------------------------------------------------------------------------

static float limit(float x, float clip) {
    return x > clip ? clip : x < -clip ? -clip : x;
}

static float sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

// One step of one row: gates are the products, b both halves of the biases, p the peepholes.
static void finish_row(const rondo__quantize_lstm *plan, const float *gates, const float *b,
                       const float *p, float *h, float *c) {
    const int64_t hidden = plan->hidden;
    const float clip = plan->clip;
    for (int64_t i = 0; i < hidden; ++i) {
        float parts[4];
        for (int64_t g = 0; g < 4; ++g) {
            const int64_t at = g * hidden + i;
            parts[g] = gates[at] + (b != NULL ? b[at] + b[4 * hidden + at] : 0.0f);
        }
        parts[0] += p != NULL ? p[i] * c[i] : 0.0f;
        parts[2] += p != NULL ? p[2 * hidden + i] * c[i] : 0.0f;
        const float in = sigmoid(limit(parts[0], clip));
        const float forget = plan->has_coupled_gates ? 1.0f - in : sigmoid(limit(parts[2], clip));
        c[i] = forget * c[i] + in * tanhf(limit(parts[3], clip));
        parts[1] += p != NULL ? p[hidden + i] * c[i] : 0.0f;
        h[i] = sigmoid(limit(parts[1], clip)) * tanhf(c[i]);
    }
}

// ---- the walk ---------------------------------------------------------------------------------

// Work of one direction, in this order.
typedef struct walk {
    float *from_x;   // [seq * batch, 4 * hidden]
    float *gates;    // [batch, 4 * hidden]
    float *h;        // [batch, hidden]
    float *c;        // [batch, hidden]
    int16_t *steps;  // of the larger of x and h
} walk;

static size_t align(size_t bytes) {
    return rondo__align_up(bytes, 64);
}

static size_t measure_work(const rondo__quantize_lstm *plan, size_t out_offsets[5]) {
    const size_t row = 4 * (size_t)plan->hidden * sizeof(float);
    const size_t state = (size_t)(plan->batch * plan->hidden);
    const size_t x = (size_t)(plan->seq * plan->batch * plan->input);
    const size_t sizes[5] = {(size_t)(plan->seq * plan->batch) * row, (size_t)plan->batch * row,
                             state * sizeof(float), state * sizeof(float),
                             (x > state ? x : state) * sizeof(int16_t)};
    size_t total = 0;
    for (int i = 0; i < 5; ++i) {
        out_offsets[i] = total;
        total += align(sizes[i]);
    }
    return total;
}

size_t rondo__quantize_lstm_get_work_bytes(const rondo__quantize_lstm *plan) {
    size_t offsets[5];
    return measure_work(plan, offsets);
}

static int64_t get_length(const rondo__quantize_lstm *plan, const int32_t *lengths, int64_t n) {
    return lengths != NULL ? lengths[n] : plan->seq;
}

static int64_t get_longest(const rondo__quantize_lstm *plan, const int32_t *lengths) {
    int64_t longest = lengths != NULL ? 0 : plan->seq;
    for (int64_t n = 0; lengths != NULL && n < plan->batch; ++n) {
        longest = lengths[n] > longest ? lengths[n] : longest;
    }
    return longest;
}

static void run_direction(const rondo__quantize_lstm *plan, int32_t d, const product *x_product,
                          const product *h_product, const void *const *inputs, void *const *outputs,
                          const walk *w) {
    const int64_t hidden = plan->hidden;
    const int64_t columns = 4 * hidden;
    const int64_t state = plan->batch * hidden;
    const int32_t *lengths = inputs[RONDO__QLSTM_LENGTHS];
    const float *b = inputs[RONDO__QLSTM_B];
    const float *p = inputs[RONDO__QLSTM_P];
    const float *initial[2] = {inputs[RONDO__QLSTM_INITIAL_H], inputs[RONDO__QLSTM_INITIAL_C]};
    float *const states[2] = {w->h, w->c};
    for (int i = 0; i < 2; ++i) {
        memset(states[i], 0, (size_t)state * sizeof(float));
        if (initial[i] != NULL) {
            memcpy(states[i], initial[i] + d * state, (size_t)state * sizeof(float));
        }
    }
    // Steps that no sequence reaches have no say in the scale.
    multiply(x_product, inputs[RONDO__QLSTM_X], get_longest(plan, lengths) * plan->batch, columns,
             false, w->steps, w->from_x);
    for (int64_t i = 0; i < get_longest(plan, lengths); ++i) {
        // Sequences of several lengths end, and when reversed begin, at different positions.
        for (int64_t n = 0; n < plan->batch; ++n) {
            const int64_t length = get_length(plan, lengths, n);
            const int64_t t = plan->is_reverse[d] && i < length ? length - 1 - i : i;
            memcpy(w->gates + n * columns, w->from_x + (t * plan->batch + n) * columns,
                   (size_t)columns * sizeof(float));
        }
        multiply(h_product, w->h, plan->batch, columns, true, w->steps, w->gates);
        for (int64_t n = 0; n < plan->batch; ++n) {
            const int64_t length = get_length(plan, lengths, n);
            const int64_t t = plan->is_reverse[d] ? length - 1 - i : i;
            if (i >= length) {
                continue;
            }
            finish_row(plan, w->gates + n * columns, b != NULL ? b + d * 2 * columns : NULL,
                       p != NULL ? p + d * 3 * hidden : NULL, w->h + n * hidden, w->c + n * hidden);
            if (outputs[0] != NULL) {
                memcpy(
                    (float *)outputs[0] + ((t * plan->directions + d) * plan->batch + n) * hidden,
                    w->h + n * hidden, (size_t)hidden * sizeof(float));
            }
        }
    }
    for (int i = 0; i < 2; ++i) {
        if (outputs[1 + i] != NULL) {
            memcpy((float *)outputs[1 + i] + d * state, states[i], (size_t)state * sizeof(float));
        }
    }
}

rondo_status rondo__quantize_lstm_check_lengths(const rondo__op *op,
                                                const rondo__quantize_lstm *plan,
                                                const int32_t *lengths) {
    for (int64_t n = 0; lengths != NULL && n < plan->batch; ++n) {
        if (lengths[n] < 0 || lengths[n] > plan->seq) {
            return RONDO_OP_FAIL(op, BAD_DATA, "sequence_lens[%lld] is %d, the sequence has %lld",
                                 (long long)n, lengths[n], (long long)plan->seq);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__quantize_lstm_run(const rondo__op *op, const rondo__quantize_lstm *plan,
                                      const int16_t *w, const int16_t *r, const void *const *inputs,
                                      void *const *outputs, void *work) {
    const int64_t columns = 4 * plan->hidden;
    const int32_t *lengths = inputs[RONDO__QLSTM_LENGTHS];
    const float *w_scale = inputs[RONDO__QLSTM_W_SCALE];
    const float *r_scale = inputs[RONDO__QLSTM_R_SCALE];
    size_t offsets[5];
    (void)measure_work(plan, offsets);
    RETURN_IF_ERROR(rondo__quantize_lstm_check_lengths(op, plan, lengths));
    const walk places = {
        .from_x = (float *)(void *)((char *)work + offsets[0]),
        .gates = (float *)(void *)((char *)work + offsets[1]),
        .h = (float *)(void *)((char *)work + offsets[2]),
        .c = (float *)(void *)((char *)work + offsets[3]),
        .steps = (int16_t *)(void *)((char *)work + offsets[4]),
    };
    if (outputs[0] != NULL && lengths != NULL) {
        // Behind the end of a shorter sequence stand zeros.
        memset(outputs[0], 0,
               (size_t)(plan->seq * plan->directions * plan->batch * plan->hidden) * sizeof(float));
    }
    for (int32_t d = 0; d < plan->directions; ++d) {
        const bool *each = plan->has_scale_for_each;
        const product x_product = {w + d * columns * plan->input,
                                   w_scale + d * (each[0] ? columns : 1), each[0], plan->input};
        const product h_product = {r + d * columns * plan->hidden,
                                   r_scale + d * (each[1] ? columns : 1), each[1], plan->hidden};
        run_direction(plan, d, &x_product, &h_product, inputs, outputs, &places);
    }
    return RONDO_STATUS_OK;
}
