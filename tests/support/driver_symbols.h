// support/driver_symbols.h — driver functions that tests call and Rondo does not; no guard.
//
// The form of backend/cuda/driver/cuda_symbols.h, which this goes on with. The fake driver has
// them, too.
// SPDX-License-Identifier: Apache-2.0

// Pools of memory.
RONDO__CUDA_SYMBOL(TESTS, cuDeviceGetDefaultMemPool, 11020, "cuDeviceGetDefaultMemPool",
                   (void **out_pool, rondo__cu_device device))
RONDO__CUDA_SYMBOL(TESTS, cuMemPoolTrimTo, 11020, "cuMemPoolTrimTo", (void *pool, size_t bytes))

// Copies and fills: of the default kind, of several rows, and such that wait.
RONDO__CUDA_SYMBOL(TESTS, cuMemcpyAsync, 4000, "cuMemcpyAsync",
                   (rondo__cu_address destination, rondo__cu_address source, size_t bytes,
                    rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(TESTS, cuMemcpy3DAsync, 3020, "cuMemcpy3DAsync_v2",
                   (const rondo__cu_copy_node *copy, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(TESTS, cuMemsetD2D8Async, 3020, "cuMemsetD2D8Async",
                   (rondo__cu_address destination, size_t pitch_bytes, unsigned char value,
                    size_t width, size_t height, rondo__cu_stream stream))
RONDO__CUDA_SYMBOL(TESTS, cuMemcpyDtoH, 3020, "cuMemcpyDtoH_v2",
                   (void *destination, rondo__cu_address source, size_t bytes))
RONDO__CUDA_SYMBOL(TESTS, cuMemcpyHtoD, 3020, "cuMemcpyHtoD_v2",
                   (rondo__cu_address destination, const void *source, size_t bytes))
RONDO__CUDA_SYMBOL(TESTS, cuMemsetD8, 3020, "cuMemsetD8_v2",
                   (rondo__cu_address destination, unsigned char value, size_t count))

// Graphs made by calls.
RONDO__CUDA_SYMBOL(TESTS, cuGraphAddKernelNode, 12000, "cuGraphAddKernelNode_v2",
                   (rondo__cu_graph_node * out_node, rondo__cu_graph graph,
                    const rondo__cu_graph_node *dependencies, size_t dependency_count,
                    const rondo__cu_kernel_node *params))
RONDO__CUDA_SYMBOL(TESTS, cuGraphAddMemsetNode, 10000, "cuGraphAddMemsetNode",
                   (rondo__cu_graph_node * out_node, rondo__cu_graph graph,
                    const rondo__cu_graph_node *dependencies, size_t dependency_count,
                    const rondo__cu_fill_node *params, rondo__cu_context context))
RONDO__CUDA_SYMBOL(TESTS, cuGraphNodeGetEnabled, 11060, "cuGraphNodeGetEnabled",
                   (rondo__cu_graph_exec exec, rondo__cu_graph_node node,
                    unsigned int *out_is_enabled))
RONDO__CUDA_SYMBOL(TESTS, cuGraphExecGetFlags, 12000, "cuGraphExecGetFlags",
                   (rondo__cu_graph_exec exec, uint64_t *out_flags))
