// executor/state/verbosity.c — see verbosity.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/verbosity.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log/logging.h"

enum { ENTRIES_DEFAULT = 1000, LEVEL_MAX = 2 };

// A whole number of at least 0; `fallback` where the variable is not set, or holds something else.
static uint64_t read_number(const char *name, const char *text, uint64_t fallback) {
    char *end = NULL;
    if (text == NULL || text[0] == '\0') {
        return fallback;
    }
    const unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0') {
        RONDO_LOG_WARN_F("%s is \"%.40s\", which is no whole number; %" PRIu64 " is used", name,
                         text, fallback);
        return fallback;
    }
    return value;
}

void rondo__verbose_init(rondo_executor *executor) {
    const uint64_t level = read_number("RONDO_GRAPHS_VERBOSE", getenv("RONDO_GRAPHS_VERBOSE"), 0);
    executor->resources.verbose.level = level < LEVEL_MAX ? (int32_t)level : LEVEL_MAX;
    executor->resources.verbose.limit = read_number(
        "RONDO_GRAPHS_MAX_LOG_ENTRIES", getenv("RONDO_GRAPHS_MAX_LOG_ENTRIES"), ENTRIES_DEFAULT);
}
