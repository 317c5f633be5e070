// op/ml/op_ml_svm.c — SVMClassifier, SVMRegressor: support vector machines as libsvm and liblinear
// make them.
//
// Each pair of classes has a machine of its own that votes for one of the two. Where prob_a and
// prob_b are given, the pairs' scores become probabilities that are joined into one for each class.
//
// Source:    Chang, Lin, LIBSVM: a library for support vector machines, ACM TIST 2(3), 2011; Wu,
//            Lin, Weng, Probability estimates for multi-class classification by pairwise coupling,
//            JMLR 5, 2004 (second approach).
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/ml/ml_scores.h"
#include "op/ml/ml_table.h"
#include "op/op.h"
#include "op/reference.h"

typedef enum kernel_kind {
    KERNEL_LINEAR,
    KERNEL_POLY,
    KERNEL_RBF,
    KERNEL_SIGMOID,
    KERNEL_UNKNOWN
} kernel_kind;

typedef struct svm {
    const rondo__op *op;
    kernel_kind kernel;
    double gamma, coef0, degree;
    int64_t columns;
    const float *coefficients;
    size_t coefficient_count;
    const float *vectors;
    size_t vector_count;  // 0: linear
    const float *rho;
    size_t rho_count;
    // classifier
    rondo__ml_labels labels;
    size_t class_count;
    const int64_t *vectors_per_class;
    const float *prob_a;  // NULL: scores, not probabilities
    const float *prob_b;
} svm;

// ---- the model --------------------------------------------------------------------------------

static kernel_kind read_kernel(const rondo__op *op) {
    static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
    const char *text = rondo__op_get_string(op, "kernel_type", "LINEAR");
    for (size_t i = 0; i < KERNEL_UNKNOWN; ++i) {
        if (strcmp(text, names[i]) == 0) {
            return (kernel_kind)i;
        }
    }
    return KERNEL_UNKNOWN;
}

static rondo_status read_common(const rondo__op *op, int64_t columns, svm *m) {
    size_t parameter_count = 0;
    size_t vector_values = 0;
    const float *parameters = rondo__op_get_floats(op, "kernel_params", &parameter_count);
    *m = (svm){.op = op, .kernel = read_kernel(op), .columns = columns};
    m->coefficients = rondo__op_get_floats(op, "coefficients", &m->coefficient_count);
    m->vectors = rondo__op_get_floats(op, "support_vectors", &vector_values);
    m->rho = rondo__op_get_floats(op, "rho", &m->rho_count);
    if (m->kernel == KERNEL_UNKNOWN) {
        return rondo__op_fail_unsupported(op, "attribute kernel_type");
    }
    RETURN_IF_ERROR(rondo__ml_check_transform(op));
    if (m->coefficient_count == 0 || m->rho_count == 0 || columns == 0 ||
        (parameter_count != 0 && parameter_count != 3) || vector_values % (size_t)columns != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "%zu coefficients, %zu rho, %zu kernel_params and %zu values of "
                             "support vectors do not fit %lld columns",
                             m->coefficient_count, m->rho_count, parameter_count, vector_values,
                             (long long)columns);
    }
    if (parameter_count == 3) {
        m->gamma = (double)parameters[0];
        m->coef0 = (double)parameters[1];
        m->degree = (double)parameters[2];
    }
    m->vector_count = vector_values / (size_t)columns;
    return RONDO_STATUS_OK;
}

static rondo_status read_regressor(const rondo__op *op, int64_t columns, svm *m) {
    RETURN_IF_ERROR(read_common(op, columns, m));
    int64_t supports = rondo__op_get_int(op, "n_supports", 0);
    if (supports <= 0) {
        m->vector_count = 0;
    }
    size_t needed = supports > 0 ? (size_t)supports : (size_t)columns;
    if ((supports > 0 && (size_t)supports != m->vector_count) || m->coefficient_count != needed) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "%zu support vectors, %zu coefficients; n_supports is "
                             "%lld",
                             m->vector_count, m->coefficient_count, (long long)supports);
    }
    return RONDO_STATUS_OK;
}

