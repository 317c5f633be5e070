// Element types, shapes, half precision, tensors and the storages behind them.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "base/memory.h"
#include "support/test.h"
#include "tensor/storage.h"

TEST(test_tensor_tensor__dtype_table) {
    assert_int_equal(rondo_dtype_get_bytes(RONDO_DTYPE_F32), 4);
    assert_int_equal(rondo_dtype_get_bytes(RONDO_DTYPE_BOOL), 1);
    assert_int_equal(rondo_dtype_get_bytes(RONDO_DTYPE_NONE), 0);
    assert_int_equal(rondo_dtype_get_bytes((rondo_dtype)99), 0);
    assert_string_equal(rondo_dtype_get_name(RONDO_DTYPE_BF16), "bf16");
    assert_string_equal(rondo_dtype_get_name((rondo_dtype)-3), "none");
}

TEST(test_tensor_tensor__counts_and_overflow) {
    rondo_shape scalar = {0};
    rondo_shape plain = {.rank = 3, .extent = {2, 3, 4}};
    rondo_shape empty = {.rank = 2, .extent = {0, 5}};
    rondo_shape negative = {.rank = 1, .extent = {-1}};
    rondo_shape huge = {.rank = 2, .extent = {INT64_C(1) << 62, 4}};
    rondo_shape huge_and_empty = {.rank = 3, .extent = {INT64_C(1) << 62, 4, 0}};
    rondo_shape deep = {.rank = RONDO_RANK_MAX + 1};
    assert_int_equal(rondo_shape_get_count(&scalar), 1);
    assert_int_equal(rondo_shape_get_count(&plain), 24);
    assert_int_equal(rondo_shape_get_count(&empty), 0);
    assert_int_equal(rondo_shape_get_count(&negative), -1);
    assert_int_equal(rondo_shape_get_count(&huge), -1);
    assert_int_equal(rondo_shape_get_count(&huge_and_empty), -1);
    assert_int_equal(rondo_shape_get_count(&deep), -1);
    rondo_tensor tensor;
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &huge, &tensor), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &huge_and_empty, &tensor),
                     RONDO_STATUS_INVALID);
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &deep, &tensor), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_NONE, &plain, &tensor), RONDO_STATUS_INVALID);
    assert_null(tensor.data);
    rondo_tensor broken = {.dtype = RONDO_DTYPE_F32, .shape = huge};
    assert_int_equal(rondo_tensor_get_bytes(&broken), 0);
}

TEST(test_tensor_tensor__shape_text) {
    char buffer[32];
    char small[6];
    rondo_shape plain = {.rank = 3, .extent = {2, -1, 40}};
    rondo_shape scalar = {0};
    rondo_shape other = {.rank = 3, .extent = {2, -1, 41}};
    assert_string_equal(rondo_shape_format(&plain, buffer, sizeof buffer), "[2, -1, 40]");
    assert_string_equal(rondo_shape_format(&scalar, buffer, sizeof buffer), "[]");
    assert_string_equal(rondo_shape_format(&plain, small, sizeof small), "[2, -");
    assert_true(rondo_shape_is_equal(&plain, &plain));
    assert_false(rondo_shape_is_equal(&plain, &other));
    assert_false(rondo_shape_is_equal(&plain, &scalar));
}

TEST(test_tensor_tensor__bytes_live_as_long_as_the_last_share) {
    rondo_tensor first = {.shape = {.rank = 2, .extent = {3, 5, 99}}};
    // The shape may lie in the tensor that is filled; extents beyond the rank are cleared.
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_I64, &first.shape, &first), RONDO_STATUS_OK);
    assert_int_equal((uintptr_t)first.data % 64, 0);
    assert_int_equal(rondo_tensor_get_bytes(&first), 120);
    assert_int_equal(first.shape.extent[2], 0);
    int64_t *values = first.data;
    for (int i = 0; i < 15; ++i) {
        assert_int_equal(values[i], 0);
        values[i] = i;
    }
    rondo_tensor second;
    rondo_tensor_share(&first, &second);
    rondo_tensor_deinit(&first);
    assert_null(first.data);
    assert_int_equal(((int64_t *)second.data)[14], 14);
    rondo_tensor_deinit(&second);
    rondo_tensor_deinit(&second);
    rondo_tensor_deinit(NULL);
}

static void count_release(void *user_data) {
    ++*(int *)user_data;
}

static bool fail_always(void *user_data) {
    (void)user_data;
    return true;
}

TEST(test_tensor_tensor__foreign_bytes_are_given_back_once) {
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    int released = 0;
    rondo_storage *storage;
    rondo_shape shape = {.rank = 1, .extent = {6}};
    rondo_tensor a;
    rondo_tensor b;
    assert_int_equal(rondo__storage_wrap(count_release, &released, &storage), RONDO_STATUS_OK);
    assert_int_equal(rondo__tensor_init_storage(RONDO_DTYPE_F32, &shape, numbers, storage, &a),
                     RONDO_STATUS_OK);
    rondo_tensor_share(&a, &b);
    rondo__storage_release(storage);
    rondo_tensor_deinit(&a);
    assert_int_equal(released, 0);
    assert_ptr_equal(b.data, numbers);
    rondo_tensor_deinit(&b);
    assert_int_equal(released, 1);

    rondo__memory_set_fault(fail_always, NULL);
    assert_int_equal(rondo__storage_wrap(count_release, &released, &storage),
                     RONDO_STATUS_NO_MEMORY);
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &a), RONDO_STATUS_NO_MEMORY);
    rondo__memory_set_fault(NULL, NULL);
    assert_int_equal(released, 1);
    assert_null(a.storage);
}

TEST(test_tensor_tensor__every_half_survives_the_round_trip) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
        float value = rondo_f16_to_float((uint16_t)bits);
        uint16_t back = rondo_f16_from_float(value);
        bool is_nan = (bits & 0x7c00u) == 0x7c00u && (bits & 0x3ffu) != 0;
        assert_int_equal(isnan(value) != 0, is_nan);
        if (is_nan) {
            assert_int_equal(back, bits | 0x200u);
        } else {
            assert_int_equal(back, bits);
        }
    }
}

TEST(test_tensor_tensor__half_rounds_to_nearest_even) {
    assert_int_equal(rondo_f16_from_float(1.0f), 0x3c00);
    assert_int_equal(rondo_f16_from_float(-2.0f), 0xc000);
    assert_int_equal(rondo_f16_from_float(65504.0f), 0x7bff);
    assert_int_equal(rondo_f16_from_float(65519.0f), 0x7bff);
    assert_int_equal(rondo_f16_from_float(65520.0f), 0x7c00);
    assert_int_equal(rondo_f16_from_float(-1e30f), 0xfc00);
    assert_int_equal(rondo_f16_from_float(1.0f + 0x1p-11f), 0x3c00);
    assert_int_equal(rondo_f16_from_float(1.0f + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(rondo_f16_from_float(1.0f + 0x1p-11f + 0x1p-20f), 0x3c01);
    assert_int_equal(rondo_f16_from_float(0x1p-24f), 1);
    assert_int_equal(rondo_f16_from_float(0x1p-25f), 0);
    assert_int_equal(rondo_f16_from_float(0x1.000002p-25f), 1);
    assert_int_equal(rondo_f16_from_float(3 * 0x1p-25f), 2);
    assert_int_equal(rondo_f16_from_float(-0.0f), 0x8000);
    assert_int_equal(rondo_f16_from_float(1e-40f), 0);
}

TEST_MAIN()
