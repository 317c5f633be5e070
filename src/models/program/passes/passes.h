// program/passes/passes.h — rewrites that keep a program's meaning and make it cheaper to run.
//
// Each pass is one file, pass_<name>.c here, in program/attention or in program, and one function.
// All leave the program verified. The pass to f16, which needs more than the program, is declared
// in program/half/half_pass.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "program/program.h"

// Properties of the target that passes depend on; the executor fills them in from the kernel room's
// traits.
typedef struct rondo__pass_options {
    bool channels_last;     // convolutions in NHWC
    bool fuse_bytes;        // rondo.MatMulInteger, rondo.ConvInteger; convolutions of bytes in NHWC
    bool split_transposed;  // ConvTranspose as Conv and DepthToSpace
    bool widen_images;      // rondo.SpaceToDepth before convolutions of few channels, in NHWC
    bool fuse_convolution;  // rondo.Conv
    bool fuse_matmul;       // rondo.MatMul
    bool turn_products;     // a product whose result is turned as one of a constant by rows
    bool fuse_attention;    // rondo.Attention, out of rondo.MatMul
    bool keep_shares;       // softmax in f16 before a product: its result stays f32
    bool fuse_group_norm;   // rondo.GroupNormalization
    bool fuse_concat;       // rondo.Concat
    bool fuse_elementwise;  // rondo.Elementwise
    bool fuse_norm;         // rondo.NormMatMul, out of rondo.MatMul of half precision
    bool fuse_rows;         // rondo.RowProduct, out of rondo.MatMul of one row; rotations of heads
                            // and gates of products, where there are several
    bool fuse_few_rows;     // rondo.BitsRow, out of MatMulNBits of few rows, and rondo.RowProduct,
                            // out of rondo.MatMul of 2 to 8
    bool append_attention;  // rondo.AppendAttention, out of rondo.Attention
    bool end_batches;       // rondo.BatchNormalization with an Add and a Relu behind it
    bool lay_filters;       // rondo.LayFilters
    bool add_shortcuts;     // rondo.Conv with a second one of single pixels, in NHWC
} rondo__pass_options;

// Passes that need no shapes; run once for a program. They remove Identity and inference-time
// Dropout, fold BatchNormalization into the convolution before it and scales by channel into the
// product before them, take strings out of classifiers, and name the patterns of GELU, of
// RMSNormalization and of a softmax whose empty rows are zeros.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_simplify(rondo_program *program);

// Makes arithmetic of bytes out of real ops between DequantizeLinear and QuantizeLinear, and
// products of weights of a few bits out of DequantizeLinear and MatMul. Once for a program, before
// constants are folded: weights are to stay what they are.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_quantise(rondo_program *program);
bool rondo__program_has_quantised(const rondo_program *program);  // it may find something

// Joins products of one value with three constants or more, as those of q, k and v are. Once for a
// program, where attention is one op; weights are copied. Nodes with a place stay.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_join_products(rondo_program *program);

// Clears weights and addends that are denormal (pass_denormals.c). Once for a program, where
// arithmetic with denormals is slow; looks at every weight.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_clear_denormals(rondo_program *program);

// Removes what passes an input through (pass_identity.c) and names RMSNormalization. Once for a
// plan, on a specialised program, before it is made half precision: that computes squares in f32,
// with casts in between, where it does not see what they are for. `names_unit_rows`: rows by their
// lengths become LpNormalization, as half precision allows (pass_unit_rows.c).
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_name_norms(rondo_program *program, bool names_unit_rows);

// Passes on a specialised program; run once for a plan.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__program_optimise(rondo_program *program,
                                                    const rondo__pass_options *options);

// Puts ops that wait for shapes which depend on data into bodies of rondo.Rest, to be planned when
// they are known. The program is specialised.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
typedef struct rondo__rest_options {
    bool is_body;          // the program is such a body itself
    bool stays_on_device;  // bodies read and leave data on a GPU
} rondo__rest_options;
RONDO_MUST_USE rondo_status rondo__pass_rest(rondo_program *program,
                                             const rondo__rest_options *options);

