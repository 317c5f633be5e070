// doctor/inject/inject_real.c — see inject_real.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

static _Atomic(void *) g_dlsym;

rondo__inject_dlsym_function rondo__inject_get_dlsym(void) {
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
    void *found = atomic_load_explicit(&g_dlsym, memory_order_relaxed);
    for (size_t i = 0; found == NULL && i < sizeof(versions) / sizeof(versions[0]); i++) {
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        atomic_store(&g_dlsym, found);
    }
    return (rondo__inject_dlsym_function)found;
}

void *rondo__inject_real_dlsym(void *handle, const char *name) {
    rondo__inject_dlsym_function real = rondo__inject_get_dlsym();
    return real != NULL ? real(handle, name) : NULL;
}

void *rondo__inject_find_real(const char *exported) {
    static _Atomic(void *) library;
    void *found = atomic_load(&library);
    if (exported == NULL) {
        return NULL;
    }
    if (found == NULL) {
        found = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
        atomic_store(&library, found);
    }
    return found != NULL ? rondo__inject_real_dlsym(found, exported) : NULL;
}
