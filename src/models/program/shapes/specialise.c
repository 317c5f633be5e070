// program/shapes/specialise.c — see specialise.h.
//
// One walk in node order. Because makers precede users, each node meets final knowledge of its
// inputs: it is inferred, and when all its inputs are constants also computed, at once. Behind what
// depends on data (NonZero) only what does not is known. Bodies of control nodes are specialised in
// the same way, as copies that are thrown away, for what comes out of them.
// SPDX-License-Identifier: Apache-2.0
#include "program/shapes/specialise.h"

#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/draws.h"
#include "program/edit.h"
#include "program/shapes/control_shapes.h"
#include "tensor/elements.h"

// Nodes of bodies that one specialisation visits. Loops in loops are looked through many times.
enum { BODY_NODE_LIMIT = 100000 };
// The most bytes folded in a body, where only shapes are wanted.
enum { BODY_FOLD_BYTES = 64 << 10 };

void rondo__program_get_info(const rondo_program *program, int32_t value,
                             rondo__tensor_info *out_info) {
    memset(out_info, 0, sizeof *out_info);
    if (value < 0) {
        return;
    }
    const rondo__value *v = &program->values[value];
    out_info->dtype = v->dtype;
    out_info->is_shape_known = rondo__value_get_shape(v, &out_info->shape);
    if (!out_info->is_shape_known && v->has_shape && v->rank >= 0 && v->rank <= RONDO_RANK_MAX) {
        out_info->is_rank_known = true;
        out_info->shape.rank = v->rank;
        for (int32_t d = 0; d < v->rank; ++d) {
            out_info->shape.extent[d] = v->dims[d].number;
        }
    }
    if (rondo__value_is_constant(v)) {
        out_info->dtype = v->constant.dtype;
        out_info->constant = &v->constant;
    }
    out_info->most = v->most;
}

bool rondo__program_is_known(const rondo_program *program, int32_t value) {
    const rondo__value *v = value >= 0 ? &program->values[value] : NULL;
    return v == NULL || (rondo__value_has_known_shape(v) &&
                         (v->dtype != RONDO_DTYPE_NONE || rondo__value_is_constant(v)));
}

// Buffers for one node's view of its inputs and outputs, grown to the largest node.
typedef struct scratch {
    size_t capacity;
    rondo__tensor_info *inputs;
    rondo__tensor_info *outputs;
    const rondo_tensor **tensors;
    rondo_tensor *results;
    rondo_tensor *shells;  // tensors without bytes, for ops that only look at shapes
} scratch;

static void scratch_deinit(scratch *s) {
    rondo__free(s->inputs);
    rondo__free(s->outputs);
    rondo__free(s->tensors);
    rondo__free(s->results);
    rondo__free(s->shells);
}

static rondo_status scratch_init(const rondo_program *program, scratch *out_scratch) {
    scratch s = {.capacity = 1};
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        s.capacity = node->input_count > s.capacity ? node->input_count : s.capacity;
        s.capacity = node->output_count > s.capacity ? node->output_count : s.capacity;
    }
    s.inputs = rondo__calloc(s.capacity, sizeof *s.inputs);
    s.outputs = rondo__calloc(s.capacity, sizeof *s.outputs);
    s.tensors = rondo__calloc(s.capacity, sizeof *s.tensors);
    s.results = rondo__calloc(s.capacity, sizeof *s.results);
    s.shells = rondo__calloc(s.capacity, sizeof *s.shells);
    if (s.inputs == NULL || s.outputs == NULL || s.tensors == NULL || s.results == NULL ||
        s.shells == NULL) {
        scratch_deinit(&s);
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_scratch = s;
    return RONDO_STATUS_OK;
}

