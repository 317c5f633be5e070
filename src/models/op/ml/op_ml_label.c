// op/ml/op_ml_label.c — categories: ArrayFeatureExtractor, CategoryMapper, LabelEncoder,
// OneHotEncoder, ZipMap.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/ml/ml_table.h"
#include "op/op.h"
#include "op/support.h"
#include "tensor/elements.h"

// ---- lists of categories ----------------------------------------------------------------------

// A list from an attribute: strings, integers, floats, or a tensor of any of them.
typedef struct label_list {
    const rondo__attribute *attribute;  // NULL: absent
    rondo_dtype dtype;
    size_t count;
} label_list;

static label_list get_list(const rondo__op *op, const char *name) {
    const rondo__attribute *attribute = rondo__op_find(op, name);
    label_list list = {.attribute = attribute};
    if (attribute == NULL) {
        return list;
    }
    list.count = attribute->count;
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_STRINGS:
            list.dtype = RONDO_DTYPE_STRING;
            break;
        case RONDO__ATTRIBUTE_INTS:
            list.dtype = RONDO_DTYPE_I64;
            break;
        case RONDO__ATTRIBUTE_FLOATS:
            list.dtype = RONDO_DTYPE_F32;
            break;
        case RONDO__ATTRIBUTE_TENSOR:
            list.dtype = attribute->tensor_value.dtype;
            list.count = (size_t)rondo_shape_get_count(&attribute->tensor_value.shape);
            break;
        default:
            list.attribute = NULL;
            break;
    }
    return list;
}

// The first of several lists that is there.
static label_list get_first_list(const rondo__op *op, const char *const *names) {
    label_list list = {0};
    for (size_t i = 0; names[i] != NULL && list.attribute == NULL; ++i) {
        list = get_list(op, names[i]);
    }
    return list;
}

static rondo_string get_word(const label_list *list, size_t index) {
    const rondo__attribute *attribute = list->attribute;
    return attribute->kind == RONDO__ATTRIBUTE_STRINGS
               ? rondo__string_from_text(attribute->strings[index])
               : ((const rondo_string *)attribute->tensor_value.data)[index];
}

// Writes entry `index` as an element of the list's type.
static void write_label(const label_list *list, size_t index, void *out_element) {
    const rondo__attribute *attribute = list->attribute;
    if (list->dtype == RONDO_DTYPE_STRING) {
        *(rondo_string *)out_element = get_word(list, index);
    } else if (attribute->kind == RONDO__ATTRIBUTE_INTS) {
        *(int64_t *)out_element = attribute->ints[index];
    } else if (attribute->kind == RONDO__ATTRIBUTE_FLOATS) {
        *(float *)out_element = attribute->floats[index];
    } else {
        size_t bytes = rondo_dtype_get_bytes(list->dtype);
        memcpy(out_element, (const char *)attribute->tensor_value.data + index * bytes, bytes);
    }
}

// ---- finding a category -----------------------------------------------------------------------

// A category with its position in the list. Numbers are compared as bits that sort like them.
typedef struct label_key {
    rondo_string word;
    uint64_t bits;
    bool is_nan;
    size_t index;
} label_key;

typedef struct label_index {
    size_t count;
    label_key *keys;  // sorted
} label_index;

// Equal numbers have equal bits: -0 is 0, and every NaN is the same.
static label_key make_key(rondo_dtype dtype, const void *element) {
    label_key key = {0};
    if (dtype == RONDO_DTYPE_STRING) {
        key.word = *(const rondo_string *)element;
        return key;
    }
    const rondo_tensor tensor = {.dtype = dtype, .data = (void *)(uintptr_t)element};
    if (!rondo__dtype_is_float(dtype)) {
        key.bits = (uint64_t)rondo__tensor_get_int(&tensor, 0);
        return key;
    }
    double value = rondo__tensor_get_number(&tensor, 0);
    key.is_nan = isnan(value);
    value = value == 0.0 || key.is_nan ? 0.0 : value;
    memcpy(&key.bits, &value, sizeof key.bits);
    return key;
}

static int compare_keys(const void *a_, const void *b_) {
    const label_key *a = a_;
    const label_key *b = b_;
    int order = rondo__string_compare(&a->word, &b->word);
    if (order != 0 || a->is_nan != b->is_nan) {
        return order != 0 ? order : a->is_nan - b->is_nan;
    }
    return (a->bits > b->bits) - (a->bits < b->bits);
}

