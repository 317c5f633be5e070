// op/recurrent/op_recurrent.c — RNN, GRU and LSTM.
//
// One walk over time serves the three; they differ in the number of gates (1, 3, 4) and in the
// function that turns gates and state into the next state. Inputs and outputs are brought to the
// order [seq][direction][batch] when they are read and written, so that layout 1 costs two index
// functions and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>
#include <strings.h>

#include "op/op.h"
#include "op/recurrent/recurrent.h"
#include "op/reference.h"

typedef enum cell_kind { CELL_RNN, CELL_GRU, CELL_LSTM } cell_kind;

enum { DIRECTION_MAX = 2 };

// ---- activations ------------------------------------------------------------------------------

static double apply(const rondo__recurrent_function *function, double x) {
    switch (function->kind) {
        case RONDO__RECURRENT_Sigmoid:
            return 1.0 / (1.0 + exp(-x));
        case RONDO__RECURRENT_Tanh:
            return tanh(x);
        case RONDO__RECURRENT_Relu:
            return x < 0.0 ? 0.0 : x;
        case RONDO__RECURRENT_Affine:
            return function->alpha * x + function->beta;
        case RONDO__RECURRENT_LeakyRelu:
            return x < 0.0 ? function->alpha * x : x;
        case RONDO__RECURRENT_ThresholdedRelu:
            return x > function->alpha ? x : 0.0;
        case RONDO__RECURRENT_ScaledTanh:
            return function->alpha * tanh(function->beta * x);
        case RONDO__RECURRENT_HardSigmoid: {
            const double value = function->alpha * x + function->beta;
            return value < 0.0 ? 0.0 : value > 1.0 ? 1.0 : value;
        }
        case RONDO__RECURRENT_Elu:
            return x < 0.0 ? function->alpha * expm1(x) : x;
        case RONDO__RECURRENT_Softsign:
            return x / (1.0 + fabs(x));
        case RONDO__RECURRENT_Softplus:
            return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
        case RONDO__RECURRENT_COUNT:
            break;
    }
    return x;
}

// ---- the plan ---------------------------------------------------------------------------------

typedef struct recurrence {
    cell_kind kind;
    int64_t seq, batch, input, hidden;
    int64_t gates;
    int64_t directions;
    bool is_reverse[DIRECTION_MAX];
    bool is_batch_first;  // layout 1
    bool has_coupled_gates;
    bool is_linear_before_reset;
    double clip;  // infinite when absent
    rondo__recurrent_function functions[DIRECTION_MAX][3];
    rondo_shape y;        // output Y
    rondo_shape y_state;  // outputs Y_h and Y_c
} recurrence;

static cell_kind get_kind(const rondo__op *op) {
    switch (op->def->id) {
        case RONDO__OP_LSTM:
            return CELL_LSTM;
        case RONDO__OP_GRU:
            return CELL_GRU;
        default:
            return CELL_RNN;
    }
}

