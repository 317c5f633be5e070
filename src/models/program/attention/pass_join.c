// program/attention/pass_join.c — products of one value with several weights become one product.
//
//   q = x Wq + bq,  k = x Wk + bk,  v = x Wv + bv      q, k, v = Split(x [Wq Wk Wv] + [bq bk bv])
//
// As MatMul with Add, as Gemm, or as MatMulNBits. At least three, since the Split costs a launch
// unless the reader looks through it, as attention does (program/view.h). It runs before shapes are
// known, so that the joined weights are made once for all plans.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/crew.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

enum { PARTS_LEAST = 3, PARTS_MOST = 16 };

typedef struct part {
    int32_t product;  // node
    int32_t add;      // node; -1: none
    int32_t weight;   // [k, columns], or [columns, k] with `is_turned`
    int32_t bias;     // [columns]; -1: none
    int32_t scales;   // of MatMulNBits: as many of a column as the weights have blocks
    int32_t zeros;    // likewise, packed; -1: none
    int32_t result;
    bool is_turned;
    int64_t k, columns;
} part;

enum { NBITS_SCALES = 2, NBITS_ZEROS, NBITS_GROUPS, NBITS_BIAS };

static bool is_bits(const rondo__node *node) {
    return rondo__node_is(node, RONDO__MS_MatMulNBits);
}

static const rondo_tensor *get_constant(const rondo_program *program, int32_t value, int32_t rank) {
    const rondo_tensor *constant = value >= 0 ? &program->values[value].constant : NULL;
    const bool is_it = constant != NULL && constant->shape.rank == rank &&
                       rondo__dtype_is_f32_or_f16(constant->dtype);
    return is_it ? constant : NULL;
}

// Takes the Add of a constant bias along that uses the product alone.
static void take_bias(const rondo__rewriting *r, part *p) {
    const rondo_program *program = r->program;
    const int32_t user = rondo__uses_get_single(&r->uses, p->result);
    if (user < 0 || r->remove[user] || !rondo__node_is(&program->nodes[user], RONDO__OP_Add)) {
        return;
    }
    const rondo__node *add = &program->nodes[user], *product = &program->nodes[p->product];
    const int32_t other = add->inputs[add->inputs[0] == p->result ? 1 : 0];
    const rondo_tensor *bias = get_constant(program, other, 1);
    if (bias != NULL && bias->shape.extent[0] == p->columns &&
        add->precision == product->precision &&
        memcmp(&add->place, &product->place, sizeof add->place) == 0) {
        p->add = user;
        p->bias = other;
        p->result = add->outputs[0];
    }
}

static bool is_list_of(const rondo_program *program, int32_t value, int64_t columns) {
    return rondo__value_is_constant(&program->values[value]) &&
           rondo_shape_get_count(&program->values[value].constant.shape) % columns == 0;
}

// The same for weights of few bits, which are rows already.
static bool match_bits(const rondo_program *program, const rondo__node *node, part *p) {
    p->scales = rondo__match_input(node, NBITS_SCALES);
    p->zeros = rondo__match_input(node, NBITS_ZEROS);
    p->k = rondo__op_get_int(&node->op, "K", 0);
    p->columns = rondo__op_get_int(&node->op, "N", 0);
    p->is_turned = true;
    return rondo__match_input(node, NBITS_GROUPS) < 0 && rondo__match_input(node, NBITS_BIAS) < 0 &&
           p->columns > 0 && program->values[p->weight].constant.dtype == RONDO_DTYPE_U8 &&
           is_list_of(program, p->weight, p->columns) && p->scales >= 0 &&
           is_list_of(program, p->scales, p->columns) &&
           (p->zeros < 0 || (program->values[p->zeros].constant.dtype == RONDO_DTYPE_U8 &&
                             is_list_of(program, p->zeros, p->columns)));
}

// Whether node `n` is a product that can be a part.
static bool match_part(const rondo__rewriting *r, size_t n, part *out_part) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const bool is_gemm = rondo__node_is(node, RONDO__OP_Gemm);
    if (r->remove[n] || (!is_gemm && !is_bits(node) && !rondo__node_is(node, RONDO__OP_MatMul))) {
        return false;
    }
    part p = {.product = (int32_t)n,
              .add = -1,
              .weight = node->inputs[1],
              .bias = is_gemm ? rondo__match_input(node, 2) : RONDO__VALUE_NONE,
              .scales = RONDO__VALUE_NONE,
              .zeros = RONDO__VALUE_NONE,
              .result = node->outputs[0]};
    if (is_bits(node)) {
        *out_part = p;
        return match_bits(program, node, out_part);
    }
    const rondo_tensor *weight = get_constant(program, p.weight, 2);
    if (weight == NULL || rondo_shape_get_count(&weight->shape) == 0) {
        return false;
    }
    p.is_turned = is_gemm && rondo__op_get_int(&node->op, "transB", 0) != 0;
    p.k = weight->shape.extent[p.is_turned ? 1 : 0];
    p.columns = weight->shape.extent[p.is_turned ? 0 : 1];
    if (is_gemm && p.bias >= 0) {
        const rondo_tensor *bias = get_constant(program, p.bias, 1);
        if (bias == NULL || bias->shape.extent[0] != p.columns) {
            return false;
        }
    } else if (!is_gemm) {
        take_bias(r, &p);
    }
    *out_part = p;
    return true;
}

