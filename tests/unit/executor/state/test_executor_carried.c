// Bound runs that are one replay: whatever memory their tensors lie in, and when they move.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "rondo/models.h"
#include "support/add_world.h"
#include "support/cases/one_op.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { PLACES = 6 };  // two in pageable, pinned and device memory each

static const int places_of_memory[PLACES] = {0, 0, 1, 1, 2, 2};

static rondo_tensor take_place(add_world *w, int place) {
    rondo_tensor tensor = add_program_on_host(NULL);
    switch (places_of_memory[place]) {
        case 0:
            OK(rondo_tensor_init(RONDO_DTYPE_F32, &add_shape, &tensor));
            break;
        case 1:
            OK(rondo_memory_allocate(w->device, RONDO_MEMORY_PINNED, sizeof(float) * ADD_COUNT,
                                     &tensor.data));
            break;
        default:
            OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &tensor));
    }
    return tensor;
}

static void give_place(add_world *w, int place, rondo_tensor *tensor) {
    if (places_of_memory[place] == 1) {
        rondo_memory_free(w->device, tensor->data);
    } else {
        rondo_tensor_deinit(tensor);
    }
}

static void write_to(add_world *w, const rondo_tensor *to, float first) {
    if (rondo_tensor_is_on_host(to)) {
        add_program_fill(to->data, first);
    } else {
        add_world_write(w->stream, to, first);
    }
}

static void expect_in(add_world *w, const rondo_tensor *found, float first, bool is_y) {
    if (rondo_tensor_is_on_host(found)) {
        assert_int_equal(add_program_check(found->data, first, is_y), ADD_COUNT);
    } else {
        add_world_expect(w->stream, found, first, is_y);
    }
}

// A bound run whose feed and fetches go from place to place, now and then.
typedef struct moving {
    add_world *w;
    unsigned seed;
    rondo_tensor x[PLACES], y[PLACES], s[PLACES];
    const rondo_tensor *at_x, *at_y, *at_s;  // where they are; s NULL: it is not fetched
    rondo_bound_run *run;
} moving;

static void begin_moving(moving *m, int first) {
    for (int i = 0; i < PLACES; ++i) {
        m->x[i] = take_place(m->w, i);
        m->y[i] = take_place(m->w, i);
        m->s[i] = take_place(m->w, i);
    }
    OK(rondo_bound_run_create(m->w->executor, &m->run));
    OK(rondo_bound_run_set_feed(m->run, "x", m->at_x = &m->x[first]));
    OK(rondo_bound_run_set_fetch(m->run, "y", m->at_y = &m->y[first]));
}

// Returns what was drawn.
static unsigned move_one(moving *m) {
    m->seed = m->seed * 1103515245 + 12345;
    const unsigned draw = m->seed >> 16;
    const int place = (int)(draw / 64 % PLACES);
    if (draw % 16 == 0) {
        OK(rondo_bound_run_set_feed(m->run, "x", m->at_x = &m->x[place]));
    } else if (draw % 16 == 1) {
        OK(rondo_bound_run_set_fetch(m->run, "y", m->at_y = &m->y[place]));
    } else if (draw % 16 == 2) {
        m->at_s = draw % 32 == 2 ? NULL : &m->s[place];
        OK(rondo_bound_run_set_fetch(m->run, "s", m->at_s));
    }
    return draw;
}

static void expect_both(moving *m, float first) {
    expect_in(m->w, m->at_y, first, true);
    if (m->at_s != NULL) {
        expect_in(m->w, m->at_s, first, false);
    }
}

static void end_moving(moving *m) {
    rondo_bound_run_destroy(m->run);
    for (int i = 0; i < PLACES; ++i) {
        give_place(m->w, i, &m->x[i]);
        give_place(m->w, i, &m->y[i]);
        give_place(m->w, i, &m->s[i]);
    }
    add_world_close(m->w);
}

// In between come runs by names.
TEST(test_executor_carried__tensors_move) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    moving m = {.w = w, .seed = 1};
    begin_moving(&m, 0);
    for (int i = 0; i < 300; ++i) {
        if (move_one(&m) % 16 == 3) {
            OK(add_program_run(w->executor, 77));
        }
        write_to(w, m.at_x, (float)i);
        write_to(w, m.at_y, -1);
        OK(rondo_bound_run_run(m.run));
        expect_both(&m, (float)i);
    }
    end_moving(&m);
}

