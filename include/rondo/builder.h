// rondo/builder.h — programs made in code, and programs read back.
//
//   rondo_builder_create(NULL, &builder);
//   rondo_builder_add_input(builder, &x);          // a rondo_port: name, dtype, extents
//   rondo_builder_add_parameter(builder, "w", &weights, RONDO_PARAMETER_COPIED);
//   rondo_builder_add_node(builder, "MatMul", (const char *[]){"x", "w"}, 2,
//                          (const char *[]){"y"}, 1, NULL);
//   rondo_builder_add_output(builder, "y", NULL);
//   rondo_builder_finish(builder, &program);       // run it, or rondo_program_save_onnx
//
// Values have names, as in ONNX: an input, a parameter or a node makes one, later nodes use it. A
// name is there before it is used, so a program has no cycles. After a call that failed the builder
// is as it was before.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BUILDER_H
#define RONDO_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/program.h"
#include "rondo/status.h"
#include "rondo/tensor.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_builder rondo_builder;

typedef int32_t rondo_attribute_kind;
enum {
    RONDO_ATTRIBUTE_INT = 1,
    RONDO_ATTRIBUTE_FLOAT = 2,
    RONDO_ATTRIBUTE_STRING = 3,
    RONDO_ATTRIBUTE_TENSOR = 4,
    RONDO_ATTRIBUTE_INTS = 5,
    RONDO_ATTRIBUTE_FLOATS = 6,
    RONDO_ATTRIBUTE_STRINGS = 7,
    RONDO_ATTRIBUTE_GRAPH = 8,
};

// An attribute of a node. Only the fields of its kind are read; the others are zero when it is read
// back. Everything it points to is copied, a tensor with its bytes.
typedef struct rondo_attribute {  // ABI: fixed
    const char *name;
    rondo_attribute_kind kind;
    float float_value;
    int64_t int_value;
    const char *string_value;
    const rondo_tensor *tensor;
    size_t count;  // of ints, floats or strings
    const int64_t *ints;
    const float *floats;
    const char *const *strings;
    rondo_builder *body;           // GRAPH: from rondo_builder_create_body; NULL when read back
    const rondo_program *program;  // GRAPH, when read back
} rondo_attribute;

typedef struct rondo_builder_options {
    size_t struct_size;  // sizeof(rondo_builder_options)
    const char *name;    // of the program; NULL: "program"
    int32_t opset;       // version of the domain ai.onnx, 9 to 28; 0 means 21
} rondo_builder_options;

// Starts an empty program.
//
// Ownership: free *out_builder with rondo_builder_destroy, whether it was finished or not.
// Threads:   bodies count as their builder.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_create(const rondo_builder_options *options,
                                                           rondo_builder **out_builder);

// Destroys the builder, and its program if that was not finished.
RONDO_API void rondo_builder_destroy(rondo_builder *builder);

// Adds an input. An extent is a number, -1 if it is not known, or given by its symbol.
//
// port       name, dtype, rank (-1: not said), extents and symbols; of a SEQUENCE or OPTIONAL
//            item_dtype. Labels must be NULL.
//
// Errors:    INVALID (name taken or empty; dtype or extents; in a body a symbol).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_input(rondo_builder *builder,
                                                              const rondo_port *port);

typedef int32_t rondo_parameter_kind;
enum {
    RONDO_PARAMETER_COPIED = 0,  // the program has bytes of its own
    RONDO_PARAMETER_SHARED = 1,  // it shares those of the tensor, as rondo_tensor_share does; when
                                 // the tensor does not own them, they must stay valid as long as
                                 // the program
    RONDO_PARAMETER_INPUT = 2,   // copied, and the default of an input of this name; see
                                 // rondo_program_get_optional_input_count. Not in bodies
};

// Adds a parameter: a named value with its initialiser.
//
// tensor     of numbers or strings, in host memory.
//
// Errors:    INVALID (name taken or empty; dtype, shape, data NULL).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_parameter(rondo_builder *builder,
                                                                  const char *name,
                                                                  const rondo_tensor *tensor,
                                                                  rondo_parameter_kind kind);

