// op/recurrent/recurrent.h — what kernels of RNN, GRU and LSTM ask of the op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "op/op.h"

// X(name, alpha by default, beta by default, number of parameters it takes from the lists). In the
// order that recurrent.cu counts them in.
#define RONDO_RECURRENT_FUNCTION_MAP(X) \
    X(Sigmoid, 0.0, 0.0, 0)             \
    X(Tanh, 0.0, 0.0, 0)                \
    X(Relu, 0.0, 0.0, 0)                \
    X(Affine, 1.0, 0.0, 2)              \
    X(LeakyRelu, 0.01, 0.0, 1)          \
    X(ThresholdedRelu, 1.0, 0.0, 1)     \
    X(ScaledTanh, 1.0, 1.0, 2)          \
    X(HardSigmoid, 0.2, 0.5, 2)         \
    X(Elu, 1.0, 0.0, 1)                 \
    X(Softsign, 0.0, 0.0, 0)            \
    X(Softplus, 0.0, 0.0, 0)

typedef enum rondo__recurrent_kind {
#define RECURRENT_ENUM(name, alpha, beta, parameters) RONDO__RECURRENT_##name,
    RONDO_RECURRENT_FUNCTION_MAP(RECURRENT_ENUM)
#undef RECURRENT_ENUM
        RONDO__RECURRENT_COUNT
} rondo__recurrent_kind;

typedef struct rondo__recurrent_function {
    rondo__recurrent_kind kind;
    double alpha;
    double beta;
} rondo__recurrent_function;

// The functions of each of `directions` (1 or 2): of the gates, of the candidate, and LSTM's third,
// as far as the op has them.
//
// Errors:    BAD_DATA, UNSUPPORTED (a function of another name).
RONDO_MUST_USE rondo_status rondo__recurrent_read_functions(
    const rondo__op *op, int64_t directions, rondo__recurrent_function (*out_functions)[3]);

// Whether each direction has the functions that the op has when the model names none.
bool rondo__recurrent_has_usual_functions(const rondo__op *op);
