// kernel/cuda/product/cuda_attention.c — rondo.Attention: one kernel, on tensor cores or not, one
// with the keys in parts, or two products around a softmax; the fastest of them is taken.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_attention.h"

#include <stdio.h>
#include <string.h>

#include "cu_sources.h"
#include "device/device.h"
#include "kernel/cuda/arrange/cuda_copy.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/product/cuda_matmul.h"
#include "kernel/cuda/product/cuda_matmul_cublaslt.h"
#include "kernel/cuda/tune/cuda_tune.h"

enum {
    SHARED_BYTES = 48 * 1024,  // of a block, without asking for more
    KEYS_LEAST = 16,           // of a tile
    KEYS_MOST = 32,
    TENSOR_KEYS_MOST = 64,  // of a warp and tile
    ROWS_MOST = 4,          // of a thread; a block has 16 times as many
    PART_KEYS_LEAST = 64,   // fewer are not worth a second launch
    PARTS_MOST = 32,
    PRODUCT_WAYS_MOST = 2,
    WAYS_MAX = 16,
    KEY_WARPS_MOST = 8,
    TENSOR_WARPS_LEAST = 4,
    BLOCK_BYTES = 1024,  // of shared memory, that a block has beside what it asks for
    F16_LEAST = 0xfbff,  // bits: -65504
    F16_MINUS_INF = 0xfc00,
    F16_MAGNITUDE = 0x7fff,
};

typedef enum way_kind { WAY_TILES, WAY_PARTS, WAY_TENSOR, WAY_PRODUCTS } way_kind;

typedef struct way {
    way_kind kind;
    int64_t rows;   // of a thread; with tensor cores warps that share their rows
    int64_t parts;  // of the keys
    int64_t keys;   // with tensor cores: of a warp and tile, at most
    size_t number;  // of the ways of both products
} way;

typedef struct attention_problem {
    rondo__cuda_attention all;
    size_t count;
    way ways[WAYS_MAX];
    uint64_t library;  // those whose products a library may make; bits as in rondo__tuning
} attention_problem;

// Multiply-adds from which on two products come first; a guess from what both reach elsewhere.
static const double PRODUCTS_WORK_LEAST = 1e9;

// ---- our kernels ------------------------------------------------------------------------------

static int64_t get_keys(const rondo__attention *a, int64_t rows) {
    const int64_t widest = a->width > a->v_width ? a->width : a->v_width;
    for (int64_t keys = KEYS_MOST; keys >= KEYS_LEAST; keys /= 2) {
        const int64_t floats =
            16 * rows * (a->width + 1) + keys * (widest + 1) + 16 * rows * (keys + 1);
        if (floats * 4 <= SHARED_BYTES) {
            return keys;
        }
    }
    return 0;  // does not fit
}

static void push_strides(rondo__step *step, const rondo__attention_strides *strides) {
    rondo__step_int(step, strides->batch);
    rondo__step_int(step, strides->head);
    rondo__step_int(step, strides->row);
    rondo__step_int(step, strides->column);
}

// Rows of the heads that share one of k and v.
static int64_t get_rows(const attention_problem *problem) {
    return problem->all.attention.m * problem->all.group;
}

void rondo__cuda_define_sight(rondo__defines *defines, const rondo__cuda_sight *sight) {
    rondo__define_int(defines, "LENGTHS", sight->lengths);
}

void rondo__cuda_push_sight(rondo__step *step, const rondo__cuda_kernel *kernel,
                            const rondo__cuda_sight *sight) {
    // The number of keys is data, which the noise of a contest does not have: ways are timed with
    // all keys.
    const bool has_lengths = sight->lengths != RONDO__LENGTHS_NONE && !kernel->is_candidate;
    const bool has_total = has_lengths && sight->total_input >= 0;
    const rondo__address lengths = rondo__address_input((size_t)sight->lengths_input);
    const rondo__address total = rondo__address_input((size_t)sight->total_input);
    rondo__step_optional(step, has_lengths ? &lengths : NULL);
    rondo__step_optional(step, has_total ? &total : NULL);
    rondo__step_int(step, sight->fresh);
    rondo__step_int(step, sight->past);
    rondo__step_int(step, sight->keys);
    rondo__step_int(step, sight->columns);
    rondo__step_int(step, sight->is_causal);
    rondo__step_int(step, sight->left);
    rondo__step_int(step, sight->right);
    rondo__step_faults(step, kernel, RONDO__FAULT_LENGTH);
}

