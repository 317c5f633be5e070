// Graphs with branches: what they compute is what a straight line computes, bit for bit, wherever
// the arena has the values.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread_count.h"
#include "executor/compile/branches.h"
#include "executor/state/plan.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"
#include "support/short_forms.h"
#include "support/test.h"
#include "support/text_sink.h"

enum { FLOAT = 1, WIDTH = 32, VALUES_MAX = 64 };

// ---- models of x [WIDTH, WIDTH] ---------------------------------------------------------------

static uint32_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static void add(model_builder *b, const char *op, const char *inputs, const char *output) {
    model_builder_add_node(b, b->graph, op, output, inputs, output);
}

static void add_matrix(model_builder *b, const char *name, int64_t columns) {
    const int64_t dims[] = {WIDTH, columns};
    const size_t count = WIDTH * (size_t)columns;
    float *values = model_builder_allocate(b, count * sizeof(float));
    for (size_t i = 0; i < count; ++i) {
        values[i] = (float)(i * 7 % 13) / 64 - 0.1f;
    }
    Onnx__TensorProto *tensor = model_builder_add_initializer(b, b->graph, name, FLOAT, 2, dims);
    model_builder_set_raw(b, tensor, values, count * sizeof(float));
}

static void add_weights(model_builder *b, const char *name) {
    add_matrix(b, name, WIDTH);
}

// Four branches of four products each, and their sum.
static void build_four(model_builder *b) {
    add_weights(b, "w");
    for (size_t k = 0; k < 4; ++k) {
        char inputs[48];
        char output[32];
        (void)snprintf(inputs, sizeof inputs, "x w");
        for (size_t i = 0; i < 4; ++i) {
            (void)snprintf(output, sizeof output, "v%zu_%zu", k, i);
            add(b, "MatMul", inputs, output);
            (void)snprintf(inputs, sizeof inputs, "%s %s", output, i % 2 == 0 ? "x" : "w");
        }
    }
    add(b, "Sum", "v0_3 v1_3 v2_3 v3_3", "y");
}

// Branches of 1, 2, 5 and 1 products beside each other, and joined: three times, one
// after another.
static void build_unequal(model_builder *b) {
    static const size_t lengths[] = {1, 2, 5, 1};
    char begin[16] = "x";
    add_weights(b, "w");
    add_matrix(b, "join", 4 * WIDTH);
    for (size_t m = 0; m < 3; ++m) {
        char joined[128] = "";
        for (size_t k = 0; k < 4; ++k) {
            char inputs[48];
            char output[32];
            (void)snprintf(inputs, sizeof inputs, "%s w", begin);
            for (size_t i = 0; i < lengths[k]; ++i) {
                (void)snprintf(output, sizeof output, "v%zu_%zu_%zu", m, k, i);
                add(b, "MatMul", inputs, output);
                (void)snprintf(inputs, sizeof inputs, "%s w", output);
            }
            (void)snprintf(joined + strlen(joined), sizeof joined - strlen(joined), " %s", output);
        }
        char output[32];
        (void)snprintf(output, sizeof output, "all%zu", m);
        Onnx__NodeProto *node =
            model_builder_add_node(b, b->graph, "Concat", output, joined + 1, output);
        Onnx__AttributeProto *axis = model_builder_add_attribute(
            b, node, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
        axis->has_i = 1;
        axis->i = 0;
        (void)snprintf(joined, sizeof joined, "join %s", output);
        (void)snprintf(begin, sizeof begin, m < 2 ? "m%zu" : "y", m);
        add(b, "MatMul", joined, begin);
    }
}

// A graph that anybody might draw: wide or narrow, values that live long, ops that work in place.
static void build_drawn(model_builder *b) {
    static const char *const unary[] = {"Relu", "Sigmoid", "Neg", "Softmax", "Transpose"};
    static const char *const binary[] = {"Add", "Mul", "Sub", "MatMul"};
    char inputs[64];
    char output[32];
    bool is_used[VALUES_MAX] = {false};
    add_weights(b, "w");
    add(b, "MatMul", "x w", "v0");
    const size_t count = 8 + draw(40);
    const size_t near = 1 + draw(12);
    for (size_t v = 1; v < count; ++v) {
        const size_t from = v > near ? v - near : 0;
        const size_t a = from + draw((uint32_t)(v - from));
        const size_t c = draw(4) == 0 ? draw((uint32_t)v) : from + draw((uint32_t)(v - from));
        (void)snprintf(output, sizeof output, "v%zu", v);
        is_used[a] = true;
        if (draw(2) == 0) {
            (void)snprintf(inputs, sizeof inputs, "v%zu", a);
            add(b, unary[draw(5)], inputs, output);
            continue;
        }
        is_used[c] = true;
        (void)snprintf(inputs, sizeof inputs, "v%zu v%zu", a, c);
        add(b, binary[draw(4)], inputs, output);
    }
    char sum[512] = "";
    for (size_t v = 0; v < count; ++v) {
        const size_t used = strlen(sum);
        if (!is_used[v]) {
            (void)snprintf(sum + used, sizeof sum - used, "%sv%zu", used > 0 ? " " : "", v);
        }
    }
    add(b, "Sum", sum, "s");
    add(b, "Sigmoid", "s", "y");
}

// ---- runs -------------------------------------------------------------------------------------

typedef struct fixture {
    model_builder builder;
    rondo_device *device;
    rondo_program *program;
} fixture;

static void open_model(fixture *f, void (*build)(model_builder *)) {
    size_t byte_count = 0;
    model_builder_init(&f->builder);
    model_builder_add_input(&f->builder, f->builder.graph, "x", FLOAT, "32 32");
    build(&f->builder);
    model_builder_add_output(&f->builder, f->builder.graph, "y", FLOAT, NULL);
    const uint8_t *bytes = model_builder_pack(&f->builder, &byte_count);
    OK(rondo_device_open("host", &f->device));
    OK(rondo_program_parse_onnx(bytes, byte_count, &f->program));
}

static void close_model(fixture *f) {
    rondo_program_destroy(f->program);
    rondo_device_release(f->device);
    model_builder_deinit(&f->builder);
}

static rondo_executor *open_executor(const fixture *f, rondo_branches_mode branches) {
    const rondo_executor_options options = {.struct_size = sizeof options, .branches = branches};
    rondo_executor *executor;
    OK(rondo_executor_create(f->program, f->device, &options, &executor));
    return executor;
}

static void run(rondo_executor *executor, float *x, rondo_tensor *out_y) {
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, WIDTH, WIDTH);
    rondo_binding fetch = {.name = "y"};
    OK(rondo_executor_run(executor, &feed, 1, &fetch, 1));
    *out_y = fetch.tensor;
}

