// onnx/expand/expand.h — ops that are written out in other ops as they are read.
//
// An op of another vendor's domain is either an op of ours, with a row in the tables of op/, or an
// expansion: a row here, whose function writes nodes of the newest opset in its place. Passes and
// kernels then serve them as they serve those of any model. Nothing but declared types is known at
// that point, so that constants take their type from a value (rondo__expand_number).
//
//     static void expand_bias_gelu(rondo__expander *e) {
//         const int32_t sum = EXPAND(e, "Add", RONDO__VALUE_NONE, rondo__expand_in(e, 0),
//                                    rondo__expand_in(e, 1));
//         EXPAND(e, "Gelu", rondo__expand_out(e, 0), sum);
//     }
//
// The first failure stays in `status`, and calls after it do nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "onnx/nodes.h"

typedef struct rondo__expander {
    rondo__node_builder *builder;  // the node as read: inputs, outputs and attributes
    rondo_program *program;        // where nodes go
    int32_t opset;                 // of the nodes; a row may choose an older one
    rondo_status status;
} rondo__expander;

// `def` has neither `infer` nor `compute`: it says what the node may look like.
typedef struct rondo__expansion {
    rondo__op_def def;
    void (*expand)(rondo__expander *e);
} rondo__expansion;

// The row of an op; NULL when there is none.
const rondo__expansion *rondo__expansion_find(const char *domain, const char *name, int32_t opset);
// The versions of its domain in which there is one; false when there is none.
bool rondo__expansion_get_versions(const char *domain, const char *name, int32_t *out_min,
                                   int32_t *out_max);
// Calls `visit` for each row.
void rondo__expansion_visit(void (*visit)(void *user_data, const rondo__op_def *def),
                            void *user_data);

// Writes the nodes of `builder`, whose op is a row's.
//
// Errors:    UNSUPPORTED (an attribute or an output that the row does not do), BAD_DATA, NO_MEMORY.
// Threads:   one thread per importer.
RONDO_MUST_USE rondo_status rondo__expansion_run(const rondo__expansion *expansion,
                                                 rondo__node_builder *builder);

// ---- for rows ---------------------------------------------------------------------------------

// An input, or an output that is to be made; RONDO__VALUE_NONE: absent, or unwanted.
int32_t rondo__expand_in(const rondo__expander *e, size_t input);
int32_t rondo__expand_out(const rondo__expander *e, size_t output);
const rondo__op *rondo__expand_op(const rondo__expander *e);  // for the attributes

// Adds a node of the standard's newest opset ("com.microsoft.OP": of that domain) that makes
// `result`, or a new value for NONE. Returns that value.
int32_t rondo__expand_node(rondo__expander *e, const char *op, int32_t result,
                           const int32_t *inputs, size_t input_count);
#define EXPAND(e, op, result, ...)                                    \
    rondo__expand_node((e), (op), (result), (int32_t[]){__VA_ARGS__}, \
                       sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
// The same with several outputs; NONE in `outputs` is an output that is left out.
void rondo__expand_node_of(rondo__expander *e, const char *op, const int32_t *inputs,
                           size_t input_count, const int32_t *outputs, size_t output_count);
// A value that no node makes yet.
int32_t rondo__expand_value(rondo__expander *e, const char *name);

// Attributes of the latest node.
void rondo__expand_set_int(rondo__expander *e, const char *name, int64_t value);
void rondo__expand_set_float(rondo__expander *e, const char *name, float value);
void rondo__expand_set_text(rondo__expander *e, const char *name, const char *value);
void rondo__expand_set_ints(rondo__expander *e, const char *name, const int64_t *values,
                            size_t count);
// Those that the node as read has, of this list, which NULL ends.
void rondo__expand_copy(rondo__expander *e, const char *const *names);

// One number of the type of `like` (f32 for NONE); constants of one axis.
int32_t rondo__expand_number(rondo__expander *e, float value, int32_t like);
int32_t rondo__expand_ints(rondo__expander *e, const int64_t *values, size_t count);
int32_t rondo__expand_floats(rondo__expander *e, const float *values, size_t count);
// The rank, as far as the file tells; -1: it does not.
int32_t rondo__expand_get_rank(const rondo__expander *e, int32_t value);
// The element type, as far as the file tells.
rondo_dtype rondo__expand_get_dtype(const rondo__expander *e, int32_t value);

// "unsupported: op NAME version V (detail)".
void rondo__expand_refuse(rondo__expander *e, const char *detail);
// Whether something failed.
static inline bool rondo__expand_failed(const rondo__expander *e) {
    return e->status != RONDO_STATUS_OK;
}

// Adds `value` to another, if it is there.
int32_t rondo__expand_add(rondo__expander *e, int32_t value, int32_t addend);
// Puts this activation behind `x`, with parameters alpha and beta as its op has them; none for "".
// Returns what it makes, which is `result` unless that is NONE.
int32_t rondo__expand_activation(rondo__expander *e, const char *activation, const float *params,
                                 size_t param_count, int32_t x, int32_t result);
// A transposition of images from channels last to channels first, or back.
int32_t rondo__expand_channels_first(rondo__expander *e, int32_t x, int32_t result);
int32_t rondo__expand_channels_last(rondo__expander *e, int32_t x, int32_t result);

// One line of a table; com.microsoft has had one version.
#define RONDO_EXPANSION(op_name, least_inputs, most_inputs, least_outputs, most_outputs, \
                        attribute_list, function)                                        \
    {                                                                                    \
        .def = {.domain = "com.microsoft",                                               \
                .name = (op_name),                                                       \
                .opset_min = 1,                                                          \
                .opset_max = 1,                                                          \
                .input_min = (least_inputs),                                             \
                .input_max = (most_inputs),                                              \
                .output_min = (least_outputs),                                           \
                .output_max = (most_outputs),                                            \
                .attributes = (attribute_list)},                                         \
        .expand = (function)                                                             \
    }

// The tables, each ended by a row without a name.
#define RONDO_EXPANSION_MAP(X) \
    X(flex)                    \
    X(gated)                   \
    X(normal)                  \
    X(product)                 \
    X(quantized)               \
    X(rest)
#define RONDO_EXPANSION_DECLARE(family) extern const rondo__expansion rondo__expansions_##family[];
RONDO_EXPANSION_MAP(RONDO_EXPANSION_DECLARE)
#undef RONDO_EXPANSION_DECLARE
