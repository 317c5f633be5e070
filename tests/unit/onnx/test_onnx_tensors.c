// TensorProto to tensor: typed lists, raw bytes, mapped and external data, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "program/program.h"
#include "rondo/onnx.h"
#include "support/models/model_builder.h"
#include "support/models/parse_model.h"
#include "support/test.h"

static rondo_status load(model_builder *builder, const Onnx__TensorProto *proto,
                         rondo_tensor *out_tensor) {
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack_message(builder, &proto->base, &count);
    const char *folder = model_builder_make_folder(builder);
    const char *path = model_builder_write_file(builder, folder, "tensor.pb", bytes, count);
    rondo_status status = rondo_tensor_load_onnx(path, out_tensor);
    remove(path);
    remove(folder);
    return status;
}

static void assert_refused(model_builder *builder, const Onnx__TensorProto *proto,
                           rondo_status expected, const char *reason) {
    rondo_tensor tensor;
    rondo_status status = load(builder, proto, &tensor);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_NONE);
    const char *message = rondo_error_get_last()->message;
    if (status != expected || strstr(message, reason) == NULL) {
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, message, expected, reason);
    }
}

TEST(test_onnx_tensors__reads_raw_bytes) {
    const int64_t dims[2] = {2, 3};
    const float values[6] = {0, 1, 2, 3, 4, 5};
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "t", 1, 2, dims);
    model_builder_set_raw(*state, proto, values, sizeof(values));
    rondo_tensor tensor;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_F32);
    assert_int_equal(tensor.shape.rank, 2);
    assert_int_equal(tensor.shape.extent[1], 3);
    assert_memory_equal(tensor.data, values, sizeof(values));
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__reads_typed_lists) {
    const int64_t dims[1] = {3};
    float floats[3] = {1.5f, -2, 3};
    double doubles[3] = {1.5, -2, 3};
    int64_t longs[3] = {-1, INT64_MAX, 7};
    uint64_t unsigned_longs[3] = {1, 4294967295u, 7};
    int32_t ints[3] = {-1, 0x3C00, 200};
    rondo_tensor tensor;

    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "f32", 1, 1, dims);
    proto->n_float_data = 3;
    proto->float_data = floats;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_memory_equal(tensor.data, floats, sizeof(floats));
    rondo_tensor_deinit(&tensor);

    proto = model_builder_new_tensor(*state, "f64", 11, 1, dims);
    proto->n_double_data = 3;
    proto->double_data = doubles;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_memory_equal(tensor.data, doubles, sizeof(doubles));
    rondo_tensor_deinit(&tensor);

    proto = model_builder_new_tensor(*state, "i64", 7, 1, dims);
    proto->n_int64_data = 3;
    proto->int64_data = longs;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_memory_equal(tensor.data, longs, sizeof(longs));
    rondo_tensor_deinit(&tensor);

    proto = model_builder_new_tensor(*state, "u32", 12, 1, dims);
    proto->n_uint64_data = 3;
    proto->uint64_data = unsigned_longs;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    const uint32_t expected_u32[3] = {1, 4294967295u, 7};
    assert_memory_equal(tensor.data, expected_u32, sizeof(expected_u32));
    rondo_tensor_deinit(&tensor);

    proto = model_builder_new_tensor(*state, "f16", 10, 1, dims);
    proto->n_int32_data = 3;
    proto->int32_data = ints;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    const uint16_t expected_f16[3] = {0xFFFF, 0x3C00, 200};
    assert_memory_equal(tensor.data, expected_f16, sizeof(expected_f16));
    rondo_tensor_deinit(&tensor);

    proto = model_builder_new_tensor(*state, "bool", 9, 1, dims);
    proto->n_int32_data = 3;
    proto->int32_data = ints;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    const uint8_t expected_bool[3] = {1, 0, 1};
    assert_memory_equal(tensor.data, expected_bool, sizeof(expected_bool));
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__makes_bools_0_or_1) {
    const int64_t dims[1] = {4};
    const uint8_t bytes[4] = {0, 1, 2, 255};
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "b", 9, 1, dims);
    model_builder_set_raw(*state, proto, bytes, sizeof(bytes));
    rondo_tensor tensor;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    const uint8_t expected[4] = {0, 1, 1, 1};
    assert_memory_equal(tensor.data, expected, sizeof(expected));
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__reads_scalars_and_empty_tensors) {
    const int64_t dims[2] = {0, 5};
    const int64_t value = 42;
    rondo_tensor tensor;
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "empty", 1, 2, dims);
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(rondo_shape_get_count(&tensor.shape), 0);
    rondo_tensor_deinit(&tensor);
    proto = model_builder_new_tensor(*state, "scalar", 7, 0, NULL);
    model_builder_set_raw(*state, proto, &value, sizeof(value));
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(tensor.shape.rank, 0);
    assert_memory_equal(tensor.data, &value, sizeof(value));
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__refuses_wrong_byte_counts) {
    const int64_t dims[1] = {4};
    const float values[3] = {1, 2, 3};
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "short", 1, 1, dims);
    model_builder_set_raw(*state, proto, values, sizeof(values));
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "tensor \"short\" holds 12 bytes");
    proto = model_builder_new_tensor(*state, "none", 1, 1, dims);
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "holds 0 elements");
}

