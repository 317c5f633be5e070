// What variables are for, by kernels that do the work: tables of which rows are read and updated,
// caches, logs, adapters, starts that are drawn, and files. Where a copying form says the same,
// the results are the same bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/variables_world.h"

// A table of rows, of which each run reads some and adds to some; ids may come twice.
enum { ROWS = 2048, COLUMNS = 96, IDS = 24 };

static const rondo_shape table_shape = {.rank = 2, .extent = {ROWS, COLUMNS}};
static const rondo_shape ids_shape = {.rank = 2, .extent = {IDS, 1}};

// `op` is ScatterND, ScatterElements or TensorScatter.
static void build_table(const char *op, const char *reduction, rondo_program **out_program) {
    rondo_builder *b;
    const rondo_builder_options newest = {.struct_size = sizeof newest, .opset = 24};
    const rondo_port table = PORT("table", RONDO_DTYPE_F32, ROWS, COLUMNS);
    const rondo_start uniform = {
        .struct_size = sizeof uniform, .kind = RONDO_START_UNIFORM, .a = -1, .b = 1, .seed = 5};
    const float rate = -0.37f;
    const int64_t wide[] = {IDS, COLUMNS};
    const rondo_shape pair = {.rank = 1, .extent = {2}};
    const bool is_nd = strcmp(op, "ScatterND") == 0;
    OK(rondo_builder_create(&newest, &b));
    OK(rondo_builder_add_input(b, &PORT("ids", RONDO_DTYPE_I64, IDS, 1)));
    OK(rondo_builder_add_variable(b, &table, &uniform));
    OK(rondo_builder_add_constant(b, "rate", RONDO_DTYPE_F32, &(rondo_shape){0}, &rate));
    OK(rondo_builder_add_constant(b, "wide", RONDO_DTYPE_I64, &pair, wide));
    build_node(b, "GatherND", "table ids", "rows", NULL);
    build_node(b, "Mul", "rows rate", "step", NULL);
    build_node(b, "Expand", "ids wide", "each", NULL);
    OK(rondo_builder_add_node(b, op, (const char *[]){"table", is_nd ? "ids" : "each", "step"}, 3,
                              (const char *[]){"table.next"}, 1,
                              &WITH(ATTRIBUTE_TEXT("reduction", reduction))));
    build_node(b, "ReduceSum", "table", "sum", NULL);  // of the old table
    OK(rondo_builder_add_output(b, "rows", NULL));
    OK(rondo_builder_add_output(b, "sum", NULL));
    OK(rondo_builder_set_update(b, "table", "table.next"));
    OK(rondo_builder_finish(b, out_program));
    rondo_builder_destroy(b);
}

static void draw_ids(int64_t *ids, uint32_t round) {
    for (uint32_t i = 0; i < IDS; ++i) {
        ids[i] = (int64_t)((round * 2654435761u + i * 40503u) >> 8) % ROWS;
    }
    ids[IDS - 1] = ids[0];  // twice
    ids[IDS - 2] = ids[0] - ROWS;
}

