// Fail the nth for ops of a GPU whose results' shapes depend on data: each driver call of the fake
// driver and every allocation fails once while the plan is made, run, captured and replayed, for
// two counts in turn. Whatever fails, the runs that succeed are right, the next ones work, and
// nothing is left.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "support/models/executor_sweep.h"
#include "support/short_forms.h"

enum { COUNT = 8, STRING = 8 };

static rondo_status add(rondo_builder *builder, const char *op, const char *from, const char *to,
                        const rondo_builder_node_options *options) {
    return rondo_builder_add_node(builder, op, &from, 1, &to, 1, options);
}

// What is found in relu(x), what is found in that, both in bodies of their own, and a text of the
// first, which the processor writes.
static rondo_status build(executor_world *w) {
    RETURN_IF_ERROR(executor_world_begin(w, "x", COUNT));
    RETURN_IF_ERROR(add(w->builder, "Relu", "x", "a", NULL));
    RETURN_IF_ERROR(add(w->builder, "NonZero", "a", "found", NULL));
    RETURN_IF_ERROR(add(w->builder, "Neg", "found", "y", NULL));
    RETURN_IF_ERROR(add(w->builder, "NonZero", "y", "z", NULL));
    RETURN_IF_ERROR(add(w->builder, "Cast", "found", "text", &WITH(ATTRIBUTE_INT("to", STRING))));
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "y", NULL));
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "z", NULL));
    RETURN_IF_ERROR(rondo_builder_add_output(w->builder, "text", NULL));
    return rondo_builder_finish(w->builder, &w->program);
}

// The last `count` elements are found; where all are, the first of them is 0 and is not found
// again.
static void expect_right(const rondo_binding *fetches, int64_t count) {
    const int64_t again = count < COUNT ? count : count - 1;
    assert_true(fetches[0].tensor.shape.extent[1] == count);
    assert_true(fetches[1].tensor.shape.extent[1] == again);
    for (int64_t i = 0; i < count; ++i) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)(COUNT - count + i));
        assert_true(((const int64_t *)fetches[0].tensor.data)[i] == count - COUNT - i);
        assert_string_equal(((const rondo_string *)fetches[2].tensor.data)[i].data, number);
    }
    for (int64_t i = 0; i < again; ++i) {
        const int64_t *z = fetches[1].tensor.data;
        assert_true(z[i] == 0 && z[again + i] == count - again + i);
    }
}

static rondo_status run_once(rondo_executor *executor, int64_t count, bool waits) {
    float x[COUNT];
    rondo_binding feed = {"x", {RONDO_DTYPE_F32, {1, {COUNT}}, x, NULL, NULL}};
    rondo_binding fetches[] = {{.name = "y"}, {.name = "z"}, {.name = "text"}};
    for (int i = 0; i < COUNT; ++i) {
        x[i] = i >= COUNT - count ? 2.0f : -1.0f;
    }
    rondo_status status = waits ? rondo_executor_run(executor, &feed, 1, fetches, 3)
                                : rondo_executor_run_async(executor, &feed, 1, fetches, 3, NULL);
    if (!waits && status == RONDO_STATUS_OK) {
        status = rondo_executor_wait(executor);
    }
    if (status == RONDO_STATUS_OK) {
        expect_right(fetches, count);
    }
    for (int i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
    return status;
}

static void work(executor_world *w, const char *device_name) {
    const rondo_executor_options options = {
        .struct_size = sizeof options, .thread_count = 1, .self_check_every = 5};
    STEP(rondo_device_open(device_name, &w->device));
    STEP(build(w));
    STEP(rondo_executor_create(w->program, w->device, &options, &w->executor));
    for (int run = 0; run < 6; ++run) {
        STEP(run_once(w->executor, run % 2 == 0 ? 3 : COUNT, run != 3));
    }
}

static rondo_status run_again(rondo_executor *executor) {
    return run_once(executor, 3, true);
}

TEST(test_counted_sweep__fake) {
    executor_sweep_on_fake("counted",
                           &(executor_sweep){work, run_again, 1, .dense = 100, .count_min = 100});
}

TEST_MAIN()
