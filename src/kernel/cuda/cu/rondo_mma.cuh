// rondo_mma.cuh - one product of a warp on tensor cores: sum[16][8] += a[16][16] b[16][8] of f16, sums
// in float; and its operands from shared memory. Of lane 4 g + t:
//
//   a[0], a[1]  rows g and g + 8, columns 2 t and 2 t + 1      a[2], a[3]  the same, columns + 8
//   b[0]        rows 2 t and 2 t + 1 of column g               b[1]        the same, rows + 8
//   sum[0 .. 1] row g, columns 2 t and 2 t + 1                 sum[2 .. 3] the same, row g + 8
//
// load_blocks fetches four blocks of 8 x 8 at once: out[i] is row g, columns 2 t and 2 t + 1 of block i,
// which is a[i], or b[i] of a matrix that is stored column by column. load_blocks_turned takes rows for
// columns: b[i] of one that is stored row by row. Lane 8 i + r shows where row r of block i begins, at
// 16 bytes.
//
// Emulated, lanes show each other what they have.
// SPDX-License-Identifier: Apache-2.0

#ifdef RONDO_EMULATED
__device__ __forceinline__ float pick_half(u32 pair, int which) {
    f16 x;
    x.bits = (u16)(pair >> (16 * which));
    return half_to_float(x);
}
__device__ __forceinline__ void mma_f16(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    __shared__ u32 of_a[32][32][4], of_b[32][32][2];  // by warp and lane
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    for (int i = 0; i < 4; i++) {
        of_a[warp][lane][i] = a[i];
        of_b[warp][lane][i >> 1] = b[i >> 1];
    }
    __syncwarp();
    for (int k = 0; k < 16; k++) {
        const int high = k >> 3, of = (k & 7) >> 1, which = k & 1;
        for (int i = 0; i < 4; i++) {
            sum[i] += pick_half(of_a[warp][g * 4 + of][2 * high + (i >> 1)], which) *
                      pick_half(of_b[warp][(2 * t + (i & 1)) * 4 + of][high], which);
        }
    }
    __syncwarp();
}
__device__ __forceinline__ void load_blocks(u32 (&out)[4], const u16 *row) {
    __shared__ const u16 *of[32][32];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    of[warp][lane] = row;
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        const u16 *from = of[warp][8 * i + g] + 2 * t;
        out[i] = (u32)from[0] | (u32)from[1] << 16;
    }
    __syncwarp();
}
__device__ __forceinline__ void load_blocks_turned(u32 (&out)[4], const u16 *row) {
    __shared__ const u16 *of[32][32];
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    of[warp][lane] = row;
    __syncwarp();
    for (int i = 0; i < 4; i++) {
        out[i] = (u32)of[warp][8 * i + 2 * t][g] | (u32)of[warp][8 * i + 2 * t + 1][g] << 16;
    }
    __syncwarp();
}
// 16 bytes on their way from global to shared memory; zeros where they are not there.
__device__ __forceinline__ void copy_16(u16 *to, const void *from, bool is_there) {
    const uint4 zero = {0u, 0u, 0u, 0u};
    *(uint4 *)to = is_there ? *(const uint4 *)from : zero;
}
// Until those of this thread have arrived.
__device__ __forceinline__ void wait_copies() {
}
#else
__device__ __forceinline__ void mma_f16(float (&sum)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void load_blocks(u32 (&out)[4], const u16 *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(row))
                 : "memory");
}
__device__ __forceinline__ void load_blocks_turned(u32 (&out)[4], const u16 *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((u32)__cvta_generic_to_shared(row))
                 : "memory");
}
// 16 bytes on their way from global to shared memory; zeros where they are not there.
__device__ __forceinline__ void copy_16(u16 *to, const void *from, bool is_there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (u32)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(is_there ? 16 : 0)
                 : "memory");
}
// Until those of this thread have arrived.
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

__device__ __forceinline__ u32 pack_halves(float low, float high) {
    return (u32)half_from_float(low).bits | (u32)half_from_float(high).bits << 16;
}
