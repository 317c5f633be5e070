// backend/cuda/compile/compile_ahead.h — texts compiled on threads of their own, before their
// kernels are asked for.
//
//   who plans                       threads, at most one for each processor
//   want(text 1), want(text 2) ->   compile 1    compile 2
//   ...
//   get_function(text 1)       <-   its image, waited for where it is under way
//
// An image is taken once; images that no call takes stay as long as the device. A text that does
// not compile is dropped silently: the call that asks for its kernel compiles it again and reports
// the error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/compile/nvrtc.h"
#include "base/hash.h"

typedef struct rondo__compile_ahead rondo__compile_ahead;

// A text to compile; its strings are borrowed for the call.
typedef struct rondo__compile_want {
    const char *device;  // name, for the log
    const char *source;
    const char *const *options;
    size_t option_count;
    const char *kernel_name;
    int32_t arch;
    rondo__hash128 key;  // by which the image is taken, and kept on disk
} rondo__compile_want;

// Ownership: end with rondo__compile_ahead_destroy.
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__compile_ahead_create(rondo__compile_ahead **out_ahead);

// Drops the images that were not taken, and waits for compilers that run. NULL is fine.
void rondo__compile_ahead_destroy(rondo__compile_ahead *ahead);

// Has the text compiled, unless that was wanted before; without memory or threads it is not.
void rondo__compile_ahead_want(rondo__compile_ahead *ahead, const rondo__compile_want *want);

// Takes the image of `key`, and waits for it where a thread compiles it; one that no thread has
// begun is left to the caller.
//
// Returns:   false when there is none.
// Ownership: free *out_image with rondo__cuda_image_deinit.
bool rondo__compile_ahead_take(rondo__compile_ahead *ahead, rondo__hash128 key,
                               rondo__cuda_image *out_image);

// Threads from now on, of the whole process; 0: none, and nothing is compiled ahead. The default,
// -1, is one for each processor, and none while a test compiles in place of NVRTC.
void rondo__compile_ahead_set_threads(int32_t count);
