// base/log/nvtx.c — finding the tool and calling it.
// SPDX-License-Identifier: Apache-2.0
#include "base/log/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/log/logging.h"

atomic_int rondo__nvtx_state = RONDO__NVTX_UNKNOWN;

// What the tool wrote, by module. Its functions come in two forms: those with a domain show Rondo's
// ranges as a group that can be filtered; the plain ones serve tools that have no others.
typedef struct nvtx_tool {
    rondo__nvtx_function functions[RONDO__NVTX_MODULE_COUNT][RONDO__NVTX_COUNT_MAX];
    const rondo__nvtx_function *core;
    const rondo__nvtx_function *core2;
    void *domain;  // NULL: the plain functions are used
} nvtx_tool;

// Written once, before rondo__nvtx_state becomes ON.
static nvtx_tool g_tool = {.core = g_tool.functions[RONDO__NVTX_MODULE_CORE],
                           .core2 = g_tool.functions[RONDO__NVTX_MODULE_CORE2]};

// ---- what the tool asks for -------------------------------------------------------------------

// The tool gets the addresses of our slots, of every module there is. The first entry is unused.
static int get_functions(int module, rondo__nvtx_function ***out_table, unsigned int *out_count) {
    static rondo__nvtx_function *slots[RONDO__NVTX_MODULE_COUNT][RONDO__NVTX_COUNT_MAX + 1];
    static const unsigned int counts[RONDO__NVTX_MODULE_COUNT] = {
        [RONDO__NVTX_MODULE_CORE] = RONDO__NVTX_CORE_COUNT,
        [RONDO__NVTX_MODULE_CUDA] = RONDO__NVTX_CUDA_COUNT,
        [RONDO__NVTX_MODULE_OPENCL] = RONDO__NVTX_OPENCL_COUNT,
        [RONDO__NVTX_MODULE_CUDART] = RONDO__NVTX_CUDART_COUNT,
        [RONDO__NVTX_MODULE_CORE2] = RONDO__NVTX_CORE2_COUNT,
        [RONDO__NVTX_MODULE_SYNC] = RONDO__NVTX_SYNC_COUNT,
    };
    if (module <= 0 || module >= RONDO__NVTX_MODULE_COUNT) {
        return 0;
    }
    for (unsigned int i = 1; i < counts[module]; ++i) {
        slots[module][i] = &g_tool.functions[module][i];
    }
    if (out_table != NULL) {
        *out_table = slots[module];
    }
    if (out_count != NULL) {
        *out_count = counts[module];
    }
    return 1;
}

static void ignore_version(uint32_t version) {
    (void)version;
}

static const void *get_table(uint32_t table) {
    static const rondo__nvtx_callbacks callbacks = {sizeof callbacks, get_functions};
    static const rondo__nvtx_version version = {
        .struct_size = sizeof version,
        .version = RONDO__NVTX_VERSION,
        .set_injection_version = ignore_version,
    };
    switch (table) {
        case RONDO__NVTX_TABLE_CALLBACKS:
            return &callbacks;
        case RONDO__NVTX_TABLE_VERSION:
            return &version;
        default:
            return NULL;
    }
}

// ---- finding the tool -------------------------------------------------------------------------

// An object pointer holds a function's address on every system this library is for.
typedef union entry_point {
    void *address;
    rondo__nvtx_initialize initialize;
} entry_point;

static bool load_tool(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        RONDO_LOG_WARN_F("NVTX_INJECTION64_PATH names a library that does not load: %s",
                         reason != NULL ? reason : path);
        return false;
    }
    entry_point entry = {.address = dlsym(library, "InitializeInjectionNvtx2")};
    if (entry.address == NULL || entry.initialize(get_table) == 0) {
        RONDO_LOG_WARN_F(
            "NVTX_INJECTION64_PATH names %s, which %s", path,
            entry.address == NULL ? "has no InitializeInjectionNvtx2" : "did not start");
        dlclose(library);
        return false;
    }
    return true;  // stays loaded as long as the process
}

