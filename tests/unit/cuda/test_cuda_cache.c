// The disk cache of compiled kernels: round trip, damage, folders that cannot be used.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/compile/kernel_cache.h"
#include "base/error.h"
#include "base/memory.h"
#include "rondo/status.h"
#include "support/test.h"

static const rondo__hash128 g_key = {.low = 0x1234, .high = 0x5678};
static char g_folder[64];

static int set_up(void **state) {
    (void)state;
    snprintf(g_folder, sizeof(g_folder), "/tmp/rondo_test_cuda_cache_XXXXXX");
    if (mkdtemp(g_folder) == NULL) {
        return -1;
    }
    return setenv("RONDO_CACHE_DIR", g_folder, 1);
}

static void get_entry_path(char *out_path, size_t bytes) {
    char digits[33];
    rondo__hash128_format(g_key, digits);
    snprintf(out_path, bytes, "%s/kernels/%s.bin", g_folder, digits);
}

static int tear_down(void **state) {
    (void)state;
    char path[256];
    get_entry_path(path, sizeof(path));
    (void)unlink(path);
    snprintf(path, sizeof(path), "%s/kernels", g_folder);
    (void)rmdir(path);
    return rmdir(g_folder);
}

static char g_code[] = "not really machine code";

static void store(void) {
    rondo__kernel_cache_store(g_key,
                              &(rondo__cuda_image){.bytes = g_code, .byte_count = sizeof(g_code)});
}

TEST(test_cuda_cache__round_trip) {
    rondo__cuda_image image;
    (void)RONDO_FAIL(STATE, "from before");
    assert_false(rondo__kernel_cache_load(g_key, &image));
    assert_string_equal(rondo_error_get_last()->message, "from before");
    store();
    assert_true(rondo__kernel_cache_load(g_key, &image));
    assert_int_equal(image.byte_count, sizeof(g_code));
    assert_memory_equal(image.bytes, g_code, sizeof(g_code));
    rondo__cuda_image_deinit(&image);
    assert_false(rondo__kernel_cache_load((rondo__hash128){.low = 1}, &image));
}

static size_t read_entry(unsigned char *bytes, size_t capacity) {
    char path[256];
    get_entry_path(path, sizeof(path));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, capacity, file);
    fclose(file);
    return count;
}

static void write_entry(const unsigned char *bytes, size_t count) {
    char path[256];
    get_entry_path(path, sizeof(path));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    fclose(file);
}

// Every single flipped byte and every length but the right one is noticed.
TEST(test_cuda_cache__damage_is_noticed) {
    store();
    unsigned char bytes[256];
    size_t count = read_entry(bytes, sizeof(bytes));
    rondo__cuda_image image;
    for (size_t i = 0; i < count; i++) {
        bytes[i] ^= 0x10;
        write_entry(bytes, count);
        assert_false(rondo__kernel_cache_load(g_key, &image));
        assert_null(image.bytes);
        bytes[i] ^= 0x10;
    }
    for (size_t length = 0; length < count; length++) {
        write_entry(bytes, length);
        assert_false(rondo__kernel_cache_load(g_key, &image));
    }
    write_entry(bytes, count);
    assert_true(rondo__kernel_cache_load(g_key, &image));
    rondo__cuda_image_deinit(&image);
}

static bool note_allocation(void *user_data) {
    *(size_t *)user_data += 1;
    return false;
}

// A file that is no cache entry, or says another size than it has, costs no memory of its size.
TEST(test_cuda_cache__size_is_checked_first) {
    unsigned char bytes[256];
    rondo__cuda_image image;
    char path[256];
    size_t allocation_count = 0;
    store();
    const size_t count = read_entry(bytes, sizeof(bytes));
    get_entry_path(path, sizeof(path));
    rondo__memory_set_fault(note_allocation, &allocation_count);
    assert_int_equal(truncate(path, (off_t)1 << 33), 0);  // sparse
    assert_false(rondo__kernel_cache_load(g_key, &image));
    bytes[0] ^= 1;
    write_entry(bytes, count);
    assert_false(rondo__kernel_cache_load(g_key, &image));
    bytes[0] ^= 1;
    bytes[8 + 5] = 1;  // it says 1 TiB more
    write_entry(bytes, count);
    assert_false(rondo__kernel_cache_load(g_key, &image));
    rondo__memory_set_fault(NULL, NULL);
    assert_int_equal(allocation_count, 0);
}

TEST(test_cuda_cache__no_usable_folder_is_fine) {
    (void)RONDO_FAIL(STATE, "from before");
    static const char *const folders[] = {"", "/proc/none/such", "/dev/null"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        assert_int_equal(setenv("RONDO_CACHE_DIR", folders[i], 1), 0);
        store();
        rondo__cuda_image image;
        assert_false(rondo__kernel_cache_load(g_key, &image));
    }
    assert_string_equal(rondo_error_get_last()->message, "from before");
    assert_int_equal(setenv("RONDO_CACHE_DIR", g_folder, 1), 0);
}

TEST(test_cuda_cache__folder_follows_the_environment) {
    char path[1024];
    assert_true(rondo__kernel_cache_get_folder(path, sizeof(path)));
    assert_string_equal(path, g_folder);
    assert_int_equal(unsetenv("RONDO_CACHE_DIR"), 0);
    assert_int_equal(setenv("XDG_CACHE_HOME", "/some/cache", 1), 0);
    assert_true(rondo__kernel_cache_get_folder(path, sizeof(path)));
    assert_string_equal(path, "/some/cache/rondo");
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(setenv("HOME", "/home/somebody", 1), 0);
    assert_true(rondo__kernel_cache_get_folder(path, sizeof(path)));
    assert_string_equal(path, "/home/somebody/.cache/rondo");
    assert_int_equal(unsetenv("HOME"), 0);
    assert_false(rondo__kernel_cache_get_folder(path, sizeof(path)));
    assert_int_equal(setenv("RONDO_CACHE_DIR", g_folder, 1), 0);
    assert_false(rondo__kernel_cache_get_folder(path, 3));
}

TEST_MAIN_WITH(set_up, tear_down)
