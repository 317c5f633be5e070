// Programs saved as ONNX files: what is loaded again computes the same, bit for bit, for programs
// built in code and for the models that ship with the sources.
//
// RONDO_SAVED_DIR names a folder in which the files stay (tools/check_saved reads them there).
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rondo/builder.h"
#include "rondo/onnx.h"
#include "rondo/training.h"
#include "support/expect_ok.h"
#include "support/models/code_programs.h"
#include "support/models/model_builder.h"
#include "support/source_dir.h"

static char folder[512];
static bool is_kept;

static int set_up(void **state) {
    (void)state;
    const char *kept = getenv("RONDO_SAVED_DIR");
    is_kept = kept != NULL;
    (void)snprintf(folder, sizeof folder, "%s", is_kept ? kept : "/tmp/rondo-save-XXXXXX");
    return is_kept || mkdtemp(folder) != NULL ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    return is_kept ? 0 : rmdir(folder);
}

// Saves the program and loads it again; the file is gone, unless it is to stay.
static rondo_program *save_and_load(const rondo_program *program, const char *name) {
    char path[1024];
    rondo_program *again = NULL;
    (void)snprintf(path, sizeof path, "%s/%s.onnx", folder, name);
    OK(rondo_program_save_onnx(program, path));
    OK(rondo_program_load_onnx(path, &again));
    if (!is_kept) {
        assert_int_equal(remove(path), 0);
    }
    return again;
}

static void compare_all(rondo_tensor *a, size_t a_count, rondo_tensor *b, size_t b_count) {
    assert_int_equal(a_count, b_count);
    for (size_t i = 0; i < a_count; ++i) {
        code_program_compare(&a[i], &b[i]);
        rondo_tensor_deinit(&a[i]);
        rondo_tensor_deinit(&b[i]);
    }
}

TEST(test_onnx_save__programs_from_code) {
    for (const code_program *row = code_programs; row->name != NULL; ++row) {
        rondo_program *program = NULL;
        rondo_tensor before[CODE_PROGRAM_OUTPUTS_MAX];
        rondo_tensor after[CODE_PROGRAM_OUTPUTS_MAX];
        size_t before_count = 0;
        size_t after_count = 0;
        OK(code_program_build(row, &program));
        rondo_program *again = save_and_load(program, row->name);
        code_program_run(program, before, &before_count);
        code_program_run(again, after, &after_count);
        compare_all(before, before_count, after, after_count);
        rondo_program_destroy(again);
        rondo_program_destroy(program);
    }
}

// Packed in the file again, whose IR version knows the types.
TEST(test_onnx_save__narrow_and_complex_types) {
    static const struct {
        int32_t type;
        size_t bytes;  // of five elements
        uint8_t ir_version;
    } rows[] = {{14, 40, 8}, {15, 80, 8}, {17, 5, 9},  {20, 5, 9},  {21, 3, 10},
                {22, 3, 10}, {23, 3, 11}, {24, 5, 12}, {25, 2, 13}, {26, 2, 13}};
    static const int64_t dims[1] = {5};
    uint8_t raw[80];
    for (size_t i = 0; i < sizeof raw; ++i) {
        raw[i] = (uint8_t)(i * 37 + 1);
    }
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        model_builder builder;
        rondo_program *program = NULL;
        size_t count = 0;
        rondo_tensor before[CODE_PROGRAM_OUTPUTS_MAX];
        rondo_tensor after[CODE_PROGRAM_OUTPUTS_MAX];
        char path[1024];
        unsigned char lead[2] = {0};
        model_builder_init(&builder);
        Onnx__TensorProto *proto =
            model_builder_add_initializer(&builder, builder.graph, "w", rows[r].type, 1, dims);
        model_builder_set_raw(&builder, proto, raw, rows[r].bytes);
        model_builder_add_node(&builder, builder.graph, "Identity", "", "w", "y");
        model_builder_add_output(&builder, builder.graph, "y", rows[r].type, "5");
        const uint8_t *bytes = model_builder_pack(&builder, &count);
        OK(rondo_program_parse_onnx(bytes, count, &program));
        (void)snprintf(path, sizeof path, "%s/narrow.onnx", folder);
        OK(rondo_program_save_onnx(program, path));
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(lead, 1, sizeof lead, file), sizeof lead);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(lead[0], 8);  // the field of the IR version
        assert_int_equal(lead[1], rows[r].ir_version);
        rondo_program *again = save_and_load(program, "narrow");
        size_t before_count = 0;
        size_t after_count = 0;
        code_program_run_with(program, NULL, 0, before, &before_count);
        code_program_run_with(again, NULL, 0, after, &after_count);
        compare_all(before, before_count, after, after_count);
        rondo_program_destroy(again);
        rondo_program_destroy(program);
        model_builder_deinit(&builder);
    }
}

