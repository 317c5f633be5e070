// executor/compile/device_control_plan.c — whether a control op can be decided on the device, and
// what its launch needs: parts of the bodies, and memory for their inputs and outputs.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/device_control.h"
#include "executor/compile/device_control_kernel.h"
#include "executor/state/arena_plan.h"
#include "executor/state/limits.h"
#include "tensor/elements.h"

// What all steps of preparing need. The first refusal stays.
typedef struct preparation {
    rondo__unit *unit;
    const rondo__planner *planner;
    const rondo__node *node;
    const rondo__kernel_request *request;
    rondo__control_kernel *control;
    rondo__refusal *refusal;
} preparation;

#define REFUSE(p, ...) ((void)snprintf((p)->refusal->text, sizeof(p)->refusal->text, __VA_ARGS__))

static bool is_refused(const preparation *p) {
    return p->refusal->text[0] != '\0';
}

static bool is_wanted(const preparation *p, size_t output) {
    return p->request->outputs[output].dtype != RONDO_DTYPE_NONE;
}

static size_t count_bytes(const rondo__tensor_info *info) {
    const rondo_tensor shell = {.dtype = info->dtype, .shape = info->shape};
    return rondo_tensor_get_bytes(&shell);
}

static rondo__control_piece reserve(preparation *p, size_t bytes) {
    size_t *end = &p->control->head.workspace_bytes;
    const rondo__control_piece made = {.output = SIZE_MAX, .offset = *end, .bytes = bytes};
    if (bytes > SIZE_MAX / 4 || *end > SIZE_MAX / 4) {
        REFUSE(p, "it needs more memory than there is");
    } else {
        *end += rondo__align_up(bytes > 0 ? bytes : 1, RONDO__ARENA_ALIGNMENT);
    }
    return made;
}

static rondo__control_piece reserve_output(preparation *p, size_t output, size_t bytes) {
    return is_wanted(p, output) ? (rondo__control_piece){.output = output, .bytes = bytes}
                                : reserve(p, bytes);
}

static bool is_plain(const rondo__tensor_info *info) {
    return info->dtype != RONDO_DTYPE_NONE && info->is_shape_known &&
           rondo_shape_get_count(&info->shape) >= 0 && rondo__dtype_is_plain(info->dtype);
}

static bool is_same(const rondo__slot *slot, const rondo__tensor_info *info) {
    return (slot->kind == RONDO__SLOT_ARENA || slot->kind == RONDO__SLOT_CONSTANT) &&
           slot->dtype == info->dtype && rondo_shape_is_equal(&slot->shape, &info->shape);
}

static bool is_scalar(const rondo__tensor_info *info, rondo_dtype dtype) {
    return info->is_shape_known && info->dtype == dtype && rondo_shape_get_count(&info->shape) == 1;
}

// The body's inputs from `declared` ones and those that it captures.
static rondo_status add_part(preparation *p, const char *name, rondo__part kind,
                             const rondo__tensor_info *declared, size_t declared_count) {
    rondo__control_kernel *c = p->control;
    rondo__body_view view;
    if (!rondo__body_find(p->node, name, &view) ||
        view.attribute->body->declared_count != declared_count ||
        view.captured_first + view.captured_count > p->node->input_count) {
        REFUSE(p, "its %s does not fit the node", name);
        return RONDO_STATUS_OK;
    }
    const rondo_program *body = view.attribute->body;
    rondo__tensor_info *feeds = rondo__calloc(body->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < body->input_count && !is_refused(p); ++i) {
        feeds[i] = i < declared_count
                       ? declared[i]
                       : p->request->inputs[view.captured_first + (i - declared_count)];
        if (!is_plain(&feeds[i])) {
            REFUSE(p, "the shape of input \"%.60s\" of its %s depends on data",
                   body->values[body->inputs[i]].name, name);
        }
    }
    rondo_status status = RONDO_STATUS_OK;
    if (!is_refused(p)) {
        status = rondo__body_plan_init(p->unit, p->planner, &view, kind, feeds,
                                       &c->parts[c->part_count], p->refusal);
        c->part_count += 1;
    }
    rondo__free(feeds);
    return status;
}