// Whether both are the same but for their weights.
static bool are_alike(const rondo_program *program, const part *a, const part *b) {
    static const char *const floats[] = {"alpha", "beta"};
    static const char *const ints[] = {"transA", "bits", "block_size", "accuracy_level"};
    const rondo__node *x = &program->nodes[a->product], *y = &program->nodes[b->product];
    bool are =
        x->op.def == y->op.def && x->inputs[0] == y->inputs[0] && x->precision == y->precision &&
        memcmp(&x->place, &y->place, sizeof x->place) == 0 && a->is_turned == b->is_turned &&
        a->k == b->k && (a->bias < 0) == (b->bias < 0) &&
        program->values[a->weight].constant.dtype == program->values[b->weight].constant.dtype &&
        (a->scales < 0 ||
         program->values[a->scales].constant.dtype == program->values[b->scales].constant.dtype) &&
        (a->zeros < 0) == (b->zeros < 0);
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; ++i) {
        are = are && rondo__op_get_int(&x->op, ints[i], 0) == rondo__op_get_int(&y->op, ints[i], 0);
    }
    for (size_t i = 0; i < 2; ++i) {
        are = are && rondo__op_get_float(&x->op, floats[i], 1.0f) ==
                         rondo__op_get_float(&y->op, floats[i], 1.0f);
    }
    return are;
}

typedef struct joining {
    char *to;
    size_t count, row_bytes;  // of a joined row
    const char *from[PARTS_MOST];
    size_t bytes[PARTS_MOST];  // of a row of each
} joining;

static void join_rows(void *data, size_t first, size_t last) {
    const joining *j = data;
    char *to = j->to + first * j->row_bytes;
    for (size_t row = first; row < last; ++row) {
        for (size_t i = 0; i < j->count; ++i) {
            memcpy(to, j->from[i] + row * j->bytes[i], j->bytes[i]);
            to += j->bytes[i];
        }
    }
}

// Puts constants side by side: `rows` rows of each, one behind the other.
static rondo_status join_constants(rondo_program *program, const int32_t *values, size_t count,
                                   int64_t rows, const rondo_shape *shape, const char *name,
                                   int32_t *out_value) {
    const rondo_dtype dtype = program->values[values[0]].constant.dtype;
    rondo_tensor joined;
    RETURN_IF_ERROR(rondo_tensor_init(dtype, shape, &joined));
    joining j = {.to = joined.data, .count = count};
    for (size_t i = 0; i < count; ++i) {
        const rondo_tensor *from = &program->values[values[i]].constant;
        j.from[i] = from->data;
        j.bytes[i] = rondo_tensor_get_bytes(from) / (size_t)rows;
        j.row_bytes += j.bytes[i];
    }
    rondo__crew_run((size_t)rows, 2 * j.row_bytes, join_rows, &j);
    const rondo_status status = rondo__program_add_constant(program, name, &joined, out_value);
    rondo_tensor_deinit(&joined);
    return status;
}

// Joins weights, scales and zeros of MatMulNBits, and sets the number of columns.
static rondo_status join_bits(rondo_program *program, const part *parts, size_t count,
                              int64_t columns, rondo__node *node) {
    static const size_t inputs[] = {1, NBITS_SCALES, NBITS_ZEROS};
    for (size_t i = 0; i < (parts[0].zeros < 0 ? 2 : 3); ++i) {
        int32_t values[PARTS_MOST];
        for (size_t p = 0; p < count; ++p) {
            values[p] = i == 0 ? parts[p].weight : i == 1 ? parts[p].scales : parts[p].zeros;
        }
        rondo_shape shape = program->values[values[0]].constant.shape;
        const int64_t of_column = rondo_shape_get_count(&shape) / parts[0].columns;
        if (i == 0) {
            shape.extent[0] = columns;
        } else {
            shape = (rondo_shape){1, {columns * of_column}};
        }
        RETURN_IF_ERROR(join_constants(program, values, count, 1, &shape, "joined_bits",
                                       &node->inputs[inputs[i]]));
    }
    return rondo__op_set_int(&node->op, "N", columns);
}

