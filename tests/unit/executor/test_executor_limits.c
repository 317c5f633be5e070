// Executors against models that want all memory or all time: the memory limit in folding, plans and
// runs, loops without end, and the word of another thread.
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/models/model_fixture.h"
#include "support/short_forms.h"
#include "support/sweep.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9, MIB = 1 << 20 };

static rondo_status run(model_fixture *f, const rondo_binding *feed, rondo_tensor *out_result) {
    rondo_port port = {.struct_size = sizeof port};
    OK(rondo_program_get_output(f->program, 0, &port));
    rondo_binding fetch = {.name = port.name};
    rondo_status status =
        rondo_executor_run(f->executor, feed, feed != NULL ? 1 : 0, &fetch, out_result != NULL);
    if (out_result != NULL) {
        *out_result = fetch.tensor;
    }
    return status;
}

static void expect_in_message(const char *text) {
    if (strstr(rondo_error_get_last()->message, text) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", rondo_error_get_last()->message, text);
    }
    assert_non_null(strstr(rondo_error_get_last()->message, text));
}

static void add_constant_i64(model_fixture *f, const char *name, size_t rank, int64_t value) {
    const int64_t one = 1;
    Onnx__TensorProto *tensor =
        model_builder_add_initializer(&f->builder, f->builder.graph, name, INT64, rank, &one);
    model_builder_set_raw(&f->builder, tensor, &value, sizeof value);
}

static void add_true(model_fixture *f, const char *name) {
    const uint8_t value = 1;
    Onnx__TensorProto *tensor =
        model_builder_add_initializer(&f->builder, f->builder.graph, name, BOOL, 0, NULL);
    model_builder_set_raw(&f->builder, tensor, &value, sizeof value);
}

// ---- memory -----------------------------------------------------------------------------------

// y = ReduceSum((fill0 + fill1) * fill1), `count` elements each.
static void build_fills(model_fixture *f, int64_t count) {
    Onnx__GraphProto *graph = f->builder.graph;
    add_constant_i64(f, "shape", 1, count);
    model_builder_add_node(&f->builder, graph, "ConstantOfShape", "fill0", "shape", "c0");
    model_builder_add_node(&f->builder, graph, "ConstantOfShape", "fill1", "shape", "c1");
    model_builder_add_node(&f->builder, graph, "Add", "sum", "c0 c1", "a");
    model_builder_add_node(&f->builder, graph, "Mul", "product", "a c1", "b");
    model_builder_add_node(&f->builder, graph, "ReduceSum", "all", "b", "y");
    model_builder_add_output(&f->builder, graph, "y", FLOAT, NULL);
}

TEST(test_executor_limits__a_bomb_ends_at_once_by_default) {
    model_fixture f;
    model_fixture_init(&f);
    build_fills(&f, INT64_C(1) << 28);
    model_fixture_load(&f);
    const clock_t start = clock();  // of the processor: others may have it meanwhile
    assert_int_equal(run(&f, NULL, NULL), RONDO_STATUS_NO_MEMORY);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    expect_in_message("ConstantOfShape node \"fill0\"");
    expect_in_message("f32 [268435456]");
    expect_in_message("limit");
    expect_in_message("memory_limit_bytes (--memory-limit)");
    assert_string_equal(rondo_error_get_last()->op, "fill0");
    model_fixture_deinit(&f);
}

// y = sum over four fills of max(fill + x): folded ahead they all live at once, else one by one.
static void build_folds(model_fixture *f, int64_t count) {
    model_builder *b = &f->builder;
    add_constant_i64(f, "shape", 1, count);
    model_builder_add_input(b, b->graph, "x", FLOAT, "");
    for (int i = 0; i < 4; ++i) {
        char fill[8], sum[8], most[8], wires[24];
        (void)snprintf(fill, sizeof fill, "c%d", i);
        (void)snprintf(sum, sizeof sum, "s%d", i);
        (void)snprintf(most, sizeof most, "m%d", i);
        (void)snprintf(wires, sizeof wires, "%s x", fill);
        model_builder_add_node(b, b->graph, "ConstantOfShape", fill, "shape", fill);
        model_builder_add_node(b, b->graph, "Add", sum, wires, sum);
        model_builder_add_node(b, b->graph, "ReduceMax", most, sum, most);
    }
    model_builder_add_node(b, b->graph, "Sum", "all", "m0 m1 m2 m3", "y");
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
}

