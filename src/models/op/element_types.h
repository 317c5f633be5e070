// op/element_types.h — the element types of ONNX (TensorProto.DataType), by number: the dtype of
// each, its name in ONNX, and a replacement for types that Rondo lacks.
//
// Source: onnx.proto of ONNX 1.23, TensorProto.DataType.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#include "op/op.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

enum { RONDO_ONNX_TYPE_MAX = 28 };  // the last number that ONNX defines

// ONNX's name ("float8e4m3fn"); NULL for a number that it does not define.
const char *rondo__onnx_type_get_name(int64_t data_type);
// "a tensor of float6e2m3: use float8e4m3fn", "a sequence or optional of ..." of what is no dtype
// here; NULL for all others.
const char *rondo__onnx_type_explain(int64_t data_type);
const char *rondo__onnx_type_explain_nested(int64_t data_type);

// Refuses an attribute that asks for an element type that Rondo or the op does not have.
//
// Errors:    UNSUPPORTED: "unsupported: op NAME version V (attribute to=27, float6e2m3: use
//            float8e4m3fn)".
rondo_status rondo__op_fail_element_type(const rondo__op *op, const char *attribute,
                                         int64_t data_type);