static rondo_status join_weights(rondo_program *program, const part *parts, size_t count,
                                 int64_t columns, int32_t *out_weight, int32_t *out_bias) {
    int32_t weights[PARTS_MOST], biases[PARTS_MOST];
    for (size_t i = 0; i < count; ++i) {
        weights[i] = parts[i].weight;
        biases[i] = parts[i].bias;
    }
    const int64_t k = parts[0].k;
    const rondo_shape shape = {
        2, {parts[0].is_turned ? columns : k, parts[0].is_turned ? k : columns}};
    const rondo_shape list = {1, {columns}};
    *out_bias = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(join_constants(program, weights, count, parts[0].is_turned ? 1 : k, &shape,
                                   "joined_weight", out_weight));
    return parts[0].bias < 0
               ? RONDO_STATUS_OK
               : join_constants(program, biases, count, 1, &list, "joined_bias", out_bias);
}

// Appends a node that is marked as `like` is.
static rondo_status add_node(rondo_program *program, const char *name, const int32_t *inputs,
                             const int32_t *outputs, size_t output_count, int32_t like) {
    for (size_t i = 0; i < output_count; ++i) {
        program->values[outputs[i]].producer = -1;
    }
    RETURN_IF_ERROR(
        rondo__program_add_simple(program, "", name, NULL, inputs, 2, outputs, output_count));
    rondo__node *node = &program->nodes[program->node_count - 1];
    node->precision = program->nodes[like].precision;
    node->place = program->nodes[like].place;
    return RONDO_STATUS_OK;
}

static rondo_status add_split(rondo_program *program, const part *parts, size_t count,
                              int32_t value) {
    const rondo_shape list = {1, {(int64_t)count}};
    int32_t inputs[2] = {value, RONDO__VALUE_NONE}, outputs[PARTS_MOST];
    rondo_tensor sizes;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &list, &sizes));
    for (size_t i = 0; i < count; ++i) {
        ((int64_t *)sizes.data)[i] = parts[i].columns;
        outputs[i] = parts[i].result;
    }
    rondo_status status = rondo__program_add_constant(program, "columns", &sizes, &inputs[1]);
    rondo_tensor_deinit(&sizes);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(add_node(program, "Split", inputs, outputs, count, parts[0].product));
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "axis", -1);
}

// A value as `like` is, but for its columns.
static rondo_status add_value(rondo_program *program, const char *name, int32_t like,
                              int64_t columns, int32_t *out_value) {
    const rondo_dtype dtype = program->values[like].dtype;
    rondo_shape shape;
    const bool is_known = rondo__value_get_shape(&program->values[like], &shape) && shape.rank > 0;
    if (is_known) {
        shape.extent[shape.rank - 1] = columns;
    }
    return rondo__program_add_shaped(program, name, dtype, is_known ? &shape : NULL, out_value);
}

static rondo_status join(rondo__rewriting *r, const part *parts, size_t count) {
    rondo_program *program = r->program;
    int64_t columns = 0;
    int32_t weight = RONDO__VALUE_NONE, bias = RONDO__VALUE_NONE, product, sum;
    for (size_t i = 0; i < count; ++i) {
        columns += parts[i].columns;
    }
    if (parts[0].scales < 0) {
        RETURN_IF_ERROR(join_weights(program, parts, count, columns, &weight, &bias));
    }
    RETURN_IF_ERROR(add_value(program, "joined", parts[0].result, columns, &product));
    sum = product;
    if (parts[0].add >= 0) {
        const int32_t inputs[2] = {product, bias};
        RETURN_IF_ERROR(add_value(program, "joined", parts[0].result, columns, &sum));
        RETURN_IF_ERROR(add_node(program, "Add", inputs, &sum, 1, parts[0].product));
    }
    RETURN_IF_ERROR(add_split(program, parts, count, sum));
    for (size_t i = 0; i < count; ++i) {
        r->remove[parts[i].product] = i > 0;
        if (parts[i].add >= 0) {
            r->remove[parts[i].add] = true;
        }
    }
    rondo__node *node = &program->nodes[parts[0].product];
    if (parts[0].scales >= 0) {
        RETURN_IF_ERROR(join_bits(program, parts, count, columns, node));
    } else {
        node->inputs[1] = weight;
    }
    if (parts[0].add < 0 && bias >= 0) {
        node->inputs[2] = bias;
    }
    node->outputs[0] = product;
    program->values[product].producer = parts[0].product;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    part parts[PARTS_MOST];
    if (!match_part(r, n, &parts[0])) {
        return RONDO_STATUS_OK;
    }
    const int32_t x = r->program->nodes[n].inputs[0];
    size_t count = 1;
    for (size_t u = r->uses.first[x]; u < r->uses.first[x + 1] && count < PARTS_MOST; ++u) {
        const size_t user = r->uses.users[u];
        if (user > n && user < r->node_count && (size_t)parts[count - 1].product != user &&
            match_part(r, user, &parts[count]) && are_alike(r->program, &parts[0], &parts[count])) {
            count += 1;
        }
    }
    return count < PARTS_LEAST ? RONDO_STATUS_OK : join(r, parts, count);
}

rondo_status rondo__pass_join(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
