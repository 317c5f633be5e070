// kernel/cuda/product/cuda_matmul.c — MatMul, Gemm and rondo.MatMul: reads the product and picks
// the fastest of the ways that apply.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/product/cuda_matmul.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/convolution/cuda_conv_tensor.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/product/cuda_matmul_cublaslt.h"
#include "kernel/cuda/product/cuda_row_product.h"
#include "kernel/cuda/tune/cuda_tune.h"
#include "kernel/turn.h"
#include "op/support.h"

// ---- what is asked ----------------------------------------------------------------------------

// Batch extents of both operands against the output's, merged where both run through.
static bool read_batches(rondo__cuda_kernel *kernel, const rondo_shape *a, const rondo_shape *b,
                         rondo__cuda_matmul *p) {
    const int32_t rank_a = a->rank - 2, rank_b = b->rank - 2;
    const int32_t rank = rank_a > rank_b ? rank_a : rank_b;
    int64_t extent[RONDO_RANK_MAX], stride_a[RONDO_RANK_MAX], stride_b[RONDO_RANK_MAX];
    int64_t run_a = a->extent[a->rank - 1] * a->extent[a->rank - 2];
    int64_t run_b = b->extent[b->rank - 1] * b->extent[b->rank - 2];
    int32_t merged = 0;

    p->batch_count = 1;
    for (int32_t d = 0; d < RONDO__MATMUL_BATCH_RANK; d++) {
        p->batch_extent[d] = 1;
    }
    // From the innermost extent outwards; `merged` counts groups, innermost first.
    for (int32_t d = 1; d <= rank; d++) {
        const int64_t in_a = d <= rank_a ? a->extent[rank_a - d] : 1;
        const int64_t in_b = d <= rank_b ? b->extent[rank_b - d] : 1;
        const int64_t both = in_a > in_b ? in_a : in_b;
        const int64_t at_a = in_a == 1 ? 0 : run_a, at_b = in_b == 1 ? 0 : run_b;
        run_a *= in_a;
        run_b *= in_b;
        p->batch_count *= both;
        if (both == 1) {
            continue;
        }
        if (merged > 0 && at_a == stride_a[merged - 1] * extent[merged - 1] &&
            at_b == stride_b[merged - 1] * extent[merged - 1]) {
            extent[merged - 1] *= both;
            continue;
        }
        extent[merged] = both;
        stride_a[merged] = at_a;
        stride_b[merged] = at_b;
        merged++;
    }
    if (merged > RONDO__MATMUL_BATCH_RANK) {
        rondo__cuda_refuse(kernel, "batches broadcast in more than four ways");
        return false;
    }
    for (int32_t i = 0; i < merged; i++) {
        const int32_t d = RONDO__MATMUL_BATCH_RANK - 1 - i;
        p->batch_extent[d] = extent[i];
        p->a_batch[d] = stride_a[i];
        p->b_batch[d] = stride_b[i];
    }
    return true;
}

// One b for all batches of a dense a is one tall product.
static void merge_batches_into_rows(rondo__cuda_matmul *p) {
    const int32_t last = RONDO__MATMUL_BATCH_RANK - 1;
    if (p->batch_count == 1 || p->batch_extent[last] != p->batch_count || p->b_batch[last] != 0 ||
        p->a_column != 1 || p->a_row != p->k || p->a_batch[last] != p->m * p->k ||
        (p->epilogue.has_bias && p->bias_row != 0)) {
        return;
    }
    p->m *= p->batch_count;
    p->batch_count = 1;
    p->batch_extent[last] = 1;
    p->a_batch[last] = 0;
}

// Vectors as matrices of one row or one column.
static bool make_matrices(rondo__cuda_kernel *kernel, rondo_shape *a, rondo_shape *b) {
    if (a->rank == 0 || b->rank == 0) {
        rondo__cuda_refuse(kernel, "a scalar operand");
        return false;
    }
    if (a->rank == 1) {
        *a = (rondo_shape){.rank = 2, .extent = {1, a->extent[0]}};
    }
    if (b->rank == 1) {
        *b = (rondo_shape){.rank = 2, .extent = {b->extent[0], 1}};
    }
    return true;
}

