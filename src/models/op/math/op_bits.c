// op/math/op_bits.c — com.microsoft.MatMulNBits and com.microsoft.GatherBlockQuantized: numbers of
// a few bits in blocks, which share a scale and a zero point.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "base/memory.h"
#include "op/fused/fused.h"
#include "op/math/bits_product.h"
#include "op/op.h"
#include "op/reference.h"

static bool is_power_of_two(int64_t value) {
    return value > 0 && (value & (value - 1)) == 0;
}

static rondo_status check_bits(const rondo__op *op) {
    const int64_t bits = rondo__op_get_int(op, "bits", 4);
    const int64_t block = rondo__op_get_int(op, "block_size", 128);
    if (bits != 2 && bits != 4 && bits != 8) {
        return rondo__op_fail_unsupported(op, "attribute bits is none of 2, 4 and 8");
    }
    if (block < 16 || block > INT32_MAX || !is_power_of_two(block)) {
        return rondo__op_fail_unsupported(op, "attribute block_size is no power of two from 16 on");
    }
    return RONDO_STATUS_OK;
}

// ---- MatMulNBits ------------------------------------------------------------------------------

rondo_status rondo__bits_product_init(const rondo__op *op, const rondo_shape *a,
                                      rondo__bits_product *out_product) {
    rondo__bits_product p = {
        .n = rondo__op_get_int(op, "N", 0),
        .k = rondo__op_get_int(op, "K", 0),
        .bits = (int32_t)rondo__op_get_int(op, "bits", 4),
        .block = rondo__op_get_int(op, "block_size", 0),
    };
    RETURN_IF_ERROR(check_bits(op));
    if (p.n < 1 || p.k < 1 || p.n > INT32_MAX || p.k > INT32_MAX || p.block == 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attributes K, N and block_size are %lld, %lld and %lld",
                             (long long)p.k, (long long)p.n, (long long)p.block);
    }
    if (a->rank < 1 || a->extent[a->rank - 1] != p.k) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "A has shape %s; attribute K is %lld",
                             rondo_shape_format(a, text, sizeof text), (long long)p.k);
    }
    p.m = rondo__shape_multiply(a, 0, a->rank - 1);
    p.block_bytes = p.block * p.bits / 8;
    p.blocks = (p.k + p.block - 1) / p.block;
    p.zero_bytes = (p.blocks * p.bits + 7) / 8;
    *out_product = p;
    return RONDO_STATUS_OK;
}

static rondo_status check_count(const rondo__infer *infer, size_t input, const char *name,
                                int64_t wanted) {
    char text[96];
    const rondo_shape *shape = &infer->inputs[input].shape;
    if (!rondo__infer_has_input(infer, input) || rondo_shape_get_count(shape) == wanted) {
        return RONDO_STATUS_OK;
    }
    return RONDO_OP_FAIL(infer->op, BAD_DATA, "%s has shape %s; K, N and block_size want %lld",
                         name, rondo_shape_format(shape, text, sizeof text), (long long)wanted);
}

static rondo_status check_dtype(const rondo__infer *infer, size_t input, rondo_dtype dtype) {
    return !rondo__infer_has_input(infer, input) || infer->inputs[input].dtype == dtype
               ? RONDO_STATUS_OK
               : rondo__op_fail_dtype(infer->op, input, infer->inputs[input].dtype);
}

