// executor/describe/describe_placement.c — where ops and tensors of a plan are, and what its runs
// have copied.
// SPDX-License-Identifier: Apache-2.0
#include "rondo/placement.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/write_struct.h"
#include "executor/describe/describe_placement.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/plan_visit.h"
#include "executor/run/deferred_body.h"
#include "program/place_mark.h"
#include "program/shapes/specialise.h"

typedef struct listing {
    const rondo__unit *unit;
    const rondo__plan *plan;
    rondo_placement *list;
    size_t capacity;
    size_t count;
} listing;

static void add(listing *l, const rondo_placement *placement) {
    if (l->count < l->capacity) {
        l->list[l->count] = *placement;
    }
    l->count += 1;
}

static uint64_t get_bytes(const rondo_program *program, int32_t value) {
    rondo__tensor_info info;
    rondo__program_get_info(program, value, &info);
    const rondo_tensor shell = {.dtype = info.dtype, .shape = info.shape};
    return info.is_shape_known ? rondo_tensor_get_bytes(&shell) : 0;
}

static const char *name_side(const rondo_executor *executor, const rondo__plan *plan,
                             uint8_t side) {
    const rondo__plan_peer *peer = rondo__plan_get_peer(plan, side);
    return peer != NULL ? rondo__place_get_name((uint8_t)(RONDO__PLACE_GPU_0 + peer->ordinal))
           : side == RONDO__SIDE_HOST || rondo_device_is_host(executor->device) ? "cpu"
                                                                                : "gpu";
}

static const char *get_side(const listing *l, uint8_t side) {
    return name_side(l->unit->executor, l->plan, side);
}

// Where an op with a kernel runs.
static uint8_t get_item_side(const rondo__item *item) {
    return rondo__kernel_is_hosted(item->kernel) ? RONDO__SIDE_HOST : item->side;
}

// ---- ops --------------------------------------------------------------------------------------

static const char *get_asker(const rondo__op_device *home) {
    static const char *const askers[] = {
        NULL, "the program asks for it (rondo_builder_begin_place, or its file)",
        "rondo_program_set_place asks for it", "options.place asks for it (--place)"};
    return askers[home->by];
}

static const char *get_reason(const listing *l, size_t n, const char *fallback) {
    const rondo__op_device *home = &l->plan->homes[n];
    const char *asker = get_asker(home);
    return asker != NULL ? asker : home->reason != NULL ? home->reason : fallback;
}

static void add_op(listing *l, size_t n, uint8_t side, const char *reason) {
    const rondo__op *op = &l->plan->program->nodes[n].op;
    add(l, &(rondo_placement){.kind = RONDO_PLACEMENT_OP,
                              .type = op->def->name,
                              .name = op->name,
                              .place = get_side(l, side),
                              .reason = get_reason(l, n, reason)});
}

static void add_transfer(listing *l, const rondo__item *item) {
    const rondo__node *node = &l->plan->program->nodes[item->node];
    const uint8_t side = l->plan->slots[node->outputs[0]].side;
    add(l, &(rondo_placement){.kind = RONDO_PLACEMENT_TRANSFER,
                              .type = node->op.def->name,
                              .name = node->op.name,
                              .place = get_side(l, side),
                              .reason = side == RONDO__SIDE_HOST ? "the processor reads it"
                                                                 : "an op of the GPU reads it",
                              .bytes = get_bytes(l->plan->program, node->outputs[0])});
}

