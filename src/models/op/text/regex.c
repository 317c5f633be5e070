// op/text/regex.c — see regex.h.
//
// A fragment is a run of instructions with one way in (its first) and one way out (behind its
// last). Jumps are relative, so that a fragment can be moved and copied as it is: {2,5} is five
// copies.
// SPDX-License-Identifier: Apache-2.0
#include "op/text/regex.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

enum {
    INSTRUCTIONS_MAX = 20000,
    RANGES_MAX = 100000,
    REPEAT_MAX = 1000,  // as RE2
    DEPTH_MAX = 200,    // groups within groups
    CHARACTER_MAX = 0x10ffff,
};

typedef enum op_code {
    CODE_SET,    // one character of ranges[a .. a + b)
    CODE_SPLIT,  // go on at +a and at +b
    CODE_JUMP,   // go on at +a
    CODE_TEXT_BEGIN,
    CODE_TEXT_END,
    CODE_LINE_BEGIN,
    CODE_LINE_END,
    CODE_WORD_BORDER,
    CODE_NO_WORD_BORDER,
    CODE_MATCH,
} op_code;

typedef struct instruction {
    op_code code;
    bool is_negated;  // SET: any other character
    bool ignores_case;
    int32_t a;
    int32_t b;
} instruction;

typedef struct range {
    uint32_t low;
    uint32_t high;
} range;

struct rondo__regex {
    size_t count, capacity;
    instruction *program;
    size_t range_count, range_capacity;
    range *ranges;
    rondo__letters letters;
    // of a match: the states reached, and the list to work through, for now and for the next
    int32_t *states[2];
    size_t *marks;  // the step in which a state was last reached, from 1 on
    int32_t *pending;
};

// ---- parsing ----------------------------------------------------------------------------------

typedef struct parser {
    const rondo__op *op;
    rondo__regex *regex;
    rondo_string pattern;
    size_t at;
    int depth;
    bool ignores_case;     // (?i)
    bool dot_takes_lines;  // (?s)
    bool has_lines;        // (?m)
} parser;

static rondo_status fail(const parser *p, const char *what) {
    return RONDO_OP_FAIL(p->op, BAD_DATA, "the pattern is no regular expression: %s at byte %zu",
                         what, p->at);
}

static rondo_status fail_unknown(const parser *p, const char *what) {
    char detail[96];
    (void)snprintf(detail, sizeof detail, "attribute pattern: %s at byte %zu", what, p->at);
    return rondo__op_fail_unsupported(p->op, detail);
}

static bool is_at_end(const parser *p) {
    return p->at >= p->pattern.size;
}

// The byte `offset` further on; 0 behind the end.
static char peek(const parser *p, size_t offset) {
    return offset < p->pattern.size - p->at ? p->pattern.data[p->at + offset] : '\0';
}

static bool skip(parser *p, const char *text) {
    size_t length = strlen(text);
    if (p->pattern.size - p->at < length || memcmp(p->pattern.data + p->at, text, length) != 0) {
        return false;
    }
    p->at += length;
    return true;
}

static rondo_status append(parser *p, instruction next) {
    rondo__regex *regex = p->regex;
    if (regex->count >= INSTRUCTIONS_MAX) {
        return fail_unknown(p, "a pattern of this size");
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(regex->program, regex->capacity, regex->count + 1));
    regex->program[regex->count++] = next;
    return RONDO_STATUS_OK;
}

// Puts an instruction in front of the fragment that begins at `start` and goes to the end.
static rondo_status insert(parser *p, size_t start, instruction first) {
    RETURN_IF_ERROR(append(p, first));
    instruction *program = p->regex->program;
    memmove(&program[start + 1], &program[start], (p->regex->count - 1 - start) * sizeof *program);
    program[start] = first;
    return RONDO_STATUS_OK;
}

