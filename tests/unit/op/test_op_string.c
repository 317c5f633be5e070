// Ops on strings: those that move elements, Cast, the ops on text, and what is refused. Expected
// values are of the ONNX reference (splits) and ONNX Runtime (the rest).
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // RTLD_NEXT
#endif
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>

#include "op/op.h"
#include "op/text/characters.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

TEST(test_op_string__elements_move) {
    static const char abc[] = "string[2,3]:a,bb,,\xc3\xa4,e\\sf,longer";
    const op_row rows[] = {
        {"Identity", 16, abc, "", abc},
        {"Reshape", 14, "string[4]:a,b,c,d i64[2]:2,2", "", "string[2,2]:a,b,c,d"},
        {"Flatten", 13, "string[2,1,2]:a,b,c,d", "", "string[2,2]:a,b,c,d"},
        {"Squeeze", 13, "string[1,2]:a,b", "", "string[2]:a,b"},
        {"Unsqueeze", 13, "string[2]:a,b i64[1]:0", "", "string[1,2]:a,b"},
        {"Transpose", 13, abc, "", "string[3,2]:a,\xc3\xa4,bb,e\\sf,,longer"},
        {"Concat", 13, "string[1,2]:a,b string[1,1]:c", "axis=1", "string[1,3]:a,b,c"},
        {"Split", 13, "string[3]:a,b,c i64[2]:1,2", "", "string[1]:a string[2]:b,c"},
        {"Slice", 13, "string[4]:a,b,c,d i64[1]:3 i64[1]:0 i64[1]:0 i64[1]:-2", "",
         "string[2]:d,b"},
        {"Gather", 13, "string[3]:a,b,c i64[2,2]:2,0,-1,1", "", "string[2,2]:c,a,c,b"},
        {"GatherElements", 13, "string[2,2]:a,b,c,d i64[1,2]:1,0", "", "string[1,2]:c,b"},
        {"GatherND", 13, "string[2,2]:a,b,c,d i64[2,2]:1,1,0,1", "", "string[2]:d,b"},
        {"ScatterElements", 16, "string[3]:a,b,c i64[1]:1 string[1]:X", "", "string[3]:a,X,c"},
        {"ScatterND", 16, "string[3]:a,b,c i64[2,1]:2,0 string[2]:Z,X", "", "string[3]:X,b,Z"},
        {"Tile", 13, "string[2]:a,b i64[1]:2", "", "string[4]:a,b,a,b"},
        {"Expand", 13, "string[2,1]:a,b i64[2]:2,2", "", "string[2,2]:a,a,b,b"},
        {"Where", 16, "bool[2,1]:1,0 string[1,2]:a,b string[]:z", "", "string[2,2]:a,b,z,z"},
        {"Compress", 11, "string[3]:a,b,c bool[3]:1,0,1", "", "string[2]:a,c"},
        {"OneHot", 11, "i64[2]:1,0 i64[]:2 string[2]:off,on", "", "string[2,2]:off,on,on,off"},
        {"ReverseSequence", 10, "string[2,2]:a,b,c,d i64[2]:2,1", "", "string[2,2]:c,b,a,d"},
        {"DepthToSpace", 13, "string[1,4,1,1]:a,b,c,d", "blocksize=2", "string[1,1,2,2]:a,b,c,d"},
        {"Shape", 15, abc, "", "i64[2]:2,3"},
        {"Size", 13, abc, "", "i64[]:6"},
        {"Equal", 19, "string[2,2]:a,b,,ab string[2]:a,ab", "", "bool[2,2]:1,0,0,1"},
        {"Reshape", 14, "string[0] i64[2]:0,3", "", "string[0,3]"},
        // Ops that do not know strings refuse them, at whichever input.
        {"Add", 14, "string[1] string[1]", "", "!UNSUPPORTED input 0 of type string"},
        {"Gather", 13, "f32[1] string[1]", "", "!UNSUPPORTED input 1 of type string"},
        {"Relu", 14, "string[1]", "", "!UNSUPPORTED input 0 of type string"},
        {"NonZero", 13, "string[1]", "", "!UNSUPPORTED input 0 of type string"},
        {"Less", 13, "string[1] string[1]", "", "!UNSUPPORTED input 0 of type string"},
        {"ConstantOfShape", 9, "i64[1]:1", "value=T:string[1]:a", "!UNSUPPORTED output of strings"},
        {"EyeLike", 9, "f32[2,2]", "dtype=8", "!UNSUPPORTED"},
        {"ScatterND", 16, "string[1] i64[1,1]:0 string[1]", "reduction=s:add",
         "!UNSUPPORTED input 0 of type string"},
    };
    OP_ROWS_CHECK(rows);
}

