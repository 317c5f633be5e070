// support/test.h — cmocka with the headers that it wants first, and how a test begins.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_SUPPORT_TEST_H
#define RONDO_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka wants the four above first
#include <cmocka.h>

// A test that needs nothing of its group:  TEST(test_pool__grows) { ... }
#define TEST(name) static void name(__attribute__((unused)) void **state)

#endif  // RONDO_TESTS_SUPPORT_TEST_H
