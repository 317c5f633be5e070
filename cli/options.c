// Option tables: parsing, help, and the tool's messages.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

// ---- messages ---------------------------------------------------------------------------------

void cli_print_error(const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    fflush(stdout);
    fprintf(stderr, "rondo: %s\n", line);
}

int cli_fail_with_record(void) {
    const rondo_error *error = rondo_error_get_last();
    const bool names_op = error->op[0] != '\0' && strstr(error->message, error->op) == NULL;
    const bool names_driver = error->driver_name[0] != '\0';
    cli_print_error("%s%s%s%s%s%s%s", error->message, names_op ? " (at " : "",
                    names_op ? error->op : "", names_op ? ")" : "", names_driver ? " [" : "",
                    names_driver ? error->driver_name : "", names_driver ? "]" : "");
    return CLI_FAILED;
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

// ---- help -------------------------------------------------------------------------------------

enum { HELP_INDENT = 26 };

static void print_option_help(const char *name, const char *argument, const char *help) {
    int column =
        printf("  %s%s%s", name, argument != NULL ? " " : "", argument != NULL ? argument : "");
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
    printf("Usage: rondo %s%s%s [options]\n", command->name,
           command->operands[0] != '\0' ? " " : "", command->operands);
    if (command->details[0] != '\0') {
        printf("\n%s\n", command->details);
    }
    printf("\nOptions:\n");
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        print_option_help(option->name,
                          option->argument != NULL ? option->argument : option->choices,
                          option->help);
    }
    print_option_help("--help", NULL, "show this");
}

// ---- parsing ----------------------------------------------------------------------------------

static cli_parse_result misuse(const cli_command *command, const char *what, const char *text) {
    cli_print_error("%s%s%s%s (see rondo %s --help)", what, text != NULL ? " \"" : "",
                    text != NULL ? text : "", text != NULL ? "\"" : "", command->name);
    return CLI_PARSE_MISUSE;
}

static bool parse_count(const char *text, uint64_t *out_value) {
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *out_value = value;
    return true;
}

static bool parse_number(const char *text, double *out_value) {
    char *end = NULL;
    errno = 0;
    const double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < 0.0) {
        return false;
    }
    *out_value = value;
    return true;
}

static bool parse_choice(const char *choices, const char *text, int *out_index) {
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

static cli_parse_result store_value(const cli_command *command, const cli_option *option,
                                    const char *value, void *settings) {
    void *field = (char *)settings + option->offset;
    char what[160];
    switch (option->kind) {
        case CLI_SWITCH:
            *(bool *)field = true;
            return CLI_PARSE_RUN;
        case CLI_TEXT:
            *(const char **)field = value;
            return CLI_PARSE_RUN;
        case CLI_LIST: {
            cli_list *list = field;
            if (list->count == CLI_LIST_MAX) {
                return misuse(command, "too many values for option", option->name);
            }
            list->items[list->count++] = value;
            return CLI_PARSE_RUN;
        }
        case CLI_COUNT:
            if (parse_count(value, (uint64_t *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s needs a whole number from 0, not", option->name);
            return misuse(command, what, value);
        case CLI_NUMBER:
            if (parse_number(value, (double *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s needs a number from 0, not", option->name);
            return misuse(command, what, value);
        case CLI_CHOICE:
            if (parse_choice(option->choices, value, (int *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s is one of %s, not", option->name,
                     option->choices);
            return misuse(command, what, value);
    }
    return misuse(command, "unknown option", option->name);
}

static const cli_option *find_option(const cli_command *command, const char *text, size_t length) {
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        if (strlen(option->name) == length && memcmp(option->name, text, length) == 0) {
            return option;
        }
    }
    return NULL;
}

cli_parse_result cli_parse(const cli_command *command, int argc, char **argv, void *settings,
                           size_t *out_operand_count) {
    size_t operand_count = 0;
    bool options_ended = false;
    *out_operand_count = 0;
    for (int i = 0; i < argc; i++) {
        char *text = argv[i];
        if (options_ended || text[0] != '-' || text[1] == '\0') {
            argv[operand_count++] = text;
            continue;
        }
        if (strcmp(text, "--") == 0) {
            options_ended = true;
            continue;
        }
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            cli_print_help(command);
            return CLI_PARSE_HELP;
        }
        const char *equals = strchr(text, '=');
        const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
        const cli_option *option = find_option(command, text, length);
        if (option == NULL) {
            return misuse(command, "unknown option", text);
        }
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (option->kind == CLI_SWITCH) {
            if (value != NULL) {
                return misuse(command, "this option takes no value:", text);
            }
        } else if (value == NULL) {
            if (i + 1 == argc) {
                return misuse(command, "a value is missing after option", text);
            }
            value = argv[++i];
        }
        const cli_parse_result result = store_value(command, option, value, settings);
        if (result != CLI_PARSE_RUN) {
            return result;
        }
    }
    if (operand_count < command->operand_min) {
        return misuse(command, "missing operand:", command->operands);
    }
    if (operand_count > command->operand_max) {
        return misuse(command, "unexpected operand", argv[command->operand_max]);
    }
    *out_operand_count = operand_count;
    return CLI_PARSE_RUN;
}
