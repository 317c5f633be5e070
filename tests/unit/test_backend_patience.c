// When threads of an op wait for each other only shortly: judged by what the processors did.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/host/host_patience.h"

static const char text[] =
    "cpu  900 0 300 4000 0 0 0 0 0 0\n"
    "cpu0 100 10 20 5000 300 1 2 3 0 0\n"
    "cpu1 200 0 0 5000 0 0 0 0 0 0\n"
    "cpu12 400 0 0 5000 0 0 0 0 0 0\n"
    "intr 1 2 3\n";

static void reads_our_processors(void **state) {
    (void)state;
    bool is_ours[16] = {false};
    double busy = -1.0;
    assert_false(rondo__host_load_read(text, is_ours, 16, 100.0, &busy));
    is_ours[0] = true;
    assert_true(rondo__host_load_read(text, is_ours, 16, 100.0, &busy));
    assert_float_equal((float)busy, 1.36f, 1e-6f);
    is_ours[12] = true;
    assert_true(rondo__host_load_read(text, is_ours, 16, 100.0, &busy));
    assert_float_equal((float)busy, 5.36f, 1e-6f);
    // A processor beyond the list is none of ours.
    assert_true(rondo__host_load_read(text, is_ours, 12, 100.0, &busy));
    assert_float_equal((float)busy, 1.36f, 1e-6f);
    assert_false(rondo__host_load_read("", is_ours, 16, 100.0, &busy));
    assert_false(rondo__host_load_read("cpu", is_ours, 16, 100.0, &busy));
    assert_true(rondo__host_load_read("cpu0 7", is_ours, 16, 100.0, &busy));
    assert_float_equal((float)busy, 0.07f, 1e-6f);
}

static void judges_a_load(void **state) {
    (void)state;
    static const struct {
        rondo__host_load load;
        bool was_shared, is_shared;
    } rows[] = {
        {{.seconds = 0.25, .busy = 0.5, .own = 0.5, .displaced = 0}, false, false},
        // Another process at work that does not get in the way.
        {{.seconds = 0.25, .busy = 0.5, .own = 0.25, .displaced = 1}, false, false},
        {{.seconds = 0.25, .busy = 0.5, .own = 0.25, .displaced = 30}, false, true},
        // Our own threads displace each other: they are too many, and libgomp knows.
        {{.seconds = 0.25, .busy = 0.5, .own = 0.5, .displaced = 300}, false, false},
        // Short waits displace nobody; what counts is that the others are still there.
        {{.seconds = 0.25, .busy = 0.5, .own = 0.25, .displaced = 0}, true, true},
        {{.seconds = 0.25, .busy = 0.25, .own = 0.24, .displaced = 30}, true, false},
        {{.seconds = 0.25, .busy = 0.04, .own = 0.0, .displaced = 0}, true, true},
        {{.seconds = 0.25, .busy = 0.04, .own = 0.0, .displaced = 30}, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        assert_int_equal(rondo__host_load_is_shared(&rows[i].load, rows[i].was_shared),
                         rows[i].is_shared);
    }
}

static void ends_what_never_began(void **state) {
    (void)state;
    rondo__host_patience_end();
    for (int i = 0; i < 1000; ++i) {
        rondo__host_patience_look();
    }
    rondo__host_patience_end();
    rondo__host_patience_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_our_processors),
        cmocka_unit_test(judges_a_load),
        cmocka_unit_test(ends_what_never_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
