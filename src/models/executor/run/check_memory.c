// executor/run/check_memory.c — see check_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/run/check_memory.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/devices/other_gpus.h"
#include "executor/state/limits.h"

enum { BEFORE, EAGER, REPLAYED, ALIGNMENT = 256 };

// ---- regions ----------------------------------------------------------------------------------

size_t rondo__check_memory_find(const rondo__check_memory *memory, const void *address,
                                size_t bytes) {
    for (size_t r = 0; r < memory->region_count; ++r) {
        const rondo__check_region *region = &memory->regions[r];
        const uintptr_t begin = (uintptr_t)region->address;
        const uintptr_t wanted = (uintptr_t)address;
        if (wanted >= begin && wanted - begin <= region->bytes &&
            bytes <= region->bytes - (wanted - begin)) {
            return region->place + (wanted - begin);
        }
    }
    return SIZE_MAX;
}

static rondo_status add_region(rondo__check_memory *memory, void *address, size_t bytes,
                               bool is_on_host) {
    if (bytes == 0 || rondo__check_memory_find(memory, address, bytes) != SIZE_MAX) {
        return RONDO_STATUS_OK;
    }
    size_t end;
    if (!rondo__add_size(memory->bytes, rondo__align_up(bytes, (size_t)ALIGNMENT), &end)) {
        return RONDO_FAIL(NO_MEMORY, "the values of a segment take more than memory has");
    }
    memory->regions[memory->region_count++] = (rondo__check_region){
        .address = address, .bytes = bytes, .place = memory->bytes, .is_on_host = is_on_host};
    memory->bytes = end;
    return RONDO_STATUS_OK;
}

