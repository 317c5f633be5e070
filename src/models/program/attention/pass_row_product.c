// program/attention/pass_row_product.c — what stands around products of one row goes into them.
//
//   before   n = RMSNormalization(x)             after   y = rondo.RowProduct(x, W, V)
//            v = rondo.MatMul(n, V), activated
//            y = v * rondo.MatMul(n, W)
//
// Such a product takes as long as reading its weights, and so does whatever is done to the row on
// the way; a launch of its own would cost more. So do products of 2 to 8 rows in half precision on
// tensor cores. What is added to a product of few bits becomes its
// bias; products of 4 bits in half precision become rondo.BitsRow likewise, also of a few rows.
// Then Muls of two products of one value become one, then normalisations go into products, where
// all their users are such. Weights are constants, so that they are read along k.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/math/bits_product.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { INPUTS = 6, GAIN = 4, GATE = 5, VECTOR_BYTES = 16 };

// Products of a few rows are for tensor cores, which take k in whole steps; the rows that are
// normalised are held.
enum { FEW_ROWS_MOST = 8, FEW_STEP = 64, FEW_LONGEST = 8192, FEW_LONGEST_NORM = 4096 };

// Whether what is added to a product is nothing, or a number for each column: not one for each row.
static bool has_plain_bias(const rondo_program *program, const rondo__node *product,
                           int64_t columns) {
    const int32_t bias = rondo__match_input(product, 2);
    rondo_shape shape;
    return bias < 0 || (rondo__value_get_shape(&program->values[bias], &shape) && shape.rank == 1 &&
                        shape.extent[0] == columns);
}

// Whether node `n` is a product of one row and constant weights that kernels read in vectors; or,
// if `longest` is not 0, of a few rows in half precision, of so many numbers at most.
static bool is_row_product(const rondo__rewriting *r, size_t n, int64_t longest) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const bool is_fused = rondo__node_is(node, RONDO__FUSED_RowProduct);
    rondo_shape x, w;
    if (r->remove[n] || (!is_fused && !rondo__node_is(node, RONDO__FUSED_MatMul)) ||
        node->output_count != 1 || rondo__op_find(&node->op, "to") != NULL ||
        rondo__op_get_int(&node->op, "trans_a", 0) != 0 ||
        rondo__op_get_float(&node->op, "alpha_scale", 1.0f) != 1.0f ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &w) ||
        !rondo__value_is_constant(&program->values[node->inputs[1]]) || w.rank != 2 || x.rank < 2 ||
        x.extent[x.rank - 1] < 1) {
        return false;
    }
    const rondo_dtype dtype = rondo__match_dtype(program, node->inputs[0]);
    const int64_t k = x.extent[x.rank - 1], n_columns = rondo_shape_get_count(&w) / k;
    const int64_t width = VECTOR_BYTES / (int64_t)rondo_dtype_get_bytes(dtype);
    const int64_t count = rondo_shape_get_count(&x);
    const bool are_rows = longest == 0
                              ? count == k
                              : dtype == RONDO_DTYPE_F16 && k % FEW_STEP == 0 && k <= longest &&
                                    count > k && count <= FEW_ROWS_MOST * k;
    return (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_F32) && k % width == 0 &&
           n_columns > 1 && are_rows && rondo__match_dtype(program, node->inputs[1]) == dtype &&
           has_plain_bias(program, node, n_columns);
}

// Makes the product `n` a rondo.RowProduct with these inputs; its attributes stay.
static rondo_status become(rondo_program *program, size_t n, const int32_t inputs[INPUTS]) {
    rondo__node *node = &program->nodes[n];
    int32_t *list = rondo__calloc(INPUTS, sizeof *list);
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(list, inputs, INPUTS * sizeof *list);
    rondo__free(node->inputs);
    node->op.def = rondo__op_get_def(RONDO__FUSED_RowProduct);
    node->inputs = list;
    node->input_count = node->explicit_count = INPUTS;
    return RONDO_STATUS_OK;
}

