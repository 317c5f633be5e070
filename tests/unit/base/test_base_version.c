// The version in the header, in the library and in the build agree.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "rondo/version.h"
#include "support/test.h"

TEST(test_base_version__text_matches_numbers) {
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR,
             RONDO_VERSION_PATCH);
    assert_string_equal(rondo_version_get_text(), expected);
    assert_int_equal(rondo_version_get_number(), RONDO_VERSION_NUMBER);
}

TEST_MAIN()
