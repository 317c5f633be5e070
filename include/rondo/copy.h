// rondo/copy.h — copies from one device to another.
//
//   rondo_stream_wait_event(stream, written);  // an event of the other GPU
//   rondo_stream_copy_between(stream, gpu1, y, gpu0, x, bytes);
//
// Between two GPUs the bytes go straight over the link (NVLink, PCIe) where the driver allows that,
// and otherwise through host memory that the driver keeps for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_COPY_H
#define RONDO_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// Copies `bytes` in the order of `stream`, which is a stream of either device; of the GPU, where
// the other one is the host. It waits for no work of the other device: let it wait for an event.
//
// to, from   whose memory the two are; the same device is fine. Memory of the host is any that the
//            processor may use; as with rondo_stream_copy it should be pinned.
//
// Errors:    INVALID (also a stream of a third device, or of the host where a GPU takes part),
//            UNSUPPORTED (devices of two backends that cannot copy to each other),
//            NO_DEVICE_MEMORY.
// Ownership: as rondo_stream_copy.
// Capture:   recorded, as rondo_stream_copy; between two GPUs without a direct link some drivers
//            refuse, and say so.
// Cost:      the first copy between two GPUs opens the way from one to the other, which may
//            wait for work of both.
RONDO_API RONDO_MUST_USE rondo_status rondo_stream_copy_between(rondo_stream *stream,
                                                                rondo_device *to, void *destination,
                                                                rondo_device *from,
                                                                const void *source, size_t bytes);

// Whether copies from `from` to `to` go over a direct link, without host memory in between.
//
// Errors:    UNSUPPORTED as above.
// Cost:      as the first copy.
RONDO_API RONDO_MUST_USE rondo_status rondo_device_copies_directly(rondo_device *to,
                                                                   rondo_device *from,
                                                                   bool *out_is_direct);

RONDO_EXTERN_C_END

#endif  // RONDO_COPY_H
