// SPDX-License-Identifier: Apache-2.0

#include "profile_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "file_bytes.h"
#include "hash_bytes.h"

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

profile_event profile_event_make(double runs, double calls, const double quartiles_ns[3]) {
    const double a_run = calls / runs;
    profile_event event = {.calls = a_run, .time = quartiles_ns[1] * a_run * 1e-6, .noise = -1.0};
    if (calls >= 2.0) {
        // Of a normal distribution 1.349 standard deviations lie between the quartiles; 1.2533:
        // from the error of a mean to that of a median.
        const double deviation = (quartiles_ns[2] - quartiles_ns[0]) / 1.349;
        event.noise = 3.0 * 1.2533 * deviation / sqrt(calls) * a_run * 1e-6;
    }
    return event;
}

profile_event profile_event_make_old(double runs, double calls, double total_ns, double min_ns,
                                     double max_ns) {
    profile_event event = {.calls = calls / runs, .time = total_ns / runs * 1e-6, .noise = -1.0};
    if (calls >= 2.0) {
        const double deviation = (max_ns - min_ns) / get_mean_range(calls);
        event.noise = 3.0 * deviation / sqrt(calls) * event.calls * 1e-6;
    }
    return event;
}

profile_verdict profile_event_judge(const profile_event *first, const profile_event *second) {
    const double difference = second->time - first->time;
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

typedef struct row row;
struct row {
    const row *outer;  // NULL: none
    const char *name;  // of the document
    bool is_device_work;
    uint64_t hash;  // of the names from the outermost row on
    profile_event event;
};

typedef struct rows {
    size_t count;
    row *items;
    const row **sorted;  // so that equal paths of two lists are found side by side
} rows;

static void free_rows(rows *list) {
    free(list->items);
    free(list->sorted);
    *list = (rows){0};
}

// A number that may be used; those of strangers may be anything.
static bool get_amount(json_t *value, const char *key, double *out_number) {
    return cli_json_find_number(value, key, out_number) && isfinite(*out_number) &&
           *out_number >= 0.0;
}

// Goes on from the row around.
static uint64_t hash_name(uint64_t hash, const char *name, bool is_device_work) {
    const unsigned char end[] = {0, is_device_work ? 1 : 0};
    return cli_hash(cli_hash(hash, name, strlen(name)), end, sizeof end);
}

// One row of a file; false when it is not like those that profiles have.
static bool read_row(json_t *value, double runs, rows *list) {
    double calls = 0.0;
    double total = 0.0;
    double least = 0.0;
    double most = 0.0;
    double parent = -1.0;
    const char *name = cli_json_find_text(value, "name");
    if (name == NULL || !get_amount(value, "calls", &calls) || !(calls >= 1.0) ||
        !get_amount(value, "total_ns", &total) || !get_amount(value, "min_ns", &least) ||
        !get_amount(value, "max_ns", &most) || !cli_json_find_number(value, "parent", &parent) ||
        !(parent >= -1.0) || !(parent < (double)list->count)) {
        return false;
    }
    double quartiles[3] = {0.0};
    const bool has_quartiles = get_amount(value, "lower_quartile_ns", &quartiles[0]) &&
                               get_amount(value, "median_ns", &quartiles[1]) &&
                               get_amount(value, "upper_quartile_ns", &quartiles[2]) &&
                               quartiles[0] <= quartiles[1] && quartiles[1] <= quartiles[2];
    const bool is_work = json_is_true(cli_json_find(value, "is_device_work"));
    const row *outer = parent >= 0.0 ? &list->items[(size_t)parent] : NULL;
    row *made = &list->items[list->count];
    *made = (row){.outer = outer, .name = name, .is_device_work = is_work};
    made->hash = hash_name(outer != NULL ? outer->hash : CLI_HASH_SEED, name, is_work);
    made->event = has_quartiles ? profile_event_make(runs, calls, quartiles)
                                : profile_event_make_old(runs, calls, total, least, most);
    list->sorted[list->count++] = made;
    return true;
}

static int compare_paths(const void *a, const void *b) {
    const row *left = *(const row *const *)a;
    const row *right = *(const row *const *)b;
    return left->hash != right->hash ? (left->hash > right->hash ? 1 : -1)
                                     : strcmp(left->name, right->name);
}

// "run > Conv /c > * Conv"; of a long one the end. Made from behind.
static void format_path(const row *r, char *buffer, size_t buffer_bytes) {
    size_t at = buffer_bytes - 1;
    bool fits = true;
    buffer[at] = '\0';
    for (; r != NULL && fits; r = r->outer) {
        const char *const parts[] = {r->name, r->is_device_work ? "* " : "",
                                     r->outer != NULL ? " > " : ""};
        for (size_t i = 0; i < sizeof parts / sizeof parts[0] && fits; i++) {
            const size_t bytes = strlen(parts[i]);
            fits = bytes <= at;
            at -= fits ? bytes : 0;
            memcpy(buffer + at, parts[i], fits ? bytes : 0);
        }
    }
    memmove(buffer, buffer + at, buffer_bytes - at);
}

// One report of a file.
typedef struct mode {
    const char *name;
    json_t *rows;
    double runs;
} mode;

static bool read_rows(const mode *from, const char *file, rows *out) {
    *out = (rows){0};
    const size_t count = json_array_size(from->rows);
    out->items = calloc(count + 1, sizeof *out->items);
    out->sorted = calloc(count + 1, sizeof *out->sorted);
    if (out->items == NULL || out->sorted == NULL) {
        (void)cli_fail_memory();
        free_rows(out);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_row(json_array_get(from->rows, i), from->runs, out)) {
            cli_print_error("%s: %s: row %zu is not like those of a profile", file, from->name,
                            out->count);
            free_rows(out);
            return false;
        }
    }
    qsort(out->sorted, out->count, sizeof *out->sorted, compare_paths);
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
        const int order = i == first->count ? 1
                          : j == second->count
                              ? -1
                              : compare_paths(&first->sorted[i], &second->sorted[j]);
        pair *p = &pairs[count++];
        p->first = order <= 0 ? first->sorted[i++] : NULL;
        p->second = order >= 0 ? second->sorted[j++] : NULL;
        const double a = p->first != NULL ? p->first->event.time : 0.0;
        const double b = p->second != NULL ? p->second->event.time : 0.0;
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
    const double a = p->first->event.time;
    const double b = p->second->event.time;
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
        snprintf(buffer, buffer_bytes, "%.4f", r->event.time);
    } else {
        snprintf(buffer, buffer_bytes, "%.4f +-%.4f", r->event.time, r->event.noise);
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
        char path[400];
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
        format_path(first, path, sizeof path);
        cli_say(CLI_RESULT, "  %-14s %22s %22s %13s  %s", verdict, times[0], times[1], calls, path);
        shown++;
    }
    if (more + quiet > 0) {
        cli_say(CLI_NORMAL,
                "  and %zu that change less, %zu of them within noise (--verbose shows all)",
                more + quiet, quiet);
    }
}

