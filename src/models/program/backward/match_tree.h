// program/backward/match_tree.h — trees of ops as text, for passes that find what gradients emit.
//
//   "Mul(d=Sub(x,ReduceMean(x)),Reciprocal(r))"
//
// A letter is a value: any the first time, the same one afterwards; "d=..." names the value of a
// tree; "_" is any value. An op of ai.onnx has at least the inputs that are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

typedef struct rondo__tree {
    int32_t value[128];  // by letter; only those that the pattern names mean something
    uint64_t named[2];
} rondo__tree;

// Whether the tree above `value` is that of the pattern; letters that `tree` has already are kept.
bool rondo__match_tree(const rondo_program *program, int32_t value, const char *pattern,
                       rondo__tree *tree);

// The whole numbers of a constant, at most RONDO_RANK_MAX; -1: it is none.
int32_t rondo__match_ints(const rondo_program *program, int32_t value, int64_t *out_values);
