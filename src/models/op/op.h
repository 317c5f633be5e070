// op/op.h — what an operation is: its schema entry, one instance of it, and the contexts of its
// two functions (shape inference and the plain C reference).
//
// To add an op: write `infer` and `compute` in the file of its family, give the family's table
// (rondo__op_table_*) a row that says all there is to say of the op, name it in op_list.h, and add
// a case to the tests. The rest of the library knows ops by identity, never by name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/half_rule.h"
#include "op/op_list.h"
#include "rondo/random.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

// The opsets that are promised. An entry may begin earlier: where an op has meant the same since an
// older opset, models of that opset run too.
enum {
    RONDO_OP_OPSET_MIN = 9,
    RONDO_OP_OPSET_MAX = 28,
    RONDO_OP_OPSET_WRITTEN = 21,  // of programs that are built and say nothing else
    RONDO_OP_ANY_COUNT = 255,     // no upper limit of inputs or outputs
};

// ---- attributes -------------------------------------------------------------------------------

typedef enum rondo__attribute_kind {
    RONDO__ATTRIBUTE_INT,
    RONDO__ATTRIBUTE_FLOAT,
    RONDO__ATTRIBUTE_STRING,
    RONDO__ATTRIBUTE_TENSOR,
    RONDO__ATTRIBUTE_INTS,
    RONDO__ATTRIBUTE_FLOATS,
    RONDO__ATTRIBUTE_STRINGS,
    RONDO__ATTRIBUTE_BODY,  // a sub-program; op/ treats it as an opaque pointer
} rondo__attribute_kind;

struct rondo_program;

// Owns everything it points to.
typedef struct rondo__attribute {
    char *name;
    rondo__attribute_kind kind;
    int64_t int_value;
    float float_value;
    char *string_value;  // zero-terminated
    rondo_tensor tensor_value;
    size_t count;  // of ints, floats or strings
    int64_t *ints;
    float *floats;
    char **strings;
    struct rondo_program *body;  // the program room's: neither copied nor freed in this room
} rondo__attribute;

// ---- an op instance ---------------------------------------------------------------------------

typedef struct rondo__op_def rondo__op_def;

// One op of a program, without its wiring. Owns name and attributes.
typedef struct rondo__op {
    const rondo__op_def *def;  // static
    char *name;                // node name, or "<op>_<index>" when the file gives none; never NULL
    int32_t opset;             // opset version of the model for the op's domain
    bool is_training;          // what its executor does, for an op that leaves it open
    size_t attribute_count;
    rondo__attribute *attributes;
} rondo__op;

// Attribute look-up by name. The default is returned when the attribute is absent or of another
// kind.
const rondo__attribute *rondo__op_find(const rondo__op *op, const char *name);
int64_t rondo__op_get_int(const rondo__op *op, const char *name, int64_t fallback);
float rondo__op_get_float(const rondo__op *op, const char *name, float fallback);
const char *rondo__op_get_string(const rondo__op *op, const char *name, const char *fallback);
// Returns the ints and their count, or NULL and 0.
const int64_t *rondo__op_get_ints(const rondo__op *op, const char *name, size_t *out_count);
const float *rondo__op_get_floats(const rondo__op *op, const char *name, size_t *out_count);

// Whether a BatchNormalization trains, as far as its attribute or its executor say so.
bool rondo__op_trains(const rondo__op *op);

// Attribute building, for passes and the importer. Replaces one of the same name.
RONDO_MUST_USE rondo_status rondo__op_set_int(rondo__op *op, const char *name, int64_t value);
RONDO_MUST_USE rondo_status rondo__op_set_float(rondo__op *op, const char *name, float value);
RONDO_MUST_USE rondo_status rondo__op_set_string(rondo__op *op, const char *name,
                                                 const char *value);
RONDO_MUST_USE rondo_status rondo__op_set_ints(rondo__op *op, const char *name,
                                               const int64_t *values, size_t count);
RONDO_MUST_USE rondo_status rondo__op_set_floats(rondo__op *op, const char *name,
                                                 const float *values, size_t count);
