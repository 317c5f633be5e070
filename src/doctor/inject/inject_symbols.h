// doctor/inject/inject_symbols.h — the driver functions that are stood in front of; no guard.
//
//   INJECT(name, oldest, newest, exported, per_thread, parameters, arguments, before, after)
//
// oldest, newest  versions that may be asked of cuGetProcAddress for this form of the function
// exported        its symbol in libcuda; `per_thread`: with a default stream for each thread
// before          statements that fill `event`, ahead of the call; `after`: behind it
//
// INJECT_LAUNCH has the shape and the two lists of arguments of a launch in place of these.
// SPDX-License-Identifier: Apache-2.0

#define INJECT_ANY 1000000
#ifndef INJECT_LAUNCH
#define INJECT_LAUNCH(name, oldest, newest, exported, per_thread, ...) \
    INJECT(name, oldest, newest, exported, per_thread, __VA_ARGS__)
#endif
#define INJECT_SHAPE            \
    ((rondo__cu_launch_config){ \
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, NULL, 0})

INJECT_LAUNCH(cuLaunchKernel, 4000, INJECT_ANY, "cuLaunchKernel", "cuLaunchKernel_ptsz",
              (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
               unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
               void **parameters, void **extra),
              (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
               parameters, extra),
              (&INJECT_SHAPE), parameters, extra)
INJECT_LAUNCH(cuLaunchCooperativeKernel, 9000, INJECT_ANY, "cuLaunchCooperativeKernel",
              "cuLaunchCooperativeKernel_ptsz",
              (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
               unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
               void **parameters),
              (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
               parameters),
              (&INJECT_SHAPE), parameters, NULL)
INJECT_LAUNCH(cuLaunchKernelEx, 11060, INJECT_ANY, "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz",
              (const rondo__cu_launch_config *config, void *function, void **parameters,
               void **extra),
              (config, function, parameters, extra), config, parameters, extra)
INJECT(cuGraphLaunch, 10000, INJECT_ANY, "cuGraphLaunch", "cuGraphLaunch_ptsz",
       (void *exec, void *stream), (exec, stream), ON(exec, stream, 0), )

INJECT(cuMemcpyHtoDAsync, 3020, INJECT_ANY, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz",
       (uint64_t to, const void *from, size_t bytes, void *stream), (to, from, bytes, stream),
       COPY(to, from, bytes, stream);
       check_pageable(&event, ADDRESS(from)), )
INJECT(cuMemcpyDtoHAsync, 3020, INJECT_ANY, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync_v2_ptsz",
       (void *to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream),
       COPY(to, from, bytes, stream);
       check_pageable(&event, ADDRESS(to)), )
INJECT(cuMemcpyDtoDAsync, 3020, INJECT_ANY, "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync_v2_ptsz",
       (uint64_t to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream),
       COPY(to, from, bytes, stream), )
INJECT(cuMemcpyAsync, 4000, INJECT_ANY, "cuMemcpyAsync", "cuMemcpyAsync_ptsz",
       (uint64_t to, uint64_t from, size_t bytes, void *stream), (to, from, bytes, stream),
       COPY(to, from, bytes, stream);
       check_pageable(&event, to); check_pageable(&event, from), )
INJECT(cuMemcpy2DAsync, 3020, INJECT_ANY, "cuMemcpy2DAsync_v2", "cuMemcpy2DAsync_v2_ptsz",
       (const void *copy, void *stream), (copy, stream), ON(NULL, stream, 0), )
INJECT(cuMemcpy3DAsync, 3020, INJECT_ANY, "cuMemcpy3DAsync_v2", "cuMemcpy3DAsync_v2_ptsz",
       (const void *copy, void *stream), (copy, stream), ON(NULL, stream, 0), )
INJECT(cuMemcpyPeerAsync, 4000, INJECT_ANY, "cuMemcpyPeerAsync", "cuMemcpyPeerAsync_ptsz",
       (uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes,
        void *stream),
       (to, to_context, from, from_context, bytes, stream), COPY(to, from, bytes, stream), )
INJECT(cuMemsetD8Async, 3020, INJECT_ANY, "cuMemsetD8Async", "cuMemsetD8Async_ptsz",
       (uint64_t to, unsigned char value, size_t count, void *stream), (to, value, count, stream),
       ON(to, stream, count), )
