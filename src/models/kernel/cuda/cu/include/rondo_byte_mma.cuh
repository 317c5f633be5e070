// rondo_byte_mma.cuh - the instructions of byte_tensor.cu: products of x, which is signed or not, with
// weights, which are signed, and the ways into and between shared memories.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_cluster.cuh"

// 16 bytes on their way from global to shared memory; zeros where they are not there.
__device__ __forceinline__ void copy_16(u32 to, const void *from, bool is_there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(is_there ? 16 : 0));
}
// The same of 8 or 4 bytes.
template <int BYTES>
__device__ __forceinline__ void copy_few(u32 to, const void *from, bool is_there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                 "r"(is_there ? BYTES : 0), "n"(BYTES));
}
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
}
__device__ __forceinline__ void multiply(i32 (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
#if X_IS_UNSIGNED
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
#else
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
#endif
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#if WGMMA
// What wgmma wants to know of a tile: its address, 8 rows to the next group of rows, 128-byte swizzle.
__device__ __forceinline__ u64 describe_tile(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
__device__ __forceinline__ void multiply_group(i32 (&d)[1][4], u64 a, u64 b) {
    asm volatile(
#if X_IS_UNSIGNED
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.s8 {"
#else
        "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {"
#endif
        "%0, %1, %2, %3}, "
        "%4, %5, 1;"
        : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3])
        : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(i32 (&d)[4][4], u64 a, u64 b) {
    asm volatile(
#if X_IS_UNSIGNED
        "wgmma.mma_async.sync.aligned.m64n32k32.s32.u8.s8 {"
#else
        "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 {"
#endif
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
        "%16, %17, 1;"
        : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
          "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
          "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3])
        : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(i32 (&d)[8][4], u64 a, u64 b) {
    asm volatile(
#if X_IS_UNSIGNED
        "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.s8 {"
#else
        "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 {"
#endif
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, 1;"
        : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
          "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
          "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3]), "+r"(d[4][0]), "+r"(d[4][1]),
          "+r"(d[4][2]), "+r"(d[4][3]), "+r"(d[5][0]), "+r"(d[5][1]), "+r"(d[5][2]), "+r"(d[5][3]),
          "+r"(d[6][0]), "+r"(d[6][1]), "+r"(d[6][2]), "+r"(d[6][3]), "+r"(d[7][0]), "+r"(d[7][1]),
          "+r"(d[7][2]), "+r"(d[7][3])
        : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(i32 (&d)[16][4], u64 a, u64 b) {
    asm volatile(
#if X_IS_UNSIGNED
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.s8 {"
#else
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
#endif
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, 1;"
        : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
          "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
          "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3]), "+r"(d[4][0]), "+r"(d[4][1]),
          "+r"(d[4][2]), "+r"(d[4][3]), "+r"(d[5][0]), "+r"(d[5][1]), "+r"(d[5][2]), "+r"(d[5][3]),
          "+r"(d[6][0]), "+r"(d[6][1]), "+r"(d[6][2]), "+r"(d[6][3]), "+r"(d[7][0]), "+r"(d[7][1]),
          "+r"(d[7][2]), "+r"(d[7][3]), "+r"(d[8][0]), "+r"(d[8][1]), "+r"(d[8][2]), "+r"(d[8][3]),
          "+r"(d[9][0]), "+r"(d[9][1]), "+r"(d[9][2]), "+r"(d[9][3]), "+r"(d[10][0]),
          "+r"(d[10][1]), "+r"(d[10][2]), "+r"(d[10][3]), "+r"(d[11][0]), "+r"(d[11][1]),
          "+r"(d[11][2]), "+r"(d[11][3]), "+r"(d[12][0]), "+r"(d[12][1]), "+r"(d[12][2]),
          "+r"(d[12][3]), "+r"(d[13][0]), "+r"(d[13][1]), "+r"(d[13][2]), "+r"(d[13][3]),
          "+r"(d[14][0]), "+r"(d[14][1]), "+r"(d[14][2]), "+r"(d[14][3]), "+r"(d[15][0]),
          "+r"(d[15][1]), "+r"(d[15][2]), "+r"(d[15][3])
        : "l"(a), "l"(b));
}
#endif
#if SPLIT > 1
// Four sums of another block of the cluster, at an address of our own.
__device__ __forceinline__ void add_from_block(u32 (&sum)[4], u32 address, u32 rank) {
    u32 x, y, z, w;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
                 : "r"(address_in_block(address, rank))
                 : "memory");
    sum[0] += x, sum[1] += y, sum[2] += z, sum[3] += w;
}
#endif