TEST(test_executor_limits__what_does_not_fit_is_not_folded) {
    static const struct {
        uint64_t limit;
        rondo_status status;
        bool is_folded;
    } rows[] = {
        {7 * MIB, RONDO_STATUS_NO_MEMORY, false},
        {24 * MIB, RONDO_STATUS_OK, false},
        {200 * MIB, RONDO_STATUS_OK, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        model_fixture f;
        rondo_tensor result;
        rondo_executor_stats stats = {.struct_size = sizeof stats};
        float x = 2.0f;
        rondo_binding feed = BIND("x", RONDO_DTYPE_F32, &x);
        model_fixture_init(&f);
        build_folds(&f, 2 * MIB);  // 8 MiB each
        f.options.memory_limit_bytes = rows[i].limit;
        model_fixture_load(&f);
        assert_int_equal(run(&f, &feed, &result), rows[i].status);
        if (rows[i].status == RONDO_STATUS_OK) {
            assert_true(*(float *)result.data == 8.0f);
            OK(rondo_executor_get_stats(f.executor, &stats));
            assert_int_equal(stats.op_count < 12, rows[i].is_folded);
        }
        rondo_tensor_deinit(&result);
        model_fixture_deinit(&f);
    }
}

// Loop(count, true, s0) whose body doubles its state.
static void build_doubling(model_fixture *f) {
    model_builder *b = &f->builder;
    const float one[4] = {1, 1, 1, 1};
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "s", FLOAT, "n");
    model_builder_add_node(b, body, "Identity", "keep", "c", "c2");
    model_builder_add_node(b, body, "Concat", "double", "s s", "s2");
    Onnx__NodeProto *concat = body->node[1];
    Onnx__AttributeProto *axis =
        model_builder_add_attribute(b, concat, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    axis->has_i = 1;
    model_builder_add_output(b, body, "c2", BOOL, "");
    model_builder_add_output(b, body, "s2", FLOAT, "m");
    add_true(f, "go");
    model_builder_add_floats(b, b->graph, "s0", one, 4);
    model_builder_add_input(b, b->graph, "count", INT64, "");
    Onnx__NodeProto *loop = model_builder_add_node(b, b->graph, "Loop", "grow", "count go s0", "y");
    model_builder_add_body(b, loop, "body", body);
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
}

TEST(test_executor_limits__a_loop_that_grows_ends_at_the_limit) {
    model_fixture f;
    model_fixture_init(&f);
    build_doubling(&f);
    f.options.memory_limit_bytes = 32 * MIB;
    model_fixture_load(&f);
    int64_t count = 60;
    rondo_binding feed = BIND("count", RONDO_DTYPE_I64, &count);
    rondo_tensor result;
    for (int attempt = 0; attempt < 3; ++attempt) {
        count = 60;
        assert_int_equal(run(&f, &feed, &result), RONDO_STATUS_NO_MEMORY);
        expect_in_message("memory_limit_bytes");
        count = 5;  // and what fits runs as before
        OK(run(&f, &feed, &result));
        assert_int_equal(result.shape.extent[0], 128);
        rondo_tensor_deinit(&result);
    }
    model_fixture_deinit(&f);
}

// y = MatMul(x, w) with x [n, 512] and w [512, 512]: a MiB of weights for all plans.
static void build_product(model_fixture *f) {
    model_builder *b = &f->builder;
    const int64_t dims[] = {512, 512};
    float *weights = model_builder_allocate(b, 512 * 512 * sizeof *weights);
    for (size_t i = 0; i < 512; ++i) {
        weights[i * 512 + i] = 2.0f;
    }
    Onnx__TensorProto *w = model_builder_add_initializer(b, b->graph, "w", FLOAT, 2, dims);
    model_builder_set_raw(b, w, weights, 512 * 512 * sizeof *weights);
    model_builder_add_input(b, b->graph, "x", FLOAT, "n 512");
    model_builder_add_node(b, b->graph, "MatMul", "product", "x w", "y");
    model_builder_add_output(b, b->graph, "y", FLOAT, "n 512");
}

TEST(test_executor_limits__plans_make_room_for_each_other) {
    model_fixture f;
    model_fixture_init(&f);
    build_product(&f);
    f.options.memory_limit_bytes = 6 * MIB;
    model_fixture_load(&f);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    for (int64_t rows = 256; rows < 280; ++rows) {  // an arena of a MiB
        rondo_binding feed = {.name = "x"};
        rondo_shape shape = {.rank = 2, .extent = {rows, 512}};
        rondo_tensor result;
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
        ((float *)feed.tensor.data)[5] = 3.0f;
        OK(run(&f, &feed, &result));
        assert_true(((float *)result.data)[5] == 6.0f);
        rondo_tensor_deinit(&result);
        rondo_tensor_deinit(&feed.tensor);
    }
    OK(rondo_executor_get_stats(f.executor, &stats));
    assert_true(stats.plan_count >= 1 && stats.plan_count < 6);
    assert_true(stats.constant_bytes >= MIB && stats.constant_bytes < 3 * MIB);
    model_fixture_deinit(&f);

    // One plan alone beyond the limit: the weights are named.
    model_fixture_init(&f);
    build_product(&f);
    f.options.memory_limit_bytes = MIB / 2;
    model_fixture_load(&f);
    rondo_shape shape = {.rank = 2, .extent = {1, 512}};
    rondo_binding feed = {.name = "x"};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
    assert_int_equal(run(&f, &feed, NULL), RONDO_STATUS_NO_MEMORY);
    expect_in_message("f32 [512, 512]");
    expect_in_message("\"product\"");
    rondo_tensor_deinit(&feed.tensor);
    model_fixture_deinit(&f);
}

static rondo_binding make_rows(int64_t rows) {
    const rondo_shape shape = {.rank = 2, .extent = {rows, 512}};
    rondo_binding feed = {.name = "x"};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &feed.tensor));
    ((float *)feed.tensor.data)[5] = 3.0f;
    return feed;
}

