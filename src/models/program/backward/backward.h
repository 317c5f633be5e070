// program/backward/backward.h — the passes that name what gradients write.
//
// The rules of program/gradient emit ops of ONNX, so that steps can be saved and differentiated
// again. Where a device has one op for what a few of them do together, these passes find it by its
// pattern (match_tree.h), in a specialised program and before half precision is decided.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

// Those that not every device is quick at; all others run always.
typedef struct rondo__backward_options {
    bool names_conv_weights;
    bool names_conv_back;
    bool names_attention;
} rondo__backward_options;

// Runs the passes.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_name_gradients(rondo_program *program,
                                                          const rondo__backward_options *options);

rondo_status rondo__pass_norm_gradient(rondo_program *program);
rondo_status rondo__pass_conv_weights(rondo_program *program);
rondo_status rondo__pass_unfold(rondo_program *program);
rondo_status rondo__pass_loss_gradient(rondo_program *program);
rondo_status rondo__pass_conv_back(rondo_program *program);
rondo_status rondo__pass_pool_gradient(rondo_program *program);
rondo_status rondo__pass_attention_gradient(rondo_program *program);

// Behind the decisions of half precision: a rondo.LossGradient whose result is only cast to f16
// makes f16.
rondo_status rondo__pass_narrow_loss(rondo_program *program);
