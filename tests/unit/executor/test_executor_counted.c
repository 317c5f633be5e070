// Ops of a GPU whose results' shapes depend on data: results equal the host's bit for bit, eager
// and replayed; the only copy of a run is that of the count, and only what is used of a result
// travels.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { SIDE = 60, COUNT = SIDE * SIDE, RUNS = 6, OUTPUTS_MAX = 4 };

// ---- models of x [SIDE, SIDE] -----------------------------------------------------------------

// Adds "Op in in attribute=1 @place > out out".
static void add_op(rondo_builder *b, char *text) {
    const char *names[2][6] = {{0}};
    size_t counts[2] = {0};
    rondo_attribute attribute = {.kind = RONDO_ATTRIBUTE_INT};
    rondo_builder_node_options options = {.struct_size = sizeof options, .attributes = &attribute};
    const char *place = NULL;
    char *rest = NULL;
    int side = 0;
    const char *op = strtok_r(text, " ", &rest);
    for (char *word = strtok_r(NULL, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        if (value != NULL) {
            *value = '\0';
            attribute.name = word;
            attribute.int_value = atoi(value + 1);
            options.attribute_count = 1;
        } else if (word[0] == '@') {
            place = word + 1;
        } else if (word[0] == '>') {
            side = 1;
        } else {
            names[side][counts[side]++] = word;
        }
    }
    options.name = names[1][0];
    if (place != NULL) {
        OK(rondo_builder_begin_place(b, place));
    }
    OK(rondo_builder_add_node(b, op, names[0], counts[0], names[1], counts[1], &options));
    if (place != NULL) {
        OK(rondo_builder_end_place(b));
    }
}

static size_t count_names(const char *const *names) {
    size_t count = 0;
    while (names[count] != NULL) {
        count += 1;
    }
    return count;
}

static void add_floats(rondo_builder *b, const char *name, size_t rows, size_t columns) {
    float *values = calloc(rows * columns, sizeof *values);
    const rondo_shape shape = {.rank = 2, .extent = {(int64_t)rows, (int64_t)columns}};
    for (size_t i = 0; i < rows * columns; ++i) {
        values[i] = (float)(i % 7) - 3;
    }
    OK(rondo_builder_add_constant(b, name, RONDO_DTYPE_F32, &shape, values));
    free(values);
}

static void add_number(rondo_builder *b, const char *name, rondo_dtype dtype, double value) {
    const rondo_shape shape = {.rank = 1, .extent = {1}};
    const int64_t whole = (int64_t)value;
    const float real = (float)value;
    OK(rondo_builder_add_constant(b, name, dtype, &shape,
                                  dtype == RONDO_DTYPE_I64 ? (const void *)&whole : &real));
}

static void add_shape(rondo_builder *b, const char *name, const int64_t *extents) {
    const rondo_shape shape = {.rank = 1, .extent = {3}};
    OK(rondo_builder_add_constant(b, name, RONDO_DTYPE_I64, &shape, extents));
}

// x, constants, the ops, with ; between them, and their results.
static rondo_program *build(const char *ops, const char *const *outputs) {
    char text[512];
    char *rest = NULL;
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, SIDE, SIDE)));
    add_floats(b, "w", 1, 8);
    add_number(b, "zero", RONDO_DTYPE_F32, 0);
    add_number(b, "none", RONDO_DTYPE_I64, 0);
    add_number(b, "last", RONDO_DTYPE_I64, -1);
    add_number(b, "two", RONDO_DTYPE_I64, 2);
    add_number(b, "most", RONDO_DTYPE_I64, 50);
    add_number(b, "overlap", RONDO_DTYPE_F32, 0.5);
    add_shape(b, "boxes_shape", (const int64_t[]){1, COUNT / 4, 4});
    add_shape(b, "scores_shape", (const int64_t[]){1, 4, COUNT / 4});
    (void)snprintf(text, sizeof text, "%s", ops);
    for (char *op = strtok_r(text, ";", &rest); op != NULL; op = strtok_r(NULL, ";", &rest)) {
        add_op(b, op);
    }
    for (; *outputs != NULL; ++outputs) {
        OK(rondo_builder_add_output(b, *outputs, NULL));
    }
    return build_finish(b);
}

