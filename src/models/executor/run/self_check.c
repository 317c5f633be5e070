// executor/run/self_check.c — see self_check.h.
//
// A segment runs op by op, and again as a graph from the same state. At its end a value can be
// compared as long as no later op of the segment has written over its place. If a value differs,
// the search finds the op at fault by halves: the ops up to the middle run both ways, the graph
// with the nodes behind them switched off. Right after an op its results are intact, so the search
// ends at an op whose inputs were all the same, if the graph's nodes can be told apart.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/self_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/compile/schedule.h"
#include "executor/run/check_memory.h"
#include "executor/state/limits.h"
#include "graph/node/part.h"
#include "op/half.h"
#include "tensor/elements.h"
#include "tensor/narrow.h"

struct rondo__self_check {
    bool is_on;          // this run is checked
    bool only_reports;   // it was asked for by rondo_executor_self_check
    bool has_report;     // of a run
    uint64_t run_count;  // since the executor was made
    rondo_self_check_report report;
};

// A segment that is being checked.
typedef struct checking {
    rondo__unit *unit;
    rondo__plan *plan;
    rondo__step *step;
    rondo__step_launcher launch;
    rondo_self_check_report *report;
    rondo__check_memory memory;
    bool *is_needed;  // by node of the graph
    size_t node_count;
} checking;

// ---- runs -------------------------------------------------------------------------------------