static void find_tool(void) {
    const char *path = getenv("NVTX_INJECTION64_PATH");
    if (path == NULL || path[0] == '\0' || !load_tool(path)) {
        atomic_store_explicit(&rondo__nvtx_state, RONDO__NVTX_OFF, memory_order_release);
        return;
    }
    const rondo__nvtx_function *core2 = g_tool.core2;
    if (core2[RONDO__NVTX_DOMAIN_CREATE] != NULL && core2[RONDO__NVTX_DOMAIN_RANGE_PUSH] != NULL &&
        core2[RONDO__NVTX_DOMAIN_RANGE_POP] != NULL) {
        g_tool.domain = ((void *(*)(const char *))core2[RONDO__NVTX_DOMAIN_CREATE])("rondo");
    }
    atomic_store_explicit(&rondo__nvtx_state, RONDO__NVTX_ON, memory_order_release);
}

bool rondo__nvtx_start(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, find_tool);
    return atomic_load_explicit(&rondo__nvtx_state, memory_order_acquire) == RONDO__NVTX_ON;
}

// ---- ranges -----------------------------------------------------------------------------------

static rondo__nvtx_attributes describe(const char *text) {
    return (rondo__nvtx_attributes){.version = RONDO__NVTX_VERSION,
                                    .size = sizeof(rondo__nvtx_attributes),
                                    .message_type = RONDO__NVTX_MESSAGE_ASCII,
                                    .message = text};
}

// Each of these does nothing where the tool left the function out.

void rondo__nvtx_push(const char *text) {
    if (g_tool.domain != NULL) {
        rondo__nvtx_attributes attributes = describe(text);
        rondo__nvtx_function push = g_tool.core2[RONDO__NVTX_DOMAIN_RANGE_PUSH];
        (void)((int (*)(void *, const rondo__nvtx_attributes *))push)(g_tool.domain, &attributes);
    } else if (g_tool.core[RONDO__NVTX_RANGE_PUSH] != NULL) {
        (void)((int (*)(const char *))g_tool.core[RONDO__NVTX_RANGE_PUSH])(text);
    }
}

void rondo__nvtx_pop(void) {
    if (g_tool.domain != NULL) {
        (void)((int (*)(void *))g_tool.core2[RONDO__NVTX_DOMAIN_RANGE_POP])(g_tool.domain);
    } else if (g_tool.core[RONDO__NVTX_RANGE_POP] != NULL) {
        (void)((int (*)(void))g_tool.core[RONDO__NVTX_RANGE_POP])();
    }
}

uint64_t rondo__nvtx_start_range(const char *text) {
    rondo__nvtx_function start = g_tool.core2[RONDO__NVTX_DOMAIN_RANGE_START];
    if (g_tool.domain != NULL && start != NULL) {
        rondo__nvtx_attributes attributes = describe(text);
        return ((uint64_t(*)(void *, const rondo__nvtx_attributes *))start)(g_tool.domain,
                                                                            &attributes);
    }
    if (g_tool.core[RONDO__NVTX_RANGE_START] != NULL) {
        return ((uint64_t(*)(const char *))g_tool.core[RONDO__NVTX_RANGE_START])(text);
    }
    return 0;
}

void rondo__nvtx_end_range(uint64_t range) {
    rondo__nvtx_function start = g_tool.core2[RONDO__NVTX_DOMAIN_RANGE_START];
    rondo__nvtx_function end = g_tool.core2[RONDO__NVTX_DOMAIN_RANGE_END];
    if (g_tool.domain != NULL && start != NULL) {
        if (end != NULL) {
            ((void (*)(void *, uint64_t))end)(g_tool.domain, range);
        }
    } else if (g_tool.core[RONDO__NVTX_RANGE_END] != NULL) {
        ((void (*)(uint64_t))g_tool.core[RONDO__NVTX_RANGE_END])(range);
    }
}
