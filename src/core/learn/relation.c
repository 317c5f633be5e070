// learn/relation.c — see relation.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/relation.h"

#include <stdio.h>

#include "base/memory.h"

rondo__relation rondo__relation_find(const rondo__arguments *arguments, const rondo__values *values,
                                     size_t first, size_t other) {
    const uint64_t begin = values->bits[first];
    const uint64_t other_begin = values->bits[other];
    if (begin == other_begin) {
        return RONDO__RELATION_EQUAL;
    }
    // Never a sum of address and extent: that may be more than an address can be.
    if (begin < other_begin) {
        const uint64_t distance = other_begin - begin;
        const uint64_t extent = arguments->list[first].extent;
        return distance > extent    ? RONDO__RELATION_BEFORE
               : distance == extent ? RONDO__RELATION_TOUCHES
                                    : RONDO__RELATION_OVERLAPS;
    }
    const uint64_t distance = begin - other_begin;
    const uint64_t extent = arguments->list[other].extent;
    return distance > extent    ? RONDO__RELATION_BEHIND
           : distance == extent ? RONDO__RELATION_TOUCHED
                                : RONDO__RELATION_OVERLAPPED;
}

void rondo__pair_format(const rondo__arguments *arguments, const rondo__pair *pair, char *text,
                        size_t capacity) {
    static const struct {
        const char *between;
        const char *behind;
    } forms[RONDO__RELATION_COUNT] = {
        [RONDO__RELATION_BEFORE] = {"lies before", ""},
        [RONDO__RELATION_BEHIND] = {"lies behind", ""},
        [RONDO__RELATION_TOUCHES] = {"ends where", " begins"},
        [RONDO__RELATION_TOUCHED] = {"begins where", " ends"},
        [RONDO__RELATION_OVERLAPS] = {"runs into", ""},
        [RONDO__RELATION_OVERLAPPED] = {"begins within", ""},
        [RONDO__RELATION_EQUAL] = {"is the same as", ""},
    };
    snprintf(text, capacity, "\"%.30s\" %s \"%.30s\"%s", arguments->list[pair->first].name,
             forms[pair->relation].between, arguments->list[pair->other].name,
             forms[pair->relation].behind);
}

// ---- those that were drawn --------------------------------------------------------------------

rondo_status rondo__relations_init(const rondo__arguments *arguments,
                                   rondo__relations *out_relations) {
    *out_relations = (rondo__relations){.count = arguments->count};
    out_relations->drawn = rondo__calloc(arguments->count * arguments->count + 1, 1);
    return out_relations->drawn != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

void rondo__relations_deinit(rondo__relations *relations) {
    rondo__free(relations->drawn);
    *relations = (rondo__relations){0};
}

void rondo__relations_clear(rondo__relations *relations) {
    memset(relations->drawn, 0, relations->count * relations->count);
}

// How many pointers are at the address of this one.
static uint8_t count_group(const rondo__arguments *arguments, const rondo__values *values,
                           size_t pointer) {
    uint8_t count = 0;
    for (size_t i = 0; i < arguments->count; ++i) {
        if (arguments->list[i].kind == RONDO_ARGUMENT_POINTER &&
            values->bits[i] == values->bits[pointer]) {
            ++count;
        }
    }
    return count;
}

bool rondo__relations_note(rondo__relations *relations, const rondo__arguments *arguments,
                           const rondo__values *values) {
    bool do_overlap = false;
    for (size_t i = 0; i < arguments->count; ++i) {
        if (arguments->list[i].kind != RONDO_ARGUMENT_POINTER) {
            continue;
        }
        if (!rondo__relations_has_group(relations, arguments, values, i)) {
            relations->drawn[i * relations->count + i] = count_group(arguments, values, i);
        }
        for (size_t k = i + 1; k < arguments->count; ++k) {
            if (arguments->list[k].kind == RONDO_ARGUMENT_POINTER) {
                const rondo__relation relation = rondo__relation_find(arguments, values, i, k);
                relations->drawn[i * relations->count + k] |= (uint8_t)(1U << relation);
                do_overlap = do_overlap || rondo__relation_overlaps(relation);
            }
        }
    }
    return do_overlap;
}

bool rondo__relations_has(const rondo__relations *relations, const rondo__pair *pair) {
    return (relations->drawn[pair->first * relations->count + pair->other] >> pair->relation & 1) !=
           0;
}

bool rondo__relations_has_group(const rondo__relations *relations,
                                const rondo__arguments *arguments, const rondo__values *values,
                                size_t pointer) {
    return count_group(arguments, values, pointer) <=
           relations->drawn[pointer * relations->count + pointer];
}
