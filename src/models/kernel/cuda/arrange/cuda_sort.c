// kernel/cuda/arrange/cuda_sort.c — see cuda_sort.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/arrange/cuda_sort.h"

#include "base/checked.h"
#include "cu_sources.h"

enum { CHUNK_MIN = 64, CHUNK_MAX = 2048 };

typedef struct run_list {
    rondo__address keys, order;
} run_list;

static run_list reserve_runs(rondo__cuda_kernel *kernel, int64_t count) {
    return (run_list){
        .keys = rondo__address_workspace(
            rondo__cuda_reserve_workspace(kernel, (size_t)count * sizeof(uint64_t))),
        .order = rondo__address_workspace(
            rondo__cuda_reserve_workspace(kernel, (size_t)count * sizeof(uint32_t))),
    };
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

typedef struct sort_form {
    int64_t lines, length, limit;
} sort_form;

static void push_sort(rondo__step *step, const sort_form *form, const run_list *from,
                      const run_list *to, int64_t span) {
    rondo__step_int(step, form->lines);
    rondo__step_int(step, form->length);
    rondo__step_address(step, from->keys);
    rondo__step_address(step, from->order);
    rondo__step_address(step, to->keys);
    rondo__step_address(step, to->order);
    rondo__step_int(step, form->limit);
    rondo__step_int(step, span);
}

// Elements of a line that are kept when each run has `span`.
static int64_t count_kept(const sort_form *form, int64_t span) {
    return (form->length + span - 1) / span * least(form->limit, span);
}

bool rondo__cuda_add_sort(rondo__cuda_kernel *kernel, rondo__address keys, int64_t lines,
                          int64_t length, int64_t limit, rondo__cuda_sorted *out_sorted) {
    const sort_form form = {.lines = lines, .length = length, .limit = least(limit, length)};
    const run_list source = {.keys = keys, .order = keys};
    rondo__defines defines = {0};
    run_list runs[2];
    int64_t chunk = CHUNK_MIN, most = 0, bytes;
    int now = 0;

    // Runs that are merged are rounded up: at most twice the line.
    if (length >= UINT32_MAX || !rondo__mul_i64(lines, length, &bytes) ||
        !rondo__mul_i64(bytes, 4 * (int64_t)sizeof(uint64_t), &bytes)) {
        rondo__cuda_refuse(kernel, "2^32 elements to sort");
        return false;
    }
    while (chunk < CHUNK_MAX && chunk < length) {
        chunk *= 2;
    }
    for (int64_t span = chunk; span < 2 * length || span == chunk; span *= 2) {
        const int64_t kept = count_kept(&form, span);
        most = kept > most ? kept : most;
    }
    runs[0] = reserve_runs(kernel, lines * most);
    runs[1] = length > chunk ? reserve_runs(kernel, lines * most) : runs[0];
    rondo__define_int(&defines, "CHUNK", chunk);
    push_sort(rondo__cuda_add_launch(kernel, rondo__cu_sort, &defines, "sort_chunks",
                                     lines * ((length + chunk - 1) / chunk), RONDO__CUDA_BLOCK),
              &form, &source, &runs[0], chunk);
    for (int64_t span = chunk; span < length; span *= 2) {
        push_sort(rondo__cuda_add_launch(kernel, rondo__cu_sort, &defines, "merge_runs",
                                         rondo__cuda_blocks(lines * count_kept(&form, span)),
                                         RONDO__CUDA_BLOCK),
                  &form, &runs[now], &runs[1 - now], span);
        now = 1 - now;
    }
    *out_sorted =
        (rondo__cuda_sorted){.keys = runs[now].keys, .order = runs[now].order, .kept = form.limit};
    return true;
}
