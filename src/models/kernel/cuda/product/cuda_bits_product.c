// kernel/cuda/product/cuda_bits_product.c — com.microsoft.MatMulNBits, rondo.BitsRow and
// com.microsoft.GatherBlockQuantized, on weights as they are stored.
// SPDX-License-Identifier: Apache-2.0
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/cuda_steps.h"
#include "op/fused/fused.h"
#include "op/math/bits_product.h"

enum {
    VECTOR_ROWS_MAX = 8,  // products of so few rows are read-bound
    ROWS_MAX = 4,         // of them at once
    COLUMNS = 2,          // of a warp
    TILE = 64,
    LOW_TILE = 16,
    TENSOR_THREADS = 128,
    TENSOR_PITCH = 72,  // halves of a row of a tile
    TENSOR_DEPTH = 64,  // of a tile
    SPLIT_MOST = 8,     // blocks of a cluster that every chip with clusters takes
    SPLIT_STEPS_LEAST = 4,
    BLOCKS_BESIDE = 4,  // on a multiprocessor, that hide each other's waits
    TENSOR_STEP = 8,    // what k must be a multiple of: a row of f16 in pieces of 16 bytes
    FEW_ROWS_MAX = 64,  // of bits_rows.cu, which makes f16 of weights again for each 32 of them
    FEW_TILE_ROWS = 8,
    FEW_TILE_COLUMNS = 16,
    FEW_BLOCK = 32,  // numbers that a lane reads at once; those of a block are a multiple
    FEW_TILES_MOST = 8,
    FEW_COLUMN_TILES_MOST = 4,
    ROW_SPAN = 256,  // numbers along k of a warp of bits_row.cu
    ROW_TURNS_MOST = 4,
    ROW_STEP = 64,  // what k is a multiple of
    ROW_COLUMNS = 16,
    ROW_PIECE_BYTES = 80,  // of 32 numbers in shared memory
    FEW_TURNS_MOST = 2,    // of bits_few.cu, as the next two
    FEW_NORM_ROWS_MOST = 8,
    FEW_ROW_TILES_MOST = 4,
    FEW_TILE_BYTES = 512,       // of sums of 16 columns and 8 rows
    STATIC_BYTES_MOST = 49152,  // of shared memory that a kernel declares
};

static bool has_tensor(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo__cuda_input(kernel, RONDO__BITS_A)->dtype == RONDO_DTYPE_F16 &&
           p->k % TENSOR_STEP == 0 &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK && info.arch_major >= 8;
}

static void define(const rondo__cuda_kernel *kernel, const rondo__bits_product *p,
                   rondo__defines *defines) {
    const bool has_zeros = rondo__cuda_has_input(kernel, RONDO__BITS_ZEROS);
    rondo__define_type(defines, "T", rondo__cuda_input(kernel, RONDO__BITS_A)->dtype);
    rondo__define_int(defines, "BITS", p->bits);
    rondo__define_int(defines, "ZEROS",
                      !has_zeros                                                              ? 0
                      : rondo__cuda_input(kernel, RONDO__BITS_ZEROS)->dtype == RONDO_DTYPE_U8 ? 1
                                                                                              : 2);
}

static void push(rondo__step *step, const rondo__cuda_kernel *kernel,
                 const rondo__bits_product *p) {
    rondo__step_input(step, RONDO__BITS_A);
    rondo__step_input(step, RONDO__BITS_B);
    rondo__step_input(step, RONDO__BITS_SCALES);
    rondo__step_optional_input(step, kernel, RONDO__BITS_ZEROS);
    rondo__step_optional_input(step, kernel, RONDO__BITS_GROUPS);
    rondo__step_optional_input(step, kernel, RONDO__BITS_BIAS);
    rondo__step_output(step, 0);
    rondo__step_int(step, p->m);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->k);
    rondo__step_int(step, p->block);
    rondo__step_int(step, p->blocks);
    rondo__step_int(step, p->blocks * p->block_bytes);
    rondo__step_int(step, p->zero_bytes);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}

static void add_vector(rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    rondo__defines defines = {0};
    const int64_t rows = p->m < 3 ? p->m : ROWS_MAX;
    const int64_t pack = p->block_bytes < 16 ? p->block_bytes : 16;
    const int64_t element =
        (int64_t)rondo_dtype_get_bytes(rondo__cuda_input(kernel, RONDO__BITS_A)->dtype);
    int64_t width = 16 / element;
    while (p->k % width != 0 || width > pack * 8 / p->bits) {
        width /= 2;
    }
    define(kernel, p, &defines);
    rondo__define_int(&defines, "ROWS", rows);
    rondo__define_int(&defines, "COLUMNS", COLUMNS);
    rondo__define_int(&defines, "PACK", pack);
    rondo__define_int(&defines, "WIDTH", width);
    const int64_t columns = (int64_t)COLUMNS * RONDO__CUDA_BLOCK / 32;
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_bits_product, &defines, "bits_vector",
                               (p->n + columns - 1) / columns, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)((p->m + rows - 1) / rows);
    }
    push(step, kernel, p);
}

