// The JSON of a profile, read back: the sums, the nesting and the order that a report promises hold
// for the numbers that other programs get.
// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json_reader.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/source_dir.h"

enum { ROWS_MAX = 400, RUNS = 7 };

// ---- the profile ------------------------------------------------------------------------------

static void run_model(rondo_executor *executor) {
    float values[4] = {1, 2, 3, 4};
    rondo_binding fetch = {.name = "y"};
    const rondo_binding feed = {
        .name = "x",
        .tensor = {.dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {4}}, .data = values}};
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

static cli_json_value *read_profile(rondo_profile *profile, rondo_profile_key key) {
    const rondo_profile_write_options options = {.struct_size = sizeof options,
                                                 .format = RONDO_PROFILE_JSON,
                                                 .key = key,
                                                 .title = "turns \"and\" <all>"};
    char *bytes = NULL;
    size_t length = 0;
    cli_json_value *document = NULL;
    FILE *file = open_memstream(&bytes, &length);
    assert_non_null(file);
    OK(rondo_profile_write(profile, &options, keep, file));
    assert_int_equal(fclose(file), 0);
    assert_true(cli_json_parse(bytes, length, "profile", &document));
    free(bytes);
    return document;
}

static double number(const cli_json_value *value, const char *path) {
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

static void read_rows(const cli_json_value *document) {
    row_count = 0;
    for (const cli_json_value *r = cli_json_find(document, "rows")->first; r != NULL; r = r->next) {
        assert_true(row_count < ROWS_MAX);
        rows[row_count++] = (row){.parent = number(r, "parent"),
                                  .depth = number(r, "depth"),
                                  .calls = number(r, "calls"),
                                  .total = number(r, "total_ns"),
                                  .cpu = number(r, "cpu_ns"),
                                  .gpu = number(r, "gpu_ns"),
                                  .min = number(r, "min_ns"),
                                  .max = number(r, "max_ns"),
                                  .is_work = cli_json_find(r, "is_device_work")->number > 0};
        const row *made = &rows[row_count - 1];
        const double lower = number(r, "lower_quartile_ns");
        const double median = number(r, "median_ns");
        const double upper = number(r, "upper_quartile_ns");
        assert_true(made->min <= lower && lower <= median && median <= upper && upper <= made->max);
        assert_true(made->calls > 1 || is_equal(median, made->total));
        const cli_json_value *name = cli_json_find(r, "name");
        if (strcmp(name->text, "run") == 0 || strcmp(name->text, "turn") == 0) {
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

// Threads that have events; workers of streams have none of their own.
static double count_threads(const cli_json_value *document) {
    enum { THREADS_MAX = 64 };
    bool has_events[THREADS_MAX] = {false};
    double count = 0.0;
    for (const cli_json_value *s = cli_json_find(document, "spans")->first; s != NULL;
         s = s->next) {
        const double thread = s->first->next->next->number;
        assert_true(thread < (double)cli_json_find(document, "threads")->count);
        assert_true(thread < THREADS_MAX);
        count += has_events[(size_t)thread] ? 0.0 : 1.0;
        has_events[(size_t)thread] = true;
    }
    return count;
}

static void check_rows(const cli_json_value *document, rondo_profile_key key) {
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

static void test_cli_profile_json__rows(void **state) {
    (void)state;
    rondo_profile *profile = make_profile();
    for (rondo_profile_key key = RONDO_PROFILE_BY_TOTAL; key <= RONDO_PROFILE_BY_AVERAGE; ++key) {
        cli_json_value *document = read_profile(profile, key);
        assert_true(is_equal(number(document, "format"), 1));
        assert_string_equal(cli_json_find(document, "title")->text, "turns \"and\" <all>");
        check_rows(document, key);
        cli_json_free(document);
    }
    rondo_profile_destroy(profile);
}

// ---- records ----------------------------------------------------------------------------------

static const cli_json_value *at(const cli_json_value *list, size_t index) {
    const cli_json_value *value = list->first;
    for (; value != NULL && index > 0; --index) {
        value = value->next;
    }
    assert_non_null(value);
    return value;
}

enum { SPAN_ID, SPAN_PARENT, SPAN_THREAD, SPAN_CATEGORY, SPAN_NAME, SPAN_DETAIL, SPAN_BEGIN };
enum { SPAN_END = SPAN_BEGIN + 1, SPAN_BYTES, SPAN_WAY, SPAN_IS_ASYNC };
enum { WORK_SPAN = 0, WORK_NAME = 3, WORK_BEGIN = 8, WORK_END = 9 };

static const cli_json_value *find_span(const cli_json_value *spans, double id) {
    for (const cli_json_value *s = spans->first; s != NULL; s = s->next) {
        if (is_equal(at(s, SPAN_ID)->number, id)) {
            return s;
        }
    }
    fail_msg("no span %g", id);
    return NULL;
}

static void check_texts(const cli_json_value *document) {
    const size_t count = cli_json_find(document, "texts")->count;
    for (const cli_json_value *s = cli_json_find(document, "spans")->first; s != NULL;
         s = s->next) {
        assert_true(at(s, SPAN_NAME)->number < (double)count);
        assert_true(at(s, SPAN_DETAIL)->number < (double)count);
    }
    for (const cli_json_value *w = cli_json_find(document, "works")->first; w != NULL;
         w = w->next) {
        assert_true(at(w, WORK_NAME)->number < (double)count);
    }
}

// Spans lie within those around them, on one thread, and within the region; work belongs to spans.
static void check_spans(const cli_json_value *document) {
    const double total = number(document, "total_ns");
    const cli_json_value *spans = cli_json_find(document, "spans");
    for (const cli_json_value *s = spans->first; s != NULL; s = s->next) {
        const double begin = at(s, SPAN_BEGIN)->number;
        const double end = at(s, SPAN_END)->number;
        assert_true(!(begin > end) && !(end > total));
        if (at(s, SPAN_PARENT)->number > 0) {
            const cli_json_value *outer = find_span(spans, at(s, SPAN_PARENT)->number);
            assert_true(!(begin < at(outer, SPAN_BEGIN)->number));
            assert_true(!(end > at(outer, SPAN_END)->number));
            assert_true(is_equal(at(outer, SPAN_THREAD)->number, at(s, SPAN_THREAD)->number));
        }
    }
    for (const cli_json_value *w = cli_json_find(document, "works")->first; w != NULL;
         w = w->next) {
        assert_true(!(at(w, WORK_BEGIN)->number > at(w, WORK_END)->number));
        assert_true(!(at(w, WORK_SPAN)->number > 0) ||
                    find_span(spans, at(w, WORK_SPAN)->number) != NULL);
    }
}

// What is told of copies in sum is what the single ones say: by calls and bytes.
static void check_copies(const cli_json_value *document) {
    static const char *const kinds[] = {"memcpy.sync", "memcpy.async"};
    for (int is_async = 0; is_async < 2; ++is_async) {
        char path[40];
        double calls = 0.0;
        double bytes = 0.0;
        for (const cli_json_value *s = cli_json_find(document, "spans")->first; s != NULL;
             s = s->next) {
            const bool is_counted = strcmp(at(s, SPAN_CATEGORY)->text, "copy") == 0 &&
                                    (at(s, SPAN_IS_ASYNC)->number > 0) == (is_async > 0);
            calls += is_counted ? 1.0 : 0.0;
            bytes += is_counted ? at(s, SPAN_BYTES)->number : 0.0;
        }
        assert_true(calls > 0);
        (void)snprintf(path, sizeof path, "%s.calls", kinds[is_async]);
        assert_true(is_equal(number(document, path), calls));
        (void)snprintf(path, sizeof path, "%s.bytes", kinds[is_async]);
        assert_true(is_equal(number(document, path), bytes));
    }
}

static void test_cli_profile_json__records(void **state) {
    (void)state;
    rondo_profile *profile = make_profile();
    cli_json_value *document = read_profile(profile, RONDO_PROFILE_BY_TOTAL);
    assert_true(is_equal(number(document, "dropped_count"), 0));
    check_texts(document);
    check_spans(document);
    check_copies(document);
    cli_json_free(document);
    rondo_profile_destroy(profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cli_profile_json__rows),
        cmocka_unit_test(test_cli_profile_json__records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
