// peers_kernel.h — kernels of the cases' own: one text for CUDA, one C function for the others.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"

// A kernel that reads its packed arguments in a single thread (blocks and threads of one).
typedef struct peers_kernel {
    const char *name;
    const char *text;                    // CUDA C, with a kernel of this name
    rondo_host_function host;            // the same in C
    void (*fake)(const void *, size_t);  // calls `host` with a copy
} peers_kernel;

// Defines `fake_<function>`, which hands the arguments to `function` as the host backend would.
#define PEERS_FAKE(function, arguments_type)                                                   \
    static void fake_##function(const void *arguments, size_t argument_bytes) {                \
        arguments_type copy;                                                                   \
        memset(&copy, 0, sizeof copy);                                                         \
        memcpy(&copy, arguments, argument_bytes < sizeof copy ? argument_bytes : sizeof copy); \
        function(&copy);                                                                       \
    }                                                                                          \
    _Static_assert(sizeof(arguments_type) > 0, "arguments")

// What rondo_launch.function wants on the context's device.
void *peers_get_function(suite_context *context, const peers_kernel *kernel);
// Launches `blocks` blocks of one thread.
rondo_status peers_launch(rondo_stream *stream, const peers_kernel *kernel, void *function,
                          uint32_t blocks, const void *arguments, size_t argument_bytes);
