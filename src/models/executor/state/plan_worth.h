// executor/state/plan_worth.h — whether ops that wait for shapes become the body of a rondo.Rest,
// and whether that body gets a plan for shapes that are new.
//
// A body gets a plan for new shapes while it has credit: 32 plans at first, and one more for every
// four uses of a plan. Without credit a plan may cost more than it saves: then shapes that come for
// the first time run by one plan for all shapes, in which the reference runs the ops behind unknown
// shapes one by one, on copies of a GPU's data. So do shapes that have a plan, where on the host
// its copies of the inputs outweigh what the reference calculates: of one row of a large tensor,
// say. The rule looks at counts and shapes only, never at a clock, so that the same calls give the
// same bits; a second run of an executor may go another way than the first, and round otherwise
// (docs/operators.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"
#include "rondo/executor.h"

enum {
    RONDO__WORTH_CREDIT = 32,  // plans that may be made in a row before one is used again
    RONDO__WORTH_HITS = 4,     // uses that pay for one more
    RONDO__WORTH_MEMORY = 32,  // keys that were seen, the latest
};

typedef struct rondo__plan_worth {
    bool is_always;     // an op draws: its numbers must not depend on the way it is run
    uint32_t credit;    // in uses
    uint64_t work;      // of the latest plan: what the reference would take, in its steps
    uint64_t planning;  // of the latest plan: what making it takes, in the same steps
    size_t seen_count;
    size_t seen_next;  // the index that is written next
    uint64_t seen[RONDO__WORTH_MEMORY];
} rondo__plan_worth;

typedef struct rondo__plan rondo__plan;
typedef struct rondo__unit rondo__unit;

// Moves ops that wait for shapes into bodies (rondo__pass_rest), where the executor plans that way.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__plan_worth_gather(const rondo__unit *unit,
                                                     rondo_program *program);

void rondo__plan_worth_init(const rondo_program *body, rondo__plan_worth *out_worth);
// A plan was found.
void rondo__plan_worth_note_use(rondo__plan_worth *worth);
// A plan was made. One that would copy more than the reference takes is marked, and not run again.
void rondo__plan_worth_note_plan(rondo__plan_worth *worth, rondo__plan *plan);
// Whether to make a plan for a key that has none.
bool rondo__plan_worth_admits(rondo__plan_worth *worth, const void *key, size_t key_bytes);

// Steps that the reference takes for a node: one for each element, and of products one for each
// factor. Elements that an op only moves count where they arrive.
uint64_t rondo__plan_measure_node(const rondo__plan *plan, const rondo__node *node);