static const op_row casts[] = {
    {"Cast", 13, "f32[10]:0.1,0.33333334,1e10,-1e-10,3.1415927,1e20,nan,inf,-inf,-0", "to=8",
     "string[10]:0.1,0.33333334,1e+10,-1e-10,3.1415927,1e+20,NaN,INF,-INF,-0"},
    {"Cast", 13, "f32[8]:16777216,123456792,0.60484552,1,100000,1e7,0.0001,0.00001", "to=8",
     "string[8]:16777216,1.2345679e+08,0.6048455,1,100000,10000000,0.0001,1e-05"},
    {"Cast", 13, "f64[3]:0.1,0.3333333333333333,123456789012", "to=8",
     "string[3]:0.1,0.3333333333333333,123456789012"},
    {"Cast", 13, "f16[2]:0.1,1e-7", "to=8", "string[2]:0.099975586,1.1920929e-07"},
    {"Cast", 13, "i8[2]:-5,7", "to=8", "string[2]:-5,7"},
    {"Cast", 13, "u64[1]:18446744073709551615", "to=8", "string[1]:18446744073709551615"},
    {"Cast", 13, "bool[2]:1,0", "to=8", "string[2]:1,0"},
    {"CastLike", 15, "i32[1]:3 string[]:x", "", "string[1]:3"},
    {"CastLike", 15, "string[1]:3.5 f32[]:1", "", "f32[1]:3.5"},
    {"Cast", 13, "string[8]:1.5,\\s-2e3\\t,NaN,nan,INF,+INF,-INF,1e50", "to=1",
     "f32[8]:1.5,-2000,nan,nan,inf,inf,-inf,inf"},
    {"Cast", 13, "string[2]:0.1,1e300", "to=11", "f64[2]:0.1,1e300"},
    {"Cast", 13, "string[4]:7,-7,1.9,1e5", "to=7", "i64[4]:7,-7,1,100000"},
    {"Cast", 13, "string[2]:9223372036854775807,-9223372036854775808", "to=7",
     "i64[2]:9223372036854775807,-9223372036854775808"},
    {"Cast", 13, "string[2]:18446744073709551615,3", "to=13", "u64[2]:18446744073709551615,3"},
    {"Cast", 13, "string[2]:200,-7", "to=2", "u8[2]:200,249"},
    {"Cast", 13, "string[3]:1.5,0,2", "to=9", "bool[3]:1,0,1"},
    {"Cast", 13, "string[1]:0.1", "to=10", "f16[1]:0.1"},
    // So close to the middle of two that one rounding too many puts them there.
    {"Cast", 13,
     "string[6]:1.00048828125,1.000488281250000000000001,-1.000488281250000000000001,"
     "1.001464843749999999999999,65519.99999999999999999999,0x1.002000000000000001p0",
     "to=10", "~1e-9 f16[6]:1,1.0009765625,-1.0009765625,1.0009765625,65504,1.0009765625"},
    {"Cast", 13, "string[2]:2.98023223876953125e-8,2.98023223876953125000000001e-8", "to=10",
     "~1e-9 f16[2]:0,5.9604644775390625e-8"},
    {"Cast", 13, "string[3]:1.00390625,1.003906250000000000000001,1.011718749999999999999999",
     "to=16", "~1e-9 bf16[3]:1,1.0078125,1.0078125"},
    {"Cast", 13, "string[6]:70000,-inf,1e-9,-0,nan,65519.99", "to=10",
     "f16[6]:inf,-inf,0,-0,nan,65504"},
    {"Cast", 13, "string[4]:1e39,-1e-50,3.4e38,nan", "to=16", "bf16[4]:inf,-0,inf,nan"},
    {"Cast", 13, "string[2]:a,b", "to=8", "string[2]:a,b"},
    {"Cast", 13, "string[2]:1,1.5abc", "to=1", "!BAD_DATA element 1, \"1.5abc\", is no number"},
    {"Cast", 13, "string[1]:", "to=7", "!BAD_DATA element 0, \"\", is no number"},
    {"Cast", 13, "string[1]:1\\c5", "to=1", "!BAD_DATA is no number"},
};

