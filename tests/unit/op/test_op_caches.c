// Caches of keys and values that attention ops write where they lie: the same bits as those of the
// copying form, eager and replayed, and no second cache.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/sweep.h"
#include "support/test.h"
#include "support/variables_world.h"

enum { WIDTH = 16, MOST = 128, STEPS = 6, PASSES = 3, PROMPT = 3 };

typedef struct model {
    const char *name;
    int64_t batch, heads, kv_heads;
    bool is_group;     // GroupQueryAttention with a shared buffer; else ONNX's Attention
    bool feeds_total;  // total_sequence_length is an input
    bool reads_past;   // another op reads the old keys
    bool is_in_place;  // what it must be; else the heads begin elsewhere in each step
} model;

static const model models[] = {
    {"group", 2, 4, 2, true, false, false, true},
    {"group, with a total that is fed", 1, 4, 2, true, true, false, true},
    {"group, and the old keys are read", 2, 4, 2, true, false, true, true},
    {"one head", 1, 2, 1, false, false, false, true},
    {"two heads", 1, 2, 2, false, false, false, false},
};

static rondo_port make_port(const char *name, rondo_dtype dtype, int32_t rank,
                            const int64_t *extents) {
    rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = dtype, .rank = rank};
    memcpy(port.extent, extents, (size_t)rank * sizeof *extents);
    return port;
}

static rondo_attribute make_number(const char *name, int64_t value) {
    return ATTRIBUTE_INT(name, value);
}

static void add_rows(rondo_builder *b, const char *name, int64_t batch, int64_t columns) {
    const rondo_port port =
        make_port(name, RONDO_DTYPE_F32, 3, (const int64_t[]){batch, -1, columns});
    OK(rondo_builder_add_input(b, &port));
}

static void add_group(rondo_builder *b, const model *m) {
    const rondo_attribute attributes[] = {make_number("num_heads", m->heads),
                                          make_number("kv_num_heads", m->kv_heads)};
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .domain = "com.microsoft",
                                                .attributes = attributes,
                                                .attribute_count = 2};
    const rondo_port lengths =
        make_port("lengths", RONDO_DTYPE_I32, 1, (const int64_t[]){m->batch});
    const rondo_port total = make_port("total", RONDO_DTYPE_I32, 1, (const int64_t[]){1});
    const rondo_shape one = {.rank = 1, .extent = {1}};
    const int32_t most = MOST;
    OK(rondo_builder_add_input(b, &lengths));
    if (m->feeds_total) {
        OK(rondo_builder_add_input(b, &total));
    } else {
        OK(rondo_builder_add_constant(b, "total", RONDO_DTYPE_I32, &one, &most));
    }
    build_node(b, "GroupQueryAttention", "q k v past_k past_v lengths total",
               "y present_k present_v", &options);
}

static void add_onnx(rondo_builder *b, const model *m) {
    const rondo_attribute attributes[] = {make_number("q_num_heads", m->heads),
                                          make_number("kv_num_heads", m->kv_heads)};
    build_node(b, "Attention", "q k v - past_k past_v", "y present_k present_v",
               &WITH_LIST(attributes, 2));
}

static rondo_program *build(const model *m) {
    rondo_builder *b;
    const rondo_builder_options newest = {.struct_size = sizeof newest, .opset = 23};
    const int64_t extents[] = {m->batch, m->kv_heads, -1, WIDTH};
    const rondo_port keys = make_port("past_k", RONDO_DTYPE_F32, 4, extents);
    const rondo_port values = make_port("past_v", RONDO_DTYPE_F32, 4, extents);
    OK(rondo_builder_create(&newest, &b));
    add_rows(b, "q", m->batch, m->heads * WIDTH);
    add_rows(b, "k", m->batch, m->kv_heads * WIDTH);
    add_rows(b, "v", m->batch, m->kv_heads * WIDTH);
    OK(rondo_builder_add_input(b, &keys));
    OK(rondo_builder_add_input(b, &values));
    if (m->is_group) {
        add_group(b, m);
    } else {
        add_onnx(b, m);
    }
    if (m->reads_past) {  // it stands behind, and must see what was
        build_node(b, "ReduceMax", "past_k", "most", NULL);
        OK(rondo_builder_add_output(b, "most", NULL));
    }
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_add_output(b, "present_k", NULL));
    OK(rondo_builder_add_output(b, "present_v", NULL));
    return build_finish(b);
}

