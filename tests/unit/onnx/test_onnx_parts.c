// Parts of models that few files have: sparse tensors, training info, opsets that came later, and
// the broadcasting of versions before 7.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "program/program.h"
#include "rondo/log.h"
#include "rondo/onnx.h"
#include "support/models/model_builder.h"
#include "support/models/model_fixture.h"
#include "support/models/parse_model.h"
#include "support/short_forms.h"
#include "support/test.h"

static rondo_status parse_with(model_builder *builder, bool allow_newer,
                               rondo_program **out_program) {
    const rondo_load_options options = {.struct_size = sizeof options,
                                        .allow_newer_opset = allow_newer};
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    return rondo_program_parse_onnx_with(bytes, count, &options, out_program);
}

static void assert_refused(model_builder *builder, bool allow_newer, rondo_status expected,
                           const char *reason) {
    rondo_program *program = NULL;
    rondo_status status = parse_with(builder, allow_newer, &program);
    const char *message = rondo_error_get_last()->message;
    if (program != NULL || status != expected || strstr(message, reason) == NULL) {
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, message, expected, reason);
    }
}

static char warnings[1024];

static void keep_warning(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    if (level == RONDO_LOG_WARNING) {
        size_t length = strlen(warnings);
        (void)snprintf(warnings + length, sizeof warnings - length, "%s\n", message);
    }
}

static rondo_program *parse_ok(model_builder *builder, bool allow_newer) {
    rondo_program *program = NULL;
    warnings[0] = '\0';
    rondo_log_set_sink(keep_warning, NULL);
    const rondo_status status = parse_with(builder, allow_newer, &program);
    rondo_log_set_sink(NULL, NULL);
    OK(status);
    return program;
}

// ---- sparse tensors

static Onnx__SparseTensorProto *make_sparse(model_builder *builder, size_t rank,
                                            const int64_t *dims, size_t index_rank,
                                            const int64_t *indices, size_t index_count,
                                            const float *values, size_t count) {
    Onnx__SparseTensorProto *sparse = model_builder_allocate(builder, sizeof *sparse);
    onnx__sparse_tensor_proto__init(sparse);
    const int64_t value_dims[1] = {(int64_t)count};
    const int64_t index_dims[2] = {(int64_t)count, (int64_t)rank};
    sparse->values = model_builder_new_tensor(builder, "w", 1, 1, value_dims);
    model_builder_set_raw(builder, sparse->values, values, count * sizeof *values);
    sparse->indices = model_builder_new_tensor(builder, "", 7, index_rank, index_dims);
    model_builder_set_raw(builder, sparse->indices, indices, index_count * sizeof *indices);
    sparse->n_dims = rank;
    sparse->dims = model_builder_allocate(builder, rank * sizeof *dims + 1);
    memcpy(sparse->dims, dims, rank * sizeof *dims);
    return sparse;
}

static const int64_t sparse_dims[2] = {2, 3};
static const int64_t sparse_places[3] = {0, 2, 4};
static const int64_t sparse_pairs[6] = {0, 0, 0, 2, 1, 1};
static const float sparse_values[3] = {1.5f, -2, 3};

static void add_sparse(model_builder *builder, Onnx__SparseTensorProto *sparse) {
    Onnx__GraphProto *graph = builder->graph;
    graph->sparse_initializer = model_builder_allocate(builder, sizeof *graph->sparse_initializer);
    graph->sparse_initializer[0] = sparse;
    graph->n_sparse_initializer = 1;
}

static void check_dense(const rondo_program *program, const char *name) {
    static const float expected[6] = {1.5f, 0, -2, 0, 3, 0};
    const int32_t number = rondo__program_find_value(program, name);
    assert_true(number >= 0);
    const rondo_tensor *tensor = &program->values[number].constant;
    assert_int_equal(tensor->shape.rank, 2);
    assert_int_equal(tensor->shape.extent[1], 3);
    assert_memory_equal(tensor->data, expected, sizeof expected);
}

TEST(test_onnx_parts__reads_sparse_tensors) {
    model_builder *builder = *state;
    add_sparse(builder,
               make_sparse(builder, 2, sparse_dims, 1, sparse_places, 3, sparse_values, 3));
    Onnx__NodeProto *node =
        model_builder_add_node(builder, builder->graph, "Constant", "", "", "c");
    model_builder_add_attribute(builder, node, "sparse_value",
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR)
        ->sparse_tensor =
        make_sparse(builder, 2, sparse_dims, 2, sparse_pairs, 6, sparse_values, 3);
    model_builder_add_output(builder, builder->graph, "w", 1, "2 3");
    model_builder_add_output(builder, builder->graph, "c", 1, "2 3");
    rondo_program *program = parse_ok(builder, false);
    check_dense(program, "w");
    check_dense(program, "c");
    rondo_program_destroy(program);
    // An input may have it as its default, as with others.
    model_builder_add_input(builder, builder->graph, "w", 1, "2 3");
    rondo_program_destroy(parse_ok(builder, false));
}