// ---- a row of f16 with 4 bits: bits_row.cu ------------------------------------------------------

static bool has_plain_zeros(const rondo__cuda_kernel *kernel, size_t input) {
    return !rondo__cuda_has_input(kernel, input) ||
           rondo__cuda_input(kernel, input)->dtype == RONDO_DTYPE_U8;
}

// Warps of a block, which hold all of k: 8 with a turn each or two, then 16, or with a gate 8.
static int64_t count_row_warps(const rondo__cuda_kernel *kernel, int64_t k) {
    const int64_t most = rondo__cuda_has_input(kernel, RONDO__BITS_GATE) ? 8 : 16;
    int64_t warps = 1;
    while (warps < most && warps * ROW_SPAN * (warps >= 8 ? 2 : 1) < k) {
        warps *= 2;
    }
    return warps;
}

// Whether blocks make whole numbers of weights before the row is there, in registers that leave
// room for two blocks on a multiprocessor: where those are all, and a normalisation keeps them.
static bool prepares_row(const rondo__cuda_kernel *kernel, int64_t blocks, int64_t turns) {
    rondo_device_info info = {.struct_size = sizeof info};
    return rondo__cuda_has_input(kernel, RONDO__BITS_GAIN) &&
           !rondo__cuda_has_input(kernel, RONDO__BITS_GATE) && turns == 1 &&
           rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK &&
           blocks <= 2 * (int64_t)info.compute_units;
}

static bool suits_row(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    return has_tensor(kernel, p) && p->bits == 4 && p->m == 1 && p->block % FEW_BLOCK == 0 &&
           p->k % ROW_STEP == 0 &&
           p->k <= count_row_warps(kernel, p->k) * ROW_SPAN * ROW_TURNS_MOST &&
           has_plain_zeros(kernel, RONDO__BITS_ZEROS) &&
           has_plain_zeros(kernel, RONDO__BITS_GATE_ZEROS) &&
           (!rondo__cuda_has_input(kernel, RONDO__BITS_GATE) ||
            rondo__cuda_has_input(kernel, RONDO__BITS_ZEROS) ==
                rondo__cuda_has_input(kernel, RONDO__BITS_GATE_ZEROS));
}

static bool is_constant(const rondo__cuda_kernel *kernel, size_t input) {
    return !rondo__cuda_has_input(kernel, input) ||
           rondo__cuda_input(kernel, input)->constant != NULL;
}

static bool has_constant_weights(const rondo__cuda_kernel *kernel) {
    static const size_t early[] = {RONDO__BITS_B,           RONDO__BITS_SCALES,
                                   RONDO__BITS_ZEROS,       RONDO__BITS_GATE,
                                   RONDO__BITS_GATE_SCALES, RONDO__BITS_GATE_ZEROS};
    bool are = true;
    for (size_t i = 0; i < sizeof early / sizeof early[0]; ++i) {
        are = are && is_constant(kernel, early[i]);
    }
    return are;
}

// What bits_row.cu and bits_few.cu take: inputs and the output, and what happens to sums.
static void push_row(rondo__step *step, const rondo__cuda_kernel *kernel) {
    rondo__step_input(step, RONDO__BITS_A);
    rondo__step_input(step, RONDO__BITS_B);
    rondo__step_input(step, RONDO__BITS_SCALES);
    rondo__step_optional_input(step, kernel, RONDO__BITS_ZEROS);
    rondo__step_optional_input(step, kernel, RONDO__BITS_BIAS);
    rondo__step_output(step, 0);
    for (size_t i = RONDO__BITS_GAIN; i < RONDO__BITS_ROW_INPUTS; ++i) {
        rondo__step_optional_input(step, kernel, i);
    }
}

static void push_ending(rondo__step *step, const rondo__op *op) {
    rondo__step_float(step, (double)rondo__op_get_float(op, "epsilon", 1e-5f));
    rondo__step_int(step, rondo__activation_parse(rondo__op_get_string(op, "activation", "none")));
    rondo__step_float(step, (double)rondo__op_get_float(op, "alpha", 0.0f));
    rondo__step_float(step, (double)rondo__op_get_float(op, "beta", 0.0f));
}

