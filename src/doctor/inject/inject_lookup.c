// doctor/inject/inject_lookup.c — the ways by which programs find the driver's functions: dlsym,
// and cuGetProcAddress, which a static runtime asks for each.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "doctor/inject/inject_calls.h"
#include "doctor/inject/inject_real.h"

#define EXPORTED __attribute__((visibility("default")))

enum { PER_THREAD_STREAM = 2, NOT_FOUND = 500 };  // CU_GET_PROC_ADDRESS_..., CUDA_ERROR_NOT_FOUND

typedef int (*lookup_function)(const char *name, void **out, int version, uint64_t flags);
typedef int (*lookup_v2_function)(const char *name, void **out, int version, uint64_t flags,
                                  int *out_status);

static _Atomic(lookup_function) g_lookup;
static _Atomic(lookup_v2_function) g_lookup_v2;

int rondo__inject_lookup(const char *name, void **out, int version,
                         uint64_t flags) __asm__("cuGetProcAddress") EXPORTED;
int rondo__inject_lookup_v2(const char *name, void **out, int version, uint64_t flags,
                            int *out_status) __asm__("cuGetProcAddress_v2") EXPORTED;

// The lookups themselves are looked up, too.
static void *wrap_lookup(const char *name, int version, void *real) {
    if (real == NULL || strcmp(name, "cuGetProcAddress") != 0) {
        return NULL;
    }
    if (version >= 12000) {
        lookup_v2_function none = NULL;
        if ((lookup_v2_function)real != rondo__inject_lookup_v2) {
            (void)atomic_compare_exchange_strong(&g_lookup_v2, &none, (lookup_v2_function)real);
        }
        return (void *)rondo__inject_lookup_v2;
    }
    lookup_function none = NULL;
    if ((lookup_function)real != rondo__inject_lookup) {
        (void)atomic_compare_exchange_strong(&g_lookup, &none, (lookup_function)real);
    }
    return (void *)rondo__inject_lookup;
}

static void replace(const char *name, void **out, int version, uint64_t flags) {
    void *lookup = wrap_lookup(name, version, *out);
    *out = lookup != NULL
               ? lookup
               : rondo__inject_wrap_named(name, version, (flags & PER_THREAD_STREAM) != 0, *out);
}

int rondo__inject_lookup(const char *name, void **out, int version, uint64_t flags) {
    lookup_function real = atomic_load(&g_lookup);
    if (real == NULL) {
        real = (lookup_function)rondo__inject_find_real("cuGetProcAddress");
        atomic_store(&g_lookup, real);
    }
    const int status = real != NULL ? real(name, out, version, flags) : NOT_FOUND;
    if (status == 0 && name != NULL && out != NULL && *out != NULL) {
        replace(name, out, version, flags);
    }
    return status;
}

int rondo__inject_lookup_v2(const char *name, void **out, int version, uint64_t flags,
                            int *out_status) {
    lookup_v2_function real = atomic_load(&g_lookup_v2);
    if (real == NULL) {
        real = (lookup_v2_function)rondo__inject_find_real("cuGetProcAddress_v2");
        atomic_store(&g_lookup_v2, real);
    }
    const int status = real != NULL ? real(name, out, version, flags, out_status) : NOT_FOUND;
    if (status == 0 && name != NULL && out != NULL && *out != NULL) {
        replace(name, out, version, flags);
    }
    return status;
}

static void *find_driver_function(void *handle, const char *name) {
    void *real = rondo__inject_real_dlsym(handle, name);
    if (real == NULL) {
        return NULL;
    }
    if (strcmp(name, "cuGetProcAddress_v2") == 0) {
        return wrap_lookup("cuGetProcAddress", 12000, real);
    }
    if (strcmp(name, "cuGetProcAddress") == 0) {
        return wrap_lookup("cuGetProcAddress", 11030, real);
    }
    return rondo__inject_wrap_exported(name, real);
}

#ifdef __clang__
#define JUMPS
#define JUMP __attribute__((musttail))
#else
#define JUMPS __attribute__((optimize("O2")))
#define JUMP
#endif

void *rondo__inject_dlsym(void *handle, const char *name) __asm__("dlsym") EXPORTED JUMPS;

// The caller of dlsym counts for RTLD_NEXT, so the real one is entered by a jump, as its last act.
void *rondo__inject_dlsym(void *handle, const char *name) {
    if (name[0] == 'c' && name[1] == 'u' && handle != RTLD_NEXT) {
        return find_driver_function(handle, name);
    }
    JUMP return rondo__inject_get_dlsym()(handle, name);
}
