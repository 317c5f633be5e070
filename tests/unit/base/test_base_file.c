// Files mapped and written atomically, directories, shared libraries, the clock.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/library.h"
#include "support/test.h"

static char folder[64];

static int enter_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rondo-test-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int leave_folder(void **state) {
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static size_t count_files(void) {
    size_t count = 0;
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        ++count;
    }
    closedir(directory);
    return count;
}

TEST(test_base_file__written_bytes_are_mapped_back) {
    char path[128];
    snprintf(path, sizeof path, "%s/data", folder);
    assert_int_equal(rondo__file_write_atomic(path, "first", 5), RONDO_STATUS_OK);
    assert_int_equal(rondo__file_write_atomic(path, "second!", 7), RONDO_STATUS_OK);
    rondo__file file;
    assert_int_equal(rondo__file_map(path, &file), RONDO_STATUS_OK);
    assert_int_equal(file.byte_count, 7);
    assert_memory_equal(file.bytes, "second!", 7);
    rondo__file_unmap(&file);
    assert_null(file.bytes);
    // No temporary file stays behind.
    assert_int_equal(count_files(), 3);
}

// Ended by the signal of a limit on files, in the middle of the bytes.
TEST(test_base_file__a_process_that_is_ended_leaves_nothing) {
    static char bytes[1 << 16];
    char path[128];
    snprintf(path, sizeof path, "%s/ended", folder);
    const int nameless = open(folder, O_TMPFILE | O_WRONLY, 0600);
    if (nameless < 0) {
        skip();  // the file system has no files without a name
    }
    close(nameless);
    const size_t count = count_files();
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
        signal(SIGXFSZ, SIG_DFL);
        _exit(setrlimit(RLIMIT_FSIZE, &limit) == 0
                  ? (int)rondo__file_write_atomic(path, bytes, sizeof bytes)
                  : 99);
    }
    int ending = 0;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ending, 0), child);
    assert_true(WIFSIGNALED(ending) && WTERMSIG(ending) == SIGXFSZ);
    assert_int_equal(count_files(), count);
}

TEST(test_base_file__a_link_to_nothing_stays) {
    char path[128];
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink("nothing", path), 0);
    assert_int_equal(rondo__file_write_atomic(path, "x", 1), RONDO_STATUS_INVALID);
    assert_non_null(strstr(rondo_error_get_last()->message, "symbolic link to nothing"));
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(path), 0);
}

TEST(test_base_file__empty_missing_and_odd_files) {
    char path[128];
    rondo__file file;
    snprintf(path, sizeof path, "%s/empty", folder);
    assert_int_equal(rondo__file_write_atomic(path, NULL, 0), RONDO_STATUS_OK);
    assert_int_equal(rondo__file_map(path, &file), RONDO_STATUS_OK);
    assert_null(file.bytes);
    assert_int_equal(file.byte_count, 0);
    rondo__file_unmap(&file);

    snprintf(path, sizeof path, "%s/missing", folder);
    assert_int_equal(rondo__file_map(path, &file), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, path));
    assert_non_null(strstr(rondo_error_get_last()->message, "No such file"));
    assert_int_equal(rondo__file_map(folder, &file), RONDO_STATUS_UNAVAILABLE);
    assert_non_null(strstr(rondo_error_get_last()->message, "a directory"));
    // A pipe without a writer must not hang.
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(rondo__file_map(path, &file), RONDO_STATUS_UNAVAILABLE);
    snprintf(path, sizeof path, "%s/none/file", folder);
    assert_int_equal(rondo__file_write_atomic(path, "x", 1), RONDO_STATUS_UNAVAILABLE);
}

TEST(test_base_file__directories_are_made_with_parents) {
    char path[128];
    snprintf(path, sizeof path, "%s/a/b//c/", folder);
    assert_int_equal(rondo__directory_create(path), RONDO_STATUS_OK);
    assert_int_equal(rondo__directory_create(path), RONDO_STATUS_OK);
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_true(S_ISDIR(facts.st_mode));
    snprintf(path, sizeof path, "%s/file", folder);
    assert_int_equal(rondo__file_write_atomic(path, "x", 1), RONDO_STATUS_OK);
    assert_int_equal(rondo__directory_create(path), RONDO_STATUS_UNAVAILABLE);
    snprintf(path, sizeof path, "%s/file/below", folder);
    assert_int_equal(rondo__directory_create(path), RONDO_STATUS_UNAVAILABLE);
}

TEST(test_base_file__libraries_open_by_the_first_name_that_loads) {
    const char *const names[] = {"librondo-none.so.1", "libm.so.6"};
    char reason[128] = "untouched";
    rondo__library *library;
    assert_int_equal(rondo__library_open(names, 2, reason, sizeof reason, &library),
                     RONDO_STATUS_OK);
    assert_string_equal(reason, "");
    assert_non_null(rondo__library_find(library, "cos"));
    assert_null(rondo__library_find(library, "no_such_symbol"));
    const char *const wanted[] = {"sin", "cos", "no_such_symbol", "tan"};
    void *found[4] = {NULL};
    assert_null(rondo__library_find_all(library, wanted, 2, found));
    assert_ptr_equal(found[1], rondo__library_find(library, "cos"));
    assert_ptr_equal(rondo__library_find_all(library, wanted, 4, found), wanted[2]);
    assert_null(found[3]);
    assert_non_null(strstr(rondo__library_get_path(library), "libm"));
    rondo__library_close(library);

    assert_int_equal(rondo__library_open(names, 1, reason, sizeof reason, &library),
                     RONDO_STATUS_UNAVAILABLE);
    assert_null(library);
    assert_non_null(strstr(reason, "librondo-none.so.1"));
    assert_string_equal(rondo_error_get_last()->message, reason);
}

TEST(test_base_file__clock_does_not_go_back) {
    uint64_t former = rondo__clock_now_ns();
    for (int i = 0; i < 1000; ++i) {
        uint64_t now = rondo__clock_now_ns();
        assert_true(now >= former);
        former = now;
    }
}

TEST_MAIN_WITH(enter_folder, leave_folder)
