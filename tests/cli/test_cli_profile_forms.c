// Traces and pages, of hand-made records and of a model: read back, monotone, nested, nothing over
// anything else, names from strangers only names.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"
#include "profile/profile_slice.h"
#include "profile/report.h"
#include "rondo/models.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/sweep.h"
#include "support/test.h"
#include "support/text_sink.h"

#define EVIL "</script><script>document.title='hit'</script>\"\\\n\x1b"

enum { SPAN_COUNT = 6, WORK_COUNT = 5, SAMPLE_COUNT = 3 };

// Two parts on the first thread, something beside them on the second; a stream whose work overlaps,
// one piece that began before its span by the device's clock, one without a span.
static const rondo__profile_span spans[SPAN_COUNT] = {
    {.id = 1, .category = RONDO__SPAN_USER, .name = "eager", .begin_ns = 1000, .end_ns = 5000},
    {.id = 2,
     .parent = 1,
     .category = RONDO__SPAN_RUN,
     .name = "run",
     .begin_ns = 1100,
     .end_ns = 4900},
    {.id = 3,
     .parent = 2,
     .category = RONDO__SPAN_OP,
     .name = EVIL,
     .begin_ns = 1200,
     .end_ns = 1500},
    {.id = 4,
     .thread = 1,
     .category = RONDO__SPAN_WAIT,
     .name = "wait",
     .begin_ns = 2000,
     .end_ns = 7000},
    {.id = 5, .category = RONDO__SPAN_USER, .name = "replay", .begin_ns = 5000, .end_ns = 9000},
    {.id = 6,
     .parent = 5,
     .category = RONDO__SPAN_COPY,
     .name = "copy",
     .detail = "x f32 [4]",
     .begin_ns = 5100,
     .end_ns = 5200,
     .bytes = 16,
     .way = RONDO__WAY_H2D,
     .is_async = true},
};
static const rondo__profile_work works[WORK_COUNT] = {
    {.span = 3,
     .kind = RONDO__WORK_KERNEL,
     .name = EVIL,
     .stream = 7,
     .begin_ns = 1600,
     .end_ns = 2600},
    {.span = 3,
     .kind = RONDO__WORK_KERNEL,
     .name = "k",
     .label = "Conv /c",
     .stream = 7,
     .begin_ns = 2000,
     .end_ns = 3000},
    {.span = 0,
     .kind = RONDO__WORK_FILL,
     .name = "fill",
     .stream = 7,
     .begin_ns = 2600,
     .end_ns = 2700},
    {.span = 6,
     .kind = RONDO__WORK_COPY,
     .name = "memcpy",
     .way = RONDO__WAY_H2D,
     .stream = 7,
     .bytes = 16,
     .begin_ns = 5050,
     .end_ns = 5400},
    {.span = 6,
     .kind = RONDO__WORK_HOST,
     .name = "f",
     .device = -1,
     .stream = 1,
     .begin_ns = 5300,
     .end_ns = 9500},
};
static const rondo__profile_sample samples[SAMPLE_COUNT] = {
    {"pool", 900, 64}, {"pool", 3000, 128}, {"pool", 6000, 0}};
static const rondo__profile_thread threads[2] = {{1, "main"}, {2, "other"}};

typedef struct fixture {
    rondo__profile_span spans[SPAN_COUNT];
    rondo__profile_work works[WORK_COUNT];
    rondo__profile_records records;
    char *bytes;
    size_t length;
    FILE *file;
} fixture;

static void setup_records(fixture *f) {
    memcpy(f->spans, spans, sizeof spans);
    memcpy(f->works, works, sizeof works);
    for (size_t i = 0; i < SPAN_COUNT; ++i) {
        f->spans[i].detail = f->spans[i].detail != NULL ? f->spans[i].detail : "";
    }
    for (size_t i = 0; i < WORK_COUNT; ++i) {
        f->works[i].label = f->works[i].label != NULL ? f->works[i].label : "";
    }
    f->records = (rondo__profile_records){.begin_ns = 1000,
                                          .end_ns = 10000,
                                          .span_count = SPAN_COUNT,
                                          .spans = f->spans,
                                          .work_count = WORK_COUNT,
                                          .works = f->works,
                                          .sample_count = SAMPLE_COUNT,
                                          .samples = samples,
                                          .thread_count = 2,
                                          .threads = threads,
                                          .source = "hand"};
}

