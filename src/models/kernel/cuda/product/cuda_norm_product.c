// kernel/cuda/product/cuda_norm_product.c — rondo.NormMatMul: LayerNormalization folded into the
// product behind it, or the two one after the other, whichever is faster.
//
// Folded, the tensor core kernel reads rows as they are and weights times gain
// (kernel/cuda/cu/include/rondo_ending.cuh). These are made once, with what belongs to them, in one
// form:
//
//   [n][k] f16   gain * w, turned, times a power of two: the largest is near 1000, so that f16
//                rounds small gains as it rounds large ones, and nothing leaves its range
//   [n] f32      the sum of each of these rows, as rounded, so that a row's mean cancels exactly
//   [n] f32      shift times w, plus bias
//   1 f32        one over the power of two
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/crew.h"
#include "base/hash.h"
#include "base/memory.h"
#include "kernel/cuda/convolution/cuda_conv_tensor.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/normalize/cuda_row_norm.h"
#include "kernel/cuda/product/cuda_matmul.h"
#include "kernel/cuda/product/cuda_matmul_cublaslt.h"
#include "kernel/cuda/tune/cuda_tune.h"
#include "kernel/turn.h"
#include "op/half.h"

enum {
    INPUT_W = 1,
    INPUT_BIAS = 2,
    INPUT_GAIN = 4,
    INPUT_SHIFT = 5,
    INPUT_MOMENTS = 6,
    // A fast contest tries so many folded plans where a kernel's launch is most of what a
    // normalisation costs, and so many where its memory traffic is.
    FOLDED_FAST = 4,
    FOLDED_FAST_LARGE = 2,
    // And so many of our own plans of normalised rows, where the folded ones come first: each tile
    // of a folded product looks at its rows anew, which is most of its work where it has many
    // columns.
    NORMALISED_FAST = 2,
};
static const int64_t large_count = INT64_C(1) << 20;  // elements of x, where that begins

typedef struct norm_problem {
    rondo__cuda_matmul product;      // of the normalised rows
    rondo__cuda_convolution folded;  // the same of rows that are normalised on the way
    rondo__cuda_row_norm norm;
    size_t folded_count;            // plans; 0: it is not to be folded
    bool is_large;                  // products of normalised rows are the better guess
    rondo__cuda_product_ways ways;  // of `product`
} norm_problem;

// ---- weights times gain -----------------------------------------------------------------------

typedef struct folded_form {
    char kind[8];
    int64_t k, n;
    int64_t is_turned;  // w is [n, k]
    float scale;        // of the product
    rondo__hash128 gain, shift, bias;
} folded_form;

typedef struct folded_data {
    const rondo_tensor *gain, *shift, *bias;  // the latter two may be NULL
} folded_data;

// What is worked on, by the crew (base/crew.h): a block of columns (n) at a time, and of that a
// part of their rows (k), so that what is stored the other way around is read and turned in the
// processor's first cache.
enum { BLOCK = 64 };

typedef struct folding {
    const folded_form *form;
    const uint16_t *w;
    const float *gain, *shift;  // of k
    const float *bias;          // of n
    float *largest;             // of each block, of its weights times gain
    float power;
    uint16_t *folded;
    float *sums, *offsets;  // of n
} folding;

typedef struct fold_block {
    int64_t k, n, k_count, n_count;  // where it begins, and its extents
    float weights[BLOCK][BLOCK];     // w, widened: [k][n], or [n][k] where w is turned
} fold_block;

static void load_block(const folding *f, int64_t k, int64_t n, fold_block *block) {
    const folded_form *form = f->form;
    const bool is_turned = form->is_turned != 0;
    block->k = k;
    block->n = n;
    block->k_count = form->k - k < BLOCK ? form->k - k : BLOCK;
    block->n_count = form->n - n < BLOCK ? form->n - n : BLOCK;
    const int64_t rows = is_turned ? block->n_count : block->k_count;
    const int64_t columns = is_turned ? block->k_count : block->n_count;
    const uint16_t *from = f->w + (is_turned ? n * form->k + k : k * form->n + n);
    for (int64_t row = 0; row < rows; row++) {
        rondo__half_to_float_array(RONDO_DTYPE_F16, from + row * (is_turned ? form->k : form->n),
                                   block->weights[row], (size_t)columns);
    }
}