// The same program, its table fed and fetched: the copying form.
static void test_table(const char *op, const char *reduction) {
    rondo_program *program, *plain;
    rondo_device *device;
    rondo_executor *kept, *copying;
    int64_t ids[IDS];
    float *table = malloc(2 * sizeof(float) * ROWS * COLUMNS);
    float rows[2][IDS * COLUMNS], sums[2];
    rondo_executor_options options = {.struct_size = sizeof options};
    build_table(op, reduction, &program);
    assert_non_null(table);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_executor_create(program, device, &options, &kept));
    OK(rondo_program_make_variables(program, NULL, 0, &plain));
    OK(rondo_executor_create(plain, device, &options, &copying));
    OK(rondo_executor_bind(copying, NULL, "table"));
    rondo_tensor now;
    rondo_tensor mine = {.dtype = RONDO_DTYPE_F32, .shape = table_shape, .data = table};
    rondo_tensor next = mine;
    next.data = table + ROWS * COLUMNS;
    rondo_stream *stream = rondo_executor_get_stream(kept);
    OK(rondo_executor_get_variable(kept, "table", &now));
    OK(rondo_tensor_copy(stream, &now, &mine));
    OK(rondo_stream_synchronize(stream));
    for (uint32_t round = 0; round < 6; ++round) {
        draw_ids(ids, round);
        OK(rondo_executor_set_graphs(kept, round == 4 ? RONDO_GRAPHS_OFF : RONDO_GRAPHS_ON));
        const rondo_tensor id = {.dtype = RONDO_DTYPE_I64, .shape = ids_shape, .data = ids};
        const rondo_binding feeds[] = {{"ids", id}, {"table", mine}};
        const rondo_shape some = {.rank = 2, .extent = {IDS, COLUMNS}};
        const rondo_shape one = {.rank = 2, .extent = {1, 1}};
        for (int i = 0; i < 2; ++i) {
            rondo_binding fetches[] = {BIND_SHAPE("rows", RONDO_DTYPE_F32, rows[i], some),
                                       BIND_SHAPE("sum", RONDO_DTYPE_F32, &sums[i], one),
                                       {"table.next", next}};
            OK(rondo_executor_run(i == 0 ? kept : copying, feeds, i == 0 ? 1 : 2, fetches,
                                  i == 0 ? 2 : 3));
        }
        assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        assert_true(sums[0] == sums[1]);
        OK(rondo_tensor_copy(stream, &now, &mine));
        OK(rondo_stream_synchronize(stream));
        assert_memory_equal(mine.data, next.data, rondo_tensor_get_bytes(&next));
    }
    const rondo_executor_stats stats = variables_get_stats(kept);
    assert_int_equal(stats.state_bytes, rondo_tensor_get_bytes(&mine));
    assert_true(stats.arena_bytes < stats.state_bytes / 2);  // nothing of its size is there
    rondo_tensor_deinit(&now);
    rondo_executor_destroy(kept);
    rondo_executor_destroy(copying);
    rondo_program_destroy(plain);
    rondo_program_destroy(program);
    rondo_device_release(device);
    free(table);
}

TEST(test_executor_tables__rows_are_updated_where_they_lie) {
    static const char *const reductions[] = {"add", "mul", "max", "min", "none"};
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; ++i) {
        test_table("ScatterND", reductions[i]);
        test_table("ScatterElements", reductions[i]);
    }
}

