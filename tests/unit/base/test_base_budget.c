// Budgets: what counts, for how long, and what happens at the limit; blocks and where they lie.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "base/block.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "rondo/tensor.h"
#include "support/test.h"

enum { MIB = 1 << 20 };

static rondo__budget *make_budget(uint64_t limit) {
    rondo__budget *budget = NULL;
    assert_int_equal(rondo__budget_create(limit, "some_option", &budget), RONDO_STATUS_OK);
    return budget;
}

TEST(test_base_budget__takes_up_to_the_limit) {
    rondo__budget *budget = make_budget(100);
    assert_true(rondo__budget_take(budget, RONDO__OWNER_ARENA, 60));
    assert_true(rondo__budget_take(budget, RONDO__OWNER_ARENA, 40));
    assert_true(rondo__budget_take(budget, RONDO__OWNER_ARENA, 0));
    assert_false(rondo__budget_take(budget, RONDO__OWNER_ARENA, 1));
    assert_false(rondo__budget_take(budget, RONDO__OWNER_ARENA, UINT64_MAX));
    assert_int_equal(rondo__budget_get_refusals(budget), 2);
    assert_int_equal(rondo__budget_get_used(budget), 100);
    const rondo_error *error = rondo_error_get_last();
    assert_int_equal(error->status, RONDO_STATUS_NO_MEMORY);
    assert_non_null(strstr(error->message, "100"));
    assert_non_null(strstr(error->message, "raise some_option"));
    rondo__budget_give_back(budget, RONDO__OWNER_ARENA, 60);
    assert_true(rondo__budget_take(budget, RONDO__OWNER_ARENA, 60));
    rondo__budget_set_limit(budget, 10);  // below what is used: nothing more, and nothing breaks
    assert_false(rondo__budget_take(budget, RONDO__OWNER_ARENA, 1));
    rondo__budget_release(budget);
    assert_true(rondo__budget_take(NULL, RONDO__OWNER_ARENA, UINT64_MAX));
    rondo__budget_give_back(NULL, RONDO__OWNER_ARENA, UINT64_MAX);
    rondo__budget_release(NULL);
}

// What is refused names who holds the most then, of blocks, too.
TEST(test_base_budget__a_refusal_names_the_largest_owner) {
    rondo__budget *budget = make_budget(1000);
    assert_false(rondo__budget_take(budget, RONDO__OWNER_STATE, 1001));
    assert_null(strstr(rondo_error_get_last()->message, "largest"));
    static const struct {
        rondo__owner owner;
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {RONDO__OWNER_ARENA, 100, "the largest owner is arenas with 100 bytes"},
        {RONDO__OWNER_PACKED, 99, "the largest owner is arenas with 100 bytes"},
        {RONDO__OWNER_PACKED, 2, "the largest owner is packed weights with 101 bytes"},
        {RONDO__OWNER_STATE, 102, "the largest owner is states with 102 bytes"},
        {RONDO__OWNER_PINNED, 103, "the largest owner is pinned staging with 103 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        assert_true(rondo__budget_take(budget, rows[i].owner, rows[i].bytes));
        assert_false(rondo__budget_take(budget, RONDO__OWNER_TENSOR, 1000));
        assert_non_null(strstr(rondo_error_get_last()->message, rows[i].text));
    }
    rondo__budget *copy = NULL;
    assert_int_equal(rondo__budget_copy(budget, &copy), RONDO_STATUS_OK);
    assert_int_equal(rondo__budget_get_owned(copy, RONDO__OWNER_PACKED), 101);
    rondo__budget_release(copy);
    rondo__budget_give_back(budget, RONDO__OWNER_PINNED, 103);
    rondo__budget *before = rondo__budget_enter(budget);
    const rondo__owner owner = rondo__budget_enter_owner(RONDO__OWNER_RECORDED);
    void *block = rondo__block_allocate(300, 64);
    assert_non_null(block);
    (void)rondo__budget_enter_owner(owner);
    assert_null(rondo__block_allocate(1000, 64));
    assert_non_null(strstr(rondo_error_get_last()->message, "is recorded runs with"));
    rondo__block_free(block);
    assert_int_equal(rondo__budget_get_owned(budget, RONDO__OWNER_RECORDED), 0);
    (void)rondo__budget_enter(before);
    rondo__budget_release(budget);
}

static void *free_block(void *block) {
    rondo__block_free(block);
    return NULL;
}

TEST(test_base_budget__blocks_count_until_they_are_freed_anywhere) {
    rondo__budget *budget = make_budget(8 * MIB);
    rondo__budget *before = rondo__budget_enter(budget);
    void *small = rondo__block_allocate(1000, 64);
    void *large = rondo__block_allocate(2 * MIB, 64);
    assert_non_null(small);
    assert_non_null(large);
    const uint64_t used = rondo__budget_get_used(budget);
    assert_true(used >= 2 * MIB + 1000 && used < 2 * MIB + 8192);
    assert_null(rondo__block_allocate(7 * MIB, 64));
    assert_int_equal(rondo__budget_get_used(budget), used);
    assert_ptr_equal(rondo__budget_enter(before), budget);
    void *uncounted = rondo__block_allocate(9 * MIB, 64);
    assert_non_null(uncounted);
    assert_int_equal(rondo__budget_get_used(budget), used);
    rondo__block_free(uncounted);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, free_block, large), 0);
    pthread_join(thread, NULL);
    assert_true(rondo__budget_get_used(budget) < 8192);
    rondo__budget_release(budget);  // the block still holds it
    rondo__block_free(small);
}