// Several are under way: feeds in host memory are free again on return, and each run sees the ones
// that it was given. Some are waited for.
TEST(test_executor_carried__runs_that_nobody_waits_for) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    moving m = {.w = w, .seed = 7};
    begin_moving(&m, 4);
    for (int i = 0; i < 400; ++i) {
        const unsigned draw = move_one(&m);
        if (m.at_x->device != NULL || draw % 4 == 0) {
            OK(rondo_executor_wait(w->executor));
        }
        write_to(w, m.at_x, (float)i);
        if (draw / 4 % 32 == 0) {
            OK(rondo_bound_run_run(m.run));
        } else {
            OK(rondo_bound_run_run_async(m.run, NULL));
        }
        if (m.at_x->device == NULL) {
            write_to(w, m.at_x, -7);
        }
        if (draw % 3 == 0) {
            OK(rondo_executor_wait(w->executor));
            expect_both(&m, (float)i);
        }
    }
    end_moving(&m);
}

// With tensors of the device a run that is not waited for is a launch, and the graph is that of
// runs that are.
TEST(test_executor_carried__is_one_launch_without_a_wait) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_bound_run *run;
    size_t launches = 0, events = 0, captures = 0, copies = 0;  // of the runs
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &w->x));
    OK(rondo_bound_run_set_fetch(run, "y", &w->y));
    for (int i = 0; i < 16; ++i) {
        add_world_write(w->stream, &w->x, (float)i);
        const bool waits = i % 2 == 0 && i < 8;
        launches = fake_cuda_count_calls("cuGraphLaunch");
        events = fake_cuda_count_calls("cuEventRecord");
        captures = fake_cuda_count_calls("cuStreamBeginCapture");
        copies = fake_cuda_count_calls("cuMemcpyDtoDAsync");
        OK(waits ? rondo_bound_run_run(run) : rondo_bound_run_run_async(run, NULL));
        if (i > 7 && on_devices_is_fake()) {
            assert_int_equal(fake_cuda_count_calls("cuGraphLaunch"), launches + 1);
            assert_int_equal(fake_cuda_count_calls("cuEventRecord"), events);
            assert_int_equal(fake_cuda_count_calls("cuStreamBeginCapture"), captures);
            assert_int_equal(fake_cuda_count_calls("cuMemcpyDtoDAsync"), copies);
        }
        OK(rondo_executor_wait(w->executor));
        add_world_expect(w->stream, &w->y, (float)i, true);
    }
    rondo_bound_run_destroy(run);
    add_world_close(w);
}

// On a GPU such a run is a launch and a wait; with another pinned tensor a patch comes before.
TEST(test_executor_carried__is_one_launch) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_tensor pinned[] = {take_place(w, 2), take_place(w, 3)}, y = take_place(w, 0);
    rondo_bound_run *run;
    size_t copies = 0, launches = 0, waits = 0, patches = 0;
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_fetch(run, "y", &y));
    OK(rondo_bound_run_set_fetch(run, "s", &w->s));
    for (int i = 0; i < 10; ++i) {
        if (i == 0 || i == 8) {
            OK(rondo_bound_run_set_feed(run, "x", &pinned[i / 8]));
        }
        add_program_fill(pinned[i / 8].data, (float)i);
        if (i == 7) {
            copies = fake_cuda_count_calls("cuMemcpyHtoDAsync") +
                     fake_cuda_count_calls("cuMemcpyDtoHAsync");
            launches = fake_cuda_count_calls("cuGraphLaunch");
            waits = fake_cuda_count_calls("cuStreamSynchronize");
            patches = fake_cuda_count_calls("cuGraphExecKernelNodeSetParams");
        }
        OK(rondo_bound_run_run(run));
        if (i == 9 && on_devices_is_fake()) {
            assert_int_equal(fake_cuda_count_calls("cuGraphLaunch"), launches + 3);
            assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), waits + 3);
            assert_int_equal(fake_cuda_count_calls("cuGraphExecKernelNodeSetParams"), patches + 1);
            assert_int_equal(fake_cuda_count_calls("cuMemcpyHtoDAsync") +
                                 fake_cuda_count_calls("cuMemcpyDtoHAsync"),
                             copies);
        }
        assert_int_equal(add_program_check(y.data, (float)i, true), ADD_COUNT);
    }
    add_world_expect(w->stream, &w->s, 9, false);
    rondo_bound_run_destroy(run);
    give_place(w, 2, &pinned[0]);
    give_place(w, 3, &pinned[1]);
    give_place(w, 0, &y);
    add_world_close(w);
}

static void count_refusals(void *user_data, rondo_log_level level, const char *message) {
    int *count = user_data;
    (void)level;
    *count += strstr(message, "a bound run is no single graph") != NULL ? 1 : 0;
}

