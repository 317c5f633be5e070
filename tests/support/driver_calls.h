// support/driver_calls.h — work that only the program's own driver calls record. CUDA only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/driver.h"

// Each fails with DRIVER where the driver does, and with UNSUPPORTED where it lacks the call.
rondo_status driver_fill_rows(rondo_stream *stream, void *destination, size_t pitch_bytes,
                              unsigned char value, size_t width, size_t rows);
rondo_status driver_copy_rows(rondo_stream *stream, void *destination, const void *source,
                              size_t pitch_bytes, size_t width_bytes, size_t rows);
// Of the "default" kind: the driver finds out what its ends are.
rondo_status driver_copy_default(rondo_stream *stream, void *destination, const void *source,
                                 size_t bytes);
// Memory in the order of the stream.
rondo_status driver_take(rondo_stream *stream, size_t bytes, void **out_address);
rondo_status driver_give_back(rondo_stream *stream, void *address);
