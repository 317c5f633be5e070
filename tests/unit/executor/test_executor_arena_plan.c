// The arena planner: no two blocks overlap in time and place, and the arena is not larger than it
// must be.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdlib.h>

#include "executor/state/arena_plan.h"
#include "support/test.h"

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

TEST(test_executor_arena_plan__chain_needs_two_blocks) {
    rondo__block blocks[50];
    for (size_t i = 0; i < 50; ++i) {
        blocks[i] = (rondo__block){.bytes = 1000, .first = i, .last = i + 1};
    }
    size_t arena_bytes;
    assert_int_equal(rondo__arena_plan(blocks, 50, false, &arena_bytes), RONDO_STATUS_OK);
    expect_disjoint(blocks, 50, arena_bytes);
    assert_int_equal(arena_bytes, 2 * 1024);
}

TEST(test_executor_arena_plan__random_blocks_stay_apart) {
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
        assert_int_equal(rondo__arena_plan(blocks, count, false, &arena_bytes), RONDO_STATUS_OK);
        expect_disjoint(blocks, count, arena_bytes);
        assert_true(arena_bytes >= peak);
    }
}

TEST(test_executor_arena_plan__refuses_overflow) {
    rondo__block blocks[2] = {{.bytes = SIZE_MAX - 5, .first = 0, .last = 1},
                              {.bytes = 100, .first = 0, .last = 1}};
    size_t arena_bytes;
    assert_int_equal(rondo__arena_plan(blocks, 2, false, &arena_bytes), RONDO_STATUS_INVALID);
}

// Those that live for all steps first, then the largest, equal ones in the order of the list.
static bool comes_before(const rondo__block *a, const rondo__block *b) {
    const bool is_whole = a->first == 0 && a->last == 500;
    const bool is_other_whole = b->first == 0 && b->last == 500;
    return is_whole != is_other_whole ? is_whole : a->bytes > b->bytes;
}

// Each block lies at the lowest gap that those placed before it leave: the plan is what the header
// says, however it is found.
TEST(test_executor_arena_plan__takes_the_lowest_gap) {
    enum { COUNT = 400 };
    static rondo__block blocks[COUNT];
    static rondo__block *order[COUNT];
    srand(7);
    for (int round = 0; round < 20; ++round) {
        size_t bytes = 0;
        for (size_t i = 0; i < COUNT; ++i) {
            size_t first = (size_t)rand() % 200;
            size_t length = (size_t)(rand() % 4 == 0 ? rand() % 300 : rand() % 40);
            bool is_always = rand() % 8 == 0;
            blocks[i] = (rondo__block){.bytes = 1 + (size_t)rand() % (round < 10 ? 5000 : 600),
                                       .first = is_always ? 0 : first,
                                       .last = is_always ? 500 : first + length};
            order[i] = &blocks[i];
        }
        assert_int_equal(rondo__arena_plan(blocks, COUNT, false, &bytes), RONDO_STATUS_OK);
        for (size_t i = 1; i < COUNT; ++i) {
            rondo__block *block = order[i];
            size_t k = i;
            for (; k > 0 && comes_before(block, order[k - 1]); --k) {
                order[k] = order[k - 1];
            }
            order[k] = block;
        }
        for (size_t i = 0; i < COUNT; ++i) {
            // No multiple of the alignment below its offset would have done.
            for (size_t offset = 0; offset < order[i]->offset; offset += RONDO__ARENA_ALIGNMENT) {
                bool is_free = true;
                for (size_t k = 0; k < i && is_free; ++k) {
                    const size_t need = (order[i]->bytes + 255) / 256 * 256;
                    const size_t taken = (order[k]->bytes + 255) / 256 * 256;
                    is_free =
                        order[k]->first > order[i]->last || order[i]->first > order[k]->last ||
                        order[k]->offset >= offset + need || offset >= order[k]->offset + taken;
                }
                assert_false(is_free);
            }
        }
    }
}

// Where levels count, what shares bytes comes in the same order by step and by level.
TEST(test_executor_arena_plan__levels_keep_the_order) {
    enum { COUNT = 120 };
    static rondo__block blocks[COUNT];
    size_t shared_count = 0;
    srand(11);
    for (int round = 0; round < 50; ++round) {
        size_t bytes;
        for (size_t i = 0; i < COUNT; ++i) {
            const size_t first = (size_t)rand() % 60;
            const size_t level = (size_t)rand() % 20;
            blocks[i] = (rondo__block){.bytes = 1 + (size_t)rand() % 5000,
                                       .first = first,
                                       .last = first + (size_t)rand() % 6,
                                       .first_level = level,
                                       .last_level = level + (size_t)rand() % 3};
        }
        assert_int_equal(rondo__arena_plan(blocks, COUNT, true, &bytes), RONDO_STATUS_OK);
        expect_disjoint(blocks, COUNT, bytes);
        for (size_t i = 0; i < COUNT; ++i) {
            for (size_t k = 0; k < COUNT; ++k) {
                const rondo__block *a = &blocks[i];
                const rondo__block *b = &blocks[k];
                if (a->last < b->first && a->offset < b->offset + b->bytes &&
                    b->offset < a->offset + a->bytes) {
                    shared_count += 1;
                    assert_true(a->last_level < b->first_level);
                }
            }
        }
    }
    assert_true(shared_count > 1000);
}

TEST_MAIN()
