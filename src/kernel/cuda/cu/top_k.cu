// top_k.cu - TopK by rank counting: an element's place is the number of elements that go before it.
// Quadratic in the axis, without scratch memory, and stable; the host takes it for axes up to 4096.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;

struct top_k_arguments {
    i64 lines;
    const T *x;
    T *values;
    i64 *indices;  // may be NULL
    i64 length, inner, k, largest;
};

// One block a line.
extern "C" __global__ void __launch_bounds__(256) top_k(const top_k_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    for (i64 line = blockIdx.x; line < a.lines; line += gridDim.x) {
        const i64 outer = line / a.inner, i = line % a.inner;
        const T *x = a.x + outer * a.length * a.inner + i;
        for (i64 n = threadIdx.x; n < a.length; n += 256) {
            const C mine = convert<C>(x[n * a.inner]);
            i64 place = 0;
            for (i64 m = 0; m < a.length; m++) {
                const C other = convert<C>(x[m * a.inner]);
                // NaN is larger than every number.
                const bool is_larger = other > mine || (other != other && mine == mine);
                const bool is_smaller = other < mine || (other == other && mine != mine);
                const bool ties = !is_larger && !is_smaller;
                place += (a.largest ? is_larger : is_smaller) || (ties && m < n) ? 1 : 0;
            }
            if (place < a.k) {
                const i64 to = (outer * a.k + place) * a.inner + i;
                a.values[to] = x[n * a.inner];
                if (a.indices != 0) {
                    a.indices[to] = n;
                }
            }
        }
    }
}