static float find_largest(const folding *f, const fold_block *block) {
    const bool is_turned = f->form->is_turned != 0;
    const int64_t rows = is_turned ? block->n_count : block->k_count;
    const int64_t columns = is_turned ? block->k_count : block->n_count;
    float largest = 0.0f;
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t column = 0; column < columns; column++) {
            const float gain = f->gain[block->k + (is_turned ? column : row)];
            const float product = fabsf(block->weights[row][column] * gain);
            largest = product > largest ? product : largest;
        }
    }
    return largest;
}

static void find_largest_of_blocks(void *data, size_t first, size_t last) {
    const folding *f = data;
    for (size_t i = first; i < last; i++) {
        fold_block block;
        float largest = 0.0f;
        for (int64_t k = 0; k < f->form->k; k += BLOCK) {
            load_block(f, k, (int64_t)i * BLOCK, &block);
            largest = fmaxf(largest, find_largest(f, &block));
        }
        f->largest[i] = largest;
    }
}

// The power of two by which the largest weight times gain comes to 512 .. 1024.
static float find_power(const folding *f, size_t block_count) {
    float largest = 0.0f;
    int exponent = 0;
    for (size_t i = 0; i < block_count; i++) {
        largest = fmaxf(largest, f->largest[i]);
    }
    largest *= fabsf(f->form->scale);
    if (largest > 0.0f && isfinite(largest)) {
        (void)frexpf(largest, &exponent);
        exponent -= 10;
    }
    return ldexpf(1.0f, -exponent);
}

// Writes the block's part of the form, and adds what it gives to the block's sums and offsets.
static void fold_block_part(const folding *f, fold_block *block, double *sums, double *offsets) {
    const folded_form *form = f->form;
    const bool is_turned = form->is_turned != 0;
    const int64_t rows = is_turned ? block->n_count : block->k_count;
    const int64_t columns = is_turned ? block->k_count : block->n_count;
    uint16_t rounded[BLOCK][BLOCK];
    for (int64_t row = 0; row < rows; row++) {
        float *weights = block->weights[row];
        for (int64_t column = 0; column < columns; column++) {
            const int64_t k = block->k + (is_turned ? column : row), n = is_turned ? row : column;
            const float weight = weights[column] * form->scale;
            offsets[n] += (double)weight * (double)f->shift[k];
            weights[column] = weight * f->gain[k] * f->power;
        }
        rondo__half_from_float_array(RONDO_DTYPE_F16, weights, rounded[row], (size_t)columns);
        rondo__half_to_float_array(RONDO_DTYPE_F16, rounded[row], weights, (size_t)columns);
        for (int64_t column = 0; column < columns; column++) {
            sums[is_turned ? row : column] += (double)weights[column];
        }
    }
    uint16_t *to = f->folded + block->n * form->k + block->k;
    if (!is_turned) {
        rondo__turn(rounded, BLOCK, to, (size_t)form->k, (size_t)rows, (size_t)columns, 2);
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        memcpy(to + row * form->k, rounded[row], (size_t)columns * sizeof **rounded);
    }
}

static void fold_blocks(void *data, size_t first, size_t last) {
    const folding *f = data;
    for (size_t i = first; i < last; i++) {
        const int64_t n = (int64_t)i * BLOCK;
        fold_block block = {0};
        double sums[BLOCK] = {0}, offsets[BLOCK];
        for (int64_t j = 0; j < BLOCK; j++) {
            offsets[j] = n + j < f->form->n ? (double)f->bias[n + j] : 0.0;
        }
        for (int64_t k = 0; k < f->form->k; k += BLOCK) {
            load_block(f, k, n, &block);
            fold_block_part(f, &block, sums, offsets);
        }
        for (int64_t j = 0; j < block.n_count; j++) {
            f->sums[n + j] = (float)sums[j];
            f->offsets[n + j] = (float)offsets[j];
        }
    }
}

