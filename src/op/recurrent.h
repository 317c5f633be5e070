// op/recurrent.h — what kernels of RNN, GRU and LSTM ask of the op.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_OP_RECURRENT_H
#define RONDO_OP_RECURRENT_H

#include <stdbool.h>

#include "op/op.h"

// Whether each direction has the functions that the op has when the model names none.
bool rondo__recurrent_has_usual_functions(const rondo__op *op);

#endif  // RONDO_OP_RECURRENT_H