INJECT(cuMemsetD16Async, 3020, INJECT_ANY, "cuMemsetD16Async", "cuMemsetD16Async_ptsz",
       (uint64_t to, unsigned short value, size_t count, void *stream), (to, value, count, stream),
       ON(to, stream, count * 2), )
INJECT(cuMemsetD32Async, 3020, INJECT_ANY, "cuMemsetD32Async", "cuMemsetD32Async_ptsz",
       (uint64_t to, unsigned value, size_t count, void *stream), (to, value, count, stream),
       ON(to, stream, count * 4), )
INJECT(cuMemsetD2D8Async, 3020, INJECT_ANY, "cuMemsetD2D8Async", "cuMemsetD2D8Async_ptsz",
       (uint64_t to, size_t pitch, unsigned char value, size_t width, size_t height, void *stream),
       (to, pitch, value, width, height, stream), ON(to, stream, width *height), )

INJECT(cuMemcpyHtoD, 3020, INJECT_ANY, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds",
       (uint64_t to, const void *from, size_t bytes), (to, from, bytes),
       COPY(to, from, bytes, NULL), )
INJECT(cuMemcpyDtoH, 3020, INJECT_ANY, "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds",
       (void *to, uint64_t from, size_t bytes), (to, from, bytes), COPY(to, from, bytes, NULL), )
INJECT(cuMemcpyDtoD, 3020, INJECT_ANY, "cuMemcpyDtoD_v2", "cuMemcpyDtoD_v2_ptds",
       (uint64_t to, uint64_t from, size_t bytes), (to, from, bytes), COPY(to, from, bytes, NULL), )
INJECT(cuMemcpy, 4000, INJECT_ANY, "cuMemcpy", "cuMemcpy_ptds",
       (uint64_t to, uint64_t from, size_t bytes), (to, from, bytes), COPY(to, from, bytes, NULL), )
INJECT(cuMemsetD8, 3020, INJECT_ANY, "cuMemsetD8_v2", "cuMemsetD8_v2_ptds",
       (uint64_t to, unsigned char value, size_t count), (to, value, count), ON(to, NULL, count), )
INJECT(cuMemsetD16, 3020, INJECT_ANY, "cuMemsetD16_v2", "cuMemsetD16_v2_ptds",
       (uint64_t to, unsigned short value, size_t count), (to, value, count),
       ON(to, NULL, count * 2), )
INJECT(cuMemsetD32, 3020, INJECT_ANY, "cuMemsetD32_v2", "cuMemsetD32_v2_ptds",
       (uint64_t to, unsigned value, size_t count), (to, value, count), ON(to, NULL, count * 4), )

INJECT(cuCtxSynchronize, 2000, 12999, "cuCtxSynchronize", NULL, (void), (), , )
INJECT(cuCtxSynchronize_v2, 13000, INJECT_ANY, "cuCtxSynchronize_v2", NULL, (void *context),
       (context), , )
INJECT(cuStreamSynchronize, 2000, INJECT_ANY, "cuStreamSynchronize", "cuStreamSynchronize_ptsz",
       (void *stream), (stream), ON(NULL, stream, 0), )
INJECT(cuEventSynchronize, 2000, INJECT_ANY, "cuEventSynchronize", NULL, (void *object), (object),
       ON(object, NULL, 0), )
INJECT(cuStreamQuery, 2000, INJECT_ANY, "cuStreamQuery", "cuStreamQuery_ptsz", (void *stream),
       (stream), ON(NULL, stream, 0), )
INJECT(cuEventQuery, 2000, INJECT_ANY, "cuEventQuery", NULL, (void *object), (object),
       ON(object, NULL, 0), )
INJECT(cuEventElapsedTime, 2000, INJECT_ANY, "cuEventElapsedTime", NULL,
       (float *out_milliseconds, void *first, void *last), (out_milliseconds, first, last),
       ON(last, NULL, 0), )
INJECT(cuEventRecord, 2000, INJECT_ANY, "cuEventRecord", "cuEventRecord_ptsz",
       (void *object, void *stream), (object, stream), ON(object, stream, 0), )
INJECT(cuEventRecordWithFlags, 11010, INJECT_ANY, "cuEventRecordWithFlags",
       "cuEventRecordWithFlags_ptsz", (void *object, void *stream, unsigned flags),
       (object, stream, flags), ON(object, stream, 0), )
