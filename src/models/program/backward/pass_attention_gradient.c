// program/backward/pass_attention_gradient.c — the way back through Attention, as gradients write
// it (gradient/rules_attention.c) for q, k and v of [batch, rows, heads * width] without a mask,
// becomes rondo.AttentionGradient, which computes the scores again, so that none are kept.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/op.h"
#include "program/backward/backward.h"
#include "program/backward/match_tree.h"
#include "program/passes/match.h"
#include "program/passes/rewrite.h"

// Heads of a matrix come first, and go back.
#define HEADS(letter, matrix) letter "=Transpose(Reshape(" matrix ",_))"
#define ROWS(heads) "Reshape(Transpose(" heads "),_)"
#define SCORES "MatMul(a=Mul(" HEADS("q", "Q") ",r),b=Transpose(l=Mul(" HEADS("k", "K") ",r)))"
#define CHANGE(chances) \
    "Mul(Sub(e=MatMul(" HEADS("g", "Y") ",t=Transpose(" HEADS("v", "V") ")),"               \
    "n=ReduceSum(Mul(e,p=Softmax(" chances ")),A)),p)"
#define OF_Q(change) ROWS("w=Mul(MatMul(D=" change ",u=Transpose(b)),r)")

static const char causal_tree[] = OF_Q("Where(M," CHANGE("Where(M," SCORES ",i)") ",z)");
static const char open_tree[] = OF_Q(CHANGE(SCORES));
static const char keys_tree[] = ROWS("Mul(T=Transpose(MatMul(Transpose(a),D)),r)");
static const char values_tree[] = ROWS("x=MatMul(P=Transpose(p),g)");

static int32_t get(const rondo__tree *tree, char letter) {
    return tree->value[(unsigned char)letter];
}

static bool is_turned(const rondo_program *program, int32_t value, const int64_t *perm) {
    const rondo__node *node = &program->nodes[program->values[value].producer];
    const rondo__attribute *own = rondo__op_find(&node->op, "perm");
    return own != NULL && own->count == 4 && memcmp(own->ints, perm, 4 * sizeof *perm) == 0;
}

// Row i sees columns 0 .. i.
static bool is_causal(const rondo_program *program, int32_t value, int64_t rows, int64_t columns) {
    const rondo_tensor *mask = &program->values[value].constant;
    const rondo_shape shape = {2, {rows, columns}};
    bool is_good = mask->dtype == RONDO_DTYPE_BOOL && rondo_shape_is_equal(&mask->shape, &shape);
    for (int64_t i = 0; is_good && i < rows * columns; ++i) {
        is_good = (((const uint8_t *)mask->data)[i] != 0) == (i / columns >= i % columns);
    }
    return is_good;
}

// The value behind the ops, each the only reader of the one before; NONE: there is none.
static int32_t follow(const rondo__rewriting *r, int32_t value, const rondo__op_id *ops,
                      size_t count) {
    for (size_t i = 0; i < count && value >= 0; ++i) {
        const int32_t user = rondo__uses_get_single(&r->uses, value);
        value = user >= 0 && rondo__node_is(&r->program->nodes[user], ops[i])
                    ? r->program->nodes[user].outputs[0]
                    : RONDO__VALUE_NONE;
    }
    return value;
}

// What the tree says of a value that is made of `from` by these ops and others behind.
static int32_t find(const rondo__rewriting *r, int32_t from, const rondo__op_id *ops, size_t count,
                    const char *pattern, rondo__tree *tree) {
    for (size_t u = r->uses.first[from]; u < r->uses.first[from + 1]; ++u) {
        const rondo__node *user = &r->program->nodes[r->uses.users[u]];
        if (!rondo__node_is(user, ops[0])) {
            continue;
        }
        rondo__tree own = *tree;
        const int32_t value = follow(r, user->outputs[0], ops + 1, count - 1);
        if (value >= 0 && rondo__match_tree(r->program, value, pattern, &own)) {
            *tree = own;
            return value;
        }
    }
    return RONDO__VALUE_NONE;
}

