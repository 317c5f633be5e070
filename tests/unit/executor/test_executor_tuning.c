// Executors with a tuning file: read when they are made, refused by name, written again.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/models/code_programs.h"
#include "support/test.h"
#include "support/text_sink.h"

static char g_path[] = "/tmp/rondo_tuning_XXXXXX";

static void write_file(const char *text) {
    FILE *file = fopen(g_path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static rondo_status create(const char *path, rondo_executor **out_executor) {
    rondo_program *program = NULL;
    rondo_device *device = NULL;
    OK(code_program_build(&code_programs[0], &program));
    OK(rondo_device_open("host", &device));
    char name[64];
    rondo_executor_options options = {.struct_size = sizeof options};
    (void)snprintf(name, sizeof name, "%s", path != NULL ? path : "");
    options.tuning_file = path != NULL ? name : NULL;
    const rondo_status status = rondo_executor_create(program, device, &options, out_executor);
    memset(name, 'x', sizeof name - 1);  // borrowed for the call only
    rondo_program_destroy(program);
    rondo_device_release(device);
    return status;
}

// What the file holds for GPUs is kept, and written again.
TEST(test_executor_tuning__kept) {
    rondo_executor *executor = NULL;
    text_sink s = {.length = 0};
    (void)state;
    write_file("rondo tuning 1\nGPU, 4 multiprocessors\tmatmul 1\tplain\n");
    OK(create(g_path, &executor));
    write_file("nothing to be read again");
    OK(rondo_executor_write_tuning(executor, text_sink_append, &s));
    assert_int_equal(strncmp(s.text, "rondo tuning 1\n", 15), 0);
    assert_non_null(strstr(s.text, "\nGPU, 4 multiprocessors\tmatmul 1\tplain\n"));
    rondo_executor_destroy(executor);

    s.length = 0;
    OK(create(NULL, &executor));
    OK(rondo_executor_write_tuning(executor, text_sink_append, &s));
    assert_null(strchr(s.text, '\t'));
    rondo_executor_destroy(executor);
}

TEST(test_executor_tuning__refused) {
    rondo_executor *executor = NULL;
    text_sink s = {.length = 0};
    (void)state;
    write_file("a model, by mistake");
    EXPECT(BAD_DATA, g_path, create(g_path, &executor));
    assert_null(executor);
    EXPECT(UNAVAILABLE, "/no/such/file", create("/no/such/file", &executor));
    OK(create(NULL, &executor));
    EXPECT(INVALID, "executor is NULL", rondo_executor_write_tuning(NULL, text_sink_append, &s));
    EXPECT(INVALID, "write is NULL", rondo_executor_write_tuning(executor, NULL, &s));
    rondo_executor_destroy(executor);
}

int main(void) {
    const int file = mkstemp(g_path);
    if (file < 0) {
        return 1;
    }
    (void)close(file);
    const int failed = RUN_TESTS(NULL, NULL);
    (void)unlink(g_path);
    return failed;
}
