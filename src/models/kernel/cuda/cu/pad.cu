// pad.cu - Pad in its four modes. T is an unsigned type of the element's size.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T u32
#endif
typedef RONDO_T T;
#ifndef RANK
#define RANK 4
#endif
#ifndef MODE
#define MODE 0  // 0 constant, 1 edge, 2 reflect, 3 wrap
#endif

struct pad_arguments {
    i64 count;
    const T *x;
    T *y;
    const T *value;  // NULL: `bits`
    i64 bits;
    i64 extent_y[RANK];
    i64 extent_x[RANK];  // what negative pads leave; x points to its first element
    i64 stride_x[RANK];
    i64 before[RANK];    // of what is left
};

extern "C" __global__ void __launch_bounds__(256) pad(const pad_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        i64 rest = n, from = 0;
        bool inside = true;
#pragma unroll
        for (int d = RANK - 1; d >= 0; d--) {
            i64 i = rest % a.extent_y[d] - a.before[d];
            rest /= a.extent_y[d];
            const i64 extent = a.extent_x[d];
            if (i < 0 || i >= extent) {
                if (MODE == 0) {
                    inside = false;
                    i = 0;
                } else if (MODE == 1) {
                    i = i < 0 ? 0 : extent - 1;
                } else if (MODE == 2) {
                    const i64 period = extent > 1 ? 2 * (extent - 1) : 1;
                    i = i % period;
                    i = i < 0 ? i + period : i;
                    i = i >= extent ? period - i : i;
                } else {
                    i = i % extent;
                    i = i < 0 ? i + extent : i;
                }
            }
            from += i * a.stride_x[d];
        }
        if (inside) {
            a.y[n] = a.x[from];
        } else {
            a.y[n] = a.value != 0 ? *a.value : (T)a.bits;
        }
    }
}
