// .npz archives: what NumPy wrote is read; what was damaged, one byte at a time, is refused or read
// as it was, and never reads beyond its end. Casting.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cast.h"
#include "file_bytes.h"
#include "name_index.h"
#include "npz.h"
#include "support/source_dir.h"
#include "support/test.h"

// An archive of tests/cli/arrays, copied so that reading beyond its end is found out.
static uint8_t *load(const char *name, size_t *out_count) {
    char path[512];
    cli_bytes bytes;
    (void)snprintf(path, sizeof path, "%s/tests/cli/arrays/%s", get_source_dir(), name);
    assert_true(cli_bytes_load(path, &bytes));
    uint8_t *copy = malloc(bytes.count);
    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.count);
    *out_count = bytes.count;
    cli_bytes_free(&bytes);
    return copy;
}

static void expect_entry(const cli_npz *npz, const char *name, const float *values) {
    rondo_tensor tensor;
    const cli_npz_entry *entry = cli_npz_find(npz, name);
    assert_non_null(entry);
    assert_true(cli_npz_read(npz, entry, RONDO_DTYPE_NONE, &tensor));
    assert_int_equal(tensor.dtype, RONDO_DTYPE_F32);
    assert_int_equal(tensor.shape.rank, 2);
    assert_memory_equal(tensor.data, values, 3 * sizeof *values);
    rondo_tensor_deinit(&tensor);
}

TEST(test_cli_npz__what_numpy_wrote) {
    static const float x[3] = {1.0f, -2.0f, 3.0f};
    static const float y[3] = {0.5f, 0.5f, -4.0f};
    static const char *const names[] = {"stored.npz", "packed.npz"};
#ifdef RONDO_HAS_ZLIB
    const size_t readable = 2;
#else
    const size_t readable = 1;
#endif
    for (size_t i = 0; i < readable; i++) {
        size_t count = 0;
        cli_npz npz;
        uint8_t *bytes = load(names[i], &count);
        assert_true(cli_npz_is(bytes, count));
        assert_true(cli_npz_open(bytes, count, names[i], &npz));
        assert_int_equal(npz.count, i == 0 ? 2 : 3);
        expect_entry(&npz, "x", x);
        expect_entry(&npz, "y", y);
        assert_null(cli_npz_find(&npz, "q"));
        cli_npz_close(&npz);
        free(bytes);
    }
}

// Opens and reads all entries; the results are not looked at.
static void read_all(const uint8_t *bytes, size_t count) {
    cli_npz npz;
    if (!cli_npz_open(bytes, count, "damaged", &npz)) {
        return;
    }
    for (size_t i = 0; i < npz.count; i++) {
        rondo_tensor tensor;
        if (cli_npz_read(&npz, &npz.entries[i], RONDO_DTYPE_NONE, &tensor)) {
            rondo_tensor_deinit(&tensor);
        }
    }
    cli_npz_close(&npz);
}

TEST(test_cli_npz__damaged_archives) {
    static const char *const names[] = {"stored.npz", "packed.npz"};
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    // Thousands of messages are meant; they need not be seen.
    fflush(stderr);
    const int shown = dup(STDERR_FILENO);
    const int nowhere = open("/dev/null", O_WRONLY);
    assert_true(shown >= 0 && nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0);
    for (size_t n = 0; n < 2; n++) {
        size_t count = 0;
        uint8_t *bytes = load(names[n], &count);
        for (size_t i = 0; i < count; i++) {
            const uint8_t kept = bytes[i];
            for (size_t k = 0; k < sizeof values; k++) {
                bytes[i] = values[k];
                read_all(bytes, count);
            }
            bytes[i] = kept;
        }
        for (size_t length = 0; length < count; length++) {
            uint8_t *cut = malloc(length + 1);
            assert_non_null(cut);
            memcpy(cut, bytes, length);
            read_all(cut, length);
            free(cut);
        }
        free(bytes);
    }
    fflush(stderr);
    assert_true(dup2(shown, STDERR_FILENO) >= 0);
    (void)close(shown);
    (void)close(nowhere);
}

TEST(test_cli_npz__a_checksum_is_checked) {
    size_t count = 0;
    cli_npz npz;
    rondo_tensor tensor;
    uint8_t *bytes = load("stored.npz", &count);
    assert_true(cli_npz_open(bytes, count, "stored.npz", &npz));
    const cli_npz_entry *entry = cli_npz_find(&npz, "x");
    assert_non_null(entry);
    for (size_t i = count; i-- > 0;) {  // 3.0f of x, the only one
        if (bytes[i] == 0x40 && bytes[i - 1] == 0x40) {
            bytes[i] = 0x41;
        }
    }
    assert_false(cli_npz_read(&npz, entry, RONDO_DTYPE_NONE, &tensor));
    cli_npz_close(&npz);
    free(bytes);
}

