// support/cases/op_cases.h — one list of op cases, run on any device against the plain C
// references.
//
// A case is text, so that adding one is one line:
//
//   op          "Conv", or with its domain in front: "rondo.Conv"
//   opset       the model opset that selects the entry
//   inputs      "T[2,3,4] i64[2]:=0,1 - T[8]:w"
//                 types     T stands for f32, then f16; others as rondo_dtype_get_name says
//                 values    none: uniform in -1 .. 1       :p  uniform in 0.1 .. 2
//                           :iN integers in 0 .. N-1       :nN integers in -N .. N-1
//                           :f  far from 0: a mean that is a million times the deviation, in f16
//                               and bf16 about as far as the digits reach
//                           :v  as none, and stays finite: a filter's infinity times padding is NaN
//                           :w  as none, and known when the kernel is prepared
//                           :kN as :nN, and known when the kernel is prepared; unsigned wrap
//                           :t  a mask: row i of n sees columns up to i, the last row all of
//                               them; known when it is prepared
//                           :=  the listed values over and over, known when it is prepared
//                           -   absent
//   attributes  "axis=1 pads=1,1,1,1 axes=1, alpha=0.5 mode=edge ops=Mul,Add," (a comma makes a
//               list, a point a float, anything else that is no number a string, and so does a ' in
//               front); "unread=5" is none: bit i says that nothing reads output i
//   outputs     how many there are
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct op_case {
    const char *op;
    int opset;
    const char *inputs;
    const char *attributes;
    int outputs;
} op_case;

extern const op_case op_cases[];
extern const size_t op_case_count;
extern const op_case op_product_cases[];  // more of them: products
extern const size_t op_product_case_count;
extern const op_case op_norm_cases[];  // more of them: normalisations by groups
extern const size_t op_norm_case_count;
extern const op_case op_narrow_cases[];  // of narrow and complex types
extern const size_t op_narrow_case_count;
extern const op_case op_attention_cases[];  // attention, and what surrounds it
extern const size_t op_attention_case_count;
extern const op_case op_byte_cases[];  // and of products of bytes
extern const size_t op_byte_case_count;

// Ops whose results' shapes depend on data. On a GPU the kernel writes into places of the largest
// shapes, and how much it found (op/bounds.h).
extern const op_case op_counted_cases[];
extern const size_t op_counted_case_count;

// Sums of a million terms and more.
extern const op_case op_long_cases[];
extern const size_t op_long_case_count;

typedef struct op_case_counts {
    size_t passed, failed, unsupported;
    size_t excused;  // what is not finite, in kernels of a GPU that say so
} op_case_counts;

// What the float inputs hold besides the case's own values. Inputs whose values are known
// beforehand keep them.
typedef enum op_case_values {
    OP_CASE_PLAIN,       // nothing
    OP_CASE_NOT_FINITE,  // a few NaN and infinities of both signs
    OP_CASE_ALL_NAN,     // nothing else
    OP_CASE_TINY,        // every other element is a denormal or a zero of either sign
    OP_CASE_BFLOAT,      // nothing: they are bf16
    // Nothing, but the long cases: the references add up in double, and nothing but the rounding of
    // the result may be lost.
    OP_CASE_LONG,
} op_case_values;

// Runs every case on the device: eager, recorded and replayed twice, with poisoned outputs and
// guard bytes behind them; prints a line for each failure and each unsupported case. NaN and
// infinities must be where the reference has them. `filter`: only ops whose name contains it; a
// number n: each nth case; NAME@K/N or @K/N: the kth of n parts of them; NULL: all.
//
// Returns:   false when the device cannot be opened; the reason is printed.
bool op_cases_run(const char *device_name, const char *filter, op_case_values values,
                  op_case_counts *out_counts);

// Is given an op of the list, and its inputs in f32: is_known[i], where the values are known ahead.
struct rondo__op;
struct rondo_tensor;
typedef void (*op_case_visitor)(void *user_data, const struct rondo__op *op,
                                const struct rondo_tensor *inputs, const bool *is_known,
                                size_t input_count, size_t output_count);
void op_cases_visit(op_case_visitor visit, void *user_data);
// The same for one case, of any list.
void op_cases_visit_one(const op_case *source, op_case_visitor visit, void *user_data);

struct rondo_stream;

// Prepares the kernel of every case and puts it on the stream once; looks at no result, so the
// stream need not be able to run any.
void op_cases_issue(struct rondo_stream *stream, const char *filter, op_case_counts *out_counts);
