// program/program.h — a model as plain data: values (edges), nodes (ops with wiring), bodies.
//
// Values are numbered; a node lists value numbers. Nodes are kept in an order in which each value
// is made before it is used. A body (of If, Loop, Scan) is a program of its own: what it uses from
// outside comes in as extra inputs after its declared ones, and the node that holds it lists the
// same values after its own inputs: for each body attribute in order, as many as that body has
// inputs beyond its declared ones.
//
// Bodies nest at most RONDO__BODY_DEPTH_MAX deep, so that code that walks them may recurse. All
// else is bounded by loops: a program of 100 000 nodes in one chain is fine.
//
// Values are found by name through `names`, which is only read and written by the functions below;
// a pass that needs another name adds another value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "program/names.h"
#include "rondo/program.h"
#include "rondo/variable.h"

enum {
    RONDO__VALUE_NONE = -1,      // an absent optional input or output
    RONDO__BODY_DEPTH_MAX = 32,  // the main program is at depth 0
    // Real models have a handful of symbols (torch exports a few hundred at most); the limit keeps
    // the search by name cheap for files that mean harm.
    RONDO__SYMBOL_COUNT_MAX = 1024,
};

// An extent of a declared shape: a number, a symbol, or nothing (number -1 and symbol -1).
typedef struct rondo__dimension {
    int64_t number;  // -1 when symbolic or unknown
    int32_t symbol;  // index into symbols; -1 for none
} rondo__dimension;

typedef struct rondo__value {
    char *name;         // never NULL; unique within the program
    rondo_dtype dtype;  // NONE when not yet inferred
    bool has_shape;     // the model declares a rank
    int32_t rank;
    rondo__dimension dims[RONDO_RANK_MAX];
    rondo_tensor constant;      // dtype NONE: not a constant
    int32_t producer;           // node index; -1 for inputs and constants
    int32_t origin;             // a constant of a body that came from around it, as loaded: its
                                // number there; otherwise -1
    rondo_dtype item_dtype[2];  // of sequences and optionals; see rondo_port
    rondo_tensor labels;        // of a ZipMap's scores; dtype NONE otherwise
    int64_t most;               // as in rondo__tensor_info (op/op.h)
} rondo__value;

// An initializer that the model lists as an input, too: the default of an input that may be fed.
typedef struct rondo__optional {
    int32_t value;          // a constant
    rondo__value declared;  // dtype and dims of the input; the name is the value's
} rondo__optional;

// The place of a node, and the source of that; zeroed: none.
typedef struct rondo__place_mark {
    uint8_t place;  // RONDO__PLACE_...
    uint8_t by;     // RONDO__PLACED_BY_...
} rondo__place_mark;

typedef struct rondo__node {
    rondo__op op;        // the node owns the bodies among its attributes
    size_t input_count;  // explicit inputs plus captured values of all bodies
    int32_t *inputs;     // value numbers or RONDO__VALUE_NONE
    size_t output_count;
    int32_t *outputs;         // value numbers or RONDO__VALUE_NONE
    size_t explicit_count;    // inputs the file lists; the rest are captured values
    uint8_t precision;        // RONDO__PRECISION_... of half/half_pass.h: what the caller asks for
    rondo__place_mark place;  // where the caller wants it; see program/place_mark.h
    const rondo__op_def *hidden_def;  // its op while passes run that must leave it alone; or NULL
} rondo__node;

static inline bool rondo__node_is(const rondo__node *node, rondo__op_id op) {
    return node->op.def->id == op;
}

// An input that executors keep from run to run; see rondo/variable.h.
typedef struct rondo__variable {
    int32_t value;       // the input
    int32_t update;      // an output: what it is after a run; RONDO__VALUE_NONE: what it was
    rondo_start start;   // its tensor is `first`, or NULL
    rondo_tensor first;  // of RONDO_START_TENSOR; dtype NONE otherwise
} rondo__variable;

typedef struct rondo__symbol {
    char *name;
    int64_t extent;  // -1 until set
} rondo__symbol;

