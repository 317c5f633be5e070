// program/backward/pass_norm_gradient.c — the way back through BatchNormalization and
// LayerNormalization, as gradients write it (gradient/rules_norm.c), becomes rondo.NormGradient.
//
//   dx = factor * (c - mean(c) - n * mean(c n)),  n = (x - mean(x)) * inverse
//
// Of a batch c is dy, and mean and variance come from the BatchNormalization itself, which becomes
// rondo.BatchNormalization and puts them out. A Relu between, whose change no other node reads, is
// taken in. Before half precision is decided: the new node is one product for it.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

#define NORMAL(mean) "n=Mul(d=Sub(x," mean("x") "),i=Reciprocal(Sqrt(Add(" mean("Mul(d,d)") ",e))))"
#define BATCH_MEAN(x) "ReduceMean(ReduceMean(" x "),_)"
#define ROW_MEAN(x) "ReduceMean(" x ")"

// rest, factor: dy less its mean and less the share of n.
static const char batch_tree[] =
    "Mul(Sub(Sub(g,Reshape(Div(t=ReduceSum(ReduceSum(g,A),B),c))),"
    "Mul(" NORMAL(BATCH_MEAN) ",Reshape(Div(a=ReduceSum(ReduceSum(Mul(g,n),C),D),k)))),"
    "Mul(i,Reshape(s)))";
static const char row_tree[] =
    "Mul(Sub(Sub(c=Mul(g,s),ReduceMean(c,A)),"
    "Mul(" NORMAL(ROW_MEAN) ",ReduceMean(Mul(c,n),B))),i)";

static int32_t get(const rondo__tree *tree, char letter) {
    return tree->value[(unsigned char)letter];
}

static rondo_shape get_shape(const rondo_program *program, int32_t value) {
    rondo_shape shape = {.rank = -1};
    return rondo__value_get_shape(&program->values[value], &shape) ? shape
                                                                   : (rondo_shape){.rank = -1};
}

static bool has_extents(const rondo_program *program, int32_t value, int32_t axis, int64_t extent) {
    const rondo_shape shape = get_shape(program, value);
    for (int32_t d = 0; d < shape.rank; ++d) {
        if (shape.extent[d] != (d == axis ? extent : 1)) {
            return false;
        }
    }
    return shape.rank > axis;
}

static bool has_shape(const rondo_program *program, int32_t value, const rondo_shape *shape) {
    const rondo_shape own = get_shape(program, value);
    return own.rank >= 0 && rondo_shape_is_equal(&own, shape);
}

// The axes first .. end - 1.
static bool are_axes(const rondo_program *program, int32_t value, int32_t first, int32_t end) {
    int64_t axes[RONDO_RANK_MAX];
    bool are = value >= 0 && rondo__match_ints(program, value, axes) == end - first;
    for (int32_t d = first; d < end && are; ++d) {
        are = axes[d - first] == d;
    }
    return are;
}

static bool is_single(const rondo_program *program, int32_t value) {
    return value >= 0 && program->values[value].dtype == RONDO_DTYPE_F32;
}

static int32_t get_operand(const rondo_program *program, int32_t value, size_t index) {
    const int32_t maker = program->values[value].producer;
    return program->nodes[maker].inputs[index];
}

// More outputs; absent ones between.
static rondo_status widen_outputs(rondo__node *node, size_t count) {
    int32_t *outputs = rondo__calloc(count, sizeof *outputs);
    if (outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        outputs[i] = i < node->output_count ? node->outputs[i] : RONDO__VALUE_NONE;
    }
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = count;
    return RONDO_STATUS_OK;
}

static void set_output(rondo_program *program, size_t n, size_t output, int32_t value) {
    program->nodes[n].outputs[output] = value;
    if (value >= 0) {
        program->values[value].producer = (int32_t)n;
    }
}

