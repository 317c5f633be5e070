// conv_tensor.cu - convolution as a product on the tensor cores: half precision, channels last, sums in
// float, with bias, residual and activation at the end. A 1 x 1 convolution is a plain matrix
// product, so products with a constant right operand come here too.
//
//   pixels x taps*channels (gathered from x on the fly)  times  taps*channels x filters (w, row-wise)
//
// A block makes TILE_M pixels x TILE_N filters. Copies of TILE_K elements of the inner extent flow
// through STAGES buffers of shared memory (cp.async, 16 bytes each, zero-filled at the border), and
// warps of WARPS_M x WARPS_N feed mma.m16n8k16 from them through ldmatrix. Rows are TILE_K halves
// long and their 16-byte pieces are permuted by the row number, which keeps ldmatrix free of bank
// conflicts.
//
// One image gives few tiles: 49 pixels in the last stage of a ResNet against 132 multiprocessors. So
// SPLIT blocks of a cluster share one tile, each taking a part of the inner extent; they leave their
// sums in shared memory, and each then adds up and finishes its part of the tile by reading the
// others' memory directly. No scratch memory, no atomics, and the order of additions is fixed, so
// results repeat bit for bit. (Tried on paper and dropped: sums through a workspace with a counter,
// which costs a round trip through L2 and a counter to reset.)
//
// On Hopper (WGMMA, sm_90a) four warps together multiply 64 rows at once straight from shared memory,
// asynchronously, so that no instructions go into moving fragments and the copies of later steps are
// issued while the product runs. The permutation of the pieces is the one its 128-byte swizzle
// expects. Each chip before and after it has only mma.
//
// Needs: input channels divisible by 8. Images of fewer get there by space_to_depth.cu.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"

#ifndef TILE_M
#define TILE_M 64
#endif
#ifndef TILE_N
#define TILE_N 64
#endif
#ifndef TILE_K
#define TILE_K 64
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef WARPS_M
#define WARPS_M 2
#endif
#ifndef WARPS_N
#define WARPS_N 2
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef POINT
#define POINT 0  // 1: a 1 x 1 window without padding and with stride 1
#endif
#ifndef STEP_TAPS
#define STEP_TAPS 0  // taps in a step along K where channels are so few; 0: any number of channels
#endif
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // 1: nothing ever writes w, so its copies start before the turn comes
#endif
#ifndef WGMMA
#define WGMMA 0  // needs TILE_K 64, WARPS_M = TILE_M / 16, TILE_N / WARPS_N of 16, 32, 64 or 128
#endif
#ifndef ACTIVATION
#define ACTIVATION 0  // see rondo_activation.cuh; fixed, since code that is not there is not fetched
#endif

#define THREADS (32 * WARPS_M * WARPS_N)
#define PIECES (TILE_K / 8)  // 16-byte pieces of a row
#define ROW_STEP (THREADS / PIECES)
#define ROWS_A ((TILE_M + ROW_STEP - 1) / ROW_STEP)
#define ROWS_B ((TILE_N + ROW_STEP - 1) / ROW_STEP)
#define STAGE_HALVES ((TILE_M + TILE_N) * TILE_K)
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
#define COLUMNS (TILE_N / 8)  // packs of eight filters in a row of the tile; divides THREADS
#define ROW_STRIDE (SPLIT * THREADS / COLUMNS)
#define PACKS ((TILE_M + ROW_STRIDE - 1) / ROW_STRIDE)
#define SUM_PITCH (TILE_N + 4)  // floats of a row of sums

struct tensor_arguments {
    const f16 *x;
    const f16 *w;     // [filters, depth]
    const f16 *bias;  // may be NULL
    const f16 *z;     // may be NULL; y's shape
    f16 *y;           // [pixels, filters]
    i64 pixels, filters, depth;  // depth: taps * channels
    i64 channels;
    i64 height, width, out_height, out_width;
    i64 kernel_width, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
    double alpha, beta;
};

