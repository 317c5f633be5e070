// executor/compile/value_slots.c — see value_slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/compile/value_slots.h"

#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/compile/branch_levels.h"
#include "executor/compile/place_states.h"
#include "executor/compile/skipped_moves.h"
#include "executor/devices/host_ops.h"
#include "executor/devices/ranks.h"
#include "executor/state/arena_plan.h"
#include "executor/state/counted.h"
#include "executor/state/run_memory.h"
#include "program/shapes/specialise.h"
#include "tensor/elements.h"

// Memory that keeping branches apart may always take.
enum { BRANCH_BYTES = 1 << 20 };

static bool is_view(const rondo__plan *plan, size_t node, const rondo__node_class *class_of) {
    return class_of[node] == RONDO__CLASS_IDLE &&
           (plan->program->nodes[node].op.def->flags & RONDO__OP_VIEW) != 0;
}

// Kind, shape and root of each value. Views come after what they look at, so one walk settles the
// roots.
static void describe_slots(rondo__plan *plan, const rondo__node_class *class_of) {
    rondo_program *program = plan->program;
    for (size_t v = 0; v < program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        rondo__tensor_info info;
        rondo__program_get_info(program, (int32_t)v, &info);
        slot->root = (int32_t)v;
        slot->dtype = info.dtype;
        slot->shape = info.shape;
        slot->is_shape_known = info.is_shape_known;
        slot->kind = info.constant != NULL ? RONDO__SLOT_CONSTANT
                     : info.is_shape_known && rondo__dtype_is_plain(info.dtype)
                         ? RONDO__SLOT_ARENA
                         : RONDO__SLOT_DYNAMIC;
        slot->side = plan->sides != NULL ? plan->sides[v] : RONDO__SIDE_DEVICE;
        slot->is_on_host = slot->side == RONDO__SIDE_HOST;
        if (slot->kind == RONDO__SLOT_ARENA) {
            rondo_tensor shell = {.dtype = info.dtype, .shape = info.shape};
            slot->bytes = rondo_tensor_get_bytes(&shell);
        }
    }
    for (size_t i = 0; i < program->node_count; ++i) {
        const size_t n = plan->order != NULL ? plan->order[i] : i;
        const rondo__node *node = &program->nodes[n];
        if (is_view(plan, n, class_of)) {
            rondo__slot *slot = &plan->slots[node->outputs[0]];
            slot->root = plan->slots[node->inputs[0]].root;
            slot->kind = plan->slots[slot->root].kind;
        }
        for (size_t k = 0; rondo__counted_is(node) && k < node->output_count; ++k) {
            plan->slots[node->outputs[k]].root = node->inputs[k];  // a view in its room
        }
    }
}

typedef struct lifetimes {
    size_t *first;  // SIZE_MAX: never used
    size_t *last;
    size_t end;
} lifetimes;

static void touch(lifetimes *l, const rondo__plan *plan, int32_t value, size_t place) {
    if (value < 0) {
        return;
    }
    int32_t root = plan->slots[value].root;
    if (l->first[root] == SIZE_MAX || place < l->first[root]) {
        l->first[root] = place;
    }
    l->last[root] = place > l->last[root] ? place : l->last[root];
}

static void touch_node(lifetimes *l, const rondo__plan *plan, size_t n, size_t place) {
    const rondo__node *node = &plan->program->nodes[n];
    for (size_t i = 0; i < node->input_count; ++i) {
        touch(l, plan, node->inputs[i], place);
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        touch(l, plan, node->outputs[i], place);
    }
}

// Values that another GPU writes or reads are not ordered with the ops: they keep their bytes until
// the run ends, and in pinned memory no earlier value has these bytes (other_gpus.h).
static void touch_far(lifetimes *l, const rondo__plan *plan, const rondo__item *item,
                      int32_t value) {
    const uint8_t side = value >= 0 ? plan->slots[value].side : item->side;
    const bool is_far =
        side != item->side && (side >= RONDO__SIDE_PEER || item->side >= RONDO__SIDE_PEER);
    if (is_far && side == RONDO__SIDE_HOST) {
        touch(l, plan, value, 0);
    }
    if (is_far) {
        touch(l, plan, value, l->end);
    }
}

