// rondo compare — two runs' outputs, or two measurements.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cast.h"
#include "command.h"
#include "compare.h"
#include "compare_bench.h"
#include "file_bytes.h"
#include "json_writer.h"
#include "name_index.h"
#include "output_file.h"
#include "tensor_file.h"

typedef struct compare_settings {
    double relative;
    double absolute;
    bool casts;
    double slowdown;
    const char *json_path;
    bool is_quiet;
} compare_settings;

// ---- tensors ----------------------------------------------------------------------------------

// "[1, 0, 3]", the place of element `index`.
static char *format_place(const rondo_shape *shape, size_t index, char *buffer,
                          size_t buffer_bytes) {
    rondo_shape place = {.rank = shape->rank};
    for (int32_t d = shape->rank - 1; d >= 0; d--) {
        place.extent[d] = (int64_t)(index % (size_t)shape->extent[d]);
        index /= (size_t)shape->extent[d];
    }
    return rondo_shape_format(&place, buffer, buffer_bytes);
}

static void write_json_tensor(cli_json *json, const char *name, const rondo_tensor *tensor,
                              const cli_comparison *comparison) {
    cli_json_begin(json, NULL, '{');
    cli_json_text(json, "name", name);
    cli_json_flag(json, "equal", comparison->is_equal);
    cli_json_number(json, "largest_absolute", comparison->largest_error);
    cli_json_number(json, "largest_relative", comparison->largest_relative);
    cli_json_count(json, "elements", (uint64_t)rondo_shape_get_count(&tensor->shape));
    cli_json_count(json, "differing", comparison->mismatch_count);
    if (comparison->mismatch_count > 0) {
        cli_json_count(json, "first_differing", comparison->first_mismatch);
    }
    cli_json_text(json, "reason", comparison->is_equal ? NULL : comparison->reason);
    cli_json_end(json, '}');
}

static void say_comparison(const char *name, const rondo_tensor *tensor,
                           const cli_comparison *comparison) {
    char shape[128];
    char place[128];
    rondo_shape_format(&tensor->shape, shape, sizeof shape);
    cli_say(comparison->is_equal ? CLI_NORMAL : CLI_RESULT,
            "%-9s %s  %s %s: largest difference %.3g, relative %.3g",
            comparison->is_equal ? "same" : "DIFFERENT", name, rondo_dtype_get_name(tensor->dtype),
            shape, comparison->largest_error, comparison->largest_relative);
    if (!comparison->is_equal && comparison->mismatch_count > 0) {
        cli_say(CLI_RESULT, "          %zu of %" PRId64 " elements differ, the first at %s: %s",
                comparison->mismatch_count, rondo_shape_get_count(&tensor->shape),
                format_place(&tensor->shape, comparison->first_mismatch, place, sizeof place),
                comparison->reason);
    } else if (!comparison->is_equal) {
        cli_say(CLI_RESULT, "          %s", comparison->reason);
    }
}

// Compares one pair. False when it cannot be cast, which is printed.
static bool compare_pair(const compare_settings *settings, const char *name, rondo_tensor *first,
                         const rondo_tensor *second, cli_json *json, size_t *different_count) {
    const cli_tolerance tolerance = {.relative = settings->relative,
                                     .absolute = settings->absolute};
    if (settings->casts && !cli_cast(name, second->dtype, first)) {
        return false;
    }
    const cli_comparison comparison = cli_compare(first, second, &tolerance);
    say_comparison(name, second, &comparison);
    if (json->file != NULL) {
        write_json_tensor(json, name, second, &comparison);
    }
    *different_count += comparison.is_equal ? 0 : 1;
    return true;
}

static void say_missing(const char *name, const char *path, cli_json *json,
                        size_t *different_count) {
    cli_say(CLI_RESULT, "MISSING   %s  is not in %s", name, path);
    if (json->file != NULL) {
        cli_json_begin(json, NULL, '{');
        cli_json_text(json, "name", name);
        cli_json_flag(json, "equal", false);
        cli_json_text(json, "missing_in", path);
        cli_json_end(json, '}');
    }
    *different_count += 1;
}

// Pairs tensors by name. NULL as `index`: there is one on each side, and names do not matter.
static bool compare_sets(const compare_settings *settings, char *const *paths, cli_tensor_set *sets,
                         const cli_name_index *index, cli_json *json, size_t *different_count) {
    bool *is_paired = calloc(sets[1].count + 1, sizeof *is_paired);
    if (is_paired == NULL) {
        return cli_fail_memory();
    }
    bool is_done = true;
    for (size_t i = 0; i < sets[0].count && is_done; i++) {
        const char *name = sets[0].names[i];
        const size_t other = index == NULL ? 0 : cli_name_index_find(index, name);
        if (other == SIZE_MAX || is_paired[other]) {
            say_missing(name, paths[1], json, different_count);
            continue;
        }
        is_paired[other] = true;
        is_done = compare_pair(settings, name, &sets[0].tensors[i], &sets[1].tensors[other], json,
                               different_count);
    }
    for (size_t i = 0; i < sets[1].count && is_done; i++) {
        if (!is_paired[i]) {
            say_missing(sets[1].names[i], paths[0], json, different_count);
        }
    }
    free(is_paired);
    return is_done;
}

