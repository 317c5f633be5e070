// onnx/scope.h — where the names, versions and attributes of a node's surroundings are found.
//
// Names. Values of a graph are found by name in its program, which is complete before the first
// node is wired: files need not be sorted. A name that a body does not know is looked up outwards;
// a constant found there is shared, anything else becomes a captured input of each body on the way.
// A function's names live in a map of their own, and see nothing outside.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "onnx.pb-c.h"
#include "program/names.h"
#include "program/program.h"
#include "rondo/status.h"

// Why a value cannot be held in a rondo_tensor ("a sequence", "a tensor of strings"), by value
// number of one program. A node that touches such a value is unsupported, and says so itself.
typedef struct rondo__oddities {
    const char **reasons;  // NULL entries: nothing odd
    size_t capacity;
} rondo__oddities;

RONDO_MUST_USE rondo_status rondo__oddities_set(rondo__oddities *oddities, int32_t value,
                                                const char *reason);
const char *rondo__oddities_get(const rondo__oddities *oddities, int32_t value);

// One graph or function while its nodes are imported.
typedef struct rondo__scope {
    struct rondo__scope *parent;  // the graph around a body; the caller of a function
    rondo_program *program;       // where values and nodes go
    rondo__oddities *oddities;    // of `program`
    int depth;                    // of bodies
    int call_depth;               // of functions
    size_t opset_count;
    Onnx__OperatorSetIdProto *const *opsets;

    // A body only: numbers, in parent->program, of what it captured, one for each captured input.
    int32_t *captured;
    size_t captured_count;
    size_t captured_capacity;

    // A function only.
    const Onnx__FunctionProto *function;  // NULL for graphs
    const Onnx__NodeProto *call;          // gives the attributes
    rondo__namemap names;                 // to value numbers; -1 for an absent argument
} rondo__scope;

// Finds a name from inside a scope, capturing it where needed. BAD_DATA when no node makes it.
RONDO_MUST_USE rondo_status rondo__scope_resolve(rondo__scope *scope, const char *name,
                                                 int32_t *out_value);
// Adds the value that a node makes. BAD_DATA when the name is taken.
RONDO_MUST_USE rondo_status rondo__scope_declare(rondo__scope *scope, const char *name,
                                                 int32_t *out_value);
// The opset version a scope imports for a domain; 1 when it names none.
int32_t rondo__scope_get_opset(const rondo__scope *scope, const char *domain);
// The attribute itself, or what stands for it in the call of the function around. NULL: absent.
const Onnx__AttributeProto *rondo__scope_get_attribute(const rondo__scope *scope,
                                                       const Onnx__AttributeProto *attribute);
// "" for NULL and "ai.onnx".
const char *rondo__onnx_domain(const char *domain);
