// kernel/host/product/host_quantize_lstm.c — com.microsoft.DynamicQuantizeLSTM with constant
// weights, and without peepholes, clip or coupled gates. Others take the reference
// (op/recurrent/quantize_lstm.h).
//
// The products and their scaling are the reference's to the bit; the gates are vector loops, within
// a few last bits. The two directions of a bidirectional layer run on two threads; otherwise each
// product is cut by its columns.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/byte_matrix.h"
#include "op/math/matrix.h"
#include "op/recurrent/quantize_lstm.h"

enum { PARALLEL_MULTIPLY_ADDS = 512 * 1024 };

// W or R.
typedef struct packed_weights {
    rondo__byte_form form;
    const void *matrices;  // of all directions
    int32_t *zeros;        // [directions][columns of all panels]
    bool has_zeros;
    bool has_scale_for_each;
} packed_weights;

typedef struct lstm_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__quantize_lstm plan;
    packed_weights w, r;
    bool is_parallel;  // directions
    size_t direction_bytes;
} lstm_kernel;

// Work of one direction, in this order.
typedef struct walk {
    float *from_x;   // [seq * batch, 4 * hidden]
    float *gates;    // [batch, 4 * hidden]
    float *h, *c;    // [batch, hidden]
    float *scales;   // of a product, [columns of all panels]
    float *bias;     // [4 * hidden], both halves
    uint8_t *steps;  // of the larger of x and h
    void *rows;      // those, prepared
} walk;

static size_t place_walk(const lstm_kernel *kernel, char *work, walk *out_walk) {
    const rondo__quantize_lstm *plan = &kernel->plan;
    const size_t columns =
        (size_t)(kernel->w.form.panel_count * kernel->w.form.simd->panel_columns);
    const size_t row = 4 * (size_t)plan->hidden * sizeof(float);
    const size_t state = (size_t)(plan->batch * plan->hidden) * sizeof(float);
    const int64_t x_rows = plan->seq * plan->batch;
    const size_t x = (size_t)(x_rows * plan->input);
    const size_t h = (size_t)(plan->batch * plan->hidden);
    const rondo__byte_simd *simd = kernel->w.form.simd;
    const size_t x_bytes = rondo__byte_rows_get_bytes(simd, plan->input, x_rows);
    const size_t h_bytes =
        rondo__byte_rows_get_bytes(kernel->r.form.simd, plan->hidden, plan->batch);
    const size_t sizes[] = {(size_t)x_rows * row,
                            (size_t)plan->batch * row,
                            state,
                            state,
                            columns * sizeof(float),
                            row,
                            x > h ? x : h,
                            x_bytes > h_bytes ? x_bytes : h_bytes};
    void *places[sizeof sizes / sizeof sizes[0]];
    size_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        places[i] = work != NULL ? work + total : NULL;
        total += rondo__align_up(sizes[i], 64);
    }
    *out_walk = (walk){places[0], places[1], places[2], places[3],
                       places[4], places[5], places[6], places[7]};
    return total;
}

// ---- running ----------------------------------------------------------------------------------

static void find_range(const rondo__byte_simd *simd, const float *values, int64_t count,
                       float *out_low, float *out_high) {
    if (simd->range(values, count, out_low, out_high)) {
        return;
    }
    *out_low = 0.0f;
    *out_high = 0.0f;
    for (int64_t i = 0; i < count; ++i) {  // NaN is no end of a range
        *out_low = values[i] < *out_low ? values[i] : *out_low;
        *out_high = values[i] > *out_high ? values[i] : *out_high;
    }
}

