// json_writer.h — writing a JSON document to a file, piece by piece.
//
// `key` is NULL inside arrays and for the outermost value. Numbers that JSON cannot express (NaN,
// infinity) become null. Texts come out as UTF-8; what a terminal should not get (rondo/text.h) and
// bytes that are no UTF-8 are escaped.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_json {
    FILE *file;
    int depth;
    bool needs_comma;
} cli_json;

void cli_json_begin(cli_json *json, const char *key, char bracket);  // '{' or '['
void cli_json_end(cli_json *json, char bracket);                     // '}' or ']'
void cli_json_number(cli_json *json, const char *key, double value);
void cli_json_count(cli_json *json, const char *key, uint64_t value);
void cli_json_whole(cli_json *json, const char *key, int64_t value);
void cli_json_flag(cli_json *json, const char *key, bool value);
void cli_json_text(cli_json *json, const char *key, const char *value);  // NULL becomes null
// A value that is JSON already; the caller writes it to json->file next.
void cli_json_key(cli_json *json, const char *key);