// One machine for each pair of classes.
static rondo_status check_pairs(const svm *m, size_t listed_count, size_t prob_a, size_t prob_b) {
    size_t total = 0;
    size_t pairs = m->class_count * (m->class_count - 1) / 2;
    bool fits = listed_count == m->class_count && m->class_count > 1;
    for (size_t i = 0; fits && i < listed_count; ++i) {
        fits = m->vectors_per_class[i] >= 0 &&
               rondo__add_size(total, (size_t)m->vectors_per_class[i], &total);
    }
    fits = fits && total == m->vector_count && m->rho_count == pairs &&
           m->coefficient_count == (m->class_count - 1) * m->vector_count;
    fits = fits && (prob_a == 0 || (prob_a == pairs && prob_b == pairs));
    return fits
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(m->op, BAD_DATA,
                               "%zu classes, %zu support vectors, %zu coefficients and %zu rho do "
                               "not fit each other",
                               m->class_count, m->vector_count, m->coefficient_count, m->rho_count);
}

static rondo_status read_classifier(const rondo__op *op, int64_t columns, svm *m) {
    enum { CLASSES_MAX = 1 << 15 };  // so that pairs can be counted
    size_t listed_count = 0;
    size_t prob_a = 0;
    size_t prob_b = 0;
    RETURN_IF_ERROR(read_common(op, columns, m));
    m->labels = rondo__ml_get_labels(op, "classlabels_strings", "classlabels_ints");
    m->class_count = m->labels.count > 0 ? m->labels.count : 1;
    m->vectors_per_class = rondo__op_get_ints(op, "vectors_per_class", &listed_count);
    m->prob_a = rondo__op_get_floats(op, "prob_a", &prob_a);
    m->prob_b = rondo__op_get_floats(op, "prob_b", &prob_b);
    m->prob_a = prob_a > 0 && listed_count > 0 ? m->prob_a : NULL;
    if (m->class_count > CLASSES_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "there are %zu classes", m->class_count);
    }
    if (listed_count > 0) {
        return check_pairs(m, listed_count, prob_a, prob_b);
    }
    m->vector_count = 0;
    m->kernel = KERNEL_LINEAR;
    return m->coefficient_count == m->class_count * (size_t)columns
               ? RONDO_STATUS_OK
               : RONDO_OP_FAIL(op, BAD_DATA, "%zu coefficients for %zu classes of %lld columns",
                               m->coefficient_count, m->class_count, (long long)columns);
}

// Sums of products, or of squared differences, with each of `count` vectors; two at once, whose
// sums do not wait for each other.
static inline void add_up(int64_t columns, bool is_difference, const double *row,
                          const float *vectors, size_t count, double *y) {
    size_t v = 0;
    for (; v + 2 <= count; v += 2, vectors += 2 * columns) {
        double first = 0.0, second = 0.0;
        for (int64_t i = 0; i < columns; ++i) {
            const double a = (double)vectors[i], b = (double)vectors[columns + i];
            first += is_difference ? (row[i] - a) * (row[i] - a) : row[i] * a;
            second += is_difference ? (row[i] - b) * (row[i] - b) : row[i] * b;
        }
        y[v] = first;
        y[v + 1] = second;
    }
    for (; v < count; ++v, vectors += columns) {
        double sum = 0.0;
        for (int64_t i = 0; i < columns; ++i) {
            const double other = (double)vectors[i];
            sum += is_difference ? (row[i] - other) * (row[i] - other) : row[i] * other;
        }
        y[v] = sum;
    }
}