INJECT(cuStreamWaitEvent, 3020, INJECT_ANY, "cuStreamWaitEvent", "cuStreamWaitEvent_ptsz",
       (void *stream, void *object, unsigned flags), (stream, object, flags),
       ON(object, stream, 0), )

INJECT(cuMemAlloc, 3020, INJECT_ANY, "cuMemAlloc_v2", NULL, (uint64_t * out, size_t bytes),
       (out, bytes), ON(NULL, NULL, bytes), event.object = *out)
INJECT(cuMemAllocPitch, 3020, INJECT_ANY, "cuMemAllocPitch_v2", NULL,
       (uint64_t * out, size_t *out_pitch, size_t width, size_t height, unsigned element_bytes),
       (out, out_pitch, width, height, element_bytes), ON(NULL, NULL, width *height),
       event.object = *out)
INJECT(cuMemAllocManaged, 6000, INJECT_ANY, "cuMemAllocManaged", NULL,
       (uint64_t * out, size_t bytes, unsigned flags), (out, bytes, flags), ON(NULL, NULL, bytes),
       event.object = *out)
INJECT(cuMemFree, 3020, INJECT_ANY, "cuMemFree_v2", NULL, (uint64_t object), (object),
       ON(object, NULL, 0), )
INJECT(cuMemHostAlloc, 2020, INJECT_ANY, "cuMemHostAlloc", NULL,
       (void **out, size_t bytes, unsigned flags), (out, bytes, flags), ON(NULL, NULL, bytes),
       event.object = ADDRESS(*out))
INJECT(cuMemAllocHost, 3020, INJECT_ANY, "cuMemAllocHost_v2", NULL, (void **out, size_t bytes),
       (out, bytes), ON(NULL, NULL, bytes), event.object = ADDRESS(*out))
INJECT(cuMemFreeHost, 2000, INJECT_ANY, "cuMemFreeHost", NULL, (void *object), (object),
       ON(object, NULL, 0), )
INJECT(cuMemHostRegister, 6050, INJECT_ANY, "cuMemHostRegister_v2", NULL,
       (void *object, size_t bytes, unsigned flags), (object, bytes, flags),
       ON(object, NULL, bytes), )
INJECT(cuMemHostUnregister, 4000, INJECT_ANY, "cuMemHostUnregister", NULL, (void *object), (object),
       ON(object, NULL, 0), )
INJECT(cuMemAllocAsync, 11020, INJECT_ANY, "cuMemAllocAsync", "cuMemAllocAsync_ptsz",
       (uint64_t * out, size_t bytes, void *stream), (out, bytes, stream), ON(NULL, stream, bytes),
       event.object = *out)
INJECT(cuMemAllocFromPoolAsync, 11020, INJECT_ANY, "cuMemAllocFromPoolAsync",
       "cuMemAllocFromPoolAsync_ptsz", (uint64_t * out, size_t bytes, void *pool, void *stream),
       (out, bytes, pool, stream), ON(NULL, stream, bytes), event.object = *out)
INJECT(cuMemFreeAsync, 11020, INJECT_ANY, "cuMemFreeAsync", "cuMemFreeAsync_ptsz",
       (uint64_t object, void *stream), (object, stream), ON(object, stream, 0), )
INJECT(cuMemCreate, 10020, INJECT_ANY, "cuMemCreate", NULL,
       (uint64_t * out, size_t bytes, const void *properties, unsigned long long flags),
       (out, bytes, properties, flags), ON(NULL, NULL, bytes), )
INJECT(cuMemRelease, 10020, INJECT_ANY, "cuMemRelease", NULL, (uint64_t object), (object),
       ON(object, NULL, 0), )
INJECT(cuMemMap, 10020, INJECT_ANY, "cuMemMap", NULL,
       (uint64_t object, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags),
       (object, bytes, offset, handle, flags), ON(object, NULL, bytes), )
INJECT(cuMemUnmap, 10020, INJECT_ANY, "cuMemUnmap", NULL, (uint64_t object, size_t bytes),
       (object, bytes), ON(object, NULL, bytes), )

INJECT(cuModuleLoadData, 2000, INJECT_ANY, "cuModuleLoadData", NULL,
       (void **out, const void *image), (out, image), , )
