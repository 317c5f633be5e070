// program/saved/saved_program.h — programs as records (saved_record.h), with the bytes of their
// tensors beside them (data_blocks.h).
//
// A record holds all that a program has, what passes have made of it included. Reading checks all
// that the rest of the library takes for granted of a program: numbers of values, ops and their
// attributes, makers and order. It does not infer types again, so the record of a program behind
// its passes is as trusted as the library's own code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"
#include "program/saved/data_blocks.h"
#include "saved/saved_record.h"

// Appends the program's record.
//
// Errors:    NO_MEMORY.
// Threads:   safe while no call changes the program.
RONDO_MUST_USE rondo_status rondo__program_write(const rondo_program *program,
                                                 rondo__data_blocks *blocks, rondo__text *out);

// The section that tensors lie in.
typedef struct rondo__saved_data {
    rondo_storage *storage;  // what keeps it there; borrowed
    const uint8_t *bytes;
    size_t byte_count;
} rondo__saved_data;

// Reads the program whose record begins at record->at.
//
// Errors:    BAD_DATA, UNSUPPORTED (an op that is not registered), NO_MEMORY.
// Ownership: caller destroys *out_program; its constants keep the storage.
// Threads:   safe on different records.
RONDO_MUST_USE rondo_status rondo__program_read(rondo__record *record,
                                                const rondo__saved_data *data,
                                                rondo_program **out_program);

// Whether an op of the program's own is in it, or in its bodies: what such an op does is not in the
// file.
bool rondo__program_has_user_ops(const rondo_program *program);
