// op/math/bits_product.h — products with weights of 2, 4 or 8 bits in blocks, which share a scale
// and a zero point (com.microsoft.MatMulNBits).
//
//   B       u8 [n, blocks, block * bits / 8]: a row for each column of the product; the first
//           number of a byte is in its low bits. Numbers behind k, in the last block, do not count
//   scales  [n, blocks], of A's type, in any shape of that count
//   zeros   absent: 2^(bits - 1); u8: packed like B, [n, ceil(blocks * bits / 8)]; or of A's type,
//           [n, blocks]
//   g_idx   i32 [k]: the block that gives scale and zero point of a number; absent: where it stands
//
// rondo.BitsRow has the same inputs, but for g_idx, which is absent, and bias, which may have y's
// shape; and four more: gain [k], and B, scales and zeros of a second matrix, the gate
// (op/fused/fused.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum {
    RONDO__BITS_A,
    RONDO__BITS_B,
    RONDO__BITS_SCALES,
    RONDO__BITS_ZEROS,
    RONDO__BITS_GROUPS,
    RONDO__BITS_BIAS,
    RONDO__BITS_INPUTS,
    RONDO__BITS_GAIN = RONDO__BITS_INPUTS,
    RONDO__BITS_GATE,
    RONDO__BITS_GATE_SCALES,
    RONDO__BITS_GATE_ZEROS,
    RONDO__BITS_ROW_INPUTS
};

typedef struct rondo__bits_product {
    int64_t m, n, k;
    int32_t bits;
    int64_t block;  // numbers
    int64_t block_bytes;
    int64_t blocks;      // of a column
    int64_t zero_bytes;  // of a column, where they are packed
} rondo__bits_product;

// Reads attributes and the shape of A.
//
// Errors:    UNSUPPORTED, BAD_DATA.
RONDO_MUST_USE rondo_status rondo__bits_product_init(const rondo__op *op, const rondo_shape *a,
                                                     rondo__bits_product *out_product);

// Number `index` of packed numbers.
static inline uint32_t rondo__bits_get(const uint8_t *bytes, int32_t bits, int64_t index) {
    const int64_t first = index * bits;
    return (uint32_t)bytes[first >> 3] >> (first & 7) & ((1u << bits) - 1u);
}