// Every `step`th element is 2 and more, others are at most 0.
static void fill(float *x, int step) {
    for (int i = 0; i < COUNT; ++i) {
        x[i] = i % step == 0 ? (float)(i % 11 + 2) / 2 : (float)-(i % 3);
    }
}

typedef struct world {
    rondo_device *gpu;
    rondo_device *host;
    rondo_program *program;
    rondo_executor *executor;
    rondo_executor *reference;
    float x[COUNT];
    rondo_binding feed;
} world;

static void open_world(world *w, const char *ops, const char *const *outputs,
                       const rondo_executor_options *options) {
    const rondo_executor_options plain = {.struct_size = sizeof plain, .reference = true};
    *w = (world){0};
    OK(rondo_device_open(on_devices_get_name(), &w->gpu));
    OK(rondo_device_open("host", &w->host));
    w->program = build(ops, outputs);
    OK(rondo_executor_create(w->program, w->gpu, options, &w->executor));
    OK(rondo_executor_create(w->program, w->host, &plain, &w->reference));
    w->feed = (rondo_binding){"x", {RONDO_DTYPE_F32, {2, {SIDE, SIDE}}, w->x, NULL, NULL}};
}

static void close_world(world *w) {
    rondo_executor_destroy(w->executor);
    rondo_executor_destroy(w->reference);
    rondo_program_destroy(w->program);
    rondo_device_release(w->gpu);
    rondo_device_release(w->host);
}

static bool is_on_host(void) {
    return strcmp(on_devices_get_name(), "host") == 0;
}

static void name_fetches(rondo_binding *fetches, const char *const *outputs) {
    for (size_t i = 0; outputs[i] != NULL; ++i) {
        fetches[i] = (rondo_binding){.name = outputs[i]};
    }
}

static void expect_same(const rondo_tensor *have, const rondo_tensor *want, const char *name) {
    char a[96];
    char b[96];
    if (have->dtype != want->dtype || !rondo_shape_is_equal(&have->shape, &want->shape)) {
        fail_msg("\"%s\" is %s, not %s", name, rondo_shape_format(&have->shape, a, sizeof a),
                 rondo_shape_format(&want->shape, b, sizeof b));
    }
    if (have->dtype == RONDO_DTYPE_STRING) {
        return;
    }
    if (have->dtype == RONDO_DTYPE_F32) {  // 0 and -0 are the same, and all NaN
        const float *x = have->data;
        const float *y = want->data;
        for (int64_t i = 0; i < rondo_shape_get_count(&have->shape); ++i) {
            if (!(x[i] == y[i]) && !(isnan(x[i]) && isnan(y[i]))) {
                fail_msg("\"%s\" %s: element %lld is %g, not %g", name,
                         rondo_shape_format(&have->shape, a, sizeof a), (long long)i, (double)x[i],
                         (double)y[i]);
            }
        }
    } else if (memcmp(have->data, want->data, rondo_tensor_get_bytes(want)) != 0) {
        fail_msg("\"%s\" %s differs", name, rondo_shape_format(&have->shape, a, sizeof a));
    }
}

// Runs both, and compares.
static void run_both(world *w, const char *const *outputs, bool waits) {
    rondo_binding have[OUTPUTS_MAX];
    rondo_binding want[OUTPUTS_MAX];
    const size_t count = count_names(outputs);
    name_fetches(have, outputs);
    name_fetches(want, outputs);
    if (waits) {
        OK(rondo_executor_run(w->executor, &w->feed, 1, have, count));
    } else {
        OK(rondo_executor_run_async(w->executor, &w->feed, 1, have, count, NULL));
        OK(rondo_executor_wait(w->executor));
    }
    OK(rondo_executor_run(w->reference, &w->feed, 1, want, count));
    for (size_t i = 0; i < count; ++i) {
        expect_same(&have[i].tensor, &want[i].tensor, outputs[i]);
        rondo_tensor_deinit(&have[i].tensor);
        rondo_tensor_deinit(&want[i].tensor);
    }
}

