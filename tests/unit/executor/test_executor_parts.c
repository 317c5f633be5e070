// Kernels that write into their part of a Concat, and those that read what a Transpose would have
// turned around: results are those of the reference, and what can be joined is.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "executor/plan_visit.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/build_node.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { NODES_MAX = 7, INPUTS_MAX = 3 };

typedef struct node {
    const char *op, *output;
    const char *inputs[INPUTS_MAX];
    int64_t filters, kernel;  // of a Conv, whose weights are made; padded
    int64_t axis;             // of a Concat
} node;

typedef struct row {
    const char *name;
    node nodes[NODES_MAX];  // of x [1, 8, 9, 10], and to y
    size_t joined, planes;  // parts of a Concat, and Transposes that are not made
} row;

static const row rows[] = {
    {"rows with others between",
     {{"Conv", "a", {"x"}, 12, 1, 0},
      {"Conv", "b", {"x"}, 10, 3, 0},
      {"Concat", "c", {"a", "b"}, 0, 0, 1},
      {"Conv", "y", {"c"}, 5, 1, 0}},
     2,
     0},
    {"a residual in a part",
     {{"Conv", "a", {"x"}, 8, 3, 0},
      {"Conv", "b", {"a"}, 8, 3, 0},
      {"Add", "s", {"a", "b"}, 0, 0, 0},
      {"Conv", "d", {"x"}, 7, 1, 0},
      {"Concat", "c", {"d", "s"}, 0, 0, 1},
      {"Conv", "y", {"c"}, 5, 3, 0}},
     2,
     0},
    {"one with another reader stays",
     {{"Conv", "a", {"x"}, 12, 1, 0},
      {"Conv", "b", {"a"}, 10, 3, 0},
      {"Concat", "c", {"a", "b"}, 0, 0, 1},
      {"Conv", "y", {"c"}, 5, 1, 0}},
     1,
     0},
    {"twice the same stays",
     {{"Conv", "a", {"x"}, 12, 1, 0},
      {"Concat", "c", {"a", "a"}, 0, 0, 1},
      {"Conv", "y", {"c"}, 5, 1, 0}},
     0,
     0},
    {"a Concat in another stays, its own parts do not",
     {{"Conv", "a", {"x"}, 12, 1, 0},
      {"Conv", "b", {"x"}, 10, 3, 0},
      {"Concat", "c", {"a", "b"}, 0, 0, 1},
      {"Conv", "d", {"x"}, 4, 1, 0},
      {"Concat", "e", {"c", "d"}, 0, 0, 1},
      {"Conv", "y", {"e"}, 5, 1, 0}},
     3,
     0},
    {"in one piece, whatever the kernel",
     {{"Softmax", "a", {"x"}, 0, 0, 0},
      {"LogSoftmax", "b", {"x"}, 0, 0, 0},
      {"Concat", "c", {"a", "b"}, 0, 0, 0},
      {"Hardmax", "y", {"c"}, 0, 0, 0}},
     2,
     0},
    {"an output of the model stays",
     {{"Softmax", "a", {"x"}, 0, 0, 0},
      {"LogSoftmax", "b", {"x"}, 0, 0, 0},
      {"Concat", "y", {"a", "b"}, 0, 0, 0}},
     0,
     0},
    {"a few channels that come as planes",
     {{"Slice", "s", {"x", "zero", "three"}, 0, 0, 0},
      {"Conv", "a", {"s"}, 12, 3, 0},
      {"Conv", "y", {"a"}, 5, 3, 0}},
     0,
     1},
};

// ---- a program ---------------------------------------------------------------------------------