TEST(test_op_string__casts) {
    OP_ROWS_CHECK(casts);
}

// A program may have set a decimal comma; numbers are written and read with a point all the same.
TEST(test_op_string__casts_know_no_locale) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            OP_ROWS_CHECK(casts);
            (void)setlocale(LC_ALL, "C");
            return;
        }
    }
    print_message("skipped: this machine has no locale with a decimal comma\n");
    skip();
}

TEST(test_op_string__text) {
    static const char words[] = "string[4]:Ab,AB,\xc3\x84\xc3\xb6\xc3\x9f,monday";
    const op_row rows[] = {
        {"StringConcat", 20, "string[2,1]:a,b string[2]:x,", "", "string[2,2]:ax,a,bx,b"},
        {"StringConcat", 20, "string[0] string[1]:x", "", "string[0]"},
        {"StringConcat", 20, "string[1] f32[1]", "", "!UNSUPPORTED input 1 of type f32"},
        {"StringNormalizer", 10, words, "case_change_action=s:LOWER",
         "string[4]:ab,ab,\xc3\xa4\xc3\xb6\xc3\x9f,monday"},
        {"StringNormalizer", 10, words, "case_change_action=s:UPPER",
         "string[4]:AB,AB,\xc3\x84\xc3\x96\xc3\x9f,MONDAY"},
        {"StringNormalizer", 10, words, "stopwords=S:AB",
         "string[2]:\xc3\x84\xc3\xb6\xc3\x9f,monday"},
        {"StringNormalizer", 10, words, "stopwords=S:AB is_case_sensitive=1",
         "string[3]:Ab,\xc3\x84\xc3\xb6\xc3\x9f,monday"},
        {"StringNormalizer", 10, "string[1,2]:a,b", "stopwords=S:a,b", "string[1,1]:"},
        // Case changes after stop words were taken out; bytes that are no UTF-8 stay.
        {"StringNormalizer", 10, "string[3]:Ab,ab,\xff",
         "stopwords=S:ab is_case_sensitive=1 "
         "case_change_action=s:LOWER",
         "string[2]:ab,\xff"},
        // U+023A takes two bytes, its small form U+2C65 three.
        {"StringNormalizer", 10, "string[1]:\xc8\xba\xc8\xba\xc8\xba", "case_change_action=s:LOWER",
         "string[1]:\xe2\xb1\xa5\xe2\xb1\xa5\xe2\xb1\xa5"},
        {"StringNormalizer", 10, "string[2,2]", "", "!BAD_DATA shape [2, 2], not [C] or [1, C]"},
        {"StringNormalizer", 10, "string[1]", "locale=s:tr_TR", "!UNSUPPORTED attribute locale"},
        {"StringNormalizer", 10, "string[1]", "case_change_action=s:TITLE",
         "!UNSUPPORTED attribute case_change_action"},
        {"StringSplit", 20, "string[4]:\\sa\\s\\sb\\sc\\s,,x,a\\tb\\nc", "",
         "string[4,3]:a,b,c,,,,x,,,a,b,c i64[4]:3,0,1,3"},
        {"StringSplit", 20, "string[2]:\\sa\\s\\sb\\sc\\s,x", "maxsplit=1",
         "string[2,2]:a,b\\sc\\s,x, i64[2]:2,1"},
        {"StringSplit", 20, "string[3]:a-b--c,,-", "delimiter=s:-",
         "string[3,4]:a,b,,c,,,,,,,, i64[3]:4,1,2"},
        {"StringSplit", 20, "string[1]:a--b-c", "delimiter=s:--", "string[1,2]:a,b-c i64[1]:2"},
        {"StringSplit", 20, "string[1]:a\\sb", "maxsplit=0", "string[1,1]:a\\sb i64[1]:1"},
        {"StringSplit", 20, "string[2]:,", "", "string[2,0] i64[2]:0,0"},
        {"StringSplit", 20, "string[0]", "", "string[0,0] i64[0]"},
    };
    OP_ROWS_CHECK(rows);
}

