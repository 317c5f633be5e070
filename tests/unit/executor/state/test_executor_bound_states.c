// Bound runs of programs with states, on the host, a real GPU where there is one, and the fake
// driver: where states stay in their place a run does not look at them, until they change.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/models.h"
#include "support/add_world.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/variables_world.h"

// sum' = sum + x; y is made of the old sum.
static void open_sum(variables_world *w, rondo_tensor *out_near) {
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_variable(b, "sum", 2);
    build_node(b, "Add", "sum x", "next", NULL);
    build_node(b, "Add", "sum sum", "y", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "y", NULL));
    variables_open(w, b);
    for (int i = 0; i < 2; ++i) {
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &variables_shape, &out_near[i]));
    }
}

static void fill_ten(float *values) {
    for (int i = 0; i < VARIABLES_COUNT; ++i) {
        values[i] = 10;
    }
}

static void bring(const variables_world *w, const rondo_tensor *from, const rondo_tensor *to) {
    rondo_stream *stream = rondo_executor_get_stream(w->executor);
    OK(rondo_tensor_copy(stream, from, to));
    OK(rondo_stream_synchronize(stream));
}

static void bind_sum(const variables_world *w, const rondo_tensor *x, const rondo_tensor *near,
                     rondo_bound_run **out_run) {
    bring(w, x, &near[0]);
    OK(rondo_bound_run_create(w->executor, out_run));
    OK(rondo_bound_run_set_feed(*out_run, "x", &near[0]));
    OK(rondo_bound_run_set_fetch(*out_run, "y", &near[1]));
}

static void close_sum(variables_world *w, rondo_bound_run *run, rondo_tensor *near) {
    rondo_bound_run_destroy(run);
    rondo_tensor_deinit(&near[0]);
    rondo_tensor_deinit(&near[1]);
    variables_close(w);
}

// One more step, after which the sum is `sum` at element 3.
static void expect_step(const variables_world *w, rondo_bound_run *run, const rondo_tensor *y,
                        float x, float sum) {
    float values[VARIABLES_COUNT];
    const rondo_tensor here = variables_on_host(values);
    OK(rondo_bound_run_run(run));
    bring(w, y, &here);
    assert_true(values[3] == 2 * (sum - x));
    assert_true(variables_read_one(w->executor, "sum") == sum);
}

// Where plans make states in their place, a run leaves states alone, until they change.
TEST(test_executor_bound_states__stay_in_their_place) {
    variables_world w;
    rondo_tensor near[2];
    rondo_bound_run *run;
    float x[VARIABLES_COUNT], ten[VARIABLES_COUNT], y[VARIABLES_COUNT];
    const rondo_tensor x_here = variables_on_host(x), ten_here = variables_on_host(ten);
    open_sum(&w, near);
    for (int i = 0; i < VARIABLES_COUNT; ++i) {
        x[i] = (float)i;
    }
    fill_ten(ten);
    bind_sum(&w, &x_here, near, &run);
    float sum = 2;
    for (int i = 0; i < 8; ++i) {
        const size_t marks = fake_cuda_count_calls("cuEventRecord");
        expect_step(&w, run, &near[1], 3, sum += 3);
        assert_true(i < 5 || fake_cuda_count_calls("cuEventRecord") == marks);  // one replay
    }
    OK(rondo_executor_set_variable(w.executor, "sum", &ten_here));
    expect_step(&w, run, &near[1], 3, 13);
    OK(rondo_executor_reserve_variable(w.executor, "sum", 1 << 20));  // moves it
    expect_step(&w, run, &near[1], 3, 16);
    const rondo_binding feeds[] = {{"x", x_here}, {"sum", ten_here}};
    rondo_binding fetch = {"y", variables_on_host(y)};
    OK(rondo_executor_run(w.executor, feeds, 2, &fetch, 1));  // by names, which feeds the state
    expect_step(&w, run, &near[1], 3, 16);
    OK(rondo_bound_run_run_async(run, NULL));
    OK(rondo_executor_wait(w.executor));
    expect_step(&w, run, &near[1], 3, 22);
    OK(rondo_executor_reset_variables(w.executor));
    expect_step(&w, run, &near[1], 3, 5);
    OK(rondo_bound_run_set_feed(run, "sum", &ten_here));  // each run begins with 10
    expect_step(&w, run, &near[1], 3, 13);
    expect_step(&w, run, &near[1], 3, 13);
    OK(rondo_bound_run_set_feed(run, "sum", NULL));
    for (int i = 0; i < 6; ++i) {
        expect_step(&w, run, &near[1], 3, 16 + 3.0f * (float)i);
    }
    close_sum(&w, run, near);
}

