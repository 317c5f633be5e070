// backend/cuda/driver/cuda_abi.h — what of NVIDIA's driver interface Rondo uses, in our own words.
//
// The library is built without a CUDA toolkit and meets libcuda only at run time, so the binary
// interface is written down here: handles, numbers and struct layouts. tests/abi compares each of
// them with the real cuda.h wherever one is installed; nothing may be added here without a line
// there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t rondo__cu_result;    // CUresult; an int in C
typedef int32_t rondo__cu_device;    // CUdevice, an ordinal
typedef uint64_t rondo__cu_address;  // CUdeviceptr

typedef struct rondo__cu_context_object *rondo__cu_context;
typedef struct rondo__cu_stream_object *rondo__cu_stream;
typedef struct rondo__cu_event_object *rondo__cu_event;
typedef struct rondo__cu_module_object *rondo__cu_module;
typedef struct rondo__cu_function_object *rondo__cu_function;
typedef struct rondo__cu_kernel_object *rondo__cu_kernel;
typedef struct rondo__cu_array_object *rondo__cu_array;
typedef struct rondo__cu_graph_object *rondo__cu_graph;
typedef struct rondo__cu_graph_node_object *rondo__cu_graph_node;
typedef struct rondo__cu_graph_exec_object *rondo__cu_graph_exec;
typedef struct rondo__cu_user_object_object *rondo__cu_user_object;

typedef void (*rondo__cu_host_function)(void *user_data);

// Result codes that Rondo tells apart. One list makes the enum and the comparison in tests/abi.
#define RONDO__CU_RESULT_MAP(X)               \
    X(SUCCESS, 0)                             \
    X(ERROR_INVALID_VALUE, 1)                 \
    X(ERROR_OUT_OF_MEMORY, 2)                 \
    X(ERROR_NOT_INITIALIZED, 3)               \
    X(ERROR_DEINITIALIZED, 4)                 \
    X(ERROR_STUB_LIBRARY, 34)                 \
    X(ERROR_DEVICE_UNAVAILABLE, 46)           \
    X(ERROR_NO_DEVICE, 100)                   \
    X(ERROR_INVALID_DEVICE, 101)              \
    X(ERROR_INVALID_IMAGE, 200)               \
    X(ERROR_INVALID_CONTEXT, 201)             \
    X(ERROR_NO_BINARY_FOR_GPU, 209)           \
    X(ERROR_ECC_UNCORRECTABLE, 214)           \
    X(ERROR_PEER_ACCESS_UNSUPPORTED, 217)     \
    X(ERROR_INVALID_PTX, 218)                 \
    X(ERROR_NVLINK_UNCORRECTABLE, 220)        \
    X(ERROR_JIT_COMPILER_NOT_FOUND, 221)      \
    X(ERROR_UNSUPPORTED_PTX_VERSION, 222)     \
    X(ERROR_OPERATING_SYSTEM, 304)            \
    X(ERROR_INVALID_HANDLE, 400)              \
    X(ERROR_ILLEGAL_STATE, 401)               \
    X(ERROR_NOT_FOUND, 500)                   \
    X(ERROR_NOT_READY, 600)                   \
    X(ERROR_ILLEGAL_ADDRESS, 700)             \
    X(ERROR_LAUNCH_OUT_OF_RESOURCES, 701)     \
    X(ERROR_LAUNCH_TIMEOUT, 702)              \
    X(ERROR_PEER_ACCESS_ALREADY_ENABLED, 704) \
    X(ERROR_CONTEXT_IS_DESTROYED, 709)        \
    X(ERROR_ASSERT, 710)                      \
    X(ERROR_TOO_MANY_PEERS, 711)              \
    X(ERROR_HARDWARE_STACK_ERROR, 714)        \
    X(ERROR_ILLEGAL_INSTRUCTION, 715)         \
    X(ERROR_MISALIGNED_ADDRESS, 716)          \
    X(ERROR_INVALID_ADDRESS_SPACE, 717)       \
    X(ERROR_INVALID_PC, 718)                  \
    X(ERROR_LAUNCH_FAILED, 719)               \
    X(ERROR_NOT_PERMITTED, 800)               \
    X(ERROR_NOT_SUPPORTED, 801)               \
    X(ERROR_SYSTEM_NOT_READY, 802)            \
    X(ERROR_SYSTEM_DRIVER_MISMATCH, 803)      \
    X(ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)  \
    X(ERROR_STREAM_CAPTURE_INVALIDATED, 901)  \
    X(ERROR_STREAM_CAPTURE_MERGE, 902)        \
    X(ERROR_STREAM_CAPTURE_UNMATCHED, 903)    \
    X(ERROR_STREAM_CAPTURE_UNJOINED, 904)     \
    X(ERROR_STREAM_CAPTURE_ISOLATION, 905)    \
    X(ERROR_STREAM_CAPTURE_IMPLICIT, 906)     \
    X(ERROR_CAPTURED_EVENT, 907)              \
    X(ERROR_STREAM_CAPTURE_WRONG_THREAD, 908) \
    X(ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910)   \
    X(ERROR_INVALID_CLUSTER_SIZE, 912)        \
    X(ERROR_UNKNOWN, 999)

