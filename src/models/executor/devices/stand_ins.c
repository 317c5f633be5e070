// executor/devices/stand_ins.c — see stand_ins.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/stand_ins.h"

#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/streamed_weights.h"
#include "executor/devices/transfers.h"
#include "executor/state/arena_plan.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/counted.h"
#include "executor/state/states.h"
#include "graph/graph_object.h"

rondo_status rondo__stand_ins_init(const rondo__unit *unit, const rondo__plan *plan,
                                   rondo__stand_ins *out_places) {
    size_t widest = 1;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        widest = node->input_count > widest ? node->input_count : widest;
        widest = node->output_count > widest ? node->output_count : widest;
    }
    *out_places = (rondo__stand_ins){.unit = unit, .plan = plan};
    out_places->by_root =
        rondo__calloc(plan->program->value_count + 1, sizeof *out_places->by_root);
    out_places->inputs = rondo__calloc(widest, sizeof *out_places->inputs);
    out_places->outputs = rondo__calloc(widest, sizeof *out_places->outputs);
    return out_places->by_root != NULL && out_places->inputs != NULL && out_places->outputs != NULL
               ? RONDO_STATUS_OK
               : RONDO_STATUS_NO_MEMORY;
}

// ---- what stands in ---------------------------------------------------------------------------

static bool overlaps(const rondo_tensor *a, const rondo_tensor *b) {
    const uintptr_t from = (uintptr_t)a->data;
    const uintptr_t other = (uintptr_t)b->data;
    return from <= other ? other - from < rondo_tensor_get_bytes(a) &&
                               (from != other || rondo_tensor_get_bytes(b) > 0)
                         : from - other < rondo_tensor_get_bytes(b);
}

// Kernels rely on the alignment of the arena.
static bool can_stand_in(const rondo__stand_ins *places, const rondo__slot *slot,
                         const rondo_tensor *tensor) {
    return slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 && tensor->data != NULL &&
           !places->plan->slots[slot->root].is_bound && slot->side == RONDO__SIDE_DEVICE &&
           rondo__stand_ins_is_near(places->unit->executor, tensor) &&
           (uintptr_t)tensor->data % RONDO__ARENA_ALIGNMENT == 0;
}

static void choose_result(rondo__stand_ins *places, const rondo_tensor *feeds, size_t output,
                          const rondo_tensor *result) {
    const rondo_program *program = places->plan->program;
    const rondo__slot *slot = &places->plan->slots[program->outputs[output]];
    bool fits = can_stand_in(places, slot, result) && places->by_root[slot->root] == NULL &&
                result->dtype == slot->dtype && rondo_shape_is_equal(&result->shape, &slot->shape);
    for (size_t i = 0; fits && i < program->input_count; ++i) {
        const rondo__slot *input = &places->plan->slots[program->inputs[i]];
        fits = input->root != slot->root && (input->is_kept || !overlaps(result, &feeds[i]));
    }
    if (fits && !rondo__states_hold(places->unit->executor, result, false)) {
        places->by_root[slot->root] = result->data;
    }
}

// Whether a fetch is written over the feed, while another one is read from there: the input itself,
// or a view of it.
static bool is_read_late(const rondo__stand_ins *places, size_t input, const rondo_tensor *feed,
                         const rondo_tensor *results, const bool *wants) {
    const rondo_program *program = places->plan->program;
    const rondo__slot *slots = places->plan->slots;
    bool is_output = false;
    bool is_written = false;
    for (size_t i = 0; i < program->output_count; ++i) {
        is_output =
            is_output || ((wants == NULL || wants[i]) &&
                          slots[program->outputs[i]].root == slots[program->inputs[input]].root);
    }
    for (size_t i = 0; is_output && i < program->output_count; ++i) {
        is_written = is_written || ((wants == NULL || wants[i]) && overlaps(&results[i], feed));
    }
    return is_written;
}

