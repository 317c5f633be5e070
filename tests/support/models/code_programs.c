// support/models/code_programs.c — see code_programs.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/models/code_programs.h"

#include <string.h>

#include "base/error.h"
#include "support/expect_ok.h"
#include "support/short_forms.h"

enum { ELEMENTS_MAX = 256, INPUTS_MAX = 8 };

#define NAMES(...)          \
    (const char *const[]) { \
        __VA_ARGS__         \
    }
#define TRY RETURN_IF_ERROR

float code_program_get_number(size_t index) {
    return (float)(index * 7 % 23) / 8.0f - 1.0f;
}

static rondo_status add_parameter(rondo_builder *builder, const char *name, rondo_shape shape) {
    float elements[ELEMENTS_MAX];
    for (size_t i = 0; i < ELEMENTS_MAX; ++i) {
        elements[i] = code_program_get_number(i);
    }
    return rondo_builder_add_constant(builder, name, RONDO_DTYPE_F32, &shape, elements);
}

static rondo_status add_input(rondo_builder *builder, const char *name, rondo_dtype dtype,
                              rondo_shape shape, const char *symbol) {
    rondo_port port = {
        .struct_size = sizeof port, .name = name, .dtype = dtype, .rank = shape.rank};
    memcpy(port.extent, shape.extent, sizeof port.extent);
    port.symbol[0] = symbol;
    return rondo_builder_add_input(builder, &port);
}

static rondo_status add_node(rondo_builder *builder, const char *op, const char *a, const char *b,
                             const char *output) {
    return rondo_builder_add_node(builder, op, NAMES(a, b), b != NULL ? 2 : 1, &output, 1, NULL);
}

#define OUTPUT(name) TRY(rondo_builder_add_output(builder, (name), NULL))

// ---- the programs

static rondo_status fill_perceptron(rondo_builder *builder) {
    TRY(add_input(builder, "x", RONDO_DTYPE_F32, (rondo_shape){2, {-1, 4}}, "batch"));
    TRY(add_parameter(builder, "w1", (rondo_shape){2, {4, 5}}));
    TRY(add_parameter(builder, "b1", (rondo_shape){1, {5}}));
    TRY(add_parameter(builder, "w2", (rondo_shape){2, {5, 3}}));
    TRY(rondo_builder_add_node(builder, "Gemm", NAMES("x", "w1", "b1"), 3, NAMES("h"), 1, NULL));
    TRY(add_node(builder, "Relu", "h", NULL, "r"));
    TRY(add_node(builder, "MatMul", "r", "w2", "y"));
    OUTPUT("y");
    return RONDO_STATUS_OK;
}

static rondo_status fill_convolution(rondo_builder *builder) {
    const rondo_attribute attributes[] = {
        ATTRIBUTE_INTS("kernel_shape", ((const int64_t[]){3, 3}), 2),
        ATTRIBUTE_INTS("pads", ((const int64_t[]){1, 1, 1, 1}), 4),
        ATTRIBUTE_TEXT("auto_pad", "NOTSET"), ATTRIBUTE_INT("group", 1)};
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .name = "first",
                                                .attributes = attributes,
                                                .attribute_count = 4};
    TRY(add_input(builder, "x", RONDO_DTYPE_F32, (rondo_shape){4, {1, 2, 6, 6}}, NULL));
    TRY(add_parameter(builder, "w", (rondo_shape){4, {3, 2, 3, 3}}));
    TRY(rondo_builder_add_node(builder, "Conv", NAMES("x", "w"), 2, NAMES("c"), 1, &options));
    TRY(add_node(builder, "Relu", "c", NULL, "r"));
    TRY(rondo_builder_add_node(
        builder, "MaxPool", NAMES("r"), 1, NAMES("y", NULL), 2,
        &WITH(ATTRIBUTE_INTS("kernel_shape", ((const int64_t[]){2, 2}), 2))));
    OUTPUT("y");
    return RONDO_STATUS_OK;
}