TEST(test_onnx_parts__sparse_tensors_may_be_external) {
    model_builder *builder = *state;
    Onnx__SparseTensorProto *sparse =
        make_sparse(builder, 2, sparse_dims, 1, sparse_places, 3, sparse_values, 3);
    uint8_t file[sizeof sparse_places + sizeof sparse_values];
    memcpy(file, sparse_places, sizeof sparse_places);
    memcpy(file + sizeof sparse_places, sparse_values, sizeof sparse_values);
    sparse->values->raw_data.len = sparse->indices->raw_data.len = 0;
    model_builder_set_external(builder, sparse->indices, "data.bin", "0", "24");
    model_builder_set_external(builder, sparse->values, "data.bin", "24", "12");
    add_sparse(builder, sparse);
    model_builder_add_output(builder, builder->graph, "w", 1, "2 3");
    char *folder = model_builder_make_folder(builder);
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    char *path = model_builder_write_file(builder, folder, "model.onnx", bytes, count);
    char *data = model_builder_write_file(builder, folder, "data.bin", file, sizeof file);
    rondo_program *program = NULL;
    OK(rondo_program_load_onnx_with(path, NULL, &program));
    check_dense(program, "w");
    rondo_program_destroy(program);
    remove(data);
    remove(path);
    remove(folder);
}

TEST(test_onnx_parts__refuses_wrong_sparse_tensors) {
    static const int64_t unsorted[3] = {0, 4, 2}, twice[3] = {0, 2, 2}, beyond[3] = {0, 2, 6};
    static const int64_t below[3] = {-1, 2, 4}, wide[6] = {0, 0, 0, 3, 1, 1};
    static const struct {
        const int64_t *indices;
        size_t index_count;
        size_t rank;
        const char *reason;
    } rows[] = {
        {unsorted, 3, 1, "index number 2 is not behind the last one"},
        {twice, 3, 1, "index number 2 is not behind the last one"},
        {beyond, 3, 1, "index number 2 is out of range"},
        {below, 3, 1, "index number 0 is out of range"},
        {wide, 6, 2, "index number 1 is out of range"},
    };
    model_builder *builder = *state;
    model_builder_add_output(builder, builder->graph, "w", 1, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        add_sparse(builder, make_sparse(builder, 2, sparse_dims, rows[i].rank, rows[i].indices,
                                        rows[i].index_count, sparse_values, 3));
        assert_refused(builder, false, RONDO_STATUS_BAD_DATA, rows[i].reason);
    }
    Onnx__SparseTensorProto *sparse =
        make_sparse(builder, 2, sparse_dims, 1, sparse_places, 3, sparse_values, 3);
    add_sparse(builder, sparse);
    sparse->dims[0] = -2;
    assert_refused(builder, false, RONDO_STATUS_BAD_DATA, "negative extent -2");
    sparse->dims[0] = INT64_MAX / 2;
    assert_refused(builder, false, RONDO_STATUS_BAD_DATA, "more elements than can be counted");
    sparse->dims[0] = INT64_MAX / 64;  // nobody has so much memory
    assert_refused(builder, false, RONDO_STATUS_NO_MEMORY, "memory_limit_bytes");
    sparse->dims[0] = 2;
    sparse->values->dims[0] = 2;
    sparse->values->raw_data.len = 2 * sizeof(float);
    assert_refused(builder, false, RONDO_STATUS_BAD_DATA, "values are [n], and their indices i64");
    sparse->values->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
    assert_refused(builder, false, RONDO_STATUS_UNSUPPORTED, "\"w\" is a sparse tensor of strings");
    sparse->indices = NULL;
    assert_refused(builder, false, RONDO_STATUS_BAD_DATA, "\"w\" lacks its values or indices");
}

// ---- training and later versions

TEST(test_onnx_parts__training_info_is_ignored) {
    model_builder *builder = *state;
    model_builder_add_input(builder, builder->graph, "x", 1, "2");
    model_builder_add_node(builder, builder->graph, "Relu", "", "x", "y");
    model_builder_add_output(builder, builder->graph, "y", 1, "2");
    Onnx__TrainingInfoProto training = ONNX__TRAINING_INFO_PROTO__INIT;
    Onnx__TrainingInfoProto *list[1] = {&training};
    training.algorithm = model_builder_new_graph(builder, "step");
    model_builder_add_node(builder, training.algorithm, "NoSuchOp", "", "x", "g");
    builder->model->training_info = list;
    builder->model->n_training_info = 1;
    rondo_program_destroy(parse_ok(builder, false));
    assert_non_null(strstr(warnings, "training info is ignored"));
}