// Each kind of start: the numbers of rondo/random.h, and of a distribution as it says.
TEST(test_executor_tables__starts_are_drawn) {
    enum { IN = 64, OUT = 48, ALL = IN * OUT };
    static const rondo_shape shape = {.rank = 2, .extent = {IN, OUT}};
    static const struct {
        rondo_start start;
        double mean, deviation, most;
    } cases[] = {
        {{.kind = RONDO_START_CONSTANT, .a = 1.5}, 1.5, 0, 1.5},
        {{.kind = RONDO_START_UNIFORM, .a = 2, .b = 4, .seed = 1}, 3, 0.57735, 4},
        {{.kind = RONDO_START_NORMAL, .a = -1, .b = 0.5, .seed = 2}, -1, 0.5, 5},
        {{.kind = RONDO_START_XAVIER_UNIFORM, .seed = 3}, 0, 0.133631, 0.231456},
        {{.kind = RONDO_START_XAVIER_NORMAL, .a = 2, .seed = 4}, 0, 0.267261, 2},
        {{.kind = RONDO_START_HE_UNIFORM, .fan_in = 8, .seed = 5}, 0, 0.5, 0.866026},
        {{.kind = RONDO_START_HE_NORMAL}, 0, 0.176777, 1},
    };
    rondo_device *device;
    OK(rondo_device_open(on_devices_get_name(), &device));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rondo_builder *b;
        rondo_program *program;
        rondo_executor *executors[2];
        float values[2][ALL];
        rondo_start start = cases[i].start;
        rondo_port port = {
            .struct_size = sizeof port, .name = "v", .dtype = RONDO_DTYPE_F32, .rank = 2};
        memcpy(port.extent, shape.extent, sizeof shape.extent);
        start.struct_size = sizeof start;
        OK(rondo_builder_create(NULL, &b));
        OK(rondo_builder_add_variable(b, &port, &start));
        build_node(b, "Neg", "v", "y", NULL);
        OK(rondo_builder_add_output(b, "y", NULL));
        OK(rondo_builder_finish(b, &program));
        rondo_builder_destroy(b);
        for (int k = 0; k < 2; ++k) {
            rondo_tensor now;
            const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = values[k]};
            OK(rondo_executor_create(program, device, NULL, &executors[k]));
            rondo_stream *stream = rondo_executor_get_stream(executors[k]);
            OK(rondo_executor_get_variable(executors[k], "v", &now));
            OK(rondo_tensor_copy(stream, &now, &to));
            OK(rondo_stream_synchronize(stream));
            rondo_tensor_deinit(&now);
        }
        assert_memory_equal(values[0], values[1], sizeof values[0]);
        double sum = 0, squares = 0, most = 0;
        for (int k = 0; k < ALL; ++k) {
            sum += (double)values[0][k];
            most = fabs((double)values[0][k]) > most ? fabs((double)values[0][k]) : most;
        }
        for (int k = 0; k < ALL; ++k) {
            squares += pow((double)values[0][k] - sum / ALL, 2);
        }
        assert_true(fabs(sum / ALL - cases[i].mean) <= 0.1 * cases[i].deviation + 1e-6);
        assert_true(fabs(sqrt(squares / ALL) - cases[i].deviation) <= 0.05 * cases[i].deviation);
        assert_true(most <= cases[i].most * 1.0001);
        // Another program, saved from the one, starts where that stands.
        rondo_program *saved;
        rondo_executor *other;
        rondo_tensor now;
        OK(rondo_executor_snapshot(executors[0], &saved));
        OK(rondo_executor_create(saved, device, NULL, &other));
        const rondo_tensor to = {.dtype = RONDO_DTYPE_F32, .shape = shape, .data = values[1]};
        OK(rondo_executor_get_variable(other, "v", &now));
        OK(rondo_tensor_copy(rondo_executor_get_stream(other), &now, &to));
        OK(rondo_stream_synchronize(rondo_executor_get_stream(other)));
        assert_memory_equal(values[0], values[1], sizeof values[0]);
        rondo_tensor_deinit(&now);
        rondo_executor_destroy(other);
        rondo_program_destroy(saved);
        rondo_executor_destroy(executors[0]);
        rondo_executor_destroy(executors[1]);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

// Saved after some runs, a program goes on from there; so does one that has not run yet.
TEST(test_executor_tables__files_keep_them) {
    rondo_builder *b;
    variables_world w;
    rondo_program *programs[3];
    rondo_device *device;
    char path[] = "variables-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    OK(rondo_builder_create(NULL, &b));
    variables_add_input(b, "x");
    variables_add_variable(b, "sum", 2);
    const rondo_start normal = {.struct_size = sizeof normal,
                                .kind = RONDO_START_HE_NORMAL,
                                .a = 1.5,
                                .seed = UINT64_MAX,
                                .fan_in = 7};
    OK(rondo_builder_add_variable(b, &PORT("noise", RONDO_DTYPE_F32, VARIABLES_COUNT), &normal));
    build_node(b, "Add", "sum x", "next", NULL);
    build_node(b, "Add", "next noise", "y", NULL);
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "y", NULL));
    variables_open(&w, b);
    OK(rondo_program_save_onnx(w.program, path));
    OK(rondo_program_load_onnx(path, &programs[0]));
    float x[VARIABLES_COUNT] = {0, 0, 0, 5}, y[4][VARIABLES_COUNT];
    const rondo_binding feed = {"x", variables_on_host(x)};
    for (int i = 0; i < 2; ++i) {
        rondo_binding fetch = {"y", variables_on_host(y[3])};
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
    }
    OK(rondo_executor_snapshot(w.executor, &programs[1]));
    OK(rondo_program_save_onnx(programs[1], path));
    OK(rondo_program_load_onnx(path, &programs[2]));
    rondo_variable listed[2];
    size_t count = 0;
    OK(rondo_program_list_variables(programs[2], 2, listed, &count));
    assert_int_equal(count, 2);
    assert_string_equal(listed[0].update, "next");
    assert_null(listed[1].update);
    assert_int_equal(listed[1].start->kind, RONDO_START_TENSOR);
    OK(rondo_device_open("host", &device));
    for (int i = 0; i < 3; ++i) {
        rondo_executor *executor;
        OK(rondo_executor_create(programs[i], device, NULL, &executor));
        for (int run = 0; run < (i == 0 ? 3 : 1); ++run) {
            rondo_binding fetch = {"y", variables_on_host(y[i])};
            OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
        }
        rondo_executor_destroy(executor);
        rondo_program_destroy(programs[i]);
    }
    rondo_device_release(device);
    rondo_binding fetch = {"y", variables_on_host(y[3])};
    OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
    for (int i = 0; i < 3; ++i) {
        assert_memory_equal(y[i], y[3], sizeof y[3]);
    }
    assert_int_equal(remove(path), 0);
    variables_close(&w);
}

