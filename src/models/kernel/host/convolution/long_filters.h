// kernel/host/convolution/long_filters.h — convolutions of one filter of many taps for each group.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"
#include "op/image/convolution.h"

// As the preparers of host_families.h; `shape` is the request's.
rondo_status rondo__host_prepare_long_filters(const rondo__kernel_request *request,
                                              const rondo__convolution *shape,
                                              rondo__kernel **out_kernel);
