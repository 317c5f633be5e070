// Threads that share loops: every element is done once, and no more threads are inside than may be.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/thread_count.h"
#include "base/workers.h"
#include "support/test.h"

enum { COUNT_MAX = 100000, OWNERS = 5 };

static void sleep_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

// ---- what is done ------------------------------------------------------------------------------

static atomic_uchar done[COUNT_MAX];

static void mark(void *data, int64_t first, int64_t end) {
    (void)data;
    for (int64_t i = first; i < end; ++i) {
        atomic_fetch_add(&done[i], 1);
    }
}

// Those of `count` elements, and of the rest, that were not done as often as they should.
static int64_t count_wrong(int64_t count) {
    int64_t wrong = 0;
    for (int64_t i = 0; i < COUNT_MAX; ++i) {
        wrong += atomic_load_explicit(&done[i], memory_order_relaxed) != (i < count);
    }
    return wrong;
}

TEST(every_element_is_done_once) {
    static const int64_t counts[] = {0, 1, 2, 7, 8, 9, 1000, COUNT_MAX};
    static const int64_t grains[] = {0, 1, 3, 1000, COUNT_MAX};
    rondo__workers *workers = rondo__workers_create(4, false);
    assert_non_null(workers);
    for (int32_t threads = 1; threads <= 6; ++threads) {
        const rondo__workers_place former =
            rondo__workers_enter((rondo__workers_place){workers, threads});
        for (size_t i = 0; i < sizeof counts / sizeof counts[0] * 5; ++i) {
            memset(done, 0, sizeof done);
            rondo__workers_loop(counts[i / 5], grains[i % 5], mark, NULL);
            assert_int_equal(count_wrong(counts[i / 5]), 0);
        }
        rondo__workers_leave(former);
    }
    rondo__workers_release(workers);
}

static void mark_rows(void *data, int64_t first, int64_t end) {
    const int64_t *base = data;
    mark(NULL, *base + first * 1000, *base + end * 1000);
}

static void share_again(void *data, int64_t first, int64_t end) {
    (void)data;
    for (int64_t part = first; part < end; ++part) {
        int64_t base = part * 10000;
        rondo__workers_loop(10, 1, mark_rows, &base);
    }
}

TEST(a_loop_may_have_loops) {
    rondo__workers *workers = rondo__workers_create(3, false);
    assert_non_null(workers);
    const rondo__workers_place former = rondo__workers_enter((rondo__workers_place){workers, 3});
    memset(done, 0, sizeof done);
    rondo__workers_loop(10, 1, share_again, NULL);
    assert_int_equal(count_wrong(COUNT_MAX), 0);
    rondo__workers_leave(former);
    rondo__workers_release(workers);
}

// ---- who does it -------------------------------------------------------------------------------

static atomic_int inside, most_inside, elsewhere;
static atomic_int wanted_inside;  // before anybody goes on, however late threads are: at least

static void work_slowly(void *data, int64_t first, int64_t end) {
    const pthread_t *owner = data;
    const int now = atomic_fetch_add(&inside, 1) + 1;
    for (int most = atomic_load(&most_inside);
         most < now && !atomic_compare_exchange_weak(&most_inside, &most, now);) {
    }
    atomic_fetch_add(&elsewhere, pthread_equal(*owner, pthread_self()) ? 0 : 1);
    for (int i = 0; i < 20000 && atomic_load(&most_inside) < atomic_load(&wanted_inside); ++i) {
        sleep_ms(1);
    }
    for (; first < end; ++first) {
        sleep_ms(2);
    }
    atomic_fetch_sub(&inside, 1);
}

static void loop_slowly(int64_t count) {
    pthread_t self = pthread_self();
    rondo__workers_loop(count, 1, work_slowly, &self);
}

static void reset(int wanted) {
    atomic_store(&most_inside, 0);
    atomic_store(&elsewhere, 0);
    atomic_store(&wanted_inside, wanted);
}

TEST(helpers_take_part) {
    rondo__workers *workers = rondo__workers_create(3, false);
    assert_non_null(workers);
    reset(1);
    loop_slowly(12);  // in none
    assert_int_equal(atomic_load(&elsewhere), 0);
    rondo__workers_set_home(workers);
    (void)rondo__host_choose_thread_count(2);
    reset(2);
    loop_slowly(12);
    (void)rondo__host_choose_thread_count(0);
    rondo__workers_set_home(NULL);
    assert_true(atomic_load(&elsewhere) > 0);
    assert_int_equal(atomic_load(&most_inside), 2);
    assert_int_equal(rondo__workers_count_helpers(workers), 1);
    const rondo__workers_place former = rondo__workers_enter((rondo__workers_place){workers, 100});
    assert_null(former.workers);
    reset(3);
    loop_slowly(30);
    rondo__workers_leave(former);
    assert_int_equal(atomic_load(&most_inside), 3);
    assert_int_equal(rondo__workers_count_helpers(workers), 2);
    rondo__workers_release(workers);
}

typedef struct owner {
    rondo__workers *workers;
    pthread_t thread;
    pthread_barrier_t *start;  // when all are in
} owner;

static void *run_owner(void *data) {
    const owner *self = data;
    const rondo__workers_place former =
        rondo__workers_enter((rondo__workers_place){self->workers, 8});
    if (self->start != NULL) {
        pthread_barrier_wait(self->start);
    }
    loop_slowly(20);
    if (self->start != NULL) {
        pthread_barrier_wait(self->start);
    }
    rondo__workers_leave(former);
    return NULL;
}

static void run_owners(rondo__workers *workers, size_t count, bool meet, int wanted) {
    owner owners[OWNERS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)count), 0);
    reset(wanted);
    for (size_t i = 0; i < count; ++i) {
        owners[i] = (owner){.workers = workers, .start = meet ? &start : NULL};
        assert_int_equal(pthread_create(&owners[i].thread, NULL, run_owner, &owners[i]), 0);
    }
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(pthread_join(owners[i].thread, NULL), 0);
    }
    pthread_barrier_destroy(&start);
}

// As many programs' threads as there are processors: each does its own work.
TEST(owners_count) {
    rondo__workers *workers = rondo__workers_create(4, false);
    assert_non_null(workers);
    run_owners(workers, 4, true, 1);
    assert_int_equal(atomic_load(&elsewhere), 0);
    run_owners(workers, 3, true, 4);
    assert_true(atomic_load(&elsewhere) > 0);
    assert_true(atomic_load(&most_inside) <= 4);
    rondo__workers_release(workers);
}

// Whoever comes to strict workers that are full waits, and all get in.
TEST(strict_ones_have_no_more_than_their_limit) {
    for (int32_t limit = 1; limit <= 3; ++limit) {
        rondo__workers *workers = rondo__workers_create(limit, true);
        assert_non_null(workers);
        run_owners(workers, OWNERS, false, limit);
        assert_int_equal(atomic_load(&most_inside), limit);
        rondo__workers_release(workers);
    }
}

TEST(the_last_reference_ends_it) {
    rondo__workers_release(NULL);
    rondo__workers *workers = rondo__workers_create(0, false);
    assert_non_null(workers);
    assert_int_equal(rondo__workers_get_limit(workers), 1);
    assert_ptr_equal(rondo__workers_retain(workers), workers);
    rondo__workers_release(workers);
    assert_int_equal(rondo__workers_count_helpers(workers), 0);
    rondo__workers_release(workers);
}

TEST_MAIN()
