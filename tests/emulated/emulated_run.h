// emulated/emulated_run.h — runs a compiled kernel text, block after block, thread after thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "emulated/emulated_abi.h"

typedef struct emulated_kernel {
    emulated_thread thread;  // NULL: there is none
    unsigned int cluster;    // blocks that run together, neighbours in x
    unsigned int argument_bytes;
    const unsigned int *layout;  // EMULATED_LAYOUT; NULL: not known
} emulated_kernel;

// `shape` is grid and block, three extents each, and the bytes of dynamic shared memory. False,
// with what is wrong: threads wait for others that wait elsewhere.
bool emulated_run(const emulated_kernel *kernel, const unsigned int shape[7],
                  const unsigned char *arguments, const char **out_problem);

// Loads an image; NULL, with what is wrong, when it is none.
void *emulated_load(const void *image, const char **out_problem);
emulated_kernel emulated_find(void *module, const char *kernel_name);
void emulated_unload(void *module);
