// kernel/host/product/host_attention.c — the ops of op/attention on f32, in two ways:
//
//   few rows    a row of q times each row of k, then weights times rows of v, where they lie: a
//               step of decoding reads what the cache holds once, and nothing of it is moved
//   many rows   k turned and v are packed into panels (packed_matrix.h), and blocks of rows are
//               products with a softmax between them
//
// Heads of q that share one of k and v count as rows of it. Before that, rows of q, k and v get
// their bias, are normalised and turned; rows of the past are copied unless the present is the same
// memory.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "op/attention/attention_form.h"

enum {
    PANEL_ROWS_LEAST = 8,  // with fewer, to pack costs more than it saves
    KEYS = 128,            // that few rows look at before the next of them
    ALIGNMENT = 64,
};

// A tensor's floats, and how they lie.
typedef struct place {
    float *data;
    rondo__attention_strides at;
} place;

typedef struct attention_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    rondo__attention_form form;
    int64_t rows;        // of the heads that share one of k and v
    int64_t block_rows;  // that are one unit of work
    int64_t blocks, parts;
    int64_t k_floats, v_floats;  // of the panels of one head
    bool has_panels, makes_q;
    bool makes[3], keeps[3];  // of k and v: rows are moved; into an output
    rondo__packed_matrix projection;
    // offsets of floats in the workspace
    int64_t projected_at, q_at, store_at[3], panels_at, part_at, part_floats;
} attention_kernel;

typedef struct attention_run {
    const attention_kernel *kernel;
    const void *const *inputs;
    float *work;
    place q, k, v;
    float *y;
} attention_run;

// ---- what data says ---------------------------------------------------------------------------

// What the inputs say of a batch, as rondo__attention_get_extent wants it.
static int64_t get_length(const attention_run *run, int64_t batch, int64_t *out_total) {
    const rondo__attention_form *f = &run->kernel->form;
    *out_total = -1;
    if (f->lengths == RONDO__LENGTHS_VALID) {
        return ((const int64_t *)run->inputs[f->lengths_input])[batch];
    }
    if (f->lengths == RONDO__LENGTHS_LAST) {
        *out_total = *(const int32_t *)run->inputs[f->total_input];
        return ((const int32_t *)run->inputs[f->lengths_input])[batch];
    }
    return 0;
}

static rondo__attention_extent get_extent(const attention_run *run, int64_t batch) {
    int64_t total;
    const int64_t length = get_length(run, batch, &total);
    return rondo__attention_get_extent(&run->kernel->form, length, total);
}

static int64_t get_place(const attention_run *run, const rondo__attention_extent *e, int64_t batch,
                         int64_t row) {
    const rondo__attention_form *f = &run->kernel->form;
    if (f->angles.places < 0) {
        return e->place + row < e->keys ? e->place + row : 0;
    }
    const int64_t *places = run->inputs[f->angles.places];
    return f->angles.has_one_place ? places[0] + row : places[batch * f->fresh + row];
}

