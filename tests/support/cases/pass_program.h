// support/cases/pass_program.h — small programs for passes, made node by node, and run op by op
// before and after. Names do not matter: each call returns the number of the value it adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/program.h"

int32_t pass_add_input(rondo_program *program, rondo_dtype dtype, const rondo_shape *shape);
int32_t pass_add_constant(rondo_program *program, const rondo_tensor *tensor);
int32_t pass_add_list(rondo_program *program, const int64_t *numbers, size_t count);  // of i64
// A node with one output.
int32_t pass_add_node(rondo_program *program, const char *domain, const char *op,
                      const int32_t *inputs, size_t count);

// Verified and made for the shapes of its inputs, `source` destroyed.
rondo_program *pass_specialise(rondo_program *source);

// Rewrites the program, and fails the test, named `what`, where its outputs for `inputs` differ by
// more than `tolerance` afterwards.
void pass_rewrite(rondo_program *program, rondo_status (*rewrite)(rondo_program *),
                  const rondo_tensor *inputs, double tolerance, const char *what);
