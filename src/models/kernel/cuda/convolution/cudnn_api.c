// kernel/cuda/convolution/cudnn_api.c — see cudnn_api.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/convolution/cudnn_api.h"

#include "base/error.h"

enum { OLDEST_VERSION = 90000 };

static rondo__dnn_api api;
static const char *const names[] = {RONDO_CUDNN_MAP(RONDO__CUDA_FUNCTION_NAME)};
static rondo__cuda_functions functions = {.short_name = "cudnn",
                                          .names = names,
                                          .name_count = sizeof(names) / sizeof(names[0]),
                                          .table = &api,
                                          .lock = PTHREAD_MUTEX_INITIALIZER};

rondo_status rondo__cudnn_get_api(const rondo__dnn_api **out_api) {
    *out_api = NULL;
    RETURN_IF_ERROR(rondo__cuda_load_functions(&functions));
    if (api.cudnnGetVersion() < OLDEST_VERSION) {
        return RONDO_FAIL(UNAVAILABLE, "cuDNN is version %zu; 9.0 is needed",
                          api.cudnnGetVersion());
    }
    *out_api = &api;
    return RONDO_STATUS_OK;
}
