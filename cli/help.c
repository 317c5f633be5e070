// What the tool says about itself, made from the tables: help of commands, and the environment.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "rondo/log_record.h"

enum { HELP_INDENT = 26 };

static void print_row(const char *name, const char *argument, const char *help) {
    int column = printf("  %s%s%s", name, argument != NULL && argument[0] != '[' ? " " : "",
                        argument != NULL ? argument : "");
    const char *line = help;
    while (line != NULL) {
        const char *end = strchr(line, '\n');
        const int length = end != NULL ? (int)(end - line) : (int)strlen(line);
        if (column > HELP_INDENT - 2) {
            printf("\n");
            column = 0;
        }
        printf("%*s%.*s\n", HELP_INDENT - column, "", length, line);
        column = 0;
        line = end != NULL ? end + 1 : NULL;
    }
}

void cli_print_help(const cli_command *command) {
    printf("rondo %s - %s\n\n", command->name, command->summary);
    // Options stand in front of a program, whose own come behind it.
    const bool is_program = strncmp(command->operands, "--", 2) == 0;
    printf("Usage: rondo %s%s%s%s%s\n", command->name, is_program ? " [options]" : "",
           command->operands[0] != '\0' ? " " : "", command->operands,
           is_program ? "" : " [options]");
    if (command->details[0] != '\0') {
        printf("\n%s\n", command->details);
    }
    printf("\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        print_row(option->name, option->argument != NULL ? option->argument : option->choices,
                  option->help);
    }
    print_row("--help", NULL, "show this");
}

// ---- the environment --------------------------------------------------------------------------

typedef struct variable {
    const char *name;
    const char *choices;  // what it can be, if that is a list
    const char *help;
} variable;

static const variable variables[] = {
    {"RONDO_GRAPHS", "auto|on|off|measured|1|0",
     "whether runs are captured and replayed, unless --graphs or\nthe program says so; 1 is on, 0 "
     "off"},
    {"RONDO_GRAPHS_VERBOSE", NULL,
     "1: tell of each graph made, of each bypassed op with the\nreason, and of each run, through "
     "the log; 2: of all nodes, too,\nwith grid, block, shared memory, direction and value"},
    {"RONDO_GRAPHS_MAX_LOG_ENTRIES", NULL,
     "how many such lines one executor writes; default: 1000"},
    {"RONDO_LOG", NULL,
     "what the library logs (to stderr, unless the program takes\nit): error, warning, info or "
     "debug, for all or by room, as\ninfo,executor=debug; device=debug: each "
     "transfer,\nexecutor=debug: each "
     "op; default: warning"},
    {"RONDO_NUM_THREADS", NULL,
     "threads for one op on the host, and for a model's weights,\nunless --threads or the "
     "program says so; default: all\nprocessors"},
    {"OMP_NUM_THREADS", NULL, "the same, where RONDO_NUM_THREADS is not set"},
    {"RONDO_MAX_CPU_ISA", NULL,
     "the widest instructions that kernels of the host use on\nx86-64: sse41, avx2 or avx512_core "
     "(without VNNI); default:\nall that the processor has"},
    {"ONEDNN_MAX_CPU_ISA", NULL, "the same, where RONDO_MAX_CPU_ISA is not set"},
    {"RONDO_CACHE_DIR", NULL,
     "where compiled GPU kernels and tuning results are kept;\ndefault: rondo in XDG_CACHE_HOME, "
     "or "
     "in ~/.cache"},
    {"RONDO_TUNE", "off|fast|full",
     "how much is timed to find the fastest GPU kernels, unless\n--tune or the program says so; "
     "default: fast"},
    {"RONDO_LIBRARY_PATH", NULL,
     "folders, with : between, where NVRTC, cuBLASLt, cuDNN, CUPTI,\nNCCL and the modules for MPI "
     "are looked for first; the\nsystem's folders come next"},
    {"RONDO_MEETING", NULL,
     "where the ranks of a training find each other: HOST:PORT of\nrank 0's machine, or a file (a "
     "path with a /) that is not\nthere yet; default: MASTER_ADDR and MASTER_PORT, or, on one\n"
     "machine, a file that the launcher's name of the job decides"},
    {"RONDO_RANK", NULL,
     "this process's rank, from 0 on, where no launcher says it;\ngoes with RONDO_RANKS and "
     "before what a launcher says"},
    {"RONDO_RANKS", NULL, "how many ranks there are"},
    {"RONDO_LOCAL_RANK", NULL,
     "the number of the rank on its machine, which is that of its\nGPU; default: RONDO_RANK"},
    {"RONDO_LOCAL_RANKS", NULL,
     "how many ranks run on that machine; where others run elsewhere,\nRONDO_MEETING is needed"},
    {"MASTER_ADDR", NULL, "the machine of rank 0, where RONDO_MEETING is not set"},
    {"MASTER_PORT", NULL, "the port there"},
    {"TMPDIR", NULL,
     "where rondo doctor keeps the program's calls until it has read\nthem; default: /dev/shm, "
     "then /tmp"},
    {"CUDA_HOME", NULL, "a CUDA toolkit to look for them in after that"},
    {"CUDA_PATH", NULL, "the same, after CUDA_HOME"},
    {"VIRTUAL_ENV", NULL,
     "a Python environment whose NVIDIA packages are looked at\nlast; so are those of python3 in "
     "PATH and in ~/.local"},
    {"CONDA_PREFIX", NULL, "the same, after VIRTUAL_ENV"},
    {"NVTX_INJECTION64_PATH", NULL, "the tool that gets NVTX ranges; NVIDIA's profilers set it"},
    {"CUDA_VISIBLE_DEVICES", NULL, "the driver's own: which GPUs there are, and in which order"},
};
enum { VARIABLE_COUNT = sizeof variables / sizeof variables[0] };