// A state that is not fed may be unbound again and again, and where it is fetched to host memory
// each run brings its new value there, also as one replay and when not waited for.
TEST(test_executor_bound_states__are_fetched) {
    variables_world w;
    rondo_tensor near[2];
    rondo_bound_run *run;
    float ten[VARIABLES_COUNT], next[VARIABLES_COUNT];
    const rondo_tensor ten_here = variables_on_host(ten), next_here = variables_on_host(next);
    open_sum(&w, near);
    fill_ten(ten);
    bind_sum(&w, &ten_here, near, &run);
    OK(rondo_bound_run_set_fetch(run, "next", &next_here));
    for (int i = 1; i <= 8; ++i) {
        expect_step(&w, run, &near[1], 10, 2 + 10.0f * (float)i);
        assert_true(next[3] == 2 + 10.0f * (float)i);
    }
    OK(rondo_bound_run_set_feed(run, "sum", NULL));
    OK(rondo_bound_run_run_async(run, NULL));
    OK(rondo_executor_wait(w.executor));
    assert_true(next[3] == 92 && variables_read_one(w.executor, "sum") == 92);
    close_sum(&w, run, near);
}

// sum' = x + sum; y = z + sum', where z is read from the memory of the old sum: replays read it
// before that is written, as eager runs do.
TEST(test_executor_bound_states__are_fed_elsewhere) {
    variables_world w;
    rondo_tensor sum;
    rondo_bound_run *run;
    float x[VARIABLES_COUNT], y[VARIABLES_COUNT];
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    variables_add_input(b, "z");
    variables_add_variable(b, "sum", 2);
    build_node(b, "Add", "x sum", "next", NULL);
    build_node(b, "Add", "z next", "y", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "y", NULL));
    variables_open(&w, b);
    fill_ten(x);
    const rondo_tensor x_here = variables_on_host(x), y_here = variables_on_host(y);
    OK(rondo_executor_set_variable(w.executor, "sum", &x_here));
    OK(rondo_executor_get_variable(w.executor, "sum", &sum));
    const rondo_binding feeds[] = {{"x", x_here}, {"z", sum}};
    rondo_binding fetch = {"y", y_here};
    OK(rondo_bound_run_create(w.executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x_here));
    OK(rondo_bound_run_set_feed(run, "z", &sum));
    OK(rondo_bound_run_set_fetch(run, "y", &y_here));
    for (int i = 1; i <= 12; ++i) {
        OK(i <= 6 ? rondo_executor_run(w.executor, feeds, 2, &fetch, 1) : rondo_bound_run_run(run));
        assert_true(y[3] == 20.0f * (float)i + 10);  // the old sum and the new one
    }
    rondo_bound_run_destroy(run);
    rondo_tensor_deinit(&sum);
    variables_close(&w);
}

static void *give_nothing(void *user_data, const char *name, const rondo_tensor *wanted,
                          size_t bytes) {
    (void)user_data, (void)name, (void)wanted, (void)bytes;
    return NULL;
}

