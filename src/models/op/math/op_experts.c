// op/math/op_experts.c — com.microsoft.MoE and com.microsoft.QMoE: of several small networks,
// experts, each row of x goes through the k that its router rates highest, and their results are
// added up by weight.
//
//   expert   y = fc2 (activation(fc1 x + b1) [* (fc3 x + b3)]) + b2
//   weights  softmax of the router's k highest (normalize_routing_weights; of QMoE in any case, as
//            in ONNX Runtime), or those of the softmax of all; with router_weights, that input's
//            numbers at the chosen positions
//
// Gelu is the form with tanh. Of QMoE the matrices are packed numbers of 2, 4 or 8 bits, with a
// scale for each row, or for each block of a row.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op/math/bits_product.h"
#include "op/op.h"
#include "op/reference.h"

// Inputs: of QMoE, scales and zero points stand among them.
typedef struct matrix_inputs {
    size_t weights, scales, bias, zeros;
} matrix_inputs;

enum { X, ROUTER, NO_INPUT = 32, FC1 = 0, FC2, FC3, ROUTER_WEIGHTS = 14 };

static const matrix_inputs plain_inputs[] = {
    {2, NO_INPUT, 3, NO_INPUT}, {4, NO_INPUT, 5, NO_INPUT}, {6, NO_INPUT, 7, NO_INPUT}};
static const matrix_inputs packed_inputs[] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};

static bool is_packed(const rondo__op *op) {
    return op->def->id == RONDO__MS_QMoE;
}

static const matrix_inputs *get_inputs(const rondo__op *op, int which) {
    return is_packed(op) ? &packed_inputs[which] : &plain_inputs[which];
}

static int32_t get_bits(const rondo__op *op, int which) {
    static const char *const names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                        "fc3_expert_weight_bits"};
    return (int32_t)rondo__op_get_int(op, names[which],
                                      rondo__op_get_int(op, "expert_weight_bits", 4));
}

typedef enum expert_activation {
    RELU,
    GELU,
    SILU,
    IDENTITY,
    SWIGLU,
    ACTIVATIONS
} expert_activation;

static expert_activation get_activation(const rondo__op *op) {
    static const char *const names[] = {"relu", "gelu", "silu", "identity", "swiglu"};
    const char *text = rondo__op_get_string(op, "activation_type", "relu");
    int found = 0;
    while (found < ACTIVATIONS && strcmp(text, names[found]) != 0) {
        found++;
    }
    return (expert_activation)found;
}

static rondo_status check_experts(const rondo__op *op) {
    if (get_activation(op) == ACTIVATIONS) {
        return rondo__op_fail_unsupported(op, "attribute activation_type");
    }
    if (rondo__op_get_int(op, "use_sparse_mixer", 0) != 0) {
        return rondo__op_fail_unsupported(op, "attribute use_sparse_mixer");
    }
    if (rondo__op_get_int(op, "swiglu_limit_after_activation", 0) != 0) {
        return rondo__op_fail_unsupported(op, "attribute swiglu_limit_after_activation");
    }
    if (!is_packed(op)) {
        return RONDO_STATUS_OK;
    }
    for (int which = FC1; which <= FC3; which++) {
        const int32_t bits = get_bits(op, which);
        if (bits != 2 && bits != 4 && bits != 8) {
            return rondo__op_fail_unsupported(op, "weights that have none of 2, 4 and 8 bits");
        }
    }
    if (strcmp(rondo__op_get_string(op, "quant_type", "int"), "int") != 0) {
        return rondo__op_fail_unsupported(op, "attribute quant_type");
    }
    if (rondo__op_get_int(op, "weights_prepacked", -1) == 1) {
        return rondo__op_fail_unsupported(op, "attribute weights_prepacked");
    }
    return RONDO_STATUS_OK;
}

// ---- shapes -----------------------------------------------------------------------------------

