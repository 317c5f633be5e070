// support/one_of_many.h — included in front of a test's source where one program runs many of them.
//
// Linking 200 programs with the library costs minutes on a small machine, so the tests of a folder
// are one program with a link to it for each file: it runs the one whose name it is called by. So
// `main` of a file becomes a function of its own, which RONDO_TEST_ENTRY names for the table.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// One of the two is set.
typedef struct test_entry {
    int (*run)(void);
    int (*run_with_arguments)(int argc, char **argv);
} test_entry;

#ifdef RONDO_TEST_ENTRY
extern const test_entry RONDO_TEST_ENTRY;
#define main(...)                                                                         \
    RONDO_TEST_MAIN(__VA_ARGS__);                                                         \
    const test_entry RONDO_TEST_ENTRY = {_Generic(&RONDO_TEST_MAIN, int (*)(void)         \
                                                  : &RONDO_TEST_MAIN, default             \
                                                  : NULL),                                \
                                         _Generic(&RONDO_TEST_MAIN, int (*)(int, char **) \
                                                  : &RONDO_TEST_MAIN, default             \
                                                  : NULL)};                               \
    int RONDO_TEST_MAIN(__VA_ARGS__)
#endif