rondo_status rondo__recurrent_read_functions(const rondo__op *op, int64_t directions,
                                             rondo__recurrent_function (*out_functions)[3]) {
    const cell_kind cell = get_kind(op);
    static const rondo__recurrent_kind defaults[3][3] = {
        [CELL_RNN] = {RONDO__RECURRENT_Tanh},
        [CELL_GRU] = {RONDO__RECURRENT_Sigmoid, RONDO__RECURRENT_Tanh},
        [CELL_LSTM] = {RONDO__RECURRENT_Sigmoid, RONDO__RECURRENT_Tanh, RONDO__RECURRENT_Tanh},
    };
    static const struct {
        const char *name;
        double alpha, beta;
        int parameters;
    } known[] = {
#define ACTIVATION_ROW(name, alpha, beta, parameters) {#name, alpha, beta, parameters},
        RONDO_RECURRENT_FUNCTION_MAP(ACTIVATION_ROW)
#undef ACTIVATION_ROW
    };
    const size_t each = (size_t)cell + 1;
    const size_t expected = each * (size_t)directions;
    const rondo__attribute *names = rondo__op_find(op, "activations");
    if (names != NULL && (names->kind != RONDO__ATTRIBUTE_STRINGS || names->count != expected)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute activations must list %zu names", expected);
    }
    size_t alpha_count, beta_count;
    const float *alphas = rondo__op_get_floats(op, "activation_alpha", &alpha_count);
    const float *betas = rondo__op_get_floats(op, "activation_beta", &beta_count);
    size_t alphas_used = 0;
    size_t betas_used = 0;
    for (size_t i = 0; i < expected; i++) {
        rondo__recurrent_function *function = &out_functions[i / each][i % each];
        int kind = (int)defaults[cell][i % each];
        if (names != NULL) {
            for (kind = 0; kind < RONDO__RECURRENT_COUNT; kind++) {
                if (strcasecmp(names->strings[i], known[kind].name) == 0) {
                    break;
                }
            }
            if (kind == RONDO__RECURRENT_COUNT) {
                return rondo__op_fail_unsupported(op, "attribute activations");
            }
        }
        function->kind = (rondo__recurrent_kind)kind;
        function->alpha = known[kind].alpha;
        function->beta = known[kind].beta;
        // The lists hold values only for the functions that take them, in order.
        if (known[kind].parameters > 0 && alphas != NULL && alphas_used < alpha_count) {
            function->alpha = (double)alphas[alphas_used++];
        }
        if (known[kind].parameters > 1 && betas != NULL && betas_used < beta_count) {
            function->beta = (double)betas[betas_used++];
        }
    }
    return RONDO_STATUS_OK;
}

bool rondo__recurrent_has_usual_functions(const rondo__op *op) {
    static const char *const lstm[] = {"Sigmoid", "Tanh", "Tanh"};
    static const char *const gru[] = {"Sigmoid", "Tanh"};
    static const char *const rnn[] = {"Tanh"};
    const cell_kind kind = get_kind(op);
    const char *const *usual = kind == CELL_LSTM ? lstm : kind == CELL_GRU ? gru : rnn;
    const size_t each = (size_t)kind + 1;
    const rondo__attribute *names = rondo__op_find(op, "activations");
    if (names == NULL) {
        return true;
    }
    if (names->kind != RONDO__ATTRIBUTE_STRINGS) {
        return false;
    }
    for (size_t i = 0; i < names->count; i++) {
        if (strcasecmp(names->strings[i], usual[i % each]) != 0) {
            return false;
        }
    }
    return true;
}

static rondo_status check_shape(const rondo__op *op, const char *what, const rondo_shape *shape,
                                int32_t rank, const int64_t *extents) {
    bool is_equal = shape->rank == rank;
    for (int32_t i = 0; is_equal && i < rank; i++) {
        is_equal = shape->extent[i] == extents[i];
    }
    if (!is_equal) {
        char text[96];
        char expected_text[96];
        rondo_shape expected = {.rank = rank};
        memcpy(expected.extent, extents, (size_t)rank * sizeof *extents);
        return RONDO_OP_FAIL(op, BAD_DATA, "input %s has shape %s, %s is expected", what,
                             rondo_shape_format(shape, text, sizeof text),
                             rondo_shape_format(&expected, expected_text, sizeof expected_text));
    }
    return RONDO_STATUS_OK;
}