// Adds a constant: a parameter whose elements stand in an array, which is copied.
//
// Errors:    as rondo_builder_add_parameter.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_constant(rondo_builder *builder,
                                                                 const char *name,
                                                                 rondo_dtype dtype,
                                                                 const rondo_shape *shape,
                                                                 const void *elements);

typedef struct rondo_builder_node_options {
    size_t struct_size;  // sizeof(rondo_builder_node_options)
    const char *domain;  // NULL or "" for ai.onnx
    int32_t version;     // of the domain; 0: what it has. A program has one version of a domain:
                         // the first node decides, 0 then means 3 for ai.onnx.ml and 1 for others
    const char *name;    // of the node; NULL: "<op>_<number>"
    const rondo_attribute *attributes;
    size_t attribute_count;
} rondo_builder_node_options;

// Adds a node of any op of docs/operators.md.
//
// inputs     names of values; NULL or "" for one that is left out.
// outputs    new names for the values that it makes; NULL or "" for an output that is not used.
//
// Errors:    UNSUPPORTED (op, version or attribute, as for models from files), INVALID (an unknown
//            value, a name that is taken, the number of inputs or outputs, attributes twice or of
//            no kind, another version of a domain). Messages name the node.
// Ownership: takes the contents of bodies among the attributes; their builders are finished then.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_node(
    rondo_builder *builder, const char *op, const char *const *inputs, size_t input_count,
    const char *const *outputs, size_t output_count, const rondo_builder_node_options *options);

// Opens a scope: nodes that are added until its end, those of bodies included, run at `place`:
// "cpu", "gpu", "gpu:1", or "all" for wherever the executor likes, as outside of all scopes. The
// innermost scope counts. The place is part of the program, and kept in ONNX files.
//
// Errors:    INVALID (no such place; more than 64 scopes inside each other).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_begin_place(rondo_builder *builder,
                                                                const char *place);

// Ends the innermost scope.
//
// Errors:    STATE (none is open in this builder).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_end_place(rondo_builder *builder);

#if defined(RONDO_EXPERIMENTAL)

// Starts a body of an If, Loop or Scan that will be a node of `builder`. It has inputs, parameters,
// nodes and outputs of its own, and its nodes use values of the builders around by name. It ends by
// being an attribute of the node.
//
// name       NULL: "body".
//
// Errors:    INVALID (bodies nested more than 31 deep).
// Ownership: free *out_body with rondo_builder_destroy, before `builder`.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_create_body(rondo_builder *builder,
                                                                const char *name,
                                                                rondo_builder **out_body);

#endif  // RONDO_EXPERIMENTAL

// Makes a value an output of the program, or of the body.
//
// declared   its dtype, rank and extents (the name is not read), checked against what is inferred;
//            NULL: inferred by rondo_builder_finish. Where extents are symbolic, only dtype and
//            rank are.
//
// Errors:    INVALID (an unknown value, an output already, extents).
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_output(rondo_builder *builder,
                                                               const char *name,
                                                               const rondo_port *declared);

// Checks the whole and gives out the program. Types and shapes are checked here where all extents
// of the inputs are numbers, otherwise when an executor meets the first shapes.
//
// Errors:    BAD_DATA (types or shapes that do not fit, bodies without what their node needs: the
//            message names the node), UNSUPPORTED, INVALID (no outputs; a body), STATE (a scope of
//            rondo_builder_begin_place is open).
// Ownership: caller destroys *out_program. The builder is empty then: all but its end is STATE.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_finish(rondo_builder *builder,
                                                           rondo_program **out_program);

// ---- nodes that are often wanted together ------------------------------------------------------
//
// Each adds ONNX ops and gives `output` their result. What stands between has names that begin with
// `output` and a dot. They need opset 13 or later.
//
// Errors:    as rondo_builder_add_node.

