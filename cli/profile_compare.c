// SPDX-License-Identifier: Apache-2.0

#include "profile_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "file_bytes.h"

enum { SHOWN_MAX = 40 };

// ---- noise ------------------------------------------------------------------------------------

// The mean range of n values of a normal distribution, in standard deviations.
static double get_mean_range(double count) {
    static const double table[][2] = {{2, 1.128},    {3, 1.693},   {5, 2.326},   {10, 3.078},
                                      {20, 3.735},   {50, 4.498},  {100, 5.015}, {500, 6.073},
                                      {1000, 6.483}, {1e5, 8.824}, {1e6, 9.861}};
    enum { COUNT = sizeof table / sizeof table[0] };
    size_t i = 1;
    while (i + 1 < COUNT && count > table[i][0]) {
        i++;
    }
    const double part =
        (log(count) - log(table[i - 1][0])) / (log(table[i][0]) - log(table[i - 1][0]));
    return table[i - 1][1] + (part < 1.0 ? part : 1.0) * (table[i][1] - table[i - 1][1]);
}

profile_event profile_event_make(double runs, double calls, double total_ns, double min_ns,
                                 double max_ns) {
    profile_event event = {.calls = calls / runs, .total = total_ns / runs * 1e-6, .noise = -1.0};
    if (calls >= 2.0) {
        const double deviation = (max_ns - min_ns) / get_mean_range(calls);
        event.noise = 3.0 * deviation / sqrt(calls) * event.calls * 1e-6;
    }
    return event;
}

profile_verdict profile_event_judge(const profile_event *first, const profile_event *second) {
    const double difference = second->total - first->total;
    if (!(fabs(difference) > 0.0)) {
        return PROFILE_SAME;
    }
    if (first->noise < 0.0 || second->noise < 0.0) {
        return PROFILE_UNKNOWN;
    }
    if (!(fabs(difference) > hypot(first->noise, second->noise))) {
        return PROFILE_SAME;
    }
    return difference < 0.0 ? PROFILE_FASTER : PROFILE_SLOWER;
}

// ---- rows -------------------------------------------------------------------------------------

typedef struct row {
    char *path;  // names from the outermost row on; what is sorted by
    profile_event event;
} row;

typedef struct rows {
    size_t count;
    row *items;
} rows;

static void free_rows(rows *list) {
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
    }
    free(list->items);
    *list = (rows){0};
}

static const char *get_text(const cli_json_value *value, const char *key) {
    const cli_json_value *found = cli_json_find(value, key);
    return found != NULL && found->kind == CLI_JSON_TEXT ? found->text : NULL;
}

// A number that may be used; those of strangers may be anything.
static bool get_amount(const cli_json_value *value, const char *key, double *out_number) {
    return cli_json_find_number(value, key, out_number) && isfinite(*out_number) &&
           *out_number >= 0.0;
}

// One row of a file; false when it is not like those that profile writes, or there is no memory.
static bool read_row(const cli_json_value *value, double runs, rows *list) {
    double calls = 0.0;
    double total = 0.0;
    double least = 0.0;
    double most = 0.0;
    double parent = -1.0;
    const char *name = get_text(value, "name");
    if (name == NULL || !get_amount(value, "calls", &calls) || !(calls >= 1.0) ||
        !get_amount(value, "total_ns", &total) || !get_amount(value, "min_ns", &least) ||
        !get_amount(value, "max_ns", &most) || !cli_json_find_number(value, "parent", &parent) ||
        !(parent >= -1.0) || !(parent < (double)list->count)) {
        return false;
    }
    const cli_json_value *flag = cli_json_find(value, "is_device_work");
    const bool is_work = flag != NULL && flag->kind == CLI_JSON_FLAG && flag->number > 0.0;
    const char *outer = parent >= 0.0 ? list->items[(size_t)parent].path : "";
    const size_t bytes = strlen(outer) + strlen(name) + 8;
    char *path = malloc(bytes);
    if (path == NULL) {
        return false;
    }
    const int length =
        snprintf(path, bytes, "%s%s%s", outer, outer[0] != '\0' ? " > " : "", is_work ? "* " : "");
    memcpy(path + length, name, strlen(name) + 1);
    list->items[list->count++] =
        (row){.path = path, .event = profile_event_make(runs, calls, total, least, most)};
    return true;
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(((const row *)a)->path, ((const row *)b)->path);
}