enum {
#define RONDO__CU_RESULT_ENUM(name, value) RONDO__CU_##name = (value),
    RONDO__CU_RESULT_MAP(RONDO__CU_RESULT_ENUM)
#undef RONDO__CU_RESULT_ENUM
};

// Other numbers: (our name, NVIDIA's name, value).
#define RONDO__CU_CONSTANT_MAP(X)                                                                  \
    X(STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, 1)                                              \
    X(EVENT_DEFAULT, CU_EVENT_DEFAULT, 0)                                                          \
    X(EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING, 2)                                            \
    X(EVENT_RECORD_EXTERNAL, CU_EVENT_RECORD_EXTERNAL, 1)                                          \
    X(EVENT_WAIT_EXTERNAL, CU_EVENT_WAIT_EXTERNAL, 1)                                              \
    X(CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                       \
    X(CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                           \
    X(CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                     \
    X(CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_NONE, 0)                                       \
    X(CAPTURE_STATUS_ACTIVE, CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                   \
    X(CAPTURE_STATUS_INVALIDATED, CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                         \
    X(CAPTURE_ADD_DEPENDENCIES, CU_STREAM_ADD_CAPTURE_DEPENDENCIES, 0)                             \
    X(CAPTURE_SET_DEPENDENCIES, CU_STREAM_SET_CAPTURE_DEPENDENCIES, 1)                             \
    X(EDGE_DEFAULT, CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, 0)                                           \
    X(EDGE_PROGRAMMATIC, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 1)                                 \
    X(PORT_PROGRAMMATIC, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 1)                                \
    X(MEMORY_TYPE_HOST, CU_MEMORYTYPE_HOST, 1)                                                     \
    X(MEMORY_TYPE_DEVICE, CU_MEMORYTYPE_DEVICE, 2)                                                 \
    X(MEMORY_TYPE_ARRAY, CU_MEMORYTYPE_ARRAY, 3)                                                   \
    X(MEMORY_TYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED, 4)                                               \
    X(MEMORY_HOST_ALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE, 1)                                     \
    X(POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                          \
    X(POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                              \
    X(POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                    \
    X(POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)               \
    X(POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                           \
    X(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)         \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75) \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76) \
    X(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,                                          \
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)                                   \
    X(FUNCTION_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                \
    X(FUNCTION_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,                                            \
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)                                          \
    X(FUNCTION_ATTRIBUTE_SHARED_PERCENT, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)    \
    X(GRAPH_NODE_KERNEL, CU_GRAPH_NODE_TYPE_KERNEL, 0)                                             \
    X(GRAPH_NODE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                             \
    X(GRAPH_NODE_MEMSET, CU_GRAPH_NODE_TYPE_MEMSET, 2)                                             \
    X(GRAPH_NODE_HOST, CU_GRAPH_NODE_TYPE_HOST, 3)                                                 \
    X(GRAPH_NODE_GRAPH, CU_GRAPH_NODE_TYPE_GRAPH, 4)                                               \
    X(GRAPH_NODE_EMPTY, CU_GRAPH_NODE_TYPE_EMPTY, 5)                                               \
    X(GRAPH_NODE_WAIT_EVENT, CU_GRAPH_NODE_TYPE_WAIT_EVENT, 6)                                     \
    X(GRAPH_NODE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7)                                 \
    X(GRAPH_NODE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_ALLOC, 10)                                      \
    X(GRAPH_NODE_MEM_FREE, CU_GRAPH_NODE_TYPE_MEM_FREE, 11)                                        \
    X(GRAPH_NODE_CONDITIONAL, CU_GRAPH_NODE_TYPE_CONDITIONAL, 13)                                  \
    X(MEMORY_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                  \
    X(MEMORY_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE, 1)                                      \
    X(LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, 1)          \
    X(LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                            \
    X(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                \
    X(LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING,                                                         \
      CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, 5)                                 \
    X(LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,                                          \
      CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)                                    \
    X(LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)                                  \
    X(LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 9)            \
    X(LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 10)                   \
    X(USER_OBJECT_NO_DESTRUCTOR_SYNC, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, 1)                        \
    X(GRAPH_USER_OBJECT_MOVE, CU_GRAPH_USER_OBJECT_MOVE, 1)                                        \
    X(INSTANTIATE_AUTO_FREE_ON_LAUNCH, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 1)         \
    X(INSTANTIATE_USE_NODE_PRIORITY, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, 8)             \
    X(INSTANTIATE_SUCCESS, CUDA_GRAPH_INSTANTIATE_SUCCESS, 0)                                      \
    X(INSTANTIATE_ERROR, CUDA_GRAPH_INSTANTIATE_ERROR, 1)                                          \
    X(INSTANTIATE_INVALID_STRUCTURE, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, 2)                  \
    X(INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,                                                    \
      CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, 3)                                      \
    X(INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, \
      4)                                                                                           \
    X(INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, 5)  \
    X(UPDATE_SUCCESS, CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)                                             \
    X(UPDATE_ERROR, CU_GRAPH_EXEC_UPDATE_ERROR, 1)                                                 \
    X(UPDATE_TOPOLOGY_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)                     \
    X(UPDATE_NODE_TYPE_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3)                   \
    X(UPDATE_FUNCTION_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, 4)                     \
    X(UPDATE_PARAMETERS_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, 5)                 \
    X(UPDATE_NOT_SUPPORTED, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, 6)                           \
    X(UPDATE_UNSUPPORTED_FUNCTION_CHANGE, CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE,  \
      7)                                                                                           \
    X(UPDATE_ATTRIBUTES_CHANGED, CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, 8)                 \
    X(TENSOR_MAP_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 6)                                      \
    X(TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE, 0)                                \
    X(TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B, 1)                                        \
    X(TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B, 2)                                        \
    X(TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B, 3)                                      \
    X(TENSOR_MAP_L2_PROMOTION_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                         \
    X(TENSOR_MAP_OUTSIDE_IS_ZERO, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)                            \
    X(GET_PROC_ADDRESS_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, 0)                                    \
    X(GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_DEFAULT, 0)

enum {
#define RONDO__CU_CONSTANT_ENUM(name, theirs, value) RONDO__CU_##name = (value),
    RONDO__CU_CONSTANT_MAP(RONDO__CU_CONSTANT_ENUM)
#undef RONDO__CU_CONSTANT_ENUM
};

// CUtensorMap: what the tensor memory accelerator knows of a tensor, a kernel's parameter.
typedef struct rondo__cu_tensor_map {
    _Alignas(128) uint64_t word[16];
} rondo__cu_tensor_map;

// Pointer-valued numbers: special streams, and the keys of cuLaunchKernel's `extra` list.
#define RONDO__CU_STREAM_LEGACY ((rondo__cu_stream)(uintptr_t)1)
#define RONDO__CU_STREAM_PER_THREAD ((rondo__cu_stream)(uintptr_t)2)
#define RONDO__CU_LAUNCH_END ((void *)(uintptr_t)0)
#define RONDO__CU_LAUNCH_BUFFER_POINTER ((void *)(uintptr_t)1)
#define RONDO__CU_LAUNCH_BUFFER_SIZE ((void *)(uintptr_t)2)

// CUDA_KERNEL_NODE_PARAMS_v2. `kernel` is set instead of `function` for kernels of a CUlibrary.
typedef struct rondo__cu_kernel_node {
    rondo__cu_function function;
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    void **parameters;
    void **extra;
    rondo__cu_kernel kernel;
    rondo__cu_context context;
} rondo__cu_kernel_node;

// Attributes that came with CUDA 12.8 at the latest.
#define RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER 11
#define RONDO__CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_CARVEOUT 14

// CUlaunchAttributeValue with the values used, CUlaunchAttribute, and CUlaunchConfig.
typedef union rondo__cu_launch_attribute_value {
    int32_t is_allowed;
    int32_t is_cooperative;
    int32_t priority;
    uint32_t cluster[3];
    unsigned char room[64];
} rondo__cu_launch_attribute_value;

typedef struct rondo__cu_launch_attribute {
    int32_t id;
    int32_t padding;
    rondo__cu_launch_attribute_value value;
} rondo__cu_launch_attribute;

typedef struct rondo__cu_launch_config {
    unsigned int grid[3];
    unsigned int block[3];
    unsigned int shared_bytes;
    rondo__cu_stream stream;
    rondo__cu_launch_attribute *attributes;
    unsigned int attribute_count;
} rondo__cu_launch_config;

// CUDA_MEMCPY3D_v2: one end of a copy, twice, then the extent.
typedef struct rondo__cu_copy_end {
    size_t x_bytes;
    size_t y;
    size_t z;
    size_t level;
    int32_t memory_type;
    void *host;
    rondo__cu_address device;
    rondo__cu_array array;
    void *reserved;
    size_t pitch_bytes;
    size_t height;
} rondo__cu_copy_end;

typedef struct rondo__cu_copy_node {
    rondo__cu_copy_end source;
    rondo__cu_copy_end destination;
    size_t width_bytes;
    size_t height;
    size_t depth;
} rondo__cu_copy_node;

// CUDA_MEMSET_NODE_PARAMS_v1.
typedef struct rondo__cu_fill_node {
    rondo__cu_address destination;
    size_t pitch_bytes;
    unsigned int value;
    unsigned int element_bytes;
    size_t width;  // in elements
    size_t height;
} rondo__cu_fill_node;

// CUDA_HOST_NODE_PARAMS_v1.
typedef struct rondo__cu_host_node {
    rondo__cu_host_function function;
    void *user_data;
} rondo__cu_host_node;

// CUDA_MEM_ALLOC_NODE_PARAMS_v1, whose first part is CUmemPoolProps; and CUmemAccessDesc.
typedef struct rondo__cu_memory_access {
    int32_t location_type;
    int32_t location;
    int32_t flags;
} rondo__cu_memory_access;

typedef struct rondo__cu_memory_node {
    int32_t allocation_type;
    int32_t handle_types;
    int32_t location_type;
    int32_t location;
    void *security;
    size_t pool_bytes_max;
    uint16_t usage;
    unsigned char reserved[54];
    const rondo__cu_memory_access *accesses;  // the driver's, as long as the node lives
    size_t access_count;
    size_t byte_count;
    rondo__cu_address address;
} rondo__cu_memory_node;

// Kinds of conditional nodes, CUgraphConditionalNodeType; the last one came with CUDA 12.8.
#define RONDO__CU_CONDITIONAL_IF 0
#define RONDO__CU_CONDITIONAL_WHILE 1
#define RONDO__CU_CONDITIONAL_SWITCH 2

// CUDA_CONDITIONAL_NODE_PARAMS.
typedef struct rondo__cu_conditional_node {
    uint64_t handle;
    int32_t type;
    uint32_t body_count;
    rondo__cu_graph *bodies;  // the driver's, as long as the node lives
    rondo__cu_context context;
} rondo__cu_conditional_node;

// CUgraphNodeParams with the kinds of nodes used.
typedef struct rondo__cu_node_params {
    int32_t type;
    int32_t reserved0[3];
    union {
        int64_t reserved1[29];
        rondo__cu_conditional_node conditional;
        rondo__cu_kernel_node kernel;  // CUDA_KERNEL_NODE_PARAMS_v3
        struct {                       // CUDA_MEMCPY_NODE_PARAMS
            int32_t flags, reserved;
            rondo__cu_context context;
            rondo__cu_copy_node copy;
        } copy;
        struct {  // CUDA_MEMSET_NODE_PARAMS_v2
            rondo__cu_fill_node fill;
            rondo__cu_context context;
        } fill;
    } value;
    int64_t reserved2;
} rondo__cu_node_params;

// CUgraphEdgeData.
typedef struct rondo__cu_edge_data {
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
} rondo__cu_edge_data;

// CUDA_GRAPH_INSTANTIATE_PARAMS.
typedef struct rondo__cu_instantiate_params {
    uint64_t flags;
    rondo__cu_stream upload_stream;
    rondo__cu_graph_node error_node;
    int32_t result;
} rondo__cu_instantiate_params;

// CUgraphExecUpdateResultInfo.
typedef struct rondo__cu_update_result {
    int32_t result;
    rondo__cu_graph_node error_node;
    rondo__cu_graph_node error_from_node;
} rondo__cu_update_result;
