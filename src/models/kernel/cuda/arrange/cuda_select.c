// kernel/cuda/arrange/cuda_select.c — NonZero and Compress; see select.cu.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/arrange/cuda_select.h"

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "op/bounds.h"

enum {
    TILE = 2048,           // elements of a block
    BLOCKS_MAX = 1 << 13,  // where most of the work that might be there mostly is not
};

rondo__address rondo__cuda_reserve(rondo__cuda_kernel *kernel, int64_t count, size_t bytes) {
    return rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, (size_t)count * bytes));
}

static int64_t count_tiles(int64_t count) {
    return (count + TILE - 1) / TILE;
}

rondo__address rondo__cuda_find_count(rondo__cuda_kernel *kernel) {
    const size_t output = rondo__op_get_count_output(kernel->request->op->def);
    return rondo__cuda_wants_output(kernel, output)
               ? rondo__address_output(output)
               : rondo__cuda_reserve(kernel, 1, sizeof(int64_t));
}

void rondo__cuda_add_scan(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                          rondo__address sums, int64_t tiles, rondo__address found) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_select, defines, "select_scan", 1,
                                               RONDO__CUDA_BLOCK);
    rondo__step_int(step, tiles);
    rondo__step_address(step, sums);
    rondo__step_address(step, found);
}

static rondo__step *add_walk(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                             const rondo__cuda_selection *selection, const char *name) {
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_select, defines, name,
                                               count_tiles(selection->count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, selection->count);
    rondo__step_address(step, selection->x);
    rondo__step_optional(step, selection->count > TILE ? &selection->sums : NULL);
    return step;
}

// The same, of those that look at the elements again.
static rondo__step *add_second_walk(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                                    const rondo__cuda_selection *selection, const char *name) {
    rondo__step *step = add_walk(kernel, defines, selection, name);
    rondo__step_address(step, selection->found);
    return step;
}

bool rondo__cuda_add_selection(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                               rondo__cuda_selection *in_out_selection) {
    rondo__cuda_selection *s = in_out_selection;
    if (s->count >= UINT32_MAX) {
        rondo__cuda_refuse(kernel, "2^32 elements to pick from");
        return false;
    }
    if (s->count <= TILE) {
        return true;  // the second walk counts
    }
    s->sums = rondo__cuda_reserve(kernel, count_tiles(s->count), sizeof(uint32_t));
    (void)add_walk(kernel, defines, s, "select_count");
    rondo__cuda_add_scan(kernel, defines, s->sums, count_tiles(s->count), s->found);
    return true;
}

void rondo__cuda_add_places(rondo__cuda_kernel *kernel, const rondo__defines *defines,
                            const rondo__cuda_selection *selection, rondo__address places,
                            const rondo__address *ranks) {
    rondo__step *step = add_second_walk(kernel, defines, selection, "select_places");
    rondo__step_address(step, places);
    rondo__step_optional(step, ranks);
}

size_t rondo__cuda_define_row_word(rondo__defines *defines, size_t row_bytes) {
    size_t word = 16;
    while (row_bytes % word != 0) {
        word /= 2;
    }
    rondo__define_bytes(defines, "W", word);
    return word;
}

void rondo__cuda_add_rows(rondo__cuda_kernel *kernel, const rondo__defines *defines, int64_t outer,
                          int64_t extent, size_t row_bytes, size_t word, rondo__address places,
                          rondo__address found) {
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const size_t most = (size_t)rondo_shape_get_count(&y->shape) * rondo_dtype_get_bytes(y->dtype);
    const int64_t blocks = rondo__cuda_blocks((int64_t)(most / word));
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_select, defines, "select_rows",
                               blocks < BLOCKS_MAX ? blocks : BLOCKS_MAX, RONDO__CUDA_BLOCK);
    rondo__step_int(step, outer);
    rondo__step_int(step, extent);
    rondo__step_int(step, (int64_t)(row_bytes / word));
    rondo__step_input(step, 0);
    rondo__step_address(step, places);
    rondo__step_address(step, found);
    rondo__step_output(step, 0);
}

void rondo__cuda_prepare_non_zero(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const int32_t rank = x->shape.rank > 0 ? x->shape.rank : 1;
    rondo__cuda_selection selection = {.x = rondo__address_input(0),
                                       .count = rondo_shape_get_count(&x->shape),
                                       .found = rondo__cuda_find_count(kernel)};
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", x->dtype);
    rondo__define_int(&defines, "RANK", rank);
    if (!rondo__cuda_add_selection(kernel, &defines, &selection)) {
        return;
    }
    rondo__step *step = add_second_walk(kernel, &defines, &selection, "select_non_zero");
    rondo__step_output(step, 0);
    for (int32_t d = 0; d < rank; d++) {
        rondo__step_int(step, x->shape.rank > 0 ? x->shape.extent[d] : 1);
    }
}

void rondo__cuda_prepare_compress(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const bool has_axis = rondo__op_find(op, "axis") != NULL;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "axis", 0), x->shape.rank);
    const int64_t extent = has_axis ? x->shape.extent[axis] : rondo_shape_get_count(&x->shape);
    const int64_t inner = has_axis ? rondo__cuda_product(&x->shape, axis + 1, x->shape.rank) : 1;
    const size_t row_bytes = (size_t)inner * rondo_dtype_get_bytes(x->dtype);
    rondo__cuda_selection selection = {.x = rondo__address_input(1),
                                       .count = rondo__cuda_input(kernel, 1)->shape.extent[0],
                                       .found = rondo__cuda_find_count(kernel)};
    rondo__defines defines = {0};
    if (selection.count > extent) {  // picks what is not there, perhaps: the reference tells of it
        rondo__cuda_refuse(kernel, "a condition that is longer than its axis");
        return;
    }
    rondo__define_type(&defines, "T", RONDO_DTYPE_BOOL);
    const size_t word = rondo__cuda_define_row_word(&defines, row_bytes);
    if (!rondo__cuda_add_selection(kernel, &defines, &selection)) {
        return;
    }
    const rondo__address places = rondo__cuda_reserve(kernel, selection.count, sizeof(uint32_t));
    rondo__cuda_add_places(kernel, &defines, &selection, places, NULL);
    rondo__cuda_add_rows(kernel, &defines, has_axis ? rondo__cuda_product(&x->shape, 0, axis) : 1,
                         extent, row_bytes, word, places, selection.found);
}
