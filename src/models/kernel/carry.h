// kernel/carry.h — small pieces of memory copied by one kernel of a GPU.
//
// In a graph a copy node from the device to the host takes 8.5 us, and one to it 2.4 (H200, driver
// 580); a kernel that reads and writes pinned memory brings some pieces of some kilobytes in one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/status.h"

enum {
    RONDO__CARRY_PIECES = 16,        // of one launch
    RONDO__CARRY_BYTES = 16 * 1024,  // of one piece; beyond, a copy of its own is as fast
};

// The device text (cu/carry.cu) declares the same members.
typedef struct rondo__carry_piece {
    const void *from;
    void *to;
    int64_t bytes;
} rondo__carry_piece;

typedef struct rondo__carry {
    rondo__carry_piece pieces[RONDO__CARRY_PIECES];
} rondo__carry;

extern const char rondo__carry_name[];  // of the kernel
// The kernel as a function of the host, which copies block after block.
void rondo__carry_run(const rondo__carry *carry, size_t count);

// Errors:    those of rondo__device_get_function.
RONDO_MUST_USE rondo_status rondo__carry_get_function(rondo_device *device, void **out_function);

// The launch that copies the first `count` pieces, 1 to RONDO__CARRY_PIECES; it borrows them.
rondo_launch rondo__carry_describe(void *function, const rondo__carry *carry, size_t count);