static void add_row(rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    const rondo__op *op = kernel->request->op;
    rondo__defines defines = {0};
    const int64_t warps = count_row_warps(kernel, p->k);
    const int64_t turns = (p->k + warps * ROW_SPAN - 1) / (warps * ROW_SPAN);
    const int64_t blocks = (p->n + ROW_COLUMNS - 1) / ROW_COLUMNS;
    rondo__define_int(&defines, "WARPS", warps);
    rondo__define_int(&defines, "TURNS", turns);
    rondo__define_int(&defines, "NORMALISED", rondo__cuda_has_input(kernel, RONDO__BITS_GAIN));
    rondo__define_int(&defines, "GATED", rondo__cuda_has_input(kernel, RONDO__BITS_GATE));
    rondo__define_int(&defines, "PREPARED", prepares_row(kernel, blocks, turns));
    rondo__define_int(&defines, "EARLY", has_constant_weights(kernel));
    rondo__define_int(&defines, "BLOCK", p->block);
    rondo__define_int(&defines, "ZEROS", rondo__cuda_has_input(kernel, RONDO__BITS_ZEROS));
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_bits_row, &defines, "bits_row",
                                               blocks, (uint32_t)warps * 32);
    if (step != NULL) {
        step->launch.shared_bytes =
            (uint32_t)(warps * turns * (ROW_SPAN / FEW_BLOCK) * ROW_PIECE_BYTES);
    }
    push_row(step, kernel);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->k);
    rondo__step_int(step, p->blocks);
    rondo__step_int(step, p->blocks * p->block_bytes);
    rondo__step_int(step, p->zero_bytes);
    push_ending(step, op);
}

// ---- two to 32 rows of f16 with 4 bits: bits_few.cu -----------------------------------------

// Warps of a block, which hold all of k in a turn each or two; each makes 32 elements at the end.
static int64_t count_few_warps(const rondo__cuda_kernel *kernel, int64_t k) {
    return k > 8 * ROW_SPAN * (rondo__cuda_has_input(kernel, RONDO__BITS_GATE) ? 1 : 2) ? 16 : 8;
}

// Tiles of 8 rows: 1, 2 or 4.
static int64_t count_few_row_tiles(int64_t m) {
    int64_t tiles = 1;
    while (tiles * FEW_TILE_ROWS < m) {
        tiles *= 2;
    }
    return tiles;
}

// Whether the sums of all warps fit; two tiles of columns are made where there are 8 warps.
static bool has_room_for_sums(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    const int64_t matrices = rondo__cuda_has_input(kernel, RONDO__BITS_GATE) ? 2 : 1;
    return count_few_warps(kernel, p->k) * matrices * count_few_row_tiles(p->m) * FEW_TILE_BYTES <=
           STATIC_BYTES_MOST;
}

static bool suits_few(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    return has_tensor(kernel, p) && p->bits == 4 && p->m > 1 &&
           p->m <= (rondo__cuda_has_input(kernel, RONDO__BITS_GAIN)
                        ? FEW_NORM_ROWS_MOST
                        : FEW_ROW_TILES_MOST * FEW_TILE_ROWS) &&
           has_room_for_sums(kernel, p) && p->block % FEW_BLOCK == 0 && p->k % ROW_STEP == 0 &&
           p->k <= count_few_warps(kernel, p->k) * ROW_SPAN * FEW_TURNS_MOST &&
           has_plain_zeros(kernel, RONDO__BITS_ZEROS) &&
           has_plain_zeros(kernel, RONDO__BITS_GATE_ZEROS) &&
           (!rondo__cuda_has_input(kernel, RONDO__BITS_GATE) ||
            rondo__cuda_has_input(kernel, RONDO__BITS_ZEROS) ==
                rondo__cuda_has_input(kernel, RONDO__BITS_GATE_ZEROS));
}

// From row to row: 0 where all rows have the same addend, or none.
static int64_t get_addend_stride(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    return rondo__cuda_has_input(kernel, RONDO__BITS_BIAS) &&
                   rondo_shape_get_count(&rondo__cuda_input(kernel, RONDO__BITS_BIAS)->shape) > p->n
               ? p->n
               : 0;
}