// shapes[i] is NULL for an absent input.
static rondo_status make_plan(const rondo__op *op, const rondo_shape *const *shapes,
                              recurrence *plan) {
    memset(plan, 0, sizeof *plan);
    plan->kind = get_kind(op);
    plan->gates = plan->kind == CELL_LSTM ? 4 : plan->kind == CELL_GRU ? 3 : 1;
    if (shapes[0]->rank != 3 || shapes[1]->rank != 3 || shapes[2]->rank != 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs X, W and R must have rank 3, not %d, %d, %d",
                             shapes[0]->rank, shapes[1]->rank, shapes[2]->rank);
    }
    const char *direction = rondo__op_get_string(op, "direction", "forward");
    plan->directions = 1;
    if (strcmp(direction, "reverse") == 0) {
        plan->is_reverse[0] = true;
    } else if (strcmp(direction, "bidirectional") == 0) {
        plan->directions = 2;
        plan->is_reverse[1] = true;
    } else if (strcmp(direction, "forward") != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute direction is \"%.40s\", which is unknown",
                             direction);
    }
    const int64_t layout = rondo__op_get_int(op, "layout", 0);
    if (layout != 0 && layout != 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute layout is %lld, it must be 0 or 1",
                             (long long)layout);
    }
    plan->is_batch_first = layout == 1;
    plan->seq = shapes[0]->extent[plan->is_batch_first ? 1 : 0];
    plan->batch = shapes[0]->extent[plan->is_batch_first ? 0 : 1];
    plan->input = shapes[0]->extent[2];
    plan->hidden = shapes[2]->extent[2];
    const int64_t hidden_size = rondo__op_get_int(op, "hidden_size", plan->hidden);
    if (hidden_size != plan->hidden || plan->hidden > INT32_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute hidden_size is %lld, input R has %lld",
                             (long long)hidden_size, (long long)plan->hidden);
    }
    plan->has_coupled_gates = rondo__op_get_int(op, "input_forget", 0) != 0;
    plan->is_linear_before_reset = rondo__op_get_int(op, "linear_before_reset", 0) != 0;
    plan->clip = rondo__op_find(op, "clip") == NULL ? (double)INFINITY
                                                    : (double)rondo__op_get_float(op, "clip", 0.0f);
    if (!(plan->clip >= 0.0)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute clip is negative or NaN");
    }
    RETURN_IF_ERROR(rondo__recurrent_read_functions(op, plan->directions, plan->functions));

    const int64_t directions = plan->directions;
    const int64_t rows = plan->gates * plan->hidden;
    const int64_t state[3] = {plan->is_batch_first ? plan->batch : directions,
                              plan->is_batch_first ? directions : plan->batch, plan->hidden};
    RETURN_IF_ERROR(check_shape(op, "W", shapes[1], 3, (int64_t[]){directions, rows, plan->input}));
    RETURN_IF_ERROR(
        check_shape(op, "R", shapes[2], 3, (int64_t[]){directions, rows, plan->hidden}));
    if (shapes[3] != NULL) {
        RETURN_IF_ERROR(check_shape(op, "B", shapes[3], 2, (int64_t[]){directions, 2 * rows}));
    }
    if (shapes[4] != NULL) {
        RETURN_IF_ERROR(check_shape(op, "sequence_lens", shapes[4], 1, &plan->batch));
    }
    if (shapes[5] != NULL) {
        RETURN_IF_ERROR(check_shape(op, "initial_h", shapes[5], 3, state));
    }
    if (shapes[6] != NULL) {
        RETURN_IF_ERROR(check_shape(op, "initial_c", shapes[6], 3, state));
    }
    if (shapes[7] != NULL) {
        RETURN_IF_ERROR(
            check_shape(op, "P", shapes[7], 2, (int64_t[]){directions, 3 * plan->hidden}));
    }
    plan->y_state.rank = 3;
    memcpy(plan->y_state.extent, state, sizeof state);
    plan->y.rank = 4;
    plan->y.extent[0] = plan->is_batch_first ? plan->batch : plan->seq;
    plan->y.extent[1] = plan->is_batch_first ? plan->seq : directions;
    plan->y.extent[2] = plan->is_batch_first ? directions : plan->batch;
    plan->y.extent[3] = plan->hidden;
    return RONDO_STATUS_OK;
}

enum { RECURRENT_INPUT_COUNT = 8 };

