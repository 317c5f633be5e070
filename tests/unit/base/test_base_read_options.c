// base/read_options.h: structs of older and newer callers.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/read_options.h"
#include "support/test.h"

typedef struct sample {
    size_t struct_size;
    int first;
    int second;
} sample;

static rondo_status read(const sample *given, sample *merged) {
    *merged = (sample){.struct_size = sizeof *merged, .first = 1, .second = 2};
    return rondo__read_options(given, merged, sizeof *merged, "sample_create", "sample");
}

TEST(test_base_read_options__defaults_stand_where_nothing_is_given) {
    sample merged;
    assert_int_equal(read(NULL, &merged), RONDO_STATUS_OK);
    assert_int_equal(merged.first, 1);
    sample older = {.struct_size = offsetof(sample, second), .first = 7, .second = 9};
    assert_int_equal(read(&older, &merged), RONDO_STATUS_OK);
    assert_int_equal(merged.first, 7);
    assert_int_equal(merged.second, 2);
    assert_int_equal(merged.struct_size, sizeof merged);
}

TEST(test_base_read_options__unknown_lengths_are_refused) {
    static const size_t sizes[] = {0, sizeof(size_t) - 1, sizeof(sample) + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        sample merged;
        sample given = {.struct_size = sizes[i], .first = 7, .second = 9};
        assert_int_equal(read(&given, &merged), RONDO_STATUS_INVALID);
        assert_int_equal(merged.first, 1);
        assert_string_equal(rondo_error_get_last()->call, "sample_create");
        assert_non_null(strstr(rondo_error_get_last()->message, "sizeof(sample)"));
    }
}

TEST_MAIN()
