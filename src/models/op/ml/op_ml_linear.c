// op/ml/op_ml_linear.c — ai.onnx.ml ops on tables of numbers: Binarizer, FeatureVectorizer,
// Imputer, LinearClassifier, LinearRegressor, Normalizer, Scaler.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/ml/ml_scores.h"
#include "op/ml/ml_table.h"
#include "op/op.h"
#include "op/reference.h"
#include "op/support.h"

// ---- Scaler -----------------------------------------------------------------------------------

// Entry i of a list that has one value for all columns or one for each.
static double get_entry(const float *list, size_t count, int64_t column) {
    return (double)list[count == 1 ? 0 : (size_t)column];
}

// Each list by itself is one value or one for each column.
static bool is_for_columns(size_t count, int64_t columns) {
    return count == 1 || (count > 1 && (int64_t)count == columns);
}

static rondo_status infer_scaler(rondo__infer *infer) {
    size_t offset_count = 0;
    size_t scale_count = 0;
    int64_t rows;
    int64_t columns;
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    (void)rondo__op_get_floats(infer->op, "offset", &offset_count);
    (void)rondo__op_get_floats(infer->op, "scale", &scale_count);
    if (!is_for_columns(offset_count, columns) || !is_for_columns(scale_count, columns)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "%zu offsets and %zu scales for %lld columns; give 1 or one for each",
                             offset_count, scale_count, (long long)columns);
    }
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &infer->inputs[0].shape);
}

static rondo_status compute_scaler(rondo__compute *compute) {
    size_t offset_count = 0;
    size_t scale_count = 0;
    const rondo_tensor *x = compute->inputs[0];
    const bool is_wide = x->dtype == RONDO_DTYPE_F64;
    const float *offset = rondo__op_get_floats(compute->op, "offset", &offset_count);
    const float *scale = rondo__op_get_floats(compute->op, "scale", &scale_count);
    int64_t columns = x->shape.extent[x->shape.rank - 1];
    double *values;
    RETURN_IF_ERROR(rondo__widen(x, &values));
    for (int64_t i = 0; i < rondo_shape_get_count(&x->shape); ++i) {
        // f64 apart, each step is f32, as in ONNX Runtime and the reference: what is scaled here is
        // mostly compared with the thresholds of trees.
        double moved = is_wide ? values[i] : (double)(float)values[i];
        moved -= get_entry(offset, offset_count, i % columns);
        moved = is_wide ? moved : (double)(float)moved;
        values[i] = moved * get_entry(scale, scale_count, i % columns);
    }
    rondo_status status = rondo__narrow(compute, 0, values);
    rondo__free(values);
    return status;
}

// ---- Binarizer --------------------------------------------------------------------------------

static rondo_status infer_binarizer(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    if (dtype == RONDO_DTYPE_BOOL) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_binarizer(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    double threshold = (double)rondo__op_get_float(compute->op, "threshold", 0.0f);
    double *values;
    RETURN_IF_ERROR(rondo__widen(x, &values));
    for (int64_t i = 0; i < rondo_shape_get_count(&x->shape); ++i) {
        values[i] = values[i] > threshold ? 1.0 : 0.0;
    }
    rondo_status status = rondo__narrow(compute, 0, values);
    rondo__free(values);
    return status;
}

// ---- Normalizer -------------------------------------------------------------------------------

static rondo_status check_normalizer(const rondo__op *op) {
    const char *norm = rondo__op_get_string(op, "norm", "MAX");
    return strcmp(norm, "MAX") == 0 || strcmp(norm, "L1") == 0 || strcmp(norm, "L2") == 0
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(op, "attribute norm");
}

static rondo_status infer_normalizer(rondo__infer *infer) {
    int64_t rows;
    int64_t columns;
    RETURN_IF_ERROR(check_normalizer(infer->op));
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &infer->inputs[0].shape);
}

