// The vector loops obey the user's limit.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "kernel/host/simd/simd.h"
#include "support/test.h"

// The table is chosen once, by the first call of the process.
TEST(test_kernel_simd__variable_limits_the_level) {
    assert_int_equal(setenv("ONEDNN_MAX_CPU_ISA", "avx512_core", 1), 0);
    assert_string_equal(rondo__simd_get_limit(), "avx512_core");
    assert_int_equal(setenv("RONDO_MAX_CPU_ISA", "sse41", 1), 0);
    assert_string_equal(rondo__simd_get_limit(), "sse41");
    assert_string_equal(rondo__simd_get()->name, "baseline");
    assert_int_equal(setenv("RONDO_MAX_CPU_ISA", "all", 1), 0);
    assert_string_equal(rondo__simd_get()->name, "baseline");
}

TEST_MAIN()