static rondo_status check_data(const attention_run *run) {
    const rondo__attention_form *f = &run->kernel->form;
    const rondo__op *op = run->kernel->head.op;
    for (int64_t b = 0; b < f->batch && f->lengths != RONDO__LENGTHS_NONE; ++b) {
        int64_t total;
        const int64_t length = get_length(run, b, &total);
        RETURN_IF_ERROR(rondo__attention_check_length(op, f, b, length, total));
    }
    for (int64_t b = 0; b < f->batch && f->angles.cosines >= 0; ++b) {
        const rondo__attention_extent e = get_extent(run, b);
        for (int64_t row = 0; row < f->fresh; ++row) {
            const int64_t at = get_place(run, &e, b, row);
            if (at < 0 || at >= f->angles.rows) {
                return RONDO_OP_FAIL(op, BAD_DATA, "position %lld is outside [0, %lld)",
                                     (long long)at, (long long)f->angles.rows);
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- rows -------------------------------------------------------------------------------------

static float *find(const place *p, int64_t batch, int64_t head, int64_t row) {
    return p->data + batch * p->at.batch + head * p->at.head + row * p->at.row;
}

static place find_operand(const attention_run *run, const rondo__attention_operand *operand) {
    float *base = operand->input == RONDO__ATTENTION_PROJECTED
                      ? run->work + run->kernel->projected_at
                      : (float *)(uintptr_t)run->inputs[operand->input];
    return (place){base + operand->at.offset, operand->at};
}

static void turn_row(const attention_run *run, float *row, int64_t at) {
    const rondo__attention_form *f = &run->kernel->form;
    const int64_t pairs = f->angles.turned / 2;
    const float *cosines = (const float *)run->inputs[f->angles.cosines] + at * pairs;
    const float *sines = (const float *)run->inputs[f->angles.sines] + at * pairs;
    if (!f->angles.is_interleaved) {
        run->kernel->simd->turn(cosines, sines, row, row + pairs, pairs);
        return;
    }
    for (int64_t i = 0; i < pairs; ++i) {
        const float a = row[2 * i], b = row[2 * i + 1];
        row[2 * i] = cosines[i] * a - sines[i] * b;
        row[2 * i + 1] = sines[i] * a + cosines[i] * b;
    }
}

// One row of q, k or v (`which`: 0 to 2) with all that is done to it.
static void make_row(const attention_run *run, int which, const float *from, int64_t head,
                     int64_t at, float *to) {
    const rondo__simd *simd = run->kernel->simd;
    const rondo__attention_form *f = &run->kernel->form;
    const int64_t width = which == 2 ? f->v_width : f->width;
    const int32_t gain = which == 0   ? f->norm.gain[0]
                         : which == 1 ? f->norm.gain[1]
                                      : RONDO__ATTENTION_ABSENT;
    if (f->bias >= 0 && f->bias_at[which] >= 0) {
        const float *bias = (const float *)run->inputs[f->bias] + f->bias_at[which];
        simd->binary[RONDO__SCALAR_Add](from, bias + head * width, to, width);
    } else {
        memcpy(to, from, (size_t)width * sizeof(float));
    }
    if (gain >= 0) {
        double sum, squares;
        simd->moments(to, width, 0.0f, &sum, &squares);
        const float epsilon = which == 0 ? f->norm.epsilon[0] : f->norm.epsilon[1];
        const float scale = 1.0f / sqrtf((float)(squares / (double)width) + epsilon);
        simd->binary_scalar_b[RONDO__SCALAR_Mul](to, &scale, to, width);
        simd->binary[RONDO__SCALAR_Mul](to, run->inputs[gain], to, width);
    }
    if (which < 2 && f->angles.cosines >= 0) {
        turn_row(run, to, at);
    }
}

static void make_queries(void *data, int64_t first, int64_t end) {
    const attention_run *run = data;
    const rondo__attention_form *f = &run->kernel->form;
    const place from = find_operand(run, &f->q);
    for (int64_t i = first; i < end; ++i) {
        const int64_t batch = i / f->heads, head = i % f->heads;
        const rondo__attention_extent e = get_extent(run, batch);
        for (int64_t row = 0; row < f->m; ++row) {
            make_row(run, 0, find(&from, batch, head, row), head, get_place(run, &e, batch, row),
                     find(&run->q, batch, head, row));
        }
    }
}

// Rows of the past around the fresh ones, and zeros behind both.
static void copy_past(const attention_run *run, int which, int64_t batch, int64_t head,
                      const rondo__attention_extent *e) {
    const rondo__attention_form *f = &run->kernel->form;
    const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
    const place *to = which == 1 ? &run->k : &run->v;
    const size_t row_bytes = (size_t)(which == 1 ? f->width : f->v_width) * sizeof(float);
    const int64_t behind = e->past + f->fresh;
    int64_t filled = behind;
    float *target = find(to, batch, head, 0);
    if (f->past > 0) {
        const place from = find_operand(run, past);
        const float *source = find(&from, batch, head, 0);
        if (source == target && rondo__attention_keeps_past(f, which)) {
            return;
        }
        memmove(target, source, (size_t)e->past * row_bytes);
        if (f->past > behind) {
            memcpy(find(to, batch, head, behind), find(&from, batch, head, behind),
                   (size_t)(f->past - behind) * row_bytes);
            filled = f->past;
        }
    }
    if (filled < f->n) {
        memset(find(to, batch, head, filled), 0, (size_t)(f->n - filled) * row_bytes);
    }
}

static void make_keys(void *data, int64_t first, int64_t end) {
    const attention_run *run = data;
    const rondo__attention_form *f = &run->kernel->form;
    for (int64_t i = first; i < end; ++i) {
        const int64_t batch = i / f->kv_heads, head = i % f->kv_heads;
        const rondo__attention_extent e = get_extent(run, batch);
        for (int which = 1; which <= 2; ++which) {
            if (!run->kernel->makes[which]) {
                continue;
            }
            const place from = find_operand(run, which == 1 ? &f->k : &f->v);
            copy_past(run, which, batch, head, &e);
            for (int64_t row = 0; row < f->fresh && e.past + row < f->n; ++row) {
                make_row(run, which, find(&from, batch, head, row), head,
                         f->angles.cosines >= 0 ? get_place(run, &e, batch, row) : 0,
                         find(which == 1 ? &run->k : &run->v, batch, head, e.past + row));
            }
        }
    }
}

// ---- scores -----------------------------------------------------------------------------------

typedef struct seen {
    int64_t first, end;
} seen;

static seen get_seen(const attention_run *run, const rondo__attention_extent *e, int64_t row) {
    seen s;
    rondo__attention_get_sight(&run->kernel->form, e, row % run->kernel->form.m, &s.first, &s.end);
    return s;
}

// What rows `row` to `row + count - 1` see together.
static seen get_all_seen(const attention_run *run, const rondo__attention_extent *e, int64_t row,
                         int64_t count) {
    seen all = {INT64_MAX, 0};
    for (int64_t r = row; r < row + count; ++r) {
        const seen s = get_seen(run, e, r);
        all.first = s.first < s.end && s.first < all.first ? s.first : all.first;
        all.end = s.end > all.end ? s.end : all.end;
    }
    all.first = all.first < all.end ? all.first : all.end;
    return all;
}

static bool is_padding(const attention_run *run, int64_t batch, int64_t row, int64_t key) {
    const rondo__attention_form *f = &run->kernel->form;
    const int32_t *padding = run->inputs[f->padding.input];
    switch (f->padding.kind) {
        case RONDO__PADDING_ENDS:
            return key >= padding[batch];
        case RONDO__PADDING_RANGES:
            return key >= padding[batch] || key < padding[f->batch + batch];
        case RONDO__PADDING_KEYS:
            return padding[batch * f->padding.columns + key] == 0;
        default:
            return padding[(batch * f->m + row) * f->padding.columns + key] == 0;
    }
}

// Adds masks to the scores of the keys that a row sees; `scores` stand at key 0.
static void add_masks(const attention_run *run, int64_t batch, int64_t head, int64_t row, seen s,
                      float *scores) {
    const rondo__attention_form *f = &run->kernel->form;
    if (f->mask.input >= 0) {
        const rondo__attention_strides *at = &f->mask.at;
        const int64_t first = batch * at->batch + head * at->head + row * at->row;
        const uint8_t *flags = (const uint8_t *)run->inputs[f->mask.input] + first;
        const float *added = (const float *)run->inputs[f->mask.input] + first;
        for (int64_t j = s.first; j < s.end; ++j) {
            const float value = f->mask_is_bool ? (flags[j * at->column] != 0 ? 0.0f : -INFINITY)
                                                : added[j * at->column];
            scores[j] = value == -INFINITY ? value : scores[j] + value;
        }
    }
    for (int64_t j = s.first; f->padding.kind != RONDO__PADDING_NONE && j < s.end; ++j) {
        scores[j] += is_padding(run, batch, row, j) ? f->padding.filter : 0.0f;
    }
}

// Scores of one row become its weights; those of keys that it does not see, 0.
static void weigh(const attention_run *run, int64_t batch, int64_t head, int64_t row, seen all,
                  seen s, float *scores) {
    const rondo__attention_form *f = &run->kernel->form;
    const rondo__simd *simd = run->kernel->simd;
    const int64_t count = s.end - s.first;
    float *own = scores + s.first;
    if (f->softcap > 0.0f) {
        simd->unary[RONDO__SCALAR_Affine](own, own, count, 1.0f / f->softcap, 0.0f);
        simd->unary[RONDO__SCALAR_Tanh](own, own, count, 0.0f, 0.0f);
        simd->unary[RONDO__SCALAR_Affine](own, own, count, f->softcap, 0.0f);
    }
    add_masks(run, batch, head, row, s, scores);
    const bool has_sink = f->sink >= 0 || f->is_smooth;
    const float sink = f->sink >= 0 ? ((const float *)run->inputs[f->sink])[head] : 0.0f;
    float peak = has_sink || f->empty_is_zero ? simd->maximum(own, count) : 0.0f;
    peak = has_sink && sink > peak ? sink : peak;
    if (peak == -INFINITY && f->empty_is_zero) {
        memset(own, 0, (size_t)count * sizeof(float));
    } else if (!has_sink) {
        simd->softmax(own, own, count);
    } else {
        simd->unary[RONDO__SCALAR_Affine](own, own, count, 1.0f, -peak);
        simd->unary[RONDO__SCALAR_Exp](own, own, count, 0.0f, 0.0f);
        const double sum = simd->sum(own, count) + exp((double)(sink - peak));
        simd->unary[RONDO__SCALAR_Affine](own, own, count, (float)(1.0 / sum), 0.0f);
    }
    memset(scores + all.first, 0, (size_t)(s.first - all.first) * sizeof(float));
    memset(scores + s.end, 0, (size_t)(all.end - s.end) * sizeof(float));
}

// A block of rows of one head of k and v.
typedef struct block {
    int64_t batch, head, row, count;
    seen all;
    rondo__attention_extent extent;
    float *scores;  // [count, n]
} block;

static int64_t get_head(const attention_run *run, const block *b, int64_t row) {
    const rondo__attention_form *f = &run->kernel->form;
    return b->head * (f->heads / f->kv_heads) + row / f->m;
}

static void weigh_block(const attention_run *run, const block *b) {
    const rondo__attention_form *f = &run->kernel->form;
    for (int64_t r = 0; r < b->count; ++r) {
        const int64_t row = b->row + r;
        seen s = get_seen(run, &b->extent, row);
        s = s.first < s.end ? s : (seen){b->all.first, b->all.first};
        weigh(run, b->batch, get_head(run, b, row), row % f->m, b->all, s, b->scores + r * f->n);
    }
}

static float *find_y(const attention_run *run, const block *b, int64_t row) {
    const rondo__attention_form *f = &run->kernel->form;
    const place y = {run->y, f->y.at};
    return find(&y, b->batch, get_head(run, b, row), row % f->m);
}

// ---- few rows ---------------------------------------------------------------------------------

static void run_few(const attention_run *run, const block *b) {
    const rondo__attention_form *f = &run->kernel->form;
    const rondo__simd *simd = run->kernel->simd;
    for (int64_t key = b->all.first; key < b->all.end; key += KEYS) {
        const int64_t count = b->all.end - key < KEYS ? b->all.end - key : KEYS;
        for (int64_t r = 0; r < b->count; ++r) {
            const int64_t row = b->row + r;
            float *scores = b->scores + r * f->n + key;
            simd->dot_rows(find(&run->q, b->batch, get_head(run, b, row), row % f->m),
                           find(&run->k, b->batch, b->head, key), run->k.at.row, count, scores,
                           f->width);
            simd->unary[RONDO__SCALAR_Affine](scores, scores, count, f->scale, 0.0f);
        }
    }
    weigh_block(run, b);
    for (int64_t r = 0; r < b->count; ++r) {
        memset(find_y(run, b, b->row + r), 0, (size_t)f->v_width * sizeof(float));
    }
    for (int64_t key = b->all.first; key < b->all.end; key += KEYS) {
        for (int64_t r = 0; r < b->count; ++r) {
            const seen s = get_seen(run, &b->extent, b->row + r);
            const int64_t begin = key > s.first ? key : s.first;
            const int64_t end = key + KEYS < s.end ? key + KEYS : s.end;
            if (begin < end) {
                simd->add_rows(b->scores + r * f->n + begin,
                               find(&run->v, b->batch, b->head, begin), run->v.at.row, end - begin,
                               find_y(run, b, b->row + r), f->v_width);
            }
        }
    }
}

// ---- many rows --------------------------------------------------------------------------------

static float *find_panels(const attention_run *run, int64_t batch, int64_t head) {
    const attention_kernel *kernel = run->kernel;
    return run->work + kernel->panels_at +
           (batch * kernel->form.kv_heads + head) * (kernel->k_floats + kernel->v_floats);
}

static int64_t count_panels(const attention_kernel *kernel, int64_t columns) {
    return (columns + kernel->simd->panel_columns - 1) / kernel->simd->panel_columns;
}

static void pack(void *data, int64_t first, int64_t end) {
    const attention_run *run = data;
    const attention_kernel *kernel = run->kernel;
    const rondo__attention_form *f = &kernel->form;
    const int64_t wide = kernel->simd->panel_columns;
    for (int64_t i = first; i < end; ++i) {
        const int64_t batch = i / f->kv_heads, head = i % f->kv_heads;
        const rondo__attention_extent e = get_extent(run, batch);
        float *k = find_panels(run, batch, head), *v = k + kernel->k_floats;
        for (int64_t panel = 0; panel < count_panels(kernel, e.keys); ++panel) {
            rondo__pack_panel(kernel->simd, find(&run->k, batch, head, 0), 1, run->k.at.row,
                              f->width, e.keys, panel, k + panel * wide * f->width);
        }
        for (int64_t panel = 0; panel < count_panels(kernel, f->v_width); ++panel) {
            rondo__pack_panel(kernel->simd, find(&run->v, batch, head, 0), run->v.at.row, 1, e.keys,
                              f->v_width, panel, v + panel * wide * f->n);
        }
    }
}

// Rows that follow each other in q and y: those of one head.
static int64_t count_rows_of_head(const attention_run *run, const block *b, int64_t r) {
    const int64_t left = run->kernel->form.m - (b->row + r) % run->kernel->form.m;
    return left < b->count - r ? left : b->count - r;
}

static void run_many(const attention_run *run, const block *b) {
    const attention_kernel *kernel = run->kernel;
    const rondo__attention_form *f = &kernel->form;
    const int64_t wide = kernel->simd->panel_columns;
    const int64_t first = b->all.first / wide * wide;  // keys begin at a panel
    const float *k = find_panels(run, b->batch, b->head), *v = k + kernel->k_floats;
    rondo__row_product product = {
        .simd = kernel->simd,
        .b_row = wide,
        .low = -INFINITY,
        .high = INFINITY,
        .scale = f->scale,
        .k = f->width,
        .n = b->all.end - first,
        .panels = k + first * f->width,
        .panel_step = wide * f->width,
        .a_row = run->q.at.row,
        .y_row = f->n,
    };
    int64_t count;
    for (int64_t r = 0; r < b->count; r += count) {
        count = count_rows_of_head(run, b, r);
        product.m = count;
        product.a = find(&run->q, b->batch, get_head(run, b, b->row + r), (b->row + r) % f->m);
        product.y = b->scores + r * f->n + first;
        rondo__multiply_rows(&product);
    }
    weigh_block(run, b);
    product.scale = 1.0f;
    product.k = b->all.end - b->all.first;
    product.n = f->v_width;
    product.panels = v + b->all.first * wide;
    product.panel_step = wide * f->n;
    product.a_row = f->n;
    product.y_row = f->y.at.row;
    for (int64_t r = 0; r < b->count; r += count) {
        count = count_rows_of_head(run, b, r);
        product.m = count;
        product.a = b->scores + r * f->n + b->all.first;
        product.y = find_y(run, b, b->row + r);
        rondo__multiply_rows(&product);
    }
}

// ---- the whole --------------------------------------------------------------------------------

static void run_part(void *data, int64_t first, int64_t end) {
    const attention_run *run = data;
    const attention_kernel *kernel = run->kernel;
    const rondo__attention_form *f = &kernel->form;
    const int64_t units = f->batch * f->kv_heads * kernel->blocks;
    for (int64_t part = first; part < end; ++part) {
        const int64_t last = rondo__host_part(units, part + 1, kernel->parts);
        for (int64_t u = rondo__host_part(units, part, kernel->parts); u < last; ++u) {
            const int64_t head = u / kernel->blocks % f->kv_heads;
            block b = {.batch = u / kernel->blocks / f->kv_heads, .head = head};
            b.row = u % kernel->blocks * kernel->block_rows;
            b.count = kernel->rows - b.row < kernel->block_rows ? kernel->rows - b.row
                                                                : kernel->block_rows;
            b.extent = get_extent(run, b.batch);
            b.all = get_all_seen(run, &b.extent, b.row, b.count);
            b.scores = run->work + kernel->part_at + part * kernel->part_floats;
            if (b.all.first >= b.all.end) {
                for (int64_t r = 0; r < b.count; ++r) {
                    memset(find_y(run, &b, b.row + r), 0, (size_t)f->v_width * sizeof(float));
                }
            } else if (kernel->has_panels) {
                run_many(run, &b);
            } else {
                run_few(run, &b);
            }
        }
    }
}

static void project_rows(void *data, int64_t first, int64_t end) {
    const attention_run *run = data;
    const rondo__packed_matrix *b = &run->kernel->projection;
    const rondo__row_product product = {
        .simd = b->simd,
        .m = end - first,
        .k = b->k,
        .n = b->n,
        .a = (const float *)run->inputs[0] + first * b->k,
        .a_row = b->k,
        .panels = b->panels,
        .panel_step = b->k * b->simd->panel_columns,
        .b_row = b->simd->panel_columns,
        .scale = 1.0f,
        .low = -INFINITY,
        .high = INFINITY,
        .y = run->work + run->kernel->projected_at + first * b->n,
        .y_row = b->n,
    };
    rondo__multiply_rows(&product);
}

static void project(attention_run *run) {
    const rondo__attention_form *f = &run->kernel->form;
    const rondo__packed_matrix *b = &run->kernel->projection;
    const int64_t rows = f->batch * f->m;
    const double adds = (double)rows * (double)b->k * (double)b->n;
    rondo__workers_loop(rows, rondo__host_get_grain(rows, 0.0, adds), project_rows, run);
}

static place find_keys(const attention_run *run, int which, void *const *outputs) {
    const attention_kernel *kernel = run->kernel;
    const rondo__attention_form *f = &kernel->form;
    const rondo__attention_operand *present = which == 1 ? &f->present_k : &f->present_v;
    if (!kernel->makes[which]) {
        return find_operand(run, which == 1 ? &f->k : &f->v);
    }
    if (kernel->keeps[which]) {
        return (place){(float *)outputs[present->input] + present->at.offset, present->at};
    }
    rondo__attention_operand dense;
    rondo__attention_set_dense(&dense, 0, false, f->kv_heads, f->n,
                               which == 1 ? f->width : f->v_width);
    return (place){run->work + kernel->store_at[which], dense.at};
}

static rondo_status run_attention(rondo__host_kernel *head, const void *const *inputs,
                                  void *const *outputs, void *workspace) {
    const attention_kernel *kernel = (const attention_kernel *)head;
    const rondo__attention_form *f = &kernel->form;
    attention_run run = {.kernel = kernel, .inputs = inputs, .work = workspace, .y = outputs[0]};
    RETURN_IF_ERROR(check_data(&run));
    if (f->q.input == RONDO__ATTENTION_PROJECTED) {
        project(&run);
    }
    run.q = find_operand(&run, &f->q);
    run.k = find_keys(&run, 1, outputs);
    run.v = find_keys(&run, 2, outputs);
    const int64_t pairs = f->batch * f->kv_heads;
    const double row_bytes = (double)(f->width + f->v_width) * 4.0;
    if (kernel->makes_q) {
        const int64_t heads = f->batch * f->heads;
        rondo__attention_operand dense;
        rondo__attention_set_dense(&dense, 0, false, f->heads, f->m, f->width);
        run.q = (place){run.work + kernel->q_at, dense.at};
        const double bytes = (double)(heads * f->m) * row_bytes;
        rondo__workers_loop(heads, rondo__host_get_grain(heads, bytes, 0.0), make_queries, &run);
    }
    if (kernel->makes[1] || kernel->makes[2]) {
        const double bytes = (double)(pairs * (f->fresh + f->past)) * row_bytes;
        rondo__workers_loop(pairs, rondo__host_get_grain(pairs, bytes, 0.0), make_keys, &run);
    }
    if (kernel->has_panels) {
        const double bytes = (double)(pairs * f->n) * row_bytes;
        rondo__workers_loop(pairs, rondo__host_get_grain(pairs, bytes, 0.0), pack, &run);
    }
    rondo__workers_loop(kernel->parts, 1, run_part, &run);
    return RONDO_STATUS_OK;
}

// ---- preparing --------------------------------------------------------------------------------

static bool is_taken(const rondo__kernel_request *request, const rondo__attention_form *f) {
    const int32_t numbers[] = {f->q.input,        f->k.input,      f->v.input,      f->past_k.input,
                               f->past_v.input,   f->bias,         f->norm.gain[0], f->norm.gain[1],
                               f->angles.cosines, f->angles.sines, f->sink};
    const int32_t scores = f->shown.output;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        if (numbers[i] >= 0 && request->inputs[numbers[i]].dtype != RONDO_DTYPE_F32) {
            return false;
        }
    }
    if (f->mask.input >= 0 && !f->mask_is_bool &&
        request->inputs[f->mask.input].dtype != RONDO_DTYPE_F32) {
        return false;
    }
    if (scores >= 0 && request->outputs[scores].dtype != RONDO_DTYPE_NONE) {
        return false;
    }
    return (f->precision == RONDO_DTYPE_NONE || f->precision == RONDO_DTYPE_F32) && f->n > 0 &&
           f->m > 0 && f->width > 0 && f->v_width > 0 && f->batch > 0;
}

static int64_t reserve(int64_t *in_out_floats, int64_t count) {
    const int64_t at = *in_out_floats;
    *in_out_floats += (count + ALIGNMENT / 4 - 1) / (ALIGNMENT / 4) * (ALIGNMENT / 4);
    return at;
}

static void plan_stores(attention_kernel *kernel, const rondo__kernel_request *request,
                        int64_t *floats) {
    const rondo__attention_form *f = &kernel->form;
    const bool has_bias = f->bias >= 0;
    kernel->makes_q =
        (has_bias && f->bias_at[0] >= 0) || f->norm.gain[0] >= 0 || f->angles.cosines >= 0;
    if (kernel->makes_q) {
        kernel->q_at = reserve(floats, f->batch * f->heads * f->m * f->width);
    }
    for (int which = 1; which <= 2; ++which) {
        const rondo__attention_operand *past = which == 1 ? &f->past_k : &f->past_v;
        const rondo__attention_operand *present = which == 1 ? &f->present_k : &f->present_v;
        kernel->keeps[which] =
            present->input >= 0 && request->outputs[present->input].dtype != RONDO_DTYPE_NONE;
        kernel->makes[which] = kernel->keeps[which] || past->input >= 0 || f->n != f->fresh ||
                               f->lengths == RONDO__LENGTHS_LAST ||
                               (has_bias && f->bias_at[which] >= 0) ||
                               (which == 1 && (f->norm.gain[1] >= 0 || f->angles.cosines >= 0));
        if (kernel->makes[which] && !kernel->keeps[which]) {
            kernel->store_at[which] = reserve(
                floats, f->batch * f->kv_heads * f->n * (which == 1 ? f->width : f->v_width));
        }
    }
}

static void note_kept(attention_kernel *kernel) {
    const rondo__attention_form *f = &kernel->form;
    rondo__kernel *base = &kernel->head.base;
    for (int which = 1; which <= 2; ++which) {
        if (kernel->keeps[which] && rondo__attention_keeps_past(f, which)) {
            base->kept[base->kept_count++] = (rondo__kernel_kept){
                .input = which == 1 ? f->past_k.input : f->past_v.input,
                .output = which == 1 ? f->present_k.input : f->present_v.input};
        }
    }
}

static void plan_blocks(attention_kernel *kernel, int64_t *floats) {
    const rondo__attention_form *f = &kernel->form;
    const int64_t heads = f->batch * f->kv_heads, wide = kernel->simd->panel_columns;
    const double adds =
        (double)(f->batch * f->heads * f->m) * (double)f->n * (double)(f->width + f->v_width);
    kernel->rows = f->m * (f->heads / f->kv_heads);
    kernel->has_panels = kernel->rows >= PANEL_ROWS_LEAST;
    kernel->block_rows = kernel->has_panels ? 4 * kernel->simd->tile_rows : kernel->rows;
    kernel->blocks = (kernel->rows + kernel->block_rows - 1) / kernel->block_rows;
    kernel->parts = rondo__host_count_parts(heads * kernel->blocks, 0.0, adds);
    kernel->parts = kernel->parts > 0 ? kernel->parts : 1;
    if (kernel->has_panels) {
        kernel->k_floats = count_panels(kernel, f->n) * wide * f->width;
        kernel->v_floats = count_panels(kernel, f->v_width) * wide * f->n;
        kernel->panels_at = reserve(floats, heads * (kernel->k_floats + kernel->v_floats));
    }
    const int64_t rows = kernel->block_rows < kernel->rows ? kernel->block_rows : kernel->rows;
    kernel->part_floats = rows * f->n + ALIGNMENT / 4;
    kernel->part_at = reserve(floats, kernel->parts * kernel->part_floats);
}

// The weights of com.microsoft's Attention.
static rondo_status plan_projection(attention_kernel *kernel, const rondo__kernel_request *request,
                                    int64_t *floats) {
    const rondo_tensor *weights = request->inputs[1].constant;
    if (kernel->form.q.input != RONDO__ATTENTION_PROJECTED) {
        return RONDO_STATUS_OK;
    }
    if (weights == NULL || weights->dtype != RONDO_DTYPE_F32) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const int64_t k = weights->shape.extent[0], n = weights->shape.extent[1];
    const rondo__matrix_places places = {.row = n, .column = 1, .count = 1, .k = k, .n = n};
    kernel->projection.simd = kernel->simd;
    kernel->projected_at = reserve(floats, kernel->form.batch * kernel->form.m * n);
    return rondo__packed_matrix_init(&kernel->projection, request->weights, weights, &places);
}

rondo_status rondo__host_prepare_attention(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    rondo__attention_form form;
    int64_t floats = 0;
    RETURN_IF_ERROR(rondo__attention_read(request->op, request->inputs, request->input_count,
                                          request->output_count, &form));
    if (form.n < 0 && request->output_count > 1 && request->outputs[1].dtype != RONDO_DTYPE_NONE) {
        form.n = request->outputs[1].shape.extent[2];
        rondo__attention_set_present(&form, 1, request->output_count > 2 ? 2 : -1);
    }
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 || !is_taken(request, &form)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    attention_kernel *kernel = (attention_kernel *)rondo__host_kernel_create(
        request, sizeof *kernel, "simd", run_attention, NULL);
    if (kernel == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    kernel->simd = rondo__simd_get();
    kernel->form = form;
    plan_stores(kernel, request, &floats);
    note_kept(kernel);
    plan_blocks(kernel, &floats);
    const rondo_status status = plan_projection(kernel, request, &floats);
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&kernel->head.base);
        return status;
    }
    kernel->head.base.workspace_bytes = (size_t)floats * sizeof(float);
    *out_kernel = &kernel->head.base;
    return RONDO_STATUS_OK;
}
