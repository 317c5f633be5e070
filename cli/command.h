// command.h — what a command of the tool is, and how its options are read and explained.
//
// A command is a row of data: name, summary, a table of options. The table parses the command line
// into the command's settings struct and prints its own help, so that the two cannot disagree. Help
// goes to stdout, misuse to stderr.
#ifndef RONDO_CLI_COMMAND_H
#define RONDO_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/rondo.h"

// Exit statuses of the tool.
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_MISUSE = 2,
};

enum { CLI_LIST_MAX = 64 };

// Values of an option that may be repeated; borrowed from the command line.
typedef struct cli_list {
    size_t count;
    const char *items[CLI_LIST_MAX];
} cli_list;

typedef enum cli_option_kind {
    CLI_SWITCH,  // field: bool
    CLI_TEXT,    // field: const char *
    CLI_LIST,    // field: cli_list
    CLI_COUNT,   // field: uint64_t
    CLI_NUMBER,  // field: double, at least 0
    CLI_CHOICE,  // field: int, the index into `choices`
} cli_option_kind;

typedef struct cli_option {
    const char *name;      // with its dashes: "--seed"
    const char *argument;  // placeholder in the help; NULL for a switch
    cli_option_kind kind;
    size_t offset;        // of the field in the settings
    const char *choices;  // CLI_CHOICE: "auto|on|off"; otherwise NULL
    const char *help;     // one or more lines, separated by newlines
} cli_option;

typedef struct cli_command cli_command;
struct cli_command {
    const char *name;
    const char *operands;  // "MODEL", "DIR..."; "" for none
    const char *summary;   // one line, lower case, no full stop
    const char *details;   // paragraphs under the usage line; may be ""
    size_t operand_min;
    size_t operand_max;
    const cli_option *options;
    size_t option_count;
    int (*run)(const cli_command *command, int argc, char **argv);  // returns the exit status
};

extern const cli_command cli_command_devices;
extern const cli_command cli_command_run;
extern const cli_command cli_command_bench;
extern const cli_command cli_command_test;
extern const cli_command cli_command_inspect;

typedef enum cli_parse_result {
    CLI_PARSE_RUN,     // go on
    CLI_PARSE_HELP,    // help was printed
    CLI_PARSE_MISUSE,  // the mistake was printed
} cli_parse_result;

// Reads argv[0 .. argc) (what follows the command's name) into `settings`, whose fields hold the
// defaults. Operands are moved to the front of argv and counted.
cli_parse_result cli_parse(const cli_command *command, int argc, char **argv, void *settings,
                           size_t *out_operand_count);

// Prints the command's help to stdout.
void cli_print_help(const cli_command *command);

// Prints "rondo: ..." as one line to stderr; control characters of hostile names become '?'.
RONDO_PRINTF(1, 2) void cli_print_error(const char *format, ...);

// Prints this thread's latest Rondo error, and returns CLI_FAILED.
int cli_fail_with_record(void);

// Formats bytes as "512 B", "4.7 MiB". Returns `buffer`.
char *cli_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes);

#endif  // RONDO_CLI_COMMAND_H
