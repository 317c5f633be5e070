// program/window_write.h — a window worked out from shapes, as the plain attributes of an op.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/image/window.h"
#include "op/op.h"

// Writes kernel_shape, strides, dilations and pads; an auto_pad that was there becomes NOTSET.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per op.
RONDO_MUST_USE rondo_status rondo__window_write(rondo__op *op, const rondo__window *window);
