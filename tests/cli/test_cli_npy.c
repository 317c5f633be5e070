// .npy files: every type there and back, foreign byte order, and files that lie.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "npy.h"
#include "output_file.h"
#include "support/test.h"

static char path[] = "/tmp/rondo_npy_XXXXXX";

static int make_file(void **state) {
    (void)state;
    const int descriptor = mkstemp(path);
    return descriptor < 0 ? -1 : close(descriptor);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void write_bytes(const char *header, const void *elements, size_t element_bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    const size_t length = strlen(header);
    const unsigned char lead[10] = {0x93,
                                    'N',
                                    'U',
                                    'M',
                                    'P',
                                    'Y',
                                    1,
                                    0,
                                    (unsigned char)(length & 0xff),
                                    (unsigned char)(length >> 8)};
    assert_int_equal(fwrite(lead, 1, sizeof lead, file), sizeof lead);
    assert_int_equal(fwrite(header, 1, length, file), length);
    assert_int_equal(fwrite(elements, 1, element_bytes, file), element_bytes);
    assert_int_equal(fclose(file), 0);
}

TEST(test_cli_npy__every_dtype_there_and_back) {
    for (rondo_dtype dtype = RONDO_DTYPE_F32; dtype < RONDO_DTYPE_COUNT; dtype++) {
        if (dtype == RONDO_DTYPE_STRING || dtype == RONDO_DTYPE_SEQUENCE ||
            dtype == RONDO_DTYPE_OPTIONAL) {
            continue;
        }
        for (int32_t rank = 0; rank <= 3; rank++) {
            const rondo_shape shape = {
                .rank = rank, .extent = {rank > 0 ? 2 : 0, rank > 1 ? 3 : 0, rank > 2 ? 1 : 0}};
            rondo_tensor tensor;
            rondo_tensor back;
            assert_int_equal(rondo_tensor_init(dtype, &shape, &tensor), RONDO_STATUS_OK);
            const size_t bytes = rondo_tensor_get_bytes(&tensor);
            for (size_t i = 0; i < bytes; i++) {
                ((uint8_t *)tensor.data)[i] = (uint8_t)(i * 37 + 1);
            }
            assert_true(cli_npy_write(path, &tensor));
            assert_true(cli_npy_read(path, dtype, &back));
            assert_int_equal(back.dtype, dtype);
            assert_true(rondo_shape_is_equal(&back.shape, &shape));
            assert_memory_equal(back.data, tensor.data, bytes);
            rondo_tensor_deinit(&tensor);
            rondo_tensor_deinit(&back);
        }
    }
}

TEST(test_cli_npy__strings_there_and_back) {
    // One character of each length that UTF-8 has, and none at all.
    rondo_string words[4] = {
        {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10}, {"", 0}, {"x\0y", 3}, {"z", 1}};
    const rondo_shape shape = {.rank = 2, .extent = {2, 2}};
    rondo_tensor tensor;
    rondo_tensor back;
    assert_int_equal(rondo_tensor_init_strings(&shape, words, &tensor), RONDO_STATUS_OK);
    assert_true(cli_npy_write(path, &tensor));
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &back));
    assert_int_equal(back.dtype, RONDO_DTYPE_STRING);
    assert_true(rondo_shape_is_equal(&back.shape, &shape));
    for (size_t i = 0; i < 4; i++) {
        const rondo_string *string = (const rondo_string *)back.data + i;
        assert_int_equal(string->size, words[i].size);
        assert_memory_equal(string->data, words[i].data, words[i].size);
    }
    rondo_tensor_deinit(&back);
    rondo_tensor_deinit(&tensor);
    // What NumPy cannot hold is refused, and no file is left behind by it.
    static const rondo_string refused[] = {{"\xff", 1},         {"\xc0\x80", 2},
                                           {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4},
                                           {"\xe2\x82", 2},     {"a\0", 2}};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const rondo_shape scalar = {0};
        assert_int_equal(rondo_tensor_init_strings(&scalar, &refused[i], &tensor), RONDO_STATUS_OK);
        assert_false(cli_npy_write(path, &tensor));
        rondo_tensor_deinit(&tensor);
    }
}