static float next_value(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

// Channels of a value: those of x, of a Conv's filters, or of what is put together.
static int64_t count_channels(const row *r, const char *value) {
    for (size_t i = 0; i < NODES_MAX && r->nodes[i].op != NULL; ++i) {
        const node *n = &r->nodes[i];
        if (strcmp(n->output, value) != 0) {
            continue;
        }
        if (strcmp(n->op, "Concat") == 0 && n->axis == 1) {
            return count_channels(r, n->inputs[0]) + count_channels(r, n->inputs[1]);
        }
        return n->filters > 0                ? n->filters
               : strcmp(n->op, "Slice") == 0 ? 3
                                             : count_channels(r, n->inputs[0]);
    }
    return 8;
}

static void add_convolution(rondo_builder *builder, const row *r, const node *n) {
    static float weights[16384];
    char name[16] = "weights_";
    const rondo_shape shape = {4,
                               {n->filters, count_channels(r, n->inputs[0]), n->kernel, n->kernel}};
    uint32_t seed = (uint32_t)(unsigned char)n->output[0];
    const int64_t count = shape.extent[0] * shape.extent[1] * n->kernel * n->kernel;
    assert_true(count <= (int64_t)(sizeof weights / sizeof weights[0]));
    for (int64_t i = 0; i < count; ++i) {
        weights[i] = next_value(&seed);
    }
    strncat(name, n->output, 2);
    OK(rondo_builder_add_constant(builder, name, RONDO_DTYPE_F32, &shape, weights));
    const int64_t pad = n->kernel / 2, pads[4] = {pad, pad, pad, pad};
    OK(rondo_builder_add_node(builder, "Conv", (const char *[]){n->inputs[0], name}, 2, &n->output,
                              1, &WITH(ATTRIBUTE_INTS("pads", pads, 4))));
}

static void add_node(rondo_builder *builder, const row *r, const node *n) {
    if (n->filters > 0) {
        add_convolution(builder, r, n);
        return;
    }
    const rondo_attribute attribute = ATTRIBUTE_INT("axis", n->axis);
    size_t count = 0;
    while (count < INPUTS_MAX && n->inputs[count] != NULL) {
        count += 1;
    }
    const char *inputs[INPUTS_MAX + 1] = {n->inputs[0], n->inputs[1], n->inputs[2]};
    if (strcmp(n->op, "Slice") == 0) {
        inputs[count++] = "one";
    }
    OK(rondo_builder_add_node(builder, n->op, inputs, count, &n->output, 1,
                              &WITH_LIST(&attribute, strcmp(n->op, "Concat") == 0)));
}

static rondo_program *build(const row *r) {
    const rondo_shape one = {1, {1}};
    rondo_builder *builder = build_begin();
    OK(rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 1, 8, 9, 10)));
    OK(rondo_builder_add_constant(builder, "zero", RONDO_DTYPE_I64, &one, &(int64_t){0}));
    OK(rondo_builder_add_constant(builder, "one", RONDO_DTYPE_I64, &one, &(int64_t){1}));
    OK(rondo_builder_add_constant(builder, "three", RONDO_DTYPE_I64, &one, &(int64_t){3}));
    for (size_t i = 0; i < NODES_MAX && r->nodes[i].op != NULL; ++i) {
        add_node(builder, r, &r->nodes[i]);
    }
    OK(rondo_builder_add_output(builder, "y", NULL));
    return build_finish(builder);
}

// ---- running it --------------------------------------------------------------------------------

typedef struct joined {
    size_t parts, planes;
} joined;

static rondo_status count_joined(rondo__unit *unit, rondo__plan *plan, void *user_data) {
    joined *out = user_data;
    (void)unit;
    for (size_t i = 0; i < plan->item_count; ++i) {
        const rondo__node *n = &plan->program->nodes[plan->items[i].node];
        for (size_t k = 0; k < n->input_count && strcmp(n->op.def->name, "Concat") == 0; ++k) {
            out->parts += plan->slots[n->inputs[k]].root == n->outputs[0];
        }
        out->planes += strcmp(n->op.def->name, "Transpose") == 0 &&
                       plan->slots[n->outputs[0]].root == plan->slots[n->inputs[0]].root;
    }
    return RONDO_STATUS_OK;
}

static void run(rondo_executor *executor, uint32_t seed, rondo_binding *fetch) {
    static float values[8 * 9 * 10];
    for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
        values[i] = next_value(&seed);
    }
    const rondo_binding feed = {"x", {RONDO_DTYPE_F32, {4, {1, 8, 9, 10}}, values, NULL, NULL}};
    OK(rondo_executor_run(executor, &feed, 1, fetch, 1));
}

TEST(results_are_those_of_the_reference) {
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_program *program = build(&rows[i]);
        rondo_executor_options plain = {.struct_size = sizeof plain, .reference = true};
        rondo_executor *reference, *executor;
        joined found = {0};
        OK(rondo_executor_create(program, device, &plain, &reference));
        OK(rondo_executor_create(program, device, NULL, &executor));
        OK(rondo__executor_visit_plan(executor, NULL, 0, "test", count_joined, &found));
        if (found.parts != rows[i].joined || found.planes != rows[i].planes) {
            fail_msg("%s: %zu parts and %zu planes", rows[i].name, found.parts, found.planes);
        }
        for (uint32_t seed = 1; seed <= 4; ++seed) {  // eager, then replayed
            rondo_binding expected = {.name = "y"}, actual = {.name = "y"};
            run(reference, seed, &expected);
            run(executor, seed, &actual);
            const float *e = expected.tensor.data, *a = actual.tensor.data;
            const int64_t count = rondo_shape_get_count(&expected.tensor.shape);
            assert_int_equal(rondo_shape_get_count(&actual.tensor.shape), count);
            for (int64_t k = 0; k < count; ++k) {
                if (!(fabsf(a[k] - e[k]) <= 1e-4f * (1.0f + fabsf(e[k])))) {
                    fail_msg("%s, run %d: element %d is %g, expected %g", rows[i].name, (int)seed,
                             (int)k, (double)a[k], (double)e[k]);
                }
            }
            rondo_tensor_deinit(&expected.tensor);
            rondo_tensor_deinit(&actual.tensor);
        }
        rondo_executor_destroy(executor);
        rondo_executor_destroy(reference);
        rondo_program_destroy(program);
    }
    rondo_device_release(device);
}

TEST_MAIN()
