// Programs that draw random numbers, on the host device and, where there is one, on a GPU: each run
// draws anew, eager and replayed runs draw the same, and kernels agree with the references.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/edit.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { COUNT = 1001, RUNS = 5, SEED = 12 };

static rondo_device *open_device(void) {
    rondo_device *device;
    OK(rondo_device_open(on_devices_get_name(), &device));
    return device;
}

// ---- programs ---------------------------------------------------------------------------------

static int32_t add_value(rondo_program *program, const char *name, rondo_dtype dtype) {
    int32_t value;
    OK(rondo__program_add_value(program, name, &value));
    program->values[value].dtype = dtype;
    return value;
}

static int32_t add_scalar(rondo_program *program, const char *name, rondo_dtype dtype,
                          const void *bytes) {
    rondo_tensor tensor;
    const rondo_shape shape = {0};
    int32_t value;
    OK(rondo_tensor_init(dtype, &shape, &tensor));
    memcpy(tensor.data, bytes, rondo_tensor_get_bytes(&tensor));
    OK(rondo__program_add_constant(program, name, &tensor, &value));
    rondo_tensor_deinit(&tensor);
    return value;
}

static rondo__op *add_node(rondo_program *program, const char *op, const char *name,
                           const int32_t *inputs, size_t input_count, const int32_t *outputs,
                           size_t output_count) {
    OK(rondo__program_add_simple(program, "", op, name, inputs, input_count, outputs,
                                 output_count));
    return &program->nodes[program->node_count - 1].op;
}

// One of each op that draws; x and p are inputs of COUNT elements.
static rondo_program *make_program(void) {
    static const int64_t shape[] = {COUNT};
    const float ratio_value = 0.25f;
    const uint8_t yes = 1;
    rondo_program *program;
    OK(rondo__program_create("draws", &program));
    const int32_t x = add_value(program, "x", RONDO_DTYPE_F32);
    const int32_t p = add_value(program, "p", RONDO_DTYPE_F32);
    const int32_t logits = add_value(program, "logits", RONDO_DTYPE_F32);
    const int32_t normal = add_value(program, "normal", RONDO_DTYPE_F32);
    const int32_t seeded = add_value(program, "seeded", RONDO_DTYPE_F32);
    const int32_t uniform = add_value(program, "uniform", RONDO_DTYPE_F32);
    const int32_t dropped[2] = {add_value(program, "dropped", RONDO_DTYPE_F32),
                                add_value(program, "mask", RONDO_DTYPE_BOOL)};
    const int32_t coins = add_value(program, "coins", RONDO_DTYPE_F32);
    const int32_t chosen = add_value(program, "chosen", RONDO_DTYPE_I32);
    const int32_t ratio = add_scalar(program, "ratio", RONDO_DTYPE_F32, &ratio_value);
    const int32_t training = add_scalar(program, "training", RONDO_DTYPE_BOOL, &yes);
    OK(rondo__program_add_input(program, x));
    OK(rondo__program_add_input(program, p));
    OK(rondo__program_add_input(program, logits));
    rondo__op *op = add_node(program, "RandomNormal", "normal", NULL, 0, &normal, 1);
    OK(rondo__op_set_ints(op, "shape", shape, 1));
    OK(rondo__op_set_float(op, "mean", 1.0f));
    OK(rondo__op_set_float(op, "scale", 2.0f));
    op = add_node(program, "RandomNormal", "seeded", NULL, 0, &seeded, 1);
    OK(rondo__op_set_ints(op, "shape", shape, 1));
    OK(rondo__op_set_float(op, "seed", 5.0f));
    op = add_node(program, "RandomUniformLike", "uniform", &x, 1, &uniform, 1);
    OK(rondo__op_set_float(op, "low", -2.0f));
    const int32_t dropout_inputs[3] = {x, ratio, training};
    (void)add_node(program, "Dropout", "dropout", dropout_inputs, 3, dropped, 2);
    (void)add_node(program, "Bernoulli", "coins", &p, 1, &coins, 1);
    op = add_node(program, "Multinomial", "chosen", &logits, 1, &chosen, 1);
    OK(rondo__op_set_int(op, "sample_size", 100));
    const int32_t outputs[] = {normal, seeded, uniform, dropped[0], dropped[1], coins, chosen};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; ++i) {
        OK(rondo__program_add_output(program, outputs[i]));
    }
    OK(rondo__program_verify(program));
    return program;
}

