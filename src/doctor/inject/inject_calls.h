// doctor/inject/inject_calls.h — the functions that stand in front of the driver's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// What a program gets in place of `real`: our function where we have one of this exported name, and
// `real` otherwise.
void *rondo__inject_wrap_exported(const char *exported, void *real);

// The same for a base name that cuGetProcAddress was asked for, with the version and whether the
// form with a default stream for each thread is meant.
void *rondo__inject_wrap_named(const char *name, int version, int is_per_thread, void *real);
