// backend/cuda/driver/cuda_api.h — libcuda as a table of functions, loaded at run time.
//
// The table is passed by pointer and never looked up again, so a test fills one of its own
// (tests/support/fake/fake_cuda.h) and the whole backend runs on it without a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/cuda_abi.h"
#include "rondo/status.h"

// What a driver may lack. A bit is set when every function of that capability was found.
typedef uint32_t rondo__cuda_capabilities;
enum {
    RONDO__CUDA_CAN_NAME_FUNCTIONS = 1u << 0,
    RONDO__CUDA_CAN_DESCRIBE_KERNELS = 1u << 1,
    RONDO__CUDA_CAN_BLAME_INSTANTIATION = 1u << 2,
    RONDO__CUDA_CAN_UPDATE_EXECUTABLES = 1u << 3,
    RONDO__CUDA_CAN_LIST_TYPED_EDGES = 1u << 4,
    RONDO__CUDA_CAN_OVERLAP_LAUNCHES = 1u << 5,
    RONDO__CUDA_CAN_CONDITIONALS = 1u << 6,
    RONDO__CUDA_CAN_LIST_PARAMETERS = 1u << 7,
    RONDO__CUDA_CAN_PRIORITISE_STREAMS = 1u << 8,
    RONDO__CUDA_CAN_PATCH_KERNELS = 1u << 9,
    RONDO__CUDA_CAN_TOGGLE_NODES = 1u << 10,
    RONDO__CUDA_CAN_MAP_TENSORS = 1u << 11,
    RONDO__CUDA_CAN_EVERYTHING = (1u << 12) - 1,
};

// The oldest driver that has everything REQUIRED.
#define RONDO__CUDA_OLDEST_DRIVER 11040

typedef struct rondo__cuda_api {
#define RONDO__CUDA_SYMBOL(need, name, version, exported, arguments) \
    rondo__cu_result(*name) arguments;
#include "backend/cuda/driver/cuda_symbols.h"
#undef RONDO__CUDA_SYMBOL
    rondo__cuda_capabilities capabilities;
    int32_t driver_version;  // 1000 * major + 10 * minor
} rondo__cuda_api;

// Finds an exported symbol, as dlsym does; NULL when absent.
typedef void *(*rondo__cuda_resolve_function)(void *user_data, const char *symbol);

// Fills the table from a driver library, through cuGetProcAddress where it has that.
//
// Errors:    UNAVAILABLE (driver too old, or a required function is missing: named).
RONDO_MUST_USE rondo_status rondo__cuda_api_load(rondo__cuda_resolve_function resolve,
                                                 void *user_data, rondo__cuda_api *out_api);

// The process's driver, loaded and initialised on first use.
//
// Errors:    UNAVAILABLE (no driver, no GPU, driver too old; says which).
// Ownership: lives as long as the process.
RONDO_MUST_USE rondo_status rondo__cuda_get_api(const rondo__cuda_api **out_api);

// Fails with UNSUPPORTED, naming the missing function and the driver that has it, unless the
// capability is there.
//
// Errors:    UNSUPPORTED.
RONDO_MUST_USE rondo_status rondo__cuda_api_require(const rondo__cuda_api *api,
                                                    rondo__cuda_capabilities capability);

// Test hook: from now on rondo__cuda_get_api yields `api`; NULL goes back to the real driver. Only
// while no device of this backend is open.
void rondo__cuda_set_api(const rondo__cuda_api *api);
bool rondo__cuda_is_replaced(void);