TEST(test_onnx_parts__later_opsets_on_demand) {
    model_builder *builder = *state;
    Onnx__GraphProto *graph = builder->graph;
    model_builder_import_opset(builder, "ai.onnx.ml", 99);
    model_builder_add_input(builder, graph, "x", 1, "2 3");
    model_builder_add_node(builder, graph, "Relu", "", "x", "a");
    model_builder_add_node(builder, graph, "ai.onnx.ml:Normalizer", "", "a", "y");
    model_builder_add_output(builder, graph, "y", 1, "2 3");
    builder->model->opset_import[0]->version = 40;
    builder->model->ir_version = 20;
    assert_refused(builder, false, RONDO_STATUS_UNSUPPORTED,
                   "ir_version 20, with opset 40; 1 to 14 are known, and opsets to 28: export the "
                   "model for one of them, or try allow_newer_opset (--allow-newer-opset)");
    rondo_program *program = parse_ok(builder, true);
    assert_int_equal(program->nodes[0].op.opset, 28);
    assert_true(program->nodes[1].op.opset < 99);
    rondo_program_destroy(program);
    assert_non_null(strstr(warnings, "ir_version 20; parts that came after 14 are left out"));
    assert_non_null(strstr(warnings, "op Relu version 40 is read as version 28 has it"));
    assert_null(strstr(warnings, "Normalizer"));  // one word for all
    builder->model->ir_version = 14;
    assert_refused(builder, false, RONDO_STATUS_UNSUPPORTED, "opset 40 (opsets 9 to 28 are known");
    builder->model->opset_import[0]->version = 28;
    builder->model->opset_import[1]->version = 3;
    rondo_program_destroy(parse_ok(builder, true));
    assert_string_equal(warnings, "");
    // What ONNX took away is not read, nor what nobody knows.
    builder->model->opset_import[0]->version = 40;
    Onnx__NodeProto *node = model_builder_add_node(builder, graph, "Upsample", "", "x", "b");
    assert_refused(builder, true, RONDO_STATUS_UNSUPPORTED, "op Upsample version 28");
    node->op_type = model_builder_copy(builder, "NoSuchOp");
    assert_refused(builder, true, RONDO_STATUS_UNSUPPORTED,
                   "op NoSuchOp version 28 (the op is unknown)");
}

// ---- broadcasting before version 7

static void run_row(const char *op, int64_t axis, const char *second_shape, float *second,
                    size_t count, const float *expected) {
    model_fixture fixture;
    model_fixture_init(&fixture);
    model_builder *builder = &fixture.builder;
    float x[12], y[12];
    for (int i = 0; i < 12; ++i) {
        x[i] = (float)(i - 6);
    }
    builder->model->opset_import[0]->version = 6;
    model_builder_add_input(builder, builder->graph, "x", 1, "n 3 h");
    model_builder_add_input(builder, builder->graph, "b", 1, second_shape);
    Onnx__NodeProto *node = model_builder_add_node(builder, builder->graph, op, "", "x b", "y");
    if (op[0] != 'P' || op[1] == 'o') {
        model_builder_set_int(builder, node, "axis", axis);
        model_builder_set_int(builder, node, "broadcast", 1);
    }
    model_builder_add_output(builder, builder->graph, "y", 1, NULL);
    model_fixture_load(&fixture);
    const rondo_binding feeds[2] = {BIND("x", RONDO_DTYPE_F32, x, 2, 3, 2),
                                    BIND("b", RONDO_DTYPE_F32, second, (int64_t)count)};
    rondo_binding fetches[1] = {BIND("y", RONDO_DTYPE_F32, y, 2, 3, 2)};
    OK(rondo_executor_run(fixture.executor, feeds, 2, fetches, 1));
    for (int i = 0; i < 12; ++i) {
        if (y[i] != expected[i]) {
            fail_msg("%s, axis %d: element %d is %g, not %g", op, (int)axis, i, (double)y[i],
                     (double)expected[i]);
        }
    }
    model_fixture_deinit(&fixture);
}

// [2, 3, 2] with a second operand that begins at an axis of its own.
TEST(test_onnx_parts__old_operands_begin_at_an_axis) {
    float three[3] = {10, 20, 30}, two[2] = {10, 20}, one[1] = {10};
    float slopes[3] = {1, 2, 4};
    run_row("Add", 1, "3", three, 3, (float[12]){4, 5, 16, 17, 28, 29, 10, 11, 22, 23, 34, 35});
    run_row("Add", -2, "3", three, 3, (float[12]){4, 5, 16, 17, 28, 29, 10, 11, 22, 23, 34, 35});
    run_row("Sub", 0, "2", two, 2,
            (float[12]){-16, -15, -14, -13, -12, -11, -20, -19, -18, -17, -16, -15});
    run_row("Mul", 2, "2", two, 2,
            (float[12]){-60, -100, -40, -60, -20, -20, 0, 20, 20, 60, 40, 100});
    run_row("Add", 0, "1", one, 1, (float[12]){4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    run_row("PRelu", 0, "3", slopes, 3, (float[12]){-6, -5, -8, -6, -8, -4, 0, 1, 2, 3, 4, 5});
    run_row("PRelu", 0, "1", slopes + 1, 1,
            (float[12]){-12, -10, -8, -6, -4, -2, 0, 1, 2, 3, 4, 5});
}

TEST_MAIN_WITH(parse_model_set_up, parse_model_tear_down)
