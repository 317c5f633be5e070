// backend/cuda/compile/cuda_module.h — device code that was loaded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

// A kernel out of machine-independent code (PTX), which the driver compiles.
rondo_status rondo__cuda_load_ptx(rondo__cuda_device *device, const char *text,
                                  const char *kernel_name, rondo__cu_function *out_function);
rondo_status rondo__cuda_get_function(rondo_device *device, const char *source,
                                      const char *const *options, size_t option_count,
                                      const char *kernel_name, void **out_function);
void rondo__cuda_want_function(rondo_device *device, const char *source, const char *const *options,
                               size_t option_count, const char *kernel_name);
rondo_status rondo__cuda_visit_kernels(rondo_device *device, rondo__kernel_code_visit visit,
                                       void *user_data);
size_t rondo__cuda_count_kernels(rondo_device *device);
rondo_status rondo__cuda_offer_kernel(rondo_device *device, const rondo__kernel_code *code);
bool rondo__cuda_name_function(rondo_device *device, const void *function, rondo__hash128 *out_key,
                               const char **out_name);
rondo_status rondo__cuda_find_function(rondo_device *device, rondo__hash128 key, const char *name,
                                       void **out_function, const char **out_name);
rondo_status rondo__cuda_prefer_shared(rondo_device *device, void *function, int percent);
void rondo__cuda_unload_modules(rondo__cuda_device *device);
