// A map by content with bounds: what is found, what is evicted and when, what failures leave.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lru_map.h"
#include "base/memory.h"
#include "support/test.h"

enum { VALUE_COUNT = 2000 };

// Values are addresses in this array; it counts how often each was destroyed.
static int g_destroyed[VALUE_COUNT];

static void note_destroyed(void *user_data, void *value) {
    int *total = user_data;
    *total += 1;
    *(int *)value += 1;
}

typedef struct fixture {
    rondo__lru_map map;
    int destroyed;
} fixture;

static fixture *start(size_t entry_limit, uint64_t byte_limit) {
    static fixture f;
    memset(g_destroyed, 0, sizeof g_destroyed);
    f.destroyed = 0;
    rondo__lru_map_init(&f.map, entry_limit, byte_limit, note_destroyed, &f.destroyed);
    return &f;
}

static rondo_status add(rondo__lru_map *map, int key, uint64_t bytes) {
    rondo__lru_entry *entry = NULL;
    rondo_status status =
        rondo__lru_map_add(map, &key, sizeof key, &g_destroyed[key], bytes, &entry);
    assert_int_equal(entry != NULL, status == RONDO_STATUS_OK);
    assert_true(entry == NULL || rondo__lru_entry_get_value(entry) == &g_destroyed[key]);
    return status;
}

static rondo__lru_entry *find(rondo__lru_map *map, int key) {
    return rondo__lru_map_find(map, &key, sizeof key);
}

static rondo__lru_entry *peek(const rondo__lru_map *map, int key) {
    return rondo__lru_map_peek(map, &key, sizeof key);
}

// The keys from the newest to the oldest, and the same backwards, as text.
static void assert_order(const rondo__lru_map *map, const char *expected) {
    char text[256] = "";
    size_t key_bytes = 0;
    for (rondo__lru_entry *e = map->newest; e != NULL; e = rondo__lru_entry_get_older(e)) {
        int key;
        memcpy(&key, rondo__lru_entry_get_key(e, &key_bytes), sizeof key);
        assert_int_equal(key_bytes, sizeof key);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", key);
    }
    assert_string_equal(text, expected);
    size_t count = 0;
    for (rondo__lru_entry *e = map->oldest; e != NULL; e = rondo__lru_entry_get_newer(e)) {
        ++count;
    }
    assert_int_equal(count, map->stats.entry_count);
}

TEST(test_base_lru_map__keys_are_content) {
    fixture *f = start(0, 0);
    char text[] = "abcdefghij";
    rondo__lru_entry *entry = NULL;
    rondo__lru_entry *other = NULL;
    assert_null(rondo__lru_map_find(&f->map, text, 10));
    assert_int_equal(rondo__lru_map_add(&f->map, text, 10, &g_destroyed[0], 0, &entry),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo__lru_map_add(&f->map, text, 9, &g_destroyed[1], 0, &other),
                     RONDO_STATUS_OK);
    assert_ptr_equal(rondo__lru_map_find(&f->map, "abcdefghij", 10), entry);
    assert_ptr_equal(rondo__lru_map_find(&f->map, "abcdefghijkl", 9), other);
    text[3] = '!';
    assert_null(rondo__lru_map_find(&f->map, text, 10));
    assert_null(rondo__lru_map_find(&f->map, text, 0));
    assert_int_equal(rondo__lru_map_add(&f->map, NULL, 0, &g_destroyed[2], 0, &other),
                     RONDO_STATUS_OK);
    assert_ptr_equal(rondo__lru_map_find(&f->map, NULL, 0), other);
    assert_int_equal(f->map.stats.hit_count, 3);
    assert_int_equal(f->map.stats.miss_count, 3);
    assert_int_equal(f->destroyed, 0);
    rondo__lru_map_deinit(&f->map);
    assert_int_equal(f->destroyed, 3);
    assert_int_equal(f->map.stats.eviction_count, 0);
    assert_int_equal(f->map.stats.bytes, 0);
}

TEST(test_base_lru_map__oldest_use_goes_first) {
    fixture *f = start(3, 0);
    for (int key = 0; key < 3; ++key) {
        assert_int_equal(add(&f->map, key, 0), RONDO_STATUS_OK);
    }
    assert_order(&f->map, "2 1 0 ");
    assert_non_null(peek(&f->map, 0));  // leaves the order as it is
    assert_order(&f->map, "2 1 0 ");
    assert_non_null(find(&f->map, 0));
    assert_non_null(find(&f->map, 2));
    assert_order(&f->map, "2 0 1 ");
    assert_int_equal(add(&f->map, 3, 0), RONDO_STATUS_OK);
    assert_order(&f->map, "3 2 0 ");
    assert_int_equal(g_destroyed[1], 1);
    rondo__lru_map_remove(&f->map, peek(&f->map, 2));
    assert_order(&f->map, "3 0 ");
    assert_int_equal(f->map.stats.eviction_count, 1);  // a removal is none
    assert_ptr_equal(rondo__lru_map_take(&f->map, peek(&f->map, 0)), &g_destroyed[0]);
    assert_int_equal(g_destroyed[0], 0);  // the caller's again
    assert_int_equal(add(&f->map, 0, 0), RONDO_STATUS_OK);
    assert_non_null(find(&f->map, 3));
    rondo__lru_map_set_limits(&f->map, 1, 0);
    assert_order(&f->map, "3 ");
    assert_true(rondo__lru_map_evict_oldest(&f->map));
    assert_false(rondo__lru_map_evict_oldest(&f->map));
    assert_order(&f->map, "");
    assert_int_equal(f->map.stats.eviction_count, 3);
    assert_int_equal(f->destroyed, 4);
    rondo__lru_map_deinit(&f->map);
}

