// json_reader.h — JSON documents from files, by jansson: what its interface lacks. Hostile input is
// expected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

// Reads a whole document; its numbers are reals. On failure prints why, with `label` and the line.
//
// Ownership: free with json_decref.
bool cli_json_parse(const char *bytes, size_t byte_count, const char *label, json_t **out_value);

// The member at "eager.latency_ms.median"; NULL when there is none.
json_t *cli_json_find(json_t *value, const char *path);

// The number there; false when there is none.
bool cli_json_find_number(json_t *value, const char *path, double *out_number);

// The text there; NULL when there is none.
const char *cli_json_find_text(json_t *value, const char *path);
