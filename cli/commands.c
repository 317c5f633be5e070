// The list of commands.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "command.h"

static const cli_command *const commands[] = {
    &cli_command_devices,    &cli_command_run,   &cli_command_bench,   &cli_command_profile,
    &cli_command_doctor,     &cli_command_test,  &cli_command_inspect, &cli_command_tune,
    &cli_command_compile,    &cli_command_train, &cli_command_decode,  &cli_command_compare,
    &cli_command_completion,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

const cli_command *const *cli_get_commands(size_t *out_count) {
    *out_count = COMMAND_COUNT;
    return commands;
}

const cli_command *cli_find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}