static void define_attention(rondo__defines *defines, const rondo__cuda_attention *all) {
    rondo__define_int(defines, "GROUP", all->group);
    rondo__define_int(defines, "HAS_SIGHT", all->sight.is_partial);
    rondo__cuda_define_sight(defines, &all->sight);
    rondo__define_int(defines, "HAS_SOFTCAP", all->softcap > 0.0f);
    rondo__define_int(defines, "HAS_SINK", all->has_sink ? 1 : all->is_smooth ? 2 : 0);
    rondo__define_int(defines, "ZEROES_EMPTY", all->zeroes_empty);
    rondo__define_int(defines, "UNIT_ROWS", all->attention.unit_rows);
    if (all->has_mask) {
        rondo__define_type(defines, "MASK", all->mask_dtype);
    }
}

// What all kernels are told: q, k and v go into `y`, with parts of the keys in `parts` (NULL: one).
static void push_attention(rondo__step *step, const rondo__cuda_kernel *kernel,
                           const attention_problem *problem, const way *w, rondo__address y,
                           const rondo__address *parts) {
    const rondo__attention *a = &problem->all.attention;
    const rondo__cuda_attention *all = &problem->all;
    rondo__step_address(step, all->q);
    rondo__step_address(step, all->k);
    rondo__step_address(step, all->v);
    rondo__step_optional(step, all->has_mask ? &all->mask : NULL);
    rondo__step_address(step, y);
    rondo__step_optional(step, parts);
    rondo__step_int(step, a->batch);
    rondo__step_int(step, a->heads);
    rondo__step_int(step, a->m);
    rondo__step_int(step, a->n);
    push_strides(step, &a->q);
    push_strides(step, &a->k);
    push_strides(step, &a->v);
    push_strides(step, &a->mask);
    push_strides(step, &a->y);
    rondo__step_int(step, w->parts);
    rondo__step_float(step, (double)a->scale);
    rondo__step_float(step, (double)all->softcap);
    rondo__step_optional(step, all->has_sink ? &all->sinks : NULL);
    rondo__step_optional(step, all->has_factors ? &all->factors : NULL);
    rondo__cuda_push_sight(step, kernel, &all->sight);
}

static rondo__step *add_kernel(rondo__cuda_kernel *kernel, const attention_problem *problem,
                               const way *w, const char *name, int64_t blocks, rondo__address y,
                               const rondo__address *parts) {
    const rondo__attention *a = &problem->all.attention;
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", problem->all.dtype);
    rondo__define_int(&defines, "WIDTH", a->width);
    rondo__define_int(&defines, "V_WIDTH", a->v_width);
    rondo__define_int(&defines, "ROWS", w->rows);
    rondo__define_int(&defines, "KEYS", get_keys(a, w->rows));
    rondo__define_int(&defines, "HAS_PARTS", parts != NULL);
    define_attention(&defines, &problem->all);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_attention, &defines, name, blocks,
                                               RONDO__CUDA_BLOCK);
    push_attention(step, kernel, problem, w, y, parts);
    return step;
}

static int64_t count_row_tiles(const attention_problem *problem, int64_t rows) {
    return (get_rows(problem) + 16 * rows - 1) / (16 * rows);
}

