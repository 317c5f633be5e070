// onnx/sparse.h — SparseTensorProto to rondo_tensor: the elements that are said, and zeros around
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx.pb-c.h"
#include "onnx/tensors.h"

// The tensor as ops take it, with all its zeros. What it takes counts against the load's budget.
//
// Errors:    as rondo__tensor_read; BAD_DATA (indices that are no i64, out of range or out of
//            order; shapes that do not fit), UNSUPPORTED (strings).
// Ownership: caller frees *out_tensor with rondo_tensor_deinit.
// Threads:   one thread per reader.
RONDO_MUST_USE rondo_status rondo__sparse_read(rondo__tensor_reader *reader,
                                               const Onnx__SparseTensorProto *proto,
                                               rondo_tensor *out_tensor);

// The name, which is that of its values; NULL: it has none.
const char *rondo__sparse_get_name(const Onnx__SparseTensorProto *proto);
// Why rondo__sparse_read answers UNSUPPORTED.
const char *rondo__sparse_explain(const Onnx__SparseTensorProto *proto);
