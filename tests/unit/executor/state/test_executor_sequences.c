// Drawn sequences of calls on what an executor keeps, against a model of it in plain C: variables
// with and without updates, two that change places, a bound input, a parameter, recorded runs.
//
//   test_executor_sequences [CALLS [SEED]]
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/drawn_seed.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/test.h"

enum { COUNT = 64 };
static const rondo_shape row = {.rank = 1, .extent = {COUNT}};
static unsigned long g_calls = 6000;
static uint64_t g_seed = 1;
static uint64_t g_world;  // the seed of the world at hand, to begin with again

typedef struct values {
    float at[COUNT];
} values;

// What is kept, in the model.
typedef enum kept { SUM, PREVIOUS, LAST, WEIGHT, CACHE, KEPT_COUNT } kept;
static const char *const names[] = {"sum", "previous", "last", "weight", "cache"};
static const float starts[] = {2, 0, 1, 5};

typedef struct world {
    uint64_t state;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_stream *stream;
    rondo_graph *graph;
    bool is_recorded, cache_is_fed;  // by the graph
    rondo_tensor x, y, cache;        // on the device, of the graph
    bool is_bound, has_cache;
    values kept[KEPT_COUNT];
    values parameter;
} world;

static uint32_t draw(world *w, uint32_t below) {
    w->state = w->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(w->state >> 33) % below;
}

static values draw_values(world *w) {
    values v;
    const float first = (float)draw(w, 32);
    for (int i = 0; i < COUNT; ++i) {
        v.at[i] = first + (float)(i % 7);
    }
    return v;
}

static rondo_tensor on_host(values *v) {
    return (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = row, .data = v->at};
}

static void check(const values *have, const values *want) {
    if (memcmp(have->at, want->at, sizeof have->at) != 0) {
        print_error("seed %llu\n", (unsigned long long)g_world);
    }
    assert_memory_equal(have->at, want->at, sizeof have->at);
}

// ---- the program ------------------------------------------------------------------------------

static void build(world *w) {
    rondo_port port = {.struct_size = sizeof port, .dtype = RONDO_DTYPE_F32, .rank = 1};
    port.extent[0] = COUNT;
    rondo_builder *b = build_begin();
    port.name = "x";
    OK(rondo_builder_add_input(b, &port));
    port.name = "cache";
    OK(rondo_builder_add_input(b, &port));
    for (int i = SUM; i <= WEIGHT; ++i) {
        const rondo_start start = {
            .struct_size = sizeof start, .kind = RONDO_START_CONSTANT, .a = (double)starts[i]};
        port.name = names[i];
        OK(rondo_builder_add_variable(b, &port, &start));
        for (int k = 0; k < COUNT; ++k) {
            w->kept[i].at[k] = starts[i];
        }
    }
    w->parameter = draw_values(w);
    OK(rondo_builder_add_constant(b, "parameter", RONDO_DTYPE_F32, &row, w->parameter.at));
    build_node(b, "Add", "sum x", "sum.next", NULL);
    build_node(b, "Identity", "last", "previous.next", NULL);
    build_node(b, "Add", "previous x", "last.next", NULL);
    build_node(b, "Add", "sum weight", "t0", NULL);
    build_node(b, "Add", "t0 parameter", "t1", NULL);
    build_node(b, "Add", "t1 cache", "y", NULL);
    build_node(b, "Add", "x weight", "cache.next", NULL);
    OK(rondo_builder_set_update(b, "sum", "sum.next"));
    OK(rondo_builder_set_update(b, "previous", "previous.next"));
    OK(rondo_builder_set_update(b, "last", "last.next"));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_add_output(b, "cache.next", NULL));
    w->program = build_finish(b);
}

// What a run makes; returns y.
static values advance(world *w, const values *x, const values *cache) {
    values y, last;
    for (int i = 0; i < COUNT; ++i) {
        y.at[i] = w->kept[SUM].at[i] + w->kept[WEIGHT].at[i] + w->parameter.at[i] + cache->at[i];
        last.at[i] = w->kept[PREVIOUS].at[i] + x->at[i];
        w->kept[SUM].at[i] += x->at[i];
        if (w->is_bound) {
            w->kept[CACHE].at[i] = x->at[i] + w->kept[WEIGHT].at[i];
        }
    }
    w->kept[PREVIOUS] = w->kept[LAST];
    w->kept[LAST] = last;
    w->has_cache = w->has_cache || w->is_bound;
    return y;
}

// ---- calls ------------------------------------------------------------------------------------

