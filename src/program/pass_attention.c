// program/pass_attention.c — two products with a softmax between them become rondo.Attention.
//
//   scores = rondo.MatMul(q, k)    shares = Softmax(Add(scores, mask)?)    y = rondo.MatMul(shares, v)
//
// rondo.MatMul has taken the factor in, and perhaps the mask (as its residual or bias). A Transpose
// that brings the heads in front of q, k or v, or back behind y, is looked through: the kernel
// reads and writes where they lie. What lies between must have no other user.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "op/attention.h"
#include "program/edit.h"
#include "program/match.h"
#include "program/passes.h"
#include "program/rewrite.h"
#include "program/specialise.h"

typedef struct pattern {
    const rondo_program *program;
    const rondo__uses *uses;
    const bool *remove;
    int32_t q, k, v, mask;
    int64_t layouts[4];
    float scale;
    int32_t scores, add, softmax, product, transpose;  // nodes; -1: none
    int32_t result;
} pattern;

static const rondo__node *get_node(const pattern *p, int32_t node) {
    return &p->program->nodes[node];
}

static bool get_shape(const pattern *p, int32_t value, rondo_shape *out_shape) {
    return rondo__value_get_shape(&p->program->values[value], out_shape);
}

// The node that makes `value` for nobody else and is an op of that name; -1 otherwise.
static int32_t get_maker(const pattern *p, int32_t value, const char *domain, const char *name) {
    const int32_t maker = p->program->values[value].producer;
    const bool is_it = maker >= 0 && !p->remove[maker] &&
                       rondo__node_is(get_node(p, maker), domain, name) &&
                       rondo__uses_get_single(p->uses, value) >= 0;
    return is_it ? maker : -1;
}

// Whether the product is bare but for what `p` takes out of it.
static bool is_bare(const rondo__node *product) {
    return rondo__op_get_int(&product->op, "trans_a", 0) == 0 &&
           rondo__activation_parse(rondo__op_get_string(&product->op, "activation", "none")) ==
               RONDO__ACTIVATION_NONE;
}

// Whether a node is a Transpose of four extents in that order.
static bool is_transpose(const rondo__node *node, const int64_t expected[4]) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    bool is_it = rondo__node_is(node, "", "Transpose") && perm != NULL && count == 4;
    for (size_t i = 0; is_it && i < 4; ++i) {
        is_it = perm[i] == expected[i];
    }
    return is_it;
}

static const int64_t heads_first[4] = {0, 2, 1, 3};  // and back
static const int64_t heads_first_turned[4] = {0, 2, 3, 1};

// Looks through the Transpose that made an operand, if it did no more than move the heads.
static void look_through(const pattern *p, int32_t *value, int64_t *layout) {
    const int32_t maker = p->program->values[*value].producer;
    if (maker < 0) {
        return;
    }
    const bool is_turned = *layout == RONDO__ATTENTION_TURNED;
    if (is_transpose(get_node(p, maker), is_turned ? heads_first_turned : heads_first)) {
        *value = get_node(p, maker)->inputs[0];
        *layout = RONDO__ATTENTION_SPLIT;
    }
}

// Finds the scores' product above the softmax, and the mask.
static bool match_scores(pattern *p, int32_t value) {
    p->add = get_maker(p, value, "", "Add");
    p->mask = RONDO__VALUE_NONE;
    if (p->add >= 0) {
        const rondo__node *add = get_node(p, p->add);
        rondo_shape sum, scores;
        for (int i = 0; i < 2 && p->mask < 0; ++i) {
            p->scores = get_maker(p, add->inputs[i], "rondo", "MatMul");
            if (p->scores >= 0 && get_shape(p, value, &sum) &&
                get_shape(p, add->inputs[i], &scores) && rondo_shape_is_equal(&sum, &scores)) {
                p->mask = add->inputs[1 - i];
            }
        }
        if (p->mask < 0) {
            return false;
        }
    } else {
        p->scores = get_maker(p, value, "rondo", "MatMul");
    }
    if (p->scores < 0 || !is_bare(get_node(p, p->scores))) {
        return false;
    }
    const rondo__node *product = get_node(p, p->scores);
    for (size_t i = 2; i < product->input_count; ++i) {
        if (product->inputs[i] >= 0 && p->mask >= 0) {
            return false;  // two addends
        }
        p->mask = product->inputs[i] >= 0 ? product->inputs[i] : p->mask;
    }
    p->scale = rondo__op_get_float(&product->op, "alpha_scale", 1.0f);
    p->q = product->inputs[0];
    p->k = product->inputs[1];
    p->layouts[1] = rondo__op_get_int(&product->op, "trans_b", 0) != 0 ? RONDO__ATTENTION_ROWS
                                                                       : RONDO__ATTENTION_TURNED;
    return true;
}

