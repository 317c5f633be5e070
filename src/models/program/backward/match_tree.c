// program/backward/match_tree.c — see match_tree.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/backward/match_tree.h"

#include <string.h>

#include "program/edit.h"

enum { NAME_MAX_BYTES = 48 };

typedef struct matching {
    const rondo_program *program;
    rondo__tree *tree;
    const char *at;  // the rest of the pattern
} matching;

static bool bind(matching *m, char letter, int32_t value) {
    const unsigned index = (unsigned char)letter & 127u;
    const uint64_t bit = UINT64_C(1) << (index & 63u);
    if (letter == '_') {
        return true;
    }
    if ((m->tree->named[index >> 6] & bit) != 0) {
        return m->tree->value[index] == value;
    }
    m->tree->named[index >> 6] |= bit;
    m->tree->value[index] = value;
    return true;
}

// Of a name that there is not, none that a node has.
static rondo__op_id find_op(const char *text, size_t length) {
    char name[NAME_MAX_BYTES];
    if (length >= sizeof name) {
        return RONDO__OP_ID_COUNT;
    }
    memcpy(name, text, length);
    name[length] = '\0';
    const rondo__op_def *def = rondo__op_lookup("", name, RONDO_OP_OPSET_MAX);
    return def != NULL ? def->id : RONDO__OP_ID_COUNT;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the pattern
static bool match(matching *m, int32_t value) {
    const size_t length = strcspn(m->at, "(),=");
    if (m->at[length] == '=') {
        const char letter = m->at[0];
        m->at += length + 1;
        return bind(m, letter, value) && match(m, value);
    }
    if (m->at[length] != '(') {
        const char letter = m->at[0];
        m->at += length;
        return bind(m, letter, value);
    }
    const int32_t maker = value >= 0 ? m->program->values[value].producer : -1;
    const rondo__node *node = maker >= 0 ? &m->program->nodes[maker] : NULL;
    if (node == NULL || node->op.def->id != find_op(m->at, length) || node->outputs[0] != value) {
        return false;
    }
    m->at += length;
    for (size_t i = 0; *m->at != ')'; ++i) {
        m->at += 1;  // '(' or ','
        if (i >= node->input_count || !match(m, node->inputs[i])) {
            return false;
        }
    }
    m->at += 1;
    return true;
}

bool rondo__match_tree(const rondo_program *program, int32_t value, const char *pattern,
                       rondo__tree *tree) {
    matching m = {.program = program, .tree = tree, .at = pattern};
    return match(&m, value);
}

int32_t rondo__match_ints(const rondo_program *program, int32_t value, int64_t *out_values) {
    const rondo_tensor *tensor = value >= 0 ? &program->values[value].constant : NULL;
    const int64_t count = tensor == NULL || tensor->dtype != RONDO_DTYPE_I64
                              ? -1
                              : rondo_shape_get_count(&tensor->shape);
    if (count < 0 || count > RONDO_RANK_MAX) {
        return -1;
    }
    memcpy(out_values, tensor->data, (size_t)count * sizeof *out_values);
    return (int32_t)count;
}
