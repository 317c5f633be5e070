// Values in files of their own: strings, sequences, optionals, the maps that a ZipMap would make;
// ports of such types; and nonsense instead of them.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "rondo/onnx.h"
#include "support/expect_ok.h"
#include "support/models/model_builder.h"
#include "support/source_dir.h"
#include "support/test.h"

// Fields as they are written: tag, length, bytes.
#define TENSOR_F32(x) "\x10\x01\x4a\x04" x /* data_type 1, raw_data of 4 bytes */
#define ONE "\x00\x00\x80\x3f"             /* 1.0f */
#define TWO "\x00\x00\x00\x40"             /* 2.0f */
#define SEQUENCE_OF_TWO "\x1a\x08" TENSOR_F32(ONE) "\x1a\x08" TENSOR_F32(TWO)

typedef struct text {
    const char *bytes;
    size_t count;
} text;

#define TEXT(literal) ((text){literal, sizeof(literal) - 1})

static rondo_status load(model_builder *builder, const rondo_port *port, text file,
                         rondo_tensor *out_tensor) {
    char *folder = model_builder_make_folder(builder);
    const char *path =
        model_builder_write_file(builder, folder, "value.pb", file.bytes, file.count);
    rondo_status status = rondo_port_load_onnx(port, path, out_tensor);
    (void)remove(path);
    (void)remove(folder);
    return status;
}

static int set_up(void **state) {
    static model_builder builder;
    model_builder_init(&builder);
    *state = &builder;
    return 0;
}

static int tear_down(void **state) {
    model_builder_deinit(*state);
    return 0;
}

static float get_float(const rondo_tensor *tensor) {
    assert_non_null(tensor);
    assert_int_equal(tensor->dtype, RONDO_DTYPE_F32);
    return *(const float *)tensor->data;
}

TEST(test_onnx_values__sequences_and_optionals) {
    const rondo_port sequence = {.struct_size = sizeof sequence, .dtype = RONDO_DTYPE_SEQUENCE};
    const rondo_port optional = {.struct_size = sizeof optional, .dtype = RONDO_DTYPE_OPTIONAL};
    rondo_tensor tensor;
    // A name and an element type stand in front, as ONNX writes them.
    OK(load(*state, &sequence, TEXT("\x0a\x01q\x10\x01" SEQUENCE_OF_TWO), &tensor));
    assert_int_equal(tensor.shape.extent[0], 2);
    assert_true(get_float(rondo_tensor_get_item(&tensor, 1)) == 2.0f);
    rondo_tensor_deinit(&tensor);
    OK(load(*state, &sequence, TEXT(""), &tensor));
    assert_int_equal(tensor.shape.extent[0], 0);
    rondo_tensor_deinit(&tensor);
    OK(load(*state, &optional, TEXT("\x10\x01\x1a\x08" TENSOR_F32(TWO)), &tensor));
    assert_true(get_float(rondo_tensor_get_item(&tensor, 0)) == 2.0f);
    rondo_tensor_deinit(&tensor);
    OK(load(*state, &optional, TEXT("\x10\x03\x2a\x14" SEQUENCE_OF_TWO), &tensor));
    const rondo_tensor *held = rondo_tensor_get_item(&tensor, 0);
    assert_true(get_float(rondo_tensor_get_item(held, 0)) == 1.0f);
    rondo_tensor_deinit(&tensor);
    OK(load(*state, &optional, TEXT("\x10\x00"), &tensor));
    assert_null(rondo_tensor_get_item(&tensor, 0));
    rondo_tensor_deinit(&tensor);
}

// Labels "b" and "a"; the maps list "a" first.
TEST(test_onnx_values__maps_become_scores) {
    const rondo_string words[] = {{"b", 1}, {"a", 1}};
    rondo_tensor labels;
    rondo_tensor scores;
    OK(rondo_tensor_init_strings(&(rondo_shape){.rank = 1, .extent = {2}}, words, &labels));
    const rondo_port port = {
        .struct_size = sizeof port, .dtype = RONDO_DTYPE_F32, .labels = &labels};
#define MAP(first, second) "\x32\x1c\x22\x01" first "\x22\x01" second "\x2a\x14" SEQUENCE_OF_TWO
    OK(load(*state, &port, TEXT(MAP("a", "b") MAP("b", "a")), &scores));
    const float *values = scores.data;
    assert_int_equal(scores.shape.extent[0], 2);
    assert_int_equal(scores.shape.extent[1], 2);
    assert_true(values[0] == 2.0f && values[1] == 1.0f && values[2] == 1.0f && values[3] == 2.0f);
    rondo_tensor_deinit(&scores);
    assert_int_equal(load(*state, &port, TEXT(MAP("a", "c")), &scores), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "entry 1 of a map is no score"));
    rondo_tensor_deinit(&labels);
    int64_t numbers[2] = {7, 300};
    labels = (rondo_tensor){
        .dtype = RONDO_DTYPE_I64, .shape = {.rank = 1, .extent = {2}}, .data = numbers};
    OK(load(*state, &port, TEXT("\x32\x1b\x18\xac\x02\x18\x07\x2a\x14" SEQUENCE_OF_TWO), &scores));
    values = scores.data;
    assert_true(values[0] == 2.0f && values[1] == 1.0f);
    rondo_tensor_deinit(&scores);
}

