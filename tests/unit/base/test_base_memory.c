// The heap, its fault hook, growing arrays and texts, hashes.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "support/test.h"

// Fails the allocation with ordinal `fail_at` (from 0).
typedef struct fault_plan {
    int ordinal;
    int fail_at;
} fault_plan;

static bool fail_nth(void *user_data) {
    fault_plan *plan = user_data;
    return plan->ordinal++ == plan->fail_at;
}

TEST(test_base_memory__each_function_reports_failure) {
    for (int kind = 0; kind < 5; ++kind) {
        fault_plan plan = {.fail_at = 0};
        uint64_t before = rondo_error_get_last()->sequence;
        rondo__memory_set_fault(fail_nth, &plan);
        void *address = NULL;
        switch (kind) {
            case 0:
                address = rondo__malloc(10);
                break;
            case 1:
                address = rondo__calloc(2, 10);
                break;
            case 2:
                address = rondo__malloc_aligned(10, 64);
                break;
            case 3:
                address = rondo__strdup("text");
                break;
            default:
                address = rondo__strformat("%d", 5);
                break;
        }
        rondo__memory_set_fault(NULL, NULL);
        assert_null(address);
        assert_int_equal(plan.ordinal, 1);
        assert_int_equal(rondo_error_get_last()->status, RONDO_STATUS_NO_MEMORY);
        assert_int_equal(rondo_error_get_last()->sequence, before + 1);
    }
}

TEST(test_base_memory__products_are_checked) {
    assert_null(rondo__calloc(SIZE_MAX / 2, 4));
    uint64_t *array = NULL;
    size_t capacity = 0;
    assert_int_equal(RONDO__ARRAY_RESERVE(array, capacity, SIZE_MAX / 4), RONDO_STATUS_NO_MEMORY);
    assert_null(array);
    assert_int_equal(capacity, 0);
}

TEST(test_base_memory__sizes_of_zero_and_alignment) {
    void *a = rondo__malloc(0);
    void *b = rondo__malloc(0);
    void *c = rondo__calloc(0, 8);
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    assert_ptr_not_equal(a, b);
    rondo__free(a);
    rondo__free(b);
    rondo__free(c);
    a = rondo__malloc_aligned(3, 4096);
    assert_int_equal((uintptr_t)a % 4096, 0);
    rondo__free(a);
}

TEST(test_base_memory__arrays_grow_zeroed_and_survive_failure) {
    int *array = NULL;
    size_t capacity = 0;
    assert_int_equal(RONDO__ARRAY_RESERVE(array, capacity, 3), RONDO_STATUS_OK);
    int *numbers = array;
    for (size_t i = 0; i < capacity; ++i) {
        assert_int_equal(numbers[i], 0);
        numbers[i] = (int)i + 1;
    }
    size_t former = capacity;
    fault_plan plan = {.fail_at = 0};
    rondo__memory_set_fault(fail_nth, &plan);
    assert_int_equal(RONDO__ARRAY_RESERVE(array, capacity, 1000), RONDO_STATUS_NO_MEMORY);
    rondo__memory_set_fault(NULL, NULL);
    assert_ptr_equal(array, numbers);
    assert_int_equal(capacity, former);
    assert_int_equal(RONDO__ARRAY_RESERVE(array, capacity, 1000), RONDO_STATUS_OK);
    numbers = array;
    assert_int_equal(numbers[former - 1], (int)former);
    assert_int_equal(numbers[former], 0);
    assert_int_equal(numbers[999], 0);
    rondo__free(array);
}

TEST(test_base_memory__text_appends_and_escapes) {
    rondo__text text = {0};
    rondo__text_append(&text, "%s-%d ", "a", 12);
    rondo__text_append_json(&text, "q\"b\\\n\x01\xc3\xa4\xff\xed\xa0\x80");
    assert_string_equal(text.bytes,
                        "a-12 \"q\\\"b\\\\\\n\\u0001\xc3\xa4\\ufffd\\ufffd\\ufffd\\ufffd\"");
    assert_int_equal(text.length, strlen(text.bytes));
    assert_int_equal(rondo__text_get_status(&text), RONDO_STATUS_OK);
    fault_plan plan = {.fail_at = 0};
    rondo__memory_set_fault(fail_nth, &plan);
    rondo__text_append(&text, "%1000d", 1);
    rondo__memory_set_fault(NULL, NULL);
    rondo__text_append(&text, "ignored");
    assert_int_equal(rondo__text_get_status(&text), RONDO_STATUS_NO_MEMORY);
    rondo__text_deinit(&text);
    assert_null(text.bytes);
}

TEST(test_base_memory__hashes_have_known_values) {
    // Published FNV-1a vectors.
    assert_true(rondo__hash64(RONDO__HASH_SEED, "", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(rondo__hash64(RONDO__HASH_SEED, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(rondo__hash64(RONDO__HASH_SEED, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    // Continuing is the same as hashing at once.
    uint64_t part = rondo__hash64(RONDO__HASH_SEED, "foo", 3);
    assert_true(rondo__hash64(part, "bar", 3) == UINT64_C(0x85944171f73967e8));
}

TEST(test_base_memory__hash128_tells_near_texts_apart) {
    char bytes[64] = {0};
    rondo__hash128 seen[65 * 8 + 65];
    size_t count = 0;
    for (size_t length = 0; length <= sizeof bytes; ++length) {
        seen[count++] = rondo__hash128_bytes(bytes, length);
    }
    for (size_t bit = 0; bit < 8 * sizeof bytes; ++bit) {
        bytes[bit / 8] = (char)(1u << (bit % 8));
        seen[count++] = rondo__hash128_bytes(bytes, sizeof bytes);
        bytes[bit / 8] = 0;
    }
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < i; ++j) {
            assert_true(seen[i].low != seen[j].low);
            assert_true(seen[i].high != seen[j].high);
        }
    }
    char text[33];
    rondo__hash128 fixed = {.low = 0xab, .high = UINT64_C(0x0123456789abcdef)};
    rondo__hash128_format(fixed, text);
    assert_string_equal(text, "0123456789abcdef00000000000000ab");
}

TEST_MAIN()
