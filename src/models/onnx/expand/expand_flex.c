// onnx/expand/expand_flex.c — FlexAttention of ai.onnx.preview: two products around a softmax, with
// bodies that change scores and weights, which are written out where they stand.
//
// Heads of Q that share one of K and V are an extent of their own, between batch and head.
//
// Source: ONNX operator FlexAttention, version 1 of ai.onnx.preview.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "onnx/expand/expand.h"
#include "op/support.h"
#include "program/body_view.h"

#define NEW RONDO__VALUE_NONE

// ---- bodies -----------------------------------------------------------------------------------

typedef struct moving {
    rondo__expander *e;
    const rondo_program *body;
    int32_t *outer;  // number in the program of each value of the body; NONE: not there yet
    int32_t *lists;  // room for the inputs and outputs of a node
} moving;

static rondo_status enter(moving *m, int32_t value, int32_t *out_outer) {
    *out_outer = RONDO__VALUE_NONE;
    if (value < 0) {
        return RONDO_STATUS_OK;
    }
    if (m->outer[value] < 0) {
        char *name = rondo__strformat(
            "%s/%s", rondo__expand_op(m->e)->name,
            m->body->values[value].name != NULL ? m->body->values[value].name : "body");
        if (name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        const rondo_status status =
            rondo__program_add_from_around(m->e->program, name, m->body, value, &m->outer[value]);
        rondo__free(name);
        RETURN_IF_ERROR(status);
        m->e->program->values[m->outer[value]].origin = -1;
    }
    *out_outer = m->outer[value];
    return RONDO_STATUS_OK;
}

static rondo_status move_nodes(moving *m) {
    for (size_t n = 0; n < m->body->node_count; ++n) {
        const rondo__node *node = &m->body->nodes[n];
        int32_t *outputs = m->lists + node->input_count;
        for (size_t i = 0; i < node->input_count; ++i) {
            RETURN_IF_ERROR(enter(m, node->inputs[i], &m->lists[i]));
        }
        for (size_t i = 0; i < node->output_count; ++i) {
            RETURN_IF_ERROR(enter(m, node->outputs[i], &outputs[i]));
        }
        RETURN_IF_ERROR(rondo__program_add_copy(m->e->program, node, m->lists, outputs));
    }
    return RONDO_STATUS_OK;
}

static rondo_status move_body(moving *m, const rondo__body_view *view, int32_t x, int32_t *out_y) {
    const rondo__node *node = &m->e->builder->node;
    m->outer[m->body->inputs[0]] = x;
    for (size_t i = 0; i < view->captured_count; ++i) {
        m->outer[m->body->inputs[1 + i]] = node->inputs[view->captured_first + i];
    }
    RETURN_IF_ERROR(move_nodes(m));
    return enter(m, m->body->outputs[0], out_y);
}

// What a body makes of `x`; `x` itself where there is none.
static int32_t apply_body(rondo__expander *e, const char *name, int32_t x) {
    rondo__body_view view;
    if (rondo__expand_failed(e) || !rondo__body_find(&e->builder->node, name, &view)) {
        return x;
    }
    const rondo_program *body = view.attribute->body;
    if (body->declared_count != 1 || body->output_count != 1) {
        e->status = RONDO_FAIL(BAD_DATA, "%s takes %zu inputs and makes %zu outputs, not one each",
                               name, body->declared_count, body->output_count);
        return x;
    }
    size_t widest = 0;
    for (size_t n = 0; n < body->node_count; ++n) {
        const size_t width = body->nodes[n].input_count + body->nodes[n].output_count;
        widest = width > widest ? width : widest;
    }
    moving m = {.e = e,
                .body = body,
                .outer = rondo__calloc(body->value_count + 1, sizeof(int32_t)),
                .lists = rondo__calloc(widest + 1, sizeof(int32_t))};
    int32_t y = x;
    e->status = m.outer != NULL && m.lists != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t v = 0; v < body->value_count && m.outer != NULL; ++v) {
        m.outer[v] = RONDO__VALUE_NONE;
    }
    if (e->status == RONDO_STATUS_OK) {
        e->status = move_body(&m, &view, x, &y);
    }
    rondo__free(m.outer);
    rondo__free(m.lists);
    return y;
}

// ---- the op -----------------------------------------------------------------------------------

// Extents `start` to `end` - 1 of a value, as a list.
static int32_t get_extents(rondo__expander *e, int32_t value, int64_t start, int64_t end) {
    const int32_t shape = EXPAND(e, "Shape", NEW, value);
    rondo__expand_set_int(e, "start", start);
    rondo__expand_set_int(e, "end", end);
    return shape;
}

