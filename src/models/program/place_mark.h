// program/place_mark.h — where the caller wants nodes to run: "cpu", "gpu", "gpu:1", "all".
//
// A mark comes from a scope of the builder or a file, from rondo_program_set_place, or from the
// options of an executor; what comes later in this list wins. Nodes in bodies have marks of their
// own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "program/program.h"

enum {
    RONDO__PLACE_ANY = 0,
    RONDO__PLACE_CPU = 1,
    RONDO__PLACE_GPU = 2,    // that of the executor
    RONDO__PLACE_GPU_0 = 3,  // and RONDO__PLACE_GPU_0 + i: the GPU number i
    RONDO__PLACE_GPU_MAX = 16,
};

enum {
    RONDO__PLACED_BY_NOBODY = 0,
    RONDO__PLACED_BY_PROGRAM = 1,  // a scope of the builder, or a file
    RONDO__PLACED_BY_CALL = 2,     // rondo_program_set_place
    RONDO__PLACED_BY_OPTION = 3,   // rondo_executor_options
};

// Reads a place; `call` is for the record.
//
// Errors:    INVALID (none of "cpu", "gpu", "gpu:0" to "gpu:15", "all").
RONDO_MUST_USE rondo_status rondo__place_parse(const char *text, const char *call,
                                               uint8_t *out_place);

// "cpu", "gpu", "gpu:1" or "all"; a literal.
const char *rondo__place_get_name(uint8_t place);

// The source of a mark, for messages: "the program", "rondo_program_set_place", "options.place".
const char *rondo__place_get_source(uint8_t by);

// The prefix of a place in the text (doc_string) of a node in an ONNX file.
#define RONDO__PLACE_TEXT_KEY "rondo.place="

// Hides nodes from passes that have a place of their own, so that they are neither fused nor turned
// into others, and shows them again.
void rondo__program_hide_placed(rondo_program *program);
void rondo__program_show_placed(rondo_program *program);
