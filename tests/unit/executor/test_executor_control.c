// Loops and scans: what those give that take no turn, and what their turns read of around them.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/counting_heap.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"
#include "support/test.h"

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

// ---- models -----------------------------------------------------------------------------------

// How much the body says of its row: dtype 0 nothing at all, shape NULL no shape.
typedef struct declaration {
    int32_t dtype;
    const char *shape;
} declaration;

// sc = rows of a loop or scan whose body gives out its state [2, 3]; y = Concat(sc, q [1, 2, 3]).
// With `depends_on_data` a row is NonZero of the state, whose extents nobody knows ahead.
static void build(model_builder *b, bool is_scan, bool depends_on_data, declaration row) {
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    if (!is_scan) {
        model_builder_add_input(b, body, "i", INT64, "");
        model_builder_add_input(b, body, "c", BOOL, "");
    }
    model_builder_add_input(b, body, "s", FLOAT, NULL);
    if (is_scan) {
        model_builder_add_input(b, body, "slice", FLOAT, NULL);
    } else {
        model_builder_add_node(b, body, "Identity", "keep", "c", "c2");
        model_builder_add_output(b, body, "c2", BOOL, "");
    }
    model_builder_add_node(b, body, "Identity", "state", "s", "s2");
    model_builder_add_output(b, body, "s2", FLOAT, NULL);
    model_builder_add_node(b, body,
                           depends_on_data ? "NonZero"
                           : is_scan       ? "Add"
                                           : "Identity",
                           "row", is_scan && !depends_on_data ? "s slice" : "s", "o");
    Onnx__ValueInfoProto *output =
        model_builder_add_output(b, body, "o", row.dtype != 0 ? row.dtype : FLOAT, row.shape);
    if (row.dtype == 0) {
        output->type = NULL;
    }

    model_builder_add_input(b, b->graph, "x", FLOAT, "2 3");
    model_builder_add_input(b, b->graph, "q", FLOAT, "1 2 3");
    if (is_scan) {
        model_builder_add_input(b, b->graph, "list", FLOAT, "n 2 3");
    } else {
        model_builder_add_input(b, b->graph, "n", INT64, "");
        model_builder_add_input(b, b->graph, "go", BOOL, "");
    }
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, is_scan ? "Scan" : "Loop", "turns",
                                                   is_scan ? "x list" : "n go x", "f sc");
    model_builder_add_body(b, node, "body", body);
    if (is_scan) {
        model_builder_set_int(b, node, "num_scan_inputs", 1);
    }
    model_builder_add_output(b, b->graph, "sc", FLOAT, NULL)->type = NULL;
    model_builder_add_output(b, b->graph, "f", FLOAT, NULL);
    if (!depends_on_data) {
        model_builder_set_int(b, model_builder_add_node(b, b->graph, "Concat", "join", "sc q", "y"),
                              "axis", 0);
        model_builder_add_output(b, b->graph, "y", FLOAT, NULL);
    }
}

// ---- runs -------------------------------------------------------------------------------------

static float state_values[6] = {1, 0, 3, 4, 5, 6};
static float joined_values[6] = {10, 20, 30, 40, 50, 60};
static float list_values[12] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};

static rondo_tensor view(rondo_dtype dtype, void *data, int32_t rank, int64_t a, int64_t b,
                         int64_t c) {
    return (rondo_tensor){
        .dtype = dtype, .shape = {.rank = rank, .extent = {a, b, c}}, .data = data};
}

// Runs for `turns` turns (-1: the condition is false) and gives sc, f and, where it is there, y.
static rondo_status run(rondo_executor *executor, bool is_scan, int64_t turns, size_t fetch_count,
                        rondo_binding *fetches) {
    int64_t count = turns < 0 ? 5 : turns;
    uint8_t go = turns >= 0;
    rondo_binding feeds[4] = {{"x", view(RONDO_DTYPE_F32, state_values, 2, 2, 3, 0)},
                              {"q", view(RONDO_DTYPE_F32, joined_values, 3, 1, 2, 3)}};
    if (is_scan) {
        feeds[2] = (rondo_binding){
            "list", view(RONDO_DTYPE_F32, list_values, 3, turns < 0 ? 0 : turns, 2, 3)};
    } else {
        feeds[2] = (rondo_binding){"n", view(RONDO_DTYPE_I64, &count, 0, 0, 0, 0)};
        feeds[3] = (rondo_binding){"go", view(RONDO_DTYPE_BOOL, &go, 0, 0, 0, 0)};
    }
    memset(fetches, 0, 3 * sizeof *fetches);
    fetches[0].name = "sc";
    fetches[1].name = "f";
    fetches[2].name = "y";
    return rondo_executor_run(executor, feeds, is_scan ? 3 : 4, fetches, fetch_count);
}