TEST(test_base_lru_map__bytes_are_bounded_and_may_change) {
    fixture *f = start(0, 10000);
    for (int key = 0; key < 4; ++key) {
        assert_int_equal(add(&f->map, key, 2000), RONDO_STATUS_OK);
    }
    assert_true(f->map.stats.bytes > 8000 && f->map.stats.bytes < 10000);
    rondo__lru_map_set_bytes(&f->map, peek(&f->map, 0), 6000);  // the oldest itself is kept
    assert_order(&f->map, "3 0 ");
    rondo__lru_map_set_bytes(&f->map, peek(&f->map, 0), 10);
    assert_int_equal(add(&f->map, 4, 100000), RONDO_STATUS_OK);  // alone more than the bound
    assert_order(&f->map, "4 ");
    assert_int_equal(f->map.stats.eviction_count, 4);
    rondo__lru_map_set_limits(&f->map, 0, 1);
    assert_order(&f->map, "");
    rondo__lru_map_deinit(&f->map);
}

TEST(test_base_lru_map__pinned_ones_stay) {
    fixture *f = start(2, 0);
    assert_int_equal(add(&f->map, 0, 0), RONDO_STATUS_OK);
    rondo__lru_map_pin(&f->map, peek(&f->map, 0));
    rondo__lru_map_pin(&f->map, peek(&f->map, 0));
    for (int key = 1; key < 5; ++key) {
        assert_int_equal(add(&f->map, key, 0), RONDO_STATUS_OK);
    }
    assert_order(&f->map, "4 0 ");
    rondo__lru_map_pin(&f->map, peek(&f->map, 4));
    assert_int_equal(add(&f->map, 5, 0), RONDO_STATUS_OK);  // beyond the bound: all are pinned
    assert_order(&f->map, "5 4 0 ");
    assert_int_equal(f->map.stats.pinned_count, 2);
    rondo__lru_map_unpin(&f->map, peek(&f->map, 0));
    assert_true(rondo__lru_entry_is_pinned(peek(&f->map, 0)));
    assert_int_equal(add(&f->map, 6, 0), RONDO_STATUS_OK);
    assert_order(&f->map, "6 4 0 ");
    rondo__lru_map_unpin(&f->map, peek(&f->map, 0));  // which now must go
    assert_order(&f->map, "6 4 ");
    assert_int_equal(f->map.stats.pinned_count, 1);
    rondo__lru_map_clear(&f->map);
    assert_int_equal(f->destroyed, 7);
    assert_int_equal(f->map.stats.pinned_count, 0);
    rondo__lru_map_deinit(&f->map);
}

static bool fail_nth(void *user_data) {
    return (*(int *)user_data)-- == 0;
}

TEST(test_base_lru_map__failed_additions_change_nothing) {
    int failed = 0;
    for (int n = 0; n < 50; ++n) {
        fixture *f = start(30, 0);
        int remaining = n;
        rondo__memory_set_fault(fail_nth, &remaining);
        for (int key = 0; key < 40; ++key) {
            size_t before = f->map.stats.entry_count;
            uint64_t evicted = f->map.stats.eviction_count;
            if (add(&f->map, key, 1) != RONDO_STATUS_OK) {
                ++failed;
                assert_int_equal(f->map.stats.entry_count, before);
                assert_int_equal(f->map.stats.eviction_count, evicted);
                assert_null(peek(&f->map, key));
                assert_int_equal(add(&f->map, key, 1), RONDO_STATUS_OK);
            }
        }
        rondo__memory_set_fault(NULL, NULL);
        for (int key = 10; key < 40; ++key) {
            assert_non_null(find(&f->map, key));
        }
        rondo__lru_map_deinit(&f->map);
        assert_int_equal(f->destroyed, 40);
    }
    assert_true(failed > 40);
}

TEST(test_base_lru_map__random_uses_agree_with_a_list) {
    enum { LIMIT = 700 };
    fixture *f = start(LIMIT, 0);
    static int list[VALUE_COUNT];  // the newest last
    size_t count = 0;
    uint32_t draw = 12345;
    for (int i = 0; i < 50000; ++i) {
        draw = draw * 1664525u + 1013904223u;
        int key = (int)((draw >> 12) % VALUE_COUNT);
        size_t at = 0;
        while (at < count && list[at] != key) {
            ++at;
        }
        rondo__lru_entry *entry = find(&f->map, key);
        assert_int_equal(entry != NULL, at < count);
        bool is_removed = entry != NULL && (draw >> 8) % 4 == 0;
        if (entry == NULL) {
            assert_int_equal(add(&f->map, key, 0), RONDO_STATUS_OK);
            at = count < LIMIT ? count++ : 0;
        } else if (is_removed) {
            rondo__lru_map_remove(&f->map, entry);
        }
        memmove(&list[at], &list[at + 1], (count - at - 1) * sizeof *list);
        count -= is_removed ? 1 : 0;
        if (!is_removed) {
            list[count - 1] = key;
        }
        assert_int_equal(f->map.stats.entry_count, count);
    }
    assert_true(f->map.stats.eviction_count > 1000);
    rondo__lru_map_deinit(&f->map);
}

TEST_MAIN()