bool rondo__cuda_read_product(rondo__cuda_kernel *kernel, size_t input_a, size_t input_b,
                              rondo__cuda_matmul *out_matmul) {
    rondo_shape a = rondo__cuda_input(kernel, input_a)->shape;
    rondo_shape b = rondo__cuda_input(kernel, input_b)->shape;
    if (!make_matrices(kernel, &a, &b)) {
        return false;
    }
    rondo__cuda_matmul p = {
        .dtype = rondo__cuda_input(kernel, input_a)->dtype,
        .y_dtype = rondo__cuda_input(kernel, input_a)->dtype,
        .m = a.extent[a.rank - 2],
        .k = a.extent[a.rank - 1],
        .n = b.extent[b.rank - 1],
        .a_column = 1,
        .b_column = 1,
        .a = rondo__address_input(input_a),
        .b = rondo__address_input(input_b),
        .y = rondo__address_output(0),
        .scale = 1.0f,
        .factor = 1.0f,
    };
    p.a_row = p.k;
    p.b_row = p.n;
    if (!read_batches(kernel, &a, &b, &p)) {
        return false;
    }
    merge_batches_into_rows(&p);
    *out_matmul = p;
    return true;
}

// alpha, beta and C, of [m, n] or what is broadcast to that.
static bool read_gemm_terms(rondo__cuda_kernel *kernel, rondo__cuda_matmul *p) {
    const rondo__op *op = kernel->request->op;
    p->scale = rondo__op_get_float(op, "alpha", 1.0f);
    p->factor = rondo__op_get_float(op, "beta", 1.0f);
    if (p->factor == 0.0f) {
        p->epilogue.has_bias = false;  // what is multiplied by 0 is not looked at
    }
    if (rondo__dtype_is_integer(p->dtype) &&
        (p->scale != floorf(p->scale) || p->factor != floorf(p->factor))) {
        rondo__cuda_refuse(kernel, "a factor of whole numbers that is none");
        return false;
    }
    const rondo_shape *c = &rondo__cuda_input(kernel, 2)->shape;
    const int64_t columns = c->rank >= 1 ? c->extent[c->rank - 1] : 1;
    const int64_t rows = c->rank >= 2 ? c->extent[c->rank - 2] : 1;
    p->bias_column = columns == 1 ? 0 : 1;
    p->bias_row = rows == 1 ? 0 : columns;
    return true;
}

// The factor and the bias of the other products: one number for all, a row, or a column.
static void read_fused_terms(rondo__cuda_kernel *kernel, const char *factor,
                             rondo__cuda_matmul *p) {
    p->scale = rondo__op_get_float(kernel->request->op, factor, 1.0f);
    if (!p->epilogue.has_bias) {
        return;
    }
    const rondo_shape *bias = &rondo__cuda_input(kernel, 2)->shape;
    if (rondo_shape_get_count(bias) == 1) {
        p->bias_column = p->n == 1 ? 1 : 0;
    } else if (bias->rank == 2) {
        p->bias_row = 1;
        p->bias_column = 0;
    }
}