enum { NORMAL, SEEDED, UNIFORM, DROPPED, MASK, COINS, CHOSEN, OUTPUTS };
static const char *const names[OUTPUTS] = {"normal", "seeded", "uniform", "dropped",
                                           "mask",   "coins",  "chosen"};

typedef struct run_results {
    rondo_tensor tensors[OUTPUTS];
} run_results;

static void free_results(run_results *results) {
    for (int i = 0; i < OUTPUTS; ++i) {
        rondo_tensor_deinit(&results->tensors[i]);
    }
}

static void run_once(rondo_executor *executor, run_results *out_results) {
    static float x[COUNT];
    static float p[COUNT];
    static float logits[2][3] = {{0, 1, 2}, {2, 0, -1}};
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)i;
        p[i] = (float)i / COUNT;
    }
    rondo_binding feeds[3] = {BIND("x", RONDO_DTYPE_F32, x, COUNT),
                              BIND("p", RONDO_DTYPE_F32, p, COUNT),
                              BIND("logits", RONDO_DTYPE_F32, logits, 2, 3)};
    rondo_binding fetches[OUTPUTS];
    for (int i = 0; i < OUTPUTS; ++i) {
        fetches[i] = (rondo_binding){.name = names[i]};
    }
    OK(rondo_executor_run(executor, feeds, 3, fetches, OUTPUTS));
    for (int i = 0; i < OUTPUTS; ++i) {
        out_results->tensors[i] = fetches[i].tensor;
    }
}

static rondo_executor *make_executor(rondo_program *program, rondo_device *device,
                                     rondo_graphs_mode graphs, bool optimise) {
    rondo_executor_options options = {.struct_size = sizeof options};
    rondo_executor *executor;
    options.graphs = graphs;
    options.op_by_op = !optimise;
    options.seed = SEED;
    OK(rondo_executor_create(program, device, &options, &executor));
    return executor;
}

// ---- cases ------------------------------------------------------------------------------------