static void call_run(world *w) {
    values x = draw_values(w), y, next, feed[KEPT_COUNT];
    rondo_binding feeds[2 + KEPT_COUNT] = {{"x", on_host(&x)}};
    rondo_binding fetches[] = {{"y", on_host(&y)}, {"sum.next", on_host(&next)}};
    size_t count = 1;
    for (int i = SUM; i <= WEIGHT; ++i) {
        if (draw(w, 8) == 0) {
            feed[i] = draw_values(w);
            feeds[count++] = (rondo_binding){names[i], on_host(&feed[i])};
            w->kept[i] = feed[i];
        }
    }
    const bool feeds_cache = !w->is_bound || !w->has_cache || draw(w, 4) == 0;
    if (feeds_cache) {
        feed[CACHE] = draw_values(w);
        feeds[count++] = (rondo_binding){"cache", on_host(&feed[CACHE])};
    }
    const values cache = feeds_cache ? feed[CACHE] : w->kept[CACHE];
    const values want = advance(w, &x, &cache);
    const size_t fetch_count = draw(w, 3);
    if (draw(w, 2) == 0) {
        OK(rondo_executor_run(w->executor, feeds, count, fetches, fetch_count));
    } else {
        OK(rondo_executor_run_async(w->executor, feeds, count, fetches, fetch_count, NULL));
        OK(rondo_executor_wait(w->executor));
    }
    if (fetch_count > 0) {
        check(&y, &want);
    }
    if (fetch_count > 1) {
        check(&next, &w->kept[SUM]);
    }
}

static void call_get(world *w) {
    const int i = (int)draw(w, KEPT_COUNT);
    rondo_tensor now;
    values have;
    const rondo_tensor to = on_host(&have);
    if (i == CACHE && !(w->is_bound && w->has_cache)) {
        assert_int_equal(rondo_executor_get_variable(w->executor, "cache", &now),
                         w->is_bound ? RONDO_STATUS_STATE : RONDO_STATUS_INVALID);
        return;
    }
    rondo_stream *stream = rondo_executor_get_stream(w->executor);
    OK(rondo_executor_get_variable(w->executor, names[i], &now));
    OK(rondo_tensor_copy(stream, &now, &to));
    OK(rondo_stream_synchronize(stream));
    rondo_tensor_deinit(&now);
    check(&have, &w->kept[i]);
}

static void call_set(world *w) {
    const int i = (int)draw(w, KEPT_COUNT);
    values v = draw_values(w);
    const rondo_tensor tensor = on_host(&v);
    if (i == CACHE && !w->is_bound) {
        EXPECT(INVALID, "", rondo_executor_set_variable(w->executor, "cache", &tensor));
        return;
    }
    OK(rondo_executor_set_variable(w->executor, names[i], &tensor));
    w->kept[i] = v;
    w->has_cache = w->has_cache || i == CACHE;
}

static void call_reset(world *w) {
    OK(rondo_executor_reset_variables(w->executor));
    for (int i = SUM; i <= WEIGHT; ++i) {
        for (int k = 0; k < COUNT; ++k) {
            w->kept[i].at[k] = starts[i];
        }
    }
}

static void call_replace(world *w) {
    values v = draw_values(w);
    const rondo_tensor tensor = on_host(&v);
    if (w->is_recorded) {
        EXPECT(STATE, "reset or destroy",
               rondo_executor_set_variable(w->executor, "parameter", &tensor));
        return;
    }
    OK(rondo_executor_set_variable(w->executor, "parameter", &tensor));
    w->parameter = v;
}

static void call_bind(world *w) {
    if (w->is_recorded && w->is_bound) {
        EXPECT(STATE, "a graph", rondo_executor_bind(w->executor, NULL, "cache"));
    } else if (w->is_recorded) {
        return;  // the graph would not know of it
    } else {
        OK(rondo_executor_bind(w->executor, w->is_bound ? NULL : "cache.next", "cache"));
        w->is_bound = !w->is_bound;
        w->has_cache = false;
    }
}

static void call_graphs(world *w) {
    static const rondo_graphs_mode modes[] = {RONDO_GRAPHS_AUTO, RONDO_GRAPHS_ON, RONDO_GRAPHS_OFF,
                                              RONDO_GRAPHS_MEASURED};
    OK(rondo_executor_set_graphs(w->executor, modes[draw(w, 4)]));
    OK(rondo_executor_set_training(w->executor, draw(w, 4) == 0));
    if (draw(w, 4) == 0) {
        const rondo_status status = rondo_executor_reserve_variable(w->executor, names[draw(w, 4)],
                                                                    COUNT * 4 * (1 + draw(w, 2)));
        assert_true(status == RONDO_STATUS_OK || (status == RONDO_STATUS_STATE && w->is_recorded));
    }
}

