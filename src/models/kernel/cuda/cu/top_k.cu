// top_k.cu - TopK. Short axes by rank counting: an element's place is the number of elements that go
// before it; quadratic, but one launch without scratch memory. Longer ones are made keys of, which
// sort.cu sorts. Both are stable, and to both NaN is larger than every number.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"
#include "rondo_keys.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;

struct top_k_arguments {
    i64 lines;
    const T *x;
    T *values;     // may be NULL
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
                if (a.values != 0) {
                    a.values[to] = x[n * a.inner];
                }
                if (a.indices != 0) {
                    a.indices[to] = n;
                }
            }
        }
    }
}

// ---- long axes --------------------------------------------------------------------------------

struct key_arguments {
    i64 count;
    const T *x;
    u64 *keys;  // [lines, length]
    i64 length, inner, largest;
};
extern "C" __global__ void __launch_bounds__(256) top_k_keys(const key_arguments a) {
    take_turn();
    typedef compute_of<T>::type C;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, at = n / a.inner % a.length, outer = n / a.inner / a.length;
        const u64 key = key_of(convert<C>(a.x[n]));
        a.keys[(outer * a.inner + i) * a.length + at] = a.largest ? ~key : key;
    }
}

struct pick_arguments {
    i64 count;
    const T *x;
    T *values;     // may be NULL
    i64 *indices;  // may be NULL
    const u32 *order;  // [lines, k]
    i64 length, inner, k;
};
extern "C" __global__ void __launch_bounds__(256) top_k_pick(const pick_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        const i64 i = n % a.inner, place = n / a.inner % a.k, outer = n / a.inner / a.k;
        const i64 at = a.order[(outer * a.inner + i) * a.k + place];
        if (a.values != 0) {
            a.values[n] = a.x[(outer * a.length + at) * a.inner + i];
        }
        if (a.indices != 0) {
            a.indices[n] = at;
        }
    }
}