RONDO_MUST_USE rondo_status rondo__op_set_strings(rondo__op *op, const char *name,
                                                  const char *const *values, size_t count);
RONDO_MUST_USE rondo_status rondo__op_set_tensor(rondo__op *op, const char *name,
                                                 const rondo_tensor *value);
// Takes `attribute` (moves it in, zeroes the source); replaces one of the same name.
RONDO_MUST_USE rondo_status rondo__op_take_attribute(rondo__op *op, rondo__attribute *attribute);
RONDO_MUST_USE rondo_status rondo__op_copy(const rondo__op *source,
                                           rondo__op *out_copy);  // without bodies
void rondo__op_deinit(rondo__op *op);                             // NULL and zeroed are fine
void rondo__attribute_deinit(rondo__attribute *attribute);        // NULL and zeroed are fine

// Refuses what the entry does not understand: an attribute it does not list, or a value its `check`
// turns down. The importer calls it for each node.
//
// Errors:    UNSUPPORTED ("unsupported: op NAME version V (attribute A)"), BAD_DATA.
RONDO_MUST_USE rondo_status rondo__op_check(const rondo__op *op);

// Refuses more or fewer inputs or outputs than the entry takes. The message does not name the op.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__op_check_counts(const rondo__op_def *def, size_t input_count,
                                                   size_t output_count);

// ---- shape inference --------------------------------------------------------------------------

// The type, shape and value of a tensor, as far as they are known before it is computed.
typedef struct rondo__tensor_info {
    rondo_dtype dtype;    // RONDO_DTYPE_NONE: absent optional input or output
    bool is_shape_known;  // false: depends on values that are not known yet
    bool is_rank_known;   // where the shape is not known: rank and some extents are, others are -1
    rondo_shape shape;
    const rondo_tensor *constant;  // the value in host memory when it is known; otherwise NULL
    int64_t most;                  // above 0: a whole number that is not known, but is at most this
} rondo__tensor_info;

static inline bool rondo__info_has_rank(const rondo__tensor_info *info) {
    return info->is_shape_known || info->is_rank_known;
}
// Leaves in *in_out_info what holds of `other`, too; dtype NONE where the types differ.
void rondo__info_join(rondo__tensor_info *in_out_info, const rondo__tensor_info *other);

// `infer` fills outputs[0 .. output_count) from inputs whose shapes are all known. Where an
// output's shape needs the value of an input whose `constant` is NULL, it calls
// rondo__infer_needs_value, which leaves all outputs unknown; that is not an error. dtype of
// outputs is filled in either case.
typedef struct rondo__infer {
    const rondo__op *op;
    size_t input_count;   // trailing absent inputs may be cut off; check before indexing
    size_t output_count;  // outputs the model names
    const rondo__tensor_info *inputs;
    rondo__tensor_info *outputs;  // cleared on entry
    uint32_t
        needed_inputs;  // bit i: the value of input i is needed; set by rondo__infer_needs_value
    bool is_data_dependent;  // shape depends on computed data and is known only after computing
                             // (NonZero)
    bool has_bound;          // set by rondo__infer_needs_bound
    uint8_t bound_input, bound_by, bound_axis;
} rondo__infer;

// Fails (INTERNAL) never; returns OK so that `return rondo__infer_needs_value(...)` reads well. The
// op fills the outputs' dtypes itself, before or after.
rondo_status rondo__infer_needs_value(rondo__infer *infer, size_t input);
// The same, but it does to know that the value, one whole number, is at most the extent `axis` of
// input `by`: then `most` of the next inference says so. The op reads the value when it runs.
rondo_status rondo__infer_needs_bound(rondo__infer *infer, size_t input, size_t by, int32_t axis);
// Leaves all output shapes unknown; sets the dtype of output 0. The op sets those of other outputs.
rondo_status rondo__infer_set_data_dependent(rondo__infer *infer, rondo_dtype output_dtype);
rondo_status rondo__infer_set_output(rondo__infer *infer, size_t output, rondo_dtype dtype,
                                     const rondo_shape *shape);
