// backend/cuda/cuda_use.h — what recorded work uses.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_CUDA_CUDA_USE_H
#define RONDO_BACKEND_CUDA_CUDA_USE_H

#include "backend/backend.h"

rondo_status rondo__cuda_find_allocation(rondo_device *device, const void *address,
                                         rondo__allocation *out_allocation);
rondo_status rondo__cuda_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);

#endif  // RONDO_BACKEND_CUDA_CUDA_USE_H