static void add_few(rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    const rondo__op *op = kernel->request->op;
    rondo__defines defines = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return;
    }
    const bool is_gated = rondo__cuda_has_input(kernel, RONDO__BITS_GATE);
    const int64_t warps = count_few_warps(kernel, p->k);
    const int64_t turns = (p->k + warps * ROW_SPAN - 1) / (warps * ROW_SPAN);
    // Twice as many columns a block, so that rows are read half as often, where blocks remain.
    const int64_t tiles =
        !is_gated && turns == 1 && p->n >= 4 * ROW_COLUMNS * (int64_t)info.compute_units ? 2 : 1;
    rondo__define_int(&defines, "WARPS", warps);
    rondo__define_int(&defines, "TURNS", turns);
    rondo__define_int(&defines, "COLUMN_TILES", tiles);
    rondo__define_int(&defines, "ROW_TILES", count_few_row_tiles(p->m));
    rondo__define_int(&defines, "NORMALISED", rondo__cuda_has_input(kernel, RONDO__BITS_GAIN));
    rondo__define_int(&defines, "GATED", is_gated);
    rondo__define_int(&defines, "EARLY", has_constant_weights(kernel));
    rondo__define_int(&defines, "BLOCK", p->block);
    rondo__define_int(&defines, "ZEROS", rondo__cuda_has_input(kernel, RONDO__BITS_ZEROS));
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_bits_few, &defines, "bits_few",
        (p->n + ROW_COLUMNS * tiles - 1) / (ROW_COLUMNS * tiles), (uint32_t)warps * 32);
    push_row(step, kernel);
    rondo__step_int(step, p->m);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->k);
    rondo__step_int(step, p->blocks);
    rondo__step_int(step, p->blocks * p->block_bytes);
    rondo__step_int(step, p->zero_bytes);
    rondo__step_int(step, get_addend_stride(kernel, p));
    push_ending(step, op);
}

// ---- a few rows of f16 with 4 bits: bits_rows.cu ------------------------------------------------

static bool suits_rows(const rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    return has_tensor(kernel, p) && p->bits == 4 && p->m > 1 && p->m <= FEW_ROWS_MAX &&
           p->block % FEW_BLOCK == 0 && p->k == p->blocks * p->block &&
           has_plain_zeros(kernel, RONDO__BITS_ZEROS);
}

static void add_rows(rondo__cuda_kernel *kernel, const rondo__bits_product *p) {
    rondo__defines defines = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return;
    }
    int64_t rows = 1, columns = 1;  // tiles of a block
    while (rows < 4 && rows * FEW_TILE_ROWS < p->m) {
        rows *= 2;
    }
    while (columns < FEW_COLUMN_TILES_MOST && 2 * columns * rows <= FEW_TILES_MOST &&
           p->n >= 2 * columns * FEW_TILE_COLUMNS * (int64_t)info.compute_units) {
        columns *= 2;
    }
    define(kernel, p, &defines);
    rondo__define_int(&defines, "ROW_TILES", rows);
    rondo__define_int(&defines, "COLUMN_TILES", columns);
    rondo__define_int(&defines, "BLOCK", p->block);
    const int64_t of_block = columns * FEW_TILE_COLUMNS, rows_of_block = rows * FEW_TILE_ROWS;
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_bits_rows, &defines, "bits_rows",
                                               (p->n + of_block - 1) / of_block, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)((p->m + rows_of_block - 1) / rows_of_block);
    }
    push(step, kernel, p);
}

// Blocks that share a tile, so that the tiles fill the chip.
static int64_t find_split(const rondo__cuda_kernel *kernel, const rondo__bits_product *p,
                          int64_t tiles) {
    rondo_device_info info = {.struct_size = sizeof info};
    const int64_t steps = (p->k + TENSOR_DEPTH - 1) / TENSOR_DEPTH;
    int64_t split = 1;
    if (rondo_device_get_info(kernel->device, &info) != RONDO_STATUS_OK || info.arch_major < 9) {
        return 1;
    }
    while (split < SPLIT_MOST && 2 * split * tiles <= BLOCKS_BESIDE * (int64_t)info.compute_units &&
           steps >= 2 * split * SPLIT_STEPS_LEAST) {
        split *= 2;
    }
    return split;
}