static void touch_all_far(lifetimes *l, const rondo__plan *plan) {
    for (size_t i = 0; i < plan->item_count && plan->peer_count > 0; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        for (size_t k = 0; k < node->input_count; ++k) {
            touch_far(l, plan, &plan->items[i], node->inputs[k]);
        }
        for (size_t k = 0; k < node->output_count; ++k) {
            touch_far(l, plan, &plan->items[i], node->outputs[k]);
        }
    }
}

// What a collective reads on its lane keeps its bytes (ranks.h).
static void touch_laned(lifetimes *l, const rondo__plan *plan) {
    for (size_t i = 0; i < plan->item_count && plan->order != NULL; ++i) {
        const rondo__node *node = rondo__plan_get_node(plan, i);
        for (size_t k = 0; k < node->input_count && rondo__node_is_collective(node); ++k) {
            touch(l, plan, node->inputs[k], l->end);
        }
    }
}

// By the order of the ops or, where `levels` is given, by those.
static void measure_lifetimes(lifetimes *l, const rondo__plan *plan,
                              const rondo__node_class *class_of, const size_t *levels) {
    const rondo_program *program = plan->program;
    for (size_t v = 0; v < program->value_count; ++v) {
        l->first[v] = SIZE_MAX;
        l->last[v] = 0;
    }
    size_t place = 0;
    size_t end = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (!rondo__step_has_kernels(step)) {
            place = levels != NULL ? levels[plan->item_count + s] : place;
            touch_node(l, plan, step->node, place++);
            end = place > end ? place : end;
            continue;
        }
        for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
            place = levels != NULL ? levels[i] : place;
            touch_node(l, plan, plan->items[i].node, place++);
            end = place > end ? place : end;
        }
    }
    l->end = end;
    // Inputs keep their bytes to the end, so that a run can be repeated without feeding again.
    for (size_t i = 0; i < program->input_count; ++i) {
        touch(l, plan, program->inputs[i], 0);
        if (!plan->slots[program->inputs[i]].is_kept) {
            touch(l, plan, program->inputs[i], l->end);
        }
        if (plan->mirrors != NULL && plan->mirrors[i] >= 0) {
            touch(l, plan, plan->mirrors[i], 0);
            touch(l, plan, plan->mirrors[i], l->end);
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        touch(l, plan, program->outputs[i], 0);
        touch(l, plan, program->outputs[i], l->end);
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        if (class_of[n] == RONDO__CLASS_IDLE &&
            !is_view(plan, n, class_of)) {  // makes nothing but empty tensors
            touch_node(l, plan, n, 0);
            touch_node(l, plan, n, l->end);
        }
    }
    touch_all_far(l, plan);
    touch_laned(l, plan);
}

// The value whose bytes `value` shares in the end. Paths are shortened on the way, so that a chain
// of joins stays cheap.
static int32_t find_root(rondo__plan *plan, int32_t value) {
    int32_t root = value;
    while (plan->slots[root].root != root) {
        root = plan->slots[root].root;
    }
    while (plan->slots[value].root != root) {
        const int32_t next = plan->slots[value].root;
        plan->slots[value].root = root;
        value = next;
    }
    return root;
}

// Whether the node at `place` ends the life of its input, used once, so that its first output may
// take over the bytes.
static bool is_spent_here(const lifetimes *l, rondo__plan *plan, const rondo__node *node,
                          size_t input, size_t place) {
    const int32_t value = node->inputs[input];
    const int32_t root = value >= 0 ? find_root(plan, value) : -1;
    if (root < 0 || plan->slots[root].kind != RONDO__SLOT_ARENA || l->last[root] != place ||
        plan->slots[root].bytes != plan->slots[node->outputs[0]].bytes) {
        return false;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        if (i != input && node->inputs[i] >= 0 && find_root(plan, node->inputs[i]) == root) {
            return false;
        }
    }
    return true;
}

// Whether the node's output may lie where this input does, as far as states are concerned: only
// what becomes of a state takes its memory.
static bool may_carry(rondo__plan *plan, const rondo__node *node, size_t input,
                      const int32_t *carriers) {
    const int32_t root = node->inputs[input] >= 0 ? find_root(plan, node->inputs[input]) : -1;
    const int32_t carried = carriers[node->outputs[0]];
    return carried >= 0 ? root == carried : root >= 0 && !plan->slots[root].is_kept;
}