bool rondo__cuda_read_matmul(rondo__cuda_kernel *kernel, rondo__cuda_matmul *out_matmul) {
    const rondo__op *op = kernel->request->op;
    const bool is_gemm = op->def->id == RONDO__OP_Gemm;
    const bool is_vendor =
        op->def->id == RONDO__MS_FusedMatMul || op->def->id == RONDO__MS_TransposeMatMul;
    const bool has_gemm_names = is_gemm || is_vendor;
    rondo_shape a = rondo__cuda_input(kernel, 0)->shape;
    rondo_shape b = rondo__cuda_input(kernel, 1)->shape;
    rondo__cuda_matmul p = {.dtype = rondo__cuda_input(kernel, 0)->dtype,
                            .y_dtype = rondo__cuda_output(kernel, 0)->dtype,
                            .scale = 1.0f,
                            .factor = 1.0f,
                            .bias_column = 1};

    if (rondo__cuda_input(kernel, 1)->dtype != p.dtype) {
        rondo__cuda_refuse(kernel, "operands of different types");
        return false;
    }
    if (!rondo__cuda_read_epilogue(kernel, &p.epilogue)) {
        return false;
    }
    if (!make_matrices(kernel, &a, &b)) {
        return false;
    }
    if (rondo__op_get_int(op, "transBatchA", 0) != 0 ||
        rondo__op_get_int(op, "transBatchB", 0) != 0) {
        rondo__cuda_refuse(kernel, "rows in front of the batch");
        return false;
    }
    const bool trans_a = rondo__op_get_int(op, has_gemm_names ? "transA" : "trans_a", 0) != 0;
    const bool trans_b = rondo__op_get_int(op, has_gemm_names ? "transB" : "trans_b", 0) != 0;
    const int64_t a_rows = a.extent[a.rank - 2], a_columns = a.extent[a.rank - 1];
    const int64_t b_rows = b.extent[b.rank - 2], b_columns = b.extent[b.rank - 1];
    p.m = trans_a ? a_columns : a_rows;
    p.k = trans_a ? a_rows : a_columns;
    p.n = trans_b ? b_rows : b_columns;
    p.a_row = trans_a ? 1 : a_columns;
    p.a_column = trans_a ? a_columns : 1;
    p.b_row = trans_b ? 1 : b_columns;
    p.b_column = trans_b ? b_columns : 1;
    p.a = rondo__address_input(0);
    p.b = rondo__address_input(1);
    p.y = rondo__address_output(0);
    if (is_gemm && !read_gemm_terms(kernel, &p)) {
        return false;
    }
    if (!is_gemm) {
        read_fused_terms(kernel, is_vendor ? "alpha" : "alpha_scale", &p);
    }
    if (!read_batches(kernel, &a, &b, &p)) {
        return false;
    }
    merge_batches_into_rows(&p);
    *out_matmul = p;
    return true;
}

// ---- weights ----------------------------------------------------------------------------------

// A constant b of [k, n] is turned into [n, k] once: our kernels read along k, and cuBLASLt takes
// either.
typedef struct turned_form {
    char kind[8];
    int64_t k, n, element_bytes;
    int64_t pitch;  // of a row of k elements, with zeros behind them
} turned_form;

static void fill_turned(const rondo__weight_want *want, size_t first, size_t last, void *turned) {
    const turned_form *form = want->form;
    const size_t bytes = (size_t)form->element_bytes, pitch = (size_t)form->pitch;
    rondo__turn((const uint8_t *)want->constant->data + first * bytes, (size_t)form->n, turned,
                pitch, (size_t)form->k, last - first, bytes);
    const size_t behind = (pitch - (size_t)form->k) * bytes;
    for (size_t row = 0; behind > 0 && row < last - first; row++) {
        memset((uint8_t *)turned + (row + 1) * pitch * bytes - behind, 0, behind);
    }
}

void rondo__cuda_turn_matmul(const rondo__cuda_kernel *kernel, rondo__cuda_matmul *p) {
    const rondo_tensor *b = rondo__cuda_input(kernel, 1)->constant;
    p->turns_b = b != NULL && b->dtype == p->dtype && p->batch_count == 1 && p->b_column == 1 &&
                 rondo_shape_get_count(&b->shape) == p->k * p->n && p->n != 1 &&
                 rondo__cuda_is_float(p->dtype);
    if (p->turns_b) {
        p->b_row = 1;
        p->b_column = p->k;
    }
}

static bool turn_constant(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p, size_t input,
                          int64_t pitch, rondo__address *out_address) {
    const size_t bytes = rondo_dtype_get_bytes(p->dtype);
    const turned_form form = {
        .kind = "turned", .k = p->k, .n = p->n, .element_bytes = (int64_t)bytes, .pitch = pitch};
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(pitch * p->n) * bytes,
        .fill_rows = fill_turned,
        .row_count = (size_t)p->n,
    };
    return rondo__cuda_own_input(kernel, input, &want, out_address);
}

