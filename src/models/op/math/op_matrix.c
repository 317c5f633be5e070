// op/math/op_matrix.c — MatMul, Gemm, Det, com.microsoft.Inverse and the quantised products.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "op/math/einsum.h"
#include "op/math/matrix.h"
#include "op/op.h"
#include "op/reference.h"
#include "op/support.h"

// ---- MatMul -----------------------------------------------------------------------------------

static rondo_status infer_matmul(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 1));
    if (inputs[0].dtype == RONDO_DTYPE_BOOL) {
        return rondo__op_fail_dtype(infer->op, 0, inputs[0].dtype);
    }
    rondo__product product;
    RETURN_IF_ERROR(
        rondo__product_init(infer->op, &inputs[0].shape, &inputs[1].shape, false, false, &product));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &product.output);
}

// Where the addend of element [row, column] of a product stands; c broadcasts.
static int64_t get_addend_place(const rondo_shape *c, int64_t row, int64_t column) {
    const int64_t columns = c->rank == 0 ? 1 : c->extent[c->rank - 1];
    const int64_t rows = c->rank < 2 ? 1 : c->extent[c->rank - 2];
    return (rows == 1 ? 0 : row * columns) + (columns == 1 ? 0 : column);
}

enum { PRODUCT_A, PRODUCT_B, PRODUCT_Y, PRODUCT_C, PRODUCT_ARRAYS };

// Integers of any width multiply modulo 2^64, which is also right modulo their own width: alpha
// times the product, plus beta times `c`, which is what Gemm adds, or NULL.
static rondo_status compute_integer_product(rondo__compute *compute, const rondo__product *product,
                                            int64_t alpha, int64_t beta, const rondo_tensor *c) {
    const rondo_tensor *tensors[PRODUCT_ARRAYS] = {compute->inputs[0], compute->inputs[1], NULL, c};
    const int64_t y_count = rondo_shape_get_count(&product->output);
    const rondo_dtype dtype = compute->inputs[0]->dtype;
    uint64_t *arrays[PRODUCT_ARRAYS] = {NULL};
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < PRODUCT_ARRAYS; i++) {
        const size_t count = tensors[i] != NULL ? (size_t)rondo_shape_get_count(&tensors[i]->shape)
                                                : (size_t)y_count;
        if (i == PRODUCT_C && c == NULL) {
            continue;
        }
        arrays[i] = rondo__calloc(count == 0 ? 1 : count, sizeof *arrays[i]);
        if (arrays[i] == NULL) {
            status = RONDO_STATUS_NO_MEMORY;
            goto done;
        }
        if (tensors[i] != NULL) {
            rondo__convert_elements(dtype, tensors[i]->data, RONDO_DTYPE_U64, arrays[i], count);
        }
    }
    rondo__product_run_integer(product, arrays[PRODUCT_A], arrays[PRODUCT_B], arrays[PRODUCT_Y]);
    for (int64_t i = 0; i < y_count; i++) {
        arrays[PRODUCT_Y][i] *= (uint64_t)alpha;
        if (c != NULL) {
            const int64_t at = get_addend_place(&c->shape, i / product->n, i % product->n);
            arrays[PRODUCT_Y][i] += (uint64_t)beta * arrays[PRODUCT_C][at];
        }
    }
    void *data;
    status = rondo__compute_get_inferred(compute, 0, &data);
    if (status == RONDO_STATUS_OK) {
        rondo__convert_elements(RONDO_DTYPE_U64, arrays[PRODUCT_Y], dtype, data, (size_t)y_count);
    }
done:
    for (size_t i = 0; i < PRODUCT_ARRAYS; i++) {
        rondo__free(arrays[i]);
    }
    return status;
}

