// rondo_row_arguments.cuh - what the kernels of one row times a matrix are told: vector_product, half_row
// and ring_row. T and Y are defined before.
// SPDX-License-Identifier: Apache-2.0

struct row_arguments {
    const T *a;
    const T *b;
    const T *bias;  // may be NULL
    const T *z;     // may be NULL
    Y *y;
    i64 m, n, k;
    i64 activation;
    double alpha, beta;
    const T *gain;  // of NORMALISED
    const T *gate;  // of GATED
    double epsilon;
};
