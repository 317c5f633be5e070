// train_program.h — the program that trains a model: its loss, and a step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/models.h"

// Of the text that a program keeps as its variable "train.settings".
enum { CLI_TRAIN_SETTINGS_BYTES = 1600 };

typedef enum cli_train_loss { CLI_CROSS_ENTROPY, CLI_MEAN_SQUARE, CLI_BINARY } cli_train_loss;

typedef struct cli_train_plan {
    cli_train_loss loss;
    const char *result;          // output of the model that is compared; NULL: the first
    const rondo_tensor *target;  // type and shape of all of them
    uint64_t rank;               // of adapters; 0: none
    bool has_ranks;              // several train together
    char *settings;              // CLI_TRAIN_SETTINGS_BYTES
    rondo_minimize_options step;
} cli_train_plan;

// Whether the loss takes numbers of the target's type; otherwise prints why.
bool cli_train_program_check_target(const cli_train_plan *plan);

// The model with "train.target" as another input, and the output "train.loss"; of classes also
// "train.hits", how many were right. On failure prints why.
bool cli_train_program_measure(const rondo_program *model, const cli_train_plan *plan,
                               rondo_program **out_program);

// The same with a step, and two variables: "train.run", which counts runs, and "train.settings", so
// that a checkpoint tells what it was made with. Of several ranks, loss and
// hits are of all; further inputs are "train.share" (what this rank's mean counts in theirs) and
// "train.stop" (not 0: it was interrupted), an output "train.stopped", the sum of that. Returns
// CLI_DONE, CLI_FAILED, or, where patterns or the rank of adapters do not fit, CLI_MISUSE.
int cli_train_program_train(const rondo_program *model, const cli_train_plan *plan,
                            rondo_program **out_program);
