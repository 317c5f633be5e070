// Option tables: parsing the command line.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "suggest.h"

int cli_fail_misuse(const cli_command *command, const char *format, ...) {
    char what[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cli_print_error("%s (see rondo %s --help)", what, command->name);
    return CLI_MISUSE;
}

static cli_parse_result misuse(const cli_command *command, const char *what, const char *text) {
    cli_fail_misuse(command, "%s%s%s%s", what, text != NULL ? " \"" : "", text != NULL ? text : "",
                    text != NULL ? "\"" : "");
    return CLI_PARSE_MISUSE;
}

// ---- values -----------------------------------------------------------------------------------

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

// A whole number of bytes, with K, M, G or T for powers of 1024; "iB" or "B" may follow.
static bool parse_bytes(const char *text, uint64_t *out_value) {
    static const char units[] = "KMGT";
    char *end = NULL;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    const int shift = unit != NULL ? 10 * ((int)(unit - units) + 1) : 0;
    end += unit != NULL ? 1 : 0;
    if (errno != 0 || number == 0 || number > UINT64_MAX >> shift ||
        (*end != '\0' && strcmp(end, "B") != 0 && (unit == NULL || strcmp(end, "iB") != 0))) {
        return false;
    }
    *out_value = (uint64_t)number << shift;
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
        case CLI_TIMES:
            if (parse_count(value, (uint64_t *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s needs a whole number from 0, not", option->name);
            return misuse(command, what, value);
        case CLI_BYTES:
            if (parse_bytes(value, (uint64_t *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s needs a size such as 512MiB or 4GiB, not",
                     option->name);
            return misuse(command, what, value);
        case CLI_NUMBER:
            if (parse_number(value, (double *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s needs a number from 0, not", option->name);
            return misuse(command, what, value);
        case CLI_CHOICE:
            if (cli_find_choice(option->choices, value, (int *)field)) {
                return CLI_PARSE_RUN;
            }
            snprintf(what, sizeof what, "option %s is one of %s, not", option->name,
                     option->choices);
            return misuse(command, what, value);
    }
    return misuse(command, "unknown option", option->name);
}

// ---- options ----------------------------------------------------------------------------------

static const cli_option *find_option(const cli_command *command, const char *text, size_t length) {
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        if (strlen(option->name) == length && memcmp(option->name, text, length) == 0) {
            return option;
        }
    }
    return NULL;
}

static cli_parse_result misuse_unknown(const cli_command *command, const char *text,
                                       size_t length) {
    char word[64];
    char near[128];
    snprintf(word, sizeof word, "%.*s", length < 60 ? (int)length : 60, text);
    cli_suggestion suggestion = {.word = word};
    cli_suggest_offer(&suggestion, "--help");
    for (size_t i = 0; i < command->option_count; i++) {
        cli_suggest_offer(&suggestion, command->options[i].name);
    }
    cli_fail_misuse(command, "unknown option \"%s\"%s", text,
                    cli_suggest_format(&suggestion, near, sizeof near));
    return CLI_PARSE_MISUSE;
}

cli_parse_result cli_parse(const cli_command *command, int argc, char **argv, void *settings,
                           size_t *out_operand_count) {
    // A program's own options are not ours.
    const bool is_program = strncmp(command->operands, "--", 2) == 0;
    size_t operand_count = 0;
    bool options_ended = false;
    *out_operand_count = 0;
    for (int i = 0; i < argc; i++) {
        char *text = argv[i];
        if (options_ended || text[0] != '-' || text[1] == '\0') {
            argv[operand_count++] = text;
            options_ended = options_ended || is_program;
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
            return misuse_unknown(command, text, length);
        }
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (option->kind == CLI_SWITCH) {
            if (value != NULL) {
                return misuse(command, "this option takes no value:", text);
            }
        } else if (value == NULL && option->kind == CLI_TIMES) {
            value = "1";
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
