// SPDX-License-Identifier: Apache-2.0

#include "missing_ops.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "model_path.h"

typedef struct missing_op {
    char name[192];  // "domain op version: detail"
    size_t node_count;
    size_t model_count;
    size_t last_model;  // the latest model counted, so that each counts once
} missing_op;

typedef struct missing_table {
    missing_op *rows;
    size_t count;
    size_t capacity;
    size_t model;  // number of the model being read
    bool is_out_of_memory;
} missing_table;

static missing_op *find_or_add(missing_table *table, const char *name) {
    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].name, name) == 0) {
            return &table->rows[i];
        }
    }
    if (table->count == table->capacity) {
        const size_t capacity = table->capacity == 0 ? 64 : 2 * table->capacity;
        missing_op *grown = realloc(table->rows, capacity * sizeof *grown);
        if (grown == NULL) {
            table->is_out_of_memory = true;
            return NULL;
        }
        table->rows = grown;
        table->capacity = capacity;
    }
    missing_op *row = &table->rows[table->count++];
    *row = (missing_op){.last_model = SIZE_MAX};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

static void add_missing(void *user_data, const char *domain, const char *op, int64_t version,
                        const char *detail, size_t count) {
    missing_table *table = user_data;
    char name[192];
    snprintf(name, sizeof name, "%s%s%s %s%" PRId64 "%s%s", domain, domain[0] != '\0' ? "." : "",
             op[0] != '\0' ? op : "all ops of", op[0] != '\0' ? "version " : "opset ", version,
             detail != NULL && detail[0] != '\0' ? ": " : "", detail != NULL ? detail : "");
    missing_op *row = find_or_add(table, name);
    if (row == NULL) {
        return;
    }
    row->node_count += count;
    if (row->last_model != table->model) {
        row->last_model = table->model;
        row->model_count++;
    }
}

static int compare_rows(const void *left, const void *right) {
    const missing_op *a = left;
    const missing_op *b = right;
    if (a->model_count != b->model_count) {
        return a->model_count < b->model_count ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

int cli_list_missing_ops(char *const *directories, size_t count) {
    missing_table table = {0};
    size_t unreadable_count = 0;
    int status = CLI_DONE;
    for (size_t i = 0; i < count; i++) {
        char path[CLI_PATH_MAX];
        table.model = i;
        if (!cli_format_model_path(directories[i], path, sizeof path) ||
            rondo_onnx_list_unsupported(path, add_missing, &table) != RONDO_STATUS_OK) {
            unreadable_count++;
            cli_fail_about(directories[i], "");
        }
    }
    if (table.is_out_of_memory) {
        (void)cli_fail_memory();
        status = CLI_FAILED;
    }
    if (table.count > 0) {
        qsort(table.rows, table.count, sizeof *table.rows, compare_rows);
        cli_say(CLI_RESULT, "models   nodes   unsupported");
    }
    for (size_t i = 0; i < table.count; i++) {
        cli_say(CLI_RESULT, "%6zu %7zu   %s", table.rows[i].model_count, table.rows[i].node_count,
                table.rows[i].name);
    }
    cli_say(CLI_RESULT, "%zu op%s missing in %zu model%s%s", table.count,
            table.count == 1 ? "" : "s", count, count == 1 ? "" : "s",
            unreadable_count > 0 ? " (some could not be read)" : "");
    free(table.rows);
    return unreadable_count > 0 ? CLI_FAILED : status;
}

bool cli_print_missing_ops(const char *path) {
    missing_table table = {0};
    const bool is_listed =
        rondo_onnx_list_unsupported(path, add_missing, &table) == RONDO_STATUS_OK &&
        !table.is_out_of_memory && table.count > 1;
    if (is_listed) {
        cli_print_error("%s: %zu ops are not supported:", path, table.count);
    }
    for (size_t i = 0; is_listed && i < table.count; i++) {
        cli_print_error_more("%6zu node%s  %s", table.rows[i].node_count,
                             table.rows[i].node_count == 1 ? " " : "s", table.rows[i].name);
    }
    free(table.rows);
    return is_listed;
}