static rondo_status compute_matmul(rondo__compute *compute) {
    rondo__product product;
    RETURN_IF_ERROR(rondo__product_init(compute->op, &compute->inputs[0]->shape,
                                        &compute->inputs[1]->shape, false, false, &product));
    if (!rondo__dtype_is_float(compute->inputs[0]->dtype)) {
        return compute_integer_product(compute, &product, 1, 0, NULL);
    }
    rondo__scratch scratch = {0};
    const double *a = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *b = rondo__scratch_widen(&scratch, compute->inputs[1]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&product.output));
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__product_run(&product, a, b, y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- Gemm -------------------------------------------------------------------------------------

static rondo_status init_gemm(const rondo__op *op, const rondo_shape *a, const rondo_shape *b,
                              const rondo_shape *c, rondo__product *out_product) {
    if (a->rank != 2 || b->rank != 2) {
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs A and B have ranks %d and %d, both must be 2",
                             a->rank, b->rank);
    }
    RETURN_IF_ERROR(rondo__product_init(op, a, b, rondo__op_get_int(op, "transA", 0) != 0,
                                        rondo__op_get_int(op, "transB", 0) != 0, out_product));
    for (int32_t i = 1; c != NULL && i <= c->rank; i++) {
        const int64_t extent = c->extent[c->rank - i];
        if (extent != 1 && (i > 2 || extent != out_product->output.extent[2 - i])) {
            char text[96];
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "input C of shape %s does not broadcast to [%lld, %lld]",
                                 rondo_shape_format(c, text, sizeof text),
                                 (long long)out_product->m, (long long)out_product->n);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_gemm(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const bool has_c = rondo__infer_has_input(infer, 2);
    RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 1));
    if (has_c) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
    }
    rondo__product product;
    RETURN_IF_ERROR(init_gemm(infer->op, &inputs[0].shape, &inputs[1].shape,
                              has_c ? &inputs[2].shape : NULL, &product));
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &product.output);
}

static bool is_whole(double factor) {
    return fabs(factor) < 0x1p53 && factor == floor(factor);
}

static rondo_status compute_gemm(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_tensor *c = rondo__compute_get_input(compute, 2);
    rondo__product product;
    RETURN_IF_ERROR(init_gemm(op, &compute->inputs[0]->shape, &compute->inputs[1]->shape,
                              c == NULL ? NULL : &c->shape, &product));
    const double alpha = (double)rondo__op_get_float(op, "alpha", 1.0f);
    const double beta = (double)rondo__op_get_float(op, "beta", 1.0f);
    if (beta == 0.0) {
        c = NULL;  // nothing of it is added, not even what is no number
    }
    if (!rondo__dtype_is_float(compute->inputs[0]->dtype) && is_whole(alpha) && is_whole(beta)) {
        return compute_integer_product(compute, &product, (int64_t)alpha, (int64_t)beta, c);
    }
    rondo__scratch scratch = {0};
    const double *a = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *b = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *addend = rondo__scratch_widen(&scratch, c);
    double *y = rondo__scratch_create(&scratch, product.m * product.n);
    if (scratch.status == RONDO_STATUS_OK) {
        rondo__product_run(&product, a, b, y);
        for (int64_t i = 0; i < product.m; i++) {
            for (int64_t j = 0; j < product.n; j++) {
                double *value = &y[i * product.n + j];
                *value *= alpha;
                if (addend != NULL) {
                    *value += beta * addend[get_addend_place(&c->shape, i, j)];
                }
            }
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- Det --------------------------------------------------------------------------------------

static rondo_status infer_det(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (x->rank < 2 || x->extent[x->rank - 1] != x->extent[x->rank - 2]) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "input X of shape %s is no batch of squares",
                             rondo_shape_format(x, text, sizeof text));
    }
    rondo_shape shape = {.rank = x->rank - 2};
    memcpy(shape.extent, x->extent, (size_t)shape.rank * sizeof shape.extent[0]);
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// Gaussian elimination with row pivots, in place.
static double get_determinant(double *rows, int64_t n) {
    double determinant = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++) {
            if (fabs(rows[i * n + k]) > fabs(rows[pivot * n + k])) {
                pivot = i;
            }
        }
        if (rows[pivot * n + k] == 0.0) {
            return 0.0;
        }
        if (pivot != k) {
            determinant = -determinant;
            for (int64_t j = 0; j < n; j++) {
                const double swapped = rows[k * n + j];
                rows[k * n + j] = rows[pivot * n + j];
                rows[pivot * n + j] = swapped;
            }
        }
        determinant *= rows[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = rows[i * n + k] / rows[k * n + k];
            for (int64_t j = k; j < n; j++) {
                rows[i * n + j] -= factor * rows[k * n + j];
            }
        }
    }
    return determinant;
}

