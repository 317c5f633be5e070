// op/ml/tree_walk.c — rows of features walk the trees; their scores, and the classes of
// classifiers.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op/ml/ml_scores.h"
#include "op/ml/tree_nodes.h"
#include "op/support.h"

// ---- walking ----------------------------------------------------------------------------------

static bool is_member(const rondo__tree_ensemble *e, const rondo__tree_node *node, double x) {
    const double *members = e->members + node->first_member;
    for (int32_t i = 0; i < node->member_count; ++i) {
        if (members[i] == x) {
            return true;
        }
    }
    return false;
}

static bool is_other_yes(const rondo__tree_ensemble *e, const rondo__tree_node *node, double x) {
    if (node->missing_is_yes && isnan(x)) {
        return true;
    }
    switch (node->mode) {
        case RONDO__TREE_LT:
            return x < node->threshold;
        case RONDO__TREE_GTE:
            return x >= node->threshold;
        case RONDO__TREE_GT:
            return x > node->threshold;
        case RONDO__TREE_EQ:
            return x == node->threshold;
        case RONDO__TREE_NEQ:
            return x != node->threshold;
        default:
            return is_member(e, node, x);
    }
}

// Most trees ask "at most" alone.
static inline bool is_yes(const rondo__tree_ensemble *e, const rondo__tree_node *node, double x) {
    return node->mode == RONDO__TREE_LEQ
               ? x <= node->threshold || (node->missing_is_yes && isnan(x))
               : is_other_yes(e, node, x);
}

static inline double join_score(rondo__tree_join join, bool has_score, double score,
                                double weight) {
    if (join == RONDO__TREE_JOIN_SUM || join == RONDO__TREE_JOIN_AVERAGE) {
        return score + weight;
    }
    bool takes_new = join == RONDO__TREE_JOIN_MIN ? weight < score : weight > score;
    return takes_new || !has_score ? weight : score;
}

// Adds what one tree says of a row.
static inline void run_tree(const rondo__tree_ensemble *e, int32_t root, const double *row,
                            double *scores, bool *has_score) {
    const rondo__tree_node *node = &e->nodes[root];
    while (node->mode != RONDO__TREE_LEAF) {
        node = &e->nodes[is_yes(e, node, row[node->feature]) ? node->yes : node->no];
    }
    for (int32_t i = 0; i < node->no; ++i) {
        const rondo__leaf_weight *w = &e->weights[node->yes + i];
        scores[w->target] = join_score(e->join, has_score[w->target], scores[w->target], w->weight);
        has_score[w->target] = true;
    }
}

// Walks all trees with `count` rows of features and joins what they say for each target, base
// values included. has_score[t] tells whether any leaf spoke of target t. A tree meets all rows
// while the cache holds it.
static void run_trees(const rondo__tree_ensemble *e, const double *rows, int64_t columns,
                      int64_t count, double *scores, bool *has_score) {
    const size_t targets = e->target_count;
    memset(scores, 0, (size_t)count * targets * sizeof *scores);
    memset(has_score, 0, (size_t)count * targets * sizeof *has_score);
    for (size_t r = 0; r < e->root_count; ++r) {
        for (int64_t k = 0; k < count; ++k) {
            run_tree(e, e->roots[r], rows + k * columns, scores + (size_t)k * targets,
                     has_score + (size_t)k * targets);
        }
    }
    for (size_t i = 0; i < (size_t)count * targets; ++i) {
        scores[i] /= e->join == RONDO__TREE_JOIN_AVERAGE ? (double)e->root_count : 1.0;
        if (e->base_count == targets) {
            scores[i] += e->bases[i % targets];
        }
        scores[i] = e->rounds_scores ? (double)(float)scores[i] : scores[i];
    }
}

// ---- results ----------------------------------------------------------------------------------

// Two classes of which the trees know one score only: that of class 0 stands for the second class.
static bool is_split_score(const rondo__tree_ensemble *e) {
    return e->target_count == 2 && e->speaks_of[0] && !e->speaks_of[1];
}

