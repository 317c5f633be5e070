// op/image/filters.h — the layout of a convolution's filters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"

// The shape of w as ONNX has it: filters of rondo.Conv may have their channels last (filters_last).
rondo_shape rondo__convolution_read_filters(const rondo__op *op, const rondo_shape *w);
