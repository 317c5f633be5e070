// rondo_convolution.cuh - the arguments of convolutions in plain arithmetic.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;

struct conv_arguments {
    const T *x;
    const T *w;     // [filters, taps, channels], or [filters, channels, taps] with channels first
    const T *bias;  // may be NULL
    const T *z;     // may be NULL; y's layout
    T *y;
    i64 batch, groups, in_channels, out_channels;  // channels of one group
    i64 in[3], out[3], kernel[3], stride[3], dilation[3], before[3];
    i64 x_image, x_channel, x_position;  // strides of x in elements
    i64 y_image, y_channel, y_position;
    i64 activation;
    double alpha, beta;
};