// ---- gates ------------------------------------------------------------------------------------

static bool is_bare(const rondo__node *product, bool has_activation) {
    return rondo__match_input(product, 2) < 0 && rondo__match_input(product, 3) < 0 &&
           (has_activation ||
            strcmp(rondo__op_get_string(&product->op, "activation", "none"), "none") == 0);
}

// The product that makes factor `i` of the Mul and has no other reader; -1: none.
static int32_t get_factor(const rondo__rewriting *r, const rondo__node *mul, size_t i,
                          bool has_activation, int64_t longest) {
    const int32_t value = mul->inputs[i], maker = r->program->values[value].producer;
    const bool is_it = maker >= 0 && rondo__uses_get_single(&r->uses, value) >= 0 &&
                       rondo__node_is(&r->program->nodes[maker], RONDO__FUSED_MatMul) &&
                       is_row_product(r, (size_t)maker, longest) &&
                       is_bare(&r->program->nodes[maker], has_activation);
    return is_it ? maker : -1;
}

static bool are_alike(const rondo_program *program, int32_t a, int32_t b) {
    const rondo__node *x = &program->nodes[a], *y = &program->nodes[b];
    rondo_shape of_x, of_y;
    return x->inputs[0] == y->inputs[0] &&
           rondo__op_get_int(&x->op, "trans_b", 0) == rondo__op_get_int(&y->op, "trans_b", 0) &&
           rondo__value_get_shape(&program->values[x->inputs[1]], &of_x) &&
           rondo__value_get_shape(&program->values[y->inputs[1]], &of_y) &&
           rondo_shape_is_equal(&of_x, &of_y) && memcmp(&x->place, &y->place, sizeof x->place) == 0;
}

static rondo_status join_gate_of(rondo__rewriting *r, size_t n, int64_t longest) {
    rondo_program *program = r->program;
    const rondo__node *mul = &program->nodes[n];
    if (!rondo__node_is(mul, RONDO__OP_Mul) || r->remove[n] || mul->inputs[0] == mul->inputs[1]) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < 2; ++i) {
        const int32_t gate = get_factor(r, mul, i, true, longest),
                      product = get_factor(r, mul, 1 - i, false, longest);
        if (gate < 0 || product < 0 || !are_alike(program, gate, product) ||
            memcmp(&mul->place, &program->nodes[gate].place, sizeof mul->place) != 0) {
            continue;
        }
        const rondo__node *g = &program->nodes[gate];
        const int32_t inputs[INPUTS] = {g->inputs[0],      program->nodes[product].inputs[1],
                                        RONDO__VALUE_NONE, RONDO__VALUE_NONE,
                                        RONDO__VALUE_NONE, g->inputs[1]};
        const int32_t result = mul->outputs[0];
        RETURN_IF_ERROR(become(program, (size_t)gate, inputs));
        program->nodes[gate].outputs[0] = result;
        program->values[result].producer = gate;
        r->remove[product] = r->remove[n] = true;
        return RONDO_STATUS_OK;
    }
    return RONDO_STATUS_OK;
}

static rondo_status join_gate(rondo__rewriting *r, size_t n) {
    return join_gate_of(r, n, 0);
}

static rondo_status join_few_gate(rondo__rewriting *r, size_t n) {
    return join_gate_of(r, n, FEW_LONGEST);
}

// ---- normalisations ---------------------------------------------------------------------------

static bool is_norm(const rondo__rewriting *r, size_t n) {
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape x, gain;
    if (!rondo__node_is(node, RONDO__OP_RMSNormalization) || r->remove[n] ||
        !rondo__value_get_shape(&program->values[node->inputs[0]], &x) ||
        !rondo__value_get_shape(&program->values[node->inputs[1]], &gain)) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&node->op, "axis", -1);
    return x.rank >= 2 && (axis == -1 || axis == x.rank - 1) && gain.rank == 1 &&
           gain.extent[0] == x.extent[x.rank - 1] &&
           rondo__match_dtype(program, node->inputs[1]) ==
               rondo__match_dtype(program, node->inputs[0]);
}

