// support/drawn_seed.c — see drawn_seed.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/drawn_seed.h"

#include <stdlib.h>
#include <time.h>

uint64_t draw_seed(void) {
    const char *given = getenv("RONDO_TEST_SEED");
    const uint64_t number = given != NULL ? strtoull(given, NULL, 10) : 0;
    return number > 0 ? number : 1 + (uint64_t)time(NULL) * 1000003u % 1000000;
}