static void add_tiles(rondo__cuda_kernel *kernel, const attention_problem *problem, const way *w) {
    const rondo__attention *a = &problem->all.attention;
    const int64_t lines = a->batch * a->heads * get_rows(problem);
    const bool has_parts = w->kind == WAY_PARTS;
    rondo__address parts = {0};
    if (has_parts) {
        parts = rondo__address_workspace(rondo__cuda_reserve_workspace(
            kernel, (size_t)(lines * w->parts * (a->v_width + 2)) * sizeof(float)));
    }
    rondo__step *step =
        add_kernel(kernel, problem, w, "attention", count_row_tiles(problem, w->rows) * w->parts,
                   problem->all.y, has_parts ? &parts : NULL);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)a->heads;
        step->launch.grid[2] = (uint32_t)a->batch;
    }
    if (has_parts) {
        (void)add_kernel(kernel, problem, w, "attention_merge",
                         rondo__cuda_blocks(lines * a->v_width), problem->all.y, &parts);
    }
}

// ---- tensor cores -----------------------------------------------------------------------------

static int64_t get_tensor_warps(int64_t key_warps) {
    return key_warps > TENSOR_WARPS_LEAST ? key_warps : TENSOR_WARPS_LEAST;
}

// Two tiles where one has not all keys.
static int64_t get_tensor_bytes(const rondo__attention *a, int64_t key_warps, int64_t keys) {
    const int64_t pitches = (a->width + 15) / 16 * 16 + (a->v_width + 15) / 16 * 16 + 2 * 8;
    const int64_t tiles = keys * key_warps < a->n ? 2 : 1;
    const int64_t tile_bytes = tiles * keys * key_warps * pitches * 2;
    const int64_t merge_bytes =
        key_warps > 1 ? get_tensor_warps(key_warps) * 16 * (a->v_width + 2) * 4 : 0;
    return tile_bytes > merge_bytes ? tile_bytes : merge_bytes;
}

// Keys of a warp and tile, so many that one tile has them all if that can be: to begin another
// takes time. 0: what the block needs does not fit.
static int64_t get_tensor_keys(const rondo_device_info *info, const rondo__attention *a,
                               int64_t key_warps, int64_t most) {
    if (a->m > INT32_MAX / 2 || a->n > INT32_MAX / 2) {
        return 0;
    }
    int64_t keys = KEYS_LEAST;
    while (keys < TENSOR_KEYS_MOST && keys * key_warps < a->n) {
        keys *= 2;
    }
    keys = keys * key_warps < a->n ? most : keys;
    const int64_t other_bytes = get_tensor_warps(key_warps) * 16 * 4;  // the kernel's own arrays
    const int64_t key_bytes = a->unit_rows ? key_warps * 4 : 0;        // likewise, for a key
    while (keys >= KEYS_LEAST &&
           get_tensor_bytes(a, key_warps, keys) + other_bytes + keys * key_bytes >
               rondo__cuda_get_shared_bytes(info)) {
        keys /= 2;
    }
    return keys >= KEYS_LEAST ? keys : 0;
}

// Whether rows are whole 16 bytes.
static bool is_wide(const rondo__attention_strides *strides, int64_t width) {
    return strides->column == 1 && strides->offset % 8 == 0 && width % 8 == 0 &&
           strides->row % 8 == 0 && strides->head % 8 == 0 && strides->batch % 8 == 0;
}

// Of a block.
static int64_t get_tensor_rows(int64_t key_warps) {
    return get_tensor_warps(key_warps) / key_warps * 16;
}

static int64_t count_tensor_tiles(const attention_problem *problem, int64_t key_warps) {
    const int64_t rows = get_tensor_rows(key_warps);
    return (get_rows(problem) + rows - 1) / rows;
}

static int64_t get_units(const rondo_device_info *info) {
    return info->compute_units > 0 ? info->compute_units : 1;
}

// Blocks of several tiles ask for so much memory that a multiprocessor takes no more than its
// share: they start while the launch before still runs, and would pile up where that ends first.
static int64_t get_spread_bytes(const rondo_device_info *info, const attention_problem *problem,
                                const way *w, int64_t keys) {
    const rondo__attention *a = &problem->all.attention;
    const int64_t blocks = count_tensor_tiles(problem, w->rows) * a->batch * a->heads;
    const int64_t beside = (blocks + get_units(info) - 1) / get_units(info);
    const int64_t own = get_tensor_bytes(a, w->rows, keys);
    const int64_t all = rondo__cuda_get_shared_bytes(info) + BLOCK_BYTES;
    const int64_t share = all / (beside + 1) / 16 * 16 - BLOCK_BYTES + 16;
    return keys * w->rows < a->n && share > own ? share : own;
}

