// philox.cu - the text that programs put in front of their own kernels.
// SPDX-License-Identifier: Apache-2.0
#include "philox.cuh"
