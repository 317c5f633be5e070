// conv_tma.cu - convolution as a product on Hopper's tensor cores: half precision, channels last, sums in
// float, with bias, residual and activation at the end. A 1 x 1 convolution is a plain matrix product, so
// products with a constant right operand come here too. conv_tensor.cu is the same for other chips.
//
//   pixels x taps*channels (x)  times  taps*channels x filters (w, row-wise)
//
// A block makes TILE_M pixels x TILE_N filters. One warp fetches: the tensor memory accelerator copies
// TILE_K elements of the inner extent of each row into one of STAGES buffers, permuted as wgmma wants
// them, and writes zeros where the image ends. A group of four warps for each 64 rows multiplies,
// straight from shared memory. What a step takes is how long a copy is on its way, so that many are:
// hence no thread spends instructions on them, and STAGES is large.
//
// One image gives few tiles: 49 pixels in the last stage of a ResNet against 132 multiprocessors. So
// SPLIT blocks of a cluster share one tile, each taking a part of the inner extent; each finishes
// TILE_M / SPLIT of the rows, for which the others send it their sums. No scratch memory, no atomics, and
// the order of additions is fixed, so results repeat bit for bit. Two blocks send by plain stores, which
// arrive sooner; more of them by bulk copies, which carry more.
//
// Where rows of x are to be normalised first (NORM), the product takes them as they are, and the threads that
// multiply look at them in shared memory while the tensor cores work (rondo_ending.cuh).
//
// A second convolution by single pixels may be added (SECOND): its channels come behind those of the taps, from
// second_at elements of the inner extent on, and its pixels from another tensor. That is how a block of a ResNet
// ends, whose shortcut then needs neither a launch nor memory.
//
// Where x lies the other way around (A_IS_TURNED, a point: [depth, pixels]), 64 neighbouring pixels of TILE_K rows are
// a box, and the tensor cores turn it.
//
// Needs: channels divisible by TILE_K where the window is not a point; then TILE_K is 64, 32 or 16. NORM
// needs a point and TILE_K 64.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_cluster.cuh"
#include "rondo_wgmma.cuh"

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
#define STAGES 5
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef POINT
#define POINT 1  // 1: a 1 x 1 window without padding and with stride 1
#endif
#ifndef SECOND
#define SECOND 0  // 1: of pixels at some distance from each other; 2: of all pixels
#endif
#ifndef EAGER_WEIGHTS
#define EAGER_WEIGHTS 0  // 1: nothing ever writes w, so its copies start before the turn comes
#endif

#define ROW_BYTES (TILE_K * 2)
#define PIECES (TILE_K / 8)  // of a row, 16 bytes each
#define A_BYTES (TILE_M * ROW_BYTES)
#define STAGE_BYTES ((TILE_M + TILE_N) * ROW_BYTES)
#define CONSUMERS (TILE_M * 2)  // threads that multiply: four warps for 64 rows
#define THREADS (CONSUMERS + 32)
#define FRAGMENTS (TILE_N / 8)
#define OWN_ROWS (TILE_M / SPLIT)  // that this block finishes
#define FINISHERS CONSUMERS
#define STORES_SUMS (SPLIT == 2)

#include "rondo_ending.cuh"

// Behind the buffers, which take the block's own sums at last, lie those of other blocks, then the
// barriers.
#define BUFFER_BYTES (STAGES * STAGE_BYTES)
#define ALL_SUM_BYTES (SPLIT * SUM_BYTES)
#define RECEIVED_AT (BUFFER_BYTES > ALL_SUM_BYTES ? BUFFER_BYTES : ALL_SUM_BYTES)
#define BARRIERS_AT (RECEIVED_AT + (SPLIT > 1 ? ALL_SUM_BYTES : 0))

// What the tensor memory accelerator knows of a tensor; made by the driver.
struct __align__(128) tensor_map {
    u64 word[16];
};

