// The JSON of a profile, read back: the sums, the nesting and the order that a report promises hold
// for the numbers that other programs get.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"

enum { ROWS_MAX = 400, RUNS = 7 };

// ---- the profile ------------------------------------------------------------------------------

static void run_model(rondo_executor *executor) {
    float values[4] = {1, 2, 3, 4};
    rondo_binding fetch = {.name = "y"};
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, 4);
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    rondo_tensor_deinit(&fetch.tensor);
}

// Copies that are waited for and one that is not.
static void copy_some(rondo_device *device, rondo_stream *stream) {
    char bytes[64] = {0};
    void *pinned;
    void *memory;
    OK(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, 64, &pinned));
    OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &memory));
    OK(rondo_stream_copy(stream, memory, bytes, 64, RONDO_COPY_HOST_TO_DEVICE));
    OK(rondo_stream_copy(stream, bytes, memory, 32, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_copy(stream, pinned, memory, 16, RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(stream));
    rondo_memory_free(device, memory);
    rondo_memory_free(device, pinned);
}

static rondo_profile *make_profile(void) {
    char path[512];
    rondo_device *device;
    rondo_stream *stream;
    rondo_program *program;
    rondo_executor *executor;
    rondo_profile *profile;
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/norm/model.onnx", get_source_dir());
    OK(rondo_device_open("host", &device));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_program_load_onnx(path, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_profile_create(NULL, &profile));
    OK(rondo_profile_start(profile));
    for (int i = 0; i < RUNS; ++i) {
        OK(rondo_profile_begin("turn"));
        run_model(executor);
        OK(rondo_profile_end());
    }
    copy_some(device, stream);
    OK(rondo_profile_stop(profile));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return profile;
}

static bool keep(void *user_data, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, user_data) == bytes;
}

static json_t *read_profile(rondo_profile *profile, rondo_profile_key key) {
    const rondo_profile_write_options options = {.struct_size = sizeof options,
                                                 .format = RONDO_PROFILE_JSON,
                                                 .key = key,
                                                 .title = "turns \"and\" <all>"};
    char *bytes = NULL;
    size_t length = 0;
    json_t *document = NULL;
    FILE *file = open_memstream(&bytes, &length);
    assert_non_null(file);
    OK(rondo_profile_write(profile, &options, keep, file));
    assert_int_equal(fclose(file), 0);
    assert_true(cli_json_parse(bytes, length, "profile", &document));
    free(bytes);
    return document;
}

static double number(json_t *value, const char *path) {
    double found = -1.0;
    if (!cli_json_find_number(value, path, &found)) {
        fail_msg("no number \"%s\"", path);
    }
    return found;
}

static bool is_equal(double a, double b) {
    return !(a < b) && !(a > b);
}

// ---- the table --------------------------------------------------------------------------------

typedef struct row {
    double parent, depth, calls, total, cpu, gpu, min, max;
    bool is_work;
} row;

static row rows[ROWS_MAX];
static size_t row_count;

static void read_rows(json_t *document) {
    row_count = 0;
    size_t index;
    json_t *r;
    json_array_foreach(cli_json_find(document, "rows"), index, r) {
        assert_true(row_count < ROWS_MAX);
        rows[row_count++] = (row){.parent = number(r, "parent"),
                                  .depth = number(r, "depth"),
                                  .calls = number(r, "calls"),
                                  .total = number(r, "total_ns"),
                                  .cpu = number(r, "cpu_ns"),
                                  .gpu = number(r, "gpu_ns"),
                                  .min = number(r, "min_ns"),
                                  .max = number(r, "max_ns"),
                                  .is_work = json_is_true(cli_json_find(r, "is_device_work"))};
        const row *made = &rows[row_count - 1];
        const double lower = number(r, "lower_quartile_ns");
        const double median = number(r, "median_ns");
        const double upper = number(r, "upper_quartile_ns");
        assert_true(made->min <= lower && lower <= median && median <= upper && upper <= made->max);
        assert_true(made->calls > 1 || is_equal(median, made->total));
        const char *name = cli_json_find_text(r, "name");
        if (strcmp(name, "run") == 0 || strcmp(name, "turn") == 0) {
            assert_true(is_equal(number(r, "calls"), RUNS));
        }
    }
}

