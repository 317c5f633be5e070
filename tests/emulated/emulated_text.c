// The rewriting of kernel texts; what it does not understand is left for the compiler to refuse.
// SPDX-License-Identifier: Apache-2.0
#include "emulated/emulated_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void emulated_append(emulated_buffer *to, const void *bytes, size_t count) {
    to->bytes = realloc(to->bytes, to->count + count + 1);
    if (to->bytes == NULL) {
        abort();
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
    to->bytes[to->count] = '\0';
}

void emulated_append_text(emulated_buffer *to, const char *text) {
    emulated_append(to, text, strlen(text));
}

static bool is_word(char letter) {
    return isalnum((unsigned char)letter) || letter == '_';
}

static size_t skip_space(const char *text) {
    return strspn(text, " \n\t");
}

// The text behind the word and the space after it; NULL: another word stands there.
static const char *skip_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    return strncmp(text, word, length) == 0 && !is_word(text[length])
               ? text + length + skip_space(text + length)
               : NULL;
}

// The end of what stands in parentheses, behind the closing one; `text` is at the opening one.
static const char *skip_parentheses(const char *text) {
    int depth = 0;
    bool is_quoted = false;
    for (; *text != '\0'; text++) {
        if (*text == '"' && text[-1] != '\\') {
            is_quoted = !is_quoted;
        }
        depth += is_quoted ? 0 : *text == '(' ? 1 : *text == ')' ? -1 : 0;
        if (depth == 0) {
            return text + 1;
        }
    }
    return text;
}

// ---- kernels ----------------------------------------------------------------------------------

// Between `__global__` and the name stand void, bounds, and perhaps lines of the preprocessor.
// NULL: this is no definition. What stands at `*out_cluster` says how many blocks work together.
static const char *find_name(const char *text, const char **out_cluster) {
    static const char *const bounds[] = {"__launch_bounds__", "__cluster_dims__"};
    *out_cluster = NULL;
    for (bool is_any = true; is_any;) {
        is_any = false;
        text += skip_space(text);
        const char *rest = skip_word(text, "void");
        for (size_t i = 0; i < 2 && rest == NULL; i++) {
            rest = skip_word(text, bounds[i]);
            if (rest != NULL) {
                *out_cluster = i == 1 ? rest : *out_cluster;
                rest = skip_parentheses(rest);
            }
        }
        if (rest == NULL && text[0] == '#') {
            rest = strchr(text, '\n');
        }
        if (rest != NULL) {
            text = rest;
            is_any = true;
        }
    }
    size_t length = 0;
    while (is_word(text[length])) {
        length++;
    }
    return length > 0 && text[length + skip_space(text + length)] == '(' ? text : NULL;
}

// An entry for each kernel with a name of C; templates are not called by name.
static void append_entries(emulated_buffer *to, const char *source) {
    static const char mark[] = "extern \"C\" __global__";
    for (const char *at = strstr(source, mark); at != NULL; at = strstr(at, mark)) {
        at += sizeof(mark) - 1;
        const char *cluster;
        const char *name = find_name(at, &cluster);
        if (name != NULL) {
            emulated_append_text(to, "EMULATED_KERNEL(");
            emulated_append(to, name, strcspn(name, " \n\t("));
            emulated_append_text(to, ", ");
            if (cluster != NULL) {
                emulated_append_text(to, "emulated_count_blocks");
                emulated_append(to, cluster, (size_t)(skip_parentheses(cluster) - cluster));
            } else {
                emulated_append_text(to, "1");
            }
            emulated_append_text(to, ")\n");
        }
    }
}

// ---- statements -------------------------------------------------------------------------------

// `text` is behind "extern __shared__"; returns where its semicolon stands.
static const char *append_shared(emulated_buffer *to, const char *text) {
    const char *rest = skip_word(text, "__align__");
    if (rest != NULL) {
        text = skip_parentheses(rest);
        text += skip_space(text);
    }
    const size_t type = strcspn(text, " ");
    const char *name = text + type + skip_space(text + type);
    emulated_append(to, text, type);
    emulated_append_text(to, " *const ");
    emulated_append(to, name, strcspn(name, "["));
    emulated_append_text(to, " = (");
    emulated_append(to, text, type);
    emulated_append_text(to, " *)emulated->shared");
    return text + strcspn(text, ";");
}

