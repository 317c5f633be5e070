// kernel/cuda/arrange/cuda_best_rows.c — rondo.BestRows; see best_rows.cu.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/arrange/cuda_sort.h"
#include "kernel/cuda/cuda_families.h"

enum { SCORES, ROWS };

void rondo__cuda_prepare_best_rows(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *scores = &rondo__cuda_input(kernel, SCORES)->shape;
    const int64_t count = scores->extent[0], columns = rondo__op_get_int(op, "columns", 0);
    const int64_t wanted = rondo__op_get_int(op, "most", 0);
    const int64_t most = wanted < count ? wanted : count;
    const rondo__defines defines = {0};
    rondo__cuda_sorted sorted;
    int64_t all;
    if (!rondo__mul_i64(columns, count, &all) || all >= INT32_MAX) {
        rondo__cuda_refuse(kernel, "2^31 scores");
        return;
    }
    const rondo__address keys = rondo__cuda_reserve(kernel, all, sizeof(uint64_t));
    const rondo__address counts = rondo__cuda_reserve(kernel, columns, sizeof(uint32_t));
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_best_rows, &defines, "best_keys",
                                               columns, RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_int(step, scores->extent[1]);
    rondo__step_int(step, rondo__op_get_int(op, "first", 0));
    rondo__step_int(step, most);
    rondo__step_float(step, (double)rondo__op_get_float(op, "threshold", 0.0f));
    rondo__step_input(step, SCORES);
    rondo__step_address(step, keys);
    rondo__step_address(step, counts);
    if (!rondo__cuda_add_sort(kernel, keys, columns, count, most, &sorted)) {
        return;
    }
    step = rondo__cuda_add_launch(kernel, rondo__cu_best_rows, &defines, "best_write", columns,
                                  RONDO__CUDA_BLOCK);
    rondo__step_int(step, columns);
    rondo__step_int(step, scores->extent[1]);
    rondo__step_int(step, rondo__cuda_input(kernel, ROWS)->shape.extent[1]);
    rondo__step_int(step, rondo__op_get_int(op, "first", 0));
    rondo__step_int(step, rondo__op_get_int(op, "label", 0));
    rondo__step_int(step, sorted.kept);
    rondo__step_input(step, SCORES);
    rondo__step_input(step, ROWS);
    rondo__step_address(step, sorted.keys);
    rondo__step_address(step, counts);
    rondo__step_optional_output(step, kernel, 0);
    rondo__step_optional_output(step, kernel, 1);
    rondo__step_optional_output(step, kernel, 2);
    rondo__step_address(step, rondo__cuda_find_count(kernel));
}