static double weigh(const row *r, rondo_profile_key key) {
    return key == RONDO_PROFILE_BY_CALLS     ? r->calls
           : key == RONDO_PROFILE_BY_MIN     ? r->min
           : key == RONDO_PROFILE_BY_MAX     ? r->max
           : key == RONDO_PROFILE_BY_AVERAGE ? (double)(uint64_t)(r->total / r->calls)
           : key == RONDO_PROFILE_BY_GPU     ? r->gpu
                                             : r->total;
}

// Rows under `parent` fit into it and stand in the order of the key; gives their total.
static double check_inside(double parent, rondo_profile_key key) {
    double total = 0.0;
    const row *former = NULL;
    for (size_t i = 0; i < row_count; ++i) {
        if (is_equal(rows[i].parent, parent)) {
            assert_true(former == NULL || !(weigh(former, key) < weigh(&rows[i], key)));
            total += rows[i].is_work ? 0.0 : rows[i].total;
            former = &rows[i];
        }
    }
    return total;
}

static double get_number(const json_t *list, size_t index) {
    const json_t *value = json_array_get(list, index);
    assert_true(json_is_number(value) || json_is_boolean(value));
    return json_is_number(value) ? json_number_value(value) : json_is_true(value);
}

enum { SPAN_ID, SPAN_PARENT, SPAN_THREAD, SPAN_CATEGORY, SPAN_NAME, SPAN_DETAIL, SPAN_BEGIN };
enum { SPAN_END = SPAN_BEGIN + 1, SPAN_BYTES, SPAN_WAY, SPAN_IS_ASYNC };
enum { WORK_SPAN = 0, WORK_NAME = 3, WORK_BEGIN = 8, WORK_END = 9 };

// Threads that have events; workers of streams have none of their own.
static double count_threads(json_t *document) {
    enum { THREADS_MAX = 64 };
    bool has_events[THREADS_MAX] = {false};
    double count = 0.0;
    size_t index;
    json_t *s;
    json_array_foreach(cli_json_find(document, "spans"), index, s) {
        const double thread = get_number(s, SPAN_THREAD);
        assert_true(thread < (double)json_array_size(cli_json_find(document, "threads")));
        assert_true(thread < THREADS_MAX);
        count += has_events[(size_t)thread] ? 0.0 : 1.0;
        has_events[(size_t)thread] = true;
    }
    return count;
}

static void check_rows(json_t *document, rondo_profile_key key) {
    const double total = number(document, "total_ns");
    const double thread_count = count_threads(document);
    assert_true(
        is_equal(number(document, "computation_ns") + number(document, "framework_ns"), total));
    read_rows(document);
    for (size_t i = 0; i < row_count; ++i) {
        const row *r = &rows[i];
        assert_true(r->calls > 0 && !(r->min > r->max) && !(r->cpu > r->total));
        assert_true(!(r->total / r->calls < r->min) && !(r->total / r->calls > r->max));
        assert_true(r->parent < (double)i);
        assert_true(is_equal(r->depth, r->parent < 0 ? 0 : rows[(size_t)r->parent].depth + 1));
        const double inside = check_inside((double)i, key);
        assert_true(r->is_work || !(inside > r->total));
    }
    assert_true(is_equal(check_inside(-1, key), total * thread_count));
}

TEST(test_cli_profile_json__rows) {
    rondo_profile *profile = make_profile();
    for (rondo_profile_key key = RONDO_PROFILE_BY_TOTAL; key <= RONDO_PROFILE_BY_AVERAGE; ++key) {
        json_t *document = read_profile(profile, key);
        assert_true(is_equal(number(document, "format"), 1));
        assert_string_equal(cli_json_find_text(document, "title"), "turns \"and\" <all>");
        check_rows(document, key);
        json_decref(document);
    }
    rondo_profile_destroy(profile);
}