static void list_step(listing *l, const rondo__step *step) {
    static const char *const whys[] = {
        [RONDO__BYPASS_HOSTED] = "the device has no kernel for it",
        [RONDO__BYPASS_DYNAMIC] = "its result shape depends on data",
        [RONDO__BYPASS_CONTROL] = "control flow that no graph holds; see the plan's description",
        [RONDO__BYPASS_OBJECTS] = "strings and sequences stay on the processor",
    };
    if (rondo__deferred_stays_on_device(l->plan, step)) {
        add_op(l, step->node, RONDO__SIDE_DEVICE,
               "its ops are planned when their shapes are known");
    } else if (!rondo__step_has_kernels(step) && step->kind != RONDO__STEP_COUNT) {
        add_op(l, step->node, RONDO__SIDE_HOST, whys[step->bypass]);
    }
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        const rondo__item *item = &l->plan->items[i];
        if (rondo__kernel_is_transfer(item->kernel)) {
            add_transfer(l, item);
        } else {
            add_op(l, item->node, get_item_side(item), "the executor's device has a kernel for it");
        }
    }
}

const char *rondo__placement_get_side(const rondo_executor *executor, const rondo__plan *plan,
                                      const rondo__step *step, size_t index) {
    return name_side(executor, plan,
                     rondo__step_has_kernels(step)
                         ? get_item_side(&plan->items[step->first_item + index])
                     : rondo__deferred_stays_on_device(plan, step) ? RONDO__SIDE_DEVICE
                                                                   : RONDO__SIDE_HOST);
}

static void describe_spilled(rondo__text *text, const rondo__plan *plan) {
    const size_t bytes = rondo__streamed_get_bytes(plan);
    if (bytes == 0) {
        return;
    }
    rondo__text_append(
        text,
        "spilled: %zu bytes of weights are in pinned memory (weight_limit_bytes), and "
        "brought in each run through buffers of %zu bytes\n",
        bytes, rondo__streamed_get_buffer_bytes(plan));
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        if (rondo__streamed_has(plan, (int32_t)v)) {
            rondo__text_append(text, "  ");
            rondo__text_append_escaped(text, plan->program->values[v].name);
            rondo__text_append(text, ": %" PRIu64 " bytes\n", get_bytes(plan->program, (int32_t)v));
        }
    }
}

void rondo__placement_describe(rondo__text *text, const rondo__unit *unit,
                               const rondo__plan *plan) {
    listing l = {.unit = unit, .plan = plan};
    bool is_first = true;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const size_t n = plan->items[i].node;
        const uint8_t side = get_item_side(&plan->items[i]);
        if (rondo__kernel_is_transfer(plan->items[i].kernel) ||
            (side != RONDO__SIDE_HOST && get_asker(&plan->homes[n]) == NULL)) {
            continue;
        }
        const rondo__op *op = &plan->program->nodes[n].op;
        rondo__text_append(text, "%s  %s %s ", is_first ? "placed\n" : "", get_side(&l, side),
                           op->def->name);
        rondo__text_append_escaped(text, op->name);
        rondo__text_append(text, ": %s\n", get_reason(&l, n, ""));
        is_first = false;
    }
    describe_spilled(text, plan);
}

// ---- tensors ----------------------------------------------------------------------------------

// The other GPU on which ops read a constant; none: RONDO__SIDE_DEVICE.
static uint8_t find_far_constant(const rondo__plan *plan, int32_t value) {
    for (size_t i = 0; i < plan->peer_count; ++i) {
        void **constants = plan->peers[i].constants;
        if (constants != NULL && constants[plan->slots[value].root] != NULL) {
            return (uint8_t)(RONDO__SIDE_PEER + i);
        }
    }
    return RONDO__SIDE_DEVICE;
}

static const char spilled[] = "beyond weight_limit_bytes: in pinned memory, brought in each run";