// A run that is refused before its ops begin leaves states as they were.
TEST(test_executor_bound_states__outlive_refused_runs) {
    variables_world w;
    rondo_tensor near[2];
    rondo_bound_run *run;
    float ten[VARIABLES_COUNT], y[VARIABLES_COUNT];
    const rondo_tensor ten_here = variables_on_host(ten), open = {.dtype = RONDO_DTYPE_NONE};
    const rondo_tensor one = {.dtype = RONDO_DTYPE_F32, .shape = {1, {1}}, .data = y};
    open_sum(&w, near);
    fill_ten(ten);
    bind_sum(&w, &ten_here, near, &run);
    float sum = 2;
    for (int k = 0; k < 2; ++k) {
        for (int i = 0; i < 6; ++i) {
            expect_step(&w, run, &near[1], 10, sum += 10);
        }
        OK(rondo_bound_run_set_fetch(run, "y", k == 0 ? &one : &open));
        OK(rondo_bound_run_set_allocator(run, k == 0 ? NULL : give_nothing, NULL));
        assert_int_equal(rondo_bound_run_run(run),
                         k == 0 ? RONDO_STATUS_INVALID : RONDO_STATUS_NO_MEMORY);
        assert_int_equal(rondo_bound_run_run_async(run, NULL),
                         k == 0 ? RONDO_STATUS_INVALID : RONDO_STATUS_NO_MEMORY);
        OK(rondo_bound_run_set_fetch(run, "y", &near[1]));
        expect_step(&w, run, &near[1], 10, sum += 10);
    }
    close_sum(&w, run, near);
}

// A run that fails leaves no value of the states that it makes; one that is no state any more is
// to be fed again.
TEST(test_executor_bound_states__are_lost) {
    variables_world w;
    rondo_tensor near[2];
    rondo_bound_run *run;
    float ten[VARIABLES_COUNT];
    const rondo_tensor ten_here = variables_on_host(ten);
    open_sum(&w, near);
    fill_ten(ten);
    bind_sum(&w, &ten_here, near, &run);
    for (int i = 0; i < 6; ++i) {
        OK(rondo_bound_run_run(run));
    }
    assert_true(variables_read_one(w.executor, "sum") == 62);
    if (fake_cuda_count_calls(NULL) > 0) {
        fake_cuda_fail_nth(0, RONDO__CU_ERROR_OUT_OF_MEMORY);
        while (rondo_bound_run_run(run) == RONDO_STATUS_OK) {
            assert_false(fake_cuda_has_failed());  // a call that tells nobody
        }
        fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        EXPECT(STATE, "sum", rondo_bound_run_run(run));
        OK(rondo_executor_set_variable(w.executor, "sum", &ten_here));
        expect_step(&w, run, &near[1], 10, 20);
    }
    close_sum(&w, run, near);

    add_world *a = add_world_open(RONDO_GRAPHS_ON, false);
    float x[ADD_COUNT], y[ADD_COUNT];
    const rondo_tensor from = add_program_on_host(x), to = add_program_on_host(y);
    add_program_fill(x, 1);
    OK(rondo_executor_bind(a->executor, "s", "x"));
    OK(rondo_executor_set_variable(a->executor, "x", &from));
    OK(rondo_bound_run_create(a->executor, &run));
    OK(rondo_bound_run_set_fetch(run, "y", &to));
    for (int i = 0; i < 5; ++i) {
        OK(rondo_bound_run_run(run));
    }
    OK(rondo_executor_bind(a->executor, NULL, "x"));
    EXPECT(INVALID, "\"x\"", rondo_bound_run_run(run));
    OK(rondo_bound_run_set_feed(run, "x", &from));
    OK(rondo_bound_run_run(run));
    assert_true(y[3] == 9.5f);  // 2 x + w
    rondo_bound_run_destroy(run);
    add_world_close(a);
}

