// rondo/training.h — gradients of programs, and steps that train them.
//
//   rondo_builder_create_from(model, &builder);       // or a program that is built in code
//   rondo_builder_add_gradients(builder, "loss", (const char *[]){"w"}, (const char *[]){"dw"}, 1,
//                               NULL);
//
// Gradients are nodes as all others: of ops of ONNX, in the program that is run, captured, saved,
// and differentiated again. docs/training.md lists the ops that have one.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TRAINING_H
#define RONDO_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/builder.h"
#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/user_op.h"

RONDO_EXTERN_C_BEGIN

// Starts a builder with all that a program has, to go on from there: its inputs, parameters, nodes
// and outputs, under their names. The program stays as it is.
//
// Ownership: as rondo_builder_create.
// Threads:   safe while nobody changes the program.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_create_from(const rondo_program *program,
                                                                rondo_builder **out_builder);

typedef struct rondo_gradient_options {
    size_t struct_size;  // sizeof(rondo_gradient_options)
    const char *seed;    // a value of y's shape: how something behind changes with y; NULL: ones
    const char *const *stop;  // values that count as fixed, though they are computed
    size_t stop_count;
    const char *const *recompute;  // patterns (* any characters, ? one) of nodes or types of op that
    size_t recompute_count;        // run once more on the way back, so that what they make need not
                                   // be kept until then; ops that draw random numbers never do
} rondo_gradient_options;

// Adds the nodes that compute how y changes with each of xs: d(sum of y) / dx, of x's type and
// shape; zeros where y does not depend on it.
//
// xs         values of the builder: inputs, parameters, or what nodes make.
// outputs    a new name for each.
//
// Where an op has kinks, or its input is at an end, the gradient is PyTorch's (docs/training.md).
// Dropout drops what it dropped; BatchNormalization follows the batch where it trains. A Loop or Scan
// must have a number of turns that is known, and is written out.
//
// Errors:    UNSUPPORTED (an op or attribute without a gradient between an x and y: the message names
//            op, node and the way to y; an x that is no real), INVALID (names; a body), BAD_DATA
//            (shapes that do not fit).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_gradients(
    rondo_builder *builder, const char *y, const char *const *xs, const char *const *outputs,
    size_t count, const rondo_gradient_options *options);

// A node of a user's op, whose gradient is asked for.
typedef struct rondo_gradient_node {
    size_t struct_size;            // of the library's struct
    const rondo_op_node *node;     // name, attributes (rondo/user_op.h)
    size_t input_count;
    const char *const *inputs;     // names of values; "" for one that is left out
    const bool *wants;             // whether the gradient with this input is wanted
    size_t output_count;
    const char *const *outputs;    // "" for one that is left out
    const char *const *changes;    // the gradient with each output; "" where there is none
} rondo_gradient_node;

// Adds nodes to `builder`, under new names, and writes for each input that is wanted the name of its
// gradient, of the input's shape, into out_changes ("" or nothing: zero). Names are copied after the
// call. The builder has the values of the node, and is used for nothing else.
typedef rondo_status (*rondo_gradient_function)(void *data, const rondo_gradient_node *node,
                                                rondo_builder *builder, const char **out_changes);

// Says what the gradient of a registered op is, for the whole process.
//
// Errors:    INVALID (no such op; it has one already).
// Threads:   any.
RONDO_API RONDO_MUST_USE rondo_status rondo_op_set_gradient(const char *domain, const char *name,
                                                            rondo_gradient_function function,
                                                            void *data);

RONDO_EXTERN_C_END

#endif  // RONDO_TRAINING_H
