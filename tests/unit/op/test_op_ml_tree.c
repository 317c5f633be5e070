// Tree ensembles of ai.onnx.ml. Expected values are ONNX Runtime's, except where it is said.
//
// Tree 0:  x0 <= 0 (or missing) ? (x1 > 0.2 ? leaf 3 : leaf 4) : leaf 2
// Tree 1:  x1 < 1 ? leaf 1 : leaf 2
// SPDX-License-Identifier: Apache-2.0

#include "op/op.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

#define NODE_IDS                                                       \
    "nodes_treeids=I:0,0,0,0,0,1,1,1 nodes_nodeids=I:0,1,2,3,4,0,1,2 " \
    "nodes_featureids=I:0,1,0,0,0,1,0,0 "
#define NODE_TESTS                                                              \
    "nodes_modes=S:BRANCH_LEQ,BRANCH_GT,LEAF,LEAF,LEAF,BRANCH_LT,LEAF,LEAF "    \
    "nodes_truenodeids=I:1,3,0,0,0,1,0,0 nodes_falsenodeids=I:2,4,0,0,0,2,0,0 " \
    "nodes_missing_value_tracks_true=I:1,0,0,0,0,0,0,0"
#define LEGACY_NODES NODE_IDS "nodes_values=F:0,0.2,0,0,0,1,0,0 " NODE_TESTS
#define TWO_CLASSES                                                             \
    " class_treeids=I:0,0,0,0,0,0,1,1,1,1 class_nodeids=I:2,2,3,3,4,4,1,1,2,2 " \
    "class_ids=I:0,1,0,1,0,1,0,1,0,1 classlabels_int64s=I:7,8"
#define TARGETS " target_treeids=I:0,0,0,1,1 target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 "