static rondo_status fill_calls(rondo_builder *builder) {
    TRY(add_input(builder, "ids", RONDO_DTYPE_I64, (rondo_shape){2, {-1, 2}}, "batch"));
    TRY(add_input(builder, "x", RONDO_DTYPE_F32, (rondo_shape){2, {4, 5}}, NULL));
    TRY(add_parameter(builder, "table", (rondo_shape){2, {3, 4}}));
    TRY(rondo_builder_add_embedding(builder, "ids", "table", "rows"));
    TRY(rondo_builder_add_l2_normalize(builder, "rows", -1, 1e-6f, "normal"));
    TRY(rondo_builder_add_l2_normalize(builder, "x", 1, 0.25f, "normal_x"));
    TRY(rondo_builder_add_square_error_cost(builder, "x", "normal_x", "cost"));
    TRY(rondo_builder_add_mean(builder, "cost", "mean"));
    TRY(rondo_builder_add_shape(builder, "rows", "extents"));
    TRY(rondo_builder_add_slice(builder, "x", (const int64_t[]){1, 0}, (const int64_t[]){-1, 1},
                                (const int64_t[]){0, INT64_MAX}, (const int64_t[]){-2, 1}, 2,
                                "slice"));
    static const char *const names[] = {"rows", "normal",  "normal_x", "cost",
                                        "mean", "extents", "slice"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        OUTPUT(names[i]);
    }
    return RONDO_STATUS_OK;
}

// A branch: one adds a parameter of the program around; the other gives out a value from there.
static rondo_status fill_branch(rondo_builder *builder, bool is_plain) {
    if (!is_plain) {
        TRY(add_node(builder, "Add", "h", "p", "sum"));
    }
    return rondo_builder_add_output(builder, is_plain ? "h" : "sum", NULL);
}

// Adds "carried" (which each turn doubles) while turns are left, and scans out each sum.
static rondo_status fill_loop(rondo_builder *builder) {
    TRY(add_input(builder, "turn", RONDO_DTYPE_I64, (rondo_shape){0}, NULL));
    TRY(add_input(builder, "go", RONDO_DTYPE_BOOL, (rondo_shape){0}, NULL));
    TRY(add_input(builder, "carried", RONDO_DTYPE_F32, (rondo_shape){1, {4}}, NULL));
    TRY(add_node(builder, "Identity", "go", NULL, "on"));
    TRY(add_node(builder, "Add", "carried", "carried", "h"));  // a name that is taken around
    TRY(add_node(builder, "Mul", "h", "p", "scaled"));
    OUTPUT("on");
    OUTPUT("h");
    OUTPUT("scaled");
    return RONDO_STATUS_OK;
}

static rondo_status add_control(rondo_builder *builder, rondo_builder *const *bodies) {
    const rondo_builder_node_options choice =
        WITH(ATTRIBUTE_BODY("then_branch", bodies[0]), ATTRIBUTE_BODY("else_branch", bodies[1]));
    const int64_t turns = 3;
    TRY(rondo_builder_add_constant(builder, "turns", RONDO_DTYPE_I64, &(rondo_shape){0}, &turns));
    TRY(rondo_builder_add_node(builder, "If", NAMES("flag"), 1, NAMES("chosen"), 1, &choice));
    return rondo_builder_add_node(builder, "Loop", NAMES("turns", "", "chosen"), 3,
                                  NAMES("last", "all"), 2,
                                  &WITH(ATTRIBUTE_BODY("body", bodies[2])));
}

static rondo_status fill_control(rondo_builder *builder) {
    const rondo_port last = {
        .struct_size = sizeof last, .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {4}};
    const rondo_port all = {
        .struct_size = sizeof all, .dtype = RONDO_DTYPE_F32, .rank = 2, .extent = {-1, 4}};
    rondo_builder *bodies[3] = {NULL};
    TRY(add_input(builder, "flag", RONDO_DTYPE_BOOL, (rondo_shape){0}, NULL));
    TRY(add_input(builder, "x", RONDO_DTYPE_F32, (rondo_shape){1, {4}}, NULL));
    TRY(add_parameter(builder, "p", (rondo_shape){1, {4}}));
    TRY(add_node(builder, "Abs", "x", NULL, "h"));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < 3 && status == RONDO_STATUS_OK; ++i) {
        status = rondo_builder_create_body(builder, NULL, &bodies[i]);
        if (status == RONDO_STATUS_OK) {
            status = i < 2 ? fill_branch(bodies[i], i == 0) : fill_loop(bodies[i]);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = add_control(builder, bodies);
    }
    for (size_t i = 0; i < 3; ++i) {
        rondo_builder_destroy(bodies[i]);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_output(builder, "last", &last);
    }
    return status == RONDO_STATUS_OK ? rondo_builder_add_output(builder, "all", &all) : status;
}

