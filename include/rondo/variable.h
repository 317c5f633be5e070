// rondo/variable.h — variables of a program: inputs that executors keep from run to run.
//
//   rondo_start normal = {.struct_size = sizeof normal, .kind = RONDO_START_NORMAL, .b = 0.02};
//   rondo_builder_add_variable(builder, &table, &normal);          // a rondo_port
//   ... nodes that read "table" and make "table.next" ...
//   rondo_builder_set_update(builder, "table", "table.next");
//
// Nobody has to feed a variable. Its value lies once in the memory of each executor, on its
// device; a run reads it there and writes what becomes of it there, too (rondo/executor_state.h).
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_VARIABLE_H
#define RONDO_VARIABLE_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/program.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_builder rondo_builder;

// What a variable is before the first run. All but CONSTANT and TENSOR are of floats (f32, f64,
// f16, bf16) and drawn as rondo/random.h says, from the start of a sequence of the variable's own:
// the same numbers on every device and in every process.
typedef int32_t rondo_start_kind;
enum {
    RONDO_START_NONE = 0,            // no value, until it is fed or set
    RONDO_START_CONSTANT = 1,        // each element is a
    RONDO_START_UNIFORM = 2,         // from a to below b
    RONDO_START_NORMAL = 3,          // mean a, deviation b
    RONDO_START_XAVIER_UNIFORM = 4,  // between -+ gain * sqrt(6 / (fan_in + fan_out))
    RONDO_START_XAVIER_NORMAL = 5,   // deviation gain * sqrt(2 / (fan_in + fan_out))
    RONDO_START_HE_UNIFORM = 6,      // between -+ gain * sqrt(6 / fan_in)
    RONDO_START_HE_NORMAL = 7,       // deviation gain * sqrt(2 / fan_in)
    RONDO_START_TENSOR = 8,          // `tensor`
};

// Source:    Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
//            networks", 2010; He et al., "Delving deep into rectifiers", 2015.
typedef struct rondo_start {
    size_t struct_size;  // sizeof(rondo_start)
    rondo_start_kind kind;
    double a, b;               // XAVIER and HE: a is the gain, and 0 means 1
    uint64_t seed;             // 0: made of the executor's seed and the variable's name
    uint64_t fan_in, fan_out;  // 0: by the shape: [in, out], or [out, in, window...]; of less than
                               // two extents the number of elements
    const rondo_tensor *tensor;  // TENSOR: in host memory; its bytes are copied
} rondo_start;

// Adds an input that is a variable.
//
// port       name, dtype of numbers, rank and extents; symbolic only with RONDO_START_NONE.
// start      NULL: RONDO_START_NONE.
//
// Errors:    INVALID (as rondo_builder_add_input; a start that does not fit: the message says
//            what; a body).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_variable(rondo_builder *builder,
                                                                 const rondo_port *port,
                                                                 const rondo_start *start);

// Says what a variable is after each run: `value`, which becomes an output where it is none.
//
// Errors:    INVALID (no such variable or value; types that differ; an update already).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_set_update(rondo_builder *builder,
                                                               const char *variable,
                                                               const char *value);

#if defined(RONDO_EXPERIMENTAL)

// The same of a finished or loaded program: a cache that is handed from run to run, say. An input
// that is no variable becomes one, without a start.
//
// input      one without a default; `output` becomes its value.
//
// Errors:    INVALID (no such input or output; types that differ; an update already).
// Threads:   not safe against other calls on the same program; executors made before keep what
//            they have.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_set_update(rondo_program *program,
                                                               const char *input,
                                                               const char *output);

#endif  // RONDO_EXPERIMENTAL

// A program in which parameters are variables that start with their values: weights that executors
// replace by a copy (rondo_executor_set_variable), under all plans and graphs. Nothing is folded
// or packed from them, so ops that read them may be slower; other parameters stay as they are.
//
// names      of parameters or constants.
//
// Errors:    INVALID (no such parameter of numbers).
// Ownership: caller destroys *out_program, which shares the bytes.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_make_variables(const rondo_program *program,
                                                                   const char *const *names,
                                                                   size_t name_count,
                                                                   rondo_program **out_program);

// A variable as a program has it.
typedef struct rondo_variable {  // ABI: fixed
    const char *name;            // borrowed from the program, as all here
    const char *update;          // the output; NULL: none
    const rondo_start *start;
} rondo_variable;

// Lists the variables.
//
// capacity   0: only *out_count is written.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_list_variables(const rondo_program *program,
                                                                   size_t capacity,
                                                                   rondo_variable *out_variables,
                                                                   size_t *out_count);

RONDO_EXTERN_C_END

#endif  // RONDO_VARIABLE_H
