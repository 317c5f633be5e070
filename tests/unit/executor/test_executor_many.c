// Models with very many inputs, outputs, nodes or initializers are right. No clock decides here;
// where each pair of operands is looked at, half a minute passes for each of the slowest.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"
#include "support/test.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { COUNT = 2000 };
#else
enum { COUNT = 20000 };
#endif

enum { FLOAT = 1, OPERAND_BYTES = 12 };

// "x0 x1 x2 ..."
static char *list_names(model_builder *b, char letter) {
    char *names = model_builder_allocate(b, (size_t)COUNT * OPERAND_BYTES);
    size_t length = 0;
    for (int i = 0; i < COUNT; ++i) {
        length += (size_t)sprintf(names + length, "%s%c%d", i > 0 ? " " : "", letter, i);
    }
    return names;
}

static void set_axis(model_builder *b, Onnx__NodeProto *node) {
    model_builder_add_attribute(b, node, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT)
        ->has_i = 1;
}

static void add_inputs(model_builder *b) {
    for (int i = 0; i < COUNT; ++i) {
        char name[OPERAND_BYTES];
        (void)snprintf(name, sizeof name, "x%d", i);
        model_builder_add_input(b, b->graph, name, FLOAT, "2");
    }
}

static void build_nodes(model_builder *b) {
    add_inputs(b);
    for (int i = 0; i < COUNT; ++i) {
        char from[OPERAND_BYTES];
        char to[OPERAND_BYTES];
        (void)snprintf(from, sizeof from, "x%d", i);
        (void)snprintf(to, sizeof to, "y%d", i);
        model_builder_add_node(b, b->graph, "Relu", to, from, to);
        model_builder_add_output(b, b->graph, to, FLOAT, "2");
    }
}

static void build_variadic(model_builder *b, const char *op) {
    add_inputs(b);
    Onnx__NodeProto *node =
        model_builder_add_node(b, b->graph, op, "many", list_names(b, 'x'), "y");
    if (strcmp(op, "Concat") == 0) {
        set_axis(b, node);
    }
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
}

static void build_split(model_builder *b) {
    char shape[16];
    (void)snprintf(shape, sizeof shape, "%d", 2 * COUNT);
    model_builder_add_input(b, b->graph, "x0", FLOAT, shape);
    set_axis(b, model_builder_add_node(b, b->graph, "Split", "many", "x0", list_names(b, 'y')));
    for (int i = 0; i < COUNT; ++i) {
        char name[OPERAND_BYTES];
        (void)snprintf(name, sizeof name, "y%d", i);
        model_builder_add_output(b, b->graph, name, FLOAT, "2");
    }
}

// x0 * w0 * w1 ..., each a matrix of one element, each a node.
static void build_chain(model_builder *b) {
    const int64_t dims[2] = {1, 1};
    const float one = 1;
    model_builder_add_input(b, b->graph, "x0", FLOAT, "2 1");
    for (int i = 0; i < COUNT; ++i) {
        char weight[OPERAND_BYTES];
        char to[OPERAND_BYTES];
        char wires[2 * OPERAND_BYTES];
        (void)snprintf(weight, sizeof weight, "w%d", i);
        (void)snprintf(wires, sizeof wires, "%s%.0d w%d", i > 0 ? "y" : "x0", i, i);
        (void)snprintf(to, sizeof to, i + 1 < COUNT ? "y%d" : "y", i + 1);
        model_builder_set_raw(b, model_builder_add_initializer(b, b->graph, weight, FLOAT, 2, dims),
                              &one, 4);
        model_builder_add_node(b, b->graph, "MatMul", to, wires, to);
    }
    model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
}

// Sum over softmaxes of one row each, which all live until the end.
static void build_wide(model_builder *b) {
    model_builder_add_input(b, b->graph, "x0", FLOAT, "2 1");
    for (int i = 0; i < COUNT; ++i) {
        char to[OPERAND_BYTES];
        (void)snprintf(to, sizeof to, "y%d", i);
        model_builder_add_node(b, b->graph, "Softmax", to, "x0", to);
    }
    model_builder_add_node(b, b->graph, "Sum", "many", list_names(b, 'y'), "z");
    model_builder_add_output(b, b->graph, "z", FLOAT, NULL);
}

typedef struct bindings {
    size_t feed_count;
    size_t fetch_count;
    rondo_binding *feeds;
    rondo_binding *fetches;
} bindings;

