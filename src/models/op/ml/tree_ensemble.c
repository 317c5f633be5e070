// op/ml/tree_ensemble.c — see tree_ensemble.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/ml/tree_ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "op/ml/ml_scores.h"
#include "op/support.h"

typedef enum node_mode {  // by the numbers of TreeEnsemble, then our own
    MODE_LEQ,
    MODE_LT,
    MODE_GTE,
    MODE_GT,
    MODE_EQ,
    MODE_NEQ,
    MODE_MEMBER,
    MODE_LEAF,
    MODE_UNKNOWN,
} node_mode;

typedef struct tree_node {
    double threshold;
    int32_t feature;
    uint8_t mode;
    bool missing_is_yes;
    int32_t yes;  // node; of a leaf the first of its weights; of a member test see `first_member`
    int32_t no;   // node; of a leaf the number of its weights
    int32_t first_member;
    int32_t member_count;
} tree_node;

typedef struct leaf_weight {
    int32_t target;
    double weight;
} leaf_weight;

typedef enum aggregate { JOIN_AVERAGE, JOIN_SUM, JOIN_MIN, JOIN_MAX, JOIN_UNKNOWN } aggregate;

struct rondo__tree_ensemble {
    size_t node_count;
    tree_node *nodes;
    size_t weight_count;
    leaf_weight *weights;
    size_t root_count;
    int32_t *roots;
    double *members;
    size_t target_count;
    aggregate join;
    size_t base_count;
    double *bases;
    bool are_weights_positive;
    bool speaks_of[2];   // of targets 0 and 1
    bool rounds_scores;  // to f32, which the legacy ops give: ties are ties of what is given out
};

enum { COUNT_MAX = INT32_MAX - 1 };

// ---- attributes -------------------------------------------------------------------------------

// A list of numbers: floats, or a tensor in another attribute (name and name_as_tensor).
typedef struct number_list {
    const float *floats;
    const rondo_tensor *tensor;
    size_t count;
} number_list;

static number_list get_numbers(const rondo__op *op, const char *name, const char *tensor_name) {
    number_list list = {0};
    const rondo__attribute *tensor = rondo__op_find(op, tensor_name);
    list.floats = rondo__op_get_floats(op, name, &list.count);
    if (list.count == 0 && tensor != NULL && tensor->kind == RONDO__ATTRIBUTE_TENSOR &&
        rondo__dtype_is_float(tensor->tensor_value.dtype)) {
        list.floats = NULL;
        list.tensor = &tensor->tensor_value;
        list.count = (size_t)rondo_shape_get_count(&list.tensor->shape);
    }
    return list;
}

static double get_number(const number_list *list, size_t index) {
    return list->tensor != NULL ? rondo__tensor_get_number(list->tensor, (int64_t)index)
                                : (double)list->floats[index];
}

typedef struct int_list {
    const int64_t *values;
    size_t count;
} int_list;

static int_list get_ints(const rondo__op *op, const char *name) {
    int_list list;
    list.values = rondo__op_get_ints(op, name, &list.count);
    return list;
}

static rondo_status fail_length(const rondo__op *op, const char *name, size_t count,
                                size_t needed) {
    return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s has %zu entries, not %zu", name, count,
                         needed);
}

// Everything that describes the trees. The legacy ops fill tree and node numbers; TreeEnsemble
// fills the leaves apart.
typedef struct description {
    const rondo__op *op;
    bool is_legacy;
    size_t node_count;
    int_list features, yes, no, missing;
    number_list thresholds;
    const rondo__attribute *mode_words;
    const rondo_tensor *mode_codes;
    int_list trees, numbers;  // legacy
    int_list weight_trees, weight_numbers, weight_targets;
    number_list weights;
    int_list yes_is_leaf, no_is_leaf, roots;  // TreeEnsemble
    number_list members;
    int64_t target_count;
    aggregate join;
    number_list bases;
} description;

static node_mode read_mode(const description *d, size_t node) {
    static const char *const words[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    if (!d->is_legacy) {
        int64_t code = rondo__tensor_get_int(d->mode_codes, (int64_t)node);
        return code >= 0 && code <= MODE_MEMBER ? (node_mode)code : MODE_UNKNOWN;
    }
    const char *text = d->mode_words->strings[node];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) {
        if (words[i][0] != '\0' && strcmp(text, words[i]) == 0) {
            return (node_mode)i;
        }
    }
    return MODE_UNKNOWN;
}