// Sets what is known of an output without a known shape: its rank, and the extents that are not -1.
// To be called after rondo__infer_needs_value or rondo__infer_set_data_dependent.
rondo_status rondo__infer_set_partial(rondo__infer *infer, size_t output, const rondo_shape *shape);
// The same with all extents unknown; nothing where no tensor has this rank.
rondo_status rondo__infer_set_rank(rondo__infer *infer, size_t output, int64_t rank);
bool rondo__infer_has_input(const rondo__infer *infer, size_t input);

// ---- the reference ----------------------------------------------------------------------------

// `compute` is plain C on host memory: the oracle of all kernels, the folder of constants, and the
// runner of ops that nothing faster supports. Inputs are dense; absent optional inputs are NULL. It
// gets its outputs with rondo__compute_get_output, which checks a preallocated output or allocates
// one. Inputs and outputs never alias, but outputs that are sequences, optionals or taken from one
// may share bytes with inputs. Outputs of strings are never preallocated.
typedef struct rondo__compute {
    const rondo__op *op;
    size_t input_count;
    size_t output_count;
    const rondo_tensor *const *inputs;
    rondo_tensor
        *outputs;  // dtype != NONE: preallocated with this shape; dtype NONE: to be allocated
    const bool *wants_output;  // NULL: all are wanted
    // Set by rondo__op_compute: what `infer` says of the outputs, given the inputs with their
    // values. So `infer` has accepted these very inputs when `compute` starts, and their dtypes and
    // shapes need no second check.
    const rondo__tensor_info *inferred;
    // For ops that draw: from where (NULL: seed 0, counter 0), and how many counters they took
    // (NULL: not wanted).
    const rondo_generator_state *random;
    uint64_t *random_counters;
    // Set by rondo__op_compute: text that this compute made; see rondo__compute_new_text.
    struct rondo__text_block *texts;
} rondo__compute;

// The address of output `output` with this dtype and shape.
//
// Errors:    BAD_DATA (preallocated with another shape: the op's inference and reference disagree),
//            NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__compute_get_output(rondo__compute *compute, size_t output,
                                                      rondo_dtype dtype, const rondo_shape *shape,
                                                      void **out_data);
// The same with the dtype and shape that `infer` gave (not for data-dependent outputs).
RONDO_MUST_USE rondo_status rondo__compute_get_inferred(rondo__compute *compute, size_t output,
                                                        void **out_data);
// Hands `tensor` over as output `output`: takes it, or copies it into a preallocated one. Either
// way `tensor` is the caller's no more.
//
// Errors:    as rondo__compute_get_output.
RONDO_MUST_USE rondo_status rondo__compute_take_output(rondo__compute *compute, size_t output,
                                                       rondo_tensor *tensor);
// Memory for the bytes of a string that an op makes. The elements of a string output may point
// there, or into the strings of inputs: rondo__op_compute gives each output copies of its own and
// frees this.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__compute_new_text(rondo__compute *compute, size_t size,
                                                    char **out_text);
bool rondo__compute_has_input(const rondo__compute *compute, size_t input);
bool rondo__compute_wants_output(const rondo__compute *compute, size_t output);

// ---- the registry -----------------------------------------------------------------------------

// Whether a node whose tensors are numbers of known shapes may be part of a graph. Its entry says
// so for the op, its kernel for the node with its attributes; the larger value counts.
typedef enum rondo__capture_rule {
    RONDO__CAPTURE_YES,    // fixed work on fixed addresses
    RONDO__CAPTURE_PROBE,  // not stated; it is tried
    RONDO__CAPTURE_NEVER,  // it waits, allocates or decides on the processor
} rondo__capture_rule;

