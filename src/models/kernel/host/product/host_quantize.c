// kernel/host/product/host_quantize.c — QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear
// between f32 and numbers of 16, 8, 4 and 2 bits, and rondo.QLinearAdd of 16 and 8: the
// reference's results, to the bit.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/byte_matrix.h"
#include "op/broadcast.h"
#include "op/image/scale_grid.h"
#include "op/support.h"

enum {
    CHUNK = 16 * 1024,  // elements of one piece of work
    PIECE = 1024,       // of what is on the stack meanwhile
};

static int64_t count_chunks(int64_t count) {
    return (count + CHUNK - 1) / CHUNK;
}

static int64_t get_chunk(int64_t count, int64_t chunk) {
    return count - chunk * CHUNK < CHUNK ? count - chunk * CHUNK : CHUNK;
}

// ---- DynamicQuantizeLinear --------------------------------------------------------------------

typedef struct dynamic_kernel {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;
    int64_t count;
} dynamic_kernel;

typedef struct range {
    float low, high;
} range;

// The scale where not all values are finite: NaN wins, as in sums.
static float find_strange_scale(const float *x, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (isnan(x[i])) {
            return NAN;
        }
    }
    return INFINITY;
}

typedef struct dynamic_run {
    const dynamic_kernel *kernel;
    const void *x;
    void *y;
    range *parts;
    float scale;
    int32_t zero;
    atomic_bool is_strange;  // not all are finite
} dynamic_run;

static void find_ranges(void *data, int64_t first, int64_t end) {
    dynamic_run *run = data;
    for (int64_t i = first; i < end; ++i) {
        range *part = &run->parts[i];
        if (!run->kernel->simd->range((const float *)run->x + i * CHUNK,
                                      get_chunk(run->kernel->count, i), &part->low, &part->high)) {
            atomic_store_explicit(&run->is_strange, true, memory_order_relaxed);
        }
    }
}

static void quantize_chunks(void *data, int64_t first, int64_t end) {
    const dynamic_run *run = data;
    for (int64_t i = first; i < end; ++i) {
        run->kernel->simd->quantize((const float *)run->x + i * CHUNK, &run->scale, 0, &run->zero,
                                    false, get_chunk(run->kernel->count, i),
                                    (uint8_t *)run->y + i * CHUNK);
    }
}

static rondo_status run_dynamic(rondo__host_kernel *head, const void *const *inputs,
                                void *const *outputs, void *workspace) {
    const dynamic_kernel *kernel = (const dynamic_kernel *)head;
    uint8_t *y = outputs[0];
    range *parts = workspace;
    const int64_t chunks = count_chunks(kernel->count);
    range all = {0};
    dynamic_run run = {.kernel = kernel, .x = inputs[0], .y = y, .parts = parts};
    rondo__workers_loop(chunks, 1, find_ranges, &run);
    const bool is_finite = !atomic_load_explicit(&run.is_strange, memory_order_relaxed);
    for (int64_t i = 0; i < chunks; ++i) {
        all.low = parts[i].low < all.low ? parts[i].low : all.low;
        all.high = parts[i].high > all.high ? parts[i].high : all.high;
    }
    float scale = (all.high - all.low) / 255.0f;
    if (!is_finite) {
        scale = find_strange_scale(inputs[0], kernel->count);
    }
    const bool is_flat = !is_finite || scale == 0.0f;
    const float place = is_flat ? 0.0f : rintf((0.0f - all.low) / scale);
    const int32_t zero = place > 0.0f ? place < 255.0f ? (int32_t)place : 255 : 0;
    if (outputs[1] != NULL) {
        memcpy(outputs[1], &scale, sizeof scale);
    }
    if (outputs[2] != NULL) {
        *(uint8_t *)outputs[2] = (uint8_t)zero;
    }
    if (y == NULL) {
        return RONDO_STATUS_OK;
    }
    if (is_flat) {
        memset(y, 0, (size_t)kernel->count);
        return RONDO_STATUS_OK;
    }
    run.scale = scale;
    run.zero = zero;
    rondo__workers_loop(chunks, 1, quantize_chunks, &run);
    return RONDO_STATUS_OK;
}