// Lets outputs take over the bytes of inputs where the kernel can work in place. The input's
// lifetime then goes on as the output's. `carriers` as of rondo__states_find_carriers.
static void join_in_place(lifetimes *l, rondo__plan *plan, const int32_t *carriers) {
    size_t place = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (!rondo__step_has_kernels(step)) {
            place += 1;
            continue;
        }
        for (size_t n = step->first_item; n < step->first_item + step->item_count; ++n, ++place) {
            const rondo__node *node = rondo__plan_get_node(plan, n);
            const uint64_t mask = plan->items[n].kernel->in_place_inputs;
            const int32_t output = mask != 0 ? node->outputs[0] : -1;
            if (output < 0 || plan->slots[output].kind != RONDO__SLOT_ARENA ||
                plan->slots[output].root != output ||
                (l->first[output] != place && carriers[output] < 0)) {
                continue;
            }
            for (size_t i = 0; i < node->input_count && i < 64; ++i) {
                if ((mask >> i & 1) == 0 || !may_carry(plan, node, i, carriers) ||
                    !is_spent_here(l, plan, node, i, place)) {
                    continue;
                }
                const int32_t root = find_root(plan, node->inputs[i]);
                rondo__host_ops_join(plan->items[n].kernel);
                l->last[root] = l->last[output];
                plan->slots[output].root = root;
                break;
            }
        }
    }
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        plan->slots[v].root = find_root(plan, (int32_t)v);
    }
}

// Whether the program gives out the bytes of input `value`, as a view.
static bool is_given_out(const rondo__plan *plan, int32_t value) {
    bool is = false;
    for (size_t i = 0; i < plan->program->output_count; ++i) {
        is = is || plan->slots[plan->program->outputs[i]].root == value;
    }
    return is;
}

// Inputs of a body that is near: its plans are for feeds where these lie, as the key says. Kernels
// rely on the alignment of the arena; and what is given out must outlast the feed.
static void mark_near(const rondo__unit *unit, rondo__plan *plan) {
    const size_t count = unit->device_feeds != NULL ? plan->program->input_count : 0;
    for (size_t i = 0; i < count; ++i) {
        const rondo_tensor *feed = &unit->device_feeds[i];
        rondo__slot *slot = &plan->slots[plan->program->inputs[i]];
        if (slot->kind == RONDO__SLOT_ARENA && !slot->is_on_host && slot->bytes > 0 &&
            feed->device == unit->executor->device &&
            !is_given_out(plan, plan->program->inputs[i]) &&
            (uintptr_t)feed->data % RONDO__ARENA_ALIGNMENT == 0) {
            slot->is_bound = true;
            slot->address = feed->data;
        }
    }
}

// Values of a part that lie where the plan around it says: inputs, and what a branch gives out.
static void mark_bound(const rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    const bool is_branch = unit->part == RONDO__PART_BRANCH;
    const size_t outputs = is_branch ? program->output_count : 0;
    const size_t inputs = unit->part != RONDO__PART_NONE ? program->input_count : 0;
    for (size_t i = 0; i < inputs + outputs; ++i) {
        const int32_t value = i < inputs ? program->inputs[i] : program->outputs[i - inputs];
        rondo__slot *root = &plan->slots[plan->slots[value].root];
        root->is_bound = root->kind == RONDO__SLOT_ARENA;
    }
    mark_near(unit, plan);
}

// Pinned memory, one piece for a plan, because plans share pieces: staging areas with one place for
// each input and output that travels, and the arena of the processor's side.
static rondo_status place_staging(rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    plan->memory.input_staging =
        rondo__calloc(program->input_count + 1, sizeof *plan->memory.input_staging);
    plan->memory.output_staging =
        rondo__calloc(program->output_count + 1, sizeof *plan->memory.output_staging);
    if (plan->memory.input_staging == NULL || plan->memory.output_staging == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t total = 0;
    for (size_t i = 0; i < program->input_count; ++i) {
        plan->memory.input_staging[i] = total;
        const rondo__slot *slot = &plan->slots[program->inputs[i]];
        total += slot->is_kept ? 0 : rondo__align_up(slot->bytes, RONDO__ARENA_ALIGNMENT);
    }
    plan->memory.input_bytes = total;
    if (rondo_device_is_host(unit->executor->device)) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        const rondo__slot *slot = &plan->slots[program->outputs[i]];
        plan->memory.output_staging[i] = total;
        total += slot->is_on_host ? 0 : rondo__align_up(slot->bytes, RONDO__ARENA_ALIGNMENT);
    }
    size_t bytes;
    if (!rondo__add_size(total, plan->memory.host_arena_bytes, &bytes)) {
        return RONDO_FAIL(NO_MEMORY, "values on the processor take more than memory has");
    }
    RETURN_IF_ERROR(rondo__run_memory_acquire(unit, RONDO_MEMORY_PINNED, NULL, bytes,
                                              &plan->memory.staging_memory));
    plan->memory.staging = plan->memory.staging_memory->address;
    plan->memory.host_arena = plan->memory.staging + total;
    return RONDO_STATUS_OK;
}

