// rondo completion — scripts that complete commands, options and their values in a shell, made from
// the option tables.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "command.h"

// ---- what the tables say of a value -----------------------------------------------------------

typedef enum value_kind {
    VALUE_NONE,
    VALUE_WORDS,
    VALUE_FOLDER,
    VALUE_FILE,
    VALUE_FREE
} value_kind;

// What follows an option, or stands as an operand, by its placeholder. Words go to `words`, with
// blanks between.
static value_kind classify(const char *placeholder, const char *choices, char *words,
                           size_t words_bytes) {
    const char *list = choices != NULL ? choices : placeholder;
    words[0] = '\0';
    if (list == NULL || list[0] == '\0') {
        return VALUE_NONE;
    }
    if (strstr(list, "FILE") != NULL || strstr(list, "MODEL") != NULL) {
        return VALUE_FILE;
    }
    if (strncmp(list, "DIR", 3) == 0 && strchr(list, '=') == NULL) {
        return VALUE_FOLDER;
    }
    if (strchr(list, '|') == NULL) {
        return VALUE_FREE;
    }
    snprintf(words, words_bytes, "%s", list);
    for (char *c = words; *c != '\0'; c++) {
        *c = *c == '|' ? ' ' : *c;
    }
    return VALUE_WORDS;
}

static value_kind classify_option(const cli_option *option, char *words, size_t words_bytes) {
    if (option->kind == CLI_SWITCH || option->kind == CLI_TIMES) {
        words[0] = '\0';
        return VALUE_NONE;
    }
    if (strcmp(option->name, "--device") == 0) {
        snprintf(words, words_bytes, "auto host cuda:0");
        return VALUE_WORDS;
    }
    return classify(option->argument, option->choices, words, words_bytes);
}

// The first line of a help text, with what the shell would take as its own behind a backslash.
static void print_first_line(const char *help, const char *special) {
    for (const char *c = help; *c != '\0' && *c != '\n'; c++) {
        if (*c == '\'') {
            printf("'\\''");
        } else {
            printf("%s%c", strchr(special, *c) != NULL ? "\\" : "", *c);
        }
    }
}

static void print_command_names(const cli_command *const *commands, size_t count) {
    for (size_t i = 0; i < count; i++) {
        printf("%s%s", i > 0 ? " " : "", commands[i]->name);
    }
}

// ---- bash -------------------------------------------------------------------------------------

static void print_bash_value(const char *indent, value_kind kind, const char *words) {
    switch (kind) {
        case VALUE_WORDS:
            printf("%sCOMPREPLY=($(compgen -W \"%s\" -- \"$word\"))\n", indent, words);
            break;
        case VALUE_FOLDER:
            printf("%sCOMPREPLY=($(compgen -d -- \"$word\"))\n", indent);
            break;
        case VALUE_FILE:
            printf("%sCOMPREPLY=($(compgen -f -- \"$word\"))\n", indent);
            break;
        case VALUE_NONE:
        case VALUE_FREE:
            printf("%s:\n", indent);
            break;
    }
}

static void print_bash(const cli_command *const *commands, size_t count) {
    char words[128];
    printf("# bash completion of rondo: eval \"$(rondo completion bash)\"\n_rondo() {\n");
    printf("    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n");
    printf("    COMPREPLY=()\n    if [ \"$COMP_CWORD\" = 1 ]; then\n");
    printf("        COMPREPLY=($(compgen -W \"");
    print_command_names(commands, count);
    printf(" help --help --version\" -- \"$word\"))\n        return\n    fi\n");
    printf("    case ${COMP_WORDS[1]}:$before in\n");
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < commands[i]->option_count; k++) {
            const cli_option *option = &commands[i]->options[k];
            const value_kind kind = classify_option(option, words, sizeof words);
            if (kind != VALUE_NONE) {
                printf("    %s:%s)\n", commands[i]->name, option->name);
                print_bash_value("        ", kind, words);
                printf("        return\n        ;;\n");
            }
        }
    }
    printf("    esac\n    case ${COMP_WORDS[1]}:$word in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s:-*) COMPREPLY=($(compgen -W \"", commands[i]->name);
        for (size_t k = 0; k < commands[i]->option_count; k++) {
            printf("%s ", commands[i]->options[k].name);
        }
        printf("--help\" -- \"$word\")) ;;\n");
        printf("    %s:*)\n", commands[i]->name);
        const value_kind kind = classify(commands[i]->operands, NULL, words, sizeof words);
        print_bash_value("        ", kind, words);
        printf("        ;;\n");
    }
    printf("    help:*) COMPREPLY=($(compgen -W \"");
    print_command_names(commands, count);
    printf(" environment\" -- \"$word\")) ;;\n    esac\n}\n");
    printf("complete -o filenames -F _rondo rondo\n");
}

// ---- zsh --------------------------------------------------------------------------------------