TEST(test_random_executor__replays_draw_what_eager_runs_draw) {
    rondo_device *device = open_device();
    rondo_program *program = make_program();
    rondo_executor *eager = make_executor(program, device, RONDO_GRAPHS_OFF, true);
    rondo_executor *replayed = make_executor(program, device, RONDO_GRAPHS_AUTO, true);
    rondo_executor *plain = make_executor(program, device, RONDO_GRAPHS_ON, false);
    run_results last = {0};
    for (int run = 0; run < RUNS; ++run) {
        run_results a, b, c;
        run_once(eager, &a);
        run_once(replayed, &b);
        run_once(plain, &c);
        for (int i = 0; i < OUTPUTS; ++i) {
            const size_t bytes = rondo_tensor_get_bytes(&a.tensors[i]);
            assert_memory_equal(a.tensors[i].data, b.tensors[i].data, bytes);
            assert_memory_equal(a.tensors[i].data, c.tensors[i].data, bytes);
            // New numbers each time.
            if (run > 0) {
                assert_memory_not_equal(a.tensors[i].data, last.tensors[i].data, bytes);
            }
        }
        free_results(&last);
        free_results(&b);
        free_results(&c);
        last = a;
    }
    free_results(&last);
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(replayed, &stats));
    assert_int_equal(stats.bypassed_count, 1);  // Multinomial
    assert_true(stats.node_count > 5);
    rondo_executor_destroy(eager);
    rondo_executor_destroy(replayed);
    rondo_executor_destroy(plain);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_random_executor__results_are_what_the_ops_mean) {
    rondo_device *device = open_device();
    rondo_program *program = make_program();
    rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_AUTO, true);
    // The op with a seed of its own draws from a generator that starts there.
    rondo_generator *generator;
    rondo_stream *stream;
    void *memory;
    static float expected[COUNT];
    OK(rondo_generator_create(device, 5, &generator));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, sizeof expected, &memory));
    double ones = 0;
    double chosen[2][3] = {{0}};
    for (int run = 0; run < RUNS; ++run) {
        run_results r;
        run_once(executor, &r);
        OK(rondo_random_normal(generator, stream, RONDO_DTYPE_F32, memory, COUNT, 0, 1));
        OK(rondo_stream_copy(stream, expected, memory, sizeof expected, RONDO_COPY_DEVICE_TO_HOST));
        OK(rondo_stream_synchronize(stream));
        assert_memory_equal(r.tensors[SEEDED].data, expected, sizeof expected);
        const float *normal = r.tensors[NORMAL].data;
        const float *uniform = r.tensors[UNIFORM].data;
        const float *dropped = r.tensors[DROPPED].data;
        const uint8_t *mask = r.tensors[MASK].data;
        const float *coins = r.tensors[COINS].data;
        double sum = 0;
        double kept = 0;
        for (int i = 0; i < COUNT; ++i) {
            sum += (double)normal[i];
            assert_true(uniform[i] >= -2.0f && uniform[i] < 1.0f);
            assert_true(dropped[i] == (mask[i] != 0 ? (float)i * (float)(1.0 / 0.75) : 0.0f));
            kept += mask[i];
            ones += (double)coins[i];
        }
        assert_true(coins[0] == 0.0f);
        assert_true(fabs(sum / COUNT - 1) < 5 * 2 / sqrt(COUNT));
        assert_true(fabs(kept / COUNT - 0.75) < 5 * sqrt(0.1875 / COUNT));
        for (int i = 0; i < 200; ++i) {
            const int32_t k = ((const int32_t *)r.tensors[CHOSEN].data)[i];
            assert_in_range(k, 0, 2);
            ++chosen[i / 100][k];
        }
        free_results(&r);
    }
    assert_true(fabs(ones / RUNS / COUNT - 0.5) < 5 * sqrt(0.25 / RUNS / COUNT));
    const double total = 1 + exp(1) + exp(2);
    for (int k = 0; k < 3; ++k) {
        assert_true(fabs(chosen[0][k] / (100 * RUNS) - exp(k) / total) <
                    5 * sqrt(0.25 / 100 / RUNS));
    }
    rondo_memory_free(device, memory);
    rondo_stream_destroy(stream);
    rondo_generator_release(generator);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// Every random op of one input alone, run by run: the references, started where the executor's
// generator stands, draw the same.
TEST(test_random_executor__kernels_agree_with_the_references) {
    static const char *const ops[] = {"RandomNormalLike", "RandomUniformLike", "Bernoulli"};
    rondo_device *device = open_device();
    static float x[COUNT];
    static float y[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)i / COUNT;
    }
    for (size_t k = 0; k < sizeof ops / sizeof *ops; ++k) {
        rondo_program *program;
        OK(rondo__program_create("p", &program));
        const int32_t in = add_value(program, "x", RONDO_DTYPE_F32);
        const int32_t out = add_value(program, "y", RONDO_DTYPE_F32);
        OK(rondo__program_add_input(program, in));
        rondo__op *op = add_node(program, ops[k], "op", &in, 1, &out, 1);
        OK(rondo__program_add_output(program, out));
        OK(rondo__program_verify(program));
        rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_AUTO, true);
        rondo_generator_state place = {.seed = SEED};
        for (int run = 0; run < RUNS; ++run) {
            rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, COUNT);
            rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, y, COUNT);
            OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
            const rondo_tensor *inputs[] = {&feed.tensor};
            rondo_tensor result = {0};
            uint64_t counters = 0;
            rondo__compute compute = {.op = op,
                                      .input_count = 1,
                                      .output_count = 1,
                                      .inputs = inputs,
                                      .outputs = &result,
                                      .random = &place,
                                      .random_counters = &counters};
            OK(rondo__op_compute(&compute));
            assert_int_equal(counters, (COUNT + 3) / 4);
            place.offset += counters;
            for (int i = 0; i < COUNT; ++i) {
                const double difference =
                    fabs((double)y[i] - (double)((const float *)result.data)[i]);
                if (!(difference <= 1e-5)) {
                    fail_msg("%s, run %d, element %d: %g, not %g", ops[k], run, i, (double)y[i],
                             (double)((const float *)result.data)[i]);
                }
            }
            rondo_tensor_deinit(&result);
        }
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