__device__ __forceinline__ u32 shared_address(const void *p) {
    return (u32)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void copy_async(u32 to, const void *from, bool is_inside) {
    const int bytes = is_inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from));
}
__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Byte offset of a piece in a tile of rows.
__device__ __forceinline__ u32 piece_offset(int row, int piece) {
    const int turn = PIECES == 8 ? (row & 7) : ((row >> 1) & 3);
    return (u32)((row * PIECES + (piece ^ turn)) * 16);
}
#if WGMMA
// What wgmma wants to know of a tile: its address, 8 rows to the next group of rows, 128-byte swizzle.
__device__ __forceinline__ u64 describe_tile(u32 address) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}
__device__ __forceinline__ void multiply_group(float (&d)[2][4], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7}, "
                 "%8, %9, 1, 1, 1, 0, 0;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
                   "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3])
                 : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(float (&d)[4][4], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
                 "%16, %17, 1, 1, 1, 0, 0;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
                   "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
                   "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                   "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
                 : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(float (&d)[8][4], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, 1, 1, 1, 0, 0;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
                   "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
                   "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                   "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
                   "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
                   "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
                   "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
                 : "l"(a), "l"(b));
}
__device__ __forceinline__ void multiply_group(float (&d)[16][4], u64 a, u64 b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, 1, 1, 1, 0, 0;"
                 : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]),
                   "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),
                   "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
                   "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),
                   "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),
                   "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
                   "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
                   "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),
                   "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
                   "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),
                   "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]),
                   "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]),
                   "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]),
                   "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
                   "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]),
                   "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
                 : "l"(a), "l"(b));
}
#endif
#if SPLIT > 1
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
__device__ __forceinline__ float4 load_from_block(u32 address, u32 rank) {
    u32 remote;
    float4 v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(remote)
                 : "memory");
    return v;
}
#endif

