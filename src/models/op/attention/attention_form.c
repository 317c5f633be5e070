// op/attention/attention_form.c — what all attention ops share, and their reference; see
// attention_form.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/attention/attention_form.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"
#include "op/half.h"
#include "op/reference.h"

rondo__attention_form rondo__attention_form_begin(void) {
    const rondo__attention_operand none = {.input = RONDO__ATTENTION_ABSENT};
    return (rondo__attention_form){
        .q = none,
        .k = none,
        .v = none,
        .past_k = none,
        .past_v = none,
        .present_k = none,
        .present_v = none,
        .mask = none,
        .bias = RONDO__ATTENTION_ABSENT,
        .norm.gain = {RONDO__ATTENTION_ABSENT, RONDO__ATTENTION_ABSENT},
        .angles.cosines = RONDO__ATTENTION_ABSENT,
        .angles.sines = RONDO__ATTENTION_ABSENT,
        .angles.places = RONDO__ATTENTION_ABSENT,
        .lengths_input = RONDO__ATTENTION_ABSENT,
        .total_input = RONDO__ATTENTION_ABSENT,
        .padding.input = RONDO__ATTENTION_ABSENT,
        .sink = RONDO__ATTENTION_ABSENT,
        .shown.output = RONDO__ATTENTION_ABSENT,
        .left = -1,
        .right = -1,
        .shown.unseen = -INFINITY,
    };
}

// Of extents of several inputs, which nobody has multiplied yet: no tensor is as large as the most.
static int64_t multiply(int64_t a, int64_t b) {
    int64_t product;
    return rondo__mul_i64(a, b, &product) ? product : INT64_MAX;
}

void rondo__attention_set_dense(rondo__attention_operand *operand, int32_t input, bool is_rows,
                                int64_t heads, int64_t rows, int64_t width) {
    operand->input = input;
    operand->at.batch = multiply(multiply(heads, rows), width);
    operand->at.head = is_rows ? width : multiply(rows, width);
    operand->at.row = is_rows ? multiply(heads, width) : width;
    operand->at.column = 1;
    operand->at.offset = 0;
}

bool rondo__attention_set_mask(rondo__attention_form *form, int32_t input,
                               const rondo_shape *mask) {
    const int64_t extents[4] = {form->batch, form->heads, form->m, form->mask_columns};
    int64_t strides[4] = {0}, stride = 1;
    for (int32_t i = 0; i < mask->rank; i++) {
        const int64_t extent = mask->extent[mask->rank - 1 - i];
        if (i > 3 ? extent != 1 : extent != 1 && extent != extents[3 - i]) {
            return false;
        }
        if (i < 4 && extent != 1) {
            strides[3 - i] = stride;
        }
        stride *= extent;
    }
    form->mask.input = input;
    form->mask.at = (rondo__attention_strides){strides[0], strides[1], strides[2], strides[3], 0};
    return true;
}

// ---- the reference ----------------------------------------------------------------------------

typedef struct arrays {
    const rondo__attention_form *form;
    rondo__compute *compute;
    rondo__scratch scratch;
    const double *inputs[32];  // widened, as far as they were asked for
    const double *projected;
    double *q, *k, *v;  // [batch, heads, rows, width]; k and v of n rows
    double *y, *scores_out;
    double *scores;  // of one row
} arrays;

static const double *get_input(arrays *x, int32_t input) {
    if (input == RONDO__ATTENTION_PROJECTED) {
        return x->projected;
    }
    if (input < 0) {
        return NULL;
    }
    if (x->inputs[input] == NULL) {
        x->inputs[input] = rondo__scratch_widen(&x->scratch, x->compute->inputs[input]);
    }
    return x->inputs[input];
}

static int64_t find(const rondo__attention_strides *at, int64_t batch, int64_t head, int64_t row) {
    return at->offset + batch * at->batch + head * at->head + row * at->row;
}

static int64_t read_whole(const arrays *x, int32_t input, int64_t index, int64_t without) {
    return input >= 0 ? rondo__tensor_get_int(x->compute->inputs[input], index) : without;
}

