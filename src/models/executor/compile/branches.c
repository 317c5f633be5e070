// executor/compile/branches.c — see branches.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/branches.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/plan_worth.h"

enum {
    ITEMS_MAX = 4096,  // of a segment; each is compared with those before it
    // What an op takes without work, and steps of the reference that a kernel does in a nanosecond.
    HOST_OP_NS = 1000,
    HOST_WORK = 8,
    DEVICE_OP_NS = 3000,
    DEVICE_WORK = 4000,
    STATE_BRANCHES = 2,
};

// Bytes that an op reads or writes.
typedef struct range {
    uintptr_t first;
    uintptr_t end;
    bool is_written;
} range;

typedef struct search {
    const rondo__plan *plan;
    const rondo__step *step;
    rondo__branches *out;
    uint32_t most;        // branches
    size_t *first_range;  // one for each item, and one behind
    range *ranges;
    size_t *position;  // of each item in its branch, from 1
    size_t *clocks;    // of each item: how much of each branch is done when it is
    size_t *tails;     // last item of each branch
    double *finish;    // estimated, of each item
    size_t wait_count;
} search;

static void add_range(search *s, size_t *count, const void *address, size_t bytes,
                      bool is_written) {
    const uintptr_t first = (uintptr_t)address;
    if (address != NULL && bytes > 0) {
        s->ranges[(*count)++] = (range){first, first + bytes, is_written};
    }
}

static size_t get_bytes(const rondo__plan *plan, int32_t value) {
    const rondo__slot *slot = value >= 0 ? &plan->slots[value] : NULL;
    return slot != NULL && slot->kind == RONDO__SLOT_ARENA ? slot->bytes : 0;
}

static void list_ranges(search *s) {
    size_t count = 0;
    for (size_t i = 0; i < s->step->item_count; ++i) {
        const rondo__item *item = &s->plan->items[s->step->first_item + i];
        const rondo__node *node = &s->plan->program->nodes[item->node];
        s->first_range[i] = count;
        for (size_t k = 0; k < node->input_count; ++k) {
            add_range(s, &count, item->inputs[k], get_bytes(s->plan, node->inputs[k]), false);
        }
        for (size_t k = 0; k < node->output_count; ++k) {
            add_range(s, &count, item->outputs[k], get_bytes(s->plan, node->outputs[k]), true);
        }
        add_range(s, &count, item->workspace, item->kernel->workspace_bytes, true);
    }
    s->first_range[s->step->item_count] = count;
}

static bool has_common_bytes(const search *s, size_t a, size_t b) {
    for (size_t i = s->first_range[a]; i < s->first_range[a + 1]; ++i) {
        const range *x = &s->ranges[i];
        for (size_t k = s->first_range[b]; k < s->first_range[b + 1]; ++k) {
            const range *y = &s->ranges[k];
            if ((x->is_written || y->is_written) && x->first < y->end && y->first < x->end) {
                return true;
            }
        }
    }
    return false;
}

static double estimate_ns(const search *s, size_t i, bool is_host) {
    const rondo__item *item = &s->plan->items[s->step->first_item + i];
    const double work =
        (double)rondo__plan_measure_node(s->plan, &s->plan->program->nodes[item->node]);
    return is_host ? HOST_OP_NS + work / HOST_WORK : DEVICE_OP_NS + work / DEVICE_WORK;
}

// The branch of item `i`: see branches.h. `clock` says what is done before it.
static uint32_t choose_branch(const search *s, const size_t *clock, size_t direct) {
    uint32_t followed = RONDO__BRANCH_MAX;
    if (direct != SIZE_MAX) {
        return s->out->items[direct].branch;
    }
    for (uint32_t b = 0; b < s->out->count; ++b) {
        if (s->position[s->tails[b]] <= clock[b]) {
            followed = followed < RONDO__BRANCH_MAX ? followed : b;
        }
    }
    if (followed < RONDO__BRANCH_MAX) {
        return followed;
    }
    if (s->out->count < s->most) {
        return s->out->count;
    }
    uint32_t shortest = 0;
    for (uint32_t b = 1; b < s->out->count; ++b) {
        shortest = s->finish[s->tails[b]] < s->finish[s->tails[shortest]] ? b : shortest;
    }
    return shortest;
}