// Names the largest value in the record of an arena that was not to be had.
static void blame_largest(const rondo__plan *plan) {
    const rondo_program *program = plan->program;
    size_t largest = SIZE_MAX;
    for (size_t v = 0; v < program->value_count; ++v) {
        const rondo__slot *slot = &plan->slots[v];
        if (slot->kind == RONDO__SLOT_ARENA && slot->root == (int32_t)v &&
            (largest == SIZE_MAX || slot->bytes > plan->slots[largest].bytes)) {
            largest = v;
        }
    }
    if (largest == SIZE_MAX) {
        return;
    }
    char shape[96];
    const rondo__slot *slot = &plan->slots[largest];
    const int32_t maker = program->values[largest].producer;
    rondo__error_prefix("values alive at once (the largest: \"%.40s\" %s %s)",
                        program->values[largest].name, rondo_dtype_get_name(slot->dtype),
                        rondo_shape_format(&slot->shape, shape, sizeof shape));
    if (maker >= 0) {
        rondo__node_blame(&program->nodes[maker]);
    }
}

// The side in whose arena item `i` works.
static uint8_t get_item_side(const rondo__plan *plan, size_t i) {
    return rondo__kernel_is_hosted(plan->items[i].kernel) ? RONDO__SIDE_HOST : plan->items[i].side;
}

static void *find_part(void *address, size_t at) {
    return address != NULL ? (char *)address + at : NULL;
}

static void set_addresses(rondo__plan *plan) {
    char *arenas[RONDO__SIDE_PEER + RONDO__PLACE_GPU_MAX] = {plan->memory.arena->address,
                                                             plan->memory.host_arena};
    for (size_t i = 0; i < plan->peer_count; ++i) {
        arenas[RONDO__SIDE_PEER + i] = plan->peers[i].arena->address;
    }
    for (size_t i = 0; i < plan->item_count; ++i) {
        rondo__item *item = &plan->items[i];
        item->workspace = item->kernel->workspace_bytes > 0
                              ? arenas[get_item_side(plan, i)] + item->workspace_offset
                              : NULL;
    }
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        const rondo__slot *root = &plan->slots[slot->root];
        slot->address = slot->kind != RONDO__SLOT_ARENA ? NULL
                        : root->is_bound                ? find_part(root->address, slot->part_at)
                                                        : arenas[slot->side] + slot->offset;
    }
}

// Blocks that an arena is planned for, and whose they are.
typedef struct block_list {
    size_t count;
    rondo__block *list;
    int32_t *owners;  // value; or -1 - item for workspaces
} block_list;

// Lists the blocks of one side.
static void list_blocks(const lifetimes *l, rondo__plan *plan, uint8_t side,
                        block_list *out_blocks) {
    size_t count = 0;
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind != RONDO__SLOT_ARENA || slot->root != (int32_t)v || slot->is_bound ||
            slot->side != side) {
            continue;
        }
        if (l->first[v] == SIZE_MAX) {
            slot->kind = RONDO__SLOT_NONE;
            continue;
        }
        out_blocks->owners[count] = (int32_t)v;
        // Empty tensors get an address as well: NULL would mean absent.
        out_blocks->list[count++] = (rondo__block){
            .bytes = slot->bytes > 0 ? slot->bytes : 1, .first = l->first[v], .last = l->last[v]};
    }
    size_t place = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        place += rondo__step_has_kernels(step) ? 0 : 1;
        for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i, ++place) {
            const size_t bytes = plan->items[i].kernel->workspace_bytes;
            if (bytes > 0 && get_item_side(plan, i) == side) {
                out_blocks->owners[count] = -1 - (int32_t)i;
                out_blocks->list[count++] =
                    (rondo__block){.bytes = bytes, .first = place, .last = place};
            }
        }
    }
    out_blocks->count = count;
}