// The grid is (SPLIT, filter tiles, pixel tiles); a cluster is the SPLIT blocks of one tile.
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS) conv_tensor(const __grid_constant__ tensor_arguments p) {
    extern __shared__ __align__(1024) u8 memory[];
    f16 *tiles = (f16 *)memory;
    float *sums = (float *)memory;  // after the product, in the same place
    release_successor();
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
#if WGMMA
    // Four consecutive warps are a group of 64 rows; groups side by side share the rows.
    const int group = warp >> 2;
    const int warp_m = group / WARPS_N * 4 + (warp & 3), warp_n = group % WARPS_N;
#else
    const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;
#endif
    const int part = SPLIT > 1 ? blockIdx.x : 0;
    const int m0 = blockIdx.z * TILE_M, n0 = blockIdx.y * TILE_N;
    const int pixels = (int)p.pixels, filters = (int)p.filters, depth = (int)p.depth;
    const int channels = (int)p.channels, width = (int)p.width, height = (int)p.height;

    // This part's steps of the inner extent.
    const int all_steps = (depth + TILE_K - 1) / TILE_K;
    const int first_step = all_steps * part / SPLIT;
    const int steps = all_steps * (part + 1) / SPLIT - first_step;

    // What this thread copies: one piece of every ROW_STEP-th row.
    const int piece = thread % PIECES, row = thread / PIECES;
    // Each fetch starts the copies of one step into a buffer and moves on to the next step.
    int k_b = first_step * TILE_K + piece * 8;
    auto fetch_b = [&](int buffer) {
        const u32 to = shared_address(tiles + buffer * STAGE_HALVES) + TILE_M * TILE_K * 2;
#pragma unroll
        for (int i = 0; i < ROWS_B; i++) {
            if (TILE_N % ROW_STEP != 0 && row + i * ROW_STEP >= TILE_N) {
                break;
            }
            const int n = n0 + row + i * ROW_STEP;
            const bool ok = k_b < depth && n < filters;
            copy_async(to + piece_offset(row + i * ROW_STEP, piece),
                       p.w + (ok ? (i64)n * depth + k_b : 0), ok);
        }
        k_b += TILE_K;
    };
    if (EAGER_WEIGHTS) {
#pragma unroll
        for (int s = 0; s < STAGES - 1; s++) {
            if (s < steps) {
                fetch_b(s);
            }
        }
    }

    int base[ROWS_A], row_y[ROWS_A], row_x[ROWS_A];
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
        const int m = m0 + row + i * ROW_STEP;
        const bool is_inside = m < pixels && row + i * ROW_STEP < TILE_M;
        if (POINT) {
            base[i] = is_inside ? m : -1;
            row_y[i] = 0;
            row_x[i] = 0;
        } else {
            const int positions = (int)(p.out_height * p.out_width);
            const int at = is_inside ? m % positions : 0;
            base[i] = is_inside ? m / positions * height * width : -1;
            row_y[i] = at / (int)p.out_width * (int)p.stride_y - (int)p.before_y;
            row_x[i] = at % (int)p.out_width * (int)p.stride_x - (int)p.before_x;
        }
    }
    int k = first_step * TILE_K + piece * 8;
    int channel = 0, tap_y = 0, tap_x = 0;
    if (!POINT) {
        const int tap = k / channels;
        channel = k - tap * channels;
        tap_y = tap / (int)p.kernel_width;
        tap_x = tap - tap_y * (int)p.kernel_width;
    }

    auto fetch_a = [&](int buffer) {
        f16 *tile_a = tiles + buffer * STAGE_HALVES;
        const u32 to_a = shared_address(tile_a);
        const bool in_depth = k < depth;
#pragma unroll
        for (int i = 0; i < ROWS_A; i++) {
            if (TILE_M % ROW_STEP != 0 && row + i * ROW_STEP >= TILE_M) {
                break;
            }
            const u32 to = to_a + piece_offset(row + i * ROW_STEP, piece);
            if (POINT) {
                const bool ok = in_depth && base[i] >= 0;
                copy_async(to, p.x + (ok ? (i64)base[i] * channels + k : 0), ok);
            } else {
                const int y = row_y[i] + tap_y * (int)p.dilation_y;
                const int x = row_x[i] + tap_x * (int)p.dilation_x;
                const bool ok = in_depth && base[i] >= 0 && (u32)y < (u32)height &&
                                (u32)x < (u32)width;
                copy_async(to, p.x + (ok ? (i64)(base[i] + y * width + x) * channels + channel : 0),
                           ok);
            }
        }
        k += TILE_K;
        if (STEP_TAPS > 0) {
            tap_x += STEP_TAPS;
            while (tap_x >= (int)p.kernel_width) {
                tap_x -= (int)p.kernel_width;
                tap_y++;
            }
        } else if (!POINT) {
            channel += TILE_K;
            while (channel >= channels) {
                channel -= channels;
                tap_x++;
                if (tap_x == (int)p.kernel_width) {
                    tap_x = 0;
                    tap_y++;
                }
            }
        }
    };

    float sum[FRAGMENTS_M][FRAGMENTS_N][4];
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                sum[i][j][e] = 0.0f;
            }
        }
    }
    await_predecessors();
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            if (!EAGER_WEIGHTS) {
                fetch_b(s);
            }
            fetch_a(s);
        }
        asm volatile("cp.async.commit_group;");
    }

    // What this thread will finish: PACKS times eight neighbouring filters of a pixel, always the same
    // filters; the cluster's blocks share the pixels. Bias and residual are fetched now, while the
    // product runs.
    const int column = thread % COLUMNS * 8, n = n0 + column;
    const int first_row = (part * THREADS + thread) / COLUMNS;
    const bool is_wide = (filters & 7) == 0;
    pack<f16, 8> bias, z[PACKS];
    if (is_wide && n < filters) {
        if (p.bias != 0) {
            bias = *(const pack<f16, 8> *)(p.bias + n);
        }
        if (p.z != 0) {
#pragma unroll
            for (int i = 0; i < PACKS; i++) {
                const int r = first_row + i * ROW_STRIDE, m = m0 + r;
                if (r < TILE_M && m < pixels) {
                    z[i] = *(const pack<f16, 8> *)(p.z + (i64)m * filters + n);
                }
            }
        }
    }