#define X16 "xxxxxxxxxxxxxxxx"
#define X64 X16 X16 X16 X16
#define X256 X64 X64 X64 X64
#define MATCH(pattern, strings, expected) \
    { "RegexFullMatch", 20, strings, "pattern=s:" pattern, expected }
#define BAD_PATTERN(pattern, expected) \
    { "RegexFullMatch", 20, "string[1]", "pattern=s:" pattern, expected }

TEST(test_op_string__regular_expressions) {
    const op_row rows[] = {
        MATCH("www\\.[\\w.-]+\\.\\bcom\\b",
              "string[3]:www.google.com,www.facebook.com,www.bbc.co.uk", "bool[3]:1,1,0"),
        MATCH("(\\W|^)[\\w.\\-]{0,25}@(yahoo|gmail)\\.com(\\W|$)",
              "string[3]:account@gmail.com,account@hotmail.com,@yahoo.com", "bool[3]:1,0,1"),
        MATCH("a.b",
              "string[4]:a\\nb,a\xc3\xa9"
              "b,axb,ab",
              "bool[4]:0,1,1,0"),
        MATCH("(?s)a.b", "string[1]:a\\nb", "bool[1]:1"),
        MATCH("(?i)\xc3\xa4[b-d]",
              "string[3]:\xc3\x84"
              "C,\xc3\xa4x,\xc3\xa4"
              "B",
              "bool[3]:1,0,1"),
        MATCH("(?i:a)b", "string[2]:Ab,AB", "bool[2]:1,0"),
        MATCH("", "string[2]:,a", "bool[2]:1,0"),
        MATCH("a|bc|", "string[5]:a,bc,,b,abc", "bool[5]:1,1,1,0,0"),
        MATCH("(ab)*", "string[4]:,ab,abab,aba", "bool[4]:1,1,1,0"),
        MATCH("(ab)+?c?", "string[4]:,ab,ababc,c", "bool[4]:0,1,1,0"),
        MATCH("a{2,3}", "string[5]:a,aa,aaa,aaaa,", "bool[5]:0,1,1,0,0"),
        MATCH("a{0,2}b{2}c{1,}", "string[4]:bbc,aabbcc,aaabbc,abbb", "bool[4]:1,1,0,0"),
        MATCH("(a|b){0}x", "string[2]:x,ax", "bool[2]:1,0"),
        MATCH("(a*)*b", "string[2]:aaaaaaaaaaaaaaaaaaaaaaaaaaaaab,aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
              "bool[2]:1,0"),
        MATCH("[^a-c]", "string[3]:a,d,\xe2\x82\xac", "bool[3]:0,1,1"),
        MATCH("[]a]+", "string[3]:],a],b", "bool[3]:1,1,0"),
        MATCH("[a-]", "string[3]:a,-,b", "bool[3]:1,1,0"),
        MATCH("[[:alpha:]\\d]+", "string[3]:aZ9,a_,", "bool[3]:1,0,0"),
        MATCH("[[:^digit:]]\\D\\S\\W", "string[2]:abc!,1bc!", "bool[2]:1,0"),
        MATCH("\\x41\\x{e9}\\101\\t\\.",
              "string[1]:A\xc3\xa9"
              "A\\t.",
              "bool[1]:1"),
        MATCH("\\Qa.b*\\Ec", "string[2]:a.b*c,axbc", "bool[2]:1,0"),
        MATCH("(?P<name>a)(?<other>b)(?:c)", "string[1]:abc", "bool[1]:1"),
        MATCH("(?m)a$\\n^b", "string[1]:a\\nb", "bool[1]:1"),
        MATCH("a$\\n^b", "string[1]:a\\nb", "bool[1]:0"),
        MATCH("\\Aab\\z", "string[1]:ab", "bool[1]:1"),
        MATCH("a\\Bb", "string[1]:ab", "bool[1]:1"),
        MATCH("x{y", "string[1]:x{y", "bool[1]:1"),
        MATCH("\\pL\\p{Greek}[\\p{Nd}]", "string[2]:\xc3\xa4\xce\xb1\xd9\xa3,\xc3\xa4x3",
              "bool[2]:1,0"),
        // A group's name in both forms, which are neither in a class, nor escaped, nor quoted.
        MATCH("(?<n>a)[(?<]\\(?<\\Q(?<\\E[]^[:space:]\\](?<](?<m>b)",
              "string[3]:a?<(?<<b,a?(<(?<]b,a?P<(?<]b", "bool[3]:1,1,0"),
        MATCH("(?<n>[(?<]+)[](?<]", "string[3]:(?<],((,(P(", "bool[3]:1,1,0"),
        MATCH("\\Q(?<\\E\\((?<n>a)", "string[2]:(?<(a,(?P<(a", "bool[2]:1,0"),
        // Bytes that are no UTF-8 are no characters.
        MATCH("a.?[^x]?", "string[3]:a\xff,a\xc3,a", "bool[3]:0,0,1"),
        // A pattern that keeps engines busy that try one way after the other.
        MATCH("((x+x+)+y|(x*)*z)?", "string[1]:" X256, "bool[1]:0"),
        MATCH("(\\pL{500}){2}", "string[1]:a", "!UNSUPPORTED pattern too large"),
        BAD_PATTERN("((a{1,30}){1,30}){1,30}", "!BAD_DATA invalid repetition size: {1,30}"),
        BAD_PATTERN("(a", "!BAD_DATA the pattern is no regular expression: missing ): (a"),
        BAD_PATTERN("a)", "!BAD_DATA unexpected ): a)"),
        BAD_PATTERN("[a", "!BAD_DATA missing ]: [a"),
        BAD_PATTERN("*a", "!BAD_DATA no argument for repetition operator: *"),
        BAD_PATTERN("a**", "!BAD_DATA bad repetition operator: **"),
        BAD_PATTERN("a{1001}", "!BAD_DATA invalid repetition size: {1001}"),
        BAD_PATTERN("a{3,2}", "!BAD_DATA invalid repetition size: {3,2}"),
        BAD_PATTERN("[b-a]", "!BAD_DATA invalid character class range: b-a"),
        BAD_PATTERN("[[:nope:]]", "!BAD_DATA invalid character class range: [:nope:]"),
        BAD_PATTERN("\\y", "!BAD_DATA invalid escape sequence: \\y"),
        BAD_PATTERN("\\1", "!BAD_DATA invalid escape sequence: \\1"),
        BAD_PATTERN("a\\", "!BAD_DATA trailing \\"),
        BAD_PATTERN("(?z)a", "!BAD_DATA invalid perl operator: (?z"),
        BAD_PATTERN("(?=a)", "!BAD_DATA invalid perl operator: (?="),
        BAD_PATTERN("(?<!a)", "!BAD_DATA invalid perl operator: (?<"),
        BAD_PATTERN("(?<n", "!BAD_DATA invalid named capture group"),
        BAD_PATTERN("a\xff", "!BAD_DATA invalid UTF-8"),
        {"RegexFullMatch", 20, "string[1]", "", "!BAD_DATA attribute pattern is missing"},
    };
    OP_ROWS_CHECK(rows);
}