// Feeds and fetches of host memory alone are no reason to go step by step, on the host neither.
TEST(test_executor_carried__tensors_of_host_memory) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_tensor x = take_place(w, 0), y = take_place(w, 1);
    rondo_bound_run *run;
    int refusal_count = 0;
    rondo_log_set_sink(count_refusals, &refusal_count);
    rondo_log_set_level(RONDO_LOG_INFO);
    OK(rondo_bound_run_create(w->executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x));
    OK(rondo_bound_run_set_fetch(run, "y", &y));
    for (int i = 0; i < 12; ++i) {
        add_program_fill(x.data, (float)i);
        OK(rondo_bound_run_run(run));
        assert_int_equal(add_program_check(y.data, (float)i, true), ADD_COUNT);
    }
    OK(rondo_executor_rerun(w->executor));  // what was fed last is where a rerun looks
    assert_int_equal(add_program_check(y.data, 11, true), ADD_COUNT);
    rondo_log_set_level(RONDO_LOG_WARNING);
    rondo_log_set_sink(NULL, NULL);
    rondo_bound_run_destroy(run);
    give_place(w, 0, &x);
    give_place(w, 1, &y);
    add_world_close(w);
    assert_int_equal(refusal_count, 0);
}

// Tensors that are copied beside the graph, among small ones.
TEST(test_executor_carried__large_tensors) {
    enum { LARGE = 10000 };
    if (on_devices_is_fake()) {
        print_message("skipped: the fake driver knows one addition\n");
        skip();
    }
    const rondo_port ports[] = {PORT("x", RONDO_DTYPE_F32, LARGE),
                                PORT("term", RONDO_DTYPE_F32, 1)};
    rondo_program *program =
        one_op_build("Add", ports, 2, (const char *[]){"x", "term", NULL}, "y", NULL);
    rondo_device *device;
    rondo_executor *executor;
    rondo_bound_run *run;
    float term;
    rondo_tensor x = {.dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {LARGE}}}, y[2];
    const rondo_tensor terms = {
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {1}}, .data = &term};
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, sizeof(float) * LARGE, &x.data));
    y[0] = x;
    OK(rondo_memory_allocate(device, RONDO_MEMORY_PINNED, sizeof(float) * LARGE, &y[0].data));
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &x.shape, &y[1]));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_bound_run_create(executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &x));
    OK(rondo_bound_run_set_feed(run, "term", &terms));
    for (int i = 0; i < 20; ++i) {
        if (i % 10 == 0) {
            OK(rondo_bound_run_set_fetch(run, "y", &y[i / 10]));
        }
        term = (float)i;
        for (int k = 0; k < LARGE; ++k) {
            ((float *)x.data)[k] = (float)(k + i);
        }
        OK(rondo_bound_run_run(run));
        for (int k = 0; k < LARGE; ++k) {
            assert_true(((const float *)y[i / 10].data)[k] == (float)(k + 2 * i));
        }
    }
    rondo_bound_run_destroy(run);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_memory_free(device, x.data);
    rondo_memory_free(device, y[0].data);
    rondo_tensor_deinit(&y[1]);
    rondo_device_release(device);
}

enum { FEW = 64 };  // 256 bytes

static void expect_values(add_world *w, const rondo_tensor *tensor, float first, bool is_relu) {
    float found[FEW];
    const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .shape = tensor->shape, .data = found};
    if (rondo_tensor_is_on_host(tensor)) {
        memcpy(found, tensor->data, sizeof found);
    } else {
        OK(rondo_tensor_copy(w->stream, tensor, &to));
        OK(rondo_stream_synchronize(w->stream));
    }
    for (int k = 0; k < FEW; ++k) {
        const float x = first + (float)k;
        assert_true(found[k] == (is_relu && x < 0 ? 0 : x));
    }
}

// Relu(x) and x itself, in either order of outputs.
static rondo_program *build_relu_and_input(int order) {
    const char *const x_name = "x";
    const char *const names[] = {"y", "same"};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, FEW)));
    OK(rondo_builder_add_node(builder, "Relu", &x_name, 1, &names[0], 1, NULL));
    OK(rondo_builder_add_node(builder, "Identity", &x_name, 1, &names[1], 1, NULL));
    OK(rondo_builder_add_output(builder, names[order], NULL));
    OK(rondo_builder_add_output(builder, names[1 - order], NULL));
    return build_finish(builder);
}

