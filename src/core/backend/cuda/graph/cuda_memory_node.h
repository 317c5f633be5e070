// backend/cuda/graph/cuda_memory_node.h — entries of the backend table; see backend/backend.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_read_memory_node(rondo__template *template_, size_t index,
                                          rondo__memory_node *out_node);
rondo_status rondo__cuda_take_memory(rondo_stream *stream, uint64_t byte_count, void **out_address);
rondo_status rondo__cuda_give_memory_back(rondo_stream *stream, void *address);