// What the first look at a variable starts is there when the call returns, on whatever stream it is
// read.
TEST(test_executor_bound_states__first_look) {
    variables_world w;
    rondo_tensor near[2], sum;
    open_sum(&w, near);
    const size_t fills = fake_cuda_count_calls("cuMemsetD32Async");
    const size_t waits = fake_cuda_count_calls("cuStreamSynchronize");
    OK(rondo_executor_get_variable(w.executor, "sum", &sum));
    const size_t more = fake_cuda_count_calls("cuMemsetD32Async") - fills;
    assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize") - waits, more);
    rondo_tensor_deinit(&sum);
    close_sum(&w, NULL, near);
}

// A cache that grows where it lies has another shape in each run, and so needs another plan.
TEST(test_executor_bound_states__grow) {
    variables_world w;
    rondo_bound_run *run;
    float x[VARIABLES_COUNT];
    const rondo_tensor x_here = {.dtype = RONDO_DTYPE_F32, .shape = {1, {8}}, .data = x};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, 8)));
    rondo_port port = PORT("log", RONDO_DTYPE_F32, -1);
    port.symbol[0] = "length";
    OK(rondo_builder_add_variable(b, &port, NULL));
    build_node(b, "Concat", "log x", "log.next", &WITH(ATTRIBUTE_INT("axis", 0)));
    OK(rondo_builder_set_update(b, "log", "log.next"));
    variables_open(&w, b);
    OK(rondo_executor_reserve_variable(w.executor, "log", 4096));
    fill_ten(x);
    OK(rondo_executor_set_variable(w.executor, "log", &x_here));
    OK(rondo_bound_run_create(w.executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x_here));
    for (int i = 1; i <= 9; ++i) {
        rondo_tensor log;
        OK(rondo_bound_run_run(run));
        OK(rondo_executor_get_variable(w.executor, "log", &log));
        assert_int_equal(log.shape.extent[0], 8 * (i + 1));
        rondo_tensor_deinit(&log);
    }
    rondo_bound_run_destroy(run);
    variables_close(&w);
}

// found' = where v is not zero, which the processor writes between segments; the old places are an
// output, behind one that takes long to copy. (The fake driver has no kernels for it.)
TEST(test_executor_bound_states__late_values_wait_for_outputs) {
    enum { MANY = 1 << 20, RUNS = 8, WIDTH = 8 };
    variables_world w;
    float *x = test_calloc(MANY, sizeof *x);
    float *y = test_calloc(MANY, sizeof *y);
    int64_t v[WIDTH], found[2] = {0}, before[2] = {0};
    const rondo_tensor start = {.dtype = RONDO_DTYPE_I64, .shape = {2, {1, 2}}, .data = before};
    rondo_builder *b = build_begin();
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, MANY)));
    OK(rondo_builder_add_input(b, &PORT("v", RONDO_DTYPE_I64, WIDTH)));
    OK(rondo_builder_add_variable(b, &PORT("found", RONDO_DTYPE_I64, 1, -1), NULL));
    build_op(b, "Neg", "x", NULL, "y");
    build_op(b, "NonZero", "v", NULL, "next");
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_add_output(b, "found", NULL));
    OK(rondo_builder_set_update(b, "found", "next"));
    variables_open(&w, b);
    OK(rondo_executor_set_variable(w.executor, "found", &start));
    for (int i = 0; i < RUNS && rondo_device_is_host(w.device); ++i) {
        const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, MANY),
                                       BIND("v", RONDO_DTYPE_I64, v, WIDTH)};
        rondo_binding fetches[] = {BIND("y", RONDO_DTYPE_F32, y, MANY),
                                   BIND("found", RONDO_DTYPE_I64, found, 1, 2)};
        memset(v, 0, sizeof v);
        v[i % 3] = v[4 + i % 4] = 1;
        OK(rondo_executor_run_async(w.executor, feeds, 2, fetches, 2, NULL));
        OK(rondo_executor_wait(w.executor));
        assert_memory_equal(found, before, sizeof found);
        before[0] = i % 3;
        before[1] = 4 + i % 4;
    }
    test_free(x);
    test_free(y);
    variables_close(&w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
