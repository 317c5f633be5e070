// support/cases/interpret.h — a program run op by op with the plain C references: the oracle for
// passes and executors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

// Runs a program without control flow. inputs and outputs in the program's order; outputs are
// allocated.
//
// Errors:    what the ops report; UNSUPPORTED for control flow.
rondo_status interpret_program(const rondo_program *program, const rondo_tensor *inputs,
                               rondo_tensor *outputs);

// The largest |a - b| / (1 + |b|) over all elements as doubles; infinity when types or shapes
// differ, exactly one side is not a number, or a string differs. Of sequences and optionals the
// largest of their items.
double compare_tensors(const rondo_tensor *a, const rondo_tensor *b);

// How many nodes of a program are this op, and the first of them, NULL where there is none.
size_t interpret_count(const rondo_program *program, rondo__op_id op);
const rondo__node *interpret_find(const rondo_program *program, rondo__op_id op);
