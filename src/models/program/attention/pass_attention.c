// program/attention/pass_attention.c — two products with a softmax between them become
// rondo.Attention.
//
//   scores = rondo.MatMul(q, k)
//   shares = Softmax(scores), or Softmax(Add(scores, mask)); or rondo.Softmax (empty rows: zeros)
//   y      = rondo.MatMul(shares, v)
//
// rondo.MatMul has taken the factor in, and perhaps the mask (as its residual or bias). What only
// moves or scales q, k and v (program/view.h) is looked through, and so is a Transpose behind y:
// the kernel reads and writes where they lie. What lies between must have no other user. Where q
// and k are both LpNormalizations of rows, they are taken in, and with them a factor for each head
// that the scores are multiplied by.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/fused/attention.h"
#include "program/edit.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/shapes/specialise.h"
#include "program/view.h"
#include "tensor/elements.h"

typedef struct pattern {
    const rondo_program *program;
    const rondo__uses *uses;
    const bool *remove;
    int32_t q, k, v, mask, factors;
    bool unit_rows;
    bool k_is_turned, v_is_turned;  // their rows lie along the last extent
    float scale;
    int32_t scores, factor, add, softmax, product, transpose;  // nodes; -1: none
    int32_t result;
} pattern;

static const rondo__node *get_node(const pattern *p, int32_t node) {
    return &p->program->nodes[node];
}

static bool get_shape(const pattern *p, int32_t value, rondo_shape *out_shape) {
    return rondo__value_get_shape(&p->program->values[value], out_shape);
}

// The node of this op that makes `value`, if `value` has no other user; -1 otherwise.
static int32_t get_maker(const pattern *p, int32_t value, rondo__op_id op) {
    const int32_t maker = p->program->values[value].producer;
    const bool is_it = maker >= 0 && !p->remove[maker] && rondo__node_is(get_node(p, maker), op) &&
                       rondo__uses_get_single(p->uses, value) >= 0;
    return is_it ? maker : -1;
}

// Whether the product is bare but for what `p` takes out of it.
static bool is_bare(const rondo__node *product) {
    return rondo__op_get_int(&product->op, "trans_a", 0) == 0 &&
           rondo__activation_parse(rondo__op_get_string(&product->op, "activation", "none")) ==
               RONDO__ACTIVATION_NONE;
}

// What the value has the rows of, by their lengths; RONDO__VALUE_NONE: of nothing.
static int32_t get_rows(const pattern *p, int32_t value) {
    const rondo__node *norm = rondo__match_maker(p->program, value, RONDO__OP_LpNormalization);
    rondo_shape shape;
    if (norm == NULL || !get_shape(p, value, &shape) || rondo__op_get_int(&norm->op, "p", 2) != 2) {
        return RONDO__VALUE_NONE;
    }
    const int64_t axis = rondo__op_get_int(&norm->op, "axis", -1);
    return axis == -1 || axis == shape.rank - 1 ? norm->inputs[0] : RONDO__VALUE_NONE;
}

// A constant of one number for each head of the scores, which alone are multiplied by it: -3 is the
// axis of heads.
static bool is_for_heads(const pattern *p, int32_t value, const rondo_shape *scores) {
    const rondo_tensor *constant = &p->program->values[value].constant;
    const int32_t rank = constant->shape.rank;
    return constant->dtype != RONDO_DTYPE_NONE && rank >= 3 && rank <= scores->rank &&
           constant->shape.extent[rank - 3] == scores->extent[scores->rank - 3] &&
           rondo_shape_get_count(&constant->shape) == constant->shape.extent[rank - 3];
}

