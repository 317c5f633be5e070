// program/names.h — the table that finds values by name. Private to the program room.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PROGRAM_NAMES_H
#define RONDO_PROGRAM_NAMES_H

#include "program/program.h"

// Makes room in the table for `value_count` values.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__names_reserve(rondo_program *program, size_t value_count);

// Enters a value whose name no other value has. The room was reserved before.
void rondo__names_insert(rondo_program *program, int32_t value);

// Enters all values afresh, after they were renumbered. Never grows the table, so it cannot fail.
void rondo__names_rebuild(rondo_program *program);

#endif  // RONDO_PROGRAM_NAMES_H
