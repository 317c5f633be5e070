// support/ptx_turn.c — see ptx_turn.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/ptx_turn.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/export.h"

enum { NAME_MAX = 96, STATEMENT_BYTES = 4096, POINTER_BYTES = 8 };

typedef struct statement {
    char *text;   // without guard and label; "" for a label alone
    char *label;  // that stands before it, or NULL
    bool has_guard;
    bool was_reached;
    bool was_traced;
} statement;

typedef struct entry {
    char name[NAME_MAX];
    statement *statements;
    size_t count, capacity;
    const ptx_constant *constant;  // or NULL
    char *why;
    size_t why_bytes;
} entry;

RONDO_PRINTF(2, 3) static bool fail(entry *e, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    (void)snprintf(e->why, e->why_bytes, "%s: %s", e->name, what);
    return false;
}

// ---- reading ----------------------------------------------------------------------------------

static char *copy(const char *text, size_t length) {
    char *result = malloc(length + 1);
    if (result == NULL) {
        abort();  // a test's own memory
    }
    memcpy(result, text, length);
    result[length] = '\0';
    return result;
}

static void add(entry *e, statement s) {
    if (e->count == e->capacity) {
        e->capacity = e->capacity * 2 + 64;
        e->statements = realloc(e->statements, e->capacity * sizeof *e->statements);
        if (e->statements == NULL) {
            abort();
        }
    }
    e->statements[e->count++] = s;
}

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

// Blanks, comments, and braces of scopes in front of a statement.
static const char *skip(const char *at, int *depth) {
    for (;;) {
        if (isspace((unsigned char)*at)) {
            at++;
        } else if (at[0] == '/' && at[1] == '/') {
            at += strcspn(at, "\n");
        } else if (*at == '{' || *at == '}') {
            *depth += *at == '{' ? 1 : -1;
            at++;
            if (*depth == 0) {
                return at;
            }
        } else {
            return at;
        }
    }
}

// Reads the body that begins with the brace at `at`; returns what is behind it, NULL if it is cut.
static const char *read_body(entry *e, const char *at) {
    int depth = 0;
    char *label = NULL;
    at = skip(at, &depth);
    while (depth > 0 && *at != '\0') {
        const char *end = at;
        while (is_name(*end)) {
            end++;
        }
        if (*end == ':' && end[1] != ':' && end > at) {
            if (label != NULL) {
                add(e, (statement){.text = copy("", 0), .label = label});
            }
            label = copy(at, (size_t)(end - at));
            at = skip(end + 1, &depth);
            continue;
        }
        end = at + strcspn(at, ";");
        const bool has_guard = *at == '@';
        if (has_guard) {
            at += strcspn(at, " \t\n;");
            at += strspn(at, " \t\n");
        }
        add(e, (statement){
                   .text = copy(at, (size_t)(end - at)), .label = label, .has_guard = has_guard});
        label = NULL;
        at = *end != '\0' ? skip(end + 1, &depth) : end;
    }
    if (label != NULL) {
        add(e, (statement){.text = copy("", 0), .label = label});
    }
    return depth == 0 ? at : NULL;
}

static void forget(entry *e) {
    for (size_t i = 0; i < e->count; ++i) {
        free(e->statements[i].text);
        free(e->statements[i].label);
    }
    free(e->statements);
    e->statements = NULL;
    e->count = e->capacity = 0;
}

// ---- where an address comes from --------------------------------------------------------------

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        if (!isalnum((unsigned char)at[length]) && at[length] != '_') {
            return true;
        }
    }
    return false;
}

static const char *get_operands(const char *text) {
    text += strcspn(text, " \t\n");
    return text + strspn(text, " \t\n");
}

// Whether the statement sets the register.
static bool defines(const char *text, const char *name) {
    const char *operands = get_operands(text);
    char target[STATEMENT_BYTES];
    size_t length = 0;
    if (*operands == '{') {
        length = strcspn(operands, "}");
    } else {
        length = strcspn(operands, ",");
    }
    (void)snprintf(target, sizeof target, "%.*s", (int)length, operands);
    return strncmp(text, "st.", 3) != 0 && has_word(target, name);
}

static bool trace_operands(entry *e, const char *text);