TEST(test_onnx_values__nonsense_is_refused) {
    const rondo_port sequence = {.struct_size = sizeof sequence, .dtype = RONDO_DTYPE_SEQUENCE};
    const rondo_port optional = {.struct_size = sizeof optional, .dtype = RONDO_DTYPE_OPTIONAL};
    const rondo_port plain = {.struct_size = sizeof plain, .dtype = RONDO_DTYPE_F32};
    static const struct {
        const char *kind;
        text file;
        rondo_status status;
        const char *part;
    } rows[] = {
        {"sequence",
         {"\x1a\x08" TENSOR_F32(ONE) "\x1a\x05\x10\x03\x4a\x01\x07", 17},
         RONDO_STATUS_BAD_DATA,
         "item 1 is i8, item 0 is f32"},
        {"sequence", {"\x2a\x00", 2}, RONDO_STATUS_UNSUPPORTED, "holds no plain tensors"},
        {"sequence", {"\x1a\x7f\x10", 3}, RONDO_STATUS_BAD_DATA, "reaches beyond its end"},
        {"sequence", {"\x1a\x02\x10\x1b", 4}, RONDO_STATUS_UNSUPPORTED, "float6e2m3"},
        {"sequence", {TENSOR_F32(ONE), 8}, RONDO_STATUS_BAD_DATA, "where a sequence is expected"},
        {"optional", {TENSOR_F32(ONE), 8}, RONDO_STATUS_BAD_DATA, "where an optional is expected"},
        {"optional",
         {"\x1a\x08" TENSOR_F32(ONE) "\x1a\x08" TENSOR_F32(ONE), 20},
         RONDO_STATUS_BAD_DATA,
         "an optional has 2 elements"},
        {"optional", {"\x3a\x00", 2}, RONDO_STATUS_UNSUPPORTED, "holds no plain tensors"},
        {"plain", {"", 0}, RONDO_STATUS_BAD_DATA, "the file is empty"},
        {"plain",
         {"\x08\x02\x10\x08\x32\x01x", 7},
         RONDO_STATUS_BAD_DATA,
         "holds 1 strings; its shape [2] needs 2"},
        {"plain",
         {"\x08\x01\x10\x08\x32\x01x\x4a\x01x", 10},
         RONDO_STATUS_BAD_DATA,
         "which cannot be raw bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        const rondo_port *port = rows[i].kind[0] == 's'   ? &sequence
                                 : rows[i].kind[0] == 'o' ? &optional
                                                          : &plain;
        rondo_tensor tensor = {.dtype = RONDO_DTYPE_F32};
        rondo_status status = load(*state, port, rows[i].file, &tensor);
        if (status != rows[i].status ||
            strstr(rondo_error_get_last()->message, rows[i].part) == NULL) {
            fail_msg("row %zu: %s \"%s\"", i, rondo_status_get_name(status),
                     rondo_error_get_last()->message);
        }
        assert_int_equal(tensor.dtype, RONDO_DTYPE_NONE);
    }
    rondo_tensor tensor;
    assert_int_equal(rondo_port_load_onnx(NULL, "x", &tensor), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_port_load_onnx(&plain, NULL, &tensor), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_port_load_onnx(&plain, "x", NULL), RONDO_STATUS_INVALID);
}

// Whatever a byte is changed to, and wherever the file ends: a value or a refusal, no more.
TEST(test_onnx_values__any_byte_may_be_wrong) {
    const rondo_port ports[] = {{.struct_size = sizeof *ports, .dtype = RONDO_DTYPE_SEQUENCE},
                                {.struct_size = sizeof *ports, .dtype = RONDO_DTYPE_OPTIONAL}};
    const text file = TEXT("\x10\x03\x2a\x14" SEQUENCE_OF_TWO);
    char changed[64];
    for (size_t at = 0; at < file.count; ++at) {
        for (int change = 0; change < 4; ++change) {
            memcpy(changed, file.bytes, file.count);
            changed[at] = (char)(change == 3 ? 0xff : (changed[at] ^ (1 << (3 * change))));
            size_t count = change == 3 ? at : file.count;
            rondo_tensor tensor;
            if (load(*state, &ports[change % 2], (text){changed, count}, &tensor) ==
                RONDO_STATUS_OK) {
                rondo_tensor_deinit(&tensor);
            }
        }
    }
}

TEST(test_onnx_values__ports_say_what_they_hold) {
    static const struct {
        const char *model;
        size_t port;  // inputs, then outputs
        rondo_dtype dtype;
        rondo_dtype items[2];
    } rows[] = {
        {"words_and_lists", 0, RONDO_DTYPE_STRING, {0, 0}},
        {"words_and_lists", 1, RONDO_DTYPE_SEQUENCE, {RONDO_DTYPE_F32, 0}},
        {"words_and_lists", 2, RONDO_DTYPE_OPTIONAL, {RONDO_DTYPE_F32, 0}},
        {"flower_trees", 1, RONDO_DTYPE_STRING, {0, 0}},
        {"flower_trees", 2, RONDO_DTYPE_F32, {0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char path[512];
        rondo_program *program;
        rondo_port port = {.struct_size = sizeof port};
        (void)snprintf(path, sizeof path, "%s/tests/models/%s/model.onnx", get_source_dir(),
                       rows[i].model);
        OK(rondo_program_load_onnx(path, &program));
        size_t inputs = rondo_program_get_input_count(program);
        if (rows[i].port < inputs) {
            OK(rondo_program_get_input(program, rows[i].port, &port));
        } else {
            OK(rondo_program_get_output(program, rows[i].port - inputs, &port));
        }
        assert_int_equal(port.dtype, rows[i].dtype);
        assert_int_equal(port.item_dtype[0], rows[i].items[0]);
        assert_int_equal(port.item_dtype[1], rows[i].items[1]);
        bool has_labels = strcmp(port.name, "probabilities") == 0;
        assert_true((port.labels != NULL) == has_labels);
        if (has_labels) {
            assert_int_equal(port.labels->shape.extent[0], 3);
            assert_string_equal(((const rondo_string *)port.labels->data)[1].data, "versicolor");
        }
        rondo_program_destroy(program);
    }
}

TEST_MAIN_WITH(set_up, tear_down)
