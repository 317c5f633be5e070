// kernel/tuning_choices.h — the fastest way to solve each problem, both by name: the lines of a
// tuning file, and the choices that an executor's kernels have made.
//
// A file is text: a first line with its version, comments behind #, and lines of three fields with
// tabs between them: the device (its name and multiprocessors), the problem, the choice. Names
// outlive versions of the library better than numbers; a choice that is not known is no choice.
//
// Used by one thread at a time, as the executor that has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "rondo/status.h"

typedef struct rondo__tuning_choices rondo__tuning_choices;

// path       of a tuning file; NULL: none.
//
// Errors:    UNAVAILABLE (the file cannot be read), BAD_DATA (it is no tuning file; the line is
//            named), UNSUPPORTED (of a later version), NO_MEMORY.
// Ownership: end with rondo__tuning_choices_destroy.
RONDO_MUST_USE rondo_status rondo__tuning_choices_create(const char *path,
                                                         rondo__tuning_choices **out_choices);
void rondo__tuning_choices_destroy(rondo__tuning_choices *choices);

// Adds what the text of a tuning file says of problems that have no choice yet.
//
// Errors:    BAD_DATA, UNSUPPORTED, NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__tuning_choices_add(rondo__tuning_choices *choices,
                                                      const void *bytes, size_t byte_count);

// Copies the choice; false: there is none, or it does not fit. `choices` may be NULL.
bool rondo__tuning_choices_find(const rondo__tuning_choices *choices, const char *device,
                                const char *problem, char *choice, size_t choice_bytes);

// Notes a choice, in place of an earlier one. Without memory it is not noted; the error record is
// as before. `choices` may be NULL.
void rondo__tuning_choices_note(rondo__tuning_choices *choices, const char *device,
                                const char *problem, const char *choice);

// The text of the file, sorted.
void rondo__tuning_choices_print(const rondo__tuning_choices *choices, rondo__text *text);
