// The arena planner: no two blocks overlap in time and place, and the arena is not larger than it
// must be.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
// cmocka wants the four above first
#include <cmocka.h>

#include "executor/arena_plan.h"

static void expect_disjoint(const rondo__block *blocks, size_t count, size_t arena_bytes) {
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(blocks[i].offset % RONDO__ARENA_ALIGNMENT, 0);
        assert_true(blocks[i].offset + blocks[i].bytes <= arena_bytes);
        for (size_t k = 0; k < i; ++k) {
            int meets = blocks[i].first <= blocks[k].last && blocks[k].first <= blocks[i].last;
            int overlaps = blocks[i].offset < blocks[k].offset + blocks[k].bytes &&
                           blocks[k].offset < blocks[i].offset + blocks[i].bytes;
            assert_false(meets && overlaps);
        }
    }
}

static void test_executor_arena_plan__chain_needs_two_blocks(void **state) {
    (void)state;
    rondo__block blocks[50];
    for (size_t i = 0; i < 50; ++i) {
        blocks[i] = (rondo__block){.bytes = 1000, .first = i, .last = i + 1};
    }
    size_t arena_bytes;
    assert_int_equal(rondo__arena_plan(blocks, 50, &arena_bytes), RONDO_STATUS_OK);
    expect_disjoint(blocks, 50, arena_bytes);
    assert_int_equal(arena_bytes, 2 * 1024);
}

static void test_executor_arena_plan__random_blocks_stay_apart(void **state) {
    (void)state;
    srand(1);
    for (int round = 0; round < 200; ++round) {
        rondo__block blocks[60];
        size_t count = 1 + (size_t)rand() % 60;
        size_t peak = 0;
        for (size_t i = 0; i < count; ++i) {
            size_t first = (size_t)rand() % 40;
            blocks[i] = (rondo__block){.bytes = 1 + (size_t)rand() % 5000,
                                       .first = first,
                                       .last = first + (size_t)rand() % 10};
        }
        for (size_t t = 0; t < 50; ++t) {
            size_t alive = 0;
            for (size_t i = 0; i < count; ++i) {
                alive += blocks[i].first <= t && t <= blocks[i].last ? blocks[i].bytes : 0;
            }
            peak = alive > peak ? alive : peak;
        }
        size_t arena_bytes;
        assert_int_equal(rondo__arena_plan(blocks, count, &arena_bytes), RONDO_STATUS_OK);
        expect_disjoint(blocks, count, arena_bytes);
        assert_true(arena_bytes >= peak);
    }
}

static void test_executor_arena_plan__refuses_overflow(void **state) {
    (void)state;
    rondo__block blocks[2] = {{.bytes = SIZE_MAX - 5, .first = 0, .last = 1},
                              {.bytes = 100, .first = 0, .last = 1}};
    size_t arena_bytes;
    assert_int_equal(rondo__arena_plan(blocks, 2, &arena_bytes), RONDO_STATUS_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_executor_arena_plan__chain_needs_two_blocks),
        cmocka_unit_test(test_executor_arena_plan__random_blocks_stay_apart),
        cmocka_unit_test(test_executor_arena_plan__refuses_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
