// SPDX-License-Identifier: Apache-2.0

#include "program/names.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

static size_t hash_name(const rondo_program *program, const char *name) {
    uint64_t hash = rondo__hash64(program->name_seed, name, strlen(name));
    hash ^= hash >> 32;
    hash *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(hash >> 20);
}

int32_t rondo__program_find_value(const rondo_program *program, const char *name) {
    if (program->name_slot_count == 0) {
        return RONDO__VALUE_NONE;
    }
    size_t mask = program->name_slot_count - 1;
    for (size_t slot = hash_name(program, name) & mask;; slot = (slot + 1) & mask) {
        int32_t entry = program->name_slots[slot];
        if (entry == 0) {
            return RONDO__VALUE_NONE;
        }
        if (strcmp(program->values[entry - 1].name, name) == 0) {
            return entry - 1;
        }
    }
}

void rondo__names_insert(rondo_program *program, int32_t value) {
    size_t mask = program->name_slot_count - 1;
    size_t slot = hash_name(program, program->values[value].name) & mask;
    while (program->name_slots[slot] != 0) {
        slot = (slot + 1) & mask;
    }
    program->name_slots[slot] = value + 1;
}

void rondo__names_rebuild(rondo_program *program) {
    if (program->name_slot_count == 0) {
        return;
    }
    memset(program->name_slots, 0, program->name_slot_count * sizeof(*program->name_slots));
    for (size_t i = 0; i < program->value_count; ++i) {
        rondo__names_insert(program, (int32_t)i);
    }
}

rondo_status rondo__names_reserve(rondo_program *program, size_t value_count) {
    if (value_count * 2 <= program->name_slot_count) {
        return RONDO_STATUS_OK;
    }
    size_t slot_count = program->name_slot_count == 0 ? 64 : program->name_slot_count;
    while (slot_count < value_count * 2) {
        slot_count *= 2;
    }
    int32_t *slots = rondo__calloc(slot_count, sizeof(*slots));
    if (slots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (program->name_slot_count == 0) {
        uint64_t salt[2] = {(uint64_t)(uintptr_t)slots, rondo__clock_now_ns()};
        program->name_seed = rondo__hash64(RONDO__HASH_SEED, salt, sizeof(salt));
    }
    rondo__free(program->name_slots);
    program->name_slots = slots;
    program->name_slot_count = slot_count;
    rondo__names_rebuild(program);
    return RONDO_STATUS_OK;
}
