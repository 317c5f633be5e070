// op/recurrent/quantize_lstm.h — an LSTM whose weights are 8-bit integers, and whose inputs and
// states are brought to 8 bits as they come (com.microsoft.DynamicQuantizeLSTM).
//
//   x [seq * batch, input]   as a whole to u8   x W   one product for all steps
//   h [batch, hidden]        each step   to u8   x R   added to it
//
// Between minimum and maximum (0 among them) lie 255 steps; a value becomes the nearest step, ties
// to even. Products are whole numbers, so that only the scales and the gates are rounded. Gates
// stand in the order i, o, f, c, as in LSTM.
//
// Source:    ONNX Runtime's contrib operators, DynamicQuantizeLSTM, version 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

// Inputs by their position.
enum {
    RONDO__QLSTM_X,
    RONDO__QLSTM_W,
    RONDO__QLSTM_R,
    RONDO__QLSTM_B,
    RONDO__QLSTM_LENGTHS,
    RONDO__QLSTM_INITIAL_H,
    RONDO__QLSTM_INITIAL_C,
    RONDO__QLSTM_P,
    RONDO__QLSTM_W_SCALE,
    RONDO__QLSTM_W_ZERO,
    RONDO__QLSTM_R_SCALE,
    RONDO__QLSTM_R_ZERO,
    RONDO__QLSTM_INPUT_COUNT,
};

typedef struct rondo__quantize_lstm {
    int64_t seq, batch, input, hidden;
    int32_t directions;
    bool is_reverse[2];
    bool has_coupled_gates;
    float clip;                  // infinite when absent
    bool has_scale_for_each[2];  // of W, R: one for each column; otherwise one for all
} rondo__quantize_lstm;

// Reads attributes and shapes; absent inputs have dtype NONE.
//
// Errors:    BAD_DATA, UNSUPPORTED.
RONDO_MUST_USE rondo_status rondo__quantize_lstm_plan(const rondo__op *op,
                                                      const rondo__tensor_info *inputs,
                                                      size_t input_count,
                                                      rondo__quantize_lstm *out_plan);

// Whether sequences are as long as there are steps, or shorter. `lengths` may be NULL.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__quantize_lstm_check_lengths(const rondo__op *op,
                                                               const rondo__quantize_lstm *plan,
                                                               const int32_t *lengths);

// Weights of W or R less their zero points (NULL: none), column after column:
// [directions][4 * hidden][depth], as many as the weights have elements.
void rondo__quantize_lstm_unpack(const rondo__quantize_lstm *plan, const rondo_tensor *weights,
                                 const rondo_tensor *zero_point, int16_t *out_columns);

// Bytes of work that a run needs.
size_t rondo__quantize_lstm_get_work_bytes(const rondo__quantize_lstm *plan);

// Runs all directions. inputs[] are addresses by their position (W, R and the zero points are not
// looked at), NULL where absent; outputs[3] may be NULL.
//
// Errors:    BAD_DATA (a sequence length that is out of range).
// Threads:   safe, with work of its own.
RONDO_MUST_USE rondo_status rondo__quantize_lstm_run(const rondo__op *op,
                                                     const rondo__quantize_lstm *plan,
                                                     const int16_t *w, const int16_t *r,
                                                     const void *const *inputs,
                                                     void *const *outputs, void *work);