static void add_tensor(rondo__cuda_kernel *kernel, const attention_problem *problem, const way *w) {
    const rondo__attention *a = &problem->all.attention;
    rondo__defines defines = {0};
    rondo_device_info info = {.struct_size = sizeof info};
    if (!rondo__cuda_check(kernel, rondo__device_get_facts(kernel->device, &info))) {
        return;
    }
    const int64_t keys = get_tensor_keys(&info, a, w->rows, w->keys);
    const int64_t rows = get_tensor_rows(w->rows);
    rondo__define_int(&defines, "WIDTH", a->width);
    rondo__define_int(&defines, "V_WIDTH", a->v_width);
    rondo__define_int(&defines, "KEY_WARPS", w->rows);
    rondo__define_int(&defines, "KEYS", keys);
    rondo__define_int(&defines, "ONE_TILE", keys * w->rows >= a->n);
    rondo__define_int(&defines, "FULL_KEYS",
                      a->n % (keys * w->rows) == 0 && !problem->all.sight.is_partial);
    rondo__define_int(&defines, "FULL_ROWS", get_rows(problem) % rows == 0);
    define_attention(&defines, &problem->all);
    rondo__define_int(&defines, "HAS_MASK", problem->all.has_mask);
    rondo__define_int(&defines, "MASK_IS_WIDE",
                      a->mask.column == 1 && a->mask.offset == 0 && a->n % 2 == 0 &&
                          a->mask.row % 2 == 0 && a->mask.head % 2 == 0 && a->mask.batch % 2 == 0);
    rondo__define_int(&defines, "Q_IS_WIDE", is_wide(&a->q, a->width));
    rondo__define_int(&defines, "K_IS_WIDE", is_wide(&a->k, a->width));
    rondo__define_int(&defines, "V_IS_WIDE", is_wide(&a->v, a->v_width));
    rondo__step *step = rondo__cuda_add_launch(
        kernel, rondo__cu_attention_tensor, &defines, "attention_tensor",
        count_tensor_tiles(problem, w->rows), (uint32_t)get_tensor_warps(w->rows) * 32);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)a->heads;
        step->launch.grid[2] = (uint32_t)a->batch;
        step->launch.shared_bytes = (uint32_t)get_spread_bytes(&info, problem, w, keys);
    }
    push_attention(step, kernel, problem, w, problem->all.y, NULL);
}

// ---- two products -----------------------------------------------------------------------------

// Batches of both operands: batch and heads, or both in one where they lie so.
static void set_batches(rondo__cuda_matmul *p, const rondo__attention *a,
                        const rondo__attention_strides *of_a,
                        const rondo__attention_strides *of_b) {
    const bool merges = a->batch == 1 || (of_a->batch == of_a->head * a->heads &&
                                          of_b->batch == of_b->head * a->heads);
    p->batch_count = a->batch * a->heads;
    for (int d = 0; d < RONDO__MATMUL_BATCH_RANK; d++) {
        p->batch_extent[d] = 1;
    }
    p->batch_extent[3] = merges ? p->batch_count : a->heads;
    p->a_batch[3] = of_a->head;
    p->b_batch[3] = of_b->head;
    if (!merges) {
        p->batch_extent[2] = a->batch;
        p->a_batch[2] = of_a->batch;
        p->b_batch[2] = of_b->batch;
    }
}

static rondo__cuda_matmul make_product(const attention_problem *problem, int64_t n, int64_t k) {
    return (rondo__cuda_matmul){
        .dtype = problem->all.dtype,
        .y_dtype = problem->all.dtype,
        .m = problem->all.attention.m,
        .n = n,
        .k = k,
        .scale = 1.0f,
        .factor = 1.0f,
    };
}

