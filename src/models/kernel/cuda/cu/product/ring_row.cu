// ring_row.cu - one row of f16 times a matrix whose rows (outputs) are contiguous in k:
// rondo.RowProduct where there is more of the matrix than multiprocessors hold at once.
//
// Blocks stay, one on a multiprocessor. A group of PARTS warps makes two outputs at a time, or one
// and its gate, each warp a part of k; each warp has a ring of its own in shared memory, which the
// bulk copy engine fills: as far as it goes before the kernel's turn, since nothing of the row is
// in it, and then a stage as soon as it has been read.
//
// On tensor cores a lane gives 8 numbers of each output and of the row. Lanes 4 g to 4 g + 3 make
// row g (and g + 8, of the second output) of the left operand and column g of the right one, so the
// sums are those on the diagonals.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_activation.cuh"
#include "rondo_cluster.cuh"
#include "rondo_mma.cuh"
#include "rondo_row.cuh"

typedef f16 T;
#ifndef RONDO_Y
#define RONDO_Y T  // or wider
#endif
typedef RONDO_Y Y;
#ifndef PACKS
#define PACKS 8  // of 8 numbers, that a lane has of a part of k
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef STAGES
#define STAGES 3
#endif
#ifndef NORMALISED
#define NORMALISED 0
#endif
#ifndef GATED
#define GATED 0
#endif

#include "rondo_row_arguments.cuh"

enum {
    WARPS = 8,
    THREADS = WARPS * 32,
    GROUPS = WARPS / PARTS,
    MATRICES = 1 + GATED,
    PART = PACKS * 256,  // numbers along k of a warp
    STAGE_BYTES = PART * 2,
};

// What a warp reads: rows of its matrices in turn.
struct stream {
    const u8 *b, *gate;
    i64 stride;  // bytes from an output to the group's next
    u32 ring, barriers;

    __device__ __forceinline__ const u8 *find(int unit) const {
        const u8 *from = GATED && unit % MATRICES == 0 ? gate : b;
        return from + (i64)(unit / MATRICES) * stride;
    }
    __device__ __forceinline__ void ask(int unit, int stage) const {
        const u32 barrier = barriers + stage * 8;
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"((u32)STAGE_BYTES)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         ring + stage * STAGE_BYTES),
                     "l"(find(unit)), "r"((u32)STAGE_BYTES), "r"(barrier)
                     : "memory");
    }
    __device__ __forceinline__ void wait(int stage, u32 parity) const {
        u32 is_over = 0;
        while (is_over == 0) {
            asm volatile("{\n.reg .pred over;\n"
                         "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
                         "selp.u32 %0, 1, 0, over;\n}"
                         : "=r"(is_over)
                         : "r"(barriers + stage * 8), "r"(parity)
                         : "memory");
        }
    }
};

__device__ __forceinline__ void finish(const row_arguments &p, i64 n, float addend, float first, float second) {
    const float value = (GATED ? second : first) + addend;
    const float end = activate_by_number(p.activation, GATED ? first : value, (float)p.alpha, (float)p.beta);
    p.y[n] = convert<Y>(GATED ? end * value : end);
}