static int compare_tensors(const compare_settings *settings, char *const *paths) {
    cli_tensor_set sets[2] = {{0}, {0}};
    cli_name_index indexes[2] = {{0}, {0}};
    cli_output output = {.file = NULL};
    size_t different_count = 0;
    int status = CLI_FAILED;
    if (!cli_output_check(settings->json_path) || !cli_tensor_set_read(paths[0], &sets[0]) ||
        !cli_tensor_set_read(paths[1], &sets[1])) {
        goto free_sets;
    }
    const bool is_single = sets[0].count == 1 && sets[1].count == 1;
    if (!is_single && (!cli_name_index_init(&sets[0], paths[0], &indexes[0]) ||
                       !cli_name_index_init(&sets[1], paths[1], &indexes[1]))) {
        goto free_sets;
    }
    if (settings->json_path != NULL && !cli_output_open(settings->json_path, &output)) {
        goto free_sets;
    }
    cli_json json = {.file = output.file};
    if (json.file != NULL) {
        cli_json_begin(&json, NULL, '{');
        cli_json_begin(&json, "tensors", '[');
    }
    const bool is_compared = compare_sets(settings, paths, sets, is_single ? NULL : &indexes[1],
                                          &json, &different_count);
    if (json.file != NULL) {
        cli_json_end(&json, ']');
        cli_json_count(&json, "different", different_count);
        cli_json_end(&json, '}');
        if (!cli_output_close(&output)) {
            goto free_sets;
        }
    }
    if (is_compared) {
        cli_say(CLI_RESULT, "%zu tensor%s, %zu different", sets[0].count,
                sets[0].count == 1 ? "" : "s", different_count);
        status = different_count == 0 ? CLI_DONE : CLI_FAILED;
    }

free_sets:
    cli_name_index_free(&indexes[0]);
    cli_name_index_free(&indexes[1]);
    cli_tensor_set_free(&sets[0]);
    cli_tensor_set_free(&sets[1]);
    return status;
}

// ---- measurements -----------------------------------------------------------------------------

static bool is_json_name(const char *path) {
    const size_t length = strlen(path);
    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

static bool load_bench(const char *path, json_t **out_document) {
    cli_bytes bytes;
    *out_document = NULL;
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const bool is_json = cli_json_parse((const char *)bytes.data, bytes.count, path, out_document);
    cli_bytes_free(&bytes);
    if (is_json && !cli_is_bench(*out_document)) {
        cli_print_error("%s: not a measurement of rondo bench --json", path);
        return false;
    }
    return is_json;
}

static int compare_measurements(const compare_settings *settings, char *const *paths) {
    json_t *documents[2] = {NULL, NULL};
    int status = CLI_FAILED;
    if (load_bench(paths[0], &documents[0]) && load_bench(paths[1], &documents[1]) &&
        cli_compare_benches(documents[0], documents[1], settings->slowdown)) {
        status = CLI_DONE;
    }
    json_decref(documents[0]);
    json_decref(documents[1]);
    return status;
}

// ---- the command ------------------------------------------------------------------------------

static int run_compare(const cli_command *command, int argc, char **argv) {
    compare_settings settings = {.relative = 1e-3, .absolute = 1e-7};
    size_t operand_count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, &settings, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    if (is_json_name(argv[0]) != is_json_name(argv[1])) {
        return cli_fail_misuse(command, "a measurement (.json) is compared with another one only");
    }
    cli_set_level(settings.json_path != NULL && strcmp(settings.json_path, "-") == 0 ? CLI_SILENT
                  : settings.is_quiet                                                ? CLI_RESULT
                                                                                     : CLI_NORMAL);
    if (!is_json_name(argv[0])) {
        return compare_tensors(&settings, argv);
    }
    if (settings.json_path != NULL) {
        return cli_fail_misuse(command, "--json is for tensors; measurements are JSON already");
    }
    return compare_measurements(&settings, argv);
}

static const cli_option compare_options[] = {
    {"--rtol", "X", CLI_NUMBER, offsetof(compare_settings, relative), NULL,
     "allowed difference relative to the second value (0.001)"},
    {"--atol", "X", CLI_NUMBER, offsetof(compare_settings, absolute), NULL,
     "and absolutely, added to it (1e-7)"},
    {"--cast", NULL, CLI_SWITCH, offsetof(compare_settings, casts), NULL,
     "compare values of different element types, as the\nsecond one's"},
    {"--slowdown", "PERCENT", CLI_NUMBER, offsetof(compare_settings, slowdown), NULL,
     "by how much the second measurement may be slower (0)"},
    {"--json", "FILE", CLI_TEXT, offsetof(compare_settings, json_path), NULL,
     "write the comparison of tensors as JSON; - is standard\noutput, in place of the text"},
    {"--quiet", NULL, CLI_SWITCH, offsetof(compare_settings, is_quiet), NULL,
     "print differences and the closing line only"},
};

const cli_command cli_command_compare = {
    .name = "compare",
    .operands = "FILE FILE",
    .summary = "compare the outputs of two runs, or two measurements",
    .details =
        "Outputs: folders of `rondo run --output-dir`, .npy, .npz or .pb files, also those of "
        "another\n"
        "runtime (numpy.savez(\"out.npz\", **outputs)). Tensors are paired by name, the name that "
        "a .pb\n"
        "carries included. Reals may differ by ATOL + RTOL * |second|; whole numbers are equal or\n"
        "not. Measurements: two files of `rondo bench --json`, judged by their medians and by "
        "what\n"
        "chance does to those within a measurement.\n"
        "Exit status 1: something differs, or the second measurement is slower.",
    .operand_min = 2,
    .operand_max = 2,
    .options = compare_options,
    .option_count = sizeof compare_options / sizeof compare_options[0],
    .run = run_compare,
};