// One report of both files.
static bool compare_modes(const mode *first, const mode *second, char *const *files,
                          bool shows_all) {
    rows lists[2] = {{0}, {0}};
    pair *pairs = NULL;
    bool is_compared = false;
    if (!read_rows(first, files[0], &lists[0]) || !read_rows(second, files[1], &lists[1])) {
        goto free_lists;
    }
    pairs = calloc(lists[0].count + lists[1].count + 1, sizeof *pairs);
    if (pairs == NULL) {
        (void)cli_fail_memory();
        goto free_lists;
    }
    cli_say(CLI_RESULT, "%s: %.0f run%s and %.0f run%s", first->name, first->runs,
            first->runs == 1.0 ? "" : "s", second->runs, second->runs == 1.0 ? "" : "s");
    print_pairs(pairs, pair_rows(&lists[0], &lists[1], pairs), shows_all);
    is_compared = true;

free_lists:
    free(pairs);
    free_rows(&lists[0]);
    free_rows(&lists[1]);
    return is_compared;
}

// ---- the files --------------------------------------------------------------------------------

enum { MODE_MAX = 8 };

typedef struct document {
    json_t *json;
    size_t count;
    mode modes[MODE_MAX];
} document;

// A report of the tool has one for each mode; that of a program (rondo_profile_write) is one, which
// counts as one run.
static void find_modes(document *d) {
    json_t *modes = cli_json_find(d->json, "profiles");
    json_t *list = cli_json_find(d->json, "rows");
    if (json_is_array(list)) {
        d->modes[d->count++] = (mode){.name = "profile", .rows = list, .runs = 1.0};
    }
    const char *name;
    json_t *value;
    json_object_foreach(modes, name, value) {
        double runs = 0.0;
        if (d->count == MODE_MAX) {
            break;
        }
        list = cli_json_find(value, "profile.rows");
        if (json_is_array(list) && get_amount(value, "runs", &runs) && runs >= 1.0) {
            d->modes[d->count++] = (mode){.name = name, .rows = list, .runs = runs};
        }
    }
}

static const mode *find_mode(const document *d, const char *name) {
    for (size_t i = 0; i < d->count; i++) {
        if (strcmp(d->modes[i].name, name) == 0) {
            return &d->modes[i];
        }
    }
    return NULL;
}

static bool load(const char *path, document *out_document) {
    cli_bytes bytes;
    if (!cli_bytes_load(path, &bytes)) {
        return false;
    }
    const bool is_json =
        cli_json_parse((const char *)bytes.data, bytes.count, path, &out_document->json);
    cli_bytes_free(&bytes);
    if (is_json) {
        find_modes(out_document);
    }
    if (is_json && out_document->count == 0) {
        cli_print_error("%s: not a report of rondo profile --json", path);
    }
    return is_json && out_document->count > 0;
}

static void say_settings(json_t *first, json_t *second) {
    static const char *const settings[] = {"model", "device.name", "device.description", "dtype",
                                           "rondo"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *a = cli_json_find_text(first, settings[i]);
        const char *b = cli_json_find_text(second, settings[i]);
        if (a != NULL && b != NULL && strcmp(a, b) != 0) {
            cli_say(CLI_NORMAL, "%s: %s against %s", settings[i], a, b);
        }
    }
}

static void say_alone(const document *d, const document *other, const char *path) {
    for (size_t i = 0; i < d->count; i++) {
        if (find_mode(other, d->modes[i].name) == NULL) {
            cli_say(CLI_RESULT, "%s: only in %s", d->modes[i].name, path);
        }
    }
}

bool profile_compare_files(char *const *paths, bool shows_all) {
    document documents[2] = {{0}, {0}};
    bool is_compared = load(paths[0], &documents[0]) && load(paths[1], &documents[1]);
    if (is_compared) {
        say_settings(documents[0].json, documents[1].json);
    }
    for (size_t i = 0; i < documents[0].count && is_compared; i++) {
        const mode *other = find_mode(&documents[1], documents[0].modes[i].name);
        is_compared =
            other == NULL || compare_modes(&documents[0].modes[i], other, paths, shows_all);
    }
    if (is_compared) {
        say_alone(&documents[0], &documents[1], paths[0]);
        say_alone(&documents[1], &documents[0], paths[1]);
    }
    json_decref(documents[0].json);
    json_decref(documents[1].json);
    return is_compared;
}
