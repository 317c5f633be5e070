// rondo — the tool. Finds the command and runs it; one file per command.
#include <stdio.h>
#include <string.h>

#include "command.h"

static const cli_command *const commands[] = {
    &cli_command_devices, &cli_command_run,     &cli_command_bench,
    &cli_command_test,    &cli_command_inspect,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static void print_overview(FILE *file) {
    fprintf(file, "rondo - capture GPU work once, replay it at hardware speed\n\n");
    fprintf(file, "Usage: rondo COMMAND [options]\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", commands[i]->name, commands[i]->operands);
        fprintf(file, "  %-16s %s\n", usage, commands[i]->summary);
    }
    fprintf(file,
            "\nrondo COMMAND --help explains a command; rondo --version tells the version.\n");
    fprintf(file, "Exit status: 0 done, 1 failed, 2 misuse.\n");
}

static const cli_command *find_command(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) {
            return commands[i];
        }
    }
    return NULL;
}

static int run_help(int argc, char **argv) {
    if (argc == 0) {
        print_overview(stdout);
        return CLI_DONE;
    }
    const cli_command *command = find_command(argv[0]);
    if (command == NULL || argc > 1) {
        cli_print_error("there is no command \"%s\" (see rondo --help)", argv[0]);
        return CLI_MISUSE;
    }
    cli_print_help(command);
    return CLI_DONE;
}

static int run_tool(int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr);
        return CLI_MISUSE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        return run_help(argc - 2, argv + 2);
    }
    if (strcmp(name, "--version") == 0) {
        printf("rondo %s\n", rondo_version_get_text());
        return CLI_DONE;
    }
    const cli_command *command = find_command(name);
    if (command == NULL) {
        cli_print_error("there is no command \"%s\" (see rondo --help)", name);
        return CLI_MISUSE;
    }
    return command->run(command, argc - 2, argv + 2);
}

int main(int argc, char **argv) {
    const int status = run_tool(argc, argv);
    // A full disk or a closed pipe must not look like success.
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == CLI_DONE) {
        cli_print_error("the output could not be written");
        return CLI_FAILED;
    }
    return status;
}