static void run_in_vain(model_fixture *f, const rondo_binding *feed) {
    rondo_binding fetch = {.name = "y"};
    assert_int_equal(rondo_executor_run_async(f->executor, feed, 1, &fetch, 1, NULL),
                     RONDO_STATUS_NO_MEMORY);
}

// A run that is refused memory drops the plan of the one before, which was not waited for.
TEST(test_executor_limits__a_refused_run_leaves_the_one_before) {
    model_fixture f;
    model_fixture_init(&f);
    build_product(&f);
    f.options.memory_limit_bytes = 4 * MIB;
    model_fixture_load(&f);
    rondo_binding small = make_rows(1);
    rondo_binding large = make_rows(4096);
    for (int call = 0; call < 3; ++call) {
        rondo_tensor result;
        rondo_binding fetch = {.name = "y"};
        OK(rondo_executor_run_async(f.executor, &small, 1, &fetch, 1, NULL));
        run_in_vain(&f, &large);
        if (call == 2) {
            expect_in_message("; the largest owner is packed weights with 1048576 bytes");
        } else if (call == 0) {
            OK(rondo_executor_wait(f.executor));
        } else if (call == 1) {
            assert_int_equal(rondo_executor_rerun(f.executor), RONDO_STATUS_STATE);
            expect_in_message("its plan was dropped");
        }
        OK(run(&f, &small, &result));
        assert_true(((float *)fetch.tensor.data)[5] == 6.0f);
        assert_true(((float *)result.data)[5] == 6.0f);
        rondo_tensor_deinit(&result);
        rondo_tensor_deinit(&fetch.tensor);
    }
    rondo_tensor_deinit(&small.tensor);
    rondo_tensor_deinit(&large.tensor);
    model_fixture_deinit(&f);
}

