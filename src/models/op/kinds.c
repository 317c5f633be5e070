// SPDX-License-Identifier: Apache-2.0

#include "op/kinds.h"

#include <string.h>

#include "tensor/elements.h"

// Bit i stands for input i, bit 31 for all inputs from there on.
#define ALL UINT32_MAX
#define FIRST 1u

static const struct {
    const char *domain;
    const char *name;
    uint32_t strings;    // inputs that may hold strings
    uint32_t nested;     // inputs that may be sequences or optionals
    bool makes_strings;  // may give strings when it takes none
} kinds[] = {
    {"", "Cast", FIRST, 0, true},
    {"", "CastLike", 3, 0, true},
    {"", "Compress", FIRST, 0, false},
    {"", "Concat", ALL, 0, false},
    {"", "Constant", 0, 0, true},
    {"", "DepthToSpace", FIRST, 0, false},
    {"", "Equal", 3, 0, false},
    {"", "Expand", FIRST, 0, false},
    {"", "Flatten", FIRST, 0, false},
    {"", "Gather", FIRST, 0, false},
    {"", "GatherElements", FIRST, 0, false},
    {"", "GatherND", FIRST, 0, false},
    {"", "Identity", FIRST, FIRST, false},
    {"", "OneHot", 4, 0, false},
    {"", "Reshape", FIRST, 0, false},
    {"", "ReverseSequence", FIRST, 0, false},
    {"", "Scatter", 5, 0, false},
    {"", "ScatterElements", 5, 0, false},
    {"", "ScatterND", 5, 0, false},
    {"", "Shape", FIRST, 0, false},
    {"", "Size", FIRST, 0, false},
    {"", "Slice", FIRST, 0, false},
    {"", "SpaceToDepth", FIRST, 0, false},
    {"", "Split", FIRST, 0, false},
    {"", "Squeeze", FIRST, 0, false},
    {"", "TfIdfVectorizer", FIRST, 0, false},
    {"", "Tile", FIRST, 0, false},
    {"", "Transpose", FIRST, 0, false},
    {"", "Unique", FIRST, 0, false},
    {"", "Unsqueeze", FIRST, 0, false},
    {"", "Where", 6, 0, false},
    // op_string.c
    {"", "RegexFullMatch", FIRST, 0, false},
    {"", "StringConcat", 3, 0, false},
    {"", "StringNormalizer", FIRST, 0, false},
    {"", "StringSplit", FIRST, 0, false},
    // op_sequence.c
    {"", "ConcatFromSequence", 0, FIRST, true},
    {"", "Optional", FIRST, FIRST, false},
    {"", "OptionalGetElement", FIRST, FIRST, true},
    {"", "OptionalHasElement", FIRST, FIRST, false},
    {"", "SequenceAt", 0, FIRST, true},
    {"", "SequenceConstruct", ALL, 0, false},
    {"", "SequenceErase", 0, FIRST, false},
    {"", "SequenceInsert", 2, FIRST, false},
    {"", "SequenceLength", 0, FIRST, false},
    {"", "SplitToSequence", FIRST, 0, false},
    // op_ml_*.c
    {"ai.onnx.ml", "ArrayFeatureExtractor", FIRST, 0, false},
    {"ai.onnx.ml", "CategoryMapper", FIRST, 0, true},
    {"ai.onnx.ml", "LabelEncoder", FIRST, 0, true},
    {"ai.onnx.ml", "LinearClassifier", 0, 0, true},
    {"ai.onnx.ml", "OneHotEncoder", FIRST, 0, false},
    {"ai.onnx.ml", "SVMClassifier", 0, 0, true},
    {"ai.onnx.ml", "TreeEnsembleClassifier", 0, 0, true},
};

// The entry's number, or that behind the last.
static size_t find(const rondo__op_def *def) {
    size_t count = sizeof kinds / sizeof kinds[0];
    for (size_t k = 0; k < count; ++k) {
        if (strcmp(kinds[k].name, def->name) == 0 && strcmp(kinds[k].domain, def->domain) == 0) {
            return k;
        }
    }
    return count;
}

static bool is_set(uint32_t mask, size_t input) {
    return (mask >> (input < 31 ? input : 31) & 1u) != 0;
}

rondo_status rondo__infer_check_kinds(const rondo__infer *infer) {
    if ((infer->op->def->flags & RONDO__OP_CONTROL) != 0) {
        return RONDO_STATUS_OK;  // its bodies say what they take
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        if (dtype == RONDO_DTYPE_NONE || rondo__dtype_is_plain(dtype)) {
            continue;
        }
        size_t k = find(infer->op->def);
        if (k == sizeof kinds / sizeof kinds[0] ||
            !is_set(dtype == RONDO_DTYPE_STRING ? kinds[k].strings : kinds[k].nested, i)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_check_made_kinds(const rondo__infer *infer) {
    for (size_t i = 0; i < infer->output_count; ++i) {
        if (infer->outputs[i].dtype != RONDO_DTYPE_STRING) {
            continue;
        }
        size_t k = find(infer->op->def);
        if (k == sizeof kinds / sizeof kinds[0] ||
            (kinds[k].strings == 0 && !kinds[k].makes_strings)) {
            return rondo__op_fail_unsupported(infer->op, "an output of strings");
        }
    }
    return RONDO_STATUS_OK;
}
