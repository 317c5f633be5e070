// Words and documents: suggestions for misspelt ones, JSON out and in, names of files.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_reader.h"
#include "json_writer.h"
#include "suggest.h"
#include "support/test.h"
#include "tensor_file.h"
#include "tensor_text.h"

// ---- suggestions ------------------------------------------------------------------------------

TEST(test_cli_text__distances) {
    static const struct {
        const char *a;
        const char *b;
        size_t distance;
    } rows[] = {
        {"", "", 0},           {"bench", "bench", 0},    {"bench", "bnech", 1},
        {"bench", "benhc", 1}, {"bench", "bench ", 1},   {"bench", "benc", 1},
        {"bench", "pench", 1}, {"", "run", 3},           {"ab", "ba", 1},
        {"abc", "cab", 2},     {"kitten", "sitting", 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(cli_suggest_measure(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(cli_suggest_measure(rows[i].b, rows[i].a), rows[i].distance);
    }
    char large[100];
    memset(large, 'x', sizeof large);
    large[99] = '\0';
    assert_true(cli_suggest_measure(large, "x") == SIZE_MAX);
}

static const char *suggest(const char *word) {
    static const char *const known[] = {"devices", "run",    "bench", "test",
                                        "inspect", "--tune", "--set"};
    cli_suggestion suggestion = {.word = word};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        cli_suggest_offer(&suggestion, known[i]);
    }
    return suggestion.best != NULL ? suggestion.best : "";
}

TEST(test_cli_text__only_what_is_near_is_suggested) {
    assert_string_equal(suggest("bnech"), "bench");
    assert_string_equal(suggest("rnu"), "run");
    assert_string_equal(suggest("device"), "devices");
    assert_string_equal(suggest("inpsect"), "inspect");
    assert_string_equal(suggest("frobnicate"), "");
    assert_string_equal(suggest("--sed"), "--set");
    assert_string_equal(suggest("--tnue"), "--tune");
    assert_string_equal(suggest("--runs"), "");
    assert_string_equal(suggest("x"), "");
    assert_string_equal(suggest(""), "");
}

// ---- JSON -------------------------------------------------------------------------------------

// What the writer makes of a text.
static char *write_text(const char *text) {
    char *document = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&document, &length);
    assert_non_null(file);
    cli_json json = {.file = file};
    cli_json_text(&json, NULL, text);
    assert_int_equal(fclose(file), 0);
    return document;
}

TEST(test_cli_text__json_is_safe_to_show) {
    static const struct {
        const char *text;
        const char *json;
    } rows[] = {
        {"plain \"quoted\" \\", "\"plain \\\"quoted\\\" \\\\\""},
        {"\x1b[31m\a\n\x7f", "\"\\u001b[31m\\u0007\\u000a\\u007f\""},
        {"caf\xc3\xa9 \xf0\x9f\x98\x80", "\"caf\xc3\xa9 \xf0\x9f\x98\x80\""},
        {"\xc2\x9b", "\"\\u009b\""},                 // begins sequences, as ESC [ does
        {"\xe2\x80\xae", "\"\\u202e\""},             // turns the direction
        {"\xf3\xa0\x80\x81", "\"\\udb40\\udc01\""},  // a tag, in two halves
        {"a\xff\xc2z\xe2\x80", "\"a\\ufffd\\ufffdz\\ufffd\\ufffd\""},  // no UTF-8
        {"\xc0\x80\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *json = write_text(rows[i].text);
        assert_string_equal(json, rows[i].json);
        free(json);
    }
}

TEST(test_cli_text__what_is_written_can_be_read) {
    static const char text[] =
        "tab\t, \"quote\", caf\xc3\xa9, \x1b[0m \xe2\x80\xae \xf3\xa0\x80\x81";
    char *document = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&document, &length);
    assert_non_null(file);
    cli_json json = {.file = file};
    cli_json_begin(&json, NULL, '{');
    cli_json_text(&json, text, text);
    cli_json_begin(&json, "inner", '{');
    cli_json_number(&json, "number", -1.5e-3);
    cli_json_number(&json, "nothing", (double)NAN);
    cli_json_flag(&json, "flag", true);
    cli_json_count(&json, "count", 42);
    cli_json_end(&json, '}');
    cli_json_begin(&json, "list", '[');
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    assert_int_equal(fclose(file), 0);

    json_t *value = NULL;
    double number = 0.0;
    assert_true(cli_json_parse(document, length, "test", &value));
    assert_int_equal(json_object_size(value), 3);
    assert_string_equal(json_string_value(json_object_get(value, text)), text);
    assert_true(cli_json_find_number(value, "inner.number", &number));
    assert_true(number == -1.5e-3);
    assert_true(cli_json_find_number(value, "inner.count", &number));
    assert_true(number == 42.0);
    assert_false(cli_json_find_number(value, "inner.nothing", &number));
    assert_false(cli_json_find_number(value, "inner.nowhere", &number));
    assert_false(cli_json_find_number(value, "list.number", &number));
    assert_true(json_is_true(cli_json_find(value, "inner.flag")));
    assert_true(json_is_array(cli_json_find(value, "list")));
    json_decref(value);
    free(document);
}

TEST(test_cli_text__malformed_json_is_refused) {
    static const char *const documents[] = {
        "",       "{",     "[1,",  "[1 2]",   "{\"a\" 1}",  "{\"a\":}",
        "{a: 1}", "\"abc", "\"\\", "\"\\q\"", "\"\\u12",    "\"\\u12g4\"",
        "tru",    "nul",   "1e",   "--1",     "[1] 2",      "{\"a\": 1,}",
        "[,]",    "\x01",  "+",    "[1e999]", "[\"\xff\"]", "{\"a\": 1, \"a\": 2}",
    };
    json_t *value = NULL;
    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++) {
        if (cli_json_parse(documents[i], strlen(documents[i]), "test", &value)) {
            fail_msg("accepted: %s", documents[i]);
        }
        assert_null(value);
    }
    // Nested too deeply, and too large, though well-formed.
    enum { DEPTH = 100000, BYTES = (16 << 20) + 1 };
    char *large = malloc(BYTES);
    assert_non_null(large);
    memset(large, '[', DEPTH);
    memset(large + DEPTH, ']', DEPTH);
    assert_false(cli_json_parse(large, (size_t)2 * DEPTH, "test", &value));
    memset(large, ' ', BYTES);
    memcpy(large, "[]", 2);
    assert_false(cli_json_parse(large, BYTES, "test", &value));
    assert_true(cli_json_parse(large, BYTES - 1, "test", &value));
    json_decref(value);
    free(large);
    assert_false(cli_json_parse("[\"a\0b\"]", 7, "test", &value));
}

