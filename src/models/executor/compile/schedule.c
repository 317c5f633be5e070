// executor/compile/schedule.c — see schedule.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "executor/devices/other_gpus.h"
#include "executor/devices/ranks.h"
#include "executor/state/counted.h"
#include "program/drawing.h"
#include "program/edit.h"
#include "program/place_mark.h"

// A binary heap of positions in the plan's order of nodes, smallest first.
typedef struct heap {
    size_t *nodes;
    size_t count;
} heap;

static void heap_push(heap *h, size_t node) {
    size_t i = h->count++;
    while (i > 0 && h->nodes[(i - 1) / 2] > node) {
        h->nodes[i] = h->nodes[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->nodes[i] = node;
}

static size_t heap_pop(heap *h) {
    size_t top = h->nodes[0];
    size_t last = h->nodes[--h->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= h->count) {
            break;
        }
        if (child + 1 < h->count && h->nodes[child + 1] < h->nodes[child]) {
            child += 1;
        }
        if (h->nodes[child] >= last) {
            break;
        }
        h->nodes[i] = h->nodes[child];
        i = child;
    }
    h->nodes[i] = last;
    return top;
}

// The reason that a plan gives for a bypass or the end of a segment, and what would remove it.
static const struct {
    const char *why;
    const char *remedy;
} texts[] = {
    [RONDO__BYPASS_HOSTED] = {"the device has no kernel for it",
                              "a kernel for the device, or types and attributes that have one"},
    [RONDO__BYPASS_DYNAMIC] = {"its result shape depends on data",
                               "extents that do not depend on data"},
    [RONDO__BYPASS_CONTROL] = {"control flow runs on the host",
                               "a body that can be captured, with the same shapes in every turn"},
    [RONDO__BYPASS_OBJECTS] = {"strings and sequences stay on the host",
                               "tensors of numbers in the place of strings and sequences"},
    [RONDO__BYPASS_EAGER] = {"its kernel cannot be captured",
                             "a launch that neither waits nor allocates nor fails while its stream "
                             "records"},
    [RONDO__BYPASS_DIFFERENT] = {"its replay computes something else",
                                 "an op that a replay computes as an eager run does"},
    [RONDO__BYPASS_COUNTED] = {"how much it finds is waited for, and the shapes behind it",
                               "extents that do not depend on data"},
};

void rondo__step_end_at(rondo__step *segment, const rondo__step *bypass) {
    memcpy(segment->reason, bypass->reason, sizeof segment->reason);
    segment->bypass = bypass->bypass;
    segment->node = bypass->node;
}

static bool is_rest(const rondo__plan *plan, size_t node) {
    return rondo__node_is(&plan->program->nodes[node], RONDO__FUSED_Rest);
}

const char *rondo__step_get_remedy(const rondo__plan *plan, const rondo__step *step) {
    const bool waits_for_shapes =
        step->bypass == RONDO__BYPASS_CONTROL && is_rest(plan, step->node);
    return texts[waits_for_shapes ? RONDO__BYPASS_DYNAMIC : step->bypass].remedy;
}

static void describe_cut(const rondo__plan *plan, size_t n, rondo__node_class class_of,
                         char *buffer, size_t bytes) {
    const rondo__node *node = rondo__counted_get_maker(plan, n);
    const char *refusal = plan->refusals != NULL ? plan->refusals[n] : NULL;
    const char *const cause = is_rest(plan, n) ? "ops that are planned when their shapes are known"
                                               : texts[rondo__node_class_get_bypass(class_of)].why;
    (void)snprintf(buffer, bytes, "%.60s \"%.40s\": %s%s%s", node->op.def->name, node->op.name,
                   cause, refusal != NULL ? ": " : "", refusal != NULL ? refusal : "");
}

static rondo_status add_step(rondo__plan *plan, size_t *capacity, const rondo__step *step) {
    rondo_status status = RONDO__ARRAY_RESERVE(plan->steps, *capacity, plan->step_count + 1);
    if (status == RONDO_STATUS_OK) {
        plan->steps[plan->step_count++] = *step;
    }
    return status;
}

static void add_item(rondo__plan *plan, size_t node) {
    plan->items[plan->item_count++] =
        (rondo__item){.node = node, .side = rondo__other_gpus_get_side(plan, node)};
}

// Whether a node of the plan's first steps goes ahead of all that is on a stream.
static bool is_ahead(const rondo__plan *plan, bool is_hosted) {
    return is_hosted &&
           (plan->step_count == 0 || (plan->step_count == 1 && plan->steps[0].is_ahead));
}

// Appends one node to the plan: to the open segment of its device, or as a bypass that closes it.
static rondo_status emit(rondo__plan *plan, size_t *capacity, size_t node,
                         rondo__node_class class_of, bool is_hosted) {
    if (class_of == RONDO__CLASS_IDLE) {
        return RONDO_STATUS_OK;
    }
    rondo__step *last = plan->step_count > 0 ? &plan->steps[plan->step_count - 1] : NULL;
    if (class_of == RONDO__CLASS_KERNEL) {
        const bool goes_ahead = is_ahead(plan, is_hosted);
        add_item(plan, node);
        if (last != NULL && last->kind == RONDO__STEP_SEGMENT && last->is_ahead == goes_ahead &&
            plan->items[last->first_item].side == plan->items[plan->item_count - 1].side) {
            last->item_count += 1;
            return RONDO_STATUS_OK;
        }
        return add_step(plan, capacity,
                        &(rondo__step){.kind = RONDO__STEP_SEGMENT,
                                       .first_item = plan->item_count - 1,
                                       .item_count = 1,
                                       .is_ahead = goes_ahead});
    }
    const bool is_counted = class_of == RONDO__CLASS_COUNTED;
    rondo__step step = {.kind = is_counted ? RONDO__STEP_COUNT : RONDO__STEP_BYPASS,
                        .node = node,
                        .bypass = rondo__node_class_get_bypass(class_of)};
    if (step.bypass == RONDO__BYPASS_EAGER) {
        step.first_item = plan->item_count;
        step.item_count = 1;
        add_item(plan, node);
        plan->eager_count += 1;
    }
    describe_cut(plan, node, class_of, step.reason, sizeof step.reason);
    if (last != NULL && last->kind == RONDO__STEP_SEGMENT) {
        rondo__step_end_at(last, &step);
    }
    plan->bypassed_count += is_counted ? 0 : 1;
    plan->counted_count += is_counted ? 1 : 0;
    return add_step(plan, capacity, &step);
}

// Free; a collective, which goes first, so that others compute while it is under way, or what
// rounds for one; with a kernel of the device; with one of the processor; with one of another GPU,
// a kind for each; bypassed.
enum {
    FREE,
    COLLECTIVE,
    WITH_KERNEL,
    HOSTED,
    ON_PEER,
    BYPASSED = ON_PEER + RONDO__PLACE_GPU_MAX,
    KINDS
};

// Which nodes wait for which, and those that wait for none.
typedef struct ready_lists {
    size_t *pending;  // of each node: inputs that nodes make which are not in the plan yet
    size_t *first;    // the users of node n are users[first[n]] to users[first[n + 1] - 1],
    size_t *users;    // once for each input that it makes
    size_t *next;     // of a node that draws: the next one that does, or 0
    size_t *rank;     // of each node: its place in the plan's order
    heap heaps[KINDS];
    int last;  // kind of the latest node that was not free
} ready_lists;

static int get_kind(const rondo__plan *plan, size_t n, rondo__node_class class_of) {
    const bool is_item = class_of == RONDO__CLASS_KERNEL;
    const bool is_hosted =
        is_item && plan->order != NULL && plan->homes[n].place == RONDO__PLACE_CPU;
    const uint8_t side = is_item ? rondo__other_gpus_get_side(plan, n) : RONDO__SIDE_DEVICE;
    return class_of == RONDO__CLASS_IDLE                         ? FREE
           : !is_item                                            ? BYPASSED
           : is_hosted                                           ? HOSTED
           : side >= RONDO__SIDE_PEER                            ? ON_PEER + side - RONDO__SIDE_PEER
           : rondo__node_is_collective(&plan->program->nodes[n]) ? COLLECTIVE
                                                                 : WITH_KERNEL;
}

// Nodes of the processor one behind the other are one host function, those of another GPU one
// graph: they stay together, and those of the processor that need nothing come first. KINDS: no
// node is ready.
static int choose_kind(const ready_lists *ready) {
    if (ready->heaps[FREE].count > 0) {
        return FREE;
    }
    if (ready->heaps[COLLECTIVE].count > 0) {
        return COLLECTIVE;
    }
    if (ready->last >= HOSTED && ready->last < BYPASSED && ready->heaps[ready->last].count > 0) {
        return ready->last;
    }
    int kind = WITH_KERNEL;
    while (kind < KINDS && ready->heaps[kind].count == 0) {
        kind += 1;
    }
    return kind;
}

// The lists are zeroed; `first` has two elements more than there are nodes.
static void list_users(const rondo_program *program, ready_lists *ready) {
    size_t *first = ready->first;
    for (int pass = 0; pass < 2; ++pass) {
        for (size_t n = 0; n < program->node_count; ++n) {
            const rondo__node *node = &program->nodes[n];
            for (size_t i = 0; i < node->input_count; ++i) {
                const int32_t maker =
                    node->inputs[i] >= 0 ? program->values[node->inputs[i]].producer : -1;
                if (maker < 0) {
                    continue;
                }
                if (pass == 0) {
                    ready->pending[n] += 1;
                    first[maker + 2] += 1;
                } else {
                    ready->users[first[maker + 1]++] = n;
                }
            }
        }
        for (size_t n = 2; pass == 0 && n < program->node_count + 2; ++n) {
            first[n] += first[n - 1];
        }
    }
}

// Each node that draws waits for the one before it.
static void chain_draws(const rondo_program *program, ready_lists *ready) {
    size_t last = SIZE_MAX;
    for (size_t n = 0; n < program->node_count; ++n) {
        if (!rondo__node_draws_in_turn(program, &program->nodes[n])) {
            continue;
        }
        if (last != SIZE_MAX) {
            ready->next[last] = n;
            ready->pending[n] += 1;
        }
        last = n;
    }
}

static void close_lists(ready_lists *ready) {
    rondo__free(ready->pending);
    rondo__free(ready->first);
    rondo__free(ready->users);
    rondo__free(ready->next);
    rondo__free(ready->rank);
    for (int k = 0; k < KINDS; ++k) {
        rondo__free(ready->heaps[k].nodes);
    }
}

// Close them, also where this fails.
static rondo_status open_lists(const rondo__plan *plan, ready_lists *ready) {
    const rondo_program *program = plan->program;
    const size_t node_count = program->node_count;
    size_t edge_count = 0;
    for (size_t n = 0; n < node_count; ++n) {
        edge_count += program->nodes[n].input_count;
    }
    *ready = (ready_lists){.last = HOSTED};
    ready->pending = rondo__calloc(node_count + 1, sizeof(size_t));
    ready->first = rondo__calloc(node_count + 2, sizeof(size_t));
    ready->users = rondo__calloc(edge_count + 1, sizeof(size_t));
    ready->rank = rondo__calloc(node_count + 1, sizeof(size_t));
    ready->next = rondo__calloc(node_count + 1, sizeof(size_t));
    bool has_all = ready->pending != NULL && ready->first != NULL && ready->users != NULL &&
                   ready->rank != NULL && ready->next != NULL;
    for (int k = 0; k < KINDS; ++k) {
        ready->heaps[k].nodes = rondo__calloc(node_count + 1, sizeof(size_t));
        has_all = has_all && ready->heaps[k].nodes != NULL;
    }
    if (!has_all) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node_count; ++i) {
        ready->rank[plan->order != NULL ? plan->order[i] : i] = i;
    }
    list_users(program, ready);
    chain_draws(program, ready);
    return RONDO_STATUS_OK;
}

