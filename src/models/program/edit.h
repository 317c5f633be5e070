// program/edit.h — what passes use to rewrite a program in place.
//
// A pass appends nodes, redirects uses, marks nodes for removal, and ends with
// rondo__program_verify, which puts the nodes back into an order in which makers precede users.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

// Removes the marked nodes (`remove` has one entry for each node, further nodes stay) and renumbers
// producers. Their outputs stay as values without a maker; the caller has redirected the uses or
// made them constants.
void rondo__program_remove_nodes(rondo_program *program, const bool *remove, size_t remove_count);

// The input that has `value` for its default goes.
void rondo__program_drop_optional(rondo_program *program, int32_t value);

// Makes every node input and program output that names `from` name `to`.
void rondo__program_replace_uses(rondo_program *program, int32_t from, int32_t to);

// Whether every extent of the value is a number.
bool rondo__value_has_known_shape(const rondo__value *value);

// The same, with the shape in *out_shape.
bool rondo__value_get_shape(const rondo__value *value, rondo_shape *out_shape);
// The same of a value by its number; false for RONDO__VALUE_NONE, too.
bool rondo__program_get_shape(const rondo_program *program, int32_t value, rondo_shape *out_shape);
void rondo__value_set_shape(rondo__value *value, rondo_dtype dtype, const rondo_shape *shape);
// The same of what is known of a tensor: perhaps only its rank and some extents.
void rondo__value_set_info(rondo__value *value, rondo_dtype dtype, const rondo__tensor_info *info);
bool rondo__value_is_constant(const rondo__value *value);

// Adds a value with this element type and shape.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_add_shaped(rondo_program *program, const char *name,
                                                      rondo_dtype dtype, const rondo_shape *shape,
                                                      int32_t *out_value);

// Adds a node that gives the elements of `from` the shape of `to`, which then has no other maker.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_add_reshape(rondo_program *program, int32_t from,
                                                       int32_t to, const rondo_shape *shape);

// Which nodes use each value: users[first[v]] ... users[first[v + 1] - 1] are node numbers,
// ascending, a node once for each input that names v. is_output[v] tells program outputs. A
// snapshot: rebuild after editing.
typedef struct rondo__uses {
    size_t *first;  // value_count + 1 entries
    size_t *users;
    bool *is_output;
} rondo__uses;

// Errors:    NO_MEMORY.
// Threads:   safe while no call changes the program.
RONDO_MUST_USE rondo_status rondo__uses_init(const rondo_program *program, rondo__uses *out_uses);
void rondo__uses_deinit(rondo__uses *uses);
// The only user of `value`, or -1 when there are none, several, or it is a program output.
int32_t rondo__uses_get_single(const rondo__uses *uses, int32_t value);