// y [rows, 4 * hidden] = values [rows, depth] x weights of direction d, on quantized values, +
// addend.
static void multiply(const packed_weights *weights, const walk *w, int32_t d, const float *scales,
                     const float *values, int64_t rows, const float *addend, float *y) {
    const rondo__byte_form *form = &weights->form;
    const rondo__byte_simd *simd = form->simd;
    float low, high;
    find_range(simd, values, rows * form->k, &low, &high);
    const float scale = high == low ? 1.0f : (high - low) / 255.0f;
    const int32_t zero = (int32_t)rintf(fminf(fmaxf(-low / scale, 0.0f), 255.0f));
    const uint8_t step_of_0 = (uint8_t)zero;
    simd->quantize(values, &scale, 0, &zero, false, rows * form->k, w->steps);
    const float all = scale * scales[0];
    for (int64_t n = 0; n < form->n; ++n) {
        w->scales[n] = all;
    }
    for (int64_t n = 0; weights->has_scale_for_each && n < form->n; ++n) {
        w->scales[n] = scale * scales[n];
    }
    const rondo__byte_rows prepared = rondo__byte_rows_prepare(
        simd, w->steps, false, form->k, rows, &step_of_0, 1, weights->has_zeros, w->rows);
    const rondo__byte_product product = {
        .form = form,
        .matrix = (const char *)weights->matrices + (size_t)d * form->matrix_bytes,
        .b_zeros = weights->has_zeros ? weights->zeros + d * form->panel_count * simd->panel_columns
                                      : NULL,
        .a = &prepared,
        .rows = rows,
        .scales = w->scales,
        .addend = addend,
        .addend_row = form->n,
        .y = y,
        .y_row = form->n,
    };
    rondo__byte_product_run(&product);
}

// Gates i, o, f, c of one row; h and c are updated in place.
static void finish_row(const lstm_kernel *kernel, const float *bias, float *gates, float *h,
                       float *c) {
    const rondo__simd *simd = kernel->simd;
    const int64_t hidden = kernel->plan.hidden;
    if (bias != NULL) {
        simd->binary[RONDO__SCALAR_Add](gates, bias, gates, 4 * hidden);
    }
    simd->lstm_step(gates, h, c, hidden);
}

static int64_t get_length(const lstm_kernel *kernel, const int32_t *lengths, int64_t n) {
    return lengths != NULL ? lengths[n] : kernel->plan.seq;
}

// Step i of a direction for the whole batch.
static void run_step(const lstm_kernel *kernel, int32_t d, int64_t i, const walk *w,
                     const float *r_scales, const int32_t *lengths, const float *bias, float *y) {
    const rondo__quantize_lstm *plan = &kernel->plan;
    const int64_t hidden = plan->hidden, columns = 4 * hidden;
    const float *from_x = w->from_x;
    if (plan->batch > 1) {
        // Sequences of several lengths end, and when reversed begin, at different positions.
        for (int64_t n = 0; n < plan->batch; ++n) {
            const int64_t length = get_length(kernel, lengths, n);
            const int64_t t = plan->is_reverse[d] && i < length ? length - 1 - i : i;
            memcpy(w->gates + n * columns, w->from_x + (t * plan->batch + n) * columns,
                   (size_t)columns * sizeof(float));
        }
        from_x = w->gates;
    } else {
        const int64_t length = get_length(kernel, lengths, 0);
        from_x += (plan->is_reverse[d] ? length - 1 - i : i) * columns;
    }
    multiply(&kernel->r, w, d, r_scales, w->h, plan->batch, from_x, w->gates);
    for (int64_t n = 0; n < plan->batch; ++n) {
        const int64_t length = get_length(kernel, lengths, n);
        const int64_t t = plan->is_reverse[d] ? length - 1 - i : i;
        if (i >= length) {
            continue;
        }
        finish_row(kernel, bias, w->gates + n * columns, w->h + n * hidden, w->c + n * hidden);
        if (y != NULL) {
            memcpy(y + ((t * plan->directions + d) * plan->batch + n) * hidden, w->h + n * hidden,
                   (size_t)hidden * sizeof(float));
        }
    }
}

