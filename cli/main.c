// rondo — the tool. Finds the command and runs it; one file per command.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "image_op.h"
#include "output_file.h"
#include "suggest.h"

static void print_overview(FILE *file) {
    size_t count = 0;
    const cli_command *const *commands = cli_get_commands(&count);
    fprintf(file, "rondo - capture GPU work once, replay it at hardware speed\n\n");
    fprintf(file, "Usage: rondo COMMAND [options]\n\nCommands:\n");
    for (size_t i = 0; i < count; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", commands[i]->name, commands[i]->operands);
        fprintf(file, "  %-24s %s\n", usage, commands[i]->summary);
    }
    fprintf(file,
            "\nrondo COMMAND --help explains a command, rondo help environment the variables that\n"
            "are read; rondo --version tells the version.\n");
    fprintf(file, "Exit status: 0 done, 1 failed, 2 misuse, 130 interrupted.\n");
}

static int fail_unknown_command(const char *name) {
    size_t count = 0;
    char near[128];
    const cli_command *const *commands = cli_get_commands(&count);
    cli_suggestion suggestion = {.word = name};
    cli_suggest_offer(&suggestion, "help");
    for (size_t i = 0; i < count; i++) {
        cli_suggest_offer(&suggestion, commands[i]->name);
    }
    cli_print_error("there is no command \"%s\"%s (see rondo --help)", name,
                    cli_suggest_format(&suggestion, near, sizeof near));
    return CLI_MISUSE;
}

static int run_help(int argc, char **argv) {
    if (argc == 0) {
        print_overview(stdout);
        return CLI_DONE;
    }
    if (argc == 1 && strcmp(argv[0], "environment") == 0) {
        cli_print_environment();
        return CLI_DONE;
    }
    const cli_command *command = cli_find_command(argv[0]);
    if (command == NULL || argc > 1) {
        return fail_unknown_command(argv[command == NULL ? 0 : 1]);
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
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("rondo %s\n", rondo_version_get_text());
        return CLI_DONE;
    }
    const cli_command *command = cli_find_command(name);
    if (command == NULL) {
        return fail_unknown_command(name);
    }
    cli_check_environment();
    cli_image_register_op();
    return command->run(command, argc - 2, argv + 2);
}

// A mapped file that somebody cuts ends in a fault where it is read, with no call that could fail.
static void end_after_cut(int number, siginfo_t *info, void *context) {
    static const char text[] =
        "rondo: a file became shorter while it was read, or its disk failed\n";
    (void)context;
    if (info->si_code == BUS_ADRERR) {
        cli_output_abandon_all();
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        _exit(CLI_FAILED);
    }
    (void)signal(number, SIG_DFL);
}

static void catch_cut_files(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = end_after_cut;
    action.sa_flags = SA_SIGINFO;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}

int main(int argc, char **argv) {
    // A file that grows beyond a limit is a failed write, with a message, and no death.
    (void)signal(SIGXFSZ, SIG_IGN);
    catch_cut_files();
    const int status = run_tool(argc, argv);
    // A full disk or a closed pipe must not look like success, nor like a failure of its own.
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_print_error("the output could not be written");
        return status == CLI_DONE ? CLI_FAILED : status;
    }
    return status;
}