// Four sums, which do not wait for each other.
static double multiply(const float *coefficients, const double *kernels, size_t count) {
    double sums[4] = {0};
    size_t v = 0;
    for (; v + 4 <= count; v += 4) {
        sums[0] += (double)coefficients[v] * kernels[v];
        sums[1] += (double)coefficients[v + 1] * kernels[v + 1];
        sums[2] += (double)coefficients[v + 2] * kernels[v + 2];
        sums[3] += (double)coefficients[v + 3] * kernels[v + 3];
    }
    for (; v < count; ++v) {
        sums[0] += (double)coefficients[v] * kernels[v];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void apply_kernel(const svm *m, const double *row, const float *vectors, size_t count,
                         double *y) {
    if (m->kernel == KERNEL_RBF) {
        add_up(m->columns, true, row, vectors, count, y);
    } else {
        add_up(m->columns, false, row, vectors, count, y);
    }
    for (size_t v = 0; m->kernel == KERNEL_RBF && v < count; ++v) {
        y[v] = exp(-m->gamma * y[v]);
    }
    for (size_t v = 0; m->kernel == KERNEL_POLY && v < count; ++v) {
        y[v] = pow(m->gamma * y[v] + m->coef0, m->degree);
    }
    for (size_t v = 0; m->kernel == KERNEL_SIGMOID && v < count; ++v) {
        y[v] = tanh(m->gamma * y[v] + m->coef0);
    }
}

// ---- SVMRegressor -----------------------------------------------------------------------------

static rondo_status infer_regressor(rondo__infer *infer) {
    svm model;
    int64_t rows;
    int64_t columns;
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    RETURN_IF_ERROR(read_regressor(infer->op, columns, &model));
    rondo_shape shape = {.rank = 2, .extent = {rows, 1}};
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_F32, &shape);
}

static rondo_status compute_regressor(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    int64_t rows = compute->inferred[0].shape.extent[0];
    bool is_one_class = rondo__op_get_int(compute->op, "one_class", 0) != 0;
    svm m;
    RETURN_IF_ERROR(read_regressor(compute->op, x->shape.extent[x->shape.rank - 1], &m));
    rondo__scratch scratch = {0};
    double *row = rondo__scratch_create(&scratch, m.columns);
    double *results = rondo__scratch_create(&scratch, rows);
    const size_t kernel_count = m.vector_count > 0 ? m.vector_count : 1;
    double *kernels = rondo__scratch_create(&scratch, (int64_t)kernel_count);
    for (int64_t r = 0; scratch.status == RONDO_STATUS_OK && r < rows; ++r) {
        rondo__ml_read_row(x, r, m.columns, row);
        double sum = (double)m.rho[0];
        const bool is_linear = m.vector_count == 0;
        apply_kernel(&m, row, is_linear ? m.coefficients : m.vectors, kernel_count, kernels);
        sum += is_linear ? kernels[0] : multiply(m.coefficients, kernels, kernel_count);
        results[r] = !is_one_class ? sum : sum > 0.0 ? 1.0 : -1.0;
    }
    return rondo__scratch_end_as(&scratch, compute, 0, results);
}

// ---- SVMClassifier ----------------------------------------------------------------------------

// Work of one row.
typedef struct svm_work {
    double *row;
    double *kernels;   // [vector_count]
    double *scores;    // [pairs or classes]
    double *votes;     // [class_count]
    double *pairwise;  // [class_count * class_count]
    double *coupling;  // the same
    double *products;  // [class_count]
} svm_work;

static size_t count_scores(const svm *m) {
    return m->vector_count > 0 ? m->class_count * (m->class_count - 1) / 2 : m->class_count;
}

// Columns of output 1: two classes of one score take two.
static size_t count_columns(const svm *m) {
    size_t count = m->prob_a != NULL ? m->class_count : count_scores(m);
    return count == 1 && m->class_count == 2 ? 2 : count;
}

static void vote(const svm *m, const svm_work *w) {
    size_t pair = 0;
    size_t first_i = 0;
    apply_kernel(m, w->row, m->vectors, m->vector_count, w->kernels);
    memset(w->votes, 0, m->class_count * sizeof *w->votes);
    for (size_t i = 0; i < m->class_count; ++i) {
        size_t count_i = (size_t)m->vectors_per_class[i];
        size_t first_j = first_i + count_i;
        for (size_t j = i + 1; j < m->class_count; ++j) {
            size_t count_j = (size_t)m->vectors_per_class[j];
            const float *of_i = m->coefficients + (j - 1) * m->vector_count + first_i;
            const float *of_j = m->coefficients + i * m->vector_count + first_j;
            const double for_i = multiply(of_i, w->kernels + first_i, count_i);
            const double for_j = multiply(of_j, w->kernels + first_j, count_j);
            const double sum = (double)m->rho[pair] + for_i + for_j;
            w->scores[pair++] = sum;
            w->votes[sum > 0.0 ? i : j] += 1.0;
            first_j += count_j;
        }
        first_i += count_i;
    }
}

// One turn of the iteration; false when the probabilities have settled.
static bool couple_once(size_t count, const double *q, double *products, double *p) {
    double total = 0.0;
    double worst = 0.0;
    for (size_t t = 0; t < count; ++t) {
        products[t] = 0.0;
        for (size_t j = 0; j < count; ++j) {
            products[t] += q[t * count + j] * p[j];
        }
        total += p[t] * products[t];
    }
    for (size_t t = 0; t < count; ++t) {
        worst = fmax(worst, fabs(products[t] - total));
    }
    if (worst < 0.005 / (double)count) {
        return false;
    }
    for (size_t t = 0; t < count; ++t) {
        double step = (total - products[t]) / q[t * count + t];
        p[t] += step;
        total = (total + step * (step * q[t * count + t] + 2.0 * products[t])) /
                ((1.0 + step) * (1.0 + step));
        for (size_t j = 0; j < count; ++j) {
            products[j] = (products[j] + step * q[t * count + j]) / (1.0 + step);
            p[j] /= 1.0 + step;
        }
    }
    return true;
}

// Joins the pairs' probabilities into one for each class, in scores[].
static void couple(const svm *m, const svm_work *w) {
    size_t count = m->class_count;
    size_t pair = 0;
    double *r = w->pairwise;
    double *q = w->coupling;
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = i + 1; j < count; ++j, ++pair) {
            double p = 1.0 - rondo__ml_logistic(w->scores[pair] * (double)m->prob_a[pair] +
                                                (double)m->prob_b[pair]);
            p = fmin(fmax(p, 1e-7), 1.0 - 1e-7);
            r[i * count + j] = p;
            r[j * count + i] = 1.0 - p;
        }
    }
    for (size_t t = 0; t < count; ++t) {
        w->scores[t] = 1.0 / (double)count;
        q[t * count + t] = 0.0;
        for (size_t j = 0; j < count; ++j) {
            if (j != t) {
                q[t * count + t] += r[j * count + t] * r[j * count + t];
                q[t * count + j] = -r[j * count + t] * r[t * count + j];
            }
        }
    }
    size_t turns = count > 100 ? count : 100;
    while (turns > 0 && couple_once(count, q, w->products, w->scores)) {
        turns -= 1;
    }
}

