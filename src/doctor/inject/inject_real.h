// doctor/inject/inject_real.h — the real functions, behind any wrapper.
// SPDX-License-Identifier: Apache-2.0
#pragma once

typedef void *(*rondo__inject_dlsym_function)(void *handle, const char *name);

// The C library's dlsym.
rondo__inject_dlsym_function rondo__inject_get_dlsym(void);
void *rondo__inject_real_dlsym(void *handle, const char *name);

// The driver's own function; NULL: there is no driver or no such function.
void *rondo__inject_find_real(const char *exported);