// A decoder whose cache grows by one with each step, kept in place and handed over by copies: the
// same logits, bit for bit, eager and replayed, from one piece of memory.
enum { STEPS = 12 };

typedef struct decoder {
    rondo_executor *executor;
    rondo_tensor past;  // of the copying form
    rondo_tensor logits;
} decoder;

static rondo_shape get_cache_shape(const rondo_program *program, int64_t length) {
    rondo_shape shape = {0};
    for (size_t i = 0; i < rondo_program_get_input_count(program); ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_input(program, i, &port));
        if (strcmp(port.name, "past") == 0) {
            shape.rank = port.rank;
            for (int32_t d = 0; d < port.rank; ++d) {
                shape.extent[d] = port.extent[d] >= 0 ? port.extent[d] : 1;
            }
        }
    }
    shape.extent[shape.rank - 2] = length;
    return shape;
}

static void begin_decoder(decoder *d, const rondo_program *program, bool is_kept) {
    const rondo_shape shape = get_cache_shape(program, 1);
    rondo_tensor_deinit(&d->past);
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &d->past));
    memset(d->past.data, 0, rondo_tensor_get_bytes(&d->past));
    if (is_kept) {
        OK(rondo_executor_set_variable(d->executor, "past", &d->past));
    }
}

static void step_decoder(decoder *d, int64_t step, bool is_kept) {
    int64_t id = 1 + step % 7;
    int64_t position = step + 1;
    const rondo_shape one = {.rank = 2, .extent = {1, 1}};
    const rondo_binding feeds[] = {BIND_SHAPE("ids", RONDO_DTYPE_I64, &id, one),
                                   BIND_SHAPE("position", RONDO_DTYPE_I64, &position, one),
                                   {"past", d->past}};
    rondo_binding fetches[] = {{.name = "logits"}, {.name = "present"}};
    rondo_tensor_deinit(&d->logits);
    OK(rondo_executor_run(d->executor, feeds, is_kept ? 2 : 3, fetches, is_kept ? 1 : 2));
    d->logits = fetches[0].tensor;
    if (!is_kept) {
        rondo_tensor_deinit(&d->past);
        d->past = fetches[1].tensor;
    }
}

