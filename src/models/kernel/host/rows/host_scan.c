// kernel/host/rows/host_scan.c — CumSum of f32 along a known axis, in double as the reference:
// columns side by side, or four rows, whose additions do not wait for each other.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/simd/simd.h"
#include "op/support.h"

enum {
    COLUMNS = 512,  // whose sums stay in the cache
    NARROW = 16,    // fewer columns than these are as quick by the reference
    ROWS = 4,
};

typedef struct scan_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    int64_t outer, length, inner;
    int64_t piece_count;  // of `inner` columns, or of `outer` rows where inner is 1
    bool is_exclusive, is_reverse;
    double bytes;  // of a run
} scan_kernel;

typedef struct scan_run {
    const scan_kernel *kernel;
    const float *x;
    float *y;
} scan_run;

static void step(const float *x, float *y, double *sum, bool is_exclusive) {
    const double before = *sum;
    *sum += (double)*x;
    *y = (float)(is_exclusive ? before : *sum);
}

static void scan_columns(const scan_run *run, int64_t outer, int64_t column) {
    const scan_kernel *kernel = run->kernel;
    const int64_t rest = kernel->inner - column, count = rest < COLUMNS ? rest : COLUMNS;
    _Alignas(64) double sums[COLUMNS] = {0};
    for (int64_t i = 0; i < kernel->length; ++i) {
        const int64_t row = kernel->is_reverse ? kernel->length - 1 - i : i;
        const int64_t at = (outer * kernel->length + row) * kernel->inner + column;
        kernel->simd->sum_lines(run->x + at, run->y + at, sums, count, kernel->is_exclusive);
    }
}

static void scan_rows(const scan_run *run, int64_t first, int64_t count) {
    const scan_kernel *kernel = run->kernel;
    const int64_t n = kernel->length;
    const int64_t from = first * n + (kernel->is_reverse ? n - 1 : 0);
    const int64_t way = kernel->is_reverse ? -1 : 1;
    const bool is_exclusive = kernel->is_exclusive;
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    const float *x = run->x + from;
    float *y = run->y + from;
    if (count == ROWS) {
        for (int64_t i = 0; i < n; ++i, x += way, y += way) {
            step(x, y, &a, is_exclusive);
            step(x + n, y + n, &b, is_exclusive);
            step(x + 2 * n, y + 2 * n, &c, is_exclusive);
            step(x + 3 * n, y + 3 * n, &d, is_exclusive);
        }
        return;
    }
    for (int64_t row = 0; row < count; ++row, a = 0.0) {
        for (int64_t i = 0; i < n; ++i) {
            step(x + row * n + i * way, y + row * n + i * way, &a, is_exclusive);
        }
    }
}

static void scan_pieces(void *data, int64_t first, int64_t end) {
    const scan_run *run = data;
    const scan_kernel *kernel = run->kernel;
    for (int64_t i = first; i < end; ++i) {
        if (kernel->inner == 1) {
            const int64_t rest = kernel->outer - i * ROWS;
            scan_rows(run, i * ROWS, rest < ROWS ? rest : ROWS);
        } else {
            scan_columns(run, i / kernel->piece_count, i % kernel->piece_count * COLUMNS);
        }
    }
}

static rondo_status run_scan(rondo__host_kernel *head, const void *const *inputs,
                             void *const *outputs, void *workspace) {
    (void)workspace;
    const scan_kernel *kernel = (const scan_kernel *)head;
    scan_run run = {kernel, inputs[0], outputs[0]};
    const int64_t count = kernel->piece_count * (kernel->inner == 1 ? 1 : kernel->outer);
    rondo__workers_loop(count, rondo__host_get_grain(count, kernel->bytes, 0.0), scan_pieces, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_scan(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    const rondo_shape *x = &request->inputs[0].shape;
    const rondo_tensor *constant = request->inputs[1].constant;
    int32_t axis = 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || constant == NULL) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    RETURN_IF_ERROR(rondo__op_resolve_axis(op, rondo__tensor_get_int(constant, 0), x->rank, &axis));
    const int64_t inner = rondo__shape_multiply(x, axis + 1, x->rank);
    if (inner > 1 && inner < NARROW) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(scan_kernel), "simd", run_scan, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    scan_kernel *kernel = (scan_kernel *)head;
    kernel->simd = rondo__simd_get();
    kernel->outer = rondo__shape_multiply(x, 0, axis);
    kernel->length = x->extent[axis];
    kernel->inner = inner;
    kernel->piece_count = kernel->inner == 1 ? (kernel->outer + ROWS - 1) / ROWS
                                             : (kernel->inner + COLUMNS - 1) / COLUMNS;
    kernel->is_exclusive = rondo__op_get_int(op, "exclusive", 0) != 0;
    kernel->is_reverse = rondo__op_get_int(op, "reverse", 0) != 0;
    kernel->bytes = (double)rondo_shape_get_count(x) * 2.0 * sizeof(float);
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}