typedef struct decoder {
    const model *model;
    rondo_executor *executor;
    bool is_kept;
    bool may_fail;
    rondo_tensor caches[2];  // of the copying form; of the other what it began with
    rondo_tensor y, most;
} decoder;

static const char *const past_names[] = {"past_k", "past_v"};
static const char *const present_names[] = {"present_k", "present_v"};

static rondo_shape get_cache_shape(const model *m, int64_t rows) {
    return (rondo_shape){.rank = 4, .extent = {m->batch, m->kv_heads, rows, WIDTH}};
}

static void fill(float *values, size_t count, size_t seed) {
    for (size_t i = 0; i < count; ++i) {
        values[i] = (float)((i * 7 + seed * 13) % 23) / 16.0f - 0.5f;
    }
}

static void begin(decoder *d) {
    const int64_t rows = d->model->is_group ? MOST : 2;
    const rondo_shape shape = get_cache_shape(d->model, rows);
    for (size_t i = 0; i < 2; ++i) {
        rondo_tensor_deinit(&d->caches[i]);
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &d->caches[i]));
        fill(d->caches[i].data, rondo_tensor_get_bytes(&d->caches[i]) / sizeof(float), 40 + i);
        if (d->is_kept) {
            OK(rondo_executor_set_variable(d->executor, past_names[i], &d->caches[i]));
        }
    }
}

static rondo_binding make_rows(const model *m, const char *name, int64_t heads, int64_t rows,
                               float *values) {
    const rondo_shape shape = {.rank = 3, .extent = {m->batch, rows, heads * WIDTH}};
    return BIND_SHAPE(name, RONDO_DTYPE_F32, values, shape);
}

// Step 0 is a prompt of several rows. False: it failed, and might.
static bool step(decoder *d, int64_t number) {
    enum { ROOM = 2 * PROMPT * 4 * WIDTH };
    const model *m = d->model;
    float q[ROOM], k[ROOM], v[ROOM];
    const int64_t rows = number == 0 ? PROMPT : 1;
    int32_t lengths[2], total = (int32_t)(number + PROMPT);
    fill(q, ROOM, (size_t)number);
    fill(k, ROOM, (size_t)number + 5);
    fill(v, ROOM, (size_t)number + 9);
    lengths[0] = total - 1;
    lengths[1] = total - 1;
    rondo_binding feeds[7] = {make_rows(m, "q", m->heads, rows, q),
                              make_rows(m, "k", m->kv_heads, rows, k),
                              make_rows(m, "v", m->kv_heads, rows, v)};
    size_t count = 3;
    if (m->is_group) {
        const rondo_shape batch = {.rank = 1, .extent = {m->batch}};
        const rondo_shape one = {.rank = 1, .extent = {1}};
        feeds[count++] = BIND_SHAPE("lengths", RONDO_DTYPE_I32, lengths, batch);
        if (m->feeds_total) {
            feeds[count++] = BIND_SHAPE("total", RONDO_DTYPE_I32, &total, one);
        }
    }
    for (size_t i = 0; i < 2 && !d->is_kept; ++i) {
        feeds[count++] = (rondo_binding){past_names[i], d->caches[i]};
    }
    rondo_binding fetches[4] = {{.name = "y"}};
    size_t wanted = 1;
    if (m->reads_past) {
        fetches[wanted++].name = "most";
    }
    for (size_t i = 0; i < 2 && !d->is_kept; ++i) {
        fetches[wanted++].name = present_names[i];
    }
    const rondo_status status = rondo_executor_run(d->executor, feeds, count, fetches, wanted);
    if (d->may_fail && status != RONDO_STATUS_OK) {
        assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
        return false;
    }
    OK(status);
    rondo_tensor_deinit(&d->y);
    rondo_tensor_deinit(&d->most);
    d->y = fetches[0].tensor;
    d->most = m->reads_past ? fetches[1].tensor : (rondo_tensor){0};
    for (size_t i = 0; i < 2 && !d->is_kept; ++i) {
        rondo_tensor_deinit(&d->caches[i]);
        d->caches[i] = fetches[wanted - 2 + i].tensor;
    }
    return true;
}

