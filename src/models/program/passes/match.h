// program/passes/match.h — predicates on values and nodes for fusing passes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "op/fused/fused.h"
#include "program/program.h"

// The node that makes `value` where that is an `op`, otherwise NULL; `value` may be NONE.
const rondo__node *rondo__match_maker(const rondo_program *program, int32_t value, rondo__op_id op);

// An input of a node; NONE where it is left out or beyond the last.
int32_t rondo__match_input(const rondo__node *node, size_t index);

// The type of a value, which may be a constant.
rondo_dtype rondo__match_dtype(const rondo_program *program, int32_t value);
bool rondo__match_is_f32_or_f16(const rondo_program *program, int32_t value);

// How many elements a value has; -1: not known.
int64_t rondo__match_count(const rondo_program *program, int32_t value);

// A constant, otherwise NULL; `value` may be NONE.
const rondo_tensor *rondo__match_constant(const rondo_program *program, int32_t value);

// The elements of a constant of `count` f32, otherwise NULL; `value` may be NONE.
const float *rondo__match_floats(const rondo_program *program, int32_t value, int64_t count);

// True, with the number in *out_value, when `value` is a constant of one float element (f32 or
// f16).
bool rondo__match_scalar(const rondo_program *program, int32_t value, float *out_value);
bool rondo__match_is_number(const rondo_program *program, int32_t value, float number);

// True when the node is an activation of its input 0 that op/fused/fused.h lists, with its
// parameters.
bool rondo__match_activation(const rondo_program *program, const rondo__node *node,
                             rondo__activation *out_activation, float *out_alpha, float *out_beta);

// True when the node is an element-wise op of one input, or of one input and scalar constants, or
// of two inputs; *out_first and *out_second are input positions (second -1 for one operand).
bool rondo__match_scalar_op(const rondo_program *program, const rondo__node *node,
                            rondo__scalar_op *out_op, int32_t *out_first, int32_t *out_second,
                            float *out_alpha, float *out_beta);

// The name of an activation as attributes write it.
const char *rondo__match_activation_name(rondo__activation activation);
const char *rondo__match_scalar_name(rondo__scalar_op op);  // and of a step of rondo.Elementwise

// True when `value` is a constant with one number for each channel of a result of this shape:
// [C, 1, ...] or [1, C, 1, ...].
bool rondo__match_channel_constant(const rondo_program *program, int32_t value,
                                   const rondo_shape *result);

// True when a BatchNormalization has fixed statistics.
bool rondo__match_inference_norm(const rondo__node *norm);
