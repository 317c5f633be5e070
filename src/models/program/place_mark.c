// program/place_mark.c — see place_mark.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/place_mark.h"

#include <string.h>

#include "base/error.h"
#include "program/node_pattern.h"

static const char *const names[RONDO__PLACE_GPU_0 + RONDO__PLACE_GPU_MAX] = {
    "all",   "cpu",   "gpu",   "gpu:0",  "gpu:1",  "gpu:2",  "gpu:3",  "gpu:4",  "gpu:5",  "gpu:6",
    "gpu:7", "gpu:8", "gpu:9", "gpu:10", "gpu:11", "gpu:12", "gpu:13", "gpu:14", "gpu:15",
};

rondo_status rondo__place_parse(const char *text, const char *call, uint8_t *out_place) {
    for (size_t i = 0; text != NULL && i < sizeof names / sizeof *names; ++i) {
        if (strcmp(text, names[i]) == 0) {
            *out_place = (uint8_t)i;
            return RONDO_STATUS_OK;
        }
    }
    return RONDO_FAIL_AS(call, INVALID,
                         "place \"%.40s\" is none of \"cpu\", \"gpu\", \"gpu:0\" to \"gpu:%d\" and "
                         "\"all\" (wherever the executor likes)",
                         text != NULL ? text : "(NULL)", RONDO__PLACE_GPU_MAX - 1);
}

const char *rondo__place_get_name(uint8_t place) {
    return names[place];
}

const char *rondo__place_get_source(uint8_t by) {
    static const char *const sources[] = {"nobody", "the program", "rondo_program_set_place",
                                          "options.place"};
    return sources[by];
}

// Marks nodes that match (node_pattern.h); a control node that does takes its bodies along.
static void mark_places(rondo_program *program, const char *pattern, rondo__place_mark mark) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        const bool is_match = rondo__node_matches(node, pattern);
        node->place = is_match ? mark : node->place;
        for (size_t i = 0; i < node->op.attribute_count; ++i) {
            if (node->op.attributes[i].kind == RONDO__ATTRIBUTE_BODY) {
                mark_places(node->op.attributes[i].body, is_match ? NULL : pattern,
                            mark);  // bounded depth: program.h
            }
        }
    }
}

rondo_status rondo_program_set_place(rondo_program *program, const char *pattern,
                                     const char *place) {
    if (program == NULL || pattern == NULL || place == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          program == NULL   ? "program"
                          : pattern == NULL ? "pattern"
                                            : "place");
    }
    rondo__place_mark mark = {.by = RONDO__PLACED_BY_CALL};
    RETURN_IF_ERROR(rondo__place_parse(place, __func__, &mark.place));
    if (rondo__program_count_matches(program, pattern) == 0) {
        return RONDO_FAIL(INVALID,
                          "pattern \"%.80s\" matches no op: neither a name of a node nor a type of "
                          "op (* stands for any characters, ? for one)",
                          pattern);
    }
    mark_places(program, pattern, mark);
    program->place_revision += 1;
    return RONDO_STATUS_OK;
}

// ---- hiding -----------------------------------------------------------------------------------

void rondo__program_hide_placed(rondo_program *program) {
    static const rondo__op_def hidden = {.domain = "rondo",
                                         .name = "Placed",
                                         .input_max = RONDO_OP_ANY_COUNT,
                                         .output_max = RONDO_OP_ANY_COUNT,
                                         .flags = RONDO__OP_INTERNAL | RONDO__OP_IMPURE};
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        // A whole that is fused of ops for the executor's GPU runs there, too.
        if (node->place.place != RONDO__PLACE_ANY && node->place.place != RONDO__PLACE_GPU) {
            node->hidden_def = node->op.def;
            node->op.def = &hidden;
        }
    }
}

void rondo__program_show_placed(rondo_program *program) {
    for (size_t n = 0; n < program->node_count; ++n) {
        rondo__node *node = &program->nodes[n];
        if (node->hidden_def != NULL) {
            node->op.def = node->hidden_def;
            node->hidden_def = NULL;
        }
    }
}