// Replaces Ifs with a constant condition by the branch that is taken. Its nodes are not inferred
// yet: specialise the program again.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__pass_branch(rondo_program *program);
// Whether that would change anything.
bool rondo__program_has_known_branches(const rondo_program *program);
// Which inputs, one flag for each, would make the condition of an If known: single integers or
// bools, of conditions that are computed from nothing else. The program is specialised.
//
// Errors:    NO_MEMORY.
// Threads:   safe while no call changes the program.
RONDO_MUST_USE rondo_status rondo__program_find_deciding(const rondo_program *program,
                                                         bool *out_decides);

// The single passes, for tests.
rondo_status rondo__pass_identity(rondo_program *program);
rondo_status rondo__pass_choices(rondo_program *program);  // and what pass_identity removes
rondo_status rondo__pass_batch_norm(rondo_program *program);
rondo_status rondo__pass_layer_scale(rondo_program *program);
rondo_status rondo__pass_denormals(rondo_program *program);
rondo_status rondo__pass_labels(rondo_program *program);
rondo_status rondo__pass_gelu(rondo_program *program);
rondo_status rondo__pass_masked_softmax(rondo_program *program);
rondo_status rondo__pass_rms_norm(
    rondo_program *program);  // where the shapes are known that it asks for
rondo_status rondo__pass_join(rondo_program *program);
rondo_status rondo__pass_qdq(rondo_program *program);
rondo_status rondo__pass_bits_product(rondo_program *program);
rondo_status rondo__pass_einsum(rondo_program *program);
rondo_status rondo__pass_rotary(rondo_program *program);
rondo_status rondo__pass_silu(rondo_program *program);
rondo_status rondo__pass_rotate(rondo_program *program);
rondo_status rondo__pass_gate(rondo_program *program);
rondo_status rondo__pass_batch_end(rondo_program *program);
rondo_status rondo__pass_lay_filters(rondo_program *program);
rondo_status rondo__pass_moves(rondo_program *program);
rondo_status rondo__pass_rows(rondo_program *program);
rondo_status rondo__pass_transposed(rondo_program *program);
rondo_status rondo__pass_convolution(rondo_program *program);
rondo_status rondo__pass_byte_product(rondo_program *program);
rondo_status rondo__pass_group_norm(rondo_program *program);
rondo_status rondo__pass_concat(rondo_program *program);
rondo_status rondo__pass_space_to_depth(rondo_program *program);
// Which convolutions are to be in NHWC, as bits.
typedef enum rondo__layout_kind {
    RONDO__LAYOUT_REALS = 1,
    RONDO__LAYOUT_BYTES = 2,
} rondo__layout_kind;
rondo_status rondo__pass_layout(rondo_program *program, uint32_t wants);
bool rondo__layout_is_wanted(rondo_program *program, uint32_t wants);  // there are such
rondo_status rondo__pass_scale_shift(rondo_program *program);
rondo_status rondo__pass_turned(rondo_program *program);
rondo_status rondo__pass_matmul(rondo_program *program);
rondo_status rondo__pass_masks(rondo_program *program);
rondo_status rondo__pass_unit_rows(rondo_program *program);
rondo_status rondo__pass_attention(rondo_program *program);
rondo_status rondo__pass_shares(rondo_program *program);
rondo_status rondo__pass_elementwise(rondo_program *program);
rondo_status rondo__pass_update(rondo_program *program);
rondo_status rondo__pass_widen(rondo_program *program);
rondo_status rondo__pass_gate_products(rondo_program *program);
rondo_status rondo__pass_rotate_heads(rondo_program *program);
rondo_status rondo__pass_norm_product(rondo_program *program);
rondo_status rondo__pass_moments(rondo_program *program);
rondo_status rondo__pass_row_product(rondo_program *program);
rondo_status rondo__pass_few_rows(rondo_program *program);
rondo_status rondo__pass_bits_row(rondo_program *program);
rondo_status rondo__pass_append_attention(rondo_program *program);
rondo_status rondo__pass_shortcut(rondo_program *program);
rondo_status rondo__pass_detections(rondo_program *program);
// Whether either branch of an If could stand in its place: once the condition is known.
bool rondo__branches_may_move(const rondo__node *node);