#define TOKENIZE(strings, attributes, expected) \
    { "com.microsoft.Tokenizer", 1, strings, attributes, expected }

TEST(test_op_string__tokens) {
    const op_row rows[] = {
        TOKENIZE("string[2]:ab12c,x", "tokenexp=s:[a-z]+ pad_value=s:#", "string[2,2]:ab,c,x,#"),
        // The longest of the matches that begin at one place, lazy or not.
        TOKENIZE("string[1]:abab", "tokenexp=s:a|ab|aba", "string[1,1]:aba"),
        TOKENIZE("string[1]:xaab", "tokenexp=s:a+?", "string[1,1]:aa"),
        // What stands before a place counts there, though the search begins at it.
        TOKENIZE("string[1]:aaa", "tokenexp=s:\\ba", "string[1,1]:a"),
        TOKENIZE("string[1]:ab", "tokenexp=s:^[ab]", "string[1,1]:a"),
        TOKENIZE("string[1]:ab\xff"
                 "cd",
                 "tokenexp=s:[^x]+", "string[1,2]:ab,cd"),
        TOKENIZE("string[1]:a\xc3\xa4"
                 "bc",
                 "tokenexp=s:. mincharnum=1", "string[1,4]:a,\xc3\xa4,b,c"),
        TOKENIZE("string[1]:c\n\n", "tokenexp=s:. mincharnum=1", "string[1,3]:c,\n,\n"),
        TOKENIZE("string[1]:a-bc--d", "separators=S:-+ mincharnum=1", "string[1,3]:a,bc,d"),
        TOKENIZE("string[1]:a-bc--d", "separators=S:-+ mincharnum=2", "string[1,1]:bc"),
        TOKENIZE("string[2]:,a", "tokenexp=s:x*", "string[2,0]"),
        TOKENIZE("string[1]:a", "tokenexp=s:(a", "!BAD_DATA missing ): (a"),
        TOKENIZE("string[1]:a", "tokenexp=s:(\\pL{500}){2}", "!UNSUPPORTED pattern too large"),
    };
    OP_ROWS_CHECK(rows);
}

static int g_locale_error;  // 0: locales are there

// In place of the C library's.
locale_t newlocale(int mask, const char *name, locale_t base) {
    union {
        void *address;
        locale_t (*function)(int mask, const char *name, locale_t base);
    } real = {.address = dlsym(RTLD_NEXT, "newlocale")};
    if (g_locale_error != 0) {
        errno = g_locale_error;
        return (locale_t)0;
    }
    return real.function(mask, name, base);
}

// That there is no memory is not said to be a locale that the system lacks.
TEST(test_op_string__no_table_of_letters) {
    static const rondo__op_def def = {.name = "StringNormalizer"};
    char name[] = "lower";
    const rondo__op op = {.def = &def, .name = name};
    rondo__letters letters;
    g_locale_error = ENOMEM;
    assert_int_equal(rondo__letters_init(&op, &letters), RONDO_STATUS_NO_MEMORY);
    g_locale_error = ENOENT;
    assert_int_equal(rondo__letters_init(&op, &letters), RONDO_STATUS_UNSUPPORTED);
    g_locale_error = 0;
    assert_int_equal(rondo__letters_init(&op, &letters), RONDO_STATUS_OK);
    rondo__letters_deinit(&letters);
}

TEST_MAIN()