// Whether it only rounds what collectives read: they should not wait for it.
static bool rounds_for_collectives(const rondo_program *program, size_t n,
                                   const ready_lists *ready) {
    const rondo__node *node = &program->nodes[n];
    const size_t first = ready->first[n], end = ready->first[n + 1];
    bool does =
        (rondo__node_is(node, RONDO__OP_Cast) || rondo__node_is(node, RONDO__FUSED_RoundParts)) &&
        first < end;
    for (size_t u = first; u < end && does; ++u) {
        does = rondo__node_is_collective(&program->nodes[ready->users[u]]);
    }
    return does;
}

static void add_ready(const rondo__plan *plan, size_t n, rondo__node_class class_of,
                      ready_lists *ready) {
    const int kind = get_kind(plan, n, class_of);
    const bool goes_first = kind == WITH_KERNEL && rounds_for_collectives(plan->program, n, ready);
    heap_push(&ready->heaps[goes_first ? COLLECTIVE : kind], ready->rank[n]);
}

rondo_status rondo__plan_schedule(rondo__plan *plan, const rondo__node_class *class_of) {
    const size_t node_count = plan->program->node_count;
    size_t step_capacity = 0;
    ready_lists ready;
    rondo_status status = open_lists(plan, &ready);
    if (status != RONDO_STATUS_OK) {
        goto close;
    }
    plan->items = rondo__calloc(node_count + 1, sizeof *plan->items);
    if (plan->items == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto close;
    }
    for (size_t n = 0; n < node_count; ++n) {
        if (ready.pending[n] == 0) {
            add_ready(plan, n, class_of[n], &ready);
        }
    }
    for (int kind = choose_kind(&ready); status == RONDO_STATUS_OK && kind < KINDS;
         kind = choose_kind(&ready)) {
        const size_t rank = heap_pop(&ready.heaps[kind]);
        const size_t node = plan->order != NULL ? plan->order[rank] : rank;
        const size_t end = ready.first[node + 1];
        ready.last = kind != FREE ? kind : ready.last;
        status = emit(plan, &step_capacity, node, class_of[node], kind == HOSTED);
        for (size_t u = ready.first[node]; u < end + (ready.next[node] > 0 ? 1 : 0); ++u) {
            const size_t user = u < end ? ready.users[u] : ready.next[node];
            if (--ready.pending[user] == 0) {
                add_ready(plan, user, class_of[user], &ready);
            }
        }
    }
    if (plan->step_count == 1) {
        plan->steps[0].is_ahead = false;  // of nothing
    }

close:
    close_lists(&ready);
    return status;
}
