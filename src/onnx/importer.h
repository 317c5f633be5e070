// onnx/importer.h — the state of one import, and its parts' calls to each other.
//
//     importer.c   the public functions: file to message to program
//     graphs.c     a graph's values, in scopes; bodies and what they capture
//     nodes.c      one node: op, attributes, wiring; constants
//     functions.c  calls of the model's own functions, written out in place
//     types.c      declared element types and shapes
//     missing.h    the list of ops that are unsupported
//
// Names. Values of a graph are found by name in its program, which is complete before the first
// node is wired: files need not be sorted. A name that a body does not know is looked up outwards;
// a constant found there is shared, anything else becomes a captured input of each body on the way.
// A function's names live in a map of their own, and see nothing outside.
#ifndef RONDO_ONNX_IMPORTER_H
#define RONDO_ONNX_IMPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "onnx.pb-c.h"
#include "onnx/missing.h"
#include "onnx/namemap.h"
#include "onnx/tensors.h"
#include "program/program.h"
#include "rondo/status.h"

enum {
    RONDO__CALL_DEPTH_MAX = 32,          // functions that call functions
    RONDO__INLINED_COUNT_MAX = 1 << 20,  // nodes that come out of functions, in all
};

// Why a value cannot be held in a rondo_tensor ("a sequence", "a tensor of strings"), by value
// number of one program. A node that touches such a value is unsupported, and says so itself.
typedef struct rondo__oddities {
    const char **reasons;  // NULL entries: nothing odd
    size_t capacity;
} rondo__oddities;

// One graph or function while its nodes are imported.
typedef struct rondo__scope {
    struct rondo__scope *parent;  // the graph around a body; the caller of a function
    rondo_program *program;       // where values and nodes go
    rondo__oddities *oddities;    // of `program`
    int depth;                    // of bodies
    int call_depth;               // of functions
    size_t opset_count;
    Onnx__OperatorSetIdProto *const *opsets;

    // A body only: numbers, in parent->program, of what it captured, one for each captured input.
    int32_t *captured;
    size_t captured_count;
    size_t captured_capacity;

    // A function only.
    const Onnx__FunctionProto *function;  // NULL for graphs
    const Onnx__NodeProto *call;          // gives the attributes
    rondo__namemap names;                 // to value numbers; -1 for an absent argument
} rondo__scope;

typedef struct rondo__importer {
    const Onnx__ModelProto *model;
    rondo__tensor_reader reader;
    rondo_program *main;
    rondo__namemap functions;  // "domain:name" to index in model->functions
    char **function_keys;
    size_t inlined_count;
    size_t *function_bytes;   // packed size of each, by index; 0: not asked yet
    rondo__budget *budget;    // of the load; what functions are written out into counts, too
    rondo__missing *missing;  // what is unsupported so far; never NULL
    bool is_listing;          // the list is all that is wanted
} rondo__importer;

// ---- graphs.c

// Imports a graph into scope->program, which is empty.
RONDO_MUST_USE rondo_status rondo__import_graph(rondo__importer *importer, rondo__scope *scope,
                                                const Onnx__GraphProto *graph);
// Imports the body of a control flow node that stands in `scope`. On success *out_captured is a
// list of values of scope->program (to be freed by the caller), one for each captured input of the
// body.
RONDO_MUST_USE rondo_status rondo__import_body(rondo__importer *importer, rondo__scope *scope,
                                               const Onnx__GraphProto *graph,
                                               rondo_program **out_body, int32_t **out_captured,
                                               size_t *out_captured_count);
// Finds a name from inside a scope, capturing it where needed. BAD_DATA when nobody makes it.
RONDO_MUST_USE rondo_status rondo__scope_resolve(rondo__scope *scope, const char *name,
                                                 int32_t *out_value);
// Adds the value that a node makes. BAD_DATA when the name is taken.
RONDO_MUST_USE rondo_status rondo__scope_declare(rondo__scope *scope, const char *name,
                                                 int32_t *out_value);
// Declares the outputs of all nodes, and imports the Constant nodes among them.
RONDO_MUST_USE rondo_status rondo__import_declarations(rondo__importer *importer,
                                                       rondo__scope *scope,
                                                       Onnx__NodeProto *const *nodes,
                                                       size_t node_count);
// Imports all nodes but Constant.
RONDO_MUST_USE rondo_status rondo__import_nodes(rondo__importer *importer, rondo__scope *scope,
                                                Onnx__NodeProto *const *nodes, size_t node_count);

// ---- nodes.c

bool rondo__node_is_constant(const Onnx__NodeProto *node);
// Imports a Constant node: its output becomes a constant value.
RONDO_MUST_USE rondo_status rondo__import_constant(rondo__importer *importer, rondo__scope *scope,
                                                   const Onnx__NodeProto *proto);
RONDO_MUST_USE rondo_status rondo__import_node(rondo__importer *importer, rondo__scope *scope,
                                               const Onnx__NodeProto *proto);
// "" for NULL and "ai.onnx".
const char *rondo__onnx_domain(const char *domain);
// The opset version a scope imports for a domain; 1 when it names none.
int32_t rondo__scope_get_opset(const rondo__scope *scope, const char *domain);
// The attribute itself, or what stands for it in the call of the function around. NULL: absent.
const Onnx__AttributeProto *rondo__scope_get_attribute(const rondo__scope *scope,
                                                       const Onnx__AttributeProto *attribute);

// ---- functions.c

RONDO_MUST_USE rondo_status rondo__importer_index_functions(rondo__importer *importer);
void rondo__importer_free_functions(rondo__importer *importer);
// *out_function is the index in model->functions; -1 when the model has no such function.
RONDO_MUST_USE rondo_status rondo__importer_find_function(const rondo__importer *importer,
                                                          const char *domain, const char *name,
                                                          int32_t *out_function);
RONDO_MUST_USE rondo_status rondo__import_call(rondo__importer *importer, rondo__scope *scope,
                                               const Onnx__NodeProto *call, int32_t function);

// ---- types.c

// Sets the declared type and shape of a value. What a rondo_tensor cannot hold is noted as an
// oddity. Symbols are added for ports of the main graph only; elsewhere known ones are used.
RONDO_MUST_USE rondo_status rondo__import_type(rondo__importer *importer, rondo__scope *scope,
                                               int32_t value, const Onnx__TypeProto *type,
                                               bool is_port);
// Makes an initializer that is also an input of the main graph the default of that input, whose
// type it must have.
RONDO_MUST_USE rondo_status rondo__import_optional(rondo__importer *importer, rondo__scope *scope,
                                                   int32_t value, const Onnx__TypeProto *type);
RONDO_MUST_USE rondo_status rondo__oddities_set(rondo__oddities *oddities, int32_t value,
                                                const char *reason);
const char *rondo__oddities_get(const rondo__oddities *oddities, int32_t value);

#endif  // RONDO_ONNX_IMPORTER_H
