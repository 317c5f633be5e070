// op/attention/attention_form.h — any attention op in numbers: where the rows of q, k and v come
// from, what is done to them, which keys a row sees, and where all goes.
//
// ONNX's Attention and those of com.microsoft differ in how they say it, not in what they do:
//
//   q, k, v   rows of the inputs, from anywhere in them (packed), + bias, normalised, turned
//   keys      rows of the past that count, and behind them the fresh ones; `present` holds both
//   scores    scale * q k, soft cap, + mask; those that a row does not see are left out
//   y         softmax(scores) v
//
// Keys that a row sees follow each other, so two numbers say which (rondo__attention_get_sight).
// The form is read from shapes; lengths are data, and are read when it runs. A fresh form has no
// input: that is ABSENT.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/fused/attention.h"
#include "op/op.h"

enum {
    RONDO__ATTENTION_ABSENT = -1,
    RONDO__ATTENTION_PROJECTED = -2,  // rows that the op makes of its input by a product
};

typedef enum rondo__attention_lengths {
    RONDO__LENGTHS_NONE,
    RONDO__LENGTHS_VALID,  // i64: how many keys count; the last row of q is the last of them
    RONDO__LENGTHS_LAST,   // i32: the position of the last key, the fresh ones included
} rondo__attention_lengths;

// What a padding mask says. Scores that it takes away get `filter` added; they stay in softmax.
typedef enum rondo__attention_padding_kind {
    RONDO__PADDING_NONE,
    RONDO__PADDING_ENDS,    // [batch]: the keys from there on
    RONDO__PADDING_RANGES,  // [2 * batch]: the same, then those before a beginning
    RONDO__PADDING_KEYS,    // [batch, n]: those with 0
    RONDO__PADDING_SCORES,  // [batch, m, n]: those with 0
} rondo__attention_padding_kind;

typedef struct rondo__attention_padding {
    rondo__attention_padding_kind kind;
    int32_t input;
    int64_t columns;  // of PADDING_KEYS and _SCORES; keys from there on are not taken away
    float filter;
} rondo__attention_padding;

typedef enum rondo__attention_scores {  // what an output shows of them
    RONDO__SCORES_RAW,
    RONDO__SCORES_CAPPED,
    RONDO__SCORES_MASKED,
    RONDO__SCORES_SOFTMAX,
} rondo__attention_scores;

typedef struct rondo__attention_shown {
    int32_t output;  // or ABSENT
    rondo__attention_scores kind;
    float unseen;  // what SCORES_MASKED shows of a key that the row does not see
} rondo__attention_shown;

// Rows of q and k are divided by their root mean square and multiplied by a gain, before they turn.
typedef struct rondo__attention_norm {
    int32_t gain[2];  // inputs, of q and of k
    float epsilon[2];
} rondo__attention_norm;

// Rows of q and k turn by the angles of their positions.
typedef struct rondo__attention_angles {
    int32_t cosines, sines, places;  // inputs; `places` absent: they are counted
    int64_t turned;                  // elements of a row
    int64_t rows;                    // of cosines and sines
    bool is_interleaved;
    bool has_one_place;  // `places` holds that of row 0
} rondo__attention_angles;

typedef struct rondo__attention_operand {
    int32_t input;  // or output
    rondo__attention_strides at;
} rondo__attention_operand;

typedef struct rondo__attention_form {
    int64_t batch, heads, kv_heads;
    int64_t m;      // rows of q
    int64_t fresh;  // rows of k and v in the inputs
    int64_t past;   // rows of the past that there may be
    int64_t n;      // keys that there may be
    int64_t width, v_width;
    float scale, softcap;  // softcap 0: none
    rondo__attention_operand q, k, v;
    rondo__attention_operand past_k, past_v;        // [batch, kv_heads, past, width]
    rondo__attention_operand present_k, present_v;  // outputs, of n rows
    rondo__attention_operand y;
    int32_t bias;        // input: added to q, k and v, which begin there
    int64_t bias_at[3];  // at these elements; ABSENT: not to it
    rondo__attention_norm norm;
    rondo__attention_angles angles;
    // which keys a row sees
    rondo__attention_lengths lengths;
    int32_t lengths_input;
    int32_t total_input;  // LENGTHS_LAST: where as many keys as there are rows are said, all is new
    bool is_causal;
    int64_t left, right;  // keys before and behind its position; -1: all
    // what is added
    rondo__attention_operand mask;
    int64_t mask_columns;  // keys from there on are not seen
    bool mask_is_bool;
    rondo__attention_padding padding;
    // softmax
    int32_t sink;           // input: a score of each head that takes part and has no value
    bool is_smooth;         // the same, 0 for all
    rondo_dtype precision;  // to which scores and weights are rounded; NONE: not
    bool empty_is_zero;     // a row that sees nothing, or only -inf, gives zeros; else NaN
    rondo__attention_shown shown;
} rondo__attention_form;

