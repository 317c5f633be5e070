// backend/cuda/cupti/cupti_api.h — CUPTI as a table of functions, loaded when the first profile
// wants it.
//
// Passed by pointer as the driver's table is, so that a test fills one of its own
// (tests/support/fake/fake_cupti.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cupti/cupti_abi.h"
#include "rondo/status.h"

typedef struct rondo__cupti_api {
#define RONDO__CUPTI_SYMBOL(need, name, arguments) rondo__cupti_result(*name) arguments;
#include "backend/cuda/cupti/cupti_symbols.h"
#undef RONDO__CUPTI_SYMBOL
    uint32_t version;  // 18: CUDA 12.0; since 13.0 10000 * major + 100 * minor + update
} rondo__cupti_api;

// Finds an exported symbol, as dlsym does; NULL when absent.
typedef void *(*rondo__cupti_resolve_function)(void *user_data, const char *symbol);

// Fills the table; `path` is for messages.
//
// Errors:    UNAVAILABLE (a function is missing, or too old: says which).
RONDO_MUST_USE rondo_status rondo__cupti_api_load(rondo__cupti_resolve_function resolve,
                                                  void *user_data, const char *path,
                                                  rondo__cupti_api *out_api);

// The process's CUPTI, loaded on first use.
//
// Errors:    UNAVAILABLE (not found, too old; with the cure).
// Ownership: lives as long as the process.
RONDO_MUST_USE rondo_status rondo__cupti_get_api(const rondo__cupti_api **out_api);

// Test hook: from now on rondo__cupti_get_api yields `api`; NULL goes back to the real one.
void rondo__cupti_set_api(const rondo__cupti_api *api);
