// kernel/carry.c — see carry.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/carry.h"

#include <string.h>

#include "cu_sources.h"
#include "device/device.h"

enum { BLOCK = 256, BLOCKS_OF_PIECE = 4 };  // 16 bytes a thread for the largest piece

const char rondo__carry_name[] = "rondo_carry";

void rondo__carry_run(const rondo__carry *carry, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        memcpy(carry->pieces[i].to, carry->pieces[i].from, (size_t)carry->pieces[i].bytes);
    }
}

rondo_status rondo__carry_get_function(rondo_device *device, void **out_function) {
    return rondo__device_get_function(device, rondo__cu_carry, NULL, 0, rondo__carry_name,
                                      out_function);
}

rondo_launch rondo__carry_describe(void *function, const rondo__carry *carry, size_t count) {
    return (rondo_launch){.struct_size = sizeof(rondo_launch),
                          .name = rondo__carry_name,
                          .function = function,
                          .grid = {BLOCKS_OF_PIECE, (uint32_t)count, 1},
                          .block = {BLOCK, 1, 1},
                          .arguments = carry,
                          .argument_bytes = sizeof *carry};
}
