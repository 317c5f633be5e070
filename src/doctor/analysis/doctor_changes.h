// doctor/analysis/doctor_changes.h — what differs between steps at one place of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_rules.h"

// Steps that are compared: typical ones from the middle on, since the last ones may be of the
// program's end.
enum { RONDO__DOCTOR_COMPARED_MAX = 16 };

typedef struct rondo__doctor_compared {
    const rondo__doctor_steps *steps;
    size_t count;
    size_t indices[RONDO__DOCTOR_COMPARED_MAX];  // ascending
} rondo__doctor_compared;

// At most `room` such steps, ascending; returns how many.
size_t rondo__doctor_choose_steps(const rondo__doctor_steps *steps, rondo__doctor_choice choice,
                                  size_t room, size_t *out_indices);

void rondo__doctor_choose_compared(const rondo__doctor_steps *steps,
                                   rondo__doctor_compared *out_compared);

// Whether a kernel is one of NCCL's, its name mangled or not.
bool rondo__doctor_is_collective(const char *kernel);

// The rules that work number `place` of the steps breaks by changing. At most `room` of them;
// *out_words has the argument word of each, or -1.
size_t rondo__doctor_find_changes(const rondo__doctor_compared *compared, size_t place,
                                  rondo__doctor_rule *out_rules, int32_t *out_words, size_t room);