// The rows of a mode, sorted by their paths.
static bool read_rows(const cli_json_value *mode, const char *file, const char *name, rows *out) {
    const cli_json_value *list = cli_json_find(mode, "profile.rows");
    double runs = 0.0;
    *out = (rows){0};
    if (list == NULL || list->kind != CLI_JSON_ARRAY || !get_amount(mode, "runs", &runs) ||
        !(runs >= 1.0)) {
        cli_print_error("%s: %s: no rows, or no number of runs", file, name);
        return false;
    }
    out->items = calloc(list->count + 1, sizeof *out->items);
    bool is_read = out->items != NULL;
    for (const cli_json_value *value = list->first; value != NULL && is_read; value = value->next) {
        is_read = read_row(value, runs, out);
    }
    if (!is_read) {
        cli_print_error("%s: %s: a row is not one of rondo profile --json, or memory is out", file,
                        name);
        free_rows(out);
        return false;
    }
    qsort(out->items, out->count, sizeof *out->items, compare_paths);
    return true;
}

// ---- the comparison ---------------------------------------------------------------------------

typedef struct pair {
    const row *first;   // NULL: appeared
    const row *second;  // NULL: went
    double weight;      // how much time a run it changes
} pair;

static int compare_weights(const void *a, const void *b) {
    const double left = ((const pair *)a)->weight;
    const double right = ((const pair *)b)->weight;
    return (left < right) - (left > right);
}

// Both lists are sorted.
static size_t pair_rows(const rows *first, const rows *second, pair *pairs) {
    size_t count = 0;
    size_t i = 0;
    size_t j = 0;
    while (i < first->count || j < second->count) {
        const int order = i == first->count    ? 1
                          : j == second->count ? -1
                                               : compare_paths(&first->items[i], &second->items[j]);
        pair *p = &pairs[count++];
        p->first = order <= 0 ? &first->items[i++] : NULL;
        p->second = order >= 0 ? &second->items[j++] : NULL;
        const double a = p->first != NULL ? p->first->event.total : 0.0;
        const double b = p->second != NULL ? p->second->event.total : 0.0;
        p->weight = fabs(b - a);
    }
    qsort(pairs, count, sizeof *pairs, compare_weights);
    return count;
}

// "faster   1.52x", "within noise".
static void format_verdict(const pair *p, char *buffer, size_t buffer_bytes) {
    if (p->first == NULL || p->second == NULL) {
        snprintf(buffer, buffer_bytes, "%s", p->first == NULL ? "appeared" : "went");
        return;
    }
    const double a = p->first->event.total;
    const double b = p->second->event.total;
    switch (profile_event_judge(&p->first->event, &p->second->event)) {
        case PROFILE_FASTER:
            snprintf(buffer, buffer_bytes, "faster %.2fx", a / b);
            break;
        case PROFILE_SLOWER:
            snprintf(buffer, buffer_bytes, "slower %.2fx", b / a);
            break;
        case PROFILE_SAME:
            snprintf(buffer, buffer_bytes, "within noise");
            break;
        case PROFILE_UNKNOWN:
            snprintf(buffer, buffer_bytes, "one call");
            break;
    }
}

static void format_time(const row *r, char *buffer, size_t buffer_bytes) {
    if (r == NULL) {
        snprintf(buffer, buffer_bytes, "-");
    } else if (r->event.noise < 0.0) {
        snprintf(buffer, buffer_bytes, "%.4f", r->event.total);
    } else {
        snprintf(buffer, buffer_bytes, "%.4f +-%.4f", r->event.total, r->event.noise);
    }
}

static bool is_noise(const pair *p) {
    return p->first != NULL && p->second != NULL &&
           profile_event_judge(&p->first->event, &p->second->event) == PROFILE_SAME;
}

