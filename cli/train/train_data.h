// train_data.h — the samples that a model is trained with: arrays whose first axis counts them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/models.h"
#include "tensor_file.h"
#include "train_program.h"

typedef struct cli_train_column {
    const char *name;            // of the program's input; borrowed
    const rondo_tensor *tensor;  // all samples; borrowed from the set
    char *batch;                 // room for one batch
} cli_train_column;

typedef struct cli_train_data {
    cli_tensor_set set;
    size_t column_count;  // inputs of the model, then the target
    cli_train_column *columns;
    int64_t sample_count;
    int64_t held_count;         // of these, the last in `order`: not trained with
    const char *target;         // the array's name; borrowed
    int64_t batch, held_batch;  // of samples to train with, and of those held out
    bool drops;                 // the rest of an epoch that fills no batch is left out
    int64_t *order;
    int64_t *shuffled;  // of the ones to train with, this epoch
    uint64_t seed;
} cli_train_data;

// Reads the arrays for the inputs of `model`, and the target's: `target`, or the only one that is
// no input. On failure prints why.
//
// held       the share of samples that is held out, 0 to below 1.
bool cli_train_data_open(const char *path, const rondo_program *model, const char *target,
                         double held, int64_t batch, uint64_t seed, cli_train_data *out_data);
void cli_train_data_close(cli_train_data *data);

// How many samples the model takes at once, by its inputs; -1: as many as are given.
int64_t cli_train_data_find_batch(const rondo_program *model);
// Leaves out what fills no batch; what is held out becomes whole batches of `at_once`, which the
// model takes (a rank's part of a batch), and the others are trained with. False, and printed,
// where no batch is left.
bool cli_train_data_drop_rest(cli_train_data *data, const char *path, int64_t at_once);
// Whether the target has numbers that the loss takes; otherwise prints the first that is none.
//
// result     what is compared with it, as far as the model tells.
bool cli_train_data_check_target(const cli_train_data *data, const char *path, cli_train_loss loss,
                                 const rondo_port *result);
// The first element that is infinite or NaN in `now`, and was a number before; 0: there is none.
double cli_train_data_find_spoilt(const rondo_tensor *before, const rondo_tensor *now);
// A hash of all samples.
uint64_t cli_train_data_hash(const cli_train_data *data);

// Batches of an epoch; the last may be smaller.
int64_t cli_train_data_count(const cli_train_data *data, bool is_held);
// Puts the samples to train with into the order of this epoch: the same each time it is asked.
void cli_train_data_shuffle(cli_train_data *data, int64_t epoch);
// How many samples batch `index` has.
int64_t cli_train_data_measure(const cli_train_data *data, bool is_held, int64_t index);
// Fills feeds, one for each column, with `count` samples of batch `index`, from `first` on.
void cli_train_data_take(cli_train_data *data, bool is_held, int64_t index, int64_t first,
                         int64_t count, rondo_binding *feeds);
// The same, of types and shapes alone.
void cli_train_data_outline(const cli_train_data *data, int64_t count, rondo_binding *feeds);
const cli_train_column *cli_train_data_get_target(const cli_train_data *data);
