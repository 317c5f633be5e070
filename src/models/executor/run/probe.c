// executor/run/probe.c — see probe.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/probe.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "executor/compile/schedule.h"
#include "executor/state/capture_verdict.h"
#include "executor/state/op_span.h"
#include "rondo/update.h"

enum {
    FLUKES_MAX = 3,        // failures in one search that do not come again
    POSTPONED_MAX = 10,    // 2 to the power of this: the most runs between two tries
    MEMORY_TRIES_MAX = 2,  // of a step in which an op that is probed says that there is no memory
};

typedef struct probe {
    rondo__unit *unit;
    rondo__plan *plan;
    rondo__step_recorder record;
    rondo__step *steps;  // what becomes of the segment
    size_t count;
    size_t capacity;
    uint32_t failure_count;  // of the segment before
    uint32_t fluke_count;
} probe;

static bool is_probed_op(const rondo__plan *plan, size_t item) {
    return rondo__verdict_get_rule(rondo__plan_get_op(plan, item), plan->items[item].kernel) ==
           RONDO__CAPTURE_PROBE;
}

bool rondo__probe_is_passing(const rondo__plan *plan, uint32_t failure_count, rondo_status status) {
    if (!rondo__is_out_of_memory(status)) {
        return false;
    }
    // An op that allocates in a capture may say so in these words each time.
    return plan->run.failed_item == SIZE_MAX || failure_count < MEMORY_TRIES_MAX ||
           !is_probed_op(plan, plan->run.failed_item);
}

void rondo__probe_postpone(const rondo__plan *plan, rondo__step *step, const char *why) {
    step->run.failure_count += 1;
    const uint32_t power =
        step->run.failure_count < POSTPONED_MAX ? step->run.failure_count : POSTPONED_MAX;
    step->run.retry_run = plan->run.count + (plan->run.count > 0 ? UINT64_C(1) << power : 1);
    RONDO_LOG_INFO_F("a segment of %zu ops runs without a graph for now: %.160s", step->item_count,
                     why);
}

// ---- what a capture froze -----------------------------------------------------------------------

static bool is_own(const rondo__plan *plan, size_t item) {
    return (rondo__plan_get_op(plan, item)->def->flags & RONDO__OP_USER) != 0;
}

bool rondo__probe_may_freeze(const rondo__unit *unit, const rondo__plan *plan,
                             const rondo__step *step) {
    bool may = false;
    for (size_t i = step->first_item; i < step->first_item + step->item_count && !may; ++i) {
        may = is_own(plan, i) && !plan->items[i].is_frozen;
    }
    bool trains = unit->is_training;
    for (size_t v = 0; v < unit->source->variable_count && may && !trains; ++v) {
        trains = unit->source->variables[v].update != RONDO__VALUE_NONE;
    }
    return may && trains && plan->ranks == NULL;
}

