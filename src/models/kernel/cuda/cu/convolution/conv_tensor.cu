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
// SPLIT blocks of a cluster share one tile, each taking a part of the inner extent; each finishes
// TILE_M / SPLIT of the rows, for which the others store their sums into its shared memory. No scratch
// memory, no atomics, and the order of additions is fixed, so results repeat bit for bit. (Tried and
// dropped: sums that each block reads from the others' memory, which waits for two ways instead of one;
// on paper, sums through a workspace with a counter, a round trip through L2 and a counter to reset.)
//
// On Hopper conv_tma.cu takes what it can.
//
// Where channels are of groups (GROUPED), a block has filters of one.
//
// Needs: input channels, of a group, divisible by 8. Images of fewer get there by space_to_depth.cu.
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

#define THREADS (32 * WARPS_M * WARPS_N)
#define PIECES (TILE_K / 8)  // 16-byte pieces of a row
#define ROW_STEP (THREADS / PIECES)
#define ROWS_A ((TILE_M + ROW_STEP - 1) / ROW_STEP)
#define ROWS_B ((TILE_N + ROW_STEP - 1) / ROW_STEP)
#define STAGE_HALVES ((TILE_M + TILE_N) * TILE_K)
#define FRAGMENTS_M (TILE_M / WARPS_M / 16)
#define FRAGMENTS_N (TILE_N / WARPS_N / 8)
#define OWN_ROWS (TILE_M / SPLIT)  // that this block finishes
#define FINISHERS THREADS

#include "rondo_cluster.cuh"
#include "rondo_ending.cuh"

// Of other blocks sums come while this one still multiplies, so they lie behind its buffers.
#define RECEIVED_AT (SPLIT > 1 ? STAGES * STAGE_HALVES * 2 : 0)

struct tensor_arguments {
    const f16 *x;
    const f16 *w;     // [filters, depth]
    ending_arguments end;
    i64 channels;     // of a group
    i64 height, width, out_height, out_width;
    i64 kernel_width, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
};

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

// The grid is (SPLIT, filter tiles, pixel tiles); a cluster is the SPLIT blocks of one tile.
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS) conv_tensor(const __grid_constant__ tensor_arguments p) {
    extern __shared__ __align__(1024) u8 memory[];
    f16 *tiles = (f16 *)memory;
    release_successor();
#if SPLIT > 1
    cluster_arrive();
#endif
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int warp_m = warp / WARPS_N, warp_n = warp % WARPS_N;
    const int part = SPLIT > 1 ? blockIdx.x : 0;
    const int m0 = blockIdx.z * TILE_M, pixels = (int)p.end.pixels, depth = (int)p.end.depth;
    const int filters = p.end.get_end(), channels = (int)p.channels;
#if GROUPED
    // The group's part of everything.
    const int tiles_n = (filters + TILE_N - 1) / TILE_N, group = blockIdx.y / tiles_n;
    const int n0 = blockIdx.y % tiles_n * TILE_N, pitch = (int)p.end.filters / filters * channels;
    const f16 *const of_x = p.x + group * channels, *const of_w = p.w + (i64)group * filters * depth;
    ending_arguments to_end = p.end;
    to_end.bias += to_end.bias != 0 ? group * filters : 0;
    to_end.z += to_end.z != 0 ? group * filters : 0;
    to_end.y += group * filters;
#else
    const int n0 = blockIdx.y * TILE_N, pitch = channels;
    const f16 *const of_x = p.x, *const of_w = p.w;
    const ending_arguments &to_end = p.end;
#endif
    const int width = (int)p.width, height = (int)p.height;

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
                       of_w + (ok ? (i64)n * depth + k_b : 0), ok);
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
                copy_async(to, of_x + (ok ? (i64)base[i] * pitch + k : 0), ok);
            } else {
                const int y = row_y[i] + tap_y * (int)p.dilation_y;
                const int x = row_x[i] + tap_x * (int)p.dilation_x;
                const bool ok = in_depth && base[i] >= 0 && (u32)y < (u32)height &&
                                (u32)x < (u32)width;
                copy_async(to, of_x + (ok ? (i64)(base[i] + y * width + x) * pitch + channel : 0),
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

#if NORM_GIVEN
    constexpr int sharers = THREADS / TILE_M;
    given_moments<sharers> given;
#elif NORM
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
    ending end;
    end.read_arguments(to_end);
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

#if NORM_GIVEN
    given.fetch(p.end, m0 + thread / sharers, thread);
#elif NORM
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
        origin[i] = base[i] >= 0 ? half_to_float(p.x[(i64)base[i] * channels]) : 0.0f;
        total[i] = square[i] = 0.0f;
    }
#endif
    const int first_row = m0 + part * OWN_ROWS;
    end.begin(to_end, thread, first_row, n0);

    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            fetch_b((step + STAGES - 1) % STAGES);
            fetch_a((step + STAGES - 1) % STAGES);
        }
        asm volatile("cp.async.commit_group;");
#if NORM && !NORM_GIVEN
        look(step % STAGES);  // what this thread copied itself, which needs no barrier
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
    asm volatile("cp.async.wait_group 0;");
    __syncthreads();

    // Sums to shared memory, of the block that finishes them.
    float *received = (float *)(memory + RECEIVED_AT);
#if SPLIT > 1
    cluster_wait();  // its blocks have all begun
#endif
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int r = warp_m * (TILE_M / WARPS_M) + i * 16 + half * 8 + (lane >> 2);
            const int c = warp_n * (TILE_N / WARPS_N) + (lane & 3) * 2;
            float *to = received + (part * OWN_ROWS + r % OWN_ROWS) * SUM_PITCH + c;
#if SPLIT > 1
            const u32 remote = address_in_block(shared_address(to), (u32)r / OWN_ROWS);
#endif
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j++) {
#if SPLIT > 1
                store_remote(remote + j * 32, sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
#else
                *(float2 *)(to + j * 8) = make_float2(sum[i][j][half * 2], sum[i][j][half * 2 + 1]);
#endif
            }
        }
    }
#if NORM_GIVEN
    const row_moments moments = given.join(p.end, thread);
    if (part == 0 && thread % sharers == 0) {
        float *const of = received + thread / sharers % OWN_ROWS * SUM_PITCH + TILE_N;
#if SPLIT > 1
        store_remote(address_in_block(shared_address(of), (u32)(thread / sharers) / OWN_ROWS),
                     moments.mean, moments.inverse);
#else
        *(float2 *)of = make_float2(moments.mean, moments.inverse);
#endif
    }
#elif NORM
#pragma unroll
    for (int i = 0; i < ROWS_A; i++) {
#pragma unroll
        for (int step = 1; step < PIECES; step *= 2) {
            total[i] += __shfl_xor_sync(0xffffffffu, total[i], step);
            square[i] += __shfl_xor_sync(0xffffffffu, square[i], step);
        }
        const int r = row + i * ROW_STEP;
        if (piece == 0 && r < TILE_M) {
            float *const of = received + (part * OWN_ROWS + r % OWN_ROWS) * SUM_PITCH + TILE_N;
#if SPLIT > 1
            const u32 to = address_in_block(shared_address(of), (u32)r / OWN_ROWS);
            store_remote(to, total[i], square[i]);
            store_remote(to + 8, origin[i], 0.0f);
#else
            *(float4 *)of = make_float4(total[i], square[i], origin[i], 0.0f);
#endif
        }
    }
#endif
#if SPLIT > 1
    cluster_meet();
#else
    __syncthreads();
#endif
    end.finish(to_end, received, first_row);
}