// Finds what item `i` must wait for, latest first, so that what those wait for is left out.
static rondo_status place_item(search *s, size_t i, double own_ns) {
    rondo__branches *out = s->out;
    size_t *clock = &s->clocks[i * RONDO__BRANCH_MAX];
    size_t direct = SIZE_MAX;  // needed, and the last of its branch
    double start = 0;
    const size_t first_wait = s->wait_count;
    for (size_t p = i; p-- > 0;) {
        const rondo__branched_item *before = &out->items[p];
        if (s->position[p] <= clock[before->branch] || !has_common_bytes(s, p, i)) {
            continue;
        }
        for (uint32_t b = 0; b < out->count; ++b) {
            const size_t done = s->clocks[p * RONDO__BRANCH_MAX + b];
            clock[b] = done > clock[b] ? done : clock[b];
        }
        start = s->finish[p] > start ? s->finish[p] : start;
        if (s->tails[before->branch] == p &&
            (direct == SIZE_MAX || s->finish[p] > s->finish[direct])) {
            direct = p;
        }
        RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(out->waits, out->wait_capacity, s->wait_count + 1));
        out->waits[s->wait_count++] = p;
    }
    const uint32_t branch = choose_branch(s, clock, direct);
    if (branch == out->count) {
        out->count += 1;
    } else {
        const size_t tail = s->tails[branch];
        start = s->finish[tail] > start ? s->finish[tail] : start;
        for (uint32_t b = 0; b < out->count; ++b) {
            const size_t done = s->clocks[tail * RONDO__BRANCH_MAX + b];
            clock[b] = done > clock[b] ? done : clock[b];
        }
    }
    s->position[i] =
        branch < out->count && clock[branch] > 0 ? s->position[s->tails[branch]] + 1 : 1;
    clock[branch] = s->position[i];
    s->tails[branch] = i;
    s->finish[i] = start + own_ns;
    out->items[i] = (rondo__branched_item){.branch = branch, .first_wait = first_wait};
    size_t kept = first_wait;
    for (size_t w = first_wait; w < s->wait_count; ++w) {
        if (out->items[out->waits[w]].branch != branch) {
            out->items[out->waits[w]].is_awaited = true;
            out->waits[kept++] = out->waits[w];
        }
    }
    s->wait_count = kept;
    out->items[i].wait_count = kept - first_wait;
    return RONDO_STATUS_OK;
}

static rondo_status search_all(search *s, bool is_host) {
    double total = 0;
    double longest = 0;
    list_ranges(s);
    for (size_t i = 0; i < s->step->item_count; ++i) {
        const double own_ns = estimate_ns(s, i, is_host);
        RETURN_IF_ERROR(place_item(s, i, own_ns));
        total += own_ns;
        longest = s->finish[i] > longest ? s->finish[i] : longest;
    }
    s->out->gain = longest > 0 ? total / longest : 1;
    return RONDO_STATUS_OK;
}

rondo_status rondo__branches_find(const rondo_executor *executor, const rondo__plan *plan,
                                  const rondo__step *step, rondo__branches *out_branches) {
    const size_t count = step->item_count;
    size_t range_count = 0;
    *out_branches = (rondo__branches){.count = 0, .gain = 1};
    if (count > ITEMS_MAX) {
        out_branches->count = 1;
        return RONDO_STATUS_OK;
    }
    for (size_t i = step->first_item; i < step->first_item + count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        range_count += node->input_count + node->output_count + 1;
    }
    // A training step is a way there and back, with the weights' gradients beside it.
    const bool has_states = executor->caller.states != NULL;
    search s = {.plan = plan,
                .step = step,
                .out = out_branches,
                .most = has_states ? STATE_BRANCHES : RONDO__BRANCH_MAX};
    out_branches->items = rondo__calloc(count + 1, sizeof *out_branches->items);
    s.first_range = rondo__calloc(count + 2, sizeof *s.first_range);
    s.ranges = rondo__calloc(range_count + 1, sizeof *s.ranges);
    s.position = rondo__calloc(count + 1, sizeof *s.position);
    s.clocks = rondo__calloc((count + 1) * RONDO__BRANCH_MAX, sizeof *s.clocks);
    s.tails = rondo__calloc(RONDO__BRANCH_MAX, sizeof *s.tails);
    s.finish = rondo__calloc(count + 1, sizeof *s.finish);
    const bool has_lists = out_branches->items != NULL && s.first_range != NULL &&
                           s.ranges != NULL && s.position != NULL && s.clocks != NULL &&
                           s.tails != NULL && s.finish != NULL;
    const rondo_status status =
        has_lists ? search_all(&s, rondo_device_is_host(executor->device)) : RONDO_STATUS_NO_MEMORY;
    rondo__free(s.first_range);
    rondo__free(s.ranges);
    rondo__free(s.position);
    rondo__free(s.clocks);
    rondo__free(s.tails);
    rondo__free(s.finish);
    if (status != RONDO_STATUS_OK) {
        rondo__branches_deinit(out_branches);
    }
    return status;
}