static rondo_status join_norm_of(rondo__rewriting *r, size_t n, int64_t longest) {
    rondo_program *program = r->program;
    if (!is_norm(r, n)) {
        return RONDO_STATUS_OK;
    }
    const int32_t rows = program->nodes[n].outputs[0];
    const size_t first = r->uses.first[rows], last = r->uses.first[rows + 1];
    bool are_products = first < last && !r->uses.is_output[rows];
    for (size_t u = first; u < last && are_products; ++u) {
        const rondo__node *user = &program->nodes[r->uses.users[u]];
        are_products = is_row_product(r, r->uses.users[u], longest) && user->inputs[0] == rows &&
                       rondo__match_input(user, 2) != rows && rondo__match_input(user, 3) != rows &&
                       rondo__match_input(user, GAIN) < 0;
    }
    for (size_t u = first; u < last && are_products; ++u) {
        const rondo__node *norm = &program->nodes[n];
        const rondo__node *product = &program->nodes[r->uses.users[u]];
        const int32_t inputs[INPUTS] = {norm->inputs[0],
                                        product->inputs[1],
                                        rondo__match_input(product, 2),
                                        rondo__match_input(product, 3),
                                        norm->inputs[1],
                                        rondo__match_input(product, GATE)};
        const float epsilon = rondo__op_get_float(&norm->op, "epsilon", 1e-5f);
        RETURN_IF_ERROR(become(program, r->uses.users[u], inputs));
        RETURN_IF_ERROR(
            rondo__op_set_float(&program->nodes[r->uses.users[u]].op, "epsilon", epsilon));
    }
    return RONDO_STATUS_OK;
}

static rondo_status join_norm(rondo__rewriting *r, size_t n) {
    return join_norm_of(r, n, 0);
}

static rondo_status join_few_norm(rondo__rewriting *r, size_t n) {
    return join_norm_of(r, n, FEW_LONGEST_NORM);
}

// ---- products of weights of few bits ----------------------------------------------------------

// Whether operand `i` of the Add is such a product of one row that has no bias and no other reader.
static bool is_bits_product(const rondo__rewriting *r, const rondo__node *add, size_t i) {
    const rondo_program *program = r->program;
    const int32_t value = add->inputs[i], other = add->inputs[1 - i];
    const int32_t maker = program->values[value].producer;
    const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
    rondo_shape row, addend;
    return node != NULL && other != value && !r->remove[maker] &&
           rondo__node_is(node, RONDO__MS_MatMulNBits) &&
           rondo__uses_get_single(&r->uses, value) >= 0 &&
           rondo__match_input(node, RONDO__BITS_BIAS) < 0 &&
           memcmp(&add->place, &node->place, sizeof add->place) == 0 &&
           rondo__value_get_shape(&program->values[value], &row) &&
           rondo__value_get_shape(&program->values[other], &addend) &&
           rondo_shape_is_equal(&row, &addend) && row.rank > 0 &&
           rondo_shape_get_count(&row) == row.extent[row.rank - 1] &&
           rondo__match_dtype(program, value) == rondo__match_dtype(program, other);
}