// ---- what is copied -----------------------------------------------------------------------------

typedef struct story {
    const char *what;
    const char *ops;
    const char *outputs[OUTPUTS_MAX + 1];
    // Of a GPU:
    uint64_t copies;    // to the processor, in a run, beside fetches; nothing goes the other way
    uint64_t bypassed;  // in the plan: bodies, and what the processor does
} story;

static const story stories[] = {
    {"a network",
     "NonZero x > found;Transpose found > places;GatherND x places > picked;"
     "Unsqueeze picked last > row;MatMul row w > a;Relu a > y",
     {"y"},
     1,
     1},
    {"a result", "NonZero x > y", {"y"}, 1, 0},
    {"beside what is known", "NonZero x > y;Neg x > z", {"z", "y"}, 1, 0},
    {"rows",
     "ReduceMax x last keepdims=0 > best;Greater best zero > keep;Compress x keep axis=0 > y;"
     "Neg y > z",
     {"y", "z"},
     1,
     1},
    {"groups", "Unique x > y first inverse count", {"y", "first", "inverse", "count"}, 1, 0},
    {"groups as they come",
     "Unique x sorted=0 > y first inverse count",
     {"inverse", "count"},
     1,
     0},
    {"where groups are", "Unique x > y first inverse;Neg inverse > z", {"inverse", "z"}, 0, 1},
    {"slices", "Unique x axis=1 > y first inverse", {"y", "inverse"}, 1, 0},
    {"one op behind it", "NonZero x > found;Transpose found > y", {"y"}, 1, 1},
    {"what is known behind it",
     "NonZero x > found;Transpose found > places;GatherND x places > picked;"
     "ReduceMax picked none keepdims=1 > top;Add top x > y",
     {"y"},
     1,
     1},
    {"a view, and memory that is used again",
     "NonZero x > found;Unsqueeze found last > y;Cast found to=1 > f;ReduceMax f keepdims=1 > top;"
     "Add top x > a;MatMul a x > z",
     {"y", "z", "found"},
     1,
     1},
    {"found in what was found",
     "NonZero x > found;Transpose found > places;GatherND x places > picked;"
     "Greater picked zero > keep;Compress picked keep > large;Unique large > kinds;"
     "Neg kinds > y",
     {"y", "kinds", "large"},
     3,
     3},
    {"boxes",
     "Reshape x boxes_shape > boxes;Reshape x scores_shape > scores;"
     "NonMaxSuppression boxes scores most overlap > y;Gather y two axis=1 > z",
     {"y", "z"},
     1,
     1},
    {"a text of it, and a list",
     "NonZero x > found;Cast found to=8 > y;SequenceConstruct found > list;"
     "SequenceLength list > z",
     {"y", "z"},
     2,
     3},
    {"nothing on the GPU", "NonZero x @cpu > y", {"y"}, 0, 1},
};

// Bypassed ops of all bodies' latest plans.
static size_t count_inner(const rondo__unit *unit) {
    const rondo__plan *plan = unit->current;
    size_t count = 0;
    for (size_t s = 0; s < plan->step_count; ++s) {
        for (size_t b = 0; b < plan->steps[s].run.body_count; ++b) {
            const rondo__unit *body = plan->steps[s].run.bodies[b];
            count += body != NULL ? body->current->bypassed_count + count_inner(body) : 0;
        }
    }
    return count;
}