// A form with all inputs absent.
rondo__attention_form rondo__attention_form_begin(void);

// Fills `at` with the strides of batch, head and row of a dense tensor [batch, heads, rows, width]
// (is_rows false) or [batch, rows, heads, width].
void rondo__attention_set_dense(rondo__attention_operand *operand, int32_t input, bool is_rows,
                                int64_t heads, int64_t rows, int64_t width);

// Strides of a mask that broadcasts to [batch, heads, m, columns]. False when it does not.
bool rondo__attention_set_mask(rondo__attention_form *form, int32_t input, const rondo_shape *mask);

// Where present keys and values go once `n` is known; -1: nowhere.
void rondo__attention_set_present(rondo__attention_form *form, int32_t k, int32_t v);

// Whether the present keys (`which` 1) or values (2) hold the rows of the past where they are
// there, so that both may lie in one place: the past has room for the fresh rows, or all rows of it
// follow each other.
bool rondo__attention_keeps_past(const rondo__attention_form *form, int which);

// The plain reference. `projected` holds the rows that are PROJECTED, or is NULL.
//
// Errors:    BAD_DATA (a length or a position that is none), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__attention_compute(rondo__compute *compute,
                                                     const rondo__attention_form *form,
                                                     const double *projected);

// Reads the form of an op of this family: Attention of ONNX; Attention, GroupQueryAttention and
// MultiHeadAttention of com.microsoft. `output_count` is how many outputs there are.
//
// Errors:    BAD_DATA, UNSUPPORTED, by name.
RONDO_MUST_USE rondo_status rondo__attention_read(const rondo__op *op,
                                                  const rondo__tensor_info *inputs,
                                                  size_t input_count, size_t output_count,
                                                  rondo__attention_form *out_form);
// The two halves of it.
rondo_status rondo__attention_read_onnx(const rondo__op *op, const rondo__tensor_info *inputs,
                                        size_t input_count, size_t output_count,
                                        rondo__attention_form *out_form);
rondo_status rondo__attention_read_microsoft(const rondo__op *op, const rondo__tensor_info *inputs,
                                             size_t input_count, size_t output_count,
                                             rondo__attention_form *out_form);

// How many rows of the past count in a batch, where the first row of q stands, and how many keys
// there are.
typedef struct rondo__attention_extent {
    int64_t past, place, keys;
} rondo__attention_extent;

// `length` and `total` are what the inputs hold, or anything where there are none (total: -1).
static inline rondo__attention_extent rondo__attention_get_extent(const rondo__attention_form *form,
                                                                  int64_t length, int64_t total) {
    rondo__attention_extent e = {form->past, form->past, form->n};
    if (form->lengths == RONDO__LENGTHS_VALID) {
        e.keys = length < 0 ? 0 : length < form->n ? length : form->n;
        e.past = 0;
        e.place = e.keys - form->m;
    } else if (form->lengths == RONDO__LENGTHS_LAST) {
        const int64_t keys = length + 1;
        e.past = total == form->fresh || keys < form->fresh ? 0 : keys - form->fresh;
        e.past = e.past > form->past ? form->past : e.past;
        e.place = e.past;
        e.keys = keys < 0 ? 0 : keys < form->n ? keys : form->n;
    }
    return e;
}

// Refuses lengths that leave the fresh rows no place, or that there is no room for; `length` and
// `total` as above, of batch `batch`.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__attention_check_length(const rondo__op *op,
                                                          const rondo__attention_form *form,
                                                          int64_t batch, int64_t length,
                                                          int64_t total);

// The keys that row `row` of q sees: from *out_begin to before *out_end.
static inline void rondo__attention_get_sight(const rondo__attention_form *form,
                                              const rondo__attention_extent *extent, int64_t row,
                                              int64_t *out_begin, int64_t *out_end) {
    const int64_t place = extent->place + row;
    int64_t begin = 0, end = extent->keys;
    if (form->is_causal && end > place + 1) {
        end = place + 1;
    }
    if (form->right >= 0 && end > place + 1 + form->right) {
        end = place + 1 + form->right;
    }
    if (form->left >= 0 && place - form->left > 0) {
        begin = place - form->left;
    }
    if (form->mask.input != RONDO__ATTENTION_ABSENT && end > form->mask_columns) {
        end = form->mask_columns;
    }
    end = end < 0 ? 0 : end;
    *out_begin = begin < end ? begin : end;
    *out_end = end;
}
