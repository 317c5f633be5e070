// onnx/importer.h — the state of one import. Its parts, from the top down:
//
//     importer.c        the public functions: file to message to program
//     graphs.h          a graph: its values and nodes, with bodies and function calls
//     functions.h       the model's own functions
//     constant_nodes.h  nodes that say nothing but values
//     nodes.h           one node: op, attributes, wiring
//     types.h           declared element types and shapes
//     scope.h           names, and bodies that capture what they name outside
//     missing.h         the list of ops that are unsupported
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "onnx.pb-c.h"
#include "onnx/missing.h"
#include "onnx/tensors.h"
#include "program/names.h"
#include "program/program.h"

typedef struct rondo__importer {
    const Onnx__ModelProto *model;
    rondo__tensor_reader reader;
    rondo_program *main;
    rondo__namemap functions;  // "domain:name" to index in model->functions
    char **function_keys;
    size_t inlined_count;
    size_t *function_bytes;   // packed size of each, by index; 0: not asked yet
    rondo__budget *budget;    // of the load; what functions are written out into counts, too
    rondo__missing *missing;  // what is unsupported so far; never NULL
    bool is_listing;          // the list is all that is wanted
    bool allow_newer_opset;   // ops of later versions are read by their newest known definition
    bool has_told_newer;      // that this was so
} rondo__importer;