TEST(test_cli_npy__strings_of_every_kind) {
    const unsigned char big[16] = {0, 0, 0, 'h', 0, 0, 1, 0, 0, 0, 0, 'i', 0, 0, 0, 0};
    const unsigned char bytes[6] = {'h', 'i', 0, 'y', 0, 0};
    rondo_tensor tensor;
    write_bytes("{'descr': '>U2', 'fortran_order': False, 'shape': (2,), }", big, sizeof big);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_string_equal(((const rondo_string *)tensor.data)[0].data, "h\xc4\x80");
    assert_string_equal(((const rondo_string *)tensor.data)[1].data, "i");
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", bytes, sizeof bytes);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_string_equal(((const rondo_string *)tensor.data)[0].data, "hi");
    assert_string_equal(((const rondo_string *)tensor.data)[1].data, "y");
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '<U0', 'fortran_order': False, 'shape': (3,), }", bytes, 0);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_int_equal(((const rondo_string *)tensor.data)[2].size, 0);
    rondo_tensor_deinit(&tensor);
    // No text: a number that is no character, a count that the file does not hold, another order.
    static const char *const refused[] = {
        "{'descr': '<U1', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<U2', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1025,), }",
        "{'descr': '<U99999999999', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<U1x', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|S2', 'fortran_order': True, 'shape': (2, 2), }",
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        write_bytes(refused[i], big, sizeof big);
        assert_false(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    }
}

TEST(test_cli_npy__elements_are_aligned) {
    float values[2] = {1.0f, 2.0f};
    const rondo_tensor tensor = {
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {2}}, .data = values};
    assert_true(cli_npy_write(path, &tensor));
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    assert_int_equal((size_t)ftell(file) % 64, sizeof values);
    assert_int_equal(fclose(file), 0);
}

TEST(test_cli_npy__big_endian_is_turned) {
    const unsigned char elements[4] = {0x01, 0x02, 0x03, 0x04};
    rondo_tensor tensor;
    write_bytes("{'descr': '>u2', 'fortran_order': False, 'shape': (2,), }", elements, 4);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_int_equal(((const uint16_t *)tensor.data)[0], 0x0102);
    assert_int_equal(((const uint16_t *)tensor.data)[1], 0x0304);
    rondo_tensor_deinit(&tensor);
}

// As NumPy saves arrays of ml_dtypes.
TEST(test_cli_npy__bytes_are_of_the_wanted_type) {
    const unsigned char elements[4] = {0x0f, 0x07, 0x08, 0x00};
    static const rondo_dtype types[] = {RONDO_DTYPE_I4, RONDO_DTYPE_F8E5M2, RONDO_DTYPE_NONE};
    rondo_tensor tensor;
    write_bytes("{'descr': '<V1', 'fortran_order': False, 'shape': (4,), }", elements, 4);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        assert_true(cli_npy_read(path, types[i], &tensor));
        assert_int_equal(tensor.dtype, types[i] == RONDO_DTYPE_NONE ? RONDO_DTYPE_U8 : types[i]);
        assert_memory_equal(tensor.data, elements, sizeof elements);
        rondo_tensor_deinit(&tensor);
    }
    assert_false(cli_npy_read(path, RONDO_DTYPE_F32, &tensor));
    assert_false(cli_npy_read(path, RONDO_DTYPE_BF16, &tensor));
}

TEST(test_cli_npy__complex_parts_are_turned) {
    const unsigned char elements[8] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    rondo_tensor tensor;
    write_bytes("{'descr': '>c8', 'fortran_order': False, 'shape': (1,), }", elements, 8);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_int_equal(tensor.dtype, RONDO_DTYPE_C64);
    assert_true(((const float *)tensor.data)[0] == 1.0f);
    assert_true(((const float *)tensor.data)[1] == -2.0f);
    rondo_tensor_deinit(&tensor);
}

