// command.h — what a command of the tool is, and how its options are read and explained.
//
// A command is a row of data: name, summary, a table of options. The table parses the command line
// into the command's settings struct and prints its own help, so that the two cannot disagree. Help
// goes to stdout, misuse to stderr.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "console.h"
#include "rondo/models.h"

// Exit statuses of the tool.
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_MISUSE = 2,
    CLI_INTERRUPTED = 130,  // Ctrl-C, as shells count it
};

enum { CLI_LIST_MAX = 256 };

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
    CLI_TIMES,   // field: uint64_t; its value is 1 or follows "=", and shown as "[=N]"
    CLI_BYTES,   // field: uint64_t, at least 1; "512MiB", "4G"
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
    const char *operands;  // "MODEL", "DIR...", "bash|zsh|fish"; "" for none
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
extern const cli_command cli_command_profile;
extern const cli_command cli_command_doctor;
extern const cli_command cli_command_test;
extern const cli_command cli_command_inspect;
extern const cli_command cli_command_tune;
extern const cli_command cli_command_compile;
extern const cli_command cli_command_train;
extern const cli_command cli_command_decode;
extern const cli_command cli_command_compare;
extern const cli_command cli_command_completion;

typedef enum cli_parse_result {
    CLI_PARSE_RUN,     // go on
    CLI_PARSE_HELP,    // help was printed
    CLI_PARSE_MISUSE,  // the mistake was printed
} cli_parse_result;

// Reads argv[0 .. argc) (what follows the command's name) into `settings`, whose fields hold the
// defaults. Operands are moved to the front of argv and counted.
cli_parse_result cli_parse(const cli_command *command, int argc, char **argv, void *settings,
                           size_t *out_operand_count);

// Prints a misuse of `command` with where its help is; returns CLI_MISUSE.
RONDO_PRINTF(2, 3) int cli_fail_misuse(const cli_command *command, const char *format, ...);

// Prints the command's help to stdout.
void cli_print_help(const cli_command *command);

// The topics of `rondo help`, and the completion of shells, are made from the same tables.

// All commands, in the order in which they are listed.
const cli_command *const *cli_get_commands(size_t *out_count);
const cli_command *cli_find_command(const char *name);  // NULL: there is none

// `rondo help environment`: the environment variables, to stdout.
void cli_print_environment(void);

// Warns of environment variables whose values are not known, and drops them.
void cli_check_environment(void);

// What a variable that is a choice says: the index into its choices; -1 when it is not set.
int cli_read_variable(const char *name);

// Sets *out_index to the place of `text` in "auto|on|off"; false when it is not there.
bool cli_find_choice(const char *choices, const char *text, int *out_index);