// The class of one row, with its scores as they are given out.
static size_t classify(const svm *m, const svm_work *w) {
    rondo__ml_transform transform = rondo__ml_get_transform(m->op);
    size_t count = count_scores(m);
    if (m->vector_count > 0) {
        vote(m, w);
        if (m->prob_a != NULL) {
            couple(m, w);
            count = m->class_count;
        }
    } else {
        apply_kernel(m, w->row, m->coefficients, m->class_count, w->scores);
        for (size_t c = 0; c < m->class_count; ++c) {
            w->scores[c] += (double)m->rho[0];
        }
    }
    const double *deciding = m->vector_count > 0 ? w->votes : w->scores;
    size_t chosen = rondo__ml_find_greatest(deciding, m->class_count);
    if (m->class_count == 1) {
        chosen = deciding[0] > 0.0;
    }
    if (count == 1 && m->class_count == 2) {
        double score = w->scores[0];
        rondo__ml_split_score(transform, w->scores);
        w->scores[0] = transform == RONDO__ML_NONE ? -score : w->scores[0];
    } else {
        rondo__ml_transform_row(transform, w->scores, count);
    }
    return chosen;
}

static rondo_status infer_classifier(rondo__infer *infer) {
    svm model;
    int64_t rows;
    int64_t columns;
    RETURN_IF_ERROR(rondo__ml_infer_table(infer, &rows, &columns));
    RETURN_IF_ERROR(read_classifier(infer->op, columns, &model));
    rondo_dtype label_dtype = rondo__ml_get_label_dtype(&model.labels);
    if (model.labels.count == 1 && label_dtype == RONDO_DTYPE_STRING) {
        return rondo__op_fail_unsupported(infer->op, "attribute classlabels_strings of one label");
    }
    rondo_shape shape = {.rank = 1, .extent = {rows}};
    RETURN_IF_ERROR(rondo__infer_set_output(infer, 0, label_dtype, &shape));
    shape.rank = 2;
    shape.extent[1] = (int64_t)count_columns(&model);
    return rondo__infer_set_output(infer, 1, RONDO_DTYPE_F32, &shape);
}

