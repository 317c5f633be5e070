// base/log/nvtx.h — ranges for NVIDIA's tools (Nsight Systems and others), by their injection
// protocol.
//
// A tool that wants a program's ranges sets NVTX_INJECTION64_PATH to a library of its own. A
// library with ranges to show loads the tool's library and calls InitializeInjectionNvtx2 with a
// function that yields a table of function pointers; the tool writes its functions there:
//
//   Rondo                                 tool
//   dlopen, InitializeInjectionNvtx2 ->   get_table(1)->get_functions(module, &table, &count)
//                                         *table[11] = its RangePop, *table[10] = ...
//   range push, pop, start, end      ->   the functions it wrote
//
// base/log/hook.c alone calls this, and decides which ranges are shown. The ABI is declared here in
// our own words and compared with NVIDIA's headers in tests/abi.
//
// Source: NVTX 3, nvToolsExt.h and nvtxDetail/nvtxTypes.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RONDO__NVTX_UNKNOWN = 0,  // no look for a tool yet
    RONDO__NVTX_OFF = 1,
    RONDO__NVTX_ON = 2,
};
extern atomic_int rondo__nvtx_state;

// Looks for a tool, once in the process; true when one listens.  Threads: safe.
bool rondo__nvtx_start(void);

static inline bool rondo__nvtx_is_on(void) {
    int state = atomic_load_explicit(&rondo__nvtx_state, memory_order_acquire);
    return __builtin_expect(state != RONDO__NVTX_OFF, 0) &&
           (state == RONDO__NVTX_ON || rondo__nvtx_start());
}

// The rest only where rondo__nvtx_is_on() was true. All are safe on any thread.

// A range of this thread, nested in the ones that are open.
void rondo__nvtx_push(const char *text);
void rondo__nvtx_pop(void);
// A range that may end on another thread or out of order.
uint64_t rondo__nvtx_start_range(const char *text);
void rondo__nvtx_end_range(uint64_t range);

// ---- the ABI ----------------------------------------------------------------------------------

enum {
    RONDO__NVTX_VERSION = 3,
    RONDO__NVTX_TABLE_CALLBACKS = 1,
    RONDO__NVTX_TABLE_VERSION = 3,
    RONDO__NVTX_MODULE_CORE = 1,
    RONDO__NVTX_MODULE_CUDA = 2,  // names of CUDA's objects, as the next two
    RONDO__NVTX_MODULE_OPENCL = 3,
    RONDO__NVTX_MODULE_CUDART = 4,
    RONDO__NVTX_MODULE_CORE2 = 5,  // functions with a domain
    RONDO__NVTX_MODULE_SYNC = 6,
    RONDO__NVTX_MODULE_COUNT = 7,
    RONDO__NVTX_MESSAGE_ASCII = 1,
};

// Indices into the core table.
enum {
    RONDO__NVTX_RANGE_START = 5,  // uint64_t (const char *)
    RONDO__NVTX_RANGE_END = 7,    // void (uint64_t)
    RONDO__NVTX_RANGE_PUSH = 9,   // int (const char *)
    RONDO__NVTX_RANGE_POP = 11,   // int (void)
    RONDO__NVTX_CORE_COUNT = 16,
};

// Indices into the table of functions with a domain.
enum {
    RONDO__NVTX_DOMAIN_RANGE_START = 2,  // uint64_t (domain, const attributes *)
    RONDO__NVTX_DOMAIN_RANGE_END = 3,    // void (domain, uint64_t)
    RONDO__NVTX_DOMAIN_RANGE_PUSH = 4,   // int (domain, const attributes *)
    RONDO__NVTX_DOMAIN_RANGE_POP = 5,    // int (domain)
    RONDO__NVTX_DOMAIN_CREATE = 12,      // domain (const char *)
    RONDO__NVTX_CORE2_COUNT = 16,
};

// Tables that Rondo calls nothing of: tools refuse to start where one of them is missing.
enum {
    RONDO__NVTX_CUDA_COUNT = 9,
    RONDO__NVTX_OPENCL_COUNT = 15,
    RONDO__NVTX_CUDART_COUNT = 7,
    RONDO__NVTX_SYNC_COUNT = 7,
    RONDO__NVTX_COUNT_MAX = 16,  // of all modules
};

typedef void (*rondo__nvtx_function)(void);

typedef struct rondo__nvtx_attributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} rondo__nvtx_attributes;

typedef struct rondo__nvtx_callbacks {
    size_t struct_size;
    int (*get_functions)(int module, rondo__nvtx_function ***out_table, unsigned int *out_count);
} rondo__nvtx_callbacks;

typedef struct rondo__nvtx_version {
    size_t struct_size;
    uint32_t version;
    uint32_t reserved;
    void (*set_injection_version)(uint32_t version);
} rondo__nvtx_version;

typedef const void *(*rondo__nvtx_get_table)(uint32_t table);
typedef int (*rondo__nvtx_initialize)(rondo__nvtx_get_table get_table);