static rondo_status compute_det(rondo__compute *compute) {
    const rondo_shape *x = &compute->inputs[0]->shape;
    const int64_t n = x->extent[x->rank - 1];
    const int64_t count = rondo__shape_multiply(x, 0, x->rank - 2);
    rondo__scratch scratch = {0};
    double *rows = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, count);
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t i = 0; i < count; i++) {
            y[i] = get_determinant(rows + i * n * n, n);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- quantised products -----------------------------------------------------------------------

// Which element of a scale or zero point belongs to element `index` of an operand with the given
// rows and columns: one for all, one for each row (of a) or column (of b), also per batch entry.
static int64_t find_parameter(int64_t parameter_count, int64_t rows, int64_t columns,
                              bool is_by_row, int64_t index) {
    if (parameter_count == 1) {
        return 0;
    }
    if (is_by_row) {
        return index / columns % parameter_count;
    }
    return (index / (rows * columns) * columns + index % columns) % parameter_count;
}

// Checks one scale or zero point against the operand it belongs to.
static rondo_status check_parameter(const rondo__infer *infer, size_t input,
                                    const rondo_shape *operand, bool is_by_row) {
    if (!rondo__infer_has_input(infer, input)) {
        return RONDO_STATUS_OK;
    }
    const rondo_shape *shape = &infer->inputs[input].shape;
    const int64_t count = rondo_shape_get_count(shape);
    const int32_t rank = operand->rank;
    const int64_t lines =
        is_by_row ? (rank < 2 ? 1 : operand->extent[rank - 2]) : operand->extent[rank - 1];
    const int64_t batch = rank < 2 ? 1 : rondo__shape_multiply(operand, 0, rank - 2);
    if (count != 1 && count != lines && count != batch * lines) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "input %zu has shape %s; one value or one for each of %lld %s", input,
                             rondo_shape_format(shape, text, sizeof text), (long long)lines,
                             is_by_row ? "rows" : "columns");
    }
    return RONDO_STATUS_OK;
}

// operand[i] = (operand[i] - zero) * scale, where either may be absent.
static void dequantize(double *operand, const rondo_shape *shape, const double *zero,
                       int64_t zero_count, const double *scale, int64_t scale_count,
                       bool is_by_row) {
    const int64_t columns = shape->extent[shape->rank - 1];
    const int64_t rows = shape->rank < 2 ? 1 : shape->extent[shape->rank - 2];
    const int64_t count = rondo_shape_get_count(shape);
    for (int64_t i = 0; i < count; i++) {
        if (zero != NULL) {
            operand[i] -= zero[find_parameter(zero_count, rows, columns, is_by_row, i)];
        }
        if (scale != NULL) {
            operand[i] *= scale[find_parameter(scale_count, rows, columns, is_by_row, i)];
        }
    }
}

static int64_t get_count(const rondo_tensor *tensor) {
    return tensor == NULL ? 0 : rondo_shape_get_count(&tensor->shape);
}

static rondo_status infer_matmul_integer(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 0));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 1));
    rondo__product product;
    RETURN_IF_ERROR(
        rondo__product_init(infer->op, &inputs[0].shape, &inputs[1].shape, false, false, &product));
    RETURN_IF_ERROR(check_parameter(infer, 2, &inputs[0].shape, true));
    RETURN_IF_ERROR(check_parameter(infer, 3, &inputs[1].shape, false));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I32, &product.output);
}

// The operand's bytes as i16, less their zero points.
static int16_t *make_short(rondo__scratch *scratch, const rondo_tensor *operand,
                           const rondo_tensor *zero, bool is_by_row) {
    const int64_t count = rondo_shape_get_count(&operand->shape);
    const int32_t rank = operand->shape.rank;
    const int64_t columns = operand->shape.extent[rank - 1];
    const int64_t rows = rank < 2 ? 1 : operand->shape.extent[rank - 2];
    const int64_t zero_count = get_count(zero);
    const double *zeros = rondo__scratch_widen(scratch, zero);
    int16_t *shorts = (int16_t *)(void *)rondo__scratch_create(scratch, count / 4 + 1);
    if (scratch->status != RONDO_STATUS_OK || count == 0) {
        return shorts;
    }
    const bool is_signed = operand->dtype == RONDO_DTYPE_I8;
    for (int64_t first = 0; first < count; first += columns) {
        for (int64_t i = first; i < first + columns; i++) {
            shorts[i] = is_signed ? ((const int8_t *)operand->data)[i]
                                  : ((const uint8_t *)operand->data)[i];
        }
        // A parameter of rows is the same along a row; one of columns follows it.
        const int64_t at =
            zeros != NULL ? find_parameter(zero_count, rows, columns, is_by_row, first) : 0;
        const bool is_each = zeros != NULL && !is_by_row && zero_count > 1;
        for (int64_t i = 0; zeros != NULL && i < columns; i++) {
            shorts[first + i] =
                (int16_t)(shorts[first + i] - (int16_t)zeros[is_each ? at + i : at]);
        }
    }
    return shorts;
}