static void make_products(const attention_problem *problem, rondo__address scores,
                          rondo__cuda_matmul *out_first, rondo__cuda_matmul *out_second) {
    const rondo__attention *a = &problem->all.attention;
    const rondo__attention_strides dense = {a->heads * a->m * a->n, a->m * a->n, a->n, 1, 0};
    rondo__cuda_matmul first = make_product(problem, a->n, a->width);
    first.scale = a->scale;
    first.a = problem->all.q;
    first.a_row = a->q.row;
    first.a_column = a->q.column;
    first.b = problem->all.k;
    first.b_row = a->k.column;
    first.b_column = a->k.row;
    first.y = scores;
    set_batches(&first, a, &a->q, &a->k);
    rondo__cuda_matmul second = make_product(problem, a->v_width, a->n);
    second.a = scores;
    second.a_row = a->n;
    second.a_column = 1;
    second.b = problem->all.v;
    second.b_row = a->v.row;
    second.b_column = a->v.column;
    second.y = problem->all.y;
    set_batches(&second, a, &dense, &a->v);
    *out_first = first;
    *out_second = second;
}

// y [batch, heads, m, v_width] goes where the layout has it.
static void spread_result(rondo__cuda_kernel *kernel, const attention_problem *problem,
                          rondo__address from) {
    const rondo__attention *a = &problem->all.attention;
    const int64_t row = a->v_width, head = a->m * row;
    rondo__strided_copy copy = {
        .element_bytes = rondo_dtype_get_bytes(problem->all.dtype),
        .from = from,
        .to = problem->all.y,
    };
    rondo__strided_copy_push(&copy, a->batch, a->heads * head, a->y.batch);
    rondo__strided_copy_push(&copy, a->heads, head, a->y.head);
    rondo__strided_copy_push(&copy, a->m, row, a->y.row);
    rondo__strided_copy_push(&copy, a->v_width, 1, 1);
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// Whether y lies as a product writes it.
static bool is_dense(const rondo__attention *a) {
    return (a->y.row == a->v_width || a->m == 1) &&
           (a->y.head == a->m * a->v_width || a->heads == 1) &&
           (a->y.batch == a->heads * a->m * a->v_width || a->batch == 1);
}

static void add_products(rondo__cuda_kernel *kernel, const attention_problem *problem,
                         const way *w) {
    const rondo__attention *a = &problem->all.attention;
    const size_t bytes = rondo_dtype_get_bytes(problem->all.dtype);
    const int64_t lines = a->batch * a->heads * a->m;
    const bool spreads = !is_dense(a);
    rondo__cuda_matmul first, second;
    const rondo__address scores = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)(lines * a->n) * bytes));
    make_products(problem, scores, &first, &second);
    if (spreads) {
        second.y = rondo__address_workspace(
            rondo__cuda_reserve_workspace(kernel, (size_t)(lines * a->v_width) * bytes));
    }
    rondo__cuda_add_product(kernel, &first, w->number);
    (void)add_kernel(kernel, problem, w, "attention_softmax", lines, scores, NULL);
    rondo__cuda_add_product(kernel, &second, w->number);
    if (spreads) {
        spread_result(kernel, problem, second.y);
    }
}

// ---- the choice -------------------------------------------------------------------------------

static void add_way(attention_problem *problem, way w) {
    if (problem->count < WAYS_MAX) {
        problem->library |= w.kind == WAY_PRODUCTS ? UINT64_C(1) << problem->count : 0;
        problem->ways[problem->count++] = w;
    }
}

// Few blocks and many keys: as many parts as fill the chip twice.
static void list_parts(attention_problem *problem, const rondo_device_info *info) {
    const rondo__attention *a = &problem->all.attention;
    const int64_t blocks = count_row_tiles(problem, 1) * a->batch * a->heads;
    const int64_t most = a->n / PART_KEYS_LEAST;
    int64_t parts = (2 * get_units(info) + blocks - 1) / blocks;
    parts = parts > most ? most : parts;
    parts = parts > PARTS_MOST ? PARTS_MOST : parts;
    if (parts > 1) {
        add_way(problem, (way){.kind = WAY_PARTS, .rows = 1, .parts = parts});
    }
}

