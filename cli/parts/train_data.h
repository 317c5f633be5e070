// train_data.h — the samples that a model is trained with: arrays whose first axis counts them.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CLI_TRAIN_DATA_H
#define RONDO_CLI_TRAIN_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/models.h"
#include "tensor_file.h"

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
    int64_t held_count;  // of these, the last in `order`: not trained with
    int64_t batch;
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

// Batches of an epoch; the last may be smaller.
int64_t cli_train_data_count(const cli_train_data *data, bool is_held);
// Puts the samples to train with into the order of this epoch: the same each time it is asked.
void cli_train_data_shuffle(cli_train_data *data, int64_t epoch);
// How many samples batch `index` has.
int64_t cli_train_data_measure(const cli_train_data *data, bool is_held, int64_t index);
// Fills feeds, one for each column, with `count` samples of batch `index`, from `first` on.
void cli_train_data_take(cli_train_data *data, bool is_held, int64_t index, int64_t first,
                         int64_t count, rondo_binding *feeds);
const cli_train_column *cli_train_data_get_target(const cli_train_data *data);

#endif  // RONDO_CLI_TRAIN_DATA_H
