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
// Where rows of x are to be normalised first (NORM), the product takes them as they are:
//
//   y = ((x - mean) / deviation * gain + shift) W + bias = (x W' - mean c) / deviation + d
//   W' = gain W, c = the sums of W' as it was rounded, d = shift W + bias
//
// Every row passes through shared memory anyway, so mean and deviation are found while the product
// runs: each thread reads what it copied itself, which needs no barrier, and the sums of a row are
// added up over threads and, as the sums of the product are, over the cluster. Elements count from the
// row's first: that is one of them, so it lies within sqrt(n - 1) deviations of the mean, and the
// difference of two sums that the variance is loses a share of n * 2^-24 at most. Where all elements
// are equal their squares add up to 0, exactly, and so does what the product is to add.
//
// Needs: input channels divisible by 8, or STEM, which gathers element by element.
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
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // 1: nothing ever writes w, so its copies start before the turn comes
#endif
#ifndef WGMMA
#define WGMMA 0  // needs TILE_K 64, WARPS_M = TILE_M / 16, TILE_N / WARPS_N of 16, 32, 64 or 128
#endif
#ifndef ACTIVATION
#define ACTIVATION 0  // see rondo_activation.cuh; fixed, since code that is not there is not fetched
#endif
#ifndef STEM
#define STEM 0  // 1: any number of channels; w rows are padded to a multiple of 8
#endif

#ifndef BESIDE
#define BESIDE 1  // blocks for which a multiprocessor's registers must do
#endif
#ifndef RONDO_Y
#define RONDO_Y f16  // or float: the sums as they are
#endif
typedef RONDO_Y Y;
#ifndef NARROW
#define NARROW 0  // 1: filters are no multiple of 8, so rows of results are not aligned
#endif
#ifndef NORM
#define NORM 0  // 1: rows of x are normalised; POINT
#endif
#ifndef NORM_OUT
#define NORM_OUT 0  // 1: and are an output themselves
#endif

#define THREADS (32 * WARPS_M * WARPS_N)
#define PIECES (TILE_K / 8)  // 16-byte pieces of a row
#define ROW_STEP (THREADS / PIECES)
#define ROWS_A ((TILE_M + ROW_STEP - 1) / ROW_STEP)
#define ROWS_B ((TILE_N + ROW_STEP - 1) / ROW_STEP)
#define STAGE_HALVES ((TILE_M + TILE_N) * TILE_K)
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
// Results are finished in packs of neighbouring filters, or one by one where rows are not aligned:
// then a warp still writes neighbours.
#define WIDTH (NARROW ? 1 : 8)
#define COLUMNS (TILE_N / WIDTH)  // packs in a row of the tile; divides THREADS
#define ROW_STRIDE (SPLIT * THREADS / COLUMNS)
#define PACKS ((TILE_M + ROW_STRIDE - 1) / ROW_STRIDE)
#define EARLY (NARROW ? 1 : PACKS)  // packs whose residual is fetched early: single ones are too many
#define SUM_PITCH (TILE_N + 4)  // floats of a row of sums

struct tensor_arguments {
    const f16 *x;
    const f16 *w;     // [filters, depth]
    const f16 *bias;  // may be NULL
    const f16 *z;     // may be NULL; y's shape
    Y *y;             // [pixels, filters]
    i64 pixels, filters, depth;  // depth: taps * channels (STEM: padded)
    i64 channels;
    i64 height, width, out_height, out_width;
    i64 kernel_width, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
    i64 taps;
    double alpha, beta;
#if NORM
    const float *weight_sums;   // [filters], c
    const float *offsets;       // [filters], d; `bias` is NULL
    const float *weight_scale;  // one number, by which w is to be multiplied
    const f16 *gain;            // NORM_OUT; [channels]
    const f16 *shift;           // NORM_OUT; may be NULL
    f16 *normal;                // NORM_OUT; x's shape
    double epsilon;
#endif
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
// The same where nothing is handed over: a release would wait until all that was written is in memory.
__device__ __forceinline__ void cluster_part() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}
__device__ __forceinline__ u32 find_in_block(u32 address, u32 rank) {
    u32 remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
    return remote;
}
__device__ __forceinline__ float4 load_from_block(u32 address, u32 rank) {
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(find_in_block(address, rank))
                 : "memory");
    return v;
}
__device__ __forceinline__ float load_one_from_block(u32 address, u32 rank) {
    float v;
    asm volatile("ld.shared::cluster.f32 %0, [%1];"
                 : "=f"(v)
                 : "r"(find_in_block(address, rank))
                 : "memory");
    return v;
}
#endif

