// options/options_main.c — executors with drawn options in combination, under drawn calls.
//
//   rondo_options [--device NAME] [--rounds N] [--seed S] [--only INDEX] [--keep-going]
//
// Seed 0 draws one. A round that goes wrong is printed with its options and the arguments that
// repeat it alone; RONDO_OPTIONS_VERBOSE=1 then prints its calls.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "support/drawn_seed.h"
#include "support/expect_ok.h"

enum { SKIPPED = 77 };

typedef struct arguments {
    const char *device;
    uint64_t rounds;
    uint64_t seed;
    uint64_t only;
    bool keeps_going;
} arguments;

static arguments given = {.device = "host", .rounds = 60, .seed = 1, .only = UINT64_MAX};

static void ignore_line(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

TEST(run_rounds) {
    rondo_device *device;
    size_t pairs = 0;
    size_t wrong = 0;
    option_row *rows = calloc(given.rounds, sizeof *rows);
    assert_non_null(rows);
    OK(rondo_device_open(given.device, &device));
    const size_t missing = option_rows_draw(rows, given.rounds, given.seed, &pairs);
    for (uint64_t i = 0; i < given.rounds && (wrong == 0 || given.keeps_going); ++i) {
        if ((given.only == UINT64_MAX || given.only == i) &&
            !round_run(device, &rows[i], given.seed, i)) {
            printf("round %" PRIu64 " (--device %s --rounds %" PRIu64 " --seed %" PRIu64
                   " --only %" PRIu64 "):",
                   i, given.device, given.rounds, given.seed, i);
            option_row_print(&rows[i]);
            printf("\n");
            (void)fflush(stdout);
            wrong += 1;
        }
    }
    rondo_device_release(device);
    free(rows);
    printf("%" PRIu64 " rounds, seed %" PRIu64 ", %zu of %zu pairs, wrong %zu\n", given.rounds,
           given.seed, pairs - missing, pairs, wrong);
    assert_int_equal(wrong, 0);
}

static bool read_arguments(int count, char **values) {
    for (int i = 1; i < count; ++i) {
        const char *next = i + 1 < count ? values[i + 1] : "";
        if (strcmp(values[i], "--keep-going") == 0) {
            given.keeps_going = true;
            continue;
        }
        if (strcmp(values[i], "--device") == 0) {
            given.device = next;
        } else if (strcmp(values[i], "--rounds") == 0) {
            given.rounds = strtoull(next, NULL, 10);
        } else if (strcmp(values[i], "--seed") == 0) {
            given.seed = strtoull(next, NULL, 10);
        } else if (strcmp(values[i], "--only") == 0) {
            given.only = strtoull(next, NULL, 10);
        } else {
            return false;
        }
        i += 1;
    }
    given.seed = given.seed != 0 ? given.seed : draw_seed();
    return given.rounds > 0;
}

int main(int count, char **values) {
    rondo_device *device = NULL;
    if (!read_arguments(count, values)) {
        fprintf(stderr,
                "usage: rondo_options [--device NAME] [--rounds N] [--seed S] "
                "[--only INDEX] [--keep-going]\n");
        return 2;
    }
    if (rondo_device_open(given.device, &device) != RONDO_STATUS_OK) {
        printf("skipped: %s\n", rondo_error_get_last()->message);
        return SKIPPED;
    }
    rondo_device_release(device);
    rondo_log_set_sink(ignore_line, NULL);
    printf("seed %" PRIu64 "\n", given.seed);
    (void)fflush(stdout);
    const struct CMUnitTest tests[] = {cmocka_unit_test(run_rounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