// Rows of a table: Gather of axis 0.
//
// Shapes:    ids [...] I32 or I64, table [rows, ...columns]; output [...ids, ...columns].
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_embedding(rondo_builder *builder,
                                                                  const char *ids,
                                                                  const char *table,
                                                                  const char *output);

// x / sqrt(sum(x * x) + epsilon), summed along `axis`: Mul, ReduceSum, Add, Sqrt, Div; CastLike
// (opset 15) makes epsilon of the type of x where that is not declared.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_l2_normalize(rondo_builder *builder,
                                                                     const char *x, int64_t axis,
                                                                     float epsilon,
                                                                     const char *output);

// (x - label)^2 by element, with broadcasting: Sub, Mul.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_square_error_cost(rondo_builder *builder,
                                                                          const char *x,
                                                                          const char *label,
                                                                          const char *output);

// The mean of all elements, a scalar: ReduceMean.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_mean(rondo_builder *builder, const char *x,
                                                             const char *output);

// The extents of x, I64 [rank]: Shape.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_shape(rondo_builder *builder, const char *x,
                                                              const char *output);

// x from starts[i] to before ends[i] along axes[i]: Slice. Negative numbers count from the end; an
// end beyond the extent means all of it.
//
// steps      NULL: 1 each.
RONDO_API RONDO_MUST_USE rondo_status rondo_builder_add_slice(
    rondo_builder *builder, const char *x, const int64_t *axes, const int64_t *starts,
    const int64_t *ends, const int64_t *steps, size_t count, const char *output);

// ---- reading a program back --------------------------------------------------------------------
//
// Of programs from code and from files alike. What is given out is borrowed from the program.

// A value that the program brings along.
typedef struct rondo_parameter {  // ABI: fixed
    const char *name;
    const rondo_tensor *tensor;
} rondo_parameter;

// Lists parameters, constants, and the defaults of inputs.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_list_parameters(const rondo_program *program,
                                                                    size_t capacity,
                                                                    rondo_parameter *out_parameters,
                                                                    size_t *out_count);

// The version of a domain ("" for ai.onnx) in the nodes of this program, without its bodies; 0 when
// none is of it.
RONDO_API int32_t rondo_program_get_opset(const rondo_program *program, const char *domain);

typedef struct rondo_program_node {
    size_t struct_size;  // sizeof(rondo_program_node)
    const char *op;
    const char *domain;  // "" for ai.onnx
    int32_t version;
    const char *name;
    size_t input_count;
    size_t output_count;
    size_t attribute_count;
    const char *place;  // "cpu", "gpu", "gpu:1", or "all" where nothing says so
} rondo_program_node;

// Nodes stand in an order in which each uses what those before it make.
RONDO_API size_t rondo_program_get_node_count(const rondo_program *program);

// Describes node `index`.
//
// Errors:    INVALID (index).
RONDO_API RONDO_MUST_USE rondo_status rondo_program_get_node(const rondo_program *program,
                                                             size_t index,
                                                             rondo_program_node *out_node);

// The name of a value that a node reads or makes; "" for one that is left out, NULL when there is
// no such node, input or output. A node of a body uses values around the body like its own.
RONDO_API const char *rondo_program_get_node_input(const rondo_program *program, size_t node,
                                                   size_t index);
RONDO_API const char *rondo_program_get_node_output(const rondo_program *program, size_t node,
                                                    size_t index);

// Gives out an attribute of a node.
//
// Errors:    INVALID (node or index).
RONDO_API RONDO_MUST_USE rondo_status rondo_program_get_node_attribute(
    const rondo_program *program, size_t node, size_t index, rondo_attribute *out_attribute);

// Writes inputs, outputs, parameters (without their elements) and nodes with their attributes and
// bodies.
//
// format     PLAIN or JSON.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_describe(const rondo_program *program,
                                                             rondo_text_format format,
                                                             rondo_write_function write,
                                                             void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_BUILDER_H