typedef struct expert_shapes {
    int64_t tokens, hidden, experts, inner;
    int64_t k;       // experts of a token
    int64_t fusion;  // rows of fc1 for each number of `inner`
} expert_shapes;

// One matrix of each expert.
typedef struct expert_matrix {
    int64_t rows, columns;
    const double *values;  // [experts, rows, columns]; of packed ones:
    const uint8_t *numbers;
    const double *scales;
    const uint8_t *zeros;  // or NULL
    int32_t bits;
    int64_t block, blocks;  // of a row
    const double *bias;     // or NULL
} expert_matrix;

static rondo_status fail_shape(const rondo__op *op, const char *name, const rondo_shape *shape) {
    char text[96];
    return RONDO_OP_FAIL(op, BAD_DATA, "%s has shape %s, which does not fit the others", name,
                         rondo_shape_format(shape, text, sizeof text));
}

static rondo_status read_shapes(const rondo__op *op, const rondo_shape *x,
                                const rondo_shape *router, const rondo_shape *fc1, bool has_fc3,
                                expert_shapes *out_shapes) {
    if (x->rank != 2 && x->rank != 3) {
        return fail_shape(op, "input", x);
    }
    const bool is_fused = get_activation(op) == SWIGLU && !has_fc3;
    expert_shapes s = {
        .tokens = rondo__shape_multiply(x, 0, x->rank - 1),
        .hidden = x->extent[x->rank - 1],
        .k = rondo__op_get_int(op, "k", 1),
        .fusion = is_fused ? 2 : 1,
    };
    if (router->rank != 2 || router->extent[0] != s.tokens || router->extent[1] < 1) {
        return fail_shape(op, "router_probs", router);
    }
    s.experts = router->extent[1];
    if (fc1->rank != 3 || fc1->extent[0] != s.experts || fc1->extent[1] % s.fusion != 0) {
        return fail_shape(op, "fc1_experts_weights", fc1);
    }
    s.inner = fc1->extent[1] / s.fusion;
    if (s.k < 1 || s.k > s.experts) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute k is %lld; there are %lld experts",
                             (long long)s.k, (long long)s.experts);
    }
    *out_shapes = s;
    return RONDO_STATUS_OK;
}

// Rows and columns of a matrix, and how its scales are laid out.
static expert_matrix describe(const rondo__op *op, const expert_shapes *s, int which) {
    expert_matrix m = {
        .rows = which == FC1   ? s->fusion * s->inner
                : which == FC2 ? s->hidden
                               : s->inner,
        .columns = which == FC2 ? s->inner : s->hidden,
        .bits = is_packed(op) ? get_bits(op, which) : 0,
    };
    const int64_t block = rondo__op_get_int(op, "block_size", 0);
    m.block = block > 0 ? block : m.columns > 0 ? m.columns : 1;
    m.blocks = (m.columns + m.block - 1) / m.block;
    return m;
}

static bool has_count(const rondo__infer *infer, size_t input, int64_t count) {
    return input == NO_INPUT || !rondo__infer_has_input(infer, input) ||
           rondo_shape_get_count(&infer->inputs[input].shape) == count;
}

// Zero points are packed along the blocks of a row, or along rows where each has one.
static int64_t count_zero_bytes(const expert_matrix *m) {
    return m->blocks > 1 ? m->rows * ((m->blocks * m->bits + 7) / 8) : (m->rows * m->bits + 7) / 8;
}