static rondo_status infer_recurrent(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 4));
    const rondo_shape *shapes[RECURRENT_INPUT_COUNT] = {NULL};
    for (size_t i = 0; i < RECURRENT_INPUT_COUNT; i++) {
        if (rondo__infer_has_input(infer, i)) {
            shapes[i] = &infer->inputs[i].shape;
            if (i >= 5) {
                RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
            }
        }
    }
    if (shapes[4] != NULL && infer->inputs[4].dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(infer->op, 4, infer->inputs[4].dtype);
    }
    recurrence plan;
    RETURN_IF_ERROR(make_plan(infer->op, shapes, &plan));
    const rondo_dtype dtype = infer->inputs[0].dtype;
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, dtype, &plan.y));
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 1, dtype, &plan.y_state));
    return rondo__infer_set_output(infer, 2, dtype, &plan.y_state);
}

// ---- the walk ---------------------------------------------------------------------------------

// Everything one direction needs, all as doubles.
typedef struct sequence_walk {
    const recurrence *plan;
    const rondo__recurrent_function *functions;
    const double *w;         // [gates * hidden, input]
    const double *r;         // [gates * hidden, hidden]
    const double *b;         // [2 * gates * hidden] or NULL
    const double *peephole;  // [3 * hidden] or NULL
    double *gates;           // [gates * hidden], work
    double *reset;           // [hidden], work
    double *h;               // [hidden], state
    double *c;               // [hidden], state of LSTM
} sequence_walk;

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double activate(const sequence_walk *walk, int function, double x) {
    const double clip = walk->plan->clip;
    x = x > clip ? clip : x < -clip ? -clip : x;
    return apply(&walk->functions[function], x);
}

static double get_bias(const sequence_walk *walk, int64_t part, int64_t row) {
    return walk->b == NULL ? 0.0 : walk->b[part * walk->plan->gates * walk->plan->hidden + row];
}

// gates[row] = x W' + h R' + both biases, for rows [begin, end).
static void add_gates(sequence_walk *walk, const double *x, int64_t begin, int64_t end) {
    const int64_t input = walk->plan->input;
    const int64_t hidden = walk->plan->hidden;
    for (int64_t row = begin; row < end; row++) {
        walk->gates[row] = dot(x, walk->w + row * input, input) +
                           dot(walk->h, walk->r + row * hidden, hidden) + get_bias(walk, 0, row) +
                           get_bias(walk, 1, row);
    }
}

static void step_rnn(sequence_walk *walk, const double *x) {
    const int64_t hidden = walk->plan->hidden;
    add_gates(walk, x, 0, hidden);
    for (int64_t i = 0; i < hidden; i++) {
        walk->h[i] = activate(walk, 0, walk->gates[i]);
    }
}

// Gates z, r, h.
static void step_gru(sequence_walk *walk, const double *x) {
    const int64_t input = walk->plan->input;
    const int64_t hidden = walk->plan->hidden;
    double *gates = walk->gates;
    add_gates(walk, x, 0, 2 * hidden);
    for (int64_t i = 0; i < 2 * hidden; i++) {
        gates[i] = activate(walk, 0, gates[i]);
    }
    for (int64_t i = 0; i < hidden; i++) {
        walk->reset[i] = gates[hidden + i] * walk->h[i];
    }
    for (int64_t i = 0; i < hidden; i++) {
        const int64_t row = 2 * hidden + i;
        const double *recurrent = walk->r + row * hidden;
        double value = dot(x, walk->w + row * input, input) + get_bias(walk, 0, row);
        if (walk->plan->is_linear_before_reset) {
            value += gates[hidden + i] * (dot(walk->h, recurrent, hidden) + get_bias(walk, 1, row));
        } else {
            value += dot(walk->reset, recurrent, hidden) + get_bias(walk, 1, row);
        }
        gates[row] = activate(walk, 1, value);
    }
    for (int64_t i = 0; i < hidden; i++) {
        walk->h[i] = (1.0 - gates[i]) * gates[2 * hidden + i] + gates[i] * walk->h[i];
    }
}