static bool has_shape_of(const rondo_program *program, int32_t value, int32_t like) {
    rondo_shape a, b;
    return rondo__value_get_shape(&program->values[value], &a) &&
           rondo__value_get_shape(&program->values[like], &b) && rondo_shape_is_equal(&a, &b);
}

// Checks what the trees leave open, the order of axes and the axes of sums; gives q's extents in
// heads.
static bool fits(const rondo_program *program, const rondo__tree *tree, const int32_t *made,
                 bool has_mask, rondo_shape *out_q, float *out_root) {
    static const int64_t heads[] = {0, 2, 1, 3}, swap[] = {0, 1, 3, 2};
    static const char turned[] = "qkgv", swapped[] = "btuTP";
    const rondo__node *softmax = &program->nodes[program->values[get(tree, 'p')].producer];
    int64_t axis[RONDO_RANK_MAX];
    rondo_shape k, sum;
    float number;
    if (!rondo__value_get_shape(&program->values[get(tree, 'q')], out_q) || out_q->rank != 4 ||
        !rondo__value_get_shape(&program->values[get(tree, 'k')], &k) || k.rank != 4 ||
        !rondo__value_get_shape(&program->values[get(tree, 'n')], &sum) || sum.rank != 4 ||
        sum.extent[3] != 1 || !rondo__match_scalar(program, get(tree, 'r'), out_root) ||
        rondo__match_ints(program, get(tree, 'A'), axis) != 1 || axis[0] != 3 ||
        (rondo__op_get_int(&softmax->op, "axis", -1) != -1 &&
         rondo__op_get_int(&softmax->op, "axis", -1) != 3)) {
        return false;
    }
    for (const char *c = turned; *c != '\0'; ++c) {
        if (!is_turned(program, get(tree, *c), heads)) {
            return false;
        }
    }
    for (const char *c = swapped; *c != '\0'; ++c) {
        if (!is_turned(program, get(tree, *c), swap)) {
            return false;
        }
    }
    static const char of[] = "QKV";
    for (size_t i = 0; i < 3; ++i) {
        rondo_shape shape;
        const int32_t last = program->nodes[program->values[made[i]].producer].inputs[0];
        if (!has_shape_of(program, made[i], get(tree, of[i])) ||
            !rondo__value_get_shape(&program->values[made[i]], &shape) || shape.rank != 3 ||
            program->values[made[i]].dtype != RONDO_DTYPE_F32 || !is_turned(program, last, heads)) {
            return false;
        }
    }
    return !has_mask ||
           (is_causal(program, get(tree, 'M'), out_q->extent[2], k.extent[2]) &&
            rondo__match_scalar(program, get(tree, 'i'), &number) && number == -INFINITY &&
            rondo__match_scalar(program, get(tree, 'z'), &number) && number == 0.0f);
}

// The change as [batch, rows, heads * width], where it comes otherwise.
static rondo_status join_heads(rondo_program *program, int32_t heads, int32_t *in_out_change) {
    rondo_shape of_heads, own;
    (void)rondo__value_get_shape(&program->values[heads], &of_heads);
    const rondo_shape joined = {
        3, {of_heads.extent[0], of_heads.extent[2], of_heads.extent[1] * of_heads.extent[3]}};
    const int32_t change = *in_out_change;
    if (rondo__value_get_shape(&program->values[change], &own) &&
        rondo_shape_is_equal(&own, &joined)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[change].name,
                                              RONDO_DTYPE_F32, &joined, in_out_change));
    return rondo__program_add_reshape(program, change, *in_out_change, &joined);
}

// The Concat of dq, dk and dv, rows of each behind the other, if it alone reads them; -1: none.
static int32_t find_concat(const rondo__rewriting *r, const int32_t *made) {
    const rondo_program *program = r->program;
    const int32_t user = rondo__uses_get_single(&r->uses, made[0]);
    const rondo__node *node = user >= 0 ? &program->nodes[user] : NULL;
    bool is_good = node != NULL && rondo__node_is(node, RONDO__OP_Concat) && !r->remove[user] &&
                   node->input_count == 3 && has_shape_of(program, made[0], made[1]);
    const int64_t axis = is_good ? rondo__op_get_int(&node->op, "axis", 0) : 0;
    for (size_t i = 0; is_good && i < 3; ++i) {
        is_good = node->inputs[i] == made[i] && !r->uses.is_output[made[i]] &&
                  rondo__uses_get_single(&r->uses, made[i]) == user;
    }
    return is_good && (axis == 2 || axis == -1) ? user : -1;
}