// B, scales and zero points that stand from the input `first` on.
static rondo_status check_matrix(const rondo__infer *infer, const rondo__bits_product *p,
                                 size_t first) {
    enum {
        SCALES_OF = RONDO__BITS_SCALES - RONDO__BITS_B,
        ZEROS_OF = RONDO__BITS_ZEROS - RONDO__BITS_B
    };
    const rondo_dtype dtype = infer->inputs[RONDO__BITS_A].dtype;
    const size_t zeros = first + ZEROS_OF;
    const bool is_packed =
        rondo__infer_has_input(infer, zeros) && infer->inputs[zeros].dtype == RONDO_DTYPE_U8;
    RETURN_IF_ERROR(check_dtype(infer, first, RONDO_DTYPE_U8));
    RETURN_IF_ERROR(check_dtype(infer, first + SCALES_OF, dtype));
    RETURN_IF_ERROR(is_packed ? RONDO_STATUS_OK : check_dtype(infer, zeros, dtype));
    RETURN_IF_ERROR(check_count(infer, first, "B", p->n * p->blocks * p->block_bytes));
    RETURN_IF_ERROR(check_count(infer, first + SCALES_OF, "scales", p->n * p->blocks));
    return check_count(infer, zeros, "zero_points", p->n * (is_packed ? p->zero_bytes : p->blocks));
}

// has_rows  a bias may have a number for each element of the result
static rondo_status infer_bits(rondo__infer *infer, bool has_rows) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_dtype dtype = inputs[RONDO__BITS_A].dtype;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, RONDO__BITS_A, 1));
    rondo__bits_product p;
    RETURN_IF_ERROR(rondo__bits_product_init(infer->op, &inputs[RONDO__BITS_A].shape, &p));
    RETURN_IF_ERROR(check_matrix(infer, &p, RONDO__BITS_B));
    RETURN_IF_ERROR(check_dtype(infer, RONDO__BITS_GROUPS, RONDO_DTYPE_I32));
    RETURN_IF_ERROR(check_dtype(infer, RONDO__BITS_BIAS, dtype));
    if (rondo__infer_has_input(infer, RONDO__BITS_GROUPS) &&
        rondo_shape_get_count(&inputs[RONDO__BITS_GROUPS].shape) < p.k) {
        RETURN_IF_ERROR(check_count(infer, RONDO__BITS_GROUPS, "g_idx", p.k));
    }
    if (!has_rows || !rondo__infer_has_input(infer, RONDO__BITS_BIAS) ||
        rondo_shape_get_count(&inputs[RONDO__BITS_BIAS].shape) != p.m * p.n) {
        RETURN_IF_ERROR(check_count(infer, RONDO__BITS_BIAS, "bias", p.n));
    }
    rondo_shape y = inputs[RONDO__BITS_A].shape;
    y.extent[y.rank - 1] = p.n;
    return rondo__infer_set_output(infer, 0, dtype, &y);
}

static rondo_status infer_bits_product(rondo__infer *infer) {
    return infer_bits(infer, false);
}

typedef struct bits_operands {
    const rondo__bits_product *product;
    const uint8_t *b;
    const double *scales;
    const uint8_t *packed_zeros;  // or
    const double *zeros;          // or neither
    const int32_t *groups;
} bits_operands;

// One column of B as real numbers.
static void widen_column(const bits_operands *o, int64_t column, double *out_values) {
    const rondo__bits_product *p = o->product;
    const uint8_t *bytes = o->b + column * p->blocks * p->block_bytes;
    for (int64_t i = 0; i < p->k; i++) {
        const int64_t group = o->groups != NULL ? o->groups[i] : i / p->block;
        const int64_t at = column * p->blocks + group;
        const double zero =
            o->packed_zeros != NULL
                ? (double)rondo__bits_get(o->packed_zeros + column * p->zero_bytes, p->bits, group)
            : o->zeros != NULL ? o->zeros[at]
                               : (double)(1u << (p->bits - 1));
        out_values[i] = ((double)rondo__bits_get(bytes, p->bits, i) - zero) * o->scales[at];
    }
}

static rondo_status check_groups(const rondo__compute *compute, const rondo__bits_product *p,
                                 const int32_t *groups) {
    for (int64_t i = 0; groups != NULL && i < p->k; i++) {
        if (groups[i] < 0 || groups[i] >= p->blocks) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "g_idx[%lld] is %d; there are %lld blocks",
                                 (long long)i, groups[i], (long long)p->blocks);
        }
    }
    return RONDO_STATUS_OK;
}