// Arenas of branches share one piece: only one of them runs.
static void reserve_arenas(preparation *p) {
    rondo__control_kernel *c = p->control;
    size_t largest = 0;
    for (size_t i = 0; i < c->part_count; ++i) {
        const size_t bytes = c->parts[i].plan->memory.arena_bytes;
        c->arenas[i] = c->head.workspace_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    (void)reserve(p, largest);
}

static rondo_status reserve_tables(preparation *p) {
    rondo__control_kernel *c = p->control;
    size_t inputs = 1;
    size_t outputs = 1;
    for (size_t i = 0; i < c->part_count; ++i) {
        const rondo_program *body = c->parts[i].view.attribute->body;
        inputs = body->input_count > inputs ? body->input_count : inputs;
        outputs = body->output_count > outputs ? body->output_count : outputs;
    }
    c->inputs_of_part = rondo__calloc(inputs, sizeof *c->inputs_of_part);
    c->outputs_of_part = rondo__calloc(outputs, sizeof *c->outputs_of_part);
    return c->inputs_of_part != NULL && c->outputs_of_part != NULL ? RONDO_STATUS_OK
                                                                   : RONDO_STATUS_NO_MEMORY;
}

// ---- If ---------------------------------------------------------------------------------------

static void check_branch(preparation *p, const rondo__body_plan *part) {
    const rondo_program *body = part->view.attribute->body;
    if (body->output_count != p->node->output_count) {
        REFUSE(p, "a branch has %zu outputs, the node %zu", body->output_count,
               p->node->output_count);
    }
    for (size_t i = 0; i < p->node->output_count && !is_refused(p); ++i) {
        if (is_wanted(p, i) &&
            !is_same(rondo__body_plan_get_output(part, i), &p->request->outputs[i])) {
            REFUSE(p, "its branches do not agree in the shape of output %zu", i);
        }
    }
}

static rondo_status prepare_if(preparation *p) {
    rondo__control_kernel *c = p->control;
    const rondo__tensor_info *condition = &p->request->inputs[0];
    if (p->node->explicit_count != 1 || !is_scalar(condition, RONDO_DTYPE_BOOL)) {
        REFUSE(p, "its condition is not one bool");
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < p->node->output_count; ++i) {
        if (is_wanted(p, i) && !is_plain(&p->request->outputs[i])) {
            REFUSE(p, "its branches do not agree in the shape of output %zu", i);
            return RONDO_STATUS_OK;
        }
    }
    const bool is_true =
        condition->constant != NULL && *(const uint8_t *)condition->constant->data != 0;
    c->kind = RONDO__CONTROL_IF;
    c->is_decided = condition->constant != NULL;
    for (size_t b = 0; b < RONDO__CONTROL_PART_MAX && !is_refused(p); ++b) {
        if (!c->is_decided || is_true == (b == 0)) {
            RETURN_IF_ERROR(
                add_part(p, b == 0 ? "then_branch" : "else_branch", RONDO__PART_BRANCH, NULL, 0));
        }
        if (!is_refused(p) && c->part_count > 0) {
            check_branch(p, &c->parts[c->part_count - 1]);
        }
    }
    if (is_refused(p)) {
        return RONDO_STATUS_OK;
    }
    c->output_count = p->node->output_count;
    c->outputs = rondo__calloc(c->output_count + 1, sizeof *c->outputs);
    if (c->outputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < c->output_count; ++i) {
        // Unused outputs may have different sizes in the two branches.
        size_t bytes = 0;
        for (size_t b = 0; b < c->part_count; ++b) {
            const size_t own = rondo__body_plan_get_output(&c->parts[b], i)->bytes;
            bytes = own > bytes ? own : bytes;
        }
        bytes = is_wanted(p, i) ? count_bytes(&p->request->outputs[i]) : bytes;
        c->outputs[i] = reserve_output(p, i, bytes);
    }
    return RONDO_STATUS_OK;
}

// ---- Loop and Scan ----------------------------------------------------------------------------

// Whether the body makes the new value of carried value `k` in the memory of another input, which
// the end of a turn overwrites: it is put aside first.
static bool needs_staging(const rondo__control_kernel *c, size_t k) {
    const rondo__body_plan *part = &c->parts[0];
    const int32_t root = rondo__body_plan_get_output(part, c->first_made + k)->root;
    for (size_t i = 0; i < c->first_feed + c->carried_count; ++i) {
        if (rondo__body_plan_get_input(part, i)->root == root) {
            return i != c->first_feed + k;
        }
    }
    return false;
}

// Places of the carried values; their shape is the same in every turn.
static rondo_status place_carried(preparation *p) {
    rondo__control_kernel *c = p->control;
    c->carried = rondo__calloc(c->carried_count + 1, sizeof *c->carried);
    if (c->carried == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t k = 0; k < c->carried_count && !is_refused(p); ++k) {
        const rondo__tensor_info *initial = &p->request->inputs[c->first_input + k];
        const size_t bytes = count_bytes(initial);
        if (!is_same(rondo__body_plan_get_output(&c->parts[0], c->first_made + k), initial)) {
            REFUSE(p, "carried value %zu changes its shape or type", k);
            continue;
        }
        c->carried[k].place = reserve_output(p, k, bytes);
        if (needs_staging(c, k)) {
            c->carried[k].staged = reserve(p, bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// [outer, length, inner] of a tensor around an axis.
static rondo__flow_slice describe_slices(const rondo__tensor_info *info, int64_t axis) {
    const bool has_elements = rondo_shape_get_count(&info->shape) > 0;
    rondo__flow_slice slice = {.outer = has_elements, .length = info->shape.extent[axis]};
    slice.inner_bytes = (int64_t)rondo_dtype_get_bytes(info->dtype);
    for (int32_t d = 0; has_elements && d < info->shape.rank; ++d) {
        slice.outer *= d < axis ? info->shape.extent[d] : 1;
        slice.inner_bytes *= d > axis ? info->shape.extent[d] : 1;
    }
    return slice;
}

// Whether `whole` is `length` tensors like `slot` along an axis.
static bool is_stack(const rondo__tensor_info *whole, int64_t axis, int64_t length,
                     const rondo__slot *slot) {
    if (!is_plain(whole) || axis < 0 || axis >= whole->shape.rank ||
        whole->shape.extent[axis] != length) {
        return false;
    }
    rondo__tensor_info row = {.dtype = whole->dtype, .is_shape_known = true};
    row.shape.rank = whole->shape.rank - 1;
    for (int32_t d = 0; d < whole->shape.rank; ++d) {
        if (d != axis) {
            row.shape.extent[d < axis ? d : d - 1] = whole->shape.extent[d];
        }
    }
    return is_same(slot, &row);
}

// The outputs that stack what the turns give.
static rondo_status add_rows(preparation *p, int64_t length, bool is_scan) {
    rondo__control_kernel *c = p->control;
    const size_t count = p->node->output_count - c->carried_count;
    c->outs = rondo__calloc(count + 1, sizeof *c->outs);
    if (c->outs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count && !is_refused(p); ++i) {
        const size_t output = c->carried_count + i;
        const rondo__tensor_info *whole = &p->request->outputs[output];
        int64_t axis = is_scan ? rondo__node_get_list_entry(p->node, "scan_output_axes", i) : 0;
        if (!is_wanted(p, output)) {
            continue;
        }
        axis += axis < 0 ? whole->shape.rank : 0;
        if (length < 0 ||
            !is_stack(whole, axis, length,
                      rondo__body_plan_get_output(&c->parts[0], c->first_made + output))) {
            REFUSE(p, "the number of rows of output %zu depends on data", output);
            continue;
        }
        rondo__control_sliced *out = &c->outs[c->out_count++];
        *out = (rondo__control_sliced){.index = output, .move = describe_slices(whole, axis)};
        out->move.is_written = true;
        out->move.is_backward =
            is_scan && rondo__node_get_list_entry(p->node, "scan_output_directions", i) == 1;
    }
    return RONDO_STATUS_OK;
}

// What holds for both once the body's feeds are known.
static rondo_status prepare_turns(preparation *p, const rondo__tensor_info *feeds,
                                  size_t feed_count, int64_t length) {
    rondo__control_kernel *c = p->control;
    RETURN_IF_ERROR(add_part(p, "body", RONDO__PART_TURN, feeds, feed_count));
    const rondo_program *body = is_refused(p) ? NULL : c->parts[0].view.attribute->body;
    if (body != NULL && (p->node->output_count < c->carried_count ||
                         body->output_count != c->first_made + p->node->output_count)) {
        REFUSE(p, "its body does not fit the node");
    }
    if (!is_refused(p)) {
        RETURN_IF_ERROR(place_carried(p));
    }
    return is_refused(p) ? RONDO_STATUS_OK : add_rows(p, length, c->kind == RONDO__CONTROL_SCAN);
}

// The trip count, where only that ends the loop; -1 otherwise. Its inference has told so by the
// shape of a row.
static int64_t get_trip_count(const preparation *p) {
    const bool is_given = p->node->inputs[0] >= 0;
    const rondo_tensor *count = is_given ? p->request->inputs[0].constant : NULL;
    int64_t trips = -1;
    if (count != NULL) {
        memcpy(&trips, count->data, sizeof trips);
        trips = trips < 0 ? 0 : trips;
    }
    return trips;
}

static rondo_status prepare_loop(preparation *p) {
    rondo__control_kernel *c = p->control;
    const rondo__node *node = p->node;
    const rondo__tensor_info *inputs = p->request->inputs;
    if (node->explicit_count < 2 ||
        (node->inputs[0] >= 0 && !is_scalar(&inputs[0], RONDO_DTYPE_I64)) ||
        (node->inputs[1] >= 0 && !is_scalar(&inputs[1], RONDO_DTYPE_BOOL))) {
        REFUSE(p, "its trip count or condition is not one value of the right type");
        return RONDO_STATUS_OK;
    }
    c->kind = RONDO__CONTROL_LOOP;
    c->carried_count = node->explicit_count - 2;
    c->first_feed = 2;
    c->first_input = 2;
    c->first_made = 1;
    c->fixed_count = INT64_MAX;
    rondo__body_view view;
    rondo__tensor_info *feeds = rondo__calloc(node->explicit_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->explicit_count; ++i) {
        feeds[i] = inputs[i];
        feeds[i].constant = NULL;
    }
    if (rondo__body_find(node, "body", &view) && view.attribute->body->input_count >= 2) {
        for (size_t i = 0; i < 2; ++i) {  // as host control feeds them
            const rondo__value *declared =
                &view.attribute->body->values[view.attribute->body->inputs[i]];
            const int32_t rank = declared->has_shape && declared->rank == 1 ? 1 : 0;
            feeds[i] = (rondo__tensor_info){.dtype = i == 0 ? RONDO_DTYPE_I64 : RONDO_DTYPE_BOOL,
                                            .is_shape_known = true,
                                            .shape = {.rank = rank, .extent = {rank}}};
        }
    }
    rondo_status status = prepare_turns(p, feeds, node->explicit_count, get_trip_count(p));
    rondo__free(feeds);
    if (status == RONDO_STATUS_OK && !is_refused(p)) {
        const rondo__slot *condition = rondo__body_plan_get_output(&c->parts[0], 0);
        if (condition->dtype != RONDO_DTYPE_BOOL || rondo_shape_get_count(&condition->shape) != 1) {
            REFUSE(p, "the condition of its body is not one bool");
        }
    }
    return status;
}

// The slices that the turns read; the feeds behind the carried values.
static rondo_status add_slices(preparation *p, size_t scan_count, rondo__tensor_info *feeds,
                               int64_t *out_length) {
    rondo__control_kernel *c = p->control;
    const char *directions = "scan_input_directions";
    c->ins = rondo__calloc(scan_count + 1, sizeof *c->ins);
    if (c->ins == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < scan_count; ++i) {
        const rondo__tensor_info *whole = &p->request->inputs[c->carried_count + i];
        int64_t axis = rondo__node_get_list_entry(p->node, "scan_input_axes", i);
        axis += axis < 0 ? whole->shape.rank : 0;
        if (!is_plain(whole) || axis < 0 || axis >= whole->shape.rank ||
            (i > 0 && whole->shape.extent[axis] != *out_length)) {
            REFUSE(p, "scan input %zu has no known number of slices, or another than the first", i);
            return RONDO_STATUS_OK;
        }
        *out_length = whole->shape.extent[axis];
        rondo__tensor_info *row = &feeds[c->carried_count + i];
        *row = (rondo__tensor_info){.dtype = whole->dtype, .is_shape_known = true};
        row->shape.rank = whole->shape.rank - 1;
        for (int32_t d = 0; d < whole->shape.rank; ++d) {
            if (d != axis) {
                row->shape.extent[d < axis ? d : d - 1] = whole->shape.extent[d];
            }
        }
        c->ins[i] = (rondo__control_sliced){.index = c->carried_count + i,
                                            .slice = reserve(p, count_bytes(row)),
                                            .move = describe_slices(whole, axis)};
        c->ins[i].move.is_backward = rondo__node_get_list_entry(p->node, directions, i) == 1;
    }
    c->in_count = scan_count;
    return RONDO_STATUS_OK;
}

static rondo_status prepare_scan(preparation *p) {
    rondo__control_kernel *c = p->control;
    const rondo__node *node = p->node;
    const int64_t scan_count = rondo__op_get_int(&node->op, "num_scan_inputs", 0);
    if (node->op.opset < 9 || scan_count < 1 || (uint64_t)scan_count > node->explicit_count) {
        REFUSE(p, "a Scan of opset 8 has a batch in front of everything");
        return RONDO_STATUS_OK;
    }
    c->kind = RONDO__CONTROL_SCAN;
    c->carried_count = node->explicit_count - (size_t)scan_count;
    rondo__tensor_info *feeds = rondo__calloc(node->explicit_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t k = 0; k < c->carried_count; ++k) {
        feeds[k] = p->request->inputs[k];
        feeds[k].constant = NULL;
    }
    rondo_status status = add_slices(p, (size_t)scan_count, feeds, &c->fixed_count);
    if (status == RONDO_STATUS_OK && !is_refused(p)) {
        status = prepare_turns(p, feeds, node->explicit_count, c->fixed_count);
    }
    rondo__free(feeds);
    return status;
}

// The most turns that loops take in it; those of a Scan do not count.
static int64_t count_turns(const preparation *p) {
    const rondo__control_kernel *c = p->control;
    int64_t inside = 0;
    for (size_t i = 0; i < c->part_count; ++i) {
        int64_t sum = 0;
        const rondo__plan *plan = c->parts[i].plan;
        for (size_t k = 0; k < plan->item_count; ++k) {
            if (!rondo__add_i64(sum, rondo__device_control_get_turns(plan->items[k].kernel),
                                &sum)) {
                return INT64_MAX;
            }
        }
        inside = sum > inside ? sum : inside;
    }
    int64_t turns = inside;
    const int64_t own = c->kind == RONDO__CONTROL_SCAN   ? c->fixed_count
                        : c->kind == RONDO__CONTROL_LOOP ? get_trip_count(p)
                                                         : 1;
    const int64_t each = c->kind == RONDO__CONTROL_LOOP ? 1 : 0;
    return own >= 0 && rondo__add_i64(inside, each, &turns) && rondo__mul_i64(turns, own, &turns)
               ? turns
               : INT64_MAX;
}

// ---- all --------------------------------------------------------------------------------------

// Whether the thread that waits may do the turns and branches, too: it may do all that is in them.
static bool may_run_here(const rondo__control_kernel *c) {
    bool may = rondo_device_is_host(c->unit->executor->device);
    for (size_t p = 0; p < c->part_count; ++p) {
        const rondo__plan *plan = c->parts[p].plan;
        for (size_t i = 0; may && i < plan->item_count; ++i) {
            may = plan->items[i].kernel->may_run_here;
        }
    }
    return may;
}

static rondo_status check_device(const preparation *p, bool is_if) {
    rondo_error saved;
    rondo__error_save(&saved);
    const rondo_status status = rondo_device_supports(
        p->unit->executor->device, is_if ? RONDO_FEATURE_IF_ELSE : RONDO_FEATURE_WHILE);
    if (status == RONDO_STATUS_UNSUPPORTED) {
        REFUSE(p, "%.150s", rondo_error_get_last()->message);
        rondo__error_restore(&saved);
        return RONDO_STATUS_OK;
    }
    return status;
}

static rondo_status prepare(preparation *p) {
    const bool is_if = rondo__node_is(p->node, RONDO__OP_If);
    const bool is_loop = rondo__node_is(p->node, RONDO__OP_Loop);
    if (!is_if && !is_loop && !rondo__node_is(p->node, RONDO__OP_Scan)) {
        REFUSE(p, "it works on sequences");
        return RONDO_STATUS_OK;
    }
    if (!is_if && p->unit->executor->resources.watch == NULL) {
        REFUSE(p, "nothing could end it");
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < p->node->input_count; ++i) {
        const rondo_dtype dtype = p->request->inputs[i].dtype;
        if (dtype != RONDO_DTYPE_NONE && !rondo__dtype_is_plain(dtype)) {
            REFUSE(p, "input %zu is no tensor of numbers", i);
            return RONDO_STATUS_OK;
        }
    }
    RETURN_IF_ERROR(check_device(p, is_if));
    if (is_refused(p)) {
        return RONDO_STATUS_OK;
    }
    p->control->head.workspace_bytes =
        rondo__align_up(sizeof(rondo__flow_state), RONDO__ARENA_ALIGNMENT);
    RETURN_IF_ERROR(is_if ? prepare_if(p) : is_loop ? prepare_loop(p) : prepare_scan(p));
    if (is_refused(p)) {
        return RONDO_STATUS_OK;
    }
    reserve_arenas(p);
    p->control->turn_max = count_turns(p);
    p->control->head.is_unbounded =
        p->control->turn_max > rondo__executor_get_loop_limit(p->unit->executor);
    p->control->head.may_run_here = may_run_here(p->control);
    if (is_refused(p)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(reserve_tables(p));
    return rondo__flow_get_kernels(p->unit->executor->device, &p->control->kernels);
}

rondo_status rondo__device_control_prepare(rondo__unit *unit, const rondo__planner *planner,
                                           const rondo__plan *plan, size_t n,
                                           const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel,
                                           rondo__refusal *out_refusal) {
    *out_kernel = NULL;
    *out_refusal = (rondo__refusal){{0}};
    if (unit->executor->keeps_control_on_host) {
        (void)snprintf(out_refusal->text, sizeof out_refusal->text, "the executor keeps it there");
        return RONDO_STATUS_OK;
    }
    rondo__control_kernel *c = rondo__control_kernel_create(unit);
    if (c == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    preparation p = {unit, planner, &plan->program->nodes[n], request, c, out_refusal};
    const rondo_status status = prepare(&p);
    if (status == RONDO_STATUS_OK && !is_refused(&p)) {
        *out_kernel = &c->head;
        return status;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__kernel_destroy(&c->head);
    rondo__error_restore(&saved);
    return status;
}