// tensors     x, y and another one of the device.
static void run_over_feed(add_world *w, rondo_bound_run *run, const rondo_tensor tensors[3]) {
    float values[FEW], given[FEW];
    const rondo_tensor *x = &tensors[0];
    const rondo_tensor from = {.dtype = RONDO_DTYPE_F32, .shape = x->shape, .data = values};
    const rondo_tensor same = {.dtype = RONDO_DTYPE_F32, .shape = x->shape, .data = given};
    OK(rondo_bound_run_set_feed(run, "x", x));
    OK(rondo_bound_run_set_fetch(run, "y", &tensors[1]));
    OK(rondo_bound_run_set_fetch(run, "same", &same));
    for (int i = 0; i < 18; ++i) {
        if (i == 6) {
            OK(rondo_bound_run_set_fetch(run, "y", x));
        } else if (i == 12) {
            OK(rondo_bound_run_set_fetch(run, "same", &tensors[2]));
        }
        for (int k = 0; k < FEW; ++k) {
            values[k] = (float)(k - 2 * i);
        }
        OK(rondo_tensor_copy(w->stream, &from, x));
        OK(rondo_stream_synchronize(w->stream));
        OK(rondo_bound_run_run(run));
        expect_values(w, i < 6 ? &tensors[1] : x, values[0], true);
        expect_values(w, i < 12 ? &same : &tensors[2], values[0], false);
    }
}

// A fetch that is the input, also where another fetch lies in the feed's memory from some run on.
TEST(test_executor_carried__an_input_is_fetched) {
    if (on_devices_is_fake()) {
        print_message("skipped: the fake driver knows one addition\n");
        skip();
    }
    const rondo_shape shape = {.rank = 1, .extent = {FEW}};
    for (int order = 0; order < 2; ++order) {
        add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
        rondo_program *program = build_relu_and_input(order);
        rondo_executor *executor;
        rondo_bound_run *run;
        rondo_tensor tensors[3];
        for (int i = 0; i < 3; ++i) {
            OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &shape, &tensors[i]));
        }
        OK(rondo_executor_create(program, w->device, NULL, &executor));
        OK(rondo_bound_run_create(executor, &run));
        run_over_feed(w, run, tensors);
        rondo_bound_run_destroy(run);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
        for (int i = 0; i < 3; ++i) {
            rondo_tensor_deinit(&tensors[i]);
        }
        add_world_close(w);
    }
}

enum { ROW = 8 };  // 256 bytes, too

// A product of two values, all of which are fetched.
static rondo_program *build_product(void) {
    const char *const names[] = {"x", "turned", "soft", "product"};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, ROW, ROW)));
    OK(rondo_builder_add_node(builder, "Softmax", names, 1, &names[2], 1, NULL));
    OK(rondo_builder_add_node(builder, "Transpose", names, 1, &names[1], 1, NULL));
    OK(rondo_builder_add_node(builder, "MatMul", &names[1], 2, &names[3], 1, NULL));
    for (int i = 3; i > 0; --i) {
        OK(rondo_builder_add_output(builder, names[i], NULL));
    }
    return build_finish(builder);
}

// Fetches that share memory, from some run on: a third one is what it was. Bound runs refuse that.
TEST(test_executor_carried__fetches_share_memory) {
    if (on_devices_is_fake()) {
        print_message("skipped: the fake driver knows one addition\n");
        skip();
    }
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_program *program = build_product();
    rondo_executor *executor;
    rondo_bound_run *run;
    rondo_tensor tensors[4];
    float values[ROW * ROW], first[ROW * ROW], found[ROW * ROW];
    const rondo_shape shape = {.rank = 2, .extent = {ROW, ROW}};
    rondo_tensor host = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = values};
    for (int i = 0; i < 4; ++i) {
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &shape, &tensors[i]));
    }
    for (int i = 0; i < ROW * ROW; ++i) {
        values[i] = (float)(i * 7 % 11 - 5);
    }
    OK(rondo_tensor_copy(w->stream, &host, &tensors[0]));
    OK(rondo_stream_synchronize(w->stream));
    OK(rondo_executor_create(program, w->device, NULL, &executor));
    OK(rondo_bound_run_create(executor, &run));
    OK(rondo_bound_run_set_feed(run, "x", &tensors[0]));
    OK(rondo_bound_run_set_fetch(run, "soft", &tensors[2]));
    assert_int_equal(rondo_bound_run_set_fetch(run, "turned", &tensors[2]), RONDO_STATUS_INVALID);
    const rondo_binding feed = {"x", tensors[0]};
    rondo_binding fetches[] = {
        {"product", tensors[1]}, {"soft", tensors[2]}, {"turned", tensors[3]}};
    for (int i = 0; i < 12; ++i) {
        if (i == 6) {
            fetches[2].tensor = tensors[2];
        }
        OK(rondo_executor_run(executor, &feed, 1, fetches, 3));
        host.data = i == 0 ? first : found;
        OK(rondo_tensor_copy(w->stream, &tensors[1], &host));
        OK(rondo_stream_synchronize(w->stream));
        assert_memory_equal(first, host.data, sizeof first);
    }
    rondo_bound_run_destroy(run);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    for (int i = 0; i < 4; ++i) {
        rondo_tensor_deinit(&tensors[i]);
    }
    add_world_close(w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