// The lists' lengths.
static rondo_status check_lengths(const description *d) {
    const struct {
        const char *name;
        size_t count;
        size_t needed;
        bool is_optional;
    } rows[] = {
        {"nodes_truenodeids", d->yes.count, d->node_count, false},
        {"nodes_falsenodeids", d->no.count, d->node_count, false},
        {d->is_legacy ? "nodes_values" : "nodes_splits", d->thresholds.count, d->node_count, false},
        {"nodes_missing_value_tracks_true", d->missing.count, d->node_count, true},
        {"nodes_treeids", d->is_legacy ? d->trees.count : d->node_count, d->node_count, false},
        {"nodes_nodeids", d->is_legacy ? d->numbers.count : d->node_count, d->node_count, false},
        {"nodes_trueleafs", d->is_legacy ? d->node_count : d->yes_is_leaf.count, d->node_count,
         false},
        {"nodes_falseleafs", d->is_legacy ? d->node_count : d->no_is_leaf.count, d->node_count,
         false},
        {"leaf weights", d->weights.count, d->weight_targets.count, false},
        {"leaf tree ids", d->is_legacy ? d->weight_trees.count : d->weight_targets.count,
         d->weight_targets.count, false},
        {"leaf node ids", d->is_legacy ? d->weight_numbers.count : d->weight_targets.count,
         d->weight_targets.count, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        if (rows[i].count != rows[i].needed && !(rows[i].is_optional && rows[i].count == 0)) {
            return fail_length(d->op, rows[i].name, rows[i].count, rows[i].needed);
        }
    }
    size_t mode_count = d->is_legacy ? (d->mode_words != NULL ? d->mode_words->count : 0)
                        : d->mode_codes != NULL
                            ? (size_t)rondo_shape_get_count(&d->mode_codes->shape)
                            : 0;
    if (mode_count != d->node_count) {
        return fail_length(d->op, "nodes_modes", mode_count, d->node_count);
    }
    if (d->node_count == 0 || d->node_count > COUNT_MAX || d->weights.count > COUNT_MAX ||
        (!d->is_legacy && d->roots.count == 0)) {
        return RONDO_OP_FAIL(d->op, BAD_DATA, "there are no trees, or too many nodes");
    }
    return RONDO_STATUS_OK;
}

static aggregate read_join(const rondo__op *op) {
    static const char *const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    const rondo__attribute *attribute = rondo__op_find(op, "aggregate_function");
    if (attribute == NULL) {
        return JOIN_SUM;
    }
    if (attribute->kind == RONDO__ATTRIBUTE_INT) {
        return attribute->int_value >= 0 && attribute->int_value < JOIN_UNKNOWN
                   ? (aggregate)attribute->int_value
                   : JOIN_UNKNOWN;
    }
    for (size_t i = 0; attribute->kind == RONDO__ATTRIBUTE_STRING && i < JOIN_UNKNOWN; ++i) {
        if (strcmp(attribute->string_value, names[i]) == 0) {
            return (aggregate)i;
        }
    }
    return JOIN_UNKNOWN;
}

static void describe_legacy(const rondo__op *op, description *d) {
    bool is_classifier = op->def->id == RONDO__ML_TreeEnsembleClassifier;
    const rondo__attribute *modes = rondo__op_find(op, "nodes_modes");
    d->mode_words = modes != NULL && modes->kind == RONDO__ATTRIBUTE_STRINGS ? modes : NULL;
    d->trees = get_ints(op, "nodes_treeids");
    d->numbers = get_ints(op, "nodes_nodeids");
    d->thresholds = get_numbers(op, "nodes_values", "nodes_values_as_tensor");
    d->weight_trees = get_ints(op, is_classifier ? "class_treeids" : "target_treeids");
    d->weight_numbers = get_ints(op, is_classifier ? "class_nodeids" : "target_nodeids");
    d->weight_targets = get_ints(op, is_classifier ? "class_ids" : "target_ids");
    d->weights = is_classifier ? get_numbers(op, "class_weights", "class_weights_as_tensor")
                               : get_numbers(op, "target_weights", "target_weights_as_tensor");
    d->bases = get_numbers(op, "base_values", "base_values_as_tensor");
    rondo__ml_labels labels = rondo__ml_get_labels(op, "classlabels_strings", "classlabels_int64s");
    d->target_count = is_classifier ? (int64_t)labels.count : rondo__op_get_int(op, "n_targets", 1);
}

static void describe_split(const rondo__op *op, description *d) {
    const rondo__attribute *modes = rondo__op_find(op, "nodes_modes");
    d->mode_codes = modes != NULL && modes->kind == RONDO__ATTRIBUTE_TENSOR &&
                            rondo__dtype_is_integer(modes->tensor_value.dtype)
                        ? &modes->tensor_value
                        : NULL;
    d->thresholds = get_numbers(op, "", "nodes_splits");
    d->yes_is_leaf = get_ints(op, "nodes_trueleafs");
    d->no_is_leaf = get_ints(op, "nodes_falseleafs");
    d->roots = get_ints(op, "tree_roots");
    d->weight_targets = get_ints(op, "leaf_targetids");
    d->weights = get_numbers(op, "", "leaf_weights");
    d->members = get_numbers(op, "", "membership_values");
    d->target_count = rondo__op_get_int(op, "n_targets", 1);
}

static rondo_status describe(const rondo__op *op, description *out_description) {
    description d = {.op = op, .is_legacy = op->def->id != RONDO__ML_TreeEnsemble};
    d.features = get_ints(op, "nodes_featureids");
    d.yes = get_ints(op, "nodes_truenodeids");
    d.no = get_ints(op, "nodes_falsenodeids");
    d.missing = get_ints(op, "nodes_missing_value_tracks_true");
    d.node_count = d.features.count;
    d.join = read_join(op);
    if (d.is_legacy) {
        describe_legacy(op, &d);
    } else {
        describe_split(op, &d);
    }
    if (d.join == JOIN_UNKNOWN) {
        return rondo__op_fail_unsupported(op, "attribute aggregate_function");
    }
    RETURN_IF_ERROR(rondo__ml_check_transform(op));
    RETURN_IF_ERROR(check_lengths(&d));
    if (d.target_count < 1 || d.target_count > COUNT_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "there are %lld targets or classes",
                             (long long)d.target_count);
    }
    bool is_split_score = d.target_count == 2 && d.bases.count == 1;
    if (d.bases.count != 0 && d.bases.count != (size_t)d.target_count && !is_split_score) {
        return fail_length(op, "base_values", d.bases.count, (size_t)d.target_count);
    }
    *out_description = d;
    return RONDO_STATUS_OK;
}

