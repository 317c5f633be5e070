// kernel/cuda/product/cuda_attention_form.c — the ops of op/attention: rows and masks into the form
// in which rondo.Attention's kernels take them (cu/product/attention_rows.cu), and those kernels.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/product/cuda_attention.h"
#include "kernel/cuda/product/cuda_matmul.h"

enum { ROWS_OF_BLOCK = 8, COPY_BLOCKS_MOST = 4096 };

typedef struct work {
    rondo__cuda_kernel *kernel;
    rondo__attention_form form;
    rondo_dtype dtype;
    size_t bytes;  // of an element
    rondo__address projected;
    rondo__address q, k, v;  // where they are read
    rondo__attention_strides at_q, at_k, at_v;
    rondo__cuda_sight sight;
    bool has_mask;
    rondo__address mask;
    rondo__attention_strides at_mask;
    rondo_dtype mask_dtype;
} work;

static rondo__address reserve(work *w, int64_t count) {
    return rondo__address_workspace(
        rondo__cuda_reserve_workspace(w->kernel, (size_t)count * w->bytes));
}

static void push_strides(rondo__step *step, const rondo__attention_strides *at) {
    rondo__step_int(step, at->batch);
    rondo__step_int(step, at->head);
    rondo__step_int(step, at->row);
    rondo__step_int(step, at->column);
}

static rondo__address find_operand(const work *w, const rondo__attention_operand *operand) {
    const rondo__address base = operand->input == RONDO__ATTENTION_PROJECTED
                                    ? w->projected
                                    : rondo__address_input((size_t)operand->input);
    return rondo__address_offset(base, (size_t)operand->at.offset * w->bytes);
}

static void push_input(rondo__step *step, int32_t input) {
    const rondo__address address = rondo__address_input(input >= 0 ? (size_t)input : 0);
    rondo__step_optional(step, input >= 0 ? &address : NULL);
}

// ---- what is taken ----------------------------------------------------------------------------

static const char *find_refusal(const work *w) {
    const rondo__attention_form *f = &w->form;
    const int64_t limit = RONDO__ATTENTION_COUNT_MAX, rows = f->m * (f->heads / f->kv_heads);
    const int32_t numbers[] = {f->q.input,        f->k.input,      f->v.input,      f->past_k.input,
                               f->past_v.input,   f->bias,         f->norm.gain[0], f->norm.gain[1],
                               f->angles.cosines, f->angles.sines, f->sink};
    if (!rondo__cuda_is_float(w->dtype)) {
        return "tensors of this type";
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i] >= 0 &&
            rondo__cuda_input(w->kernel, (size_t)numbers[i])->dtype != w->dtype) {
            return "tensors of several types";
        }
    }
    if (w->has_mask && w->mask_dtype != w->dtype && w->mask_dtype != RONDO_DTYPE_BOOL) {
        return "a mask of this type";
    }
    if (f->precision != RONDO_DTYPE_NONE && f->precision != RONDO_DTYPE_F32 &&
        f->precision != w->dtype) {
        return "attribute softmax_precision";
    }
    return f->width > RONDO__ATTENTION_WIDTH_MAX || f->v_width > RONDO__ATTENTION_WIDTH_MAX
               ? "heads as wide as these"
           : f->kv_heads > limit || f->batch > limit || rows > INT32_MAX / 2 || rows < 1 ||
                   f->n < 1 || f->width < 1
               ? "as many heads, batches or rows"
               : NULL;
}