// True when the node's value can be computed now; tensors[] then names its inputs.
static bool can_fold(const rondo_program *program, const rondo__node *node, size_t fold_bytes,
                     scratch *s) {
    const rondo__op_def *def = node->op.def;
    if (def->compute == NULL || (def->flags & (RONDO__OP_CONTROL | RONDO__OP_IMPURE)) != 0 ||
        rondo__op_draws(&node->op, s->inputs, node->input_count)) {
        return false;
    }
    bool shape_only = (def->flags & RONDO__OP_SHAPE_ONLY) != 0;
    for (size_t i = 0; i < node->input_count; ++i) {
        int32_t value = node->inputs[i];
        s->tensors[i] = NULL;
        if (value < 0) {
            continue;
        }
        if (s->inputs[i].constant != NULL) {
            s->tensors[i] = &program->values[value].constant;
        } else if (shape_only && s->inputs[i].is_shape_known &&
                   s->inputs[i].dtype != RONDO_DTYPE_NONE) {
            s->shells[i] = (rondo_tensor){.dtype = s->inputs[i].dtype, .shape = s->inputs[i].shape};
            s->tensors[i] = &s->shells[i];
        } else {
            return false;
        }
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        if (!s->outputs[i].is_shape_known) {
            continue;  // known only after computing, and then no larger than its inputs
        }
        int64_t count = rondo_shape_get_count(&s->outputs[i].shape);
        size_t bytes = rondo_dtype_get_bytes(s->outputs[i].dtype);
        if (count < 0 || (bytes != 0 && (uint64_t)count > fold_bytes / bytes)) {
            return false;
        }
    }
    return true;
}

// Folded constants take at most half of the budget that is left.
static size_t limit_fold(size_t fold_bytes) {
    const rondo__budget *budget = rondo__budget_get_entered();
    if (budget == NULL) {
        return fold_bytes;
    }
    const uint64_t limit = rondo__budget_get_limit(budget);
    const uint64_t used = rondo__budget_get_used(budget);
    const uint64_t room = used < limit ? (limit - used) / 2 : 0;
    return room < fold_bytes ? (size_t)room : fold_bytes;
}

static rondo_status fold_node(rondo_program *program, const rondo__node *node, scratch *s) {
    memset(s->results, 0, node->output_count * sizeof *s->results);
    rondo__compute compute = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = s->tensors,
                              .outputs = s->results};
    rondo_status status = rondo__op_compute(&compute);
    for (size_t i = 0; i < node->output_count; ++i) {
        int32_t value = node->outputs[i];
        if (status == RONDO_STATUS_OK && value >= 0) {
            rondo__value *v = &program->values[value];
            rondo__value_set_shape(v, s->results[i].dtype, &s->results[i].shape);
            v->constant = s->results[i];  // moved
        } else {
            rondo_tensor_deinit(&s->results[i]);
        }
    }
    return status;
}

// One walk through a program.
typedef struct walk {
    rondo_program *program;
    size_t fold_bytes;
    bool is_partial;  // what is known in part is worth following
    bool *needed;     // values that would help
    bool *folded;     // nodes whose outputs became constants
    const rondo__value_wants *wants;
    scratch s;
    rondo__body_inference *bodies;
} walk;

// Whether output 0 is the one whole number that input 0 is.
static bool keeps_number(const rondo__node *node) {
    return rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__OP_Identity) ||
           rondo__node_is(node, RONDO__OP_Reshape) || rondo__node_is(node, RONDO__OP_Squeeze) ||
           rondo__node_is(node, RONDO__OP_Unsqueeze);
}

static bool is_whole_number(const rondo__tensor_info *info) {
    return (info->dtype == RONDO_DTYPE_I32 || info->dtype == RONDO_DTYPE_I64) &&
           info->is_shape_known && rondo_shape_get_count(&info->shape) == 1;
}

// The program input that `value` is, or (`is_number`) the one whole number of, or -1.
static int32_t find_input(const rondo_program *program, int32_t value, bool is_number) {
    rondo__tensor_info info;
    for (size_t n = program->node_count; is_number && n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        value =
            node->outputs[0] == value && value >= 0 && keeps_number(node) ? node->inputs[0] : value;
    }
    rondo__program_get_info(program, value, &info);
    for (size_t i = 0; i < program->input_count; ++i) {
        if (program->inputs[i] == value && (!is_number || is_whole_number(&info))) {
            return (int32_t)i;
        }
    }
    return -1;
}

