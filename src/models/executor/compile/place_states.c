// executor/compile/place_states.c — see place_states.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/place_states.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/states.h"
#include "op/support.h"
#include "program/drawing.h"

// ---- the order of nodes -----------------------------------------------------------------------

// A reader of an old value that comes before the node which makes a new one of it.
typedef struct precedence {
    size_t reader;
    size_t next;  // of the same updater: index + 1; 0: none
} precedence;

typedef struct ordering {
    const rondo_program *program;
    size_t *order;     // nodes, in the order in which they are to be
    size_t *place_of;  // by node: where it stands there
    bool *is_behind;   // by node: it needs what the updater at hand makes
    size_t *moved;     // room for a part of the order
    size_t *readers;   // by node: index + 1 of its first precedence; 0: it is no updater
    precedence *precedences;
    size_t count, capacity;
} ordering;

// The node that starts the chain which makes `update` of `old`, found backwards; SIZE_MAX: none.
// Chains are short; what is longer is not ordered.
static size_t find_updater(const rondo_program *program, int32_t old, int32_t update) {
    enum { CHAIN_MAX = 64 };
    int32_t open[CHAIN_MAX];
    size_t count = 0;
    open[count++] = update;
    for (size_t i = 0; i < count; ++i) {
        const int32_t maker = program->values[open[i]].producer;
        const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
        for (size_t k = 0; node != NULL && k < node->explicit_count; ++k) {
            const int32_t input = node->inputs[k];
            if (input == old) {
                return (size_t)maker;
            }
            bool is_known = input < 0 || program->values[input].producer < 0;
            for (size_t j = 0; j < count && !is_known; ++j) {
                is_known = open[j] == input;
            }
            if (!is_known && count < CHAIN_MAX) {
                open[count++] = input;
            }
        }
    }
    return SIZE_MAX;
}

static bool reads(const rondo__node *node, int32_t value) {
    bool is = false;
    for (size_t k = 0; k < node->input_count; ++k) {
        is = is || node->inputs[k] == value;
    }
    return is;
}

// Whether a node comes behind one that is marked.
static bool needs_marked(const ordering *o, size_t n) {
    const rondo__node *node = &o->program->nodes[n];
    bool needs = false;
    for (size_t k = 0; k < node->input_count && !needs; ++k) {
        const int32_t maker =
            node->inputs[k] >= 0 ? o->program->values[node->inputs[k]].producer : -1;
        needs = maker >= 0 && o->is_behind[maker];
    }
    for (size_t i = o->readers[n]; i > 0 && !needs; i = o->precedences[i - 1].next) {
        needs = o->is_behind[o->precedences[i - 1].reader];
    }
    return needs;
}

static rondo_status add_precedence(ordering *o, size_t reader, size_t updater) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(o->precedences, o->capacity, o->count + 1));
    o->precedences[o->count++] = (precedence){.reader = reader, .next = o->readers[updater]};
    o->readers[updater] = o->count;
    return RONDO_STATUS_OK;
}

// Moves the updater, and what needs it, behind the last reader that does not. Of nodes that draw
// those behind a moved one move, too.
static rondo_status put_behind_readers(ordering *o, int32_t old, size_t updater) {
    const size_t begin = o->place_of[updater];
    size_t end = begin;
    memset(o->is_behind, 0, o->program->node_count * sizeof *o->is_behind);
    o->is_behind[updater] = true;
    bool draws = rondo__node_draws_in_turn(o->program, &o->program->nodes[updater]);
    for (size_t at = begin + 1; at < o->program->node_count; ++at) {
        const size_t n = o->order[at];
        const bool draws_too = rondo__node_draws_in_turn(o->program, &o->program->nodes[n]);
        o->is_behind[n] = needs_marked(o, n) || (draws && draws_too);
        draws = draws || (o->is_behind[n] && draws_too);
        if (!o->is_behind[n] && reads(&o->program->nodes[n], old)) {
            end = at;
            RETURN_IF_ERROR(add_precedence(o, n, updater));
        }
    }
    size_t moved = 0;
    size_t to = begin;
    for (size_t at = begin; at <= end; ++at) {
        const size_t n = o->order[at];
        if (o->is_behind[n] && end > begin) {
            o->moved[moved++] = n;
        } else {
            o->order[to++] = n;
        }
    }
    for (size_t i = 0; i < moved; ++i) {
        o->order[to++] = o->moved[i];
    }
    for (size_t at = begin; at <= end; ++at) {
        o->place_of[o->order[at]] = at;
    }
    return RONDO_STATUS_OK;
}