static rondo_status compute_short_product(rondo__compute *compute, const rondo__product *product) {
    void *y = NULL;
    rondo__scratch scratch = {0};
    const int16_t *a =
        make_short(&scratch, compute->inputs[0], rondo__compute_get_input(compute, 2), true);
    const int16_t *b =
        make_short(&scratch, compute->inputs[1], rondo__compute_get_input(compute, 3), false);
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = rondo__compute_get_inferred(compute, 0, &y);
    }
    const size_t count = (size_t)rondo_shape_get_count(&product->output);
    if (scratch.status == RONDO_STATUS_OK && count > 0) {
        memset(y, 0, count * sizeof(int32_t));
        rondo__product_run_byte(product, a, b, y);
    }
    return rondo__scratch_end(&scratch);
}

static rondo_status compute_matmul_integer(rondo__compute *compute) {
    const rondo_tensor *zeros[2] = {rondo__compute_get_input(compute, 2),
                                    rondo__compute_get_input(compute, 3)};
    rondo__product product;
    RETURN_IF_ERROR(rondo__product_init(compute->op, &compute->inputs[0]->shape,
                                        &compute->inputs[1]->shape, false, false, &product));
    if (product.k <= RONDO__BYTE_PRODUCT_K_MAX) {
        return compute_short_product(compute, &product);
    }
    rondo__scratch scratch = {0};
    double *operands[2] = {NULL};
    const double *wide_zeros[2] = {NULL};
    for (size_t i = 0; i < 2; i++) {
        operands[i] = rondo__scratch_widen(&scratch, compute->inputs[i]);
        wide_zeros[i] = rondo__scratch_widen(&scratch, zeros[i]);
    }
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(&product.output));
    if (scratch.status == RONDO_STATUS_OK) {
        for (size_t i = 0; i < 2; i++) {
            dequantize(operands[i], &compute->inputs[i]->shape, wide_zeros[i], get_count(zeros[i]),
                       NULL, 0, i == 0);
        }
        rondo__product_run(&product, operands[0], operands[1], y);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static rondo_status infer_qlinear_matmul(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 0));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 3));
    RETURN_IF_ERROR(rondo__infer_check_bytes(infer, 7));
    rondo__product product;
    RETURN_IF_ERROR(
        rondo__product_init(infer->op, &inputs[0].shape, &inputs[3].shape, false, false, &product));
    for (size_t i = 1; i <= 2; i++) {
        RETURN_IF_ERROR(check_parameter(infer, i, &inputs[0].shape, true));
        RETURN_IF_ERROR(check_parameter(infer, 3 + i, &inputs[3].shape, false));
        if (rondo_shape_get_count(&inputs[5 + i].shape) != 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one value", 5 + i);
        }
    }
    return rondo__infer_set_output(infer, 0, inputs[7].dtype, &product.output);
}