__device__ __forceinline__ float find_addend(const row_arguments &p, i64 n) {
    return (p.bias != 0 ? convert<float>(p.bias[n]) : 0.0f) + (p.z != 0 ? convert<float>(p.z[n]) : 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) ring_row(const row_arguments p) {
    release_successor();
    extern __shared__ __align__(128) u8 memory[];  // rings, and behind them sums of parts
    __shared__ u64 barriers[WARPS][STAGES];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = warp / PARTS, part = warp % PARTS;
    const i64 groups = (i64)gridDim.x * GROUPS, first = (i64)blockIdx.x * GROUPS + group;
    const int rounds = first < p.n ? (int)((p.n - first + groups - 1) / groups) : 0, units = rounds * MATRICES;
    const i64 begin = (first * p.k + part * PART) * 2;
    const u8 *own = memory + warp * STAGES * STAGE_BYTES;
    const stream s = {(const u8 *)p.b + begin, (const u8 *)p.gate + begin, groups * p.k * 2, shared_address(own),
                      shared_address(barriers[warp])};
    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < STAGES; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(s.barriers + i * 8), "r"(1) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (lane == 0) {
        for (int i = 0; i < STAGES && i < units; i++) {
            s.ask(i, i);
        }
    }
    __syncwarp();
    await_predecessors();
    pack<u32, 4> row[PACKS], gain[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        const i64 at = part * PART + i * 256 + lane * 8;
        row[i] = *(const pack<u32, 4> *)(p.a + at);
        gain[i] = *(const pack<u32, 4> *)((NORMALISED ? p.gain : p.a) + at);
    }
    float inverse = 1.0f;
    if (NORMALISED) {
        float squares = 0.0f;
#pragma unroll
        for (int i = 0; i < PACKS * 4; i++) {
            const float x = first_half(row[i / 4].value[i % 4]), y = second_half(row[i / 4].value[i % 4]);
            squares += x * x + y * y;
        }
        squares = warp_sum(squares);
#if PARTS > 1
        __shared__ float of_warps[WARPS];
        of_warps[warp] = squares;
        __syncthreads();
        squares = 0.0f;
#pragma unroll
        for (int i = 0; i < PARTS; i++) {
            squares += of_warps[i];
        }
#endif
        inverse = 1.0f / sqrtf(squares / (float)p.k + (float)p.epsilon);
#pragma unroll
        for (int i = 0; i < PACKS * 4; i++) {
            const u32 x = row[i / 4].value[i % 4], g = gain[i / 4].value[i % 4];
            row[i / 4].value[i % 4] = pack_halves(first_half(x) * inverse * first_half(g),
                                                  second_half(x) * inverse * second_half(g));
        }
    }
    float *sums = (float *)(memory + WARPS * STAGES * STAGE_BYTES);
    int stage = 0;
    u32 parity = 0;
    const int g = lane >> 2;
    for (int unit = 0; unit < units; unit += 2) {
        const bool has_second = GATED || unit + 1 < units;
        const i64 n = first + unit / MATRICES * groups;
        float addend[2] = {};
        if (PARTS == 1 && lane == 0) {
            addend[0] = find_addend(p, n);
            addend[1] = !GATED && has_second ? find_addend(p, n + groups) : 0.0f;
        }
        const u8 *stages[2];
        int turned[2];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            if (m == 0 || has_second) {
                s.wait(stage, parity);
                turned[m] = stage;
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            } else {
                turned[m] = turned[0];
            }
            stages[m] = own + turned[m] * STAGE_BYTES + lane * 16;
        }
        float sum[4][4] = {};
#pragma unroll
        for (int i = 0; i < PACKS; i++) {
            const pack<u32, 4> x = *(const pack<u32, 4> *)(stages[0] + i * 512);
            const pack<u32, 4> y = *(const pack<u32, 4> *)(stages[1] + i * 512);
            const u32 left[4] = {x.value[0], y.value[0], x.value[1], y.value[1]};
            const u32 right[4] = {x.value[2], y.value[2], x.value[3], y.value[3]};
            const u32 of_row[2] = {row[i].value[0], row[i].value[1]}, rest[2] = {row[i].value[2], row[i].value[3]};
            mma_f16(sum[i % 2 * 2], left, of_row);
            mma_f16(sum[i % 2 * 2 + 1], right, rest);
        }
        __syncwarp();
        if (lane == 0) {
#pragma unroll
            for (int m = 0; m < 2; m++) {
                if (unit + m + STAGES < units) {
                    s.ask(unit + m + STAGES, turned[m]);
                }
            }
        }
        float both[2];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            float two[2];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const int at = m * 2 + j;
                two[j] = (sum[0][at] + sum[1][at]) + (sum[2][at] + sum[3][at]);
            }
            both[m] = warp_sum(g >> 1 == (lane & 3) ? (g % 2 == 0 ? two[0] : two[1]) : 0.0f);
        }
        if (PARTS == 1 && lane == 0) {
            finish(p, n, addend[0], both[0], both[1]);
            if (!GATED && has_second) {
                finish(p, n + groups, addend[1], both[1], 0.0f);
            }
        }
        if (PARTS > 1 && lane == 0) {
            sums[unit * WARPS + warp] = both[0];
            sums[(unit + 1) * WARPS + warp] = both[1];
        }
    }
    if (PARTS > 1) {
        __syncthreads();
        const i64 of_block = (i64)blockIdx.x * GROUPS;
        for (int i = threadIdx.x;; i += THREADS) {
            const i64 n = of_block + i % GROUPS + i / GROUPS * groups;
            if (n >= p.n) {
                break;
            }
            float sum[2] = {};
#pragma unroll
            for (int w = 0; w < PARTS * MATRICES; w++) {
                sum[w % MATRICES] += sums[(i / GROUPS * MATRICES + w % MATRICES) * WARPS +
                                          i % GROUPS * PARTS + w / MATRICES];
            }
            finish(p, n, find_addend(p, n), sum[0], sum[1]);
        }
    }
}