static rondo_status check_matrix(const rondo__infer *infer, const expert_shapes *s, int which) {
    static const char *const names[] = {"fc1", "fc2", "fc3"};
    const matrix_inputs *at = get_inputs(infer->op, which);
    const expert_matrix m = describe(infer->op, s, which);
    if (!rondo__infer_has_input(infer, at->weights)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%s_experts_weights are missing", names[which]);
    }
    const rondo__tensor_info *weights = &infer->inputs[at->weights];
    if (is_packed(infer->op)) {
        if (weights->dtype != RONDO_DTYPE_U8 || !rondo__infer_has_input(infer, at->scales)) {
            return rondo__op_fail_dtype(infer->op, at->weights, weights->dtype);
        }
    } else {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, X, at->weights));
    }
    const int64_t row = m.bits == 0 ? m.columns : m.columns * m.bits / 8;
    const bool fits = has_count(infer, at->weights, s->experts * m.rows * row) &&
                      m.columns * m.bits % 8 == 0 &&
                      has_count(infer, at->bias, s->experts * m.rows) &&
                      has_count(infer, at->scales, s->experts * m.rows * m.blocks) &&
                      has_count(infer, at->zeros, s->experts * count_zero_bytes(&m));
    return fits ? RONDO_STATUS_OK : fail_shape(infer->op, names[which], &weights->shape);
}

static rondo_status infer_experts(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo__op *op = infer->op;
    const bool has_fc3 = rondo__infer_has_input(infer, get_inputs(op, FC3)->weights);
    expert_shapes s;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, X, 2));
    RETURN_IF_ERROR(read_shapes(op, &inputs[X].shape, &inputs[ROUTER].shape,
                                &inputs[get_inputs(op, FC1)->weights].shape, has_fc3, &s));
    RETURN_IF_ERROR(check_matrix(infer, &s, FC1));
    RETURN_IF_ERROR(check_matrix(infer, &s, FC2));
    if (has_fc3) {
        RETURN_IF_ERROR(check_matrix(infer, &s, FC3));
    }
    if (is_packed(op) && !has_count(infer, ROUTER_WEIGHTS, s.tokens * s.experts)) {
        return fail_shape(op, "router_weights", &inputs[ROUTER_WEIGHTS].shape);
    }
    for (size_t i = ROUTER_WEIGHTS + 1; i < infer->input_count; i++) {
        if (rondo__infer_has_input(infer, i)) {
            return rondo__op_fail_unsupported(op, "scales that are global or of activations");
        }
    }
    return rondo__infer_set_output(infer, 0, inputs[X].dtype, &inputs[X].shape);
}

// ---- the reference ----------------------------------------------------------------------------

static expert_matrix read_matrix(const rondo__compute *compute, const expert_shapes *s, int which,
                                 rondo__scratch *scratch) {
    const matrix_inputs *at = get_inputs(compute->op, which);
    expert_matrix m = describe(compute->op, s, which);
    const rondo_tensor *weights = rondo__compute_get_input(compute, at->weights);
    m.bias = rondo__scratch_widen(scratch, rondo__compute_get_input(compute, at->bias));
    if (m.bits == 0) {
        m.values = rondo__scratch_widen(scratch, weights);
        return m;
    }
    const rondo_tensor *zeros = rondo__compute_get_input(compute, at->zeros);
    m.numbers = weights->data;
    m.scales = rondo__scratch_widen(scratch, rondo__compute_get_input(compute, at->scales));
    m.zeros = zeros != NULL ? zeros->data : NULL;
    return m;
}

static double get_zero(const expert_matrix *m, int64_t expert, int64_t row, int64_t block) {
    const uint8_t *zeros = m->zeros;
    if (zeros == NULL) {
        return (double)(1u << (m->bits - 1));
    }
    zeros += expert * count_zero_bytes(m);
    return (double)(m->blocks > 1 ? rondo__bits_get(zeros + row * ((m->blocks * m->bits + 7) / 8),
                                                    m->bits, block)
                                  : rondo__bits_get(zeros, m->bits, row));
}

// One number of a row of an expert's matrix.
static double get_weight(const expert_matrix *m, int64_t expert, int64_t row, int64_t column) {
    const int64_t at = expert * m->rows + row;
    if (m->bits == 0) {
        return m->values[at * m->columns + column];
    }
    const int64_t block = column / m->block;
    const uint32_t number =
        rondo__bits_get(m->numbers + at * (m->columns * m->bits / 8), m->bits, column);
    return ((double)number - get_zero(m, expert, row, block)) * m->scales[at * m->blocks + block];
}