static rondo_status compute_qlinear_matmul(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    rondo__product product;
    RETURN_IF_ERROR(rondo__product_init(compute->op, &inputs[0]->shape, &inputs[3]->shape, false,
                                        false, &product));
    const int64_t count = rondo_shape_get_count(&product.output);
    rondo__scratch scratch = {0};
    double *wide[8] = {NULL};
    for (size_t i = 0; i < 8; i++) {
        wide[i] = rondo__scratch_widen(&scratch, inputs[i]);
    }
    double *y = rondo__scratch_create(&scratch, count);
    // Scales of rows and columns come after the sum, which then is exact; only those that change
    // along the batch come before it.
    const int64_t a_count = get_count(inputs[1]), b_count = get_count(inputs[4]);
    const bool is_a_after = a_count == 1 || a_count == product.m;
    const bool is_b_after = b_count == 1 || b_count == product.n;
    if (scratch.status == RONDO_STATUS_OK) {
        dequantize(wide[0], &inputs[0]->shape, wide[2], get_count(inputs[2]),
                   is_a_after ? NULL : wide[1], a_count, true);
        dequantize(wide[3], &inputs[3]->shape, wide[5], get_count(inputs[5]),
                   is_b_after ? NULL : wide[4], b_count, false);
        rondo__product_run(&product, wide[0], wide[3], y);
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = i / product.n % product.m, column = i % product.n;
            const double a_scale = is_a_after ? wide[1][a_count == 1 ? 0 : row] : 1.0;
            const double b_scale = is_b_after ? wide[4][b_count == 1 ? 0 : column] : 1.0;
            y[i] = rondo__requantize(y[i], a_scale, b_scale, *wide[6], *wide[7], inputs[7]->dtype);
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- Inverse ----------------------------------------------------------------------------------

static rondo_status infer_inverse(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    if (x->rank < 2 || x->extent[x->rank - 1] != x->extent[x->rank - 2]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "X has no square matrices");
    }
    return rondo__infer_like_input(infer);
}

// Gauss and Jordan, with the largest number of a column in front: y becomes what x was divided by.
static void invert(double *x, double *y, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) {
        y[i] = i / n == i % n ? 1.0 : 0.0;
    }
    for (int64_t c = 0; c < n; c++) {
        int64_t best = c;
        for (int64_t r = c + 1; r < n; r++) {
            best = fabs(x[r * n + c]) > fabs(x[best * n + c]) ? r : best;
        }
        for (int64_t i = 0; i < n; i++) {
            const double x_row = x[c * n + i], y_row = y[c * n + i];
            x[c * n + i] = x[best * n + i];
            y[c * n + i] = y[best * n + i];
            x[best * n + i] = x_row;
            y[best * n + i] = y_row;
        }
        const double pivot = x[c * n + c];
        for (int64_t i = 0; i < n; i++) {
            x[c * n + i] /= pivot;
            y[c * n + i] /= pivot;
        }
        for (int64_t r = 0; r < n; r++) {
            const double factor = r == c ? 0.0 : x[r * n + c];
            for (int64_t i = 0; i < n && r != c; i++) {
                x[r * n + i] -= factor * x[c * n + i];
                y[r * n + i] -= factor * y[c * n + i];
            }
        }
    }
}

static rondo_status compute_inverse(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inputs[0]->shape;
    const int64_t n = shape->extent[shape->rank - 1], count = rondo_shape_get_count(shape);
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, count);
    for (int64_t at = 0; at < count && scratch.status == RONDO_STATUS_OK; at += n * n) {
        invert(x + at, y + at, n);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const no_attributes[] = {NULL};
static const char *const gemm_attributes[] = {"alpha", "beta", "transA", "transB", NULL};
// Version 6 says that C may be broadcast, which it may be anyway since.
static const char *const gemm_6_attributes[] = {"alpha",  "beta",   "broadcast",
                                                "transA", "transB", NULL};
static const char *const einsum_attributes[] = {"equation", NULL};

const rondo__op_def rondo__op_table_matrix[] = {
    RONDO_OP_ENTRY(MatMul, 1, 28, 2, 2, 1, 1, no_attributes, infer_matmul, compute_matmul,
                   .weights = 1, .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(Gemm, 6, 6, 3, 3, 1, 1, gemm_6_attributes, infer_gemm, compute_gemm,
                   .weights = 1, .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(Gemm, 7, 28, 2, 3, 1, 1, gemm_attributes, infer_gemm, compute_gemm, .weights = 1,
                   .half.kind = HALF_PRODUCT),
    RONDO_OP_ENTRY(Det, 11, 28, 1, 1, 1, 1, no_attributes, infer_det, compute_det,
                   .half = {HALF_STAYS, HALF_WIDE, HALF_POWER}),
    RONDO_OP_ENTRY(MatMulInteger, 10, 28, 2, 4, 1, 1, no_attributes, infer_matmul_integer,
                   compute_matmul_integer, .weights = 1,
                   .half = {HALF_COUNTING, HALF_WIDE, HALF_QUANTISED}),
    RONDO_OP_ENTRY(QLinearMatMul, 10, 28, 8, 8, 1, 1, no_attributes, infer_qlinear_matmul,
                   compute_qlinear_matmul, .weights = 3,
                   .half = {HALF_STAYS, HALF_PLAIN, HALF_QUANTISED}),
    RONDO_OP_ENTRY(Einsum, 12, 28, 1, RONDO_OP_ANY_COUNT, 1, 1, einsum_attributes,
                   rondo__einsum_infer, rondo__einsum_compute, .weights = 1,
                   .half.kind = HALF_PRODUCT),
    {.id = RONDO_OP_NAME(MS, Inverse),
     .opset_min = 1,
     .opset_max = 1,
     .input_min = 1,
     .input_max = 1,
     .output_min = 1,
     .output_max = 1,
     .capture = RONDO__CAPTURE_YES,
     .attributes = no_attributes,
     .infer = infer_inverse,
     .compute = compute_inverse},
    {.name = NULL},
};