static bool keep(void *user_data, const char *text, size_t bytes) {
    fixture *f = user_data;
    return fwrite(text, 1, bytes, f->file) == bytes;
}

static void write_form(fixture *f, rondo__profile_writer writer, const char *picture) {
    rondo__profile_table table;
    f->file = open_memstream(&f->bytes, &f->length);
    assert_non_null(f->file);
    assert_int_equal(rondo__profile_table_init(&f->records, RONDO_PROFILE_BY_TOTAL, false, &table),
                     RONDO_STATUS_OK);
    const rondo__profile_report report = {
        .records = &f->records, .table = &table, .title = "<b>" EVIL, .picture = picture};
    rondo__profile_out out = {.write = keep, .user_data = f};
    writer(&report, &out);
    assert_int_equal(rondo__text_get_status(&out.text), RONDO_STATUS_OK);
    assert_true(keep(f, out.text.bytes, out.text.length));
    rondo__text_deinit(&out.text);
    rondo__profile_table_deinit(&table);
    assert_int_equal(fclose(f->file), 0);
}

// ---- the trace --------------------------------------------------------------------------------

static double number(json_t *event, const char *key) {
    double value = -1.0;
    assert_true(cli_json_find_number(event, key, &value));
    return value;
}

static const char *text(json_t *event, const char *key) {
    const char *value = cli_json_find_text(event, key);
    assert_non_null(value);
    return value;
}

static double track_of(json_t *event) {
    return number(event, "pid") * 1000.0 + number(event, "tid");
}

// Slices of one track: in the order of their begins, each within the one around it.
static void check_track(json_t *events, double track, bool is_device) {
    double ends[16] = {0};
    size_t depth = 0;
    double last = -1.0;
    size_t index;
    json_t *e;
    json_array_foreach(events, index, e) {
        if (strcmp(text(e, "ph"), "X") != 0 || track_of(e) != track) {
            continue;
        }
        const double begin = number(e, "ts");
        const double end = begin + number(e, "dur");
        assert_true(begin >= last);
        last = begin;
        while (depth > 0 && ends[depth - 1] <= begin + 1e-9) {
            depth--;
        }
        assert_true(depth == 0 || (!is_device && end <= ends[depth - 1] + 1e-9));
        ends[depth++] = end;
    }
}

static size_t count_events(json_t *events, const char *phase) {
    size_t count = 0;
    size_t index;
    json_t *e;
    json_array_foreach(events, index, e) {
        count += strcmp(text(e, "ph"), phase) == 0 ? 1 : 0;
    }
    return count;
}

static json_t *find_event(json_t *events, const char *phase, const char *name) {
    size_t index;
    json_t *e;
    json_array_foreach(events, index, e) {
        if (strcmp(text(e, "ph"), phase) == 0 && strcmp(text(e, "name"), name) == 0) {
            return e;
        }
    }
    fail_msg("no event \"%s\" of phase %s", name, phase);
    return NULL;
}

// What holds of every trace: tracks in order and nested, arrows that go forward to devices.
static json_t *read_trace(const fixture *f) {
    json_t *document = NULL;
    assert_true(cli_json_parse(f->bytes, f->length, "trace", &document));
    json_t *events = cli_json_find(document, "traceEvents");
    assert_non_null(events);
    assert_int_equal(count_events(events, "s"), count_events(events, "f"));
    size_t index;
    json_t *e;
    json_array_foreach(events, index, e) {
        if (strcmp(text(e, "ph"), "M") == 0 && strcmp(text(e, "name"), "thread_name") == 0) {
            check_track(events, track_of(e), number(e, "pid") != 1.0);
        }
        if (strcmp(text(e, "ph"), "s") == 0) {  // its end comes next
            json_t *next = json_array_get(events, index + 1);
            assert_string_equal(text(next, "ph"), "f");
            assert_true(number(next, "id") == number(e, "id"));
            assert_true(number(next, "ts") >= number(e, "ts"));
            assert_true(number(next, "pid") != 1.0);
        }
    }
    return document;
}

