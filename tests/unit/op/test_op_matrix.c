// Awkward semantics of products.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row mat_mul_rows[] = {
    // Vector times batch
    {"MatMul", 13, "f32[3]:~1 f32[2,3,2]:~2", "", "f32[2,2]:0.828125,-1.84375,-1.90625,0.453125"},
    // Batch times vector
    {"MatMul", 13, "f32[2,3,4]:~1 f32[4]:~2", "",
     "f32[2,3]:-1.265625,3.28125,-1.15625,2.671875,-1.765625,-0.453125"},
    // Vector times vector is a scalar
    {"MatMul", 13, "f32[4]:~1 f32[4]:~2", "", "f32[]:-1.265625"},
    // Added up in f32, rounded once: in f16 2048 + 1 is 2048.
    {"MatMul", 13, "f16[1,3]:2048,1,1 f16[3,1]:1,1,1", "", "f16[1,1]:2050"},
    {"MatMul", 13, "bf16[1,3]:256,1,1 bf16[3,1]:1,1,1", "", "bf16[1,1]:258"},
    // Batches broadcast both ways
    {"MatMul", 13, "f32[2,1,2,3]:~1 f32[3,3,2]:~2", "",
     "f32[2,3,2,2]:0.828125,-1.84375,-1.8125,0.796875,-1.90625,0.453125,0.90625,0.28125,"
     "0.390625,0.953125,0.390625,-2.03125,-1.9375,0.921875,1.890625,1.765625,0.84375,"
     "0.46875,1.859375,-1.5,0.390625,-1.78125,-1.40625,1.703125"},
    // An empty sum is zero
    {"MatMul", 13, "f32[2,0]:~1 f32[0,3]:~2", "", "f32[2,3]"},
    // Modulo 2^32, as numpy.
    {"MatMul", 13, "i32[1,2]:2147483647,2 i32[2,1]:2,3", "", "i32[1,1]:4"},
    {"MatMul", 13, "f32[]:~1 f32[3]:~1", "", "!BAD_DATA scalars"},
    {"MatMul", 13, "f32[2,3,4]:~1 f32[3,2]:~1", "", "!BAD_DATA inner extents 4 and 3"},
    {"MatMul", 13, "f32[2,1,1]:~1 f32[3,1,1]:~1", "", "!BAD_DATA do not broadcast"},
};
OP_ROWS_TEST(test_op_matrix__mat_mul, mat_mul_rows)

static const op_row gemm_rows[] = {
    // Transposes and broadcasts a column
    {"Gemm", 13, "f32[3,2]:~1 f32[4,3]:~2 f32[2,1]:~3", "transA=1 transB=1 alpha=f:0.5 beta=f:2.0",
     "f32[2,4]:-0.71875,-1.1875,0.140625,-0.328125,-3.390625,-3.015625,-2.460938,-2.085938"},
    // Without c
    {"Gemm", 13, "f32[2,3]:~1 f32[3,2]:~2", "", "f32[2,2]:0.828125,-1.84375,-1.8125,0.796875"},
    // C times 0 is not added; the product times 0 is: numbers from ONNX Runtime.
    {"Gemm", 13, "f32[2,2]:1 f32[2,2]:1 f32[2]:nan", "beta=f:0", "f32[2,2]:2"},
    {"Gemm", 13, "f32[2,2]:1 f32[2,2]:1 f32[2]:inf", "alpha=f:2 beta=f:0", "f32[2,2]:4"},
    {"Gemm", 13, "f32[1,2]:nan,1 f32[2,1]:1 f32[1]:5", "alpha=f:0", "f32[1,1]:nan"},
    // Whole numbers do not go through doubles: exact arithmetic.
    {"Gemm", 13, "i64[1,2]:4611686018427387905,1 i64[2,1]:1,1 i64[1]:7", "alpha=f:3 beta=f:-2",
     "i64[1,1]:-4611686018427387912"},
    {"Gemm", 13, "f32[2,3,4]:~1 f32[4,2]:~2", "", "!BAD_DATA ranks 3 and 2"},
    {"Gemm", 13, "f32[2,3]:~1 f32[3,2]:~2 f32[3]:~3", "", "!BAD_DATA input C"},
};
OP_ROWS_TEST(test_op_matrix__gemm, gemm_rows)