static rondo__attention_extent get_extent(const arrays *x, int64_t batch) {
    const rondo__attention_form *f = x->form;
    return rondo__attention_get_extent(f, read_whole(x, f->lengths_input, batch, 0),
                                       read_whole(x, f->total_input, 0, -1));
}

rondo_status rondo__attention_check_length(const rondo__op *op, const rondo__attention_form *form,
                                           int64_t batch, int64_t length, int64_t total) {
    const bool is_last = form->lengths == RONDO__LENGTHS_LAST;
    if (length < 0 || length > form->n - (is_last ? 1 : 0)) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "batch %lld has length %lld, and there is room for %lld keys",
                             (long long)batch, (long long)length, (long long)form->n);
    }
    if (is_last && total < form->fresh) {
        return RONDO_OP_FAIL(op, BAD_DATA, "total_sequence_length is %lld, with %lld new rows",
                             (long long)total, (long long)form->fresh);
    }
    // A first prompt may be padded; later each batch has all of its new rows.
    return is_last && total > form->fresh && length + 1 < form->fresh
               ? RONDO_OP_FAIL(op, BAD_DATA,
                               "batch %lld has seqlens_k %lld, too small for %lld new rows behind "
                               "a past",
                               (long long)batch, (long long)length, (long long)form->fresh)
               : RONDO_STATUS_OK;
}

static rondo_status check_lengths(const arrays *x) {
    const rondo__attention_form *f = x->form;
    for (int64_t b = 0; f->lengths_input >= 0 && b < f->batch; b++) {
        RETURN_IF_ERROR(rondo__attention_check_length(x->compute->op, f, b,
                                                      read_whole(x, f->lengths_input, b, 0),
                                                      read_whole(x, f->total_input, 0, -1)));
    }
    return RONDO_STATUS_OK;
}

static void scale_by_root(double *row, int64_t width, const double *gain, double epsilon) {
    double squares = 0.0;
    for (int64_t i = 0; i < width; i++) {
        squares += row[i] * row[i];
    }
    const double inverse = 1.0 / sqrt(squares / (double)width + epsilon);
    for (int64_t i = 0; i < width; i++) {
        row[i] *= inverse * gain[i];
    }
}

// The position of a fresh row, for its angle. A first prompt that is padded at its end has
// positions that no row sees.
static int64_t get_place(const arrays *x, const rondo__attention_extent *e, int64_t batch,
                         int64_t row) {
    const rondo__attention_form *f = x->form;
    if (f->angles.places < 0) {
        return e->place + row;
    }
    const rondo_tensor *places = x->compute->inputs[f->angles.places];
    return f->angles.has_one_place ? rondo__tensor_get_int(places, 0) + row
                                   : rondo__tensor_get_int(places, batch * f->fresh + row);
}

static rondo_status turn_row(arrays *x, double *row, int64_t place) {
    const rondo__attention_form *f = x->form;
    const int64_t pairs = f->angles.turned / 2;
    if (place < 0 || place >= f->angles.rows) {
        return RONDO_OP_FAIL(x->compute->op, BAD_DATA, "position %lld is outside [0, %lld)",
                             (long long)place, (long long)f->angles.rows);
    }
    const double *cosines = get_input(x, f->angles.cosines) + place * pairs;
    const double *sines = get_input(x, f->angles.sines) + place * pairs;
    for (int64_t i = 0; i < pairs; i++) {
        double *a = row + (f->angles.is_interleaved ? 2 * i : i);
        double *b = f->angles.is_interleaved ? a + 1 : a + pairs;
        const double real = cosines[i] * *a - sines[i] * *b;
        *b = sines[i] * *a + cosines[i] * *b;
        *a = real;
    }
    return RONDO_STATUS_OK;
}