static rondo_status get_check(rondo_executor *executor, struct rondo__self_check **out_check) {
    if (executor->caller.self_check == NULL) {
        executor->caller.self_check = rondo__calloc(1, sizeof *executor->caller.self_check);
    }
    *out_check = executor->caller.self_check;
    return executor->caller.self_check != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static void begin_report(struct rondo__self_check *check) {
    check->is_on = true;
    check->has_report = true;
    check->report = (rondo_self_check_report){.struct_size = sizeof check->report};
}

rondo_status rondo__self_check_begin_run(rondo_executor *executor) {
    struct rondo__self_check *check;
    const uint64_t every = executor->options.self_check_every;
    if (every == 0 ||
        (executor->caller.self_check != NULL && executor->caller.self_check->only_reports)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(get_check(executor, &check));
    check->run_count += 1;
    if (check->run_count % every == 0 && executor->graphs != RONDO_GRAPHS_OFF) {
        begin_report(check);
    }
    return RONDO_STATUS_OK;
}

bool rondo__self_check_is_on(const rondo_executor *executor) {
    return executor->caller.self_check != NULL && executor->caller.self_check->is_on;
}

void rondo__self_check_end_run(rondo_executor *executor) {
    if (executor->caller.self_check != NULL) {
        executor->caller.self_check->is_on = false;
    }
}

bool rondo__self_check_is_expected(const rondo_executor *executor) {
    return executor->caller.self_check != NULL || executor->options.self_check_every > 0;
}

void rondo__self_check_mark(rondo_stream *stream, rondo__item *item) {
    rondo_error saved;
    rondo__error_save(&saved);
    if (rondo_stream_get_last_node(stream, &item->last_node) != RONDO_STATUS_OK) {
        item->last_node = (rondo_node){0};  // no node yet, or several: then less can be told
    }
    rondo__error_restore(&saved);
}

void rondo__self_check_mark_line(rondo_graph *graph, rondo__item *items, size_t count) {
    rondo_error saved;
    rondo__error_save(&saved);
    for (size_t i = 0; i < count; ++i) {
        const uint64_t number = items[i].last_node.number;
        if (number == 0 || rondo_graph_get_node_handle(graph, (size_t)number - 1,
                                                       &items[i].last_node) != RONDO_STATUS_OK) {
            items[i].last_node = (rondo_node){0};
        }
    }
    rondo__error_restore(&saved);
}

rondo_status rondo__self_check_begin_report(rondo_executor *executor) {
    struct rondo__self_check *check;
    RETURN_IF_ERROR(get_check(executor, &check));
    check->only_reports = true;
    begin_report(check);
    return RONDO_STATUS_OK;
}

void rondo__self_check_end_report(rondo_executor *executor) {
    executor->caller.self_check->only_reports = false;
    executor->caller.self_check->is_on = false;
}

const rondo_self_check_report *rondo__self_check_get_report(const rondo_executor *executor) {
    const struct rondo__self_check *check = executor->caller.self_check;
    return check != NULL && check->has_report ? &check->report : NULL;
}

// ---- values -----------------------------------------------------------------------------------

typedef struct value_place {
    size_t item;
    int32_t value;
    const char *eager;
    const char *replayed;
} value_place;

static const rondo__node *get_node(const checking *c, size_t item) {
    return rondo__plan_get_node(c->plan, item);
}

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const uintptr_t x = (uintptr_t)a;
    const uintptr_t y = (uintptr_t)b;
    return a != NULL && b != NULL && a_bytes > 0 && b_bytes > 0 &&
           (x < y ? y - x < a_bytes : x - y < b_bytes);
}

// Whether the item writes there.
static bool writes(const checking *c, size_t item, const void *address, size_t bytes) {
    const rondo__item *o = &c->plan->items[item];
    const rondo__node *node = get_node(c, item);
    if (overlaps(o->workspace, o->kernel->workspace_bytes, address, bytes)) {
        return true;
    }
    for (size_t k = 0; k < node->output_count; ++k) {
        if (o->outputs[k] != NULL &&
            overlaps(o->outputs[k], c->plan->slots[node->outputs[k]].bytes, address, bytes)) {
            return true;
        }
    }
    return false;
}

// Output `k` of the item, when the items before `end` have run; false: written over, or none.
static bool find_value(const checking *c, size_t item, size_t k, size_t end,
                       value_place *out_place) {
    const rondo__node *node = get_node(c, item);
    const void *address = c->plan->items[item].outputs[k];
    const size_t bytes = address != NULL ? c->plan->slots[node->outputs[k]].bytes : 0;
    const size_t place =
        bytes > 0 ? rondo__check_memory_find(&c->memory, address, bytes) : SIZE_MAX;
    if (place == SIZE_MAX) {
        return false;
    }
    for (size_t later = item + 1; later < end; ++later) {
        if (writes(c, later, address, bytes)) {
            return false;
        }
    }
    *out_place = (value_place){.item = item,
                               .value = node->outputs[k],
                               .eager = c->memory.eager + place,
                               .replayed = c->memory.replayed + place};
    return true;
}

// The first value that differs when the items before `end` have run both ways. *out_is_first:
// everything before it could be compared.
static bool find_difference(const checking *c, size_t end, value_place *out_place,
                            uint64_t *out_value_count, bool *out_is_first) {
    *out_value_count = 0;
    *out_is_first = true;
    for (size_t i = c->step->first_item; i < end; ++i) {
        for (size_t k = 0; k < get_node(c, i)->output_count; ++k) {
            const bool is_written = c->plan->items[i].outputs[k] != NULL;
            if (!find_value(c, i, k, end, out_place)) {
                *out_is_first = *out_is_first && !is_written;
                continue;
            }
            *out_value_count += 1;
            if (memcmp(out_place->eager, out_place->replayed,
                       c->plan->slots[out_place->value].bytes) != 0) {
                return true;
            }
        }
    }
    return false;
}

// ---- the search -------------------------------------------------------------------------------

static rondo_status run_part_eagerly(checking *c, size_t end) {
    rondo__step part = *c->step;
    part.item_count = end - part.first_item;
    RETURN_IF_ERROR(rondo__check_memory_go_back(&c->memory));
    RETURN_IF_ERROR(c->launch(c->unit, c->plan, &part));
    return rondo__check_memory_keep(&c->memory, false);
}

// On failure the graph may not be whole any more, and is given up.
static rondo_status replay_part(checking *c, size_t end) {
    bool is_whole = true;
    const size_t count = end - c->step->first_item;
    rondo_node *nodes = rondo__calloc(count + 1, sizeof *nodes);
    if (nodes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        nodes[i] = c->plan->items[c->step->first_item + i].last_node;
    }
    rondo_status status =
        rondo__graph_find_needed(c->step->run.graph, nodes, count, c->is_needed, c->node_count);
    rondo__free(nodes);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(rondo__check_memory_go_back(&c->memory));
    status = rondo__graph_replay_part(c->step->run.graph, c->memory.stream, c->is_needed,
                                      c->node_count, &is_whole);
    if (!is_whole) {
        rondo_graph_destroy(c->step->run.graph);
        c->step->run.graph = NULL;
    }
    return status == RONDO_STATUS_OK ? rondo__check_memory_keep(&c->memory, true) : status;
}

static bool has_marks(const checking *c) {
    for (size_t i = c->step->first_item; i < c->step->first_item + c->step->item_count; ++i) {
        if (c->plan->items[i].last_node.recording != 0) {
            return true;
        }
    }
    return false;
}

static rondo_status init_search(checking *c) {
    RETURN_IF_ERROR(rondo_graph_get_node_count(c->step->run.graph, &c->node_count));
    c->is_needed = rondo__calloc(c->node_count + 1, sizeof *c->is_needed);
    return c->is_needed != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// Narrows [nothing differs behind `low` items, something behind those before `high`].
static rondo_status search(checking *c, size_t low, size_t high, value_place *in_out_place) {
    value_place found = {0};
    uint64_t count;
    bool is_first;
    RETURN_IF_ERROR(init_search(c));
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        RETURN_IF_ERROR(rondo__executor_check_cancelled(c->unit->executor));
        RETURN_IF_ERROR(run_part_eagerly(c, middle));
        RETURN_IF_ERROR(replay_part(c, middle));
        if (find_difference(c, middle, &found, &count, &is_first)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    // The last copies were made at the last middle; the report wants those behind `high` items.
    RETURN_IF_ERROR(run_part_eagerly(c, high));
    RETURN_IF_ERROR(replay_part(c, high));
    if (!find_difference(c, high, &found, &count, &is_first)) {
        return RONDO_FAIL(INTERNAL, "a replay of a part of the segment does not repeat itself");
    }
    *in_out_place = found;
    return RONDO_STATUS_OK;
}

// ---- the report -------------------------------------------------------------------------------

static void format_element(rondo_dtype dtype, const char *bytes, char *text, size_t capacity) {
    const size_t size = rondo_dtype_get_bytes(dtype);
    uint64_t bits = 0;
    double number = 0;
    float single;
    uint16_t half;
    memcpy(&bits, bytes, size < sizeof bits ? size : sizeof bits);
    const int digits = 2 * (int)(size < sizeof bits ? size : sizeof bits);
    switch (dtype) {
        case RONDO_DTYPE_F64:
            memcpy(&number, bytes, sizeof number);
            break;
        case RONDO_DTYPE_F32:
            memcpy(&single, bytes, sizeof single);
            number = (double)single;
            break;
        case RONDO_DTYPE_F16:
        case RONDO_DTYPE_BF16:
            memcpy(&half, bytes, sizeof half);
            rondo__half_to_float_array(dtype, &half, &single, 1);
            number = (double)single;
            break;
        default: {
            if (rondo__dtype_is_narrow(dtype)) {
                number = (double)rondo_narrow_to_float(dtype, (uint8_t)bits);
                break;
            }
            if (size > sizeof bits) {  // of a pair of doubles the first
                memcpy(&number, bytes, sizeof number);
                break;
            }
            const bool is_signed = dtype >= RONDO_DTYPE_I8 && dtype <= RONDO_DTYPE_I64;
            const unsigned shift = 64u - 8u * (unsigned)size;
            const int64_t value = (int64_t)(bits << shift) >> shift;
            (void)(is_signed ? snprintf(text, capacity, "%" PRId64, value)
                             : snprintf(text, capacity, "%" PRIu64, bits));
            return;
        }
    }
    (void)snprintf(text, capacity, "%.9g (0x%0*" PRIx64 ")", number, digits, bits);
}

static void describe_value(const checking *c, const value_place *place) {
    rondo_self_check_report *report = c->report;
    const rondo__node *node = get_node(c, place->item);
    const rondo__slot *slot = &c->plan->slots[place->value];
    const size_t size = rondo_dtype_get_bytes(slot->dtype);
    bool is_found = false;
    (void)snprintf(report->op, sizeof report->op, "%s", node->op.def->name);
    (void)snprintf(report->node, sizeof report->node, "%s",
                   node->op.name != NULL ? node->op.name : "");
    (void)snprintf(report->value, sizeof report->value, "%s",
                   c->plan->program->values[place->value].name);
    report->dtype = slot->dtype;
    for (size_t e = 0; size > 0 && e < slot->bytes / size; ++e) {
        const char *eager = place->eager + e * size;
        const char *replayed = place->replayed + e * size;
        if (memcmp(eager, replayed, size) == 0) {
            continue;
        }
        report->different_count += 1;
        if (!is_found) {
            is_found = true;
            report->element = e;
            format_element(slot->dtype, eager, report->eager, sizeof report->eager);
            format_element(slot->dtype, replayed, report->replayed, sizeof report->replayed);
        }
    }
}

// A generator that a replay leaves elsewhere makes later runs differ.
static bool find_generator(const checking *c) {
    rondo_self_check_report *report = c->report;
    const rondo__executor_generator *entry = c->unit->executor->resources.generators;
    for (size_t g = 0; g < c->memory.generator_count; ++g, entry = entry->next) {
        const rondo_generator_state *eager = &c->memory.states[1][g];
        const rondo_generator_state *replayed = &c->memory.states[2][g];
        if (eager->seed == replayed->seed && eager->offset == replayed->offset) {
            continue;
        }
        (void)snprintf(report->op, sizeof report->op, "a generator");
        (void)snprintf(report->node, sizeof report->node, "%s",
                       entry->name != NULL ? entry->name : "");
        (void)snprintf(report->eager, sizeof report->eager, "offset %" PRIu64, eager->offset);
        (void)snprintf(report->replayed, sizeof report->replayed, "offset %" PRIu64,
                       replayed->offset);
        return true;
    }
    return false;
}

static rondo_status fail_different(const rondo_self_check_report *report) {
    rondo_status status = RONDO_FAIL_AS(
        "rondo_executor_run", MISMATCH,
        "a replay computes something else than the ops: %s%.40s%s of %s, element %" PRIu64
        ", is %s, replayed %s; run with graphs off, or see rondo/self_check.h",
        report->value[0] != '\0' ? "\"" : "its state", report->value,
        report->value[0] != '\0' ? "\"" : "", report->op, report->element, report->eager,
        report->replayed);
    rondo__error_set_op(report->node[0] != '\0' ? report->node : report->op);
    return status;
}

// ---- a segment --------------------------------------------------------------------------------

static rondo_status run_both_ways(checking *c) {
    RETURN_IF_ERROR(c->launch(c->unit, c->plan, c->step));
    RETURN_IF_ERROR(rondo__check_memory_keep(&c->memory, false));
    RETURN_IF_ERROR(rondo__executor_check_cancelled(c->unit->executor));
    RETURN_IF_ERROR(rondo__check_memory_go_back(&c->memory));
    RETURN_IF_ERROR(rondo_graph_replay(c->step->run.graph, c->memory.stream));
    RETURN_IF_ERROR(rondo__check_memory_keep(&c->memory, true));
    return rondo__executor_check_cancelled(
        c->unit->executor);  // a loop that was ended computes less
}

// The value to blame; what cannot be searched leaves the one that was found.
static rondo_status blame(checking *c, const value_place *place, bool is_first) {
    const size_t first = c->step->first_item;
    value_place found = *place;
    describe_value(c, place);
    c->report->is_first = is_first;
    if (is_first || !has_marks(c)) {
        return RONDO_STATUS_OK;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_status status = search(c, first, place->item + 1, &found);
    if (status == RONDO_STATUS_OK) {
        c->report->different_count = 0;
        describe_value(c, &found);
        c->report->is_first = true;
    } else if (status != RONDO_STATUS_CANCELLED && status != RONDO_STATUS_LOST) {
        rondo__error_restore(&saved);
        status = RONDO_STATUS_OK;
    }
    return status;
}

// The segment goes on without its graph.
static void give_up_graph(const checking *c) {
    rondo_graph_destroy(c->step->run.graph);
    c->step->run.graph = NULL;
    c->step->run.retry_run = UINT64_MAX;
    c->step->run.failure_count = 1;
    (void)snprintf(c->step->reason, sizeof c->step->reason,
                   "the self-check found that a replay differs in %.40s \"%.60s\"", c->report->op,
                   c->report->node);
    c->step->bypass = RONDO__BYPASS_DIFFERENT;
    RONDO_LOG_WARN_F("segment %zu runs without a graph: %s", (size_t)(c->step - c->plan->steps),
                     c->step->reason);
}

// The search ends with copies of a part: the whole segment runs once more, eagerly.
static rondo_status settle_difference(checking *c, const value_place *place, bool is_first) {
    const struct rondo__self_check *check = c->unit->executor->caller.self_check;
    c->report->is_different = true;
    if (place != NULL) {
        RETURN_IF_ERROR(blame(c, place, is_first));
    }
    RETURN_IF_ERROR(run_part_eagerly(c, c->step->first_item + c->step->item_count));
    if (!check->only_reports &&
        c->unit->executor->options.self_check_action == RONDO_SELF_CHECK_FAIL) {
        return fail_different(c->report);
    }
    give_up_graph(c);
    return RONDO_STATUS_OK;
}

rondo_status rondo__self_check_segment(rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                                       rondo__step_launcher launch) {
    rondo_self_check_report *report = &unit->executor->caller.self_check->report;
    rondo_self_check_report later = {0};  // of segments behind the first that differs
    checking c = {.unit = unit,
                  .plan = plan,
                  .step = step,
                  .launch = launch,
                  .report = report->is_different ? &later : report};
    rondo_status status = rondo__check_memory_init(unit, plan, step, &c.memory);
    if (status == RONDO_STATUS_OK) {
        status = run_both_ways(&c);
    }
    if (status == RONDO_STATUS_OK) {
        value_place place;
        uint64_t value_count = 0;
        bool is_first = true;
        const size_t end = step->first_item + step->item_count;
        const bool differs = find_difference(&c, end, &place, &value_count, &is_first);
        report->segment_count += 1;
        report->value_count += value_count;
        if (differs || find_generator(&c)) {
            status = settle_difference(&c, differs ? &place : NULL, is_first);
        }
    }
    rondo__free(c.is_needed);
    rondo__check_memory_deinit(&c.memory);
    return status;
}

rondo_status rondo__self_check_warm_up(rondo__unit *unit, rondo__plan *plan,
                                       const rondo__step *step, rondo__step_launcher launch) {
    rondo__check_memory memory;
    rondo_status status = rondo__check_memory_init(unit, plan, step, &memory);
    if (status == RONDO_STATUS_OK) {
        status = launch(unit, plan, step);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_synchronize(memory.stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__check_memory_go_back(&memory);
    }
    rondo__check_memory_deinit(&memory);
    return status;
}
