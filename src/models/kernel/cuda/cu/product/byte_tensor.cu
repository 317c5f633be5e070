// byte_tensor.cu - products and convolutions of 8-bit integers on the tensor cores, exact. The other way
// to do the same is byte_product.cu, four products an instruction.
//
//   rows x depth (x as it is, or its windows)  times  depth x columns (w, packed column by column)
//
// A block makes TILE_M x TILE_N sums, as conv_tensor.cu does it: 128 bytes of each row at a time flow
// through STAGES buffers of shared memory, whose 16-byte pieces are permuted by the row number; warps
// of WARPS_M x WARPS_N feed mma.m16n8k32 from them, or on Hopper four warps together wgmma; and SPLIT
// blocks of a cluster share a tile, each with a part of the depth.
//
// Bytes of x are multiplied as they are. Weights are packed signed: of unsigned ones 128 is taken off,
// and off their zero points. Zero points are subtracted at the end, modulo 2^32, which is exact where
// the result fits:
//   sum (x - p)(w - q) = sum xw - q sum x - p (sum w - depth q)
// Sums of columns come with the packed weights. Sums of rows are products with ones, made beside the
// others where W_HAS_ZERO. A window that hangs over the border sees the zero point there, which is
// stored into the tile instead of copied, so that the formula holds.
//
// COPY is how many bytes of x are copied at a time: 16, 8 or 4, a divisor of the channels of a pixel.
// SPDX-License-Identifier: Apache-2.0
#define COLUMNS_WRAP 0
#include "rondo_types.cuh"
#include "rondo_quantize.cuh"
#include "rondo_bytes.cuh"
#include "rondo_activation.cuh"
#include "rondo_byte_ending.cuh"

#ifndef TILE_M
#define TILE_M 64
#endif
#ifndef TILE_N
#define TILE_N 64
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
#ifndef COPY
#define COPY 16
#endif
#ifndef POINT
#define POINT 0  // 1: a 1 x 1 window without padding and with stride 1
#endif
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // 1: nothing ever writes w, so its copies start before the turn comes
#endif
#ifndef WGMMA
#define WGMMA 0  // needs WARPS_M = TILE_M / 16, TILE_N / WARPS_N of 32, 64 or 128
#endif

#include "rondo_byte_mma.cuh"

#define STEP 128  // bytes of a row in a tile
#define THREADS (32 * WARPS_M * WARPS_N)
#define PIECES_X (STEP / COPY)
#define PIECES_W (STEP / 16)
#define ROW_STEP_X (THREADS / PIECES_X)
#define ROW_STEP_W (THREADS / PIECES_W)
#define ROWS_X ((TILE_M + ROW_STEP_X - 1) / ROW_STEP_X)
#define ROWS_W ((TILE_N + ROW_STEP_W - 1) / ROW_STEP_W)
#define STAGE_BYTES ((TILE_M + TILE_N) * STEP)
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
#define WIDE ((int)sizeof(Y) == 4 ? 4 : 8)  // neighbours that a thread finishes and writes at once
#define PACKS_OF_ROW (TILE_N / WIDE)
#define ROW_STRIDE (SPLIT * THREADS / PACKS_OF_ROW)
#define SUM_PITCH (TILE_N + 4)  // of a row of sums; behind them stands the sum of the row of x
#define ONES 0x01010101u

struct byte_arguments {
    const u8 *x;
    const u8 *w;       // [columns][pitch], signed
    const i32 *w_sums;  // of the columns
    Y *y;              // [rows][columns]
    ending end;
    i64 rows, columns, depth, pitch;  // depth: taps * channels
    i64 channels;
    i64 height, width, out_height, out_width;
    i64 kernel_width, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
};