static double measure_row(const char *norm, const double *row, int64_t columns) {
    double total = norm[0] == 'M' ? -(double)INFINITY : 0.0;
    for (int64_t i = 0; i < columns; ++i) {
        if (norm[0] == 'M') {
            total = row[i] > total ? row[i] : total;  // of the values, not of their magnitudes
        } else {
            total += norm[1] == '1' ? fabs(row[i]) : row[i] * row[i];
        }
    }
    return norm[1] == '2' ? sqrt(total) : total;
}

static rondo_status compute_normalizer(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    const char *norm = rondo__op_get_string(compute->op, "norm", "MAX");
    int64_t columns = x->shape.extent[x->shape.rank - 1];
    int64_t count = rondo_shape_get_count(&x->shape);
    double *values;
    RETURN_IF_ERROR(rondo__widen(x, &values));
    for (int64_t at = 0; at < count; at += columns) {
        double length = measure_row(norm, values + at, columns);
        for (int64_t i = at; i < at + columns && length != 0.0; ++i) {
            values[i] /= length;
        }
    }
    rondo_status status = rondo__narrow(compute, 0, values);
    rondo__free(values);
    return status;
}

// ---- Imputer ----------------------------------------------------------------------------------

static rondo_status infer_imputer(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    bool is_float = dtype == RONDO_DTYPE_F32 || dtype == RONDO_DTYPE_F64;
    const rondo_shape *x = &infer->inputs[0].shape;
    size_t count = 0;
    if (is_float) {
        (void)rondo__op_get_floats(infer->op, "imputed_value_floats", &count);
    } else {
        (void)rondo__op_get_ints(infer->op, "imputed_value_int64s", &count);
    }
    if (!is_float && dtype != RONDO_DTYPE_I64 && dtype != RONDO_DTYPE_I32) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);
    }
    int64_t columns = x->rank > 0 ? x->extent[x->rank - 1] : 1;
    if (count == 0 || (count != 1 && (int64_t)count != columns)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "%zu values for %lld columns; give 1 or one for each", count,
                             (long long)columns);
    }
    return rondo__infer_like_input(infer);
}

static rondo_status compute_imputer(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    int64_t columns = x->shape.rank > 0 ? x->shape.extent[x->shape.rank - 1] : 1;
    int64_t count = rondo_shape_get_count(&x->shape);
    size_t entry_count = 0;
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    memcpy(output, x->data, rondo_tensor_get_bytes(x));
    size_t bytes = rondo_dtype_get_bytes(x->dtype);
    if (!rondo__dtype_is_float(x->dtype)) {
        const int64_t *entries =
            rondo__op_get_ints(compute->op, "imputed_value_int64s", &entry_count);
        int64_t replaced = rondo__op_get_int(compute->op, "replaced_value_int64", 0);
        for (int64_t i = 0; i < count; ++i) {
            if (rondo__tensor_get_int(x, i) == replaced) {
                rondo__convert_elements(RONDO_DTYPE_I64,
                                        &entries[entry_count == 1 ? 0 : i % columns], x->dtype,
                                        (char *)output + (size_t)i * bytes, 1);
            }
        }
        return RONDO_STATUS_OK;
    }
    const float *entries = rondo__op_get_floats(compute->op, "imputed_value_floats", &entry_count);
    double replaced = (double)rondo__op_get_float(compute->op, "replaced_value_float", 0.0f);
    for (int64_t i = 0; i < count; ++i) {
        double value = rondo__tensor_get_number(x, i);
        if (value == replaced || (isnan(replaced) && isnan(value))) {
            double entry = get_entry(entries, entry_count, i % columns);
            rondo__convert_elements(RONDO_DTYPE_F64, &entry, x->dtype,
                                    (char *)output + (size_t)i * bytes, 1);
        }
    }
    return RONDO_STATUS_OK;
}

// ---- FeatureVectorizer ------------------------------------------------------------------------

