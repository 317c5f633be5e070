// backend/cuda/driver/cuda_symbols.h — every driver function that Rondo calls; no include guard.
//
// One list, read twice: as the members of rondo__cuda_api and as the table that fills them.
//
//   RONDO__CUDA_SYMBOL(need, name, version, exported, arguments)
//
// need       REQUIRED, or the capability that vanishes with it (RONDO__CUDA_CAN_<need>)
// name       the driver's base name, asked of cuGetProcAddress together with `version`; where two
//            forms of a function are in use, the newer one's name ends in _vN here
// version    the CUDA version that introduced this form of the function
//            (1000 * major + 10 * minor);
// exported   the symbol libcuda exports for this form, for drivers without cuGetProcAddress
// arguments  the C parameter list; every function returns CUresult
//
// Rondo needs a driver of CUDA 11.4 or newer, so functions of that version and older are REQUIRED.
// SPDX-License-Identifier: Apache-2.0

RONDO__CUDA_SYMBOL(REQUIRED, cuInit, 2000, "cuInit", (unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuDriverGetVersion, 2020, "cuDriverGetVersion", (int *out_version))
RONDO__CUDA_SYMBOL(REQUIRED, cuGetErrorName, 6000, "cuGetErrorName",
                   (rondo__cu_result code, const char **out_name))
RONDO__CUDA_SYMBOL(REQUIRED, cuGetErrorString, 6000, "cuGetErrorString",
                   (rondo__cu_result code, const char **out_text))

RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceGet, 2000, "cuDeviceGet",
                   (rondo__cu_device * out_device, int ordinal))
RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceGetCount, 2000, "cuDeviceGetCount", (int *out_count))
RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceGetName, 2000, "cuDeviceGetName",
                   (char *name, int name_bytes, rondo__cu_device device))
RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceGetAttribute, 2000, "cuDeviceGetAttribute",
                   (int *out_value, int attribute, rondo__cu_device device))
RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceTotalMem, 3020, "cuDeviceTotalMem_v2",
                   (size_t * out_bytes, rondo__cu_device device))
RONDO__CUDA_SYMBOL(REQUIRED, cuDevicePrimaryCtxRetain, 7000, "cuDevicePrimaryCtxRetain",
                   (rondo__cu_context * out_context, rondo__cu_device device))
RONDO__CUDA_SYMBOL(REQUIRED, cuDevicePrimaryCtxRelease, 11000, "cuDevicePrimaryCtxRelease_v2",
                   (rondo__cu_device device))
RONDO__CUDA_SYMBOL(REQUIRED, cuDevicePrimaryCtxGetState, 7000, "cuDevicePrimaryCtxGetState",
                   (rondo__cu_device device, unsigned int *out_flags, int *out_active))

RONDO__CUDA_SYMBOL(REQUIRED, cuCtxGetCurrent, 4000, "cuCtxGetCurrent",
                   (rondo__cu_context * out_context))
RONDO__CUDA_SYMBOL(REQUIRED, cuCtxPushCurrent, 4000, "cuCtxPushCurrent_v2",
                   (rondo__cu_context context))
RONDO__CUDA_SYMBOL(REQUIRED, cuCtxPopCurrent, 4000, "cuCtxPopCurrent_v2",
                   (rondo__cu_context * out_context))
RONDO__CUDA_SYMBOL(REQUIRED, cuCtxSynchronize, 2000, "cuCtxSynchronize", (void))
RONDO__CUDA_SYMBOL(REQUIRED, cuDeviceCanAccessPeer, 4000, "cuDeviceCanAccessPeer",
                   (int *out_can_access, rondo__cu_device device, rondo__cu_device peer))
RONDO__CUDA_SYMBOL(REQUIRED, cuCtxEnablePeerAccess, 4000, "cuCtxEnablePeerAccess",
                   (rondo__cu_context peer, unsigned int flags))

RONDO__CUDA_SYMBOL(REQUIRED, cuMemGetInfo, 3020, "cuMemGetInfo_v2",
                   (size_t * out_free, size_t *out_total))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemAlloc, 3020, "cuMemAlloc_v2",
                   (rondo__cu_address * out_address, size_t bytes))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemFree, 3020, "cuMemFree_v2", (rondo__cu_address address))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemHostAlloc, 2020, "cuMemHostAlloc",
                   (void **out_address, size_t bytes, unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemFreeHost, 2000, "cuMemFreeHost", (void *address))