static int compare_keys_and_places(const void *a_, const void *b_) {
    const label_key *a = a_;
    const label_key *b = b_;
    int order = compare_keys(a, b);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

// Errors:    NO_MEMORY.
// Ownership: free keys with rondo__free.
static rondo_status index_init(const label_list *list, label_index *out_index) {
    label_key *keys = rondo__calloc(list->count, sizeof *keys);
    if (keys == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < list->count; ++i) {
        union {
            rondo_string word;
            double number;
        } element = {{0}};
        write_label(list, i, &element);
        keys[i] = make_key(list->dtype, &element);
        keys[i].index = i;
    }
    // Of equal keys the first one counts: only that is kept.
    qsort(keys, list->count, sizeof *keys, compare_keys_and_places);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; ++i) {
        if (kept == 0 || compare_keys(&keys[kept - 1], &keys[i]) != 0) {
            keys[kept++] = keys[i];
        }
    }
    *out_index = (label_index){.count = kept, .keys = keys};
    return RONDO_STATUS_OK;
}

// The position of an element in the list; SIZE_MAX when it is not there.
static size_t find_label(const label_index *index, const label_key *key) {
    const label_key *found =
        bsearch(key, index->keys, index->count, sizeof *index->keys, compare_keys);
    return found != NULL ? found->index : SIZE_MAX;
}

// ---- LabelEncoder, CategoryMapper -------------------------------------------------------------

// The keys, their values, and the default for other keys.
typedef struct encoder {
    label_list keys;
    label_list values;
    const rondo_tensor *default_tensor;  // NULL: the attribute of the values' type
    bool finds_nan;
    bool is_place;  // version 1, strings to their positions: there are no values
} encoder;

static const char *const key_names[] = {"keys_tensor", "keys_strings", "keys_int64s", "keys_floats",
                                        NULL};
static const char *const value_names[] = {"values_tensor", "values_strings", "values_int64s",
                                          "values_floats", NULL};

// Version 1 and CategoryMapper go from strings to integers or back, as the input says.
static rondo_status plan_by_input(const rondo__op *op, rondo_dtype input, const char *words,
                                  const char *numbers, encoder *out_encoder) {
    label_list list = get_list(op, words);
    label_list other = numbers != NULL ? get_list(op, numbers) : (label_list){0};
    if (list.dtype != RONDO_DTYPE_STRING || (numbers != NULL && other.dtype != RONDO_DTYPE_I64)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attributes %s%s%s are missing", words,
                             numbers != NULL ? " and " : "", numbers != NULL ? numbers : "");
    }
    if (input != RONDO_DTYPE_STRING && input != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(op, 0, input);
    }
    bool to_number = input == RONDO_DTYPE_STRING;
    *out_encoder = (encoder){.keys = to_number ? list : other,
                             .values = to_number ? other : list,
                             .is_place = numbers == NULL && to_number};
    return RONDO_STATUS_OK;
}

static rondo_status plan_encoder(const rondo__op *op, rondo_dtype input, encoder *out_encoder) {
    encoder e = {0};
    if (op->def->id == RONDO__ML_CategoryMapper) {
        RETURN_IF_ERROR(plan_by_input(op, input, "cats_strings", "cats_int64s", &e));
    } else if (op->opset < 2) {
        RETURN_IF_ERROR(plan_by_input(op, input, "classes_strings", NULL, &e));
        *out_encoder = e;
        return RONDO_STATUS_OK;
    } else {
        const rondo__attribute *fallback = rondo__op_find(op, "default_tensor");
        e.keys = get_first_list(op, key_names);
        e.values = get_first_list(op, value_names);
        e.finds_nan = op->opset >= 4;
        if (fallback != NULL && fallback->kind == RONDO__ATTRIBUTE_TENSOR) {
            e.default_tensor = &fallback->tensor_value;
        }
    }
    if (e.keys.attribute == NULL || e.values.attribute == NULL || e.keys.count != e.values.count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%zu keys have %zu values", e.keys.count,
                             e.values.count);
    }
    if (input != e.keys.dtype) {
        return rondo__op_fail_dtype(op, 0, input);
    }
    if (e.default_tensor != NULL && (e.default_tensor->dtype != e.values.dtype ||
                                     rondo_shape_get_count(&e.default_tensor->shape) != 1)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute default_tensor must be one %s",
                             rondo_dtype_get_name(e.values.dtype));
    }
    *out_encoder = e;
    return RONDO_STATUS_OK;
}

static rondo_dtype get_made_dtype(const encoder *e) {
    return e->is_place || e->values.attribute == NULL ? RONDO_DTYPE_I64 : e->values.dtype;
}

static rondo_status infer_encoder(rondo__infer *infer) {
    encoder e;
    RETURN_IF_ERROR(plan_encoder(infer->op, infer->inputs[0].dtype, &e));
    return rondo__infer_set_output(infer, 0, get_made_dtype(&e), &infer->inputs[0].shape);
}

