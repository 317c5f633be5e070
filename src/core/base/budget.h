// base/budget.h — how many bytes a piece of work may hold at a time.
//
// A model of a few hundred bytes can ask for any amount of memory. So a call that loads, compiles
// or runs one enters its budget on the thread. Each block (rondo__block_allocate: tensors, packed
// weights, arenas) that the thread then makes counts against the budget until any thread frees it.
// Small things that the file bounds (names, lists, nodes) do not count.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

typedef struct rondo__budget rondo__budget;

// Who holds bytes of a budget: what refusals name.
typedef enum rondo__owner {
    RONDO__OWNER_TENSOR,    // what no other holds: tensors that are fed, fetched, made on the way
    RONDO__OWNER_ARENA,     // values of plans
    RONDO__OWNER_STATE,     // variables
    RONDO__OWNER_STAGING,   // what is brought to a device, or compared there
    RONDO__OWNER_PINNED,    // the same on the processor's side
    RONDO__OWNER_WEIGHT,    // copies of weights
    RONDO__OWNER_PACKED,    // weights in forms of kernels
    RONDO__OWNER_FOLDED,    // constants that were computed ahead
    RONDO__OWNER_RECORDED,  // runs that were recorded into graphs
    RONDO__OWNER_COUNT,
} rondo__owner;

// Makes a budget of `limit_bytes`; `option`, a literal, is what messages say to raise.
//
// Errors:    NO_MEMORY.
// Ownership: one reference; give back with rondo__budget_release. Blocks hold references of their
//            own.
RONDO_MUST_USE rondo_status rondo__budget_create(uint64_t limit_bytes, const char *option,
                                                 rondo__budget **out_budget);
// Another of the same limit, with as much in use.
//
// Errors, ownership, threads: as rondo__budget_create.
RONDO_MUST_USE rondo_status rondo__budget_copy(const rondo__budget *budget,
                                               rondo__budget **out_budget);
void rondo__budget_retain(rondo__budget *budget);   // NULL is fine; threads: safe
void rondo__budget_release(rondo__budget *budget);  // NULL is fine; threads: safe

// Makes `budget` (NULL: none) the one that this thread's blocks count against, and returns the one
// before, which the caller enters again when it is done. Neither is retained.
rondo__budget *rondo__budget_enter(rondo__budget *budget);

rondo__budget *rondo__budget_get_entered(void);  // borrowed; NULL: none

// The same of the owner of this thread's blocks: TENSOR, unless another was entered.
rondo__owner rondo__budget_enter_owner(rondo__owner owner);
rondo__owner rondo__budget_get_owner(void);

// Counts `bytes` more; false, with a record that names the limit, the option and the largest owner,
// when that would pass the limit. Of NULL always true.
bool rondo__budget_take(rondo__budget *budget, rondo__owner owner, uint64_t bytes);
void rondo__budget_give_back(rondo__budget *budget, rondo__owner owner, uint64_t bytes);

// What an owner holds; and adds the largest owner to the latest record, where a device refused.
uint64_t rondo__budget_get_owned(const rondo__budget *budget, rondo__owner owner);
void rondo__budget_name_largest(const rondo__budget *budget);  // NULL is fine

void rondo__budget_set_limit(rondo__budget *budget, uint64_t limit_bytes);
uint64_t rondo__budget_get_limit(const rondo__budget *budget);
uint64_t rondo__budget_get_used(const rondo__budget *budget);
// How often rondo__budget_take refused, for callers that go on without the memory.
uint64_t rondo__budget_get_refusals(const rondo__budget *budget);

// A default limit: `base_bytes` and `factor` times `scale_bytes`, but no more than three quarters
// of the memory there is.
uint64_t rondo__budget_choose_limit(uint64_t base_bytes, uint64_t scale_bytes, uint64_t factor);

// Memory of this machine, or of the control group that the process lives in where that is less.
uint64_t rondo__machine_get_memory(void);