static void expect_copies(const world *w, const story *s, uint64_t runs) {
    rondo_transfer_stats copied = {.struct_size = sizeof copied};
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_transfers(w->executor, &copied));
    OK(rondo_executor_get_stats(w->executor, &stats));
    if (is_on_host()) {
        return;
    }
    if (copied.to_host.count != runs * s->copies || copied.to_device.count != 0 ||
        copied.synchronous_to_host.count != runs * s->copies ||
        stats.bypassed_count != s->bypassed || count_inner(&w->executor->main) != 0) {
        fail_msg(
            "%s: in %d runs %d copies to the processor, %d waited for, %d to the GPU; %d "
            "bypassed, %d in bodies",
            s->what, (int)runs, (int)copied.to_host.count, (int)copied.synchronous_to_host.count,
            (int)copied.to_device.count, (int)stats.bypassed_count,
            (int)count_inner(&w->executor->main));
    }
    // A copy that is no count is one of what is used.
    if (s->copies == 1) {
        assert_int_equal(copied.to_host.bytes, runs * sizeof(int64_t));
    }
}

TEST(test_executor_counted__stories) {
    static const rondo_executor_options rows[] = {
        {.struct_size = sizeof rows[0]},
        {.struct_size = sizeof rows[0], .graphs = RONDO_GRAPHS_OFF},
        {.struct_size = sizeof rows[0], .self_check_every = 3},
    };
    static const int steps[] = {3, 7, 1};
    for (size_t i = 0; i < sizeof stories / sizeof *stories; ++i) {
        for (size_t o = 0; o < sizeof rows / sizeof *rows; ++o) {
            world w;
            open_world(&w, stories[i].ops, stories[i].outputs, &rows[o]);
            for (int run = 0; run < RUNS; ++run) {
                fill(w.x, steps[run % 3]);
                run_both(&w, stories[i].outputs, run % 2 == 0);
            }
            expect_copies(&w, &stories[i], RUNS);
            OK(rondo_executor_rerun(w.executor));
            memset(w.x, 0, sizeof w.x);  // nothing is found
            run_both(&w, stories[i].outputs, true);
            close_world(&w);
        }
    }
}

// Each count has a plan of its own in the body, which is replayed when it comes again.
TEST(test_executor_counted__plans_for_counts) {
    const story *s = &stories[0];
    world w;
    open_world(&w, s->ops, s->outputs, NULL);
    for (int run = 0; run < 12; ++run) {
        fill(w.x, 2 + run % 4);
        run_both(&w, s->outputs, true);
    }
    rondo__unit *body = NULL;
    for (size_t i = 0; i < w.executor->main.current->step_count; ++i) {
        const rondo__step *step = &w.executor->main.current->steps[i];
        body = step->run.body_count > 0 ? step->run.bodies[0] : body;
    }
    assert_non_null(body);
    assert_int_equal(body->plans.stats.entry_count, 4);
    assert_int_equal(body->runs.replay_count, 8);
    close_world(&w);
}

// ---- where results go ---------------------------------------------------------------------------

TEST(test_executor_counted__results) {
    const story *s = &stories[1];
    world w;
    int64_t places[2 * COUNT];
    open_world(&w, s->ops, s->outputs, NULL);
    fill(w.x, 3);
    run_both(&w, s->outputs, true);
    // Room for just what is found; for another number; in the device's memory.
    rondo_binding fetch = {"y", {RONDO_DTYPE_I64, {2, {2, 0}}, places, NULL, NULL}};
    for (int i = 0; i < COUNT; ++i) {
        fetch.tensor.shape.extent[1] += w.x[i] != 0 ? 1 : 0;
    }
    OK(rondo_executor_run(w.executor, &w.feed, 1, &fetch, 1));
    assert_true(fetch.tensor.data == places);
    rondo_binding want = {.name = "y"};
    OK(rondo_executor_run(w.reference, &w.feed, 1, &want, 1));
    expect_same(&fetch.tensor, &want.tensor, "y");
    rondo_tensor_deinit(&want.tensor);
    fetch.tensor.shape.extent[1] += 1;
    EXPECT(INVALID, "fetch \"y\"", rondo_executor_run(w.executor, &w.feed, 1, &fetch, 1));
    fetch.tensor = (rondo_tensor){.device = w.gpu};
    OK(rondo_executor_run(w.executor, &w.feed, 1, &fetch, 1));
    rondo_tensor copy;
    rondo_stream *stream = rondo_executor_get_stream(w.executor);
    OK(rondo_tensor_init(fetch.tensor.dtype, &fetch.tensor.shape, &copy));
    OK(rondo_tensor_copy(stream, &fetch.tensor, &copy));
    OK(rondo_stream_synchronize(stream));
    assert_memory_equal(copy.data, places, rondo_tensor_get_bytes(&copy));
    rondo_tensor_deinit(&copy);
    rondo_tensor_deinit(&fetch.tensor);
    run_both(&w, s->outputs, false);
    close_world(&w);
}

