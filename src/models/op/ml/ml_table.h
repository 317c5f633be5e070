// op/ml/ml_table.h — one line of a table of ai.onnx.ml ops.
//
// Versions of the domain are its own: 1 to 5.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"

enum { RONDO__ML_VERSION_MAX = 5 };

#define RONDO_ML_ENTRY(op_name, first, last, least_inputs, most_inputs, outputs, attribute_list, \
                       infer_function, compute_function, ...)                                    \
    RONDO_OP_ROW(ML, op_name, first, last, least_inputs, most_inputs, 1, outputs,                \
                 .capture = RONDO__CAPTURE_YES, .attributes = (attribute_list),                  \
                 .infer = (infer_function), .compute = (compute_function), .check = __VA_ARGS__)
