// backend/cuda/graph/cuda_capture.h — the begin and the end of a capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

rondo_status rondo__cuda_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id);
rondo_status rondo__cuda_end_capture(rondo_stream *stream, rondo__template **out_template);

// The device is closed.
void rondo__cuda_free_captures(rondo__cuda_device *device);
