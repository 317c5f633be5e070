// support/models/code_programs.h — programs built in code, for tests of the builder, of saved
// files, and of failing allocations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "rondo/builder.h"
#include "rondo/executor.h"

typedef struct code_program {
    const char *name;
    rondo_status (*fill)(rondo_builder *builder);  // all but the end
} code_program;

// Perceptron, convolutions, the calls for groups of nodes, control flow; ended by a NULL name.
extern const code_program code_programs[];

// The whole: what fails leaves nothing behind.
rondo_status code_program_build(const code_program *row, rondo_program **out_program);

// Numbers that look like data: element `index` of every input and parameter.
float code_program_get_number(size_t index);

enum { CODE_PROGRAM_OUTPUTS_MAX = 16, CODE_PROGRAM_EXTENT = 3 };

// Runs a program once on the host with such numbers (whole numbers: 0, 1, 2 in turn; bools: true),
// unknown extents being CODE_PROGRAM_EXTENT. Fetches all outputs.
void code_program_run(rondo_program *program, rondo_tensor *out_tensors, size_t *out_count);

// The same with feeds of the caller's.
void code_program_run_with(rondo_program *program, const rondo_binding *feeds, size_t feed_count,
                           rondo_tensor *out_tensors, size_t *out_count);

// Fails the running test unless they are the same, bit for bit, strings and sequences, too.
void code_program_compare(const rondo_tensor *a, const rondo_tensor *b);