typedef pack<f16, WIDTH> half_pack;

// WIDTH neighbouring sums, added up over the cluster's blocks, in which they lie at one place.
__device__ __forceinline__ void load_sums(const float *mine, float (&value)[WIDTH]) {
#if SPLIT > 1
    const u32 address = shared_address(mine);
#if NARROW
    float part[SPLIT];
#pragma unroll
    for (u32 s = 0; s < SPLIT; s++) {
        part[s] = load_one_from_block(address, s);
    }
    value[0] = part[0];
#pragma unroll
    for (int s = 1; s < SPLIT; s++) {
        value[0] += part[s];
    }
#else
    float4 low[SPLIT], high[SPLIT];
#pragma unroll
    for (u32 s = 0; s < SPLIT; s++) {
        low[s] = load_from_block(address, s);
        high[s] = load_from_block(address + 16, s);
    }
    float4 l = low[0], h = high[0];
#pragma unroll
    for (int s = 1; s < SPLIT; s++) {
        l.x += low[s].x, l.y += low[s].y, l.z += low[s].z, l.w += low[s].w;
        h.x += high[s].x, h.y += high[s].y, h.z += high[s].z, h.w += high[s].w;
    }
    value[0] = l.x, value[1] = l.y, value[2] = l.z, value[3] = l.w;
    value[4] = h.x, value[5] = h.y, value[6] = h.z, value[7] = h.w;
#endif
#else
    const pack<float, WIDTH> v = *(const pack<float, WIDTH> *)mine;
#pragma unroll
    for (int i = 0; i < WIDTH; i++) {
        value[i] = v.value[i];
    }
#endif
}

#if NORM
struct row_moments {
    float mean, inverse;  // of the deviation
};
// Of a row whose elements, less `origin`, add up to `total`, and their squares to `square`.
__device__ __forceinline__ row_moments make_moments(float total, float square, float origin,
                                                    int count, float epsilon) {
    const float share = 1.0f / (float)count, shifted = total * share;
    const float variance = fmaf(-shifted, shifted, square * share);
    row_moments row;
    row.mean = origin + shifted;
    row.inverse = square == 0.0f ? 0.0f : rsqrtf((variance < 0.0f ? 0.0f : variance) + epsilon);
    return row;
}
// What a block leaves of a row: its moments, or its part of the sums where others have the rest.
typedef float4 row_share;
__device__ __forceinline__ row_share make_share(float total, float square, float origin, int count,
                                                float epsilon) {
#if SPLIT > 1
    return make_float4(total, square, origin, 0.0f);
#else
    const row_moments row = make_moments(total, square, origin, count, epsilon);
    return make_float4(row.mean, row.inverse, 0.0f, 0.0f);
#endif
}
__device__ __forceinline__ row_moments load_moments(const row_share *mine, int count,
                                                    float epsilon) {
#if SPLIT > 1
    const u32 address = shared_address(mine);
    float4 sums = load_from_block(address, 0);
#pragma unroll
    for (u32 s = 1; s < SPLIT; s++) {
        const float4 other = load_from_block(address, s);
        sums.x += other.x, sums.y += other.y;
    }
    return make_moments(sums.x, sums.y, sums.z, count, epsilon);
#else
    const row_moments row = {mine->x, mine->y};
    return row;
#endif
}
__device__ __forceinline__ half_pack normalise(const half_pack &x, const half_pack &gain,
                                               const half_pack &shift, const row_moments &row) {
    half_pack y;
#pragma unroll
    for (int v = 0; v < WIDTH; v++) {
        const float normal = (half_to_float(x.value[v]) - row.mean) * row.inverse;
        y.value[v] = half_from_float(
            fmaf(normal, half_to_float(gain.value[v]), half_to_float(shift.value[v])));
    }
    return y;
}
#endif