RONDO__CUDA_SYMBOL(REQUIRED, cuPointerGetAttribute, 4000, "cuPointerGetAttribute",
                   (void *out_value, int attribute, rondo__cu_address address))

RONDO__CUDA_SYMBOL(REQUIRED, cuStreamCreate, 2000, "cuStreamCreate",
                   (rondo__cu_stream * out_stream, unsigned int flags))
RONDO__CUDA_SYMBOL(PRIORITISE_STREAMS, cuStreamCreateWithPriority, 5050,
                   "cuStreamCreateWithPriority",
                   (rondo__cu_stream * out_stream, unsigned int flags, int priority))
RONDO__CUDA_SYMBOL(PRIORITISE_STREAMS, cuStreamGetPriority, 5050, "cuStreamGetPriority",
                   (rondo__cu_stream stream, int *out_priority))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamDestroy, 4000, "cuStreamDestroy_v2", (rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamSynchronize, 2000, "cuStreamSynchronize",
                   (rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamQuery, 2000, "cuStreamQuery", (rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamGetCtx, 9020, "cuStreamGetCtx",
                   (rondo__cu_stream stream, rondo__cu_context *out_context))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamWaitEvent, 3020, "cuStreamWaitEvent",
                   (rondo__cu_stream stream, rondo__cu_event event, unsigned int flags))

RONDO__CUDA_SYMBOL(REQUIRED, cuEventCreate, 2000, "cuEventCreate",
                   (rondo__cu_event * out_event, unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventDestroy, 4000, "cuEventDestroy_v2", (rondo__cu_event event))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventRecord, 2000, "cuEventRecord",
                   (rondo__cu_event event, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventRecordWithFlags, 11010, "cuEventRecordWithFlags",
                   (rondo__cu_event event, rondo__cu_stream stream, unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventQuery, 2000, "cuEventQuery", (rondo__cu_event event))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventSynchronize, 2000, "cuEventSynchronize",
                   (rondo__cu_event event))
RONDO__CUDA_SYMBOL(REQUIRED, cuEventElapsedTime, 2000, "cuEventElapsedTime",
                   (float *out_milliseconds, rondo__cu_event start, rondo__cu_event end))

RONDO__CUDA_SYMBOL(REQUIRED, cuMemcpyHtoDAsync, 3020, "cuMemcpyHtoDAsync_v2",
                   (rondo__cu_address destination, const void *source, size_t bytes,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemcpyDtoHAsync, 3020, "cuMemcpyDtoHAsync_v2",
                   (void *destination, rondo__cu_address source, size_t bytes,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemcpyDtoDAsync, 3020, "cuMemcpyDtoDAsync_v2",
                   (rondo__cu_address destination, rondo__cu_address source, size_t bytes,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemcpyPeerAsync, 4000, "cuMemcpyPeerAsync",
                   (rondo__cu_address destination, rondo__cu_context to, rondo__cu_address source,
                    rondo__cu_context from, size_t bytes, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemsetD8Async, 3020, "cuMemsetD8Async",
                   (rondo__cu_address destination, unsigned char value, size_t count,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemsetD16Async, 3020, "cuMemsetD16Async",
                   (rondo__cu_address destination, unsigned short value, size_t count,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemsetD32Async, 3020, "cuMemsetD32Async",
                   (rondo__cu_address destination, unsigned int value, size_t count,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuLaunchHostFunc, 10000, "cuLaunchHostFunc",
                   (rondo__cu_stream stream, rondo__cu_host_function function, void *user_data))
RONDO__CUDA_SYMBOL(REQUIRED, cuLaunchKernel, 4000, "cuLaunchKernel",
                   (rondo__cu_function function, unsigned int grid_x, unsigned int grid_y,
                    unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                    unsigned int block_z, unsigned int shared_bytes, rondo__cu_stream stream,
                    void **parameters, void **extra))

RONDO__CUDA_SYMBOL(OVERLAP_LAUNCHES, cuLaunchKernelEx, 12000, "cuLaunchKernelEx",
                   (const rondo__cu_launch_config *config, rondo__cu_function function,
                    void **parameters, void **extra))

RONDO__CUDA_SYMBOL(MAP_TENSORS, cuTensorMapEncodeTiled, 12000, "cuTensorMapEncodeTiled",
                   (rondo__cu_tensor_map * out_map, int type, uint32_t rank, void *address,
                    const uint64_t *extent, const uint64_t *stride_bytes, const uint32_t *box,
                    const uint32_t *element_step, int interleave, int swizzle, int promotion,
                    int fill))
RONDO__CUDA_SYMBOL(MAP_TENSORS, cuTensorMapEncodeIm2col, 12000, "cuTensorMapEncodeIm2col",
                   (rondo__cu_tensor_map * out_map, int type, uint32_t rank, void *address,
                    const uint64_t *extent, const uint64_t *stride_bytes, const int *lower_corner,
                    const int *upper_corner, uint32_t channels, uint32_t pixels,
                    const uint32_t *element_step, int interleave, int swizzle, int promotion,
                    int fill))

RONDO__CUDA_SYMBOL(REQUIRED, cuModuleLoadData, 2000, "cuModuleLoadData",
                   (rondo__cu_module * out_module, const void *image))
RONDO__CUDA_SYMBOL(REQUIRED, cuModuleUnload, 2000, "cuModuleUnload", (rondo__cu_module module))
RONDO__CUDA_SYMBOL(REQUIRED, cuModuleGetFunction, 2000, "cuModuleGetFunction",
                   (rondo__cu_function * out_function, rondo__cu_module module, const char *name))
RONDO__CUDA_SYMBOL(REQUIRED, cuFuncGetAttribute, 2020, "cuFuncGetAttribute",
                   (int *out_value, int attribute, rondo__cu_function function))
RONDO__CUDA_SYMBOL(REQUIRED, cuFuncSetAttribute, 9000, "cuFuncSetAttribute",
                   (rondo__cu_function function, int attribute, int value))
RONDO__CUDA_SYMBOL(NAME_FUNCTIONS, cuFuncGetName, 12030, "cuFuncGetName",
                   (const char **out_name, rondo__cu_function function))
RONDO__CUDA_SYMBOL(NAME_FUNCTIONS, cuKernelGetName, 12030, "cuKernelGetName",
                   (const char **out_name, rondo__cu_kernel kernel))

RONDO__CUDA_SYMBOL(REQUIRED, cuStreamBeginCapture, 10010, "cuStreamBeginCapture_v2",
                   (rondo__cu_stream stream, int mode))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamEndCapture, 10000, "cuStreamEndCapture",
                   (rondo__cu_stream stream, rondo__cu_graph *out_graph))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamIsCapturing, 10000, "cuStreamIsCapturing",
                   (rondo__cu_stream stream, int *out_status))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamGetCaptureInfo, 11030, "cuStreamGetCaptureInfo_v2",
                   (rondo__cu_stream stream, int *out_status, uint64_t *out_id,
                    rondo__cu_graph *out_graph, const rondo__cu_graph_node **out_dependencies,
                    size_t *out_dependency_count))
RONDO__CUDA_SYMBOL(REQUIRED, cuStreamUpdateCaptureDependencies, 11030,
                   "cuStreamUpdateCaptureDependencies",
                   (rondo__cu_stream stream, rondo__cu_graph_node *nodes, size_t count,
                    unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuThreadExchangeStreamCaptureMode, 10010,
                   "cuThreadExchangeStreamCaptureMode", (int *in_out_mode))

RONDO__CUDA_SYMBOL(REQUIRED, cuGraphDestroy, 10000, "cuGraphDestroy", (rondo__cu_graph graph))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphGetNodes, 10000, "cuGraphGetNodes",
                   (rondo__cu_graph graph, rondo__cu_graph_node *nodes, size_t *in_out_count))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphGetEdges, 10000, "cuGraphGetEdges",
                   (rondo__cu_graph graph, rondo__cu_graph_node *from, rondo__cu_graph_node *to,
                    size_t *in_out_count))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphNodeGetDependencies, 10000, "cuGraphNodeGetDependencies",
                   (rondo__cu_graph_node node, rondo__cu_graph_node *nodes, size_t *in_out_count))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphNodeGetType, 10000, "cuGraphNodeGetType",
                   (rondo__cu_graph_node node, int *out_type))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphKernelNodeGetAttribute, 11000, "cuGraphKernelNodeGetAttribute",
                   (rondo__cu_graph_node node, int attribute,
                    rondo__cu_launch_attribute_value *out_value))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphMemcpyNodeGetParams, 10000, "cuGraphMemcpyNodeGetParams",
                   (rondo__cu_graph_node node, rondo__cu_copy_node *out_params))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphMemsetNodeGetParams, 10000, "cuGraphMemsetNodeGetParams",
                   (rondo__cu_graph_node node, rondo__cu_fill_node *out_params))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphHostNodeGetParams, 10000, "cuGraphHostNodeGetParams",
                   (rondo__cu_graph_node node, rondo__cu_host_node *out_params))
