// Our words for the driver's interface (backend/cuda/driver/cuda_abi.h) against NVIDIA's cuda.h,
// where a toolkit is installed. What differs does not compile, so a run says little; it counts.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backend/cuda/driver/cuda_abi.h"
#include "backend/cuda/driver/cuda_api.h"

#if RONDO_HAS_CUDA_H

#include <cuda.h>

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #ours)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                    \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #our_field); \
    _Static_assert(sizeof(((ours *)0)->our_field) >= sizeof(((theirs *)0)->their_field), #our_field)

SAME_SIZE(rondo__cu_result, CUresult);
SAME_SIZE(rondo__cu_device, CUdevice);
SAME_SIZE(rondo__cu_address, CUdeviceptr);
SAME_SIZE(rondo__cu_context, CUcontext);
SAME_SIZE(rondo__cu_stream, CUstream);
SAME_SIZE(rondo__cu_host_function, CUhostFn);
SAME_SIZE(int, CUstreamCaptureMode);
SAME_SIZE(int, CUstreamCaptureStatus);
SAME_SIZE(int, CUgraphNodeType);
SAME_SIZE(unsigned int, CUmemorytype);

SAME_SIZE(rondo__cu_kernel_node, CUDA_KERNEL_NODE_PARAMS_v2);
SAME_FIELD(rondo__cu_kernel_node, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
SAME_FIELD(rondo__cu_kernel_node, grid[0], CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
SAME_FIELD(rondo__cu_kernel_node, grid[1], CUDA_KERNEL_NODE_PARAMS_v2, gridDimY);
SAME_FIELD(rondo__cu_kernel_node, grid[2], CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ);
SAME_FIELD(rondo__cu_kernel_node, block[0], CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
SAME_FIELD(rondo__cu_kernel_node, block[1], CUDA_KERNEL_NODE_PARAMS_v2, blockDimY);
SAME_FIELD(rondo__cu_kernel_node, block[2], CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ);
SAME_FIELD(rondo__cu_kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
SAME_FIELD(rondo__cu_kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
SAME_FIELD(rondo__cu_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
SAME_FIELD(rondo__cu_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME_FIELD(rondo__cu_kernel_node, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);

SAME_SIZE(rondo__cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(rondo__cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_SIZE(rondo__cu_launch_config, CUlaunchConfig);
SAME_FIELD(rondo__cu_launch_config, block[0], CUlaunchConfig, blockDimX);
SAME_FIELD(rondo__cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(rondo__cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(rondo__cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);
SAME_SIZE(rondo__cu_launch_attribute_value, CUlaunchAttributeValue);
SAME_FIELD(rondo__cu_launch_attribute_value, cluster[0], CUlaunchAttributeValue, clusterDim.x);
SAME_FIELD(rondo__cu_launch_attribute_value, cluster[2], CUlaunchAttributeValue, clusterDim.z);
SAME_FIELD(rondo__cu_launch_attribute_value, is_cooperative, CUlaunchAttributeValue, cooperative);
SAME_FIELD(rondo__cu_launch_attribute_value, priority, CUlaunchAttributeValue, priority);

SAME_SIZE(rondo__cu_copy_node, CUDA_MEMCPY3D);
SAME_FIELD(rondo__cu_copy_node, source.x_bytes, CUDA_MEMCPY3D, srcXInBytes);
SAME_FIELD(rondo__cu_copy_node, source.y, CUDA_MEMCPY3D, srcY);
SAME_FIELD(rondo__cu_copy_node, source.z, CUDA_MEMCPY3D, srcZ);
SAME_FIELD(rondo__cu_copy_node, source.level, CUDA_MEMCPY3D, srcLOD);
SAME_FIELD(rondo__cu_copy_node, source.memory_type, CUDA_MEMCPY3D, srcMemoryType);
SAME_FIELD(rondo__cu_copy_node, source.host, CUDA_MEMCPY3D, srcHost);
SAME_FIELD(rondo__cu_copy_node, source.device, CUDA_MEMCPY3D, srcDevice);
SAME_FIELD(rondo__cu_copy_node, source.array, CUDA_MEMCPY3D, srcArray);
SAME_FIELD(rondo__cu_copy_node, source.pitch_bytes, CUDA_MEMCPY3D, srcPitch);
SAME_FIELD(rondo__cu_copy_node, source.height, CUDA_MEMCPY3D, srcHeight);
SAME_FIELD(rondo__cu_copy_node, destination.x_bytes, CUDA_MEMCPY3D, dstXInBytes);
SAME_FIELD(rondo__cu_copy_node, destination.memory_type, CUDA_MEMCPY3D, dstMemoryType);
SAME_FIELD(rondo__cu_copy_node, destination.host, CUDA_MEMCPY3D, dstHost);
SAME_FIELD(rondo__cu_copy_node, destination.device, CUDA_MEMCPY3D, dstDevice);
SAME_FIELD(rondo__cu_copy_node, destination.height, CUDA_MEMCPY3D, dstHeight);
SAME_FIELD(rondo__cu_copy_node, width_bytes, CUDA_MEMCPY3D, WidthInBytes);
SAME_FIELD(rondo__cu_copy_node, height, CUDA_MEMCPY3D, Height);
SAME_FIELD(rondo__cu_copy_node, depth, CUDA_MEMCPY3D, Depth);

SAME_SIZE(rondo__cu_fill_node, CUDA_MEMSET_NODE_PARAMS_v1);
SAME_FIELD(rondo__cu_fill_node, destination, CUDA_MEMSET_NODE_PARAMS_v1, dst);
SAME_FIELD(rondo__cu_fill_node, pitch_bytes, CUDA_MEMSET_NODE_PARAMS_v1, pitch);
SAME_FIELD(rondo__cu_fill_node, value, CUDA_MEMSET_NODE_PARAMS_v1, value);
SAME_FIELD(rondo__cu_fill_node, element_bytes, CUDA_MEMSET_NODE_PARAMS_v1, elementSize);
SAME_FIELD(rondo__cu_fill_node, width, CUDA_MEMSET_NODE_PARAMS_v1, width);
SAME_FIELD(rondo__cu_fill_node, height, CUDA_MEMSET_NODE_PARAMS_v1, height);

SAME_SIZE(rondo__cu_memory_access, CUmemAccessDesc);
SAME_FIELD(rondo__cu_memory_access, location_type, CUmemAccessDesc, location.type);
SAME_FIELD(rondo__cu_memory_access, location, CUmemAccessDesc, location.id);
SAME_FIELD(rondo__cu_memory_access, flags, CUmemAccessDesc, flags);
SAME_SIZE(rondo__cu_memory_node, CUDA_MEM_ALLOC_NODE_PARAMS_v1);
SAME_FIELD(rondo__cu_memory_node, allocation_type, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           poolProps.allocType);
SAME_FIELD(rondo__cu_memory_node, handle_types, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           poolProps.handleTypes);
SAME_FIELD(rondo__cu_memory_node, location_type, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           poolProps.location.type);
SAME_FIELD(rondo__cu_memory_node, location, CUDA_MEM_ALLOC_NODE_PARAMS_v1, poolProps.location.id);
SAME_FIELD(rondo__cu_memory_node, security, CUDA_MEM_ALLOC_NODE_PARAMS_v1,
           poolProps.win32SecurityAttributes);
SAME_FIELD(rondo__cu_memory_node, accesses, CUDA_MEM_ALLOC_NODE_PARAMS_v1, accessDescs);
SAME_FIELD(rondo__cu_memory_node, access_count, CUDA_MEM_ALLOC_NODE_PARAMS_v1, accessDescCount);
SAME_FIELD(rondo__cu_memory_node, byte_count, CUDA_MEM_ALLOC_NODE_PARAMS_v1, bytesize);
SAME_FIELD(rondo__cu_memory_node, address, CUDA_MEM_ALLOC_NODE_PARAMS_v1, dptr);

SAME_SIZE(rondo__cu_host_node, CUDA_HOST_NODE_PARAMS_v1);
SAME_FIELD(rondo__cu_host_node, function, CUDA_HOST_NODE_PARAMS_v1, fn);
SAME_FIELD(rondo__cu_host_node, user_data, CUDA_HOST_NODE_PARAMS_v1, userData);

#if CUDA_VERSION >= 12030
SAME_SIZE(rondo__cu_edge_data, CUgraphEdgeData);
SAME_FIELD(rondo__cu_edge_data, from_port, CUgraphEdgeData, from_port);
SAME_FIELD(rondo__cu_edge_data, to_port, CUgraphEdgeData, to_port);
SAME_FIELD(rondo__cu_edge_data, type, CUgraphEdgeData, type);
#endif

SAME_SIZE(rondo__cu_tensor_map, CUtensorMap);
_Static_assert(_Alignof(rondo__cu_tensor_map) >= _Alignof(CUtensorMap), "tensor map");
SAME_SIZE(int, CUtensorMapDataType);
SAME_SIZE(int, CUtensorMapSwizzle);

SAME_SIZE(rondo__cu_instantiate_params, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME_FIELD(rondo__cu_instantiate_params, flags, CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
SAME_FIELD(rondo__cu_instantiate_params, upload_stream, CUDA_GRAPH_INSTANTIATE_PARAMS,
           hUploadStream);
SAME_FIELD(rondo__cu_instantiate_params, error_node, CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out);
SAME_FIELD(rondo__cu_instantiate_params, result, CUDA_GRAPH_INSTANTIATE_PARAMS, result_out);

SAME_SIZE(rondo__cu_update_result, CUgraphExecUpdateResultInfo);
SAME_FIELD(rondo__cu_update_result, result, CUgraphExecUpdateResultInfo, result);
SAME_FIELD(rondo__cu_update_result, error_node, CUgraphExecUpdateResultInfo, errorNode);
SAME_FIELD(rondo__cu_update_result, error_from_node, CUgraphExecUpdateResultInfo, errorFromNode);

#if CUDA_VERSION >= 12030
SAME_SIZE(rondo__cu_conditional_node, CUDA_CONDITIONAL_NODE_PARAMS);
SAME_SIZE(uint64_t, CUgraphConditionalHandle);
SAME_FIELD(rondo__cu_conditional_node, handle, CUDA_CONDITIONAL_NODE_PARAMS, handle);
SAME_FIELD(rondo__cu_conditional_node, type, CUDA_CONDITIONAL_NODE_PARAMS, type);
SAME_FIELD(rondo__cu_conditional_node, body_count, CUDA_CONDITIONAL_NODE_PARAMS, size);
SAME_FIELD(rondo__cu_conditional_node, bodies, CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out);
SAME_FIELD(rondo__cu_conditional_node, context, CUDA_CONDITIONAL_NODE_PARAMS, ctx);
SAME_SIZE(rondo__cu_node_params, CUgraphNodeParams);
SAME_FIELD(rondo__cu_node_params, type, CUgraphNodeParams, type);
SAME_FIELD(rondo__cu_node_params, reserved0, CUgraphNodeParams, reserved0);
SAME_FIELD(rondo__cu_node_params, value.conditional, CUgraphNodeParams, conditional);
SAME_FIELD(rondo__cu_node_params, reserved2, CUgraphNodeParams, reserved2);
_Static_assert(RONDO__CU_CONDITIONAL_IF == CU_GRAPH_COND_TYPE_IF, "if");
_Static_assert(RONDO__CU_CONDITIONAL_WHILE == CU_GRAPH_COND_TYPE_WHILE, "while");
#endif
#if CUDA_VERSION >= 12080
_Static_assert(RONDO__CU_CONDITIONAL_SWITCH == CU_GRAPH_COND_TYPE_SWITCH, "switch");
_Static_assert(RONDO__CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER ==
                   CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
               "preferred cluster");
_Static_assert(RONDO__CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_CARVEOUT ==
                   CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
               "carveout");
#endif

#define SAME_RESULT(name, value) _Static_assert((int)CUDA_##name == (value), #name);
RONDO__CU_RESULT_MAP(SAME_RESULT)

#define SAME_CONSTANT(name, theirs, value) _Static_assert((int)(theirs) == (value), #name);
RONDO__CU_CONSTANT_MAP(SAME_CONSTANT)

static size_t compare_pointers(void) {
    size_t difference_count = 0;
    difference_count += (void *)RONDO__CU_STREAM_LEGACY != (void *)CU_STREAM_LEGACY;
    difference_count += (void *)RONDO__CU_STREAM_PER_THREAD != (void *)CU_STREAM_PER_THREAD;
    difference_count += RONDO__CU_LAUNCH_END != CU_LAUNCH_PARAM_END;
    difference_count += RONDO__CU_LAUNCH_BUFFER_POINTER != CU_LAUNCH_PARAM_BUFFER_POINTER;
    difference_count += RONDO__CU_LAUNCH_BUFFER_SIZE != CU_LAUNCH_PARAM_BUFFER_SIZE;
    return difference_count;
}

#define COUNT_ONE(...) +1

int main(void) {
    size_t difference_count = compare_pointers();
    printf("compared with cuda.h %d: %d result codes, %d constants, 12 structs; %zu differences\n",
           CUDA_VERSION, 0 RONDO__CU_RESULT_MAP(COUNT_ONE), 0 RONDO__CU_CONSTANT_MAP(COUNT_ONE),
           difference_count);
    return difference_count == 0 ? 0 : 1;
}

#else

int main(void) {
    printf("skipped: no cuda.h on this machine (a CUDA toolkit brings it)\n");
    return 77;
}

#endif
