// carry.cu - small pieces of memory copied by one kernel, from or to pinned memory, too: a copy node
// each would take several times as long. See kernel/carry.h, whose structs these are.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

struct carry_piece {
    const u8 *from;
    u8 *to;
    i64 bytes;
};

struct carry_arguments {
    carry_piece pieces[16];
};

// One row of blocks for each piece.
extern "C" __global__ void __launch_bounds__(256) rondo_carry(const carry_arguments a) {
    const carry_piece p = a.pieces[blockIdx.y];
    const i64 first = (i64)blockIdx.x * 256 + threadIdx.x;
    const i64 step = (i64)gridDim.x * 256;
    const i64 wide = ((u64)p.from | (u64)p.to) % 16 == 0 ? p.bytes / 16 : 0;
    for (i64 n = first; n < wide; n += step) {
        ((uint4 *)p.to)[n] = ((const uint4 *)p.from)[n];
    }
    for (i64 n = 16 * wide + first; n < p.bytes; n += step) {
        p.to[n] = p.from[n];
    }
}