TEST(test_op_ml_tree__results) {
    const op_row rows[] = {
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " target_treeids=I:0,0,0,1,1 target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 "
         "target_weights=F:0.5,-1,2,0.25,-0.5 n_targets=1",
         "f32[4,1]:-0.75,0.75,2.25,0"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " target_treeids=I:0,0,0,1,1 target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 "
         "target_weights=F:0.5,-1,2,0.25,-0.5 n_targets=1 aggregate_function=s:AVERAGE",
         "f32[4,1]:-0.375,0.375,1.125,0"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " target_treeids=I:0,0,0,1,1 target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 "
         "target_weights=F:0.5,-1,2,0.25,-0.5 n_targets=1 aggregate_function=s:MIN",
         "f32[4,1]:-1,0.25,0.25,-0.5"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " target_treeids=I:0,0,0,1,1 target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 "
         "target_weights=F:0.5,-1,2,0.25,-0.5 n_targets=1 aggregate_function=s:MAX",
         "f32[4,1]:0.25,0.5,2,0.5"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 3, "f64[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES " target_treeids=I:0,0,0,0,0,0,1,1,1,1 target_nodeids=I:2,2,3,3,4,4,1,1,2,2 "
                      "target_ids=I:0,1,0,1,0,1,0,1,0,1 "
                      "target_weights=F:0.5,0.1,-1,0.2,2,-0.3,0.25,0.4,-0.5,0.6 n_targets=2 "
                      "base_values=F:0.1,-0.2 post_transform=s:SOFTMAX",
         "f32[4,2]:0.2592251,0.7407749,0.6341356,0.3658644,0.9205614,0.07943856,0.4013123,"
         "0.5986876"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 3, "f64[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         "nodes_values_as_tensor=T:f64[8]:0,0.2,0,0,0,1,0,0 "
         "target_weights_as_tensor=T:f64[5]:0.5,-1,2,0.25,-0.5 nodes_treeids=I:0,0,0,0,0,1,1,1 "
         "nodes_nodeids=I:0,1,2,3,4,0,1,2 nodes_featureids=I:0,1,0,0,0,1,0,0 "
         "nodes_modes=S:BRANCH_LEQ,BRANCH_GT,LEAF,LEAF,LEAF,BRANCH_LT,LEAF,LEAF "
         "nodes_truenodeids=I:1,3,0,0,0,1,0,0 nodes_falsenodeids=I:2,4,0,0,0,2,0,0 "
         "nodes_missing_value_tracks_true=I:1,0,0,0,0,0,0,0 target_treeids=I:0,0,0,1,1 "
         "target_nodeids=I:2,3,4,1,2 target_ids=I:0,0,0,0,0 n_targets=1",
         "f32[4,1]:-0.75,0.75,2.25,0"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " class_treeids=I:0,0,0,1,1 class_nodeids=I:2,3,4,1,2 class_ids=I:0,0,0,0,0 "
         "class_weights=F:0.5,0.2,0.1,0.3,0.05 post_transform=s:NONE classlabels_int64s=I:7,8",
         "i64[4]:7,8,7,8 f32[4,2]:0.5,0.5,0.2,0.8,0.6,0.4,0.45,0.55"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " class_treeids=I:0,0,0,1,1 class_nodeids=I:2,3,4,1,2 class_ids=I:0,0,0,0,0 "
         "class_weights=F:0.5,-1,2,0.25,-0.5 post_transform=s:LOGISTIC base_values=F:0.3 "
         "classlabels_strings=S:no,yes",
         "string[4]:no,yes,yes,yes f32[4,2]:0.6106393,0.3893607,0.2592251,0.7407749,0.07242644,"
         "0.9275736,0.4255575,0.5744425"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " class_treeids=I:0,0,0,1,1 class_nodeids=I:2,3,4,1,2 class_ids=I:0,0,0,0,0 "
         "class_weights=F:0.5,-1,2,0.25,-0.5 post_transform=s:SOFTMAX classlabels_int64s=I:7,8",
         "i64[4]:7,8,8,7 f32[4,2]:0.75,-0.75,-0.75,0.75,-2.25,2.25,-0,0"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " class_treeids=I:0,0,0,1,1 class_nodeids=I:2,3,4,1,2 class_ids=I:1,1,1,1,1 "
         "class_weights=F:0.5,0.2,0.1,0.3,0.05 post_transform=s:NONE classlabels_int64s=I:7,8",
         "i64[4]:7,8,7,8 f32[4,2]:0,0.5,0,0.8,0,0.4,0,0.55"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "i64[4,2]:-1,0,1,0,0,-1,2,3",
         LEGACY_NODES " class_treeids=I:0,0,0,0,0,0,0,0,0,1,1,1,1,1,1 "
                      "class_nodeids=I:2,2,2,3,3,3,4,4,4,1,1,1,2,2,2 "
                      "class_ids=I:0,1,2,0,1,2,0,1,2,0,1,2,0,1,2 "
                      "class_weights=F:0.5,0.1,0.2,-1,0.2,0.3,2,-0.3,0.1,0.25,0.4,0.2,-0.5,0.6,0.3 "
                      "post_transform=s:SOFTMAX classlabels_strings=S:a,b,c",
         "string[4]:a,a,a,b f32[4,3]:0.7944338,0.09253894,0.1130273,0.4026594,0.3135914,"
         "0.2837493,0.7944338,0.09253894,0.1130273,0.2144784,0.4319065,0.3536151"},
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[4,2]:-1,0.5,1,0.5,nan,-1,2,3",
         LEGACY_NODES
         " class_treeids=I:0,0,0,0,0,0,0,0,0,1,1,1,1,1,1 "
         "class_nodeids=I:2,2,2,3,3,3,4,4,4,1,1,1,2,2,2 "
         "class_ids=I:0,1,2,0,1,2,0,1,2,0,1,2,0,1,2 "
         "class_weights=F:0.5,0.1,0.2,-1,0.2,0.3,2,-0.3,0.1,0.25,0.4,0.2,-0.5,0.6,0.3 "
         "post_transform=s:LOGISTIC base_values=F:0.1,0.2,0.3 classlabels_int64s=I:1,2,3",
         "i64[4]:2,1,1,2 f32[4,3]:0.3429896,0.6899745,0.6899745,0.7005672,0.6681877,0.6681878,"
         "0.9129342,0.5744425,0.6456563,0.5249792,0.7109495,0.6899745"},
        // Both classes have scores: the greater one wins, as in ONNX's reference. (ONNX Runtime
        // asks whether that of the second is above 0.)
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[1,2]:1,0.5",
         LEGACY_NODES TWO_CLASSES " class_weights=F:0.8,0.2,0,0,0,0,0.6,0.1,0,0",
         "i64[1]:7 f32[1,2]:1.4,0.3"},
        // Base values are added for targets of which no leaf speaks, too; the transforms' numbers
        // are the standard's (1 is SOFTMAX).
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[1,2]:1,0.5",
         LEGACY_NODES TARGETS "target_weights=F:0.5,0,0,0.25,0 n_targets=2 base_values=F:1,2",
         "f32[1,2]:1.75,2"},
        {"ai.onnx.ml.TreeEnsemble", 5, "f32[1,1]:0",
         "nodes_splits=T:f32[1]:1 nodes_featureids=I:0 nodes_modes=T:u8[1]:0 nodes_truenodeids=I:0 "
         "nodes_falsenodeids=I:1 nodes_trueleafs=I:1 nodes_falseleafs=I:1 leaf_targetids=I:0,1 "
         "leaf_weights=T:f32[2]:1,2 tree_roots=I:0 n_targets=2 post_transform=1",
         "f32[1,2]:0.73105858,0.26894142"},
    };
    OP_ROWS_CHECK(rows);
}

#define BAD(nodes, expected)                                     \
    {                                                            \
        "ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[1,2]",       \
            nodes TARGETS "target_weights=F:1,1,1,1,1", expected \
    }
#define BAD_SPLIT(splits, tests, leaves, expected)                             \
    {                                                                          \
        "ai.onnx.ml.TreeEnsemble", 5, "f32[1,1]",                              \
            "nodes_featureids=I:0 tree_roots=I:0 " splits " " tests " " leaves \
            " leaf_targetids=I:0,0 leaf_weights=T:f32[2]:1,2",                 \
            expected                                                           \
    }