enum {
    RONDO__OP_VIEW =
        1u
        << 0,  // output 0 has the bytes of input 0 (Reshape, Squeeze, Identity, ...); an output 1
               // (the mask of Dropout) must still be computed where it is used
    RONDO__OP_ELEMENTWISE =
        1u << 1,  // each output element depends on one (broadcast) element of each input
    RONDO__OP_CONTROL = 1u << 2,     // If, Loop, Scan: run by the executor; `compute` is NULL
    RONDO__OP_RANDOM = 1u << 3,      // not folded, not reordered; see also op/draws.h
    RONDO__OP_SHAPE_ONLY = 1u << 4,  // reads shapes, never values (Shape, Size)
    RONDO__OP_NATIVE_HALF =
        1u << 5,  // `compute` handles f16 and bf16 itself; otherwise rondo__op_compute converts
    RONDO__OP_INTERNAL = 1u << 6,  // made by passes, never by a file (domain "rondo")
    RONDO__OP_USER = 1u << 7,      // registered by the program: see registered.h
    RONDO__OP_IMPURE = 1u << 8,    // not folded: another result each time, or no `compute`
    RONDO__OP_IN_PLACE = 1u << 9,  // `compute` takes output 0 where input 0 lies, too
};

// Inputs as a set: bit i stands for input i, bit 31 for all inputs from there on.
enum { RONDO__INPUT_0 = 1, RONDO__INPUT_1 = 2, RONDO__INPUT_2 = 4 };
#define RONDO__INPUTS_ALL UINT32_MAX

struct rondo__bounding;
struct rondo__op_bound;

// One row: all properties of an op in a range of versions. The columns behind `check` are the same
// in all rows of an op, unless a version adds an input; a row names the columns in which the op
// differs from most ops.
struct rondo__op_def {
    rondo__op_id id;
    const char *domain;  // "" for ai.onnx; "ai.onnx.ml", "com.microsoft"; "rondo" for internal ops
    const char *name;
    int32_t opset_min;  // first and last model opset this entry understands
    int32_t opset_max;
    uint8_t input_min;
    uint8_t input_max;
    uint8_t output_min;
    uint8_t output_max;
    uint32_t flags;
    rondo__capture_rule capture;
    // Attributes the entry understands, ended by NULL; NULL: any. A model that sets another is
    // refused by name.
    const char *const *attributes;
    rondo_status (*infer)(rondo__infer *infer);
    rondo_status (*compute)(rondo__compute *compute);
    // (optional) Refuses attribute values that are not supported: UNSUPPORTED with
    // "unsupported: op NAME version V (attribute A)". Called at import.
    rondo_status (*check)(const rondo__op *op);
    // Extents of the result depend on data, whatever is known, and this bounds them; see bounds.h.
    bool (*bound)(const struct rondo__bounding *bounding, struct rondo__op_bound *out_bound);
    bool is_fallible;       // its data may be what the op does not allow: an index, a divisor
    bool makes_strings;     // may give strings when it takes none
    bool makes_narrow;      // may give narrow or complex numbers when it takes none
    uint32_t strings;       // inputs that may hold strings
    uint32_t nested;        // inputs that may be sequences or optionals
    uint32_t moved;         // inputs that may be narrow or complex: their bytes are moved
    uint32_t narrow;        // inputs that may be narrow: their numbers count
    uint32_t wide_inputs;   // keep f32 in f16 nodes: ONNX fixes them, or kernels read f32
    uint8_t weights;        // input whose elements meet those of input 0 more than once; 0: none
    rondo__half_rule half;  // in half precision
};

// Behind `.id = `: identity, domain and name of a row.
#define RONDO_OP_NAME(domain_, name_) \
    RONDO__##domain_##_##name_, .domain = RONDO_OP_DOMAIN_##domain_, .name = #name_
// A row: domain and name of op_list.h, first and last opset, fewest and most inputs, fewest and
// most outputs, then columns by name.
#define RONDO_OP_ROW(domain_, name_, first, last, least_inputs, most_inputs, least_outputs, \
                     most_outputs, ...)                                                     \
    {                                                                                       \
        .id = RONDO_OP_NAME(domain_, name_), .opset_min = first, .opset_max = last,         \
        .input_min = least_inputs, .input_max = most_inputs, .output_min = least_outputs,   \
        .output_max = most_outputs, __VA_ARGS__                                             \
    }