TEST(test_cli_profile_forms__trace_reads_back) {
    fixture f;
    setup_records(&f);
    write_form(&f, rondo__profile_write_trace, "");
    json_t *document = read_trace(&f);
    json_t *events = cli_json_find(document, "traceEvents");
    assert_int_equal(count_events(events, "X"), SPAN_COUNT + WORK_COUNT);
    assert_int_equal(count_events(events, "C"), SAMPLE_COUNT);
    // The copy's work began before its span, by its own clock; it has no arrow.
    assert_int_equal(count_events(events, "s"), 3);
    assert_true(number(find_event(events, "X", EVIL), "ts") == 0.2);
    json_t *conv = find_event(events, "X", "Conv /c");
    assert_string_equal(text(conv, "args.detail"), "k");
    assert_string_equal(text(find_event(events, "X", "copy"), "args.way"), "host to device");
    assert_true(number(find_event(events, "X", "copy"), "args.bytes") == 16.0);
    assert_true(number(find_event(events, "C", "pool"), "ts") == 0.0);  // not before the begin
    json_decref(document);
    free(f.bytes);
}

// ---- the page ---------------------------------------------------------------------------------

static size_t count_texts(const char *where, const char *what) {
    size_t count = 0;
    for (const char *at = strstr(where, what); at != NULL; at = strstr(at + 1, what)) {
        count++;
    }
    return count;
}

TEST(test_cli_profile_forms__page_holds_the_data) {
    static const char begin[] = "<script type=\"application/json\" id=\"data\">";
    fixture f;
    json_t *data = NULL;
    setup_records(&f);
    write_form(&f, rondo__profile_write_html, "<svg id=\"there\"></svg>");
    assert_non_null(strstr(f.bytes, "<title>&#60;b&#62;&#60;/script&#62;"));
    assert_non_null(strstr(f.bytes, "<svg id=\"there\"></svg>"));
    assert_int_equal(count_texts(f.bytes, "<script"), 2);  // the data's and the page's
    assert_int_equal(count_texts(f.bytes, "</script"), 2);
    assert_null(strstr(f.bytes, "http://"));
    assert_null(strstr(f.bytes, "https://"));
    const char *from = strstr(f.bytes, begin) + strlen(begin);
    assert_true(cli_json_parse(from, (size_t)(strstr(from, "</script>") - from), "data", &data));
    assert_int_equal(json_array_size(cli_json_find(data, "spans")), SPAN_COUNT);
    assert_int_equal(json_array_size(cli_json_find(data, "works")), WORK_COUNT);
    json_t *parts = cli_json_find(data, "parts");
    json_t *part = json_array_get(parts, 0);
    assert_string_equal(text(part, "name"), "eager");
    assert_true(number(part, "total") == 4000.0);
    assert_true(number(part, "computation") + number(part, "framework") == 4000.0);
    assert_string_equal(text(json_array_get(parts, 1), "name"), "replay");
    assert_true(number(json_array_get(parts, 1), "begin") == 4000.0);
    assert_string_equal(text(json_array_get(parts, 2), "name"), "everything");
    assert_true(number(json_array_get(parts, 2), "total") == 9000.0);
    json_decref(data);
    free(f.bytes);
}

// ---- parts ------------------------------------------------------------------------------------

TEST(test_cli_profile_forms__slice_of_an_event) {
    fixture f;
    rondo__profile_slice slice;
    setup_records(&f);
    assert_null(rondo__profile_find_event(&f.records, "run"));  // not the program's
    const rondo__profile_span *event = rondo__profile_find_event(&f.records, "replay");
    assert_ptr_equal(event, &f.spans[4]);
    assert_int_equal(rondo__profile_slice_init(&f.records, event, &slice), RONDO_STATUS_OK);
    assert_int_equal(slice.records.span_count, 1);
    assert_int_equal(slice.records.spans[0].id, 1);
    assert_int_equal(slice.records.spans[0].parent, 0);
    assert_string_equal(slice.records.spans[0].name, "copy");
    assert_int_equal(slice.records.work_count, 2);
    assert_int_equal(slice.records.works[0].span, 1);
    assert_int_equal(slice.records.works[1].end_ns, 9000);  // cut at the end of the event
    assert_int_equal(slice.records.sample_count, 1);
    assert_int_equal(slice.records.samples[0].value, 0);
    rondo__profile_slice_deinit(&slice);
    event = rondo__profile_find_event(&f.records, "eager");
    assert_int_equal(rondo__profile_slice_init(&f.records, event, &slice), RONDO_STATUS_OK);
    assert_int_equal(slice.records.span_count, 3);  // with the other thread's
    assert_int_equal(slice.records.spans[1].parent, 1);
    assert_int_equal(slice.records.spans[2].end_ns, 5000);
    assert_int_equal(slice.records.work_count, 3);
    assert_int_equal(slice.records.works[1].span, 2);
    assert_int_equal(slice.records.sample_count, 1);
    assert_int_equal(slice.records.samples[0].value, 128);
    rondo__profile_slice_deinit(&slice);
}