static void free_fetches(rondo_binding *fetches) {
    for (size_t i = 0; i < 3; ++i) {
        rondo_tensor_deinit(&fetches[i].tensor);
    }
}

static void expect_shape(const rondo_tensor *tensor, rondo_dtype dtype, rondo_shape shape) {
    char text[96];
    if (tensor->dtype != dtype || !rondo_shape_is_equal(&tensor->shape, &shape)) {
        print_error("the result is %s %s\n", rondo_dtype_get_name(tensor->dtype),
                    rondo_shape_format(&tensor->shape, text, sizeof text));
    }
    assert_int_equal(tensor->dtype, dtype);
    assert_true(rondo_shape_is_equal(&tensor->shape, &shape));
}

static void expect_rows(bool is_scan, declaration row) {
    model_builder b;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    size_t byte_count = 0;
    model_builder_init(&b);
    build(&b, is_scan, false, row);
    const uint8_t *bytes = model_builder_pack(&b, &byte_count);
    OK(rondo_device_open("host", &device));
    OK(rondo_program_parse_onnx(bytes, byte_count, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    static const int64_t turns[] = {0, 2, -1, 0, 1, 0};
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; ++i) {
        const int64_t count = turns[i] < 0 ? 0 : turns[i];
        rondo_binding fetches[3];
        OK(run(executor, is_scan, turns[i], 3, fetches));
        expect_shape(&fetches[0].tensor, RONDO_DTYPE_F32,
                     (rondo_shape){.rank = 3, .extent = {count, 2, 3}});
        expect_shape(&fetches[1].tensor, RONDO_DTYPE_F32,
                     (rondo_shape){.rank = 2, .extent = {2, 3}});
        assert_memory_equal(fetches[1].tensor.data, state_values, sizeof state_values);
        expect_shape(&fetches[2].tensor, RONDO_DTYPE_F32,
                     (rondo_shape){.rank = 3, .extent = {count + 1, 2, 3}});
        assert_memory_equal((float *)fetches[2].tensor.data + 6 * count, joined_values,
                            sizeof joined_values);
        free_fetches(fetches);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    model_builder_deinit(&b);
}

TEST(test_executor_control__rows_of_no_turn_have_the_shape_of_others) {
    static const declaration rows[] = {
        {FLOAT, "2 3"}, {FLOAT, "u v"}, {FLOAT, "u 3"}, {FLOAT, NULL}, {0, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        expect_rows(false, rows[i]);
        expect_rows(true, rows[i]);
    }
}

// Where inference leaves an extent open the declaration counts, and 0 where that does, too.
TEST(test_executor_control__rows_that_depend_on_data) {
    static const struct {
        declaration row;
        rondo_shape shape;
    } rows[] = {
        {{INT64, "2 m"}, {.rank = 3, .extent = {0, 2, 0}}},
        {{INT64, "2 5"}, {.rank = 3, .extent = {0, 2, 5}}},
        {{INT64, NULL}, {.rank = 3, .extent = {0, 2, 0}}},
        {{0, NULL}, {.rank = 3, .extent = {0, 2, 0}}},  // dtype and rank of NonZero are known
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        for (int is_scan = 0; is_scan <= 1; ++is_scan) {
            model_builder b;
            rondo_device *device;
            rondo_program *program;
            rondo_executor *executor;
            rondo_binding fetches[3];
            size_t byte_count = 0;
            model_builder_init(&b);
            build(&b, is_scan != 0, true, rows[i].row);
            const uint8_t *bytes = model_builder_pack(&b, &byte_count);
            OK(rondo_device_open("host", &device));
            OK(rondo_program_parse_onnx(bytes, byte_count, &program));
            OK(rondo_executor_create(program, device, NULL, &executor));
            OK(run(executor, is_scan != 0, 0, 2, fetches));
            expect_shape(&fetches[0].tensor, RONDO_DTYPE_I64, rows[i].shape);
            free_fetches(fetches);
            OK(run(executor, is_scan != 0, 2, 2, fetches));
            expect_shape(&fetches[0].tensor, RONDO_DTYPE_I64,
                         (rondo_shape){.rank = 3, .extent = {2, 2, 5}});
            free_fetches(fetches);
            rondo_executor_destroy(executor);
            rondo_program_destroy(program);
            rondo_device_release(device);
            model_builder_deinit(&b);
        }
    }
}

// ---- what each turn reads of around the loop ---------------------------------------------------

enum { OUTER_COUNT = 16 * 1024, SECOND_COUNT = 1024, TURNS = 40, ROW_COUNT = 6000 };

// Rows o = ReduceSum(w) + ReduceSum(a), where a and b, of unlike sizes, change places each turn: so
// that turns take two plans in turn.
static void build_reader(model_builder *b) {
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "a", FLOAT, NULL);
    model_builder_add_input(b, body, "b", FLOAT, NULL);
    model_builder_add_node(b, body, "Identity", "keep", "c", "c2");
    model_builder_add_node(b, body, "Identity", "first", "b", "a2");
    model_builder_add_node(b, body, "Identity", "second", "a", "b2");
    Onnx__NodeProto *node = model_builder_add_node(b, body, "ReduceSum", "outer", "w", "sum");
    model_builder_set_int(b, node, "keepdims", 0);
    node = model_builder_add_node(b, body, "ReduceSum", "inner", "a", "part");
    model_builder_set_int(b, node, "keepdims", 0);
    model_builder_add_node(b, body, "Add", "both", "sum part", "o");
    model_builder_add_output(b, body, "c2", BOOL, "");
    model_builder_add_output(b, body, "a2", FLOAT, NULL);
    model_builder_add_output(b, body, "b2", FLOAT, NULL);
    model_builder_add_output(b, body, "o", FLOAT, "");

    model_builder_add_input(b, b->graph, "n", INT64, "");
    model_builder_add_input(b, b->graph, "go", BOOL, "");
    model_builder_add_input(b, b->graph, "a0", FLOAT, "p");
    model_builder_add_input(b, b->graph, "b0", FLOAT, "q");
    model_builder_add_input(b, b->graph, "w", FLOAT, "m");
    node = model_builder_add_node(b, b->graph, "Loop", "turns", "n go a0 b0", "a1 b1 rows");
    model_builder_add_body(b, node, "body", body);
    model_builder_add_output(b, b->graph, "rows", FLOAT, "t");
}

static uint64_t count_copied(rondo_profile *profile) {
    rondo_profile_row rows[256];
    size_t count = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rows[i] = (rondo_profile_row){.struct_size = sizeof rows[i]};
    }
    OK(rondo_profile_get_rows(profile, RONDO_PROFILE_BY_TOTAL, false, rows, 256, &count));
    assert_in_range(count, 1, 256);
    for (size_t i = 0; i < count; ++i) {
        bytes += rows[i].category == RONDO_PROFILE_COPY ? rows[i].bytes : 0;
    }
    return bytes;
}

TEST(test_executor_control__turns_read_outer_values_where_they_are) {
    model_builder b;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_profile *profile;
    size_t byte_count = 0;
    static float outer[OUTER_COUNT];
    static float first[SECOND_COUNT] = {1, 2};
    static float second[SECOND_COUNT] = {4, 8, 16};
    int64_t turns = TURNS;
    uint8_t go = 1;
    model_builder_init(&b);
    build_reader(&b);
    const uint8_t *bytes = model_builder_pack(&b, &byte_count);
    OK(rondo_device_open("host", &device));
    OK(rondo_program_parse_onnx(bytes, byte_count, &program));
    OK(rondo_executor_create(program, device, NULL, &executor));
    OK(rondo_profile_create(NULL, &profile));
    // The same memory with other values; then other shapes, so that no plan is there.
    for (int run = 0; run < 4; ++run) {
        const int64_t length = run < 3 ? 2 : 1;
        for (int i = 0; i < OUTER_COUNT; ++i) {
            outer[i] = i == run ? 64.0f * (float)(run + 1) : 0;
        }
        const rondo_binding feeds[] = {
            {"n", view(RONDO_DTYPE_I64, &turns, 0, 0, 0, 0)},
            {"go", view(RONDO_DTYPE_BOOL, &go, 0, 0, 0, 0)},
            {"a0", view(RONDO_DTYPE_F32, first, 1, length, 0, 0)},
            {"b0", view(RONDO_DTYPE_F32, second, 1, SECOND_COUNT, 0, 0)},
            {"w", view(RONDO_DTYPE_F32, outer, 1, OUTER_COUNT, 0, 0)},
        };
        rondo_binding fetch = {.name = "rows"};
        OK(rondo_profile_start(profile));
        OK(rondo_executor_run(executor, feeds, 5, &fetch, 1));
        OK(rondo_profile_stop(profile));
        expect_shape(&fetch.tensor, RONDO_DTYPE_F32, (rondo_shape){.rank = 1, .extent = {TURNS}});
        for (int i = 0; i < TURNS; ++i) {
            const float inner = i % 2 == 0 ? (length == 2 ? 3.0f : 1.0f) : 28.0f;
            const float row = ((const float *)fetch.tensor.data)[i];
            assert_true(row == 64.0f * (float)(run + 1) + inner);
        }
        rondo_tensor_deinit(&fetch.tensor);
    }
    // One plan for all turns: that is fed once. (Plans that change each turn share their memory.)
    const rondo_binding feeds[] = {
        {"n", view(RONDO_DTYPE_I64, &turns, 0, 0, 0, 0)},
        {"go", view(RONDO_DTYPE_BOOL, &go, 0, 0, 0, 0)},
        {"a0", view(RONDO_DTYPE_F32, first, 1, SECOND_COUNT, 0, 0)},
        {"b0", view(RONDO_DTYPE_F32, second, 1, SECOND_COUNT, 0, 0)},
        {"w", view(RONDO_DTYPE_F32, outer, 1, OUTER_COUNT, 0, 0)},
    };
    rondo_binding fetch = {.name = "rows"};
    OK(rondo_profile_start(profile));
    OK(rondo_executor_run(executor, feeds, 5, &fetch, 1));
    OK(rondo_profile_stop(profile));
    assert_in_range(count_copied(profile), 1, 8 * sizeof outer);
    rondo_tensor_deinit(&fetch.tensor);
    rondo_profile_destroy(profile);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    model_builder_deinit(&b);
}

// Adds up x[i : i + 1], whose bounds the body computes.
static void build_slicer(model_builder *b) {
    static const int64_t one[] = {1};
    static const int64_t zero[] = {0};
    const int64_t *const values[] = {one, zero};
    const char *const names[] = {"one", "axis"};
    Onnx__GraphProto *body = model_builder_new_graph(b, "body");
    for (int k = 0; k < 2; ++k) {
        Onnx__TensorProto *tensor = model_builder_add_initializer(b, body, names[k], INT64, 1, one);
        model_builder_set_raw(b, tensor, values[k], sizeof one);
    }
    model_builder_add_input(b, body, "i", INT64, "");
    model_builder_add_input(b, body, "c", BOOL, "");
    model_builder_add_input(b, body, "a", FLOAT, "1");
    model_builder_add_node(b, body, "Identity", "keep", "c", "c2");
    model_builder_add_node(b, body, "Unsqueeze", "begin", "i axis", "s");
    model_builder_add_node(b, body, "Add", "end", "s one", "e");
    model_builder_add_node(b, body, "Slice", "row", "w s e axis", "r");
    model_builder_add_node(b, body, "Add", "sum", "a r", "a2");
    model_builder_add_output(b, body, "c2", BOOL, "");
    model_builder_add_output(b, body, "a2", FLOAT, "1");

    model_builder_add_input(b, b->graph, "n", INT64, "");
    model_builder_add_input(b, b->graph, "go", BOOL, "");
    model_builder_add_input(b, b->graph, "a0", FLOAT, "1");
    model_builder_add_input(b, b->graph, "w", FLOAT, "m");
    Onnx__NodeProto *node = model_builder_add_node(b, b->graph, "Loop", "turns", "n go a0", "a1");
    model_builder_add_body(b, node, "body", body);
    model_builder_add_output(b, b->graph, "a1", FLOAT, "1");
}

// Ops that wait for a shape, too, read outer values where they are.
TEST(test_executor_control__ops_that_wait_for_a_shape_copy_no_outer_value) {
    model_builder b;
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    size_t byte_count = 0;
    static float outer[ROW_COUNT];
    static float start[] = {0.5f};
    const rondo_executor_options few = {.struct_size = sizeof few, .plan_limit = 2};
    int64_t turns = TURNS;
    uint8_t go = 1;
    float sum = start[0];
    for (int i = 0; i < ROW_COUNT; ++i) {
        outer[i] = (float)(i % 7);
        sum += i < TURNS ? outer[i] : 0.0f;
    }
    model_builder_init(&b);
    build_slicer(&b);
    const uint8_t *bytes = model_builder_pack(&b, &byte_count);
    OK(rondo_device_open("host", &device));
    OK(rondo_program_parse_onnx(bytes, byte_count, &program));
    OK(rondo_executor_create(program, device, &few, &executor));
    const rondo_binding feeds[] = {
        {"n", view(RONDO_DTYPE_I64, &turns, 0, 0, 0, 0)},
        {"go", view(RONDO_DTYPE_BOOL, &go, 0, 0, 0, 0)},
        {"a0", view(RONDO_DTYPE_F32, start, 1, 1, 0, 0)},
        {"w", view(RONDO_DTYPE_F32, outer, 1, ROW_COUNT, 0, 0)},
    };
    for (int run = 0; run < 3; ++run) {
        rondo_binding fetch = {.name = "a1"};
        const size_t before = counting_heap_count(true);
        OK(rondo_executor_run(executor, feeds, 4, &fetch, 1));
        assert_true(*(const float *)fetch.tensor.data == sum);
        assert_true(run == 0 || counting_heap_count(true) - before < TURNS);
        rondo_tensor_deinit(&fetch.tensor);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    rondo_device_release(device);
    model_builder_deinit(&b);
}

int main(void) {
    return counting_heap_install() ? RUN_TESTS(NULL, NULL) : 1;
}
