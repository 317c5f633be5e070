// SPDX-License-Identifier: Apache-2.0

#include "op/kinds.h"

#include <stdio.h>
#include <string.h>

#include "tensor/elements.h"
#include "tensor/narrow.h"

// Bit i stands for input i, bit 31 for all inputs from there on.
#define ALL UINT32_MAX
#define FIRST 1u

static const struct {
    const char *domain;
    const char *name;
    uint32_t strings;    // inputs that may hold strings
    uint32_t nested;     // inputs that may be sequences or optionals
    uint32_t moved;      // inputs that may be narrow or complex: their bytes are moved
    uint32_t narrow;     // inputs that may be narrow: their numbers count
    bool makes_strings;  // may give strings when it takes none
    bool makes_narrow;   // may give narrow or complex numbers when it takes none
} kinds[] = {
    {"", "BitCast", 0, 0, FIRST, 0, false, true},
    {"", "Cast", FIRST, 0, 0, FIRST, true, true},
    {"", "CastLike", 3, 0, 0, 3, true, true},
    {"", "CenterCropPad", 0, 0, FIRST, 0, false, false},
    {"", "Compress", FIRST, 0, FIRST, 0, false, false},
    {"", "Concat", ALL, 0, ALL, 0, false, false},
    {"", "Constant", 0, 0, 0, 0, true, true},
    {"", "ConstantOfShape", 0, 0, 0, 0, false, true},
    {"", "DepthToSpace", FIRST, 0, FIRST, 0, false, false},
    {"", "DequantizeLinear", 0, 0, 0, 7, false, false},
    {"", "Equal", 3, 0, 0, 0, false, false},
    {"", "Expand", FIRST, 0, FIRST, 0, false, false},
    {"", "Flatten", FIRST, 0, FIRST, 0, false, false},
    {"", "Gather", FIRST, 0, FIRST, 0, false, false},
    {"", "GatherElements", FIRST, 0, FIRST, 0, false, false},
    {"", "GatherND", FIRST, 0, FIRST, 0, false, false},
    {"", "Identity", FIRST, FIRST, FIRST, 0, false, false},
    {"", "OneHot", 4, 0, 4, 0, false, false},
    {"", "Pad", 0, 0, 5, 0, false, false},
    {"", "QuantizeLinear", 0, 0, 0, 6, false, true},
    {"", "Reshape", FIRST, 0, FIRST, 0, false, false},
    {"", "ReverseSequence", FIRST, 0, FIRST, 0, false, false},
    {"", "Scatter", 5, 0, 5, 0, false, false},
    {"", "ScatterElements", 5, 0, 5, 0, false, false},
    {"", "ScatterND", 5, 0, 5, 0, false, false},
    {"", "Shape", FIRST, 0, FIRST, 0, false, false},
    {"", "Size", FIRST, 0, FIRST, 0, false, false},
    {"", "Slice", FIRST, 0, FIRST, 0, false, false},
    {"", "SpaceToDepth", FIRST, 0, FIRST, 0, false, false},
    {"", "Split", FIRST, 0, FIRST, 0, false, false},
    {"", "Squeeze", FIRST, 0, FIRST, 0, false, false},
    {"", "TensorScatter", 0, 0, 3, 0, false, false},
    {"", "TfIdfVectorizer", FIRST, 0, 0, 0, false, false},
    {"", "Tile", FIRST, 0, FIRST, 0, false, false},
    {"", "Transpose", FIRST, 0, FIRST, 0, false, false},
    {"", "Trilu", 0, 0, FIRST, 0, false, false},
    {"", "Unique", FIRST, 0, 0, 0, false, false},
    {"", "Unsqueeze", FIRST, 0, FIRST, 0, false, false},
    {"", "Where", 6, 0, 6, 0, false, false},
    // op_string.c
    {"", "RegexFullMatch", FIRST, 0, 0, 0, false, false},
    {"", "StringConcat", 3, 0, 0, 0, false, false},
    {"", "StringNormalizer", FIRST, 0, 0, 0, false, false},
    {"", "StringSplit", FIRST, 0, 0, 0, false, false},
    // op_sequence.c
    {"", "ConcatFromSequence", 0, FIRST, 0, 0, true, true},
    {"", "Optional", FIRST, FIRST, FIRST, 0, false, false},
    {"", "OptionalGetElement", FIRST, FIRST, FIRST, 0, true, true},
    {"", "OptionalHasElement", FIRST, FIRST, FIRST, 0, false, false},
    {"", "SequenceAt", 0, FIRST, 0, 0, true, true},
    {"", "SequenceConstruct", ALL, 0, ALL, 0, false, false},
    {"", "SequenceErase", 0, FIRST, 0, 0, false, false},
    {"", "SequenceInsert", 2, FIRST, 2, 0, false, false},
    {"", "SequenceLength", 0, FIRST, 0, 0, false, false},
    {"", "SplitToSequence", FIRST, 0, FIRST, 0, false, false},
    // op_ml_*.c
    {"ai.onnx.ml", "ArrayFeatureExtractor", FIRST, 0, 0, 0, false, false},
    {"ai.onnx.ml", "CategoryMapper", FIRST, 0, 0, 0, true, false},
    {"ai.onnx.ml", "LabelEncoder", FIRST, 0, 0, 0, true, false},
    {"ai.onnx.ml", "LinearClassifier", 0, 0, 0, 0, true, false},
    {"ai.onnx.ml", "OneHotEncoder", FIRST, 0, 0, 0, false, false},
    {"ai.onnx.ml", "SVMClassifier", 0, 0, 0, 0, true, false},
    {"ai.onnx.ml", "TreeEnsembleClassifier", 0, 0, 0, 0, true, false},
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

// Inputs of this type that entry `k` takes.
static uint32_t get_inputs(size_t k, rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_STRING     ? kinds[k].strings
           : rondo__dtype_is_nested(dtype) ? kinds[k].nested
           : rondo__dtype_is_narrow(dtype) ? kinds[k].moved | kinds[k].narrow
                                           : kinds[k].moved;
}

// Whether entry `k` may give this type, narrow or complex, when it takes none. What calculates with
// narrow numbers makes no complex ones.
static bool may_make(size_t k, rondo_dtype dtype) {
    return kinds[k].makes_narrow && (rondo__dtype_is_narrow(dtype) || kinds[k].narrow == 0);
}

// Numbers that C calculates with, and f16 and bf16, which become such.
static bool is_usual(rondo_dtype dtype) {
    return dtype >= RONDO_DTYPE_NONE && dtype < RONDO_DTYPE_STRING;
}

rondo_status rondo__infer_check_kinds(const rondo__infer *infer) {
    const uint32_t flags = infer->op->def->flags;
    if ((flags & RONDO__OP_CONTROL) != 0) {
        return RONDO_STATUS_OK;  // its bodies say what they take
    }
    for (size_t i = 0; i < infer->input_count; ++i) {
        rondo_dtype dtype = infer->inputs[i].dtype;
        // What passes make of ops that move, and a program's own ops, take all plain types.
        if (is_usual(dtype) || ((flags & (RONDO__OP_INTERNAL | RONDO__OP_USER)) != 0 &&
                                rondo__dtype_is_plain(dtype))) {
            continue;
        }
        size_t k = find(infer->op->def);
        if (k == sizeof kinds / sizeof kinds[0] || !is_set(get_inputs(k, dtype), i)) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__infer_check_made_kinds(const rondo__infer *infer) {
    const uint32_t flags = infer->op->def->flags;
    for (size_t i = 0; i < infer->output_count; ++i) {
        const rondo_dtype dtype = infer->outputs[i].dtype;
        if (is_usual(dtype) || rondo__dtype_is_nested(dtype) ||
            (flags & (RONDO__OP_CONTROL | RONDO__OP_INTERNAL | RONDO__OP_USER)) != 0) {
            continue;
        }
        const size_t k = find(infer->op->def);
        const bool is_text = dtype == RONDO_DTYPE_STRING;
        if (k == sizeof kinds / sizeof kinds[0] ||
            (is_text ? kinds[k].strings == 0 && !kinds[k].makes_strings
                     : kinds[k].moved == 0 && !may_make(k, dtype))) {
            char detail[64];
            (void)snprintf(detail, sizeof detail, "an output of %s",
                           is_text ? "strings" : rondo_dtype_get_name(dtype));
            return rondo__op_fail_unsupported(infer->op, detail);
        }
    }
    return RONDO_STATUS_OK;
}
