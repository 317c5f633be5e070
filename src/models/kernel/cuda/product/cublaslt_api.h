// kernel/cuda/product/cublaslt_api.h — the few entries of cuBLASLt that products use, declared by
// ourselves so that no toolkit is needed to build, and loaded when the first product is prepared. A
// test compares sizes and values with NVIDIA's header where one is installed.
//
// Source: cuBLAS documentation, "Using the cuBLASLt API".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/discover.h"
#include "rondo/status.h"

typedef void *rondo__lt_handle;
typedef void *rondo__lt_product;     // cublasLtMatmulDesc_t
typedef void *rondo__lt_layout;      // cublasLtMatrixLayout_t
typedef void *rondo__lt_preference;  // cublasLtMatmulPreference_t

enum {
    RONDO__LT_SUCCESS = 0,
    // cublasComputeType_t
    RONDO__LT_COMPUTE_F32 = 68,
    RONDO__LT_COMPUTE_F64 = 70,
    // cudaDataType_t
    RONDO__LT_TYPE_F32 = 0,
    RONDO__LT_TYPE_F64 = 1,
    RONDO__LT_TYPE_F16 = 2,
    RONDO__LT_TYPE_BF16 = 14,
    // cublasOperation_t
    RONDO__LT_PLAIN = 0,
    RONDO__LT_TRANSPOSED = 1,
    // cublasLtMatmulDescAttributes_t
    RONDO__LT_PRODUCT_TRANS_A = 3,
    RONDO__LT_PRODUCT_TRANS_B = 4,
    RONDO__LT_PRODUCT_EPILOGUE = 7,
    RONDO__LT_PRODUCT_BIAS_POINTER = 8,
    // cublasLtMatrixLayoutAttribute_t
    RONDO__LT_LAYOUT_BATCH_COUNT = 5,
    RONDO__LT_LAYOUT_BATCH_STRIDE = 6,
    // cublasLtMatmulPreferenceAttributes_t
    RONDO__LT_PREFERENCE_WORKSPACE = 1,
    RONDO__LT_PREFERENCE_ALIGNMENT_A = 5,
    RONDO__LT_PREFERENCE_ALIGNMENT_B = 6,
    RONDO__LT_PREFERENCE_ALIGNMENT_C = 7,
    RONDO__LT_PREFERENCE_ALIGNMENT_D = 8,
    // cublasLtEpilogue_t
    RONDO__LT_EPILOGUE_NONE = 1,
    RONDO__LT_EPILOGUE_BIAS = 4,
};

typedef struct rondo__lt_algorithm {
    uint64_t data[8];
} rondo__lt_algorithm;

typedef struct rondo__lt_heuristic {
    rondo__lt_algorithm algorithm;
    size_t workspace_bytes;
    int status;
    float waves;
    int reserved[4];
} rondo__lt_heuristic;

#define RONDO_CUBLASLT_MAP(X)                                                                     \
    X(int, cublasLtCreate, (rondo__lt_handle *))                                                  \
    X(int, cublasLtDestroy, (rondo__lt_handle))                                                   \
    X(size_t, cublasLtGetVersion, (void))                                                         \
    X(const char *, cublasLtGetStatusName, (int))                                                 \
    X(int, cublasLtMatmulDescCreate, (rondo__lt_product *, int, int))                             \
    X(int, cublasLtMatmulDescDestroy, (rondo__lt_product))                                        \
    X(int, cublasLtMatmulDescSetAttribute, (rondo__lt_product, int, const void *, size_t))        \
    X(int, cublasLtMatrixLayoutCreate, (rondo__lt_layout *, int, uint64_t, uint64_t, int64_t))    \
    X(int, cublasLtMatrixLayoutDestroy, (rondo__lt_layout))                                       \
    X(int, cublasLtMatrixLayoutSetAttribute, (rondo__lt_layout, int, const void *, size_t))       \
    X(int, cublasLtMatmulPreferenceCreate, (rondo__lt_preference *))                              \
    X(int, cublasLtMatmulPreferenceDestroy, (rondo__lt_preference))                               \
    X(int, cublasLtMatmulPreferenceSetAttribute,                                                  \
      (rondo__lt_preference, int, const void *, size_t))                                          \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                        \
      (rondo__lt_handle, rondo__lt_product, rondo__lt_layout, rondo__lt_layout, rondo__lt_layout, \
       rondo__lt_layout, rondo__lt_preference, int, rondo__lt_heuristic *, int *))                \
    X(int, cublasLtMatmul,                                                                        \
      (rondo__lt_handle, rondo__lt_product, const void *, const void *, rondo__lt_layout,         \
       const void *, rondo__lt_layout, const void *, const void *, rondo__lt_layout, void *,      \
       rondo__lt_layout, const rondo__lt_algorithm *, void *, size_t, void *))

typedef struct rondo__lt_api {
    RONDO_CUBLASLT_MAP(RONDO__CUDA_FUNCTION)
} rondo__lt_api;

// The loaded entries; loads them at the first call.
//
// Errors:    UNAVAILABLE (not found, or a symbol is missing).
// Ownership: lives as long as the process.
RONDO_MUST_USE rondo_status rondo__cublaslt_get_api(const rondo__lt_api **out_api);
