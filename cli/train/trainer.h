// train/trainer.h — a training: model, data, step and where it stands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "command.h"
#include "train_data.h"
#include "train_program.h"
#include "train_ranks.h"
#include "train_report.h"
#include "train_settings.h"

enum { CLI_TRAIN_PATH_BYTES = 4096, CLI_TRAIN_FEEDS_MAX = 256 };

typedef struct cli_trainer {
    const cli_command *command;
    cli_train_settings *settings;
    const char *path;
    rondo_program *model, *program;
    rondo_device *device;
    rondo_executor *executor;
    cli_train_data data;
    cli_train_plan plan;
    cli_train_ranks ranks;
    char checkpoint[CLI_TRAIN_PATH_BYTES];
    int64_t runs;  // before this process, and in it
    cli_train_line loss, validation;
    char told[CLI_TRAIN_SETTINGS_BYTES];  // what must be as before, and at all ranks
    double started_at;
    int64_t started_runs;
    char summary[400];
} cli_trainer;

// Takes what the options ask for; what misfits is refused before anything is written. Say the exit
// status.
int cli_trainer_open(cli_trainer *trainer);
void cli_trainer_close(cli_trainer *trainer);  // also where it was not opened whole
// All epochs that are left, and what is written behind them.
int cli_trainer_run(cli_trainer *trainer);

// What --dtype stands for.
rondo_dtype cli_trainer_get_dtype(const cli_trainer *trainer);
