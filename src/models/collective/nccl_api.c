// collective/nccl_api.c — see nccl_api.h.
// SPDX-License-Identifier: Apache-2.0
#include "collective/nccl_api.h"

#include "base/error.h"

enum { OLDEST_VERSION = 21000 };

static rondo__nccl_api api;
static const char *const names[] = {RONDO_NCCL_MAP(RONDO__CUDA_FUNCTION_NAME)};
static rondo__cuda_functions functions = {.short_name = "nccl",
                                          .names = names,
                                          .name_count = sizeof(names) / sizeof(names[0]),
                                          .table = &api,
                                          .lock = PTHREAD_MUTEX_INITIALIZER};

rondo_status rondo__nccl_get_api(const rondo__nccl_api **out_api) {
    int version = 0;
    *out_api = NULL;
    RETURN_IF_ERROR(rondo__cuda_load_functions(&functions));
    if (api.ncclGetVersion(&version) != RONDO__NCCL_SUCCESS || version < OLDEST_VERSION) {
        return RONDO_FAIL(UNAVAILABLE, "NCCL is version %d; 2.10 is needed", version);
    }
    *out_api = &api;
    return RONDO_STATUS_OK;
}