// Finds the product that makes the scores, or what a Mul makes of them.
static int32_t get_scores(pattern *p, int32_t value) {
    const int32_t scores = get_maker(p, value, RONDO__FUSED_MatMul);
    p->factor = scores < 0 ? get_maker(p, value, RONDO__OP_Mul) : -1;
    p->factors = RONDO__VALUE_NONE;
    rondo_shape shape;
    for (int i = 0; p->factor >= 0 && i < 2; ++i) {
        const rondo__node *factor = get_node(p, p->factor);
        if (get_shape(p, value, &shape) && is_for_heads(p, factor->inputs[i], &shape)) {
            p->factors = factor->inputs[i];
            return get_maker(p, factor->inputs[1 - i], RONDO__FUSED_MatMul);
        }
    }
    return scores;
}

// Finds the scores' product above the softmax, and the mask.
static bool match_scores(pattern *p, int32_t value) {
    p->add = get_maker(p, value, RONDO__OP_Add);
    p->mask = RONDO__VALUE_NONE;
    if (p->add >= 0) {
        const rondo__node *add = get_node(p, p->add);
        rondo_shape sum, scores;
        for (int i = 0; i < 2 && p->mask < 0; ++i) {
            p->scores = get_scores(p, add->inputs[i]);
            if (p->scores >= 0 && get_shape(p, value, &sum) &&
                get_shape(p, add->inputs[i], &scores) && rondo_shape_is_equal(&sum, &scores)) {
                p->mask = add->inputs[1 - i];
            }
        }
        if (p->mask < 0) {
            return false;
        }
    } else {
        p->scores = get_scores(p, value);
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
    p->k_is_turned = rondo__op_get_int(&product->op, "trans_b", 0) == 0;
    const int32_t q = get_rows(p, p->q), k = get_rows(p, p->k);
    p->unit_rows = q >= 0 && k >= 0 && !p->k_is_turned;
    if (p->unit_rows) {
        p->q = q;
        p->k = k;
    }
    return p->unit_rows || p->factor < 0;
}

// Whether a node is a Transpose that leaves the last extent where it is.
static bool keeps_columns(const rondo__node *node) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    return rondo__node_is(node, RONDO__OP_Transpose) && perm != NULL && count > 0 &&
           perm[count - 1] == (int64_t)count - 1;
}

// Finds the product below the softmax, and what turns its result.
static bool match_product(pattern *p) {
    p->product = rondo__uses_get_single(p->uses, get_node(p, p->softmax)->outputs[0]);
    if (p->product < 0 || p->remove[p->product]) {
        return false;
    }
    const rondo__node *product = get_node(p, p->product);
    if (!rondo__node_is(product, RONDO__FUSED_MatMul) || !is_bare(product) ||
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
    p->v_is_turned = rondo__op_get_int(&product->op, "trans_b", 0) != 0;
    p->result = product->outputs[0];
    p->transpose = rondo__uses_get_single(p->uses, p->result);
    if (p->transpose >= 0 && !p->remove[p->transpose] && keeps_columns(get_node(p, p->transpose))) {
        p->result = get_node(p, p->transpose)->outputs[0];
    } else {
        p->transpose = -1;
    }
    return true;
}

// Whether softmax runs along the last axis of what has the rank of an attention.
static bool is_along_keys(const pattern *p) {
    const rondo__node *softmax = get_node(p, p->softmax);
    rondo_shape scores;
    if (!get_shape(p, softmax->outputs[0], &scores) || scores.rank < 3 || scores.rank > 4) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&softmax->op, "axis", softmax->op.opset < 13 ? 1 : -1);
    return axis == -1 || axis == scores.rank - 1;
}

// Whether the op's attributes and its inputs are those of one attention with such a result.
static bool is_fit(const pattern *p, const rondo__op *op, const int32_t inputs[4]) {
    rondo_shape shapes[4] = {{0}}, result;
    for (int i = 0; i < 4; ++i) {
        if (inputs[i] >= 0 && !get_shape(p, inputs[i], &shapes[i])) {
            return false;
        }
    }
    rondo__attention attention;
    rondo_error saved;
    rondo__error_save(&saved);
    const bool fits =
        rondo__attention_init(op, &shapes[0], &shapes[1], &shapes[2],
                              inputs[3] >= 0 ? &shapes[3] : NULL, &attention) == RONDO_STATUS_OK;
    rondo__error_restore(&saved);
    return fits && get_shape(p, p->result, &result) &&
           rondo_shape_is_equal(&result, &attention.output);
}