// ---- records ----------------------------------------------------------------------------------

static json_t *find_span(json_t *spans, double id) {
    size_t index;
    json_t *s;
    json_array_foreach(spans, index, s) {
        if (is_equal(get_number(s, SPAN_ID), id)) {
            return s;
        }
    }
    fail_msg("no span %g", id);
    return NULL;
}

static void check_texts(json_t *document) {
    const size_t count = json_array_size(cli_json_find(document, "texts"));
    size_t index;
    json_t *s;
    json_array_foreach(cli_json_find(document, "spans"), index, s) {
        assert_true(get_number(s, SPAN_NAME) < (double)count);
        assert_true(get_number(s, SPAN_DETAIL) < (double)count);
    }
    json_t *w;
    json_array_foreach(cli_json_find(document, "works"), index, w) {
        assert_true(get_number(w, WORK_NAME) < (double)count);
    }
}

// Spans lie within those around them, on one thread, and within the region; work belongs to spans.
static void check_spans(json_t *document) {
    const double total = number(document, "total_ns");
    json_t *spans = cli_json_find(document, "spans");
    size_t index;
    json_t *s;
    json_array_foreach(spans, index, s) {
        const double begin = get_number(s, SPAN_BEGIN);
        const double end = get_number(s, SPAN_END);
        assert_true(!(begin > end) && !(end > total));
        if (get_number(s, SPAN_PARENT) > 0) {
            json_t *outer = find_span(spans, get_number(s, SPAN_PARENT));
            assert_true(!(begin < get_number(outer, SPAN_BEGIN)));
            assert_true(!(end > get_number(outer, SPAN_END)));
            assert_true(is_equal(get_number(outer, SPAN_THREAD), get_number(s, SPAN_THREAD)));
        }
    }
    json_t *w;
    json_array_foreach(cli_json_find(document, "works"), index, w) {
        assert_true(!(get_number(w, WORK_BEGIN) > get_number(w, WORK_END)));
        assert_true(!(get_number(w, WORK_SPAN) > 0) ||
                    find_span(spans, get_number(w, WORK_SPAN)) != NULL);
    }
}

// What is told of copies in sum is what the single ones say: by calls and bytes.
static void check_copies(json_t *document) {
    static const char *const kinds[] = {"memcpy.sync", "memcpy.async"};
    for (int is_async = 0; is_async < 2; ++is_async) {
        char path[40];
        double calls = 0.0;
        double bytes = 0.0;
        size_t index;
        json_t *s;
        json_array_foreach(cli_json_find(document, "spans"), index, s) {
            const bool is_counted =
                strcmp(json_string_value(json_array_get(s, SPAN_CATEGORY)), "copy") == 0 &&
                (get_number(s, SPAN_IS_ASYNC) > 0) == (is_async > 0);
            calls += is_counted ? 1.0 : 0.0;
            bytes += is_counted ? get_number(s, SPAN_BYTES) : 0.0;
        }
        assert_true(calls > 0);
        (void)snprintf(path, sizeof path, "%s.calls", kinds[is_async]);
        assert_true(is_equal(number(document, path), calls));
        (void)snprintf(path, sizeof path, "%s.bytes", kinds[is_async]);
        assert_true(is_equal(number(document, path), bytes));
    }
}

TEST(test_cli_profile_json__records) {
    rondo_profile *profile = make_profile();
    json_t *document = read_profile(profile, RONDO_PROFILE_BY_TOTAL);
    assert_true(is_equal(number(document, "dropped_count"), 0));
    check_texts(document);
    check_spans(document);
    check_copies(document);
    json_decref(document);
    rondo_profile_destroy(profile);
}

TEST_MAIN()
