// Our words for cuBLASLt and cuDNN (kernel/cuda/product/cublaslt_api.h, cudnn_api.h) against
// NVIDIA's headers, where a toolkit is installed. What differs does not compile.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kernel/cuda/convolution/cudnn_api.h"
#include "kernel/cuda/product/cublaslt_api.h"

#if RONDO_HAS_CUDA_H && __has_include(<cublasLt.h>)
#define HAS_CUBLASLT 1
#include <cublasLt.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SAME(RONDO__LT_SUCCESS, CUBLAS_STATUS_SUCCESS);
SAME(RONDO__LT_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(RONDO__LT_COMPUTE_F64, CUBLAS_COMPUTE_64F);
SAME(RONDO__LT_TYPE_F32, CUDA_R_32F);
SAME(RONDO__LT_TYPE_F64, CUDA_R_64F);
SAME(RONDO__LT_TYPE_F16, CUDA_R_16F);
SAME(RONDO__LT_TYPE_BF16, CUDA_R_16BF);
SAME(RONDO__LT_PLAIN, CUBLAS_OP_N);
SAME(RONDO__LT_TRANSPOSED, CUBLAS_OP_T);
SAME(RONDO__LT_PRODUCT_TRANS_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(RONDO__LT_PRODUCT_TRANS_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(RONDO__LT_PRODUCT_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(RONDO__LT_PRODUCT_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(RONDO__LT_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(RONDO__LT_LAYOUT_BATCH_STRIDE, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(RONDO__LT_PREFERENCE_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(RONDO__LT_PREFERENCE_ALIGNMENT_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(RONDO__LT_PREFERENCE_ALIGNMENT_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(RONDO__LT_PREFERENCE_ALIGNMENT_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(RONDO__LT_PREFERENCE_ALIGNMENT_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(RONDO__LT_EPILOGUE_NONE, CUBLASLT_EPILOGUE_DEFAULT);
SAME(RONDO__LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS);
_Static_assert(sizeof(rondo__lt_algorithm) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
_Static_assert(sizeof(rondo__lt_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "heuristic");
_Static_assert(offsetof(rondo__lt_heuristic, workspace_bytes) ==
                   offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize),
               "workspace");
_Static_assert(offsetof(rondo__lt_heuristic, status) ==
                   offsetof(cublasLtMatmulHeuristicResult_t, state),
               "status");
#else
#define HAS_CUBLASLT 0
#endif

#if RONDO_HAS_CUDA_H && __has_include(<cudnn_graph.h>)
#define HAS_CUDNN 1
#include <cudnn_graph.h>
#define SAME_CONSTANT(ours, theirs, value) \
    _Static_assert((int)RONDO__DNN_##ours == (int)(theirs), #theirs);
RONDO_CUDNN_CONSTANT_MAP(SAME_CONSTANT)
#else
#define HAS_CUDNN 0
#endif

int main(void) {
    if (!HAS_CUBLASLT && !HAS_CUDNN) {
        printf("skipped: neither cublasLt.h nor cudnn_graph.h is installed\n");
        return 77;
    }
    printf("compared with: %s%s\n", HAS_CUBLASLT ? "cublasLt.h " : "",
           HAS_CUDNN ? "cudnn_graph.h" : "");
    return 0;
}
