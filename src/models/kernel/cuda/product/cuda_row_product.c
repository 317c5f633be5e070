// kernel/cuda/product/cuda_row_product.c — products of one row and a few with what stands around
// them: by half_few.cu, half_row.cu, ring_row.cu, or a warp for each output (vector_product).
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_row_product.h"

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"

enum { VECTOR_ROWS_MAX = 4 };  // products of so few rows are read-bound: a warp an output

// What every kernel here takes.
static bool is_simple(const rondo__cuda_matmul *p) {
    return rondo__cuda_has_simple_rows(p) && !(p->epilogue.has_bias && p->bias_row != 0) &&
           !p->epilogue.gates;
}

static bool suits_vector(const rondo__cuda_matmul *p) {
    return is_simple(p) && p->m <= VECTOR_ROWS_MAX && rondo__cuda_is_float(p->dtype) &&
           p->k % (16 / (int64_t)rondo_dtype_get_bytes(p->dtype)) == 0;
}

// Lines of 128 bytes of a row of b for each lane of its warp, as long as the rows of all blocks
// that are there at once fit into a part of the second-level cache.
static int64_t count_early_lines(const rondo__cuda_matmul *p, int64_t matrices) {
    enum { LINE_BYTES = 128, LANES = 32, ROWS_AT_ONCE = 8448, CACHE_BYTES = 24 << 20, MOST = 8 };
    const int64_t turn = LINE_BYTES * LANES, rows = p->n < ROWS_AT_ONCE ? p->n : ROWS_AT_ONCE;
    const int64_t all = (p->k * (int64_t)rondo_dtype_get_bytes(p->dtype) + turn - 1) / turn;
    const int64_t fits = CACHE_BYTES / (rows * turn * matrices), room = fits < MOST ? fits : MOST;
    return all < room ? all : room;
}

enum {
    INPUT_B = 1,
    INPUT_GATE = 5,        // of rondo.RowProduct
    HALF_ROW_SPAN = 2048,  // numbers along k of a block's turn of half_row.cu
    HALF_ROW_TURNS_MOST = 4,
    HALF_ROW_STEP = 64,  // what k is a multiple of
    HALF_ROW_OUTPUTS = 16,
    HALF_ROW_OUTPUTS_MOST = 16384,  // beyond, what is asked for early is a small part
};

static bool has_constant(const rondo__cuda_kernel *kernel, size_t input) {
    return rondo__cuda_has_input(kernel, input) &&
           rondo__cuda_input(kernel, input)->constant != NULL;
}

// Whether half_row.cu makes this product. Where less than half of the multiprocessors would have a
// block, vector_product has twice as many. With a gate a block would hold the weights of 8 outputs
// alone, while most blocks come late: ring_row.cu or vector_product is faster.
static bool suits_half_row(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                           const rondo__cuda_row_extras *extras) {
    rondo_device_info info = {.struct_size = sizeof info};
    return p->m == 1 && p->dtype == RONDO_DTYPE_F16 && p->k % HALF_ROW_STEP == 0 &&
           p->k <= HALF_ROW_SPAN * HALF_ROW_TURNS_MOST && !extras->has_gate &&
           has_constant(kernel, INPUT_B) &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK &&
           info.arch_major >= 8 && p->n <= HALF_ROW_OUTPUTS_MOST &&
           p->n * 2 >= HALF_ROW_OUTPUTS * (int64_t)info.compute_units;
}

enum {
    RING_WARPS = RONDO__CUDA_BLOCK / 32,
    RING_PACK = 256,  // numbers along k of a warp's pack
    RING_PACKS_MOST = 8,
    RING_STAGES = 4,
    RING_STAGES_MOST = 6,  // where no block of another kernel needs room beside it
    RING_STATIC_BYTES = 1 << 10,
};

typedef struct ring_form {
    int64_t packs, parts, stages, blocks, shared_bytes;
} ring_form;