static rondo_status compute_classifier(rondo__compute *compute) {
    const rondo_tensor *x = compute->inputs[0];
    int64_t rows = compute->inferred[0].shape.extent[0];
    void *labels;
    svm m;
    RETURN_IF_ERROR(read_classifier(compute->op, x->shape.extent[x->shape.rank - 1], &m));
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &labels));
    const int64_t classes = (int64_t)m.class_count;
    const int64_t width = (int64_t)count_columns(&m);
    const int64_t most = (int64_t)count_scores(&m) > width ? (int64_t)count_scores(&m) : width;
    rondo__scratch scratch = {0};
    const svm_work w = {
        .row = rondo__scratch_create(&scratch, m.columns),
        .kernels = rondo__scratch_create(&scratch, (int64_t)m.vector_count),
        .scores = rondo__scratch_create(&scratch, most > classes ? most : classes),
        .votes = rondo__scratch_create(&scratch, classes),
        .pairwise = rondo__scratch_create(&scratch, m.prob_a != NULL ? classes * classes : 0),
        .coupling = rondo__scratch_create(&scratch, m.prob_a != NULL ? classes * classes : 0),
        .products = rondo__scratch_create(&scratch, classes),
    };
    double *results = rondo__scratch_create(&scratch, rows * width);
    for (int64_t r = 0; scratch.status == RONDO_STATUS_OK && r < rows; ++r) {
        rondo__ml_read_row(x, r, m.columns, w.row);
        size_t chosen = classify(&m, &w);
        memcpy(results + r * width, w.scores, (size_t)width * sizeof *results);
        if (m.labels.count == 1) {
            ((int64_t *)labels)[r] = (int64_t)chosen;
        } else {
            rondo__ml_write_label(&m.labels, chosen, labels, r);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 1, results);
}

// ---- the table --------------------------------------------------------------------------------

#define COMMON_ATTRIBUTES \
    "coefficients", "kernel_params", "kernel_type", "post_transform", "rho", "support_vectors"
static const char *const regressor_attributes[] = {COMMON_ATTRIBUTES, "n_supports", "one_class",
                                                   NULL};
static const char *const classifier_attributes[] = {COMMON_ATTRIBUTES,
                                                    "classlabels_ints",
                                                    "classlabels_strings",
                                                    "prob_a",
                                                    "prob_b",
                                                    "vectors_per_class",
                                                    NULL};

const rondo__op_def rondo__op_table_ml_svm[] = {
    RONDO_ML_ENTRY(SVMClassifier, 1, RONDO__ML_VERSION_MAX, 1, 1, 2, classifier_attributes,
                   infer_classifier, compute_classifier, rondo__ml_check_transform,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_EXPONENTIAL}, .makes_strings = true),
    RONDO_ML_ENTRY(SVMRegressor, 1, RONDO__ML_VERSION_MAX, 1, 1, 1, regressor_attributes,
                   infer_regressor, compute_regressor, rondo__ml_check_transform,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_EXPONENTIAL}),
    {0},
};