static void print_zsh_value(const char *placeholder, value_kind kind, const char *words) {
    switch (kind) {
        case VALUE_WORDS:
            printf(":value:(%s)", words);
            break;
        case VALUE_FOLDER:
            printf(":folder:_files -/");
            break;
        case VALUE_FILE:
            printf(":file:_files");
            break;
        case VALUE_FREE:
            printf(":");
            print_first_line(placeholder, ":[]\\");
            printf(": ");
            break;
        case VALUE_NONE:
            break;
    }
}

static void print_zsh(const cli_command *const *commands, size_t count) {
    char words[128];
    printf("#compdef rondo\n# zsh completion of rondo: source <(rondo completion zsh)\n");
    printf("_rondo() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < count; i++) {
        printf("        '%s:", commands[i]->name);
        print_first_line(commands[i]->summary, ":\\");
        printf("'\n");
    }
    printf("        'help:explain a command'\n    )\n");
    printf(
        "    if (( CURRENT == 2 )); then\n        _describe command commands\n        return\n"
        "    fi\n");
    printf("    local command=$words[2]\n    shift words\n    (( CURRENT-- ))\n");
    printf("    case $command in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s)\n        _arguments", commands[i]->name);
        for (size_t k = 0; k < commands[i]->option_count; k++) {
            const cli_option *option = &commands[i]->options[k];
            const value_kind kind = classify_option(option, words, sizeof words);
            printf(" \\\n            '%s%s[", option->kind == CLI_LIST ? "*" : "", option->name);
            print_first_line(option->help, ":[]\\");
            printf("]");
            print_zsh_value(option->argument, kind, words);
            printf("'");
        }
        printf(" \\\n            '--help[show this]'");
        const value_kind kind = classify(commands[i]->operands, NULL, words, sizeof words);
        if (kind != VALUE_NONE) {
            printf(" \\\n            '*");
            print_zsh_value(commands[i]->operands, kind, words);
            printf("'");
        }
        printf("\n        ;;\n");
    }
    printf("    help) _describe command commands ;;\n    esac\n}\n");
    printf(
        "if [ \"${funcstack[1]}\" = _rondo ]; then\n    _rondo \"$@\"\nelse\n"
        "    compdef _rondo rondo\nfi\n");
}

// ---- fish -------------------------------------------------------------------------------------

static void print_fish_value(value_kind kind, const char *words) {
    switch (kind) {
        case VALUE_WORDS:
            printf(" -xa '%s'", words);
            break;
        case VALUE_FOLDER:
            printf(" -xa '(__fish_complete_directories)'");
            break;
        case VALUE_FILE:
            printf(" -rF");
            break;
        case VALUE_FREE:
            printf(" -x");
            break;
        case VALUE_NONE:
            break;
    }
}

static void print_fish(const cli_command *const *commands, size_t count) {
    char words[128];
    printf("# fish completion of rondo: rondo completion fish | source\n");
    for (size_t i = 0; i < count; i++) {
        printf("complete -c rondo -f -n __fish_use_subcommand -a %s -d '", commands[i]->name);
        print_first_line(commands[i]->summary, "\\");
        printf("'\n");
        for (size_t k = 0; k < commands[i]->option_count; k++) {
            const cli_option *option = &commands[i]->options[k];
            const value_kind kind = classify_option(option, words, sizeof words);
            printf("complete -c rondo -n '__fish_seen_subcommand_from %s' -l %s", commands[i]->name,
                   option->name + 2);
            print_fish_value(kind, words);
            printf(" -d '");
            print_first_line(option->help, "\\");
            printf("'\n");
        }
        const value_kind kind = classify(commands[i]->operands, NULL, words, sizeof words);
        if (kind == VALUE_WORDS) {
            printf("complete -c rondo -f -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                   commands[i]->name, words);
        }
    }
}

// ---- the command ------------------------------------------------------------------------------

static int run_completion(const cli_command *command, int argc, char **argv) {
    static const struct {
        const char *shell;
        void (*print)(const cli_command *const *commands, size_t count);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    size_t operand_count = 0;
    size_t count = 0;
    const cli_parse_result parsed = cli_parse(command, argc, argv, NULL, &operand_count);
    if (parsed != CLI_PARSE_RUN) {
        return parsed == CLI_PARSE_HELP ? CLI_DONE : CLI_MISUSE;
    }
    const cli_command *const *commands = cli_get_commands(&count);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(argv[0], shells[i].shell) == 0) {
            shells[i].print(commands, count);
            return CLI_DONE;
        }
    }
    return cli_fail_misuse(command, "the shell is one of %s, not \"%s\"", command->operands,
                           argv[0]);
}

const cli_command cli_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a script that completes rondo in a shell",
    .details =
        "eval \"$(rondo completion bash)\"        in ~/.bashrc\n"
        "source <(rondo completion zsh)         in ~/.zshrc, after compinit\n"
        "rondo completion fish | source         in ~/.config/fish/config.fish",
    .operand_min = 1,
    .operand_max = 1,
    .run = run_completion,
};
