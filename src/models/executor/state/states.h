// executor/state/states.h — inputs whose values an executor keeps from run to run: a variable of
// the program, or an input that the caller has bound to an output.
//
// The value lies once in the device's memory; beside a GPU in pinned memory where only ops that are
// placed on the processor read and change it. Plans read it there: its input is a value slot that
// is bound to that address, which is part of what a plan is found by. Where the kernels allow it,
// the new value is written to the same place (compile/place_states.h); otherwise it is made in the
// arena, and copied behind everything that reads the old one (run/put_states.h).
//
// The memory may be larger than the value: a shape that grows takes twice as much when it has to
// move, and one that shrinks stays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>

#include "executor/state/plan.h"

enum { RONDO__STATE_NO_OUTPUT = -1 };

// A tensor in memory that may be larger than it.
typedef struct rondo__roomy {
    rondo_tensor tensor;  // on the executor's device; dtype NONE: none yet
    size_t bytes;         // of its memory
    bool is_pinned;       // in host memory that the device reaches, too
} rondo__roomy;

// All units of an executor share them.
typedef struct rondo__state {
    size_t input;    // index
    int64_t output;  // index, or RONDO__STATE_NO_OUTPUT: what it was
    rondo__roomy value;
    rondo__roomy spare;    // what it is to be, while others still read what it was
    bool has_spare;        // of the run at hand
    bool is_put;           // likewise: its new value is there
    bool is_lost;          // a run that failed may have written it
    bool is_split;         // each rank updates its part (rank_part.h)
    bool is_sum;           // each rank adds up its own gradients, of which the average counts
    uint64_t whole_at;     // part_runs of the caller when all of it was right at this rank
    atomic_int pin_count;  // recorded runs that use its memory
    struct rondo__state *next;
} rondo__state;

// The state of an input, by its index; NULL: there is none.
rondo__state *rondo__state_find(const rondo_executor *executor, size_t input);

// The state whose memory the plans of an executor read as input `input`: those of a caller's
// executor and its variants, not of bodies; NULL: none.
rondo__state *rondo__state_find_read(const rondo__unit *unit, size_t input);

// Lets the value have this dtype and shape, perhaps in other memory. What it was may be read by
// work on the executor's stream, and is waited for then.
//
// Errors:    STATE (a recorded run uses the memory, and it would have to move), NO_MEMORY,
//            NO_DEVICE_MEMORY, DRIVER, LOST. Then it is as before.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__state_fit(rondo__unit *unit, rondo__state *state,
                                             rondo_dtype dtype, const rondo_shape *shape);
// Lets its memory have at least `bytes`; the value stays.
RONDO_MUST_USE rondo_status rondo__state_reserve(rondo__unit *unit, rondo__state *state,
                                                 size_t bytes);
// The same for the spare, which no other state uses.
RONDO_MUST_USE rondo_status rondo__state_fit_spare(rondo__unit *unit, rondo__state *state,
                                                   rondo_dtype dtype, const rondo_shape *shape);

// Lets a state have the value of a tensor in host memory or on the executor's device, and waits
// unless that lies on the device.
//
// Errors:    as rondo__state_fit and rondo_tensor_copy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__state_set(rondo__unit *unit, rondo__state *state,
                                             const rondo_tensor *tensor);

// Adds a state; `output` as in the struct.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__state_add(rondo_executor *executor, size_t input,
                                             int64_t output);
// Those of the variables of the program, whose ports are indexed.
RONDO_MUST_USE rondo_status rondo__states_add_variables(rondo_executor *executor);

// The state whose new value is output `output`, of which this rank makes its part; NULL: none.
const rondo__state *rondo__state_find_split(const rondo_executor *executor, size_t output);
// Whether ranks may have something else of it than others.
static inline bool rondo__state_has_parts(const rondo__state *state) {
    return state->is_split || state->is_sum;
}
// Whether this rank has all of it.
static inline bool rondo__state_is_whole(const rondo_executor *executor,
                                         const rondo__state *state) {
    return !rondo__state_has_parts(state) || state->whole_at == executor->caller.part_runs;
}

// Counts changes after which a run looks at all states anew: memory that moved, another type or
// shape, a state that came, went or was lost.
void rondo__states_change(rondo_executor *executor);

// Whether `tensor` lies in the memory of a state; `is_written`: of one that runs give new values.
//
// Cost:      a search in addresses that are in order; they are put in order again behind a change.
// Threads:   one thread per executor.
bool rondo__states_hold(rondo_executor *executor, const rondo_tensor *tensor, bool is_written);

// Bytes of all states.
uint64_t rondo__states_get_bytes(const rondo_executor *executor);

void rondo__state_free(rondo_executor *executor, rondo__state *state);
void rondo__states_free(rondo_executor *executor);
