// backend/cuda/driver/cuda_api.c — loading libcuda. cuGetProcAddress is asked first, since it alone
// knows which form of a function a version means; plain exports serve drivers that lack it. NVIDIA
// documents that a missing function may come back as success with a NULL pointer, so result, query
// status and pointer are all checked.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver/cuda_api.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/library.h"
#include "base/log/logging.h"

typedef rondo__cu_result (*get_address_v2_function)(const char *symbol, void **out_function,
                                                    int version, uint64_t flags, int *out_status);
typedef rondo__cu_result (*get_address_v1_function)(const char *symbol, void **out_function,
                                                    int version, uint64_t flags);

enum { NEED_REQUIRED = 0 };

typedef struct symbol {
    const char *name;
    const char *exported;
    size_t offset;
    rondo__cuda_capabilities capability;  // NEED_REQUIRED, or the bit that vanishes without it
    int version;
} symbol;

#define RONDO__CUDA_CAN_REQUIRED NEED_REQUIRED

static const symbol g_symbols[] = {
#define RONDO__CUDA_SYMBOL(need, function, since, export_name, arguments) \
    {.name = #function,                                                   \
     .exported = (export_name),                                           \
     .offset = offsetof(rondo__cuda_api, function),                       \
     .capability = RONDO__CUDA_CAN_##need,                                \
     .version = (since)},
#include "backend/cuda/driver/cuda_symbols.h"
#undef RONDO__CUDA_SYMBOL
};

static const size_t g_symbol_count = sizeof(g_symbols) / sizeof(g_symbols[0]);

typedef struct resolver {
    rondo__cuda_resolve_function resolve;
    void *user_data;
    get_address_v2_function get_address_v2;
    get_address_v1_function get_address_v1;
} resolver;

// A function pointer out of an object pointer: POSIX promises that the bits are the same.
static void resolve_exported(const resolver *r, const char *name, void *out_function) {
    void *address = r->resolve(r->user_data, name);
    memcpy(out_function, &address, sizeof(address));
}

// "cuGraphGetEdges_v2" is the member for the newer form of "cuGraphGetEdges".
static void copy_base_name(const char *name, char *out_base, size_t capacity) {
    snprintf(out_base, capacity, "%s", name);
    char *suffix = strstr(out_base, "_v");
    if (suffix != NULL) {
        *suffix = '\0';
    }
}

static void *find_function(const resolver *r, const symbol *wanted, int driver_version) {
    if (wanted->version > driver_version) {
        // Asked for a form newer than itself, a driver may answer with an older one, whose
        // parameters are others.
        return NULL;
    }
    char base[64];
    copy_base_name(wanted->name, base, sizeof(base));
    void *address = NULL;
    if (r->get_address_v2 != NULL) {
        int status = RONDO__CU_GET_PROC_ADDRESS_SUCCESS;
        rondo__cu_result result = r->get_address_v2(base, &address, wanted->version,
                                                    RONDO__CU_GET_PROC_ADDRESS_DEFAULT, &status);
        if (result != RONDO__CU_SUCCESS || status != RONDO__CU_GET_PROC_ADDRESS_SUCCESS) {
            address = NULL;
        }
    } else if (r->get_address_v1 != NULL) {
        rondo__cu_result result =
            r->get_address_v1(base, &address, wanted->version, RONDO__CU_GET_PROC_ADDRESS_DEFAULT);
        if (result != RONDO__CU_SUCCESS) {
            address = NULL;
        }
    }
    if (address == NULL) {
        address = r->resolve(r->user_data, wanted->exported);
    }
    return address;
}