// Byte offset of a byte in a tile of rows.
__device__ __forceinline__ u32 find_byte(int row, int at) {
    return (u32)(row * STEP + (((at >> 4) ^ (row & 7)) << 4) + (at & 15));
}
__device__ __forceinline__ int read_x_zero(const ending &e, i64 row) {
    if (!X_HAS_ZERO || e.x_zero == 0) {
        return 0;
    }
    const u8 value = e.x_zero[find_parameter(e.x_zeros, row)];
    return X_IS_UNSIGNED ? (int)value : (int)(i8)value;
}
__device__ __forceinline__ void copy_bytes(u32 to, const u8 *from, bool is_there) {
    if (COPY == 16) {
        copy_16(to, from, is_there);
    } else {
        copy_few<COPY == 16 ? 8 : COPY>(to, from, is_there);
    }
}
__device__ __forceinline__ void fill_bytes(u8 *to, u32 word) {
    u32 *words = (u32 *)to;
#pragma unroll
    for (int i = 0; i < COPY / 4; i++) {
        words[i] = word;
    }
}

// The grid is (SPLIT, column tiles, row tiles); a cluster is the SPLIT blocks of one tile.
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS) byte_tensor(const __grid_constant__ byte_arguments p) {
    extern __shared__ __align__(1024) u8 memory[];
    u8 *tiles = memory;
    i32 *sums = (i32 *)memory;  // after the product, in the same place
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
    const int rows = (int)p.rows, columns = (int)p.columns, depth = (int)p.depth;
    const int channels = (int)p.channels, width = (int)p.width, height = (int)p.height;

    // This part's steps along the depth.
    const int all_steps = (depth + STEP - 1) / STEP;
    const int first_step = all_steps * part / SPLIT;
    const int steps = all_steps * (part + 1) / SPLIT - first_step;

    // Each fetch starts the copies of one step into a buffer and moves on to the next step.
    const int w_at = thread % PIECES_W * 16, w_row = thread / PIECES_W;
    int w_k = first_step * STEP + w_at;
    auto fetch_w = [&](int buffer) {
        const u32 to = shared_address(tiles + buffer * STAGE_BYTES) + TILE_M * STEP;
#pragma unroll
        for (int i = 0; i < ROWS_W; i++) {
            const int row = w_row + i * ROW_STEP_W, n = n0 + row;
            if (TILE_N % ROW_STEP_W != 0 && row >= TILE_N) {
                break;
            }
            const bool ok = w_k < (int)p.pitch && n < columns;
            copy_16(to + find_byte(row, w_at), p.w + (ok ? (i64)n * p.pitch + w_k : 0), ok);
        }
        w_k += STEP;
    };
    if (EAGER_WEIGHTS) {
#pragma unroll
        for (int s = 0; s < STAGES - 1; s++) {
            if (s < steps) {
                fetch_w(s);
            }
        }
    }

    // Rows of x that this thread copies, a piece of each; -1: there is none.
    const int x_at = thread % PIECES_X * COPY, x_row = thread / PIECES_X;
    int base[ROWS_X], row_y[ROWS_X], row_x[ROWS_X];
#pragma unroll
    for (int i = 0; i < ROWS_X; i++) {
        const int m = m0 + x_row + i * ROW_STEP_X;
        const bool is_inside = m < rows && x_row + i * ROW_STEP_X < TILE_M;
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
    int k = first_step * STEP + x_at;
    int channel = 0, tap_y = 0, tap_x = 0, step_taps = 0, step_rest = 0;
    if (!POINT) {
        const int tap = k / channels;
        step_taps = STEP / channels;
        step_rest = STEP % channels;
        channel = k - tap * channels;
        tap_y = tap / (int)p.kernel_width;
        tap_x = tap - tap_y * (int)p.kernel_width;
    }
    u32 padding = 0;
    auto fetch_x = [&](int buffer) {
        u8 *tile = tiles + buffer * STAGE_BYTES;
        const u32 tile_address = shared_address(tile);
        const bool in_depth = k < depth;
#pragma unroll
        for (int i = 0; i < ROWS_X; i++) {
            const int row = x_row + i * ROW_STEP_X;
            if (TILE_M % ROW_STEP_X != 0 && row >= TILE_M) {
                break;
            }
            const u32 to = find_byte(row, x_at);
            bool ok = in_depth && base[i] >= 0;
            if (POINT) {
                copy_bytes(tile_address + to, p.x + (ok ? (i64)base[i] * channels + k : 0), ok);
                continue;
            }
            const int y = row_y[i] + tap_y * (int)p.dilation_y;
            const int x = row_x[i] + tap_x * (int)p.dilation_x;
            const bool is_seen = (u32)y < (u32)height && (u32)x < (u32)width;
            if (X_HAS_ZERO && ok && !is_seen) {
                fill_bytes(tile + to, padding);
                continue;
            }
            ok = ok && is_seen;
            copy_bytes(tile_address + to,
                       p.x + (ok ? (i64)(base[i] + y * width + x) * channels + channel : 0), ok);
        }
        k += STEP;
        if (!POINT) {
            channel += step_rest;
            tap_x += step_taps;
            if (channel >= channels) {
                channel -= channels;
                tap_x++;
            }
            while (tap_x >= (int)p.kernel_width) {
                tap_x -= (int)p.kernel_width;
                tap_y++;
            }
        }
    };

    i32 sum[FRAGMENTS_M][FRAGMENTS_N][4], x_sum[FRAGMENTS_M][4];
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            x_sum[i][e] = 0;
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j++) {
                sum[i][j][e] = 0;
            }
        }
    }
