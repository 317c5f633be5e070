// kernel/cuda/arrange/cuda_order.h — scatters whose updates meet, in the order of the updates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/cuda/cuda_steps.h"

// Adds what a ScatterElements or ScatterND with attribute reduction does to its output, which is a
// copy of input 0 by then. False where the op has no reduction.
bool rondo__cuda_add_reduction(rondo__cuda_kernel *kernel);