#if WGMMA
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
        const u32 from_a = shared_address(tiles + step % STAGES * STAGE_HALVES);
        const u64 tile_a = describe_tile(from_a + group / WARPS_N * 64 * TILE_K * 2);
        const u64 tile_b =
            describe_tile(from_a + (TILE_M + warp_n * (TILE_N / WARPS_N)) * TILE_K * 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < TILE_K / 16; kk++) {
            multiply_group(sum[0], tile_a + kk * 2, tile_b + kk * 2);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (step + STAGES - 1 < steps) {
            fetch_b((step + STAGES - 1) % STAGES);
            fetch_a((step + STAGES - 1) % STAGES);
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            fetch_b((step + STAGES - 1) % STAGES);
            fetch_a((step + STAGES - 1) % STAGES);
        }
        asm volatile("cp.async.commit_group;");
        const u32 from_a = shared_address(tiles + step % STAGES * STAGE_HALVES);
        const u32 from_b = from_a + TILE_M * TILE_K * 2;
#pragma unroll
        for (int kk = 0; kk < TILE_K / 16; kk++) {
            u32 a[FRAGMENTS_M][4], b[FRAGMENTS_N / 2][4];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
                const int r = warp_m * (TILE_M / WARPS_M) + i * 16 + (lane & 15);
                load_matrices(a[i], from_a + piece_offset(r, kk * 2 + (lane >> 4)));
            }
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; j++) {
                // Four matrices: (n 0-7, k 0-7), (n 0-7, k 8-15), (n 8-15, k 0-7), (n 8-15, k 8-15).
                const int r = warp_n * (TILE_N / WARPS_N) + j * 16 + (lane & 7) + (lane >> 4) * 8;
                load_matrices(b[j], from_b + piece_offset(r, kk * 2 + ((lane >> 3) & 1)));
            }
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; j++) {
                    multiply(sum[i][j], a[i], b[j / 2][(j & 1) * 2], b[j / 2][(j & 1) * 2 + 1]);
                }
            }
        }
    }
#endif
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();

    // Sums to shared memory, row by row.
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++) {
            const int r = warp_m * (TILE_M / WARPS_M) + i * 16 + (lane >> 2);
            const int c = warp_n * (TILE_N / WARPS_N) + j * 8 + (lane & 3) * 2;
            *(float2 *)(sums + r * SUM_PITCH + c) = make_float2(sum[i][j][0], sum[i][j][1]);
            *(float2 *)(sums + (r + 8) * SUM_PITCH + c) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
    }
#if SPLIT > 1
    cluster_wait();
#else
    __syncthreads();
#endif
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        const int r = first_row + i * ROW_STRIDE, m = m0 + r;
        if (r >= TILE_M || m >= pixels || n >= filters) {
            continue;
        }
        float value[8];
#if SPLIT > 1
        const u32 mine = shared_address(sums + r * SUM_PITCH + column);
        float4 low[SPLIT], high[SPLIT];
#pragma unroll
        for (u32 s = 0; s < SPLIT; s++) {
            low[s] = load_from_block(mine, s);
            high[s] = load_from_block(mine + 16, s);
        }
        float4 l = low[0], h = high[0];
#pragma unroll
        for (int s = 1; s < SPLIT; s++) {
            l.x += low[s].x, l.y += low[s].y, l.z += low[s].z, l.w += low[s].w;
            h.x += high[s].x, h.y += high[s].y, h.z += high[s].z, h.w += high[s].w;
        }
#else
        const float4 l = *(const float4 *)(sums + r * SUM_PITCH + column);
        const float4 h = *(const float4 *)(sums + r * SUM_PITCH + column + 4);
#endif
        value[0] = l.x, value[1] = l.y, value[2] = l.z, value[3] = l.w;
        value[4] = h.x, value[5] = h.y, value[6] = h.z, value[7] = h.w;
        const i64 to = (i64)m * filters + n;
        if (is_wide) {
            pack<f16, 8> result;
#pragma unroll
            for (int v = 0; v < 8; v++) {
                float t = value[v];
                t += p.bias != 0 ? half_to_float(bias.value[v]) : 0.0f;
                t += p.z != 0 ? half_to_float(z[i].value[v]) : 0.0f;
                result.value[v] =
                    half_from_float(activate<ACTIVATION>(t, (float)p.alpha, (float)p.beta));
            }
            *(pack<f16, 8> *)(p.y + to) = result;
        } else {
            for (int v = 0; v < 8 && n + v < filters; v++) {
                float t = value[v];
                t += p.bias != 0 ? half_to_float(p.bias[n + v]) : 0.0f;
                t += p.z != 0 ? half_to_float(p.z[to + v]) : 0.0f;
                p.y[to + v] =
                    half_from_float(activate<ACTIVATION>(t, (float)p.alpha, (float)p.beta));
            }
        }
    }
#if SPLIT > 1
    cluster_wait();  // nobody leaves while others read its memory
#endif
}
