// program/shapes/control_shapes.c — see control_shapes.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/shapes/control_shapes.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/body_view.h"
#include "tensor/elements.h"

// Passes over a loop's body after which an extent that still changes counts as unknown together
// with its whole shape. Each pass then makes at least one carried value unknown, so that it ends.
enum { JOIN_PASSES = 4 };
// A loop that is to take more turns may be meant to end in another way: its rows are not counted.
enum { TURNS_MAX = 1 << 16 };

static const rondo__tensor_info nothing = {0};

// Asks the inference; *out_is_possible false: no run with these inputs succeeds.
static rondo_status infer_body(rondo__body_inference *inference, const rondo_program *body,
                               const rondo__tensor_info *feeds, rondo__tensor_info *infos,
                               bool *out_is_possible) {
    rondo_error saved;
    rondo__error_save(&saved);
    memset(infos, 0, body->output_count * sizeof *infos);
    const rondo_status status = inference->infer(inference, body, feeds, infos);
    *out_is_possible = status != RONDO_STATUS_BAD_DATA;
    if (status == RONDO_STATUS_OK || status == RONDO_STATUS_NO_MEMORY) {
        return status;
    }
    rondo__error_restore(&saved);
    memset(infos, 0, body->output_count * sizeof *infos);
    return RONDO_STATUS_OK;
}

// The body of this name, when it fits the node; the rest is for the run to complain about.
static bool find_body(const rondo__node *node, const char *name, rondo__body_view *out_view) {
    return rondo__body_find(node, name, out_view) &&
           out_view->captured_first + out_view->captured_count <= node->input_count;
}

// False when the value of a condition is not known.
static bool read_flag(const rondo_tensor *flag, bool *out_is_true) {
    if (flag == NULL || flag->dtype != RONDO_DTYPE_BOOL ||
        rondo_shape_get_count(&flag->shape) != 1) {
        return false;
    }
    *out_is_true = *(const uint8_t *)flag->data != 0;
    return true;
}

// ---- If ---------------------------------------------------------------------------------------