rondo_status rondo__tree_ensemble_measure(const rondo__op *op, rondo__tree_shape *out_shape) {
    description d;
    int64_t greatest = -1;
    RETURN_IF_ERROR(describe(op, &d));
    for (size_t i = 0; i < d.node_count; ++i) {
        node_mode mode = read_mode(&d, i);
        if (mode == MODE_UNKNOWN) {
            return rondo__op_fail_unsupported(op, "attribute nodes_modes");
        }
        if (mode != MODE_LEAF) {
            if (d.features.values[i] < 0 || d.features.values[i] > COUNT_MAX) {
                return RONDO_OP_FAIL(op, BAD_DATA, "node %zu asks for feature %lld", i,
                                     (long long)d.features.values[i]);
            }
            greatest = d.features.values[i] > greatest ? d.features.values[i] : greatest;
        }
    }
    for (size_t i = 0; i < d.weight_targets.count; ++i) {
        if (d.weight_targets.values[i] < 0 || d.weight_targets.values[i] >= d.target_count) {
            return RONDO_OP_FAIL(op, BAD_DATA, "leaf weight %zu is for target %lld of %lld", i,
                                 (long long)d.weight_targets.values[i], (long long)d.target_count);
        }
    }
    *out_shape = (rondo__tree_shape){.target_count = d.target_count, .feature_count = greatest + 1};
    return RONDO_STATUS_OK;
}

// ---- laying trees out -------------------------------------------------------------------------

static void fill_inner(const description *d, size_t node, tree_node *out_node) {
    *out_node = (tree_node){
        .threshold = get_number(&d->thresholds, node),
        .feature = (int32_t)d->features.values[node],
        .mode = (uint8_t)read_mode(d, node),
        .missing_is_yes = d->missing.count > 0 && d->missing.values[node] != 0,
    };
}

// Where a node of the legacy ops stands in the lists.
typedef struct node_place {
    int64_t tree;
    int64_t number;
    int32_t index;
} node_place;