// Training as an input: a plan for each value of it, and numbers that go on from plan to plan.
TEST(test_random_executor__training_can_be_an_input) {
    rondo_device *device = open_device();
    rondo_program *program;
    const float ratio_value = 0.5f;
    OK(rondo__program_create("p", &program));
    const int32_t inputs[3] = {add_value(program, "x", RONDO_DTYPE_F32),
                               add_scalar(program, "ratio", RONDO_DTYPE_F32, &ratio_value),
                               add_value(program, "training", RONDO_DTYPE_BOOL)};
    const int32_t y = add_value(program, "y", RONDO_DTYPE_F32);
    OK(rondo__program_add_input(program, inputs[0]));
    OK(rondo__program_add_input(program, inputs[2]));
    (void)add_node(program, "Dropout", "dropout", inputs, 3, &y, 1);
    OK(rondo__program_add_output(program, y));
    OK(rondo__program_verify(program));
    rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_AUTO, true);
    static float x[COUNT];
    static float out[COUNT];
    for (int i = 0; i < COUNT; ++i) {
        x[i] = 3.0f;
    }
    uint64_t draws = 0;
    for (int run = 0; run < 12; ++run) {
        uint8_t training = run % 3 != 0;
        rondo_binding feeds[2] = {BIND("x", RONDO_DTYPE_F32, x, COUNT),
                                  BIND("training", RONDO_DTYPE_BOOL, &training)};
        rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, out, COUNT);
        OK(rondo_executor_run(executor, feeds, 2, &fetch, 1));
        for (uint32_t i = 0; i < COUNT; ++i) {
            uint32_t words[4];
            rondo_random_philox(SEED, 0, draws * ((COUNT + 3) / 4) + i / 4, words);
            const bool is_kept = words[i % 4] >= UINT32_C(0x80000000);
            assert_true(out[i] == (!training ? 3.0f : is_kept ? 6.0f : 0.0f));
        }
        draws += training;
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

// ---- bound runs -------------------------------------------------------------------------------

// y = dropout(x) + noise, a step with two generators; sum' = sum + y.
static rondo_program *make_step(void) {
    rondo_port port = {.struct_size = sizeof port,
                       .name = "x",
                       .dtype = RONDO_DTYPE_F32,
                       .rank = 1,
                       .extent = {COUNT}};
    const rondo_start zeros = {.struct_size = sizeof zeros, .kind = RONDO_START_CONSTANT};
    const rondo_shape scalar = {0};
    const float ratio = 0.25f;
    const uint8_t is_training = 1;
    const char *const drop[] = {"x", "ratio", "training"};
    const char *const ends[] = {"dropped", "noise", "y", "sum", "next"};
    const rondo_attribute seed = {
        .name = "seed", .kind = RONDO_ATTRIBUTE_FLOAT, .float_value = 5.0f};
    const rondo_builder_node_options seeded = {
        .struct_size = sizeof seeded, .name = "noise", .attributes = &seed, .attribute_count = 1};
    rondo_builder *b;
    rondo_program *program;
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &port));
    port.name = "sum";
    OK(rondo_builder_add_variable(b, &port, &zeros));
    OK(rondo_builder_add_constant(b, "ratio", RONDO_DTYPE_F32, &scalar, &ratio));
    OK(rondo_builder_add_constant(b, "training", RONDO_DTYPE_BOOL, &scalar, &is_training));
    OK(rondo_builder_add_node(b, "Dropout", drop, 3, &ends[0], 1, NULL));
    OK(rondo_builder_add_node(b, "RandomNormalLike", drop, 1, &ends[1], 1, &seeded));
    OK(rondo_builder_add_node(b, "Add", &ends[0], 2, &ends[2], 1, NULL));
    OK(rondo_builder_add_node(b, "Add", &ends[2], 2, &ends[4], 1, NULL));
    OK(rondo_builder_set_update(b, "sum", "next"));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

