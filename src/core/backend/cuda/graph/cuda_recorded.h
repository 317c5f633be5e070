// backend/cuda/graph/cuda_recorded.h — what can be asked of nodes while they are being recorded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_count_recorded(rondo_stream *stream, size_t *out_count);
rondo_status rondo__cuda_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info);