static rondo_status infer_vectorizer(rondo__infer *infer) {
    size_t count = 0;
    const int64_t *widths = rondo__op_get_ints(infer->op, "inputdimensions", &count);
    const rondo_shape *first = &infer->inputs[0].shape;
    int64_t total = 0;
    if (count != infer->input_count) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%zu inputs have %zu inputdimensions",
                             infer->input_count, count);
    }
    for (size_t i = 0; i < count; ++i) {
        const rondo_shape *x = &infer->inputs[i].shape;
        rondo_dtype dtype = infer->inputs[i].dtype;
        if (dtype == RONDO_DTYPE_NONE || dtype == RONDO_DTYPE_BOOL) {
            return rondo__op_fail_dtype(infer->op, i, dtype);
        }
        if (x->rank != first->rank || x->rank < 1 || x->rank > 2 ||
            (x->rank == 2 && x->extent[0] != first->extent[0])) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "inputs 0 and %zu have other rows", i);
        }
        if (widths[i] < 0 || !rondo__add_i64(total, widths[i], &total)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "inputdimensions[%zu] is %lld", i,
                                 (long long)widths[i]);
        }
    }
    // Lists count as one row.
    rondo_shape shape = {.rank = 2, .extent = {first->rank == 1 ? 1 : first->extent[0], total}};
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &shape);
}

// Each input takes as many columns as its entry says: cut, or filled up with zeros.
static rondo_status compute_vectorizer(rondo__compute *compute) {
    size_t count = 0;
    const int64_t *widths = rondo__op_get_ints(compute->op, "inputdimensions", &count);
    int64_t rows = compute->inferred[0].shape.extent[0];
    int64_t pitch = compute->inferred[0].shape.extent[1];
    int64_t column = 0;
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    memset(output, 0, rondo_tensor_get_bytes(&compute->outputs[0]));
    for (size_t i = 0; i < count; ++i) {
        const rondo_tensor *x = compute->inputs[i];
        int64_t has = x->shape.extent[x->shape.rank - 1];
        size_t taken = (size_t)(has < widths[i] ? has : widths[i]);
        for (int64_t row = 0; row < rows; ++row) {
            rondo__convert_elements(
                x->dtype,
                (const char *)x->data + (size_t)(row * has) * rondo_dtype_get_bytes(x->dtype),
                RONDO_DTYPE_F32, (float *)output + row * pitch + column, taken);
        }
        column += widths[i];
    }
    return RONDO_STATUS_OK;
}

// ---- LinearRegressor, LinearClassifier --------------------------------------------------------

// y = x * coefficients' + intercepts, one row of coefficients for each target.
typedef struct linear_model {
    const float *coefficients;
    const float *intercepts;  // NULL: zeros
    size_t target_count;
} linear_model;

// `targets`: how many the op says there are; 0: as many as there are intercepts.
static rondo_status get_model(const rondo__op *op, int64_t columns, int64_t targets,
                              linear_model *out_model) {
    linear_model m = {0};
    size_t coefficient_count = 0;
    size_t intercept_count = 0;
    size_t needed = 0;
    m.coefficients = rondo__op_get_floats(op, "coefficients", &coefficient_count);
    m.intercepts = rondo__op_get_floats(op, "intercepts", &intercept_count);
    m.target_count = targets > 0 ? (size_t)targets : intercept_count;
    if (m.target_count == 0 || m.coefficients == NULL || columns == 0 ||
        !rondo__mul_size(m.target_count, (size_t)columns, &needed) || needed != coefficient_count ||
        (intercept_count != 0 && intercept_count != m.target_count)) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "%zu coefficients and %zu intercepts do not fit %zu targets of %lld "
                             "columns",
                             coefficient_count, intercept_count, m.target_count,
                             (long long)columns);
    }
    m.intercepts = intercept_count > 0 ? m.intercepts : NULL;
    *out_model = m;
    return RONDO_STATUS_OK;
}

