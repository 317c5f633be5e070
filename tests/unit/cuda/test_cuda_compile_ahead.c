// Texts that threads compile ahead: each once, in parallel, and taken by whoever needs them.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/compile/compile_ahead.h"
#include "base/error.h"
#include "base/memory.h"
#include "support/test.h"

static atomic_int g_compiled;
static atomic_int g_running;
static atomic_int g_most;         // at once
static atomic_int g_sleep_us;     // of each
static atomic_int g_wanted_most;  // the first ones wait for each other until so many run

// The image is the text; one with "bad" in it does not compile.
static rondo_status compile(const char *source, const char *const *options, size_t option_count,
                            rondo__cuda_image *out_image) {
    (void)options;
    (void)option_count;
    const int running = atomic_fetch_add(&g_running, 1) + 1;
    int most = atomic_load(&g_most);
    while (running > most && !atomic_compare_exchange_weak(&g_most, &most, running)) {
    }
    for (int i = 0; i < 20000 && atomic_load(&g_most) < atomic_load(&g_wanted_most); ++i) {
        (void)usleep(1000);
    }
    (void)usleep((useconds_t)atomic_load(&g_sleep_us));
    atomic_fetch_sub(&g_running, 1);
    atomic_fetch_add(&g_compiled, 1);
    if (strstr(source, "bad") != NULL) {
        return RONDO_FAIL(BAD_DATA, "a text that does not compile");
    }
    out_image->byte_count = strlen(source) + 1;
    out_image->bytes = rondo__malloc(out_image->byte_count);
    if (out_image->bytes == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(out_image->bytes, source, out_image->byte_count);
    return RONDO_STATUS_OK;
}

static rondo__compile_want make_want(const char *source, uint64_t key) {
    static const char *const options[] = {"-DA=1", "-DB"};
    return (rondo__compile_want){.device = "cuda:0",
                                 .source = source,
                                 .options = options,
                                 .option_count = 2,
                                 .kernel_name = "kernel",
                                 .arch = 90,
                                 .key = {key, ~key}};
}

static rondo__compile_ahead *open_ahead(int32_t threads) {
    rondo__compile_ahead *ahead = NULL;
    atomic_store(&g_compiled, 0);
    atomic_store(&g_most, 0);
    rondo__compile_ahead_set_threads(threads);
    assert_int_equal(rondo__compile_ahead_create(&ahead), RONDO_STATUS_OK);
    return ahead;
}

TEST(test_cuda_compile_ahead__each_once) {
    enum { COUNT = 40 };
    rondo__compile_ahead *ahead = open_ahead(4);
    atomic_store(&g_wanted_most, 4);
    for (uint64_t i = 0; i < 2 * COUNT; ++i) {
        char text[32];  // copied: it is another one at the next turn
        (void)snprintf(text, sizeof text, "text %d", (int)(i % COUNT));
        const rondo__compile_want want = make_want(text, 1000 + i % COUNT);
        rondo__compile_ahead_want(ahead, &want);
    }
    int taken = 0;
    while (atomic_load(&g_compiled) < 4) {
        (void)usleep(100);
    }
    atomic_store(&g_wanted_most, 0);
    for (uint64_t i = COUNT; i-- > 0;) {
        rondo__cuda_image image = {0};
        char text[32];
        (void)snprintf(text, sizeof text, "text %d", (int)i);
        if (rondo__compile_ahead_take(ahead, (rondo__hash128){1000 + i, ~(1000 + i)}, &image)) {
            assert_string_equal(image.bytes, text);
            rondo__cuda_image_deinit(&image);
            taken += 1;
        }
        assert_false(
            rondo__compile_ahead_take(ahead, (rondo__hash128){1000 + i, ~(1000 + i)}, &image));
    }
    rondo__compile_ahead_destroy(ahead);
    // Those that no thread had begun were left to the caller.
    assert_int_equal(atomic_load(&g_compiled), taken);
    assert_true(taken >= 4);
    assert_int_equal(atomic_load(&g_most), 4);
}

TEST(test_cuda_compile_ahead__failures_are_left_to_the_caller) {
    rondo__compile_ahead *ahead = open_ahead(1);
    rondo__compile_want want = make_want("bad text", 7);
    rondo__compile_ahead_want(ahead, &want);
    while (atomic_load(&g_compiled) == 0) {
        (void)usleep(100);
    }
    rondo__cuda_image image = {0};
    assert_false(rondo__compile_ahead_take(ahead, want.key, &image));
    // It may be wanted again.
    want.source = "good text";
    rondo__compile_ahead_want(ahead, &want);
    while (atomic_load(&g_compiled) == 1) {
        (void)usleep(100);
    }
    assert_true(rondo__compile_ahead_take(ahead, want.key, &image));
    rondo__cuda_image_deinit(&image);
    rondo__compile_ahead_destroy(ahead);
}

// What is being compiled when the device closes is waited for; what waits is not compiled.
TEST(test_cuda_compile_ahead__ends_in_the_middle) {
    rondo__compile_ahead *ahead = open_ahead(2);
    atomic_store(&g_sleep_us, 20000);
    for (uint64_t i = 0; i < 100; ++i) {
        const rondo__compile_want want = make_want("text", i);
        rondo__compile_ahead_want(ahead, &want);
    }
    rondo__compile_ahead_destroy(ahead);
    assert_int_equal(atomic_load(&g_running), 0);
    assert_true(atomic_load(&g_compiled) < 100);
    rondo__compile_ahead_destroy(NULL);
    atomic_store(&g_sleep_us, 0);
}

TEST(test_cuda_compile_ahead__without_threads) {
    rondo__compile_ahead *ahead = open_ahead(0);
    const rondo__compile_want want = make_want("text", 5);
    rondo__cuda_image image = {0};
    rondo__compile_ahead_want(ahead, &want);
    assert_false(rondo__compile_ahead_take(ahead, want.key, &image));
    rondo__compile_ahead_destroy(ahead);
    ahead = open_ahead(-1);  // none while a test compiles in place of NVRTC
    rondo__compile_ahead_want(ahead, &want);
    assert_false(rondo__compile_ahead_take(ahead, want.key, &image));
    rondo__compile_ahead_destroy(ahead);
    assert_int_equal(atomic_load(&g_compiled), 0);
}

int main(void) {
    (void)setenv("RONDO_CACHE_DIR", "", 1);
    rondo__cuda_set_compiler(compile);
    return RUN_TESTS(NULL, NULL);
}