static rondo_status become(rondo__rewriting *r, size_t n, const rondo__tree *tree,
                           const int32_t *made, int64_t heads, float scale, bool has_mask) {
    rondo_program *program = r->program;
    const int32_t concat = find_concat(r, made);
    rondo__op op = {.opset = RONDO_OP_OPSET_MAX,
                    .def = rondo__op_get_def(RONDO__FUSED_AttentionGradient)};
    int32_t *inputs = rondo__calloc(4, sizeof *inputs),
            *outputs = rondo__calloc(3, sizeof *outputs);
    rondo_status status = inputs != NULL && outputs != NULL
                              ? rondo__op_set_int(&op, "num_heads", heads)
                              : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_float(&op, "scale", scale);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_int(&op, "is_causal", has_mask);
    }
    if (status == RONDO_STATUS_OK && concat >= 0) {
        status = rondo__op_set_int(&op, "joined", 1);
    }
    static const char of[] = "YQKV";
    for (size_t i = 0; i < 4 && status == RONDO_STATUS_OK; ++i) {
        inputs[i] = get(tree, of[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = join_heads(program, get(tree, 'g'), &inputs[0]);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__op_deinit(&op);
        rondo__free(inputs);
        rondo__free(outputs);
        return status;
    }
    rondo__node *node = &program->nodes[n];
    rondo__node_become(node, &op, inputs, 4);
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = concat < 0 ? 3 : 1;
    for (size_t i = 0; i < 3; ++i) {
        const int32_t maker = program->values[made[i]].producer;
        r->remove[maker] = maker != (int32_t)n;
        program->values[made[i]].producer = concat < 0 ? (int32_t)n : -1;
        outputs[i] = made[i];
    }
    if (concat >= 0) {
        outputs[0] = program->nodes[concat].outputs[0];
        program->values[outputs[0]].producer = (int32_t)n;
        r->remove[concat] = true;
    }
    return RONDO_STATUS_OK;
}

static rondo_status rewrite(rondo__rewriting *r, size_t n) {
    static const rondo__op_id to_keys[] = {RONDO__OP_MatMul, RONDO__OP_Transpose, RONDO__OP_Mul,
                                           RONDO__OP_Transpose, RONDO__OP_Reshape};
    static const rondo__op_id to_values[] = {RONDO__OP_Transpose, RONDO__OP_MatMul,
                                             RONDO__OP_Transpose, RONDO__OP_Reshape};
    const rondo_program *program = r->program;
    rondo__tree tree = {0};
    rondo_shape q;
    float root;
    if (!rondo__node_is(&program->nodes[n], RONDO__OP_Reshape) || r->remove[n]) {
        return RONDO_STATUS_OK;
    }
    const int32_t value = program->nodes[n].outputs[0];
    const bool has_mask = rondo__match_tree(program, value, causal_tree, &tree);
    if (!has_mask) {
        tree = (rondo__tree){0};
        if (!rondo__match_tree(program, value, open_tree, &tree)) {
            return RONDO_STATUS_OK;
        }
    }
    const int32_t made[] = {value, find(r, get(&tree, 'D'), to_keys, 5, keys_tree, &tree),
                            find(r, get(&tree, 'p'), to_values, 4, values_tree, &tree)};
    if (made[1] < 0 || made[2] < 0 || !fits(program, &tree, made, has_mask, &q, &root)) {
        return RONDO_STATUS_OK;
    }
    return become(r, n, &tree, made, q.extent[1], root * root, has_mask);
}

rondo_status rondo__pass_attention_gradient(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite);
}
