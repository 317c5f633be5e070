// program/node_pattern.c — see node_pattern.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/node_pattern.h"

bool rondo__pattern_matches(const char *pattern, const char *text) {
    const char *star = NULL;  // behind the last '*', and where the text stood then
    const char *resume = NULL;
    while (*text != '\0') {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern == '?' || *pattern == *text) {
            ++pattern;
            ++text;
        } else if (star != NULL) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        ++pattern;
    }
    return *pattern == '\0';
}

bool rondo__node_matches(const rondo__node *node, const char *pattern) {
    return pattern == NULL || rondo__pattern_matches(pattern, node->op.def->name) ||
           (node->op.name != NULL && rondo__pattern_matches(pattern, node->op.name));
}

size_t rondo__program_count_matches(const rondo_program *program, const char *pattern) {
    size_t count = 0;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        count += rondo__node_matches(node, pattern) ? 1 : 0;
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {
                count += rondo__program_count_matches(node->op.attributes[i].body, pattern);
            }
        }
    }
    return count;
}
