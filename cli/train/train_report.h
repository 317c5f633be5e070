// train_report.h — how training went, as a page with a picture of the loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_train_point {
    double step;
    double value;
} cli_train_point;

typedef struct cli_train_line {
    size_t count, capacity;
    cli_train_point *points;
} cli_train_line;

// False, and printed, when memory is exhausted.
bool cli_train_line_add(cli_train_line *line, double step, double value);
void cli_train_line_free(cli_train_line *line);

typedef struct cli_train_report {
    const char *model;    // shown escaped
    const char *summary;  // likewise
    const cli_train_line *loss;
    const cli_train_line *validation;
} cli_train_report;

// Writes the page; `data` is a cli_train_report. False when the file cannot be written.
bool cli_train_report_write(void *data, FILE *file);
