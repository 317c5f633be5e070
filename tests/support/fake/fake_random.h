// support/fake/fake_random.h — the kernels of generators for the fake driver: the C functions that
// the host backend runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// After each fake_cuda_reset; the driver forgets its kernels then.
void fake_random_set_kernels(void);