// The numbers of an f16 tensor, at `to`; zeros where there is none.
static void widen_list(const rondo_tensor *tensor, int64_t count, float *to) {
    memset(to, 0, (size_t)count * sizeof *to);
    if (tensor != NULL) {
        rondo__half_to_float_array(RONDO_DTYPE_F16, tensor->data, to, (size_t)count);
    }
}

static rondo_status fill_folded(const rondo__weight_want *want, void *bytes) {
    const folded_form *form = want->form;
    const folded_data *data = want->data;
    const int64_t k = form->k, n = form->n;
    const size_t block_count = (size_t)((n + BLOCK - 1) / BLOCK);
    float *lists = rondo__calloc((size_t)(2 * k + n) + block_count, sizeof *lists);
    if (lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    widen_list(data->gain, k, lists);
    widen_list(data->shift, k, lists + k);
    widen_list(data->bias, n, lists + 2 * k);
    folding f = {.form = form,
                 .w = want->constant->data,
                 .gain = lists,
                 .shift = lists + k,
                 .bias = lists + 2 * k,
                 .largest = lists + 2 * k + n,
                 .folded = bytes,
                 .sums = (float *)((uint16_t *)bytes + n * k)};
    f.offsets = f.sums + n;
    const size_t block_bytes = (size_t)(k * BLOCK) * sizeof *f.w;
    rondo__crew_run(block_count, block_bytes, find_largest_of_blocks, &f);
    f.power = find_power(&f, block_count);
    rondo__crew_run(block_count, 2 * block_bytes, fold_blocks, &f);
    f.offsets[n] = 1.0f / f.power;
    rondo__free(lists);
    return RONDO_STATUS_OK;
}

static rondo__hash128 hash_tensor(const rondo_tensor *tensor) {
    return tensor == NULL ? (rondo__hash128){0}
                          : rondo__hash128_bytes(tensor->data, rondo_tensor_get_bytes(tensor));
}

// Sets where the folded weights and all that belongs to them are.
static bool own_folded(rondo__cuda_kernel *kernel, const norm_problem *problem,
                       rondo__cuda_convolution *folded, rondo__cuda_row_norm *norm) {
    const rondo__cuda_matmul *p = &problem->product;
    const folded_data data = {
        .gain = rondo__cuda_input(kernel, INPUT_GAIN)->constant,
        .shift = rondo__cuda_input(kernel, INPUT_SHIFT)->constant,
        .bias = rondo__cuda_input(kernel, INPUT_BIAS)->constant,
    };
    folded_form form;
    memset(&form, 0, sizeof form);  // compared byte by byte
    memcpy(form.kind, "folded", sizeof "folded");
    form.k = p->k;
    form.n = p->n;
    form.is_turned = !p->turns_b;
    form.scale = p->scale;
    form.gain = hash_tensor(data.gain);
    form.shift = hash_tensor(data.shift);
    form.bias = hash_tensor(data.bias);
    const size_t weight_bytes = (size_t)(p->k * p->n) * 2, list_bytes = (size_t)p->n * 4;
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = weight_bytes + 2 * list_bytes + 4,
        .fill = fill_folded,
        .data = &data,
    };
    if (!rondo__cuda_own_input(kernel, INPUT_W, &want, &folded->w)) {
        return false;
    }
    norm->weight_sums = rondo__address_offset(folded->w, weight_bytes);
    norm->offsets = rondo__address_offset(norm->weight_sums, list_bytes);
    norm->weight_scale = rondo__address_offset(norm->offsets, list_bytes);
    return true;
}