// Feeds 1, 2, 3, ... and asks for all outputs.
static void bindings_init(bindings *all, const rondo_program *program) {
    rondo_port port = {.struct_size = sizeof port};
    all->feed_count = rondo_program_get_input_count(program);
    all->fetch_count = rondo_program_get_output_count(program);
    all->feeds = calloc(all->feed_count, sizeof *all->feeds);
    all->fetches = calloc(all->fetch_count, sizeof *all->fetches);
    assert_non_null(all->feeds);
    assert_non_null(all->fetches);
    float number = 1;
    for (size_t i = 0; i < all->feed_count; ++i) {
        OK(rondo_program_get_input(program, i, &port));
        all->feeds[i].name = port.name;
        const rondo_shape shape = {.rank = port.rank, .extent = {port.extent[0], port.extent[1]}};
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &all->feeds[i].tensor));
        for (int64_t k = 0; k < rondo_shape_get_count(&shape); ++k) {
            ((float *)all->feeds[i].tensor.data)[k] = number++;
        }
    }
    for (size_t i = 0; i < all->fetch_count; ++i) {
        OK(rondo_program_get_output(program, i, &port));
        all->fetches[i].name = port.name;
    }
}

static void bindings_deinit(bindings *all) {
    for (size_t i = 0; i < all->feed_count; ++i) {
        rondo_tensor_deinit(&all->feeds[i].tensor);
    }
    for (size_t i = 0; i < all->fetch_count; ++i) {
        rondo_tensor_deinit(&all->fetches[i].tensor);
    }
    free(all->feeds);
    free(all->fetches);
}

// Loads, runs twice (eager and captured) and gives the outputs.
static void run(model_builder *b, bindings *all) {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    size_t byte_count = 0;
    const uint8_t *bytes = model_builder_pack(b, &byte_count);
    OK(rondo_device_open("host", &device));
    OK(rondo_program_parse_onnx(bytes, byte_count, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    bindings_init(all, program);
    for (int i = 0; i < 2; ++i) {
        OK(rondo_executor_run(executor, all->feeds, all->feed_count, all->fetches,
                              all->fetch_count));
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
}

static float get(const bindings *all, size_t output, size_t element) {
    return ((const float *)all->fetches[output].tensor.data)[element];
}

TEST(test_executor_many__inputs_nodes_and_outputs) {
    model_builder b;
    bindings all;
    model_builder_init(&b);
    build_nodes(&b);
    run(&b, &all);
    for (size_t i = 0; i < COUNT; ++i) {
        assert_true(get(&all, i, 1) == (float)(2 * i + 2));
    }
    bindings_deinit(&all);
    model_builder_deinit(&b);
}

TEST(test_executor_many__inputs_of_one_node) {
    static const char *const ops[] = {"Sum", "Mean", "Max", "Min", "Concat"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; ++i) {
        model_builder b;
        bindings all;
        model_builder_init(&b);
        build_variadic(&b, ops[i]);
        run(&b, &all);
        const double mean = (double)COUNT;  // of 1, 3, 5, ...
        const double expected[] = {mean * COUNT, mean, 2.0 * COUNT - 1, 1, 1};
        const double error = (double)get(&all, 0, 0) - expected[i];
        assert_true(error <= 1e-3 * expected[i] && error >= -1e-3 * expected[i]);
        if (i == 4) {
            assert_int_equal(all.fetches[0].tensor.shape.extent[0], 2 * COUNT);
            assert_true(get(&all, 0, 2 * COUNT - 1) == (float)(2 * COUNT));
        }
        bindings_deinit(&all);
        model_builder_deinit(&b);
    }
}

TEST(test_executor_many__outputs_of_one_node) {
    model_builder b;
    bindings all;
    model_builder_init(&b);
    build_split(&b);
    run(&b, &all);
    for (size_t i = 0; i < COUNT; ++i) {
        assert_true(get(&all, i, 0) == (float)(2 * i + 1));
    }
    bindings_deinit(&all);
    model_builder_deinit(&b);
}

TEST(test_executor_many__nodes_with_weights) {
    model_builder b;
    bindings all;
    model_builder_init(&b);
    build_chain(&b);
    run(&b, &all);
    assert_true(get(&all, 0, 1) == 2.0f);
    bindings_deinit(&all);
    model_builder_deinit(&b);
}

TEST(test_executor_many__values_alive_at_once) {
    model_builder b;
    bindings all;
    model_builder_init(&b);
    build_wide(&b);
    run(&b, &all);
    assert_true(get(&all, 0, 1) == (float)COUNT);
    bindings_deinit(&all);
    model_builder_deinit(&b);
}

TEST_MAIN()