static rondo_status add_range(parser *p, uint32_t low, uint32_t high) {
    rondo__regex *regex = p->regex;
    if (regex->range_count >= RANGES_MAX) {
        return fail_unknown(p, "a pattern of this size");
    }
    RETURN_IF_ERROR(
        RONDO__ARRAY_RESERVE(regex->ranges, regex->range_capacity, regex->range_count + 1));
    regex->ranges[regex->range_count++] = (range){low, high};
    return RONDO_STATUS_OK;
}

static rondo_status append_set(parser *p, size_t first_range, bool is_negated) {
    return append(p, (instruction){.code = CODE_SET,
                                   .is_negated = is_negated,
                                   .ignores_case = p->ignores_case,
                                   .a = (int32_t)first_range,
                                   .b = (int32_t)(p->regex->range_count - first_range)});
}

static rondo_status append_character(parser *p, uint32_t character) {
    size_t first = p->regex->range_count;
    RETURN_IF_ERROR(add_range(p, character, character));
    return append_set(p, first, false);
}

// ---- classes

typedef struct named_class {
    const char *name;
    const char *ranges;  // pairs of characters
} named_class;

static const named_class posix_classes[] = {
    {"alnum", "09AZaz"},
    {"alpha", "AZaz"},
    {"ascii", "\x01\x7f"},
    {"blank", "\t\t  "},
    {"cntrl", "\x01\x1f\x7f\x7f"},
    {"digit", "09"},
    {"graph", "!~"},
    {"lower", "az"},
    {"print", " ~"},
    {"punct", "!/:@[`{~"},
    {"space", "\t\r  "},
    {"upper", "AZ"},
    {"word", "09AZaz__"},
    {"xdigit", "09AFaf"},
};

static const named_class escaped_classes[] = {{"d", "09"}, {"w", "09AZaz__"}, {"s", "\t\n\f\r  "}};

// Adds a class, or all other characters. The pairs are in ascending order.
static rondo_status add_class(parser *p, const char *pairs, bool is_negated) {
    uint32_t from = 0;
    for (; *pairs != '\0'; pairs += 2) {
        uint32_t low = (uint8_t)pairs[0];
        uint32_t high = (uint8_t)pairs[1];
        if (!is_negated) {
            RETURN_IF_ERROR(add_range(p, low, high));
        } else if (low > from) {
            RETURN_IF_ERROR(add_range(p, from, low - 1));
        }
        from = high + 1;
    }
    return is_negated ? add_range(p, from, CHARACTER_MAX) : RONDO_STATUS_OK;
}