// Where total_sequence_length is not known, the output's shape says how many keys there may be.
static bool read_form(work *w) {
    const rondo__kernel_request *request = w->kernel->request;
    rondo__attention_form *f = &w->form;
    if (!rondo__cuda_check(w->kernel,
                           rondo__attention_read(request->op, request->inputs, request->input_count,
                                                 request->output_count, f))) {
        return false;
    }
    if (f->n < 0 && rondo__cuda_wants_output(w->kernel, 1)) {
        f->n = rondo__cuda_output(w->kernel, 1)->shape.extent[2];
        rondo__attention_set_present(f, 1, rondo__cuda_wants_output(w->kernel, 2) ? 2 : -1);
    }
    w->has_mask = f->mask.input >= 0;
    w->mask_dtype =
        w->has_mask ? rondo__cuda_input(w->kernel, (size_t)f->mask.input)->dtype : RONDO_DTYPE_NONE;
    const char *refusal = find_refusal(w);
    if (refusal != NULL) {
        rondo__cuda_refuse(w->kernel, refusal);
    }
    return refusal == NULL;
}

// ---- rows -------------------------------------------------------------------------------------

// The rows of com.microsoft's Attention, as a product.
static void project(work *w) {
    const rondo_shape *x = &rondo__cuda_input(w->kernel, 0)->shape;
    const rondo_shape *weights = &rondo__cuda_input(w->kernel, 1)->shape;
    const int64_t rows = x->extent[0] * x->extent[1];
    w->projected = reserve(w, rows * weights->extent[1]);
    const rondo__cuda_matmul product = {
        .dtype = w->dtype,
        .y_dtype = w->dtype,
        .m = rows,
        .n = weights->extent[1],
        .k = x->extent[2],
        .a_row = x->extent[2],
        .a_column = 1,
        .b_row = weights->extent[1],
        .b_column = 1,
        .batch_count = 1,
        .batch_extent = {1, 1, 1, 1},
        .a = rondo__address_input(0),
        .b = rondo__address_input(1),
        .y = w->projected,
        .scale = 1.0f,
        .factor = 1.0f,
    };
    rondo__cuda_add_product(w->kernel, &product, 0);
}

// Puts the rows of q, k or v (`which`: 0 to 2) where they are read.
static void add_rows(work *w, int which, rondo__address to, const rondo__attention_strides *at_to) {
    const rondo__attention_form *f = &w->form;
    const rondo__attention_operand *from = which == 0 ? &f->q : which == 1 ? &f->k : &f->v;
    const int64_t heads = which == 0 ? f->heads : f->kv_heads, rows = which == 0 ? f->m : f->fresh;
    const bool has_bias = f->bias >= 0 && f->bias_at[which] >= 0, turns = which < 2;
    const rondo__address bias =
        rondo__address_offset(rondo__address_input(has_bias ? (size_t)f->bias : 0),
                              has_bias ? (size_t)f->bias_at[which] * w->bytes : 0);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", w->dtype);
    rondo__define_int(&defines, "WIDTH", which == 2 ? f->v_width : f->width);
    rondo__define_int(&defines, "INTERLEAVED", f->angles.is_interleaved);
    rondo__cuda_define_sight(&defines, &w->sight);
    rondo__step *step = rondo__cuda_add_launch(
        w->kernel, rondo__cu_attention_rows, &defines, "attention_rows",
        (f->batch * heads * rows + ROWS_OF_BLOCK - 1) / ROWS_OF_BLOCK, RONDO__CUDA_BLOCK);
    rondo__step_address(step, find_operand(w, from));
    rondo__step_address(step, to);
    rondo__step_optional(step, has_bias ? &bias : NULL);
    push_input(step, which == 0   ? f->norm.gain[0]
                     : which == 1 ? f->norm.gain[1]
                                  : RONDO__ATTENTION_ABSENT);
    push_input(step, turns ? f->angles.cosines : RONDO__ATTENTION_ABSENT);
    push_input(step, turns ? f->angles.sines : RONDO__ATTENTION_ABSENT);
    push_input(step, f->angles.places);
    rondo__step_int(step, f->batch);
    rondo__step_int(step, heads);
    rondo__step_int(step, rows);
    rondo__step_int(step, f->m);
    rondo__step_int(step, which == 0 ? f->m : f->n);
    push_strides(step, &from->at);
    push_strides(step, at_to);
    rondo__step_int(step, f->angles.turned);
    rondo__step_int(step, f->angles.rows);
    rondo__step_int(step, f->angles.has_one_place);
    rondo__step_int(step, which != 0);
    rondo__step_float(step, (double)(which == 0 ? f->norm.epsilon[0] : f->norm.epsilon[1]));
    rondo__cuda_push_sight(step, w->kernel, &w->sight);
    rondo__step_faults(step, w->kernel, RONDO__FAULT_INDEX);
}