// Large blocks reuse more; small ones fill the chip. Those that fill it come first.
static void list_tensor(attention_problem *problem, const rondo_device_info *info) {
    const rondo__attention *a = &problem->all.attention;
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t warps = 1; warps <= KEY_WARPS_MOST; warps *= 2) {
            const int64_t blocks = count_tensor_tiles(problem, warps) * a->batch * a->heads;
            const bool fills = blocks >= get_units(info) || warps == KEY_WARPS_MOST;
            const int64_t few = get_tensor_keys(info, a, warps, KEYS_MOST);
            const int64_t many = get_tensor_keys(info, a, warps, TENSOR_KEYS_MOST);
            if (fills == (turn == 0) && few > 0) {
                add_way(problem,
                        (way){.kind = WAY_TENSOR, .rows = warps, .parts = 1, .keys = KEYS_MOST});
            }
            // What a mask adds to a tile's scores lies in registers, too.
            if (fills == (turn == 0) && many > few && !problem->all.has_mask) {
                add_way(
                    problem,
                    (way){.kind = WAY_TENSOR, .rows = warps, .parts = 1, .keys = TENSOR_KEYS_MOST});
            }
        }
    }
}

static void list_tiles(attention_problem *problem, const rondo_device_info *info) {
    const rondo__attention *a = &problem->all.attention;
    for (int64_t rows = ROWS_MOST; rows >= 1; rows /= 2) {
        const int64_t blocks = count_row_tiles(problem, rows) * a->batch * a->heads;
        if (rows == 1 || (blocks >= get_units(info) && get_keys(a, rows) > 0)) {
            add_way(problem, (way){.kind = WAY_TILES, .rows = rows, .parts = 1});
        }
    }
}

// Libraries are told that operands begin at 16 bytes.
static bool is_aligned(const attention_problem *problem) {
    const rondo__address *operands[3] = {&problem->all.q, &problem->all.k, &problem->all.v};
    bool is_it = true;
    for (size_t i = 0; i < 3; i++) {
        is_it = is_it && operands[i]->offset_bytes % 16 == 0;
    }
    return is_it;
}

static void list_products(const rondo__cuda_kernel *kernel, attention_problem *problem) {
    const rondo__cuda_attention *all = &problem->all;
    const bool is_plain = all->group == 1 && !all->sight.is_partial && all->softcap == 0.0f &&
                          !all->has_sink && !all->is_smooth && !all->zeroes_empty &&
                          !all->attention.unit_rows;
    rondo__cuda_matmul products[2];
    size_t count = is_plain && is_aligned(problem) ? PRODUCT_WAYS_MOST : 0;
    if (!is_plain) {
        return;
    }
    make_products(problem, rondo__address_output(0), &products[0], &products[1]);
    for (int i = 0; i < 2 && count > 0; i++) {
        const size_t ways = rondo__cuda_list_product_ways(kernel, &products[i]).count;
        count = ways < count ? ways : count;
    }
    for (size_t i = 0; i < count; i++) {
        add_way(problem, (way){.kind = WAY_PRODUCTS, .rows = 1, .parts = 1, .number = i});
    }
}

static bool has_tensor_cores(const rondo__cuda_kernel *kernel, const rondo__cuda_attention *all,
                             rondo_device_info *out_info) {
    if (rondo__device_get_facts(kernel->device, out_info) != RONDO_STATUS_OK) {
        *out_info = (rondo_device_info){.struct_size = sizeof *out_info};
    }
    return all->dtype == RONDO_DTYPE_F16 && out_info->arch_major >= 8;
}

// The best guess first: it runs where nothing is timed. Without tensor cores a library's products
// win where there is much to compute.
static void list_ways(const rondo__cuda_kernel *kernel, attention_problem *problem) {
    const rondo__attention *a = &problem->all.attention;
    const double work = (double)(a->batch * a->heads) * (double)get_rows(problem) * (double)a->n *
                        (double)(a->width + a->v_width);
    rondo_device_info info = {.struct_size = sizeof info};
    const bool has_tensor = has_tensor_cores(kernel, &problem->all, &info);
    const bool is_large =
        !has_tensor && work >= PRODUCTS_WORK_LEAST && rondo__cuda_get_cublaslt_version(kernel) != 0;
    if (is_large) {
        list_products(kernel, problem);
    }
    if (get_rows(problem) <= 16 || !has_tensor) {
        list_parts(problem, &info);
    }
    if (has_tensor) {
        list_tensor(problem, &info);
    } else {
        list_tiles(problem, &info);
    }
    if (problem->count == 0) {  // widths for which tensor cores lack room
        list_tiles(problem, &info);
    }
    if (!is_large) {
        list_products(kernel, problem);
    }
}

