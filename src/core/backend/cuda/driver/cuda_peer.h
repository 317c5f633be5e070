// backend/cuda/driver/cuda_peer.h — copies between two GPUs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_reaches(rondo_device *device, rondo_device *other, bool *out_reaches);
rondo_status rondo__cuda_copy_between(rondo_stream *stream, rondo_device *to, void *destination,
                                      rondo_device *from, const void *source, size_t bytes);