// ---- a real one -------------------------------------------------------------------------------

static void run_steps(rondo_executor *executor, const char *event, size_t count) {
    OK(rondo_profile_begin(event));
    for (size_t i = 0; i < count; ++i) {
        rondo_binding fetch = {.name = "y"};
        float values[4] = {1, 2, 3, 4};
        const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, values, 4);
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        rondo_tensor_deinit(&fetch.tensor);
    }
    OK(rondo_profile_end());
}

static rondo_profile *profile_model(void) {
    char path[512];
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_profile *profile;
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/norm/model.onnx", get_source_dir());
    OK(rondo_device_open("host", &device));
    OK(rondo_program_load_onnx(path, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_profile_create(NULL, &profile));
    OK(rondo_profile_start(profile));
    run_steps(executor, "first", 3);
    run_steps(executor, "second", 5);
    OK(rondo_profile_stop(profile));
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    return profile;
}

static rondo_status write_real(rondo_profile *profile, rondo_profile_format format,
                               const char *event, fixture *f) {
    const rondo_profile_write_options options = {
        .struct_size = sizeof options, .format = format, .event = event, .title = "norm"};
    f->file = open_memstream(&f->bytes, &f->length);
    assert_non_null(f->file);
    const rondo_status status = rondo_profile_write(profile, &options, keep, f);
    assert_int_equal(fclose(f->file), 0);
    return status;
}

// Calls of the row "run" of a report.
static double count_runs(const fixture *f) {
    json_t *document = NULL;
    double calls = 0.0;
    assert_true(cli_json_parse(f->bytes, f->length, "report", &document));
    size_t index;
    json_t *row;
    json_array_foreach(cli_json_find(document, "rows"), index, row) {
        calls += strcmp(text(row, "name"), "run") == 0 ? number(row, "calls") : 0.0;
    }
    json_decref(document);
    return calls;
}

TEST(test_cli_profile_forms__of_a_model) {
    static const struct {
        const char *event;
        double runs;
    } parts[] = {{NULL, 8}, {"first", 3}, {"second", 5}};
    fixture f;
    rondo_profile *profile = profile_model();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
        OK(write_real(profile, RONDO_PROFILE_JSON, parts[i].event, &f));
        assert_true(count_runs(&f) == parts[i].runs);
        free(f.bytes);
        OK(write_real(profile, RONDO_PROFILE_TRACE, parts[i].event, &f));
        json_t *document = read_trace(&f);
        assert_true(count_events(cli_json_find(document, "traceEvents"), "s") > 0);
        json_decref(document);
        free(f.bytes);
    }
    assert_int_equal(write_real(profile, RONDO_PROFILE_PLAIN, "third", &f), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "is called \"third\""));
    free(f.bytes);
    for (rondo_profile_format format = RONDO_PROFILE_PLAIN; format <= RONDO_PROFILE_HTML;
         ++format) {
        const rondo_profile_write_options options = {
            .struct_size = sizeof options, .format = format, .event = "second"};
        bool has_failed = true;
        for (size_t n = 0; has_failed; ++n) {
            const uint64_t sequence = rondo_error_get_last()->sequence;
            sweep_fail_allocation(n, false);
            const rondo_status status =
                rondo_profile_write(profile, &options, text_sink_ignore, NULL);
            has_failed = sweep_end_allocations();
            assert_true(sweep_step(status, sequence, "a report") == !has_failed);
        }
    }
    rondo_profile_destroy(profile);
}

// ---- no memory --------------------------------------------------------------------------------

TEST(test_cli_profile_forms__no_memory) {
    static const rondo__profile_writer writers[] = {rondo__profile_write_trace,
                                                    rondo__profile_write_html};
    fixture f;
    setup_records(&f);
    for (size_t w = 0; w < 2; ++w) {
        bool has_failed = true;
        for (size_t n = 0; has_failed; ++n) {
            const rondo__profile_table table = {0};
            const rondo__profile_report report = {
                .records = &f.records, .table = &table, .title = "", .picture = ""};
            rondo__profile_out out = {.write = text_sink_ignore};
            sweep_fail_allocation(n, false);
            writers[w](&report, &out);
            has_failed = sweep_end_allocations();
            assert_int_equal(out.text.failed != 0, has_failed);
            rondo__text_deinit(&out.text);
        }
    }
}

TEST_MAIN()