static bool has_one_precision(const pattern *p) {
    const uint8_t precision = get_node(p, p->product)->precision;
    return get_node(p, p->softmax)->precision == precision &&
           get_node(p, p->scores)->precision == precision &&
           (p->add < 0 || get_node(p, p->add)->precision == precision);
}

static bool has_one_dtype(const pattern *p, const int32_t values[4]) {
    rondo__tensor_info infos[4] = {{0}};
    for (int i = 0; i < 4; ++i) {
        if (values[i] >= 0) {
            rondo__program_get_info(p->program, values[i], &infos[i]);
        }
    }
    const rondo_dtype dtype = infos[0].dtype;
    return rondo__dtype_is_f32_or_f16(dtype) && infos[1].dtype == dtype &&
           infos[2].dtype == dtype && (values[3] < 0 || infos[3].dtype == dtype);
}

// ---- what becomes of it -----------------------------------------------------------------------

enum { BATCH, HEAD, ROW, COLUMN, ENTRIES };

// What is read, and how: extents, and the strides of batch, head, row and column.
typedef struct operand {
    rondo__view view;
    int64_t extent[ENTRIES], stride[ENTRIES];
    int64_t repeats;  // heads in turn that read the same; the extent counts them once
} operand;

typedef struct operands {
    int64_t batch, heads, m, n, width, v_width;
    operand q, k, v;
    // Heads that share keys may be rows of one head, or heads of one batch: so many in turn.
    int64_t sharing_rows, sharing_heads;
} operands;

static bool look_at_operand(const pattern *p, int32_t value, bool takes_factors, bool is_turned,
                            bool may_repeat, operand *out) {
    out->repeats = 1;
    if (may_repeat) {
        rondo__view_trace_repeats(p->program, value, takes_factors, -3, &out->repeats, &out->view);
    } else {
        rondo__view_trace(p->program, value, takes_factors, &out->view);
    }
    for (int i = 0; i < ENTRIES; ++i) {
        const int32_t at =
            out->view.rank - ENTRIES + (is_turned && i >= ROW ? ROW + COLUMN - i : i);
        out->extent[i] = at < 0 ? 1 : out->view.extent[at];
        out->stride[i] = at < 0 ? 0 : out->view.stride[at];
        if (out->extent[i] == 0) {
            return false;
        }
    }
    return true;
}

// Whether the mask is the same for all heads and batches.
static bool has_mask_of_rows(const pattern *p) {
    rondo_shape shape;
    if (p->mask < 0) {
        return true;
    }
    if (!get_shape(p, p->mask, &shape)) {
        return false;
    }
    return rondo_shape_get_count(&shape) == (shape.rank > 0 ? shape.extent[shape.rank - 1] : 1) *
                                                (shape.rank > 1 ? shape.extent[shape.rank - 2] : 1);
}

// Lets heads that share keys be rows where each has one, so that keys are read once; or heads of
// what is then a batch of groups. False: neither can be.
static bool share_keys(const pattern *p, operands *o) {
    const int64_t group = o->k.repeats;
    if (group == 1) {
        return o->v.repeats == 1;
    }
    if (o->v.repeats != group || o->heads % group != 0 || !has_mask_of_rows(p)) {
        return false;
    }
    o->heads /= group;
    if (o->m == 1) {
        o->m = o->sharing_rows = group;
        o->q.stride[ROW] = o->q.stride[HEAD];
        o->q.stride[HEAD] *= group;
        return true;
    }
    if (o->batch != 1) {
        return false;
    }
    o->batch = o->heads;
    o->heads = o->sharing_heads = group;
    o->q.stride[BATCH] = o->q.stride[HEAD] * group;
    o->k.stride[BATCH] = o->k.stride[HEAD];
    o->v.stride[BATCH] = o->v.stride[HEAD];
    o->k.stride[HEAD] = o->v.stride[HEAD] = 0;
    return true;
}

