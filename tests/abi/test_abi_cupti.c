// Our words for CUPTI (backend/cuda/cupti/cupti_abi.h) against NVIDIA's headers, where a toolkit is
// installed: every version of a record from the oldest that we read to the newest that the toolkit
// has. What differs does not compile.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backend/cuda/cupti/cupti_abi.h"
#include "backend/cuda/cupti/cupti_api.h"

#if RONDO_HAS_CUDA_H && __has_include(<cupti.h>)
#define HAS_CUPTI 1
#include <cupti.h>
#if CUPTI_API_VERSION >= 130000
#include <cupti_activity_deprecated.h>
#endif

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                    \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #our_field); \
    _Static_assert(sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), #our_field)
#define SAME_TRANSFER(ours, theirs)                       \
    SAME_FIELD(ours, bytes, theirs, bytes);               \
    SAME_FIELD(ours, start, theirs, start);               \
    SAME_FIELD(ours, end, theirs, end);                   \
    SAME_FIELD(ours, device, theirs, deviceId);           \
    SAME_FIELD(ours, stream, theirs, streamId);           \
    SAME_FIELD(ours, correlation, theirs, correlationId); \
    SAME_FIELD(ours, graph_node, theirs, graphNodeId);    \
    SAME_FIELD(ours, graph, theirs, graphId)
#define SAME_KERNEL(theirs)                                              \
    SAME_FIELD(rondo__cupti_kernel, start, theirs, start);               \
    SAME_FIELD(rondo__cupti_kernel, end, theirs, end);                   \
    SAME_FIELD(rondo__cupti_kernel, device, theirs, deviceId);           \
    SAME_FIELD(rondo__cupti_kernel, stream, theirs, streamId);           \
    SAME_FIELD(rondo__cupti_kernel, correlation, theirs, correlationId); \
    SAME_FIELD(rondo__cupti_kernel, name, theirs, name);                 \
    SAME_FIELD(rondo__cupti_kernel, graph_node, theirs, graphNodeId);    \
    SAME_FIELD(rondo__cupti_kernel, graph, theirs, graphId)

SAME(RONDO__CUPTI_SUCCESS, CUPTI_SUCCESS);
SAME(RONDO__CUPTI_ERROR_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
SAME(RONDO__CUPTI_ERROR_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
SAME(RONDO__CUPTI_ERROR_VIRTUALIZED_DEVICE, CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED);
SAME(RONDO__CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
SAME(RONDO__CUPTI_ERROR_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
SAME(RONDO__CUPTI_ERROR_UNKNOWN, CUPTI_ERROR_UNKNOWN);

SAME(RONDO__CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
SAME(RONDO__CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
SAME(RONDO__CUPTI_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL);
SAME(RONDO__CUPTI_DRIVER, CUPTI_ACTIVITY_KIND_DRIVER);
SAME(RONDO__CUPTI_RUNTIME, CUPTI_ACTIVITY_KIND_RUNTIME);
SAME(RONDO__CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
SAME(RONDO__CUPTI_MEMCPY_PEER, CUPTI_ACTIVITY_KIND_MEMCPY2);
SAME(RONDO__CUPTI_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
SAME(RONDO__CUPTI_EXTERNAL_CUSTOM, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
SAME(RONDO__CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
SAME(RONDO__CUPTI_COPY_HTOD, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
SAME(RONDO__CUPTI_COPY_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
SAME(RONDO__CUPTI_COPY_DTOD, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
SAME(RONDO__CUPTI_COPY_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOH);
SAME(RONDO__CUPTI_COPY_PTOP, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);

SAME_FIELD(rondo__cupti_record, kind, CUpti_Activity, kind);
SAME_FIELD(rondo__cupti_external, external_kind, CUpti_ActivityExternalCorrelation, externalKind);
SAME_FIELD(rondo__cupti_external, id, CUpti_ActivityExternalCorrelation, externalId);
SAME_FIELD(rondo__cupti_external, correlation, CUpti_ActivityExternalCorrelation, correlationId);
_Static_assert(sizeof(rondo__cupti_external) == sizeof(CUpti_ActivityExternalCorrelation), "size");

#if CUPTI_API_VERSION >= 130000
SAME_KERNEL(CUpti_ActivityKernel10);
SAME_TRANSFER(rondo__cupti_memcpy, CUpti_ActivityMemcpy6);
SAME_FIELD(rondo__cupti_memcpy, copy_kind, CUpti_ActivityMemcpy6, copyKind);
#endif
SAME_KERNEL(CUpti_ActivityKernel9);
SAME_TRANSFER(rondo__cupti_memcpy, CUpti_ActivityMemcpy5);
SAME_FIELD(rondo__cupti_memcpy, copy_kind, CUpti_ActivityMemcpy5, copyKind);
SAME_TRANSFER(rondo__cupti_memcpy_peer, CUpti_ActivityMemcpyPtoP4);
SAME_TRANSFER(rondo__cupti_memset, CUpti_ActivityMemset4);

#define SAME_DRIVER_CALL(number, name) SAME(number, CUPTI_DRIVER_TRACE_CBID_##name);
RONDO__CUPTI_DRIVER_CALL_MAP(SAME_DRIVER_CALL)
#else
#define HAS_CUPTI 0
#endif

int main(void) {
    if (!HAS_CUPTI) {
        printf("skipped: no cupti.h is installed\n");
        return 77;
    }
    printf("compared with cupti.h\n");
    return 0;
}
