// Tuning files: what is read and written, what is refused, and which choice is found.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "kernel/tuning_choices.h"
#include "support/expect_ok.h"
#include "support/test.h"

static char g_path[] = "/tmp/rondo_tuning_XXXXXX";

static void write_file(const char *text, size_t bytes) {
    FILE *file = fopen(g_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static rondo_status create(const char *text, rondo__tuning_choices **out_choices) {
    write_file(text, strlen(text));
    return rondo__tuning_choices_create(g_path, out_choices);
}

static void expect_choice(const rondo__tuning_choices *choices, const char *device,
                          const char *problem, const char *wanted) {
    char choice[64];
    const bool is_found =
        rondo__tuning_choices_find(choices, device, problem, choice, sizeof choice);
    assert_int_equal(is_found, wanted != NULL);
    if (wanted != NULL) {
        assert_string_equal(choice, wanted);
    }
}

static void expect_text(const rondo__tuning_choices *choices, const char *wanted) {
    rondo__text text = {0};
    rondo__tuning_choices_print(choices, &text);
    const char *line = strchr(text.bytes, '\n') + 1;
    assert_memory_equal(text.bytes, "rondo tuning 1\n", 15);
    assert_int_equal(line[0], '#');
    assert_string_equal(strchr(line, '\n') + 1, wanted);
    rondo__text_deinit(&text);
}

TEST(test_kernel_tuning_choices__read_and_note) {
    rondo__tuning_choices *choices = NULL;
    OK(
        create("rondo tuning 1\r\n# a comment\n\nB\tmatmul 2\tplain\nA\tmatmul 1\ttensor 1\r\n"
               "A\tmatmul 1\ttensor 2\nA\tmatmul 0\tvector",
               &choices));
    expect_choice(choices, "A", "matmul 0", "vector");
    expect_choice(choices, "A", "matmul 1", "tensor 2");  // the later line
    expect_choice(choices, "B", "matmul 2", "plain");
    expect_choice(choices, "A", "matmul 2", NULL);
    expect_choice(choices, "AB", "matmul 2", NULL);
    rondo__tuning_choices_note(choices, "A", "matmul 2", "plain");
    rondo__tuning_choices_note(choices, "B", "matmul 2", "a longer name than before");
    rondo__tuning_choices_note(choices, "a\ttab", "matmul 2", "plain");  // what no line can hold
    rondo__tuning_choices_note(choices, "A", "two\nlines", "plain");
    rondo__tuning_choices_note(choices, "# A", "matmul 2", "plain");
    rondo__tuning_choices_note(choices, "A", "", "plain");
    expect_text(choices,
                "A\tmatmul 0\tvector\nA\tmatmul 1\ttensor 2\nA\tmatmul 2\tplain\n"
                "B\tmatmul 2\ta longer name than before\n");
    char narrow[5];
    assert_false(rondo__tuning_choices_find(choices, "A", "matmul 2", narrow, sizeof narrow));
    rondo__tuning_choices_destroy(choices);
}

TEST(test_kernel_tuning_choices__empty) {
    rondo__tuning_choices *choices = NULL;
    OK(rondo__tuning_choices_create(NULL, &choices));
    expect_choice(choices, "A", "matmul 0", NULL);
    expect_text(choices, "");
    rondo__tuning_choices_destroy(choices);
    expect_choice(NULL, "A", "matmul 0", NULL);
    rondo__tuning_choices_note(NULL, "A", "matmul 0", "plain");
    rondo__tuning_choices_destroy(NULL);
}

// What is written is read as it was, a thousand choices in any order.
TEST(test_kernel_tuning_choices__round_trip) {
    rondo__tuning_choices *choices = NULL, *again = NULL;
    rondo__text text = {0}, text_again = {0};
    OK(rondo__tuning_choices_create(NULL, &choices));
    for (unsigned i = 0; i < 1000; ++i) {
        char problem[32], choice[32];
        (void)snprintf(problem, sizeof problem, "conv %u", i * 389 % 1000);
        (void)snprintf(choice, sizeof choice, "tensor %u", i);
        rondo__tuning_choices_note(choices, "GPU, 132 multiprocessors", problem, choice);
    }
    rondo__tuning_choices_print(choices, &text);
    OK(create(text.bytes, &again));
    expect_choice(again, "GPU, 132 multiprocessors", "conv 389", "tensor 1");
    rondo__tuning_choices_print(again, &text_again);
    assert_string_equal(text.bytes, text_again.bytes);
    rondo__text_deinit(&text);
    rondo__text_deinit(&text_again);
    rondo__tuning_choices_destroy(choices);
    rondo__tuning_choices_destroy(again);
}

// Lines in falling order, each before all that came so far, and each twice: were each moved to its
// place while it is read, the test would not end in its time.
TEST(test_kernel_tuning_choices__falling_order) {
    enum { LINES = 200000 };
    rondo__tuning_choices *choices = NULL;
    rondo__text text = {0};
    rondo__text_append(&text, "rondo tuning 1\n");
    for (unsigned turn = 0; turn < 2; ++turn) {
        for (unsigned i = LINES; i-- > 0;) {
            rondo__text_append(&text, "GPU\tconv %06u\tplan %u of %u\n", i, i, turn);
        }
    }
    write_file(text.bytes, strlen(text.bytes));
    OK(rondo__tuning_choices_create(g_path, &choices));
    rondo__text_deinit(&text);
    for (unsigned i = 0; i < LINES; i += 997) {
        char problem[32], choice[32];
        (void)snprintf(problem, sizeof problem, "conv %06u", i);
        (void)snprintf(choice, sizeof choice, "plan %u of 1", i);  // the later line
        expect_choice(choices, "GPU", problem, choice);
    }
    rondo__tuning_choices_destroy(choices);
}

TEST(test_kernel_tuning_choices__refused) {
    static const struct {
        const char *text;
        rondo_status status;
        const char *message;
    } cases[] = {
        {"", RONDO_STATUS_BAD_DATA, "no tuning file"},
        {"rondo\n", RONDO_STATUS_BAD_DATA, "no tuning file"},
        {"rondo tuning x\n", RONDO_STATUS_BAD_DATA, "no tuning file"},
        {"rondo tuning 0\n", RONDO_STATUS_BAD_DATA, "no tuning file"},
        {"rondo tuning 1 \n", RONDO_STATUS_BAD_DATA, "no tuning file"},
        {"rondo tuning 2\n", RONDO_STATUS_UNSUPPORTED, "version 2"},
        {"rondo tuning 1\nA\tmatmul\n", RONDO_STATUS_BAD_DATA, "line 2"},
        {"rondo tuning 1\n# x\nA\tmatmul\tplain\textra\n", RONDO_STATUS_BAD_DATA, "line 3"},
        {"rondo tuning 1\nA\t\tplain\n", RONDO_STATUS_BAD_DATA, "line 2"},
        {"rondo tuning 1\nA\tmatmul\t\n", RONDO_STATUS_BAD_DATA, "line 2"},
    };
    rondo__tuning_choices *choices = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        assert_int_equal(create(cases[i].text, &choices), cases[i].status);
        assert_null(choices);
        const char *message = rondo_error_get_last()->message;
        assert_non_null(strstr(message, cases[i].message));
        assert_non_null(strstr(message, g_path));
    }
    write_file("rondo tuning 1\nA\0\tmatmul\tplain\n", 32);
    assert_int_equal(rondo__tuning_choices_create(g_path, &choices), RONDO_STATUS_BAD_DATA);
    assert_int_equal(unlink(g_path), 0);
    assert_int_equal(rondo__tuning_choices_create(g_path, &choices), RONDO_STATUS_UNAVAILABLE);
}

static bool fail_nth(void *count) {
    size_t *left = count;
    return (*left)-- == 0;
}

// Each allocation fails once: nothing is left, and what was noted before stands.
TEST(test_kernel_tuning_choices__no_memory) {
    static const char text[] = "rondo tuning 1\nA\tmatmul 0\tplain\nA\tmatmul 1\tplain\n";
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t n = 0;
    write_file(text, sizeof text - 1);
    for (; status != RONDO_STATUS_OK; ++n) {
        rondo__tuning_choices *choices = NULL;
        size_t left = n;
        rondo__memory_set_fault(fail_nth, &left);
        status = rondo__tuning_choices_create(g_path, &choices);
        rondo__memory_set_fault(NULL, NULL);
        assert_true(status == RONDO_STATUS_OK || status == RONDO_STATUS_NO_MEMORY);
        for (left = 0; status == RONDO_STATUS_OK && left < 2;) {
            size_t at = left++;
            rondo__memory_set_fault(fail_nth, &at);
            rondo__tuning_choices_note(choices, "A", "matmul 2", "plain");
            rondo__memory_set_fault(NULL, NULL);
            expect_choice(choices, "A", "matmul 1", "plain");
        }
        rondo__tuning_choices_destroy(choices);
        assert_int_equal(rondo__memory_get_balance(), 0);
    }
    assert_true(n > 4);
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
