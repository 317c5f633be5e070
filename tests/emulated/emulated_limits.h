// emulated/emulated_limits.h — what a GPU's compiler refuses of a text that a host's takes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "emulated/emulated_text.h"

// Whether each kernel of the compiled text declares 48 KiB of shared memory at most; if not, says
// so in the words of ptxas. Memory that functions declare, which are no kernels, counts for each
// kernel of the text. `object` is a shared object of this machine's.
bool emulated_fits_shared(const emulated_buffer *object, emulated_buffer *log);