// Sanitizers watch the heap, where nothing is kept.
TEST(test_base_budget__results_of_one_size_take_turns) {
    rondo__budget *budget = make_budget(16 * MIB);
    rondo__budget *before = rondo__budget_enter(budget);
    const int64_t thread_bytes = rondo__memory_get_thread_bytes();
    for (int i = 0; i < 20; ++i) {  // more than are kept, each given back
        char *block = rondo__block_allocate_result(MIB + (size_t)(i % 7) * 4096, 64);
        assert_non_null(block);
        memset(block, i, MIB);
        char *other = rondo__block_allocate(MIB + (size_t)(i % 7) * 4096, 64);
        assert_non_null(other);
        assert_ptr_not_equal(other, block);
        for (size_t k = 0; k < MIB; k += 512) {
            assert_int_equal(other[k], 0);
        }
        rondo__block_free(other);
        rondo__block_free(block);
    }
    assert_int_equal(rondo__memory_get_thread_bytes(), thread_bytes);
    assert_int_equal(rondo__budget_get_used(budget), 0);
    void *large = rondo__block_allocate_result(9 * MIB, 64);  // never kept
    assert_non_null(large);
    rondo__block_free(large);
    rondo__memory_trim();
    (void)rondo__budget_enter(before);
    rondo__budget_release(budget);
}

TEST(test_base_budget__a_tensor_names_its_shape_at_the_limit) {
    rondo__budget *budget = make_budget(MIB);
    rondo__budget *before = rondo__budget_enter(budget);
    rondo_tensor tensor;
    rondo_shape shape = {.rank = 2, .extent = {512, 1024}};
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor), RONDO_STATUS_NO_MEMORY);
    assert_non_null(strstr(rondo_error_get_last()->message, "f32 [512, 1024]"));
    shape.extent[0] = 100;
    assert_int_equal(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor), RONDO_STATUS_OK);
    (void)rondo__budget_enter(before);
    assert_true(rondo__budget_get_used(budget) >= 400 * 1024);
    rondo_tensor_deinit(&tensor);
    assert_int_equal(rondo__budget_get_used(budget), 0);
    rondo__budget_release(budget);
}

TEST(test_base_budget__blocks_are_aligned_and_zero) {
    static const size_t sizes[] = {0, 1, 63, 4096, 255 * 1024, 300 * 1024, 3 * MIB};
    for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
            unsigned char *block = rondo__block_allocate(sizes[i], alignment);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % alignment, 0);
            for (size_t k = 0; k < sizes[i]; k += 97) {
                assert_int_equal(block[k], 0);
            }
            memset(block, 0xa5, sizes[i]);
            rondo__block_free(block);
        }
    }
    rondo__block_free(NULL);
    assert_null(rondo__block_allocate(SIZE_MAX - 10, 64));
    assert_int_equal(rondo_error_get_last()->status, RONDO_STATUS_NO_MEMORY);
}

TEST(test_base_budget__the_machine_has_memory) {
    assert_true(rondo__machine_get_memory() > 16 * MIB);
}

TEST_MAIN()
