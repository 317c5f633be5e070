// program/half/half_judge.h — what the rules ask of nodes and their constants.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "op/half_rule.h"
#include "program/edit.h"
#include "program/half/half_pass.h"

// A decision under way.
typedef struct rondo__half_analysis {
    const rondo_program *program;
    rondo__half_cache *cache;
    rondo__half_decision *decisions;
    uint8_t *class_of;  // of each value
    uint8_t *wanted;    // of each value: EXACT, FINE or WIDE where what uses it needs that
    rondo__uses uses;
} rondo__half_analysis;

// ---- half_nodes.c: what is known of a node -----------------------------------------------------

// The rule of the node's op; ops that only move values or work by element carry classes on, others
// have no rule of their own.
const rondo__half_rule *rondo__half_find_rule(const rondo__node *node);
// Whether it takes values elsewhere as they are.
bool rondo__half_is_move(const rondo__node *node);
rondo_dtype rondo__half_get_type(const rondo_program *program, int32_t value);
// f32.
bool rondo__half_is_single(const rondo_program *program, int32_t value);
bool rondo__half_is_constant(const rondo_program *program, int32_t value);
// An f32 input that is computed; constants have no class.
bool rondo__half_is_computed(const rondo_program *program, int32_t value);
bool rondo__half_reads_single(const rondo_program *program, const rondo__node *node);
bool rondo__half_makes_single(const rondo_program *program, const rondo__node *node);
// Whether types and shapes of all that it reads and makes are known.
bool rondo__half_is_known(const rondo_program *program, const rondo__node *node);
// Whether strings, sequences or optionals come in or go out.
bool rondo__half_has_objects(const rondo_program *program, const rondo__node *node);
// How many elements of the input go into one of the output. A running sum has as many outputs as
// inputs, so there it is the length of an axis: any axis, since which one may be an input.
int64_t rondo__half_count_summed(const rondo_program *program, const rondo__node *node);

// ---- half_judge_constants.c ---------------------------------------------------------------------

// Why one of the node's constants keeps it in f32, and the class of its results then; NULL: none
// does.
const char *rondo__half_judge_constants(const rondo__half_analysis *analysis,
                                        const rondo__node *node, const rondo__half_rule *rule,
                                        uint8_t *out_class);