static void multiply(const expert_matrix *m, int64_t expert, const double *x, double *y) {
    for (int64_t r = 0; r < m->rows; r++) {
        double sum = m->bias != NULL ? m->bias[expert * m->rows + r] : 0.0;
        for (int64_t c = 0; c < m->columns; c++) {
            sum += get_weight(m, expert, r, c) * x[c];
        }
        y[r] = sum;
    }
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

static double activate(expert_activation activation, double x) {
    switch (activation) {
        case RELU:
            return x > 0.0 || x != x ? x : 0.0;
        case GELU:
            return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
        case SILU:
            return x * sigmoid(x);
        default:
            return x;
    }
}

typedef struct expert_networks {
    const rondo__op *op;
    expert_shapes shapes;
    expert_matrix fc1, fc2, fc3;
    bool has_fc3;
    double *opened, *gate, *closed;  // of one token
} expert_networks;

static double join_gate(const rondo__op *op, double gate, double value) {
    const double alpha = (double)rondo__op_get_float(op, "activation_alpha", 1.0f);
    const double beta = (double)rondo__op_get_float(op, "activation_beta", 0.0f);
    const double limit = (double)rondo__op_get_float(op, "swiglu_limit", INFINITY);
    gate = gate > limit ? limit : gate;
    value = value > limit ? limit : value < -limit ? -limit : value;
    return gate * sigmoid(alpha * gate) * (value + beta);
}

// Adds weight times the expert's answer to y.
static void run_expert(const expert_networks *n, int64_t expert, const double *x, double weight,
                       double *y) {
    const int64_t inner = n->shapes.inner;
    const expert_activation activation = get_activation(n->op);
    const bool interleaves = rondo__op_get_int(n->op, "swiglu_fusion", 0) == 1;
    multiply(&n->fc1, expert, x, n->opened);
    if (n->has_fc3) {
        multiply(&n->fc3, expert, x, n->gate);
    }
    for (int64_t i = 0; i < inner; i++) {
        if (activation != SWIGLU) {
            n->opened[i] = activate(activation, n->opened[i]) * (n->has_fc3 ? n->gate[i] : 1.0);
        } else if (n->has_fc3) {
            n->opened[i] = join_gate(n->op, n->opened[i], n->gate[i]);
        } else {
            n->gate[i] = interleaves ? join_gate(n->op, n->opened[2 * i], n->opened[2 * i + 1])
                                     : join_gate(n->op, n->opened[i], n->opened[inner + i]);
        }
    }
    multiply(&n->fc2, expert, activation == SWIGLU && !n->has_fc3 ? n->gate : n->opened, n->closed);
    for (int64_t i = 0; i < n->shapes.hidden; i++) {
        y[i] += weight * n->closed[i];
    }
}

// The expert with the highest rating that was not chosen yet; of equals the first.
static int64_t choose(const double *ratings, const double *weights, int64_t count) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++) {
        if (weights[i] < 0.0 && (best < 0 || ratings[i] > ratings[best])) {
            best = i;
        }
    }
    return best;
}

// weights[e] of each chosen expert; -1 for the others.
static void route(const rondo__op *op, const expert_shapes *s, const double *ratings,
                  const double *given, double *weights) {
    double highest = (double)-INFINITY, all = 0.0, chosen = 0.0;
    for (int64_t e = 0; e < s->experts; e++) {
        weights[e] = -1.0;
        highest = ratings[e] > highest ? ratings[e] : highest;
    }
    for (int64_t e = 0; e < s->experts; e++) {
        all += exp(ratings[e] - highest);
    }
    for (int64_t i = 0; i < s->k; i++) {
        const int64_t e = choose(ratings, weights, s->experts);
        weights[e] = given != NULL ? given[e] : exp(ratings[e] - highest);
        chosen += weights[e];
    }
    const bool is_normal = rondo__op_get_int(op, "normalize_routing_weights", 0) != 0 ||
                           (is_packed(op) && given == NULL);
    const double sum = is_normal ? chosen : given != NULL ? 1.0 : all;
    for (int64_t e = 0; e < s->experts; e++) {
        weights[e] = weights[e] < 0.0 ? -1.0 : sum != 0.0 ? weights[e] / sum : 0.0;
    }
}