// What a rerun runs is what ran last, not what was looked at since.
TEST(test_executor_limits__a_description_is_not_run_again) {
    model_fixture f;
    rondo_run_times times = {.struct_size = sizeof times};
    model_fixture_init(&f);
    build_product(&f);
    model_fixture_load(&f);
    rondo_binding feed = make_rows(8);
    rondo_binding other = {"x", {.dtype = RONDO_DTYPE_F32, .shape = {2, {16, 512}}}};
    assert_int_equal(rondo_executor_rerun(f.executor), RONDO_STATUS_STATE);
    OK(rondo_executor_describe_feeds(f.executor, &other, 1, RONDO_TEXT_PLAIN, text_sink_ignore,
                                     NULL));
    assert_int_equal(rondo_executor_rerun(f.executor), RONDO_STATUS_STATE);
    OK(run(&f, &feed, NULL));
    OK(rondo_executor_describe_feeds(f.executor, &other, 1, RONDO_TEXT_PLAIN, text_sink_ignore,
                                     NULL));
    OK(rondo_executor_rerun(f.executor));
    OK(rondo_executor_get_times(f.executor, &times));
    assert_true(times.was_replayed);  // the plan of 8 rows, the second time
    rondo_tensor_deinit(&feed.tensor);
    model_fixture_deinit(&f);
}

// ---- time -------------------------------------------------------------------------------------

// Loop(count, true, x) whose body passes its state on, around another such loop or none.
static void build_endless(model_fixture *f, bool is_nested) {
    model_builder *b = &f->builder;
    add_true(f, "go");
    model_builder_add_input(b, b->graph, "count", INT64, "");
    model_builder_add_input(b, b->graph, "x", FLOAT, "2");
    Onnx__GraphProto *graph = b->graph;
    for (int level = 0; level <= (is_nested ? 1 : 0); ++level) {
        char name[16];
        (void)snprintf(name, sizeof name, "spin%d", level);
        Onnx__GraphProto *body = model_builder_new_graph(b, "body");
        model_builder_add_input(b, body, "i", INT64, "");
        model_builder_add_input(b, body, "c", BOOL, "");
        model_builder_add_input(b, body, level == 0 ? "s0" : "s1", FLOAT, "2");
        Onnx__NodeProto *loop = model_builder_add_node(b, graph, "Loop", name,
                                                       level == 0 ? "count go x" : "count go s0",
                                                       level == 0 ? "y" : "t0");
        model_builder_add_body(b, loop, "body", body);
        model_builder_add_node(b, body, "Identity", "keep", "c", level == 0 ? "c0" : "c1");
        model_builder_add_output(b, body, level == 0 ? "c0" : "c1", BOOL, "");
        if (level == 1 || !is_nested) {
            model_builder_add_node(b, body, "Identity", "pass", level == 0 ? "s0" : "s1",
                                   level == 0 ? "t0" : "t1");
        }
        model_builder_add_output(b, body, level == 0 ? "t0" : "t1", FLOAT, "2");
        graph = body;
    }
    model_builder_add_output(b, b->graph, "y", FLOAT, "2");
}

static float numbers[2] = {1, 2};

static rondo_status run_endless(model_fixture *f, int64_t count) {
    rondo_binding feeds[2] = {BIND("count", RONDO_DTYPE_I64, &count),
                              BIND("x", RONDO_DTYPE_F32, numbers, 2)};
    rondo_binding fetch = {.name = "y"};
    rondo_status status = rondo_executor_run(f->executor, feeds, 2, &fetch, 1);
    if (status == RONDO_STATUS_OK) {
        assert_true(((float *)fetch.tensor.data)[1] == 2.0f);
    } else {
        assert_null(fetch.tensor.data);
    }
    rondo_tensor_deinit(&fetch.tensor);
    return status;
}

