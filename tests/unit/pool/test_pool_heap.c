// The pool's bookkeeping: blocks never overlap, free neighbours merge, and everything can be had
// back.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "pool/heap.h"
#include "support/test.h"

static rondo__heap_piece *take(rondo__heap *heap, uint64_t bytes) {
    rondo__heap_piece *piece;
    assert_int_equal(rondo__heap_take(heap, bytes, &piece), RONDO_STATUS_OK);
    return piece;
}

TEST(test_pool_heap__splits_and_merges) {
    rondo__heap heap = {0};
    rondo__heap_region *region;
    assert_int_equal(rondo__heap_add(&heap, NULL, 1 << 20, &region), RONDO_STATUS_OK);
    rondo__heap_piece *a = take(&heap, 1);
    rondo__heap_piece *b = take(&heap, 513);
    rondo__heap_piece *c = take(&heap, 4096);
    assert_int_equal(a->bytes, 512);
    assert_int_equal(b->bytes, 1024);
    assert_int_equal(a->offset, 0);
    assert_int_equal(b->offset, 512);
    assert_int_equal(c->offset, 1536);
    assert_true(rondo__heap_check(&heap));
    rondo__heap_give(&heap, a);
    rondo__heap_give(&heap, c);
    assert_true(rondo__heap_check(&heap));
    rondo__heap_give(&heap, b);
    assert_true(rondo__heap_check(&heap));
    assert_int_equal(region->live_count, 0);
    assert_null(region->first->after);
    // All of it is one block again.
    rondo__heap_piece *all = take(&heap, 1 << 20);
    assert_non_null(all);
    assert_null(take(&heap, 1));
    rondo__heap_give(&heap, all);
    rondo__heap_deinit(&heap);
}

TEST(test_pool_heap__reuses_a_block_of_the_same_size) {
    rondo__heap heap = {0};
    rondo__heap_region *region;
    assert_int_equal(rondo__heap_add(&heap, NULL, 1 << 24, &region), RONDO_STATUS_OK);
    // 17 * 512 + 512 falls into a list with smaller blocks: the exact one must be found all the
    // same.
    rondo__heap_piece *piece = take(&heap, 33 * 512);
    rondo__heap_piece *guard = take(&heap, 512);
    uint64_t offset = piece->offset;
    for (int round = 0; round < 100; ++round) {
        rondo__heap_give(&heap, piece);
        piece = take(&heap, 33 * 512);
        assert_int_equal(piece->offset, offset);
    }
    rondo__heap_give(&heap, piece);
    rondo__heap_give(&heap, guard);
    rondo__heap_deinit(&heap);
}

TEST(test_pool_heap__random_traffic_keeps_the_invariants) {
    enum { COUNT = 300 };
    rondo__heap heap = {0};
    rondo__heap_region *regions[3];
    rondo__heap_piece *live[COUNT] = {0};
    for (int r = 0; r < 3; ++r) {
        assert_int_equal(rondo__heap_add(&heap, NULL, 1 << 20, &regions[r]), RONDO_STATUS_OK);
    }
    srand(7);
    for (int round = 0; round < 20000; ++round) {
        int i = rand() % COUNT;
        if (live[i] != NULL) {
            rondo__heap_give(&heap, live[i]);
            live[i] = NULL;
        } else {
            uint64_t bytes = 1 + (uint64_t)rand() % (rand() % 10 == 0 ? 200000 : 3000);
            live[i] = take(&heap, bytes);
            assert_true(live[i] == NULL || live[i]->bytes >= bytes);
        }
        if (round % 50 == 0) {
            assert_true(rondo__heap_check(&heap));
        }
    }
    for (int i = 0; i < COUNT; ++i) {
        if (live[i] != NULL) {
            rondo__heap_give(&heap, live[i]);
        }
    }
    assert_true(rondo__heap_check(&heap));
    rondo__heap other = {0};
    rondo__heap_move(&heap, regions[1], &other);
    rondo__heap_remove(&heap, regions[0]);
    assert_true(rondo__heap_check(&heap) && rondo__heap_check(&other));
    assert_non_null(take(&other, 1 << 20));
    assert_non_null(take(&heap, 1 << 20));
    assert_null(take(&heap, 1));
    rondo__heap_deinit(&heap);
    rondo__heap_deinit(&other);
}

TEST_MAIN()
