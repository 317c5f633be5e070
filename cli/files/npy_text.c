// SPDX-License-Identifier: Apache-2.0

#include "npy_text.h"

#include <stdlib.h>
#include <string.h>

#include "console.h"
#include "tensor_text.h"

enum { LAST_CHARACTER = 0x10ffff };

bool cli_npy_text_parse_descr(const char *value, cli_npy_text *out_text) {
    const char *digits = value + 1;
    if (value[0] != '\'') {
        return false;
    }
    *out_text = (cli_npy_text){.is_big_endian = value[1] == '>'};
    digits += digits[0] != '\0' && strchr("<>|=", digits[0]) != NULL ? 1 : 0;
    out_text->is_wide = digits[0] == 'U';
    if (!out_text->is_wide && digits[0] != 'S' && digits[0] != 'a') {
        return false;
    }
    size_t characters = 0;
    digits += 1;
    const size_t length = strspn(digits, "0123456789");
    for (size_t i = 0; i < length; i++) {
        characters = 10 * characters + (size_t)(digits[i] - '0');
    }
    out_text->element_bytes = out_text->is_wide ? 4 * characters : characters;
    return length > 0 && length < 10 && digits[length] == '\'';
}

// ---- reading ----------------------------------------------------------------------------------

static uint32_t load_character(const uint8_t *bytes, bool is_big_endian) {
    uint32_t character = 0;
    for (size_t i = 0; i < 4; i++) {
        character |= (uint32_t)bytes[i] << (is_big_endian ? 24 - 8 * i : 8 * i);
    }
    return character;
}

// Writes a character as UTF-8 and returns its bytes, at most 4; 0 when it is none.
static size_t encode(uint32_t character, char *out_bytes) {
    if (character > LAST_CHARACTER || (character >= 0xd800 && character < 0xe000)) {
        return 0;
    }
    if (character < 0x80) {
        out_bytes[0] = (char)character;
        return 1;
    }
    const size_t count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = count; i-- > 1;) {
        out_bytes[i] = (char)(0x80u | (character & 0x3fu));
        character >>= 6;
    }
    out_bytes[0] = (char)((0xf0u << (4 - count) & 0xffu) | character);
    return count;
}

// Decodes one element to `target`. Returns its bytes, or SIZE_MAX when it is no text.
static size_t decode_element(const uint8_t *bytes, const cli_npy_text *text, char *target) {
    const size_t unit = text->is_wide ? 4 : 1;
    size_t end = text->element_bytes;
    while (end > 0 && bytes[end - 1] == 0) {
        end -= 1;
    }
    end = (end + unit - 1) / unit * unit;
    if (!text->is_wide) {
        memcpy(target, bytes, end);
        return end;
    }
    size_t length = 0;
    for (size_t at = 0; at < end; at += unit) {
        const size_t added =
            encode(load_character(bytes + at, text->is_big_endian), target + length);
        if (added == 0) {
            return SIZE_MAX;
        }
        length += added;
    }
    return length;
}

bool cli_npy_text_read(const uint8_t *bytes, const cli_npy_text *text, const rondo_shape *shape,
                       const char *label, rondo_tensor *out_tensor) {
    const size_t count = (size_t)rondo_shape_get_count(shape);
    bool is_done = false;
    if (count > CLI_NPY_STRINGS_MAX) {
        cli_print_error("%s: holds %zu strings; at most %d are read", label, count,
                        CLI_NPY_STRINGS_MAX);
        return false;
    }
    // A character of 4 bytes has at most 4 as UTF-8.
    char *pool = malloc(count * text->element_bytes + 1);
    rondo_string *strings = calloc(count + 1, sizeof *strings);
    if (pool == NULL || strings == NULL) {
        cli_print_error("%s: out of memory", label);
        goto free_lists;
    }
    char *target = pool;
    for (size_t i = 0; i < count; i++) {
        const size_t length = decode_element(bytes + i * text->element_bytes, text, target);
        if (length == SIZE_MAX) {
            cli_print_error("%s: element %zu is no text", label, i);
            goto free_lists;
        }
        strings[i] = (rondo_string){.data = target, .size = length};
        target += length;
    }
    is_done = rondo_tensor_init_strings(shape, strings, out_tensor) == RONDO_STATUS_OK;
    if (!is_done) {
        cli_fail_about(label, "");
    }

free_lists:
    free(pool);
    free(strings);
    return is_done;
}

// ---- writing ----------------------------------------------------------------------------------

// Reads the character at `at` of a string; returns its bytes, 0 when it is not UTF-8.
static size_t decode_character(const rondo_string *string, size_t at, uint32_t *out_character) {
    const uint8_t *bytes = (const uint8_t *)string->data + at;
    const size_t rest = string->size - at;
    const size_t count = bytes[0] < 0x80             ? 1
                         : (bytes[0] & 0xe0) == 0xc0 ? 2
                         : (bytes[0] & 0xf0) == 0xe0 ? 3
                         : (bytes[0] & 0xf8) == 0xf0 ? 4
                                                     : 0;
    if (count == 0 || count > rest) {
        return 0;
    }
    uint32_t character = count == 1 ? bytes[0] : bytes[0] & (0x7fu >> count);
    for (size_t i = 1; i < count; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
        character = character << 6 | (bytes[i] & 0x3fu);
    }
    char again[4];
    *out_character = character;
    return encode(character, again) == count ? count : 0;  // the shortest form is the only one
}

static bool count_characters(const rondo_string *string, size_t *out_count) {
    uint32_t character = 1;
    *out_count = 0;
    for (size_t at = 0; at < string->size;) {
        const size_t length = decode_character(string, at, &character);
        if (length == 0) {
            return false;
        }
        at += length;
        *out_count += 1;
    }
    return character != 0;
}

bool cli_npy_text_measure(const rondo_tensor *tensor, const char *label, size_t *out_characters) {
    const rondo_string *strings = tensor->data;
    *out_characters = 1;
    for (int64_t i = 0; i < rondo_shape_get_count(&tensor->shape); i++) {
        size_t count;
        char text[128];
        if (!count_characters(&strings[i], &count)) {
            cli_print_error(
                "%s: element %lld is %s, which .npy cannot hold: it must be UTF-8 that "
                "does not end in a zero",
                label, (long long)i, cli_string_quote(&strings[i], text, sizeof text));
            return false;
        }
        *out_characters = count > *out_characters ? count : *out_characters;
    }
    return true;
}

void cli_npy_text_write(const rondo_tensor *tensor, size_t characters, FILE *file) {
    const rondo_string *strings = tensor->data;
    for (int64_t i = 0; i < rondo_shape_get_count(&tensor->shape); i++) {
        size_t at = 0;
        for (size_t c = 0; c < characters; c++) {
            uint32_t character = 0;
            at += at < strings[i].size ? decode_character(&strings[i], at, &character) : 0;
            const uint8_t bytes[4] = {(uint8_t)character, (uint8_t)(character >> 8),
                                      (uint8_t)(character >> 16), 0};
            (void)!fwrite(bytes, 1, sizeof bytes, file);
        }
    }
}
