// test_precision.h — why a test fails in half precision: the op that loses it, and what helps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "compare.h"
#include "test_case.h"

// A data set that failed; all borrowed.
typedef struct cli_precision_case {
    rondo_program *program;
    const cli_test_settings *settings;
    cli_tolerance tolerance;
    const rondo_binding *feeds;
    size_t feed_count;
    const rondo_tensor *expected;  // one for each output
    size_t expected_count;
} cli_precision_case;

// Writes one or two sentences: whether single precision passes, which op loses the precision, and
// which --keep-f32 make the test pass.
void cli_explain_precision(const cli_precision_case *failed, char *text, size_t text_bytes);