#if WGMMA
    u32 *ones = (u32 *)(tiles + STAGES * STAGE_BYTES);  // a tile of eight rows, where it is wanted
    for (int i = thread; W_HAS_ZERO && i < 8 * STEP / 4; i += THREADS) {
        ones[i] = ONES;
    }
#endif
    await_predecessors();
    if (!POINT) {
        padding = (u32)(u8)read_x_zero(p.end, 0) * ONES;
    }
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) {
            if (!EAGER_WEIGHTS) {
                fetch_w(s);
            }
            fetch_x(s);
        }
        asm volatile("cp.async.commit_group;");
    }

#if WGMMA
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        __syncthreads();
        const u32 from_x = shared_address(tiles + step % STAGES * STAGE_BYTES);
        const u64 tile_x = describe_tile(from_x + group / WARPS_N * 64 * STEP);
        const u64 tile_w = describe_tile(from_x + (TILE_M + warp_n * (TILE_N / WARPS_N)) * STEP);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < STEP / 32; kk++) {
            multiply_group(sum[0], tile_x + kk * 2, tile_w + kk * 2);
            if (W_HAS_ZERO) {
                multiply_group(x_sum, tile_x + kk * 2, describe_tile(shared_address(ones)));
            }
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (step + STAGES - 1 < steps) {
            fetch_w((step + STAGES - 1) % STAGES);
            fetch_x((step + STAGES - 1) % STAGES);
        }
        asm volatile("cp.async.commit_group;");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            fetch_w((step + STAGES - 1) % STAGES);
            fetch_x((step + STAGES - 1) % STAGES);
        }
        asm volatile("cp.async.commit_group;");
        const u32 from_x = shared_address(tiles + step % STAGES * STAGE_BYTES);
        const u32 from_w = from_x + TILE_M * STEP;
#pragma unroll
        for (int kk = 0; kk < STEP; kk += 32) {
            u32 a[FRAGMENTS_M][4], b[FRAGMENTS_N / 2][4];
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
                const int r = warp_m * (TILE_M / WARPS_M) + i * 16 + (lane & 15);
                load_matrices(a[i], from_x + find_byte(r, kk + (lane >> 4) * 16));
            }
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N / 2; j++) {
                // Four matrices: (n 0-7, k 0-15), (n 0-7, k 16-31), and those of n 8-15.
                const int r = warp_n * (TILE_N / WARPS_N) + j * 16 + (lane & 7) + (lane >> 4) * 8;
                load_matrices(b[j], from_w + find_byte(r, kk + ((lane >> 3) & 1) * 16));
            }
