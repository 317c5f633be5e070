// op/ml/ml_scores.h — what the classifiers and regressors of ai.onnx.ml share: scores and labels.
//
// ONNX says little of how scores become results; where it is silent, this does what ONNX Runtime
// does, which is what converters test their models with: a transform other than PROBIT leaves a row
// of a single score alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"

typedef enum rondo__ml_transform {  // by the numbers of TreeEnsemble
    RONDO__ML_NONE,
    RONDO__ML_SOFTMAX,
    RONDO__ML_LOGISTIC,
    RONDO__ML_SOFTMAX_ZERO,
    RONDO__ML_PROBIT,
    RONDO__ML_UNKNOWN,
} rondo__ml_transform;

// The attribute post_transform, a word or a number; NONE when it is absent.
rondo__ml_transform rondo__ml_get_transform(const rondo__op *op);
// UNSUPPORTED when it is none of the five.
RONDO_MUST_USE rondo_status rondo__ml_check_transform(const rondo__op *op);

double rondo__ml_logistic(double x);
// Transforms a row of scores in place. SOFTMAX_ZERO is a softmax in which zeros stay zero.
//
// Source:    Winitzki, A handy approximation for the error function and its inverse, 2008 (PROBIT).
void rondo__ml_transform_row(rondo__ml_transform transform, double *scores, size_t count);
// Of one score s makes the scores of two classes: [1 - s, s] or, for LOGISTIC, its values of -s and
// s.
void rondo__ml_split_score(rondo__ml_transform transform, double scores[2]);

// The labels of a classifier: attributes `strings` and `ints`, of which one is there; without any,
// the classes' numbers.
typedef struct rondo__ml_labels {
    const rondo__attribute *attribute;  // NULL: numbers
    size_t count;
} rondo__ml_labels;

rondo__ml_labels rondo__ml_get_labels(const rondo__op *op, const char *strings, const char *ints);
rondo_dtype rondo__ml_get_label_dtype(const rondo__ml_labels *labels);
// Writes label `index` to element `row` of the output.
void rondo__ml_write_label(const rondo__ml_labels *labels, size_t index, void *output, int64_t row);
// The first of the greatest scores.
size_t rondo__ml_find_greatest(const double *scores, size_t count);

// Rows and columns of a table: a list is one row.
//
// Errors:    UNSUPPORTED (rank above 2, dtype that is not f32, f64, i64, i32), BAD_DATA (scalar).
RONDO_MUST_USE rondo_status rondo__ml_infer_table(const rondo__infer *infer, int64_t *out_rows,
                                                  int64_t *out_columns);
// Reads row `row` of a table as doubles; whole numbers as the nearest f32.
void rondo__ml_read_row(const rondo_tensor *table, int64_t row, int64_t columns, double *out_row);
