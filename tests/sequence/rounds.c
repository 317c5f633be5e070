// Rounds: lists of calls made from a seed, and run.
// SPDX-License-Identifier: Apache-2.0
#include "sequence/sequence.h"

#define CALL_ENTRY(name, weight) {#name, weight, call_##name},
const call_kind call_kinds[] = {EACH_CALL(CALL_ENTRY)};
#undef CALL_ENTRY
const size_t call_kind_count = sizeof call_kinds / sizeof *call_kinds;

// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
static uint64_t mix(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint8_t pick_kind(uint32_t number, uint32_t total) {
    uint32_t rest = number % total;
    size_t kind = 0;
    while (rest >= call_kinds[kind].weight) {
        rest -= call_kinds[kind].weight;
        ++kind;
    }
    return (uint8_t)kind;
}

size_t make_round(uint64_t seed, uint64_t round, uint32_t length, any_call *out_calls) {
    uint32_t total = 0;
    for (size_t i = 0; i < call_kind_count; ++i) {
        total += call_kinds[i].weight;
    }
    uint64_t state = seed * UINT64_C(0x2545f4914f6cdd1d) + round;
    (void)mix(&state);
    for (uint32_t i = 0; i < length; ++i) {
        uint64_t bits = mix(&state);
        uint64_t more = mix(&state);
        out_calls[i] = (any_call){.kind = pick_kind((uint32_t)(bits >> 32), total),
                                  .a = (uint8_t)bits,
                                  .b = (uint8_t)(bits >> 8),
                                  .c = (uint8_t)(bits >> 16),
                                  .value = (uint32_t)more};
    }
    return length;
}

bool run_round(world *w, const any_call *calls, size_t count, const bool *keep) {
    note_record(w);
    for (size_t i = 0; i < count && !w->has_failed; ++i) {
        if (keep != NULL && !keep[i]) {
            continue;
        }
        w->at = i;
        bool was_made = call_kinds[calls[i].kind].make(w, &calls[i]);
        w->made += was_made;
        w->skipped += !was_made;
        bool was_suspicious = rondo_error_get_last()->sequence != w->last_sequence;
        w->last_sequence = rondo_error_get_last()->sequence;
        if (!w->has_failed && was_made && (was_suspicious || i % 8 == 0)) {
            check_world(w);
        }
        note_record(w);
    }
    return !w->has_failed;
}