// ---- the ways ---------------------------------------------------------------------------------

static bool is_constant_of(const rondo__tensor_info *info, rondo_dtype dtype, int64_t count) {
    return info->constant != NULL && info->dtype == dtype &&
           rondo_shape_get_count(&info->shape) == count;
}

// Whether w, gain, shift and bias are known, so that they can be folded, and numbers of one kind.
static bool can_fold(const rondo__cuda_kernel *kernel, const rondo__cuda_matmul *p) {
    const rondo__tensor_info *shift = rondo__cuda_input(kernel, INPUT_SHIFT);
    const rondo__tensor_info *bias = rondo__cuda_input(kernel, INPUT_BIAS);
    return p->dtype == RONDO_DTYPE_F16 && p->batch_count == 1 && p->a_column == 1 &&
           p->a_row == p->k && p->b_row == 1 && p->b_column == p->k && p->k % 8 == 0 &&
           is_constant_of(rondo__cuda_input(kernel, INPUT_W), p->dtype, p->k * p->n) &&
           is_constant_of(rondo__cuda_input(kernel, INPUT_GAIN), p->dtype, p->k) &&
           (shift->dtype == RONDO_DTYPE_NONE || is_constant_of(shift, p->dtype, p->k)) &&
           (bias->dtype == RONDO_DTYPE_NONE || is_constant_of(bias, p->dtype, p->n));
}

// The product as the tensor core kernel makes it of rows as they are.
static bool make_folded(const rondo__cuda_kernel *kernel, norm_problem *problem) {
    rondo__cuda_matmul p = problem->product;
    if (!can_fold(kernel, &p)) {
        return false;
    }
    p.epilogue.has_bias = false;  // with the offsets
    p.scale = 1.0f;               // with the weights
    if (!rondo__cuda_make_point_convolution(&p, &problem->folded)) {
        return false;
    }
    problem->folded.norm = &problem->norm;
    return true;
}

// Where a candidate stands among its kind.
static bool is_folded(const norm_problem *problem, size_t index, size_t *out_number) {
    const size_t first = problem->is_large ? problem->ways.count : 0;
    const bool is_it = index >= first && index - first < problem->folded_count;
    *out_number = is_it                            ? index - first
                  : problem->is_large              ? index
                  : index >= problem->folded_count ? index - problem->folded_count
                                                   : index;
    return is_it;
}

static void build_candidate(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const norm_problem *problem = data;
    rondo__cuda_row_norm norm = problem->norm;
    size_t number = 0;
    if (is_folded(problem, index, &number)) {
        rondo__cuda_convolution folded = problem->folded;
        folded.norm = &norm;
        if (own_folded(kernel, problem, &folded, &norm)) {
            rondo__cuda_add_tensor_plan(kernel, &folded, number);
        }
        return;
    }
    rondo__cuda_matmul product = problem->product;
    if (!norm.is_wanted) {
        const size_t bytes = (size_t)(norm.rows * norm.length) * rondo_dtype_get_bytes(norm.dtype);
        norm.normal = rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, bytes));
    }
    product.a = norm.normal;
    rondo__cuda_add_row_norm(kernel, &norm);
    rondo__cuda_add_product(kernel, &product, number);
}

static void describe_candidate(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                               char *text, size_t text_bytes) {
    const norm_problem *problem = data;
    char name[64];
    size_t number = 0;
    const bool folds = is_folded(problem, index, &number);
    if (folds) {
        rondo__cuda_describe_tensor_plan(kernel, &problem->folded, number, name, sizeof name);
    } else {
        rondo__cuda_describe_product(kernel, &problem->product, number, name, sizeof name);
    }
    (void)snprintf(text, text_bytes, "%s %s", folds ? "folded," : "normalised,", name);
}