// Notes that one input's value is wanted only above an extent of another. False: that cannot be
// said.
static bool note_bound(const walk *w, const rondo__node *node, const rondo__infer *infer) {
    const rondo__value_wants *wants = w->wants;
    if (!infer->has_bound || wants == NULL || wants->wanted == NULL || wants->bounds == NULL) {
        return false;
    }
    const int32_t of = find_input(w->program, node->inputs[infer->bound_input], true);
    const int32_t by = find_input(w->program, node->inputs[infer->bound_by], false);
    if (of < 0 || by < 0 || wants->most[of] > 0) {
        return false;
    }
    rondo__value_bound *bound = &wants->bounds[by];
    const bool is_free = bound->of < 0;
    if (!is_free && (bound->of != of || bound->axis != infer->bound_axis)) {
        return false;
    }
    *bound = (rondo__value_bound){of, infer->bound_axis};
    wants->wanted[of] =
        wants->wanted[of] > RONDO__WANT_BOUND ? wants->wanted[of] : RONDO__WANT_BOUND;
    return true;
}

static void keep_number(const walk *w, const rondo__node *node) {
    const int64_t most = node->input_count > 0 ? w->s.inputs[0].most : 0;
    if (most > 0 && most <= INT32_MAX && keeps_number(node) && node->outputs[0] >= 0 &&
        is_whole_number(&w->s.outputs[0])) {
        w->program->values[node->outputs[0]].most = most;
    }
}

// Infers a node whose inputs are all known, and computes it where it can be.
static rondo_status infer_or_fold(walk *w, const rondo__node *node, bool *out_folded) {
    rondo__infer infer = {.op = &node->op,
                          .input_count = node->input_count,
                          .output_count = node->output_count,
                          .inputs = w->s.inputs,
                          .outputs = w->s.outputs};
    RETURN_IF_ERROR(rondo__op_infer(&infer));
    keep_number(w, node);
    const bool is_bounded = note_bound(w, node, &infer);
    for (size_t i = 0; i < node->input_count && i < 32 && !is_bounded; ++i) {
        if ((infer.needed_inputs >> i & 1u) != 0 && node->inputs[i] >= 0) {
            w->needed[node->inputs[i]] = true;
        }
    }
    if (!can_fold(w->program, node, limit_fold(w->fold_bytes), &w->s)) {
        return RONDO_STATUS_OK;
    }
    // An op may want more on its way than its result takes: then it waits for the run.
    const uint64_t refusals = rondo__budget_get_refusals(rondo__budget_get_entered());
    const rondo_status status = fold_node(w->program, node, &w->s);
    *out_folded = status == RONDO_STATUS_OK;
    return status == RONDO_STATUS_NO_MEMORY &&
                   rondo__budget_get_refusals(rondo__budget_get_entered()) != refusals
               ? RONDO_STATUS_OK
               : status;
}

