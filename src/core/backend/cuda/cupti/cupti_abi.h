// backend/cuda/cupti/cupti_abi.h — our own words for what we use of CUPTI; no toolkit is needed to
// build.
//
// Records are declared as far as we read them. That much has had the same offsets since CUPTI 11.6
// and in every version of the records since (kernels: 7 to 10); tests/abi compares each of them
// with NVIDIA's headers.
//
// Source: CUPTI 12.0 and 13.0, cupti_activity.h, cupti_callbacks.h, cupti_result.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/cuda_abi.h"

typedef int rondo__cupti_result;

enum {
    RONDO__CUPTI_SUCCESS = 0,
    RONDO__CUPTI_ERROR_MAX_LIMIT_REACHED = 12,  // no more records in the buffer
    RONDO__CUPTI_ERROR_NOT_INITIALIZED = 15,
    RONDO__CUPTI_ERROR_VIRTUALIZED_DEVICE = 33,
    RONDO__CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
    RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS = 39,
    RONDO__CUPTI_ERROR_UNKNOWN = 999,
};

// The oldest library whose records look as declared here: CUPTI 12.0.
#define RONDO__CUPTI_OLDEST_VERSION 18

// Kinds of activity.
enum {
    RONDO__CUPTI_MEMCPY = 1,
    RONDO__CUPTI_MEMSET = 2,
    RONDO__CUPTI_KERNEL = 3,
    RONDO__CUPTI_DRIVER = 4,
    RONDO__CUPTI_RUNTIME = 5,
    RONDO__CUPTI_CONCURRENT_KERNEL = 10,
    RONDO__CUPTI_MEMCPY_PEER = 22,
    RONDO__CUPTI_EXTERNAL_CORRELATION = 39,
};

enum { RONDO__CUPTI_EXTERNAL_CUSTOM = 3 };  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
enum { RONDO__CUPTI_FLUSH_FORCED = 1 };

// Ways of a copy.
enum {
    RONDO__CUPTI_COPY_HTOD = 1,
    RONDO__CUPTI_COPY_DTOH = 2,
    RONDO__CUPTI_COPY_DTOD = 8,
    RONDO__CUPTI_COPY_HTOH = 9,
    RONDO__CUPTI_COPY_PTOP = 10,
};

typedef struct rondo__cupti_record {
    int kind;
} rondo__cupti_record;

// Times are nanoseconds; 0 where the device had no room for them.
typedef struct rondo__cupti_kernel {
    int kind;
    uint32_t caches[3];
    uint64_t start;
    uint64_t end;
    uint64_t completed;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t shape[10];
    uint32_t correlation;
    int64_t grid;
    const char *name;
    void *reserved;
    uint64_t queued;
    uint64_t submitted;
    uint32_t launch_type;
    uint32_t shared_bytes;
    uint64_t graph_node;  // 0: not of a graph
    uint32_t shared_limit;
    uint32_t graph;
} rondo__cupti_kernel;

typedef struct rondo__cupti_memcpy {
    int kind;
    uint8_t copy_kind;
    uint8_t source_kind;
    uint8_t destination_kind;
    uint8_t flags;
    uint64_t bytes;
    uint64_t start;
    uint64_t end;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t correlation;
    uint32_t runtime_correlation;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} rondo__cupti_memcpy;

// Between two devices.
typedef struct rondo__cupti_memcpy_peer {
    int kind;
    uint8_t copy_kind;
    uint8_t source_kind;
    uint8_t destination_kind;
    uint8_t flags;
    uint64_t bytes;
    uint64_t start;
    uint64_t end;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t ends[4];  // devices and contexts
    uint32_t correlation;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} rondo__cupti_memcpy_peer;

typedef struct rondo__cupti_memset {
    int kind;
    uint32_t value;
    uint64_t bytes;
    uint64_t start;
    uint64_t end;
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    uint32_t correlation;
    uint16_t flags;
    uint16_t memory_kind;
    uint32_t padding;
    void *reserved;
    uint64_t graph_node;
    uint32_t graph;
} rondo__cupti_memset;

typedef struct rondo__cupti_external {
    int kind;
    int external_kind;
    uint64_t id;
    uint32_t correlation;
    uint32_t reserved;
} rondo__cupti_external;

typedef struct rondo__cupti_subscriber_object *rondo__cupti_subscriber;
typedef void (*rondo__cupti_callback)(void *user_data, int domain, uint32_t id, const void *data);
typedef void (*rondo__cupti_request)(uint8_t **out_buffer, size_t *out_bytes, size_t *out_count);
typedef void (*rondo__cupti_complete)(rondo__cu_context context, uint32_t stream, uint8_t *buffer,
                                      size_t bytes, size_t valid_bytes);
typedef uint64_t (*rondo__cupti_clock)(void);

// Calls that put work on a device, by CUPTI's numbers: X(number, name).
#define RONDO__CUPTI_DRIVER_CALL_MAP(X)    \
    X(277, cuMemcpyHtoDAsync_v2)           \
    X(279, cuMemcpyDtoHAsync_v2)           \
    X(281, cuMemcpyDtoDAsync_v2)           \
    X(289, cuMemcpy2DAsync_v2)             \
    X(291, cuMemcpy3DAsync_v2)             \
    X(306, cuMemcpyAsync)                  \
    X(319, cuMemcpyPeerAsync)              \
    X(216, cuMemsetD8Async)                \
    X(218, cuMemsetD16Async)               \
    X(220, cuMemsetD32Async)               \
    X(222, cuMemsetD2D8Async)              \
    X(226, cuMemsetD2D32Async)             \
    X(307, cuLaunchKernel)                 \
    X(442, cuLaunchKernel_ptsz)            \
    X(477, cuLaunchCooperativeKernel)      \
    X(478, cuLaunchCooperativeKernel_ptsz) \
    X(652, cuLaunchKernelEx)               \
    X(653, cuLaunchKernelEx_ptsz)          \
    X(514, cuGraphLaunch)                  \
    X(515, cuGraphLaunch_ptsz)