// What stands for a category that is not in the list.
static void write_default(const rondo__op *op, const encoder *e, void *out_element) {
    rondo_dtype dtype = get_made_dtype(e);
    if (e->default_tensor != NULL) {
        memcpy(out_element, e->default_tensor->data, rondo_dtype_get_bytes(dtype));
    } else if (dtype == RONDO_DTYPE_STRING) {
        *(rondo_string *)out_element =
            rondo__string_from_text(rondo__op_get_string(op, "default_string", "_Unused"));
    } else if (rondo__dtype_is_float(dtype)) {
        double value = (double)rondo__op_get_float(op, "default_float", -0.0f);
        rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, out_element, 1);
    } else {
        int64_t value = rondo__op_get_int(op, "default_int64", -1);
        rondo__convert_elements(RONDO_DTYPE_I64, &value, dtype, out_element, 1);
    }
}

// Version 1, integers to strings: the input is a position in the list.
static size_t read_place(const encoder *e, const rondo_tensor *input, int64_t i) {
    int64_t place = rondo__tensor_get_int(input, i);
    return place >= 0 && (uint64_t)place < e->values.count ? (size_t)place : SIZE_MAX;
}

static rondo_status compute_encoder(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    size_t in_bytes = rondo_dtype_get_bytes(input->dtype);
    label_index index = {0};
    encoder e;
    void *output;
    RETURN_IF_ERROR(plan_encoder(compute->op, input->dtype, &e));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t out_bytes = rondo_dtype_get_bytes(get_made_dtype(&e));
    RETURN_IF_ERROR(index_init(&e.keys, &index));
    for (int64_t i = 0; i < rondo_shape_get_count(&input->shape); ++i) {
        char *to = (char *)output + (size_t)i * out_bytes;
        size_t found;
        if (e.keys.attribute == NULL) {
            found = read_place(&e, input, i);
        } else {
            label_key key =
                make_key(input->dtype, (const char *)input->data + (size_t)i * in_bytes);
            found = key.is_nan && !e.finds_nan ? SIZE_MAX : find_label(&index, &key);
        }
        if (found == SIZE_MAX) {
            write_default(compute->op, &e, to);
        } else if (e.is_place) {
            *(int64_t *)(void *)to = (int64_t)found;
        } else {
            write_label(&e.values, found, to);
        }
    }
    rondo__free(index.keys);
    return RONDO_STATUS_OK;
}

// ---- OneHotEncoder ----------------------------------------------------------------------------

static rondo_status infer_one_hot(rondo__infer *infer) {
    static const char *const names[] = {"cats_strings", "cats_int64s", NULL};
    label_list list = get_first_list(infer->op, names);
    rondo_dtype dtype = infer->inputs[0].dtype;
    rondo_shape shape = infer->inputs[0].shape;
    if (list.attribute == NULL || list.count == 0) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "there are no categories");
    }
    if ((list.dtype == RONDO_DTYPE_STRING) != (dtype == RONDO_DTYPE_STRING)) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    if (shape.rank == RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(infer->op, "result of rank above 8");
    }
    shape.extent[shape.rank++] = (int64_t)list.count;
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &shape);
}

static rondo_status compute_one_hot(rondo__compute *compute) {
    static const char *const names[] = {"cats_strings", "cats_int64s", NULL};
    const rondo_tensor *input = compute->inputs[0];
    label_list list = get_first_list(compute->op, names);
    bool may_be_unknown = rondo__op_get_int(compute->op, "zeros", 1) != 0;
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    label_index index;
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    memset(output, 0, rondo_tensor_get_bytes(&compute->outputs[0]));
    RETURN_IF_ERROR(index_init(&list, &index));
    rondo_status status = RONDO_STATUS_OK;
    for (int64_t i = 0; i < rondo_shape_get_count(&input->shape) && status == RONDO_STATUS_OK;
         ++i) {
        const char *element = (const char *)input->data + (size_t)i * bytes;
        int64_t whole = 0;
        rondo_dtype dtype = input->dtype;
        if (dtype != RONDO_DTYPE_STRING) {  // categories are whole numbers, whatever comes in
            rondo__convert_elements(dtype, element, RONDO_DTYPE_I64, &whole, 1);
            element = (const char *)&whole;
            dtype = RONDO_DTYPE_I64;
        }
        label_key key = make_key(dtype, element);
        size_t found = find_label(&index, &key);
        if (found != SIZE_MAX) {
            ((float *)output)[(size_t)i * list.count + found] = 1.0f;
        } else if (!may_be_unknown) {
            status = RONDO_OP_FAIL(compute->op, BAD_DATA, "element %lld is an unknown category",
                                   (long long)i);
        }
    }
    rondo__free(index.keys);
    return status;
}

// ---- ArrayFeatureExtractor --------------------------------------------------------------------