// Whether another fetch lies in the same memory: what is written there is still read by ops.
static bool is_shared(const rondo__stand_ins *places, size_t output, const rondo_tensor *results,
                      const bool *wants) {
    bool is = false;
    for (size_t i = 0; i < places->plan->program->output_count && !is; ++i) {
        is = i != output && (wants == NULL || wants[i]) && overlaps(&results[i], &results[output]);
    }
    return is;
}

void rondo__stand_ins_choose(rondo__stand_ins *places, const rondo_tensor *feeds,
                             const rondo_tensor *results, const bool *wants) {
    const rondo_program *program = places->plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__slot *slot = &places->plan->slots[program->inputs[i]];
        // Ops may write a state before others have read a feed that lies in its memory, as what
        // runs give out of states does.
        if (can_stand_in(places, slot, &feeds[i]) &&
            !rondo__states_hold(places->unit->executor, &feeds[i], true) &&
            !is_read_late(places, i, &feeds[i], results, wants)) {
            places->by_root[slot->root] = feeds[i].data;
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        if ((wants == NULL || wants[i]) &&
            rondo__stand_ins_is_near(places->unit->executor, &results[i]) &&
            !is_shared(places, i, results, wants)) {
            choose_result(places, feeds, i, &results[i]);
        }
    }
}

void *rondo__stand_ins_find(const rondo__stand_ins *places, int32_t value) {
    const rondo__slot *slot = &places->plan->slots[value];
    if (slot->kind != RONDO__SLOT_ARENA || places->plan->slots[slot->root].is_bound) {
        return slot->address;
    }
    if (slot->is_on_host) {
        return places->host_arena + slot->offset;
    }
    return places->by_root[slot->root] != NULL ? places->by_root[slot->root]
                                               : places->arena + slot->offset;
}

// ---- the kernels ------------------------------------------------------------------------------

static rondo_status refuse_step(const rondo__plan *plan, const rondo__step *step,
                                const char *call) {
    const rondo__node *node = rondo__counted_get_maker(
        plan, step->kind != RONDO__STEP_SEGMENT ? step->node : plan->items[step->first_item].node);
    return RONDO_FAIL_AS(call, UNSUPPORTED,
                         "%s cannot be recorded: %s. rondo_executor_describe tells of the plan",
                         rondo__node_describe(node),
                         step->reason[0] != '\0' ? step->reason : "it runs between segments");
}

size_t rondo__stand_ins_count_lists(const rondo__plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        count += rondo__kernel_is_hosted(plan->items[i].kernel)
                     ? node->input_count + node->output_count
                     : 0;
    }
    return count;
}

rondo_status rondo__stand_ins_check(const rondo__plan *plan, const char *call, bool has_room) {
    if (plan->streamed != NULL && !has_room) {
        return RONDO_FAIL_AS(call, UNSUPPORTED,
                             "the run cannot be recorded: under options.weight_limit_bytes weights "
                             "are brought through buffers that all runs share");
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__plan_peer *peer = rondo__plan_get_peer(plan, plan->items[i].side);
        if (peer != NULL && !rondo__kernel_is_transfer(plan->items[i].kernel)) {
            return RONDO_FAIL_AS(call, UNSUPPORTED,
                                 "%s cannot be recorded: it runs on %s, and a graph holds the work "
                                 "of one GPU",
                                 rondo__node_describe(rondo__plan_get_node(plan, i)),
                                 rondo_device_get_name(peer->peer->device));
        }
    }
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (step->kind != RONDO__STEP_SEGMENT) {
            return refuse_step(plan, step, call);
        }
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        if (rondo__verdict_get_rule(&node->op, plan->items[i].kernel) == RONDO__CAPTURE_PROBE) {
            return RONDO_FAIL_AS(call, UNSUPPORTED,
                                 "%s cannot be recorded: it does not say that it can be captured",
                                 rondo__node_describe(node));
        }
        if (plan->items[i].kernel->is_unbounded) {
            return RONDO_FAIL_AS(call, UNSUPPORTED,
                                 "%s cannot be recorded: how many turns it takes depends on data, "
                                 "and a graph of the program's would not report more turns than "
                                 "loop_limit allows; a constant trip count bounds them",
                                 rondo__node_describe(node));
        }
        const bool is_of_processor = rondo__kernel_is_hosted(plan->items[i].kernel) ||
                                     rondo__kernel_is_transfer(plan->items[i].kernel);
        if (plan->items[i].kernel->keeps_addresses && !(is_of_processor && has_room)) {
            return RONDO_FAIL_AS(
                call, UNSUPPORTED,
                "%s cannot be recorded: its launches have the addresses of the plan",
                rondo__node_describe(node));
        }
    }
    return RONDO_STATUS_OK;
}

