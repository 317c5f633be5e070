// SPDX-License-Identifier: Apache-2.0

#include "assign.h"

#include <stdlib.h>
#include <string.h>

bool cli_assignments_parse(const cli_command *command, const cli_assignment_kind *kind,
                           const cli_list *list, cli_assignments *out_assignments) {
    memset(out_assignments, 0, sizeof *out_assignments);
    out_assignments->kind = kind;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = list->items[i];
        const char *equals = kind->is_value_first ? strchr(text, '=') : strrchr(text, '=');
        if (equals == NULL || equals == text || equals[1] == '\0' ||
            (kind->is_value != NULL && !kind->is_value(equals + 1))) {
            cli_fail_misuse(command, "%s \"%s\": write it as in %s %s", kind->option, text,
                            kind->option, kind->example);
            return false;
        }
        char *name = strndup(text, (size_t)(equals - text));
        if (name == NULL) {
            return cli_fail_memory();
        }
        for (size_t k = 0; k < out_assignments->count; k++) {
            if (strcmp(out_assignments->items[k].name, name) == 0) {
                cli_fail_misuse(command, "%s: \"%s\" is given twice, as \"%s\" and \"%s\"",
                                kind->option, name, out_assignments->items[k].value, equals + 1);
                free(name);
                return false;
            }
        }
        out_assignments->items[out_assignments->count++] =
            (cli_assignment){.text = text, .name = name, .value = equals + 1};
    }
    return true;
}

void cli_assignments_free(cli_assignments *assignments) {
    for (size_t i = 0; i < assignments->count; i++) {
        free(assignments->items[i].name);
    }
    assignments->count = 0;
}

const char *cli_assignments_find(cli_assignments *assignments, const char *name) {
    const size_t length = strlen(name);
    for (size_t i = 0; i < assignments->count; i++) {
        cli_assignment *item = &assignments->items[i];
        if (strcmp(item->name, name) == 0) {
            item->is_used = true;
            return item->value;
        }
        // A name with an '=' of its own.
        if (strncmp(item->text, name, length) == 0 && item->text[length] == '=' &&
            assignments->kind->is_value_first) {
            item->is_used = true;
            return item->text + length + 1;
        }
    }
    return NULL;
}
