// emulated/emulated_bytes.cuh — instructions of the tensor cores for 8-bit integers: a part of
// emulated_cuda.cuh.
// SPDX-License-Identifier: Apache-2.0

// d += A B, with A 16 x 32 and B 32 x 8. A lane has four neighbours in a word where it has two halves
// of those products.
template <typename A, typename B>
static inline void emulated_multiply_bytes(int &d0, int &d1, int &d2, int &d3, unsigned int a0,
                                           unsigned int a1, unsigned int a2, unsigned int a3,
                                           unsigned int b0, unsigned int b1) {
    const emulated_words own = {{a0 | (unsigned long long)a1 << 32,
                                 a2 | (unsigned long long)a3 << 32,
                                 b0 | (unsigned long long)b1 << 32}};
    unsigned int lanes;
    const emulated_words *all = emulated->meet_warp(~0u, &own, &lanes);
    const unsigned int lane = emulated_get_lane(), row = lane / 4, column = lane % 4 * 2;
    unsigned int sum[4] = {(unsigned int)d0, (unsigned int)d1, (unsigned int)d2, (unsigned int)d3};
    for (unsigned int k = 0; k < 32; k++) {
        const unsigned int holder = k % 16 / 4, upper = k / 16, byte = k % 4 * 8;
        const emulated_words *const of_a = &all[row * 4 + holder];
        const int low = (A)(of_a->word[upper] >> byte);
        const int high = (A)(of_a->word[upper] >> (32 + byte));
        for (unsigned int c = 0; c < 2; c++) {
            const unsigned long long of_b = all[(column + c) * 4 + holder].word[2];
            const int b = (B)(of_b >> (32 * upper + byte));
            sum[c] += (unsigned int)(low * b);
            sum[2 + c] += (unsigned int)(high * b);
        }
    }
    d0 = (int)sum[0], d1 = (int)sum[1], d2 = (int)sum[2], d3 = (int)sum[3];
}
#define EMULATED_MMA_BYTES(a, b, A, B)                                                            \
    static inline void emulated_mma_sync_aligned_m16n8k32_row_col_s32_##a##_##b##_s32(            \
        int &d0, int &d1, int &d2, int &d3, unsigned int a0, unsigned int a1, unsigned int a2,    \
        unsigned int a3, unsigned int b0, unsigned int b1) {                                      \
        emulated_multiply_bytes<A, B>(d0, d1, d2, d3, a0, a1, a2, a3, b0, b1);                    \
    }
EMULATED_MMA_BYTES(s8, s8, signed char, signed char)
EMULATED_MMA_BYTES(u8, s8, unsigned char, signed char)
EMULATED_MMA_BYTES(s8, u8, signed char, unsigned char)
EMULATED_MMA_BYTES(u8, u8, unsigned char, unsigned char)
#undef EMULATED_MMA_BYTES

// Hopper's product of 64 rows: both operands lie in shared memory, their rows 128 bytes long, with
// 16-byte pieces permuted by the row.
static inline const unsigned char *emulated_find_byte(unsigned long long tile, unsigned int row,
                                                      unsigned int byte) {
    const unsigned int start = (unsigned int)(tile & 0x3fff) << 4;
    const unsigned int stride = (unsigned int)(tile >> 32 & 0x3fff) << 4;
    if (tile >> 62 != 1) {
        __builtin_trap();
    }
    const unsigned int at = start + row / 8 * stride + row % 8 * 128 + byte;
    return emulated->shared + (at ^ (at >> 7 & 7u) << 4);
}
template <typename A, typename B>
static inline void emulated_multiply_byte_group(int *const *d, unsigned int columns,
                                                unsigned long long a, unsigned long long b) {
    const unsigned int lane = emulated_get_lane();
    const unsigned int row = emulated->thread.x / 32 % 4 * 16 + lane / 4, column = lane % 4 * 2;
    for (unsigned int k = 0; k < 32; k++) {
        const int low = (A)*emulated_find_byte(a, row, k);
        const int high = (A)*emulated_find_byte(a, row + 8, k);
        for (unsigned int j = 0; j < columns; j += 8) {
            for (unsigned int c = 0; c < 2; c++) {
                const int other = (B)*emulated_find_byte(b, j + column + c, k);
                int &first = *d[j / 2 + c], &second = *d[j / 2 + 2 + c];
                first = (int)((unsigned int)first + (unsigned int)(low * other));
                second = (int)((unsigned int)second + (unsigned int)(high * other));
            }
        }
    }
}
template <typename A, typename B, unsigned int COLUMNS, typename... D>
static inline void emulated_byte_end(unsigned long long a, unsigned long long b, D &...d) {
    static_assert(sizeof...(D) == COLUMNS / 2, "the sums of one lane");
    int *const sums[] = {&d...};
    emulated_multiply_byte_group<A, B>(sums, COLUMNS, a, b);
}
// The sums come first, the tiles last.
template <typename A, typename B, unsigned int COLUMNS, unsigned int TAKEN, typename First,
          typename... Rest>
static inline void emulated_byte_turn(First &first, Rest &...rest) {
    if constexpr (TAKEN == COLUMNS / 2) {
        emulated_byte_end<A, B, COLUMNS>(first, rest...);
    } else {
        emulated_byte_turn<A, B, COLUMNS, TAKEN + 1>(rest..., first);
    }
}
#define EMULATED_WGMMA_BYTES(n, name, A)                                                          \
    template <typename... T>                                                                      \
    static inline void emulated_wgmma_mma_async_sync_aligned_m64n##n##k32_s32_##name##_s8(        \
        T &...t) {                                                                                \
        emulated_byte_turn<A, signed char, n, 0>(t...);                                           \
    }
EMULATED_WGMMA_BYTES(8, s8, signed char)
EMULATED_WGMMA_BYTES(8, u8, unsigned char)
EMULATED_WGMMA_BYTES(32, s8, signed char)
EMULATED_WGMMA_BYTES(32, u8, unsigned char)
EMULATED_WGMMA_BYTES(64, s8, signed char)
EMULATED_WGMMA_BYTES(64, u8, unsigned char)
EMULATED_WGMMA_BYTES(128, s8, signed char)
EMULATED_WGMMA_BYTES(128, u8, unsigned char)
#undef EMULATED_WGMMA_BYTES

// Of another block of the cluster; what marks a remote address is above its bits.
static inline void emulated_ld_shared__cluster_v4_u32(unsigned int &x, unsigned int &y,
                                                      unsigned int &z, unsigned int &w,
                                                      unsigned int remote) {
    uint4 v;
    memcpy(&v, emulated->cluster_shared + (remote & ((1u << 30) - 1)), sizeof(v));
    x = v.x, y = v.y, z = v.z, w = v.w;
}
