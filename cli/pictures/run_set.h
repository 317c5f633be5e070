// run_set.h — a model run on each picture of a folder, or each test data set: a line for each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "session.h"
#include "top_classes.h"

typedef struct cli_run_set {
    const cli_model_settings *settings;
    const cli_path_list *items;
    size_t first;      // which the session has read already
    bool is_data;      // folders with input_K.pb; otherwise pictures
    size_t top_count;  // 0: what the outputs hold, in a few words
    const cli_labels *labels;
    // Called behind each run, for the item's files; false ends all.
    bool (*save)(void *data, const char *item);
    void *data;
} cli_run_set;

// Lists the data sets of a folder: those in it, test_data_set_0 and so on, or the folder itself. On
// failure prints why.
//
// Ownership: free *out_list with cli_path_list_free, also after a failure.
bool cli_run_set_find(const char *folder, cli_path_list *out_list);

// Runs all of them. What one item fails by is printed, and the others are run. False: one has
// failed.
bool cli_run_set_all(cli_session *session, const cli_run_set *set);

// Runs, twice where a replayed result is asked for. On failure prints why.
bool cli_run_set_run(cli_session *session);

// Labels that have as many names as `scores` has classes, or NULL.
const cli_labels *cli_labels_of(const cli_labels *labels, const cli_scores *scores);