// Whether ring_row.cu makes this product: of constant weights, twice as many outputs as all warps
// make at a time, and a gate, or more outputs than half_row.cu is for.
static bool suits_ring(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                       const rondo__cuda_row_extras *extras, ring_form *out_form) {
    rondo_device_info info = {.struct_size = sizeof info};
    const bool is_wide = p->n > HALF_ROW_OUTPUTS_MOST;
    ring_form form = {.parts = 1, .stages = is_wide ? RING_STAGES_MOST : RING_STAGES};
    if (p->m != 1 || p->dtype != RONDO_DTYPE_F16 || (!is_wide && !extras->has_gate) ||
        !has_constant(kernel, INPUT_B) || (extras->has_gate && !has_constant(kernel, INPUT_GATE)) ||
        rondo_device_get_info(kernel->device, &info) != RONDO_STATUS_OK || info.arch_major < 9) {
        return false;
    }
    while (form.parts < RING_WARPS && p->k > form.parts * RING_PACKS_MOST * RING_PACK) {
        form.parts *= 2;
    }
    form.packs = p->k / (form.parts * RING_PACK);
    form.blocks = (int64_t)info.compute_units;
    const int64_t at_once = RING_WARPS / form.parts * form.blocks;
    const int64_t turns = (p->n + at_once - 1) / at_once;
    const int64_t sums = form.parts > 1 ? (turns + 1) * (extras->has_gate ? 2 : 1) * RING_WARPS : 0;
    form.shared_bytes =
        RING_WARPS * form.stages * form.packs * RING_PACK * 2 + sums * (int64_t)sizeof(float);
    if (form.packs > RING_PACKS_MOST || form.packs * form.parts * RING_PACK != p->k ||
        p->n < 2 * at_once ||
        form.shared_bytes > rondo__cuda_get_shared_bytes(&info) - RING_STATIC_BYTES) {
        return false;
    }
    *out_form = form;
    return true;
}

enum {
    FEW_ROWS_MOST = 8,
    FEW_OUTPUTS = 16,
    FEW_STAGE_BYTES = RONDO__CUDA_BLOCK * 64,
    FEW_STAGES = 8,
    FEW_STATIC_BYTES = 20 << 10,
    FEW_NORM_TURNS_MOST = 2,
};

// Whether half_few.cu can make this product: two to eight rows in half precision and constant
// weights, which tensor cores take.
static bool can_be_few(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                       const rondo__cuda_row_extras *extras) {
    const int64_t turns_most = extras->has_gain ? FEW_NORM_TURNS_MOST : HALF_ROW_TURNS_MOST;
    rondo_device_info info = {.struct_size = sizeof info};
    return p->m > 1 && p->m <= FEW_ROWS_MOST && p->dtype == RONDO_DTYPE_F16 && is_simple(p) &&
           p->k % HALF_ROW_STEP == 0 && p->k <= HALF_ROW_SPAN * turns_most &&
           has_constant(kernel, INPUT_B) &&
           (!extras->has_gate || has_constant(kernel, INPUT_GATE)) &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK && info.arch_major >= 8;
}

// Whether it is the way for a product that stands alone; of fewer blocks others are faster.
static bool suits_few(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p) {
    rondo_device_info info = {.struct_size = sizeof info};
    return can_be_few(kernel, p, &(rondo__cuda_row_extras){0}) &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK &&
           p->n * 2 >= FEW_OUTPUTS * (int64_t)info.compute_units;
}

// The launch of half_few.cu. Where a turn is all of k, blocks hold their weights in registers, if
// all blocks find room at once; else they stay, one on a multiprocessor, and read on through rings.
static rondo__step *launch_few(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                               const rondo__cuda_row_extras *extras, rondo__defines *defines) {
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return NULL;
    }
    const int64_t outputs = extras->has_gate ? FEW_OUTPUTS / 2 : FEW_OUTPUTS;
    const int64_t units = (int64_t)info.compute_units, tiles = (p->n + outputs - 1) / outputs;
    const int64_t turns = (p->k + HALF_ROW_SPAN - 1) / HALF_ROW_SPAN;
    const bool stays = tiles > 2 * units, is_held = !stays && turns == 1;
    const int64_t room = (rondo__cuda_get_shared_bytes(&info) - FEW_STATIC_BYTES) / FEW_STAGE_BYTES;
    const int64_t stages = room < FEW_STAGES ? room : FEW_STAGES;
    rondo__define_int(defines, "GATED", extras->has_gate);
    rondo__define_int(defines, "TURNS", turns);
    rondo__define_int(defines, "WHOLE", p->k == turns * HALF_ROW_SPAN);
    rondo__define_int(defines, "STAGES", is_held ? 0 : stages);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_half_few, defines, "half_few",
                                               stays ? units : tiles, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.shared_bytes = (uint32_t)(is_held ? 0 : stages * FEW_STAGE_BYTES);
    }
    return step;
}