static size_t split_score(const rondo__tree_ensemble *e, rondo__ml_transform transform,
                          double *scores) {
    if (e->base_count == 1) {
        scores[0] += e->bases[0];
    } else if (e->base_count == 2) {
        scores[0] += e->bases[1] - e->bases[0];  // of the class that the score is for
    }
    double score = scores[0];
    if (e->are_weights_positive || transform == RONDO__ML_LOGISTIC ||
        transform == RONDO__ML_PROBIT) {
        rondo__ml_split_score(transform, scores);
    } else {
        scores[0] = -score;
        scores[1] = score;
    }
    return score > (e->are_weights_positive ? 0.5 : 0.0);
}

// The class of a row, and its scores as they are given out. A class without a weight in this row's
// leaves is not chosen, unless there are base values for all classes.
static size_t classify(const rondo__tree_ensemble *e, rondo__ml_transform transform, double *scores,
                       const bool *has_score) {
    size_t chosen = SIZE_MAX;
    if (is_split_score(e)) {
        return split_score(e, transform, scores);
    }
    if (e->target_count == 2 && e->base_count == 1 && e->speaks_of[0]) {
        scores[0] += e->bases[0];
    }
    if (e->target_count == 1) {
        chosen = scores[0] > 0.0;
    } else if (e->target_count == 2 && !e->speaks_of[0]) {
        chosen = scores[1] > (e->are_weights_positive ? 0.5 : 0.0);
    } else {
        for (size_t t = 0; t < e->target_count; ++t) {
            bool is_candidate = has_score[t] || e->base_count == e->target_count;
            if (is_candidate && (chosen == SIZE_MAX || scores[t] > scores[chosen])) {
                chosen = t;
            }
        }
        chosen = chosen == SIZE_MAX ? 0 : chosen;
    }
    rondo__ml_transform_row(transform, scores, e->target_count);
    return chosen;
}

rondo_status rondo__tree_ensemble_apply(const rondo__tree_ensemble *e, const rondo__op *op,
                                        const rondo_tensor *x, void *labels,
                                        rondo_dtype score_dtype, void *scores) {
    int64_t columns = x->shape.extent[x->shape.rank - 1];
    int64_t rows = x->shape.rank == 1 ? 1 : x->shape.extent[0];
    rondo__ml_transform transform = rondo__ml_get_transform(op);
    rondo__ml_labels names = rondo__ml_get_labels(op, "classlabels_strings", "classlabels_int64s");
    bool is_classifier = op->def->id == RONDO__ML_TreeEnsembleClassifier;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    // Most rows are short, and then no heap is used for one.
    enum { SHORT = 64, BLOCK = 32 };
    double own[SHORT], *longer = NULL;
    bool own_scores[SHORT], *longer_scores = NULL;
    const int64_t block = rows < BLOCK ? rows : BLOCK;
    const size_t targets = e->target_count;
    if (((uint64_t)columns + targets) * (uint64_t)block > SHORT) {
        longer = rondo__calloc((size_t)block * ((size_t)columns + targets), sizeof *longer);
        longer_scores = rondo__calloc((size_t)block * targets, sizeof *longer_scores);
        if (longer == NULL || longer_scores == NULL) {
            goto free_lists;
        }
    }
    double *read = longer != NULL ? longer : own, *all_sums = read + block * columns;
    bool *all_has_score = longer_scores != NULL ? longer_scores : own_scores;
    status = RONDO_STATUS_OK;
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t place = r % BLOCK;
        if (place == 0) {
            const int64_t count = rows - r < BLOCK ? rows - r : BLOCK;
            for (int64_t k = 0; k < count; ++k) {
                rondo__ml_read_row(x, r + k, columns, read + k * columns);
            }
            run_trees(e, read, columns, count, all_sums, all_has_score);
        }
        double *sums = all_sums + (size_t)place * targets;
        if (!is_classifier) {
            rondo__ml_transform_row(transform, sums, targets);
        } else {
            size_t chosen = classify(e, transform, sums, all_has_score + (size_t)place * targets);
            if (labels != NULL && names.count == 1) {
                ((int64_t *)labels)[r] = (int64_t)chosen;
            } else if (labels != NULL) {
                rondo__ml_write_label(&names, chosen, labels, r);
            }
        }
        if (scores != NULL) {
            size_t bytes = targets * rondo_dtype_get_bytes(score_dtype);
            rondo__convert_elements(RONDO_DTYPE_F64, sums, score_dtype,
                                    (char *)scores + (size_t)r * bytes, targets);
        }
    }

free_lists:
    rondo__free(longer);
    rondo__free(longer_scores);
    return status;
}
