// Pieces that many forms of constants share: bytes of one are nobody else's, start a line of the
// cache and are zero, and the last that goes frees its piece.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/weights/weight_slab.h"
#include "support/test.h"

enum { BLOCKS = 200 };

typedef struct block {
    unsigned char *bytes;
    size_t size;
    rondo__slab *slab;
} block;

static block take(rondo__slab_list *list, size_t size) {
    block b = {.size = size};
    b.bytes = rondo__slab_take(list, size, &b.slab);
    assert_non_null(b.bytes);
    assert_int_equal((uintptr_t)b.bytes % 64, 0);
    for (size_t i = 0; i < size; ++i) {
        assert_int_equal(b.bytes[i], 0);
    }
    return b;
}

static void give_back(rondo__slab_list *list, block *b, int value) {
    for (size_t i = 0; i < b->size; ++i) {
        assert_int_equal(b->bytes[i], value);
    }
    rondo__slab_give_back(list, b->slab);
}

TEST(bytes_are_ones_own) {
    static block blocks[BLOCKS];
    rondo__slab_list list = {0};
    const int64_t before = rondo__memory_get_thread_bytes();
    srand(1);
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < BLOCKS; ++i) {
            const size_t most = i % 50 == 49 ? 3 << 20 : 5000;
            blocks[i] = take(&list, (size_t)rand() % most);
            memset(blocks[i].bytes, i, blocks[i].size);
        }
        for (int i = 0; i < BLOCKS; ++i) {
            const int at = i * 77 % BLOCKS;
            give_back(&list, &blocks[at], at);
        }
        assert_null(list.newest);
        assert_int_equal(list.total_bytes, 0);
        assert_int_equal(rondo__memory_get_thread_bytes(), before);
    }
}

TEST(what_fits_shares_a_piece) {
#if defined(__SANITIZE_ADDRESS__)
    print_message("skipped: each has a block of its own, so that the sanitizer sees its ends\n");
    skip();
#endif
    rondo__slab_list list = {0};
    block small = take(&list, 1000), next = take(&list, 1);
    block large = take(&list, 64 << 20), last = take(&list, 1000);
    assert_ptr_equal(small.slab, next.slab);
    assert_ptr_not_equal(small.slab, large.slab);
    assert_ptr_not_equal(large.slab, last.slab);
    give_back(&list, &next, 0);
    give_back(&list, &last, 0);
    give_back(&list, &large, 0);
    assert_ptr_equal(list.newest, small.slab);
    give_back(&list, &small, 0);
    assert_null(list.newest);
}

TEST_MAIN()