// Something of a user's that lives as long as the program: the head of the user's struct.
typedef struct rondo__program_attachment {
    void (*free)(struct rondo__program_attachment *attachment);
} rondo__program_attachment;

struct rondo_program {
    atomic_int reference_count;
    char *name;
    size_t value_count, value_capacity;
    rondo__value *values;
    size_t node_count, node_capacity;
    rondo__node *nodes;
    size_t input_count, input_capacity;
    int32_t *inputs;        // declared inputs, then (bodies only) captured values
    size_t declared_count;  // of `inputs`; equal to input_count in the main program
    size_t output_count, output_capacity;
    int32_t *outputs;
    size_t optional_count, optional_capacity;
    rondo__optional *optionals;  // of a program as loaded; clones have none
    size_t variable_count, variable_capacity;
    rondo__variable *variables;  // likewise
    size_t symbol_count, symbol_capacity;
    rondo__symbol *symbols;  // bodies have none of their own
    // What the users of the program share; a clone has none. NULL until the first user sets it.
    _Atomic(rondo__program_attachment *) attachment;
    size_t metadata_bytes;    // of a program as loaded
    char *metadata;           // key, zero, value, zero, and so on
    uint64_t place_revision;  // changes of rondo_program_set_place
    uint64_t file_bytes;      // of the model and what lies beside it; 0 when there is no file
    // The plan file that it came from (saved/saved.h); NULL: none.
    rondo__program_attachment *saved;
    rondo__namemap names;  // of all values, to their numbers
};

// ---- building ---------------------------------------------------------------------------------

RONDO_MUST_USE rondo_status rondo__program_create(const char *name, rondo_program **out_program);
// Adds a reference, which rondo_program_destroy gives up.  Threads: safe.
void rondo__program_retain(rondo_program *program);
// Adds a value; `name` is copied and made unique when taken ("x", "x.1", ...).
//
// Errors:    NO_MEMORY, BAD_DATA (more values than a value number can count).
// Threads:   not safe against other calls on the same program; so are all functions below.
RONDO_MUST_USE rondo_status rondo__program_add_value(rondo_program *program, const char *name,
                                                     int32_t *out_value);
// The value of this name; RONDO__VALUE_NONE when there is none.
int32_t rondo__program_find_value(const rondo_program *program, const char *name);
// Enters all values' names afresh, after they were renumbered.
void rondo__program_rebuild_names(rondo_program *program);
// Adds a constant value that shares the tensor's bytes.
RONDO_MUST_USE rondo_status rondo__program_add_constant(rondo_program *program, const char *name,
                                                        const rondo_tensor *tensor,
                                                        int32_t *out_value);
// Adds what a body uses of the program around it: a constant is shared and remembers its origin,
// another value gets its type, and is to be captured (rondo__program_add_captured).
RONDO_MUST_USE rondo_status rondo__program_add_from_around(rondo_program *body, const char *name,
                                                           const rondo_program *around,
                                                           int32_t outer, int32_t *out_value);
// Appends a node. Takes `op` (zeroed on success); copies the value lists; sets producers.
RONDO_MUST_USE rondo_status rondo__program_add_node(rondo_program *program, rondo__op *op,
                                                    const int32_t *inputs, size_t input_count,
                                                    size_t explicit_count, const int32_t *outputs,
                                                    size_t output_count);
// Appends a copy of a node, of another program, too: its bodies and marks with it, over these
// values.
RONDO_MUST_USE rondo_status rondo__program_add_copy(rondo_program *program, const rondo__node *node,
                                                    const int32_t *inputs, const int32_t *outputs);
// Appends a node of a registered op without attributes (set them on nodes[node_count - 1].op
// afterwards).
RONDO_MUST_USE rondo_status rondo__program_add_simple(rondo_program *program, const char *domain,
                                                      const char *op_name, const char *node_name,
                                                      const int32_t *inputs, size_t input_count,
                                                      const int32_t *outputs, size_t output_count);