// Readers that stand before the updater already stay there.
static rondo_status note_readers(ordering *o, int32_t old, size_t updater) {
    for (size_t at = 0; at < o->place_of[updater]; ++at) {
        if (reads(&o->program->nodes[o->order[at]], old)) {
            RETURN_IF_ERROR(add_precedence(o, o->order[at], updater));
        }
    }
    return RONDO_STATUS_OK;
}

static void permute(rondo_program *program, const size_t *order, rondo__node *room) {
    if (program->node_count > 0) {
        memcpy(room, program->nodes, program->node_count * sizeof *room);
    }
    for (size_t at = 0; at < program->node_count; ++at) {
        program->nodes[at] = room[order[at]];
        for (size_t k = 0; k < program->nodes[at].output_count; ++k) {
            if (program->nodes[at].outputs[k] >= 0) {
                program->values[program->nodes[at].outputs[k]].producer = (int32_t)at;
            }
        }
    }
}

static rondo_status order_nodes(const rondo__unit *unit, ordering *o) {
    const rondo_program *program = o->program;
    for (size_t n = 0; n < program->node_count; ++n) {
        o->order[n] = n;
        o->place_of[n] = n;
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__state *state = rondo__state_find_read(unit, i);
        if (state == NULL || state->output == RONDO__STATE_NO_OUTPUT) {
            continue;
        }
        const int32_t old = program->inputs[i];
        const size_t updater = find_updater(program, old, program->outputs[state->output]);
        if (updater != SIZE_MAX) {
            RETURN_IF_ERROR(note_readers(o, old, updater));
            RETURN_IF_ERROR(put_behind_readers(o, old, updater));
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__states_order(const rondo__unit *unit, rondo_program *program) {
    if (unit->depth > 0 || unit->executor->caller.states == NULL) {
        return RONDO_STATUS_OK;
    }
    const size_t count = program->node_count + 1;
    ordering o = {.program = program,
                  .order = rondo__calloc(count, sizeof *o.order),
                  .place_of = rondo__calloc(count, sizeof *o.place_of),
                  .is_behind = rondo__calloc(count, sizeof *o.is_behind),
                  .moved = rondo__calloc(count, sizeof *o.moved),
                  .readers = rondo__calloc(count, sizeof *o.readers)};
    rondo__node *room = rondo__calloc(count, sizeof *room);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (o.order != NULL && o.place_of != NULL && o.is_behind != NULL && o.moved != NULL &&
        o.readers != NULL && room != NULL) {
        status = order_nodes(unit, &o);
    }
    if (status == RONDO_STATUS_OK) {
        permute(program, o.order, room);
    }
    rondo__free(o.order);
    rondo__free(o.place_of);
    rondo__free(o.is_behind);
    rondo__free(o.moved);
    rondo__free(o.readers);
    rondo__free(o.precedences);
    rondo__free(room);
    return status;
}

// ---- slots ------------------------------------------------------------------------------------

void rondo__states_bind_slots(const rondo__unit *unit, rondo__plan *plan) {
    for (size_t i = 0; i < plan->program->input_count; ++i) {
        const rondo__state *state = rondo__state_find_read(unit, i);
        rondo__slot *slot = &plan->slots[plan->program->inputs[i]];
        const bool is_reached =
            slot->side == RONDO__SIDE_DEVICE ||
            (state != NULL && slot->side == RONDO__SIDE_HOST && state->value.is_pinned);
        if (state != NULL && slot->kind == RONDO__SLOT_ARENA && slot->bytes > 0 && is_reached) {
            slot->is_kept = true;
            slot->is_bound = true;
            slot->address = state->value.tensor.data;
        }
    }
}

// The value slot of the new value of the state of input `i`, and in *out_old that of the old one,
// when both lie on one side and the state's memory has room for the new one; NULL otherwise.
static rondo__slot *find_update(const rondo__unit *unit, const rondo__plan *plan, size_t i,
                                rondo__slot **out_old) {
    const rondo_program *program = plan->program;
    const rondo__state *state = rondo__state_find_read(unit, i);
    rondo__slot *old = &plan->slots[program->inputs[i]];
    if (state == NULL || state->output == RONDO__STATE_NO_OUTPUT || !old->is_kept) {
        return NULL;
    }
    rondo__slot *update = &plan->slots[plan->slots[program->outputs[state->output]].root];
    *out_old = old;
    return update->kind == RONDO__SLOT_ARENA && update->side == old->side && update->bytes > 0 &&
                   update->bytes <= state->value.bytes
               ? update
               : NULL;
}

// A value on the way from an update back to the old value, and the one it was found from.
typedef struct trail {
    int32_t *values;
    int32_t *from;
    size_t count;
    bool *is_seen;  // by value
} trail;

// Marks the values from the trail's last one back to the update, unless one is taken.
static void mark_trail(const trail *t, int32_t old, int32_t *carriers) {
    bool is_free = true;
    for (int32_t at = (int32_t)t->count - 1; at >= 0; at = t->from[at]) {
        is_free = is_free && carriers[t->values[at]] < 0;
    }
    for (int32_t at = (int32_t)t->count - 1; at >= 0 && is_free; at = t->from[at]) {
        carriers[t->values[at]] = old;
    }
}

// Walks from the update of `old` back over inputs that kernels can work in.
static void walk_back(const rondo__plan *plan, const int32_t *item_of, int32_t update, int32_t old,
                      trail *t, int32_t *carriers) {
    const size_t bytes = plan->slots[old].bytes;
    memset(t->is_seen, 0, plan->program->value_count * sizeof *t->is_seen);
    t->count = 0;
    t->values[0] = update;
    t->from[t->count++] = -1;
    for (size_t i = 0; i < t->count; ++i) {
        const int32_t made_by = item_of[t->values[i]];
        const rondo__item *item = made_by >= 0 ? &plan->items[made_by] : NULL;
        const rondo__node *node = item != NULL ? &plan->program->nodes[item->node] : NULL;
        for (size_t k = 0; node != NULL && k < node->input_count && k < 64; ++k) {
            const int32_t root = node->inputs[k] >= 0 ? plan->slots[node->inputs[k]].root : -1;
            if ((item->kernel->in_place_inputs >> k & 1) == 0 || root < 0) {
                continue;
            }
            if (root == old) {
                // The trail ends at the value that is made of it.
                const size_t whole = t->count;
                t->count = i + 1;
                mark_trail(t, old, carriers);
                t->count = whole;
                return;
            }
            if (!t->is_seen[root] && plan->slots[root].bytes == bytes &&
                !plan->slots[root].is_kept) {
                t->is_seen[root] = true;
                t->values[t->count] = root;
                t->from[t->count++] = (int32_t)i;
            }
        }
    }
}

rondo_status rondo__states_find_carriers(const rondo__unit *unit, const rondo__plan *plan,
                                         int32_t *carriers) {
    const rondo_program *program = plan->program;
    const size_t count = program->value_count + 1;
    for (size_t v = 0; v < program->value_count; ++v) {
        carriers[v] = -1;
    }
    if (unit->depth > 0 || unit->executor->caller.states == NULL) {
        return RONDO_STATUS_OK;
    }
    int32_t *item_of = rondo__calloc(count, sizeof *item_of);
    trail t = {.values = rondo__calloc(count, sizeof *t.values),
               .from = rondo__calloc(count, sizeof *t.from),
               .is_seen = rondo__calloc(count, sizeof *t.is_seen)};
    const bool is_there =
        item_of != NULL && t.values != NULL && t.from != NULL && t.is_seen != NULL;
    for (size_t v = 0; is_there && v < program->value_count; ++v) {
        item_of[v] = -1;
    }
    for (size_t i = 0; is_there && i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        if (node->output_count > 0 && node->outputs[0] >= 0) {
            item_of[node->outputs[0]] = (int32_t)i;
        }
    }
    for (size_t i = 0; is_there && i < program->input_count; ++i) {
        rondo__slot *old = NULL;
        const rondo__slot *update = find_update(unit, plan, i, &old);
        if (update != NULL && update != old && update->bytes == old->bytes) {
            walk_back(plan, item_of, (int32_t)(update - plan->slots), program->inputs[i], &t,
                      carriers);
        }
    }
    rondo__free(item_of);
    rondo__free(t.values);
    rondo__free(t.from);
    rondo__free(t.is_seen);
    return is_there ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

// The position in the plan of the first op that makes a part of `root`; SIZE_MAX: none does.
static size_t find_first_maker(const rondo__plan *plan, int32_t root) {
    size_t place = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        const bool has_kernels = rondo__step_has_kernels(step);
        const size_t count = has_kernels ? step->item_count : 1;
        for (size_t i = 0; i < count; ++i, ++place) {
            const size_t n = has_kernels ? plan->items[step->first_item + i].node : step->node;
            const rondo__node *node = &plan->program->nodes[n];
            for (size_t k = 0; k < node->output_count; ++k) {
                if (node->outputs[k] >= 0 && plan->slots[node->outputs[k]].root == root) {
                    return place;
                }
            }
        }
    }
    return SIZE_MAX;
}

// Gives all values whose bytes are those of `root` the memory of `input`.
static void give_memory(rondo__plan *plan, int32_t root, int32_t input, size_t *last_uses) {
    last_uses[input] = last_uses[root] > last_uses[input] ? last_uses[root] : last_uses[input];
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        plan->slots[v].root = plan->slots[v].root == root ? input : plan->slots[v].root;
    }
}

void rondo__states_take_over(const rondo__unit *unit, rondo__plan *plan, size_t *last_uses) {
    for (size_t i = 0; i < plan->program->input_count && plan->peer_count == 0; ++i) {
        const int32_t input = plan->program->inputs[i];
        rondo__slot *old = NULL;
        rondo__slot *update = find_update(unit, plan, i, &old);
        if (update == NULL || update->is_bound) {
            continue;
        }
        const int32_t root = (int32_t)(update - plan->slots);
        const size_t made_at = find_first_maker(plan, root);
        if (made_at == SIZE_MAX || last_uses[input] >= made_at) {
            continue;
        }
        give_memory(plan, root, input, last_uses);
    }
}

// Whether the item is a Concat of `old` and another, one behind the other.
static bool is_append(const rondo__plan *plan, const rondo__item *item, int32_t old) {
    const rondo__node *node = &plan->program->nodes[item->node];
    if (!rondo__node_is(node, RONDO__OP_Concat) || item->kernel->join_output == NULL ||
        node->input_count != 2 || node->inputs[0] != old || node->inputs[1] < 0 ||
        plan->slots[node->inputs[1]].root == old) {
        return false;
    }
    const rondo_shape *shape = &plan->slots[old].shape;
    int64_t axis = rondo__op_get_int(&node->op, "axis", 0);
    axis = axis < 0 ? axis + shape->rank : axis;
    return axis >= 0 && axis < shape->rank && rondo__shape_multiply(shape, 0, (int32_t)axis) == 1;
}

static const rondo__item *find_maker(const rondo__plan *plan, int32_t value) {
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        for (size_t k = 0; k < node->output_count; ++k) {
            if (node->outputs[k] == value) {
                return &plan->items[i];
            }
        }
    }
    return NULL;
}

static size_t count_reads(const rondo__plan *plan, const rondo__node *node, int32_t root) {
    size_t count = 0;
    for (size_t k = 0; k < node->input_count; ++k) {
        count += node->inputs[k] >= 0 && plan->slots[node->inputs[k]].root == root ? 1 : 0;
    }
    return count;
}

// Whether the item makes `value` of `old` by writing rows of it, and no op reads `old` after that.
static bool is_cache(const rondo__plan *plan, const rondo__item *item, int32_t old, int32_t value,
                     const size_t *last_uses) {
    const rondo__node *node = &plan->program->nodes[item->node];
    const size_t made_at = find_first_maker(plan, value);
    bool is = false;
    for (size_t i = 0; i < item->kernel->kept_count; ++i) {
        const rondo__kernel_kept *kept = &item->kernel->kept[i];
        is = is || (node->inputs[kept->input] == old && node->outputs[kept->output] == value);
    }
    return is && count_reads(plan, node, old) == 1 && last_uses[old] <= made_at;
}

void rondo__states_append(const rondo__unit *unit, rondo__plan *plan, size_t *last_uses) {
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < program->input_count && plan->peer_count == 0; ++i) {
        const int32_t old = program->inputs[i];
        rondo__slot *of_old = NULL;
        const rondo__slot *update = find_update(unit, plan, i, &of_old);
        if (update == NULL || update->is_bound) {
            continue;
        }
        const int32_t root = (int32_t)(update - plan->slots);
        const rondo__item *maker = find_maker(plan, root);
        const bool appends = maker != NULL && is_append(plan, maker, old);
        if (appends) {
            maker->kernel->join_output(maker->kernel);
        }
        if (appends || (maker != NULL && is_cache(plan, maker, old, root, last_uses))) {
            give_memory(plan, root, old, last_uses);
        }
    }
}

bool rondo__states_are_written(const rondo__plan *plan) {
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        for (size_t k = 0; k < node->output_count; ++k) {
            if (node->outputs[k] >= 0 && plan->slots[plan->slots[node->outputs[k]].root].is_kept) {
                return true;
            }
        }
    }
    return false;
}