struct tma_arguments {
    tensor_map x;     // POINT: [pixels, depth]; otherwise the images, as seen through the window
    tensor_map w;     // [filters, depth]
#if SECOND
    tensor_map second;  // [pixels, channels], or the images that they are from
#endif
    ending_arguments end;
    i64 channels;
    i64 out_height, out_width;
    i64 kernel_width, stride_y, stride_x, dilation_y, dilation_x, before_y, before_x;
#if SECOND
    i64 second_at, second_stride_y, second_stride_x;
#endif
};

// ---- barriers in shared memory: a phase ends when `count` threads and all announced bytes have come --

__device__ __forceinline__ void barrier_init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_announce(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    u32 is_over = 0;
    while (is_over == 0) {
        asm volatile("{\n.reg .pred over;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, over;\n}"
                     : "=r"(is_over)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    }
}
// Of the threads that multiply.
__device__ __forceinline__ void meet_consumers() {
    asm volatile("bar.sync 1, %0;" ::"n"(CONSUMERS) : "memory");
}

// ---- copies ------------------------------------------------------------------------------------------

__device__ __forceinline__ void load_rows(u32 to, const tensor_map *map, int column, int row,
                                          u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// Channels from `channel` on of pixels from (x, y, image) on, each moved on by a tap's place.
__device__ __forceinline__ void load_pixels(u32 to, const tensor_map *map, int channel, int x, int y,
                                            int image, int tap_x, int tap_y, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::"r"(to),
                 "l"(map), "r"(channel), "r"(x), "r"(y), "r"(image), "r"(barrier), "h"((u16)tap_x),
                 "h"((u16)tap_y)
                 : "memory");
}
__device__ __forceinline__ void send(u32 to, u32 from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// What the fetching warp does, by one thread.
__device__ __forceinline__ void fetch(const tma_arguments &p, u32 memory, u32 full, u32 empty, int m0,
                                      int n0, int first_step, int steps) {
    int k = first_step * TILE_K;
#if !POINT || SECOND == 1
    const int out_width = (int)p.out_width, positions = (int)p.out_height * out_width;
    const int image = m0 / positions, at = m0 % positions;
    const int out_y = at / out_width, out_x = at % out_width;
#endif
#if !POINT
    const int channels = (int)p.channels, kernel_width = (int)p.kernel_width;
    const int tap = k / channels;
    int channel = k - tap * channels, tap_y = tap / kernel_width, tap_x = tap - tap_y * kernel_width;
    const int y = out_y * (int)p.stride_y - (int)p.before_y;
    const int x = out_x * (int)p.stride_x - (int)p.before_x;
#endif
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        const u32 to = memory + stage * STAGE_BYTES, barrier = full + stage * 8;
        if (step >= STAGES) {
            barrier_wait(empty + stage * 8, (step / STAGES - 1) & 1);
        }
        if (!EAGER_WEIGHTS || step >= STAGES) {
            barrier_announce(barrier, STAGE_BYTES);
            load_rows(to + A_BYTES, &p.w, k, n0, barrier);
        }
#if SECOND
        const int behind = k - (int)p.second_at;
        if (behind >= 0) {
#if SECOND == 1
            load_pixels(to, &p.second, behind, out_x * (int)p.second_stride_x,
                        out_y * (int)p.second_stride_y, image, 0, 0, barrier);
#else
            load_rows(to, &p.second, behind, m0, barrier);
#endif
            k += TILE_K;
            continue;
        }
#endif
#if A_IS_TURNED
#pragma unroll
        for (int group = 0; group < TILE_M / 64; group++) {
            load_rows(to + group * 64 * ROW_BYTES, &p.x, m0 + group * 64, k, barrier);
        }
#elif POINT
        load_rows(to, &p.x, k, m0, barrier);
#else
        load_pixels(to, &p.x, channel, x, y, image, tap_x * (int)p.dilation_x,
                    tap_y * (int)p.dilation_y, barrier);
        channel += TILE_K;
        if (channel == channels) {
            channel = 0;
            tap_x++;
            if (tap_x == kernel_width) {
                tap_x = 0;
                tap_y++;
            }
        }
#endif
        k += TILE_K;
    }
}

// The grid is (SPLIT, filter tiles, pixel tiles); a cluster is the SPLIT blocks of one tile.
extern "C" __global__ void
#if SPLIT > 1
__cluster_dims__(SPLIT, 1, 1)
#endif
__launch_bounds__(THREADS) conv_tma(const __grid_constant__ tma_arguments p) {
    extern __shared__ __align__(1024) u8 memory[];
    release_successor();
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    const int part = SPLIT > 1 ? blockIdx.x : 0;
    const int m0 = blockIdx.z * TILE_M, n0 = blockIdx.y * TILE_N;
    const u32 base = shared_address(memory), full = base + BARRIERS_AT, empty = full + STAGES * 8;
    const u32 joined = empty + STAGES * 8;

    // This part's steps of the inner extent.
    const int all_steps = ((int)p.end.depth + TILE_K - 1) / TILE_K;
    const int first_step = all_steps * part / SPLIT;
    const int steps = all_steps * (part + 1) / SPLIT - first_step;

    if (thread == CONSUMERS) {
#pragma unroll
        for (int stage = 0; stage < STAGES; stage++) {
            barrier_init(full + stage * 8, 1);
            barrier_init(empty + stage * 8, CONSUMERS / 32);
        }
        barrier_init(joined, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        if (SPLIT > 1 && !STORES_SUMS) {
            barrier_announce(joined, (SPLIT - 1) * SUM_BYTES);
        }
        if (EAGER_WEIGHTS) {
#pragma unroll
            for (int stage = 0; stage < STAGES; stage++) {
                if (stage < steps) {
                    barrier_announce(full + stage * 8, STAGE_BYTES);
                    load_rows(base + stage * STAGE_BYTES + A_BYTES, &p.w,
                              (first_step + stage) * TILE_K, n0, full + stage * 8);
                }
            }
        }
    }
    ending end;
    end.read_arguments(p.end);
    __syncthreads();
#if SPLIT > 1
    cluster_arrive();
#endif
    await_predecessors();
    if (warp == CONSUMERS / 32) {
        if (lane == 0) {
            fetch(p, base, full, empty, m0, n0, first_step, steps);
        }
        __syncwarp();
#if SPLIT > 1
        cluster_wait();
        cluster_meet();
#endif
        return;
    }

    const int first_row = m0 + part * OWN_ROWS;
#if NORM_GIVEN
    const int seen_row = thread / 2;
    const float origin = 0.0f;
    given_moments<2> given;
    given.fetch(p.end, m0 + seen_row, thread);
#endif
    end.begin(p.end, thread, first_row, n0);
#if NORM && !NORM_GIVEN
    // This thread looks at half of a row: four of its eight pieces.
    const int seen_row = thread / 2, seen_piece = thread % 2 * (PIECES / 2);
    const bool is_row = m0 + seen_row < (int)p.end.pixels;
    const float origin = is_row ? half_to_float(p.end.x[(i64)(m0 + seen_row) * p.end.depth]) : 0.0f;
    float total = 0.0f, square = 0.0f;
#endif
    float sum[FRAGMENTS][4];
#pragma unroll
    for (int j = 0; j < FRAGMENTS; j++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            sum[j][e] = 0.0f;
        }
    }
    const int group = warp >> 2;
    for (int step = 0; step < steps; step++) {
        const int stage = step % STAGES;
        const u32 from = base + stage * STAGE_BYTES;
        barrier_wait(full + stage * 8, (step / STAGES) & 1);
        const u64 tile_x = describe_tile<ROW_BYTES>(from + group * 64 * ROW_BYTES);
        const u64 tile_w = describe_tile<ROW_BYTES>(from + A_BYTES);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int kk = 0; kk < TILE_K / 16; kk++) {
            multiply_group(sum, tile_x + kk * (A_IS_TURNED ? 128 : 2), tile_w + kk * 2);
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#if NORM && !NORM_GIVEN
        const u8 *const seen = memory + stage * STAGE_BYTES + seen_row * ROW_BYTES;
        const int left = (int)p.end.depth - (first_step + step) * TILE_K;
#pragma unroll
        for (int c = seen_piece; c < seen_piece + PIECES / 2; c++) {
            if (c * 8 < left) {
                const pack<f16, 8> x = *(const pack<f16, 8> *)(seen + (c ^ (seen_row & 7)) * 16);
#pragma unroll
                for (int v = 0; v < 8; v++) {
                    const float d = half_to_float(x.value[v]) - origin;
                    total += d;
                    square = fmaf(d, d, square);
                }
            }
        }
        __syncwarp();  // the buffer is given back for all of the warp
#endif
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (step > 0 && lane == 0) {
            barrier_arrive(empty + (step - 1) % STAGES * 8);
        }
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

#if NORM_GIVEN
    const row_moments joined_moments = given.join(p.end, thread);
    const float total = joined_moments.mean, square = joined_moments.inverse;
#elif NORM
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    square += __shfl_xor_sync(0xffffffffu, square, 1);
#endif
    // Sums to shared memory, of the block that finishes them.
    float *received = (float *)(memory + (SPLIT > 1 ? RECEIVED_AT : 0));
    const int sum_row = group * 64 + (warp & 3) * 16 + (lane >> 2), sum_column = (lane & 3) * 2;
#if STORES_SUMS
    cluster_wait();  // its blocks have all begun
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int r = sum_row + half * 8;
        const u32 to = address_in_block(
            shared_address(received + (part * OWN_ROWS + r % OWN_ROWS) * SUM_PITCH + sum_column),
            (u32)r / OWN_ROWS);
#pragma unroll
        for (int j = 0; j < FRAGMENTS; j++) {
            store_remote(to + j * 32, sum[j][half * 2], sum[j][half * 2 + 1]);
        }
    }
#if NORM
    if (thread % 2 == 0) {
        float *const of = received + (part * OWN_ROWS + seen_row % OWN_ROWS) * SUM_PITCH + TILE_N;
        const u32 to = address_in_block(shared_address(of), (u32)seen_row / OWN_ROWS);
        store_remote(to, total, square);
        store_remote(to + 8, origin, 0.0f);
    }
#endif
    cluster_meet();
#else
    // In the buffers, which are free now, or where they are to be received if they are this block's.
    float *sums = (float *)memory;
    const auto find_sums = [&](int r) {
        return SPLIT > 1 && r / OWN_ROWS == part ? received + (part * OWN_ROWS + r % OWN_ROWS) * SUM_PITCH
                                                 : sums + r * SUM_PITCH;
    };
    meet_consumers();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float *const to = find_sums(sum_row + half * 8) + sum_column;
#pragma unroll
        for (int j = 0; j < FRAGMENTS; j++) {
            *(float2 *)(to + j * 8) = make_float2(sum[j][half * 2], sum[j][half * 2 + 1]);
        }
    }
#if NORM
    if (thread % 2 == 0) {
        *(float4 *)(find_sums(seen_row) + TILE_N) = make_float4(total, square, origin, 0.0f);
    }
#endif
#if SPLIT > 1
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    meet_consumers();
    cluster_wait();  // its blocks have all begun, so their barriers are there
    if (thread < SPLIT - 1) {
        const u32 owner = (u32)(thread + 1 + part) % SPLIT;
        send(address_in_block(shared_address(received) + part * SUM_BYTES, owner),
             shared_address(sums) + owner * SUM_BYTES, SUM_BYTES, address_in_block(joined, owner));
    }
    __syncwarp();
    barrier_wait(joined, 0);
    cluster_arrive();
#else
    meet_consumers();
#endif
#endif
    end.finish(p.end, received, first_row);
#if SPLIT > 1 && !STORES_SUMS
    cluster_wait();  // no block leaves while its sums are on their way
#endif
}
