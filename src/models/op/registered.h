// op/registered.h — ops that the program has registered: an entry like those of the tables, whose
// functions hand on to the program's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/op.h"
#include "rondo/user_op.h"

// It stays until the process ends, because programs and plans point to it.
typedef struct rondo__user_op {
    rondo__op_def def;
    rondo_op_definition definition;
    struct rondo__user_op *next;  // written before the entry can be found
} rondo__user_op;

// What the functions of an op see of a node.
struct rondo_op_node {
    const rondo__op *op;
    rondo__infer *infer;  // NULL but for `infer`
};

// The op behind an entry with RONDO__OP_USER.
static inline const rondo__user_op *rondo__user_op_get(const rondo__op_def *def) {
    return (const rondo__user_op *)(const void *)def;
}

// Whether plain C can compute the op: not where it is one of the program's without a `compute`.
bool rondo__op_has_compute(const rondo__op_def *def);

// Handles the status that a function of the op returned: its error record gets the node's name, or
// is written here if the function wrote none after record number `sequence`. Returns `status`.
rondo_status rondo__user_op_note(const rondo__op *op, rondo_status status, uint64_t sequence,
                                 const char *what);

// The tensor that `info` describes, as the program sees it: `data` is the value, if known.
void rondo__tensor_show_info(const rondo__tensor_info *info, rondo_tensor *out_tensor);

// As the program sees an attribute.
void rondo__attribute_show(const rondo__attribute *attribute, rondo_attribute *out_attribute);

// Makes a new op known, unless its domain and name are, with some version in common.
//
// Errors:    INVALID.
// Ownership: takes `op` when it succeeds.
RONDO_MUST_USE rondo_status rondo__op_enter(rondo__user_op *op);
