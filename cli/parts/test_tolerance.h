// test_tolerance.h — how far the outputs of a test may be from what is expected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "compare.h"
#include "test_case.h"

// Half precision: an output as a whole may differ by this share of its norm, a single element by
// that share of the output's largest magnitude.
#define CLI_HALF_NORM 2e-2
#define CLI_HALF_SCALE 1e-1

// The tolerance for a model of `op_count` ops without those of bodies. What the settings leave open
// (NaN) stands in the file `data_path` (data.json, as ONNX's own tests have it), or is ONNX's
// default.
cli_tolerance cli_test_choose_tolerance(const rondo_program *program, uint64_t op_count,
                                        const cli_test_settings *settings, const char *data_path);
