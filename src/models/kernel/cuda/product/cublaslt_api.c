// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/product/cublaslt_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/discover.h"
#include "base/error.h"

// Written once under `once`, read-only afterwards.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static rondo__lt_api api;
static bool is_loaded;
static rondo__library *library;  // never closed
static char problem[200];

static bool find(const char *name, void *out_function) {
    void *symbol = rondo__library_find(library, name);
    if (symbol == NULL) {
        (void)snprintf(problem, sizeof(problem), "cuBLASLt has no %s", name);
        return false;
    }
    memcpy(out_function, &symbol, sizeof(symbol));
    return true;
}

static void load(void) {
    if (rondo__cuda_open_library("cublasLt", &library) != RONDO_STATUS_OK) {
        (void)snprintf(problem, sizeof(problem), "%.190s", rondo_error_get_last()->message);
        return;
    }
    is_loaded = true;
#define RONDO_CUBLASLT_LOAD(result, name, parameters) \
    is_loaded = is_loaded && find(#name, &api.name);
    RONDO_CUBLASLT_MAP(RONDO_CUBLASLT_LOAD)
#undef RONDO_CUBLASLT_LOAD
}

rondo_status rondo__cublaslt_get_api(const rondo__lt_api **out_api) {
    *out_api = NULL;
    (void)pthread_once(&once, load);
    if (!is_loaded) {
        return RONDO_FAIL(UNAVAILABLE, "%s", problem);
    }
    *out_api = &api;
    return RONDO_STATUS_OK;
}