static void print_pairs(const pair *pairs, size_t count, bool shows_all) {
    size_t shown = 0;
    size_t quiet = 0;
    size_t more = 0;
    cli_say(CLI_NORMAL, "  %-14s %22s %22s %13s  %s", "", "first, ms a run", "second, ms a run",
            "calls a run", "event");
    for (size_t i = 0; i < count; i++) {
        const pair *p = &pairs[i];
        const row *first = p->first != NULL ? p->first : p->second;
        const row *second = p->second != NULL ? p->second : p->first;
        char verdict[32];
        char times[2][48];
        char calls[48];
        if (!shows_all && shown >= SHOWN_MAX) {
            more += is_noise(p) ? 0 : 1;
            quiet += is_noise(p) ? 1 : 0;
            continue;
        }
        format_verdict(p, verdict, sizeof verdict);
        format_time(p->first, times[0], sizeof times[0]);
        format_time(p->second, times[1], sizeof times[1]);
        if (first->event.calls == second->event.calls) {
            snprintf(calls, sizeof calls, "%g", first->event.calls);
        } else {
            snprintf(calls, sizeof calls, "%.4g, %.4g", first->event.calls, second->event.calls);
        }
        cli_say(CLI_RESULT, "  %-14s %22s %22s %13s  %s", verdict, times[0], times[1], calls,
                first->path);
        shown++;
    }
    if (more + quiet > 0) {
        cli_say(CLI_NORMAL,
                "  and %zu that change less, %zu of them within noise (--verbose shows all)",
                more + quiet, quiet);
    }
}

// One mode of both files.
static bool compare_modes(const cli_json_value *first, const cli_json_value *second,
                          char *const *files, bool shows_all) {
    rows lists[2] = {{0}, {0}};
    pair *pairs = NULL;
    bool is_compared = false;
    if (!read_rows(first, files[0], first->key, &lists[0]) ||
        !read_rows(second, files[1], second->key, &lists[1])) {
        goto free_lists;
    }
    pairs = calloc(lists[0].count + lists[1].count + 1, sizeof *pairs);
    if (pairs == NULL) {
        cli_print_error("out of memory");
        goto free_lists;
    }
    const size_t count = pair_rows(&lists[0], &lists[1], pairs);
    double runs[2] = {0.0, 0.0};
    (void)cli_json_find_number(first, "runs", &runs[0]);
    (void)cli_json_find_number(second, "runs", &runs[1]);
    cli_say(CLI_RESULT, "%s: %.0f runs and %.0f runs", first->key, runs[0], runs[1]);
    print_pairs(pairs, count, shows_all);
    is_compared = true;

free_lists:
    free(pairs);
    free_rows(&lists[0]);
    free_rows(&lists[1]);
    return is_compared;
}

// ---- the files --------------------------------------------------------------------------------

static bool load(const char *path, cli_json_value **out_document) {
    cli_bytes bytes;
    *out_document = NULL;
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const bool is_json = cli_json_parse((const char *)bytes.data, bytes.count, path, out_document);
    cli_bytes_free(&bytes);
    const cli_json_value *modes = is_json ? cli_json_find(*out_document, "profiles") : NULL;
    if (is_json && (modes == NULL || modes->kind != CLI_JSON_OBJECT)) {
        cli_print_error("%s: not a report of rondo profile --json", path);
        return false;
    }
    return is_json;
}

static void say_settings(const cli_json_value *first, const cli_json_value *second) {
    static const char *const settings[] = {"model", "device.name", "device.description", "dtype",
                                           "rondo"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *a = get_text(first, settings[i]);
        const char *b = get_text(second, settings[i]);
        if (a != NULL && b != NULL && strcmp(a, b) != 0) {
            cli_say(CLI_NORMAL, "%s: %s against %s", settings[i], a, b);
        }
    }
}

bool profile_compare_files(char *const *paths, bool shows_all) {
    cli_json_value *documents[2] = {NULL, NULL};
    bool is_compared = load(paths[0], &documents[0]) && load(paths[1], &documents[1]);
    if (!is_compared) {
        goto free_documents;
    }
    say_settings(documents[0], documents[1]);
    const cli_json_value *others = cli_json_find(documents[1], "profiles");
    for (const cli_json_value *mode = cli_json_find(documents[0], "profiles")->first;
         mode != NULL && is_compared; mode = mode->next) {
        const cli_json_value *other = cli_json_find(others, mode->key);
        if (other == NULL) {
            cli_say(CLI_RESULT, "%s: only in %s", mode->key, paths[0]);
        } else {
            is_compared = compare_modes(mode, other, paths, shows_all);
        }
    }
    for (const cli_json_value *mode = others->first; mode != NULL && is_compared;
         mode = mode->next) {
        if (cli_json_find(documents[0], "profiles") != NULL &&
            cli_json_find(cli_json_find(documents[0], "profiles"), mode->key) == NULL) {
            cli_say(CLI_RESULT, "%s: only in %s", mode->key, paths[1]);
        }
    }

free_documents:
    cli_json_free(documents[0]);
    cli_json_free(documents[1]);
    return is_compared;
}