TEST(test_onnx_tensors__refuses_absurd_shapes) {
    const int64_t negative[1] = {-1};
    const int64_t huge[1] = {INT64_C(1) << 62};
    const int64_t overflowing[3] = {INT64_C(1) << 31, INT64_C(1) << 31, 16};
    const int64_t many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_refused(*state, model_builder_new_tensor(*state, "t", 1, 1, negative),
                   RONDO_STATUS_BAD_DATA, "negative");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 1, 1, huge), RONDO_STATUS_BAD_DATA,
                   "can be addressed");
    // One byte for each element fits into 64 bits, but is not in the file.
    assert_refused(*state, model_builder_new_tensor(*state, "t", 2, 1, huge), RONDO_STATUS_BAD_DATA,
                   "holds 0 elements");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 1, 3, overflowing),
                   RONDO_STATUS_BAD_DATA, "more elements");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 1, 9, many),
                   RONDO_STATUS_UNSUPPORTED, "rank 9");
}

TEST(test_onnx_tensors__refuses_other_element_types) {
    const int64_t dims[1] = {1};
    assert_refused(*state, model_builder_new_tensor(*state, "t", 8, 1, dims), RONDO_STATUS_BAD_DATA,
                   "holds 0 strings; its shape [1] needs 1");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 27, 1, dims),
                   RONDO_STATUS_UNSUPPORTED, "float6e2m3");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 28, 1, dims),
                   RONDO_STATUS_UNSUPPORTED, "float6e3m2");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 0, 1, dims), RONDO_STATUS_BAD_DATA,
                   "element type 0");
    assert_refused(*state, model_builder_new_tensor(*state, "t", -5, 1, dims),
                   RONDO_STATUS_BAD_DATA, "element type -5");
    assert_refused(*state, model_builder_new_tensor(*state, "t", 99, 1, dims),
                   RONDO_STATUS_BAD_DATA, "element type 99");
}

