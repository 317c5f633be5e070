// executor/devices/ranks.c — see ranks.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/devices/ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "collective/communicator.h"

// A collective on the lane.
typedef struct laned {
    size_t item;
    rondo_event *ready;  // what it reads is there
    rondo_event *done;
} laned;

struct rondo__plan_ranks {
    rondo__collectives collectives;
    size_t laned_count;
    laned *laned;      // in the order of the items
    size_t *awaits;    // by item: the last of them that it comes behind, from 1; 0: none
    bool has_begun;    // a run, which did not end yet
    size_t put_count;  // on the lane, by the run at hand or in the recording
    size_t awaited;    // by the executor's stream
};

// ---- the list -----------------------------------------------------------------------------------

static void add_line(rondo__collectives *out, const char *line) {
    const size_t used = strlen(out->text);
    const size_t length = strlen(line);
    out->hash = rondo__hash64(out->hash, line, length);
    if (used + length + 1 < RONDO__COLLECTIVES_TEXT_BYTES) {
        memcpy(out->text + used, line, length + 1);
    }
}

static void list_node(const rondo__plan *plan, const rondo__node *node, rondo__collectives *out) {
    char line[96];
    size_t listed = 0;
    const int64_t *parts = rondo__op_get_ints(&node->op, "parts", &listed);
    const char *what = node->op.def->id == RONDO__FUSED_AllGather        ? "shared updates"
                       : rondo__op_get_int(&node->op, "average", 0) != 0 ? "average"
                                                                         : "sum";
    add_line(out, rondo__op_get_string(&node->op, "step", ""));
    for (size_t k = 0; k < node->input_count; ++k) {
        const rondo__slot *slot = &plan->slots[node->inputs[k]];
        const bool has_parts = parts != NULL && k < listed && parts[k] != 0;
        (void)snprintf(line, sizeof line, "%s of %s x %" PRId64 "%s%s", what,
                       rondo_dtype_get_name(slot->dtype), rondo_shape_get_count(&slot->shape),
                       has_parts ? " in parts" : "", k + 1 < node->input_count ? " with\n" : "\n");
        add_line(out, line);
    }
    out->count += 1;
}

