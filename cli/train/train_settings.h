// train_settings.h — what `rondo train` was told: what of it cannot be, and what a training that
// goes on must have as it was.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "train_program.h"

enum { CLI_TRAIN_STEP_SCHEDULE = 3, CLI_TRAIN_MOMENTUM = 1 };

typedef struct cli_train_settings {
    const char *device, *data, *target, *result, *output, *checkpoint, *report;
    int loss, optimizer, schedule, dtype, graphs;
    double rate, momentum, decay, clip_norm, clip_value, held, least, step_factor;
    uint64_t epochs, batch, warmup, accumulate, rank, seed, thread_count, step_epochs;
    cli_list train, recompute, rows;
    bool resumes, is_quiet, shards, sends_half;
    bool has_batch, has_held;  // given, not the default
} cli_train_settings;

// For cli_parse: options that were not given are told from those that were.
extern const cli_train_settings cli_train_settings_start;

// Puts defaults where nothing was given, and prints the first option that cannot be, or does not go
// with another. Returns CLI_DONE or CLI_MISUSE.
int cli_train_settings_check(const cli_command *command, const char *model,
                             cli_train_settings *settings);

// The same, of patterns: those of --train, --lora and --rows name parameters of the model, those of
// --recompute nodes or types of op.
int cli_train_settings_check_patterns(const cli_command *command, const cli_train_settings *s,
                                      const rondo_program *model);

// The same, of counts: the batches of an epoch are known now.
int cli_train_settings_check_counts(const cli_command *command, const cli_train_settings *s,
                                    int64_t batches);

// What the step is made of.
void cli_train_settings_plan(const cli_train_settings *s, int64_t batches, cli_train_plan *plan);

// What is trained with what, beside the options.
typedef struct cli_train_facts {
    uint64_t model_hash, data_hash;
    int64_t samples, batches;     // batches of an epoch
    const char *target, *result;  // names that were chosen
} cli_train_facts;

// Writes what decides the bits of a training, as "name value" a line: what two ranks, or a
// training and the one that it goes on from, must have alike.
void cli_train_settings_describe(const cli_train_settings *s, const cli_train_facts *facts,
                                 char text[CLI_TRAIN_SETTINGS_BYTES]);

// Compares what a checkpoint was made with; a difference is printed, by name. Returns CLI_DONE or
// CLI_MISUSE.
int cli_train_settings_compare(const cli_command *command, const char *checkpoint,
                               const char *before, const char *now);