static void add_tensor(listing *l, int32_t value) {
    const rondo__slot *slot = &l->plan->slots[value];
    const rondo__value *v = &l->plan->program->values[value];
    const bool is_constant = slot->kind == RONDO__SLOT_CONSTANT;
    if (slot->kind == RONDO__SLOT_NONE) {
        return;
    }
    const uint8_t far = is_constant && slot->address == NULL ? find_far_constant(l->plan, value)
                                                             : RONDO__SIDE_DEVICE;
    // The room of what a GPU counts is on it.
    const bool is_late = slot->kind == RONDO__SLOT_DYNAMIC && slot->root == value;
    const bool is_on_host = is_constant ? slot->address == NULL && far == RONDO__SIDE_DEVICE
                                        : slot->is_on_host || is_late;
    const char *reason = rondo__streamed_has(l->plan, value) ? spilled
                         : is_constant && is_on_host ? "a constant, read where the program has it"
                         : is_constant               ? "a constant that ops of the device read"
                         : slot->kind == RONDO__SLOT_DYNAMIC ? "its shape depends on data"
                         : is_on_host ? "ops of the processor make or read it"
                                      : "ops of the device make or read it";
    add(l, &(rondo_placement){.kind = RONDO_PLACEMENT_TENSOR,
                              .type = rondo_dtype_get_name(slot->dtype),
                              .name = v->name,
                              .place = get_side(l, is_on_host    ? RONDO__SIDE_HOST
                                                   : is_constant ? far
                                                                 : slot->side),
                              .reason = reason,
                              .bytes = get_bytes(l->plan->program, value)});
}

static rondo_status list_plan(rondo__unit *unit, rondo__plan *plan, void *user_data) {
    listing *l = user_data;
    l->unit = unit;
    l->plan = plan;
    for (size_t s = 0; s < plan->step_count; ++s) {
        list_step(l, &plan->steps[s]);
    }
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        add_tensor(l, (int32_t)v);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_list_placements(rondo_executor *executor, const rondo_binding *feeds,
                                            size_t feed_count, size_t capacity,
                                            rondo_placement *out_placements, size_t *out_count) {
    if (out_count == NULL) {
        return RONDO_FAIL(INVALID, "out_count is NULL");
    }
    *out_count = 0;
    if (executor == NULL || (feeds == NULL && feed_count > 0) ||
        (out_placements == NULL && capacity > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          executor == NULL         ? "executor"
                          : out_placements == NULL ? "out_placements"
                                                   : "feeds");
    }
    listing l = {.list = out_placements, .capacity = capacity};
    RETURN_IF_ERROR(
        rondo__executor_visit_plan(executor, feeds, feed_count, __func__, list_plan, &l));
    *out_count = l.count;
    return RONDO_STATUS_OK;
}

// ---- what was copied --------------------------------------------------------------------------

static rondo_transfer_count get_count(const rondo__transfer_counts *counts,
                                      rondo__transfer_way way) {
    return (rondo_transfer_count){counts->count[way], counts->bytes[way]};
}

rondo_status rondo_executor_get_transfers(const rondo_executor *executor,
                                          rondo_transfer_stats *out_stats) {
    RETURN_IF_ERROR(
        rondo__clear_struct(out_stats, sizeof *out_stats, __func__, "rondo_transfer_stats"));
    if (executor == NULL) {
        return RONDO_FAIL(INVALID, "executor is NULL");
    }
    if (!executor->variants.active->runs.has_run) {
        return RONDO_FAIL(STATE, "nothing has run yet; call rondo_executor_run first");
    }
    const rondo__transfers_log *log = &executor->resources.crossings;
    const rondo_transfer_stats stats = {
        .struct_size = sizeof stats,
        .run_count = log->run_count,
        .to_device = get_count(&log->all, RONDO__TO_DEVICE),
        .to_host = get_count(&log->all, RONDO__TO_HOST),
        .synchronous_to_device = get_count(&log->stopped, RONDO__TO_DEVICE),
        .synchronous_to_host = get_count(&log->stopped, RONDO__TO_HOST),
        .between_devices = get_count(&log->all, RONDO__BETWEEN),
        .weights = {log->brought.count, log->brought.bytes},
        .synchronous_between_devices = get_count(&log->stopped, RONDO__BETWEEN),
    };
    rondo__write_struct(out_stats, &stats);
    return RONDO_STATUS_OK;
}