static rondo_status prepare_dynamic(const rondo__kernel_request *request,
                                    rondo__kernel **out_kernel) {
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(dynamic_kernel), "simd", run_dynamic, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    dynamic_kernel *kernel = (dynamic_kernel *)head;
    kernel->simd = rondo__byte_simd_get();
    kernel->count = rondo_shape_get_count(&request->inputs[0].shape);
    head->base.workspace_bytes = (size_t)count_chunks(kernel->count) * sizeof(range);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

// ---- QuantizeLinear, DequantizeLinear ---------------------------------------------------------

// The tensor is a row of runs, each with one scale or with one for each element.
typedef struct linear_kernel {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;
    rondo__scale_grid grid;
    bool is_inverse;     // DequantizeLinear
    bool is_signed;      // the side of few bits
    bool is_wide;        // it has 16
    rondo_dtype narrow;  // its type, where that is none of 8-bit integers: its elements are turned
                         // into those, or for floats looked up in values
    rondo__narrow_rule rule;
    int64_t count, run_count, scale_count;
    float values[256];
} linear_kernel;

typedef struct run {
    int64_t start, length, scale, step;
} run;

static run find_run(const linear_kernel *kernel, int64_t index) {
    const rondo__scale_grid *grid = &kernel->grid;
    if (grid->kind == RONDO__SCALE_FOR_ALL) {
        return (run){index * CHUNK, get_chunk(kernel->count, index), 0, 0};
    }
    if (grid->kind == RONDO__SCALE_PER_PLACE && grid->inner == 1) {
        return (run){index * grid->length, grid->length, 0, 1};
    }
    if (grid->kind == RONDO__SCALE_PER_PLACE) {
        return (run){index * grid->inner, grid->inner, index % grid->length, 0};
    }
    if (grid->inner == 1) {
        const int64_t first = index % grid->scales * grid->block;
        const int64_t rest = grid->length - first;
        return (run){index / grid->scales * grid->length + first,
                     rest < grid->block ? rest : grid->block, index, 0};
    }
    const int64_t outer = index / grid->length, place = index % grid->length;
    return (run){index * grid->inner, grid->inner,
                 (outer * grid->scales + place / grid->block) * grid->inner, 1};
}

static int64_t count_runs(const linear_kernel *kernel) {
    const rondo__scale_grid *grid = &kernel->grid;
    if (grid->kind == RONDO__SCALE_FOR_ALL) {
        return count_chunks(kernel->count);
    }
    if (grid->inner > 1) {
        return kernel->count / grid->inner;
    }
    const int64_t outer = kernel->count / grid->length;
    return grid->kind == RONDO__SCALE_PER_PLACE ? outer : outer * grid->scales;
}

typedef struct linear_run {
    const linear_kernel *kernel;
    const void *x;
    void *y;
    const float *scales;
    const int32_t *zeros;
    const uint8_t *zero_bytes;  // as they lie in the input; NULL: none
} linear_run;

// A run of small integers, by way of bytes.
static void run_small(const linear_run *job, run now) {
    const linear_kernel *kernel = job->kernel;
    const unsigned bits = rondo__narrow_get_bits(kernel->narrow);
    const uint8_t mask = (uint8_t)((1u << bits) - 1u);
    const uint8_t top = (uint8_t)(kernel->is_signed ? 1u << (bits - 1u) : 0);
    // Signed bytes are moved into the order of unsigned ones, which vector code can clamp.
    const uint8_t flip = kernel->is_signed ? 0x80 : 0;
    const uint8_t least = (uint8_t)(flip - top);
    const uint8_t most = kernel->is_signed ? (uint8_t)(flip + top - 1) : mask;
    uint8_t bytes[PIECE];
    for (int64_t done = 0; done < now.length; done += PIECE) {
        const int64_t length = now.length - done < PIECE ? now.length - done : PIECE;
        const int64_t scale = now.scale + done * now.step;
        if (kernel->is_inverse) {
            const uint8_t *x = (const uint8_t *)job->x + now.start + done;
            for (int64_t i = 0; i < length; ++i) {
                bytes[i] = (uint8_t)(((x[i] & mask) ^ top) - top);
            }
            kernel->simd->dequantize(bytes, kernel->is_signed, job->scales + scale, now.step,
                                     job->zeros + scale, length,
                                     (float *)job->y + now.start + done);
            continue;
        }
        uint8_t *y = (uint8_t *)job->y + now.start + done;
        kernel->simd->quantize((const float *)job->x + now.start + done, job->scales + scale,
                               now.step, job->zeros + scale, kernel->is_signed, length, bytes);
        for (int64_t i = 0; i < length; ++i) {
            const uint8_t value = bytes[i] ^ flip;
            const uint8_t above = value < least ? least : value;
            y[i] = (uint8_t)((above > most ? most : above) ^ flip) & mask;
        }
    }
}

// A run of small floats.
static void run_values(const linear_run *job, run now) {
    const uint8_t *x = (const uint8_t *)job->x + now.start;
    float *y = (float *)job->y + now.start;
    for (int64_t i = 0; i < now.length; ++i) {
        const int64_t scale = now.scale + i * now.step;
        const float zero =
            job->zero_bytes != NULL ? job->kernel->values[job->zero_bytes[scale]] : 0;
        y[i] = (float)(((double)job->kernel->values[x[i]] - (double)zero) *
                       (double)job->scales[scale]);
    }
}

static void run_narrowing(const linear_run *job, run now) {
    const linear_kernel *kernel = job->kernel;
    const float *x = (const float *)job->x + now.start;
    uint8_t *y = (uint8_t *)job->y + now.start;
    float sums[PIECE];
    for (int64_t done = 0; done < now.length; done += PIECE) {
        const int64_t length = now.length - done < PIECE ? now.length - done : PIECE;
        for (int64_t i = 0; i < length; ++i) {
            const int64_t scale = now.scale + (done + i) * now.step;
            const float zero =
                job->zero_bytes != NULL ? kernel->values[job->zero_bytes[scale]] : 0.0f;
            sums[i] = x[done + i] / job->scales[scale] + zero;
        }
        rondo__narrow_encode_array(kernel->narrow, sums, y + done, (size_t)length, &kernel->rule);
    }
}

static void run_runs(void *data, int64_t first, int64_t end) {
    const linear_run *job = data;
    const linear_kernel *kernel = job->kernel;
    for (int64_t i = first; i < end; ++i) {
        const run now = find_run(kernel, i);
        if (rondo__dtype_is_narrow_integer(kernel->narrow)) {
            run_small(job, now);
        } else if (kernel->narrow != RONDO_DTYPE_NONE && kernel->is_inverse) {
            run_values(job, now);
        } else if (kernel->narrow != RONDO_DTYPE_NONE) {
            run_narrowing(job, now);
        } else if (kernel->is_wide && kernel->is_inverse) {
            kernel->simd->dequantize_words(
                (const uint16_t *)job->x + now.start, kernel->is_signed, job->scales + now.scale,
                now.step, job->zeros + now.scale, now.length, (float *)job->y + now.start);
        } else if (kernel->is_wide) {
            kernel->simd->quantize_words((const float *)job->x + now.start, job->scales + now.scale,
                                         now.step, job->zeros + now.scale, kernel->is_signed,
                                         now.length, (uint16_t *)job->y + now.start);
        } else if (kernel->is_inverse) {
            kernel->simd->dequantize((const uint8_t *)job->x + now.start, kernel->is_signed,
                                     job->scales + now.scale, now.step, job->zeros + now.scale,
                                     now.length, (float *)job->y + now.start);
        } else {
            kernel->simd->quantize((const float *)job->x + now.start, job->scales + now.scale,
                                   now.step, job->zeros + now.scale, kernel->is_signed, now.length,
                                   (uint8_t *)job->y + now.start);
        }
    }
}

static int32_t get_word(const void *words, bool is_signed, int64_t i) {
    return is_signed ? ((const int16_t *)words)[i] : ((const uint16_t *)words)[i];
}

static rondo_status run_linear(rondo__host_kernel *head, const void *const *inputs,
                               void *const *outputs, void *workspace) {
    const linear_kernel *kernel = (const linear_kernel *)head;
    const uint8_t *zeros = head->input_count > 2 ? inputs[2] : NULL;
    int32_t *wide = workspace;
    for (int64_t i = 0; i < kernel->scale_count; ++i) {
        wide[i] = zeros == NULL ? 0
                  : rondo__dtype_is_narrow(kernel->narrow)
                      ? rondo__narrow_get_int(kernel->narrow, zeros[i])
                  : kernel->is_wide ? get_word(zeros, kernel->is_signed, i)
                                    : rondo__byte_get(zeros, kernel->is_signed, i);
    }
    linear_run job = {kernel, inputs[0], outputs[0], inputs[1], wide, zeros};
    rondo__workers_loop(kernel->run_count,
                        rondo__host_get_grain(kernel->run_count, (double)kernel->count * 5.0, 0.0),
                        run_runs, &job);
    return RONDO_STATUS_OK;
}

static bool is_wide(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_I16 || dtype == RONDO_DTYPE_U16;
}

static bool is_quantised(rondo_dtype dtype) {
    return is_wide(dtype) || dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_U8 ||
           rondo__dtype_is_narrow(dtype);
}

static bool is_signed(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_I16 || dtype == RONDO_DTYPE_I8 || dtype == RONDO_DTYPE_I4 ||
           dtype == RONDO_DTYPE_I2;
}

static bool has_other_precision(const rondo__op *op) {
    const rondo_dtype dtype = rondo__dtype_from_onnx(rondo__op_get_int(op, "precision", 0));
    return dtype != RONDO_DTYPE_NONE && dtype != RONDO_DTYPE_F32;
}

rondo_status rondo__host_prepare_quantize(const rondo__kernel_request *request,
                                          rondo__kernel **out_kernel) {
    if (request->op->def->id == RONDO__OP_DynamicQuantizeLinear) {
        return prepare_dynamic(request, out_kernel);
    }
    const bool is_inverse = request->op->def->id == RONDO__OP_DequantizeLinear;
    const rondo__tensor_info *x = &request->inputs[0], *y = &request->outputs[0];
    const rondo__tensor_info *bytes = is_inverse ? x : y, *reals = is_inverse ? y : x;
    if (!is_quantised(bytes->dtype) || reals->dtype != RONDO_DTYPE_F32 ||
        request->inputs[1].dtype != RONDO_DTYPE_F32 || has_other_precision(request->op)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(linear_kernel), "simd", run_linear, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    linear_kernel *kernel = (linear_kernel *)head;
    kernel->simd = rondo__byte_simd_get();
    kernel->is_inverse = is_inverse;
    kernel->is_signed = is_signed(bytes->dtype);
    kernel->is_wide = is_wide(bytes->dtype);
    kernel->narrow = rondo__dtype_is_narrow(bytes->dtype) ? bytes->dtype : RONDO_DTYPE_NONE;
    kernel->rule.is_unbounded = rondo__op_get_int(request->op, "saturate", 1) == 0;
    for (int i = 0; i < 256; ++i) {
        kernel->values[i] = rondo_narrow_to_float(kernel->narrow, (uint8_t)i);
    }
    kernel->count = rondo_shape_get_count(&x->shape);
    kernel->scale_count = rondo_shape_get_count(&request->inputs[1].shape);
    const rondo_status status =
        rondo__scale_grid_init(request->op, &x->shape, &request->inputs[1].shape, &kernel->grid);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    kernel->run_count = count_runs(kernel);
    head->base.workspace_bytes = (size_t)kernel->scale_count * sizeof(int32_t);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}

// ---- rondo.QLinearAdd --------------------------------------------------------------------------

typedef struct sum_kernel {
    rondo__host_kernel head;
    const rondo__byte_simd *simd;
    rondo__broadcast walk;
    int64_t pieces;  // of a row
    int64_t grain;
    rondo_dtype types[3];  // of a, b and y
} sum_kernel;

typedef struct sum_run {
    const sum_kernel *kernel;
    const void *const *inputs;
    void *y;
    int32_t zeros[3];
} sum_run;

static void read_part(const sum_run *job, size_t operand, int64_t first, int64_t stride,
                      int64_t count, float *y) {
    const rondo__byte_simd *simd = job->kernel->simd;
    const rondo_dtype type = job->kernel->types[operand];
    const char *x = job->inputs[3 * operand];
    x += (size_t)first * rondo_dtype_get_bytes(type);
    (is_wide(type) ? simd->dequantize_words : simd->dequantize)(
        x, is_signed(type), job->inputs[3 * operand + 1], 0, &job->zeros[operand],
        stride != 0 ? count : 1, y);
    for (int64_t i = 1; stride == 0 && i < count; ++i) {
        y[i] = y[0];
    }
}

static void add_pieces(void *data, int64_t first, int64_t end) {
    const sum_run *job = data;
    const sum_kernel *kernel = job->kernel;
    const rondo_dtype type = kernel->types[2];
    rondo__broadcast walk = kernel->walk;
    float a[PIECE], b[PIECE];
    rondo__broadcast_seek(&walk, first / kernel->pieces);
    for (int64_t unit = first; unit < end; ++unit) {
        const int64_t at = unit % kernel->pieces * PIECE, rest = walk.row_length - at;
        const int64_t count = rest < PIECE ? rest : PIECE;
        const int64_t to = unit / kernel->pieces * walk.row_length + at;
        read_part(job, 0, walk.offset[0] + at * walk.row_stride[0], walk.row_stride[0], count, a);
        read_part(job, 1, walk.offset[1] + at * walk.row_stride[1], walk.row_stride[1], count, b);
        for (int64_t i = 0; i < count; ++i) {
            a[i] += b[i];
        }
        (is_wide(type) ? kernel->simd->quantize_words : kernel->simd->quantize)(
            a, job->inputs[6], 0, &job->zeros[2], is_signed(type), count,
            (char *)job->y + (size_t)to * rondo_dtype_get_bytes(type));
        if (rest <= PIECE) {
            rondo__broadcast_advance(&walk);
        }
    }
}

static rondo_status run_sum(rondo__host_kernel *head, const void *const *inputs,
                            void *const *outputs, void *workspace) {
    (void)workspace;
    const sum_kernel *kernel = (const sum_kernel *)head;
    sum_run job = {.kernel = kernel, .inputs = inputs, .y = outputs[0]};
    const void *zeros[3] = {inputs[2], inputs[5], inputs[7]};
    for (size_t i = 0; i < 3; ++i) {
        rondo__convert_elements(kernel->types[i], zeros[i], RONDO_DTYPE_I32, &job.zeros[i], 1);
    }
    rondo__workers_loop(kernel->walk.row_count * kernel->pieces, kernel->grain, add_pieces, &job);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_quantized_sum(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    const rondo__tensor_info *y = &request->outputs[0];
    const rondo_shape *const operands[2] = {&request->inputs[0].shape, &request->inputs[3].shape};
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(sum_kernel), "simd", run_sum, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    sum_kernel *kernel = (sum_kernel *)head;
    kernel->simd = rondo__byte_simd_get();
    rondo__broadcast_init(&kernel->walk, &y->shape, operands, 2);
    kernel->pieces = (kernel->walk.row_length + PIECE - 1) / PIECE;
    kernel->grain = rondo__host_get_grain(kernel->walk.row_count * kernel->pieces,
                                          (double)rondo_shape_get_count(&y->shape) * 5.0, 0.0);
    kernel->types[0] = request->inputs[0].dtype;
    kernel->types[1] = request->inputs[3].dtype;
    kernel->types[2] = y->dtype;
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
