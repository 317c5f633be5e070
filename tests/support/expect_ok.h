// support/expect_ok.h — OK(call): the running test fails, with the error record, unless it is.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_SUPPORT_EXPECT_OK_H
#define RONDO_TESTS_SUPPORT_EXPECT_OK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rondo/status.h"

#define OK(call) expect_ok((call), #call, __FILE__, __LINE__)

static inline void expect_ok(rondo_status status, const char *text, const char *file, int line) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        print_error("%s: %s (%s in %s)\n", text, error->message, error->driver_name, error->call);
        _fail(file, line);
    }
}

#endif  // RONDO_TESTS_SUPPORT_EXPECT_OK_H
