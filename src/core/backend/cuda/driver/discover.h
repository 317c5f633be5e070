// backend/cuda/driver/discover.h — finding NVIDIA's libraries wherever they were put.
//
// NVRTC, cuBLASLt, cuDNN and CUPTI are not part of the driver. They come with a toolkit, with a
// distribution's packages, or inside Python wheels (site-packages/nvidia/*/lib), and cuDNN is a
// family of libraries that load each other by name. One helper knows all those places.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/library.h"
#include "rondo/status.h"

// Opens a library of NVIDIA's by its short name: "nvrtc", "cublasLt", "cudnn", "cupti".
//
// Looked at in this order: the folders of RONDO_LIBRARY_PATH (colon separated), what the dynamic
// loader finds by itself (LD_LIBRARY_PATH, its cache), toolkits (/usr/local/cuda*/lib64,
// /opt/cuda/lib64, CUDA_HOME; extras/CUPTI/lib64 in each), and the wheels of the python3 on PATH.
// In each place the newest known major version first; libraries it depends on are loaded from the
// same places.
//
// Errors:    UNAVAILABLE (names the library, where it was looked for, and how to get it),
//            NO_MEMORY.
// Ownership: kept open for the life of the process; never close it.
// Threads:   safe; keep the result, each call searches again.
RONDO_MUST_USE rondo_status rondo__cuda_open_library(const char *short_name,
                                                     rondo__library **out_library);

// Loads it on a thread of its own, so that the call above finds it loaded. A process that ends
// waits for the thread.
void rondo__cuda_want_library(const char *short_name);

// Macros for a list X(result, name, parameters) of functions: the member of a table, and the name.
#define RONDO__CUDA_FUNCTION(result, name, parameters) result(*name) parameters;
#define RONDO__CUDA_FUNCTION_NAME(result, name, parameters) #name,

// The table of a library that is looked for once; a failure stays, too.
typedef struct rondo__cuda_functions {
    const char *short_name;    // for the call above
    const char *const *names;  // of the table's members, in their order
    size_t name_count;
    void *table;
    pthread_mutex_t lock;     // of what the first call sets
    rondo__library *library;  // never closed
    char problem[200];        // empty when all were found
} rondo__cuda_functions;

// Fills the table at the first call; it is constant from then on.
//
// Errors:    UNAVAILABLE (not found, or a symbol is missing).
RONDO_MUST_USE rondo_status rondo__cuda_load_functions(rondo__cuda_functions *wanted);

// Finds the folder of cuda_fp16.h that belongs to a library found above, so that kernel texts may
// include CUDA's device headers.
//
// Returns:   false when there is none, or the path does not fit.
bool rondo__cuda_find_headers(const char *library_path, char *out_folder, size_t folder_bytes);
