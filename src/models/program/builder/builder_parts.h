// program/builder/builder_parts.h — a program while it is built in code. Shared by the builder's
// files: builder.c (life, ports, parameters), builder_node.c (nodes, bodies), builder_finish.c
// (types, the end) and builder_calls.c (nodes that are often wanted together).
//
// A builder is a program that no other object shares yet. Each call checks first and adds last; a
// call that fails takes back, by a mark, what it had added.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "program/program.h"
#include "rondo/builder.h"

// A value of the program around that a body uses: its number there, and inside.
typedef struct rondo__builder_capture {
    int32_t outer;
    int32_t inner;
} rondo__builder_capture;

typedef struct rondo__builder_domain {
    char *name;
    int32_t version;
} rondo__builder_domain;

enum { RONDO__BUILDER_PLACE_MAX = 64 };  // scopes inside each other

struct rondo_builder {
    rondo_builder *parent;   // of a body; NULL otherwise
    rondo_program *program;  // NULL once it was given out
    int depth;               // of bodies
    size_t capture_count, capture_capacity;
    rondo__builder_capture *captures;
    size_t domain_count, domain_capacity;  // of the outermost builder; the first is ai.onnx
    rondo__builder_domain *domains;
    size_t place_count;  // open scopes of places
    uint8_t places[RONDO__BUILDER_PLACE_MAX];
};

// Refuses NULL, and builders that are finished or lie in one that is.
//
// Errors:    INVALID, STATE.
// Threads:   one thread per builder; so are all functions below.
RONDO_MUST_USE rondo_status rondo__builder_check(const rondo_builder *builder, const char *call);

// Enters the version of a domain, unless the builder has one of it.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__builder_add_domain(rondo_builder *builder, const char *domain,
                                                      int32_t version);
// Frees what a builder has, but not the builder.
void rondo__builder_deinit(rondo_builder *builder);

// The size of a program at a moment, to take back later additions.
typedef struct rondo__builder_mark {
    size_t values, nodes, inputs, declared, outputs, optionals, symbols, variables;
} rondo__builder_mark;
rondo__builder_mark rondo__builder_get_mark(const rondo_builder *builder);
void rondo__builder_take_back(rondo_builder *builder, const rondo__builder_mark *mark);

// Refuses a name that is NULL, empty, or another value's.
//
// Errors:    INVALID.
RONDO_MUST_USE rondo_status rondo__builder_check_name(const rondo_builder *builder,
                                                      const char *name, const char *call);
// The value of this name; one of a builder around becomes known to this one.
//
// Errors:    INVALID (no node makes it), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__builder_find(rondo_builder *builder, const char *name,
                                                const char *call, int32_t *out_value);
// Gives the latest node the place of the innermost scope, of this builder or one around.
void rondo__builder_place_node(rondo_builder *builder);
// The version of ai.onnx.
int32_t rondo__builder_get_opset(const rondo_builder *builder);

// Copies a caller's tensor of numbers or strings.
//
// what       for the record: "parameter \"w\"".
//
// Errors:    INVALID, NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__builder_copy_tensor(const rondo_tensor *tensor, const char *what,
                                                       const char *call, rondo_tensor *out_copy);