// The register must not come from an address that may be written, nor from memory.
static bool trace(entry *e, const char *name) {
    for (size_t i = 0; i < e->count; ++i) {
        statement *s = &e->statements[i];
        if (s->was_traced || s->text[0] == '.' || !defines(s->text, name)) {
            continue;
        }
        s->was_traced = true;
        if (strncmp(s->text, "ld.", 3) == 0 && strncmp(s->text, "ld.param", 8) != 0) {
            return fail(e, "an address read before its turn comes from memory: %s", s->text);
        }
        if (strncmp(s->text, "ld.param", 8) == 0) {
            const char *place = strchr(s->text, '[');
            const char *plus = place != NULL ? strchr(place, '+') : NULL;
            const size_t offset = plus != NULL ? (size_t)strtoul(plus + 1, NULL, 10) : 0;
            const size_t word = offset / POINTER_BYTES;
            if (word < e->constant->pointer_count && (e->constant->constants >> word & 1) == 0) {
                return fail(e, "pointer %zu is read before its turn", word);
            }
            continue;
        }
        const char *sources = strchr(get_operands(s->text), ',');
        if (sources != NULL && !trace_operands(e, sources)) {
            return false;
        }
    }
    return true;
}

static bool trace_operands(entry *e, const char *text) {
    while ((text = strchr(text, '%')) != NULL) {
        char name[NAME_MAX];
        size_t length = 1;
        while (isalnum((unsigned char)text[length]) || text[length] == '_') {
            length++;
        }
        (void)snprintf(name, sizeof name, "%.*s", (int)length, text);
        text += length;
        if (!trace(e, name)) {
            return false;
        }
    }
    return true;
}

// The statement that sets the register, where there is one alone.
static const statement *find_source(const entry *e, const char *name) {
    const statement *found = NULL;
    for (size_t i = 0; i < e->count; ++i) {
        if (e->statements[i].text[0] != '.' && defines(e->statements[i].text, name)) {
            if (found != NULL) {
                return NULL;
            }
            found = &e->statements[i];
        }
    }
    return found;
}

// The place among the parameters that the register is the address of; SIZE_MAX: not so simple.
static size_t find_place(const entry *e, const char *name, int depth) {
    const statement *source = find_source(e, name);
    if (source == NULL || depth > 8) {
        return SIZE_MAX;
    }
    char from[NAME_MAX];
    const char *second = strchr(get_operands(source->text), ',');
    if (second == NULL) {
        return SIZE_MAX;
    }
    second += 1 + strspn(second + 1, " ");
    (void)snprintf(from, sizeof from, "%.*s", (int)strcspn(second, ",; \t\n"), second);
    const char *third = strchr(second, ',');
    const bool is_add = strncmp(source->text, "add.", 4) == 0 && third != NULL;
    if (!is_add && strncmp(source->text, "mov.", 4) != 0 &&
        strncmp(source->text, "cvta.param", 10) != 0) {
        return SIZE_MAX;
    }
    if (from[0] != '%') {
        return strstr(from, "_param_0") != NULL ? 0 : SIZE_MAX;
    }
    const size_t base = find_place(e, from, depth + 1);
    if (base == SIZE_MAX || !is_add) {
        return base;
    }
    third += 1 + strspn(third + 1, " ");
    return isdigit((unsigned char)*third) ? base + strtoul(third, NULL, 10) : SIZE_MAX;
}

// ---- the ways to the wait ---------------------------------------------------------------------

static bool begins(const char *text, const char *word) {
    return strncmp(text, word, strlen(word)) == 0;
}

// Whether a global access before the turn is one of a constant pointer: its source operand is
// the last one in brackets, or of a bulk copy, which ends with a barrier, the second one.
static bool is_constant_read(entry *e, const char *text) {
    const char *place = strrchr(text, '[');
    char source[STATEMENT_BYTES];
    if (begins(text, "cp.async.bulk")) {
        const char *second = strchr(text, '[');
        second = second != NULL ? strchr(second + 1, '[') : NULL;
        second = second != NULL ? second : "";
        (void)snprintf(source, sizeof source, "%.*s", (int)strcspn(second, "]"), second);
        place = *second != '\0' ? source : NULL;
    }
    if (e->constant == NULL || place == NULL) {
        return fail(e, "touches global memory before its turn: %s", text);
    }
    for (size_t i = 0; i < e->count; ++i) {
        e->statements[i].was_traced = false;
    }
    return trace_operands(e, place);
}

// Whether a copy out of a tensor is one of the constant tensor: its map is the second operand.
static bool is_constant_tensor(entry *e, const char *text) {
    const char *place = strchr(text, '[');
    place = place != NULL ? strchr(place + 1, '[') : NULL;
    char name[NAME_MAX];
    (void)snprintf(name, sizeof name, "%.*s", place != NULL ? (int)strcspn(place + 1, ",]") : 0,
                   place != NULL ? place + 1 : "");
    if (e->constant == NULL || e->constant->map_bytes == 0 || name[0] != '%' ||
        find_place(e, name, 0) != e->constant->map_bytes) {
        return fail(e, "copies out of a tensor before its turn: %s", text);
    }
    return true;
}