// Reads the layouts of q, k and v. False: they are not those of one attention.
static bool look_at_operands(const pattern *p, bool may_repeat, operands *o) {
    *o = (operands){.sharing_rows = 1, .sharing_heads = 1};
    const bool takes_factors = !p->unit_rows;  // a row by its length is the same with a factor
    if (!look_at_operand(p, p->q, takes_factors, false, false, &o->q) ||
        !look_at_operand(p, p->k, takes_factors, p->k_is_turned, may_repeat, &o->k) ||
        !look_at_operand(p, p->v, false, p->v_is_turned, may_repeat, &o->v) ||
        o->k.view.rank != o->q.view.rank || o->v.view.rank != o->q.view.rank) {
        return false;
    }
    o->batch = o->q.extent[BATCH];
    o->heads = o->q.extent[HEAD];
    o->m = o->q.extent[ROW];
    o->n = o->k.extent[ROW];
    o->width = o->q.extent[COLUMN];
    o->v_width = o->v.extent[COLUMN];
    return o->k.extent[BATCH] == o->batch && o->v.extent[BATCH] == o->batch &&
           o->k.extent[HEAD] * o->k.repeats == o->heads &&
           o->v.extent[HEAD] * o->v.repeats == o->heads && o->k.extent[COLUMN] == o->width &&
           o->v.extent[ROW] == o->n && share_keys(p, o);
}

static rondo_status write_view(rondo__op *op, const char *name, const operand *read) {
    int64_t list[1 + ENTRIES] = {read->view.offset};
    memcpy(list + 1, read->stride, sizeof read->stride);
    return rondo__op_set_ints(op, name, list, 1 + ENTRIES);
}

// The strides of batch, head and row in the result, whose extents a Transpose may have moved.
static rondo_status write_result(const pattern *p, const operands *o, rondo__op *op) {
    rondo_shape shape;
    size_t count = 0;
    const int64_t *perm = NULL;
    int64_t stride[RONDO_RANK_MAX] = {0}, list[3] = {0};
    if (!get_shape(p, p->result, &shape)) {
        return RONDO_FAIL(INTERNAL, "the result of an attention has no shape");
    }
    if (p->transpose >= 0) {
        perm = rondo__op_get_ints(&get_node(p, p->transpose)->op, "perm", &count);
    }
    int64_t step = 1;
    for (int32_t d = shape.rank - 1; d >= 0; --d) {
        stride[perm != NULL ? perm[d] : d] = step;
        step *= shape.extent[d];
    }
    for (int i = 0; i < 3; ++i) {
        list[i] = i + shape.rank >= 4 ? stride[i + shape.rank - 4] : 0;
    }
    if (o->sharing_rows > 1) {
        list[ROW] = list[HEAD];
        list[HEAD] *= o->sharing_rows;
    } else if (o->sharing_heads > 1) {
        list[BATCH] = list[HEAD] * o->sharing_heads;
    }
    RETURN_IF_ERROR(rondo__op_set_ints(op, "y", list, 3));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "shape", shape.extent, (size_t)shape.rank));
    if (p->unit_rows) {
        RETURN_IF_ERROR(rondo__op_set_int(op, "unit_rows", 1));
    }
    return rondo__node_is(get_node(p, p->softmax), RONDO__FUSED_Softmax)
               ? rondo__op_set_int(op, "zero_rows", 1)
               : RONDO_STATUS_OK;
}

