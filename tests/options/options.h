// options/options.h — what drawn rounds share: a model with feeds and what they give, a row of
// options, and the calls of a round.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/models.h"

// ---- draws ------------------------------------------------------------------------------------

typedef struct dice {
    uint64_t state;
} dice;

dice dice_make(uint64_t seed, uint64_t index);
uint64_t dice_draw(dice *d, uint64_t below);
// A number from low to high, as likely to lie in each power of two between.
uint64_t dice_draw_size(dice *d, uint64_t low, uint64_t high);

// ---- models -----------------------------------------------------------------------------------

enum { PORTS_MAX = 12, SETS = 3 };

typedef struct feed_set {
    size_t count;
    rondo_binding feeds[PORTS_MAX];
    rondo_status status;  // of a plain run on the host
    rondo_tensor wanted[PORTS_MAX];
} feed_set;

typedef struct subject {
    const char *name;
    rondo_program *program;
    size_t input_count, output_count;
    char inputs[PORTS_MAX][64];
    char outputs[PORTS_MAX][64];
    feed_set sets[SETS];  // of several shapes where the model has symbols
    int state;            // input that may be bound to an output: its index; -1: none
    int state_output;
    bool draws;     // random numbers: results are those of so many runs with one seed
    bool branches;  // by values that f16 may round to another side
} subject;

enum { MODELS = 14 };

// Model number `model`, and what it gives in training or not. A random one follows from the dice,
// as feeds do. Fails the program where that does not work.
void subject_open(subject *s, size_t model, bool training, dice *d);
void subject_close(subject *s);

// ---- options ----------------------------------------------------------------------------------

enum {
    OPTION_MODEL,  // first what is no option, but drawn with them
    OPTION_FAULTS,
    OPTION_STATES,
    OPTION_GRAPHS,
    OPTION_DTYPE,  // with the patterns that only f16 takes
    OPTION_OP_BY_OP,
    OPTION_REFERENCE,
    OPTION_PLANS,
    OPTION_PLAN_BYTES,
    OPTION_THREADS,
    OPTION_MEMORY,
    OPTION_LOOPS,
    OPTION_SELF_CHECK,
    OPTION_STREAM,
    OPTION_TRAINING,
    OPTION_BRANCHES,
    OPTION_PLACE,
    OPTION_NO_FOLDING,
    OPTION_TUNING,
    OPTION_WEIGHTS,
    OPTION_WORKERS,
    OPTION_PROGRESS,
    OPTION_COUNT,
};

// What each of them is in one round.
typedef struct option_row {
    uint8_t level[OPTION_COUNT];
} option_row;

// Rows of which any two levels of two options stand together somewhere, as far as `count` allows.
// Returns how many pairs are missing, of *out_pairs.
size_t option_rows_draw(option_row *rows, size_t count, uint64_t seed, size_t *out_pairs);

void option_row_print(const option_row *row);

typedef struct settings {
    rondo_executor_options options;
    rondo_stream *stream;
    rondo_workers *workers;
    const char *keep[1];
    const char *use[1];
    const char *place[1];
} settings;

void settings_make(settings *s, const option_row *row, rondo_device *device, dice *d);
void settings_free(settings *s);

// ---- a round ----------------------------------------------------------------------------------

// Makes an executor with the options of the row, and calls it. False when something was not as
// promised, which is printed.
bool round_run(rondo_device *device, const option_row *row, uint64_t seed, uint64_t index);