// NaN in all that runs share: who reads what a run did not write shows it.
static void poison(const rondo_executor *executor) {
    const rondo__plan *plan = executor->main.current;
    if (plan != NULL && plan->memory.arena != NULL) {
        memset(plan->memory.arena->address, 0xff, plan->memory.arena_bytes);
    }
}

// The most branches of the latest plan's segments.
static uint64_t get_branch_count(const rondo_executor *executor) {
    rondo_executor_stats stats = {.struct_size = sizeof stats};
    OK(rondo_executor_get_stats(executor, &stats));
    return stats.branch_count;
}

// Runs with and without branches; returns how many there were.
static uint64_t expect_same(void (*build)(model_builder *)) {
    fixture f;
    float x[WIDTH * WIDTH];
    open_model(&f, build);
    rondo_executor *branched = open_executor(&f, RONDO_BRANCHES_ON);
    rondo_executor *straight = open_executor(&f, RONDO_BRANCHES_OFF);
    for (size_t k = 0; k < 10; ++k) {
        rondo_tensor got;
        rondo_tensor wanted;
        for (size_t i = 0; i < WIDTH * WIDTH; ++i) {
            x[i] = (float)((i * 31 + k * 17) % 29) / 16 - 0.9f;
        }
        poison(branched);
        poison(straight);
        run(branched, x, &got);
        run(straight, x, &wanted);
        assert_memory_equal(got.data, wanted.data, sizeof x);
        rondo_tensor_deinit(&got);
        rondo_tensor_deinit(&wanted);
    }
    const uint64_t count = get_branch_count(branched);
    assert_int_equal(get_branch_count(straight), 1);
    assert_int_equal(branched->main.runs.replay_count, 9);
    rondo_executor_destroy(branched);
    rondo_executor_destroy(straight);
    close_model(&f);
    return count;
}

TEST(test_executor_branches__four) {
    assert_true(expect_same(build_four) >= 4);
}

// Memory that branches take in turns must not make short ones wait for long ones: 27 products, of
// which 15 are the longest way. Nor does what joins them weigh more than it is.
TEST(test_executor_branches__unequal) {
    fixture f;
    float x[WIDTH * WIDTH] = {0};
    rondo_tensor y;
    rondo__branches branches;
    assert_int_equal(expect_same(build_unequal), 4);
    open_model(&f, build_unequal);
    rondo_executor *executor = open_executor(&f, RONDO_BRANCHES_ON);
    run(executor, x, &y);
    rondo_tensor_deinit(&y);
    OK(rondo__branches_find(executor, executor->main.current, &executor->main.current->steps[0],
                            &branches));
    assert_int_equal(branches.count, 4);
    assert_true(branches.gain > 1.4);
    rondo__branches_deinit(&branches);
    rondo_executor_destroy(executor);
    close_model(&f);
}

TEST(test_executor_branches__drawn) {
    size_t wide = 0;
    for (uint32_t seed = 1; seed <= 60; ++seed) {
        random_state = seed * 2654435761u;
        wide += expect_same(build_drawn) > 1 ? 1 : 0;
    }
    assert_true(wide >= 30);
}

