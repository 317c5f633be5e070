// kernel/host/rows/host_rows.c — ops that look at whole rows of f32: Softmax, LogSoftmax,
// LayerNormalization, RMSNormalization, reductions over neighbouring axes, global pools,
// BatchNormalization.
//
// Every input is seen as [outer, length, inner]. With inner 1 a row is contiguous and handled by
// one vector function; otherwise `inner` columns are reduced side by side.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

enum {
    COLUMNS = 512,   // of one piece of a reduction side by side; accumulators stay in the cache
    SUM_ROWS = 64,   // added up in f32; longer sums are of such blocks, in double
    SHORT_ROW = 32,  // at most so long, rows are reduced side by side
};

typedef enum row_work {
    ROW_SOFTMAX,
    ROW_ZEROED_SOFTMAX,  // rows that are no numbers become zeros
    ROW_LOG_SOFTMAX,
    ROW_NORMALIZE,
    ROW_NORMALIZE_SQUARES,  // by the root of their mean alone
    ROW_SUM,
    ROW_MEAN,
    ROW_MAXIMUM,
    ROW_MINIMUM,
    ROW_SCALE_SHIFT,
} row_work;

typedef struct row_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    row_work work;
    double bytes;  // of a run
    float epsilon;
    int64_t outer;
    int64_t length;
    int64_t inner;
    int64_t piece_count;  // reductions: pieces of `inner`
} row_kernel;

// ---- running ----------------------------------------------------------------------------------

static void normalize_row(const row_kernel *kernel, const float *x, const float *gain,
                          const float *bias, float *y) {
    const rondo__simd *simd = kernel->simd;
    const double count = (double)kernel->length;
    const bool is_centered = kernel->work == ROW_NORMALIZE;
    const double center = is_centered ? simd->sum(x, kernel->length) / count : 0.0;
    double shift, squares;
    simd->moments(x, kernel->length, (float)center, &shift, &squares);
    // What rounding the mean to f32 left over stays beside it: a mean far from 0 costs no digits.
    shift = is_centered ? shift / count : 0.0;
    const double variance = squares / count - shift * shift;
    simd->normalize(x, y, kernel->length, (float)center, isfinite(shift) ? (float)shift : 0.0f,
                    1.0f / sqrtf((float)variance + kernel->epsilon), gain, bias);
}

typedef struct row_run {
    const row_kernel *kernel;
    const void *const *inputs;
    void *const *outputs;
    const float *scale;  // of BatchNormalization
} row_run;

static rondo_status share(const row_run *run, int64_t count, rondo__workers_work work) {
    const row_kernel *kernel = run->kernel;
    row_run own = *run;
    rondo__workers_loop(count, rondo__host_get_grain(count, kernel->bytes, 0.0), work, &own);
    return RONDO_STATUS_OK;
}

static void do_rows(void *data, int64_t first, int64_t end) {
    const row_run *run = data;
    const row_kernel *kernel = run->kernel;
    const float *gain = kernel->head.input_count > 1 ? run->inputs[1] : NULL;
    const float *bias = kernel->head.input_count > 2 ? run->inputs[2] : NULL;
    const int64_t row_floats = kernel->length * kernel->inner;
    for (int64_t row = first; row < end; ++row) {
        const float *x = (const float *)run->inputs[0] + row * row_floats;
        float *y = (float *)run->outputs[0] + row * row_floats;
        if (kernel->inner != 1) {
            kernel->simd->columns_softmax(x, y, kernel->length, kernel->inner);
        } else if (kernel->work == ROW_SOFTMAX) {
            kernel->simd->softmax(x, y, kernel->length);
        } else if (kernel->work == ROW_ZEROED_SOFTMAX) {
            kernel->simd->softmax(x, y, kernel->length);
            if (isnan(y[0])) {
                memset(y, 0, (size_t)kernel->length * sizeof *y);
            }
        } else if (kernel->work == ROW_LOG_SOFTMAX) {
            kernel->simd->log_softmax(x, y, kernel->length);
        } else {
            normalize_row(kernel, x, gain, bias, y);
        }
    }
}

