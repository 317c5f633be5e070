// support/test.h — cmocka with the headers that it wants first, and what a test file is made of.
//
//   TEST(test_pool__grows) { ... }      a test; those of a file run in the order of its lines
//   TEST_MAIN()                         runs them all
//   TEST_MAIN_WITH(set_up, tear_down)   the same, each between these two
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above first
#include <cmocka.h>

// The tests of a file, in any order.
typedef struct test_listed {
    struct CMUnitTest test;
    int line;
    const struct test_listed *next;
} test_listed;

static const test_listed *g_listed __attribute__((unused));

#define TEST(what)                                                                  \
    static void what(void **state);                                                 \
    __attribute__((constructor)) static void what##__list(void) {                   \
        static test_listed listed = {.test = {.name = #what, .test_func = (what)}}; \
        listed.line = __LINE__;                                                     \
        listed.next = g_listed;                                                     \
        g_listed = &listed;                                                         \
    }                                                                               \
    static void what(__attribute__((unused)) void **state)

// Runs the tests as a group of that name, each between set_up and tear_down, all between the other
// two; any may be NULL. Returns how many failed.
int test_run(const char *group, const test_listed *listed, CMFixtureFunction set_up,
             CMFixtureFunction tear_down, CMFixtureFunction set_up_group,
             CMFixtureFunction tear_down_group);

#define RUN_TESTS(set_up_group, tear_down_group) \
    test_run("tests", g_listed, NULL, NULL, (set_up_group), (tear_down_group))
#define TEST_MAIN_WITH(set_up, tear_down)                                      \
    int main(void) {                                                           \
        return test_run("tests", g_listed, (set_up), (tear_down), NULL, NULL); \
    }
#define TEST_MAIN() TEST_MAIN_WITH(NULL, NULL)