static bool check_access(entry *e, const char *text) {
    static const char *const spaces[] = {".shared", ".param", ".local", ".const"};
    static const char *const kinds[] = {
        "ld.",  "ldu.",  "st.",       "atom.",  "red.",   "suld.",    "sust.",          "sured.",
        "tex.", "tld4.", "multimem.", "membar", "fence.", "discard.", "applypriority.", "cp."};
    bool is_access = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        is_access = is_access || begins(text, kinds[i]);
    }
    char opcode[NAME_MAX];
    (void)snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(text, " \t\n"), text);
    const bool is_global = strstr(opcode, ".global") != NULL;
    if (!is_access || begins(text, "cp.async.commit_group") || begins(text, "cp.async.wait") ||
        begins(text, "fence.proxy.async.shared::cta") || begins(text, "fence.mbarrier_init")) {
        return true;
    }
    if (begins(text, "cp.async.bulk.tensor")) {
        return is_constant_tensor(e, text);
    }
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0] && !is_global; ++i) {
        if (strstr(opcode, spaces[i]) != NULL) {
            return true;
        }
    }
    if (begins(text, "ld.global") || begins(text, "cp.async.cg.shared.global") ||
        begins(text, "cp.async.ca.shared.global") ||
        begins(text, "cp.async.bulk.shared::cluster.global")) {
        return is_constant_read(e, text);
    }
    return fail(e, "touches global memory before its turn: %s", text);
}

static size_t find_label(const entry *e, const char *text) {
    const char *name = get_operands(text);
    const size_t length = strcspn(name, " \t\n;");
    for (size_t i = 0; i < e->count; ++i) {
        const char *label = e->statements[i].label;
        if (label != NULL && strlen(label) == length && strncmp(label, name, length) == 0) {
            return i;
        }
    }
    return e->count;
}

// Follows the ways from statement `first` on, each statement once.
static bool follow(entry *e, size_t first) {
    size_t *open = malloc((e->count + 2) * 2 * sizeof *open);
    size_t open_count = 0;
    bool is_good = open != NULL;
    if (is_good) {
        open[open_count++] = first;
    }
    while (is_good && open_count > 0) {
        size_t i = open[--open_count];
        if (i >= e->count) {
            is_good = fail(e, "ends before its turn");
            break;
        }
        statement *s = &e->statements[i];
        if (s->was_reached) {
            continue;
        }
        s->was_reached = true;
        if (begins(s->text, "griddepcontrol.wait") && !s->has_guard) {
            continue;
        }
        if (begins(s->text, "bra")) {
            open[open_count++] = find_label(e, s->text);
            if (s->has_guard) {
                open[open_count++] = i + 1;
            }
            continue;
        }
        if (begins(s->text, "brx") || begins(s->text, "call") || begins(s->text, "ret") ||
            begins(s->text, "exit")) {
            is_good = fail(e, "leaves the way to its turn: %s", s->text);
            continue;
        }
        is_good = check_access(e, s->text);
        open[open_count++] = i + 1;
    }
    free(open);
    return is_good;
}

// ---- the text ---------------------------------------------------------------------------------

bool ptx_takes_turns(const char *ptx, const ptx_constant *constants, char *why, size_t why_bytes) {
    const char *at = strstr(ptx, ".entry");
    bool is_good = at != NULL;
    (void)snprintf(why, why_bytes, "%s", at != NULL ? "" : "there is no entry");
    while (is_good && at != NULL) {
        entry e = {.why = why, .why_bytes = why_bytes};
        at += strlen(".entry");
        at += strspn(at, " \t\n");
        (void)snprintf(e.name, sizeof e.name, "%.*s", (int)strcspn(at, "( \t\n"), at);
        for (const ptx_constant *c = constants; c->entry != NULL; ++c) {
            e.constant = strcmp(c->entry, e.name) == 0 ? c : e.constant;
        }
        const char *body = strchr(at, '{');
        at = body != NULL ? read_body(&e, body) : NULL;
        is_good = at != NULL ? follow(&e, 0) : fail(&e, "is cut off");
        forget(&e);
        at = at != NULL ? strstr(at, ".entry") : NULL;
    }
    return is_good;
}