void rondo__cuda_add_row_product(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                                 const rondo__cuda_row_extras *extras) {
    rondo__defines defines = {0};
    ring_form ring = {0};
    rondo__step *step = NULL;
    rondo__define_int(&defines, "NORMALISED", extras->has_gain);
    rondo__define_type(&defines, "T", p->dtype);
    rondo__define_type(&defines, "Y", p->y_dtype);
    if (can_be_few(kernel, p, extras)) {
        step = launch_few(kernel, p, extras, &defines);
    } else if (suits_ring(kernel, p, extras, &ring)) {
        rondo__define_int(&defines, "GATED", extras->has_gate);
        rondo__define_int(&defines, "PACKS", ring.packs);
        rondo__define_int(&defines, "PARTS", ring.parts);
        rondo__define_int(&defines, "STAGES", ring.stages);
        step = rondo__cuda_add_launch(kernel, rondo__cu_ring_row, &defines, "ring_row", ring.blocks,
                                      RONDO__CUDA_BLOCK);
        if (step != NULL) {
            step->launch.shared_bytes = (uint32_t)ring.shared_bytes;
        }
    } else if (suits_half_row(kernel, p, extras)) {
        const int64_t turns = (p->k + HALF_ROW_SPAN - 1) / HALF_ROW_SPAN;
        rondo__define_int(&defines, "TURNS", turns);
        rondo__define_int(&defines, "BLOCKS_BESIDE", turns == 1 ? 2 : 1);
        step = rondo__cuda_add_launch(kernel, rondo__cu_half_row, &defines, "half_row",
                                      (p->n + HALF_ROW_OUTPUTS - 1) / HALF_ROW_OUTPUTS,
                                      RONDO__CUDA_BLOCK);
    } else {
        rondo__define_int(&defines, "EARLY_LINES", count_early_lines(p, extras->has_gate ? 2 : 1));
        rondo__define_int(&defines, "GATED", extras->has_gate);
        rondo__define_int(&defines, "WIDTH", 16 / (int64_t)rondo_dtype_get_bytes(p->dtype));
        step = rondo__cuda_add_launch(kernel, rondo__cu_matmul_plain, &defines, "vector_product",
                                      (p->n + 7) / 8, RONDO__CUDA_BLOCK);
        if (step != NULL) {
            step->launch.grid[1] = (uint32_t)p->m;
        }
    }
    rondo__step_address(step, p->a);
    rondo__step_address(step, p->b);
    rondo__step_epilogue_addresses(step, &p->epilogue);
    rondo__step_address(step, p->y);
    rondo__step_int(step, p->m);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->k);
    rondo__step_int(step, p->epilogue.activation);
    rondo__step_float(step, (double)p->epilogue.alpha);
    rondo__step_float(step, (double)p->epilogue.beta);
    rondo__step_optional(step, extras->has_gain ? &extras->gain : NULL);
    rondo__step_optional(step, extras->has_gate ? &extras->gate : NULL);
    rondo__step_float(step, (double)extras->epsilon);
}

bool rondo__cuda_takes_row_product(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                                   const rondo__cuda_row_extras *extras) {
    return suits_vector(p) || can_be_few(kernel, p, extras);
}

bool rondo__cuda_suits_row_product(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p,
                                   bool *out_is_only) {
    const rondo__cuda_row_extras none = {0};
    const bool is_few = suits_few(kernel, p);
    ring_form ring;
    *out_is_only = is_few || (suits_vector(p) && (suits_ring(kernel, p, &none, &ring) ||
                                                  suits_half_row(kernel, p, &none)));
    return is_few || suits_vector(p);
}