// ---- what is said of it -------------------------------------------------------------------------

TEST(test_executor_counted__is_described) {
    static text_sink text;
    const story *s = &stories[1];
    world w;
    if (is_on_host()) {
        return;
    }
    open_world(&w, s->ops, s->outputs, NULL);
    text.length = 0;
    OK(rondo_executor_describe(w.executor, RONDO_TEXT_PLAIN, text_sink_append, &text));
    assert_non_null(strstr(text.text, "1 op in 1 segment, 0 bypassed\n"));
    assert_non_null(strstr(text.text, "count 1: NonZero \"y\": how much it finds is waited for"));
    text.length = 0;
    OK(rondo_executor_describe(w.executor, RONDO_TEXT_JSON, text_sink_append, &text));
    assert_non_null(strstr(text.text, "\"kind\": \"count\""));
    rondo_placement list[16];
    size_t count;
    OK(rondo_executor_list_placements(w.executor, NULL, 0, 16, list, &count));
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {
        const bool is_it =
            list[i].kind != RONDO_PLACEMENT_TRANSFER && strcmp(list[i].name, "y") == 0;
        found += is_it ? 1 : 0;
        assert_true(!is_it || strcmp(list[i].place, "gpu") == 0);
    }
    assert_int_equal(found, 2);  // the op, and its result
    close_world(&w);
}

TEST(test_executor_counted__is_not_recorded) {
    const story *s = &stories[1];
    world w;
    rondo_stream *stream;
    rondo_graph *graph;
    int64_t places[2];
    rondo_binding fetch = {"y", {RONDO_DTYPE_I64, {2, {2, 1}}, places, NULL, NULL}};
    open_world(&w, s->ops, s->outputs, NULL);
    fill(w.x, 3);
    run_both(&w, s->outputs, true);
    OK(rondo_stream_create(w.gpu, NULL, &stream));
    OK(rondo_graph_create(w.gpu, NULL, &graph));
    OK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    EXPECT(UNSUPPORTED, "NonZero node \"y\" cannot be recorded",
           rondo_executor_record(w.executor, stream, &w.feed, 1, &fetch, 1));
    rondo_graph_capture_abort(graph);
    rondo_graph_destroy(graph);
    rondo_stream_destroy(stream);
    close_world(&w);
}

// ---- memory -------------------------------------------------------------------------------------

// The rooms of NonZero take 57 600 bytes: a quarter of the limit must hold them.
TEST(test_executor_counted__room) {
    static const struct {
        uint64_t limit;
        uint64_t bypassed;
    } rows[] = {{57600 * 4, 0}, {57600 * 4 - 4, 1}};
    const story *s = &stories[1];
    for (size_t i = 0; i < 2; ++i) {
        const rondo_executor_options options = {.struct_size = sizeof options,
                                                .memory_limit_bytes = rows[i].limit};
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        world w;
        open_world(&w, s->ops, s->outputs, &options);
        fill(w.x, 3);
        run_both(&w, s->outputs, true);
        OK(rondo_executor_get_stats(w.executor, &stats));
        assert_int_equal(stats.bypassed_count, is_on_host() ? 1 : rows[i].bypassed);
        close_world(&w);
    }
}

int main(void) {
    return ON_DEVICES();
}