static void run_direction(const lstm_kernel *kernel, int32_t d, const void *const *inputs,
                          void *const *outputs, void *workspace) {
    walk places;
    const walk *const w = &places;
    (void)place_walk(kernel, (char *)workspace + (size_t)d * kernel->direction_bytes, &places);
    const rondo__quantize_lstm *plan = &kernel->plan;
    const int64_t columns = 4 * plan->hidden;
    const int64_t state = plan->batch * plan->hidden;
    const int32_t *lengths = inputs[RONDO__QLSTM_LENGTHS];
    const float *b = inputs[RONDO__QLSTM_B];
    const float *w_scales = inputs[RONDO__QLSTM_W_SCALE], *r_scales = inputs[RONDO__QLSTM_R_SCALE];
    const float *initial[2] = {inputs[RONDO__QLSTM_INITIAL_H], inputs[RONDO__QLSTM_INITIAL_C]};
    float *const states[2] = {w->h, w->c};
    for (int i = 0; i < 2; ++i) {
        memset(states[i], 0, (size_t)state * sizeof(float));
        if (initial[i] != NULL) {
            memcpy(states[i], initial[i] + d * state, (size_t)state * sizeof(float));
        }
    }
    for (int64_t i = 0; b != NULL && i < columns; ++i) {
        w->bias[i] = b[d * 2 * columns + i] + b[(d * 2 + 1) * columns + i];
    }
    int64_t longest = lengths != NULL ? 0 : plan->seq;
    for (int64_t n = 0; lengths != NULL && n < plan->batch; ++n) {
        longest = lengths[n] > longest ? lengths[n] : longest;
    }
    // Steps that no sequence reaches have no say in the scale.
    multiply(&kernel->w, w, d, w_scales + d * (plan->has_scale_for_each[0] ? columns : 1),
             inputs[RONDO__QLSTM_X], longest * plan->batch, NULL, w->from_x);
    for (int64_t i = 0; i < longest; ++i) {
        run_step(kernel, d, i, w, r_scales + d * (plan->has_scale_for_each[1] ? columns : 1),
                 lengths, b != NULL ? w->bias : NULL, outputs[0]);
    }
    for (int i = 0; i < 2; ++i) {
        if (outputs[1 + i] != NULL) {
            memcpy((float *)outputs[1 + i] + d * state, states[i], (size_t)state * sizeof(float));
        }
    }
}

typedef struct lstm_run {
    const lstm_kernel *kernel;
    const void *const *inputs;
    void *const *outputs;
    void *workspace;
} lstm_run;

static void run_directions(void *data, int64_t first, int64_t end) {
    const lstm_run *run = data;
    for (int64_t d = first; d < end; ++d) {
        run_direction(run->kernel, (int32_t)d, run->inputs, run->outputs, run->workspace);
    }
}

static rondo_status run_lstm(rondo__host_kernel *head, const void *const *given,
                             void *const *wanted, void *workspace) {
    const lstm_kernel *kernel = (const lstm_kernel *)head;
    const rondo__quantize_lstm *plan = &kernel->plan;
    const void *inputs[RONDO__QLSTM_INPUT_COUNT] = {NULL};
    void *outputs[3] = {NULL};
    for (uint32_t i = 0; i < head->input_count; ++i) {
        inputs[i] = given[i];
    }
    for (uint32_t i = 0; i < head->output_count; ++i) {
        outputs[i] = wanted[i];
    }
    const int32_t *lengths = inputs[RONDO__QLSTM_LENGTHS];
    RETURN_IF_ERROR(rondo__quantize_lstm_check_lengths(head->op, plan, lengths));
    if (outputs[0] != NULL && lengths != NULL) {
        // Behind the end of a shorter sequence stand zeros.
        memset(outputs[0], 0,
               (size_t)(plan->seq * plan->directions * plan->batch * plan->hidden) * sizeof(float));
    }
    lstm_run run = {kernel, inputs, outputs, workspace};
    rondo__workers_loop(plan->directions, kernel->is_parallel ? 1 : plan->directions,
                        run_directions, &run);
    return RONDO_STATUS_OK;
}

