// program/gradient/gradient_parts.h — what the rules of gradients have: the node, and ways to
// append others. Shared by the files of this folder.
//
// A rule never looks at a status: after a failure all calls do nothing and give RONDO__VALUE_NONE,
// which they take, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op/op.h"
#include "program/gradient/gradient.h"
#include "program/program.h"

// Facts about a value while gradients are made.
typedef struct rondo__gradient_value {
    int32_t gradient;         // the sum so far; NONE where nothing came yet
    int32_t again;            // computed once more on the way back; NONE
    int32_t original;         // what this is computed again of, whose gradient its own is; NONE
    bool depends;             // on one of xs, and is a real number
    rondo__tensor_info info;  // `constant` points to `folded`, or is NULL
    rondo_tensor *folded;     // a small value that is known; owned
} rondo__gradient_value;

typedef struct rondo__gradient {
    rondo_program *program;
    const rondo__gradient_request *request;
    rondo_status status;
    size_t value_count, value_capacity;
    rondo__gradient_value *values;
    size_t inferred_count;  // nodes that have been looked at
    size_t forward_count;   // nodes of the program as it was
    int depth;              // of expansions inside each other
    int body_depth;         // of bodies inside each other that are looked at
} rondo__gradient;

// A node whose outputs' changes are known. The lists stay while nodes are appended.
typedef struct rondo__gradient_call {
    rondo__op op;  // borrowed
    size_t index;
    size_t input_count, output_count, explicit_count;
    const int32_t *inputs;
    const int32_t *outputs;
    const int32_t *changes;  // one for each output; NONE: nothing came
} rondo__gradient_call;

typedef void (*rondo__gradient_rule)(rondo__gradient *g, const rondo__gradient_call *call);

// The rule of an op; NULL: there is none. *out_is_zero: it changes nothing, and needs no rule.
rondo__gradient_rule rondo__gradient_find_rule(const rondo__op_def *def, bool *out_is_zero);

// The rule of an op that the program has registered; NULL: there is none.
rondo__gradient_rule rondo__gradient_find_user_rule(const rondo__op_def *def);

// ---- the node

// Input or output `index`; NONE where it is left out.
int32_t rondo__gradient_input(const rondo__gradient_call *call, size_t index);
int32_t rondo__gradient_output(const rondo__gradient_call *call, size_t index);
// Whether the change with this input is wanted.
bool rondo__gradient_wants(const rondo__gradient *g, const rondo__gradient_call *call,
                           size_t index);
// Adds to the change with an input or any other value. Gives it the value's type and, by sums over
// what was repeated, its shape.
void rondo__gradient_give(rondo__gradient *g, const rondo__gradient_call *call, size_t input,
                          int32_t change);
void rondo__gradient_add(rondo__gradient *g, int32_t value, int32_t change);
// Output `index` of a node that did not name it, which it does from now on.
int32_t rondo__gradient_take_output(rondo__gradient *g, const rondo__gradient_call *call,
                                    size_t index, rondo_dtype dtype);
// Fails for node `n`: "no gradient for op NAME with DETAIL".
rondo_status rondo__gradient_fail_node(const rondo__gradient *g, size_t n, const char *detail);
// Fails: "no gradient for NAME with DETAIL".
void rondo__gradient_refuse(rondo__gradient *g, const rondo__gradient_call *call,
                            const char *detail);

// ---- what is known of values

// The same as rondo__gradient_info without looking at nodes that were appended since; the
// constant's pointer is good until values are added.
void rondo__gradient_get_info(const rondo__gradient *g, int32_t value,
                              rondo__tensor_info *out_info);
// Looks at node `n` again, which has changed.
rondo_status rondo__gradient_visit(rondo__gradient *g, size_t n);
const rondo__tensor_info *rondo__gradient_info(rondo__gradient *g, int32_t value);
// -1 where it is not known.
int32_t rondo__gradient_rank(rondo__gradient *g, int32_t value);
int64_t rondo__gradient_extent(rondo__gradient *g, int32_t value, int32_t axis);
// The rank; fails where it is not known.
int32_t rondo__gradient_need_rank(rondo__gradient *g, const rondo__gradient_call *call,
                                  int32_t value);
// Whole numbers of a small constant; -1: not known. At most `capacity`.
int32_t rondo__gradient_read_ints(rondo__gradient *g, int32_t value, int64_t *out_values,
                                  size_t capacity);
bool rondo__gradient_read_number(rondo__gradient *g, int32_t value, double *out_number);

// ---- appending

// Appends a node of ai.onnx (opset 21; one that came later: the latest), which makes one value.
int32_t rondo__gradient_emit(rondo__gradient *g, const char *op, const int32_t *inputs,
                             size_t count);
// The same with `output_count` outputs.
void rondo__gradient_emit_many(rondo__gradient *g, const char *op, const int32_t *inputs,
                               size_t count, int32_t *out_values, size_t output_count);