// Infers a node's outputs; no more will become known about its inputs.
static rondo_status visit_node(walk *w, size_t n) {
    const rondo__node *node = &w->program->nodes[n];
    scratch *s = &w->s;
    const bool is_control = (node->op.def->flags & RONDO__OP_CONTROL) != 0;
    bool are_dtypes_known = true;
    bool all_known = true;
    for (size_t i = 0; i < node->input_count; ++i) {
        rondo__program_get_info(w->program, node->inputs[i], &s->inputs[i]);
        if (node->inputs[i] >= 0) {
            are_dtypes_known = are_dtypes_known && s->inputs[i].dtype != RONDO_DTYPE_NONE;
            all_known = all_known && s->inputs[i].is_shape_known;
        }
    }
    memset(s->outputs, 0, node->output_count * sizeof *s->outputs);
    rondo_status status = RONDO_STATUS_OK;
    if (is_control) {
        status = w->is_partial ? rondo__control_infer(w->bodies, node, s->inputs, s->outputs)
                               : RONDO_STATUS_OK;
    } else if (are_dtypes_known && all_known) {
        status = infer_or_fold(w, node, &w->folded[n]);
    } else if (are_dtypes_known && w->is_partial) {
        rondo__infer infer = {.op = &node->op,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = s->inputs,
                              .outputs = s->outputs};
        status = rondo__op_infer_partial(&infer);
    }
    if (status != RONDO_STATUS_OK || w->folded[n]) {
        return status;
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0) {
            rondo__value *v = &w->program->values[node->outputs[i]];
            const bool is_new = s->outputs[i].dtype != RONDO_DTYPE_NONE;
            rondo__value_set_info(v, is_new ? s->outputs[i].dtype : v->dtype, &s->outputs[i]);
        }
    }
    return RONDO_STATUS_OK;
}

static void walk_deinit(walk *w) {
    rondo__free(w->needed);
    rondo__free(w->folded);
    scratch_deinit(&w->s);
}

// Visits all nodes. To be freed with walk_deinit, after a failure, too.
static rondo_status walk_program(walk *w) {
    RETURN_IF_ERROR(scratch_init(w->program, &w->s));
    w->needed = rondo__calloc(w->program->value_count + 1, sizeof *w->needed);
    w->folded = rondo__calloc(w->program->node_count + 1, sizeof *w->folded);
    if (w->needed == NULL || w->folded == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t n = 0; n < w->program->node_count; ++n) {
        const rondo_status status = visit_node(w, n);
        if (status != RONDO_STATUS_OK) {
            rondo__node_blame(&w->program->nodes[n]);
            return status;
        }
    }
    return RONDO_STATUS_OK;
}

// ---- bodies -----------------------------------------------------------------------------------

static rondo_status declare_body_inputs(rondo_program *body, const rondo__tensor_info *feeds) {
    for (size_t i = 0; i < body->input_count; ++i) {
        const int32_t input = body->inputs[i];
        rondo__value_set_info(&body->values[input], feeds[i].dtype, &feeds[i]);
        if (feeds[i].constant != NULL) {
            int32_t constant;
            RETURN_IF_ERROR(rondo__program_add_constant(body, body->values[input].name,
                                                        feeds[i].constant, &constant));
            rondo__program_replace_uses(body, input, constant);
        }
    }
    return RONDO_STATUS_OK;
}

static bool is_true(const rondo_tensor *tensor) {
    return tensor != NULL && tensor->dtype == RONDO_DTYPE_BOOL &&
           rondo_shape_get_count(&tensor->shape) == 1 && *(const uint8_t *)tensor->data != 0;
}

static rondo_status infer_body(rondo__body_inference *bodies, const rondo_program *body,
                               const rondo__tensor_info *feeds, rondo__tensor_info *out_infos) {
    static uint8_t true_value = 1;
    static const rondo_tensor true_tensor = {.dtype = RONDO_DTYPE_BOOL, .data = &true_value};
    const size_t work = body->node_count + 1;
    if (work > bodies->node_limit) {
        bodies->node_limit = 0;
        return RONDO_STATUS_OK;
    }
    bodies->node_limit -= work;
    walk w = {.fold_bytes = BODY_FOLD_BYTES, .is_partial = true, .bodies = bodies};
    RETURN_IF_ERROR(rondo__program_clone(body, &w.program));
    rondo_status status = declare_body_inputs(w.program, feeds);
    if (status == RONDO_STATUS_OK) {
        status = walk_program(&w);
    }
    for (size_t i = 0; i < body->output_count && status == RONDO_STATUS_OK; ++i) {
        rondo__program_get_info(w.program, w.program->outputs[i], &out_infos[i]);
        out_infos[i].constant = is_true(out_infos[i].constant) ? &true_tensor : NULL;
    }
    walk_deinit(&w);
    rondo_program_destroy(w.program);
    return status;
}

