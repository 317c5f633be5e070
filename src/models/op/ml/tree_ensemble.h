// op/ml/tree_ensemble.h — decision trees of ai.onnx.ml, checked and laid flat once, then walked for
// each row.
//
// The three ops describe trees in two ways: TreeEnsembleClassifier and TreeEnsembleRegressor list
// nodes with a tree's and a node's number, TreeEnsemble (version 5) lists inner nodes and leaves
// apart. Both become one array of nodes:
//
//     inner node   feature  mode  threshold     yes ─> node   no ─> node
//     leaf         first and number of its weights, each for one target
//
// Trees are known to have no cycle, and features to lie within the row, before a row is walked.
// Sums are made in double, so that their order does not matter much.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"

typedef struct rondo__tree_ensemble rondo__tree_ensemble;

// What is known without laying the trees out.
typedef struct rondo__tree_shape {
    int64_t target_count;
    int64_t feature_count;  // the greatest feature that is asked for, and one
} rondo__tree_shape;

// Checks the lists' lengths and what can be said of each entry by itself.
//
// Errors:    BAD_DATA, UNSUPPORTED (attribute values).
RONDO_MUST_USE rondo_status rondo__tree_ensemble_measure(const rondo__op *op,
                                                         rondo__tree_shape *out_shape);

// Lays the trees out.
//
// Errors:    BAD_DATA (a node that is not there, a cycle), UNSUPPORTED, NO_MEMORY.
// Ownership: free with rondo__tree_ensemble_destroy. Keeps nothing of `op`.
RONDO_MUST_USE rondo_status rondo__tree_ensemble_create(const rondo__op *op,
                                                        rondo__tree_ensemble **out_ensemble);
void rondo__tree_ensemble_destroy(rondo__tree_ensemble *ensemble);  // NULL is fine

// The whole op for the rows of `x`: output 0 (labels, for the classifier), output 1 (its scores).
// `labels` is NULL for regressors.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__tree_ensemble_apply(const rondo__tree_ensemble *ensemble,
                                                       const rondo__op *op, const rondo_tensor *x,
                                                       void *labels, rondo_dtype score_dtype,
                                                       void *scores);
