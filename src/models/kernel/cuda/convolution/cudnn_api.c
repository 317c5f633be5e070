// SPDX-License-Identifier: Apache-2.0

#include "kernel/cuda/convolution/cudnn_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/driver/discover.h"
#include "base/error.h"

enum { OLDEST_VERSION = 90000 };

// Written once under `once`, read-only afterwards.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static rondo__dnn_api api;
static bool is_loaded;
static rondo__library *library;  // never closed
static char problem[200];

static bool find(const char *name, void *out_function) {
    void *symbol = rondo__library_find(library, name);
    if (symbol == NULL) {
        (void)snprintf(problem, sizeof(problem), "cuDNN has no %s", name);
        return false;
    }
    memcpy(out_function, &symbol, sizeof(symbol));
    return true;
}

static void load(void) {
    if (rondo__cuda_open_library("cudnn", &library) != RONDO_STATUS_OK) {
        (void)snprintf(problem, sizeof(problem), "%.190s", rondo_error_get_last()->message);
        return;
    }
    bool has_all = true;
#define RONDO_CUDNN_LOAD(result, name, parameters) has_all = has_all && find(#name, &api.name);
    RONDO_CUDNN_MAP(RONDO_CUDNN_LOAD)
#undef RONDO_CUDNN_LOAD
    if (has_all && api.cudnnGetVersion() < OLDEST_VERSION) {
        (void)snprintf(problem, sizeof(problem), "cuDNN is version %zu; 9.0 is needed",
                       api.cudnnGetVersion());
        has_all = false;
    }
    is_loaded = has_all;
}

rondo_status rondo__cudnn_get_api(const rondo__dnn_api **out_api) {
    *out_api = NULL;
    (void)pthread_once(&once, load);
    if (!is_loaded) {
        return RONDO_FAIL(UNAVAILABLE, "%s", problem);
    }
    *out_api = &api;
    return RONDO_STATUS_OK;
}