// No two ops that have bytes in common are left without an order.
TEST(test_executor_branches__order_is_kept) {
    for (uint32_t seed = 100; seed < 130; ++seed) {
        fixture f;
        float x[WIDTH * WIDTH] = {0};
        rondo_tensor y;
        random_state = seed * 2654435761u;
        open_model(&f, build_drawn);
        rondo_executor *executor = open_executor(&f, RONDO_BRANCHES_ON);
        run(executor, x, &y);
        rondo_tensor_deinit(&y);
        const rondo__plan *plan = executor->main.current;
        rondo__branches branches;
        OK(rondo__branches_find(executor, plan, &plan->steps[0], &branches));
        const size_t count = plan->steps[0].item_count;
        bool *comes_before = calloc(count * count + 1, sizeof *comes_before);
        assert_non_null(comes_before);
        for (size_t i = 0; i < count; ++i) {
            for (size_t p = 0; p < i; ++p) {
                bool is_needed = branches.items[p].branch == branches.items[i].branch;
                for (size_t w = 0; w < branches.items[i].wait_count; ++w) {
                    const size_t awaited = branches.waits[branches.items[i].first_wait + w];
                    assert_true(branches.items[awaited].is_awaited);
                    is_needed = is_needed || awaited == p;
                }
                for (size_t q = 0; q < p && is_needed; ++q) {
                    comes_before[i * count + q] |= comes_before[p * count + q];
                }
                comes_before[i * count + p] |= is_needed;
            }
            // What it reads was made, and nobody else overwrites it later on another branch.
            const rondo__item *item = &plan->items[i];
            const rondo__node *node = &plan->program->nodes[item->node];
            for (size_t p = 0; p < i; ++p) {
                const rondo__item *other = &plan->items[p];
                const rondo__node *before = &plan->program->nodes[other->node];
                for (size_t a = 0; a < node->input_count + 1; ++a) {
                    const void *mine = a == 0 ? item->outputs[0] : item->inputs[a - 1];
                    for (size_t c = 0; c < before->input_count + 1; ++c) {
                        const void *others = c == 0 ? other->outputs[0] : other->inputs[c - 1];
                        if (mine == others && (a == 0 || c == 0)) {
                            assert_true(comes_before[i * count + p]);
                        }
                    }
                }
            }
        }
        free(comes_before);
        rondo__branches_deinit(&branches);
        rondo_executor_destroy(executor);
        close_model(&f);
    }
}

// Which of the two is faster depends on the machine; that both are timed, once and after the
// third run, does not; nor does it matter that the plan was made while graphs were off.
TEST(test_executor_branches__auto_settles) {
    fixture f;
    float x[WIDTH * WIDTH] = {1};
    open_model(&f, build_four);
    rondo_executor *executor = open_executor(&f, RONDO_BRANCHES_AUTO);
    OK(rondo_executor_set_graphs(executor, RONDO_GRAPHS_OFF));
    for (size_t k = 0; k < 6; ++k) {
        rondo_tensor y;
        run(executor, x, &y);
        rondo_tensor_deinit(&y);
        OK(rondo_executor_set_graphs(executor, RONDO_GRAPHS_ON));
        const rondo__step *step = &executor->main.current->steps[0];
        assert_true(k >= 2 || step->run.branch_count == 0);
        if (k >= 3 && rondo__host_get_thread_count() > 1) {
            assert_int_equal(executor->main.straight_count, step->run.branch_count > 1 ? 0 : 1);
        }
    }
    rondo_executor_destroy(executor);
    executor = open_executor(&f, RONDO_BRANCHES_ON);
    for (size_t k = 0; k < 4; ++k) {
        rondo_tensor y;
        run(executor, x, &y);
        rondo_tensor_deinit(&y);
    }
    text_sink sink = {{0}, 0};
    OK(rondo_executor_describe(executor, RONDO_TEXT_PLAIN, text_sink_append, &sink));
    assert_non_null(strstr(sink.text, "captured in 4 branches; ends with the model"));
    rondo_executor_destroy(executor);
    close_model(&f);
}

// With keep_templates the graph with branches can be dumped, too, and its nodes are named by ops.
TEST(test_executor_branches__are_dumped) {
    fixture f;
    float x[WIDTH * WIDTH] = {1};
    open_model(&f, build_four);
    const rondo_executor_options options = {
        .struct_size = sizeof options, .branches = RONDO_BRANCHES_ON, .keep_templates = true};
    rondo_executor *executor;
    OK(rondo_executor_create(f.program, f.device, &options, &executor));
    for (size_t k = 0; k < 5; ++k) {
        rondo_tensor y;
        run(executor, x, &y);
        rondo_tensor_deinit(&y);
    }
    rondo_graph *graph;
    size_t count;
    text_sink sink = {{0}, 0};
    assert_int_equal(get_branch_count(executor), 4);
    OK(rondo_executor_list_graphs(executor, &graph, 1, &count));
    assert_int_equal(count, 1);
    OK(rondo_graph_dump(graph, RONDO_TEXT_DOT, text_sink_append, &sink));
    assert_non_null(strstr(sink.text, "MatMul v3_3"));
    rondo_executor_destroy(executor);
    close_model(&f);
}

TEST_MAIN()