static const op_row det_rows[] = {
    // Needs a pivot
    {"Det", 11, "f32[2,2,2]:0,2,3,4,1,2,2,4", "", "f32[2]:-6,-0"},
    {"Det", 11, "f32[2,3]:~1", "", "!BAD_DATA no batch of squares"},
};
OP_ROWS_TEST(test_op_matrix__det, det_rows)

static const op_row einsum_rows[] = {
    // Diagonal of a batch
    {"Einsum", 12, "f32[2,3,3]:~1", "equation=s:...ii->...i",
     "f32[2,3]:0,1.25,-0.375,1.375,-0.25,1"},
    // Implicit output
    {"Einsum", 12, "f32[2,3]:~1 f32[4,2]:~2", "equation=s:ba,cb",
     "f32[3,4]:-0.125,-0.4375,0.6875,0.375,-1.234375,2.078125,-1.4375,-1.359375,0.890625,"
     "-0.4375,-0.328125,0.140625"},
    // Three inputs with spaces
    {"Einsum", 12, "f32[2,3]:~1 f32[3,4]:~2 f32[4]:~3", "equation=s:i\\sj\\s,\\sjk,\\sk\\s->\\si",
     "f32[2]:-3.273438,3.628906"},
    // Sums everything
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:ij->", "f32[]:0.375"},
    // Whole numbers do not go through doubles: numbers from numpy.
    {"Einsum", 12, "i64[2,2]:9007199254740993,0,0,-4611686018427387905", "equation=s:ii->i",
     "i64[2]:9007199254740993,-4611686018427387905"},
    {"Einsum", 12, "u64[2]:18446744073709551615,3 u64[2]:2,9007199254740993", "equation=s:i,i",
     "u64[]:27021597764222977"},
    {"Einsum", 12, "i32[2]:65537,2 i32[2]:65537,5 i32[2]:3,7", "equation=s:i,i,i->i",
     "i32[2]:393219,70"},
    {"Einsum", 12, "i8[2,2]:100,1,1,50", "equation=s:ii", "i8[]:-106"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:ij,jk->ik", "!BAD_DATA attribute equation"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:i->i", "!BAD_DATA attribute equation"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:ij->k", "!BAD_DATA output label"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:ij->ii", "!BAD_DATA output label"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:ii->i", "!BAD_DATA extents 2 and 3"},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:i.j->ij",
     "!BAD_DATA malformed: byte 1 of the term \"i.j\""},
    {"Einsum", 12, "f32[2,3]:~1", "equation=s:abcdefghi->a",
     "!UNSUPPORTED a term with more than 8 labels"},
    {"Einsum", 12, "f32[2,3]:~1", "", "!BAD_DATA attribute equation is missing"},
};
OP_ROWS_TEST(test_op_matrix__einsum, einsum_rows)

static const op_row mat_mul_integer_rows[] = {
    // Computed by hand: one zero point for each row of A and each column of B.
    {"MatMulInteger", 10, "u8[2,2]:1,2,3,4 i8[2,2]:5,-6,7,8 u8[2]:1,2 i8[2]:3,-1", "",
     "i32[2,2]:4,9,10,13"},
    // The same for each matrix of a batch, and one for all.
    {"MatMulInteger", 10, "u8[2,1,2]:1,2,3,4 i8[2,2,1]:5,6,7,8 u8[2,1,1]:1,2 i8[2,1,1]:1,2", "",
     "i32[2,1,1]:5,17"},
    {"MatMulInteger", 10, "i8[1,2]:-128,127 u8[2,1]:255,0 i8[1]:127 u8[1]:255", "", "i32[1,1]:0"},
    {"MatMulInteger", 10, "i8[1,2]:-128,127 u8[2,1]:0,255 i8[1]:127 u8[1]:255", "",
     "i32[1,1]:65025"},
};
OP_ROWS_TEST(test_op_matrix__mat_mul_integer, mat_mul_integer_rows)

TEST_MAIN()