static double get_intercept(const linear_model *m, size_t target) {
    return m->intercepts != NULL ? (double)m->intercepts[target] : 0.0;
}

// Three targets at once, whose sums do not wait for each other.
static void run_model(const linear_model *m, const double *row, int64_t columns, double *scores) {
    enum { TOGETHER = 3 };
    size_t t = 0;
    for (; t + TOGETHER <= m->target_count; t += TOGETHER) {
        const float *a = m->coefficients + t * (size_t)columns;
        const float *b = a + columns, *c = b + columns;
        double first = get_intercept(m, t), second = get_intercept(m, t + 1);
        double third = get_intercept(m, t + 2);
        for (int64_t i = 0; i < columns; ++i) {
            first += row[i] * (double)a[i];
            second += row[i] * (double)b[i];
            third += row[i] * (double)c[i];
        }
        scores[t] = first;
        scores[t + 1] = second;
        scores[t + 2] = third;
    }
    for (; t < m->target_count; ++t) {
        const float *coefficients = m->coefficients + t * (size_t)columns;
        double score = get_intercept(m, t);
        for (int64_t i = 0; i < columns; ++i) {
            score += row[i] * (double)coefficients[i];
        }
        scores[t] = score;
    }
}

static rondo_status infer_regressor(rondo__infer *infer) {
    int64_t rows;
    int64_t columns;
    linear_model model;
    RETURN_IF_ERROR(rondo__ml_check_transform(infer->op));
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    RETURN_IF_ERROR(
        get_model(infer->op, columns, rondo__op_get_int(infer->op, "targets", 1), &model));
    rondo_shape shape = {.rank = 2, .extent = {rows, (int64_t)model.target_count}};
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &shape);
}

static rondo_status compute_regressor(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    int64_t columns = x->shape.extent[x->shape.rank - 1];
    int64_t rows = compute->inferred[0].shape.extent[0];
    linear_model model;
    RETURN_IF_ERROR(
        get_model(compute->op, columns, rondo__op_get_int(compute->op, "targets", 1), &model));
    const rondo__ml_transform transform = rondo__ml_get_transform(compute->op);
    rondo__scratch scratch = {0};
    double *row = rondo__scratch_create(&scratch, columns);
    double *scores = rondo__scratch_create(&scratch, rows * (int64_t)model.target_count);
    for (int64_t r = 0; scratch.status == RONDO_STATUS_OK && r < rows; ++r) {
        double *to = scores + r * (int64_t)model.target_count;
        rondo__ml_read_row(x, r, columns, row);
        run_model(&model, row, columns, to);
        rondo__ml_transform_row(transform, to, model.target_count);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, scores);
}

// Two labels for one score: the second is for scores above 0.
static bool is_split(const linear_model *model, const rondo__ml_labels *labels) {
    return model->target_count == 1 && labels->count == 2;
}

static rondo_status infer_classifier(rondo__infer *infer) {
    int64_t rows;
    int64_t columns;
    linear_model model;
    rondo__ml_labels labels =
        rondo__ml_get_labels(infer->op, "classlabels_strings", "classlabels_ints");
    RETURN_IF_ERROR(rondo__ml_check_transform(infer->op));
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    RETURN_IF_ERROR(get_model(infer->op, columns, 0, &model));
    if (labels.count != 0 && labels.count != model.target_count && !is_split(&model, &labels)) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "%zu labels for %zu classes", labels.count,
                             model.target_count);
    }
    rondo_shape shape = {.rank = 1, .extent = {rows}};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, rondo__ml_get_label_dtype(&labels), &shape));
    shape.rank = 2;
    shape.extent[1] = is_split(&model, &labels) ? 2 : (int64_t)model.target_count;
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &shape);
}