static void list_candidates(const rondo__cuda_kernel *kernel, norm_problem *problem,
                            rondo__tuning *tuning) {
    const size_t most = 64;
    problem->is_large = problem->norm.rows * problem->norm.length > large_count;
    problem->ways = rondo__cuda_list_product_ways(kernel, &problem->product);
    if (make_folded(kernel, problem)) {
        problem->folded_count = rondo__cuda_count_tensor_plans(kernel, &problem->folded);
    }
    if (problem->folded_count + problem->ways.count > most) {
        problem->folded_count = most - problem->ways.count;
    }
    const size_t folded_fast = problem->is_large ? FOLDED_FAST_LARGE : FOLDED_FAST;
    const size_t tried = problem->folded_count < folded_fast ? problem->folded_count : folded_fast;
    const uint64_t folded = (UINT64_C(1) << tried) - 1;
    uint64_t fast = problem->ways.fast;
    if (!problem->is_large && problem->folded_count > 0) {
        uint64_t left = fast & problem->ways.tensor;
        for (int i = 0; i < NORMALISED_FAST; ++i) {
            left &= left - 1;
        }
        fast &= ~left;
    }
    const size_t first_folded = problem->is_large ? problem->ways.count : 0;
    const size_t first_way = problem->is_large ? 0 : problem->folded_count;
    tuning->candidate_count = problem->folded_count + problem->ways.count;
    tuning->fast = folded << first_folded | fast << first_way;
    tuning->last = problem->ways.last << first_way;
    tuning->library = problem->ways.library << first_way;
}

// ---- what is asked ----------------------------------------------------------------------------

static bool read_norm(rondo__cuda_kernel *kernel, rondo__cuda_row_norm *out_norm) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *gain = rondo__cuda_input(kernel, INPUT_GAIN);
    const rondo__tensor_info *shift = rondo__cuda_input(kernel, INPUT_SHIFT);
    const bool has_shift = rondo__cuda_has_input(kernel, INPUT_SHIFT);
    if (!rondo__cuda_is_float(x->dtype) || (has_shift && shift->dtype != gain->dtype)) {
        rondo__cuda_refuse(kernel, "a scale or bias of this type");
        return false;
    }
    *out_norm = (rondo__cuda_row_norm){
        .dtype = x->dtype,
        .gain_dtype = gain->dtype,
        .rows = rondo__cuda_product(&x->shape, 0, x->shape.rank - 1),
        .length = x->shape.extent[x->shape.rank - 1],
        .x = rondo__address_input(0),
        .gain = rondo__address_input(INPUT_GAIN),
        .shift = rondo__address_input(INPUT_SHIFT),
        .has_shift = has_shift,
        .epsilon = rondo__op_get_float(kernel->request->op, "epsilon", 1e-5f),
        .is_wanted = rondo__cuda_wants_output(kernel, 1),
        .normal = rondo__address_output(1),
        .has_moments = rondo__cuda_has_input(kernel, INPUT_MOMENTS),
        .moments = rondo__address_input(INPUT_MOMENTS),
    };
    return true;
}

void rondo__cuda_prepare_norm_product(rondo__cuda_kernel *kernel) {
    norm_problem problem = {0};
    char key[400], product[320];
    if (!rondo__cuda_read_matmul(kernel, &problem.product) || !read_norm(kernel, &problem.norm)) {
        return;
    }
    rondo__cuda_turn_matmul(kernel, &problem.product);
    rondo__cuda_write_matmul_key(&problem.product, product, sizeof product);
    (void)snprintf(key, sizeof key, "norm shift %d out %d%s, %s", (int)problem.norm.has_shift,
                   (int)problem.norm.is_wanted, problem.norm.has_moments ? " moments" : "",
                   product);
    rondo__tuning tuning = {
        .key = key,
        .has_library = rondo__cuda_has_cublaslt,
        .problem = &problem,
        .build = build_candidate,
        .describe = describe_candidate,
    };
    list_candidates(kernel, &problem, &tuning);
    rondo__cuda_add_fastest(kernel, &tuning);
}