static rondo_status find_regions(rondo__check_memory *memory, const rondo__plan *plan,
                                 const rondo__step *step) {
    size_t count = 2;
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        count += rondo__plan_get_node(plan, i)->output_count;
    }
    memory->regions = rondo__calloc(count, sizeof *memory->regions);
    if (memory->regions == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo__plan_peer *peer = rondo__step_get_peer(plan, step);
    if (peer != NULL) {
        RETURN_IF_ERROR(add_region(memory, peer->arena->address, peer->arena_bytes, false));
    } else if (plan->memory.arena != NULL) {
        RETURN_IF_ERROR(
            add_region(memory, plan->memory.arena->address, plan->memory.arena_bytes, false));
    }
    if (peer == NULL && plan->memory.host_arena != NULL) {
        RETURN_IF_ERROR(
            add_region(memory, plan->memory.host_arena, plan->memory.host_arena_bytes, true));
    }
    for (size_t i = step->first_item; i < step->first_item + step->item_count; ++i) {
        const rondo__item *item = &plan->items[i];
        const rondo__node *node = &plan->program->nodes[item->node];
        for (size_t k = 0; k < node->output_count; ++k) {
            if (item->outputs[k] != NULL) {
                RETURN_IF_ERROR(add_region(memory, item->outputs[k],
                                           plan->slots[node->outputs[k]].bytes,
                                           plan->slots[node->outputs[k]].is_on_host));
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- copies -----------------------------------------------------------------------------------

typedef enum direction { TO_BEFORE, FROM_BEFORE, TO_HOST } direction;

// A region in pinned memory; `before` is on the device.
static rondo_status copy_pinned(rondo_stream *stream, const rondo__check_region *region,
                                char *place, direction way) {
    if (way == TO_BEFORE) {
        return rondo_stream_copy(stream, place, region->address, region->bytes,
                                 RONDO_COPY_HOST_TO_DEVICE);
    }
    if (way == FROM_BEFORE) {
        return rondo_stream_copy(stream, region->address, place, region->bytes,
                                 RONDO_COPY_DEVICE_TO_HOST);
    }
    RETURN_IF_ERROR(rondo_stream_synchronize(stream));
    memcpy(place, region->address, region->bytes);
    return RONDO_STATUS_OK;
}

static rondo_status copy_regions(rondo__check_memory *memory, char *copy, direction way) {
    rondo_stream *stream = memory->stream;
    for (size_t r = 0; r < memory->region_count; ++r) {
        const rondo__check_region *region = &memory->regions[r];
        char *place = copy + region->place;
        const bool is_out = way == TO_BEFORE || way == TO_HOST;
        if (region->is_on_host) {
            RETURN_IF_ERROR(copy_pinned(stream, region, place, way));
            continue;
        }
        const rondo_copy_kind kind =
            way == TO_HOST ? RONDO_COPY_DEVICE_TO_HOST : RONDO_COPY_DEVICE_TO_DEVICE;
        RETURN_IF_ERROR(rondo_stream_copy(stream, is_out ? place : region->address,
                                          is_out ? region->address : place, region->bytes, kind));
    }
    return rondo_stream_synchronize(stream);
}

static rondo_status read_generators(rondo__check_memory *memory, rondo_generator_state *states) {
    const rondo__executor_generator *entry = memory->unit->executor->resources.generators;
    for (size_t g = 0; g < memory->generator_count; ++g, entry = entry->next) {
        RETURN_IF_ERROR(rondo_generator_get_state(entry->generator, &states[g]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status set_generators(rondo__check_memory *memory,
                                   const rondo_generator_state *states) {
    const rondo__executor_generator *entry = memory->unit->executor->resources.generators;
    for (size_t g = 0; g < memory->generator_count; ++g, entry = entry->next) {
        RETURN_IF_ERROR(rondo_generator_set_state(entry->generator, &states[g]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__check_memory_go_back(rondo__check_memory *memory) {
    RETURN_IF_ERROR(copy_regions(memory, memory->before, FROM_BEFORE));
    return set_generators(memory, memory->states[BEFORE]);
}

rondo_status rondo__check_memory_keep(rondo__check_memory *memory, bool is_replayed) {
    RETURN_IF_ERROR(copy_regions(memory, is_replayed ? memory->replayed : memory->eager, TO_HOST));
    return read_generators(memory, memory->states[is_replayed ? REPLAYED : EAGER]);
}

// ---- life -------------------------------------------------------------------------------------

static rondo_status allocate(rondo__check_memory *memory) {
    void *before = NULL;
    memory->eager = rondo__malloc(memory->bytes + 1);
    memory->replayed = rondo__malloc(memory->bytes + 1);
    for (int i = 0; i < 3; ++i) {
        memory->states[i] =
            rondo__calloc(memory->generator_count + 1, sizeof(rondo_generator_state));
        if (memory->states[i] == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    if (memory->eager == NULL || memory->replayed == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status =
        memory->peer != NULL
            ? rondo__peer_allocate(memory->peer, RONDO__OWNER_STAGING, memory->bytes, &before)
            : rondo__executor_allocate(memory->unit->executor, RONDO__OWNER_STAGING, memory->bytes,
                                       &before);
    memory->before = before;
    return status;
}

rondo_status rondo__check_memory_init(rondo__unit *unit, const rondo__plan *plan,
                                      const rondo__step *step, rondo__check_memory *out_memory) {
    memset(out_memory, 0, sizeof *out_memory);
    const rondo__plan_peer *peer = rondo__step_get_peer(plan, step);
    out_memory->unit = unit;
    out_memory->peer = peer != NULL ? peer->peer : NULL;
    out_memory->stream = rondo__step_get_stream(unit, plan, step);
    // Steps on other streams read and write what is put back here.
    RETURN_IF_ERROR(rondo_stream_synchronize(unit->stream));
    RETURN_IF_ERROR(rondo__other_gpus_synchronize(plan));
    for (const rondo__executor_generator *entry = unit->executor->resources.generators;
         entry != NULL; entry = entry->next) {
        out_memory->generator_count += 1;
    }
    RETURN_IF_ERROR(find_regions(out_memory, plan, step));
    rondo_status status = allocate(out_memory);
    if (status != RONDO_STATUS_OK) {
        rondo__error_prefix("a self-check keeps three copies of %zu bytes", out_memory->bytes);
        return status;
    }
    RETURN_IF_ERROR(copy_regions(out_memory, out_memory->before, TO_BEFORE));
    return read_generators(out_memory, out_memory->states[BEFORE]);
}

void rondo__check_memory_deinit(rondo__check_memory *memory) {
    if (memory->peer != NULL) {
        rondo__peer_free(memory->peer, RONDO__OWNER_STAGING, memory->before, memory->bytes);
    } else {
        rondo__executor_free(memory->unit->executor, RONDO__OWNER_STAGING, memory->before,
                             memory->bytes);
    }
    rondo__free(memory->eager);
    rondo__free(memory->replayed);
    rondo__free(memory->regions);
    for (int i = 0; i < 3; ++i) {
        rondo__free(memory->states[i]);
    }
    memset(memory, 0, sizeof *memory);
}