const code_program code_programs[] = {
    {"perceptron", fill_perceptron},
    {"convolution", fill_convolution},
    {"calls", fill_calls},
    {"control", fill_control},
    {NULL, NULL},
};

rondo_status code_program_build(const code_program *row, rondo_program **out_program) {
    rondo_builder *builder = NULL;
    *out_program = NULL;
    rondo_status status = rondo_builder_create(
        &(rondo_builder_options){sizeof(rondo_builder_options), row->name, 17}, &builder);
    if (status == RONDO_STATUS_OK) {
        status = row->fill(builder);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, out_program);
    }
    rondo_builder_destroy(builder);
    return status;
}

// ---- runs

static void fill_feed(const rondo_port *port, rondo_binding *feed) {
    rondo_shape shape = {.rank = port->rank};
    for (int32_t d = 0; d < port->rank; ++d) {
        shape.extent[d] = port->extent[d] >= 0 ? port->extent[d] : CODE_PROGRAM_EXTENT;
    }
    feed->name = port->name;
    OK(rondo_tensor_init(port->dtype, &shape, &feed->tensor));
    for (size_t i = 0; i < (size_t)rondo_shape_get_count(&shape); ++i) {
        switch (port->dtype) {
            case RONDO_DTYPE_F32:
                ((float *)feed->tensor.data)[i] = code_program_get_number(i);
                break;
            case RONDO_DTYPE_I64:
                ((int64_t *)feed->tensor.data)[i] = (int64_t)(i % 3);
                break;
            default:
                assert_int_equal(port->dtype, RONDO_DTYPE_BOOL);
                ((bool *)feed->tensor.data)[i] = true;
        }
    }
}

void code_program_run_with(rondo_program *program, const rondo_binding *feeds, size_t feed_count,
                           rondo_tensor *out_tensors, size_t *out_count) {
    rondo_device *device = NULL;
    rondo_executor *executor = NULL;
    rondo_binding fetches[CODE_PROGRAM_OUTPUTS_MAX] = {{0}};
    *out_count = rondo_program_get_output_count(program);
    assert_in_range(*out_count, 1, CODE_PROGRAM_OUTPUTS_MAX);
    for (size_t i = 0; i < *out_count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_output(program, i, &port));
        fetches[i].name = port.name;
    }
    OK(rondo_device_open("host", &device));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_executor_run(executor, feeds, feed_count, fetches, *out_count));
    for (size_t i = 0; i < *out_count; ++i) {
        out_tensors[i] = fetches[i].tensor;
    }
    rondo_executor_destroy(executor);
    rondo_device_release(device);
}

void code_program_run(rondo_program *program, rondo_tensor *out_tensors, size_t *out_count) {
    rondo_binding feeds[INPUTS_MAX] = {{0}};
    const size_t feed_count = rondo_program_get_input_count(program);
    assert_in_range(feed_count, 1, INPUTS_MAX);
    for (size_t i = 0; i < feed_count; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_input(program, i, &port));
        fill_feed(&port, &feeds[i]);
    }
    code_program_run_with(program, feeds, feed_count, out_tensors, out_count);
    for (size_t i = 0; i < feed_count; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
}

void code_program_compare(const rondo_tensor *a, const rondo_tensor *b) {
    assert_int_equal(a->dtype, b->dtype);
    assert_true(rondo_shape_is_equal(&a->shape, &b->shape));
    const size_t count = (size_t)rondo_shape_get_count(&a->shape);
    for (size_t i = 0; i < count; ++i) {
        if (a->dtype == RONDO_DTYPE_SEQUENCE || a->dtype == RONDO_DTYPE_OPTIONAL) {
            code_program_compare(rondo_tensor_get_item(a, i), rondo_tensor_get_item(b, i));
        } else if (a->dtype == RONDO_DTYPE_STRING) {
            const rondo_string *x = (const rondo_string *)a->data + i;
            const rondo_string *y = (const rondo_string *)b->data + i;
            assert_int_equal(x->size, y->size);
            assert_true(x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
        } else {
            assert_memory_equal(a->data, b->data, rondo_tensor_get_bytes(a));
            return;
        }
    }
}