TEST(test_executor_limits__loops_have_so_many_turns_in_a_run) {
    for (int is_nested = 0; is_nested <= 1; ++is_nested) {
        model_fixture f;
        model_fixture_init(&f);
        build_endless(&f, is_nested != 0);
        f.options.loop_limit = 110;
        model_fixture_load(&f);
        OK(run_endless(&f, 10));  // nested: 10 and 100 turns
        OK(run_endless(&f, 10));  // counted anew
        assert_int_equal(run_endless(&f, INT64_MAX), RONDO_STATUS_BAD_DATA);
        expect_in_message("110 turns");
        expect_in_message("loop_limit");
        expect_in_message(is_nested ? "\"spin1\"" : "\"spin0\"");
        assert_int_equal(run_endless(&f, is_nested ? 11 : 111), RONDO_STATUS_BAD_DATA);
        OK(run_endless(&f, 10));
        model_fixture_deinit(&f);
    }
}

// A call that fails for another reason leaves the news of a run that was stopped before it.
TEST(test_executor_limits__a_failure_hides_no_other) {
    model_fixture f;
    int64_t count = INT64_MAX;
    rondo_binding feeds[2] = {BIND("count", RONDO_DTYPE_I64, &count),
                              BIND("x", RONDO_DTYPE_F32, numbers, 2)};
    rondo_binding fetches[2] = {{.name = "y"}, {.name = "y"}};
    model_fixture_init(&f);
    build_endless(&f, false);
    f.options.loop_limit = 110;
    model_fixture_load(&f);
    OK(run_endless(&f, 10));
    OK(rondo_executor_run_async(f.executor, feeds, 2, &fetches[0], 1, NULL));
    sweep_fail_allocation(0, false);
    const rondo_status status =
        rondo_executor_run_async(f.executor, feeds, 2, &fetches[1], 1, NULL);
    assert_true(sweep_end_allocations());
    assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
    assert_int_equal(rondo_executor_wait(f.executor), RONDO_STATUS_BAD_DATA);
    expect_in_message("110 turns");
    OK(rondo_executor_wait(f.executor));
    OK(run_endless(&f, 10));
    rondo_tensor_deinit(&fetches[0].tensor);
    model_fixture_deinit(&f);
}

typedef struct canceller {
    rondo_executor *executor;
    atomic_bool is_done;
    int call_count;
} canceller;

static void *cancel_until_done(void *data) {
    canceller *c = data;
    usleep(20000);
    while (!atomic_load(&c->is_done)) {
        if (rondo_executor_cancel(c->executor) != RONDO_STATUS_OK) {
            abort();
        }
        c->call_count += 1;
        usleep(1000);
    }
    return NULL;
}

TEST(test_executor_limits__another_thread_cancels) {
    for (int is_nested = 0; is_nested <= 1; ++is_nested) {
        model_fixture f;
        model_fixture_init(&f);
        build_endless(&f, is_nested != 0);
        f.options.loop_limit = UINT64_MAX;
        model_fixture_load(&f);
        OK(run_endless(&f, 3));
        OK(rondo_executor_cancel(f.executor));  // nothing runs: nothing happens
        OK(run_endless(&f, 3));
        for (int attempt = 0; attempt < 3; ++attempt) {
            canceller c = {.executor = f.executor};
            pthread_t thread;
            assert_int_equal(pthread_create(&thread, NULL, cancel_until_done, &c), 0);
            assert_int_equal(run_endless(&f, INT64_MAX), RONDO_STATUS_CANCELLED);
            atomic_store(&c.is_done, true);
            pthread_join(thread, NULL);
            expect_in_message("cancelled");
            OK(run_endless(&f, 3));
            OK(rondo_executor_rerun(f.executor));
        }
        model_fixture_deinit(&f);
    }
    assert_int_equal(rondo_executor_cancel(NULL), RONDO_STATUS_INVALID);
}

TEST_MAIN()
