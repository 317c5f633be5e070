// test_case.h — one ONNX test directory: model.onnx and test_data_set_N with input_K.pb,
// output_K.pb.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "rondo/models.h"

typedef enum cli_outcome { CLI_PASSED, CLI_FAILED_TEST, CLI_SKIPPED } cli_outcome;

typedef struct cli_test_settings {
    rondo_device *device;
    rondo_dtype dtype;
    bool has_dtype;         // it was said
    uint32_t thread_count;  // 0: the default
    uint64_t memory_limit;  // bytes; 0: the default
    bool allow_newer_opset;
    double relative;  // tolerances; NaN: what the test or ONNX says (test_tolerance.h)
    double absolute;
    size_t data_set_limit;  // 0: all
    cli_list place;         // "pattern=place"
    cli_list keep_f32;      // patterns; with f16 only
    cli_list use_f16;
} cli_test_settings;

typedef struct cli_test_result {
    cli_outcome outcome;
    double eager_error;  // largest |difference| over all outputs and data sets
    double replay_error;
    bool was_replayed;         // most ops were in replayed graphs
    bool was_partly_replayed;  // some were
    uint64_t node_count;       // nodes of the captured graphs
    uint64_t bypassed_count;   // ops that ran between them
    char reason[640];          // why it failed or was skipped
    char diagnosis[1000];      // where f16 loses the precision and what helps; empty otherwise
} cli_test_result;

// Runs every data set of `directory`, eagerly and replayed.
void cli_test_run(const char *directory, const cli_test_settings *settings,
                  cli_test_result *out_result);