// Memory in the order of a stream: nodes, where the stream records.
RONDO__CUDA_SYMBOL(REQUIRED, cuMemAllocAsync, 11020, "cuMemAllocAsync",
                   (rondo__cu_address * out_address, size_t bytes, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuMemFreeAsync, 11020, "cuMemFreeAsync",
                   (rondo__cu_address address, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphMemAllocNodeGetParams, 11040, "cuGraphMemAllocNodeGetParams",
                   (rondo__cu_graph_node node, rondo__cu_memory_node *out_params))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphMemFreeNodeGetParams, 11040, "cuGraphMemFreeNodeGetParams",
                   (rondo__cu_graph_node node, rondo__cu_address *out_address))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphEventRecordNodeGetEvent, 11010,
                   "cuGraphEventRecordNodeGetEvent",
                   (rondo__cu_graph_node node, rondo__cu_event *out_event))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphEventWaitNodeGetEvent, 11010, "cuGraphEventWaitNodeGetEvent",
                   (rondo__cu_graph_node node, rondo__cu_event *out_event))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphAddChildGraphNode, 10000, "cuGraphAddChildGraphNode",
                   (rondo__cu_graph_node * out_node, rondo__cu_graph graph,
                    const rondo__cu_graph_node *dependencies, size_t dependency_count,
                    rondo__cu_graph child))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphCreate, 10000, "cuGraphCreate",
                   (rondo__cu_graph * out_graph, unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphClone, 10000, "cuGraphClone",
                   (rondo__cu_graph * out_graph, rondo__cu_graph graph))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphNodeFindInClone, 10000, "cuGraphNodeFindInClone",
                   (rondo__cu_graph_node * out_node, rondo__cu_graph_node original,
                    rondo__cu_graph clone))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphChildGraphNodeGetGraph, 10000, "cuGraphChildGraphNodeGetGraph",
                   (rondo__cu_graph_node node, rondo__cu_graph *out_graph))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphInstantiateWithFlags, 11040, "cuGraphInstantiateWithFlags",
                   (rondo__cu_graph_exec * out_exec, rondo__cu_graph graph,
                    unsigned long long flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphUpload, 11010, "cuGraphUpload",
                   (rondo__cu_graph_exec exec, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphLaunch, 10000, "cuGraphLaunch",
                   (rondo__cu_graph_exec exec, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphExecDestroy, 10000, "cuGraphExecDestroy",
                   (rondo__cu_graph_exec exec))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphExecMemcpyNodeSetParams, 10020,
                   "cuGraphExecMemcpyNodeSetParams",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node,
                    const rondo__cu_copy_node *params, rondo__cu_context context))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphExecMemsetNodeSetParams, 10020,
                   "cuGraphExecMemsetNodeSetParams",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node,
                    const rondo__cu_fill_node *params, rondo__cu_context context))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphExecHostNodeSetParams, 10020, "cuGraphExecHostNodeSetParams",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node,
                    const rondo__cu_host_node *params))