// ---- models from files

// The first data set of a model, for all inputs.
static size_t load_feeds(const rondo_program *program, const char *model, rondo_binding *feeds) {
    const size_t count = rondo_program_get_input_count(program);
    assert_in_range(count, 0, 8);
    for (size_t i = 0; i < count; ++i) {
        char path[1024];
        rondo_port port = {.struct_size = sizeof port};
        OK(rondo_program_get_input(program, i, &port));
        (void)snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", model, i);
        feeds[i].name = port.name;
        OK(rondo_port_load_onnx(&port, path, &feeds[i].tensor));
    }
    return count;
}

static void check_model(const char *model, const char *name) {
    char path[1024];
    rondo_program *program = NULL;
    rondo_binding feeds[8] = {{0}};
    rondo_tensor before[CODE_PROGRAM_OUTPUTS_MAX];
    rondo_tensor after[CODE_PROGRAM_OUTPUTS_MAX];
    size_t before_count = 0;
    size_t after_count = 0;
    (void)snprintf(path, sizeof path, "%s/model.onnx", model);
    OK(rondo_program_load_onnx(path, &program));
    rondo_program *again = save_and_load(program, name);
    const size_t feed_count = load_feeds(program, model, feeds);
    code_program_run_with(program, feeds, feed_count, before, &before_count);
    code_program_run_with(again, feeds, feed_count, after, &after_count);
    compare_all(before, before_count, after, after_count);
    for (size_t i = 0; i < feed_count; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
    rondo_program_destroy(again);
    rondo_program_destroy(program);
}

static size_t check_folder(const char *models) {
    size_t count = 0;
    char parent[600];
    (void)snprintf(parent, sizeof parent, "%s/%s", get_source_dir(), models);
    DIR *directory = opendir(parent);
    assert_non_null(directory);
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char model[900];
        struct stat facts;
        (void)snprintf(model, sizeof model, "%s/%s", parent, entry->d_name);
        if (entry->d_name[0] != '.' && stat(model, &facts) == 0 && S_ISDIR(facts.st_mode)) {
            check_model(model, entry->d_name);
            count += 1;
        }
    }
    closedir(directory);
    return count;
}

TEST(test_onnx_save__shipped_models) {
    assert_in_range(check_folder("tests/models"), 10, 1000);
    assert_in_range(check_folder("examples/models"), 1, 1000);
}