rondo_status rondo__cuda_api_load(rondo__cuda_resolve_function resolve, void *user_data,
                                  rondo__cuda_api *out_api) {
    memset(out_api, 0, sizeof(*out_api));
    resolver r = {.resolve = resolve, .user_data = user_data};
    resolve_exported(&r, "cuGetProcAddress_v2", &r.get_address_v2);
    resolve_exported(&r, "cuGetProcAddress", &r.get_address_v1);

    rondo__cuda_api api;
    memset(&api, 0, sizeof(api));
    resolve_exported(&r, "cuDriverGetVersion", &api.cuDriverGetVersion);
    int version = 0;
    if (api.cuDriverGetVersion == NULL || api.cuDriverGetVersion(&version) != RONDO__CU_SUCCESS) {
        return RONDO_FAIL(UNAVAILABLE,
                          "libcuda does not tell its version; is it really NVIDIA's driver?");
    }
    if (version < RONDO__CUDA_OLDEST_DRIVER) {
        return RONDO_FAIL(
            UNAVAILABLE,
            "the NVIDIA driver supports CUDA %d.%d, Rondo needs one for CUDA %d.%d or "
            "newer; update the driver",
            version / 1000, version % 1000 / 10, RONDO__CUDA_OLDEST_DRIVER / 1000,
            RONDO__CUDA_OLDEST_DRIVER % 1000 / 10);
    }
    api.driver_version = version;
    api.capabilities = RONDO__CUDA_CAN_EVERYTHING;
    for (size_t i = 0; i < g_symbol_count; i++) {
        const symbol *wanted = &g_symbols[i];
        void *address = find_function(&r, wanted, version);
        if (address == NULL && wanted->capability == NEED_REQUIRED) {
            return RONDO_FAIL(UNAVAILABLE,
                              "the NVIDIA driver (CUDA %d.%d) lacks %s, which every driver since "
                              "CUDA %d.%d has; reinstall it",
                              version / 1000, version % 1000 / 10, wanted->exported,
                              wanted->version / 1000, wanted->version % 1000 / 10);
        }
        if (address == NULL) {
            RONDO_LOG_INFO_F("the NVIDIA driver lacks %s (CUDA %d.%d)", wanted->exported,
                             wanted->version / 1000, wanted->version % 1000 / 10);
            api.capabilities &= ~wanted->capability;
        }
        memcpy((char *)&api + wanted->offset, &address, sizeof(address));
    }
    *out_api = api;
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_api_require(const rondo__cuda_api *api,
                                     rondo__cuda_capabilities capability) {
    if ((api->capabilities & capability) == capability) {
        return RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < g_symbol_count; i++) {
        const symbol *wanted = &g_symbols[i];
        if ((wanted->capability & capability & ~api->capabilities) != 0) {
            return RONDO_FAIL(UNSUPPORTED,
                              "the NVIDIA driver (CUDA %d.%d) has no %s, which came with CUDA "
                              "%d.%d; update the driver",
                              api->driver_version / 1000, api->driver_version % 1000 / 10,
                              wanted->exported, wanted->version / 1000,
                              wanted->version % 1000 / 10);
        }
    }
    return RONDO_FAIL(INTERNAL, "no driver function belongs to capability 0x%x",
                      (unsigned)capability);
}

// ---- the process's driver ---------------------------------------------------------------------

// Part of the device registry's state: which driver serves this process. Guarded by `lock`.
static struct {
    pthread_mutex_t lock;
    bool was_tried;
    rondo_status status;
    rondo_error error;  // the record of a failed first try, for every later one
    rondo__cuda_api api;
    rondo__library *library;  // never closed: the driver's threads may run until the end
    const rondo__cuda_api *replacement;
} g_driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *resolve_in_library(void *user_data, const char *name) {
    return rondo__library_find(user_data, name);
}

static rondo_status describe_init_failure(rondo__cu_result result) {
    const char *name = NULL;
    if (g_driver.api.cuGetErrorName(result, &name) != RONDO__CU_SUCCESS || name == NULL) {
        name = "";
    }
    const char *advice = "look at nvidia-smi and the kernel log";
    switch (result) {
        case RONDO__CU_ERROR_NO_DEVICE:
            advice =
                "the driver is there, but no GPU is visible; look at CUDA_VISIBLE_DEVICES and "
                "nvidia-smi";
            break;
        case RONDO__CU_ERROR_STUB_LIBRARY:
            advice =
                "the libcuda found is a toolkit's stub, not a driver; take the stubs folder "
                "out of LD_LIBRARY_PATH";
            break;
        case RONDO__CU_ERROR_SYSTEM_DRIVER_MISMATCH:
            advice =
                "libcuda and the kernel module are of different versions; reboot or reinstall "
                "the driver";
            break;
        case RONDO__CU_ERROR_SYSTEM_NOT_READY:
            advice = "the system is not ready; is the fabric manager running?";
            break;
        default:
            break;
    }
    return RONDO_FAIL_DRIVER(RONDO_STATUS_UNAVAILABLE, result, name, "cuInit",
                             "the NVIDIA driver did not start: %s", advice);
}

static rondo_status load_driver(void) {
    static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
    char reason[RONDO__MESSAGE_BYTES];
    rondo__library *library = NULL;
    const uint64_t start_ns = rondo__clock_now_ns();
    if (rondo__library_open(names, sizeof(names) / sizeof(names[0]), reason, sizeof(reason),
                            &library) != RONDO_STATUS_OK) {
        return RONDO_FAIL(UNAVAILABLE, "no NVIDIA driver (libcuda.so.1) on this machine: %s",
                          reason);
    }
    g_driver.library = library;
    rondo_status status = rondo__cuda_api_load(resolve_in_library, library, &g_driver.api);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    rondo__cu_result result = g_driver.api.cuInit(0);
    if (result != RONDO__CU_SUCCESS) {
        return describe_init_failure(result);
    }
    RONDO_LOG_DEBUG_F("loaded %s, CUDA %d.%d, in %.0f ms", rondo__library_get_path(library),
                      g_driver.api.driver_version / 1000, g_driver.api.driver_version % 1000 / 10,
                      (double)(rondo__clock_now_ns() - start_ns) * 1e-6);
    return RONDO_STATUS_OK;
}

rondo_status rondo__cuda_get_api(const rondo__cuda_api **out_api) {
    *out_api = NULL;
    pthread_mutex_lock(&g_driver.lock);
    rondo_status status = RONDO_STATUS_OK;
    if (g_driver.replacement != NULL) {
        *out_api = g_driver.replacement;
    } else if (!g_driver.was_tried) {
        status = load_driver();
        g_driver.was_tried = true;
        g_driver.status = status;
        rondo__error_save(&g_driver.error);
    } else {
        status = g_driver.status;
        if (status != RONDO_STATUS_OK) {
            const rondo_error *first = &g_driver.error;
            status = rondo__error_set(status, first->driver_code, first->driver_name, first->file,
                                      first->line, first->call, "%s", first->message);
        }
    }
    if (status == RONDO_STATUS_OK && *out_api == NULL) {
        *out_api = &g_driver.api;
    }
    pthread_mutex_unlock(&g_driver.lock);
    return status;
}

bool rondo__cuda_is_replaced(void) {
    pthread_mutex_lock(&g_driver.lock);
    const bool is_replaced = g_driver.replacement != NULL;
    pthread_mutex_unlock(&g_driver.lock);
    return is_replaced;
}

void rondo__cuda_set_api(const rondo__cuda_api *api) {
    pthread_mutex_lock(&g_driver.lock);
    g_driver.replacement = api;
    pthread_mutex_unlock(&g_driver.lock);
}
