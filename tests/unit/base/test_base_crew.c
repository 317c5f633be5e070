// Work that is shared among threads: everything is made once, by several threads where there are
// several, by the caller alone where there are none, and no thread stays behind.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crew.h"
#include "base/memory.h"
#include "base/thread.h"
#include "base/thread_count.h"
#include "support/test.h"

enum { THREADS = 4, LARGE = 4 << 20, ITEM_BYTES = 64 };

static size_t count_threads(void) {
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
        count += entry->d_name[0] != '.';
    }
    assert_int_equal(closedir(tasks), 0);
    return count;
}

// A thread that was joined may stand in /proc for a moment.
static void expect_threads(size_t wanted) {
    for (int i = 0; i < 5000 && count_threads() != wanted; ++i) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
    assert_int_equal(count_threads(), wanted);
}

// ---- what is made -----------------------------------------------------------------------------

static void count_up(void *data, size_t first, size_t last) {
    uint8_t *counts = data;
    for (size_t i = first; i < last; ++i) {
        counts[i] += 1;
    }
}

static void expect_once(size_t count, size_t item_bytes) {
    uint8_t *counts = calloc(count + 1, 1);
    assert_non_null(counts);
    rondo__crew_run(count, item_bytes, count_up, counts);
    for (size_t i = 0; i < count; ++i) {
        if (counts[i] != 1) {
            fail_msg("item %zu of %zu was made %u times", i, count, counts[i]);
        }
    }
    assert_int_equal(counts[count], 0);
    free(counts);
}

static void expect_all_sizes(void) {
    static const size_t counts[] = {0, 1, 2, 3, 100, 4095, 4096, 4097, 70000, 1 << 20};
    static const size_t sizes[] = {0, 1, 6, 64, 5000, 300000, 1 << 24};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; ++k) {
            expect_once(counts[i], sizes[k]);
        }
    }
}

TEST(test_base_crew__once) {
    expect_all_sizes();
    for (int32_t threads = 1; threads <= THREADS; ++threads) {
        const int32_t former = rondo__host_choose_thread_count(threads);
        rondo__crew_enter();
        expect_all_sizes();
        rondo__crew_leave();
        (void)rondo__host_choose_thread_count(former);
    }
}

TEST(test_base_crew__copy) {
    static const size_t sizes[] = {0, 1, 63, 64, 65, 1000, LARGE - 1, LARGE, LARGE + 65};
    uint8_t *from = malloc(LARGE + 65), *to = malloc(LARGE + 66);
    assert_true(from != NULL && to != NULL);
    for (size_t i = 0; i < LARGE + 65; ++i) {
        from[i] = (uint8_t)(i * 31 + i / 255);
    }
    const int32_t former = rondo__host_choose_thread_count(THREADS);
    rondo__crew_enter();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        memset(to, 0xee, LARGE + 66);
        rondo__crew_copy(to, from, sizes[i]);
        assert_memory_equal(to, from, sizes[i]);
        assert_int_equal(to[sizes[i]], 0xee);
    }
    rondo__crew_leave();
    (void)rondo__host_choose_thread_count(former);
    free(from);
    free(to);
}

// ---- who makes it -----------------------------------------------------------------------------

typedef struct meeting {
    size_t wanted;  // threads that have to come
    atomic_size_t came;
    atomic_bool is_late;
    _Atomic(uint64_t) seen[64];
} meeting;

// Holds the thread, the first time it comes, until as many have come as are wanted.
static void meet(void *data, size_t first, size_t last) {
    meeting *m = data;
    const uint64_t number = rondo__thread_get_number();
    (void)first;
    (void)last;
    if (atomic_exchange(&m->seen[number % 64], number) != number) {
        atomic_fetch_add(&m->came, 1);
    }
    for (int i = 0; i < 20000 && atomic_load(&m->came) < m->wanted; ++i) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
    if (atomic_load(&m->came) < m->wanted) {
        atomic_store(&m->is_late, true);
    }
}

static size_t count_workers(size_t wanted) {
    meeting m = {.wanted = wanted};
    rondo__crew_run(LARGE / ITEM_BYTES, ITEM_BYTES, meet, &m);
    assert_false(atomic_load(&m.is_late));
    return atomic_load(&m.came);
}

TEST(test_base_crew__threads) {
    const size_t before = count_threads();
    const int32_t former = rondo__host_choose_thread_count(THREADS);
    assert_int_equal(count_workers(1), 1);  // no scope
    rondo__crew_enter();
    rondo__crew_enter();
    expect_once(10, 10);
    assert_int_equal(count_threads(), before);  // nothing large came
    assert_int_equal(count_workers(THREADS), THREADS);
    assert_int_equal(count_threads(), before + THREADS - 1);
    rondo__crew_leave();
    assert_int_equal(count_threads(), before + THREADS - 1);  // the scope around it
    assert_int_equal(count_workers(THREADS), THREADS);
    rondo__crew_leave();
    expect_threads(before);
    (void)rondo__host_choose_thread_count(1);
    rondo__crew_enter();
    assert_int_equal(count_workers(1), 1);
    rondo__crew_leave();
    (void)rondo__host_choose_thread_count(former);
}

static bool refuse(void *user_data) {
    (void)user_data;
    return true;
}

// Without memory for the crew the caller works, and no failure is recorded.
TEST(test_base_crew__no_memory) {
    const int32_t former = rondo__host_choose_thread_count(THREADS);
    rondo__memory_set_fault(refuse, NULL);
    rondo__crew_enter();
    assert_int_equal(count_workers(1), 1);
    rondo__crew_leave();
    rondo__memory_set_fault(NULL, NULL);
    assert_int_equal(rondo_error_get_last()->status, RONDO_STATUS_OK);
    rondo__crew_enter();
    assert_int_equal(count_workers(THREADS), THREADS);
    rondo__crew_leave();
    (void)rondo__host_choose_thread_count(former);
}

TEST_MAIN()
