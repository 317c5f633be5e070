// SPDX-License-Identifier: Apache-2.0
#include "json_reader.h"

#include <string.h>

#include "console.h"

// The tree takes some twenty times the bytes of its text. A report has some hundred thousand.
enum { DOCUMENT_BYTES_MAX = 16 << 20 };

bool cli_json_parse(const char *bytes, size_t byte_count, const char *label, json_t **out_value) {
    json_error_t error;
    *out_value = NULL;
    if (byte_count > DOCUMENT_BYTES_MAX) {
        cli_print_error("%s: not a report: it has more than 16 MiB", label);
        return false;
    }
    const size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES;
    *out_value = json_loadb(bytes, byte_count, flags, &error);
    if (*out_value == NULL) {
        cli_print_error("%s: line %d: not JSON: %s", label, error.line, error.text);
    }
    return *out_value != NULL;
}

json_t *cli_json_find(json_t *value, const char *path) {
    while (value != NULL && *path != '\0') {
        char key[64];
        const size_t length = strcspn(path, ".");
        if (length >= sizeof key) {
            return NULL;
        }
        memcpy(key, path, length);
        key[length] = '\0';
        value = json_object_get(value, key);
        path += length + (path[length] == '.' ? 1 : 0);
    }
    return value;
}

bool cli_json_find_number(json_t *value, const char *path, double *out_number) {
    const json_t *found = cli_json_find(value, path);
    if (!json_is_number(found)) {
        return false;
    }
    *out_number = json_number_value(found);
    return true;
}

const char *cli_json_find_text(json_t *value, const char *path) {
    return json_string_value(cli_json_find(value, path));
}
