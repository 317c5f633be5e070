// support/cases/program_lines.h — small programs in lines of text, computed op by op before and
// after the passes, and the ops that are left.
//
//   "input x f32 2,5"           filled with drawn numbers; "input x f32 2,5 empty": the first row
//                               is -inf
//   "const w u8 5,7"            filled likewise
//   "value c f32 0.5"           one number; "value c f32 0.5 3,1": all elements are
//   "list extents 1,7,1,1"      of i64
//   "ConvInteger pads=1,1,1,1 x w > y"    a node; a list of one number ends with a comma, a number
//                               with a point is a float, an equation a string
//   "output y"
//   "place Conv cpu"            where nodes run
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/passes/passes.h"

enum { PROGRAM_LINES_MAX = 64 };

typedef struct program_row {
    const char *lines[PROGRAM_LINES_MAX];
    // That are left, in order, "Conv@cpu" where one has a place. A ~ in front: results may differ
    // by rounding; a number there: what NonMaxSuppression's limit becomes.
    const char *ops;
} program_row;

// Fails the test where other ops are left, or results differ. `options` NULL: only those passes
// that need no shapes.
void program_rows_check(const program_row *rows, size_t count, const rondo__pass_options *options);