// Makes an Add to a product of one row the product's bias.
static rondo_status join_sum(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *add = &program->nodes[n];
    for (size_t i = 0; i < 2 && rondo__node_is(add, RONDO__OP_Add) && !r->remove[n]; ++i) {
        if (!is_bits_product(r, add, i)) {
            continue;
        }
        const int32_t maker = program->values[add->inputs[i]].producer;
        rondo__op op = {0};
        int32_t *list = rondo__calloc(RONDO__BITS_INPUTS, sizeof *list);
        if (list == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        for (size_t k = 0; k < RONDO__BITS_BIAS; ++k) {
            list[k] = rondo__match_input(&program->nodes[maker], k);
        }
        list[RONDO__BITS_BIAS] = add->inputs[1 - i];
        const rondo_status status = rondo__op_copy(&program->nodes[maker].op, &op);
        if (status != RONDO_STATUS_OK) {
            rondo__free(list);
            return status;
        }
        rondo__free(op.name);  // the sum's stays
        op.name = NULL;
        rondo__node_become(&program->nodes[n], &op, list, RONDO__BITS_INPUTS);
        r->remove[maker] = true;
        break;
    }
    return RONDO_STATUS_OK;
}

enum { BITS_ROWS_MOST = 32, NORM_ROWS_MOST = 8 };

// The sums of a gate and its product lie in shared memory, beside each other: of longer rows there
// may be fewer.
enum { GATE_LENGTH = 2048, LONG_GATE_ROWS_MOST = 16 };

// A product that rondo.BitsRow can be: of `most` rows or fewer in half precision, with constants
// that tensor cores take in whole blocks.
static bool is_bits_row(const rondo__rewriting *r, size_t n, int64_t most) {
    enum { STEP = 64, LONGEST = 8192, BLOCK_LEAST = 32 };
    const rondo_program *program = r->program;
    const rondo__node *node = &program->nodes[n];
    const int64_t k = rondo__op_get_int(&node->op, "K", 0);
    rondo_shape x;
    if (r->remove[n] ||
        (!rondo__node_is(node, RONDO__MS_MatMulNBits) &&
         !rondo__node_is(node, RONDO__FUSED_BitsRow)) ||
        rondo__op_get_int(&node->op, "bits", 4) != 4 || k < 1 || k % STEP != 0 || k > LONGEST ||
        rondo__op_get_int(&node->op, "block_size", 0) < BLOCK_LEAST ||
        rondo__match_input(node, RONDO__BITS_GROUPS) >= 0 ||
        rondo__match_dtype(program, node->inputs[RONDO__BITS_A]) != RONDO_DTYPE_F16 ||
        !rondo__value_get_shape(&program->values[node->inputs[RONDO__BITS_A]], &x)) {
        return false;
    }
    for (size_t i = RONDO__BITS_B; i <= RONDO__BITS_ZEROS; ++i) {
        const int32_t value = rondo__match_input(node, i);
        if (value >= 0 &&
            (!rondo__value_is_constant(&program->values[value]) ||
             (i == RONDO__BITS_ZEROS && rondo__match_dtype(program, value) != RONDO_DTYPE_U8))) {
            return false;
        }
    }
    const int64_t count = rondo_shape_get_count(&x);
    return count >= k && count % k == 0 && count <= most * k;
}

// Makes node `n` a rondo.BitsRow with the attributes of `op` and the inputs; those of MatMulNBits
// come first. Takes `op`.
static rondo_status become_bits_row(rondo_program *program, size_t n, rondo__op *op,
                                    const int32_t inputs[RONDO__BITS_ROW_INPUTS]) {
    int32_t *list = rondo__calloc(RONDO__BITS_ROW_INPUTS, sizeof *list);
    if (list == NULL) {
        rondo__op_deinit(op);
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(list, inputs, RONDO__BITS_ROW_INPUTS * sizeof *list);
    op->def = rondo__op_get_def(RONDO__FUSED_BitsRow);
    rondo__free(op->name);  // the node's stays
    op->name = NULL;
    rondo__node_become(&program->nodes[n], op, list, RONDO__BITS_ROW_INPUTS);
    return RONDO_STATUS_OK;
}

static void list_inputs(const rondo__node *node, int32_t *out_inputs) {
    for (size_t i = 0; i < RONDO__BITS_ROW_INPUTS; ++i) {
        out_inputs[i] = rondo__match_input(node, i);
    }
}

// The product of few bits that alone makes the value, which has no other reader; -1: none.
static int32_t get_bits_factor(const rondo__rewriting *r, int32_t value) {
    const int32_t maker = r->program->values[value].producer;
    const bool is_it = maker >= 0 && rondo__uses_get_single(&r->uses, value) >= 0 &&
                       rondo__node_is(&r->program->nodes[maker], RONDO__MS_MatMulNBits) &&
                       is_bits_row(r, (size_t)maker, BITS_ROWS_MOST) &&
                       rondo__match_input(&r->program->nodes[maker], RONDO__BITS_BIAS) < 0;
    return is_it ? maker : -1;
}

static bool are_alike_bits(const rondo__node *x, const rondo__node *y) {
    static const char *const names[] = {"K", "N", "block_size"};
    bool are = x->inputs[RONDO__BITS_A] == y->inputs[RONDO__BITS_A] &&
               (rondo__match_input(x, RONDO__BITS_ZEROS) < 0) ==
                   (rondo__match_input(y, RONDO__BITS_ZEROS) < 0) &&
               memcmp(&x->place, &y->place, sizeof x->place) == 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        are =
            are && rondo__op_get_int(&x->op, names[i], 0) == rondo__op_get_int(&y->op, names[i], 0);
    }
    return are;
}

typedef struct ending {
    rondo__activation kind;
    float alpha, beta;
} ending;

static rondo_status set_ending(rondo__op *op, const ending *e) {
    RETURN_IF_ERROR(rondo__op_set_string(op, "activation", rondo__match_activation_name(e->kind)));
    RETURN_IF_ERROR(rondo__op_set_float(op, "alpha", e->alpha));
    return rondo__op_set_float(op, "beta", e->beta);
}

// The Mul of an activated product and another of the same row.
static rondo_status join_bits_gate(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *mul = &program->nodes[n];
    for (size_t i = 0; i < 2 && rondo__node_is(mul, RONDO__OP_Mul) && !r->remove[n]; ++i) {
        const int32_t active = mul->inputs[i], end = program->values[active].producer;
        const int32_t product = get_bits_factor(r, mul->inputs[1 - i]);
        ending e;
        if (end < 0 || product < 0 || r->remove[end] ||
            rondo__uses_get_single(&r->uses, active) < 0 ||
            !rondo__match_activation(program, &program->nodes[end], &e.kind, &e.alpha, &e.beta)) {
            continue;
        }
        const int32_t gate = get_bits_factor(r, program->nodes[end].inputs[0]);
        const bool is_long = rondo__op_get_int(&program->nodes[product].op, "K", 0) > GATE_LENGTH;
        if (gate < 0 || gate == product ||
            (is_long && !is_bits_row(r, (size_t)product, LONG_GATE_ROWS_MOST)) ||
            !are_alike_bits(&program->nodes[gate], &program->nodes[product]) ||
            memcmp(&mul->place, &program->nodes[gate].place, sizeof mul->place) != 0) {
            continue;
        }
        int32_t inputs[RONDO__BITS_ROW_INPUTS];
        rondo__op op = {0};
        list_inputs(&program->nodes[product], inputs);
        for (size_t k = 0; k <= RONDO__BITS_ZEROS - RONDO__BITS_B; ++k) {
            inputs[RONDO__BITS_GATE + k] =
                rondo__match_input(&program->nodes[gate], RONDO__BITS_B + k);
        }
        RETURN_IF_ERROR(rondo__op_copy(&program->nodes[product].op, &op));
        const rondo_status status = set_ending(&op, &e);
        if (status != RONDO_STATUS_OK) {
            rondo__op_deinit(&op);
            return status;
        }
        RETURN_IF_ERROR(become_bits_row(program, n, &op, inputs));
        r->remove[product] = r->remove[gate] = r->remove[end] = true;
    }
    return RONDO_STATUS_OK;
}

// The Add to a product of several rows; that of one row becomes a bias (join_sum).
static rondo_status join_bits_sum(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    const rondo__node *add = &program->nodes[n];
    for (size_t i = 0; i < 2 && rondo__node_is(add, RONDO__OP_Add) && !r->remove[n]; ++i) {
        const int32_t value = add->inputs[i], other = add->inputs[1 - i];
        const int32_t maker = get_bits_factor(r, value);
        rondo_shape sums, addend;
        if (maker < 0 || other == value ||
            memcmp(&add->place, &program->nodes[maker].place, sizeof add->place) != 0 ||
            !rondo__value_get_shape(&program->values[value], &sums) ||
            !rondo__value_get_shape(&program->values[other], &addend) ||
            !rondo_shape_is_equal(&sums, &addend) ||
            rondo_shape_get_count(&sums) == sums.extent[sums.rank - 1] ||
            rondo__match_dtype(program, other) != RONDO_DTYPE_F16) {
            continue;
        }
        int32_t inputs[RONDO__BITS_ROW_INPUTS];
        rondo__op op = {0};
        list_inputs(&program->nodes[maker], inputs);
        inputs[RONDO__BITS_BIAS] = other;
        RETURN_IF_ERROR(rondo__op_copy(&program->nodes[maker].op, &op));
        RETURN_IF_ERROR(become_bits_row(program, n, &op, inputs));
        r->remove[maker] = true;
    }
    return RONDO_STATUS_OK;
}

// Whether the node is such a product of `row` that does not read it otherwise.
static bool reads_row(const rondo__rewriting *r, size_t n, int32_t row) {
    const rondo__node *node = &r->program->nodes[n];
    bool reads = is_bits_row(r, n, NORM_ROWS_MOST) && node->inputs[RONDO__BITS_A] == row &&
                 rondo__match_input(node, RONDO__BITS_GAIN) < 0;
    for (size_t i = RONDO__BITS_B; i < RONDO__BITS_INPUTS && reads; ++i) {
        reads = rondo__match_input(node, i) != row;
    }
    return reads;
}

static rondo_status join_bits_norm(rondo__rewriting *r, size_t n) {
    rondo_program *program = r->program;
    if (!is_norm(r, n)) {
        return RONDO_STATUS_OK;
    }
    const int32_t row = program->nodes[n].outputs[0];
    const size_t first = r->uses.first[row], last = r->uses.first[row + 1];
    bool are_products = first < last && !r->uses.is_output[row];
    for (size_t u = first; u < last && are_products; ++u) {
        are_products = reads_row(r, r->uses.users[u], row);
    }
    for (size_t u = first; u < last && are_products; ++u) {
        const rondo__node *norm = &program->nodes[n];
        const size_t user = r->uses.users[u];
        int32_t inputs[RONDO__BITS_ROW_INPUTS];
        rondo__op op = {0};
        list_inputs(&program->nodes[user], inputs);
        inputs[RONDO__BITS_A] = norm->inputs[0];
        inputs[RONDO__BITS_GAIN] = norm->inputs[1];
        RETURN_IF_ERROR(rondo__op_copy(&program->nodes[user].op, &op));
        const rondo_status status =
            rondo__op_set_float(&op, "epsilon", rondo__op_get_float(&norm->op, "epsilon", 1e-5f));
        if (status != RONDO_STATUS_OK) {
            rondo__op_deinit(&op);
            return status;
        }
        RETURN_IF_ERROR(become_bits_row(program, user, &op, inputs));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_bits_row(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_bits_gate));
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_bits_sum));
    return rondo__program_rewrite(program, join_bits_norm);
}

rondo_status rondo__pass_row_product(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_sum));
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_gate));
    return rondo__program_rewrite(program, join_norm);
}

rondo_status rondo__pass_few_rows(rondo_program *program) {
    RETURN_IF_ERROR(rondo__program_rewrite(program, join_few_gate));
    return rondo__program_rewrite(program, join_few_norm);
}