TEST(test_executor_tables__a_cache_stays_in_its_place) {
    rondo_program *program, *plain;
    rondo_device *device;
    decoder kept = {0}, copying = {0};
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/models/gpt_mini/model.onnx", get_source_dir());
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_program_load_onnx(path, &plain));
    OK(rondo_program_load_onnx(path, &program));
    OK(rondo_program_set_update(program, "past", "present"));
    OK(rondo_executor_create(program, device, NULL, &kept.executor));
    OK(rondo_executor_create(plain, device, NULL, &copying.executor));
    const rondo_shape most = get_cache_shape(program, STEPS + 1);
    const rondo_tensor largest = {.dtype = RONDO_DTYPE_F32, .shape = most};
    const size_t capacity = rondo_tensor_get_bytes(&largest);
    OK(rondo_executor_reserve_variable(kept.executor, "past", capacity));
    const void *place = NULL;
    for (int pass = 0; pass < 3; ++pass) {
        begin_decoder(&kept, program, true);
        begin_decoder(&copying, program, false);
        place = pass == 0 ? variables_get_address(kept.executor, "past") : place;
        for (int64_t step = 0; step < STEPS; ++step) {
            step_decoder(&kept, step, true);
            step_decoder(&copying, step, false);
            assert_memory_equal(kept.logits.data, copying.logits.data,
                                rondo_tensor_get_bytes(&kept.logits));
            assert_ptr_equal(variables_get_address(kept.executor, "past"), place);
        }
    }
    const rondo_executor_stats stats = variables_get_stats(kept.executor);
    assert_int_equal(stats.state_bytes, capacity);
    // All of the old cache is read before the new one is begun, which then is made in its place.
    const rondo__plan *plan = kept.executor->variants.active->current;
    assert_int_equal(plan->slots[plan->program->outputs[1]].root, plan->program->inputs[2]);
    assert_int_equal(stats.plan_miss_count, variables_get_stats(copying.executor).plan_miss_count);
    assert_int_equal(stats.replay_run_count,
                     variables_get_stats(copying.executor).replay_run_count);
    rondo_tensor_deinit(&kept.past);
    rondo_tensor_deinit(&copying.past);
    rondo_tensor_deinit(&kept.logits);
    rondo_tensor_deinit(&copying.logits);
    rondo_executor_destroy(kept.executor);
    rondo_executor_destroy(copying.executor);
    rondo_program_destroy(program);
    rondo_program_destroy(plain);
    rondo_device_release(device);
}

// Rows are appended to a log of a stated capacity: only those are written.
TEST(test_executor_tables__a_log_is_appended_to) {
    enum { WIDTH = 256, ROUNDS = 8, BEGUN = 32 };
    rondo_builder *b;
    variables_world w;
    float *all = calloc((BEGUN + ROUNDS) * WIDTH, sizeof *all);
    rondo_port log = {
        .struct_size = sizeof log, .name = "log", .dtype = RONDO_DTYPE_F32, .rank = 2};
    log.extent[0] = -1;
    log.extent[1] = WIDTH;
    rondo_port x = log;
    x.name = "x";
    x.extent[0] = 1;
    assert_non_null(all);
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &x));
    OK(rondo_builder_add_variable(b, &log, NULL));
    build_node(b, "Concat", "log x", "log.next", &WITH(ATTRIBUTE_INT("axis", 0)));
    build_node(b, "ReduceSum", "log", "before", NULL);
    OK(rondo_builder_add_output(b, "before", NULL));
    OK(rondo_builder_set_update(b, "log", "log.next"));
    variables_open(&w, b);
    rondo_tensor begun = {
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {BEGUN, WIDTH}}, .data = all};
    for (int i = 0; i < BEGUN * WIDTH; ++i) {
        all[i] = (float)(i % 3);
    }
    OK(rondo_executor_reserve_variable(w.executor, "log", (BEGUN + ROUNDS) * WIDTH * sizeof *all));
    OK(rondo_executor_set_variable(w.executor, "log", &begun));
    const void *place = variables_get_address(w.executor, "log");
    for (int round = 0; round < ROUNDS; ++round) {
        float *row_at = all + (BEGUN + round) * WIDTH;
        float want = 0;
        for (int i = 0; i < (BEGUN + round) * WIDTH; ++i) {
            want += all[i];
        }
        for (int i = 0; i < WIDTH; ++i) {
            row_at[i] = (float)((i + round) % 5);
        }
        const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, row_at, 1, WIDTH);
        rondo_binding fetch = {.name = "before"};
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        assert_true(((const float *)fetch.tensor.data)[0] == want);
        rondo_tensor_deinit(&fetch.tensor);
        rondo_tensor now, read;
        OK(rondo_executor_get_variable(w.executor, "log", &now));
        assert_ptr_equal(now.data, place);
        assert_int_equal(now.shape.extent[0], BEGUN + round + 1);
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &now.shape, &read));
        OK(rondo_tensor_copy(rondo_executor_get_stream(w.executor), &now, &read));
        OK(rondo_stream_synchronize(rondo_executor_get_stream(w.executor)));
        assert_memory_equal(read.data, all, rondo_tensor_get_bytes(&read));
        rondo_tensor_deinit(&now);
        rondo_tensor_deinit(&read);
        assert_true(variables_get_stats(w.executor).arena_bytes < BEGUN * WIDTH * sizeof *all / 2);
    }
    variables_close(&w);
    free(all);
}

