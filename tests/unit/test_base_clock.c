// base/clock.h: ticks are a clock, too.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

// Both clocks around the same sleep; the counter's reading lies inside the other's.
static void test_base_clock__ticks_are_nanoseconds_of_the_clock(void **state) {
    (void)state;
    uint64_t start_ns = rondo__clock_now_ns();
    uint64_t start = rondo__clock_ticks();
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    uint64_t span_ns = rondo__clock_ticks_to_ns(rondo__clock_ticks() - start);
    uint64_t outer_ns = rondo__clock_now_ns() - start_ns;
    assert_true(span_ns >= 29000000);
    assert_true(span_ns <= outer_ns + outer_ns / 50);
}

static void test_base_clock__a_span_backwards_is_none(void **state) {
    (void)state;
    uint64_t now = rondo__clock_ticks();
    assert_int_equal(rondo__clock_ticks_to_ns(now - (now + 100)), 0);
    assert_int_equal(rondo__clock_ticks_to_ns(0), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_clock__ticks_are_nanoseconds_of_the_clock),
        cmocka_unit_test(test_base_clock__a_span_backwards_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