// Two or four elements a byte, as raw bytes or in int32_data; complex numbers as pairs.
TEST(test_onnx_tensors__reads_packed_elements) {
    static const uint8_t raw[3] = {0x21, 0xf3, 0xa4};  // more than is asked for is ignored: 0xa
    static const struct {
        int32_t type;
        rondo_dtype dtype;
        int64_t count, bytes;
        uint8_t elements[5];
    } rows[] = {
        {22, RONDO_DTYPE_I4, 5, 3, {1, 2, 3, 0xf, 4}},
        {21, RONDO_DTYPE_U4, 5, 3, {1, 2, 3, 0xf, 4}},
        {23, RONDO_DTYPE_F4E2M1, 5, 3, {1, 2, 3, 0xf, 4}},
        {26, RONDO_DTYPE_I2, 5, 2, {1, 0, 2, 0, 3}},
        {25, RONDO_DTYPE_U2, 4, 1, {1, 0, 2, 0}},
        {17, RONDO_DTYPE_F8E4M3FN, 3, 3, {0x21, 0xf3, 0xa4}},
        {24, RONDO_DTYPE_F8E8M0, 2, 2, {0x21, 0xf3}},
    };
    rondo_tensor tensor;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
        const int64_t dims[1] = {rows[r].count};
        int32_t ints[3] = {0x21, 0x7ff3, -92};  // the low byte of each counts
        for (int is_raw = 0; is_raw < 2; ++is_raw) {
            Onnx__TensorProto *proto = model_builder_new_tensor(*state, "t", rows[r].type, 1, dims);
            if (is_raw) {
                model_builder_set_raw(*state, proto, raw, (size_t)rows[r].bytes);
            } else {
                proto->int32_data = ints;
                proto->n_int32_data = (size_t)rows[r].bytes;
            }
            assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
            assert_int_equal(tensor.dtype, rows[r].dtype);
            assert_memory_equal(tensor.data, rows[r].elements, (size_t)rows[r].count);
            rondo_tensor_deinit(&tensor);
            // One byte less or more is too little or too much.
            for (int64_t off = -1; off <= 1; off += 2) {
                proto->raw_data.len = 0;
                proto->has_raw_data = false;
                proto->n_int32_data = 0;
                if (is_raw && rows[r].bytes + off > 0 && rows[r].bytes + off <= 3) {
                    model_builder_set_raw(*state, proto, raw, (size_t)(rows[r].bytes + off));
                } else {
                    proto->int32_data = ints;
                    proto->n_int32_data = (size_t)(off < 0 ? rows[r].bytes - 1 : 2);
                    if (proto->n_int32_data == (size_t)rows[r].bytes) {
                        continue;
                    }
                }
                assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "its shape");
            }
        }
    }
    // Shapes that no file could hold, and none at all.
    static const int64_t large[2] = {INT64_C(1) << 40, INT64_C(1) << 22};
    static const int64_t overflowing[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
    static const int64_t none[2] = {3, 0};
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "t", 26, 2, large);
    model_builder_set_raw(*state, proto, raw, 1);
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "holds 1 bytes");
    proto = model_builder_new_tensor(*state, "t", 22, 2, overflowing);
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "more elements than can be counted");
    proto = model_builder_new_tensor(*state, "t", 15, 2, large);
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "more bytes than can be addressed");
    proto = model_builder_new_tensor(*state, "t", 22, 2, none);
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(rondo_shape_get_count(&tensor.shape), 0);
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__reads_complex_numbers) {
    static const int64_t dims[1] = {2};
    float floats[4] = {1, -2, 3.5f, 0};
    double doubles[4] = {1, -2, 3.5, 0};
    rondo_tensor tensor;
    Onnx__TensorProto *proto = model_builder_new_tensor(*state, "t", 14, 1, dims);
    proto->float_data = floats;
    proto->n_float_data = 4;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_C64);
    assert_memory_equal(tensor.data, floats, sizeof floats);
    rondo_tensor_deinit(&tensor);
    proto->n_float_data = 2;
    assert_refused(*state, proto, RONDO_STATUS_BAD_DATA, "holds 2 elements; its shape [2] needs 4");
    proto = model_builder_new_tensor(*state, "t", 15, 1, dims);
    proto->double_data = doubles;
    proto->n_double_data = 4;
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_C128);
    assert_memory_equal(tensor.data, doubles, sizeof doubles);
    rondo_tensor_deinit(&tensor);
    proto = model_builder_new_tensor(*state, "t", 15, 1, dims);
    model_builder_set_raw(*state, proto, doubles, sizeof doubles);
    assert_int_equal(load(*state, proto, &tensor), RONDO_STATUS_OK);
    assert_memory_equal(tensor.data, doubles, sizeof doubles);
    rondo_tensor_deinit(&tensor);
}

