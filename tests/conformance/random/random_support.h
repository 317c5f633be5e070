// random_support.h — what the cases on random numbers share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/conformance.h"
#include "rondo/random.h"

enum {
    DRAW_WORDS = 61,     // what suite_draw writes
    DRAW_COUNTERS = 16,  // and uses up
};

// A generator of the context's device; on the fake one with its kernels as C functions.
rondo_generator *suite_create_generator(suite_context *context, uint64_t seed);
// DRAW_WORDS random words.
rondo_status suite_draw(rondo_generator *generator, rondo_stream *stream, uint32_t *out);
// The words at `address` are those of the counters from `first` on. Waits for the device.
#define ASSERT_DRAWN(context, address, seed, first) \
    suite_assert_drawn((context), (address), (seed), (first), __FILE__, __LINE__)
void suite_assert_drawn(suite_context *context, const uint32_t *address, uint64_t seed,
                        uint64_t first, const char *file, int line);
// The generator stands there.
#define ASSERT_STANDS(generator, seed, offset) \
    suite_assert_stands((generator), (seed), (offset), __FILE__, __LINE__)
void suite_assert_stands(rondo_generator *generator, uint64_t seed, uint64_t offset,
                         const char *file, int line);
// Copies device memory to the host, when all work is done.
void suite_read(suite_context *context, void *destination, const void *source, size_t bytes);
