// kernel/cuda/arrange/cuda_suppress.c — NonMaxSuppression; see suppress.cu.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/cuda_families.h"

enum { THREADS = 512, SORTED = 2048 };  // as in the text

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

typedef struct suppression {
    int64_t lines, classes, count;  // lines: of all batches
    int64_t limit;                  // boxes that may be kept of one
    rondo__address kept, kept_counts, found;
} suppression;

static void add_classes(rondo__cuda_kernel *kernel, const suppression *s,
                        const rondo__defines *defines) {
    const rondo__op *op = kernel->request->op;
    rondo__address keys = {0}, spare = {0};
    const bool is_long = s->count > SORTED;
    if (is_long) {
        keys = rondo__cuda_reserve(kernel, s->lines * s->count, sizeof(uint64_t));
        spare = rondo__cuda_reserve(kernel, s->lines * s->count, sizeof(uint64_t));
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_suppress, defines,
                                               "suppress_class", s->lines, THREADS);
    rondo__step_int(step, s->lines);
    rondo__step_int(step, s->classes);
    rondo__step_int(step, s->count);
    rondo__step_input(step, BOXES);
    rondo__step_input(step, SCORES);
    rondo__step_optional_input(step, kernel, MOST);
    rondo__step_optional_input(step, kernel, OVERLAP);
    rondo__step_optional_input(step, kernel, SCORE);
    rondo__step_optional(step, is_long ? &keys : NULL);
    rondo__step_optional(step, is_long ? &spare : NULL);
    rondo__step_address(step, s->kept);
    rondo__step_address(step, s->kept_counts);
    rondo__step_int(step, s->limit);
    rondo__step_int(step, rondo__op_get_int(op, "center_point_box", 0) != 0);
}

void rondo__cuda_prepare_suppression(rondo__cuda_kernel *kernel) {
    const rondo_shape *scores = &rondo__cuda_input(kernel, SCORES)->shape;
    const int64_t most = rondo__cuda_output(kernel, 0)->shape.extent[0];
    suppression s = {.lines = scores->extent[0] * scores->extent[1],
                     .classes = scores->extent[1],
                     .count = scores->extent[2]};
    const rondo__defines plain = {0};
    rondo__defines defines = {0};
    int64_t bytes;
    if (s.count >= INT32_MAX || !rondo__mul_i64(s.lines, s.count, &bytes) ||
        !rondo__mul_i64(bytes, 4 * (int64_t)sizeof(uint64_t), &bytes) || most >= UINT32_MAX) {
        rondo__cuda_refuse(kernel, "2^31 boxes");
        return;
    }
    s.found = rondo__cuda_find_count(kernel);
    s.limit = most / s.lines;
    s.kept = rondo__cuda_reserve(kernel, most, sizeof(uint32_t));
    s.kept_counts = rondo__cuda_reserve(kernel, s.lines, sizeof(uint32_t));
    rondo__define_option(&defines, "-fmad=false");  // as the reference rounds
    add_classes(kernel, &s, &defines);
    rondo__cuda_add_scan(kernel, &plain, s.kept_counts, s.lines, s.found);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_suppress, &defines,
                                               "suppress_write", s.lines, RONDO__CUDA_BLOCK);
    rondo__step_int(step, s.lines);
    rondo__step_int(step, s.classes);
    rondo__step_address(step, s.kept);
    rondo__step_address(step, s.kept_counts);
    rondo__step_address(step, s.found);
    rondo__step_output(step, 0);
    rondo__step_int(step, s.limit);
}
