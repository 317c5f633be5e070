// What a stranger's text may do to a terminal: nothing. The public call, and every way in which the
// library itself shows such a text.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/log/logging.h"
#include "base/text.h"
#include "rondo/text.h"
#include "support/test.h"

// Everything that must not come through, as bytes.
#define HOSTILE        \
    "\x1b[31m\xc2\x9b" \
    "2J\xe2\x80\xae"   \
    "abc\xe2\x81\xa6\x7f\xff\xed\xa0\x80\r\b"

static bool is_harmless(const char *text) {
    while (*text != '\0') {
        uint32_t character = 0;
        size_t length = rondo__utf8_read(text, &character);
        if (length == 0 || !rondo__is_showable(character)) {
            return false;
        }
        text += length;
    }
    return true;
}

TEST(test_base_escape__each_kind_of_character) {
    static const struct {
        const char *text;
        const char *shown;
    } rows[] = {
        {"", ""},
        {"plain name/0:1", "plain name/0:1"},
        {"h\xc3\xa4user \xe7\xbd\x91 \xf0\x9f\x9a\x80",
         "h\xc3\xa4user \xe7\xbd\x91 \xf0\x9f\x9a\x80"},
        {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
        {"\x1b[2J\x07\x7f", "\\x1b[2J\\x07\\x7f"},
        {"\xc2\x9b"
         "31m\xc2\x80\xc2\xa0",
         "\\x9b31m\\x80\xc2\xa0"},  // C1; a space
        {"\xe2\x80\xaa\xe2\x80\xae|\xe2\x81\xa6\xe2\x81\xa9", "\\u202a\\u202e|\\u2066\\u2069"},
        {"\xe2\x80\x8e\xd8\x9c\xe2\x80\xa8\xef\xbb\xbf", "\\u200e\\u061c\\u2028\\ufeff"},
        {"\xf3\xa0\x81\x81", "\\U000e0041"},  // a tag
        {"\xff\x80\xc3", "\\xff\\x80\\xc3"},  // no UTF-8
        {"\xc0\x9b|\xe0\x80\x9b|\xf0\x80\x80\x9b",
         "\\xc0\\x9b|\\xe0\\x80\\x9b|\\xf0\\x80\\x80\\x9b"},
        {"\xed\xa0\x80|\xf4\x90\x80\x80", "\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80"},
        {"C:\\dir \\x1b", "C:\\dir \\x1b"},  // backslashes stay
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        char shown[128];
        char again[128];
        assert_int_equal(rondo_text_escape(rows[i].text, shown, sizeof shown),
                         strlen(rows[i].shown));
        assert_string_equal(shown, rows[i].shown);
        rondo_text_escape(shown, again, sizeof again);
        assert_string_equal(again, shown);
    }
    char shown[4] = "old";
    assert_int_equal(rondo_text_escape(NULL, shown, sizeof shown), 0);
    assert_string_equal(shown, "");
}

TEST(test_base_escape__cuts_between_characters) {
    const char *text =
        "ab\x1b\xe7\xbd\x91"
        "cd";  // shown: ab \x1b (one character of 3) cd
    char whole[32];
    size_t length = rondo_text_escape(text, whole, sizeof whole);
    assert_int_equal(length, 11);
    assert_int_equal(rondo_text_escape(text, NULL, 0), 11);
    static const char *const shown[] = {
        [1] = "",
        [2] = ".",
        [3] = "..",
        [4] = "...",
        [5] = "a...",
        [6] = "ab...",
        [7] = "ab...",
        [8] = "ab...",
        [9] = "ab...",
        [10] = "ab\\x1b...",
        [11] = "ab\\x1b...",
        [12] =
            "ab\\x1b\xe7\xbd\x91"
            "cd",
    };
    for (size_t bytes = 1; bytes <= 12; ++bytes) {
        char buffer[16];
        memset(buffer, '#', sizeof buffer);
        assert_int_equal(rondo_text_escape(text, buffer, bytes), 11);
        assert_int_equal(buffer[bytes], '#');
        assert_string_equal(buffer, shown[bytes]);
    }
}

static char logged[1024];

static void keep_message(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

TEST(test_base_escape__record_and_log_are_harmless) {
    (void)RONDO_FAIL(BAD_DATA, "value \"%s\" is odd", HOSTILE);
    rondo__error_set_op(HOSTILE);
    rondo__error_prefix("%s", HOSTILE ".onnx");
    assert_true(is_harmless(rondo_error_get_last()->message));
    assert_true(is_harmless(rondo_error_get_last()->op));
    assert_non_null(strstr(rondo_error_get_last()->message, "\\x1b[31m\\x9b2J\\u202eabc"));
    rondo_log_set_sink(keep_message, NULL);
    rondo__log(RONDO_LOG_ERROR, __FILE__, __LINE__, "node %s", HOSTILE);
    rondo_log_set_sink(NULL, NULL);
    assert_true(is_harmless(logged));
    assert_non_null(strstr(logged, "node \\x1b[31m"));
}

TEST(test_base_escape__long_messages_are_cut_between_characters) {
    char name[600] = "";
    for (size_t i = 0; i + 4 < sizeof name; i += 3) {
        memcpy(name + i, "\xe7\xbd\x91", 4);
    }
    (void)RONDO_FAIL(BAD_DATA, "no value \"%s\"", name);
    const char *message = rondo_error_get_last()->message;
    assert_true(is_harmless(message));
    assert_null(strchr(message, '\\'));
    assert_non_null(strstr(message, "\xe7\xbd\x91...\xe7\xbd\x91"));
    assert_string_equal(message + strlen(message) - 4, "\xe7\xbd\x91\"");
    rondo__error_prefix("%s", "model.onnx");
    assert_true(is_harmless(message));
    assert_null(strchr(message, '\\'));
    assert_memory_equal(message, "model.onnx: no value \"", 22);
    assert_string_equal(message + strlen(message) - 4, "\xe7\xbd\x91\"");
}

TEST(test_base_escape__texts_and_json) {
    rondo__text text = {0};
    rondo__text_append_escaped(&text, HOSTILE);
    assert_true(is_harmless(text.bytes));
    rondo__text_deinit(&text);
    rondo__text_append_json(&text, "\"\\\n\t\xc2\x9b\xe2\x80\xae\xff\xf3\xa0\x81\x81\xe7\xbd\x91");
    assert_string_equal(text.bytes,
                        "\"\\\"\\\\\\n\\u0009\\u009b\\u202e\\ufffd\\udb40\\udc41\xe7\xbd\x91\"");
    rondo__text_deinit(&text);
    // In pages and pictures: no tags, no ends of attributes, no entities of the author's.
    rondo__text_append_json(&text, "</script>");
    assert_string_equal(text.bytes, "\"\\u003c/script>\"");
    rondo__text_deinit(&text);
    rondo__text_append_markup(&text, "<b a='x\">&lt;\n\x1b");
    assert_string_equal(text.bytes, "&#60;b a=&#39;x&#34;&#62;&#38;lt;\\n\\x1b");
    rondo__text_deinit(&text);
}

TEST(test_base_escape__fields_hold_whole_characters) {
    char field[12];
    rondo__text_fit(field, sizeof field, "layer3/gemm");
    assert_string_equal(field, "layer3/gemm");
    rondo__text_fit(field, sizeof field, "layer3/gemms");
    assert_string_equal(field, "layer3/g...");
    rondo__text_fit(field, sizeof field, "layer3\xe7\xbd\x91\xe7\xbd\x91");
    assert_string_equal(field, "layer3...");
    rondo__text_fit(field, sizeof field, NULL);
    assert_string_equal(field, "");
    rondo__text_fit(field, 4, "\xe7\xbd\x91x");
    assert_string_equal(field, "...");
}

TEST_MAIN()