// The family tables, each ended by an entry with name NULL. One line for each table that exists.
// clang-format off
#define RONDO_OP_TABLE_MAP(X) \
    X(unary)                  \
    X(elementwise)            \
    X(binary)                 \
    X(matrix)                 \
    X(convolution)            \
    X(pooling)                \
    X(normalization)          \
    X(rotary)                 \
    X(softmax)                \
    X(recurrent)              \
    X(quantize)               \
    X(random)                 \
    X(loss)                   \
    X(resize)                 \
    X(regions)                \
    X(sampling)               \
    X(signal)                 \
    X(training)               \
    X(control)                \
    X(view)                   \
    X(shape)                  \
    X(layout)                 \
    X(lay_filters)            \
    X(pad)                    \
    X(index)                  \
    X(reduce)                 \
    X(scan)                   \
    X(selection)              \
    X(top)                    \
    X(unique)                 \
    X(string)                 \
    X(sequence)               \
    X(ml_label)               \
    X(ml_linear)              \
    X(ml_svm)                 \
    X(ml_tree)                \
    X(quantize_lstm)          \
    X(fused_product)          \
    X(bits)                   \
    X(experts)                \
    X(tokenizer)              \
    X(ngram)                  \
    X(fused)                  \
    X(space_to_depth)         \
    X(byte_fused)             \
    X(concat_fused)           \
    X(all_reduce)             \
    X(rotate)                 \
    X(row_product)            \
    X(append_attention)       \
    X(update)                 \
    X(attention)              \
    X(attention_family)       \
    X(attention_gradient)     \
    X(linear_attention)
// clang-format on

#define RONDO_OP_TABLE_DECLARE(family) extern const rondo__op_def rondo__op_table_##family[];
RONDO_OP_TABLE_MAP(RONDO_OP_TABLE_DECLARE)
#undef RONDO_OP_TABLE_DECLARE

// The entry for an op at a model opset; NULL when there is none. Domain "ai.onnx" equals "".
const rondo__op_def *rondo__op_lookup(const char *domain, const char *name, int32_t opset);
// The row of an op's newest version; there is one of each op.
const rondo__op_def *rondo__op_get_def(rondo__op_id id);
// The versions of the opset in which there is an op of this name; false when there is none.
bool rondo__op_get_versions(const char *domain, const char *name, int32_t *out_min,
                            int32_t *out_max);
// Calls `visit` for each entry, in table order.
void rondo__op_visit(void (*visit)(void *user_data, const rondo__op_def *def), void *user_data);

// Runs `infer` with the common checks (counts, dtypes filled, extents sane). Unknown input shapes
// give unknown outputs (dtype NONE) without an error.
//
// Errors:    BAD_DATA (shapes do not fit: op and reason), UNSUPPORTED (dtype).
RONDO_MUST_USE rondo_status rondo__op_infer(rondo__infer *infer);
// The same where some shapes are known only in part, or not at all: gives what does not depend on
// the rest. Inputs that fit under no shape that was tried say nothing; that is not an error.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__op_infer_partial(rondo__infer *infer);
// Runs `infer` on the actual inputs, then `compute`; converts f16 and bf16 through f32 for ops that
// lack NATIVE_HALF. After a failure, outputs that were to be allocated are as they were.
//
// Errors:    BAD_DATA (inputs do not fit, index out of range), UNSUPPORTED, NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__op_compute(rondo__compute *compute);

// The one wording for what is missing: "unsupported: op NAME version V (attribute mode=cubic)".
rondo_status rondo__op_fail_unsupported(const rondo__op *op, const char *detail);
// The same for an input: "unsupported: op NAME version V (input I of type T)".
rondo_status rondo__op_fail_dtype(const rondo__op *op, size_t input, rondo_dtype dtype);

// Records a failure of this op: the message gets "NAME: " in front, the record's op is the node.
RONDO_PRINTF(6, 7)
rondo_status rondo__op_fail(const rondo__op *op, rondo_status status, const char *file,
                            int32_t line, const char *call, const char *format, ...);
// RONDO_OP_FAIL(op, BAD_DATA, "axis %lld is outside [%d, %d)", ...)
#define RONDO_OP_FAIL(op, status_name, ...) \
    rondo__op_fail((op), RONDO_STATUS_##status_name, __FILE__, __LINE__, __func__, __VA_ARGS__)
