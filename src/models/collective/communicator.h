// collective/communicator.h — a group of ranks, one process each, that compute one sum together.
//
// Three parts:
//
//   meeting     (meeting.h) how the ranks find each other; its connections stay open
//   watch       (rank_watch.c) a thread that listens to the others: who has ended or left, and
//               whether all are about to run the same collectives (agreement)
//   transport   (transport.h) what moves the numbers: NCCL, MPI, or the meeting's connections
//
// Agreement. Each rank counts its runs. One whose collectives differ from those of its run before
// says so to rank 0 and waits; rank 0 asks the others what they do in the run of that number, and
// lets all go on, or names the first difference. A rank whose collectives stay as they were says
// nothing and waits for nothing:
//
//   rank 1    run 7, other collectives ── ANNOUNCE 7 ──>  rank 0  ── ASK 7 ──>  rank 2
//             goes on  <────────────────── GO 7 ─────  all equal  <── ANNOUNCE 7, when it is there
//
// Thread rule: the watch, the thread that runs, and host functions use one communicator; `lock`
// guards what they share. It is a leaf: code under it sends short messages, and calls nothing else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collective/meeting.h"
#include "op/rank_part.h"
#include "rondo/training.h"

enum { RONDO__COLLECTIVES_TEXT_BYTES = 8192, RONDO__LOSS_BYTES = 230 };

// A message for printf, with a rank, the number of ranks, its runs, and the number of this run.
#define RONDO__HAS_LEFT                                                                          \
    "rank %d of %d has left after %llu runs; this is run %llu; look at what it said: all ranks " \
    "make the same runs"

// What a run does together with the other ranks, in order; a line for each, behind lines of options
// that all must have alike.
typedef struct rondo__collectives {
    uint64_t hash;  // of all lines, also of those for which `text` has no room
    size_t count;
    char *text;  // NULL: none
} rondo__collectives;

// One all-reduce or all-gather, of one or more tensors.
typedef struct rondo__reduction_part {
    rondo_dtype dtype;
    size_t count;  // elements
    bool is_average;
    bool is_split;  // each rank gets its part alone (rank_part.h), or gives it
} rondo__reduction_part;

typedef struct rondo__reduction {
    bool gathers;    // all parts go to all ranks, and nothing is added
    bool has_zeros;  // what is split is 0 in the parts of others
    size_t part_count;
    const rondo__reduction_part *parts;
} rondo__reduction;

// What a rank said that it does in a run.
typedef struct rondo__announcement {
    uint64_t run;  // 0: nothing
    uint64_t hash;
    char *text;
} rondo__announcement;

// What rank 0 knows of a rank.
typedef struct rondo__rank_record {
    bool has_left;
    uint64_t left_runs;
    uint64_t asked_run;
    rondo__announcement said[2];  // the newest ones
} rondo__rank_record;

struct pollfd;
struct rondo__transport;

struct rondo_communicator {
    atomic_int reference_count;
    uint64_t number;  // no other of the process has it
    rondo_device *device;
    rondo__launcher_id launcher;
    rondo__meeting meeting;
    const struct rondo__transport *transport;
    void *state;                // the transport's
    pthread_mutex_t data_lock;  // one host all-reduce at a time; taken before `lock`
    void *scratch;              // guarded by data_lock
    size_t scratch_bytes;

    pthread_t watch;
    bool has_watch;
    int wake[2];            // a pipe
    struct pollfd *polled;  // of the watch

    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_bool is_lost;  // written under the lock
    bool has_loss;        // from run `loss_run` on
    uint64_t loss_run;
    char loss[RONDO__LOSS_BYTES];
    bool has_problem;  // ranks differ; otherwise one ended
    bool is_closing;
    uint64_t run;          // that began last
    uint64_t changed_run;  // whose collectives were new
    uint64_t agreed_run;
    uint64_t asked_run;  // that rank 0 asks of
    rondo__announcement now, before;
    rondo__rank_record *records;
};

// ---- for executors

void rondo__communicator_retain(rondo_communicator *communicator);  // NULL is fine

// Begins a run, before its first collective is put on a stream or recorded.
//
// Errors:    UNAVAILABLE (a rank has ended or left: the message says which), MISMATCH (the ranks
//            are about to do different things: the message has both), STATE (the thread serves
//            another communicator).
// Threads:   one thread a communicator.
RONDO_MUST_USE rondo_status rondo__communicator_begin_run(rondo_communicator *communicator,
                                                          const rondo__collectives *collectives);
// Whether all ranks are still there: after a wait, since what a lost rank left undone is garbage.
//
// Errors:    as above.
// Threads:   any.
RONDO_MUST_USE rondo_status rondo__communicator_check(rondo_communicator *communicator);
// A run that had begun failed at this rank, as the thread's error record says: the others end.
void rondo__communicator_break(rondo_communicator *communicator);
rondo_device *rondo__communicator_get_device(const rondo_communicator *communicator);
int32_t rondo__communicator_get_rank(const rondo_communicator *communicator);
int32_t rondo__communicator_get_size(const rondo_communicator *communicator);

// ---- for kernels

// On the host: now, in host memory. Outputs may be inputs.
//
// Errors:    UNAVAILABLE, MISMATCH, NO_MEMORY.
// Threads:   any; one at a time goes on.
RONDO_MUST_USE rondo_status rondo__communicator_reduce(rondo_communicator *communicator,
                                                       const rondo__reduction *reduction,
                                                       const void *const *inputs,
                                                       void *const *outputs);
// On a GPU: puts it on the stream.
//
// Errors:    DRIVER, UNAVAILABLE.
RONDO_MUST_USE rondo_status rondo__communicator_put(rondo_communicator *communicator,
                                                    const rondo__reduction *reduction,
                                                    const void *const *inputs, void *const *outputs,
                                                    rondo_stream *stream);

// Whether a tensor that may be split is: `part` has its elements.
void rondo__communicator_set_split(const rondo_communicator *communicator, bool may,
                                   rondo__reduction_part *part);
// The elements of a tensor that this rank updates: all where it is not split, or there is no
// communicator.
void rondo__communicator_get_part(const rondo_communicator *communicator, size_t count,
                                  size_t *out_first, size_t *out_count);

// ---- within the room

// Gives the communicator its number, and lets this thread serve it (rank_runs.c).
//
// Errors:    STATE (it serves another), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__communicator_enter(rondo_communicator *communicator);
void rondo__communicator_leave(const rondo_communicator *communicator);

// The first loss wins: waiting threads are woken, and the transport's work ends (rank_watch.c).
void rondo__communicator_lose(rondo_communicator *communicator, const char *why);
// Something broke, and the watch knows more, soon: waits for that.
//
// Errors:    UNAVAILABLE, MISMATCH.
RONDO_MUST_USE rondo_status rondo__communicator_explain(rondo_communicator *communicator,
                                                        const char *what);
// A run has begun, which a loss may concern; under the lock.
void rondo__watch_apply_loss(rondo_communicator *communicator);
RONDO_MUST_USE rondo_status rondo__watch_start(rondo_communicator *communicator);
void rondo__watch_stop(rondo_communicator *communicator);
// Says goodbye to the others.
void rondo__watch_leave(rondo_communicator *communicator);
// Says what `run` does to rank 0, or decides, being rank 0; under the lock.
void rondo__watch_announce(rondo_communicator *communicator, uint64_t run, uint64_t hash,
                           const char *text);
