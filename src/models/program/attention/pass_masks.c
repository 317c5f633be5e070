// program/attention/pass_masks.c — two constants that are added to the scores of a softmax, one
// after the other, are one.
//
//   before   s = Add(scores, bias)                    a bias for each pair of places
//            s' = Add(Reshape(s), mask)               what the windows of an image hide
//            y = Softmax(Reshape(s'))                 in the shape of the scores again
//   after    y = Softmax(Add(scores, bias + mask))
//
// So that there is one mask, with which this is an attention. The Reshapes may be missing. The sum
// is rounded where the two were added apart before; in f16 it stays finite.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op/half.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { ELEMENTS_MOST = 1 << 22 };  // of the sum

typedef struct pattern {
    rondo__rewriting *r;
    int32_t nodes[4];  // the first Add, a Reshape or -1, the second Add, a Reshape or -1
    int32_t scores, first, second;  // what is added to what
    int32_t result;                 // that the softmax reads
    rondo_shape shape, between;     // of the scores, and where the second constant is added
} pattern;

static bool is_view(const rondo__node *node) {
    return (node->op.def->flags & RONDO__OP_VIEW) != 0;
}

// Splits an Add into a constant of f16 or f32 and the other operand, which has the sum's shape.
static bool match_add(const rondo_program *program, int32_t n, int32_t *out_constant,
                      int32_t *out_other, rondo_shape *out_shape) {
    if (n < 0 || !rondo__node_is(&program->nodes[n], RONDO__OP_Add)) {
        return false;
    }
    const rondo__node *node = &program->nodes[n];
    for (int i = 0; i < 2; ++i) {
        const rondo__value *constant = &program->values[node->inputs[i]];
        rondo_shape sum, other;
        if ((constant->constant.dtype == RONDO_DTYPE_F16 ||
             constant->constant.dtype == RONDO_DTYPE_F32) &&
            !rondo__value_is_constant(&program->values[node->inputs[1 - i]]) &&
            rondo__program_get_shape(program, node->outputs[0], &sum) &&
            rondo__program_get_shape(program, node->inputs[1 - i], &other) &&
            rondo_shape_is_equal(&sum, &other)) {
            *out_constant = node->inputs[i];
            *out_other = node->inputs[1 - i];
            *out_shape = sum;
            return true;
        }
    }
    return false;
}

static bool match(rondo__rewriting *r, size_t softmax, pattern *p) {
    const rondo_program *program = r->program;
    int32_t value = program->nodes[softmax].inputs[0];
    *p = (pattern){.r = r, .nodes = {-1, -1, -1, -1}, .result = value};
    int32_t n = rondo__rewriting_get_maker(r, value);
    if (n >= 0 && is_view(&program->nodes[n])) {
        p->nodes[3] = n;
        n = rondo__rewriting_get_maker(r, program->nodes[n].inputs[0]);
    }
    p->nodes[2] = n;
    if (!match_add(program, n, &p->second, &value, &p->between)) {
        return false;
    }
    n = rondo__rewriting_get_maker(r, value);
    if (n >= 0 && is_view(&program->nodes[n])) {
        p->nodes[1] = n;
        n = rondo__rewriting_get_maker(r, program->nodes[n].inputs[0]);
    }
    p->nodes[0] = n;
    rondo_shape result;
    return match_add(program, n, &p->first, &p->scores, &p->shape) &&
           rondo__program_get_shape(program, p->result, &result) &&
           rondo_shape_is_equal(&result, &p->shape) &&
           rondo_shape_get_count(&p->shape) <= ELEMENTS_MOST &&
           program->values[p->first].constant.dtype == program->values[p->second].constant.dtype;
}

static float get_element(const rondo_tensor *tensor, int64_t i) {
    return tensor->dtype == RONDO_DTYPE_F16
               ? rondo_f16_to_float(((const uint16_t *)tensor->data)[i])
               : ((const float *)tensor->data)[i];
}

// Element `i` of what the constant is as part of `shape`.
static float get_repeated(const rondo_tensor *tensor, const rondo_shape *shape, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t d = shape->rank - 1, own = tensor->shape.rank - 1; d >= 0 && own >= 0;
         --d, --own) {
        const int64_t extent = tensor->shape.extent[own];
        at += extent > 1 ? i % shape->extent[d] * step : 0;
        step *= extent;
        i /= shape->extent[d];
    }
    return get_element(tensor, at);
}

static rondo_status add_up(const pattern *p, int32_t *out_sum) {
    const rondo_tensor *first = &p->r->program->values[p->first].constant;
    const rondo_tensor *second = &p->r->program->values[p->second].constant;
    rondo_tensor sum;
    rondo_status status = rondo_tensor_init(first->dtype, &p->shape, &sum);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    for (int64_t i = 0; i < rondo_shape_get_count(&p->shape); ++i) {
        const float x = get_repeated(first, &p->shape, i) + get_repeated(second, &p->between, i);
        if (sum.dtype == RONDO_DTYPE_F16) {
            // What is finite stays so: minus infinity would make NaN of fully masked rows.
            const float kept = isfinite(x) ? fminf(fmaxf(x, -65504.0f), 65504.0f) : x;
            ((uint16_t *)sum.data)[i] = rondo_f16_from_float(kept);
        } else {
            ((float *)sum.data)[i] = x;
        }
    }
    status = rondo__program_add_constant(p->r->program, "mask", &sum, out_sum);
    rondo_tensor_deinit(&sum);
    return status;
}

static rondo_status rewrite_node(rondo__rewriting *r, size_t n) {
    pattern p;
    int32_t sum;
    if (!rondo__node_is(&r->program->nodes[n], RONDO__OP_Softmax) || !match(r, n, &p)) {
        return RONDO_STATUS_OK;
    }
    const rondo_status status = add_up(&p, &sum);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__node *add = &r->program->nodes[p.nodes[2]];
    add->inputs[0] = p.scores;
    add->inputs[1] = sum;
    add->outputs[0] = p.result;
    r->program->values[p.result].producer = p.nodes[2];
    const int32_t gone[] = {p.nodes[0], p.nodes[1], p.nodes[3]};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; ++i) {
        if (gone[i] >= 0) {
            r->remove[gone[i]] = true;
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_masks(rondo_program *program) {
    return rondo__program_rewrite(program, rewrite_node);
}