// ---- the ways ---------------------------------------------------------------------------------

// Rows of a lie beside each other, and b may be filled up with zeros along k.
static bool is_turned(const rondo__cuda_matmul *p) {
    return rondo__cuda_has_simple_columns(p) && p->a_row == 1 && p->a_column == p->m &&
           p->m % 8 == 0 && p->k > 1 && (p->k % 8 == 0 || p->turns_b);
}

bool rondo__cuda_make_point_convolution(const rondo__cuda_matmul *p, rondo__cuda_convolution *out) {
    const bool turns = is_turned(p);
    if (!(turns || (rondo__cuda_has_simple_rows(p) && p->k % 8 == 0)) ||
        p->dtype != RONDO_DTYPE_F16) {
        return false;
    }
    const int64_t depth = (p->k + 7) / 8 * 8;
    *out = (rondo__cuda_convolution){
        .dtype = p->dtype,
        .y_dtype = p->y_dtype,
        .window =
            {
                .channels_last = true,
                .spatial_rank = 2,
                .batch = 1,
                .channels_in = depth,
                .channels_out = p->n,
                .in = {1, 1, p->m},
                .out = {1, 1, p->m},
                .kernel = {1, 1, 1},
                .stride = {1, 1, 1},
                .dilation = {1, 1, 1},
            },
        .groups = 1,
        .taps = 1,
        .pixels = p->m,
        .weight_pitch = depth,
        .x_depth = turns ? p->k : 0,
        .x = p->a,
        .w = p->b,
        .y = p->y,
        .epilogue = p->epilogue,
    };
    out->epilogue.has_row_bias = p->epilogue.has_bias && p->bias_row != 0;
    return true;
}

static void push_four(rondo__step *step, const int64_t *values) {
    for (int d = 0; d < RONDO__MATMUL_BATCH_RANK; d++) {
        rondo__step_int(step, values[d]);
    }
}

static void add_plain(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p) {
    rondo__defines defines = {0};
    const int64_t row_tiles = (p->m + 63) / 64;
    if (row_tiles > 65535 || p->batch_count > 65535) {
        rondo__cuda_refuse(kernel, "more rows or batches than a grid holds");
        return;
    }
    rondo__define_type(&defines, "T", p->dtype);
    rondo__define_type(&defines, "Y", p->y_dtype);
    rondo__define_word(&defines, "A",
                       p->dtype == RONDO_DTYPE_F64      ? "double"
                       : rondo__cuda_is_float(p->dtype) ? "float"
                                                        : "i64");
    rondo__define_int(&defines, "GATES", p->epilogue.gates);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_matmul_plain, &defines,
                                               "matmul_plain", (p->n + 63) / 64, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)row_tiles;
        step->launch.grid[2] = (uint32_t)p->batch_count;
    }
    rondo__step_address(step, p->a);
    rondo__step_address(step, p->b);
    rondo__step_epilogue_addresses(step, &p->epilogue);
    rondo__step_address(step, p->y);
    rondo__step_int(step, p->m);
    rondo__step_int(step, p->n);
    rondo__step_int(step, p->k);
    rondo__step_int(step, p->a_row);
    rondo__step_int(step, p->a_column);
    rondo__step_int(step, p->b_row);
    rondo__step_int(step, p->b_column);
    rondo__step_int(step, p->bias_row);
    rondo__step_int(step, p->bias_column);
    push_four(step, p->batch_extent);
    push_four(step, p->a_batch);
    push_four(step, p->b_batch);
    rondo__step_int(step, p->epilogue.activation);
    rondo__step_float(step, (double)p->scale);
    rondo__step_float(step, (double)p->factor);
    rondo__step_float(step, (double)p->epilogue.alpha);
    rondo__step_float(step, (double)p->epilogue.beta);
}

typedef enum matmul_way { WAY_VECTOR, WAY_TENSOR, WAY_CUBLASLT, WAY_PADDED, WAY_PLAIN } matmul_way;

typedef struct matmul_problem {
    rondo__cuda_matmul matmul;
    rondo__cuda_convolution convolution;
    rondo__candidates candidates;
} matmul_problem;

