// kernel/cuda/product/cublaslt_api.c — see cublaslt_api.h.
// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/product/cublaslt_api.h"

#include "base/error.h"

static rondo__lt_api api;
static const char *const names[] = {RONDO_CUBLASLT_MAP(RONDO__CUDA_FUNCTION_NAME)};
static rondo__cuda_functions functions = {.short_name = "cublasLt",
                                          .names = names,
                                          .name_count = sizeof(names) / sizeof(names[0]),
                                          .table = &api,
                                          .lock = PTHREAD_MUTEX_INITIALIZER};

rondo_status rondo__cublaslt_get_api(const rondo__lt_api **out_api) {
    *out_api = NULL;
    RETURN_IF_ERROR(rondo__cuda_load_functions(&functions));
    *out_api = &api;
    return RONDO_STATUS_OK;
}
