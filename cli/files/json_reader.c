// Source: RFC 8259.
// SPDX-License-Identifier: Apache-2.0
#include "json_reader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "console.h"

enum {
    DEPTH_MAX = 64,
    VALUE_COUNT_MAX = 1 << 22,  // a value takes some forty times its text; a report has thousands
};

typedef struct reader {
    const char *at;
    const char *end;
    const char *start;
    const char *problem;  // NULL while all is well
    int depth;
    size_t value_count;
} reader;

static void fail(reader *r, const char *problem) {
    r->problem = r->problem == NULL ? problem : r->problem;
}

static void skip_blanks(reader *r) {
    while (r->at < r->end &&
           (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) {
        r->at++;
    }
}

static bool take(reader *r, char wanted) {
    skip_blanks(r);
    if (r->at < r->end && *r->at == wanted) {
        r->at++;
        return true;
    }
    return false;
}

static bool take_word(reader *r, const char *word) {
    const size_t length = strlen(word);
    if ((size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0) {
        r->at += length;
        return true;
    }
    return false;
}

// ---- texts ------------------------------------------------------------------------------------

static bool read_four_digits(reader *r, uint32_t *out_value) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        const char c = r->at < r->end ? *r->at : '\0';
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) {
            return false;
        }
        value = value << 4 | (uint32_t)digit;
    }
    *out_value = value;
    return true;
}

static size_t encode(uint32_t character, char *out) {
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    const size_t length = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80u | (character & 0x3fu));
        character >>= 6;
    }
    out[0] = (char)(leads[length] | character);
    return length;
}

// What follows a backslash; returns the bytes written, 0 when it is malformed.
static size_t read_escape(reader *r, char *out) {
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (r->at == r->end) {
        return 0;
    }
    const char letter = *r->at++;
    const char *known = letter != '\0' ? strchr(letters, letter) : NULL;
    if (known != NULL) {
        out[0] = meanings[known - letters];
        return 1;
    }
    uint32_t character = 0;
    uint32_t low = 0;
    if (letter != 'u' || !read_four_digits(r, &character)) {
        return 0;
    }
    if (character >= 0xd800 && character < 0xdc00 && take_word(r, "\\u") &&
        read_four_digits(r, &low) && low >= 0xdc00 && low < 0xe000) {
        character = 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00);
    }
    // Half a pair, and the end of a C string, are no characters here.
    return encode(
        character == 0 || (character >= 0xd800 && character < 0xe000) ? 0xfffd : character, out);
}

// The text behind an opening quote; the caller frees it. NULL on failure.
static char *read_text(reader *r) {
    const char *close = r->at;
    while (close < r->end && *close != '"') {
        close += *close == '\\' ? 2 : 1;
    }
    if (close >= r->end) {
        fail(r, "a text does not end");
        return NULL;
    }
    char *text =
        malloc((size_t)(close - r->at) + 1);  // escapes are longer than what they stand for
    if (text == NULL) {
        fail(r, "out of memory");
        return NULL;
    }
    size_t length = 0;
    while (r->at < close) {
        const char c = *r->at++;
        const size_t written = c == '\\' ? read_escape(r, text + length) : 1;
        if (written == 0 || c == '\0') {
            fail(r, "a text is malformed");
            free(text);
            return NULL;
        }
        if (c != '\\') {
            text[length] = c;
        }
        length += written;
    }
    text[length] = '\0';
    r->at = close + 1;
    return text;
}

// ---- values -----------------------------------------------------------------------------------

static cli_json_value *read_value(reader *r);

static void read_members(reader *r, cli_json_value *parent, char bracket) {
    const bool is_object = bracket == '}';
    cli_json_value **link = &parent->first;
    if (take(r, bracket)) {
        return;
    }
    do {
        char *key = NULL;
        if (is_object) {
            key = take(r, '"') ? read_text(r) : NULL;
            if (key == NULL || !take(r, ':')) {
                fail(r, "a name or a colon is missing");
                free(key);
                return;
            }
        }
        cli_json_value *member = read_value(r);
        if (member == NULL) {
            free(key);
            return;
        }
        member->key = key;
        *link = member;
        link = &member->next;
        parent->count++;
    } while (take(r, ','));
    if (!take(r, bracket)) {
        fail(r, "a comma or a closing bracket is missing");
    }
}

