// Runs by names that repeat each other with tensors of the device: bound by the executor.
// SPDX-License-Identifier: Apache-2.0
#include "program/program.h"
#include "rondo/models.h"
#include "support/add_world.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { BOUND_BY = 10 };  // runs alike, after which one is a launch

typedef struct counts {
    size_t launches, events, captures, copies;
} counts;

static counts count_calls(void) {
    return (counts){fake_cuda_count_calls("cuGraphLaunch"), fake_cuda_count_calls("cuEventRecord"),
                    fake_cuda_count_calls("cuStreamBeginCapture"),
                    fake_cuda_count_calls("cuMemcpyDtoDAsync")};
}

// Runs with x = first, first + 1, ... in `feed`, and looks at what is in `fetch`.
static counts run_once(add_world *w, const rondo_tensor *feed, const rondo_tensor *fetch,
                       float first, bool waits) {
    char x_name[] = "x";  // names at other addresses count as the same
    char y_name[] = "y";
    const rondo_binding x = {x_name, *feed};
    rondo_binding y = {y_name, *fetch};
    add_world_write(w->stream, feed, first);
    const counts before = count_calls();
    if (waits) {
        OK(rondo_executor_run(w->executor, &x, 1, &y, 1));
    } else {
        OK(rondo_executor_run_async(w->executor, &x, 1, &y, 1, NULL));
    }
    const counts behind = count_calls();
    const counts taken = {behind.launches - before.launches, behind.events - before.events,
                          behind.captures - before.captures, behind.copies - before.copies};
    assert_ptr_equal(y.tensor.data, fetch->data);
    OK(rondo_executor_wait(w->executor));
    add_world_expect(w->stream, fetch, first, true);
    return taken;
}

static void expect_launch(const counts *taken) {
    if (on_devices_is_fake()) {
        assert_int_equal(taken->launches, 1);
        assert_int_equal(taken->events, 0);
        assert_int_equal(taken->captures, 0);
        assert_int_equal(taken->copies, 0);
    }
}

// Whether branches help is found by runs that are waited for.
TEST(test_executor_repeated__becomes_one_launch) {
    for (int waits = 0; waits < 2; ++waits) {
        add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
        for (int i = 0; i < 2 * BOUND_BY; ++i) {
            const counts taken = run_once(w, &w->x, &w->y, (float)i, waits != 0 || i < 8);
            if (i > BOUND_BY) {
                expect_launch(&taken);
            }
        }
        add_world_close(w);
    }
}

// Other tensors, other names, a bound run and host memory come in between; the call that is bound
// stays so.
TEST(test_executor_repeated__others_come_between) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_tensor other[2];
    const rondo_binding x = {"x", w->x};
    rondo_binding s = {"s", w->s};
    for (int i = 0; i < 2; ++i) {
        OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &other[i]));
    }
    for (int i = 0; i < 60; ++i) {
        if (i % 5 == 1) {
            (void)run_once(w, &other[0], &w->y, (float)-i, i % 2 == 0);
        } else if (i % 5 == 2) {
            (void)run_once(w, &w->x, &other[1], (float)(3 * i), true);
        } else if (i % 5 == 3) {
            OK(add_program_run(w->executor, 77));
            add_world_write(w->stream, &w->x, (float)(i + 5));
            OK(rondo_executor_run(w->executor, &x, 1, &s, 1));
            add_world_expect(w->stream, &w->s, (float)(i + 5), false);
        }
        for (int k = 0; k < (i < 10 ? BOUND_BY : 1); ++k) {
            const counts taken = run_once(w, &w->x, &w->y, (float)i, true);
            if (i > 10) {
                expect_launch(&taken);
            }
        }
    }
    for (int i = 0; i < 2; ++i) {
        rondo_tensor_deinit(&other[i]);
    }
    add_world_close(w);
}

// Another call that goes on repeating takes the place.
TEST(test_executor_repeated__another_takes_the_place) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    for (int i = 0; i < 6 * BOUND_BY; ++i) {
        const counts taken = run_once(w, &w->x, i < 2 * BOUND_BY ? &w->y : &w->s, (float)i, true);
        if (i == 2 * BOUND_BY - 1 || i > 4 * BOUND_BY) {
            expect_launch(&taken);
        }
    }
    add_world_close(w);
}