// The candidates of each way that a fast contest tries; see cuda_convolution.c.
enum { TENSOR_FAST = 4, CUBLASLT_FAST = 2, PADDED_PLANS = 4, PACK = 8 };

// ---- padded rows ------------------------------------------------------------------------------

// An operand whose lines along one axis lie together.
typedef struct operand {
    rondo__address *address;
    int64_t *pitch;  // from line to line
    int64_t lines, length;
    bool is_along_k;
} operand;

static operand read_operand(rondo__cuda_matmul *p, bool is_b) {
    const bool is_along_k = is_b ? p->b_row == 1 && p->b_column != 1 : p->a_column == 1;
    const int64_t other = is_b ? p->n : p->m;
    return (operand){.address = is_b ? &p->b : &p->a,
                     .pitch = is_b ? (is_along_k ? &p->b_column : &p->b_row)
                                   : (is_along_k ? &p->a_row : &p->a_column),
                     .lines = is_along_k ? other : p->k,
                     .length = is_along_k ? p->k : other,
                     .is_along_k = is_along_k};
}

// Large products of halves with lines that begin at odd places: copied, they are several times as
// fast (gpt2's 50257 words, H200: 0.57 ms each without it).
static bool suits_padded(const rondo__cuda_matmul *product) {
    rondo__cuda_matmul p = *product;
    const operand a = read_operand(&p, false), b = read_operand(&p, true);
    return p.dtype == RONDO_DTYPE_F16 && p.batch_count == 1 && !p.turns_b &&
           (double)p.m * (double)p.n * (double)p.k >= 1e9 && *a.pitch == a.length &&
           *b.pitch == b.length && (a.length % PACK != 0 || b.length % PACK != 0);
}

// `fills_k`: both operands have zeros up to a whole number of packs along k.
static void pad_operand(rondo__cuda_kernel *kernel, const operand *o, bool fills_k) {
    const int64_t pitch = (o->length + PACK - 1) / PACK * PACK;
    const int64_t lines =
        fills_k && !o->is_along_k ? (o->lines + PACK - 1) / PACK * PACK : o->lines;
    if (pitch == o->length && lines == o->lines) {
        return;
    }
    const rondo__defines defines = {0};
    const rondo__address to = rondo__address_workspace(
        rondo__cuda_reserve_workspace(kernel, (size_t)(lines * pitch) * sizeof(uint16_t)));
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_pad_rows, &defines, "pad_rows",
                               rondo__cuda_blocks(lines * pitch / PACK), RONDO__CUDA_BLOCK);
    rondo__step_address(step, *o->address);
    rondo__step_address(step, to);
    rondo__step_int(step, o->lines);
    rondo__step_int(step, o->length);
    rondo__step_int(step, lines);
    rondo__step_int(step, pitch);
    *o->address = to;
    *o->pitch = pitch;
}

static void add_padded(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *product, size_t plan) {
    rondo__cuda_matmul p = *product;
    const bool fills_k = plan >= PADDED_PLANS / 2;
    const operand a = read_operand(&p, false), b = read_operand(&p, true);
    if (fills_k && p.k % PACK == 0) {
        rondo__cuda_refuse(kernel, "nothing to fill up");
        return;
    }
    pad_operand(kernel, &a, fills_k);
    pad_operand(kernel, &b, fills_k);
    p.k = fills_k ? (p.k + PACK - 1) / PACK * PACK : p.k;
    if (!kernel->request->is_survey) {
        rondo__cuda_add_cublaslt_plan(kernel, &p, plan % (PADDED_PLANS / 2));
    }
}