// Where one row of q, k or v comes from, and what is done to it. `which`: 0 to 2.
static rondo_status make_row(arrays *x, int which, int64_t batch, int64_t head, int64_t row,
                             const rondo__attention_extent *e, double *to) {
    const rondo__attention_form *f = x->form;
    const rondo__attention_operand *from = which == 0 ? &f->q : which == 1 ? &f->k : &f->v;
    const int64_t width = which == 2 ? f->v_width : f->width;
    const double *source = get_input(x, from->input) + find(&from->at, batch, head, row);
    const double *bias = get_input(x, f->bias);
    for (int64_t i = 0; i < width; i++) {
        to[i] = source[i * from->at.column];
        to[i] += bias != NULL && f->bias_at[which] >= 0 ? bias[f->bias_at[which] + head * width + i]
                                                        : 0.0;
    }
    const int32_t gain = which == 0   ? f->norm.gain[0]
                         : which == 1 ? f->norm.gain[1]
                                      : RONDO__ATTENTION_ABSENT;
    if (gain >= 0) {
        scale_by_root(to, width, get_input(x, gain),
                      (double)(which == 0 ? f->norm.epsilon[0] : f->norm.epsilon[1]));
    }
    if (which < 2 && f->angles.cosines >= 0) {
        const bool is_seen = e->place + row < e->keys || f->angles.places >= 0;
        return turn_row(x, to, is_seen ? get_place(x, e, batch, row) : 0);
    }
    return RONDO_STATUS_OK;
}

// Rows of the past, and behind those that count the fresh ones.
static rondo_status make_keys(arrays *x, int which, int64_t batch, int64_t head) {
    const rondo__attention_form *f = x->form;
    const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
    const int64_t width = which == 1 ? f->width : f->v_width;
    const rondo__attention_extent e = get_extent(x, batch);
    double *to = (which == 1 ? x->k : x->v) + (batch * f->kv_heads + head) * f->n * width;
    for (int64_t row = 0; past->input >= 0 && row < f->past && row < f->n; row++) {
        const double *from = get_input(x, past->input) + find(&past->at, batch, head, row);
        for (int64_t i = 0; i < width; i++) {
            to[row * width + i] = from[i];
        }
    }
    for (int64_t row = 0; row < f->fresh && e.past + row < f->n; row++) {
        RETURN_IF_ERROR(make_row(x, which, batch, head, row, &e, to + (e.past + row) * width));
    }
    return RONDO_STATUS_OK;
}

static double round_to(rondo_dtype dtype, double value) {
    if (dtype == RONDO_DTYPE_F32) {
        return (double)(float)value;
    }
    if (dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16) {
        float wide = (float)value;
        uint16_t bits;
        rondo__half_from_float_array(dtype, &wide, &bits, 1);
        rondo__half_to_float_array(dtype, &bits, &wide, 1);
        return (double)wide;
    }
    return value;
}

// What the padding mask takes away of key `key`.
static bool is_padding(const arrays *x, int64_t batch, int64_t row, int64_t key) {
    const rondo__attention_form *f = x->form;
    const int32_t input = f->padding.input;
    switch (f->padding.kind) {
        case RONDO__PADDING_ENDS:
            return key >= read_whole(x, input, batch, 0);
        case RONDO__PADDING_RANGES:
            return key >= read_whole(x, input, batch, 0) ||
                   key < read_whole(x, input, f->batch + batch, 0);
        case RONDO__PADDING_KEYS:
            return key < f->padding.columns &&
                   read_whole(x, input, batch * f->padding.columns + key, 0) == 0;
        case RONDO__PADDING_SCORES:
            return key < f->padding.columns &&
                   read_whole(x, input, (batch * f->m + row) * f->padding.columns + key, 0) == 0;
        default:
            return false;
    }
}

// The score of one key in the kind that is asked for.
static double get_score(arrays *x, int64_t batch, int64_t head, int64_t row, int64_t key,
                        rondo__attention_scores kind) {
    const rondo__attention_form *f = x->form;
    const int64_t kv_head = head / (f->heads / f->kv_heads);
    const double *q = x->q + ((batch * f->heads + head) * f->m + row) * f->width;
    const double *k = x->k + ((batch * f->kv_heads + kv_head) * f->n + key) * f->width;
    double score = 0.0;
    for (int64_t i = 0; i < f->width; i++) {
        score += q[i] * k[i];
    }
    score *= (double)f->scale;
    if (kind == RONDO__SCORES_RAW) {
        return score;
    }
    if (f->softcap > 0.0f) {
        score = (double)f->softcap * tanh(score / (double)f->softcap);
    }
    if (kind == RONDO__SCORES_CAPPED) {
        return score;
    }
    if (f->mask.input >= 0 && key < f->mask_columns) {
        const double added = get_input(
            x, f->mask.input)[find(&f->mask.at, batch, head, row) + key * f->mask.at.column];
        if (f->mask_is_bool ? added == 0.0 : added == -(double)INFINITY) {
            return -(double)INFINITY;  // whatever the score is, NaN too
        }
        score += f->mask_is_bool ? 0.0 : added;
    }
    return score + (is_padding(x, batch, row, key) ? (double)f->padding.filter : 0.0);
}