static void bring(rondo_executor *executor, const rondo_tensor *from, const rondo_tensor *to) {
    rondo_stream *stream = rondo_executor_get_stream(executor);
    OK(rondo_tensor_copy(stream, from, to));
    OK(rondo_stream_synchronize(stream));
}

// One executor runs by names, the other one bound, now and then without a wait; in between both go
// back to a checkpoint. Feeds lie on the device, fetches there or in host memory.
static void expect_same_draws(bool is_near) {
    enum { STEPS = 40, SAVED = 14, BACK = 22 };
    static float y[2][COUNT], x[COUNT];
    static float seen[STEPS][COUNT];
    const char *const path = "test_random_executor.checkpoint";
    rondo_device *device = open_device();
    rondo_program *program = make_step();
    rondo_executor *named = make_executor(program, device, RONDO_GRAPHS_ON, true);
    rondo_executor *bound = make_executor(program, device, RONDO_GRAPHS_ON, true);
    const rondo_tensor here = {.dtype = RONDO_DTYPE_F32, .shape = {1, {COUNT}}, .data = x};
    const rondo_tensor to[] = {{.dtype = RONDO_DTYPE_F32, .shape = {1, {COUNT}}, .data = y[0]},
                               {.dtype = RONDO_DTYPE_F32, .shape = {1, {COUNT}}, .data = y[1]}};
    rondo_tensor near_x, near_y;
    rondo_bound_run *run;
    for (int i = 0; i < COUNT; ++i) {
        x[i] = (float)(i % 17);
    }
    OK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &here.shape, &near_x));
    OK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &here.shape, &near_y));
    bring(bound, &here, &near_x);
    OK(rondo_bound_run_create(bound, &run));
    OK(rondo_bound_run_set_feed(run, "x", &near_x));
    OK(rondo_bound_run_set_fetch(run, "y", is_near ? &near_y : &to[1]));
    for (int i = 0; i < STEPS; ++i) {
        rondo_binding feed = {"x", here}, fetch = {"y", to[0]};
        if (i == SAVED) {
            OK(rondo_checkpoint_save(bound, path));
        } else if (i == BACK) {
            OK(rondo_checkpoint_load(bound, path));
            OK(rondo_checkpoint_load(named, path));
        }
        OK(rondo_executor_run(named, &feed, 1, &fetch, 1));
        if (i % 7 < 5) {
            OK(rondo_bound_run_run(run));
        } else {
            OK(rondo_bound_run_run_async(run, NULL));
            OK(rondo_executor_wait(bound));
        }
        if (is_near) {
            bring(bound, &near_y, &to[1]);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_true(i == 0 || i >= BACK || memcmp(seen[i - 1], y[0], sizeof y[0]) != 0);
        assert_true(i < BACK || i - BACK >= BACK - SAVED ||
                    memcmp(seen[i - BACK + SAVED], y[0], sizeof y[0]) == 0);
        memcpy(seen[i], y[0], sizeof y[0]);
    }
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(bound, &stats));
    assert_int_equal(stats.bypassed_count, 0);
    assert_true(!is_near || stats.in_place_run_count > STEPS / 5);  // runs were one graph
    (void)remove(path);
    rondo_bound_run_destroy(run);
    rondo_tensor_deinit(&near_x);
    rondo_tensor_deinit(&near_y);
    rondo_executor_destroy(named);
    rondo_executor_destroy(bound);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

