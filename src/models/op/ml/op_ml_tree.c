// op/ml/op_ml_tree.c — TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "op/ml/ml_scores.h"
#include "op/ml/ml_table.h"
#include "op/ml/tree_ensemble.h"
#include "op/op.h"
#include "op/support.h"

static rondo_status infer_table(const rondo__infer *infer, int64_t *out_rows,
                                rondo__tree_shape *out_shape) {
    int64_t columns;
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, out_rows, &columns));
    RETURN_IF_ERROR(rondo__tree_ensemble_measure(infer->op, out_shape));
    if (out_shape->feature_count > columns) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the trees ask for %lld features, a row has %lld",
                             (long long)out_shape->feature_count, (long long)columns);
    }
    return RONDO_STATUS_OK;
}

// Version 5 gives what it takes; the older op gives f32.
static rondo_status infer_regressor(rondo__infer *infer) {
    bool is_split = infer->op->def->id == RONDO__ML_TreeEnsemble;
    rondo_dtype dtype = infer->inputs[0].dtype;
    rondo__tree_shape tree;
    int64_t rows;
    if (is_split && !rondo__dtype_is_float(dtype)) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    RETURN_IF_ERROR(infer_table(infer, &rows, &tree));
    rondo_shape shape = {.rank = 2, .extent = {rows, tree.target_count}};
    return rondo__infer_set_output(infer, 0, is_split ? dtype : RONDO_DTYPE_F32, &shape);
}

static rondo_status infer_classifier(rondo__infer *infer) {
    rondo__tree_shape tree;
    int64_t rows;
    rondo__ml_labels labels =
        rondo__ml_get_labels(infer->op, "classlabels_strings", "classlabels_int64s");
    RETURN_IF_ERROR(infer_table(infer, &rows, &tree));
    rondo_dtype label_dtype = rondo__ml_get_label_dtype(&labels);
    if (labels.count == 1 && label_dtype == RONDO_DTYPE_STRING) {
        return rondo__op_fail_unsupported(infer->op, "attribute classlabels_strings of one label");
    }
    rondo_shape shape = {.rank = 1, .extent = {rows}};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, label_dtype, &shape));
    shape.rank = 2;
    shape.extent[1] = tree.target_count;
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &shape);
}

static rondo_status compute_trees(rondo__compute *compute) {
    bool is_classifier = compute->op->def->id == RONDO__ML_TreeEnsembleClassifier;
    size_t score_output = is_classifier ? 1 : 0;
    rondo__tree_ensemble *ensemble;
    void *labels = NULL;
    void *scores = NULL;
    rondo_dtype score_dtype = RONDO_DTYPE_F32;
    if (is_classifier && rondo__compute_wants_output(compute, 0)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &labels));
    }
    if (rondo__compute_wants_output(compute, score_output)) {
        RETURN_IF_ERROR(rondo__compute_get_inferred(compute, score_output, &scores));
        score_dtype = compute->inferred[score_output].dtype;
    }
    RETURN_IF_ERROR(rondo__tree_ensemble_create(compute->op, &ensemble));
    rondo_status status = rondo__tree_ensemble_apply(ensemble, compute->op, compute->inputs[0],
                                                     labels, score_dtype, scores);
    rondo__tree_ensemble_destroy(ensemble);
    return status;
}

#define NODE_ATTRIBUTES                                                                            \
    "nodes_falsenodeids", "nodes_featureids", "nodes_hitrates", "nodes_missing_value_tracks_true", \
        "nodes_modes", "nodes_truenodeids", "post_transform"
#define LEGACY_ATTRIBUTES \
    NODE_ATTRIBUTES, "nodes_nodeids", "nodes_treeids", "nodes_values", "base_values"
#define TENSOR_ATTRIBUTES \
    "base_values_as_tensor", "nodes_hitrates_as_tensor", "nodes_values_as_tensor"
#define CLASS_ATTRIBUTES                                                                  \
    "class_ids", "class_nodeids", "class_treeids", "class_weights", "classlabels_int64s", \
        "classlabels_strings"
#define TARGET_ATTRIBUTES                                                                \
    "aggregate_function", "n_targets", "target_ids", "target_nodeids", "target_treeids", \
        "target_weights"

static const char *const classifier_attributes[] = {LEGACY_ATTRIBUTES, CLASS_ATTRIBUTES, NULL};
static const char *const classifier_3_attributes[] = {
    LEGACY_ATTRIBUTES, TENSOR_ATTRIBUTES, CLASS_ATTRIBUTES, "class_weights_as_tensor", NULL};
static const char *const regressor_attributes[] = {LEGACY_ATTRIBUTES, TARGET_ATTRIBUTES, NULL};
static const char *const regressor_3_attributes[] = {
    LEGACY_ATTRIBUTES, TENSOR_ATTRIBUTES, TARGET_ATTRIBUTES, "target_weights_as_tensor", NULL};
static const char *const ensemble_attributes[] = {NODE_ATTRIBUTES,
                                                  "aggregate_function",
                                                  "leaf_targetids",
                                                  "leaf_weights",
                                                  "membership_values",
                                                  "n_targets",
                                                  "nodes_falseleafs",
                                                  "nodes_splits",
                                                  "nodes_trueleafs",
                                                  "tree_roots",
                                                  NULL};

#define LAST RONDO__ML_VERSION_MAX

const rondo__op_def rondo__op_table_ml_tree[] = {
    RONDO_ML_ENTRY(TreeEnsemble, 5, LAST, 1, 1, 1, ensemble_attributes, infer_regressor,
                   compute_trees, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED}),
    RONDO_ML_ENTRY(TreeEnsembleClassifier, 1, 2, 1, 1, 2, classifier_attributes, infer_classifier,
                   compute_trees, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED},
                   .makes_strings = true),
    RONDO_ML_ENTRY(TreeEnsembleClassifier, 3, LAST, 1, 1, 2, classifier_3_attributes,
                   infer_classifier, compute_trees, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED},
                   .makes_strings = true),
    RONDO_ML_ENTRY(TreeEnsembleRegressor, 1, 2, 1, 1, 1, regressor_attributes, infer_regressor,
                   compute_trees, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED}),
    RONDO_ML_ENTRY(TreeEnsembleRegressor, 3, LAST, 1, 1, 1, regressor_3_attributes, infer_regressor,
                   compute_trees, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED}),
    {0},
};