static void build_way(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const attention_problem *problem = data;
    const way *w = &problem->ways[index];
    if (w->kind == WAY_PRODUCTS) {
        add_products(kernel, problem, w);
    } else if (w->kind == WAY_TENSOR) {
        add_tensor(kernel, problem, w);
    } else {
        add_tiles(kernel, problem, w);
    }
}

static void describe_way(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                         char *text, size_t text_bytes) {
    const attention_problem *problem = data;
    const way *w = &problem->ways[index];
    if (w->kind == WAY_PRODUCTS) {
        (void)snprintf(text, text_bytes, "two products %zu of version %zu", w->number,
                       rondo__cuda_get_cublaslt_version(kernel));
    } else if (w->kind == WAY_TENSOR) {
        (void)snprintf(text, text_bytes, "tensor cores, %lld warps share rows, %lld keys",
                       (long long)w->rows, (long long)w->keys);
    } else {
        (void)snprintf(text, text_bytes, "tiles of %lld rows, %lld parts", (long long)w->rows * 16,
                       (long long)w->parts);
    }
}

static size_t write_strides(char *text, size_t text_bytes,
                            const rondo__attention_strides *strides) {
    const int length =
        snprintf(text, text_bytes, " %lld,%lld,%lld,%lld+%lld", (long long)strides->batch,
                 (long long)strides->head, (long long)strides->row, (long long)strides->column,
                 (long long)strides->offset);
    return length > 0 && (size_t)length < text_bytes ? (size_t)length : 0;
}

static void write_key(const rondo__cuda_attention *all, char *text, size_t text_bytes) {
    const rondo__attention *a = &all->attention;
    const rondo__cuda_sight *sight = &all->sight;
    const rondo__attention_strides *strides[] = {&a->q, &a->k, &a->v, &a->mask, &a->y};
    (void)snprintf(text, text_bytes,
                   "attention %s batch %lld heads %lld m%lld n%lld width %lld %lld mask %d at",
                   rondo_dtype_get_name(all->dtype), (long long)a->batch, (long long)a->heads,
                   (long long)a->m, (long long)a->n, (long long)a->width, (long long)a->v_width,
                   all->has_mask ? (int)all->mask_dtype : 0);
    size_t at = strlen(text);
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) {
        at += write_strides(text + at, text_bytes - at, strides[i]);
    }
    if (all->group > 1 || sight->is_partial || all->zeroes_empty) {
        (void)snprintf(text + at, text_bytes - at,
                       " group %lld sees %d%d%d,%lld,%lld cap %d sink %d", (long long)all->group,
                       (int)sight->is_partial, (int)sight->lengths, (int)sight->is_causal,
                       (long long)sight->left, (long long)sight->right, all->softcap > 0.0f,
                       all->has_sink || all->is_smooth);
    }
    if (all->attention.unit_rows) {
        (void)snprintf(text + strlen(text), text_bytes - strlen(text), " unit rows");
    }
}

void rondo__cuda_add_attention(rondo__cuda_kernel *kernel, const rondo__cuda_attention *attention) {
    attention_problem problem = {.all = *attention};
    list_ways(kernel, &problem);
    const int64_t forced = rondo__op_get_int(kernel->request->op, "way", -1);
    if (forced >= 0) {
        build_way(kernel, &problem, (size_t)forced % problem.count);
        return;
    }
    char key[640];
    write_key(attention, key, sizeof key);
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = problem.count,
        .fast = (UINT64_C(1) << problem.count) - 1,
        .library = problem.library,
        .problem = &problem,
        .build = build_way,
        .describe = describe_way,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
}