TEST(test_op_ml_tree__refused) {
    const op_row rows[] = {
        BAD(NODE_IDS "nodes_values=F:0,0 " NODE_TESTS,
            "!BAD_DATA attribute nodes_values has 2 entries, not 8"),
        BAD("nodes_treeids=I:0,0,0,0,0,1,1,1 nodes_nodeids=I:0,1,2,3,3,0,1,2 "
            "nodes_featureids=I:0,1,0,0,0,1,0,0 nodes_values=F:0,0.2,0,0,0,1,0,0 " NODE_TESTS,
            "!BAD_DATA tree 0 has node 3 twice"),
        BAD("nodes_treeids=I:0,0,0,0,0,1,1,1 nodes_nodeids=I:0,1,2,3,4,0,1,2 "
            "nodes_featureids=I:0,5,0,0,0,1,0,0 nodes_values=F:0,0.2,0,0,0,1,0,0 " NODE_TESTS,
            "!BAD_DATA the trees ask for 6 features, a row has 2"),
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[1,2]",
         NODE_IDS "nodes_values=F:0,0.2,0,0,0,1,0,0 "
                  "nodes_modes=S:BRANCH_LEQ,BRANCH_GT,BRANCH_GT,LEAF,LEAF,BRANCH_LT,LEAF,LEAF "
                  "nodes_truenodeids=I:1,0,3,0,0,1,0,0 nodes_falsenodeids=I:2,0,4,0,0,2,0,0 "
                  "target_treeids=I:0 target_nodeids=I:3 target_ids=I:0 target_weights=F:1",
         "!BAD_DATA the trees have a cycle"},
        BAD(NODE_IDS "nodes_values=F:0,0.2,0,0,0,1,0,0 "
                     "nodes_modes=S:BRANCH_LEQ,BRANCH_GT,LEAF,LEAF,LEAF,BRANCH_LT,LEAF,LEAF "
                     "nodes_truenodeids=I:1,9,0,0,0,1,0,0 nodes_falsenodeids=I:2,4,0,0,0,2,0,0",
            "!BAD_DATA tree 0 has no node 9"),
        BAD(NODE_IDS "nodes_values=F:0,0.2,0,0,0,1,0,0 "
                     "nodes_modes=S:BRANCH_LEQ,BRANCH_SO,LEAF,LEAF,LEAF,BRANCH_LT,LEAF,LEAF "
                     "nodes_truenodeids=I:1,3,0,0,0,1,0,0 nodes_falsenodeids=I:2,4,0,0,0,2,0,0",
            "!UNSUPPORTED attribute nodes_modes"),
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[1,2]",
         LEGACY_NODES " target_treeids=I:0 target_nodeids=I:0 target_ids=I:0 target_weights=F:1",
         "!BAD_DATA leaf weight 0 belongs to an inner node"},
        {"ai.onnx.ml.TreeEnsembleRegressor", 1, "f32[1,2]",
         LEGACY_NODES " target_treeids=I:0 target_nodeids=I:2 target_ids=I:3 target_weights=F:1",
         "!BAD_DATA leaf weight 0 is for target 3 of 1"},
        BAD_SPLIT("nodes_splits=T:f32[1]:1", "nodes_modes=T:u8[1]:0",
                  "nodes_truenodeids=I:0 nodes_falsenodeids=I:7 nodes_trueleafs=I:1 "
                  "nodes_falseleafs=I:1",
                  "!BAD_DATA node 0 leads to leaf 7 of 2"),
        BAD_SPLIT("nodes_splits=T:f32[1]:1", "nodes_modes=T:u8[1]:0",
                  "nodes_truenodeids=I:0 nodes_falsenodeids=I:0 nodes_trueleafs=I:1 "
                  "nodes_falseleafs=I:0",
                  "!BAD_DATA the trees have a cycle"),
        BAD_SPLIT("nodes_splits=T:f32[1]:1", "nodes_modes=T:u8[1]:9",
                  "nodes_truenodeids=I:0 nodes_falsenodeids=I:1 nodes_trueleafs=I:1 "
                  "nodes_falseleafs=I:1",
                  "!UNSUPPORTED attribute nodes_modes"),
        BAD_SPLIT("nodes_splits=T:f32[1]:1", "nodes_modes=T:u8[1]:6",
                  "nodes_truenodeids=I:0 nodes_falsenodeids=I:1 nodes_trueleafs=I:1 "
                  "nodes_falseleafs=I:1",
                  "!BAD_DATA membership_values has nothing for node 0"),
        {"ai.onnx.ml.TreeEnsembleClassifier", 1, "f32[1,2]",
         LEGACY_NODES " class_treeids=I:0 class_nodeids=I:2 class_ids=I:0 class_weights=F:1 "
                      "classlabels_strings=S:only",
         "!UNSUPPORTED classlabels_strings of one label"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
