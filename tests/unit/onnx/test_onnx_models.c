// Every model at hand: the ONNX node tests of the system, where they are installed, and the models
// that ship with the sources. Each one loads or is refused with a clear reason; the list of what is
// missing agrees with that; and a copy of each program stands on its own.
//
// RONDO_ONNX_TESTS names another folder of ONNX test directories.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <sys/stat.h>

#include "program/program.h"
#include "rondo/onnx.h"
#include "support/source_dir.h"
#include "support/test.h"

typedef struct model_tally {
    int loaded_count;
    int unsupported_count;
} model_tally;

static void count_missing(void *user_data, const char *domain, const char *op, int64_t version,
                          const char *detail, size_t count) {
    (void)domain;
    (void)version;
    (void)detail;
    assert_true(op[0] != '\0');
    *(size_t *)user_data += count;
}

static void check_copy(rondo_program *program) {
    rondo_program *copy = NULL;
    assert_int_equal(rondo__program_clone(program, &copy), RONDO_STATUS_OK);
    rondo_program_destroy(program);
    assert_int_equal(rondo__program_verify(copy), RONDO_STATUS_OK);
    size_t output_count = rondo_program_get_output_count(copy);
    assert_int_equal(rondo__program_remove_dead(copy), RONDO_STATUS_OK);
    assert_int_equal(rondo_program_get_output_count(copy), output_count);
    assert_int_equal(rondo__program_verify(copy), RONDO_STATUS_OK);
    rondo_program_destroy(copy);
}

static void check_model(const char *path, model_tally *tally) {
    rondo_program *program = NULL;
    size_t missing_count = 0;
    rondo_status status = rondo_program_load_onnx(path, &program);
    if (status == RONDO_STATUS_OK) {
        tally->loaded_count += 1;
        check_copy(program);
    } else if (status == RONDO_STATUS_UNSUPPORTED &&
               strncmp(rondo_error_get_last()->message, "unsupported: ", 13) == 0) {
        tally->unsupported_count += 1;
    } else {
        fail_msg("%s: %s", path, rondo_error_get_last()->message);
    }
    assert_int_equal(rondo_onnx_list_unsupported(path, count_missing, &missing_count),
                     RONDO_STATUS_OK);
    if (status == RONDO_STATUS_OK) {
        assert_int_equal(missing_count, 0);
    } else {
        assert_true(missing_count > 0);
    }
}

// Checks FOLDER/*/model.onnx; returns false when there is no such folder.
static bool check_folder(const char *folder, model_tally *tally) {
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        return false;
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        char path[1024];
        struct stat facts;
        snprintf(path, sizeof(path), "%s/%s/model.onnx", folder, entry->d_name);
        if (entry->d_name[0] != '.' && stat(path, &facts) == 0) {
            check_model(path, tally);
        }
    }
    closedir(directory);
    return true;
}

TEST(test_onnx_models__node_tests) {
    const char *folder = getenv("RONDO_ONNX_TESTS");
    model_tally tally = {0};
    if (folder == NULL) {
        folder = "/usr/share/libonnx-testdata/data/node";
    }
    if (!check_folder(folder, &tally)) {
        print_message("skipped: no ONNX node tests in %s\n", folder);
        skip();
    }
    print_message("%d loaded, %d unsupported\n", tally.loaded_count, tally.unsupported_count);
    assert_true(tally.loaded_count > 0);
}

TEST(test_onnx_models__shipped_models) {
    model_tally tally = {0};
    char folder[512];
    (void)snprintf(folder, sizeof folder, "%s/tests/models", get_source_dir());
    assert_true(check_folder(folder, &tally));
    print_message("%d loaded, %d unsupported\n", tally.loaded_count, tally.unsupported_count);
    assert_true(tally.loaded_count + tally.unsupported_count > 0);
}

TEST(test_onnx_models__metadata_by_key) {
    char path[512];
    rondo_program *program = NULL;
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/picture_scores.onnx", get_source_dir());
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_OK);
    assert_string_equal(rondo_program_get_metadata(program, "Image.BitmapPixelFormat"), "Bgr8");
    assert_string_equal(rondo_program_get_metadata(program, "Image.NominalPixelRange"),
                        "NominalRange_0_255");
    assert_null(rondo_program_get_metadata(program, "Bgr8"));  // a value is no key
    assert_null(rondo_program_get_metadata(program, ""));
    assert_null(rondo_program_get_metadata(program, NULL));
    assert_null(rondo_program_get_metadata(NULL, "Image.BitmapPixelFormat"));
    rondo_program_destroy(program);
    (void)snprintf(path, sizeof path, "%s/tests/cli/models/add_relu.onnx", get_source_dir());
    assert_int_equal(rondo_program_load_onnx(path, &program), RONDO_STATUS_OK);
    assert_null(rondo_program_get_metadata(program, ""));
    rondo_program_destroy(program);
}

TEST_MAIN()