// The operands of an asm statement: each is a word in quotes and an expression in parentheses.
// `text` is behind the instruction. Returns what follows the statement's closing parenthesis.
static const char *append_operands(emulated_buffer *to, const char *text) {
    bool is_first = true;
    for (int section = 0; *text != '\0' && *text != ')';) {
        if (*text == ':') {
            section++;
            text++;
        } else if (*text == '"' && section <= 2) {
            const char *expression = strchr(strchr(text + 1, '"') + 1, '(');
            const char *end = skip_parentheses(expression);
            emulated_append_text(to, is_first ? "" : ", ");
            emulated_append(to, expression, (size_t)(end - expression));
            is_first = false;
            text = end;
        } else {
            text++;
        }
    }
    return *text == ')' ? text + 1 : text;
}

// The function that stands for the instruction in quotes at `text`. Returns what follows its name.
static const char *append_name(emulated_buffer *to, const char *text) {
    emulated_append_text(to, "emulated_");
    for (text++; *text != '\0' && strchr(" ;\"", *text) == NULL; text++) {
        emulated_append(to, is_word(*text) ? text : "_", 1);
    }
    return text;
}

// The same where the preprocessor chooses among several; returns what follows its last line.
static const char *append_choice(emulated_buffer *to, const char *text) {
    while (*text == '#') {
        const size_t length = strcspn(text, "\n") + 1;
        const bool is_last = skip_word(text + 1, "endif") != NULL;
        emulated_append_text(to, "\n");
        emulated_append(to, text, length);
        text += length + skip_space(text + length);
        if (is_last) {
            break;
        }
        text = strchr(append_name(to, text), '"') + 1;
        text += skip_space(text);
    }
    return text;
}

// `text` is behind "asm" and "volatile"; returns where the statement's semicolon stands.
static const char *append_instruction(emulated_buffer *to, const char *text) {
    text += 1 + skip_space(text + 1);
    while (text[0] == '"' && text[1] == '{') {  // a scope begins; the instruction is the next line
        text = strchr(text + 1, '"') + 1;
        text += skip_space(text);
    }
    const char *letter;
    if (*text == '#') {
        letter = text = append_choice(to, text);
    } else {
        letter = append_name(to, text);
    }
    // %globaltimer and its like are named by what is moved.
    const char *special = strchr(letter, '%');
    while (special != NULL && isdigit((unsigned char)special[1])) {
        special = strchr(special + 1, '%');
    }
    // The instruction's end: strings follow each other, with nothing but space between.
    while (*text == '"') {
        const char *end = strchr(text + 1, '"');
        if (special != NULL && special > text && special < end) {
            special += strspn(special, "%");
            emulated_append_text(to, "_");
            emulated_append(to, special, strcspn(special, ";, "));
            special = NULL;
        }
        text = end + 1 + skip_space(end + 1);
    }
    emulated_append_text(to, "(");
    text = append_operands(to, text);
    emulated_append_text(to, ")");
    return text;
}

static void append_source(emulated_buffer *to, const char *source) {
    const char *text = source, *done = source;
    while (*text != '\0') {
        const bool is_start = text == source || !is_word(text[-1]);
        const char *rest = is_start ? skip_word(text, "asm") : NULL;
        const char *shared = is_start ? skip_word(text, "extern") : NULL;
        shared = shared != NULL ? skip_word(shared, "__shared__") : NULL;
        if (rest != NULL && skip_word(rest, "volatile") != NULL) {
            rest = skip_word(rest, "volatile");
        }
        if (text[0] == '/' && text[1] == '/') {
            text += strcspn(text, "\n");
        } else if (shared != NULL || (rest != NULL && *rest == '(')) {
            emulated_append(to, done, (size_t)(text - done));
            text = shared != NULL ? append_shared(to, shared) : append_instruction(to, rest);
            done = text;
        } else {
            text++;
        }
    }
    emulated_append_text(to, done);
}

// "-DNAME=VALUE" as a line of the text.
static void append_define(emulated_buffer *to, const char *option) {
    const size_t length = strcspn(option, "=");
    emulated_append_text(to, "#define ");
    emulated_append(to, option, length);
    emulated_append_text(to, " ");
    emulated_append_text(to, option[length] == '=' ? option + length + 1 : "1");
    emulated_append_text(to, "\n");
}

void emulated_translate(emulated_buffer *to, const char *source, const char *const *options,
                        int option_count) {
    emulated_append_text(to, "#include \"emulated_cuda.cuh\"\n");
    for (int i = 0; i < option_count; i++) {
        if (strncmp(options[i], "-D", 2) == 0) {
            append_define(to, options[i] + 2);
        }
    }
    emulated_append_text(to, "#line 1 \"rondo.cu\"\n");
    append_source(to, source);
    emulated_append_text(to, "\n");
    append_entries(to, source);
}