// The executor keeps no tensor: memory that the program gave up is taken by another one.
TEST(test_executor_repeated__tensors_are_not_kept) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    rondo_tensor x;
    for (int i = 0; i < 4 * BOUND_BY; ++i) {
        if (i % BOUND_BY == 0) {
            OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &x));
        }
        (void)run_once(w, &x, &w->y, (float)i, true);
        if (i % BOUND_BY == BOUND_BY - 1) {
            const size_t frees = fake_cuda_count_calls("cuMemFree");
            rondo_tensor_deinit(&x);
            assert_true(!on_devices_is_fake() || fake_cuda_count_calls("cuMemFree") == frees + 1);
        }
    }
    add_world_close(w);
}

// A parameter that is replaced takes the executor to another program, and the names of the former
// are freed, which a sanitizer watches.
TEST(test_executor_repeated__a_parameter_is_replaced) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    float values[ADD_COUNT];
    for (int i = 0; i < ADD_COUNT; ++i) {
        values[i] = (float)i / 2;
    }
    const rondo_tensor parameter = {.dtype = RONDO_DTYPE_F32, .shape = add_shape, .data = values};
    for (int i = 0; i < 6 * BOUND_BY; ++i) {
        if (i % BOUND_BY == 0) {
            OK(rondo_executor_set_variable(w->executor, "w", &parameter));
        }
        (void)run_once(w, &w->x, &w->y, (float)i, i % 3 != 0);
    }
    add_world_close(w);
}

// An output that the program lists twice has two fetches of one name, and both are written.
TEST(test_executor_repeated__an_output_is_listed_twice) {
    rondo_executor *executor;
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    const int32_t y_value = rondo__program_find_value(w->program, "y");
    OK(rondo__program_add_output(w->program, y_value));
    OK(rondo_executor_create(w->program, w->device, NULL, &executor));
    rondo_tensor other;
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &add_shape, &other));
    const rondo_binding x = {"x", w->x};
    for (int i = 0; i < 2 * BOUND_BY; ++i) {
        rondo_binding y[2] = {{"y", w->y}, {"y", other}};
        add_world_write(w->stream, &w->x, (float)i);
        OK(rondo_executor_run(executor, &x, 1, y, 2));
        add_world_expect(w->stream, &w->y, (float)i, true);
        add_world_expect(w->stream, &other, (float)i, true);
    }
    rondo_tensor_deinit(&other);
    rondo_executor_destroy(executor);
    add_world_close(w);
}

// A call of another kind is refused as ever, also where the names are those of the call before.
TEST(test_executor_repeated__bad_calls_are_refused) {
    add_world *w = add_world_open(RONDO_GRAPHS_ON, false);
    for (int i = 0; i < 2 * BOUND_BY; ++i) {
        (void)run_once(w, &w->x, &w->y, (float)i, true);
    }
    rondo_binding x = {"x", w->x};
    rondo_binding y = {"y", w->y};
    assert_int_equal(rondo_executor_run(w->executor, NULL, 1, &y, 1), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_executor_run(w->executor, &x, 1, NULL, 1), RONDO_STATUS_INVALID);
    x.name = NULL;
    assert_int_equal(rondo_executor_run(w->executor, &x, 1, &y, 1), RONDO_STATUS_INVALID);
    x.name = "x";
    x.tensor.shape.extent[0] -= 1;
    assert_int_equal(rondo_executor_run(w->executor, &x, 1, &y, 1), RONDO_STATUS_INVALID);
    x.tensor = w->x;
    x.tensor.dtype = RONDO_DTYPE_I32;
    assert_int_equal(rondo_executor_run(w->executor, &x, 1, &y, 1), RONDO_STATUS_INVALID);
    const counts taken = run_once(w, &w->x, &w->y, 5, true);
    expect_launch(&taken);
    add_world_close(w);
}

int main(void) {
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