static rondo__attention_strides divide(const rondo__attention_strides *at, int64_t by) {
    return (rondo__attention_strides){at->batch / by, at->head / by, at->row / by, 1, 0};
}

// The most bytes that rows, which are dense, can be copied by.
static size_t get_piece(const work *w, const rondo__attention_operand *past, int64_t width) {
    const size_t row = (size_t)width * w->bytes, offset = (size_t)past->at.offset * w->bytes;
    size_t piece = 16;
    while (row % piece != 0 || offset % piece != 0) {
        piece /= 2;
    }
    return piece;
}

static void add_past(work *w, int which, rondo__address to, const rondo__attention_strides *at_to) {
    const rondo__attention_form *f = &w->form;
    const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
    const int64_t width = which == 1 ? f->width : f->v_width;
    const size_t piece = get_piece(w, past, width);
    const int64_t by = (int64_t)(piece / w->bytes);
    const int64_t count = f->batch * f->kv_heads * f->n * (width / by);
    const rondo__attention_strides from = divide(&past->at, by), target = divide(at_to, by);
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", w->dtype);
    rondo__define_bytes(&defines, "PIECE", piece);
    rondo__cuda_define_sight(&defines, &w->sight);
    const int64_t blocks = rondo__cuda_blocks(count);
    rondo__step *step = rondo__cuda_add_launch(
        w->kernel, rondo__cu_attention_rows, &defines, "attention_past",
        blocks < COPY_BLOCKS_MOST ? blocks : COPY_BLOCKS_MOST, RONDO__CUDA_BLOCK);
    const rondo__address source = find_operand(w, past->input >= 0 ? past : &f->k);
    rondo__step_optional(step, f->past > 0 ? &source : NULL);
    rondo__step_address(step, to);
    rondo__step_int(step, f->batch);
    rondo__step_int(step, f->kv_heads);
    rondo__step_int(step, f->past);
    rondo__step_int(step, f->n);
    rondo__step_int(step, f->m);
    rondo__step_int(step, width / by);
    push_strides(step, &from);
    push_strides(step, &target);
    rondo__cuda_push_sight(step, w->kernel, &w->sight);
}

static void place_queries(work *w) {
    const rondo__attention_form *f = &w->form;
    w->q = find_operand(w, &f->q);
    w->at_q = f->q.at;
    const bool is_made =
        (f->bias >= 0 && f->bias_at[0] >= 0) || f->norm.gain[0] >= 0 || f->angles.cosines >= 0;
    if (is_made) {
        rondo__attention_operand to;
        rondo__attention_set_dense(&to, 0, false, f->heads, f->m, f->width);
        w->q = reserve(w, f->batch * f->heads * f->m * f->width);
        add_rows(w, 0, w->q, &to.at);
        w->at_q = to.at;
    }
}