// The levels between which each block is needed; `levels` as of rondo__branch_levels_find.
static void set_levels(lifetimes *l, const rondo__plan *plan, const rondo__node_class *class_of,
                       const size_t *levels, block_list *blocks) {
    measure_lifetimes(l, plan, class_of, levels);
    for (size_t b = 0; b < blocks->count; ++b) {
        const int32_t owner = blocks->owners[b];
        blocks->list[b].first_level = owner < 0 ? levels[-1 - owner] : l->first[owner];
        blocks->list[b].last_level = owner < 0 ? levels[-1 - owner] : l->last[owner];
    }
}

// Plans the arena. Where branches may run side by side, what they need lies apart, unless that
// takes half as much memory again.
static rondo_status plan_arena(const rondo_executor *executor, rondo__plan *plan,
                               const rondo__node_class *class_of, lifetimes *l,
                               const size_t *levels, block_list *blocks) {
    size_t bytes = 0;
    bool has_levels = levels != NULL;
    list_blocks(l, plan, RONDO__SIDE_DEVICE, blocks);
    RETURN_IF_ERROR(
        rondo__arena_plan(blocks->list, blocks->count, false, &plan->memory.arena_bytes));
    if (!has_levels) {
        return RONDO_STATUS_OK;
    }
    set_levels(l, plan, class_of, levels, blocks);
    RETURN_IF_ERROR(rondo__arena_plan(blocks->list, blocks->count, true, &bytes));
    has_levels = bytes / 3 * 2 <= plan->memory.arena_bytes + BRANCH_BYTES ||
                 executor->options.branches == RONDO_BRANCHES_ON;
    plan->memory.arena_bytes = bytes;
    return has_levels
               ? RONDO_STATUS_OK
               : rondo__arena_plan(blocks->list, blocks->count, false, &plan->memory.arena_bytes);
}

// Levels of items and steps; NULL where the plan has no branches.
static rondo_status find_levels(const rondo__unit *unit, const rondo__plan *plan,
                                size_t **out_levels) {
    *out_levels = NULL;
    if (!rondo__branch_levels_may_branch(unit, plan)) {
        return RONDO_STATUS_OK;
    }
    size_t *levels = rondo__calloc(plan->item_count + plan->step_count + 1, sizeof *levels);
    rondo_status status =
        levels == NULL ? RONDO_STATUS_NO_MEMORY : rondo__branch_levels_find(plan, levels);
    bool has_branches = false;
    for (size_t s = 0; status == RONDO_STATUS_OK && s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        for (size_t i = 1; i < step->item_count; ++i) {
            const size_t *level = &levels[step->first_item + i];
            has_branches = has_branches || level[0] <= level[-1];
        }
    }
    if (has_branches) {
        *out_levels = levels;
    } else {
        rondo__free(levels);
    }
    return status;
}

static void take_offsets(rondo__plan *plan, const block_list *blocks) {
    for (size_t b = 0; b < blocks->count; ++b) {
        if (blocks->owners[b] < 0) {
            plan->items[-1 - blocks->owners[b]].workspace_offset = blocks->list[b].offset;
        } else {
            plan->slots[blocks->owners[b]].offset = blocks->list[b].offset;
        }
    }
}

// The arena of a side that is not the executor's device.
static rondo_status plan_side_arena(rondo__plan *plan, const rondo__node_class *class_of,
                                    lifetimes *l, const size_t *levels, uint8_t side,
                                    block_list *blocks, size_t *out_bytes) {
    list_blocks(l, plan, side, blocks);
    if (levels != NULL) {
        set_levels(l, plan, class_of, levels, blocks);
        measure_lifetimes(l, plan, class_of, NULL);
    }
    RETURN_IF_ERROR(rondo__arena_plan(blocks->list, blocks->count, levels != NULL, out_bytes));
    take_offsets(plan, blocks);
    return RONDO_STATUS_OK;
}

static rondo_status plan_side_arenas(rondo__plan *plan, const rondo__node_class *class_of,
                                     lifetimes *l, const size_t *levels, block_list *blocks) {
    RETURN_IF_ERROR(plan_side_arena(plan, class_of, l, levels, RONDO__SIDE_HOST, blocks,
                                    &plan->memory.host_arena_bytes));
    for (size_t i = 0; i < plan->peer_count; ++i) {
        RETURN_IF_ERROR(plan_side_arena(plan, class_of, l, levels, (uint8_t)(RONDO__SIDE_PEER + i),
                                        blocks, &plan->peers[i].arena_bytes));
    }
    return RONDO_STATUS_OK;
}