TEST(test_random_executor__bound_runs_draw_what_others_draw) {
    expect_same_draws(true);
    expect_same_draws(false);
}

// A checkpoint that was saved before anything was drawn brings generators back to their start.
TEST(test_random_executor__go_back_to_the_start) {
    static float y[3][COUNT], x[COUNT];
    const char *const path = "test_random_executor.start";
    rondo_device *device = open_device();
    rondo_program *program = make_step();
    rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_ON, true);
    OK(rondo_checkpoint_save(executor, path));
    for (int i = 0; i < 3; ++i) {
        const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, COUNT);
        rondo_binding fetch = BIND("y", RONDO_DTYPE_F32, y[i], COUNT);
        x[0] = 1;
        if (i == 2) {
            OK(rondo_checkpoint_load(executor, path));
        }
        OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    }
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    assert_true(memcmp(y[0], y[1], sizeof y[0]) != 0);
    (void)remove(path);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

static void add_draw(rondo_builder *b, const char *output, float seed) {
    static const int64_t shape[] = {COUNT};
    const rondo_attribute attributes[] = {ATTRIBUTE_INTS("shape", shape, 1),
                                          ATTRIBUTE_FLOAT("seed", seed)};
    const rondo_builder_node_options options = WITH_LIST(attributes, 2);
    OK(rondo_builder_add_node(b, "RandomUniform", NULL, 0, &output, 1, &options));
    OK(rondo_builder_add_output(b, output, NULL));
}

// Nodes without a name, of which each graph has a "RandomUniform_0": what one draws does not depend
// on the others.
TEST(test_random_executor__seeds_in_bodies_are_their_own) {
    static float outer[3][COUNT], inner[3][COUNT];
    rondo_device *device = open_device();
    rondo_builder *b;
    rondo_builder *bodies[2];
    rondo_program *program;
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(
        b,
        &(rondo_port){.struct_size = sizeof(rondo_port), .name = "p", .dtype = RONDO_DTYPE_BOOL}));
    add_draw(b, "outer", 1);
    for (int i = 0; i < 2; ++i) {
        OK(rondo_builder_create_body(b, NULL, &bodies[i]));
        add_draw(bodies[i], i == 0 ? "yes" : "no", 1);
    }
    OK(rondo_builder_add_node(
        b, "If", (const char *[]){"p"}, 1, (const char *[]){"inner"}, 1,
        &WITH(ATTRIBUTE_BODY("then_branch", bodies[0]), ATTRIBUTE_BODY("else_branch", bodies[1]))));
    OK(rondo_builder_add_output(b, "inner", NULL));
    rondo_builder_destroy(bodies[0]);
    rondo_builder_destroy(bodies[1]);
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_AUTO, false);
    for (int i = 0; i < 3; ++i) {  // yes, no, yes
        bool chosen = i != 1;
        const rondo_binding feed = {"p", {.dtype = RONDO_DTYPE_BOOL, .data = &chosen}};
        rondo_binding fetches[] = {BIND("outer", RONDO_DTYPE_F32, outer[i], COUNT),
                                   BIND("inner", RONDO_DTYPE_F32, inner[i], COUNT)};
        OK(rondo_executor_run(executor, &feed, 1, fetches, 2));
    }
    assert_memory_equal(outer[0], inner[0], sizeof outer[0]);  // the same seed, each from its start
    assert_memory_equal(outer[0], inner[1], sizeof outer[0]);
    assert_memory_equal(outer[1], inner[2], sizeof outer[0]);
    assert_true(memcmp(outer[0], outer[1], sizeof outer[0]) != 0);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