static void place_keys(work *w, int which) {
    const rondo__attention_form *f = &w->form;
    const rondo__attention_operand *fresh = which == 1 ? &f->k : &f->v;
    const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
    const rondo__attention_operand *present = which == 1 ? &f->present_k : &f->present_v;
    const int64_t width = which == 1 ? f->width : f->v_width;
    const bool is_wanted =
        present->input >= 0 && rondo__cuda_wants_output(w->kernel, (size_t)present->input);
    const bool is_made = is_wanted || past->input >= 0 || f->n != f->fresh ||
                         (f->bias >= 0 && f->bias_at[which] >= 0) ||
                         (which == 1 && (f->norm.gain[1] >= 0 || f->angles.cosines >= 0)) ||
                         f->lengths == RONDO__LENGTHS_LAST;
    rondo__address to = find_operand(w, fresh);
    rondo__attention_strides at = fresh->at;
    if (is_made) {
        rondo__attention_operand dense;
        rondo__attention_set_dense(&dense, 0, false, f->kv_heads, f->n, width);
        at = is_wanted ? present->at : dense.at;
        to = is_wanted ? rondo__address_offset(rondo__address_output((size_t)present->input),
                                               (size_t)at.offset * w->bytes)
                       : reserve(w, f->batch * f->kv_heads * f->n * width);
        if ((past->input >= 0 && f->past > 0) || f->n > f->past + f->fresh) {
            add_past(w, which, to, &at);  // nothing, where the past lies there already
        }
        if (is_wanted && rondo__attention_keeps_past(f, which)) {
            rondo__kernel *head = &w->kernel->head;
            head->kept[head->kept_count++] =
                (rondo__kernel_kept){.input = past->input, .output = present->input};
        }
        add_rows(w, which, to, &at);
    }
    if (which == 1) {
        w->k = to;
        w->at_k = at;
    } else {
        w->v = to;
        w->at_v = at;
    }
}

// ---- masks ------------------------------------------------------------------------------------

static void place_mask(work *w) {
    const rondo__attention_form *f = &w->form;
    const rondo__address added = rondo__address_input(w->has_mask ? (size_t)f->mask.input : 0);
    w->mask = added;
    w->at_mask = f->mask.at;
    if (f->padding.kind == RONDO__PADDING_NONE) {
        return;
    }
    const int64_t heads = w->has_mask && f->mask.at.head != 0 ? f->heads : 1;
    const bool has_rows =
        f->padding.kind == RONDO__PADDING_SCORES || (w->has_mask && f->mask.at.row != 0);
    const int64_t rows = has_rows ? f->m : 1, count = f->batch * heads * rows * f->n;
    w->mask = reserve(w, count);
    w->mask_dtype = w->dtype;
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", w->dtype);
    rondo__define_int(&defines, "PADDING", f->padding.kind);
    rondo__step *step =
        rondo__cuda_add_launch(w->kernel, rondo__cu_attention_rows, &defines, "attention_padding",
                               rondo__cuda_blocks(count), RONDO__CUDA_BLOCK);
    push_input(step, f->padding.input);
    rondo__step_optional(step, w->has_mask ? &added : NULL);
    rondo__step_address(step, w->mask);
    rondo__step_int(step, f->batch);
    rondo__step_int(step, heads);
    rondo__step_int(step, rows);
    rondo__step_int(step, f->n);
    push_strides(step, &f->mask.at);
    rondo__step_float(step, (double)f->padding.filter);
    w->has_mask = true;
    w->at_mask = (rondo__attention_strides){heads * rows * f->n, heads > 1 ? rows * f->n : 0,
                                            has_rows ? f->n : 0, 1, 0};
}

// ---- the whole --------------------------------------------------------------------------------

static void add_attention(work *w) {
    const rondo__attention_form *f = &w->form;
    const rondo__cuda_attention all = {
        .attention = {.batch = f->batch,
                      .heads = f->kv_heads,
                      .m = f->m,
                      .n = f->n,
                      .width = f->width,
                      .v_width = f->v_width,
                      .scale = f->scale,
                      .q = w->at_q,
                      .k = w->at_k,
                      .v = w->at_v,
                      .y = f->y.at,
                      .mask = w->has_mask ? w->at_mask : (rondo__attention_strides){0}},
        .group = f->heads / f->kv_heads,
        .dtype = w->dtype,
        .q = w->q,
        .k = w->k,
        .v = w->v,
        .y = rondo__address_output(0),
        .has_mask = w->has_mask,
        .mask_dtype = w->mask_dtype,
        .mask = w->mask,
        .softcap = f->softcap > 0.0f ? f->softcap : 0.0f,
        .has_sink = f->sink >= 0,
        .is_smooth = f->is_smooth,
        .sinks = rondo__address_input(f->sink >= 0 ? (size_t)f->sink : 0),
        .zeroes_empty = f->empty_is_zero,
        .sight = w->sight,
    };
    rondo__cuda_add_attention(w->kernel, &all);
}

