// program/passes/pass_labels.c — classifiers name classes by strings, which would keep them off
// devices and out of segments. They make numbers here, and a LabelEncoder behind them makes the
// strings.
//
//   before   x ── TreeEnsembleClassifier ─┬─ label (strings)
//                                         └─ scores
//   after    x ── TreeEnsembleClassifier ─┬─ numbers ── LabelEncoder ── label
//                                         └─ scores
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes/passes.h"

static const struct {
    rondo__op_id op;
    const char *strings;
    const char *numbers;
} classifiers[] = {
    {RONDO__ML_TreeEnsembleClassifier, "classlabels_strings", "classlabels_int64s"},
    {RONDO__ML_LinearClassifier, "classlabels_strings", "classlabels_ints"},
    {RONDO__ML_SVMClassifier, "classlabels_strings", "classlabels_ints"},
};
enum { CLASSIFIER_COUNT = sizeof classifiers / sizeof classifiers[0], ENCODER_VERSION = 2 };

// The index of a node in the list above, when its labels are two strings or more; -1 otherwise.
// With one of them the op may say what is in no list.
static int find_classifier(const rondo__node *node) {
    for (int k = 0; k < CLASSIFIER_COUNT; ++k) {
        if (rondo__node_is(node, classifiers[k].op)) {
            const rondo__attribute *labels = rondo__op_find(&node->op, classifiers[k].strings);
            return labels != NULL && labels->kind == RONDO__ATTRIBUTE_STRINGS &&
                           labels->count > 1 && node->outputs[0] >= 0
                       ? k
                       : -1;
        }
    }
    return -1;
}

// Gives the classifier numbers for labels, 0 and on, and the encoder what stands behind them.
static rondo_status set_labels(rondo__op *classifier, int kind, rondo__op *encoder) {
    const rondo__attribute *labels = rondo__op_find(classifier, classifiers[kind].strings);
    const size_t count = labels->count;
    int64_t *numbers = rondo__calloc(count, sizeof *numbers);
    if (numbers == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        numbers[i] = (int64_t)i;
    }
    rondo_status status = rondo__op_set_ints(encoder, "keys_int64s", numbers, count);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_strings(encoder, "values_strings",
                                       (const char *const *)labels->strings, count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_ints(classifier, classifiers[kind].numbers, numbers, count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_strings(classifier, classifiers[kind].strings, NULL, 0);
    }
    rondo__free(numbers);
    return status;
}

static rondo_status split(rondo_program *program, size_t n, int kind) {
    const int32_t label = program->nodes[n].outputs[0];
    int32_t number;
    rondo__op encoder = {.def = rondo__op_get_def(RONDO__ML_LabelEncoder),
                         .opset = ENCODER_VERSION};
    rondo_status status = rondo__program_add_value(program, program->values[label].name, &number);
    if (status == RONDO_STATUS_OK) {
        status = set_labels(&program->nodes[n].op, kind, &encoder);
    }
    if (status == RONDO_STATUS_OK) {
        program->nodes[n].outputs[0] = number;
        program->values[number].producer = (int32_t)n;
        program->values[label].producer = RONDO__VALUE_NONE;
        status = rondo__program_add_node(program, &encoder, &number, 1, 1, &label, 1);
    }
    rondo__op_deinit(&encoder);
    return status;
}

rondo_status rondo__pass_labels(rondo_program *program) {
    const size_t node_count = program->node_count;
    bool is_changed = false;
    for (size_t n = 0; n < node_count; ++n) {
        const int kind = find_classifier(&program->nodes[n]);
        if (kind >= 0) {
            RETURN_IF_ERROR(split(program, n, kind));
            is_changed = true;
        }
    }
    return is_changed ? rondo__program_verify(program) : RONDO_STATUS_OK;
}
