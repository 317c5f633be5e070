// support/gpu_present.h — whether tests run on the GPU, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

// Whether cuda:0 opens. Where it does not, says why, and counts a failure if RONDO_REQUIRE wants
// it.
bool gpu_is_present(int *in_out_failed_count);