// The weights of one row's keys, in x->scores.
static void weigh_row(arrays *x, int64_t batch, int64_t head, int64_t row, int64_t begin,
                      int64_t end) {
    const rondo__attention_form *f = x->form;
    const double *sinks = get_input(x, f->sink);
    const bool has_sink = sinks != NULL || f->is_smooth;
    const double sink = sinks != NULL ? sinks[head] : 0.0;
    double peak = has_sink ? sink : -(double)INFINITY;
    for (int64_t j = begin; j < end; j++) {
        double score = get_score(x, batch, head, row, j, RONDO__SCORES_MASKED);
        score = round_to(f->precision, score);
        x->scores[j] = score;
        peak = rondo__maximum(score, peak);
    }
    if (peak == -(double)INFINITY && f->empty_is_zero) {
        peak = 0.0;
    }
    double sum = has_sink ? exp(sink - peak) : 0.0;
    for (int64_t j = begin; j < end; j++) {
        x->scores[j] = exp(x->scores[j] - peak);
        sum += x->scores[j];
    }
    sum = sum == 0.0 && f->empty_is_zero ? 1.0 : sum;
    for (int64_t j = 0; j < f->n; j++) {
        x->scores[j] = j < begin || j >= end ? 0.0 : round_to(f->precision, x->scores[j] / sum);
    }
}

static void run_row(arrays *x, int64_t batch, int64_t head, int64_t row) {
    const rondo__attention_form *f = x->form;
    const int64_t kv_head = head / (f->heads / f->kv_heads);
    const rondo__attention_extent e = get_extent(x, batch);
    const double *v = x->v + (batch * f->kv_heads + kv_head) * f->n * f->v_width;
    int64_t begin, end;
    rondo__attention_get_sight(f, &e, row, &begin, &end);
    weigh_row(x, batch, head, row, begin, end);
    double *y = x->y + find(&f->y.at, batch, head, row);
    for (int64_t i = 0; i < f->v_width; i++) {
        double total = 0.0;
        for (int64_t j = begin; j < end; j++) {
            total += x->scores[j] * v[j * f->v_width + i];
        }
        y[i] = total;
    }
    double *shown = x->scores_out;
    shown = shown != NULL ? shown + ((batch * f->heads + head) * f->m + row) * f->n : NULL;
    for (int64_t j = 0; shown != NULL && j < f->n; j++) {
        const bool is_seen = (j >= begin && j < end) || f->shown.kind != RONDO__SCORES_MASKED;
        shown[j] = f->shown.kind == RONDO__SCORES_SOFTMAX ? x->scores[j]
                   : is_seen ? get_score(x, batch, head, row, j, f->shown.kind)
                             : (double)f->shown.unseen;
    }
}

// Copies k or v, [batch, kv_heads, n, width], into an output as it lies there.
static void write_present(const rondo__attention_form *f, const rondo__attention_operand *to,
                          const double *from, int64_t width, double *present) {
    for (int64_t b = 0; b < f->batch; b++) {
        for (int64_t h = 0; h < f->kv_heads; h++) {
            for (int64_t row = 0; row < f->n; row++) {
                for (int64_t i = 0; i < width; i++) {
                    present[find(&to->at, b, h, row) + i] =
                        from[((b * f->kv_heads + h) * f->n + row) * width + i];
                }
            }
        }
    }
}