// A host function reads its addresses when it runs: they go to lists that stay.
static void keep_lists(rondo__stand_ins *places, const rondo__node *node, const void ***inputs,
                       void ***outputs) {
    const size_t input_bytes = node->input_count * sizeof **inputs;
    const size_t output_bytes = node->output_count * sizeof **outputs;
    char *list = (char *)(places->lists + places->list_count);
    memcpy(list, (const void *)*inputs, input_bytes);
    memcpy(list + input_bytes, (const void *)*outputs, output_bytes);
    places->list_count += node->input_count + node->output_count;
    *inputs = (void *)list;
    *outputs = (void *)(list + input_bytes);
}

bool rondo__stand_ins_watch(rondo__stand_ins *places) {
    rondo_watchdog *watchdog = places->unit->executor->options.watchdog;
    rondo_graph *graph = watchdog != NULL ? places->plan->steps[0].run.graph : NULL;
    const uint64_t number = graph != NULL ? graph->begin_ns : 0;
    const bool is_same = places->watched == graph && places->watched_number == number;
    places->watchdog = watchdog;
    places->watched = graph;
    places->watched_number = number;
    return is_same;
}

rondo_status rondo__stand_ins_replay(const rondo__stand_ins *places, rondo__watchdog_put put,
                                     void *user_data) {
    return places->watched != NULL ? rondo__watchdog_watch(places->watchdog, places->watched,
                                                           places->unit->stream, put, user_data)
                                   : put(user_data);
}

rondo_status rondo__stand_ins_launch_item(void *stand_ins, size_t i, rondo_stream *stream) {
    rondo__stand_ins *places = stand_ins;
    const rondo__plan *plan = places->plan;
    const rondo__item *item = &plan->items[i];
    const rondo__node *node = &plan->program->nodes[item->node];
    const bool is_hosted = rondo__kernel_is_hosted(item->kernel);
    const void **inputs = places->inputs;
    void **outputs = places->outputs;
    for (size_t k = 0; k < node->input_count; ++k) {
        inputs[k] = item->inputs[k] != NULL ? rondo__stand_ins_find(places, node->inputs[k]) : NULL;
    }
    for (size_t k = 0; k < node->output_count; ++k) {
        outputs[k] =
            item->outputs[k] != NULL ? rondo__stand_ins_find(places, node->outputs[k]) : NULL;
    }
    const char *from = is_hosted ? plan->memory.host_arena : plan->memory.arena->address;
    char *to = is_hosted ? places->host_arena : places->arena;
    void *workspace = item->workspace != NULL ? to + ((const char *)item->workspace - from) : NULL;
    if (places->watched != NULL) {
        RETURN_IF_ERROR(
            rondo__watchdog_mark_again(places->watchdog, places->watched, (uint32_t)i + 1, stream));
    }
    RETURN_IF_ERROR(rondo__streamed_put(plan, i, stream, places->buffer, inputs));
    if (is_hosted) {
        keep_lists(places, node, &inputs, &outputs);
    }
    const rondo_status status =
        item->kernel->launch(item->kernel, stream, inputs, outputs, workspace);
    if (status != RONDO_STATUS_OK) {
        rondo__node_blame(node);
    }
    return status;
}

rondo_status rondo__stand_ins_launch(rondo__stand_ins *places, rondo_stream *stream) {
    const rondo__plan *plan = places->plan;
    places->list_count = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        for (size_t i = 0; i < step->item_count; ++i) {
            RETURN_IF_ERROR(rondo__stand_ins_launch_item(places, step->first_item + i, stream));
        }
    }
    return RONDO_STATUS_OK;
}