TEST(test_cli_npy__fortran_order_is_turned) {
    const float elements[6] = {1, 2, 3, 4, 5, 6};
    const float rows[6] = {1, 3, 5, 2, 4, 6};   // of [2, 3], whose columns the file holds
    const float cubes[6] = {1, 4, 2, 5, 3, 6};  // of [1, 3, 2]
    rondo_tensor tensor;
    write_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (4,), }", elements, 16);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_memory_equal(tensor.data, elements, 16);
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", elements, 24);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_memory_equal(tensor.data, rows, sizeof rows);
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 3, 2), }", elements, 24);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    assert_memory_equal(tensor.data, cubes, sizeof cubes);
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 3), }", elements, 24);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));
    rondo_tensor_deinit(&tensor);
    write_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }", elements, 24);
    assert_true(cli_npy_read(path, RONDO_DTYPE_NONE, &tensor));  // as Python 2 wrote it
    rondo_tensor_deinit(&tensor);
}

// Whatever Python takes for the dictionary, and NumPy for the type.
TEST(test_cli_npy__headers_of_other_writers) {
    static const char *const headers[] = {
        "{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (4,), }",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'float32', 'fortran_order': False, 'shape': (4,), }",
        "{'shape' : (2,2), \"descr\" : '=f4','fortran_order' :False}",
    };
    const float elements[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        rondo_tensor tensor;
        write_bytes(headers[i], elements, sizeof elements);
        if (!cli_npy_read(path, RONDO_DTYPE_NONE, &tensor)) {
            fail_msg("refused: %s", headers[i]);
        }
        assert_int_equal(tensor.dtype, RONDO_DTYPE_F32);
        assert_memory_equal(tensor.data, elements, sizeof elements);
        rondo_tensor_deinit(&tensor);
    }
}

TEST(test_cli_npy__lies_are_refused) {
    static const char *const headers[] = {
        "",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 4, }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<c32', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4', 'shape': (4,), }",
        "{'descr': '<f1', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<V1', 'fortran_order': False, 'shape': (17,), }",
        "{'descr': '|V3', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': 'float3', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4\", 'fortran_order': False, 'shape: (4,), }",
        "{'descr': '",
    };
    const float elements[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        rondo_tensor tensor;
        write_bytes(headers[i], elements, sizeof elements);
        if (cli_npy_read(path, RONDO_DTYPE_NONE, &tensor)) {
            fail_msg("accepted: %s", headers[i]);
        }
        assert_null(tensor.data);
    }
}

// ---- writing ----------------------------------------------------------------------------------

// Files of `folder`.
static int count_files(const char *folder) {
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (const struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        count += entry->d_name[0] != '.' || entry->d_name[1] == 'r' ? 1 : 0;
    }
    (void)closedir(entries);
    return count;
}

// A signal in the middle of writing ends the process as ever, and takes the temporary files along.
TEST(test_cli_npy__signals_leave_no_temporary_file) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    char folder[] = "/tmp/rondo_signal_XXXXXX";
    char first[64];
    char second[64];
    assert_non_null(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/first", folder);
    snprintf(second, sizeof second, "%s/second", folder);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int status = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            cli_output outputs[2];
            if (cli_output_open(first, &outputs[0]) && cli_output_open(second, &outputs[1]) &&
                fputs("half", outputs[0].file) >= 0 && count_files(folder) == 2) {
                (void)raise(numbers[i]);
            }
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), numbers[i]);
        assert_int_equal(count_files(folder), 0);
    }
    // Once a file is written, signals are the program's own again.
    cli_output output;
    assert_true(cli_output_open(first, &output));
    assert_true(cli_output_close(&output));
    assert_true(signal(SIGTERM, SIG_DFL) == SIG_DFL);
    assert_int_equal(count_files(folder), 1);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    return RUN_TESTS(make_file, remove_file);
}