// The class of one row, and its scores as they are given out.
static size_t classify(const linear_model *model, const rondo__ml_labels *labels,
                       rondo__ml_transform transform, double *scores) {
    size_t chosen = model->target_count == 1 ? scores[0] > 0.0
                                             : rondo__ml_find_greatest(scores, model->target_count);
    if (is_split(model, labels)) {
        rondo__ml_split_score(transform, scores);
    } else {
        rondo__ml_transform_row(transform, scores, model->target_count);
    }
    return chosen;
}

static rondo_status compute_classifier(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    int64_t columns = x->shape.extent[x->shape.rank - 1];
    int64_t rows = compute->inferred[0].shape.extent[0];
    rondo__ml_labels labels =
        rondo__ml_get_labels(compute->op, "classlabels_strings", "classlabels_ints");
    rondo__ml_transform transform = rondo__ml_get_transform(compute->op);
    linear_model model;
    void *chosen;
    RETURN_IF_ERROR(get_model(compute->op, columns, 0, &model));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &chosen));
    int64_t width = is_split(&model, &labels) ? 2 : (int64_t)model.target_count;
    rondo__scratch scratch = {0};
    double *row = rondo__scratch_create(&scratch, columns);
    double *scores = rondo__scratch_create(&scratch, rows * width);
    for (int64_t r = 0; scratch.status == RONDO_STATUS_OK && r < rows; ++r) {
        rondo__ml_read_row(x, r, columns, row);
        run_model(&model, row, columns, scores + r * width);
        size_t label = classify(&model, &labels, transform, scores + r * width);
        // A single label stands for both outcomes.
        rondo__ml_write_label(&labels, labels.count == 1 ? 0 : label, chosen, r);
    }
    return rondo__scratch_end_as(&scratch, compute, 1, scores);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const scaler_attributes[] = {"offset", "scale", NULL};
static const char *const binarizer_attributes[] = {"threshold", NULL};
static const char *const normalizer_attributes[] = {"norm", NULL};
static const char *const vectorizer_attributes[] = {"inputdimensions", NULL};
static const char *const imputer_attributes[] = {"imputed_value_floats", "imputed_value_int64s",
                                                 "replaced_value_float", "replaced_value_int64",
                                                 NULL};
static const char *const regressor_attributes[] = {"coefficients", "intercepts", "post_transform",
                                                   "targets", NULL};
static const char *const classifier_attributes[] = {"classlabels_ints",
                                                    "classlabels_strings",
                                                    "coefficients",
                                                    "intercepts",
                                                    "multi_class",
                                                    "post_transform",
                                                    NULL};

#define LAST RONDO__ML_VERSION_MAX

const rondo__op_def rondo__op_table_ml_linear[] = {
    RONDO_ML_ENTRY(Binarizer, 1, LAST, 1, 1, 1, binarizer_attributes, infer_binarizer,
                   compute_binarizer, NULL,
                   .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_COMPARED}),
    RONDO_ML_ENTRY(FeatureVectorizer, 1, LAST, 1, RONDO_OP_ANY_COUNT, 1, vectorizer_attributes,
                   infer_vectorizer, compute_vectorizer, NULL),
    RONDO_ML_ENTRY(Imputer, 1, LAST, 1, 1, 1, imputer_attributes, infer_imputer, compute_imputer,
                   NULL),
    RONDO_ML_ENTRY(LinearClassifier, 1, LAST, 1, 1, 2, classifier_attributes, infer_classifier,
                   compute_classifier, rondo__ml_check_transform, .makes_strings = true),
    RONDO_ML_ENTRY(LinearRegressor, 1, LAST, 1, 1, 1, regressor_attributes, infer_regressor,
                   compute_regressor, rondo__ml_check_transform),
    RONDO_ML_ENTRY(Normalizer, 1, LAST, 1, 1, 1, normalizer_attributes, infer_normalizer,
                   compute_normalizer, check_normalizer),
    RONDO_ML_ENTRY(Scaler, 1, LAST, 1, 1, 1, scaler_attributes, infer_scaler, compute_scaler, NULL),
    {0},
};
