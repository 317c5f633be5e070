// kernel/cuda/product/cuda_append_attention.c — rondo.AppendAttention; see append_attention.cu.
// SPDX-License-Identifier: Apache-2.0
#include "op/fused/append_attention.h"

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum {
    VECTOR_BYTES = 16,
    LANES_MOST = 32,
    GROUP_COLUMNS_MOST = 512,  // of the queries that share keys: what a block's memory holds
    GROUP_MOST = 8,
    PART_KEYS_LEAST = 32,
    WARPS = RONDO__CUDA_BLOCK / 32,
    PARTS_MOST = 8,  // blocks of a cluster that every chip with clusters takes
};

// Keys that a block has at once: `lanes` threads could read one.
static int64_t get_tile(int64_t lanes) {
    return RONDO__CUDA_BLOCK / (lanes < LANES_MOST ? 4 : 8);
}

// block_memory of append_attention.cu, of a block with `group` heads of the queries. Rows of a tile
// are four pieces apart where they would meet in the same banks.
static int64_t get_shared_bytes(const rondo__append_attention *a, int64_t group, int64_t lanes,
                                int64_t parts, int64_t stages) {
    const int64_t queries = group * a->width, tile = get_tile(lanes);
    const int64_t pitch_bytes = (lanes % 8 == 0 ? lanes + 4 : lanes) * VECTOR_BYTES;
    const int64_t shares = RONDO__CUDA_BLOCK / (queries / 2) + parts;
    return 2 * stages * tile * pitch_bytes +
           4 * (queries + (WARPS + tile) * group + (queries + 2 * group) * shares);
}

void rondo__cuda_prepare_append_attention(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *row = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *past = rondo__cuda_input(kernel, 1);
    rondo__append_attention a;
    rondo__defines defines = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(
            kernel, rondo__append_attention_init(kernel->request->op, &row->shape, &past->shape,
                                                 &rondo__cuda_input(kernel, 2)->shape, &a)) ||
        !rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return;
    }
    const int64_t group = a.heads / a.kv_heads;
    const int64_t width = VECTOR_BYTES / (int64_t)rondo_dtype_get_bytes(row->dtype);
    const int64_t lanes = a.width / width;
    if (!rondo__cuda_is_float(row->dtype) || a.width % width != 0 || lanes > LANES_MOST ||
        (lanes & (lanes - 1)) != 0 || group > GROUP_MOST || group * a.width > GROUP_COLUMNS_MOST) {
        rondo__cuda_refuse(kernel, "heads of this width, or so many that share keys");
        return;
    }
    int64_t parts = 1;
    // A block has a multiprocessor alone: more of them would wait for their turn.
    while (info.arch_major >= 9 && parts < PARTS_MOST && a.past >= 2 * parts * PART_KEYS_LEAST &&
           2 * parts * a.kv_heads * a.batch <= (int64_t)info.compute_units) {
        parts *= 2;
    }
    // Half of the queries for each block take half of the time, where all blocks find room.
    const int64_t split =
        group % 2 == 0 && 2 * parts * a.kv_heads * a.batch <= (int64_t)info.compute_units ? 2 : 1;
    const int64_t stages = (a.past + parts) / parts > get_tile(lanes) ? 2 : 1;
    rondo__define_type(&defines, "T", row->dtype);
    rondo__define_int(&defines, "WIDTH", width);
    rondo__define_int(&defines, "HEAD", a.width);
    rondo__define_int(&defines, "GROUP", group / split);
    rondo__define_int(&defines, "SPLIT", split);
    rondo__define_int(&defines, "PARTS", parts);
    rondo__define_int(&defines, "STAGES", stages);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_append_attention, &defines,
                                               "append_attention", parts, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)(a.kv_heads * split);
        step->launch.grid[2] = (uint32_t)a.batch;
        step->launch.shared_bytes =
            (uint32_t)get_shared_bytes(&a, group / split, lanes, parts, stages);
    }
    for (size_t i = 0; i < 5; i++) {
        rondo__step_input(step, i);
    }
    for (size_t i = 0; i < 3; i++) {
        rondo__step_output(step, i);
    }
    rondo__step_int(step, a.past);
    rondo__step_int(step, a.kv_heads);
    rondo__step_float(step, (double)a.scale);
}