RONDO__CUDA_SYMBOL(TOGGLE_NODES, cuGraphNodeSetEnabled, 11060, "cuGraphNodeSetEnabled",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node, unsigned int is_enabled))
RONDO__CUDA_SYMBOL(REQUIRED, cuUserObjectCreate, 11030, "cuUserObjectCreate",
                   (rondo__cu_user_object * out_object, void *pointer,
                    rondo__cu_host_function destroy, unsigned int reference_count,
                    unsigned int flags))
RONDO__CUDA_SYMBOL(REQUIRED, cuUserObjectRelease, 11030, "cuUserObjectRelease",
                   (rondo__cu_user_object object, unsigned int count))
RONDO__CUDA_SYMBOL(REQUIRED, cuGraphRetainUserObject, 11030, "cuGraphRetainUserObject",
                   (rondo__cu_graph graph, rondo__cu_user_object object, unsigned int count,
                    unsigned int flags))

// Forms of CUDA 12. Where a driver is older, the dump lacks kernel details and programmatic edges,
// a failed instantiation does not name its node, an executable is made anew, not updated, kernel
// nodes cannot be patched, and the guard against stale memory does not see the program's own
// launches.
RONDO__CUDA_SYMBOL(DESCRIBE_KERNELS, cuGraphKernelNodeGetParams, 12000,
                   "cuGraphKernelNodeGetParams_v2",
                   (rondo__cu_graph_node node, rondo__cu_kernel_node *out_params))
