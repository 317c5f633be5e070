// SPDX-License-Identifier: Apache-2.0

#include "op/text/characters.h"

#include <errno.h>
#include <string.h>
#include <wctype.h>

#include "base/error.h"
#include "base/escape.h"

enum { STRAY = 0xdc00 };  // a lone half of a surrogate pair, which UTF-8 does not write

size_t rondo__string_read(const rondo_string *string, size_t at, uint32_t *out_character) {
    char bytes[RONDO__UTF8_MAX + 1] = {0};
    size_t left = string->size - at;
    memcpy(bytes, string->data + at, left < RONDO__UTF8_MAX ? left : RONDO__UTF8_MAX);
    size_t length = rondo__utf8_read(bytes, out_character);
    if (length == 0) {
        *out_character = STRAY + (uint8_t)bytes[0];
        return 1;
    }
    return length;
}

size_t rondo__string_write(uint32_t character, char out_bytes[RONDO__UTF8_MAX]) {
    if (character >= STRAY && character <= STRAY + 0xff) {
        out_bytes[0] = (char)(uint8_t)(character - STRAY);
        return 1;
    }
    size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length; i-- > 1;) {
        out_bytes[i] = (char)(uint8_t)(0x80u | (character & 0x3fu));
        character >>= 6;
    }
    out_bytes[0] = (char)(uint8_t)(leads[length] | character);
    return length;
}

rondo_status rondo__letters_init(const rondo__op *op, rondo__letters *out_letters) {
    static const char *const names[] = {"C.UTF-8", "C.utf8", "en_US.UTF-8"};
    *out_letters = (rondo__letters){0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        errno = 0;
        out_letters->table = newlocale(LC_CTYPE_MASK, names[i], (locale_t)0);
        if (out_letters->table != (locale_t)0) {
            return RONDO_STATUS_OK;
        }
        if (errno == ENOMEM) {
            return RONDO_OP_FAIL(op, NO_MEMORY, "no memory for the table of upper and lower case");
        }
    }
    return rondo__op_fail_unsupported(op,
                                      "upper and lower case need the locale C.UTF-8, which "
                                      "this system lacks");
}

void rondo__letters_deinit(rondo__letters *letters) {
    if (letters->table != (locale_t)0) {
        freelocale(letters->table);
    }
    *letters = (rondo__letters){0};
}

uint32_t rondo__letters_lower(const rondo__letters *letters, uint32_t character) {
    if (character < 0x80 || letters->table == (locale_t)0) {
        return character >= 'A' && character <= 'Z' ? character + ('a' - 'A') : character;
    }
    return (uint32_t)towlower_l((wint_t)character, letters->table);
}

uint32_t rondo__letters_upper(const rondo__letters *letters, uint32_t character) {
    if (character < 0x80 || letters->table == (locale_t)0) {
        return character >= 'a' && character <= 'z' ? character - ('a' - 'A') : character;
    }
    return (uint32_t)towupper_l((wint_t)character, letters->table);
}