// Declared inputs all come first, captured ones (bodies only) after them.
RONDO_MUST_USE rondo_status rondo__program_add_input(rondo_program *program, int32_t value);
RONDO_MUST_USE rondo_status rondo__program_add_captured(rondo_program *program, int32_t value);
RONDO_MUST_USE rondo_status rondo__program_add_output(rondo_program *program, int32_t value);
RONDO_MUST_USE rondo_status rondo__program_add_symbol(rondo_program *program, const char *name,
                                                      int32_t *out_symbol);
// Makes `constant` the default of an input that is declared as `declared` (its name is ignored).
RONDO_MUST_USE rondo_status rondo__program_add_optional(rondo_program *program, int32_t constant,
                                                        const rondo__value *declared);
// The variable that a value is; NULL: none.
rondo__variable *rondo__program_find_variable(const rondo_program *program, int32_t value);
// Adds a variable that fits, and shares its first value.
RONDO_MUST_USE rondo_status rondo__program_add_variable(rondo_program *program,
                                                        const rondo__variable *variable);
// Makes an input, or a constant with which one starts, a variable, as a file says.
//
// Errors:    BAD_DATA (what does not fit), NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__program_add_saved_variable(rondo_program *program, int32_t value,
                                                              int32_t update,
                                                              const rondo_start *start);
// A clone with its optionals and variables.
RONDO_MUST_USE rondo_status rondo__program_clone_whole(const rondo_program *program,
                                                       rondo_program **out_program);
// A clone in which those optionals are inputs, behind the others, that `is_fed` names (one for
// each optional), also where bodies use them.
RONDO_MUST_USE rondo_status rondo__program_override(const rondo_program *program,
                                                    const bool *is_fed,
                                                    rondo_program **out_program);
// Makes a constant, also where bodies use it, an input behind the others. Nothing else has the
// program yet; after a failure it is good for nothing.
RONDO_MUST_USE rondo_status rondo__program_free_constant(rondo_program *program, int32_t value);
// The value is no constant any more: bodies that hold a copy of the constant capture it instead.
RONDO_MUST_USE rondo_status rondo__program_capture_in_bodies(rondo_program *program, int32_t value);
// Deep copy of structure and attributes; constants share their bytes.
// A clone in which a constant, also where bodies use it, is another of the same dtype and shape,
// whose bytes it shares. Its optionals are those of the program.
RONDO_MUST_USE rondo_status rondo__program_replace_constant(const rondo_program *program,
                                                            int32_t value,
                                                            const rondo_tensor *tensor,
                                                            rondo_program **out_program);
// The same in place, of a program that only the caller uses. Shares the tensor's bytes.
void rondo__program_put_constant(rondo_program *program, int32_t value, const rondo_tensor *tensor);
RONDO_MUST_USE rondo_status rondo__program_clone(const rondo_program *program,
                                                 rondo_program **out_program);

// Lets ops that leave it open work as in training, in bodies, too.
void rondo__program_set_training(rondo_program *program);

// ---- checking and ordering --------------------------------------------------------------------

// Checks every index, that each value has one maker, and sorts nodes so that makers precede users.
//
// Errors:    BAD_DATA (cycle: names a node on it; value without a maker: names node and value),
//            NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__program_verify(rondo_program *program);

// Removes nodes without effect whose outputs are not used, and values that no node mentions
// (renumbers values).
RONDO_MUST_USE rondo_status rondo__program_remove_dead(rondo_program *program);

// How often each value is used by nodes and outputs; out_counts has value_count entries.
void rondo__program_count_uses(const rondo_program *program, uint32_t *out_counts);

// Writes the declared shape of a value of `program`, "[batch=4, 3, ?]": a symbol with the number
// it was given, "?" where nothing is said. Returns `buffer`.
const char *rondo__value_format_shape(const rondo_program *program, const rondo__value *value,
                                      char *buffer, size_t buffer_bytes);

// Frees what a node owns, its bodies too, and zeroes it.
void rondo__node_deinit(rondo__node *node);

// Puts the node's description in front of the latest record, and its name into it, unless an op is
// named there already. For code that passes on a failure from below the node.
void rondo__node_blame(const rondo__node *node);

// The text "<op> node \"name\"" for messages; borrowed from a thread-local buffer.
const char *rondo__node_describe(const rondo__node *node);