void cli_print_environment(void) {
    printf("rondo help environment - environment variables that Rondo reads\n\n");
    printf("An option of the command line goes before the variable of the same meaning.\n\n");
    printf("Variables:\n");
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        char help[256];
        snprintf(help, sizeof help, "%s%s%s",
                 variables[i].choices != NULL ? variables[i].choices : "",
                 variables[i].choices != NULL ? ":\n" : "", variables[i].help);
        print_row(variables[i].name, NULL, help);
    }
}

bool cli_find_choice(const char *choices, const char *text, int *out_index) {
    const size_t length = strlen(text);
    int index = 0;
    for (const char *choice = choices; choice != NULL; index++) {
        const char *end = strchr(choice, '|');
        const size_t choice_length = end != NULL ? (size_t)(end - choice) : strlen(choice);
        if (choice_length == length && memcmp(choice, text, length) == 0) {
            *out_index = index;
            return true;
        }
        choice = end != NULL ? end + 1 : NULL;
    }
    return false;
}

int cli_read_variable(const char *name) {
    const char *text = getenv(name);
    int index = -1;
    for (size_t i = 0; text != NULL && i < VARIABLE_COUNT; i++) {
        if (strcmp(variables[i].name, name) == 0 && variables[i].choices != NULL &&
            !cli_find_choice(variables[i].choices, text, &index)) {
            index = -1;
        }
    }
    return index;
}

void cli_check_environment(void) {
    for (size_t i = 0; i < VARIABLE_COUNT; i++) {
        const char *text = getenv(variables[i].name);
        if (text != NULL && text[0] != '\0' && variables[i].choices != NULL &&
            cli_read_variable(variables[i].name) < 0) {
            cli_print_warning("%s is \"%s\", which is none of %s, and is ignored",
                              variables[i].name, text, variables[i].choices);
            (void)unsetenv(variables[i].name);  // the library would say it again
        }
    }
    const char *levels = getenv("RONDO_LOG");
    if (levels != NULL && rondo_log_set_levels(levels) != RONDO_STATUS_OK) {
        cli_print_warning("RONDO_LOG is \"%s\": %s; it is ignored", levels,
                          rondo_error_get_last()->message);
        (void)unsetenv("RONDO_LOG");
    }
}