// Finds the product below the softmax, and what turns its result.
static bool match_product(pattern *p) {
    p->product = rondo__uses_get_single(p->uses, get_node(p, p->softmax)->outputs[0]);
    if (p->product < 0 || p->remove[p->product]) {
        return false;
    }
    const rondo__node *product = get_node(p, p->product);
    if (!rondo__node_is(product, "rondo", "MatMul") || !is_bare(product) ||
        product->inputs[0] != get_node(p, p->softmax)->outputs[0] ||
        rondo__op_get_float(&product->op, "alpha_scale", 1.0f) != 1.0f) {
        return false;
    }
    for (size_t i = 2; i < product->input_count; ++i) {
        if (product->inputs[i] >= 0) {
            return false;
        }
    }
    p->v = product->inputs[1];
    p->layouts[2] = rondo__op_get_int(&product->op, "trans_b", 0) != 0 ? RONDO__ATTENTION_TURNED
                                                                       : RONDO__ATTENTION_ROWS;
    p->result = product->outputs[0];
    p->transpose = rondo__uses_get_single(p->uses, p->result);
    if (p->transpose >= 0 && !p->remove[p->transpose] &&
        is_transpose(get_node(p, p->transpose), heads_first)) {
        p->result = get_node(p, p->transpose)->outputs[0];
        p->layouts[3] = RONDO__ATTENTION_SPLIT;
    } else {
        p->transpose = -1;
    }
    return true;
}

// Whether softmax runs along the last axis, and all shapes are those of one attention.
static bool is_fit(const pattern *p, const rondo__op *op) {
    const rondo__node *softmax = get_node(p, p->softmax);
    rondo_shape scores, shapes[4];
    if (!get_shape(p, softmax->outputs[0], &scores) || scores.rank < 3 || scores.rank > 4) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&softmax->op, "axis", softmax->op.opset < 13 ? 1 : -1);
    const int32_t values[4] = {p->q, p->k, p->v, p->mask};
    for (int i = 0; i < 4; ++i) {
        if (values[i] >= 0 &&
            (!get_shape(p, values[i], &shapes[i]) || rondo_shape_get_count(&shapes[i]) == 0)) {
            return false;
        }
    }
    if ((axis != -1 && axis != scores.rank - 1) || shapes[0].rank != scores.rank ||
        shapes[1].rank != scores.rank || shapes[2].rank != scores.rank) {
        return false;
    }
    rondo__attention attention;
    rondo_error saved;
    rondo__error_save(&saved);
    const bool fits =
        rondo__attention_init(op, &shapes[0], &shapes[1], &shapes[2],
                              p->mask >= 0 ? &shapes[3] : NULL, &attention) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return fits;
}

static bool has_one_precision(const pattern *p) {
    const uint8_t precision = get_node(p, p->product)->precision;
    return get_node(p, p->softmax)->precision == precision &&
           get_node(p, p->scores)->precision == precision &&
           (p->add < 0 || get_node(p, p->add)->precision == precision);
}

static bool has_one_dtype(const pattern *p) {
    rondo__tensor_info infos[4] = {{0}};
    const int32_t values[4] = {p->q, p->k, p->v, p->mask};
    for (int i = 0; i < 4; ++i) {
        if (values[i] >= 0) {
            rondo__program_get_info(p->program, values[i], &infos[i]);
        }
    }
    const rondo_dtype dtype = infos[0].dtype;
    return (dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F16) && infos[1].dtype == dtype &&
           infos[2].dtype == dtype && (p->mask < 0 || infos[3].dtype == dtype);
}

static rondo_status write_op(const pattern *p, rondo__op *op) {
    *op = (rondo__op){.opset = RONDO_OP_OPSET_MAX,
                      .def = rondo__op_lookup("rondo", "Attention", RONDO_OP_OPSET_MAX)};
    if (op->def == NULL) {
        return RONDO_FAIL(INTERNAL, "rondo.Attention is not registered");
    }
    RETURN_IF_ERROR(rondo__op_set_ints(op, "layouts", p->layouts, 4));
    return rondo__op_set_float(op, "scale", p->scale);
}

// Takes `op`. The nodes that the pattern covers go; the last product becomes the attention.
static rondo_status rewrite(rondo__rewriting *rewriting, const pattern *p, rondo__op *op) {
    rondo__node *node = &rewriting->program->nodes[p->product];
    int32_t *inputs = rondo__calloc(4, sizeof *inputs);
    if (inputs == NULL) {
        rondo__op_deinit(op);
        return RONDO_STATUS_NO_MEMORY;
    }
    inputs[0] = p->q;
    inputs[1] = p->k;
    inputs[2] = p->v;
    inputs[3] = p->mask;
    rondo__node_become(node, op, inputs, 4);
    node->outputs[0] = p->result;
    const int32_t gone[] = {p->scores, p->add, p->softmax, p->transpose};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; ++i) {
        if (gone[i] >= 0) {
            rewriting->remove[gone[i]] = true;
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    pattern p = {.program = rewriting->program,
                 .uses = &rewriting->uses,
                 .remove = rewriting->remove,
                 .softmax = (int32_t)n};
    const rondo__node *softmax = &rewriting->program->nodes[n];
    if (!rondo__node_is(softmax, "", "Softmax") || rewriting->remove[n] || !match_product(&p) ||
        !match_scores(&p, softmax->inputs[0]) || !has_one_precision(&p)) {
        return RONDO_STATUS_OK;
    }
    look_through(&p, &p.q, &p.layouts[0]);
    look_through(&p, &p.k, &p.layouts[1]);
    look_through(&p, &p.v, &p.layouts[2]);
    rondo__op op;
    rondo_status status = write_op(&p, &op);
    if (status != RONDO_STATUS_OK || !has_one_dtype(&p) || !is_fit(&p, &op)) {
        rondo__op_deinit(&op);
        return status;
    }
    return rewrite(rewriting, &p, &op);
}

rondo_status rondo__pass_attention(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
