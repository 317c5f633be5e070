// SPDX-License-Identifier: Apache-2.0

#include "console.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "progress.h"

static cli_level wanted_level =
    CLI_NORMAL;  // set once the command line is read, by the main thread

void cli_set_level(cli_level level) {
    wanted_level = level;
}

cli_level cli_get_level(void) {
    return wanted_level;
}

// Formats, escapes and prints one line; what does not fit into memory is cut.
RONDO_PRINTF(3, 0)
static void print_line(FILE *file, const char *prefix, const char *format, va_list arguments) {
    char small[1024];
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(small, sizeof small, format, arguments);
    char *large = length >= (int)sizeof small ? malloc((size_t)length + 1) : NULL;
    if (large != NULL) {
        vsnprintf(large, (size_t)length + 1, format, again);
    }
    va_end(again);
    const char *text = large != NULL ? large : small;
    const size_t escaped_bytes = rondo_text_escape(text, NULL, 0) + 1;
    char *escaped = malloc(escaped_bytes);
    if (escaped != NULL) {
        (void)rondo_text_escape(text, escaped, escaped_bytes);
    }
    fprintf(file, "%s%s\n", prefix, escaped != NULL ? escaped : "out of memory");
    free(escaped);
    free(large);
}

void cli_say(cli_level level, const char *format, ...) {
    if (level > wanted_level) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    print_line(stdout, "", format, arguments);
    va_end(arguments);
}

// Prints a text of several lines that the library made, each escaped like others, at level NORMAL.
static void say_text(const char *text, size_t bytes) {
    const char *end = text + bytes;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline != NULL ? newline : end;
        cli_say(CLI_NORMAL, "%.*s", (int)(line_end - text), text);
        text = line_end + 1;
    }
}

bool cli_write_to_console(void *data, const char *text, size_t bytes) {
    (void)data;
    say_text(text, bytes);
    return true;
}

void cli_print_error(const char *format, ...) {
    va_list arguments;
    cli_progress_clear();
    fflush(stdout);
    va_start(arguments, format);
    print_line(stderr, "rondo: ", format, arguments);
    va_end(arguments);
}

void cli_print_error_more(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(stderr, "  ", format, arguments);
    va_end(arguments);
}

void cli_print_warning(const char *format, ...) {
    va_list arguments;
    cli_progress_clear();
    fflush(stdout);
    va_start(arguments, format);
    print_line(stderr, "rondo: warning: ", format, arguments);
    va_end(arguments);
}

int cli_fail_about(const char *subject, const char *hint) {
    const rondo_error *error = rondo_error_get_last();
    const bool names_op = error->op[0] != '\0' && strstr(error->message, error->op) == NULL;
    const bool names_driver = error->driver_name[0] != '\0';
    const bool names_subject = subject == NULL || strstr(error->message, subject) != NULL;
    // What the library calls an option of its own, the tool has a switch for.
    static const char option[] = "allow_remake";
    const char *named = strstr(error->message, option);
    const int before = named != NULL ? (int)(named - error->message) : (int)strlen(error->message);
    cli_print_error("%s%s%.*s%s%s%s%s%s%s%s%s%s", names_subject ? "" : subject,
                    names_subject ? "" : ": ", before, error->message,
                    named != NULL ? "--remake" : "", named != NULL ? named + sizeof option - 1 : "",
                    names_op ? " (at " : "", names_op ? error->op : "", names_op ? ")" : "",
                    names_driver ? " [" : "", names_driver ? error->driver_name : "",
                    names_driver ? "]" : "", hint);
    return CLI_FAILED;
}

int cli_fail_with_record(void) {
    return cli_fail_about(NULL, "");
}

bool cli_say_record(void) {
    (void)cli_fail_with_record();
    return false;
}

bool cli_fail_memory(void) {
    cli_print_error("out of memory");
    return false;
}

char *cli_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024.0;
        unit++;
    }
    snprintf(buffer, buffer_bytes, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return buffer;
}
