// top_classes.h — the largest scores of an output, and what they stand for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/tensor.h"

enum { CLI_TOP_MAX = 100, CLI_TOP_LINE_BYTES = 300 };

// One line of a file for each class.
typedef struct cli_labels {
    size_t count;
    char **names;
    char *text;
} cli_labels;

// Reads the file. On failure prints why. NULL: there are none.
//
// Ownership: free with cli_labels_free, also after a failure.
bool cli_labels_read(const char *path, cli_labels *out_labels);
void cli_labels_free(cli_labels *labels);

// What `tensor` holds as scores: rows of so many classes, along its last axis of more than one
// element. 0 classes: it holds none.
typedef struct cli_scores {
    const rondo_tensor *tensor;
    const cli_labels *labels;     // of as many classes, or NULL
    const rondo_tensor *columns;  // names that the model has, or NULL
    size_t row_count;
    size_t class_count;
} cli_scores;

cli_scores cli_scores_find(const rondo_tensor *tensor);

// Puts the classes of the `limit` largest scores of a row into `classes`, the largest first; NaN is
// none. Returns how many there are. `limit` is at most CLI_TOP_MAX.
size_t cli_scores_rank(const cli_scores *scores, size_t row, size_t limit, size_t *classes);

// "281 tabby cat 12.5 (softmax 0.93)"; softmax where the row is no distribution yet. Returns `line`
// (CLI_TOP_LINE_BYTES).
char *cli_scores_format(const cli_scores *scores, size_t row, size_t class_index, char *line);