static void build_candidate(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const matmul_problem *problem = data;
    const matmul_way way = (matmul_way)problem->candidates.list[index].way;
    const size_t plan = problem->candidates.list[index].plan;
    rondo__cuda_matmul matmul = problem->matmul;
    rondo__cuda_convolution convolution = problem->convolution;
    const int64_t pitch = way == WAY_TENSOR ? convolution.weight_pitch : matmul.k;
    if (matmul.turns_b && !turn_constant(kernel, &matmul, 1, pitch, &matmul.b)) {
        return;
    }
    convolution.w = matmul.b;
    switch (way) {
        case WAY_VECTOR:
            rondo__cuda_add_row_product(kernel, &matmul, &(rondo__cuda_row_extras){0});
            break;
        case WAY_TENSOR:
            rondo__cuda_add_tensor_plan(kernel, &convolution, plan);
            return;
        case WAY_CUBLASLT:
            if (!kernel->request->is_survey) {
                rondo__cuda_add_cublaslt_plan(kernel, &matmul, plan);
            }
            break;
        case WAY_PADDED:
            add_padded(kernel, &matmul, plan);
            break;
        case WAY_PLAIN:
            add_plain(kernel, &matmul);
            break;
    }
    if (matmul.epilogue.has_moments) {
        rondo__cuda_add_row_moments(kernel, matmul.y_dtype, matmul.m, matmul.n, matmul.y,
                                    matmul.epilogue.moments);
    }
}

static void describe_candidate(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                               char *text, size_t text_bytes) {
    const matmul_problem *problem = data;
    const matmul_way way = (matmul_way)problem->candidates.list[index].way;
    const size_t plan = problem->candidates.list[index].plan;
    if (way == WAY_TENSOR) {
        rondo__cuda_describe_tensor_plan(kernel, &problem->convolution, plan, text, text_bytes);
    } else if (way == WAY_CUBLASLT) {
        (void)snprintf(text, text_bytes, "cublaslt %zu of version %zu", plan,
                       rondo__cuda_get_cublaslt_version(kernel));
    } else if (way == WAY_PADDED) {
        (void)snprintf(text, text_bytes, "padded cublaslt %zu of version %zu", plan,
                       rondo__cuda_get_cublaslt_version(kernel));
    } else {
        (void)snprintf(text, text_bytes, "%s", way == WAY_VECTOR ? "vector" : "plain");
    }
}