static rondo_status run_rows(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const row_kernel *kernel = (const row_kernel *)head;
    return share(&(row_run){kernel, inputs, outputs, NULL}, kernel->outer, do_rows);
}

static float reduce_row(const row_kernel *kernel, const float *x) {
    switch (kernel->work) {
        case ROW_SUM:
            return (float)kernel->simd->sum(x, kernel->length);
        case ROW_MEAN:
            return (float)(kernel->simd->sum(x, kernel->length) / (double)kernel->length);
        case ROW_MAXIMUM:
            return kernel->simd->maximum(x, kernel->length);
        default:
            return kernel->simd->minimum(x, kernel->length);
    }
}

// Short rows are reduced one number after the other: four rows do not wait for each other.
static void sum_short_rows(const float *x, int64_t n, float divisor, float *y, int64_t count) {
    int64_t row = 0;
    for (; row + 4 <= count; row += 4, x += 4 * n) {
        float a = x[0], b = x[n], c = x[2 * n], d = x[3 * n];
        for (int64_t i = 1; i < n; ++i) {
            a += x[i];
            b += x[n + i];
            c += x[2 * n + i];
            d += x[3 * n + i];
        }
        y[row] = a / divisor;
        y[row + 1] = b / divisor;
        y[row + 2] = c / divisor;
        y[row + 3] = d / divisor;
    }
    for (; row < count; ++row, x += n) {
        float sum = x[0];
        for (int64_t i = 1; i < n; ++i) {
            sum += x[i];
        }
        y[row] = sum / divisor;
    }
}

// False if there may be a NaN, which these comparisons lose: the sum of all is one, too.
#define DEFINE_BEST_OF_SHORT_ROWS(name, wins)                                           \
    static bool name(const float *x, int64_t n, float *y, int64_t count) {              \
        float sum = 0.0f;                                                               \
        int64_t row = 0;                                                                \
        for (; row + 4 <= count; row += 4, x += 4 * n) {                                \
            float a = x[0], b = x[n], c = x[2 * n], d = x[3 * n];                       \
            sum += (a + b) + (c + d);                                                   \
            for (int64_t i = 1; i < n; ++i) {                                           \
                const float e = x[i], f = x[n + i], g = x[2 * n + i], h = x[3 * n + i]; \
                sum += (e + f) + (g + h);                                               \
                a = e wins a ? e : a;                                                   \
                b = f wins b ? f : b;                                                   \
                c = g wins c ? g : c;                                                   \
                d = h wins d ? h : d;                                                   \
            }                                                                           \
            y[row] = a;                                                                 \
            y[row + 1] = b;                                                             \
            y[row + 2] = c;                                                             \
            y[row + 3] = d;                                                             \
        }                                                                               \
        for (; row < count; ++row, x += n) {                                            \
            float a = x[0];                                                             \
            sum += a;                                                                   \
            for (int64_t i = 1; i < n; ++i) {                                           \
                sum += x[i];                                                            \
                a = x[i] wins a ? x[i] : a;                                             \
            }                                                                           \
            y[row] = a;                                                                 \
        }                                                                               \
        return !isnan(sum);                                                             \
    }
DEFINE_BEST_OF_SHORT_ROWS(maximum_of_short_rows, >)
DEFINE_BEST_OF_SHORT_ROWS(minimum_of_short_rows, <)

// False: nothing that counts is in y.
static bool reduce_short_rows(const row_kernel *kernel, const float *x, float *y, int64_t count) {
    switch (kernel->work) {
        case ROW_MAXIMUM:
            return maximum_of_short_rows(x, kernel->length, y, count);
        case ROW_MINIMUM:
            return minimum_of_short_rows(x, kernel->length, y, count);
        default:
            sum_short_rows(x, kernel->length,
                           kernel->work == ROW_MEAN ? (float)kernel->length : 1.0f, y, count);
            return true;
    }
}

