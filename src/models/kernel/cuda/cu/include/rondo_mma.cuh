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
// SPDX-License-Identifier: Apache-2.0

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

__device__ __forceinline__ u32 pack_halves(float low, float high) {
    return (u32)half_from_float(low).bits | (u32)half_from_float(high).bits << 16;
}
