// SPDX-License-Identifier: Apache-2.0

#include "conformance/random/random_support.h"

#include "support/fake/fake_random.h"

rondo_generator *suite_create_generator(suite_context *context, uint64_t seed) {
    if (context->is_fake) {
        fake_random_set_kernels();
    }
    rondo_generator *generator;
    ASSERT_OK(rondo_generator_create(context->device, seed, &generator));
    return generator;
}

rondo_status suite_draw(rondo_generator *generator, rondo_stream *stream, uint32_t *out) {
    return rondo_random_words(generator, stream, out, DRAW_WORDS);
}

void suite_read(suite_context *context, void *destination, const void *source, size_t bytes) {
    ASSERT_OK(rondo_device_synchronize(context->device));
    ASSERT_OK(
        rondo_stream_copy(context->stream, destination, source, bytes, RONDO_COPY_DEVICE_TO_HOST));
    ASSERT_OK(rondo_stream_synchronize(context->stream));
}

void suite_assert_drawn(suite_context *context, const uint32_t *address, uint64_t seed,
                        uint64_t first, const char *file, int line) {
    uint32_t drawn[DRAW_WORDS];
    suite_read(context, drawn, address, sizeof drawn);
    for (uint32_t i = 0; i < DRAW_WORDS; ++i) {
        uint32_t words[4];
        rondo_random_philox(seed, 0, first + i / 4, words);
        if (drawn[i] != words[i % 4]) {
            print_error("word %u is %08x, not %08x of counter %llu and seed %llu\n", i, drawn[i],
                        words[i % 4], (unsigned long long)(first + i / 4),
                        (unsigned long long)seed);
            _fail(file, line);
        }
    }
}

void suite_assert_stands(rondo_generator *generator, uint64_t seed, uint64_t offset,
                         const char *file, int line) {
    rondo_generator_state state;
    suite_assert_status(rondo_generator_get_state(generator, &state), RONDO_STATUS_OK,
                        "rondo_generator_get_state", file, line);
    if (state.seed != seed || state.offset != offset) {
        print_error("the generator stands at %llu, %llu, not at %llu, %llu\n",
                    (unsigned long long)state.seed, (unsigned long long)state.offset,
                    (unsigned long long)seed, (unsigned long long)offset);
        _fail(file, line);
    }
}