static void read_number(reader *r, cli_json_value *value) {
    char digits[64];
    size_t length = 0;
    while (r->at < r->end && length + 1 < sizeof digits && *r->at != '\0' &&
           strchr("+-0123456789.eE", *r->at) != NULL) {
        digits[length++] = *r->at++;
    }
    digits[length] = '\0';
    char *end = NULL;
    value->number = strtod(digits, &end);
    if (length == 0 || *end != '\0') {
        fail(r, "there is no value");
    }
}

static cli_json_value *read_value(reader *r) {
    if (r->value_count++ == VALUE_COUNT_MAX) {
        fail(r, "more values than any report has");
        return NULL;
    }
    cli_json_value *value = calloc(1, sizeof *value);
    if (value == NULL || r->depth == DEPTH_MAX) {
        fail(r, value == NULL ? "out of memory" : "brackets are nested too deeply");
        free(value);
        return NULL;
    }
    r->depth++;
    skip_blanks(r);
    if (take(r, '{')) {
        value->kind = CLI_JSON_OBJECT;
        read_members(r, value, '}');
    } else if (take(r, '[')) {
        value->kind = CLI_JSON_ARRAY;
        read_members(r, value, ']');
    } else if (take(r, '"')) {
        value->kind = CLI_JSON_TEXT;
        value->text = read_text(r);
    } else if (take_word(r, "true") || take_word(r, "false")) {
        value->kind = CLI_JSON_FLAG;
        value->number = r->at[-2] == 'u' ? 1.0 : 0.0;  // "true"
    } else if (!take_word(r, "null")) {
        value->kind = CLI_JSON_NUMBER;
        read_number(r, value);
    }
    r->depth--;
    if (r->problem != NULL) {
        cli_json_free(value);
        return NULL;
    }
    return value;
}

bool cli_json_parse(const char *bytes, size_t byte_count, const char *label,
                    cli_json_value **out_value) {
    reader r = {.at = bytes, .start = bytes, .end = bytes + byte_count};
    *out_value = NULL;
    cli_json_value *value = read_value(&r);
    skip_blanks(&r);
    if (value != NULL && r.at != r.end) {
        fail(&r, "something stands behind the document");
        cli_json_free(value);
        value = NULL;
    }
    if (value == NULL) {
        size_t line = 1;
        for (const char *c = bytes; c < r.at && c < r.end; c++) {
            line += *c == '\n' ? 1 : 0;
        }
        cli_print_error("%s: line %zu: not JSON: %s", label, line, r.problem);
        return false;
    }
    *out_value = value;
    return true;
}

void cli_json_free(cli_json_value *value) {
    while (value != NULL) {
        cli_json_value *next = value->next;
        cli_json_free(value->first);  // as deep as DEPTH_MAX
        free(value->key);
        free(value->text);
        free(value);
        value = next;
    }
}

const cli_json_value *cli_json_find(const cli_json_value *value, const char *path) {
    while (value != NULL && *path != '\0') {
        const size_t length = strcspn(path, ".");
        const cli_json_value *member = value->kind == CLI_JSON_OBJECT ? value->first : NULL;
        while (member != NULL &&
               (strncmp(member->key, path, length) != 0 || member->key[length] != '\0')) {
            member = member->next;
        }
        value = member;
        path += length + (path[length] == '.' ? 1 : 0);
    }
    return value;
}

bool cli_json_find_number(const cli_json_value *value, const char *path, double *out_number) {
    const cli_json_value *found = cli_json_find(value, path);
    if (found == NULL || found->kind != CLI_JSON_NUMBER) {
        return false;
    }
    *out_number = found->number;
    return true;
}
