// support/expect_ok.h — OK(call): the running test fails, with the error record, unless it is.
// EXPECT(STATUS, "words", call): it fails unless the call does so, with these words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include "rondo/status.h"
#include "support/test.h"

#define OK(call) expect_ok((call), #call, __FILE__, __LINE__)

static inline void expect_ok(rondo_status status, const char *text, const char *file, int line) {
    if (status != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        print_error("%s: %s (%s in %s)\n", text, error->message, error->driver_name, error->call);
        _fail(file, line);
    }
}

#define EXPECT(status, words, call) \
    expect_words((call), RONDO_STATUS_##status, (words), __FILE__, __LINE__)

static inline void expect_words(rondo_status status, rondo_status wanted, const char *words,
                                const char *file, int line) {
    const char *message = status != RONDO_STATUS_OK ? rondo_error_get_last()->message : "";
    if (status != wanted || strstr(message, words) == NULL) {
        print_error("\"%s\" is not in %s: \"%s\"\n", words, rondo_status_get_name(status), message);
        _fail(file, line);
    }
}