static void expect_equal(const rondo_tensor *a, const rondo_tensor *b) {
    assert_true(rondo_shape_is_equal(&a->shape, &b->shape));
    assert_memory_equal(a->data, b->data, rondo_tensor_get_bytes(a));
}

// What both decoders have after a step.
static void compare(decoder *kept, const decoder *copying) {
    expect_equal(&kept->y, &copying->y);
    if (kept->model->reads_past) {
        expect_equal(&kept->most, &copying->most);
    }
    for (size_t i = 0; i < 2; ++i) {
        rondo_tensor now, read;
        rondo_stream *stream = rondo_executor_get_stream(kept->executor);
        OK(rondo_executor_get_variable(kept->executor, past_names[i], &now));
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &now.shape, &read));
        OK(rondo_tensor_copy(stream, &now, &read));
        OK(rondo_stream_synchronize(stream));
        expect_equal(&read, &copying->caches[i]);
        rondo_tensor_deinit(&read);
        rondo_tensor_deinit(&now);
    }
}

static void close_decoder(decoder *d) {
    rondo_executor_destroy(d->executor);
    rondo_tensor_deinit(&d->caches[0]);
    rondo_tensor_deinit(&d->caches[1]);
    rondo_tensor_deinit(&d->y);
    rondo_tensor_deinit(&d->most);
}

static void bind(decoder *d, rondo_program *program, rondo_device *device) {
    const rondo_shape most = get_cache_shape(d->model, MOST);
    const rondo_tensor largest = {.dtype = RONDO_DTYPE_F32, .shape = most};
    OK(rondo_executor_create(program, device, NULL, &d->executor));
    for (size_t i = 0; i < 2 && d->is_kept; ++i) {
        OK(rondo_executor_bind(d->executor, present_names[i], past_names[i]));
        OK(rondo_executor_reserve_variable(d->executor, past_names[i],
                                           rondo_tensor_get_bytes(&largest)));
    }
}

static void decode(const model *m) {
    rondo_device *device;
    decoder kept = {.model = m, .is_kept = true}, copying = {.model = m};
    rondo_program *program = build(m);
    OK(rondo_device_open(on_devices_get_name(), &device));
    bind(&kept, program, device);
    bind(&copying, program, device);
    const void *places[2];
    for (int pass = 0; pass < PASSES; ++pass) {
        begin(&kept);
        begin(&copying);
        for (size_t i = 0; i < 2; ++i) {
            places[i] = variables_get_address(kept.executor, past_names[i]);
        }
        for (int64_t number = 0; number < STEPS; ++number) {
            assert_true(step(&kept, number));
            assert_true(step(&copying, number));
            compare(&kept, &copying);
            for (size_t i = 0; i < 2; ++i) {
                assert_ptr_equal(variables_get_address(kept.executor, past_names[i]), places[i]);
            }
        }
    }
    const rondo_executor_stats in_place = variables_get_stats(kept.executor);
    const rondo_executor_stats beside = variables_get_stats(copying.executor);
    print_message("%s: arenas of %llu and %llu bytes\n", m->name,
                  (unsigned long long)in_place.arena_bytes, (unsigned long long)beside.arena_bytes);
    // The copying form has four caches in its arena: two that are fed, and two that are fetched.
    const size_t cache_bytes = rondo_tensor_get_bytes(&copying.caches[0]);
    assert_int_equal(in_place.arena_bytes + 4 * cache_bytes <= beside.arena_bytes, m->is_in_place);
    assert_true(in_place.replay_run_count > 0);
    close_decoder(&kept);
    close_decoder(&copying);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_op_caches__are_written_where_they_lie) {
    for (size_t i = 0; i < sizeof models / sizeof models[0]; ++i) {
        decode(&models[i]);
    }
}

