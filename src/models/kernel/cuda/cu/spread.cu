// spread.cu - MaxUnpool, Col2Im and ReverseSequence: elements that are put where an index, a window or
// a length says.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RANK
#define RANK 2
#endif

// y is zero before. An index counts in `pooled`; a larger y keeps the place of each element.
struct unpool_arguments {
    i64 count;
    const T *x;
    const i64 *index;
    T *y;
    i64 pooled_count;
    i64 pooled[RANK];
    i64 extent[RANK];  // of y
    faults told;
};
extern "C" __global__ void __launch_bounds__(256) max_unpool(const unpool_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 index = a.index[n], at = 0, step = 1;
        bool is_inside = index >= 0 && index < a.pooled_count;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            const i64 place = index % a.pooled[d];
            index /= a.pooled[d];
            is_inside = is_inside && place < a.extent[d];
            at += place * step;
            step *= a.extent[d];
        }
        if (is_inside) {
            a.y[at] = a.x[n];
        } else {
            a.told.tell();
        }
    }
}

// y[plane][pixel]: the sum over the blocks that hold the pixel, in the order of the reference.
struct columns_arguments {
    i64 count;
    const T *x;  // [planes, block, positions]
    T *y;
    i64 blocks, columns;  // products of the next two
    i64 block[RANK], positions[RANK], image[RANK], stride[RANK], dilation[RANK], before[RANK];
};
extern "C" __global__ void __launch_bounds__(256) columns_to_image(const columns_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 pixel[RANK], plane = n;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            pixel[d] = plane % a.image[d] + a.before[d];
            plane /= a.image[d];
        }
        C sum = (C)0;
        for (i64 inner = 0; inner < a.blocks; inner++) {
            i64 rest = inner, column = 0, step = 1;
            bool is_seen = true;
#pragma unroll
            for (int d = RANK - 1; d >= 0; d--) {
                const i64 shifted = pixel[d] - rest % a.block[d] * a.dilation[d];
                rest /= a.block[d];
                const i64 position = shifted / a.stride[d];
                is_seen = is_seen && shifted >= 0 && shifted % a.stride[d] == 0 &&
                          position < a.positions[d];
                column += position * step;
                step *= a.positions[d];
            }
            if (is_seen) {
                sum += convert<C>(a.x[(plane * a.blocks + inner) * a.columns + column]);
            }
        }
        a.y[n] = convert<T>(sum);
    }
}

struct reverse_arguments {
    i64 count;
    const T *x;
    const i64 *lengths;
    T *y;
    i64 first, second, inner;  // extents
    i64 time_first;
    faults told;
};
extern "C" __global__ void __launch_bounds__(256) reverse_sequence(const reverse_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, second = n / a.inner % a.second, first = n / a.inner / a.second;
        const i64 time = a.time_first ? first : second, steps = a.time_first ? a.first : a.second;
        i64 length = a.lengths[a.time_first ? second : first];
        if (length < 0 || length > steps) {
            a.told.tell();
            length = length < 0 ? 0 : steps;
        }
        const i64 from = time < length ? length - 1 - time : time;
        const i64 row = a.time_first ? from * a.second + second : first * a.second + from;
        a.y[n] = a.x[row * a.inner + i];
    }
}
