// optimize.cu - one update of a weight and its states by Adagrad, Adam or Momentum, in double.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_R
#define RONDO_R float  // of the learning rate
#endif
typedef RONDO_R R;
#ifndef RONDO_S
#define RONDO_S i64  // of the update count
#endif
typedef RONDO_S S;
#ifndef KIND
#define KIND 1  // 0 Adagrad, 1 Adam, 2 Momentum
#endif

struct optimize_arguments {
    i64 count;
    const R *rate;
    const S *steps;
    const T *x, *gradient, *v, *h;  // h: Adam's
    T *new_x, *new_v, *new_h;       // may be NULL
    double alpha, beta, epsilon, norm, norm_post, decay;
    i64 nesterov;
};

extern "C" __global__ void __launch_bounds__(256) optimize(const optimize_arguments a) {
    take_turn();
    const double steps = convert<double>(*a.steps);
    double rate = convert<double>(*a.rate), beta = a.beta;
    if (KIND == 0) {
        rate /= 1.0 + steps * a.decay;
    } else if (KIND == 1 && steps > 0.0) {
        rate *= sqrt(1.0 - pow(a.beta, steps)) / (1.0 - pow(a.alpha, steps));
    } else if (KIND == 2 && !(steps > 0.0)) {
        beta = 1.0;  // the first update takes the gradient whole
    }
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.count; n += (i64)gridDim.x * 256) {
        double x = convert<double>(a.x[n]), v = convert<double>(a.v[n]), h = 0.0;
        const double gradient = a.norm * x + convert<double>(a.gradient[n]);
        if (KIND == 0) {
            v += gradient * gradient;
            x -= rate * gradient / (sqrt(v) + a.epsilon);
        } else if (KIND == 1) {
            h = convert<double>(a.h[n]);
            v = a.alpha * v + (1.0 - a.alpha) * gradient;
            h = beta * h + (1.0 - beta) * gradient * gradient;
            x -= rate * v / (sqrt(h) + a.epsilon);
            x *= 1.0 - a.norm_post;
        } else {
            v = a.alpha * v + beta * gradient;
            x -= rate * (a.nesterov ? gradient + a.alpha * v : v);
        }
        if (a.new_x != 0) {
            a.new_x[n] = convert<T>(x);
        }
        if (a.new_v != 0) {
            a.new_v[n] = convert<T>(v);
        }
        if (KIND == 1 && a.new_h != 0) {
            a.new_h[n] = convert<T>(h);
        }
    }
}
