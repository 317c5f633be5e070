// assign.h — "NAME=VALUE" arguments of options that may be repeated: --set, --shape, --input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "command.h"

// One option that takes such arguments.
typedef struct cli_assignment_kind {
    const char *option;   // "--set"
    const char *example;  // how it is written: "batch=4"
    bool is_value_first;  // names hold no '=', values may (file names); else the other way round
    bool (*is_value)(const char *value);  // NULL: any text
} cli_assignment_kind;

typedef struct cli_assignment {
    const char *text;  // as on the command line; borrowed
    char *name;
    const char *value;  // borrowed
    bool is_used;       // somebody asked for it
} cli_assignment;

typedef struct cli_assignments {
    const cli_assignment_kind *kind;
    size_t count;
    cli_assignment items[CLI_LIST_MAX];
} cli_assignments;

// Splits the arguments. What is malformed, or names the same thing twice, is a misuse: printed, and
// false.
//
// Ownership: free with cli_assignments_free, also after a failure.
bool cli_assignments_parse(const cli_command *command, const cli_assignment_kind *kind,
                           const cli_list *list, cli_assignments *out_assignments);
void cli_assignments_free(cli_assignments *assignments);

// What is assigned to `name`, marked as used; NULL when nothing is.
const char *cli_assignments_find(cli_assignments *assignments, const char *name);