// A total that is fed grows by one in each of many steps: one plan for the prompt and one for the
// steps, no op outside of the graphs, and no copy of a cache.
TEST(test_op_caches__take_each_total_with_one_plan) {
    enum { MANY = 100 };
    const model *m = &models[1];
    rondo_device *device;
    decoder kept = {.model = m, .is_kept = true}, copying = {.model = m};
    rondo_program *program = build(m);
    OK(rondo_device_open(on_devices_get_name(), &device));
    bind(&kept, program, device);
    bind(&copying, program, device);
    begin(&kept);
    begin(&copying);
    const void *place = variables_get_address(kept.executor, past_names[0]);
    for (int64_t number = 0; number < MANY; ++number) {
        assert_true(step(&kept, number));
        assert_true(step(&copying, number));
        compare(&kept, &copying);
    }
    const decoder *const both[] = {&kept, &copying};
    for (size_t i = 0; i < 2; ++i) {
        const rondo_executor_stats stats = variables_get_stats(both[i]->executor);
        assert_int_equal(stats.plan_miss_count, 2);
        assert_int_equal(stats.bypassed_count, 0);
        assert_true(stats.replay_run_count >= MANY - 4);
    }
    const rondo_executor_stats stats = variables_get_stats(kept.executor);
    assert_true(stats.arena_bytes < rondo_tensor_get_bytes(&copying.caches[0]));
    assert_ptr_equal(variables_get_address(kept.executor, past_names[0]), place);
    close_decoder(&kept);
    close_decoder(&copying);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// A total above the rows of the past makes a longer cache, and is a plan of its own until totals
// keep changing.
TEST(test_op_caches__grow_above_their_rows) {
    enum { MANY = 12, ROWS = 4 };
    const model *m = &models[1];
    rondo_device *device;
    decoder grown = {.model = m};
    rondo_program *program = build(m);
    OK(rondo_device_open(on_devices_get_name(), &device));
    bind(&grown, program, device);
    for (int pass = 0; pass < 2; ++pass) {
        for (int64_t number = 1; number < MANY; ++number) {
            const rondo_shape shape = get_cache_shape(m, ROWS);
            for (size_t i = 0; i < 2; ++i) {
                rondo_tensor_deinit(&grown.caches[i]);
                OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &grown.caches[i]));
                fill(grown.caches[i].data, rondo_tensor_get_bytes(&grown.caches[i]) / 4, i);
            }
            assert_true(step(&grown, number));
            const int64_t total = number + PROMPT;
            const rondo_shape expected = get_cache_shape(m, total > ROWS ? total : ROWS);
            assert_true(rondo_shape_is_equal(&grown.caches[0].shape, &expected));
            assert_true(rondo_shape_is_equal(&grown.caches[1].shape, &expected));
        }
    }
    close_decoder(&grown);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// Each allocation of the first run fails once; the next run is as if none had.
TEST(test_op_caches__survive_each_failed_allocation) {
    const model *m = &models[0];
    rondo_device *device;
    rondo_program *program = build(m);
    decoder copying = {.model = m};
    OK(rondo_device_open(on_devices_get_name(), &device));
    bind(&copying, program, device);
    bool has_failed = true;
    size_t n = 0;
    for (; has_failed; ++n) {
        decoder kept = {.model = m, .is_kept = true, .may_fail = true};
        bind(&kept, program, device);
        begin(&kept);
        sweep_fail_allocation(n, false);
        const bool has_run = step(&kept, 0);
        has_failed = sweep_end_allocations();
        assert_true(has_run || has_failed);
        if (!has_run) {
            begin(&kept);
            assert_true(step(&kept, 0));
        }
        begin(&copying);
        assert_true(step(&copying, 0));
        if (rondo_device_is_host(device)) {  // a GPU's kernel that failed gives way to another
            compare(&kept, &copying);
        }
        close_decoder(&kept);
    }
    assert_true(n > 20);
    close_decoder(&copying);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES();
}