static void narrow_present(arrays *x) {
    const rondo__attention_form *f = x->form;
    for (int which = 1; which <= 2; which++) {
        const rondo__attention_operand *to = which == 1 ? &f->present_k : &f->present_v;
        // One output may hold both: the second brings it.
        if (to->input < 0 || (which == 1 && f->present_v.input == to->input)) {
            continue;
        }
        const int64_t count = rondo_shape_get_count(&x->compute->inferred[to->input].shape);
        double *present = rondo__scratch_create(&x->scratch, count);
        if (present == NULL) {
            return;
        }
        if (which == 2 && f->present_k.input == to->input) {
            write_present(f, &f->present_k, x->k, f->width, present);
        }
        write_present(f, to, which == 1 ? x->k : x->v, which == 1 ? f->width : f->v_width, present);
        x->scratch.status = rondo__narrow(x->compute, (size_t)to->input, present);
        if (x->scratch.status != RONDO_STATUS_OK) {
            return;
        }
    }
}

static rondo_status make_operands(arrays *x) {
    const rondo__attention_form *f = x->form;
    for (int64_t b = 0; b < f->batch; b++) {
        const rondo__attention_extent e = get_extent(x, b);
        for (int64_t h = 0; h < f->heads; h++) {
            for (int64_t row = 0; row < f->m; row++) {
                RETURN_IF_ERROR(make_row(x, 0, b, h, row, &e,
                                         x->q + ((b * f->heads + h) * f->m + row) * f->width));
            }
        }
        for (int64_t h = 0; h < f->kv_heads; h++) {
            RETURN_IF_ERROR(make_keys(x, 1, b, h));
            RETURN_IF_ERROR(make_keys(x, 2, b, h));
        }
    }
    return RONDO_STATUS_OK;
}

// All inputs that hold numbers, once, so that no row finds memory exhausted.
static void widen_inputs(arrays *x) {
    const rondo__attention_form *f = x->form;
    const int32_t inputs[] = {f->q.input,      f->k.input,        f->v.input,      f->past_k.input,
                              f->past_v.input, f->bias,           f->mask.input,   f->norm.gain[0],
                              f->norm.gain[1], f->angles.cosines, f->angles.sines, f->sink};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        (void)get_input(x, inputs[i]);
    }
}

rondo_status rondo__attention_compute(rondo__compute *compute, const rondo__attention_form *form,
                                      const double *projected) {
    const rondo__attention_form *f = form;
    arrays x = {.form = form, .compute = compute, .projected = projected};
    RETURN_IF_ERROR(check_lengths(&x));
    const bool shows =
        f->shown.output >= 0 && rondo__compute_wants_output(compute, (size_t)f->shown.output);
    x.q = rondo__scratch_create(&x.scratch, f->batch * f->heads * f->m * f->width);
    x.k = rondo__scratch_create(&x.scratch, f->batch * f->kv_heads * f->n * f->width);
    x.v = rondo__scratch_create(&x.scratch, f->batch * f->kv_heads * f->n * f->v_width);
    x.y = rondo__scratch_create(&x.scratch, f->batch * f->heads * f->m * f->v_width);
    x.scores = rondo__scratch_create(&x.scratch, f->n);
    x.scores_out =
        shows ? rondo__scratch_create(&x.scratch, f->batch * f->heads * f->m * f->n) : NULL;
    widen_inputs(&x);
    if (x.scratch.status == RONDO_STATUS_OK) {
        x.scratch.status = make_operands(&x);
    }
    for (int64_t i = 0; x.scratch.status == RONDO_STATUS_OK && i < f->batch * f->heads * f->m;
         i++) {
        run_row(&x, i / f->m / f->heads, i / f->m % f->heads, i % f->m);
    }
    if (x.scratch.status == RONDO_STATUS_OK) {
        x.scratch.status = rondo__narrow(compute, 0, x.y);
    }
    if (x.scratch.status == RONDO_STATUS_OK && shows) {
        x.scratch.status = rondo__narrow(compute, (size_t)f->shown.output, x.scores_out);
    }
    if (x.scratch.status == RONDO_STATUS_OK) {
        narrow_present(&x);
    }
    return rondo__scratch_end(&x.scratch);
}
