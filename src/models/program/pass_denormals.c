// program/pass_denormals.c — weights and addends of sums that are denormal become zeros.
//
//   before   a W + b, with numbers of W or b below 2^-126
//   after    the same with 0 in their place
//
// Processors multiply and add denormals by microcode, ten to a hundred times slower. Training with
// weight decay leaves some in what it gave up: a filter that sees nothing any more, the shift of
// its channel. The results are as small, and slow the next product down, too. Cleared is only what
// stands beside a number of at least 2^-64 in the same constant: that is 2^-62 of it at most, and
// sums round by 2^-24. Where all are small, they stay; so do normal numbers, however small: there
// are few in such filters (300 beside 256000 in PP-OCRv6), and units of physics are such numbers.
// Where a model takes logarithms it does not run: that of a denormal is -92, that of 0 -inf.
// Constants of Conv, ConvTranspose, MatMul, Gemm, Add, Sub and recurrent ops; other readers of a
// constant keep it as it was. It runs before shapes are known, once for all plans.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "base/memory.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

enum { LINE = 16, SPARSE = 16, ALL_LINES = 1 << 16, MAGNITUDE = 0x7fffffff };
enum { LEAST_KEPT = 1 << 23, LEAST_LARGE = (127 - 64) << 23 };  // bits of 2^-126, 2^-64

// Whether a constant has what is to be cleared. Of a large one a line in 16 is read, which line is
// by chance: a filter or a channel that is small has many, and reading all would cost time without
// a gain where there is none.
static bool has_small(const rondo_tensor *constant) {
    const int32_t *bits = constant->data;
    const size_t count = (size_t)rondo_shape_get_count(&constant->shape);
    const size_t lines = (count + LINE - 1) / LINE;
    const bool reads_all = lines <= ALL_LINES;
    bool small = false, large = false;
    for (size_t i = 0; i < lines; i += reads_all ? 1 : SPARSE) {
        const size_t chosen = i + (reads_all ? 0 : ((uint32_t)i * 2654435761u) >> 28);
        const size_t end = (chosen + 1) * LINE < count ? (chosen + 1) * LINE : count;
        for (size_t j = chosen * LINE; j < end; ++j) {
            const int32_t magnitude = bits[j] & MAGNITUDE;
            small |= magnitude > 0 && magnitude < LEAST_KEPT;
            large |= magnitude >= LEAST_LARGE;
        }
    }
    return small && large;
}

static rondo_status add_cleared(rondo_program *program, int32_t value, int32_t *out_value) {
    const rondo_tensor *source = &program->values[value].constant;
    rondo_tensor cleared;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &source->shape, &cleared));
    const int32_t *from = source->data;
    int32_t *to = cleared.data;
    const int64_t count = rondo_shape_get_count(&source->shape);
    for (int64_t i = 0; i < count; ++i) {
        to[i] = (from[i] & MAGNITUDE) < LEAST_KEPT ? from[i] & ~MAGNITUDE : from[i];
    }
    const rondo_status status =
        rondo__program_add_constant(program, "cleared", &cleared, out_value);
    rondo_tensor_deinit(&cleared);
    return status;
}

// Whether an op adds up what it makes of this input.
static bool sums_up(const rondo__node *node, size_t input) {
    if (rondo__node_is(node, RONDO__OP_Conv) || rondo__node_is(node, RONDO__OP_ConvTranspose)) {
        return input >= 1;
    }
    if (rondo__node_is(node, RONDO__OP_LSTM) || rondo__node_is(node, RONDO__OP_GRU) ||
        rondo__node_is(node, RONDO__OP_RNN)) {
        return input >= 1 && input <= 3;
    }
    return rondo__node_is(node, RONDO__OP_MatMul) || rondo__node_is(node, RONDO__OP_Gemm) ||
           rondo__node_is(node, RONDO__OP_Add) || rondo__node_is(node, RONDO__OP_Sub);
}

rondo_status rondo__pass_denormals(rondo_program *program) {
    enum { UNKNOWN = -1 };
    const size_t value_count = program->value_count;
    int32_t *cleared = rondo__calloc(value_count, sizeof *cleared);  // of each value
    if (cleared == NULL && value_count > 0) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < value_count; ++i) {
        cleared[i] = UNKNOWN;
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t n = 0; status == RONDO_STATUS_OK && n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        for (size_t i = 0; status == RONDO_STATUS_OK && i < node->explicit_count; ++i) {
            const int32_t value = node->inputs[i];
            if (value < 0 || program->values[value].constant.dtype != RONDO_DTYPE_F32 ||
                !sums_up(node, i)) {
                continue;
            }
            if (cleared[value] == UNKNOWN) {
                cleared[value] = value;
                if (has_small(&program->values[value].constant)) {
                    status = add_cleared(program, value, &cleared[value]);
                }
            }
            node->inputs[i] = status == RONDO_STATUS_OK ? cleared[value] : value;
        }
    }
    rondo__free(cleared);
    return rondo__program_finish_rewrite(program, NULL, 0, status);
}
