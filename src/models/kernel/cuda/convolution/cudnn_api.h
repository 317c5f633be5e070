// kernel/cuda/convolution/cudnn_api.h — the entries of cuDNN 9's backend API that convolutions use,
// declared by ourselves so that no toolkit is needed to build, and loaded when the first
// convolution is prepared. A test compares sizes and values with NVIDIA's header where one is
// installed.
//
// The backend API describes work as a graph of operations over tensors. Everything is a descriptor
// with attributes, set one by one and then finalised.
//
// Source: cuDNN documentation, "cuDNN Graph API" and "cudnn_graph Library".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/discover.h"
#include "rondo/status.h"

typedef void *rondo__dnn_handle;
typedef void *rondo__dnn_descriptor;

// X(our name, NVIDIA's name, value)
#define RONDO_CUDNN_CONSTANT_MAP(X)                                                           \
    X(SUCCESS, CUDNN_STATUS_SUCCESS, 0)                                                       \
    X(FLOAT_DATA, CUDNN_DATA_FLOAT, 0)                                                        \
    X(DOUBLE_DATA, CUDNN_DATA_DOUBLE, 1)                                                      \
    X(HALF_DATA, CUDNN_DATA_HALF, 2)                                                          \
    X(BFLOAT_DATA, CUDNN_DATA_BFLOAT16, 9)                                                    \
    X(CROSS_CORRELATION, CUDNN_CROSS_CORRELATION, 1)                                          \
    X(POINTWISE_ADD, CUDNN_POINTWISE_ADD, 0)                                                  \
    X(POINTWISE_RELU, CUDNN_POINTWISE_RELU_FWD, 100)                                          \
    X(HEURISTIC_FALLBACK, CUDNN_HEUR_MODE_FALLBACK, 2)                                        \
    X(HEURISTIC_A, CUDNN_HEUR_MODE_A, 3)                                                      \
    X(NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_TENSOR_CORE, 0)                                  \
    X(NOTE_DOWN_CONVERT, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                         \
    X(NOTE_REDUCED_SUMS, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)                 \
    X(NOTE_RANDOM_ORDER, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, 4)                            \
    X(NOTE_COUNT, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, 10)                                        \
    X(TYPE_HANDLE, CUDNN_TYPE_HANDLE, 0)                                                      \
    X(TYPE_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1)                                                \
    X(TYPE_BOOLEAN, CUDNN_TYPE_BOOLEAN, 2)                                                    \
    X(TYPE_INT64, CUDNN_TYPE_INT64, 3)                                                        \
    X(TYPE_FLOAT, CUDNN_TYPE_FLOAT, 4)                                                        \
    X(TYPE_DOUBLE, CUDNN_TYPE_DOUBLE, 5)                                                      \
    X(TYPE_POINTER, CUDNN_TYPE_VOID_PTR, 6)                                                   \
    X(TYPE_CONVOLUTION_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 7)                                  \
    X(TYPE_HEURISTIC, CUDNN_TYPE_HEUR_MODE, 8)                                                \
    X(TYPE_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 11)                                               \
    X(TYPE_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 14)                                     \
    X(TYPE_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 15)                                     \
    X(POINTWISE_DESCRIPTOR, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0)                            \
    X(CONVOLUTION_DESCRIPTOR, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 1)                        \
    X(ENGINE_DESCRIPTOR, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 2)                                  \
    X(CONFIG_DESCRIPTOR, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 3)                               \
    X(HEURISTIC_DESCRIPTOR, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 4)                           \
    X(PLAN_DESCRIPTOR, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)                            \
    X(FORWARD_DESCRIPTOR, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 10)         \
    X(WEIGHTS_DESCRIPTOR, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 11) \
    X(POINTWISE_OPERATION, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13)                  \
    X(GRAPH_DESCRIPTOR, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15)                          \
    X(PACK_DESCRIPTOR, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 16)                             \
    X(TENSOR_DESCRIPTOR, CUDNN_BACKEND_TENSOR_DESCRIPTOR, 17)                                 \
    X(POINTWISE_MODE, CUDNN_ATTR_POINTWISE_MODE, 0)                                           \
    X(POINTWISE_PRECISION, CUDNN_ATTR_POINTWISE_MATH_PREC, 1)                                 \
    X(POINTWISE_NAN, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, 2)                                 \
    X(TYPE_NAN, CUDNN_TYPE_NAN_PROPOGATION, 10)                                               \
    X(PROPAGATE_NAN, CUDNN_PROPAGATE_NAN, 1)                                                  \
    X(POINTWISE_LOWER, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 3)                               \
    X(POINTWISE_UPPER, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 4)                               \
    X(CONVOLUTION_PRECISION, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 100)                           \
    X(CONVOLUTION_MODE, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 101)                                \
    X(CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_DILATIONS, 102)                           \
    X(CONVOLUTION_STRIDES, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 103)                        \
    X(CONVOLUTION_AFTER, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, 104)                           \
    X(CONVOLUTION_BEFORE, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 105)                           \
    X(CONVOLUTION_RANK, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 106)                             \
    X(HEURISTIC_MODE, CUDNN_ATTR_ENGINEHEUR_MODE, 200)                                        \
    X(HEURISTIC_GRAPH, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 201)                            \
    X(HEURISTIC_RESULTS, CUDNN_ATTR_ENGINEHEUR_RESULTS, 202)                                  \
    X(CONFIG_ENGINE, CUDNN_ATTR_ENGINECFG_ENGINE, 300)                                        \
    X(PLAN_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, 400)                                     \
    X(PLAN_CONFIG, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                              \
    X(PLAN_WORKSPACE, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402)                          \
    X(FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                     \
    X(FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 701)                       \
    X(FORWARD_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)           \
    X(FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 703)                             \
    X(FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 704)                             \
    X(FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, 705)                             \
    X(WEIGHTS_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                  \
    X(WEIGHTS_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                    \
    X(WEIGHTS_CONVOLUTION, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)        \
    X(WEIGHTS_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                         \
    X(WEIGHTS_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 716)                          \
    X(WEIGHTS_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                         \
    X(OPERATION_POINTWISE, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                 \
    X(OPERATION_X, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 751)                                 \
    X(OPERATION_B, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, 752)                                 \
    X(OPERATION_Y, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, 753)                                 \
    X(GRAPH_HANDLE, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, 800)                                    \
    X(GRAPH_OPERATIONS, CUDNN_ATTR_OPERATIONGRAPH_OPS, 801)                                   \
    X(TENSOR_ALIGNMENT, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 900)                                \
    X(TENSOR_TYPE, CUDNN_ATTR_TENSOR_DATA_TYPE, 901)                                          \
    X(TENSOR_EXTENTS, CUDNN_ATTR_TENSOR_DIMENSIONS, 902)                                      \
    X(TENSOR_STRIDES, CUDNN_ATTR_TENSOR_STRIDES, 903)                                         \
    X(TENSOR_NUMBER, CUDNN_ATTR_TENSOR_UNIQUE_ID, 906)                                        \
    X(TENSOR_IS_VIRTUAL, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 907)                                   \
    X(PACK_NUMBERS, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 1000)                                 \
    X(PACK_ADDRESSES, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, 1001)                            \
    X(PACK_WORKSPACE, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, 1003)                                \
    X(ENGINE_NOTES, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, 1303)                                   \
    X(ENGINE_HABITS, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, 1305)                                   \
    X(TYPE_HABIT, CUDNN_TYPE_BEHAVIOR_NOTE, 19)                                               \
    X(HABIT_COMPILES, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0)                             \
    X(HABIT_COUNT, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, 5)

enum {
#define RONDO_CUDNN_ENUM(name, theirs, value) RONDO__DNN_##name = (value),
    RONDO_CUDNN_CONSTANT_MAP(RONDO_CUDNN_ENUM)
#undef RONDO_CUDNN_ENUM
};

#define RONDO_CUDNN_MAP(X)                                                                     \
    X(int, cudnnCreate, (rondo__dnn_handle *))                                                 \
    X(int, cudnnDestroy, (rondo__dnn_handle))                                                  \
    X(int, cudnnSetStream, (rondo__dnn_handle, void *))                                        \
    X(size_t, cudnnGetVersion, (void))                                                         \
    X(const char *, cudnnGetErrorString, (int))                                                \
    X(int, cudnnBackendCreateDescriptor, (int, rondo__dnn_descriptor *))                       \
    X(int, cudnnBackendDestroyDescriptor, (rondo__dnn_descriptor))                             \
    X(int, cudnnBackendFinalize, (rondo__dnn_descriptor))                                      \
    X(int, cudnnBackendSetAttribute, (rondo__dnn_descriptor, int, int, int64_t, const void *)) \
    X(int, cudnnBackendGetAttribute,                                                           \
      (rondo__dnn_descriptor, int, int, int64_t, int64_t *, void *))                           \
    X(int, cudnnBackendExecute, (rondo__dnn_handle, rondo__dnn_descriptor, rondo__dnn_descriptor))

typedef struct rondo__dnn_api {
    RONDO_CUDNN_MAP(RONDO__CUDA_FUNCTION)
} rondo__dnn_api;

// The loaded entries; loads them at the first call.
//
// Errors:    UNAVAILABLE (not found, a symbol is missing, or older than version 9).
// Ownership: lives as long as the process.
RONDO_MUST_USE rondo_status rondo__cudnn_get_api(const rondo__dnn_api **out_api);