// ---- the whole --------------------------------------------------------------------------------

// Walks backwards from needed values to the inputs they are computed from.
static void trace_wanted(const rondo_program *program, bool *needed, uint8_t *wanted) {
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        bool is_needed = false;
        for (size_t i = 0; i < node->output_count; ++i) {
            is_needed = is_needed || (node->outputs[i] >= 0 && needed[node->outputs[i]]);
        }
        if (!is_needed || (node->op.def->flags & (RONDO__OP_CONTROL | RONDO__OP_SHAPE_ONLY)) != 0) {
            continue;
        }
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] >= 0) {
                needed[node->inputs[i]] = true;
            }
        }
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__value *v = &program->values[program->inputs[i]];
        rondo_shape shape;
        if (needed[program->inputs[i]] && !rondo__value_is_constant(v) &&
            rondo__dtype_is_plain(v->dtype) && rondo__value_get_shape(v, &shape) &&
            rondo_shape_get_count(&shape) >= 0 &&
            rondo_shape_get_count(&shape) <= RONDO__VALUE_KEY_COUNT_MAX) {
            wanted[i] = RONDO__WANT_VALUE;
        }
    }
}

// Gives the inputs their shapes. An input with a fixed value is replaced by a constant wherever it
// is used.
static rondo_status declare_inputs(rondo_program *program, const rondo_tensor *feeds) {
    for (size_t i = 0; i < program->input_count; ++i) {
        int32_t input = program->inputs[i];
        rondo__value *v = &program->values[input];
        if (feeds == NULL) {
            rondo__value_set_shape(v, v->dtype, NULL);
            continue;
        }
        // A sequence is not fixed: the plan must serve the next one, too.
        bool is_known = feeds[i].dtype != RONDO_DTYPE_NONE &&
                        !rondo__dtype_is_nested(feeds[i].dtype) && feeds[i].shape.rank >= 0;
        rondo__value_set_shape(v, feeds[i].dtype, is_known ? &feeds[i].shape : NULL);
        if (feeds[i].data != NULL) {
            int32_t constant;
            RETURN_IF_ERROR(rondo__program_add_constant(program, v->name, &feeds[i], &constant));
            rondo__program_replace_uses(program, input, constant);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_specialise(const rondo_program *source, const rondo_tensor *feeds,
                                       size_t fold_bytes, rondo_program **out_program,
                                       const rondo__value_wants *wants) {
    *out_program = NULL;
    const bool has_bounds = wants != NULL && wants->bounds != NULL;
    const bool has_wants = wants != NULL && wants->wanted != NULL;
    if (has_wants) {
        memset(wants->wanted, RONDO__WANT_NOTHING, source->input_count);
    }
    rondo__body_inference bodies = {.infer = infer_body, .node_limit = BODY_NODE_LIMIT};
    walk w = {
        .fold_bytes = fold_bytes, .is_partial = feeds != NULL, .bodies = &bodies, .wants = wants};
    RETURN_IF_ERROR(rondo__program_clone(source, &w.program));
    for (size_t i = 0; i < source->input_count && has_bounds; ++i) {
        w.program->values[w.program->inputs[i]].most = wants->most[i];
    }
    rondo_status status = declare_inputs(w.program, feeds);
    if (status == RONDO_STATUS_OK) {
        status = walk_program(&w);
    }
    if (status == RONDO_STATUS_OK) {
        if (has_wants) {
            trace_wanted(w.program, w.needed, wants->wanted);
        }
        rondo__program_remove_nodes(w.program, w.folded, w.program->node_count);
        status = rondo__program_remove_dead(w.program);
    }
    walk_deinit(&w);
    if (status == RONDO_STATUS_OK) {
        *out_program = w.program;
    } else {
        rondo_program_destroy(w.program);
    }
    return status;
}
