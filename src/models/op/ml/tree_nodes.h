// op/ml/tree_nodes.h — trees as they are laid out: one array of nodes, leaves among them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/ml/tree_ensemble.h"

typedef enum rondo__tree_mode {  // by the numbers of TreeEnsemble, then our own
    RONDO__TREE_LEQ,
    RONDO__TREE_LT,
    RONDO__TREE_GTE,
    RONDO__TREE_GT,
    RONDO__TREE_EQ,
    RONDO__TREE_NEQ,
    RONDO__TREE_MEMBER,
    RONDO__TREE_LEAF,
    RONDO__TREE_UNKNOWN,
} rondo__tree_mode;

typedef struct rondo__tree_node {
    double threshold;
    int32_t feature;
    uint8_t mode;
    bool missing_is_yes;
    int32_t yes;  // node; of a leaf the first of its weights; of a member test see `first_member`
    int32_t no;   // node; of a leaf the number of its weights
    int32_t first_member;
    int32_t member_count;
} rondo__tree_node;

typedef struct rondo__leaf_weight {
    int32_t target;
    double weight;
} rondo__leaf_weight;

typedef enum rondo__tree_join {
    RONDO__TREE_JOIN_AVERAGE,
    RONDO__TREE_JOIN_SUM,
    RONDO__TREE_JOIN_MIN,
    RONDO__TREE_JOIN_MAX,
    RONDO__TREE_JOIN_UNKNOWN
} rondo__tree_join;

struct rondo__tree_ensemble {
    size_t node_count;
    rondo__tree_node *nodes;
    size_t weight_count;
    rondo__leaf_weight *weights;
    size_t root_count;
    int32_t *roots;
    double *members;
    size_t target_count;
    rondo__tree_join join;
    size_t base_count;
    double *bases;
    bool are_weights_positive;
    bool speaks_of[2];   // of targets 0 and 1
    bool rounds_scores;  // to f32, which the legacy ops give: ties are ties of what is given out
};
