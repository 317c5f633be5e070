// rondo_conformance [DEVICE]... — runs the suite on the devices named, or on every available one.
// rondo_conformance --list     — prints the names of the cases.
// rondo_conformance --case TEXT [DEVICE]... — only the cases with that text in their names.
//
// The device "fake" is the CUDA backend on tests/support/fake_cuda, where no GPU is needed;
// "null:0" is the one that records and runs nothing (src/core/backend/null).
//
// Exit status: 0 all passed, 1 something failed, 77 skipped because a device is missing (the reason
// is printed). RONDO_REQUIRE lists names of devices, or beginnings of names, with commas between:
// RONDO_REQUIRE=cuda makes a missing CUDA device a failure.
// The program rondo_inside is the same over the cases of tests/inside.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

#include <errno.h>

enum { CASE_COUNT_MAX = 1024, NAME_BYTES = 128 };

static const char *const mode_names[] = {"eager", "captured", "replayed"};

// Lives outside the functions because cmocka keeps pointers into it.
static struct CMUnitTest tests[CASE_COUNT_MAX];
static suite_case cases[CASE_COUNT_MAX];
static char names[CASE_COUNT_MAX][NAME_BYTES];

static const char *wanted = "";  // part of the names of the cases that run

static size_t list_cases(suite_context *context) {
    size_t count = 0;
    for (const suite_entry *entry = suite_entries; entry != NULL; entry = entry->next) {
        int mode_count = entry->has_modes ? 3 : 1;
        for (int mode = 0; mode < mode_count; ++mode) {
            if (count == CASE_COUNT_MAX) {
                fprintf(stderr, "%s: more than %d cases\n", program_invocation_short_name,
                        CASE_COUNT_MAX);
                exit(1);
            }
            cases[count] = (suite_case){.context = context, .mode = (suite_mode)mode};
            snprintf(names[count], NAME_BYTES, "%s%s%s", entry->name, entry->has_modes ? "." : "",
                     entry->has_modes ? mode_names[mode] : "");
            if (strstr(names[count], wanted) == NULL) {
                continue;
            }
            tests[count] = (struct CMUnitTest){
                .name = names[count], .test_func = entry->function, .initial_state = &cases[count]};
            ++count;
        }
    }
    return count;
}

// 0 passed, 1 failed, 77 skipped.
static int run_device(const char *name) {
    suite_context context;
    if (suite_open(name, &context) != RONDO_STATUS_OK) {
        const rondo_error *error = rondo_error_get_last();
        if (error->status != RONDO_STATUS_UNAVAILABLE || suite_is_required(name)) {
            fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, name, error->message);
            return 1;
        }
        printf("skipped: %s: %s\n", name, error->message);
        return 77;
    }
    size_t count = list_cases(&context);
    printf("%s: %zu cases on %s\n", program_invocation_short_name, count, name);
    fflush(stdout);
    int failures = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    suite_close(&context);
    return failures != 0;
}

// Runs every device that works, and counts the rest as skipped.
static int run_all(void) {
    rondo_device_info infos[64] = {{.struct_size = sizeof *infos}};
    size_t count = 0;
    if (rondo_device_list(infos, 64, &count) != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, rondo_error_get_last()->message);
        return 1;
    }
    int failures = 0;
    int skips = 0;
    for (size_t i = 0; i < count && i < 64; ++i) {
        if (!infos[i].available) {
            printf("skipped: %s: %s\n", infos[i].name, infos[i].reason);
            ++skips;
            failures += suite_is_required(infos[i].name);
            continue;
        }
        int result = run_device(infos[i].name);
        failures += result == 1;
        skips += result == 77;
    }
    printf("%s: %d devices failed, %d skipped\n", program_invocation_short_name, failures, skips);
    return failures != 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--case") == 0) {
        wanted = argv[2];
        argv += 2;
        argc -= 2;
    }
    if (argc < 2) {
        return run_all();
    }
    if (strcmp(argv[1], "--list") == 0) {
        size_t count = list_cases(NULL);
        for (size_t i = 0; i < count; ++i) {
            printf("%s\n", names[i]);
        }
        return 0;
    }
    int failures = 0;
    int skips = 0;
    for (int i = 1; i < argc; ++i) {
        int result = run_device(argv[i]);
        failures += result == 1;
        skips += result == 77;
    }
    return failures != 0 ? 1 : skips == argc - 1 ? 77 : 0;
}
