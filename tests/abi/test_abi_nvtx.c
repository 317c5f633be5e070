// Our words for NVTX (base/log/nvtx.h) against NVIDIA's headers, where a toolkit is installed. What
// differs does not compile.
// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/log/nvtx.h"

#if RONDO_HAS_CUDA_H && __has_include(<nvtx3/nvToolsExt.h>)
#define HAS_NVTX 1
#include <nvtx3/nvToolsExt.h>

#define SAME(ours, theirs) _Static_assert((long long)(ours) == (long long)(theirs), #theirs)

SAME(RONDO__NVTX_VERSION, NVTX_VERSION);
SAME(RONDO__NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
SAME(RONDO__NVTX_TABLE_VERSION, NVTX_ETID_VERSIONINFO);
SAME(RONDO__NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
SAME(RONDO__NVTX_MODULE_CUDA, NVTX_CB_MODULE_CUDA);
SAME(RONDO__NVTX_MODULE_OPENCL, NVTX_CB_MODULE_OPENCL);
SAME(RONDO__NVTX_MODULE_CUDART, NVTX_CB_MODULE_CUDART);
SAME(RONDO__NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
SAME(RONDO__NVTX_MODULE_SYNC, NVTX_CB_MODULE_SYNC);
SAME(RONDO__NVTX_MODULE_COUNT, NVTX_CB_MODULE_SIZE);
SAME(RONDO__NVTX_CUDA_COUNT, NVTX_CBID_CUDA_SIZE);
SAME(RONDO__NVTX_OPENCL_COUNT, NVTX_CBID_OPENCL_SIZE);
SAME(RONDO__NVTX_CUDART_COUNT, NVTX_CBID_CUDART_SIZE);
SAME(RONDO__NVTX_SYNC_COUNT, NVTX_CBID_SYNC_SIZE);
SAME(RONDO__NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
SAME(RONDO__NVTX_RANGE_START, NVTX_CBID_CORE_RangeStartA);
SAME(RONDO__NVTX_RANGE_END, NVTX_CBID_CORE_RangeEnd);
SAME(RONDO__NVTX_RANGE_PUSH, NVTX_CBID_CORE_RangePushA);
SAME(RONDO__NVTX_RANGE_POP, NVTX_CBID_CORE_RangePop);
SAME(RONDO__NVTX_CORE_COUNT, NVTX_CBID_CORE_SIZE);
SAME(RONDO__NVTX_DOMAIN_RANGE_START, NVTX_CBID_CORE2_DomainRangeStartEx);
SAME(RONDO__NVTX_DOMAIN_RANGE_END, NVTX_CBID_CORE2_DomainRangeEnd);
SAME(RONDO__NVTX_DOMAIN_RANGE_PUSH, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(RONDO__NVTX_DOMAIN_RANGE_POP, NVTX_CBID_CORE2_DomainRangePop);
SAME(RONDO__NVTX_DOMAIN_CREATE, NVTX_CBID_CORE2_DomainCreateA);
SAME(RONDO__NVTX_CORE2_COUNT, NVTX_CBID_CORE2_SIZE);

SAME(sizeof(rondo__nvtx_attributes), sizeof(nvtxEventAttributes_t));
SAME(offsetof(rondo__nvtx_attributes, version), offsetof(nvtxEventAttributes_t, version));
SAME(offsetof(rondo__nvtx_attributes, size), offsetof(nvtxEventAttributes_t, size));
SAME(offsetof(rondo__nvtx_attributes, category), offsetof(nvtxEventAttributes_t, category));
SAME(offsetof(rondo__nvtx_attributes, color_type), offsetof(nvtxEventAttributes_t, colorType));
SAME(offsetof(rondo__nvtx_attributes, color), offsetof(nvtxEventAttributes_t, color));
SAME(offsetof(rondo__nvtx_attributes, payload_type), offsetof(nvtxEventAttributes_t, payloadType));
SAME(offsetof(rondo__nvtx_attributes, payload), offsetof(nvtxEventAttributes_t, payload));
SAME(offsetof(rondo__nvtx_attributes, message_type), offsetof(nvtxEventAttributes_t, messageType));
SAME(offsetof(rondo__nvtx_attributes, message), offsetof(nvtxEventAttributes_t, message));

SAME(sizeof(rondo__nvtx_callbacks), sizeof(NvtxExportTableCallbacks));
SAME(offsetof(rondo__nvtx_callbacks, get_functions),
     offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
SAME(sizeof(rondo__nvtx_version), sizeof(NvtxExportTableVersionInfo));
SAME(offsetof(rondo__nvtx_version, version), offsetof(NvtxExportTableVersionInfo, version));
SAME(offsetof(rondo__nvtx_version, set_injection_version),
     offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion));
SAME(sizeof(nvtxRangeId_t), sizeof(uint64_t));
SAME(sizeof(rondo__nvtx_get_table), sizeof(NvtxGetExportTableFunc_t));
#else
#define HAS_NVTX 0
#endif

int main(void) {
    if (!HAS_NVTX) {
        printf("skipped: nvtx3/nvToolsExt.h is not installed\n");
        return 77;
    }
    printf("compared with nvtx3/nvToolsExt.h\n");
    return 0;
}