static void deinit_lstm(rondo__host_kernel *head) {
    lstm_kernel *kernel = (lstm_kernel *)head;
    rondo__free(kernel->w.zeros);
    rondo__free(kernel->r.zeros);
}

// ---- preparing --------------------------------------------------------------------------------

// Packs W or R of all directions, and spreads its zero points.
static rondo_status init_weights(const rondo__kernel_request *request,
                                 const rondo__quantize_lstm *plan, size_t input, size_t zero_input,
                                 int64_t depth, packed_weights *weights) {
    const rondo_tensor *constant = request->inputs[input].constant;
    const int64_t n = 4 * plan->hidden;
    const rondo__matrix_places places = {
        .step = depth * n, .row = n, .column = 1, .count = plan->directions, .k = depth, .n = n};
    weights->form = rondo__byte_form_make(rondo__byte_simd_choose(constant), depth, n,
                                          constant->dtype == RONDO_DTYPE_I8, true);
    const int64_t columns = weights->form.panel_count * weights->form.simd->panel_columns;
    weights->zeros = rondo__calloc((size_t)(plan->directions * columns), sizeof(int32_t));
    if (weights->zeros == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_tensor *zeros =
        rondo__host_has_input(request, zero_input) ? request->inputs[zero_input].constant : NULL;
    const int64_t count = zeros != NULL && zeros->shape.rank == 2 ? n : 1;
    for (int64_t d = 0; d < plan->directions; ++d) {
        const uint8_t *values = zeros != NULL ? (const uint8_t *)zeros->data + d * count : NULL;
        const bool is_any =
            rondo__byte_spread_zeros(&weights->form, values, count, weights->zeros + d * columns);
        weights->has_zeros = weights->has_zeros || is_any;
    }
    return rondo__byte_pack_constant(request->weights, &weights->form, constant, &places,
                                     &weights->matrices);
}

static rondo_status init_kernel(const rondo__kernel_request *request, lstm_kernel *kernel) {
    rondo__quantize_lstm *plan = &kernel->plan;
    RETURN_IF_ERROR(
        rondo__quantize_lstm_plan(request->op, request->inputs, request->input_count, plan));
    if (plan->has_coupled_gates || isfinite(plan->clip) ||
        plan->input > RONDO__BYTE_PRODUCT_K_MAX || plan->hidden > RONDO__BYTE_PRODUCT_K_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    kernel->simd = rondo__simd_get();
    kernel->w.has_scale_for_each = plan->has_scale_for_each[0];
    kernel->r.has_scale_for_each = plan->has_scale_for_each[1];
    RETURN_IF_ERROR(
        init_weights(request, plan, RONDO__QLSTM_W, RONDO__QLSTM_W_ZERO, plan->input, &kernel->w));
    RETURN_IF_ERROR(
        init_weights(request, plan, RONDO__QLSTM_R, RONDO__QLSTM_R_ZERO, plan->hidden, &kernel->r));
    const double work = (double)plan->seq * (double)plan->batch * 4.0 * (double)plan->hidden *
                        (double)(plan->input + plan->hidden);
    kernel->is_parallel = plan->directions > 1 && work > PARALLEL_MULTIPLY_ADDS;
    walk ignored;
    kernel->direction_bytes = place_walk(kernel, NULL, &ignored);
    kernel->head.base.workspace_bytes = (size_t)plan->directions * kernel->direction_bytes;
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_quantize_lstm(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel) {
    static const size_t kept[] = {RONDO__QLSTM_W, RONDO__QLSTM_R, RONDO__QLSTM_W_ZERO,
                                  RONDO__QLSTM_R_ZERO};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; ++i) {
        if (rondo__host_has_input(request, kept[i]) && request->inputs[kept[i]].constant == NULL) {
            return RONDO_STATUS_UNSUPPORTED;
        }
    }
    if (rondo__host_has_input(request, RONDO__QLSTM_P)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(lstm_kernel), "simd", run_lstm, deinit_lstm);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = init_kernel(request, (lstm_kernel *)head);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