// Sums or means of `count` columns side by side.
static void sum_columns(const row_kernel *kernel, const float *x, float *y, int64_t count) {
    float part[COLUMNS];
    double totals[COLUMNS] = {0};
    for (int64_t first = 0; first < kernel->length; first += SUM_ROWS) {
        const int64_t rest = kernel->length - first;
        const int64_t rows = rest < SUM_ROWS ? rest : SUM_ROWS;
        memcpy(part, x + first * kernel->inner, (size_t)count * sizeof(float));
        for (int64_t i = first + 1; i < first + rows; ++i) {
            kernel->simd->accumulate(x + i * kernel->inner, part, count);
        }
        for (int64_t j = 0; j < count; ++j) {
            totals[j] += (double)part[j];
        }
    }
    const double divisor = kernel->work == ROW_MEAN ? (double)kernel->length : 1.0;
    for (int64_t j = 0; j < count; ++j) {
        y[j] = (float)(totals[j] / divisor);
    }
}

// Reduces `count` columns of one outer entry side by side.
static void reduce_columns(const row_kernel *kernel, const float *x, float *y, int64_t count) {
    if (kernel->work == ROW_SUM || kernel->work == ROW_MEAN) {
        sum_columns(kernel, x, y, count);
        return;
    }
    memcpy(y, x, (size_t)count * sizeof(float));
    for (int64_t i = 1; i < kernel->length; ++i) {
        const float *row = x + i * kernel->inner;
        if (kernel->work == ROW_MAXIMUM) {
            kernel->simd->accumulate_maximum(row, y, count);
        } else {
            kernel->simd->binary[RONDO__SCALAR_Min](y, row, y, count);
        }
    }
}

static void reduce_pieces(void *data, int64_t first, int64_t end) {
    const row_run *run = data;
    const row_kernel *kernel = run->kernel;
    const int64_t pieces = kernel->piece_count;
    if (kernel->inner == 1 && kernel->length <= SHORT_ROW &&
        reduce_short_rows(kernel, (const float *)run->inputs[0] + first * kernel->length,
                          (float *)run->outputs[0] + first, end - first)) {
        return;
    }
    for (int64_t row = first; kernel->inner == 1 && row < end; ++row) {
        ((float *)run->outputs[0])[row] =
            reduce_row(kernel, (const float *)run->inputs[0] + row * kernel->length);
    }
    for (int64_t i = first; kernel->inner != 1 && i < end; ++i) {
        const int64_t outer = i / pieces;
        const int64_t column = i % pieces * COLUMNS;
        const float *x =
            (const float *)run->inputs[0] + outer * kernel->length * kernel->inner + column;
        float *y = (float *)run->outputs[0] + outer * kernel->inner + column;
        const int64_t rest = kernel->inner - column;
        reduce_columns(kernel, x, y, rest < COLUMNS ? rest : COLUMNS);
    }
}

static rondo_status run_reduction(rondo__host_kernel *head, const void *const *inputs,
                                  void *const *outputs, void *workspace) {
    (void)workspace;
    const row_kernel *kernel = (const row_kernel *)head;
    return share(&(row_run){kernel, inputs, outputs, NULL}, kernel->outer * kernel->piece_count,
                 reduce_pieces);
}

// BatchNormalization of [outer, length channels, inner] is (x - mean) * scale + bias, in this
// order: x * scale + (bias - mean * scale) loses digits where the mean is far from 0, and is NaN
// where the scale is infinite.
static void scale_rows(void *data, int64_t first, int64_t end) {
    const row_run *run = data;
    const row_kernel *kernel = run->kernel;
    const float *bias = run->inputs[2], *mean = run->inputs[3];
    for (int64_t i = first; i < end; ++i) {
        kernel->simd->scale_shift((const float *)run->inputs[0] + i * kernel->length, mean, NULL,
                                  run->scale, bias, (float *)run->outputs[0] + i * kernel->length,
                                  kernel->length);
    }
}

static void scale_channels(void *data, int64_t first, int64_t end) {
    const row_run *run = data;
    const row_kernel *kernel = run->kernel;
    const float *bias = run->inputs[2], *mean = run->inputs[3];
    for (int64_t i = first; i < end; ++i) {
        const int64_t c = i % kernel->length;
        kernel->simd->center_scale((const float *)run->inputs[0] + i * kernel->inner,
                                   (float *)run->outputs[0] + i * kernel->inner, kernel->inner,
                                   mean[c], 0.0f, run->scale[c], bias[c]);
    }
}