static void add_scores(work *w) {
    const rondo__attention_form *f = &w->form;
    const int64_t lines = f->batch * f->heads * f->m;
    rondo__defines defines = {0};
    rondo__define_type(&defines, "T", w->dtype);
    rondo__define_int(&defines, "WIDTH", f->width);
    rondo__define_int(&defines, "GROUP", f->heads / f->kv_heads);
    rondo__define_int(&defines, "KIND", f->shown.kind);
    rondo__define_int(&defines, "HAS_SOFTCAP", f->softcap > 0.0f);
    rondo__define_int(&defines, "HAS_SINK", f->sink >= 0 ? 1 : f->is_smooth ? 2 : 0);
    rondo__define_int(&defines, "ZEROES_EMPTY", f->empty_is_zero);
    rondo__cuda_define_sight(&defines, &w->sight);
    if (w->has_mask) {
        rondo__define_type(&defines, "MASK", w->mask_dtype);
    }
    rondo__step *step = rondo__cuda_add_launch(w->kernel, rondo__cu_attention_rows, &defines,
                                               "attention_scores", lines, RONDO__CUDA_BLOCK);
    rondo__step_address(step, w->q);
    rondo__step_address(step, w->k);
    rondo__step_optional(step, w->has_mask ? &w->mask : NULL);
    rondo__step_output(step, (size_t)f->shown.output);
    rondo__step_int(step, f->batch);
    rondo__step_int(step, f->heads);
    rondo__step_int(step, f->m);
    rondo__step_int(step, f->n);
    push_strides(step, &w->at_q);
    push_strides(step, &w->at_k);
    push_strides(step, &w->at_mask);
    rondo__step_float(step, (double)f->scale);
    rondo__step_float(step, (double)f->softcap);
    rondo__step_float(step, (double)f->shown.unseen);
    push_input(step, f->sink);
    rondo__cuda_push_sight(step, w->kernel, &w->sight);
}

void rondo__cuda_prepare_attention_form(rondo__cuda_kernel *kernel) {
    work w = {.kernel = kernel, .dtype = rondo__cuda_input(kernel, 0)->dtype};
    w.bytes = rondo_dtype_get_bytes(w.dtype);
    if (!read_form(&w)) {
        return;
    }
    const rondo__attention_form *f = &w.form;
    const bool is_short = f->mask.input >= 0 && f->mask_columns < f->n;
    w.sight = (rondo__cuda_sight){
        .is_partial = f->is_causal || f->left >= 0 || f->right >= 0 || is_short ||
                      f->lengths != RONDO__LENGTHS_NONE,
        .lengths = f->lengths,
        .lengths_input = f->lengths_input,
        .total_input = f->total_input,
        .fresh = f->fresh,
        .past = f->past,
        .keys = f->n,
        .columns = is_short ? f->mask_columns : f->n,
        .is_causal = f->is_causal,
        .left = f->left,
        .right = f->right,
    };
    if (f->q.input == RONDO__ATTENTION_PROJECTED) {
        project(&w);
    }
    place_queries(&w);
    place_keys(&w, 1);
    place_keys(&w, 2);
    place_mask(&w);
    add_attention(&w);
    if (f->shown.output >= 0 && rondo__cuda_wants_output(kernel, (size_t)f->shown.output)) {
        add_scores(&w);
    }
}