// The op of the program's own whose nodes have this label; SIZE_MAX: none.
static size_t find_own(const rondo__plan *plan, const rondo__step *step, const char *label) {
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        const rondo__op *op = rondo__plan_get_op(plan, i);
        char title[RONDO__OP_TITLE_BYTES];
        rondo__op_format_title(op, title);
        const size_t length = strlen(title);
        const size_t whole = strlen(label);
        if (is_own(plan, i) && whole >= length && strcmp(label + whole - length, title) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

// Marks the ops that differ; how many.
static size_t mark_frozen(rondo__plan *plan, const rondo__step *step, rondo_graph *before,
                          rondo_graph *after) {
    enum { LISTED_MAX = 16 };
    rondo_difference list[LISTED_MAX];
    size_t count = 0;
    size_t found = 0;
    memset(list, 0, sizeof list);
    list[0].struct_size = sizeof list[0];
    if (rondo_graph_compare(before, after, list, LISTED_MAX, &count) != RONDO_STATUS_OK) {
        return 0;
    }
    for (size_t k = 0; k < count && k < LISTED_MAX; ++k) {
        const size_t i = find_own(plan, step, list[k].label);
        if (i == SIZE_MAX || plan->items[i].is_frozen) {
            continue;
        }
        char text[300];
        (void)rondo_difference_format(&list[k], text, sizeof text);
        RONDO_LOG_WARN_F(
            "%.40s \"%.64s\": its launch puts other numbers than when it was captured: "
            "%s; hand them over as inputs",
            rondo__plan_get_op(plan, i)->def->name, rondo__plan_get_op(plan, i)->name, text);
        plan->items[i].is_frozen = true;
        found += 1;
    }
    return found;
}

rondo_status rondo__probe_frozen(rondo__unit *unit, rondo__plan *plan, rondo__step_recorder record,
                                 rondo__step *step, bool *out_found) {
    rondo__step again = {.kind = RONDO__STEP_SEGMENT,
                         .first_item = step->first_item,
                         .item_count = step->item_count};
    rondo_error saved;
    rondo__error_save(&saved);
    *out_found = false;
    const rondo_status status = record(unit, plan, &again);
    if (status == RONDO_STATUS_LOST) {
        return status;
    }
    if (status == RONDO_STATUS_OK) {
        *out_found = mark_frozen(plan, step, step->run.graph, again.run.graph) > 0;
        rondo_graph_destroy(again.run.graph);
    }
    if (*out_found) {
        rondo_graph_destroy(step->run.graph);
        step->run.graph = NULL;
    }
    rondo__error_restore(&saved);  // one that cannot be recorded now goes on as it is
    return RONDO_STATUS_OK;
}

rondo_status rondo__probe_refuse_frozen(const rondo__plan *plan, size_t item) {
    const rondo__op *op = rondo__plan_get_op(plan, item);
    if (!plan->items[item].is_frozen) {
        return RONDO_STATUS_OK;
    }
    rondo_status status =
        RONDO_FAIL_AS("rondo_executor_run", MISMATCH,
                      "op %.40s, node \"%.64s\": its launch puts other numbers from run to run, of "
                      "which a capture froze the first; hand them over as inputs",
                      op->def->name, op->name);
    rondo__error_set_op(op->name);
    return status;
}

// ---- trying -----------------------------------------------------------------------------------

static rondo_status try_range(probe *p, size_t first, size_t count, rondo__step *out_step) {
    *out_step = (rondo__step){.kind = RONDO__STEP_SEGMENT,
                              .first_item = first,
                              .item_count = count,
                              .run.failure_count = p->failure_count};
    return p->record(p->unit, p->plan, out_step);
}

static bool is_final(const probe *p, rondo_status status) {
    return status == RONDO_STATUS_LOST ||
           rondo__probe_is_passing(p->plan, p->failure_count, status);
}

static void drop_graph(rondo__step *step) {
    rondo_graph_destroy(step->run.graph);
    step->run.graph = NULL;
}

// `search` has made room.
static void append(probe *p, const rondo__step *step) {
    p->steps[p->count++] = *step;
}

// The last op of the shortest beginning of [first, end) that fails, given that all of it did.
// *out_good is what stands before it, captured; of no items when it is the first.
static rondo_status find_culprit(probe *p, size_t first, size_t end, size_t *out_culprit,
                                 rondo__step *out_good) {
    const size_t reported = p->plan->run.failed_item;
    size_t bad = reported >= first && reported < end ? reported : end - 1;  // up to it: fails
    size_t middle = bad;                                                    // items before it
    *out_good = (rondo__step){.first_item = first};
    while (first + out_good->item_count < bad) {
        const size_t good = first + out_good->item_count;
        rondo__step tried;
        const rondo_status status = try_range(p, first, middle - first, &tried);
        if (status == RONDO_STATUS_OK) {
            drop_graph(out_good);
            *out_good = tried;
        } else if (is_final(p, status)) {
            drop_graph(out_good);
            return status;
        } else {
            const size_t at = p->plan->run.failed_item;
            bad = at >= good && at < middle ? at : middle - 1;
        }
        const size_t known = first + out_good->item_count;
        middle = known + (bad - known + 1) / 2;
    }
    *out_culprit = bad;
    return RONDO_STATUS_OK;
}

// ---- the search -------------------------------------------------------------------------------

static void append_bypass(probe *p, size_t item) {
    const rondo__op *op = rondo__plan_get_op(p->plan, item);
    rondo__step step = {.kind = RONDO__STEP_BYPASS,
                        .node = p->plan->items[item].node,
                        .bypass = RONDO__BYPASS_EAGER,
                        .first_item = item,
                        .item_count = 1};
    rondo__verdict_remember(p->unit->executor->device, op, p->plan->run.failure);
    rondo__verdict_explain(p->unit->executor->device, op, p->plan->items[item].kernel, step.reason,
                           sizeof step.reason);
    RONDO_LOG_WARN_F("%s; it is launched between graphs from now on", step.reason);
    append(p, &step);
}

// The remaining ops stay without a graph until a later run.
static void append_postponed(probe *p, size_t first, size_t end) {
    rondo__step step = {.kind = RONDO__STEP_SEGMENT,
                        .first_item = first,
                        .item_count = end - first,
                        .run.failure_count = p->failure_count};
    rondo__probe_postpone(p->plan, &step, p->plan->run.failure);
    append(p, &step);
}

// The op at `culprit` ends the shortest beginning of [*in_out_first, end) that failed; `good` is
// what stands before it. Decides what becomes of the two, and where the search goes on.
static rondo_status judge(probe *p, rondo__step *good, size_t culprit, size_t *in_out_first) {
    rondo__step alone;
    rondo_status status = try_range(p, culprit, 1, &alone);
    if (status == RONDO_STATUS_OK) {
        drop_graph(&alone);
        rondo__step both = {0};
        const size_t first = *in_out_first;
        status = culprit > first ? try_range(p, first, culprit + 1 - first, &both) : status;
        if (status == RONDO_STATUS_OK) {  // it failed once, and fails no more
            drop_graph(&both);
            drop_graph(good);
            p->fluke_count += 1;
            return status;
        }
        if (is_final(p, status)) {
            drop_graph(good);
            return status;
        }
        (void)snprintf(good->reason, sizeof good->reason, "%.40s \"%.40s\": %.199s, but not alone",
                       rondo__plan_get_op(p->plan, culprit)->def->name,
                       rondo__plan_get_op(p->plan, culprit)->name, p->plan->run.failure);
        good->bypass = RONDO__BYPASS_EAGER;
        append(p, good);
        *in_out_first = culprit;
        return RONDO_STATUS_OK;
    }
    const bool is_bypassed =
        !is_final(p, status) &&
        (p->unit->executor->graphs != RONDO_GRAPHS_ON || is_probed_op(p->plan, culprit));
    if (!is_bypassed) {
        drop_graph(good);
        return status;
    }
    if (good->item_count > 0) {
        append(p, good);
    }
    append_bypass(p, culprit);
    *in_out_first = culprit + 1;
    return RONDO_STATUS_OK;
}

// Captures [first, end) in as few pieces as can be.
static rondo_status search(probe *p, size_t first, size_t end) {
    rondo_status status = RONDO_STATUS_OK;
    while (first < end && status == RONDO_STATUS_OK) {
        rondo__step step;
        size_t culprit = first;
        // A turn adds at most two, and what ends the search one.
        RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(p->steps, p->capacity, p->count + 3));
        status = try_range(p, first, end - first, &step);
        if (status == RONDO_STATUS_OK) {
            append(p, &step);
            return RONDO_STATUS_OK;
        }
        if (!is_final(p, status)) {
            status = find_culprit(p, first, end, &culprit, &step);
            if (status == RONDO_STATUS_OK) {
                status = judge(p, &step, culprit, &first);
            }
        }
        const bool is_passing = rondo__probe_is_passing(p->plan, p->failure_count, status);
        if ((is_passing && p->unit->executor->graphs != RONDO_GRAPHS_ON) ||
            (status == RONDO_STATUS_OK && p->fluke_count > FLUKES_MAX)) {
            append_postponed(p, first, end);
            return RONDO_STATUS_OK;
        }
    }
    return status;
}

// Puts what was found in the place of step `index`.
static rondo_status replace(probe *p, size_t index) {
    rondo__plan *plan = p->plan;
    const size_t count = plan->step_count - 1 + p->count;
    rondo__step *steps = rondo__calloc(count, sizeof *steps);
    if (steps == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(steps, plan->steps, index * sizeof *steps);
    memcpy(steps + index, p->steps, p->count * sizeof *steps);
    memcpy(steps + index + p->count, plan->steps + index + 1,
           (plan->step_count - index - 1) * sizeof *steps);
    rondo__step *last = &steps[index + p->count - 1];
    for (size_t s = index; s < index + p->count; ++s) {
        const bool is_bypass = steps[s].kind == RONDO__STEP_BYPASS;
        plan->bypassed_count += is_bypass ? 1 : 0;
        plan->eager_count += is_bypass ? 1 : 0;
        if (is_bypass && s > index && steps[s - 1].kind == RONDO__STEP_SEGMENT) {
            rondo__step_end_at(&steps[s - 1], &steps[s]);
        }
    }
    if (last->kind == RONDO__STEP_SEGMENT) {
        rondo__step_end_at(last, &plan->steps[index]);
    }
    steps[index].wait_count = plan->steps[index].wait_count;
    steps[index].waits = plan->steps[index].waits;
    last->done = plan->steps[index].done;
    rondo__free(plan->steps);
    plan->steps = steps;
    plan->step_count = count;
    return RONDO_STATUS_OK;
}

bool rondo__probe_is_wanted(const rondo__plan *plan, const rondo__step *step) {
    bool is_wanted = false;
    for (size_t i = 0; i < step->item_count; ++i) {
        is_wanted = is_wanted || is_probed_op(plan, step->first_item + i);
    }
    return is_wanted;
}

rondo_status rondo__probe_segment(rondo__unit *unit, rondo__plan *plan, rondo__step_recorder record,
                                  size_t *in_out_index) {
    const rondo__step *segment = &plan->steps[*in_out_index];
    probe p = {
        .unit = unit, .plan = plan, .record = record, .failure_count = segment->run.failure_count};
    plan->run.is_probed = true;
    rondo_status status =
        search(&p, segment->first_item, segment->first_item + segment->item_count);
    plan->run.is_probed = false;
    if (status == RONDO_STATUS_OK) {
        status = replace(&p, *in_out_index);
    }
    if (status == RONDO_STATUS_OK) {
        *in_out_index += p.count - 1;
    } else {
        rondo_error saved;
        rondo__error_save(&saved);
        for (size_t s = 0; s < p.count; ++s) {
            drop_graph(&p.steps[s]);
        }
        rondo__error_restore(&saved);
    }
    rondo__free(p.steps);
    return status;
}