static void list_candidates(const rondo__cuda_kernel *kernel, matmul_problem *problem) {
    const rondo__cuda_matmul *p = &problem->matmul;
    rondo__candidates *list = &problem->candidates;
    const double work = (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
    bool is_only = false;
    if (rondo__cuda_suits_row_product(kernel, p, &is_only)) {
        rondo__candidates_add(list, WAY_VECTOR, 1, 1);
        if (is_only) {
            return;
        }
    }
    if (rondo__cuda_make_point_convolution(p, &problem->convolution)) {
        rondo__candidates_add(list, WAY_TENSOR,
                              rondo__cuda_count_tensor_plans(kernel, &problem->convolution),
                              TENSOR_FAST);
    }
    if (rondo__cuda_suits_cublaslt(p) && rondo__cuda_may_have_libraries(kernel)) {
        const size_t own_count = list->count;
        if (suits_padded(p)) {
            rondo__candidates_add(list, WAY_PADDED, PADDED_PLANS, PADDED_PLANS);
        }
        rondo__candidates_add(list, WAY_CUBLASLT, RONDO__CUBLASLT_PLANS, CUBLASLT_FAST);
        rondo__candidates_mark_library(list, own_count);
    }
    rondo__candidates_add_plain(list, WAY_PLAIN, list->count > 0 && work >= 1e7);
}

rondo__cuda_product_ways rondo__cuda_list_product_ways(const rondo__cuda_kernel *kernel,
                                                       const rondo__cuda_matmul *matmul) {
    matmul_problem problem = {.matmul = *matmul};
    list_candidates(kernel, &problem);
    const rondo__candidates *list = &problem.candidates;
    rondo__cuda_product_ways ways = {list->count, list->fast, list->last, list->library, 0};
    for (size_t i = 0; i < list->count; i++) {
        ways.tensor |= list->list[i].way == WAY_TENSOR ? UINT64_C(1) << i : 0;
    }
    return ways;
}

void rondo__cuda_describe_product(const rondo__cuda_kernel *kernel,
                                  const rondo__cuda_matmul *matmul, size_t way, char *text,
                                  size_t text_bytes) {
    matmul_problem problem = {.matmul = *matmul};
    list_candidates(kernel, &problem);
    describe_candidate(kernel, &problem, way, text, text_bytes);
}

void rondo__cuda_add_product(rondo__cuda_kernel *kernel, const rondo__cuda_matmul *matmul,
                             size_t way) {
    matmul_problem problem = {.matmul = *matmul};
    list_candidates(kernel, &problem);
    const bool lacks_library =
        (problem.candidates.library >> way & 1) != 0 && !rondo__cuda_has_cublaslt(kernel);
    build_candidate(kernel, &problem, lacks_library ? problem.candidates.count - 1 : way);
}

void rondo__cuda_write_matmul_key(const rondo__cuda_matmul *p, char *text, size_t text_bytes) {
    (void)snprintf(
        text, text_bytes,
        "matmul %s m%lld n%lld k%lld batch %lld a %lld %lld b %lld %lld act %d bias %d "
        "%lld %lld add %d%s%s",
        rondo_dtype_get_name(p->dtype), (long long)p->m, (long long)p->n, (long long)p->k,
        (long long)p->batch_count, (long long)p->a_row, (long long)p->a_column, (long long)p->b_row,
        (long long)p->b_column, (int)p->epilogue.activation, (int)p->epilogue.has_bias,
        (long long)p->bias_row, (long long)p->bias_column,
        (int)p->epilogue.has_residual + (int)p->epilogue.gates,
        p->y_dtype != p->dtype ? " to f32" : "", p->epilogue.has_moments ? " moments" : "");
}

void rondo__cuda_prepare_matmul(rondo__cuda_kernel *kernel) {
    matmul_problem problem = {0};
    char key[320];

    if (!rondo__cuda_read_matmul(kernel, &problem.matmul)) {
        return;
    }
    const rondo__cuda_matmul *p = &problem.matmul;
    problem.matmul.epilogue.has_moments = rondo__cuda_wants_output(kernel, 1);
    problem.matmul.epilogue.moments = rondo__address_output(1);
    rondo__cuda_turn_matmul(kernel, &problem.matmul);
    list_candidates(kernel, &problem);
    rondo__cuda_write_matmul_key(p, key, sizeof key);
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = problem.candidates.count,
        .fast = problem.candidates.fast,
        .last = problem.candidates.last,
        .library = problem.candidates.library,
        .has_library = rondo__cuda_has_cublaslt,
        .problem = &problem,
        .build = build_candidate,
        .describe = describe_candidate,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
}

// ---- rondo.RowProduct -------------------------------------------------------------------------

enum { INPUT_GAIN = 4, INPUT_GATE = 5 };

void rondo__cuda_prepare_row_product(rondo__cuda_kernel *kernel) {
    rondo__cuda_row_extras extras = {
        .has_gain = rondo__cuda_has_input(kernel, INPUT_GAIN),
        .has_gate = rondo__cuda_has_input(kernel, INPUT_GATE),
        .gain = rondo__address_input(INPUT_GAIN),
        .gate = rondo__address_input(INPUT_GATE),
        .epsilon = rondo__op_get_float(kernel->request->op, "epsilon", 1e-5f)};
    rondo__cuda_matmul p;
    if (!rondo__cuda_read_matmul(kernel, &p)) {
        return;
    }
    rondo__cuda_turn_matmul(kernel, &p);
    const bool gates_alike =
        !extras.has_gate || !p.turns_b || rondo__cuda_input(kernel, INPUT_GATE)->constant != NULL;
    if (!rondo__cuda_takes_row_product(kernel, &p, &extras) || !gates_alike) {
        rondo__cuda_refuse(kernel, "more than a few rows, or weights that are no constants");
        return;
    }
    if (p.turns_b &&
        (!turn_constant(kernel, &p, 1, p.k, &p.b) ||
         (extras.has_gate && !turn_constant(kernel, &p, INPUT_GATE, p.k, &extras.gate)))) {
        return;
    }
    rondo__cuda_add_row_product(kernel, &p, &extras);
}