static rondo_status acquire_arenas(rondo__unit *unit, rondo__plan *plan) {
    for (size_t i = 0; i < plan->peer_count; ++i) {
        rondo__plan_peer *peer = &plan->peers[i];
        RETURN_IF_ERROR(rondo__run_memory_acquire(unit, RONDO_MEMORY_DEVICE, peer->peer,
                                                  peer->arena_bytes, &peer->arena));
    }
    return rondo__run_memory_acquire(unit, RONDO_MEMORY_DEVICE, NULL, plan->memory.arena_bytes,
                                     &plan->memory.arena);
}

// Values that lie in others get their offsets; those that no value of the arena holds are gone.
static void settle_shared(rondo__plan *plan) {
    for (size_t v = 0; v < plan->program->value_count; ++v) {
        rondo__slot *slot = &plan->slots[v];
        if (slot->kind == RONDO__SLOT_ARENA && plan->slots[slot->root].kind == RONDO__SLOT_ARENA) {
            slot->offset = plan->slots[slot->root].offset + slot->part_at;
        } else if (slot->kind == RONDO__SLOT_ARENA) {
            slot->kind = RONDO__SLOT_NONE;
        }
    }
}

static rondo_status take_memory(rondo__unit *unit, rondo__plan *plan) {
    rondo_status status = acquire_arenas(unit, plan);
    if (status == RONDO_STATUS_OK) {
        status = place_staging(unit, plan);
    }
    if (status != RONDO_STATUS_OK) {
        blame_largest(plan);
        return status;
    }
    set_addresses(plan);
    return RONDO_STATUS_OK;
}

rondo_status rondo__plan_assign_slots(rondo__unit *unit, rondo__plan *plan,
                                      const rondo__node_class *class_of) {
    const rondo_program *program = plan->program;
    rondo_status status = RONDO_STATUS_OK;
    lifetimes l = {0};
    size_t *levels = NULL;
    const size_t capacity = program->value_count + plan->item_count + 1;
    block_list blocks = {.list = rondo__calloc(capacity, sizeof *blocks.list),
                         .owners = rondo__calloc(capacity, sizeof *blocks.owners)};
    l.first = rondo__calloc(program->value_count + 1, sizeof *l.first);
    l.last = rondo__calloc(program->value_count + 1, sizeof *l.last);
    plan->slots = rondo__calloc(program->value_count + 1, sizeof *plan->slots);
    plan->run.dynamic = rondo__calloc(program->value_count + 1, sizeof *plan->run.dynamic);
    int32_t *carriers = rondo__calloc(program->value_count + 1, sizeof *carriers);
    if (blocks.list == NULL || blocks.owners == NULL || l.first == NULL || l.last == NULL ||
        plan->slots == NULL || plan->run.dynamic == NULL || carriers == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
        goto free_lists;
    }
    describe_slots(plan, class_of);
    rondo__states_bind_slots(unit, plan);
    status = find_levels(unit, plan, &levels);  // before outputs take over inputs
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    measure_lifetimes(&l, plan, class_of, NULL);
    status = rondo__skipped_moves_join(unit, plan, l.first, l.last);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    status = rondo__states_find_carriers(unit, plan, carriers);
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    join_in_place(&l, plan, carriers);
    rondo__states_append(unit, plan, l.last);
    rondo__states_take_over(unit, plan, l.last);
    plan->writes_states = rondo__states_are_written(plan);
    mark_bound(unit, plan);
    if (plan->sides != NULL) {
        status = plan_side_arenas(plan, class_of, &l, levels, &blocks);
    }
    if (status == RONDO_STATUS_OK) {
        status = plan_arena(unit->executor, plan, class_of, &l, levels, &blocks);
    }
    if (status != RONDO_STATUS_OK) {
        goto free_lists;
    }
    take_offsets(plan, &blocks);
    for (size_t b = 0; b < blocks.count; ++b) {
        plan->memory.arena_naive_bytes +=
            rondo__align_up(blocks.list[b].bytes, RONDO__ARENA_ALIGNMENT);
    }
    settle_shared(plan);
    if (unit->part == RONDO__PART_NONE) {  // otherwise addresses come with each launch
        status = take_memory(unit, plan);
    }

free_lists:
    rondo__free(carriers);
    rondo__free(blocks.list);
    rondo__free(blocks.owners);
    rondo__free(levels);
    rondo__free(l.first);
    rondo__free(l.last);
    return status;
}
