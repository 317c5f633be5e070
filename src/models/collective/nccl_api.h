// collective/nccl_api.h — the entries of NCCL that all-reduces use, declared by ourselves so that
// no toolkit is needed to build, and loaded with the first communicator of a GPU.
//
// Source: NVIDIA NCCL documentation, "NCCL API" (types, communicator creation and management,
// collective and group calls), versions 2.10 to 2.28: the values have been the same since 2.10,
// when ncclAvg and ncclBfloat16 came.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

#include "backend/cuda/driver/discover.h"
#include "rondo/status.h"

typedef void *rondo__nccl_comm;
typedef struct rondo__nccl_id {  // ncclUniqueId: NCCL_UNIQUE_ID_BYTES, passed by value
    char bytes[128];
} rondo__nccl_id;

// X(our name, NVIDIA's name, value)
#define RONDO_NCCL_CONSTANT_MAP(X)    \
    X(SUCCESS, ncclSuccess, 0)        \
    X(IN_PROGRESS, ncclInProgress, 7) \
    X(SUM, ncclSum, 0)                \
    X(AVERAGE, ncclAvg, 4)            \
    X(INT32, ncclInt32, 2)            \
    X(INT64, ncclInt64, 4)            \
    X(FLOAT16, ncclFloat16, 6)        \
    X(FLOAT32, ncclFloat32, 7)        \
    X(FLOAT64, ncclFloat64, 8)        \
    X(BFLOAT16, ncclBfloat16, 9)

enum {
#define RONDO_NCCL_CONSTANT(name, theirs, value) RONDO__NCCL_##name = (value),
    RONDO_NCCL_CONSTANT_MAP(RONDO_NCCL_CONSTANT)
#undef RONDO_NCCL_CONSTANT
};

// X(result, name, parameters); streams are CUstream, which is the runtime's cudaStream_t.
#define RONDO_NCCL_MAP(X)                                                                      \
    X(int, ncclGetVersion, (int *version))                                                     \
    X(int, ncclGetUniqueId, (rondo__nccl_id * id))                                             \
    X(int, ncclCommInitRank,                                                                   \
      (rondo__nccl_comm * comm, int rank_count, rondo__nccl_id id, int rank))                  \
    X(int, ncclCommDestroy, (rondo__nccl_comm comm))                                           \
    X(int, ncclCommAbort, (rondo__nccl_comm comm))                                             \
    X(int, ncclCommGetAsyncError, (rondo__nccl_comm comm, int *code))                          \
    X(int, ncclGroupStart, (void))                                                             \
    X(int, ncclGroupEnd, (void))                                                               \
    X(int, ncclAllReduce,                                                                      \
      (const void *send, void *receive, size_t count, int type, int op, rondo__nccl_comm comm, \
       void *stream))                                                                          \
    X(int, ncclReduceScatter,                                                                  \
      (const void *send, void *receive, size_t receive_count, int type, int op,                \
       rondo__nccl_comm comm, void *stream))                                                   \
    X(int, ncclAllGather,                                                                      \
      (const void *send, void *receive, size_t send_count, int type, rondo__nccl_comm comm,    \
       void *stream))                                                                          \
    X(const char *, ncclGetErrorString, (int code))

typedef struct rondo__nccl_api {
    RONDO_NCCL_MAP(RONDO__CUDA_FUNCTION)
} rondo__nccl_api;

// Loads NCCL at the first call.
//
// Errors:    UNAVAILABLE (not found, or older than 2.10: how to get it).
RONDO_MUST_USE rondo_status rondo__nccl_get_api(const rondo__nccl_api **out_api);