// A snapshot of a cache whose extent is open starts with the rows that there are, also from a plan
// file.
TEST(test_executor_tables__open_extents_are_saved) {
    const char *const path = "test_executor_tables.plan";
    float values[VARIABLES_COUNT] = {3, 4};
    const rondo_tensor begun = variables_on_host(values);
    variables_world w;
    rondo_program *programs[2];
    rondo_executor *others[2];
    rondo_builder *b = build_begin();
    variables_add_input(b, "x");
    OK(rondo_builder_add_variable(b, &PORT("log", RONDO_DTYPE_F32, -1), NULL));
    build_node(b, "Concat", "log x", "log.next", &WITH(ATTRIBUTE_INT("axis", 0)));
    OK(rondo_builder_set_update(b, "log", "log.next"));
    variables_open(&w, b);
    OK(rondo_executor_set_variable(w.executor, "log", &begun));
    OK(rondo_executor_snapshot(w.executor, &programs[0]));
    OK(rondo_executor_create(programs[0], w.device, NULL, &others[0]));
    OK(rondo_executor_save(others[0], path));
    OK(rondo_executor_load(path, w.device, NULL, NULL, &programs[1], &others[1]));
    for (int i = 0; i < 2; ++i) {
        float rows[2 * VARIABLES_COUNT] = {0};
        const rondo_binding feed = {"x", begun};
        rondo_binding fetch = BIND("log.next", RONDO_DTYPE_F32, rows, 2 * VARIABLES_COUNT);
        OK(rondo_executor_run(others[i], &feed, 1, &fetch, 1));
        assert_true(rows[1] == 4 && rows[VARIABLES_COUNT] == 3);
        rondo_executor_destroy(others[i]);
        rondo_program_destroy(programs[i]);
    }
    (void)remove(path);
    variables_close(&w);
}

// y = x W + (x A) B: adapters A and B of low rank are swapped under the plan and its graph.
TEST(test_executor_tables__adapters_are_swapped) {
    enum { WIDTH = 16, RANK = 2, RUNS = 5 };
    rondo_builder *b;
    variables_world w;
    const rondo_shape square = {.rank = 2, .extent = {WIDTH, WIDTH}};
    float weight[WIDTH * WIDTH], x[WIDTH], y[WIDTH], down[WIDTH * RANK], up[RANK * WIDTH];
    rondo_port port = {.struct_size = sizeof port, .dtype = RONDO_DTYPE_F32, .rank = 2};
    for (int i = 0; i < WIDTH * WIDTH; ++i) {
        weight[i] = (float)(i % 5);
    }
    OK(rondo_builder_create(NULL, &b));
    port.name = "x";
    port.extent[0] = 1;
    port.extent[1] = WIDTH;
    OK(rondo_builder_add_input(b, &port));
    OK(rondo_builder_add_constant(b, "w", RONDO_DTYPE_F32, &square, weight));
    port.name = "down";
    port.extent[0] = WIDTH;
    port.extent[1] = RANK;
    OK(rondo_builder_add_variable(b, &port, NULL));
    port.name = "up";
    port.extent[0] = RANK;
    port.extent[1] = WIDTH;
    OK(rondo_builder_add_variable(b, &port, NULL));
    build_node(b, "MatMul", "x w", "base", NULL);
    build_node(b, "MatMul", "x down", "low", NULL);
    build_node(b, "MatMul", "low up", "more", NULL);
    build_node(b, "Add", "base more", "y", NULL);
    OK(rondo_builder_add_output(b, "y", NULL));
    variables_open(&w, b);
    for (int run = 0; run < RUNS; ++run) {
        for (int i = 0; i < WIDTH * RANK; ++i) {
            down[i] = (float)((i + run) % 3);
            up[i] = (float)((i * run) % 4);
        }
        const rondo_tensor downs = {
            .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {WIDTH, RANK}}, .data = down};
        const rondo_tensor ups = {
            .dtype = RONDO_DTYPE_F32, .shape = {.rank = 2, .extent = {RANK, WIDTH}}, .data = up};
        OK(rondo_executor_set_variable(w.executor, "down", &downs));
        OK(rondo_executor_set_variable(w.executor, "up", &ups));
        const rondo_shape line = {.rank = 2, .extent = {1, WIDTH}};
        for (int i = 0; i < WIDTH; ++i) {
            x[i] = (float)(i % 4);
        }
        const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, line);
        rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, y, line);
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        for (int i = 0; i < WIDTH; ++i) {  // whole numbers: exact in every order
            float want = 0;
            for (int k = 0; k < WIDTH; ++k) {
                want += x[k] * weight[k * WIDTH + i];
                for (int r = 0; r < RANK; ++r) {
                    want += x[k] * down[k * RANK + r] * up[r * WIDTH + i];
                }
            }
            assert_true(y[i] == want);
        }
    }
    const rondo_executor_stats stats = variables_get_stats(w.executor);
    assert_int_equal(stats.plan_miss_count, 1);
    assert_int_equal(stats.replay_run_count, RUNS - 1);
    variables_close(&w);
}