static void add_tiles(rondo__cuda_kernel *kernel, const rondo__bits_product *p, bool is_tensor) {
    rondo__defines defines = {0};
    const int64_t tile = is_tensor && p->m <= LOW_TILE ? LOW_TILE : TILE;
    const int64_t row_tiles = (p->m + tile - 1) / tile, columns = (p->n + TILE - 1) / TILE;
    const int64_t split = is_tensor ? find_split(kernel, p, row_tiles * columns) : 1;
    if (row_tiles > 65535) {
        rondo__cuda_refuse(kernel, "more rows than a grid holds");
        return;
    }
    define(kernel, p, &defines);
    if (is_tensor) {
        rondo__define_int(&defines, "TILE_M", tile);
        rondo__define_int(&defines, "BLOCK", p->block);
        rondo__define_int(&defines, "SPLIT", split);
    }
    rondo__step *step =
        rondo__cuda_add_launch(kernel, is_tensor ? rondo__cu_bits_tensor : rondo__cu_bits_product,
                               &defines, is_tensor ? "bits_tensor" : "bits_plain", columns * split,
                               is_tensor ? TENSOR_THREADS : RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)row_tiles;
        step->launch.shared_bytes =
            is_tensor ? (uint32_t)((tile + TILE) * TENSOR_PITCH * 2 * (int64_t)sizeof(uint16_t))
                      : 0;
    }
    push(step, kernel, p);
}

void rondo__cuda_prepare_bits_product(rondo__cuda_kernel *kernel) {
    const rondo__tensor_info *a = rondo__cuda_input(kernel, RONDO__BITS_A);
    const bool has_groups = rondo__cuda_has_input(kernel, RONDO__BITS_GROUPS);
    rondo__bits_product p;
    if (!rondo__cuda_check(kernel, rondo__bits_product_init(kernel->request->op, &a->shape, &p))) {
        return;
    }
    if (!rondo__cuda_is_float(a->dtype)) {
        rondo__cuda_refuse(kernel, "A of this type");
    } else if (!has_groups && suits_row(kernel, &p)) {
        add_row(kernel, &p);
    } else if (!has_groups && suits_few(kernel, &p)) {
        add_few(kernel, &p);
    } else if (kernel->request->op->def->id == RONDO__FUSED_BitsRow) {
        rondo__cuda_refuse(kernel, "so many rows, or weights that tensor cores do not take");
    } else if (!has_groups && suits_rows(kernel, &p)) {
        add_rows(kernel, &p);
    } else if (!has_groups && p.m <= VECTOR_ROWS_MAX) {
        add_vector(kernel, &p);
    } else {
        add_tiles(kernel, &p, !has_groups && has_tensor(kernel, &p));
    }
}

// ---- GatherBlockQuantized ---------------------------------------------------------------------

enum { DATA, INDICES, SCALES, ZEROS };

void rondo__cuda_prepare_gather_bits(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *y = rondo__cuda_output(kernel, 0);
    const rondo_shape *data = &rondo__cuda_input(kernel, DATA)->shape;
    const int32_t last = data->rank - 1;
    const int32_t axis = rondo__cuda_wrap_axis(rondo__op_get_int(op, "gather_axis", 0), data->rank);
    const int32_t quantized =
        rondo__cuda_wrap_axis(rondo__op_get_int(op, "quantize_axis", 1), data->rank);
    const int64_t bits = rondo__op_get_int(op, "bits", 4);
    const int64_t block = rondo__op_get_int(op, "block_size", 128);
    rondo__defines defines = {0};
    // Blocks stand along the last axis, or along the one before it of those behind the gathered.
    const bool is_middle = quantized == last - 1 && quantized == axis + 1;
    if (rondo__cuda_input(kernel, DATA)->dtype != RONDO_DTYPE_U8 ||
        !rondo__cuda_is_float(y->dtype) || axis == last || (quantized != last && !is_middle)) {
        rondo__cuda_refuse(kernel, "blocks along this axis, or this type");
        return;
    }
    const int64_t count = rondo_shape_get_count(&y->shape);
    rondo__define_type(&defines, "T", y->dtype);
    rondo__define_type(&defines, "I", rondo__cuda_input(kernel, INDICES)->dtype);
    rondo__define_int(&defines, "BITS", bits);
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_bits_product, &defines, "gather_bits",
                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    rondo__step_int(step, count);
    rondo__step_input(step, DATA);
    rondo__step_input(step, INDICES);
    rondo__step_input(step, SCALES);
    rondo__step_optional_input(step, kernel, ZEROS);
    rondo__step_output(step, 0);
    rondo__step_int(step, data->extent[axis]);
    rondo__step_int(step, rondo_shape_get_count(&rondo__cuda_input(kernel, INDICES)->shape));
    rondo__step_int(step, rondo__cuda_product(data, axis + 1, last));
    rondo__step_int(step, data->extent[last] * 8 / bits);
    rondo__step_int(step, is_middle ? block : 1);
    rondo__step_int(step, is_middle ? 1 : block);
    rondo__step_faults(step, kernel, RONDO__FAULT_INDEX);
}