static rondo_status infer_branch(rondo__body_inference *inference, const rondo__node *node,
                                 const char *name, const rondo__tensor_info *inputs,
                                 rondo__tensor_info *outputs, bool *in_out_is_first) {
    rondo__body_view view;
    if (!find_body(node, name, &view) || view.attribute->body->declared_count != 0 ||
        view.attribute->body->output_count < node->output_count) {
        memset(outputs, 0, node->output_count * sizeof *outputs);
        *in_out_is_first = false;
        return RONDO_STATUS_OK;
    }
    const rondo_program *body = view.attribute->body;
    rondo__tensor_info *infos = rondo__calloc(body->output_count + 1, sizeof *infos);
    if (infos == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    bool is_possible = false;
    const rondo_status status =
        infer_body(inference, body, inputs + view.captured_first, infos, &is_possible);
    for (size_t i = 0; i < node->output_count && is_possible; ++i) {
        if (*in_out_is_first) {
            outputs[i] = infos[i];
        } else {
            rondo__info_join(&outputs[i], &infos[i]);
        }
    }
    *in_out_is_first = *in_out_is_first && !is_possible;
    rondo__free(infos);
    return status;
}

static rondo_status infer_if(rondo__body_inference *inference, const rondo__node *node,
                             const rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    bool is_true = false;
    const bool is_decided = node->explicit_count > 0 && read_flag(inputs[0].constant, &is_true);
    bool is_first = true;
    rondo_status status = RONDO_STATUS_OK;
    if (!is_decided || is_true) {
        status = infer_branch(inference, node, "then_branch", inputs, outputs, &is_first);
    }
    if (status == RONDO_STATUS_OK && (!is_decided || !is_true)) {
        status = infer_branch(inference, node, "else_branch", inputs, outputs, &is_first);
    }
    return status;
}

// ---- Loop and Scan ----------------------------------------------------------------------------

// The feeds and results of the body of a Loop or Scan.
typedef struct turns {
    rondo__body_view view;
    const rondo_program *body;
    size_t carried_count;
    size_t first_carried;  // among the feeds
    size_t first_output;   // carried value 0 among the body's outputs; rows follow
    size_t row_count;
    int64_t length;              // turns; -1 when unknown
    rondo__tensor_info *feeds;   // of the body
    rondo__tensor_info *infos;   // its outputs
    rondo__tensor_info *states;  // what holds of each carried value, whenever
} turns;

static void turns_deinit(turns *t) {
    rondo__free(t->feeds);
    rondo__free(t->infos);
    rondo__free(t->states);
}

// False: body and node do not fit, or on failure.
static bool turns_init(const rondo__node *node, size_t other_count, size_t scan_count,
                       size_t first_output, turns *t, rondo_status *out_status) {
    memset(t, 0, sizeof *t);
    *out_status = RONDO_STATUS_OK;
    if (!find_body(node, "body", &t->view) || node->explicit_count < other_count + scan_count) {
        return false;
    }
    t->body = t->view.attribute->body;
    t->carried_count = node->explicit_count - other_count - scan_count;
    t->first_carried = other_count;
    t->first_output = first_output;
    t->length = -1;
    if (t->body->declared_count != node->explicit_count || node->output_count < t->carried_count ||
        t->body->output_count < first_output + node->output_count) {
        return false;
    }
    t->row_count = node->output_count - t->carried_count;
    t->feeds = rondo__calloc(t->body->input_count + 1, sizeof *t->feeds);
    t->infos = rondo__calloc(t->body->output_count + 1, sizeof *t->infos);
    t->states = rondo__calloc(t->carried_count + 1, sizeof *t->states);
    if (t->feeds == NULL || t->infos == NULL || t->states == NULL) {
        *out_status = RONDO_STATUS_NO_MEMORY;
        turns_deinit(t);
        return false;
    }
    return true;
}

static bool is_same(const rondo__tensor_info *a, const rondo__tensor_info *b) {
    return a->dtype == b->dtype && rondo__info_has_rank(a) == rondo__info_has_rank(b) &&
           (!rondo__info_has_rank(a) || rondo_shape_is_equal(&a->shape, &b->shape));
}

// Looks through the body until the states hold of their values before and after each turn. The
// caller has set the feeds that are neither carried nor captured.
static rondo_status turns_settle(turns *t, rondo__body_inference *inference,
                                 const rondo__tensor_info *inputs) {
    for (size_t i = 0; i < t->carried_count; ++i) {
        t->states[i] = inputs[t->first_carried + i];
        t->states[i].constant = NULL;
    }
    for (size_t i = 0; i < t->view.captured_count; ++i) {
        t->feeds[t->body->declared_count + i] = inputs[t->view.captured_first + i];
    }
    bool has_changed = true;
    for (size_t pass = 0; has_changed; ++pass) {
        bool is_possible = false;
        has_changed = false;
        memcpy(t->feeds + t->first_carried, t->states, t->carried_count * sizeof *t->states);
        RETURN_IF_ERROR(infer_body(inference, t->body, t->feeds, t->infos, &is_possible));
        for (size_t i = 0; i < t->carried_count && is_possible; ++i) {
            rondo__tensor_info joined = t->states[i];
            rondo__info_join(&joined, &t->infos[t->first_output + i]);
            if (!is_same(&joined, &t->states[i])) {
                t->states[i] = pass < JOIN_PASSES ? joined : nothing;
                has_changed = true;
            }
        }
    }
    return RONDO_STATUS_OK;
}

// The row with the number of turns as extent `axis`.
static rondo__tensor_info stack(const rondo__tensor_info *row, int64_t axis, int64_t length) {
    rondo__tensor_info stacked = {.dtype = row->dtype};
    axis += axis < 0 ? (int64_t)row->shape.rank + 1 : 0;
    if (!rondo__info_has_rank(row) || row->shape.rank >= RONDO_RANK_MAX || axis < 0 ||
        axis > row->shape.rank) {
        return stacked;
    }
    stacked.is_rank_known = true;
    stacked.is_shape_known = row->is_shape_known && length >= 0;
    stacked.shape.rank = row->shape.rank + 1;
    for (int32_t d = 0; d < row->shape.rank; ++d) {
        stacked.shape.extent[d < axis ? d : d + 1] = row->shape.extent[d];
    }
    stacked.shape.extent[axis] = length;
    return stacked;
}

static void turns_tell(const turns *t, const rondo__node *node, const char *axes,
                       rondo__tensor_info *outputs) {
    memcpy(outputs, t->states, t->carried_count * sizeof *outputs);
    for (size_t i = 0; i < t->row_count; ++i) {
        const int64_t axis = axes != NULL ? rondo__node_get_list_entry(node, axes, i) : 0;
        outputs[t->carried_count + i] =
            stack(&t->infos[t->first_output + t->carried_count + i], axis, t->length);
    }
}

// The number of turns, where only the trip count ends the loop: the condition is true from the
// start, and every turn leaves it so.
static int64_t count_turns(const turns *t, const rondo__node *node,
                           const rondo__tensor_info *inputs) {
    const rondo_tensor *limit = inputs[0].constant;
    bool begins = node->inputs[1] < 0;
    bool goes_on = false;
    int64_t count = 0;
    if ((!begins && !read_flag(inputs[1].constant, &begins)) || !begins ||
        !read_flag(t->infos[0].constant, &goes_on) || !goes_on || limit == NULL ||
        limit->dtype != RONDO_DTYPE_I64 || rondo_shape_get_count(&limit->shape) != 1) {
        return -1;
    }
    memcpy(&count, limit->data, sizeof count);
    return count > TURNS_MAX ? -1 : count > 0 ? count : 0;
}

static rondo_status infer_loop(rondo__body_inference *inference, const rondo__node *node,
                               const rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    static uint8_t flag = 1;  // no turn begins with another condition
    rondo_tensor condition = {.dtype = RONDO_DTYPE_BOOL, .data = &flag};
    turns t;
    rondo_status status;
    if (!turns_init(node, 2, 0, 1, &t, &status)) {
        return status;
    }
    for (size_t i = 0; i < 2; ++i) {  // the number of the turn and the condition, as run_loop says
        const rondo__value *declared = &t.body->values[t.body->inputs[i]];
        const int32_t rank = declared->has_shape && declared->rank == 1 ? 1 : 0;
        t.feeds[i] = (rondo__tensor_info){.dtype = i == 0 ? RONDO_DTYPE_I64 : RONDO_DTYPE_BOOL,
                                          .is_shape_known = true,
                                          .shape = {.rank = rank, .extent = {rank}}};
    }
    condition.shape = t.feeds[1].shape;
    t.feeds[1].constant = &condition;
    status = turns_settle(&t, inference, inputs);
    if (status == RONDO_STATUS_OK) {
        t.length = count_turns(&t, node, inputs);
        turns_tell(&t, node, NULL, outputs);
    }
    turns_deinit(&t);
    return status;
}

// A slice of `input` along `axis`; notes how many there are.
static rondo__tensor_info slice(const rondo__tensor_info *input, int64_t axis,
                                int64_t *in_out_length) {
    rondo__tensor_info cut = {.dtype = input->dtype};
    axis += axis < 0 ? input->shape.rank : 0;
    if (!rondo__info_has_rank(input) || axis < 0 || axis >= input->shape.rank) {
        return cut;
    }
    cut.is_rank_known = true;
    cut.is_shape_known = true;
    cut.shape.rank = input->shape.rank - 1;
    for (int32_t d = 0; d < input->shape.rank; ++d) {
        if (d != axis) {
            cut.shape.extent[d < axis ? d : d - 1] = input->shape.extent[d];
            cut.is_shape_known = cut.is_shape_known && input->shape.extent[d] >= 0;
        }
    }
    *in_out_length = input->shape.extent[axis] >= 0 ? input->shape.extent[axis] : *in_out_length;
    return cut;
}

static rondo_status infer_scan(rondo__body_inference *inference, const rondo__node *node,
                               const rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    const int64_t scan_count = rondo__op_get_int(&node->op, "num_scan_inputs", 0);
    turns t;
    rondo_status status = RONDO_STATUS_OK;
    if (node->op.opset < 9 || scan_count < 1 || (uint64_t)scan_count > node->explicit_count ||
        !turns_init(node, 0, (size_t)scan_count, 0, &t, &status)) {
        return status;  // the Scan of opset 8 puts a batch in front of everything
    }
    for (size_t i = 0; i < (size_t)scan_count; ++i) {
        t.feeds[t.carried_count + i] =
            slice(&inputs[t.carried_count + i],
                  rondo__node_get_list_entry(node, "scan_input_axes", i), &t.length);
    }
    status = turns_settle(&t, inference, inputs);
    if (status == RONDO_STATUS_OK) {
        turns_tell(&t, node, "scan_output_axes", outputs);
    }
    turns_deinit(&t);
    return status;
}

rondo_status rondo__control_infer(rondo__body_inference *inference, const rondo__node *node,
                                  const rondo__tensor_info *inputs, rondo__tensor_info *outputs) {
    static const struct {
        rondo__op_id op;
        rondo_status (*infer)(rondo__body_inference *, const rondo__node *,
                              const rondo__tensor_info *, rondo__tensor_info *);
    } rules[] = {
        {RONDO__OP_If, infer_if}, {RONDO__OP_Loop, infer_loop}, {RONDO__OP_Scan, infer_scan}};
    rondo_status status = RONDO_STATUS_OK;
    memset(outputs, 0, node->output_count * sizeof *outputs);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
        if (node->op.def->id == rules[i].op) {
            status = rules[i].infer(inference, node, inputs, outputs);
        }
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        outputs[i].constant = NULL;
        if (rondo__dtype_is_nested(outputs[i].dtype)) {
            outputs[i] = nothing;
        }
    }
    return status;
}