INJECT(cuModuleLoadDataEx, 2010, INJECT_ANY, "cuModuleLoadDataEx", NULL,
       (void **out, const void *image, unsigned count, void *options, void **values),
       (out, image, count, options, values), , )
INJECT(cuModuleLoadFatBinary, 2000, INJECT_ANY, "cuModuleLoadFatBinary", NULL,
       (void **out, const void *image), (out, image), , )
INJECT(cuModuleUnload, 2000, INJECT_ANY, "cuModuleUnload", NULL, (void *object), (object),
       ON(object, NULL, 0), rondo__inject_forget_functions())
INJECT(cuLibraryLoadData, 12000, INJECT_ANY, "cuLibraryLoadData", NULL,
       (void **out, const void *image, void *options, void **option_values, unsigned option_count,
        void *library_options, void **library_values, unsigned library_count),
       (out, image, options, option_values, option_count, library_options, library_values,
        library_count),
       , )
INJECT(cuLibraryUnload, 12000, INJECT_ANY, "cuLibraryUnload", NULL, (void *object), (object),
       ON(object, NULL, 0), rondo__inject_forget_functions())
INJECT(cuStreamCreate, 2000, INJECT_ANY, "cuStreamCreate", NULL, (void **out, unsigned flags),
       (out, flags), , event.object = ADDRESS(*out))
INJECT(cuStreamCreateWithPriority, 5050, INJECT_ANY, "cuStreamCreateWithPriority", NULL,
       (void **out, unsigned flags, int priority), (out, flags, priority), ,
       event.object = ADDRESS(*out))
INJECT(cuStreamDestroy, 4000, INJECT_ANY, "cuStreamDestroy_v2", NULL, (void *object), (object),
       ON(object, NULL, 0), )
INJECT(cuEventCreate, 2000, INJECT_ANY, "cuEventCreate", NULL, (void **out, unsigned flags),
       (out, flags), , event.object = ADDRESS(*out))
INJECT(cuEventDestroy, 4000, INJECT_ANY, "cuEventDestroy_v2", NULL, (void *object), (object),
       ON(object, NULL, 0), )

INJECT(cuLaunchHostFunc, 10000, INJECT_ANY, "cuLaunchHostFunc", "cuLaunchHostFunc_ptsz",
       (void *stream, void (*function)(void *), void *data), (stream, function, data),
       ON(NULL, stream, 0);
       function = wrap_host_function(function, &data, stream), )
INJECT(cuStreamAddCallback, 5000, INJECT_ANY, "cuStreamAddCallback", "cuStreamAddCallback_ptsz",
       (void *stream, void *function, void *data, unsigned flags), (stream, function, data, flags),
       ON(NULL, stream, 0), )
INJECT(cuStreamAttachMemAsync, 6000, INJECT_ANY, "cuStreamAttachMemAsync",
       "cuStreamAttachMemAsync_ptsz", (void *stream, uint64_t object, size_t bytes, unsigned flags),
       (stream, object, bytes, flags), ON(object, stream, bytes), )
INJECT(cuStreamBeginCapture, 10010, INJECT_ANY, "cuStreamBeginCapture_v2",
       "cuStreamBeginCapture_v2_ptsz", (void *stream, int mode), (stream, mode),
       ON(NULL, stream, 0), rondo__inject_count_captures(1))
INJECT(cuStreamEndCapture, 10000, INJECT_ANY, "cuStreamEndCapture", "cuStreamEndCapture_ptsz",
       (void *stream, void **out_graph), (stream, out_graph), ON(NULL, stream, 0);
       rondo__inject_count_captures(-1), )
INJECT(cuGraphInstantiateWithFlags, 11040, INJECT_ANY, "cuGraphInstantiateWithFlags", NULL,
       (void **out, void *graph, unsigned long long flags), (out, graph, flags), , )
INJECT(cuGraphInstantiateWithParams, 12000, INJECT_ANY, "cuGraphInstantiateWithParams",
       "cuGraphInstantiateWithParams_ptsz", (void **out, void *graph, void *parameters),
       (out, graph, parameters), , )
INJECT(cuGraphExecUpdate, 12000, INJECT_ANY, "cuGraphExecUpdate_v2", NULL,
       (void *object, void *graph, void *result), (object, graph, result), ON(object, NULL, 0), )
#undef INJECT_LAUNCH
#undef INJECT_SHAPE
#undef INJECT_ANY