static rondo_status infer_extract(rondo__infer *infer) {
    rondo_shape shape = infer->inputs[0].shape;
    if (infer->inputs[1].dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(infer->op, 1, infer->inputs[1].dtype);
    }
    if (shape.rank < 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the input is a scalar");
    }
    // A list counts as one row.
    int64_t picked = rondo_shape_get_count(&infer->inputs[1].shape);
    if (shape.rank == 1) {
        shape = (rondo_shape){.rank = 2, .extent = {1}};
    }
    shape.extent[shape.rank - 1] = picked;
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

static rondo_status compute_extract(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const int64_t *picks = compute->inputs[1]->data;
    int64_t pick_count = rondo_shape_get_count(&compute->inputs[1]->shape);
    int64_t extent = input->shape.extent[input->shape.rank - 1];
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    void *output;
    for (int64_t i = 0; i < pick_count; ++i) {
        if (picks[i] < 0 || picks[i] >= extent) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "index %lld is outside [0, %lld)",
                                 (long long)picks[i], (long long)extent);
        }
    }
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    char *to = output;
    int64_t rows = rondo__shape_multiply(&input->shape, 0, input->shape.rank - 1);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t i = 0; i < pick_count; ++i, to += bytes) {
            memcpy(to, (const char *)input->data + (size_t)(row * extent + picks[i]) * bytes,
                   bytes);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- ZipMap -----------------------------------------------------------------------------------

// The scores pass as they are; what they are scores of is in the port (rondo/onnx.h).
static rondo_status infer_zip_map(rondo__infer *infer) {
    static const char *const names[] = {"classlabels_strings", "classlabels_int64s", NULL};
    label_list labels = get_first_list(infer->op, names);
    const rondo_shape *x = &infer->inputs[0].shape;
    if (infer->inputs[0].dtype != RONDO_DTYPE_F32) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    if (x->rank < 1 || x->rank > 2 || x->extent[x->rank - 1] != (int64_t)labels.count) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "scores of shape %s have %zu labels",
                             rondo_shape_format(x, text, sizeof text), labels.count);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_zip_map(rondo__compute *compute) {
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    memcpy(output, compute->inputs[0]->data, rondo_tensor_get_bytes(compute->inputs[0]));
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const mapper_attributes[] = {"cats_int64s", "cats_strings", "default_int64",
                                                "default_string", NULL};
static const char *const encoder_1_attributes[] = {"classes_strings", "default_int64",
                                                   "default_string", NULL};
static const char *const encoder_attributes[] = {"default_float",
                                                 "default_int64",
                                                 "default_string",
                                                 "default_tensor",
                                                 "keys_floats",
                                                 "keys_int64s",
                                                 "keys_strings",
                                                 "keys_tensor",
                                                 "values_floats",
                                                 "values_int64s",
                                                 "values_strings",
                                                 "values_tensor",
                                                 NULL};
static const char *const one_hot_attributes[] = {"cats_int64s", "cats_strings", "zeros", NULL};
static const char *const zip_map_attributes[] = {"classlabels_int64s", "classlabels_strings", NULL};

#define LAST RONDO__ML_VERSION_MAX

const rondo__op_def rondo__op_table_ml_label[] = {
    RONDO_ML_ENTRY(ArrayFeatureExtractor, 1, LAST, 2, 2, 1, no_attributes, infer_extract,
                   compute_extract, NULL, .strings = RONDO__INPUT_0),
    RONDO_ML_ENTRY(CategoryMapper, 1, LAST, 1, 1, 1, mapper_attributes, infer_encoder,
                   compute_encoder, NULL, .strings = RONDO__INPUT_0, .makes_strings = true),
    RONDO_ML_ENTRY(LabelEncoder, 1, 1, 1, 1, 1, encoder_1_attributes, infer_encoder,
                   compute_encoder, NULL, .strings = RONDO__INPUT_0,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_COMPARED},
                   .makes_strings = true),
    RONDO_ML_ENTRY(LabelEncoder, 2, LAST, 1, 1, 1, encoder_attributes, infer_encoder,
                   compute_encoder, NULL, .strings = RONDO__INPUT_0,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_COMPARED},
                   .makes_strings = true),
    RONDO_ML_ENTRY(OneHotEncoder, 1, LAST, 1, 1, 1, one_hot_attributes, infer_one_hot,
                   compute_one_hot, NULL, .strings = RONDO__INPUT_0,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED}),
    RONDO_OP_ROW(ML, ZipMap, 1, LAST, 1, 1, 1, 1, .flags = RONDO__OP_VIEW,
                 .capture = RONDO__CAPTURE_YES, .attributes = zip_map_attributes,
                 .infer = infer_zip_map, .compute = compute_zip_map),
    {0},
};