// The matrix that stands from the input `first` on.
static bits_operands read_matrix(const rondo__compute *compute, const rondo__bits_product *p,
                                 size_t first, rondo__scratch *scratch) {
    const rondo_tensor *scales = compute->inputs[first + RONDO__BITS_SCALES - RONDO__BITS_B];
    const rondo_tensor *zeros =
        rondo__compute_get_input(compute, first + RONDO__BITS_ZEROS - RONDO__BITS_B);
    const bool is_packed = zeros != NULL && zeros->dtype == RONDO_DTYPE_U8;
    return (bits_operands){
        .product = p,
        .b = compute->inputs[first]->data,
        .scales = rondo__scratch_widen(scratch, scales),
        .packed_zeros = is_packed ? zeros->data : NULL,
        .zeros = is_packed ? NULL : rondo__scratch_widen(scratch, zeros),
    };
}

// a [m, k] times the matrix, of which each column of the result has one number more, or each of its
// elements (bias_stride numbers from row to row), or none.
static double *multiply(const bits_operands *o, const double *a, const double *bias,
                        int64_t bias_stride, rondo__scratch *scratch) {
    const rondo__bits_product *p = o->product;
    double *column = rondo__scratch_create(scratch, p->k);
    double *y = rondo__scratch_create(scratch, p->m * p->n);
    for (int64_t c = 0; c < p->n && scratch->status == RONDO_STATUS_OK; c++) {
        widen_column(o, c, column);
        for (int64_t r = 0; r < p->m; r++) {
            double sum = bias != NULL ? bias[r * bias_stride + c] : 0.0;
            for (int64_t i = 0; i < p->k; i++) {
                sum += a[r * p->k + i] * column[i];
            }
            y[r * p->n + c] = sum;
        }
    }
    return y;
}

static rondo_status compute_bits_product(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    const rondo_tensor *groups = rondo__compute_get_input(compute, RONDO__BITS_GROUPS);
    rondo__bits_product p;
    RETURN_IF_ERROR(rondo__bits_product_init(compute->op, &inputs[RONDO__BITS_A]->shape, &p));
    RETURN_IF_ERROR(check_groups(compute, &p, groups != NULL ? groups->data : NULL));
    rondo__scratch scratch = {0};
    const double *a = rondo__scratch_widen(&scratch, inputs[RONDO__BITS_A]);
    const double *bias =
        rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, RONDO__BITS_BIAS));
    bits_operands operands = read_matrix(compute, &p, RONDO__BITS_B, &scratch);
    operands.groups = groups != NULL ? groups->data : NULL;
    const double *y = multiply(&operands, a, bias, 0, &scratch);
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- rondo.BitsRow ----------------------------------------------------------------------------

static rondo_status infer_bits_row(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    rondo__bits_product p;
    RETURN_IF_ERROR(infer_bits(infer, true));
    RETURN_IF_ERROR(rondo__bits_product_init(op, &infer->inputs[RONDO__BITS_A].shape, &p));
    RETURN_IF_ERROR(check_dtype(infer, RONDO__BITS_GAIN, infer->inputs[RONDO__BITS_A].dtype));
    RETURN_IF_ERROR(check_count(infer, RONDO__BITS_GAIN, "gain", p.k));
    RETURN_IF_ERROR(check_matrix(infer, &p, RONDO__BITS_GATE));
    const bool has_gate = rondo__infer_has_input(infer, RONDO__BITS_GATE);
    if (rondo__infer_has_input(infer, RONDO__BITS_GROUPS) ||
        has_gate != rondo__infer_has_input(infer, RONDO__BITS_GATE_SCALES) ||
        (has_gate && rondo__infer_has_input(infer, RONDO__BITS_BIAS)) ||
        rondo__activation_parse(rondo__op_get_string(op, "activation", "none")) < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "inputs or attributes do not fit together");
    }
    return RONDO_STATUS_OK;
}