// Node `n`, whose output is dx, becomes the new op; sums[0 .. 1] are values or NONE.
static rondo_status become(rondo__rewriting *r, size_t n, const int32_t *inputs, size_t count,
                           float epsilon, const int32_t *sums) {
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(RONDO__FUSED_NormGradient)};
    int32_t *list = rondo__calloc(count, sizeof *list);
    rondo_status status =
        list != NULL ? rondo__op_set_float(&op, "epsilon", epsilon) : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = widen_outputs(&r->program->nodes[n], 3);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(list);
        return status;
    }
    memcpy(list, inputs, count * sizeof *list);
    rondo__node_become(&r->program->nodes[n], &op, list, count);
    for (size_t i = 0; i < 2; ++i) {
        if (sums[i] >= 0) {
            const int32_t maker = r->program->values[sums[i]].producer;
            if (maker >= 0) {
                r->remove[maker] = true;
            }
            set_output(r->program, n, 1 + i, sums[i]);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- batches ------------------------------------------------------------------------------------

static bool fits_batch(const rondo_program *program, const rondo__tree *tree, rondo_shape *out_x,
                       float *out_epsilon) {
    const rondo_shape x = get_shape(program, get(tree, 'x'));
    if (x.rank < 3 || !are_axes(program, get(tree, 'A'), 2, x.rank) ||
        !are_axes(program, get(tree, 'C'), 2, x.rank) || !are_axes(program, get(tree, 'B'), 0, 1) ||
        !are_axes(program, get(tree, 'D'), 0, 1)) {
        return false;
    }
    // Means are of what the sums are of: one number is left of each channel.
    const int32_t mean = get_operand(program, get(tree, 'd'), 1);
    const int32_t variance =
        get_operand(program, get_operand(program, get_operand(program, get(tree, 'i'), 0), 0), 0);
    const int64_t channels = x.extent[1];
    const float count = (float)(rondo_shape_get_count(&x) / (channels > 0 ? channels : 1));
    *out_x = x;
    return is_single(program, get(tree, 'x')) && is_single(program, get(tree, 'g')) &&
           is_single(program, get(tree, 's')) && channels > 0 &&
           has_extents(program, mean, 1, channels) && has_extents(program, variance, 1, channels) &&
           has_extents(program, get(tree, 's'), 0, channels) &&
           get_shape(program, get(tree, 's')).rank == 1 &&
           rondo__match_is_number(program, get(tree, 'c'), count) &&
           rondo__match_is_number(program, get(tree, 'k'), count) &&
           rondo__match_scalar(program, get(tree, 'e'), out_epsilon);
}

// The BatchNormalization of x by its own statistics.
static int32_t find_norm(const rondo__rewriting *r, int32_t x, float epsilon) {
    for (size_t u = r->uses.first[x]; u < r->uses.first[x + 1]; ++u) {
        const rondo__node *node = &r->program->nodes[r->uses.users[u]];
        const bool is_plain = rondo__node_is(node, RONDO__OP_BatchNormalization) &&
                              node->op.opset >= 14 && rondo__op_trains(&node->op);
        if ((is_plain || rondo__node_is(node, RONDO__FUSED_BatchNormalization)) &&
            node->inputs[0] == x && is_single(r->program, node->inputs[3]) &&
            is_single(r->program, node->inputs[4]) && is_single(r->program, node->inputs[1]) &&
            rondo__op_get_float(&node->op, "epsilon", 1e-5f) == epsilon) {
            return (int32_t)r->uses.users[u];
        }
    }
    return -1;
}

// Lets it put out mean and variance.
static rondo_status take_moments(rondo__rewriting *r, size_t n, const rondo_shape *x) {
    const rondo_shape vector = {.rank = 1, .extent = {x->extent[1]}};
    if (rondo__node_is(&r->program->nodes[n], RONDO__FUSED_BatchNormalization)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(widen_outputs(&r->program->nodes[n], 5));
    for (size_t i = 3; i < 5; ++i) {
        int32_t value;
        RETURN_IF_ERROR(rondo__program_add_shaped(r->program, r->program->nodes[n].op.name,
                                                  RONDO_DTYPE_F32, &vector, &value));
        set_output(r->program, n, i, value);
    }
    r->program->nodes[n].op.def = rondo__op_get_def(RONDO__FUSED_BatchNormalization);
    r->program->nodes[n].op.opset = RONDO_OP_OPSET_MAX;
    return RONDO_STATUS_OK;
}

// g as it was before a Relu, which only this tree asks for.
static bool takes_relu(const rondo__rewriting *r, const rondo__tree *tree, const rondo_shape *x,
                       rondo__tree *relu) {
    const int32_t g = get(tree, 'g');
    return r->uses.first[g + 1] - r->uses.first[g] == 3 && !r->uses.is_output[g] &&
           rondo__match_tree(r->program, g, "Where(LessOrEqual(y,z),w,g)", relu) &&
           rondo__match_is_number(r->program, get(relu, 'z'), 0.0f) &&
           rondo__match_is_number(r->program, get(relu, 'w'), 0.0f) &&
           is_single(r->program, get(relu, 'y')) && has_shape(r->program, get(relu, 'y'), x) &&
           has_shape(r->program, get(relu, 'g'), x);
}

static rondo_status rewrite_batch(rondo__rewriting *r, size_t n, const rondo__tree *tree) {
    rondo_shape x;
    float epsilon;
    rondo__tree relu = {0};
    if (!fits_batch(r->program, tree, &x, &epsilon)) {
        return RONDO_STATUS_OK;
    }
    const int32_t norm = find_norm(r, get(tree, 'x'), epsilon);
    if (norm < 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(take_moments(r, (size_t)norm, &x));
    const rondo__node *maker = &r->program->nodes[norm];
    const bool is_relu = takes_relu(r, tree, &x, &relu);
    const int32_t inputs[6] = {get(is_relu ? &relu : tree, 'g'),
                               get(tree, 'x'),
                               get(tree, 's'),
                               maker->outputs[3],
                               maker->outputs[4],
                               is_relu ? get(&relu, 'y') : RONDO__VALUE_NONE};
    return become(r, n, inputs, is_relu ? 6 : 5, epsilon,
                  (const int32_t[]){get(tree, 'a'), get(tree, 't')});
}

// ---- rows ---------------------------------------------------------------------------------------

// The sum over all axes before the rows of `value`; NONE: there is none.
static int32_t find_sum(const rondo__rewriting *r, int32_t value, int32_t axis) {
    for (size_t u = r->uses.first[value]; u < r->uses.first[value + 1]; ++u) {
        const rondo__node *node = &r->program->nodes[r->uses.users[u]];
        if (rondo__node_is(node, RONDO__OP_ReduceSum) && node->input_count > 1 &&
            are_axes(r->program, node->inputs[1], 0, axis) && !r->remove[r->uses.users[u]]) {
            return node->outputs[0];
        }
    }
    return RONDO__VALUE_NONE;
}

static int32_t find_product(const rondo__rewriting *r, int32_t g, int32_t normal) {
    for (size_t u = r->uses.first[normal]; u < r->uses.first[normal + 1]; ++u) {
        const rondo__node *node = &r->program->nodes[r->uses.users[u]];
        if (rondo__node_is(node, RONDO__OP_Mul) && node->inputs[0] == g &&
            node->inputs[1] == normal) {
            return node->outputs[0];
        }
    }
    return RONDO__VALUE_NONE;
}

// A vector in the place of a sum that had other axes, too.
static rondo_status flatten_sum(rondo__rewriting *r, int32_t sum, int64_t width,
                                int32_t *out_vector) {
    *out_vector = sum;
    if (sum < 0 || get_shape(r->program, sum).rank == 1) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape vector = {.rank = 1, .extent = {width}};
    const rondo_shape wide = get_shape(r->program, sum);
    r->remove[r->program->values[sum].producer] = true;
    RETURN_IF_ERROR(rondo__program_add_shaped(r->program, r->program->values[sum].name,
                                              RONDO_DTYPE_F32, &vector, out_vector));
    r->program->values[sum].producer = -1;
    return rondo__program_add_reshape(r->program, *out_vector, sum, &wide);
}

static rondo_status rewrite_rows(rondo__rewriting *r, size_t n, const rondo__tree *tree) {
    const rondo_program *program = r->program;
    const rondo_shape x = get_shape(program, get(tree, 'x'));
    const rondo_shape dy = get_shape(program, get(tree, 'g'));
    const rondo_shape scale = get_shape(program, get(tree, 's'));
    const int64_t width = x.rank > 0 ? x.extent[x.rank - 1] : 0;
    float epsilon;
    const int32_t mean = get_operand(program, get(tree, 'd'), 1);
    const rondo_shape kept = get_shape(program, mean);
    if (x.rank < 2 || width < 1 || scale.rank != 1 || scale.extent[0] != width ||
        !rondo_shape_is_equal(&x, &dy) || !is_single(program, get(tree, 'x')) ||
        !is_single(program, get(tree, 'g')) || !is_single(program, get(tree, 's')) ||
        !are_axes(program, get(tree, 'A'), x.rank - 1, x.rank) ||
        !are_axes(program, get(tree, 'B'), x.rank - 1, x.rank) || kept.rank != x.rank ||
        kept.extent[x.rank - 1] != 1 ||
        rondo_shape_get_count(&kept) * width != rondo_shape_get_count(&x) ||
        !rondo__match_scalar(program, get(tree, 'e'), &epsilon)) {
        return RONDO_STATUS_OK;
    }
    const int32_t product = find_product(r, get(tree, 'g'), get(tree, 'n'));
    int32_t sums[2] = {product >= 0 ? find_sum(r, product, x.rank - 1) : RONDO__VALUE_NONE,
                       find_sum(r, get(tree, 'g'), x.rank - 1)};
    for (size_t i = 0; i < 2; ++i) {
        RETURN_IF_ERROR(flatten_sum(r, sums[i], width, &sums[i]));
    }
    return become(r, n, (const int32_t[]){get(tree, 'g'), get(tree, 'x'), get(tree, 's')}, 3,
                  epsilon, sums);
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    rondo__tree tree = {0};
    if (!rondo__node_is(&r->program->nodes[n], RONDO__OP_Mul) || r->remove[n]) {
        return RONDO_STATUS_OK;
    }
    const int32_t value = r->program->nodes[n].outputs[0];
    if (rondo__match_tree(r->program, value, batch_tree, &tree)) {
        return rewrite_batch(r, n, &tree);
    }
    memset(&tree, 0, sizeof tree);
    return rondo__match_tree(r->program, value, row_tree, &tree) ? rewrite_rows(r, n, &tree)
                                                                 : RONDO_STATUS_OK;
}

rondo_status rondo__pass_norm_gradient(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite);
}