// Variables start with numbers that the seed decides.
static rondo_status list_collectives(const rondo_executor_options *options, const rondo__plan *plan,
                                     rondo__collectives *out) {
    char line[64];
    out->hash = RONDO__HASH_SEED;
    out->text = rondo__calloc(1, RONDO__COLLECTIVES_TEXT_BYTES);
    if (out->text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    (void)snprintf(line, sizeof line, "dtype %s\nseed %" PRIu64 "\n",
                   rondo_dtype_get_name(options->dtype), options->seed);
    add_line(out, line);
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        if (rondo__node_is_collective(node)) {
            list_node(plan, node, out);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- the lane -----------------------------------------------------------------------------------

static size_t get_bytes(const rondo__plan *plan, int32_t value) {
    return value >= 0 && plan->slots[value].kind == RONDO__SLOT_ARENA ? plan->slots[value].bytes
                                                                      : 0;
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    const uintptr_t x = (uintptr_t)a;
    const uintptr_t y = (uintptr_t)b;
    return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

// Whether `other` touches what the collective makes, or writes what it reads.
static bool comes_behind(const rondo__plan *plan, const rondo__item *other, const void *address,
                         size_t bytes, bool is_made) {
    const rondo__node *node = &plan->program->nodes[other->node];
    bool does = overlap(address, bytes, other->workspace, other->kernel->workspace_bytes);
    for (size_t k = 0; k < node->output_count && !does; ++k) {
        does = overlap(address, bytes, other->outputs[k], get_bytes(plan, node->outputs[k]));
    }
    for (size_t k = 0; k < node->input_count && is_made && !does; ++k) {
        does = overlap(address, bytes, other->inputs[k], get_bytes(plan, node->inputs[k]));
    }
    return does;
}

static bool must_follow(const rondo__plan *plan, size_t collective, size_t i) {
    const rondo__item *item = &plan->items[collective];
    const rondo__node *node = &plan->program->nodes[item->node];
    bool must = false;
    for (size_t k = 0; k < node->input_count && !must; ++k) {
        must = comes_behind(plan, &plan->items[i], item->inputs[k],
                            get_bytes(plan, node->inputs[k]), false) ||
               comes_behind(plan, &plan->items[i], item->outputs[k],
                            get_bytes(plan, node->outputs[k]), true);
    }
    return must;
}

static void find_awaited(rondo__plan *plan, const rondo__step *step) {
    rondo__plan_ranks *ranks = plan->ranks;
    const size_t end = step->first_item + step->item_count;
    for (size_t i = step->first_item; i < end; ++i) {
        for (size_t c = ranks->laned_count; c-- > 0 && ranks->awaits[i] == 0;) {
            const size_t item = ranks->laned[c].item;
            const bool is_before = item >= step->first_item && item < i;
            ranks->awaits[i] = is_before && must_follow(plan, item, i) ? c + 1 : 0;
        }
    }
}

static rondo_status make_lane(rondo_executor *executor, rondo__plan *plan) {
    rondo__plan_ranks *ranks = plan->ranks;
    rondo__resources *resources = &executor->resources;
    ranks->laned = rondo__calloc(ranks->collectives.count, sizeof *ranks->laned);
    ranks->awaits = rondo__calloc(plan->item_count, sizeof *ranks->awaits);
    if (ranks->laned == NULL || ranks->awaits == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (resources->ranks_stream == NULL) {
        RETURN_IF_ERROR(rondo_stream_create(executor->device, NULL, &resources->ranks_stream));
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        if (rondo__node_is_collective(rondo__plan_get_node(plan, i))) {
            laned *l = &ranks->laned[ranks->laned_count++];
            l->item = i;
            RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &l->ready));
            RETURN_IF_ERROR(rondo_event_create(executor->device, 0, &l->done));
        }
    }
    for (size_t s = 0; s < plan->step_count; ++s) {
        find_awaited(plan, &plan->steps[s]);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__ranks_plan(rondo__unit *unit, rondo__plan *plan) {
    rondo_executor *executor = unit->executor;
    if (executor->options.communicator == NULL || unit->depth > 0) {
        return RONDO_STATUS_OK;
    }
    plan->ranks = rondo__calloc(1, sizeof *plan->ranks);
    if (plan->ranks == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    RETURN_IF_ERROR(list_collectives(&executor->options, plan, &plan->ranks->collectives));
    const bool has_lane =
        !rondo_device_is_host(executor->device) && plan->ranks->collectives.count > 0;
    return has_lane ? make_lane(executor, plan) : RONDO_STATUS_OK;
}

void rondo__ranks_drop(rondo__plan *plan) {
    rondo__plan_ranks *ranks = plan->ranks;
    if (ranks == NULL) {
        return;
    }
    for (size_t c = 0; c < ranks->laned_count; ++c) {
        rondo_event_destroy(ranks->laned[c].ready);
        rondo_event_destroy(ranks->laned[c].done);
    }
    rondo__free(ranks->laned);
    rondo__free(ranks->awaits);
    rondo__free(ranks->collectives.text);
    rondo__free(ranks);
    plan->ranks = NULL;
}

void rondo__ranks_free(rondo_executor *executor) {
    rondo_stream_destroy(executor->resources.ranks_stream);
    executor->resources.ranks_stream = NULL;
}

// ---- runs ---------------------------------------------------------------------------------------

rondo_status rondo__ranks_begin(rondo__unit *unit, rondo__plan *plan) {
    if (plan->ranks == NULL) {
        return RONDO_STATUS_OK;
    }
    plan->ranks->has_begun = true;
    RETURN_IF_ERROR(rondo__communicator_begin_run(unit->executor->options.communicator,
                                                  &plan->ranks->collectives));
    unit->executor->caller.part_runs += 1;
    return RONDO_STATUS_OK;
}

bool rondo__ranks_has_begun(const rondo__plan *plan) {
    return plan->ranks != NULL && plan->ranks->has_begun;
}

void rondo__ranks_end(const rondo__plan *plan) {
    if (plan->ranks != NULL) {
        plan->ranks->has_begun = false;
    }
}

rondo_status rondo__ranks_check(const rondo_executor *executor) {
    rondo_communicator *communicator = executor->options.communicator;
    return communicator != NULL ? rondo__communicator_check(communicator) : RONDO_STATUS_OK;
}

void rondo__ranks_break(const rondo_executor *executor) {
    if (executor->options.communicator != NULL) {
        rondo__communicator_break(executor->options.communicator);
    }
}

void rondo__ranks_drain(const rondo_executor *executor) {
    if (executor->resources.ranks_stream != NULL) {
        (void)!rondo_stream_synchronize(executor->resources.ranks_stream);
    }
}

static rondo_status await(const rondo__unit *unit, rondo__plan_ranks *ranks, size_t count) {
    if (count <= ranks->awaited) {
        return RONDO_STATUS_OK;
    }
    ranks->awaited = count;  // the lane keeps their order
    return rondo_stream_wait_event(unit->stream, ranks->laned[count - 1].done);
}

// The collective that item `i` is; NULL: it is none.
static const laned *find_laned(const rondo__plan_ranks *ranks, size_t i) {
    return ranks->put_count < ranks->laned_count && ranks->laned[ranks->put_count].item == i
               ? &ranks->laned[ranks->put_count]
               : NULL;
}

rondo_status rondo__ranks_enter(const rondo__unit *unit, const rondo__plan *plan, size_t i,
                                rondo_stream **in_out_stream) {
    rondo__plan_ranks *ranks = plan->ranks;
    if (ranks == NULL || ranks->laned_count == 0) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(await(unit, ranks, ranks->awaits[i]));
    const laned *l = find_laned(ranks, i);
    if (l == NULL) {
        return RONDO_STATUS_OK;
    }
    *in_out_stream = unit->executor->resources.ranks_stream;
    RETURN_IF_ERROR(rondo_event_record(l->ready, unit->stream));
    return rondo_stream_wait_event(*in_out_stream, l->ready);
}

rondo_status rondo__ranks_leave(const rondo__unit *unit, const rondo__plan *plan, size_t i) {
    rondo__plan_ranks *ranks = plan->ranks;
    const laned *l = ranks != NULL && ranks->laned_count > 0 ? find_laned(ranks, i) : NULL;
    if (l == NULL) {
        return RONDO_STATUS_OK;
    }
    ranks->put_count += 1;
    return rondo_event_record(l->done, unit->executor->resources.ranks_stream);
}

void rondo__ranks_start(const rondo__plan *plan, const rondo__step *step) {
    rondo__plan_ranks *ranks = plan->ranks;
    if (ranks == NULL || ranks->laned_count == 0) {
        return;
    }
    ranks->put_count = 0;
    while (ranks->put_count < ranks->laned_count &&
           ranks->laned[ranks->put_count].item < step->first_item) {
        ranks->put_count += 1;
    }
    ranks->awaited = ranks->put_count;
}

rondo_status rondo__ranks_join(const rondo__unit *unit, const rondo__plan *plan) {
    rondo__plan_ranks *ranks = plan->ranks;
    return ranks != NULL && ranks->laned_count > 0 ? await(unit, ranks, ranks->put_count)
                                                   : RONDO_STATUS_OK;
}