// The grid is (SPLIT, filter tiles, pixel tiles); a cluster is the SPLIT blocks of one tile.
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS, BESIDE) conv_tensor(const __grid_constant__ tensor_arguments p) {
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
    if (!POINT && !STEM) {
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
            if (STEM) {
                // w rows hold (tap, channel) without gaps, so eight neighbours span taps.
                f16 value[8];
#pragma unroll
                for (int v = 0; v < 8; v++) {
                    const int kk = k + v;
                    const int tap = kk / channels, c = kk - tap * channels;
                    const int ty = tap / (int)p.kernel_width;
                    const int tx = tap - ty * (int)p.kernel_width;
                    const int y = row_y[i] + ty * (int)p.dilation_y;
                    const int x = row_x[i] + tx * (int)p.dilation_x;
                    const bool ok = base[i] >= 0 && tap < (int)p.taps && y >= 0 && x >= 0 &&
                                    y < height && x < width;
                    value[v].bits =
                        ok ? p.x[(i64)(base[i] + y * width + x) * channels + c].bits : (u16)0;
                }
                *(uint4 *)((u8 *)tile_a + piece_offset(row + i * ROW_STEP, piece)) =
                    *(const uint4 *)value;
            } else if (POINT) {
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
        if (!POINT && !STEM) {
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

#if NORM
    // Of this thread's share of its rows: elements less the row's first, and their squares, added up.
    float origin[ROWS_A], total[ROWS_A], square[ROWS_A];
    int k_seen = k;
    auto look = [&](int buffer) {
        const u8 *tile_a = (const u8 *)(tiles + buffer * STAGE_HALVES);
        if (k_seen < depth) {
#pragma unroll
            for (int i = 0; i < ROWS_A; i++) {
                if (TILE_M % ROW_STEP != 0 && row + i * ROW_STEP >= TILE_M) {
                    break;
                }
                const pack<f16, 8> x =
                    *(const pack<f16, 8> *)(tile_a + piece_offset(row + i * ROW_STEP, piece));
#pragma unroll
                for (int v = 0; v < 8; v++) {
                    const float d = half_to_float(x.value[v]) - origin[i];
                    total[i] += d;
                    square[i] = fmaf(d, d, square[i]);
                }
            }
        }
        k_seen += TILE_K;
    };
#endif

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

#if NORM
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
        origin[i] = base[i] >= 0 ? half_to_float(p.x[(i64)base[i] * channels]) : 0.0f;
        total[i] = square[i] = 0.0f;
    }
#endif

    // What this thread will finish: PACKS packs of filters, each of another pixel, always the same
    // filters; the cluster's blocks share the pixels. Bias and residual are fetched now, while the
    // product runs.
    const int column = thread % COLUMNS * WIDTH, n = n0 + column;
    const int first_row = (part * THREADS + thread) / COLUMNS;
    const bool has_bias = !NORM && p.bias != 0;
    half_pack bias, z[EARLY];
    if (n < filters) {
        if (has_bias) {
            bias = *(const half_pack *)(p.bias + n);
        }
        if (!NARROW && p.z != 0) {
#pragma unroll
            for (int i = 0; i < EARLY; i++) {
                const int r = first_row + i * ROW_STRIDE, m = m0 + r;
                if (r < TILE_M && m < pixels) {
                    z[i] = *(const half_pack *)(p.z + (i64)m * filters + n);
                }
            }
        }
    }
#if NORM
    const float weight_scale = *p.weight_scale;
    pack<float, WIDTH> weight_sum, offset;
    if (n < filters) {
        weight_sum = *(const pack<float, WIDTH> *)(p.weight_sums + n);
        offset = *(const pack<float, WIDTH> *)(p.offsets + n);
    }
#endif
#if NORM_OUT
    half_pack raw[EARLY], gain, shift = {};
    if (n < depth) {
        gain = *(const half_pack *)(p.gain + n);
        if (p.shift != 0) {
            shift = *(const half_pack *)(p.shift + n);
        }
#pragma unroll
        for (int i = 0; i < EARLY && !NARROW; i++) {
            const int r = first_row + i * ROW_STRIDE, m = m0 + r;
            if (r < TILE_M && m < pixels) {
                raw[i] = *(const half_pack *)(p.x + (i64)m * depth + n);
            }
        }
    }
#endif

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
#if NORM
        look(step % STAGES);
#endif
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
#if NORM
        look(step % STAGES);
#endif
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
#if NORM
    row_share *const shares = (row_share *)(sums + TILE_M * SUM_PITCH);
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
#pragma unroll
        for (int step = 1; step < PIECES; step *= 2) {
            total[i] += __shfl_xor_sync(0xffffffffu, total[i], step);
            square[i] += __shfl_xor_sync(0xffffffffu, square[i], step);
        }
        if (piece == 0 && row + i * ROW_STEP < TILE_M) {
            shares[row + i * ROW_STEP] =
                make_share(total[i], square[i], origin[i], depth, (float)p.epsilon);
        }
    }
#endif
#if SPLIT > 1
    cluster_wait();
#else
    __syncthreads();
#endif
    constexpr int at_once = NARROW ? 8 : PACKS;
#pragma unroll at_once
    for (int i = 0; i < PACKS; i++) {
        const int r = first_row + i * ROW_STRIDE, m = m0 + r;
        if (r >= TILE_M || m >= pixels) {
            continue;
        }
#if NORM
        const row_moments moments = load_moments(shares + r, depth, (float)p.epsilon);
        const float factor = moments.inverse * weight_scale;
#endif
#if NORM_OUT
        const f16 *const x = p.x + (i64)m * depth;
        f16 *const normal = p.normal + (i64)m * depth;
        if (n < depth) {
            const half_pack first = NARROW ? *(const half_pack *)(x + n) : raw[i % EARLY];
            *(half_pack *)(normal + n) = normalise(first, gain, shift, moments);
        }
        // Mostly there are as many filters as channels, and nothing is left.
        for (int c = n + (int)gridDim.y * TILE_N; c < depth; c += (int)gridDim.y * TILE_N) {
            half_pack plus = {};
            if (p.shift != 0) {
                plus = *(const half_pack *)(p.shift + c);
            }
            *(half_pack *)(normal + c) = normalise(*(const half_pack *)(x + c),
                                                   *(const half_pack *)(p.gain + c), plus, moments);
        }
#endif
        if (n >= filters) {
            continue;
        }
        const i64 to = (i64)m * filters + n;
        if (NARROW && p.z != 0) {
            z[0] = *(const half_pack *)(p.z + to);
        }
        float value[WIDTH];
        load_sums(sums + r * SUM_PITCH + column, value);
        pack<Y, WIDTH> result;
#pragma unroll
        for (int v = 0; v < WIDTH; v++) {
            float t = value[v];
#if NORM
            t = fmaf(fmaf(-moments.mean, weight_sum.value[v], t), factor, offset.value[v]);
#endif
            t += has_bias ? half_to_float(bias.value[v]) : 0.0f;
            t += p.z != 0 ? half_to_float(z[i % EARLY].value[v]) : 0.0f;
            result.value[v] = convert<Y>(activate<ACTIVATION>(t, (float)p.alpha, (float)p.beta));
        }
        *(pack<Y, WIDTH> *)(p.y + to) = result;
    }
#if SPLIT > 1
    cluster_part();  // nobody leaves while others read its memory, and all here have read theirs
#endif
}