// ONNX's operator tests, where they are installed: what is loaded is saved and loaded again, or
// refused by name.
TEST(test_onnx_save__node_tests) {
    static const char parent[] = "/usr/share/libonnx-testdata/data/node";
    size_t saved_count = 0;
    DIR *directory = opendir(parent);
    if (directory == NULL) {
        print_message("skipped: no ONNX node tests in %s\n", parent);
        skip();
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char path[1024];
        rondo_program *program = NULL;
        (void)snprintf(path, sizeof path, "%s/%s/model.onnx", parent, entry->d_name);
        if (entry->d_name[0] == '.' || rondo_program_load_onnx(path, &program) != RONDO_STATUS_OK) {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s.onnx", folder, entry->d_name);
        const rondo_status status = rondo_program_save_onnx(program, path);
        rondo_program_destroy(program);
        if (status == RONDO_STATUS_OK) {
            OK(rondo_program_load_onnx(path, &program));
            rondo_program_destroy(program);
            assert_int_equal(remove(path), 0);
            saved_count += 1;
        } else if (status != RONDO_STATUS_UNSUPPORTED) {
            fail_msg("%s: %s", entry->d_name, rondo_error_get_last()->message);
        } else {
            print_message("%s: %s\n", entry->d_name, rondo_error_get_last()->message);
        }
    }
    closedir(directory);
    print_message("%zu saved\n", saved_count);
    assert_true(saved_count > 500);
}

// ---- what cannot be saved, and where

static void expect_failure(const rondo_program *program, const char *path, rondo_status status,
                           const char *words) {
    assert_int_equal(rondo_program_save_onnx(program, path), status);
    if (strstr(rondo_error_get_last()->message, words) == NULL) {
        fail_msg("no \"%s\" in: %s", words, rondo_error_get_last()->message);
    }
}

TEST(test_onnx_save__refuses_by_name) {
    model_builder builder;
    size_t count = 0;
    rondo_program *program = NULL;
    model_builder_init(&builder);
    model_builder_import_opset(&builder, "my", 1);
    Onnx__FunctionProto *function = model_builder_add_function(&builder, "my", "F", "a", "b");
    model_builder_add_function_node(&builder, function, "Relu", "a", "b");
    for (size_t i = 0; i < function->n_opset_import; ++i) {
        function->opset_import[i]->version = 14;
    }
    model_builder_add_input(&builder, builder.graph, "x", 1, "3");
    model_builder_add_node(&builder, builder.graph, "Abs", "", "x", "h");
    model_builder_add_node(&builder, builder.graph, "my:F", "", "h", "y");
    model_builder_add_output(&builder, builder.graph, "y", 1, "3");
    const uint8_t *bytes = model_builder_pack(&builder, &count);
    OK(rondo_program_parse_onnx(bytes, count, &program));
    expect_failure(NULL, "x", RONDO_STATUS_INVALID, "program is NULL");
    expect_failure(program, NULL, RONDO_STATUS_INVALID, "path is NULL");
    expect_failure(program, "/tmp/never.onnx", RONDO_STATUS_UNSUPPORTED,
                   "has version 14 of domain \"ai.onnx\"");
    rondo_program_destroy(program);
    OK(code_program_build(&code_programs[0], &program));
    expect_failure(program, "/no/such/folder/x.onnx", RONDO_STATUS_UNAVAILABLE, "/no/such/folder");
    rondo_program_destroy(program);
    model_builder_deinit(&builder);
}

// What ranks average with stands in no file.
TEST(test_onnx_save__refuses_collectives) {
    static const char *const inputs[] = {"x"}, *const outputs[] = {"y"};
    const rondo_port x = {
        .struct_size = sizeof x, .name = "x", .dtype = RONDO_DTYPE_F32, .rank = 1, .extent = {3}};
    rondo_builder *b;
    rondo_program *program;
    OK(rondo_builder_create(NULL, &b));
    OK(rondo_builder_add_input(b, &x));
    OK(rondo_builder_add_all_reduce(b, RONDO_REDUCTION_SUM, inputs, outputs, 1));
    OK(rondo_builder_add_output(b, "y", NULL));
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    expect_failure(program, "/tmp/never.onnx", RONDO_STATUS_UNSUPPORTED, "AllReduce");
    rondo_program_destroy(program);
}

// 2 GiB and more, all of them one page of zeros that is never touched.
TEST(test_onnx_save__two_gigabytes_are_too_many) {
    rondo_builder *builder = NULL;
    rondo_program *program = NULL;
    static const char nothing[64];
    const rondo_tensor tensor = {
        RONDO_DTYPE_U8, {1, {(int64_t)1 << 31}}, (void *)(uintptr_t)nothing, NULL, NULL};
    OK(rondo_builder_create(NULL, &builder));
    OK(rondo_builder_add_parameter(builder, "w", &tensor, RONDO_PARAMETER_SHARED));
    OK(rondo_builder_add_output(builder, "w", NULL));
    OK(rondo_builder_finish(builder, &program));
    expect_failure(program, "/tmp/never.onnx", RONDO_STATUS_UNSUPPORTED, "at most 2 GiB");
    rondo_program_destroy(program);
    rondo_builder_destroy(builder);
}

int main(void) {
    return RUN_TESTS(set_up, tear_down);
}