RONDO__CUDA_SYMBOL(LIST_PARAMETERS, cuFuncGetParamInfo, 12040, "cuFuncGetParamInfo",
                   (rondo__cu_function function, size_t index, size_t *out_offset,
                    size_t *out_bytes))
RONDO__CUDA_SYMBOL(LIST_PARAMETERS, cuKernelGetParamInfo, 12040, "cuKernelGetParamInfo",
                   (rondo__cu_kernel kernel, size_t index, size_t *out_offset, size_t *out_bytes))
RONDO__CUDA_SYMBOL(PATCH_KERNELS, cuGraphExecKernelNodeSetParams, 12000,
                   "cuGraphExecKernelNodeSetParams_v2",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node,
                    const rondo__cu_kernel_node *params))
RONDO__CUDA_SYMBOL(BLAME_INSTANTIATION, cuGraphInstantiateWithParams, 12000,
                   "cuGraphInstantiateWithParams",
                   (rondo__cu_graph_exec * out_exec, rondo__cu_graph graph,
                    rondo__cu_instantiate_params *params))
RONDO__CUDA_SYMBOL(UPDATE_EXECUTABLES, cuGraphExecUpdate, 12000, "cuGraphExecUpdate_v2",
                   (rondo__cu_graph_exec exec, rondo__cu_graph graph,
                    rondo__cu_update_result *out_result))
RONDO__CUDA_SYMBOL(LIST_TYPED_EDGES, cuGraphGetEdges_v2, 12030, "cuGraphGetEdges_v2",
                   (rondo__cu_graph graph, rondo__cu_graph_node *from, rondo__cu_graph_node *to,
                    rondo__cu_edge_data *data, size_t *in_out_count))
RONDO__CUDA_SYMBOL(LIST_TYPED_EDGES, cuStreamGetCaptureInfo_v3, 12030, "cuStreamGetCaptureInfo_v3",
                   (rondo__cu_stream stream, int *out_status, uint64_t *out_id,
                    rondo__cu_graph *out_graph, const rondo__cu_graph_node **out_dependencies,
                    const rondo__cu_edge_data **out_data, size_t *out_dependency_count))
RONDO__CUDA_SYMBOL(LIST_TYPED_EDGES, cuGraphNodeGetDependencies_v2, 12030,
                   "cuGraphNodeGetDependencies_v2",
                   (rondo__cu_graph_node node, rondo__cu_graph_node *nodes,
                    rondo__cu_edge_data *data, size_t *in_out_count))

// Conditional nodes and their bodies. ELSE and SWITCH came with CUDA 12.8, see cuda_conditional.c.
RONDO__CUDA_SYMBOL(CONDITIONALS, cuGraphConditionalHandleCreate, 12030,
                   "cuGraphConditionalHandleCreate",
                   (uint64_t * out_handle, rondo__cu_graph graph, rondo__cu_context context,
                    unsigned int default_value, unsigned int flags))
RONDO__CUDA_SYMBOL(CONDITIONALS, cuGraphAddNode, 12030, "cuGraphAddNode_v2",
                   (rondo__cu_graph_node * out_node, rondo__cu_graph graph,
                    const rondo__cu_graph_node *dependencies, const rondo__cu_edge_data *data,
                    size_t dependency_count, rondo__cu_node_params *params))
RONDO__CUDA_SYMBOL(CONDITIONALS, cuStreamBeginCaptureToGraph, 12030, "cuStreamBeginCaptureToGraph",
                   (rondo__cu_stream stream, rondo__cu_graph graph,
                    const rondo__cu_graph_node *dependencies, const rondo__cu_edge_data *data,
                    size_t dependency_count, int mode))
