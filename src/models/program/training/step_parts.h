// program/training/step_parts.h — a training step while it is appended. Shared by the files of this
// folder: minimize.c (the order of things), parameters.c (variables), step_control.c (numbers that
// steer: steps, rate, loss scale), clip.c (limits of gradients), all_reduce.c and parts.c (several
// ranks), optimizers.c (what becomes of a weight) and rows.c (of rows).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/gradient/gradient_parts.h"
#include "program/program.h"
#include "rondo/training.h"

typedef struct rondo__trained {
    int32_t used;    // what the program reads: f16, perhaps
    int32_t read;    // the same; where ranks have parts of it, what is gathered
    int32_t weight;  // the variable
    int32_t change;  // its gradient; of a table, that of `rows`
    int32_t rows;    // rows that were looked up; NONE: it is no table whose rows change alone
    int32_t ids;     // which ones
    size_t gather;   // the node that did
    int32_t sum;     // where its gradients are added up, with options.accumulate
    bool is_split;   // each rank updates its part
} rondo__trained;

// A factor of F64 in the type of a weight.
typedef struct rondo__narrowed {
    int32_t wide;
    rondo_dtype dtype;
    int32_t value;
} rondo__narrowed;

typedef struct rondo__step {
    rondo__gradient g;  // appends
    rondo_program *program;
    rondo_minimize_options options;
    size_t count;
    rondo__trained *trained;
    int32_t loss;
    int32_t rate_given;  // NONE
    // Scalars:
    int32_t steps;      // I64, taken before this one
    int32_t number;     // F64, of this one, from 1
    int32_t rate;       // F64
    int32_t scale;      // F32; NONE: the loss is not scaled
    int32_t is_full;    // bool: all micro-batches are there; NONE: always
    int32_t is_good;    // bool: all gradients are finite; NONE: not asked
    int32_t bad_ranks;  // F32: how many ranks have gradients that are not; NONE: not asked
    int32_t applies;    // bool: both; NONE: always
    // Adam's factors, F64, made for the first weight and read by all: NONE before.
    int32_t size, root, rest;
    int32_t rows_size;  // of tables whose rows change alone
    rondo__narrowed narrowed[8];
    size_t narrowed_count;
} rondo__step;

// ---- parameters.c

// Chooses what is trained, and makes it variables.
//
// Errors:    INVALID (nothing; a pattern that matches nothing), UNSUPPORTED (rows of such a table).
rondo_status rondo__step_choose(rondo__step *step);
// A variable that starts with equal elements, of the shape of `like` (NONE: a scalar).
int32_t rondo__step_add_state(rondo__step *step, const char *owner, const char *what,
                              rondo_dtype dtype, int32_t like, double start);
int32_t rondo__step_add_shaped_state(rondo__step *step, const char *owner, const char *what,
                                     rondo_dtype dtype, const rondo_shape *shape, double start);
// What a variable is after the run.
void rondo__step_update(rondo__step *step, int32_t variable, int32_t value);
// The same, where the step applies; otherwise it stays.
void rondo__step_update_if(rondo__step *step, int32_t condition, int32_t variable, int32_t value);
// Lets norms of batches, which keep their statistics as parameters, go on with them.
void rondo__step_train_norms(rondo__step *step);
// Gives a value another name, by which callers find it.
void rondo__step_name(rondo__step *step, int32_t value, const char *name);

// ---- step_control.c

void rondo__step_count(rondo__step *step);
void rondo__step_find_rate(rondo__step *step);
// A factor of F64 in the type of a weight: one Cast for all weights of a type.
int32_t rondo__step_narrow(rondo__step *step, int32_t wide, int32_t weight);
// 1 - beta^number, F64.
int32_t rondo__step_correction(rondo__step *step, double beta);
void rondo__step_start_scale(rondo__step *step);
// Whether the changes are finite, and what becomes of the scale.
void rondo__step_check(rondo__step *step);
// Whether all gradients are finite, a bool.
int32_t rondo__step_find_good(rondo__step *step);

// ---- clip.c

void rondo__step_clip(rondo__step *step);

// ---- buckets.c

// A tensor of a bucket: what ranks average or gather at once.
typedef struct rondo__bucketed {
    size_t at;     // the node that makes or reads it; buckets follow their order
    size_t index;  // among the trained
    size_t bytes;
    rondo_dtype dtype;
} rondo__bucketed;

enum { RONDO__BUCKET_TENSORS = 240 };  // in a node

void rondo__buckets_sort(rondo__bucketed *list, size_t count);
// Where the bucket ends that begins at `first`: one type, at most so many tensors and bytes, but
// for a first tensor that is larger.
size_t rondo__bucket_find_end(const rondo__bucketed *list, size_t count, size_t first,
                              size_t most_tensors, size_t most_bytes);

// ---- all_reduce.c

// Averages the changes over all ranks, where that is asked for.
void rondo__step_average(rondo__step *step);

// Puts the sums over all ranks in place of scalars; `elements`: of the tensors they stand for.
void rondo__step_sum_scalars(rondo__step *step, int32_t *scalars, const int64_t *elements,
                             size_t count);

// ---- parts.c

// Lets each rank have a part of large parameters, where that is asked for.
//
// Errors:    INVALID (a name is taken), NO_MEMORY.
rondo_status rondo__step_split(rondo__step *step);
// Notes which variables those are, and in which each rank adds up its gradients, when all are
// there.
rondo_status rondo__step_name_parts(rondo__step *step);
// Whether what is added behind the step may read a value: of which a rank has its part alone, it
// may not.
//
// Errors:    UNSUPPORTED (it may not).
rondo_status rondo__step_check_reader(const rondo_program *program, int32_t value,
                                      const char *call);

// ---- optimizers.c

void rondo__step_apply(rondo__step *step, const rondo__trained *trained);

// ---- rows.c

// The same for tables of which rows change alone.
void rondo__step_apply_rows(rondo__step *step, const rondo__trained *trained);