TEST(test_onnx_tensors__reports_files_that_are_not_there) {
    rondo_tensor tensor;
    char *folder = model_builder_make_folder(*state);
    char path[300];
    snprintf(path, sizeof(path), "%s/absent.pb", folder);
    assert_int_equal(rondo_tensor_load_onnx(path, &tensor), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "absent.pb"));
    assert_int_equal(rondo_tensor_load_onnx(folder, &tensor), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "directory"));
    assert_int_equal(rondo_tensor_load_onnx(NULL, &tensor), RONDO_STATUS_INVALID);
    char *empty = model_builder_write_file(*state, folder, "empty.pb", "", 0);
    assert_int_equal(rondo_tensor_load_onnx(empty, &tensor), RONDO_STATUS_BAD_DATA);
    assert_non_null(strstr(rondo_error_get_last()->message, "empty"));
    remove(empty);
    remove(folder);
}

// ---- external data, through a model with one initializer

enum { WEIGHT_COUNT = 1024 };

static rondo_status load_external(model_builder *builder, const char *folder, const char *location,
                                  const char *offset, const char *length,
                                  rondo_program **out_program) {
    const int64_t dims[1] = {WEIGHT_COUNT};
    builder->graph->n_initializer = 0;
    builder->graph->n_output = 0;
    Onnx__TensorProto *weight =
        model_builder_add_initializer(builder, builder->graph, "weight", 1, 1, dims);
    model_builder_set_external(builder, weight, location, offset, length);
    model_builder_add_output(builder, builder->graph, "weight", 1, NULL);
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    const char *path = model_builder_write_file(builder, folder, "model.onnx", bytes, count);
    rondo_status status = rondo_program_load_onnx(path, out_program);
    remove(path);
    return status;
}

TEST(test_onnx_tensors__maps_external_data) {
    char *folder = model_builder_make_folder(*state);
    float values[WEIGHT_COUNT + 1];
    for (int i = 0; i <= WEIGHT_COUNT; ++i) {
        values[i] = (float)i;
    }
    char *data = model_builder_write_file(*state, folder, "data.bin", values, sizeof(values));
    rondo_program *program = NULL;
    assert_int_equal(load_external(*state, folder, "data.bin", "4", "4096", &program),
                     RONDO_STATUS_OK);
    const rondo_tensor *weight = &program->values[program->outputs[0]].constant;
    assert_memory_equal(weight->data, values + 1, WEIGHT_COUNT * sizeof(float));
    rondo_program_destroy(program);
    // Neither offset nor length: from the start, as much as the shape needs.
    assert_int_equal(load_external(*state, folder, "./data.bin", NULL, NULL, &program),
                     RONDO_STATUS_OK);
    rondo_program_destroy(program);
    remove(data);
    remove(folder);
}

static void assert_external_refused(model_builder *builder, const char *folder,
                                    const char *location, const char *offset, const char *length,
                                    rondo_status expected, const char *reason) {
    rondo_program *program = NULL;
    rondo_status status = load_external(builder, folder, location, offset, length, &program);
    assert_null(program);
    const char *message = rondo_error_get_last()->message;
    if (status != expected || strstr(message, reason) == NULL) {
        fail_msg("status %d, \"%s\"; expected %d, \"%s\"", status, message, expected, reason);
    }
}

