// SPDX-License-Identifier: Apache-2.0

#include "json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "rondo/text.h"

// The character of a well-formed UTF-8 sequence of `length` bytes.
static uint32_t decode(const unsigned char *bytes, size_t length) {
    uint32_t character = length == 1 ? bytes[0] : bytes[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        character = character << 6 | (bytes[i] & 0x3fu);
    }
    return character;
}

// Writes what cannot stand for itself; halves beyond U+FFFF, as JSON has it.
static void write_number(FILE *file, uint32_t character) {
    if (character > 0xffff) {
        fprintf(file, "\\u%04x", (unsigned)(0xd800u + ((character - 0x10000u) >> 10)));
        character = 0xdc00u + ((character - 0x10000u) & 0x3ffu);
    }
    fprintf(file, "\\u%04x", (unsigned)character);
}

// What can be shown is decided by rondo_text_escape, asked for one character at a time: it leaves
// alone what can, and writes \x and the first byte for what is no UTF-8.
static void write_quoted(FILE *file, const char *text) {
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', file);
    while (*at != '\0') {
        char piece[8];
        char shown[64];
        char first_byte[8];
        const size_t wanted = *at < 0x80 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
        size_t length = strnlen((const char *)at, wanted);
        memcpy(piece, at, length);
        piece[length] = '\0';
        (void)rondo_text_escape(piece, shown, sizeof shown);
        snprintf(first_byte, sizeof first_byte, "\\x%02x", *at);
        if (*at >= 0x80 && strncmp(shown, first_byte, 4) == 0) {
            write_number(file, 0xfffd);
            length = 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(file, "\\%c", *at);
        } else if (strcmp(shown, piece) == 0) {
            fwrite(piece, 1, length, file);
        } else {
            write_number(file, decode(at, length));
        }
        at += length;
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

void cli_json_whole(cli_json *json, const char *key, int64_t value) {
    cli_json_key(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void cli_json_flag(cli_json *json, const char *key, bool value) {
    cli_json_key(json, key);
    fputs(value ? "true" : "false", json->file);
}

void cli_json_text(cli_json *json, const char *key, const char *value) {
    cli_json_key(json, key);
    if (value != NULL) {
        write_quoted(json->file, value);
    } else {
        fprintf(json->file, "null");
    }
}