static int32_t reshape(rondo__expander *e, int32_t x, const int32_t *parts, size_t count,
                       int32_t result) {
    const int32_t shape = rondo__expand_node(e, "Concat", NEW, parts, count);
    rondo__expand_set_int(e, "axis", 0);
    return EXPAND(e, "Reshape", result, x, shape);
}

static int32_t cast(rondo__expander *e, int32_t x, int64_t type) {
    const int32_t y = EXPAND(e, "Cast", NEW, x);
    rondo__expand_set_int(e, "to", type);
    return y;
}

// The root of the scale, in the type of Q.
static int32_t get_root(rondo__expander *e, int32_t q) {
    const float scale = rondo__op_get_float(rondo__expand_op(e), "scale", 0.0f);
    if (rondo__op_find(rondo__expand_op(e), "scale") != NULL) {
        return rondo__expand_number(e, sqrtf(scale), q);
    }
    const int32_t width = cast(e, get_extents(e, q, 3, 4), 1);
    const int32_t root = EXPAND(e, "Sqrt", NEW, EXPAND(e, "Sqrt", NEW, width));
    return EXPAND(e, "CastLike", NEW, EXPAND(e, "Reciprocal", NEW, root), q);
}

static int32_t find_scores(rondo__expander *e, int32_t q, int32_t k) {
    static const int64_t group = 2, turned[] = {0, 1, 2, 4, 3}, rest = -1;
    const int32_t root = get_root(e, q);
    const int32_t parts[] = {get_extents(e, q, 0, 1), get_extents(e, k, 1, 2),
                             rondo__expand_ints(e, &rest, 1), get_extents(e, q, 2, 4)};
    const int32_t of_q = reshape(e, EXPAND(e, "Mul", NEW, q, root), parts, 4, NEW);
    const int32_t of_k = EXPAND(e, "Unsqueeze", NEW, EXPAND(e, "Mul", NEW, k, root),
                                rondo__expand_ints(e, &group, 1));
    const int32_t columns = EXPAND(e, "Transpose", NEW, of_k);
    rondo__expand_set_ints(e, "perm", turned, 5);
    const int32_t whole[] = {get_extents(e, q, 0, 3), get_extents(e, k, 2, 3)};
    return reshape(e, EXPAND(e, "MatMul", NEW, of_q, columns), whole, 2, NEW);
}

static void expand_flex(rondo__expander *e) {
    static const int64_t group = 2, rest = -1;
    const int32_t q = rondo__expand_in(e, 0), k = rondo__expand_in(e, 1);
    const int32_t v = rondo__expand_in(e, 2);
    const bool is_double = rondo__expand_get_dtype(e, q) == RONDO_DTYPE_F64;
    const int64_t precision =
        rondo__op_get_int(rondo__expand_op(e), "softmax_precision", is_double ? 11 : 1);
    if (!rondo__dtype_is_float(rondo__dtype_from_onnx(precision))) {
        rondo__expand_refuse(e, "attribute softmax_precision");
    }
    const int32_t scores = cast(e, find_scores(e, q, k), precision);
    const int32_t weights = EXPAND(e, "Softmax", NEW, apply_body(e, "score_mod", scores));
    rondo__expand_set_int(e, "axis", -1);
    const int32_t shares = apply_body(e, "prob_mod", weights);
    const int32_t parts[] = {get_extents(e, q, 0, 1), get_extents(e, k, 1, 2),
                             rondo__expand_ints(e, &rest, 1), get_extents(e, q, 2, 3),
                             get_extents(e, k, 2, 3)};
    const int32_t of_v =
        EXPAND(e, "Unsqueeze", NEW, cast(e, v, precision), rondo__expand_ints(e, &group, 1));
    const int32_t y = EXPAND(e, "MatMul", NEW, reshape(e, shares, parts, 5, NEW), of_v);
    const int32_t whole[] = {get_extents(e, q, 0, 3), get_extents(e, v, 3, 4)};
    EXPAND(e, "CastLike", rondo__expand_out(e, 0), reshape(e, y, whole, 2, NEW), q);
}

static const char *const flex_attributes[] = {"prob_mod", "scale", "score_mod", "softmax_precision",
                                              NULL};

const rondo__expansion rondo__expansions_flex[] = {
    {.def = {.domain = "ai.onnx.preview",
             .name = "FlexAttention",
             .opset_min = 1,
             .opset_max = 1,
             .input_min = 3,
             .input_max = 3,
             .output_min = 1,
             .output_max = 1,
             .attributes = flex_attributes},
     .expand = expand_flex},
    {.def = {.name = NULL}},
};
