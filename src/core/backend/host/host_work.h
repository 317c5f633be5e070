// backend/host/host_work.h — work put on a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__host_copy(rondo_stream *stream, void *destination, const void *source,
                              size_t bytes, rondo_copy_kind kind);
rondo_status rondo__host_fill(rondo_stream *stream, void *destination, uint32_t value,
                              uint32_t element_bytes, size_t count);
rondo_status rondo__host_call(rondo_stream *stream, const char *name, rondo_host_function function,
                              const void *arguments, size_t argument_bytes);
rondo_status rondo__host_launch(rondo_stream *stream, const rondo_launch *launch);
