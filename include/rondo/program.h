// rondo/program.h — a model as plain data: values, ops, attributes. No device in it.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PROGRAM_H
#define RONDO_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_program rondo_program;

// An input or output of a program.
typedef struct rondo_port {
    size_t struct_size;  // sizeof(rondo_port)
    const char *name;    // borrowed from the program
    rondo_dtype dtype;
    int32_t rank;                        // -1 when the model does not say
    int64_t extent[RONDO_RANK_MAX];      // -1 where the extent is symbolic or unknown
    const char *symbol[RONDO_RANK_MAX];  // name of a symbolic extent, borrowed; NULL otherwise
    // What a SEQUENCE or OPTIONAL holds, outermost first: an optional sequence of floats has
    // SEQUENCE and F32 here. NONE where there is nothing, or the model does not say.
    rondo_dtype item_dtype[2];
    // Names of the columns of a classifier's scores, strings or I64, borrowed from the program;
    // NULL where there are none. They come from ZipMap (rondo/onnx.h).
    const rondo_tensor *labels;
} rondo_port;

// Gives the program up; executors made from it keep what they need.
RONDO_API void rondo_program_destroy(rondo_program *program);

// How many inputs and outputs there are.  Threads: safe while no call changes the program.
RONDO_API size_t rondo_program_get_input_count(const rondo_program *program);
RONDO_API size_t rondo_program_get_output_count(const rondo_program *program);

// Describes input `index`. Inputs that have a default are not among these; see below.
//
// Errors:    INVALID (index).
// Threads:   safe while no call changes the program.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_get_input(const rondo_program *program,
                                                              size_t index, rondo_port *out_port);

// Describes output `index`.
//
// Errors:    INVALID (index).
// Threads:   safe while no call changes the program.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_get_output(const rondo_program *program,
                                                               size_t index, rondo_port *out_port);

// Inputs with a default: initializers that the model lists as inputs, too. A run may feed them by
// name like any input; one that does not feed them takes the default, also after runs that did.
//
// Threads:   safe while no call changes the program.
// Cost:      fed, they are inputs of a program of their own, compiled at the first such run; unfed
//            they are constants, folded and packed like all others.
RONDO_API size_t rondo_program_get_optional_input_count(const rondo_program *program);

// Describes the input with a default number `index`.
//
// Errors:    INVALID (index).
// Threads:   safe while no call changes the program.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_get_optional_input(const rondo_program *program,
                                                                       size_t index,
                                                                       rondo_port *out_port);

// Gives a symbolic extent (for example "batch") a number.
//
// Errors:    INVALID (no such symbol: the message lists those there are; extent below 0).
// Threads:   not safe against other calls on the same program.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_set_dimension(rondo_program *program,
                                                                  const char *symbol,
                                                                  int64_t extent);

// What the metadata of a model's file says of `key` ("Image.NominalPixelRange"); NULL: nothing.
// rondo_program_save_onnx does not write it.
//
// Ownership: the text is the program's.
// Threads:   safe while no thread changes the program.
RONDO_API const char *rondo_program_get_metadata(const rondo_program *program, const char *key);

#if defined(RONDO_EXPERIMENTAL)

// Places ops: says where executors made from now on run those whose name or type matches.
//
// pattern    * stands for any characters, ? for one. Nodes in bodies match, too; a control op takes
//            its bodies along.
// place      "cpu", "gpu" (that of the executor), "gpu:1" (that GPU), or "all": wherever the
//            executor likes, which takes back what was said before.
//
// See rondo/placement.h for what places mean; a scope of the builder sets them, too.
//
// Errors:    INVALID (no such place; a pattern that matches nothing).
// Threads:   not safe against other calls on the same program.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_set_place(rondo_program *program,
                                                              const char *pattern,
                                                              const char *place);

#endif  // RONDO_EXPERIMENTAL

RONDO_EXTERN_C_END

#endif  // RONDO_PROGRAM_H
