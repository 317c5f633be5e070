// backend/host/host_patience.h — how long the threads of an op wait for each other awake.
//
// Between two ops, and at the end of each, OpenMP's threads wait for each other. libgomp lets them
// spin for some milliseconds before they sleep. As long as the processors are ours alone that is
// right: ops follow each other within microseconds, and waking a sleeper takes longer than many
// ops. Beside busy processes it is ruinous: a thread spins through its share of the processor while
// it waits for one that has lost its own, and an op of microseconds takes as long as the
// scheduler's slices, milliseconds.
//
// libgomp cannot be told after the start of the process. But it makes the wait short by itself
// whenever it has more threads than processors (its manual says so of GOMP_SPINCOUNT). So while
// other processes want the processors there is a second team, of threads that only sleep; when the
// processors are free again, that team ends. A program whose user set GOMP_SPINCOUNT or
// OMP_WAIT_POLICY is left alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_HOST_HOST_PATIENCE_H
#define RONDO_BACKEND_HOST_HOST_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

// What happened between two looks.
typedef struct rondo__host_load {
    double seconds;
    double busy;       // seconds that our processors worked, for whomever
    double own;        // those that this process took of them
    double displaced;  // how often one of our threads lost its processor
} rondo__host_load;

// Whether waits should be short from now on. Takes more to begin than to go on, so that it does not
// flutter.
bool rondo__host_load_is_shared(const rondo__host_load *load, bool was_shared);

// Reads the seconds that processors worked from text in the form of /proc/stat. `is_ours`: by
// number, `count` of them. False when the text has no processor of ours.
bool rondo__host_load_read(const char *text, const bool *is_ours, int32_t count,
                           double ticks_per_second, double *out_busy);

// Called often by code that runs ops on several threads; looks at the machine now and then.
void rondo__host_patience_look(void);

// Ends the second team. The next look may begin it again.
void rondo__host_patience_end(void);

#endif  // RONDO_BACKEND_HOST_HOST_PATIENCE_H
