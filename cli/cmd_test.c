// rondo test — runs ONNX test directories, each eagerly and replayed, and counts.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "missing_ops.h"
#include "progress.h"
#include "session.h"
#include "test_case.h"

typedef struct test_settings {
    const char *device;
    int dtype;
    uint64_t thread_count;
    uint64_t memory_limit;
    bool allow_newer_opset;
    double relative;
    double absolute;
    bool is_list_wanted;
    bool is_quiet;
    cli_list place;
    cli_list keep_f32;
    cli_list use_f16;
} test_settings;

// The last part of a path; trailing slashes do not count.
static void get_base_name(const char *path, char *name, size_t name_bytes) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    snprintf(name, name_bytes, "%.*s", (int)(end - start), path + start);
}

// What ran how: " (39 nodes, 2 ops bypassed)".
static void describe_nodes(const cli_test_result *result, char *text, size_t text_bytes) {
    char bypassed[48] = "";
    if (result->bypassed_count > 0) {
        snprintf(bypassed, sizeof bypassed, "%llu op%s bypassed",
                 (unsigned long long)result->bypassed_count,
                 result->bypassed_count == 1 ? "" : "s");
    }
    text[0] = '\0';
    if (result->was_partly_replayed) {
        snprintf(text, text_bytes, " (%llu node%s%s%s)", (unsigned long long)result->node_count,
                 result->node_count == 1 ? "" : "s", bypassed[0] != '\0' ? ", " : "", bypassed);
    } else if (bypassed[0] != '\0') {
        snprintf(text, text_bytes, " (%s)", bypassed);
    }
}

static void print_result(cli_level level, const char *directory, const cli_test_result *result) {
    char name[256];
    char nodes[96];
    get_base_name(directory, name, sizeof name);
    switch (result->outcome) {
        case CLI_PASSED:
            describe_nodes(result, nodes, sizeof nodes);
            cli_say(level, "passed   %-44s largest error: eager %.3g, %s %.3g%s", name,
                    result->eager_error,
                    result->was_replayed          ? "replayed"
                    : result->was_partly_replayed ? "partly replayed"
                                                  : "again eager",
                    result->replay_error, nodes);
            break;
        case CLI_FAILED_TEST:
            cli_say(level, "FAILED   %-44s %s", name, result->reason);
            if (result->diagnosis[0] != '\0') {
                cli_say(level, "         %s", result->diagnosis);
            }
            break;
        case CLI_SKIPPED:
            cli_say(level, "skipped  %-44s %s", name, result->reason);
            break;
    }
}

static int test_directories(const test_settings *settings, char *const *directories, size_t count) {
    cli_test_settings case_settings = {
        .dtype = settings->dtype == 1 ? RONDO_DTYPE_F16 : RONDO_DTYPE_F32,
        .has_dtype = settings->dtype >= 0,
        .thread_count = (uint32_t)settings->thread_count,
        .memory_limit = settings->memory_limit,
        .allow_newer_opset = settings->allow_newer_opset,
        .relative = settings->relative,
        .absolute = settings->absolute,
        .place = settings->place,
        .keep_f32 = settings->keep_f32,
        .use_f16 = settings->use_f16,
    };
    size_t outcome_counts[3] = {0};
    if (rondo_device_open(settings->device, &case_settings.device) != RONDO_STATUS_OK) {
        return cli_fail_with_record();
    }
    for (size_t i = 0; i < count; i++) {
        cli_test_result result;
        cli_progress_show(NULL, "testing", i, count);
        cli_test_run(directories[i], &case_settings, &result);
        cli_progress_clear();
        outcome_counts[result.outcome]++;
        print_result(result.outcome == CLI_FAILED_TEST ? CLI_RESULT : CLI_NORMAL, directories[i],
                     &result);
    }
    rondo_device_release(case_settings.device);
    cli_say(CLI_RESULT, "%zu passed, %zu failed, %zu skipped", outcome_counts[CLI_PASSED],
            outcome_counts[CLI_FAILED_TEST], outcome_counts[CLI_SKIPPED]);
    return outcome_counts[CLI_FAILED_TEST] > 0 ? CLI_FAILED : CLI_DONE;
}

static int run_test(const cli_command *command, int argc, char **argv) {
    test_settings settings = {
        .device = "auto", .dtype = -1, .relative = (double)NAN, .absolute = (double)NAN};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (!cli_choose_threads(command, settings.thread_count)) {
        return CLI_MISUSE;
    }
    if (!cli_check_precision(command, settings.dtype == 1, &settings.keep_f32, &settings.use_f16)) {
        return CLI_MISUSE;
    }
    cli_set_level(settings.is_quiet ? CLI_RESULT : CLI_NORMAL);
    if (settings.is_list_wanted) {
        return cli_list_missing_ops(argv, operand_count);
    }
    return test_directories(&settings, argv, operand_count);
}

static const cli_option test_options[] = {
    {"--device", "NAME", CLI_TEXT, offsetof(test_settings, device), NULL,
     "auto (default), host, or cuda:N"},
    {"--dtype", NULL, CLI_CHOICE, offsetof(test_settings, dtype), "fp32|fp16",
     "compute in single (default) or half precision"},
    CLI_PRECISION_OPTION_ROWS(test_settings, keep_f32, use_f16),
    CLI_PLACE_OPTION_ROW(test_settings, place),
    {"--threads", "N", CLI_COUNT, offsetof(test_settings, thread_count), NULL,
     "threads for one op on the host, 1 to 1024\n(default: see rondo help environment)"},
    CLI_MEMORY_OPTION_ROW(test_settings, memory_limit),
    CLI_NEWER_OPTION_ROW(test_settings, allow_newer_opset),
    {"--rtol", "X", CLI_NUMBER, offsetof(test_settings, relative), NULL,
     "allowed error relative to the expected value (0.001, or\nas data.json says; bf16: at least "
     "2^-6)"},
    {"--atol", "X", CLI_NUMBER, offsetof(test_settings, absolute), NULL,
     "and absolutely, added to it (1e-7, or likewise)"},
    {"--quiet", NULL, CLI_SWITCH, offsetof(test_settings, is_quiet), NULL,
     "print failures and the closing line only"},
    {"--list-unsupported", NULL, CLI_SWITCH, offsetof(test_settings, is_list_wanted), NULL,
     "run nothing; count which ops are missing, by op"},
};

const cli_command cli_command_test = {
    .name = "test",
    .operands = "DIR...",
    .summary = "run ONNX test directories, eagerly and replayed",
    .details =
        "A directory holds model.onnx and test_data_set_N with input_K.pb and output_K.pb. Each "
        "is\n"
        "run eagerly and then replayed from captured graphs, and both results are compared with "
        "the\n"
        "expected outputs. What Rondo does not support is skipped with the reason. Real numbers "
        "may\n"
        "differ by ATOL + RTOL * |expected|; in networks of more than 16 ops also by 1e-5 of the\n"
        "output's largest magnitude. With --dtype fp16, and in networks that are in f16 "
        "themselves, an\n"
        "output may differ by 2e-2 of its norm, and single elements by 1e-1 of its largest\n"
        "magnitude, by four times as much in bf16. Where that fails with --dtype fp16, the op "
        "that\n"
        "loses the precision is named, and which --keep-f32 help.",
    .operand_min = 1,
    .operand_max = SIZE_MAX,
    .options = test_options,
    .option_count = sizeof test_options / sizeof test_options[0],
    .run = run_test,
};