static rondo_status compute_experts(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_tensor *const *inputs = compute->inputs;
    expert_networks n = {.op = op};
    n.has_fc3 = rondo__compute_has_input(compute, get_inputs(op, FC3)->weights);
    RETURN_IF_ERROR(read_shapes(op, &inputs[X]->shape, &inputs[ROUTER]->shape,
                                &inputs[get_inputs(op, FC1)->weights]->shape, n.has_fc3,
                                &n.shapes));
    const expert_shapes *s = &n.shapes;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, inputs[X]);
    const double *router = rondo__scratch_widen(&scratch, inputs[ROUTER]);
    const double *given =
        is_packed(op)
            ? rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, ROUTER_WEIGHTS))
            : NULL;
    n.fc1 = read_matrix(compute, s, FC1, &scratch);
    n.fc2 = read_matrix(compute, s, FC2, &scratch);
    if (n.has_fc3) {
        n.fc3 = read_matrix(compute, s, FC3, &scratch);
    }
    n.opened = rondo__scratch_create(&scratch, s->fusion * s->inner);
    n.gate = rondo__scratch_create(&scratch, s->inner);
    n.closed = rondo__scratch_create(&scratch, s->hidden);
    double *weights = rondo__scratch_create(&scratch, s->experts);
    double *y = rondo__scratch_create(&scratch, s->tokens * s->hidden);
    for (int64_t t = 0; t < s->tokens && scratch.status == RONDO_STATUS_OK; t++) {
        route(op, s, router + t * s->experts, given != NULL ? given + t * s->experts : NULL,
              weights);
        for (int64_t e = 0; e < s->experts; e++) {
            if (weights[e] >= 0.0) {
                run_expert(&n, e, x + t * s->hidden, weights[e], y + t * s->hidden);
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const plain_attributes[] = {"activation_alpha",
                                               "activation_beta",
                                               "activation_type",
                                               "k",
                                               "swiglu_fusion",
                                               "normalize_routing_weights",
                                               "swiglu_limit",
                                               "use_sparse_mixer",
                                               "swiglu_limit_after_activation",
                                               NULL};
static const char *const packed_attributes[] = {"accuracy_level",
                                                "activation_alpha",
                                                "activation_beta",
                                                "activation_type",
                                                "block_size",
                                                "expert_weight_bits",
                                                "fc1_expert_weight_bits",
                                                "fc2_expert_weight_bits",
                                                "fc3_expert_weight_bits",
                                                "k",
                                                "swiglu_fusion",
                                                "normalize_routing_weights",
                                                "quant_type",
                                                "swiglu_limit",
                                                "swiglu_limit_after_activation",
                                                "use_sparse_mixer",
                                                "weights_prepacked",
                                                NULL};

#define ENTRY(op_name, least, most, attribute_list)                                             \
    {                                                                                           \
        .id = RONDO_OP_NAME(MS, op_name), .opset_min = 1, .opset_max = 1, .input_min = (least), \
        .input_max = (most), .output_min = 1, .output_max = 1, .capture = RONDO__CAPTURE_YES,   \
        .attributes = (attribute_list), .infer = infer_experts, .compute = compute_experts,     \
        .check = check_experts, .weights = 2, .half.kind = HALF_PRODUCT                         \
    }

const rondo__op_def rondo__op_table_experts[] = {
    ENTRY(MoE, 3, 8, plain_attributes),
    ENTRY(QMoE, 3, 21, packed_attributes),
    {.name = NULL},
};
