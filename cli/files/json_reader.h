// json_reader.h — JSON documents from files, as a tree. Hostile input is expected.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_CLI_JSON_READER_H
#define RONDO_CLI_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_json_kind {
    CLI_JSON_NULL,
    CLI_JSON_FLAG,
    CLI_JSON_NUMBER,
    CLI_JSON_TEXT,
    CLI_JSON_ARRAY,
    CLI_JSON_OBJECT,
} cli_json_kind;

typedef struct cli_json_value {
    cli_json_kind kind;
    char *key;                     // in an object; otherwise NULL
    double number;                 // NUMBER; FLAG: 0 or 1
    char *text;                    // TEXT
    size_t count;                  // ARRAY, OBJECT
    struct cli_json_value *first;  // of the members; each leads to the next
    struct cli_json_value *next;
} cli_json_value;

// Reads a whole document. On failure prints why, with `label` and the line.
//
// Ownership: free with cli_json_free.
bool cli_json_parse(const char *bytes, size_t byte_count, const char *label,
                    cli_json_value **out_value);
void cli_json_free(cli_json_value *value);

// The member at "eager.latency_ms.median"; NULL when there is none.
const cli_json_value *cli_json_find(const cli_json_value *value, const char *path);

// The number there; false when there is none.
bool cli_json_find_number(const cli_json_value *value, const char *path, double *out_number);

#endif  // RONDO_CLI_JSON_READER_H
