// op/math/matrix.c — see matrix.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/math/matrix.h"

#include <string.h>

#include "op/image/window.h"
#include "op/reference.h"

// Batch extents of one operand, and the distance (in matrices) from one entry to the next.
static void read_batch(const rondo_shape *shape, int32_t batch_rank, const int64_t *broadcast,
                       int64_t *steps) {
    const int32_t own = shape->rank < 2 ? 0 : shape->rank - 2;
    int64_t step = 1;
    for (int32_t i = batch_rank - 1; i >= 0; i--) {
        const int32_t at = own - (batch_rank - i);
        steps[i] = 0;
        if (at >= 0) {
            if (shape->extent[at] == broadcast[i] && broadcast[i] != 1) {
                steps[i] = step;
            }
            step *= shape->extent[at];
        }
    }
}

typedef struct shape_texts {
    char a[96], b[96];
} shape_texts;

static shape_texts write_shapes(const rondo_shape *a, const rondo_shape *b) {
    shape_texts texts;
    rondo_shape_format(a, texts.a, sizeof texts.a);
    rondo_shape_format(b, texts.b, sizeof texts.b);
    return texts;
}

rondo_status rondo__product_init(const rondo__op *op, const rondo_shape *a, const rondo_shape *b,
                                 bool trans_a, bool trans_b, rondo__product *out_product) {
    memset(out_product, 0, sizeof *out_product);
    rondo__product *product = out_product;
    if (a->rank < 1 || b->rank < 1) {
        const shape_texts texts = write_shapes(a, b);
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "operands have shapes %s and %s; scalars cannot be multiplied",
                             texts.a, texts.b);
    }
    product->trans_a = trans_a && a->rank >= 2;
    product->trans_b = trans_b && b->rank >= 2;
    const int64_t a_rows = a->rank == 1 ? 1 : a->extent[a->rank - 2];
    const int64_t a_columns = a->extent[a->rank - 1];
    const int64_t b_rows = b->rank == 1 ? b->extent[0] : b->extent[b->rank - 2];
    const int64_t b_columns = b->rank == 1 ? 1 : b->extent[b->rank - 1];
    product->m = product->trans_a ? a_columns : a_rows;
    product->k = product->trans_a ? a_rows : a_columns;
    product->n = product->trans_b ? b_rows : b_columns;
    if ((product->trans_b ? b_columns : b_rows) != product->k) {
        const shape_texts texts = write_shapes(a, b);
        return RONDO_OP_FAIL(
            op, BAD_DATA, "shapes %s and %s do not fit: inner extents %lld and %lld", texts.a,
            texts.b, (long long)product->k, (long long)(product->trans_b ? b_columns : b_rows));
    }
    const int32_t a_batch = a->rank < 2 ? 0 : a->rank - 2;
    const int32_t b_batch = b->rank < 2 ? 0 : b->rank - 2;
    product->batch_rank = a_batch > b_batch ? a_batch : b_batch;
    product->batch_count = 1;
    rondo_shape *output = &product->output;
    output->rank = 0;
    for (int32_t i = 0; i < product->batch_rank; i++) {
        const int32_t a_at = a_batch - product->batch_rank + i;
        const int32_t b_at = b_batch - product->batch_rank + i;
        const int64_t a_extent = a_at < 0 ? 1 : a->extent[a_at];
        const int64_t b_extent = b_at < 0 ? 1 : b->extent[b_at];
        if (a_extent != b_extent && a_extent != 1 && b_extent != 1) {
            const shape_texts texts = write_shapes(a, b);
            return RONDO_OP_FAIL(op, BAD_DATA, "batch extents of %s and %s do not broadcast",
                                 texts.a, texts.b);
        }
        product->batch[i] = a_extent == 1 ? b_extent : a_extent;
        output->extent[output->rank++] = product->batch[i];
    }
    if (a->rank > 1) {
        output->extent[output->rank++] = product->m;
    }
    if (b->rank > 1) {
        output->extent[output->rank++] = product->n;
    }
    if (rondo_shape_get_count(output) < 0) {
        const shape_texts texts = write_shapes(a, b);
        return RONDO_OP_FAIL(op, BAD_DATA, "the product of %s and %s has too many elements",
                             texts.a, texts.b);
    }
    for (int32_t i = 0; i < product->batch_rank; i++) {
        product->batch_count *= product->batch[i];
    }
    read_batch(a, product->batch_rank, product->batch, product->a_step);
    read_batch(b, product->batch_rank, product->batch, product->b_step);
    return RONDO_STATUS_OK;
}

// One matrix product. Where b is stored as [k, n] the innermost loop runs along rows of b and c;
// where it is stored as [n, k], along rows of a and b. Compiled so that these loops are vectorised
// (see CMakeLists.txt).
#define DEFINE_MULTIPLY(function, type, sum_type)                                               \
    static void function(const rondo__product *product, const type *a, const type *b,           \
                         sum_type *c) {                                                         \
        const int64_t m = product->m, n = product->n, k = product->k;                           \
        const int64_t row_step = product->trans_a ? 1 : k;                                      \
        const int64_t column_step = product->trans_a ? m : 1;                                   \
        for (int64_t i = 0; i < m; i++) {                                                       \
            const type *a_row = a + i * row_step;                                               \
            sum_type *c_row = c + i * n;                                                        \
            if (product->trans_b) {                                                             \
                for (int64_t j = 0; j < n; j++) {                                               \
                    sum_type sum = 0;                                                           \
                    for (int64_t p = 0; p < k; p++) {                                           \
                        sum += a_row[p * column_step] * b[j * k + p];                           \
                    }                                                                           \
                    c_row[j] += sum;                                                            \
                }                                                                               \
                continue;                                                                       \
            }                                                                                   \
            for (int64_t p = 0; p < k; p++) {                                                   \
                const type factor = a_row[p * column_step];                                     \
                const type *b_row = b + p * n;                                                  \
                for (int64_t j = 0; j < n; j++) {                                               \
                    c_row[j] += factor * b_row[j];                                              \
                }                                                                               \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    static void function##_batches(const rondo__product *product, const type *a, const type *b, \
                                   sum_type *c) {                                               \
        if (product->batch_count == 0) {                                                        \
            return;                                                                             \
        }                                                                                       \
        int64_t index[RONDO_RANK_MAX] = {0};                                                    \
        do {                                                                                    \
            int64_t a_at = 0, b_at = 0;                                                         \
            for (int32_t i = 0; i < product->batch_rank; i++) {                                 \
                a_at += index[i] * product->a_step[i];                                          \
                b_at += index[i] * product->b_step[i];                                          \
            }                                                                                   \
            function(product, a + a_at * product->m * product->k,                               \
                     b + b_at * product->k * product->n, c);                                    \
            c += product->m * product->n;                                                       \
        } while (rondo__index_advance(product->batch_rank, product->batch, index));             \
    }

DEFINE_MULTIPLY(multiply_double, double, double)
DEFINE_MULTIPLY(multiply_integer, uint64_t, uint64_t)
DEFINE_MULTIPLY(multiply_byte, int16_t, int32_t)

void rondo__product_run(const rondo__product *product, const double *a, const double *b,
                        double *c) {
    multiply_double_batches(product, a, b, c);
}

void rondo__product_run_integer(const rondo__product *product, const uint64_t *a, const uint64_t *b,
                                uint64_t *c) {
    multiply_integer_batches(product, a, b, c);
}

void rondo__product_run_byte(const rondo__product *product, const int16_t *a, const int16_t *b,
                             int32_t *c) {
    multiply_byte_batches(product, a, b, c);
}
