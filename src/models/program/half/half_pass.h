// program/half/half_pass.h — f32 programs computed in f16: what stays in f32, why, and the
// constants.
//
// The work has three parts: rules (half_rules.c, half_judge.h) decide for each node, the pass
// (pass_half.c) rewrites the program by those decisions, and constants (half_constants.c) are
// rounded once for all plans of an executor. What f16 does to an op stands in the op's row
// (op/half_rule.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/program.h"

// ---- constants --------------------------------------------------------------------------------

// What f16 does to the numbers of a constant; a bit set.
enum {
    RONDO__HALF_OVERFLOWS = 1u << 0,  // finite numbers beyond 65504, but no stand-ins for infinity
    RONDO__HALF_INFINITE = 1u << 1,  // finite numbers from 1e9 up: stand-ins for infinity, as masks
                                     // have them
    RONDO__HALF_LARGE =
        1u << 2,                 // numbers from 4096 up: a factor that drives products out of range
    RONDO__HALF_TINY = 1u << 3,  // not all 0, and none reaches 2^-14, the least normal number
    RONDO__HALF_WHOLE = 1u << 4,   // whole numbers, of which f16 rounds some
    RONDO__HALF_SHRINKS = 1u << 5  // none is above 1/64: a factor that brings sums back
};

// The f16 or bf16 forms of the constants of one program, made when they are first asked for.
typedef struct rondo__half_cache rondo__half_cache;

// `dtype` is what the program is computed in: F16 or BF16.
//
// Errors:    NO_MEMORY.
// Ownership: free with rondo__half_cache_destroy; borrows `program`, whose constants are cached.
// Threads:   safe, as all functions below.
RONDO_MUST_USE rondo_status rondo__half_cache_create(const rondo_program *program,
                                                     rondo_dtype dtype,
                                                     rondo__half_cache **out_cache);
rondo_dtype rondo__half_get_dtype(const rondo__half_cache *cache);  // NULL: F16
void rondo__half_cache_destroy(rondo__half_cache *cache);           // NULL is fine

// The bit set for an f32 tensor, from the cache where the tensor is in it (`cache` may be NULL).
uint32_t rondo__half_get_traits(rondo__half_cache *cache, const rondo_tensor *tensor);

// An f32 tensor rounded to f16. What was finite stays finite: the -3.4e38 of attention masks
// becomes -65504, since minus infinity would make NaN of fully masked rows.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__half_round(rondo__half_cache *cache, const rondo_tensor *tensor,
                                              rondo_tensor *out_half);

// ---- decisions --------------------------------------------------------------------------------

// The precision that the program asks for a node, before the rules decide: rondo__node.precision.
enum {
    RONDO__PRECISION_BY_RULE = 0,
    RONDO__PRECISION_SINGLE = 1,    // the caller asked for f32
    RONDO__PRECISION_HALF = 2,      // the caller asked for f16
    RONDO__PRECISION_TRAINED = 3,   // f32, and its results may leave the range of f16: scales of
                                    // the loss, and what becomes of a variable
    RONDO__PRECISION_GRADIENT = 4,  // products in f16 whatever comes in, as the loss is scaled for
                                    // that; infinities stay. The rest is f32 behind the scale
};

typedef struct rondo__half_decision {
    bool is_touched;     // reads or makes f32 values; otherwise nothing is to decide
    const char *reason;  // static; why the node stays in f32. NULL: it becomes f16
} rondo__half_decision;

// Decides for each node of a specialised program; out_decisions has node_count entries. In bf16,
// which has the range of f32 and 8 bits, products are computed, and nothing else.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__half_decide(const rondo_program *program,
                                               rondo__half_cache *cache,
                                               rondo__half_decision *out_decisions);

// Input `input` keeps f32 also where the node is f16: ONNX says so, or kernels gain nothing.
bool rondo__half_is_fixed_input(const rondo__node *node, size_t input);

// ---- names ------------------------------------------------------------------------------------

// Marks nodes that match (node_pattern.h) with RONDO__PRECISION_...; a control node that does takes
// all of its bodies along. What is TRAINED stays so: it is f32 anyway, and becomes rondo.Update.
void rondo__half_mark(rondo_program *program, const char *pattern, uint8_t precision);

// Sets the class of inputs that no node of the model reads, but a training step: the scale of the
// loss, which leaves the range of f16 as it grows, and states.
void rondo__half_mark_kept(const rondo_program *program, uint8_t class, uint8_t *class_of);

// Weights that ranks gather (rondo.AllGather) are rounded before, where all that read them read the
// rounded form: half the bytes, and the same bits.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__half_round_before_gathers(rondo_program *program);

// ---- the pass ---------------------------------------------------------------------------------

// What a pass did, for rondo_executor_describe.
typedef struct rondo__half_kept {
    const char *op;      // static
    char *name;          // of the node
    const char *reason;  // static
} rondo__half_kept;

typedef struct rondo__half_report {
    rondo_dtype dtype;  // F16 or BF16
    size_t half_count;  // nodes that compute in it
    size_t kept_count;
    rondo__half_kept *kept;  // nodes that read or make f32 values and stay
    const char *note;        // static; why the program was left as it is. NULL otherwise
} rondo__half_report;

void rondo__half_report_deinit(rondo__half_report *report);

// Turns f32 nodes of a specialised program into f16 (or the cache's type), with casts between nodes
// that differ. Inputs and outputs keep their types. A program that holds it already is left as it
// is.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Ownership: free the report with rondo__half_report_deinit.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__pass_half(rondo_program *program, rondo__half_cache *cache,
                                             rondo__half_report *out_report);