// From row to row: 0 where all rows have the same bias, or none.
static int64_t get_bias_stride(const rondo__compute *compute, const rondo__bits_product *p) {
    const rondo_tensor *bias = rondo__compute_get_input(compute, RONDO__BITS_BIAS);
    return bias != NULL && rondo_shape_get_count(&bias->shape) > p->n ? p->n : 0;
}

static rondo_status compute_bits_row(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo__activation activation =
        (rondo__activation)rondo__activation_parse(rondo__op_get_string(op, "activation", "none"));
    const float alpha = rondo__op_get_float(op, "alpha", 0.0f);
    const float beta = rondo__op_get_float(op, "beta", 0.0f);
    rondo__bits_product p;
    RETURN_IF_ERROR(rondo__bits_product_init(op, &compute->inputs[RONDO__BITS_A]->shape, &p));
    rondo__scratch scratch = {0};
    const bool has_gate = rondo__compute_has_input(compute, RONDO__BITS_GATE);
    double *a = rondo__scratch_widen(&scratch, compute->inputs[RONDO__BITS_A]);
    const double *gain =
        rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, RONDO__BITS_GAIN));
    const double *bias =
        rondo__scratch_widen(&scratch, rondo__compute_get_input(compute, RONDO__BITS_BIAS));
    if (gain != NULL && scratch.status == RONDO_STATUS_OK) {
        rondo__rows_normalise(a, p.m * p.k, p.k, gain,
                              (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    }
    const bits_operands matrix = read_matrix(compute, &p, RONDO__BITS_B, &scratch);
    const int64_t bias_stride = get_bias_stride(compute, &p);
    double *y = multiply(&matrix, a, bias, bias_stride, &scratch), *gates = y;
    if (has_gate) {
        const bits_operands gate = read_matrix(compute, &p, RONDO__BITS_GATE, &scratch);
        gates = multiply(&gate, a, NULL, 0, &scratch);
    }
    for (int64_t i = 0; i < p.m * p.n && scratch.status == RONDO_STATUS_OK; i++) {
        const double end =
            (double)rondo__activation_apply(activation, alpha, beta, (float)gates[i]);
        y[i] = has_gate ? end * y[i] : end;
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- GatherBlockQuantized ---------------------------------------------------------------------

enum { DATA, INDICES, SCALES, ZEROS };

// data is u8, whose last axis is packed, or i4 or u4 as they are, whose zero point is 0 without
// one.
typedef struct block_gather {
    int32_t axis, quantized;  // axes
    rondo_dtype dtype;
    int32_t bits;  // 8 for i4 and u4, of which each has a byte
    int64_t block;
    rondo_shape numbers;  // of data
    rondo_shape output;
} block_gather;

static rondo_status init_gather(const rondo__op *op, rondo_dtype dtype, const rondo_shape *data,
                                const rondo_shape *indices, const rondo_shape *scales,
                                block_gather *out_gather) {
    block_gather g = {
        .dtype = dtype,
        .bits = dtype == RONDO_DTYPE_U8 ? (int32_t)rondo__op_get_int(op, "bits", 4) : 8,
        .block = rondo__op_get_int(op, "block_size", 128),
        .numbers = *data};
    RETURN_IF_ERROR(check_bits(op));
    RETURN_IF_ERROR(
        rondo__op_resolve_axis(op, rondo__op_get_int(op, "gather_axis", 0), data->rank, &g.axis));
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, rondo__op_get_int(op, "quantize_axis", 1),
                                           data->rank, &g.quantized));
    if (g.axis == data->rank - 1 && g.bits != 8) {
        return RONDO_OP_FAIL(op, BAD_DATA, "gather_axis is the last axis, which is packed");
    }
    if (g.quantized == g.axis) {
        return RONDO_OP_FAIL(op, BAD_DATA, "gather_axis and quantize_axis are both %d", g.axis);
    }
    g.numbers.extent[data->rank - 1] *= 8 / g.bits;
    for (int32_t i = 0; i < data->rank; i++) {
        const int64_t extent = g.numbers.extent[i];
        const int64_t wanted = i == g.quantized ? (extent + g.block - 1) / g.block : extent;
        char text[96];
        if (scales->rank != data->rank || scales->extent[i] != wanted) {
            return RONDO_OP_FAIL(op, BAD_DATA, "scales have shape %s, which does not fit the data",
                                 rondo_shape_format(scales, text, sizeof text));
        }
    }
    if (data->rank + indices->rank - 1 > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(op, "an output of a larger rank than there is");
    }
    g.output.rank = data->rank + indices->rank - 1;
    for (int32_t i = 0; i < g.output.rank; i++) {
        g.output.extent[i] = i < g.axis                   ? g.numbers.extent[i]
                             : i < g.axis + indices->rank ? indices->extent[i - g.axis]
                                                          : g.numbers.extent[i - indices->rank + 1];
    }
    *out_gather = g;
    return RONDO_STATUS_OK;
}

static rondo_status infer_gather(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    block_gather g;
    const rondo_dtype dtype = inputs[DATA].dtype;
    if (dtype != RONDO_DTYPE_U8 && dtype != RONDO_DTYPE_I4 && dtype != RONDO_DTYPE_U4) {
        return rondo__op_fail_dtype(infer->op, DATA, dtype);
    }
    RETURN_IF_ERROR(check_dtype(infer, ZEROS, dtype));
    RETURN_IF_ERROR(rondo__infer_check_float(infer, SCALES, 1));
    if (inputs[INDICES].dtype != RONDO_DTYPE_I32 && inputs[INDICES].dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(infer->op, INDICES, inputs[INDICES].dtype);
    }
    RETURN_IF_ERROR(init_gather(infer->op, dtype, &inputs[DATA].shape, &inputs[INDICES].shape,
                                &inputs[SCALES].shape, &g));
    const rondo_shape *scales = &inputs[SCALES].shape;
    const int64_t last = scales->extent[scales->rank - 1];
    const int64_t rows = rondo__shape_multiply(scales, 0, scales->rank - 1);
    RETURN_IF_ERROR(check_count(infer, ZEROS, "zero_points", rows * ((last * g.bits + 7) / 8)));
    return rondo__infer_set_output(infer, 0, inputs[SCALES].dtype, &g.output);
}

// One number, by its position in the unpacked data.
static double get_number(const block_gather *g, const uint8_t *data, const double *scales,
                         const rondo_shape *scale_shape, const uint8_t *zeros, int64_t index) {
    const int32_t last = g->numbers.rank - 1;
    int64_t rest = index, scale_row = 0, scale_column = 0, step = 1;
    for (int32_t i = last; i >= 0; i--) {
        const int64_t at = rest % g->numbers.extent[i];
        const int64_t place = i == g->quantized ? at / g->block : at;
        rest /= g->numbers.extent[i];
        if (i == last) {
            scale_column = place;
        } else {
            scale_row += place * step;
            step *= scale_shape->extent[i];
        }
    }
    const int64_t columns = scale_shape->extent[last];
    const int64_t row_bytes = g->numbers.extent[last] * g->bits / 8;
    const uint8_t *row = data + index / g->numbers.extent[last] * row_bytes;
    const int64_t column = index % g->numbers.extent[last];
    const uint8_t *zero_row =
        zeros != NULL ? zeros + scale_row * ((columns * g->bits + 7) / 8) : NULL;
    double number, zero;
    if (g->dtype == RONDO_DTYPE_U8) {
        number = (double)rondo__bits_get(row, g->bits, column);
        zero = (double)(zeros != NULL ? rondo__bits_get(zero_row, g->bits, scale_column)
                                      : 1u << (g->bits - 1));
    } else {
        number = (double)rondo__narrow_get_int(g->dtype, row[column]);
        zero = zeros != NULL ? (double)rondo__narrow_get_int(g->dtype, zero_row[scale_column]) : 0;
    }
    return (number - zero) * scales[scale_row * columns + scale_column];
}

static rondo_status compute_gather(rondo__compute *compute) {
    const rondo_tensor *const *inputs = compute->inputs;
    const rondo_tensor *zeros = rondo__compute_get_input(compute, ZEROS);
    block_gather g;
    RETURN_IF_ERROR(init_gather(compute->op, inputs[DATA]->dtype, &inputs[DATA]->shape,
                                &inputs[INDICES]->shape, &inputs[SCALES]->shape, &g));
    const int64_t inner = rondo__shape_multiply(&g.numbers, g.axis + 1, g.numbers.rank);
    const int64_t count = rondo_shape_get_count(&inputs[INDICES]->shape);
    const int64_t length = g.numbers.extent[g.axis];
    rondo__scratch scratch = {0};
    const double *scales = rondo__scratch_widen(&scratch, inputs[SCALES]);
    const int64_t total = rondo_shape_get_count(&g.output);
    double *y = rondo__scratch_create(&scratch, total);
    for (int64_t i = 0; i < total && scratch.status == RONDO_STATUS_OK; i++) {
        const int64_t place = i / inner % count;
        int64_t index = rondo__tensor_get_int(inputs[INDICES], place);
        if (index < -length || index >= length) {
            scratch.status =
                RONDO_OP_FAIL(compute->op, BAD_DATA, "index %lld is outside [%lld, %lld)",
                              (long long)index, (long long)-length, (long long)length);
            break;
        }
        index += index < 0 ? length : 0;
        y[i] = get_number(&g, inputs[DATA]->data, scales, &inputs[SCALES]->shape,
                          zeros != NULL ? zeros->data : NULL,
                          (i / inner / count * length + index) * inner + i % inner);
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const product_attributes[] = {
    "K", "N", "accuracy_level", "block_size", "bits", "weight_prepacked", NULL};
static const char *const gather_attributes[] = {"bits", "block_size", "gather_axis",
                                                "quantize_axis", NULL};

static rondo_status check_product(const rondo__op *op) {
    return rondo__op_get_int(op, "weight_prepacked", 0) == 0
               ? check_bits(op)
               : rondo__op_fail_unsupported(op, "attribute weight_prepacked");
}

#define ENTRY(op_name, least, most, attribute_list, infer_function, compute_function, \
              check_function, ...)                                                    \
    RONDO_OP_ROW(MS, op_name, 1, 1, least, most, 1, 1, .capture = RONDO__CAPTURE_YES, \
                 .attributes = (attribute_list), .infer = (infer_function),           \
                 .compute = (compute_function), .check = (check_function), __VA_ARGS__)

const rondo__op_def rondo__op_table_bits[] = {
    ENTRY(MatMulNBits, 3, 6, product_attributes, infer_bits_product, compute_bits_product,
          check_product, .weights = 1, .half.kind = HALF_PRODUCT, .is_fallible = true),
    ENTRY(GatherBlockQuantized, 3, 4, gather_attributes, infer_gather, compute_gather, check_bits,
          .is_fallible = true, .narrow = RONDO__INPUT_0 | 1u << ZEROS),
    RONDO_OP_ROW(FUSED, BitsRow, 1, RONDO_OP_OPSET_MAX, 3, RONDO__BITS_ROW_INPUTS, 1, 1,
                 .flags = RONDO__OP_INTERNAL, .capture = RONDO__CAPTURE_YES,
                 .infer = infer_bits_row, .compute = compute_bits_row, .weights = 1),
    {.name = NULL},
};