#define RONDO__EMIT(g, op, ...)                                     \
    rondo__gradient_emit((g), (op), (const int32_t[]){__VA_ARGS__}, \
                         sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
// Attributes of the node that made `value`, which was emitted last. They return `value`.
int32_t rondo__gradient_set_int(rondo__gradient *g, int32_t value, const char *name,
                                int64_t number);
int32_t rondo__gradient_set_float(rondo__gradient *g, int32_t value, const char *name,
                                  float number);
int32_t rondo__gradient_set_ints(rondo__gradient *g, int32_t value, const char *name,
                                 const int64_t *numbers, size_t count);
int32_t rondo__gradient_set_string(rondo__gradient *g, int32_t value, const char *name,
                                   const char *text);
// Copies an attribute of the call's node, where it has it.
void rondo__gradient_copy_attribute(rondo__gradient *g, int32_t value,
                                    const rondo__gradient_call *call, const char *name);

// Constants: a number of the type of `like`, a list of whole numbers, a scalar of them.
int32_t rondo__gradient_number(rondo__gradient *g, double number, int32_t like);
int32_t rondo__gradient_ints(rondo__gradient *g, const int64_t *numbers, size_t count);
int32_t rondo__gradient_int(rondo__gradient *g, int64_t number);    // [1]
int32_t rondo__gradient_index(rondo__gradient *g, int64_t number);  // []

// The extents of a value, I64 [rank]; and one of them, I64 [1].
int32_t rondo__gradient_shape(rondo__gradient *g, int32_t value);
int32_t rondo__gradient_axis_size(rondo__gradient *g, int32_t value, int64_t axis);
// `value` in the shape of `like`, with as many elements; or repeated to it.
int32_t rondo__gradient_reshape_like(rondo__gradient *g, int32_t value, int32_t like);
int32_t rondo__gradient_expand_like(rondo__gradient *g, int32_t value, int32_t like);
// Tensors of one number, of the type and shape of `like`.
int32_t rondo__gradient_fill_like(rondo__gradient *g, double number, int32_t like);
// `value` cast to the type of `like`, where they differ.
int32_t rondo__gradient_cast_like(rondo__gradient *g, int32_t value, int32_t like);
int32_t rondo__gradient_cast(rondo__gradient *g, int32_t value, rondo_dtype dtype);
// Reduces `value`: "ReduceSum", "ReduceMean", "ReduceMax" over axes that are kept.
int32_t rondo__gradient_reduce(rondo__gradient *g, const char *op, int32_t value,
                               const int64_t *axes, size_t count);
// Sums over all axes but 1, which is left alone: each image first, whose elements lie together.
int32_t rondo__gradient_sum_channels(rondo__gradient *g, int32_t value, int32_t rank);
// Sums over what was repeated to get from the shape of `like` to that of `value`.
int32_t rondo__gradient_sum_to(rondo__gradient *g, int32_t value, int32_t like);
int32_t rondo__gradient_transpose(rondo__gradient *g, int32_t value, const int64_t *order,
                                  int32_t rank);
// The last two axes exchanged.
int32_t rondo__gradient_swap(rondo__gradient *g, int32_t value, int32_t rank);
int32_t rondo__gradient_reshape(rondo__gradient *g, int32_t value, const int64_t *extents,
                                size_t rank);
// A flat tensor of zeros as large as `like`, with `updates` added at the flat positions `places`,
// in the shape of `like`. `is_apart`: no position is there twice.
int32_t rondo__gradient_scatter_flat(rondo__gradient *g, int32_t places, int32_t updates,
                                     int32_t like, bool is_apart);
// 0, 1, 2, ... I64 in the shape of `like`.
int32_t rondo__gradient_count_up(rondo__gradient *g, int32_t like);

// Where two halves of a sum are known, their sum; one that is NONE counts as 0.
int32_t rondo__gradient_join(rondo__gradient *g, int32_t a, int32_t b);

// The value that appended nodes read instead of `value`: if it is marked, a copy that is made now.
int32_t rondo__gradient_recompute(rondo__gradient *g, int32_t value);

// ---- expansion

// A rule may compute the outputs anew with simpler nodes, and leave these to theirs: begin, append,
// then hand over for each output its new value (NONE: none was made) and its change.
size_t rondo__gradient_begin(const rondo__gradient *g);
void rondo__gradient_expand(rondo__gradient *g, size_t begin, const int32_t *values,
                            const int32_t *changes, size_t count);

// Marks, over nodes [begin, end), the values that depend on marked ones.
void rondo__gradient_mark(rondo__gradient *g, size_t begin, size_t end);
// Looks at what was appended, as far as it was not yet.
void rondo__gradient_settle(rondo__gradient *g);

void rondo__gradient_deinit(rondo__gradient *g);

// The tables of the families, ended by RONDO__OP_NONE. A rule of NULL: the op changes nothing.
typedef struct rondo__gradient_row {
    rondo__op_id op;
    rondo__gradient_rule rule;
} rondo__gradient_row;
extern const rondo__gradient_row rondo__gradient_rows_elementwise[];
extern const rondo__gradient_row rondo__gradient_rows_arrange[];
extern const rondo__gradient_row rondo__gradient_rows_reduce[];
extern const rondo__gradient_row rondo__gradient_rows_product[];
extern const rondo__gradient_row rondo__gradient_rows_image[];
extern const rondo__gradient_row rondo__gradient_rows_norm[];
extern const rondo__gradient_row rondo__gradient_rows_loss[];
extern const rondo__gradient_row rondo__gradient_rows_recurrent[];
extern const rondo__gradient_row rondo__gradient_rows_attention[];
extern const rondo__gradient_row rondo__gradient_rows_control[];