static void expect_first(rondo_device *device, const float *first, const float *second) {
    static float want[2][COUNT];
    rondo_generator *generator;
    rondo_stream *stream;
    rondo_tensor near;
    OK(rondo_generator_create(device, SEED, &generator));
    OK(rondo_stream_create(device, NULL, &stream));
    OK(rondo_tensor_init_device(device, RONDO_DTYPE_F32, &(rondo_shape){1, {COUNT}}, &near));
    for (int i = 0; i < 2; ++i) {
        OK(rondo_random_uniform(generator, stream, RONDO_DTYPE_F32, near.data, COUNT, 0, 1));
        OK(rondo_stream_copy(stream, want[i], near.data, sizeof want[i],
                             RONDO_COPY_DEVICE_TO_HOST));
        OK(rondo_stream_synchronize(stream));
    }
    assert_memory_equal(first, want[0], sizeof want[0]);
    assert_memory_equal(second, want[1], sizeof want[1]);
    rondo_tensor_deinit(&near);
    rondo_stream_destroy(stream);
    rondo_generator_release(generator);
}

// Ops draw in the program's order, also where the one that draws first comes behind control flow
// that runs between segments, or behind the new value of a state, which waits for the old one's
// readers.
TEST(test_random_executor__draw_in_the_programs_order) {
    static float x[COUNT], first[COUNT], second[COUNT];
    rondo_device *device = open_device();
    rondo_port port = PORT("x", RONDO_DTYPE_F32, COUNT);
    for (int i = 0; i < 2; ++i) {
        rondo_program *program;
        rondo_builder *b;
        bool chosen = true;
        OK(rondo_builder_create(NULL, &b));
        port.name = "x";
        OK(rondo_builder_add_input(b, &port));
        if (i == 0) {
            const rondo_start zeros = {.struct_size = sizeof zeros, .kind = RONDO_START_CONSTANT};
            port.name = "sum";
            OK(rondo_builder_add_variable(b, &port, &zeros));
            build_op(b, "Add", "sum", "x", "between");
            OK(rondo_builder_set_update(b, "sum", "between"));
        } else {
            rondo_builder *bodies[2];
            OK(rondo_builder_add_input(b, &PORT("p", RONDO_DTYPE_BOOL)));
            for (int k = 0; k < 2; ++k) {
                OK(rondo_builder_create_body(b, NULL, &bodies[k]));
                build_op(bodies[k], k == 0 ? "Tanh" : "RandomUniformLike", "x", NULL,
                         k == 0 ? "yes" : "no");
                OK(rondo_builder_add_output(bodies[k], k == 0 ? "yes" : "no", NULL));
            }
            OK(rondo_builder_add_node(b, "If", (const char *[]){"p"}, 1,
                                      (const char *[]){"between"}, 1,
                                      &WITH(ATTRIBUTE_BODY("then_branch", bodies[0]),
                                            ATTRIBUTE_BODY("else_branch", bodies[1]))));
            rondo_builder_destroy(bodies[0]);
            rondo_builder_destroy(bodies[1]);
        }
        build_op(b, "RandomUniformLike", "between", NULL, "first");
        build_op(b, "RandomUniformLike", "x", NULL, "second");
        OK(rondo_builder_add_output(b, "first", NULL));
        OK(rondo_builder_add_output(b, "second", NULL));
        if (i == 0) {
            build_op(b, "Add", "sum", "second", "late");
            OK(rondo_builder_add_output(b, "late", NULL));
        }
        OK(rondo_builder_finish(b, &program));
        rondo_builder_destroy(b);
        rondo_executor *executor = make_executor(program, device, RONDO_GRAPHS_AUTO, false);
        const rondo_binding feeds[] = {BIND("x", RONDO_DTYPE_F32, x, COUNT),
                                       {"p", {.dtype = RONDO_DTYPE_BOOL, .data = &chosen}}};
        rondo_binding fetches[] = {BIND("first", RONDO_DTYPE_F32, first, COUNT),
                                   BIND("second", RONDO_DTYPE_F32, second, COUNT)};
        OK(rondo_executor_run(executor, feeds, (size_t)i + 1, fetches, 2));
        expect_first(device, first, second);
        rondo_executor_destroy(executor);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

int main(void) {
    return ON_DEVICES();
}