TEST(test_onnx_tensors__refuses_bad_external_data) {
    char *folder = model_builder_make_folder(*state);
    uint8_t bytes[4096] = {0};
    char *data = model_builder_write_file(*state, folder, "data.bin", bytes, sizeof(bytes));
    const rondo_status bad = RONDO_STATUS_BAD_DATA;
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\nsize 4096\n";
    char *fetched =
        model_builder_write_file(*state, folder, "pointer.bin", pointer, sizeof pointer - 1);
    assert_external_refused(*state, folder, "pointer.bin", NULL, NULL, bad,
                            "external data \"pointer.bin\" is a Git LFS pointer");
    remove(fetched);
    assert_external_refused(*state, folder, "/etc/passwd", NULL, NULL, bad, "is absolute");
    assert_external_refused(*state, folder, "", NULL, NULL, bad, "the location is empty");
    assert_external_refused(*state, folder, "a\\b", NULL, NULL, bad, "has a backslash");
    assert_external_refused(*state, folder, "../data.bin", NULL, NULL, bad, "out of the model");
    assert_external_refused(*state, folder, "a/../../b", NULL, NULL, bad, "out of the model");
    assert_external_refused(*state, folder, "..", NULL, NULL, bad, "out of the model");
    assert_external_refused(*state, folder, NULL, NULL, NULL, bad, "no location");
    assert_external_refused(*state, folder, "data.bin", "1", NULL, bad, "beyond the end");
    assert_external_refused(*state, folder, "data.bin", "999999999999999999", NULL, bad,
                            "beyond the end");
    assert_external_refused(*state, folder, "data.bin", "-4", NULL, bad,
                            "offset \"-4\" is no whole number");
    assert_external_refused(*state, folder, "data.bin", "", NULL, bad, "is no whole number");
    assert_external_refused(*state, folder, "data.bin", "9223372036854775807", NULL, bad,
                            "4096 bytes from 9223372036854775807 on lie beyond");
    assert_external_refused(*state, folder, "data.bin", "18446744073709551615", NULL, bad,
                            "beyond the end");
    assert_external_refused(*state, folder, "data.bin", "99999999999999999999", NULL, bad,
                            "offset 99999999999999999999 is larger than any file");
    assert_external_refused(*state, folder, "data.bin", NULL, "9223372036854775807", bad,
                            "length is 9223372036854775807; its shape needs 4096 bytes");
    assert_external_refused(*state, folder, "data.bin", "0", "4095", bad, "length is 4095");
    assert_external_refused(*state, folder, "data.bin", "0", "1e3", bad,
                            "length \"1e3\" is no whole number");
    assert_external_refused(*state, folder, "absent.bin", NULL, NULL, RONDO_STATUS_UNAVAILABLE,
                            "absent.bin");
    remove(data);
    remove(folder);
}

// What a location leads to through links: inside is fine, outside is not.
TEST(test_onnx_tensors__external_data_stays_in_the_folder) {
    char *outside = model_builder_make_folder(*state);
    char *folder = model_builder_make_folder(*state);
    uint8_t bytes[4096] = {0};
    char *secret = model_builder_write_file(*state, outside, "secret.bin", bytes, sizeof bytes);
    char *data = model_builder_write_file(*state, folder, "data.bin", bytes, sizeof bytes);
    static const struct {
        const char *link;
        const char *target;  // NULL: a folder; %s: the folder outside
        const char *location;
        rondo_status status;
        const char *reason;
    } rows[] = {
        {"sub", NULL, "sub", RONDO_STATUS_UNAVAILABLE, "a directory"},
        {"link.bin", "data.bin", "link.bin", RONDO_STATUS_OK, ""},
        {"twice.bin", "link.bin", "./twice.bin", RONDO_STATUS_OK, ""},
        {"sub/up.bin", "../data.bin", "sub/up.bin", RONDO_STATUS_OK, ""},
        {"here", ".", "here/here/data.bin", RONDO_STATUS_OK, ""},
        {"out.bin", "%s/secret.bin", "out.bin", RONDO_STATUS_BAD_DATA, "out of the model's folder"},
        {"again.bin", "out.bin", "again.bin", RONDO_STATUS_BAD_DATA, "out of the model's folder"},
        {"away", "%s", "away/secret.bin", RONDO_STATUS_BAD_DATA, "out of the model's folder"},
        {"up", "..", "up/secret.bin", RONDO_STATUS_UNAVAILABLE, "No such file"},
        {"root.bin", "/etc/passwd", "root.bin", RONDO_STATUS_BAD_DATA, "out of the model's folder"},
        {"none.bin", "absent.bin", "none.bin", RONDO_STATUS_UNAVAILABLE, "No such file"},
        {"loop.bin", "loop.bin", "loop.bin", RONDO_STATUS_UNAVAILABLE, "cannot open"},
    };
    const size_t count = sizeof rows / sizeof rows[0];
    char path[512];
    for (size_t i = 0; i < count; ++i) {
        char target[512];
        rondo_program *program = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", folder, rows[i].link);
        if (rows[i].target == NULL) {
            assert_int_equal(mkdir(path, 0777), 0);
        } else {
            const bool is_outside = strncmp(rows[i].target, "%s", 2) == 0;
            (void)snprintf(target, sizeof target, "%s%s", is_outside ? outside : "",
                           rows[i].target + (is_outside ? 2 : 0));
            assert_int_equal(symlink(target, path), 0);
        }
        rondo_status status = load_external(*state, folder, rows[i].location, NULL, NULL, &program);
        const char *message = rondo_error_get_last()->message;
        if (status != rows[i].status ||
            (status != RONDO_STATUS_OK && strstr(message, rows[i].reason) == NULL)) {
            fail_msg("%s: status %d, \"%s\"", rows[i].location, status, message);
        }
        rondo_program_destroy(program);
    }
    // A folder whose name begins like the model's is another one.
    (void)snprintf(path, sizeof path, "%s2", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    char *near = model_builder_write_file(*state, path, "secret.bin", bytes, sizeof bytes);
    char near_link[512];
    (void)snprintf(near_link, sizeof near_link, "%s/near.bin", folder);
    assert_int_equal(symlink(near, near_link), 0);
    assert_external_refused(*state, folder, "near.bin", NULL, NULL, RONDO_STATUS_BAD_DATA,
                            "out of the model's folder");
    remove(near_link);
    remove(near);
    remove(path);
    for (size_t i = count; i-- > 0;) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, rows[i].link);
        remove(path);
    }
    remove(data);
    remove(secret);
    remove(folder);
    remove(outside);
}

