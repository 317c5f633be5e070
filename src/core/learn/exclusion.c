// learn/exclusion.c — see exclusion.h.
// SPDX-License-Identifier: Apache-2.0
#include "learn/exclusion.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"

// "n = 0: ", "\"x\" is the same as \"y\": "
static void write_condition(const rondo__exclusion *exclusion, const rondo__arguments *arguments,
                            char *text, size_t capacity) {
    size_t length = 0;
    if (exclusion->has_pair) {
        rondo__pair_format(arguments, &exclusion->pair, text, capacity);
        length = strlen(text);
    }
    for (size_t i = 0; i < arguments->count && length + 1 < capacity; ++i) {
        char value[40];
        if ((exclusion->pinned >> i & 1) == 0) {
            continue;
        }
        rondo__argument_format(&arguments->list[i], exclusion->values.bits[i], value, sizeof value);
        const int added = snprintf(text + length, capacity - length, "%s%.20s = %s",
                                   length > 0 ? ", " : "", arguments->list[i].name, value);
        length += added > 0 ? (size_t)added : 0;
    }
}

rondo_status rondo__exclusions_add(rondo__exclusions *exclusions, const rondo__arguments *arguments,
                                   const rondo__values *values, uint64_t pinned,
                                   const rondo__pair *pair, const char *message) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(exclusions->list, exclusions->capacity, exclusions->count + 1);
    RETURN_IF_ERROR(status);
    rondo__exclusion *added = &exclusions->list[exclusions->count];
    *added = (rondo__exclusion){.pinned = pinned, .has_pair = pair != NULL};
    RETURN_IF_ERROR(rondo__values_init(arguments, &added->values));
    rondo__values_copy(arguments, &added->values, values);
    if (pair != NULL) {
        added->pair = *pair;
    }
    char condition[110];
    write_condition(added, arguments, condition, sizeof condition);
    snprintf(added->message, sizeof added->message, "where %s: %.350s", condition, message);
    ++exclusions->count;
    return RONDO_STATUS_OK;
}

void rondo__exclusions_deinit(rondo__exclusions *exclusions) {
    for (size_t i = 0; i < exclusions->count; ++i) {
        rondo__values_deinit(&exclusions->list[i].values);
    }
    rondo__free(exclusions->list);
    *exclusions = (rondo__exclusions){0};
}

static bool holds(const rondo__exclusion *exclusion, const rondo__arguments *arguments,
                  const rondo__values *values) {
    if (exclusion->has_pair &&
        rondo__relation_find(arguments, values, exclusion->pair.first, exclusion->pair.other) !=
            exclusion->pair.relation) {
        return false;
    }
    for (uint64_t rest = exclusion->pinned; rest != 0; rest &= rest - 1) {
        const size_t i = (size_t)__builtin_ctzll(rest);
        const rondo__argument *argument = &arguments->list[i];
        if (values->bits[i] != exclusion->values.bits[i] ||
            (argument->struct_bytes > 0 && memcmp(values->bytes + argument->struct_offset,
                                                  exclusion->values.bytes + argument->struct_offset,
                                                  argument->struct_bytes) != 0)) {
            return false;
        }
    }
    return true;
}

const rondo__exclusion *rondo__exclusions_find(const rondo__exclusions *exclusions,
                                               const rondo__arguments *arguments,
                                               const rondo__values *values) {
    for (size_t i = 0; i < exclusions->count; ++i) {
        if (holds(&exclusions->list[i], arguments, values)) {
            return &exclusions->list[i];
        }
    }
    return NULL;
}