static void call_record(world *w) {
    if (w->is_recorded) {
        OK(rondo_graph_reset(w->graph));
        w->is_recorded = false;
        return;
    }
    const bool feeds_cache = !w->is_bound || !w->has_cache || draw(w, 3) == 0;
    values x = draw_values(w), cache = draw_values(w);
    const rondo_binding hosts[] = {{"x", on_host(&x)}, {"cache", on_host(&cache)}};
    OK(rondo_executor_run(w->executor, hosts, feeds_cache ? 2 : 1, NULL, 0));
    (void)advance(w, &x, feeds_cache ? &cache : &w->kept[CACHE]);
    const rondo_binding feeds[] = {{"x", w->x}, {"cache", w->cache}};
    const rondo_binding fetch = {"y", w->y};
    OK(rondo_graph_capture_begin(w->graph, w->stream, RONDO_CAPTURE_THREAD_LOCAL));
    OK(rondo_executor_record(w->executor, w->stream, feeds, feeds_cache ? 2 : 1, &fetch, 1));
    OK(rondo_graph_capture_end(w->graph));
    w->is_recorded = true;
    w->cache_is_fed = feeds_cache;
}

static void call_replay(world *w) {
    if (!w->is_recorded) {
        return;
    }
    values x = draw_values(w), cache = draw_values(w), y;
    const rondo_tensor from[] = {on_host(&x), on_host(&cache)};
    const rondo_tensor to = on_host(&y);
    OK(rondo_tensor_copy(w->stream, &from[0], &w->x));
    OK(rondo_tensor_copy(w->stream, &from[1], &w->cache));
    OK(rondo_graph_replay(w->graph, w->stream));
    OK(rondo_tensor_copy(w->stream, &w->y, &to));
    OK(rondo_stream_synchronize(w->stream));
    const values want = advance(w, &x, w->cache_is_fed ? &cache : &w->kept[CACHE]);
    check(&y, &want);
}

static void call_any(world *w) {
    static void (*const calls[])(world *) = {call_run,    call_run,    call_run,   call_get,
                                             call_get,    call_set,    call_set,   call_reset,
                                             call_record, call_replay, call_replay};
    const uint32_t rare = draw(w, 40);
    if (rare == 0) {
        call_replace(w);
    } else if (rare == 1) {
        call_bind(w);
    } else if (rare < 4) {
        call_graphs(w);
    } else {
        calls[draw(w, sizeof calls / sizeof *calls)](w);
    }
}

// ---- worlds -----------------------------------------------------------------------------------

static void open_world(world *w, uint64_t seed) {
    *w = (world){.state = seed};
    rondo_executor_options options = {.struct_size = sizeof options};
    options.op_by_op = on_devices_is_fake() || draw(w, 2) == 0;
    options.self_check_every = draw(w, 3) == 0 ? 5 : 0;
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    build(w);
    OK(rondo_executor_create(w->program, w->device, &options, &w->executor));
    OK(rondo_stream_create(w->device, NULL, &w->stream));
    OK(rondo_graph_create(w->device, NULL, &w->graph));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &row, &w->x));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &row, &w->y));
    OK(rondo_tensor_init_device(w->device, RONDO_DTYPE_F32, &row, &w->cache));
}

static void close_world(world *w) {
    const bool is_late = draw(w, 2) == 0;  // the graph goes first, or the executor
    if (is_late) {
        rondo_executor_destroy(w->executor);
    }
    rondo_graph_destroy(w->graph);
    if (!is_late) {
        rondo_executor_destroy(w->executor);
    }
    rondo_tensor_deinit(&w->x);
    rondo_tensor_deinit(&w->y);
    rondo_tensor_deinit(&w->cache);
    rondo_stream_destroy(w->stream);
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
    assert_string_equal(fake_cuda_get_violations(), "");
}

TEST(test_executor_sequences__calls_do_what_the_model_does) {
    enum { CALLS_A_WORLD = 400 };
    for (unsigned long done = 0; done < g_calls; done += CALLS_A_WORLD) {
        world w;
        const uint64_t seed = g_seed + done;
        open_world(&w, seed);
        g_world = seed;
        for (int i = 0; i < CALLS_A_WORLD; ++i) {
            call_any(&w);
        }
        close_world(&w);
    }
}

int main(int argc, char **argv) {
    g_calls = argc > 1 ? strtoul(argv[1], NULL, 10) : g_calls;
    g_seed = argc > 2 ? strtoul(argv[2], NULL, 10) : g_seed;
    g_seed = g_seed > 0 ? g_seed : draw_seed();
    return ON_DEVICES() + OVER_THE_FAKE(NULL);
}
