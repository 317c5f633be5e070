// console.h — what reaches the terminal: one line at a time, with nothing in it that a terminal
// obeys.
//
// Names come from models, and models from strangers. So everything that is not a literal of the
// tool goes through cli_say or cli_print_error, which escape the whole line (rondo/text.h). A line
// is one line: a newline inside a name is shown as \n and ends nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/models.h"

// How much is said on stdout. A line of a level is printed when the console's level is that or
// more.
typedef enum cli_level {
    CLI_SILENT,  // nothing: stdout belongs to a file that was asked for (--json -)
    CLI_RESULT,  // --quiet
    CLI_NORMAL,
    CLI_DETAIL,  // --verbose
} cli_level;

void cli_set_level(cli_level level);
cli_level cli_get_level(void);

// Prints one line to stdout.
RONDO_PRINTF(2, 3) void cli_say(cli_level level, const char *format, ...);

// Prints "rondo: ..." as one line to stderr.
RONDO_PRINTF(1, 2) void cli_print_error(const char *format, ...);

// The same, followed by lines that belong to it: " ...".
RONDO_PRINTF(1, 2) void cli_print_error_more(const char *format, ...);

// Prints "rondo: warning: ..." as one line to stderr.
RONDO_PRINTF(1, 2) void cli_print_warning(const char *format, ...);

// Prints this thread's latest Rondo error, with "subject: " in front unless the message names it
// already (NULL for none); returns CLI_FAILED. `hint` goes behind it; "" for none.
int cli_fail_about(const char *subject, const char *hint);

// The same without subject and hint.
int cli_fail_with_record(void);

// The same for functions that say false.
bool cli_say_record(void);

// Prints "rondo: out of memory"; returns false.
bool cli_fail_memory(void);

// Writes to stdout: a rondo_write_function that looks at no data.
bool cli_write_to_console(void *data, const char *text, size_t bytes);

// Formats bytes as "512 B", "4.7 MiB". Returns `buffer`.
char *cli_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes);
