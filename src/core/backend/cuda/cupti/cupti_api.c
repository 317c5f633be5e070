// backend/cuda/cupti/cupti_api.c — loading CUPTI. A failure is not kept: the next profile looks
// again.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cupti/cupti_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "backend/cuda/driver/cuda_api.h"
#include "backend/cuda/driver/discover.h"
#include "base/error.h"
#include "base/log/logging.h"

enum { NEED_REQUIRED, NEED_OPTIONAL };

static const struct {
    const char *name;
    size_t offset;
    int need;
} g_symbols[] = {
#define RONDO__CUPTI_SYMBOL(need, name, arguments) \
    {#name, offsetof(rondo__cupti_api, name), NEED_##need},
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL
};

// Guarded by `lock`; the table is constant once `library` is set.
static struct {
    pthread_mutex_t lock;
    rondo__library *library;  // never closed: CUPTI's threads run until the end
    rondo__cupti_api api;
    const rondo__cupti_api *replacement;
} g_cupti = {.lock = PTHREAD_MUTEX_INITIALIZER};

rondo_status rondo__cupti_api_load(rondo__cupti_resolve_function resolve, void *user_data,
                                   const char *path, rondo__cupti_api *out_api) {
    rondo__cupti_api api;
    memset(&api, 0, sizeof(api));
    memset(out_api, 0, sizeof(*out_api));
    for (size_t i = 0; i < sizeof(g_symbols) / sizeof(g_symbols[0]); i++) {
        void *address = resolve(user_data, g_symbols[i].name);
        if (address == NULL && g_symbols[i].need == NEED_REQUIRED) {
            return RONDO_FAIL(UNAVAILABLE, "%s has no %s; Rondo needs CUPTI of CUDA 12.0 or newer",
                              path, g_symbols[i].name);
        }
        memcpy((char *)&api + g_symbols[i].offset, &address, sizeof(address));
    }
    if (api.cuptiGetVersion(&api.version) != RONDO__CUPTI_SUCCESS ||
        api.version < RONDO__CUPTI_OLDEST_VERSION) {
        return RONDO_FAIL(UNAVAILABLE,
                          "%s is CUPTI version %u; Rondo needs version %d (CUDA 12.0) or newer",
                          path, (unsigned)api.version, RONDO__CUPTI_OLDEST_VERSION);
    }
    *out_api = api;
    return RONDO_STATUS_OK;
}

static void *resolve_in_library(void *user_data, const char *name) {
    return rondo__library_find(user_data, name);
}

static rondo_status load_library(void) {
    rondo__library *library = NULL;
    RETURN_IF_ERROR(rondo__cuda_open_library("cupti", &library));
    rondo_status status = rondo__cupti_api_load(resolve_in_library, library,
                                                rondo__library_get_path(library), &g_cupti.api);
    if (status != RONDO_STATUS_OK) {
        rondo__library_close(library);
        return status;
    }
    RONDO_LOG_DEBUG_F("loaded %s, CUPTI version %u", rondo__library_get_path(library),
                      (unsigned)g_cupti.api.version);
    g_cupti.library = library;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cupti_get_api(const rondo__cupti_api **out_api) {
    *out_api = NULL;
    pthread_mutex_lock(&g_cupti.lock);
    rondo_status status = RONDO_STATUS_OK;
    if (g_cupti.replacement != NULL) {
        *out_api = g_cupti.replacement;
    } else if (rondo__cuda_is_replaced()) {
        status = RONDO_FAIL(UNAVAILABLE, "CUPTI knows NVIDIA's driver only, not a test's");
    } else if (g_cupti.library == NULL) {
        status = load_library();
    }
    if (status == RONDO_STATUS_OK && *out_api == NULL) {
        *out_api = &g_cupti.api;
    }
    pthread_mutex_unlock(&g_cupti.lock);
    return status;
}

void rondo__cupti_set_api(const rondo__cupti_api *api) {
    pthread_mutex_lock(&g_cupti.lock);
    g_cupti.replacement = api;
    pthread_mutex_unlock(&g_cupti.lock);
}