static void put_number(uint8_t *at, uint64_t value, size_t width) {
    for (size_t i = 0; i < width; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

// An archive of one entry of `bytes` bytes that is listed `count` times.
static uint8_t *make_shared(uint16_t count, uint32_t bytes, size_t *out_bytes) {
    enum { LOCAL = 30, LISTED = 47, END = 22 };
    const size_t list_at = LOCAL + 1 + bytes;
    *out_bytes = list_at + (size_t)count * LISTED + END;
    uint8_t *archive = calloc(*out_bytes, 1);
    assert_non_null(archive);
    memcpy(archive, "PK\3\4", 4);
    put_number(archive + 18, bytes, 4);
    put_number(archive + 22, bytes, 4);
    put_number(archive + 26, 1, 2);
    for (size_t i = 0; i < count; i++) {
        uint8_t *listed = archive + list_at + i * LISTED;
        memcpy(listed, "PK\1\2", 4);
        put_number(listed + 20, bytes, 4);
        put_number(listed + 24, bytes, 4);
        put_number(listed + 28, 1, 2);
        listed[46] = (uint8_t)('a' + i);
    }
    uint8_t *end = archive + list_at + (size_t)count * LISTED;
    memcpy(end, "PK\5\6", 4);
    put_number(end + 8, count, 2);
    put_number(end + 10, count, 2);
    put_number(end + 12, (uint64_t)count * LISTED, 4);
    put_number(end + 16, list_at, 4);
    return archive;
}

// Many entries of the same bytes would unpack into any amount.
TEST(test_cli_npz__entries_have_bytes_of_their_own) {
    for (uint16_t count = 1; count <= 20; count++) {
        size_t bytes = 0;
        cli_npz npz;
        uint8_t *archive = make_shared(count, 4000, &bytes);
        assert_int_equal(cli_npz_open(archive, bytes, "shared", &npz), count == 1);
        cli_npz_close(&npz);
        free(archive);
    }
}

// ---- names ------------------------------------------------------------------------------------

// With a search through all names for each it would not end before the test's time has.
TEST(test_cli_npz__many_names) {
    enum { COUNT = 65535 };
    cli_name_index index;
    char name[32];
    cli_tensor_set set = {.count = COUNT, .names = calloc(COUNT, sizeof(char *))};
    assert_non_null(set.names);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "layer/%zu", COUNT - i);
        set.names[i] = strdup(name);
    }
    assert_true(cli_name_index_init(&set, "many", &index));
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(cli_name_index_find(&index, set.names[i]), i);
        snprintf(name, sizeof name, "layer_%zu", COUNT - i);
        assert_int_equal(cli_name_index_find(&index, name), i);
        snprintf(name, sizeof name, "none/%zu", i);
        assert_true(cli_name_index_find(&index, name) == SIZE_MAX);
    }
    cli_name_index_free(&index);
    // Two of one name: which of them would be meant?
    set.names[7][6] = '\0';
    set.names[5][6] = '\0';
    assert_false(cli_name_index_init(&set, "many", &index));
    cli_name_index_free(&index);
    for (size_t i = 0; i < COUNT; i++) {
        free(set.names[i]);
    }
    free(set.names);
}

// ---- casting ----------------------------------------------------------------------------------

static rondo_tensor make(rondo_dtype dtype, const void *values, int64_t count) {
    const rondo_shape shape = {.rank = 1, .extent = {count}};
    rondo_tensor tensor;
    assert_int_equal(rondo_tensor_init(dtype, &shape, &tensor), RONDO_STATUS_OK);
    memcpy(tensor.data, values, rondo_tensor_get_bytes(&tensor));
    return tensor;
}

static bool survives(rondo_dtype from, const void *value, rondo_dtype to) {
    rondo_tensor tensor = make(from, value, 1);
    const bool is_cast = cli_cast("test", to, &tensor);
    assert_int_equal(tensor.dtype, is_cast ? to : from);
    rondo_tensor_deinit(&tensor);
    return is_cast;
}

TEST(test_cli_npz__casts_keep_every_value) {
    const double whole = -7.0;
    const double half = 0.5;
    const double large = 1e300;
    const double nan = (double)NAN;
    const double infinite = (double)INFINITY;
    const int64_t most = INT64_MAX;
    const int64_t least = INT64_MIN;
    const uint64_t top = UINT64_MAX;
    const int64_t byte = 255;
    const int64_t two = 2;
    assert_true(survives(RONDO_DTYPE_F64, &whole, RONDO_DTYPE_I8));
    assert_false(survives(RONDO_DTYPE_F64, &whole, RONDO_DTYPE_U64));
    assert_false(survives(RONDO_DTYPE_F64, &half, RONDO_DTYPE_I64));
    assert_true(survives(RONDO_DTYPE_F64, &half, RONDO_DTYPE_F16));
    assert_false(survives(RONDO_DTYPE_F64, &large, RONDO_DTYPE_F32));
    assert_false(survives(RONDO_DTYPE_F64, &large, RONDO_DTYPE_BF16));
    assert_true(survives(RONDO_DTYPE_F64, &infinite, RONDO_DTYPE_BF16));
    assert_true(survives(RONDO_DTYPE_F64, &nan, RONDO_DTYPE_F32));
    assert_false(survives(RONDO_DTYPE_F64, &nan, RONDO_DTYPE_I32));
    assert_false(survives(RONDO_DTYPE_F64, &infinite, RONDO_DTYPE_I64));
    assert_true(survives(RONDO_DTYPE_I64, &most, RONDO_DTYPE_U64));
    assert_false(survives(RONDO_DTYPE_I64, &least, RONDO_DTYPE_U64));
    assert_false(survives(RONDO_DTYPE_U64, &top, RONDO_DTYPE_I64));
    assert_true(survives(RONDO_DTYPE_I64, &byte, RONDO_DTYPE_U8));
    assert_false(survives(RONDO_DTYPE_I64, &byte, RONDO_DTYPE_I8));
    assert_false(survives(RONDO_DTYPE_I64, &two, RONDO_DTYPE_BOOL));
    const float reals[3] = {1.0f, -128.0f, 127.0f};
    const int8_t bytes[3] = {1, -128, 127};
    rondo_tensor tensor = make(RONDO_DTYPE_F32, reals, 3);
    assert_true(cli_cast("test", RONDO_DTYPE_I8, &tensor));
    assert_memory_equal(tensor.data, bytes, sizeof bytes);
    assert_true(cli_cast("test", RONDO_DTYPE_F32, &tensor));
    assert_memory_equal(tensor.data, reals, sizeof reals);
    rondo_tensor_deinit(&tensor);
}

TEST_MAIN()
