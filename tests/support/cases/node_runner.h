// support/cases/node_runner.h — runs ONNX test directories op by op on the plain C references,
// without any device: inference, then compute, then a comparison with the expected outputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

typedef enum node_outcome { NODE_PASSED, NODE_FAILED, NODE_SKIPPED } node_outcome;

// Runs every test_data_set_* of `directory` (with its model.onnx). `reason` receives one line when
// the outcome is not NODE_PASSED.
//
// Skipped: what the library refuses as unsupported, and control flow.
node_outcome node_runner_run(const char *directory, char *reason, size_t reason_bytes);
