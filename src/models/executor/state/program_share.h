// executor/state/program_share.h — the parts that the executors of one program share, found through
// the program: packed and copied weights, one store for each device and kind of memory, and the
// base, which is the program after all rewrites that need no shapes. The first executor that needs
// a part makes it; the last one frees it.
//
// The lock is held while a base is made, so that executors created at a time fold once. Nothing
// takes it in a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/weights/weight_store.h"
#include "program/half/half_pass.h"
#include "program/program.h"

// The store of `program` on `device`, in memory of `kind`.
//
// Errors:    NO_MEMORY.
// Ownership: give back with rondo__shared_release_store, before the program.
RONDO_MUST_USE rondo_status rondo__shared_acquire_store(rondo_program *program,
                                                        rondo_device *device,
                                                        rondo_memory_kind kind,
                                                        rondo__weight_store **out_store);
void rondo__shared_release_store(rondo_program *program, rondo__weight_store *store);

// A program that waits for shapes. Read only; `halves` locks itself.
typedef struct rondo__base {
    rondo_program *program;
    rondo__half_cache *halves;  // f16 forms of its constants; NULL in f32
    uint64_t bytes;             // folded constants; each user's budget counts them
    size_t use_count;           // guarded by the lock, as `next`
    struct rondo__base *next;
    size_t key_bytes;
    char key[];
} rondo__base;

// Makes the program of a base.
typedef rondo_status (*rondo__base_maker)(void *user_data, rondo_program **out_program,
                                          rondo__half_cache **out_halves);

// The base of this key, made when there is none. Folded constants count against `budget`.
//
// key        all that decides the base beside the program. NULL: made for the caller alone.
//
// Errors:    NO_MEMORY, and what `make` returns.
// Ownership: give back with rondo__shared_release_base, with the same budget, before the program.
RONDO_MUST_USE rondo_status rondo__shared_acquire_base(rondo_program *program, const void *key,
                                                       size_t key_bytes, rondo__budget *budget,
                                                       rondo__base_maker make, void *user_data,
                                                       rondo__base **out_base);
void rondo__shared_release_base(rondo_program *program, rondo__base *base,
                                rondo__budget *budget);  // NULL is fine
