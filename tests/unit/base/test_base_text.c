// Texts that Rondo writes are the same in every locale of the program's.
// SPDX-License-Identifier: Apache-2.0
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cache/governor.h"
#include "support/test.h"

// A locale of the decimal comma alone, as `localedef` of libc-bin makes it.
static bool set_comma(const char *folder) {
    char path[64];
    (void)snprintf(path, sizeof path, "%s/source", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL ||
        fputs("LC_CTYPE\ncopy \"POSIX\"\nEND LC_CTYPE\n"
              "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
              "END LC_NUMERIC\n",
              file) < 0 ||
        fclose(file) != 0) {
        fail_msg("%s cannot be written", path);
    }
    char command[256];  // which warns of what the source has not, with status 1
    (void)snprintf(command, sizeof command,
                   "localedef -c -i %s -f ANSI_X3.4-1968 %s/comma >/dev/null 2>&1", path, folder);
    return system(command) >= 0 && setenv("LOCPATH", folder, 1) == 0 &&
           setlocale(LC_NUMERIC, "comma") != NULL;
}

TEST(test_base_text__points_in_every_locale) {
    char folder[] = "/tmp/rondo-text-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const bool has_comma = set_comma(folder);
    char program[32];
    (void)snprintf(program, sizeof program, "%g", 0.5);
    rondo__text text = {0};
    rondo__text_append(&text, "%.9g, %.3f", 0.25, 1.5);
    char number[32];
    assert_int_equal(rondo__text_print(number, sizeof number, "%.1f us", 1.5), 6);
    const rondo__duration duration = rondo__duration_format(2.5e3);
    char after[32];
    (void)snprintf(after, sizeof after, "%g", 0.5);
    (void)setlocale(LC_ALL, "C");
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_string_equal(text.bytes, "0.25, 1.500");
    assert_string_equal(number, "1.5 us");
    assert_string_equal(duration.text, "2.5 us");
    assert_string_equal(after, program);  // which keeps its own
    rondo__text_deinit(&text);
    if (!has_comma) {
        skip();
    }
    assert_string_equal(program, "0,5");
}

TEST_MAIN()
