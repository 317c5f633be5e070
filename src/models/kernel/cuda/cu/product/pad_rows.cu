// pad_rows.cu - rows of halves that begin anywhere, copied to rows that begin at whole 16 bytes, for
// products that take aligned rows alone. What is beyond a row, and rows beyond the last, become zeros.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

struct pad_rows_arguments {
    const u16 *from;  // [rows, length]
    u16 *to;          // [all_rows, pitch]
    i64 rows, length, all_rows, pitch;
};

extern "C" __global__ void __launch_bounds__(256) pad_rows(const pad_rows_arguments a) {
    take_turn();
    const i64 packs = a.pitch / 8;
    for (i64 i = (i64)blockIdx.x * 256 + threadIdx.x; i < a.all_rows * packs; i += (i64)gridDim.x * 256) {
        const i64 row = i / packs, column = (i - row * packs) * 8;
        const u16 *from = a.from + row * a.length + column;
        pack<u32, 4> out;
        if (row < a.rows && column + 8 < a.length) {  // so the last word has something of the row, too
            const bool is_odd = ((u64)from & 2) != 0;
            const u32 *words = (const u32 *)((u64)from & ~(u64)3);
            u32 held = words[0];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                const u32 next = is_odd || k < 3 ? words[k + 1] : 0u;
                out.value[k] = is_odd ? held >> 16 | next << 16 : held;
                held = next;
            }
        } else {
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const u32 one = row < a.rows && column + k < a.length ? (u32)from[k] : 0u;
                out.value[k / 2] = k % 2 == 0 ? one : out.value[k / 2] | one << 16;
            }
        }
        *(pack<u32, 4> *)(a.to + row * a.pitch + column) = out;
    }
}