// Gates i, o, f, c; peepholes i, o, f.
static void step_lstm(sequence_walk *walk, const double *x) {
    const int64_t hidden = walk->plan->hidden;
    const double *peephole = walk->peephole;
    const double *gates = walk->gates;
    add_gates(walk, x, 0, 4 * hidden);
    for (int64_t i = 0; i < hidden; i++) {
        double in = gates[i];
        double out = gates[hidden + i];
        double forget = gates[2 * hidden + i];
        if (peephole != NULL) {
            in += peephole[i] * walk->c[i];
            forget += peephole[2 * hidden + i] * walk->c[i];
        }
        in = activate(walk, 0, in);
        forget = walk->plan->has_coupled_gates ? 1.0 - in : activate(walk, 0, forget);
        const double candidate = activate(walk, 1, gates[3 * hidden + i]);
        const double cell = forget * walk->c[i] + in * candidate;
        if (peephole != NULL) {
            out += peephole[hidden + i] * cell;
        }
        walk->c[i] = cell;
        walk->h[i] = activate(walk, 0, out) * apply(&walk->functions[2], cell);
    }
}

static void step(sequence_walk *walk, const double *x) {
    switch (walk->plan->kind) {
        case CELL_RNN:
            step_rnn(walk, x);
            break;
        case CELL_GRU:
            step_gru(walk, x);
            break;
        case CELL_LSTM:
            step_lstm(walk, x);
            break;
    }
}

// Where a state row of [direction, batch] or (layout 1) [batch, direction] starts.
static int64_t get_state_row(const recurrence *plan, int64_t direction, int64_t n) {
    return (plan->is_batch_first ? n * plan->directions + direction : direction * plan->batch + n) *
           plan->hidden;
}

static int64_t get_x_row(const recurrence *plan, int64_t t, int64_t n) {
    return (plan->is_batch_first ? n * plan->seq + t : t * plan->batch + n) * plan->input;
}

static int64_t get_y_row(const recurrence *plan, int64_t t, int64_t direction, int64_t n) {
    return (plan->is_batch_first ? (n * plan->seq + t) * plan->directions + direction
                                 : (t * plan->directions + direction) * plan->batch + n) *
           plan->hidden;
}

// One sequence of the batch in one direction. h and c start from what y_h and y_c hold.
static void run_sequence(sequence_walk *walk, int64_t direction, int64_t n, int64_t length,
                         const double *x, double *y, double *y_h, double *y_c) {
    const recurrence *plan = walk->plan;
    const size_t row_bytes = (size_t)plan->hidden * sizeof(double);
    const int64_t state_row = get_state_row(plan, direction, n);
    memcpy(walk->h, y_h + state_row, row_bytes);
    memcpy(walk->c, y_c + state_row, row_bytes);
    for (int64_t i = 0; i < length; i++) {
        const int64_t t = plan->is_reverse[direction] ? length - 1 - i : i;
        step(walk, x + get_x_row(plan, t, n));
        memcpy(y + get_y_row(plan, t, direction, n), walk->h, row_bytes);
    }
    memcpy(y_h + state_row, walk->h, row_bytes);
    memcpy(y_c + state_row, walk->c, row_bytes);
}

