#include "json_writer.h"

#include <inttypes.h>
#include <math.h>

static void write_quoted(FILE *file, const char *text) {
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 0x20 || *c == 0x7f) {
            fprintf(file, "\\u%04x", *c);
        } else {
            fputc(*c, file);
        }
    }
    fputc('"', file);
}

void cli_json_key(cli_json *json, const char *key) {
    if (json->depth > 0) {
        fprintf(json->file, "%s\n%*s", json->needs_comma ? "," : "", json->depth * 2, "");
    }
    if (key != NULL) {
        write_quoted(json->file, key);
        fprintf(json->file, ": ");
    }
    json->needs_comma = true;
}

void cli_json_begin(cli_json *json, const char *key, char bracket) {
    cli_json_key(json, key);
    fputc(bracket, json->file);
    json->depth++;
    json->needs_comma = false;
}

void cli_json_end(cli_json *json, char bracket) {
    json->depth--;
    if (json->needs_comma) {
        fprintf(json->file, "\n%*s", json->depth * 2, "");
    }
    fputc(bracket, json->file);
    if (json->depth == 0) {
        fputc('\n', json->file);
    }
    json->needs_comma = true;
}

void cli_json_number(cli_json *json, const char *key, double value) {
    cli_json_key(json, key);
    if (isfinite(value)) {
        fprintf(json->file, "%.9g", value);
    } else {
        fprintf(json->file, "null");
    }
}

void cli_json_count(cli_json *json, const char *key, uint64_t value) {
    cli_json_key(json, key);
    fprintf(json->file, "%" PRIu64, value);
}

void cli_json_text(cli_json *json, const char *key, const char *value) {
    cli_json_key(json, key);
    if (value != NULL) {
        write_quoted(json->file, value);
    } else {
        fprintf(json->file, "null");
    }
}
