// kernel/cuda/arrange/cuda_unique.c — Unique; see unique.cu.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/arrange/cuda_sort.h"
#include "kernel/cuda/cuda_families.h"

enum {
    VALUES,
    FIRSTS,
    INVERSES,
    COUNTS,
    // Slices of more than one element are ordered by comparing each with each.
    SLICES_MAX = 1 << 15,
};

// The input as [outer, extent, inner]: slices of outer * inner elements.
typedef struct unique {
    int64_t outer, extent, inner, columns;
    size_t row_bytes, word;
    rondo__defines defines;  // of what select.cu does here
    rondo__address keys;     // u64 [columns, extent]; where it is sorted, sorted
    rondo__address order;    // u32 [extent]
    rondo__address heads;    // u8 [extent]
    rondo__address found;
} unique;

static rondo__step *add_slices(rondo__cuda_kernel *kernel, const unique *u, const char *name,
                               int64_t blocks) {
    const rondo__defines defines = {0};
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_unique, &defines, name, blocks, RONDO__CUDA_BLOCK);
    rondo__step_int(step, u->extent);
    return step;
}

static void add_keys(rondo__cuda_kernel *kernel, unique *u) {
    rondo__defines defines = {0};
    const int64_t count = u->columns * u->extent;
    rondo__define_type(&defines, "T", rondo__cuda_input(kernel, 0)->dtype);
    u->keys = rondo__cuda_reserve(kernel, count, sizeof(uint64_t));
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_top_k, &defines, "top_k_keys",
                                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, 0);
    rondo__step_address(step, u->keys);
    rondo__step_int(step, u->extent);
    rondo__step_int(step, u->inner);
    rondo__step_int(step, 0);
}

// Puts equal slices together, the first of each group at its head.
static bool add_order(rondo__cuda_kernel *kernel, unique *u) {
    add_keys(kernel, u);
    if (u->columns == 1) {
        rondo__cuda_sorted sorted;
        if (!rondo__cuda_add_sort(kernel, u->keys, 1, u->extent, u->extent, &sorted)) {
            return false;
        }
        u->keys = sorted.keys;
        u->order = sorted.order;
        return true;
    }
    u->order = rondo__cuda_reserve(kernel, u->extent, sizeof(uint32_t));
    rondo__step *step = add_slices(kernel, u, "unique_order", u->extent);
    rondo__step_address(step, u->keys);
    rondo__step_address(step, u->order);
    rondo__step_int(step, u->columns);
    return true;
}

static void add_heads(rondo__cuda_kernel *kernel, unique *u) {
    u->heads = rondo__cuda_reserve(kernel, u->extent, 1);
    rondo__step *step = add_slices(kernel, u, "unique_heads", rondo__cuda_blocks(u->extent));
    rondo__step_address(step, u->keys);
    rondo__step_optional(step, u->columns == 1 ? NULL : &u->order);
    rondo__step_address(step, u->heads);
    rondo__step_int(step, u->columns);
}

// By slice that is a head: where its group goes when groups stay in the order of the input.
static bool add_slots(rondo__cuda_kernel *kernel, const unique *u, rondo__address places,
                      rondo__address *out_slots) {
    rondo__cuda_selection heads = {.x = rondo__cuda_reserve(kernel, u->extent, 1),
                                   .count = u->extent,
                                   .found = rondo__cuda_reserve(kernel, 1, sizeof(int64_t))};
    rondo__step *step = add_slices(kernel, u, "unique_marks", rondo__cuda_blocks(u->extent));
    rondo__step_address(step, u->order);
    rondo__step_address(step, u->heads);
    rondo__step_address(step, heads.x);
    if (!rondo__cuda_add_selection(kernel, &u->defines, &heads)) {
        return false;
    }
    *out_slots = rondo__cuda_reserve(kernel, u->extent, sizeof(uint32_t));
    rondo__cuda_add_places(kernel, &u->defines, &heads, places, out_slots);
    return true;
}

static void add_outputs(rondo__cuda_kernel *kernel, const unique *u) {
    const bool is_sorted = rondo__op_get_int(kernel->request->op, "sorted", 1) != 0;
    const rondo__address places = rondo__cuda_reserve(kernel, u->extent, sizeof(uint32_t));
    const rondo__address begins = rondo__cuda_reserve(kernel, u->extent, sizeof(uint32_t));
    const rondo__address groups = rondo__cuda_reserve(kernel, u->extent, sizeof(uint32_t));
    rondo__cuda_selection heads = {.x = u->heads, .count = u->extent, .found = u->found};
    rondo__address slots;
    if (!rondo__cuda_add_selection(kernel, &u->defines, &heads)) {
        return;
    }
    rondo__cuda_add_places(kernel, &u->defines, &heads, begins, &groups);
    if (!is_sorted && !add_slots(kernel, u, places, &slots)) {
        return;
    }
    rondo__step *step = add_slices(kernel, u, "unique_write", rondo__cuda_blocks(u->extent));
    rondo__step_address(step, u->order);
    rondo__step_address(step, groups);
    rondo__step_address(step, begins);
    rondo__step_optional(step, is_sorted ? NULL : &slots);
    rondo__step_address(step, u->found);
    rondo__step_address(step, places);
    rondo__step_optional_output(step, kernel, FIRSTS);
    rondo__step_optional_output(step, kernel, INVERSES);
    rondo__step_optional_output(step, kernel, COUNTS);
    if (rondo__cuda_wants_output(kernel, VALUES)) {
        rondo__cuda_add_rows(kernel, &u->defines, u->outer, u->extent, u->row_bytes, u->word,
                             places, u->found);
    }
}

void rondo__cuda_prepare_unique(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo_shape *x = &rondo__cuda_input(kernel, 0)->shape;
    unique u = {.outer = 1, .extent = rondo_shape_get_count(x), .inner = 1, .columns = 1};
    int64_t bytes;
    if (rondo__op_find(op, "axis") != NULL) {
        const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", 0), x->rank);
        u.outer = rondo__cuda_product(x, 0, axis);
        u.extent = x->extent[axis];
        u.inner = rondo__cuda_product(x, axis + 1, x->rank);
        u.columns = u.outer * u.inner;
    }
    if (u.columns > 1 && u.extent > SLICES_MAX) {
        rondo__cuda_refuse(kernel, "more than 32768 slices of several elements");
        return;
    }
    if (!rondo__mul_i64(u.columns * u.extent, (int64_t)sizeof(uint64_t), &bytes)) {
        rondo__cuda_refuse(kernel, "2^60 elements");
        return;
    }
    u.row_bytes = (size_t)u.inner * rondo_dtype_get_bytes(rondo__cuda_input(kernel, 0)->dtype);
    u.word = rondo__cuda_define_row_word(&u.defines, u.row_bytes);
    rondo__define_type(&u.defines, "T", RONDO_DTYPE_BOOL);
    u.found = rondo__cuda_find_count(kernel);
    if (add_order(kernel, &u)) {
        add_heads(kernel, &u);
        add_outputs(kernel, &u);
    }
}