// ---- names of files ---------------------------------------------------------------------------

TEST(test_cli_text__file_names_are_safe) {
    static const struct {
        const char *name;
        size_t number;
        const char *file;
    } rows[] = {
        {"z", 1, "z"},
        {"a/b", 1, "a_b"},
        {"a/b", 2, "a_b.2"},
        {"../../etc", 1, "_._.._etc"},
        {"..", 1, "_."},
        {".", 1, "_"},
        {"", 1, "output"},
        {"\x1b[0m", 1, "__0m"},
        {".hidden", 3, "_hidden.3"},
    };
    char name[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_tensor_file_name(rows[i].name, rows[i].number, name, sizeof name);
        assert_string_equal(name, rows[i].file);
    }
    char large[1000];
    memset(large, 'x', sizeof large);
    large[999] = '\0';
    cli_tensor_file_name(large, 12345, name, sizeof name);
    assert_true(strlen(name) < 240);
    assert_string_equal(name + strlen(name) - 6, ".12345");
}

// The sign of a NaN is chance.
TEST(test_cli_text__a_mean_of_both_infinities) {
    float values[] = {1.0f, -INFINITY, INFINITY};
    const rondo_tensor tensor = {
        .dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {3}}, .data = values};
    char text[200];
    assert_string_equal(cli_tensor_summarise(&tensor, text, sizeof text),
                        "min -inf, mean nan, max inf (at 2); values 1 -inf inf");
}

TEST_MAIN()