// Where the first element of an input lies.
static rondo__address find_input(const rondo__cuda_attention *all, size_t input,
                                 const rondo__attention_strides *strides) {
    return rondo__address_offset(rondo__address_input(input),
                                 (size_t)strides->offset * rondo_dtype_get_bytes(all->dtype));
}

// Whether a constant mask of halves adds 0 to the first keys of each row, one more for each row,
// and hides all others by the least number or by -inf. Then the kernel needs no mask, and hidden
// keys are not read.
static bool is_causal(const rondo_tensor *mask, const rondo__attention *a, int64_t *out_first) {
    int64_t first = 0;
    if (mask == NULL || mask->data == NULL || mask->dtype != RONDO_DTYPE_F16 || a->m < 2 ||
        a->mask.batch != 0 || a->mask.head != 0 || a->mask.row != a->n || a->mask.column != 1 ||
        a->mask.offset != 0 || rondo_shape_get_count(&mask->shape) != a->m * a->n) {
        return false;
    }
    const uint16_t *row = mask->data;
    while (first < a->n && (row[first] & F16_MAGNITUDE) == 0) {
        first++;
    }
    if (first == 0 || first + a->m - 1 > a->n) {
        return false;
    }
    for (int64_t m = 0; m < a->m; m++, row += a->n) {
        for (int64_t n = 0; n < a->n; n++) {
            const bool is_hidden = row[n] == F16_LEAST || row[n] == F16_MINUS_INF;
            if (n < first + m ? (row[n] & F16_MAGNITUDE) != 0 : !is_hidden) {
                return false;
            }
        }
    }
    *out_first = first;
    return true;
}

// For tensor cores; other ways may be a library's products, which take a mask.
static void take_causal_mask(const rondo__cuda_kernel *kernel, rondo__cuda_attention *all) {
    const rondo__attention *a = &all->attention;
    rondo_device_info info = {.struct_size = sizeof info};
    int64_t first = 0;
    if (all->has_mask && has_tensor_cores(kernel, all, &info) &&
        is_causal(rondo__cuda_input(kernel, 3)->constant, a, &first)) {
        all->has_mask = false;
        all->sight = (rondo__cuda_sight){.is_partial = true,
                                         .lengths_input = -1,
                                         .total_input = -1,
                                         .fresh = a->m,
                                         .past = first - 1,
                                         .keys = a->n,
                                         .columns = a->n,
                                         .is_causal = true,
                                         .left = -1,
                                         .right = -1};
    }
}

void rondo__cuda_prepare_attention(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    rondo__cuda_attention all = {
        .group = 1,
        .dtype = rondo__cuda_input(kernel, 0)->dtype,
        .has_mask = rondo__cuda_has_input(kernel, 3),
        .y = rondo__address_output(0),
        .mask = rondo__address_input(3),
        .has_factors = rondo__cuda_has_input(kernel, 4),
        .factors = rondo__address_input(4),
    };
    const rondo_status status = rondo__attention_init(
        op, &rondo__cuda_input(kernel, 0)->shape, &rondo__cuda_input(kernel, 1)->shape,
        &rondo__cuda_input(kernel, 2)->shape,
        all.has_mask ? &rondo__cuda_input(kernel, 3)->shape : NULL, &all.attention);
    if (!rondo__cuda_check(kernel, status)) {
        return;
    }
    if (!rondo__cuda_is_float(all.dtype)) {
        rondo__cuda_refuse(kernel, "tensors of this type");
        return;
    }
    if (all.attention.n < 1 || all.attention.width < 1) {
        rondo__cuda_refuse(kernel, "an input without elements");
        return;
    }
    all.mask_dtype = all.dtype;
    all.zeroes_empty = all.attention.zero_rows;
    all.q = find_input(&all, 0, &all.attention.q);
    all.k = find_input(&all, 1, &all.attention.k);
    all.v = find_input(&all, 2, &all.attention.v);
    take_causal_mask(kernel, &all);
    rondo__cuda_add_attention(kernel, &all);
}
