// support/models/build_node.c — see build_node.h.
// SPDX-License-Identifier: Apache-2.0
#include "support/models/build_node.h"

#include <string.h>

#include "support/expect_ok.h"

enum { NAMES_MAX = 16, TEXT_BYTES = 512 };

rondo_builder *build_begin(void) {
    rondo_builder *b;
    OK(rondo_builder_create(NULL, &b));
    return b;
}

rondo_program *build_finish(rondo_builder *b) {
    rondo_program *program;
    OK(rondo_builder_finish(b, &program));
    rondo_builder_destroy(b);
    return program;
}

// Cuts `text` where the blanks are.
static size_t list_names(char *text, const char **out_names) {
    size_t count = 0;
    for (char *rest = NULL, *name = strtok_r(text, " ", &rest); name != NULL;
         name = strtok_r(NULL, " ", &rest)) {
        assert_true(count < NAMES_MAX);
        out_names[count++] = strcmp(name, "-") == 0 ? NULL : name;
    }
    return count;
}

void build_node(rondo_builder *b, const char *op, const char *inputs, const char *outputs,
                const rondo_builder_node_options *options) {
    const char *in[NAMES_MAX];
    const char *out[NAMES_MAX];
    char texts[2][TEXT_BYTES];
    assert_true(strlen(inputs) < TEXT_BYTES && strlen(outputs) < TEXT_BYTES);
    strcpy(texts[0], inputs);
    strcpy(texts[1], outputs);
    const size_t in_count = list_names(texts[0], in);
    const size_t out_count = list_names(texts[1], out);
    OK(rondo_builder_add_node(b, op, in, in_count, out, out_count, options));
}

void build_op(rondo_builder *b, const char *op, const char *x, const char *y, const char *out) {
    OK(rondo_builder_add_node(b, op, (const char *[]){x, y}, y != NULL ? 2 : 1,
                              (const char *[]){out}, 1, NULL));
}
