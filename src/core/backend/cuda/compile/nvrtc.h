// backend/cuda/compile/nvrtc.h — CUDA C text to machine code, at run time.
//
// NVRTC is NVIDIA's compiler as a library. It needs no GPU, so a test compiles every text of the
// library for several architectures on any machine that has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// Machine code for one architecture, or PTX where the compiler is older than the chip.
typedef struct rondo__cuda_image {
    char *bytes;  // PTX is terminated by a zero that byte_count includes
    size_t byte_count;
} rondo__cuda_image;

// Compiles `source` for compute capability `arch` (10 * major + minor: 90 is sm_90). Pure: looks at
// no device and no cache.
//
// options    further NVRTC options, such as "-DTILE=4"; may be NULL when option_count is 0.
//
// Errors:    UNAVAILABLE (no NVRTC: says how to get it), BAD_DATA (the compiler's log is in the log
//            sink and its first error in the message), NO_MEMORY, DRIVER (NVRTC failed otherwise).
// Ownership: free with rondo__cuda_image_deinit.
// Cost:      tens of milliseconds and more.
RONDO_MUST_USE rondo_status rondo__cuda_compile(const char *source, const char *const *options,
                                                size_t option_count, int32_t arch,
                                                rondo__cuda_image *out_image);
// The same, with the PTX that the machine code was made of; for tests that read it.
RONDO_MUST_USE rondo_status rondo__cuda_compile_both(const char *source, const char *const *options,
                                                     size_t option_count, int32_t arch,
                                                     rondo__cuda_image *out_image,
                                                     rondo__cuda_image *out_ptx);
void rondo__cuda_image_deinit(rondo__cuda_image *image);

// For tests: compiles in place of NVRTC; NULL: NVRTC again. Fills *out_image with bytes that
// rondo__free can free.
typedef rondo_status (*rondo__cuda_compiler)(const char *source, const char *const *options,
                                             size_t option_count, rondo__cuda_image *out_image);
void rondo__cuda_set_compiler(rondo__cuda_compiler compiler);
bool rondo__cuda_is_substituted(void);

// NVRTC's version, 1000 * major + 10 * minor.
//
// Errors:    UNAVAILABLE (no NVRTC), DRIVER.
RONDO_MUST_USE rondo_status rondo__cuda_get_compiler_version(int32_t *out_version);