static rondo_status read_lengths(const rondo__op *op, const rondo_tensor *lengths,
                                 const recurrence *plan) {
    const int32_t *values = lengths == NULL ? NULL : lengths->data;
    for (int64_t n = 0; values != NULL && n < plan->batch; n++) {
        if (values[n] < 0 || values[n] > plan->seq) {
            return RONDO_OP_FAIL(op, BAD_DATA, "sequence_lens[%lld] is %d, the sequence has %lld",
                                 (long long)n, values[n], (long long)plan->seq);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_recurrent(rondo__compute *compute) {
    const rondo_tensor *inputs[RECURRENT_INPUT_COUNT] = {NULL};
    const rondo_shape *shapes[RECURRENT_INPUT_COUNT] = {NULL};
    for (size_t i = 0; i < RECURRENT_INPUT_COUNT; i++) {
        inputs[i] = rondo__compute_get_input(compute, i);
        shapes[i] = inputs[i] == NULL ? NULL : &inputs[i]->shape;
    }
    recurrence plan;
    RETURN_IF_ERROR(make_plan(compute->op, shapes, &plan));
    RETURN_IF_ERROR(read_lengths(compute->op, inputs[4], &plan));
    const int64_t rows = plan.gates * plan.hidden;
    const int64_t state_count = rondo_shape_get_count(&plan.y_state);
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, inputs[0]);
    const double *w = rondo__scratch_widen(&scratch, inputs[1]);
    const double *r = rondo__scratch_widen(&scratch, inputs[2]);
    const double *b = rondo__scratch_widen(&scratch, inputs[3]);
    const double *peephole = rondo__scratch_widen(&scratch, inputs[7]);
    double *y_h = inputs[5] == NULL ? rondo__scratch_create(&scratch, state_count)
                                    : rondo__scratch_widen(&scratch, inputs[5]);
    double *y_c = inputs[6] == NULL ? rondo__scratch_create(&scratch, state_count)
                                    : rondo__scratch_widen(&scratch, inputs[6]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&plan.y));
    sequence_walk walk = {
        .plan = &plan,
        .gates = rondo__scratch_create(&scratch, rows),
        .reset = rondo__scratch_create(&scratch, plan.hidden),
        .h = rondo__scratch_create(&scratch, plan.hidden),
        .c = rondo__scratch_create(&scratch, plan.hidden),
    };
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    for (int64_t direction = 0; direction < plan.directions; direction++) {
        walk.functions = plan.functions[direction];
        walk.w = w + direction * rows * plan.input;
        walk.r = r + direction * rows * plan.hidden;
        walk.b = b == NULL ? NULL : b + direction * 2 * rows;
        walk.peephole = peephole == NULL ? NULL : peephole + direction * 3 * plan.hidden;
        for (int64_t n = 0; n < plan.batch; n++) {
            const int64_t length =
                inputs[4] == NULL ? plan.seq : ((const int32_t *)inputs[4]->data)[n];
            run_sequence(&walk, direction, n, length, x, y, y_h, y_c);
        }
    }
    const double *outputs[3] = {y, y_h, y_c};
    for (size_t i = 0; i < compute->output_count && scratch.status == RONDO_STATUS_OK; i++) {
        scratch.status = rondo__narrow(compute, i, outputs[i]);
    }
    return rondo__scratch_end(&scratch);
}

#define COMMON_ATTRIBUTES                                                                     \
    "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", \
        "layout"
static const char *const rnn_attributes[] = {COMMON_ATTRIBUTES, NULL};
static const char *const gru_attributes[] = {COMMON_ATTRIBUTES, "linear_before_reset", NULL};
static const char *const lstm_attributes[] = {COMMON_ATTRIBUTES, "input_forget", NULL};

const rondo__op_def rondo__op_table_recurrent[] = {
    RONDO_OP_ENTRY(RNN, 7, 28, 3, 6, 0, 2, rnn_attributes, infer_recurrent, compute_recurrent,
                   .weights = 1, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(GRU, 7, 28, 3, 6, 0, 2, gru_attributes, infer_recurrent, compute_recurrent,
                   .weights = 1, .half.kind = HALF_BOUNDED),
    RONDO_OP_ENTRY(LSTM, 7, 28, 3, 8, 0, 3, lstm_attributes, infer_recurrent, compute_recurrent,
                   .weights = 1, .half.kind = HALF_BOUNDED),
    {.name = NULL},
};