// A norm in training makes its new running mean and variance where the old ones lie.
TEST(test_executor_tables__running_statistics_stay_in_their_place) {
    enum { BATCH = 2, RUNS = 4 };
    rondo_builder *b;
    variables_world w;
    const rondo_builder_options newest = {.struct_size = sizeof newest, .opset = 15};
    float x[BATCH][VARIABLES_COUNT], y[BATCH][VARIABLES_COUNT];
    OK(rondo_builder_create(&newest, &b));
    OK(rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, BATCH, VARIABLES_COUNT)));
    variables_add_variable(b, "scale", 1);
    variables_add_variable(b, "shift", 0);
    variables_add_variable(b, "mean", 8);
    variables_add_variable(b, "variance", 16);
    build_node(b, "BatchNormalization", "x scale shift mean variance", "y new_mean new_variance",
               &WITH(ATTRIBUTE_INT("training_mode", 1)));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_set_update(b, "mean", "new_mean"));
    OK(rondo_builder_set_update(b, "variance", "new_variance"));
    variables_open(&w, b);
    for (int i = 0; i < VARIABLES_COUNT; ++i) {
        x[0][i] = (float)i;
        x[1][i] = (float)i + 2;
    }
    const rondo_shape shape = {.rank = 2, .extent = {BATCH, VARIABLES_COUNT}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape);
    float mean = 8, variance = 16;
    for (int i = 0; i < RUNS; ++i) {
        rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, y, shape);
        OK(rondo_executor_run(w.executor, &feed, 1, &fetch, 1));
        mean = mean * 0.9f + 4 * 0.1f;  // of element 3
        variance = variance * 0.9f + 1 * 0.1f;
        assert_true(fabsf(variables_read_one(w.executor, "mean") - mean) <= 1e-5f);
        assert_true(fabsf(variables_read_one(w.executor, "variance") - variance) <= 1e-5f);
        assert_true(fabsf(y[0][3] + 1) <= 1e-4f);
    }
    const rondo__plan *plan = w.executor->variants.active->current;
    const rondo_program *program = plan->program;
    for (size_t i = 0; i < program->input_count; ++i) {
        const char *name = program->values[program->inputs[i]].name;
        for (size_t o = 0; o < program->output_count; ++o) {
            const char *made = program->values[program->outputs[o]].name;
            if (strncmp(made, "new_", 4) == 0 && strcmp(made + 4, name) == 0) {
                assert_int_equal(plan->slots[program->outputs[o]].root, program->inputs[i]);
            }
        }
    }
    variables_close(&w);
}

int main(void) {
    return ON_DEVICES();
}