static int compare_places(const void *a_, const void *b_) {
    const node_place *a = a_;
    const node_place *b = b_;
    int order = (a->tree > b->tree) - (a->tree < b->tree);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

static rondo_status find_node(const description *d, const node_place *places, int64_t tree,
                              int64_t number, int32_t *out_index) {
    const node_place wanted = {.tree = tree, .number = number};
    const node_place *found =
        bsearch(&wanted, places, d->node_count, sizeof *places, compare_places);
    if (found == NULL) {
        return RONDO_OP_FAIL(d->op, BAD_DATA, "tree %lld has no node %lld", (long long)tree,
                             (long long)number);
    }
    *out_index = found->index;
    return RONDO_STATUS_OK;
}

static rondo_status sort_places(const description *d, node_place *places) {
    for (size_t i = 0; i < d->node_count; ++i) {
        places[i] = (node_place){d->trees.values[i], d->numbers.values[i], (int32_t)i};
    }
    qsort(places, d->node_count, sizeof *places, compare_places);
    for (size_t i = 1; i < d->node_count; ++i) {
        if (compare_places(&places[i - 1], &places[i]) == 0) {
            return RONDO_OP_FAIL(d->op, BAD_DATA, "tree %lld has node %lld twice",
                                 (long long)places[i].tree, (long long)places[i].number);
        }
    }
    return RONDO_STATUS_OK;
}

// Gives each leaf its weights, in their order.
static rondo_status place_weights(const description *d, const node_place *places,
                                  rondo__tree_ensemble *e) {
    int32_t *owners = rondo__calloc(d->weights.count, sizeof *owners);
    if (owners == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < d->weights.count && status == RONDO_STATUS_OK; ++i) {
        status = find_node(d, places, d->weight_trees.values[i], d->weight_numbers.values[i],
                           &owners[i]);
        if (status == RONDO_STATUS_OK && e->nodes[owners[i]].mode != MODE_LEAF) {
            status = RONDO_OP_FAIL(d->op, BAD_DATA, "leaf weight %zu belongs to an inner node", i);
        }
        if (status == RONDO_STATUS_OK) {
            e->nodes[owners[i]].no += 1;
        }
    }
    int32_t next = 0;
    for (size_t i = 0; i < d->node_count && status == RONDO_STATUS_OK; ++i) {
        if (e->nodes[i].mode == MODE_LEAF) {
            e->nodes[i].yes = next;
            next += e->nodes[i].no;
            e->nodes[i].no = 0;
        }
    }
    for (size_t i = 0; i < d->weights.count && status == RONDO_STATUS_OK; ++i) {
        tree_node *leaf = &e->nodes[owners[i]];
        e->weights[leaf->yes + leaf->no] = (leaf_weight){
            .target = (int32_t)d->weight_targets.values[i], .weight = get_number(&d->weights, i)};
        leaf->no += 1;
    }
    rondo__free(owners);
    return status;
}

// A tree's root is its first node, unless that is a child of another: then the one that is none.
static void find_roots(const description *d, const bool *is_child, const node_place *places,
                       rondo__tree_ensemble *e) {
    for (size_t i = 0; i < d->node_count;) {
        int32_t root = -1;
        size_t end = i;
        for (; end < d->node_count && places[end].tree == places[i].tree; ++end) {
            int32_t index = places[end].index;
            if (!is_child[index] && (root < 0 || index < root)) {
                root = index;
            }
        }
        // Without a node that is no child there is a cycle, which is found next.
        e->roots[e->root_count++] = root >= 0 ? root : places[i].index;
        i = end;
    }
}

static rondo_status lay_legacy(const description *d, rondo__tree_ensemble *e) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    node_place *places = rondo__calloc(d->node_count, sizeof *places);
    bool *is_child = rondo__calloc(d->node_count, sizeof *is_child);
    e->node_count = d->node_count;
    e->nodes = rondo__calloc(d->node_count, sizeof *e->nodes);
    e->roots = rondo__calloc(d->node_count, sizeof *e->roots);
    e->weights = rondo__calloc(d->weights.count, sizeof *e->weights);
    if (places == NULL || is_child == NULL || e->nodes == NULL || e->roots == NULL ||
        e->weights == NULL) {
        goto free_lists;
    }
    status = sort_places(d, places);
    for (size_t i = 0; i < d->node_count && status == RONDO_STATUS_OK; ++i) {
        tree_node *node = &e->nodes[i];
        fill_inner(d, i, node);
        if (node->mode == MODE_LEAF) {
            continue;
        }
        status = find_node(d, places, d->trees.values[i], d->yes.values[i], &node->yes);
        if (status == RONDO_STATUS_OK) {
            status = find_node(d, places, d->trees.values[i], d->no.values[i], &node->no);
        }
        if (status == RONDO_STATUS_OK) {
            is_child[node->yes] = true;
            is_child[node->no] = true;
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = place_weights(d, places, e);
    }
    if (status == RONDO_STATUS_OK) {
        find_roots(d, is_child, places, e);
    }

free_lists:
    rondo__free(places);
    rondo__free(is_child);
    return status;
}

// Inner nodes keep their numbers; leaf k stands behind them as node_count + k.
static rondo_status link_child(const description *d, size_t node, int64_t child, bool is_leaf,
                               int32_t *out_index) {
    size_t count = is_leaf ? d->weight_targets.count : d->node_count;
    if (child < 0 || (uint64_t)child >= count) {
        return RONDO_OP_FAIL(d->op, BAD_DATA, "node %zu leads to %s %lld of %zu", node,
                             is_leaf ? "leaf" : "node", (long long)child, count);
    }
    *out_index = (int32_t)(child + (is_leaf ? (int64_t)d->node_count : 0));
    return RONDO_STATUS_OK;
}

// Membership values stand in one list, those of one test after those of another, each ended by NaN.
static rondo_status place_members(const description *d, rondo__tree_ensemble *e) {
    size_t at = 0;
    e->members = rondo__calloc(d->members.count, sizeof *e->members);
    if (e->members == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < d->members.count; ++i) {
        e->members[i] = get_number(&d->members, i);
    }
    for (size_t i = 0; i < d->node_count; ++i) {
        tree_node *node = &e->nodes[i];
        if (node->mode != MODE_MEMBER) {
            continue;
        }
        size_t end = at;
        while (end < d->members.count && !isnan(e->members[end])) {
            end += 1;
        }
        if (at >= d->members.count) {
            return RONDO_OP_FAIL(d->op, BAD_DATA, "membership_values has nothing for node %zu", i);
        }
        node->first_member = (int32_t)at;
        node->member_count = (int32_t)(end - at);
        at = end + 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status lay_split(const description *d, rondo__tree_ensemble *e) {
    size_t leaf_count = d->weight_targets.count;
    if (d->node_count + leaf_count > COUNT_MAX || d->members.count > COUNT_MAX) {
        return RONDO_OP_FAIL(d->op, BAD_DATA, "there are too many nodes");
    }
    e->node_count = d->node_count + leaf_count;
    e->nodes = rondo__calloc(e->node_count, sizeof *e->nodes);
    e->weights = rondo__calloc(leaf_count, sizeof *e->weights);
    e->roots = rondo__calloc(d->roots.count, sizeof *e->roots);
    if (e->nodes == NULL || e->weights == NULL || e->roots == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < d->node_count; ++i) {
        tree_node *node = &e->nodes[i];
        fill_inner(d, i, node);
        RETURN_IF_ERROR(
            link_child(d, i, d->yes.values[i], d->yes_is_leaf.values[i] != 0, &node->yes));
        RETURN_IF_ERROR(link_child(d, i, d->no.values[i], d->no_is_leaf.values[i] != 0, &node->no));
    }
    for (size_t k = 0; k < leaf_count; ++k) {
        e->weights[k] = (leaf_weight){.target = (int32_t)d->weight_targets.values[k],
                                      .weight = get_number(&d->weights, k)};
        e->nodes[d->node_count + k] = (tree_node){.mode = MODE_LEAF, .yes = (int32_t)k, .no = 1};
    }
    for (size_t i = 0; i < d->roots.count; ++i) {
        RETURN_IF_ERROR(link_child(d, i, d->roots.values[i], false, &e->roots[i]));
        e->root_count += 1;
    }
    return place_members(d, e);
}

// Refuses trees that lead back into themselves: a walk must end.
static rondo_status check_cycles(const rondo__op *op, const rondo__tree_ensemble *e) {
    enum { NEW, OPEN, DONE };
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    uint8_t *state = rondo__calloc(e->node_count, sizeof *state);
    int32_t *stack = rondo__calloc(e->node_count, sizeof *stack);
    if (state == NULL || stack == NULL) {
        goto free_lists;
    }
    status = RONDO_STATUS_OK;
    for (size_t r = 0; r < e->root_count && status == RONDO_STATUS_OK; ++r) {
        size_t depth = 0;
        if (state[e->roots[r]] == NEW) {
            state[e->roots[r]] = OPEN;
            stack[depth++] = e->roots[r];
        }
        while (depth > 0 && status == RONDO_STATUS_OK) {
            const tree_node *node = &e->nodes[stack[depth - 1]];
            bool is_leaf = node->mode == MODE_LEAF;
            int32_t next = is_leaf                    ? -1
                           : state[node->yes] != DONE ? node->yes
                           : state[node->no] != DONE  ? node->no
                                                      : -1;
            if (next < 0) {
                state[stack[--depth]] = DONE;
            } else if (state[next] == OPEN) {
                status = RONDO_OP_FAIL(op, BAD_DATA, "the trees have a cycle");
            } else {
                state[next] = OPEN;
                stack[depth++] = next;
            }
        }
    }

free_lists:
    rondo__free(state);
    rondo__free(stack);
    return status;
}

rondo_status rondo__tree_ensemble_create(const rondo__op *op, rondo__tree_ensemble **out_ensemble) {
    description d;
    rondo__tree_shape shape;
    *out_ensemble = NULL;
    RETURN_IF_ERROR(rondo__tree_ensemble_measure(op, &shape));
    RETURN_IF_ERROR(describe(op, &d));
    rondo__tree_ensemble *e = rondo__calloc(1, sizeof *e);
    if (e == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    e->target_count = (size_t)d.target_count;
    e->join = d.join;
    e->rounds_scores = d.is_legacy;
    e->base_count = d.bases.count;
    e->weight_count = d.weights.count;
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    e->bases = rondo__calloc(d.bases.count, sizeof *e->bases);
    if (e->bases != NULL) {
        status = d.is_legacy ? lay_legacy(&d, e) : lay_split(&d, e);
    }
    if (status == RONDO_STATUS_OK) {
        status = check_cycles(op, e);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__tree_ensemble_destroy(e);
        return status;
    }
    for (size_t i = 0; i < d.bases.count; ++i) {
        e->bases[i] = get_number(&d.bases, i);
    }
    e->are_weights_positive = true;
    for (size_t i = 0; i < e->weight_count; ++i) {
        e->are_weights_positive = e->are_weights_positive && e->weights[i].weight >= 0.0;
        if (e->weights[i].target < 2) {
            e->speaks_of[e->weights[i].target] = true;
        }
    }
    *out_ensemble = e;
    return RONDO_STATUS_OK;
}

void rondo__tree_ensemble_destroy(rondo__tree_ensemble *ensemble) {
    if (ensemble == NULL) {
        return;
    }
    rondo__free(ensemble->nodes);
    rondo__free(ensemble->weights);
    rondo__free(ensemble->roots);
    rondo__free(ensemble->members);
    rondo__free(ensemble->bases);
    rondo__free(ensemble);
}

// ---- walking ----------------------------------------------------------------------------------

static bool is_member(const rondo__tree_ensemble *e, const tree_node *node, double x) {
    const double *members = e->members + node->first_member;
    for (int32_t i = 0; i < node->member_count; ++i) {
        if (members[i] == x) {
            return true;
        }
    }
    return false;
}

static bool is_other_yes(const rondo__tree_ensemble *e, const tree_node *node, double x) {
    if (node->missing_is_yes && isnan(x)) {
        return true;
    }
    switch (node->mode) {
        case MODE_LT:
            return x < node->threshold;
        case MODE_GTE:
            return x >= node->threshold;
        case MODE_GT:
            return x > node->threshold;
        case MODE_EQ:
            return x == node->threshold;
        case MODE_NEQ:
            return x != node->threshold;
        default:
            return is_member(e, node, x);
    }
}

// Most trees ask "at most" alone.
static inline bool is_yes(const rondo__tree_ensemble *e, const tree_node *node, double x) {
    return node->mode == MODE_LEQ ? x <= node->threshold || (node->missing_is_yes && isnan(x))
                                  : is_other_yes(e, node, x);
}

static inline double join_score(aggregate join, bool has_score, double score, double weight) {
    if (join == JOIN_SUM || join == JOIN_AVERAGE) {
        return score + weight;
    }
    bool takes_new = join == JOIN_MIN ? weight < score : weight > score;
    return takes_new || !has_score ? weight : score;
}

// Adds what one tree says of a row.
static inline void run_tree(const rondo__tree_ensemble *e, int32_t root, const double *row,
                            double *scores, bool *has_score) {
    const tree_node *node = &e->nodes[root];
    while (node->mode != MODE_LEAF) {
        node = &e->nodes[is_yes(e, node, row[node->feature]) ? node->yes : node->no];
    }
    for (int32_t i = 0; i < node->no; ++i) {
        const leaf_weight *w = &e->weights[node->yes + i];
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
        scores[i] /= e->join == JOIN_AVERAGE ? (double)e->root_count : 1.0;
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
