// support/test.c — see test.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/test.h"

#include <stdlib.h>

enum { TESTS_MAX = 256 };

static int compare_lines(const void *one, const void *other) {
    const test_listed *const *a = one;
    const test_listed *const *b = other;
    return ((*a)->line > (*b)->line) - ((*a)->line < (*b)->line);
}

int test_run(const char *group, const test_listed *listed, CMFixtureFunction set_up,
             CMFixtureFunction tear_down, CMFixtureFunction set_up_group,
             CMFixtureFunction tear_down_group) {
    const test_listed *sorted[TESTS_MAX];
    struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0;
    for (; listed != NULL; listed = listed->next) {
        if (count == TESTS_MAX) {
            print_error("a file has more than %d tests\n", (int)TESTS_MAX);
            return 1;
        }
        sorted[count++] = listed;
    }
    qsort(sorted, count, sizeof *sorted, compare_lines);
    for (size_t i = 0; i < count; ++i) {
        tests[i] = sorted[i]->test;
        tests[i].setup_func = set_up;
        tests[i].teardown_func = tear_down;
    }
    return _cmocka_run_group_tests(group, tests, count, set_up_group, tear_down_group);
}