static rondo_status run_batch(rondo__host_kernel *head, const void *const *inputs,
                              void *const *outputs, void *workspace) {
    const row_kernel *kernel = (const row_kernel *)head;
    const float *gain = inputs[1], *variance = inputs[4];
    float *scale = workspace;
    for (int64_t c = 0; c < kernel->length; ++c) {
        scale[c] = gain[c] / sqrtf(variance[c] + kernel->epsilon);
    }
    const row_run run = {kernel, inputs, outputs, scale};
    return kernel->inner == 1 ? share(&run, kernel->outer, scale_rows)
                              : share(&run, kernel->outer * kernel->length, scale_channels);
}

// ---- preparing --------------------------------------------------------------------------------

static bool is_all_f32(const rondo__kernel_request *request) {
    for (size_t i = 0; i < request->input_count; ++i) {
        if (request->inputs[i].dtype != RONDO_DTYPE_F32 &&
            request->inputs[i].dtype != RONDO_DTYPE_NONE) {
            return false;
        }
    }
    return true;
}

static rondo_status create(const rondo__kernel_request *request, row_work work, rondo__host_run run,
                           int64_t outer, int64_t length, int64_t inner, row_kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(row_kernel), "simd", run, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    row_kernel *kernel = (row_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->work = work;
    kernel->outer = outer;
    kernel->length = length;
    kernel->inner = inner;
    kernel->piece_count = (inner + COLUMNS - 1) / COLUMNS;
    kernel->bytes = (double)outer * (double)length * (double)inner * 2.0 * sizeof(float);
    *out_kernel = kernel;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_softmax(const rondo__kernel_request *request,
                                         rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const bool is_flattened = op->opset < 13;
    int32_t axis;
    if (!is_all_f32(request) || x->rank == 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const int64_t given = rondo__op_get_int(op, "axis", is_flattened ? 1 : -1);
    if (given == x->rank) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, given, x->rank, &axis));
    const int32_t end = is_flattened ? x->rank : axis + 1;
    const bool is_log = op->def->id == RONDO__OP_LogSoftmax;
    const bool is_zeroed = op->def->id == RONDO__FUSED_Softmax;
    const int64_t inner = rondo__shape_multiply(x, end, x->rank);
    if (inner != 1 && (is_log || is_zeroed)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    row_kernel *kernel = NULL;
    RETURN_IF_ERROR(create(request,
                           is_log      ? ROW_LOG_SOFTMAX
                           : is_zeroed ? ROW_ZEROED_SOFTMAX
                                       : ROW_SOFTMAX,
                           run_rows, rondo__shape_multiply(x, 0, axis),
                           rondo__shape_multiply(x, axis, end), inner, &kernel));
    kernel->head.base.in_place_inputs = is_log ? 0 : 1;
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_layer_normalization(const rondo__kernel_request *request,
                                                     rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    for (size_t i = 1; i < request->output_count; ++i) {
        if (request->outputs[i].dtype != RONDO_DTYPE_NONE) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    int32_t axis;
    if (!is_all_f32(request) || x->rank == 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, rondo__op_get_int(op, "axis", -1), x->rank, &axis));
    const int64_t length = rondo__shape_multiply(x, axis, x->rank);
    for (size_t i = 1; i < request->input_count; ++i) {
        if (request->inputs[i].dtype != RONDO_DTYPE_NONE &&
            rondo_shape_get_count(&request->inputs[i].shape) != length) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    row_kernel *kernel = NULL;
    const bool is_centered = op->def->id != RONDO__OP_RMSNormalization;
    RETURN_IF_ERROR(create(request, is_centered ? ROW_NORMALIZE : ROW_NORMALIZE_SQUARES, run_rows,
                           rondo__shape_multiply(x, 0, axis), length, 1, &kernel));
    kernel->epsilon = rondo__op_get_float(op, "epsilon", 1e-5f);
    kernel->head.base.in_place_inputs = 1;
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

// The reduced axes [first, end) when they are neighbours; false otherwise, or when all is kept.
static bool find_reduced(const rondo__kernel_request *request, int32_t *out_first,
                         int32_t *out_end) {
    const rondo_shape *x = &request->inputs[0].shape;
    int64_t values[RONDO_RANK_MAX];
    size_t count = 0;
    const int64_t *axes = values;
    if (request->input_count > 1 && request->inputs[1].dtype != RONDO_DTYPE_NONE) {
        const rondo_tensor *constant = request->inputs[1].constant;
        if (constant == NULL || rondo_shape_get_count(&constant->shape) > RONDO_RANK_MAX) {
            return false;
        }
        count = (size_t)rondo_shape_get_count(&constant->shape);
        for (size_t i = 0; i < count; ++i) {
            values[i] = rondo__tensor_get_int(constant, (int64_t)i);
        }
    } else {
        axes = rondo__op_get_ints(request->op, "axes", &count);
    }
    if (count == 0) {
        *out_first = 0;
        *out_end = x->rank;
        return rondo__op_get_int(request->op, "noop_with_empty_axes", 0) == 0;
    }
    uint32_t mask = 0;
    if (rondo__op_resolve_axes(request->op, axes, count, x->rank, &mask) != RONDO_STATUS_OK) {
        return false;
    }
    *out_first = __builtin_ctz(mask);
    *out_end = *out_first + __builtin_popcount(mask);
    return mask >> *out_first == (1u << (*out_end - *out_first)) - 1u;
}

rondo_status rondo__host_prepare_reduction(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    static const struct {
        rondo__op_id op;
        row_work work;
    } known[] = {
        {RONDO__OP_ReduceSum, ROW_SUM},
        {RONDO__OP_ReduceMean, ROW_MEAN},
        {RONDO__OP_ReduceMax, ROW_MAXIMUM},
        {RONDO__OP_ReduceMin, ROW_MINIMUM},
    };
    const rondo_shape *x = &request->inputs[0].shape;
    int32_t first, end;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || !find_reduced(request, &first, &end)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
        if (known[i].op == request->op->def->id) {
            row_kernel *kernel = NULL;
            RETURN_IF_ERROR(create(request, known[i].work, run_reduction,
                                   rondo__shape_multiply(x, 0, first),
                                   rondo__shape_multiply(x, first, end),
                                   rondo__shape_multiply(x, end, x->rank), &kernel));
            *out_kernel = &kernel->head.base;
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_STATUS_UNSUPPORTED;
}

rondo_status rondo__host_prepare_global_pool(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || x->rank < 3) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const bool is_maximum = request->op->def->id == RONDO__OP_GlobalMaxPool;
    const bool channels_last = rondo__op_get_int(request->op, "channels_last", 0) != 0;
    const int32_t first = channels_last ? 1 : 2;
    const int32_t end = channels_last ? x->rank - 1 : x->rank;
    row_kernel *kernel = NULL;
    RETURN_IF_ERROR(create(request, is_maximum ? ROW_MAXIMUM : ROW_MEAN, run_reduction,
                           rondo__shape_multiply(x, 0, first), rondo__shape_multiply(x, first, end),
                           rondo__shape_multiply(x, end, x->rank), &kernel));
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_batch_normalization(const rondo__kernel_request *request,
                                                     rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape;
    if (request->op->opset >= 14 ? rondo__op_trains(request->op) : request->output_count > 1) {
        return rondo__host_prepare_batch_training(request, out_kernel);
    }
    if (!is_all_f32(request) || request->input_count != 5 || request->output_count != 1 ||
        x->rank < 2) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    row_kernel *kernel = NULL;
    RETURN_IF_ERROR(create(request, ROW_SCALE_SHIFT, run_batch, x->extent[0], x->extent[1],
                           rondo__shape_multiply(x, 2, x->rank), &kernel));
    kernel->epsilon = rondo__op_get_float(request->op, "epsilon", 1e-5f);
    kernel->head.base.workspace_bytes = (size_t)x->extent[1] * sizeof(float);
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}