static rondo_status write_op(const pattern *p, const operands *o, rondo__op *op) {
    const int64_t extents[6] = {o->batch, o->heads, o->m, o->n, o->width, o->v_width};
    *op =
        (rondo__op){.opset = RONDO_OP_OPSET_MAX, .def = rondo__op_get_def(RONDO__FUSED_Attention)};
    RETURN_IF_ERROR(
        rondo__op_set_float(op, "scale", p->scale * o->q.view.factor * o->k.view.factor));
    RETURN_IF_ERROR(rondo__op_set_ints(op, "extents", extents, 6));
    RETURN_IF_ERROR(write_view(op, "q", &o->q));
    RETURN_IF_ERROR(write_view(op, "k", &o->k));
    RETURN_IF_ERROR(write_view(op, "v", &o->v));
    return write_result(p, o, op);
}

// Takes `op`. The nodes that the pattern covers go; the last product becomes the attention.
static rondo_status rewrite(rondo__rewriting *rewriting, const pattern *p, rondo__op *op,
                            const int32_t values[5]) {
    rondo__node *node = &rewriting->program->nodes[p->product];
    int32_t *inputs = rondo__calloc(5, sizeof *inputs);
    if (inputs == NULL) {
        rondo__op_deinit(op);
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(inputs, values, 5 * sizeof *inputs);
    rondo__node_become(node, op, inputs, values[4] >= 0 ? 5 : 4);
    node->outputs[0] = p->result;
    rewriting->program->values[p->result].producer = p->product;  // what follows looks through it
    const int32_t gone[] = {p->scores, p->factor, p->add, p->softmax, p->transpose};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; ++i) {
        if (gone[i] >= 0) {
            rewriting->remove[gone[i]] = true;
        }
    }
    return RONDO_STATUS_OK;
}

// The factors as a list, which has the type of the rows. None where there are none.
static rondo_status flatten_factors(rondo_program *program, int32_t factors, int32_t *out_list) {
    rondo_tensor flat;
    *out_list = RONDO__VALUE_NONE;
    if (factors < 0) {
        return RONDO_STATUS_OK;
    }
    rondo_tensor_share(&program->values[factors].constant, &flat);
    flat.shape = (rondo_shape){.rank = 1, .extent = {rondo_shape_get_count(&flat.shape)}};
    const rondo_status status = rondo__program_add_constant(program, "factors", &flat, out_list);
    rondo_tensor_deinit(&flat);
    return status;
}

static bool has_fit_factors(const pattern *p, const operands *o) {
    return p->factors < 0 ||
           (o->sharing_rows == 1 && o->sharing_heads == 1 &&
            rondo_shape_get_count(&p->program->values[p->factors].constant.shape) == o->heads &&
            rondo__match_dtype(p->program, p->factors) ==
                rondo__match_dtype(p->program, o->q.view.base));
}

static rondo_status rewrite_node(rondo__rewriting *rewriting, size_t n) {
    pattern p = {.program = rewriting->program,
                 .uses = &rewriting->uses,
                 .remove = rewriting->remove,
                 .softmax = (int32_t)n};
    const rondo__node *softmax = &rewriting->program->nodes[n];
    operands o;
    if (!(rondo__node_is(softmax, RONDO__OP_Softmax) ||
          rondo__node_is(softmax, RONDO__FUSED_Softmax)) ||
        rewriting->remove[n] || !match_product(&p) || !match_scores(&p, softmax->inputs[0]) ||
        !has_one_precision(&p) || !is_along_keys(&p) ||
        !(look_at_operands(&p, true, &o) || look_at_operands(&p, false, &o)) ||
        !has_fit_factors(&p, &o)) {
        return RONDO_STATUS_OK;
    }
    int32_t inputs[5] = {o.q.view.base, o.k.view.base, o.v.view.base, p.mask};
    rondo__op op;
    rondo_status status = write_op(&p, &o, &op);
    if (status != RONDO_STATUS_OK || !has_one_dtype(&p, inputs) || !is_fit(&p, &op, inputs)) {
        rondo__op_deinit(&op);
        return status;
    }
    status = flatten_factors(rewriting->program, p.factors, &inputs[4]);
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        return status;
    }
    return rewrite(rewriting, &p, &op, inputs);
}

rondo_status rondo__pass_attention(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