#pragma unroll
            for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
                for (int j = 0; j < FRAGMENTS_N; j++) {
                    multiply(sum[i][j], a[i], b[j / 2][(j & 1) * 2], b[j / 2][(j & 1) * 2 + 1]);
                }
                if (W_HAS_ZERO) {
                    multiply(x_sum[i], a[i], ONES, ONES);
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
        const int r = warp_m * (TILE_M / WARPS_M) + i * 16 + (lane >> 2);
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++) {
            const int c = warp_n * (TILE_N / WARPS_N) + j * 8 + (lane & 3) * 2;
            pack<i32, 2> low = {{sum[i][j][0], sum[i][j][1]}};
            pack<i32, 2> high = {{sum[i][j][2], sum[i][j][3]}};
            *(pack<i32, 2> *)(sums + r * SUM_PITCH + c) = low;
            *(pack<i32, 2> *)(sums + (r + 8) * SUM_PITCH + c) = high;
        }
        if (W_HAS_ZERO && warp_n == 0 && (lane & 3) == 0) {
            sums[r * SUM_PITCH + TILE_N] = x_sum[i][0];
            sums[(r + 8) * SUM_PITCH + TILE_N] = x_sum[i][2];
        }
    }

    // What this thread will finish: WIDE neighbouring columns of some rows, always the same columns;
    // the cluster's blocks share the rows.
    const int column = thread % PACKS_OF_ROW * WIDE, n = n0 + column;
    const int first_row = (part * THREADS + thread) / PACKS_OF_ROW;
    const bool is_wide = columns % WIDE == 0;
    const u32 one_zero = (u32)read_x_zero(p.end, 0);
    column_ending<Y> end[WIDE];
    u32 w_zero[WIDE], w_sum[WIDE];
#pragma unroll
    for (int v = 0; v < WIDE; v++) {
        const int at = n + v < columns ? n + v : 0;
        end[v].load(p.end, at);
        const u8 *zero =
            p.end.w_zero != 0 ? p.end.w_zero + find_column(p.end.w_zeros, at) : p.end.w_zero;
        w_zero[v] = W_HAS_ZERO ? (u32)read_zero(zero, 1, 0, W_IS_UNSIGNED != 0) : 0u;
        w_sum[v] = X_HAS_ZERO ? (u32)p.w_sums[at] - (u32)p.end.depth * w_zero[v] : 0u;
    }
#if SPLIT > 1
    cluster_meet();
#else
    __syncthreads();
#endif
    for (int r = first_row; r < TILE_M && n < columns; r += ROW_STRIDE) {
        const int m = m0 + r;
        if (m >= rows) {
            break;
        }
        u32 value[WIDE / 4 + 1][4];  // the last: of the row of x
#pragma unroll
        for (int v = 0; v < WIDE / 4 + (W_HAS_ZERO != 0); v++) {
            const int at = r * SUM_PITCH + (v < WIDE / 4 ? column + v * 4 : TILE_N);
#if SPLIT > 1
#pragma unroll
            for (int e = 0; e < 4; e++) {
                value[v][e] = 0;
            }
#pragma unroll
            for (u32 s = 0; s < SPLIT; s++) {
                add_from_block(value[v], shared_address(sums + at), s);
            }
#else
            const pack<u32, 4> four = *(const pack<u32, 4> *)(sums + at);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                value[v][e] = four.value[e];
            }
#endif
        }
        const u32 zero = p.end.x_zeros == 1 ? one_zero : (u32)read_x_zero(p.end, m);
        const i64 to = (i64)m * columns + n;
        pack<float, 4> z = {{0.0f, 0.0f, 0.0f, 0.0f}};
        if (sizeof(Y) == 4 && p.end.z != 0) {
            if (is_wide) {
                z = *(const pack<float, 4> *)(p.end.z + to);
            } else {
                for (int v = 0; v < 4 && n + v < columns; v++) {
                    z.value[v] = p.end.z[to + v];
                }
            }
        }
        pack<Y, WIDE> result;
#pragma unroll
        for (int v = 0; v < WIDE; v++) {
            u32 total = value[v / 4][v % 4];
            total -= W_HAS_ZERO ? w_zero[v] * value[WIDE / 4][0] : 0u;
            total -= X_HAS_ZERO ? w_sum[v] * zero : 0u;
            const int at = n + v < columns ? n + v : n;
            result.value[v] = end[v].run(p.end, (i32)total, m, at, z.value[v & 3]);
        }
        if (is_wide) {
            *(pack<Y, WIDE> *)(p.y + to) = result;
        } else {
            for (int v = 0; v < WIDE && n + v < columns; v++) {
                p.y[to + v] = result.value[v];
            }
        }
    }
#if SPLIT > 1
    cluster_meet();  // no block leaves while others read its memory
#endif
}