// \d and its like; *out_is_class is false when there is none, and nothing is read.
static rondo_status parse_escaped_class(parser *p, bool *out_is_class) {
    *out_is_class = false;
    if (peek(p, 0) != '\\') {
        return RONDO_STATUS_OK;
    }
    if (peek(p, 1) == 'p' || peek(p, 1) == 'P') {
        return fail_unknown(p, "a Unicode class (\\p)");
    }
    for (size_t i = 0; i < sizeof escaped_classes / sizeof escaped_classes[0]; ++i) {
        char lower = escaped_classes[i].name[0];
        if (peek(p, 1) == lower || peek(p, 1) == lower - ('a' - 'A')) {
            bool is_negated = peek(p, 1) != lower;
            p->at += 2;
            *out_is_class = true;
            return add_class(p, escaped_classes[i].ranges, is_negated);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status parse_posix_class(parser *p, bool *out_is_class) {
    *out_is_class = false;
    if (peek(p, 0) != '[' || peek(p, 1) != ':') {
        return RONDO_STATUS_OK;
    }
    size_t before = p->at;
    p->at += 2;
    bool is_negated = skip(p, "^");
    for (size_t i = 0; i < sizeof posix_classes / sizeof posix_classes[0]; ++i) {
        size_t start = p->at;
        if (skip(p, posix_classes[i].name) && skip(p, ":]")) {
            *out_is_class = true;
            return add_class(p, posix_classes[i].ranges, is_negated);
        }
        p->at = start;
    }
    p->at = before;
    return fail(p, "an unknown class");
}

// ---- single characters

static int get_digit(char c, int base) {
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 99;
    return digit < base ? digit : -1;
}

// Reads up to `limit` digits. False when there is none, or the number is no character.
static bool read_code(parser *p, int base, size_t limit, uint32_t *out_code) {
    uint32_t code = 0;
    size_t count = 0;
    for (; count < limit && get_digit(peek(p, 0), base) >= 0 && code <= CHARACTER_MAX; ++count) {
        code = code * (uint32_t)base + (uint32_t)get_digit(peek(p, 0), base);
        p->at += 1;
    }
    *out_code = code;
    return count > 0 && code <= CHARACTER_MAX;
}

// Behind a backslash: a character that stands for another, or for itself.
static rondo_status parse_escape(parser *p, uint32_t *out_character) {
    static const char letters[] = "tnrfva";
    static const char meanings[] = "\t\n\r\f\v\a";
    char c = peek(p, 0);
    const char *found = c != '\0' ? strchr(letters, c) : NULL;
    if (found != NULL) {
        *out_character = (uint8_t)meanings[found - letters];
        p->at += 1;
        return RONDO_STATUS_OK;
    }
    if (skip(p, "x{")) {
        return read_code(p, 16, 8, out_character) && skip(p, "}") ? RONDO_STATUS_OK
                                                                  : fail(p, "a bad \\x");
    }
    if (skip(p, "x")) {
        return read_code(p, 16, 2, out_character) ? RONDO_STATUS_OK : fail(p, "a bad \\x");
    }
    if (c >= '0' && c <= '7') {
        return read_code(p, 8, 3, out_character) ? RONDO_STATUS_OK : fail(p, "a bad number");
    }
    bool is_word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_at_end(p) || is_word) {
        return c == 'C' ? fail_unknown(p, "\\C") : fail(p, "an unknown escape");
    }
    p->at += rondo__string_read(&p->pattern, p->at, out_character);
    return RONDO_STATUS_OK;
}

static rondo_status parse_character(parser *p, uint32_t *out_character) {
    if (skip(p, "\\")) {
        return parse_escape(p, out_character);
    }
    p->at += rondo__string_read(&p->pattern, p->at, out_character);
    return RONDO_STATUS_OK;
}

// "[" has been read.
static rondo_status parse_set(parser *p) {
    size_t first = p->regex->range_count;
    bool is_negated = skip(p, "^");
    for (bool is_first = true; is_first || peek(p, 0) != ']'; is_first = false) {
        bool is_class = false;
        uint32_t low = 0;
        if (is_at_end(p)) {
            return fail(p, "a missing ]");
        }
        RETURN_IF_ERROR(parse_posix_class(p, &is_class));
        if (!is_class) {
            RETURN_IF_ERROR(parse_escaped_class(p, &is_class));
        }
        if (is_class) {
            continue;
        }
        RETURN_IF_ERROR(parse_character(p, &low));
        uint32_t high = low;
        if (peek(p, 0) == '-' && peek(p, 1) != ']' && p->pattern.size - p->at > 1) {
            p->at += 1;
            RETURN_IF_ERROR(parse_character(p, &high));
        }
        if (high < low) {
            return fail(p, "a range from high to low");
        }
        RETURN_IF_ERROR(add_range(p, low, high));
    }
    p->at += 1;
    return append_set(p, first, is_negated);
}

// ---- groups, repetition, alternatives

static rondo_status parse_alternatives(parser *p);

// Behind "(?": flags up to ")" or ":". *out_is_group: a group begins.
static rondo_status parse_flags(parser *p, bool *out_is_group) {
    bool value = true;
    for (;; p->at += 1) {
        switch (peek(p, 0)) {
            case 'i':
                p->ignores_case = value;
                break;
            case 's':
                p->dot_takes_lines = value;
                break;
            case 'm':
                p->has_lines = value;
                break;
            case 'U':
                break;  // which match is preferred does not matter here
            case '-':
                value = false;
                break;
            case ':':
            case ')':
                *out_is_group = peek(p, 0) == ':';
                p->at += 1;
                return RONDO_STATUS_OK;
            default:
                return fail(p, "an unknown flag or group");
        }
    }
}

// "(" has been read.
static rondo_status parse_group(parser *p) {
    const parser outer = *p;
    bool is_group = true;
    if (++p->depth > DEPTH_MAX) {
        return fail_unknown(p, "groups nested this deep");
    }
    if (skip(p, "?P<") || skip(p, "?<")) {
        while (!is_at_end(p) && peek(p, 0) != '>') {
            p->at += 1;
        }
        if (!skip(p, ">")) {
            return fail(p, "a group's name without >");
        }
    } else if (skip(p, "?")) {
        RETURN_IF_ERROR(parse_flags(p, &is_group));
    }
    if (!is_group) {
        p->depth -= 1;
        return RONDO_STATUS_OK;  // the flags hold up to the end of the group around
    }
    RETURN_IF_ERROR(parse_alternatives(p));
    if (!skip(p, ")")) {
        return fail(p, "a missing )");
    }
    p->depth = outer.depth;
    p->ignores_case = outer.ignores_case;
    p->dot_takes_lines = outer.dot_takes_lines;
    p->has_lines = outer.has_lines;
    return RONDO_STATUS_OK;
}

static rondo_status append_code(parser *p, op_code code) {
    return append(p, (instruction){.code = code});
}

// \Q...\E
static rondo_status parse_quoted(parser *p) {
    while (!is_at_end(p) && !skip(p, "\\E")) {
        uint32_t character;
        p->at += rondo__string_read(&p->pattern, p->at, &character);
        RETURN_IF_ERROR(append_character(p, character));
    }
    return RONDO_STATUS_OK;
}

static rondo_status parse_atom(parser *p) {
    bool is_class = false;
    uint32_t character = 0;
    size_t first = p->regex->range_count;
    if (skip(p, "(")) {
        return parse_group(p);
    }
    if (skip(p, "[")) {
        return parse_set(p);
    }
    if (skip(p, ".")) {
        RETURN_IF_ERROR(add_class(p, p->dot_takes_lines ? "" : "\n\n", true));
        return append_set(p, first, false);
    }
    if (skip(p, "^")) {
        return append_code(p, p->has_lines ? CODE_LINE_BEGIN : CODE_TEXT_BEGIN);
    }
    if (skip(p, "$")) {
        return append_code(p, p->has_lines ? CODE_LINE_END : CODE_TEXT_END);
    }
    if (skip(p, "\\A")) {
        return append_code(p, CODE_TEXT_BEGIN);
    }
    if (skip(p, "\\z")) {
        return append_code(p, CODE_TEXT_END);
    }
    if (skip(p, "\\b")) {
        return append_code(p, CODE_WORD_BORDER);
    }
    if (skip(p, "\\B")) {
        return append_code(p, CODE_NO_WORD_BORDER);
    }
    if (skip(p, "\\Q")) {
        return parse_quoted(p);
    }
    if (strchr("*+?", peek(p, 0)) != NULL) {
        return fail(p, "a repetition of nothing");
    }
    RETURN_IF_ERROR(parse_escaped_class(p, &is_class));
    if (is_class) {
        return append_set(p, first, false);
    }
    RETURN_IF_ERROR(parse_character(p, &character));
    return append_character(p, character);
}

static rondo_status copy_fragment(parser *p, size_t start, size_t length) {
    for (size_t i = 0; i < length; ++i) {
        RETURN_IF_ERROR(append(p, p->regex->program[start + i]));
    }
    return RONDO_STATUS_OK;
}

// Turns the fragment from `start` to the end into `least` to `most` of it; most -1: any number.
static rondo_status repeat(parser *p, size_t start, int least, int most) {
    rondo__regex *regex = p->regex;
    int32_t length = (int32_t)(regex->count - start);
    if (length == 0) {
        return RONDO_STATUS_OK;  // nothing, however often
    }
    if (most == 0) {
        regex->count = start;
        return RONDO_STATUS_OK;
    }
    for (int i = 1; i < least; ++i) {
        RETURN_IF_ERROR(copy_fragment(p, start, (size_t)length));
    }
    if (most < 0 && least > 0) {
        return append(p, (instruction){.code = CODE_SPLIT, .a = -length, .b = 1});
    }
    if (most < 0) {
        RETURN_IF_ERROR(
            insert(p, start, (instruction){.code = CODE_SPLIT, .a = 1, .b = length + 2}));
        return append(p, (instruction){.code = CODE_JUMP, .a = -(length + 1)});
    }
    // What may be left out, one by one.
    size_t whole = start;
    if (least == 0) {
        RETURN_IF_ERROR(
            insert(p, start, (instruction){.code = CODE_SPLIT, .a = 1, .b = length + 1}));
        whole = start + 1;
        least = 1;
    }
    for (int i = least; i < most; ++i) {
        RETURN_IF_ERROR(append(p, (instruction){.code = CODE_SPLIT, .a = 1, .b = length + 1}));
        RETURN_IF_ERROR(copy_fragment(p, whole, (size_t)length));
    }
    return RONDO_STATUS_OK;
}

// Reads "{2}", "{2,}" or "{2,5}"; false, and nothing read, when the text is none of them.
static bool read_counts(parser *p, int *out_least, int *out_most) {
    const size_t before = p->at;
    uint32_t least = 0;
    uint32_t most = 0;
    bool is_right = skip(p, "{") && read_code(p, 10, 8, &least);
    *out_least = (int)least;
    *out_most = (int)least;
    if (is_right && skip(p, ",")) {
        *out_most = -1;
        if (peek(p, 0) != '}') {
            is_right = read_code(p, 10, 8, &most);
            *out_most = (int)most;
        }
    }
    is_right = is_right && skip(p, "}");
    p->at = is_right ? p->at : before;
    return is_right;
}

static rondo_status parse_repeated(parser *p) {
    const size_t start = p->regex->count;
    int least = 1;
    int most = 1;
    RETURN_IF_ERROR(parse_atom(p));
    if (skip(p, "*")) {
        least = 0;
        most = -1;
    } else if (skip(p, "+")) {
        most = -1;
    } else if (skip(p, "?")) {
        least = 0;
    } else if (!read_counts(p, &least, &most)) {
        return RONDO_STATUS_OK;
    }
    (void)skip(p, "?");  // lazy
    if (least > REPEAT_MAX || most > REPEAT_MAX || (most >= 0 && most < least)) {
        return fail(p, "a bad repetition");
    }
    size_t here = p->at;
    int ignored = 0;
    if (strchr("*+?", peek(p, 0)) != NULL && !is_at_end(p)) {
        return fail(p, "a repetition of a repetition");
    }
    if (read_counts(p, &ignored, &ignored)) {
        p->at = here;
        return fail(p, "a repetition of a repetition");
    }
    return repeat(p, start, least, most);
}

static rondo_status parse_alternatives(parser *p) {
    size_t start = p->regex->count;
    int32_t last_jump = -1;  // jumps to the end, each with the one before it in `a`
    for (;;) {
        while (!is_at_end(p) && peek(p, 0) != '|' && peek(p, 0) != ')') {
            RETURN_IF_ERROR(parse_repeated(p));
        }
        if (!skip(p, "|")) {
            break;
        }
        int32_t length = (int32_t)(p->regex->count - start);
        RETURN_IF_ERROR(
            insert(p, start, (instruction){.code = CODE_SPLIT, .a = 1, .b = length + 2}));
        RETURN_IF_ERROR(append(p, (instruction){.code = CODE_JUMP, .a = last_jump}));
        last_jump = (int32_t)p->regex->count - 1;
        start = p->regex->count;
    }
    while (last_jump >= 0) {
        instruction *jump = &p->regex->program[last_jump];
        int32_t before = jump->a;
        jump->a = (int32_t)p->regex->count - last_jump;
        last_jump = before;
    }
    return RONDO_STATUS_OK;
}

static rondo_status parse_all(parser *p) {
    RETURN_IF_ERROR(parse_alternatives(p));
    if (!is_at_end(p)) {
        return fail(p, "a ) too many");
    }
    return append_code(p, CODE_MATCH);
}

rondo_status rondo__regex_create(const rondo__op *op, const char *pattern,
                                 rondo__regex **out_regex) {
    *out_regex = NULL;
    rondo__regex *regex = rondo__calloc(1, sizeof *regex);
    if (regex == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    parser p = {.op = op, .regex = regex, .pattern = {pattern, strlen(pattern)}};
    rondo_status status = parse_all(&p);
    bool ignores_case = false;
    for (size_t i = 0; i < regex->count; ++i) {
        ignores_case = ignores_case || regex->program[i].ignores_case;
    }
    if (status == RONDO_STATUS_OK && ignores_case) {
        status = rondo__letters_init(op, &regex->letters);
    }
    if (status == RONDO_STATUS_OK) {
        regex->states[0] = rondo__calloc(regex->count, sizeof *regex->states[0]);
        regex->states[1] = rondo__calloc(regex->count, sizeof *regex->states[1]);
        regex->marks = rondo__calloc(regex->count, sizeof *regex->marks);
        regex->pending = rondo__calloc(regex->count + 1, sizeof *regex->pending);
        if (regex->states[0] == NULL || regex->states[1] == NULL || regex->marks == NULL ||
            regex->pending == NULL) {
            status = RONDO_STATUS_NO_MEMORY;
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo__regex_destroy(regex);
        return status;
    }
    *out_regex = regex;
    return RONDO_STATUS_OK;
}

void rondo__regex_destroy(rondo__regex *regex) {
    if (regex == NULL) {
        return;
    }
    rondo__letters_deinit(&regex->letters);
    rondo__free(regex->program);
    rondo__free(regex->ranges);
    rondo__free(regex->states[0]);
    rondo__free(regex->states[1]);
    rondo__free(regex->marks);
    rondo__free(regex->pending);
    rondo__free(regex);
}

// ---- matching ---------------------------------------------------------------------------------

enum { NO_CHARACTER = 0 };  // before the first and behind the last

// Where a match stands: between two characters.
typedef struct place {
    bool is_begin, is_end;
    uint32_t before, behind;
} place;

static bool is_word(uint32_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool holds(op_code code, const place *at) {
    bool is_border = is_word(at->before) != is_word(at->behind);
    switch (code) {
        case CODE_TEXT_BEGIN:
            return at->is_begin;
        case CODE_TEXT_END:
            return at->is_end;
        case CODE_LINE_BEGIN:
            return at->is_begin || at->before == '\n';
        case CODE_LINE_END:
            return at->is_end || at->behind == '\n';
        case CODE_WORD_BORDER:
            return is_border;
        default:
            return !is_border;
    }
}

static bool is_in_ranges(const rondo__regex *regex, const instruction *set, uint32_t c) {
    for (int32_t i = 0; i < set->b; ++i) {
        const range *r = &regex->ranges[set->a + i];
        if (c >= r->low && c <= r->high) {
            return true;
        }
    }
    return false;
}

static bool takes(const rondo__regex *regex, const instruction *set, uint32_t c) {
    bool is_in =
        is_in_ranges(regex, set, c) ||
        (set->ignores_case && (is_in_ranges(regex, set, rondo__letters_lower(&regex->letters, c)) ||
                               is_in_ranges(regex, set, rondo__letters_upper(&regex->letters, c))));
    return is_in != set->is_negated;
}

// Adds `state` and what it leads to without a character to the list of step `step`.
static void reach(rondo__regex *regex, int32_t state, size_t step, const place *at, int32_t *list,
                  size_t *count) {
    size_t pending = 0;
    regex->pending[pending++] = state;
    regex->marks[state] = step;
    while (pending > 0) {
        int32_t now = regex->pending[--pending];
        const instruction *i = &regex->program[now];
        int32_t next[2] = {-1, -1};
        if (i->code == CODE_SET || i->code == CODE_MATCH) {
            list[(*count)++] = now;
        } else if (i->code == CODE_SPLIT || i->code == CODE_JUMP) {
            next[0] = now + i->a;
            next[1] = i->code == CODE_SPLIT ? now + i->b : -1;
        } else if (holds(i->code, at)) {
            next[0] = now + 1;
        }
        for (int k = 0; k < 2; ++k) {
            if (next[k] >= 0 && regex->marks[next[k]] != step) {
                regex->marks[next[k]] = step;
                regex->pending[pending++] = next[k];
            }
        }
    }
}

static bool has_match(const rondo__regex *regex, const int32_t *states, size_t count) {
    for (size_t s = 0; s < count; ++s) {
        if (regex->program[states[s]].code == CODE_MATCH) {
            return true;
        }
    }
    return false;
}

// The end of the longest match that begins at `byte`, in front of which is `before`; -1: none does.
static int64_t find_end(rondo__regex *regex, const rondo_string *string, size_t byte,
                        uint32_t before) {
    int32_t *now = regex->states[0];
    int32_t *later = regex->states[1];
    size_t now_count = 0;
    size_t step = 1;
    place at = {.is_begin = byte == 0, .is_end = byte == string->size, .before = before};
    memset(regex->marks, 0, regex->count * sizeof *regex->marks);
    size_t length = at.is_end ? 0 : rondo__string_read(string, byte, &at.behind);
    reach(regex, 0, step, &at, now, &now_count);
    int64_t end = has_match(regex, now, now_count) ? (int64_t)byte : -1;
    while (byte < string->size && now_count > 0) {
        uint32_t c = at.behind;
        byte += length;
        at = (place){.is_end = byte == string->size, .before = c};
        length = at.is_end ? 0 : rondo__string_read(string, byte, &at.behind);
        step += 1;
        size_t later_count = 0;
        for (size_t s = 0; s < now_count; ++s) {
            const instruction *i = &regex->program[now[s]];
            if (i->code == CODE_SET && regex->marks[now[s] + 1] != step && takes(regex, i, c)) {
                reach(regex, now[s] + 1, step, &at, later, &later_count);
            }
        }
        int32_t *swap = now;
        now = later;
        later = swap;
        now_count = later_count;
        end = has_match(regex, now, now_count) ? (int64_t)byte : end;
    }
    return end;
}

bool rondo__regex_matches(rondo__regex *regex, const rondo_string *string) {
    return find_end(regex, string, 0, NO_CHARACTER) == (int64_t)string->size;
}

bool rondo__regex_find(rondo__regex *regex, const rondo_string *string, size_t from,
                       size_t *out_begin, size_t *out_end) {
    uint32_t before = NO_CHARACTER;
    for (size_t byte = 0, length = 0; byte <= string->size; byte += length) {
        const int64_t end = byte >= from ? find_end(regex, string, byte, before) : -1;
        if (end >= 0) {
            *out_begin = byte;
            *out_end = (size_t)end;
            return true;
        }
        if (byte == string->size) {
            break;
        }
        length = rondo__string_read(string, byte, &before);
    }
    return false;
}