// Caches keep models and their data as links into a folder of blobs.
TEST(test_onnx_tensors__a_linked_model_finds_data_beside_both) {
    model_builder *builder = *state;
    char *blobs = model_builder_make_folder(builder);
    char *snapshot = model_builder_make_folder(builder);
    uint8_t bytes[4096] = {0};
    char *blob = model_builder_write_file(builder, blobs, "blob1", bytes, sizeof bytes);
    const int64_t dims[1] = {WEIGHT_COUNT};
    Onnx__TensorProto *weight =
        model_builder_add_initializer(builder, builder->graph, "weight", 1, 1, dims);
    model_builder_set_external(builder, weight, "model.onnx_data", NULL, NULL);
    model_builder_add_output(builder, builder->graph, "weight", 1, NULL);
    size_t count = 0;
    const uint8_t *packed = model_builder_pack(builder, &count);
    char *model = model_builder_write_file(builder, blobs, "blob2", packed, count);
    char model_link[512];
    char data_link[512];
    (void)snprintf(model_link, sizeof model_link, "%s/model.onnx", snapshot);
    (void)snprintf(data_link, sizeof data_link, "%s/model.onnx_data", snapshot);
    assert_int_equal(symlink(model, model_link), 0);
    assert_int_equal(symlink(blob, data_link), 0);
    rondo_program *program = NULL;
    assert_int_equal(rondo_program_load_onnx(model_link, &program), RONDO_STATUS_OK);
    rondo_program_destroy(program);
    // Not so when the model itself lies in the folder.
    remove(model_link);
    char *own = model_builder_write_file(builder, snapshot, "model.onnx", packed, count);
    assert_int_equal(rondo_program_load_onnx(own, &program), RONDO_STATUS_BAD_DATA);
    remove(own);
    remove(data_link);
    remove(model);
    remove(blob);
    remove(snapshot);
    remove(blobs);
}

TEST(test_onnx_tensors__refuses_external_data_of_models_in_memory) {
    model_builder *builder = *state;
    const int64_t dims[1] = {4};
    Onnx__TensorProto *weight =
        model_builder_add_initializer(builder, builder->graph, "weight", 1, 1, dims);
    model_builder_set_external(builder, weight, "data.bin", NULL, NULL);
    model_builder_add_output(builder, builder->graph, "weight", 1, NULL);
    size_t count = 0;
    const uint8_t *bytes = model_builder_pack(builder, &count);
    rondo_program *program = NULL;
    assert_int_equal(rondo_program_parse_onnx(bytes, count, &program), RONDO_STATUS_UNSUPPORTED);
    assert_null(program);
}

TEST_MAIN_WITH(parse_model_set_up, parse_model_tear_down)
