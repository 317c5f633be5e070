// Products of one row, and of two to eight in half precision, which take gates, sums and the
// normalisation before them in; the same with weights of few bits.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/program_lines.h"
#include "support/test.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

TEST(test_program_row_products__products_of_one_row) {
#define ROWS(count) \
    "input x f32 " count ",8", "const w f32 8,12", "const v f32 8,12", "const g f32 8"
#define NORMAL                                                                                     \
    "value two f32 2", "value e f32 1", "list last -1,", "Pow x two > P", "ReduceMean P last > M", \
        "Add M e > E", "Sqrt E > R", "Div x R > Q", "Mul Q g > n"
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_elementwise = true, .fuse_rows = true};
    static const program_row rows[] = {
        // gated, normalised, with all that ends a product
        {{ROWS("1"), NORMAL, "MatMul n w > a", "Sigmoid a > s", "Mul a s > t", "MatMul n v > b",
          "Mul t b > y", "output y"},
         "~rondo.RowProduct"},
        {{ROWS("1"), "MatMul x w > a", "MatMul x v > b", "Relu b > r", "Mul a r > y", "output y"},
         "~rondo.RowProduct"},
        {{ROWS("1"), "const d f32 12", "input z f32 1,12", NORMAL, "MatMul n w > a", "Add a d > b",
          "Add b z > c", "Relu c > y", "output y"},
         "~rondo.RowProduct"},
        // several products of one normalised row
        {{ROWS("1"), NORMAL, "MatMul n w > y", "MatMul n v > z", "output y", "output z"},
         "~rondo.RowProduct rondo.RowProduct"},
        // several rows; somebody else reads the row, or a product; weights that are computed
        {{ROWS("2"), NORMAL, "MatMul n w > a", "MatMul n v > b", "Mul a b > y", "output y"},
         "~RMSNormalization rondo.MatMul rondo.MatMul Mul"},
        {{ROWS("1"), NORMAL, "MatMul n w > y", "output y", "output n"},
         "~RMSNormalization rondo.MatMul"},
        {{ROWS("1"), "MatMul x w > a", "MatMul x v > b", "Mul a b > y", "output y", "output a"},
         "~rondo.MatMul rondo.MatMul Mul"},
        {{"input x f32 1,8", "input w f32 8,12", "const g f32 8", NORMAL, "MatMul n w > y",
          "output y"},
         "~RMSNormalization rondo.MatMul"},
        {{"input x f32 1,8", "input u f32 1,8", "const w f32 8,12", "MatMul x w > a",
          "MatMul u w > b", "Mul a b > y", "output y"},
         "~rondo.MatMul rondo.MatMul Mul"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

TEST(test_program_row_products__products_of_few_rows) {
#define HALF_ROWS(count, k) \
    "input x f16 " count "," k, "const w f16 " k ",12", "const v f16 " k ",12", "const g f16 " k
#define HALF_NORMAL                                                                                \
    "value two f16 2", "value e f16 1", "list last -1,", "Pow x two > P", "ReduceMean P last > M", \
        "Add M e > E", "Sqrt E > R", "Div x R > Q", "Mul Q g > n"
#define HALF_GATE(row)                                                                             \
    "MatMul " row " w > a", "Sigmoid a > s", "Mul a s > t", "MatMul " row " v > b", "Mul t b > y", \
        "output y"
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_elementwise = true, .fuse_rows = true, .fuse_few_rows = true};
    static const program_row rows[] = {
        {{HALF_ROWS("2", "64"), HALF_NORMAL, HALF_GATE("n")}, "~rondo.RowProduct"},
        {{HALF_ROWS("8", "64"), HALF_GATE("x")}, "~rondo.RowProduct"},
        {{HALF_ROWS("8", "64"), HALF_NORMAL, "MatMul n w > y", "output y"}, "~rondo.RowProduct"},
        // longer than rows that are held; more rows; no whole steps
        {{HALF_ROWS("8", "4160"), HALF_NORMAL, "MatMul n w > a", "Tanh a > y", "output y"},
         "~RMSNormalization rondo.MatMul"},
        {{HALF_ROWS("9", "64"), HALF_GATE("x")}, "~rondo.MatMul rondo.MatMul Mul"},
        {{HALF_ROWS("8", "72"), HALF_GATE("x")}, "~rondo.MatMul rondo.MatMul Mul"},
        {{HALF_ROWS("2", "8256"), HALF_GATE("x")}, "~rondo.MatMul rondo.MatMul Mul"},
        // a bias of columns, and of rows
        {{HALF_ROWS("2", "64"), HALF_NORMAL, "const d f16 12", "MatMul n w > a", "Add a d > y",
          "output y"},
         "~rondo.RowProduct"},
        {{HALF_ROWS("2", "64"), HALF_NORMAL, "const d f16 2,1", "MatMul n w > a", "Add a d > y",
          "output y"},
         "~RMSNormalization rondo.MatMul"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

TEST(test_program_row_products__sums_of_one_row_of_few_bits) {
#define BITS_ROW(rows)                                                                         \
    "input x f32 " rows ",64", "input z f32 " rows ",7", "const w i4 64,7", "const s f32 2,7", \
        "DequantizeLinear axis=0 block_size=32 w s > f", "MatMul x f > p"
    static const rondo__pass_options gpu = {.fuse_matmul = true, .fuse_rows = true};
    static const program_row rows[] = {
        {{BITS_ROW("1"), "Add p z > y", "output y"}, "~com.microsoft.MatMulNBits"},
        {{BITS_ROW("1"), "Add z p > y", "output y"}, "~com.microsoft.MatMulNBits"},
        // several rows; a product that somebody else reads; an addend that is spread
        {{BITS_ROW("2"), "Add p z > y", "output y"}, "~com.microsoft.MatMulNBits Add"},
        {{BITS_ROW("1"), "Add p z > y", "output y", "output p"}, "~com.microsoft.MatMulNBits Add"},
        {{BITS_ROW("1"), "Add p p > q", "Add q z > y", "output y"},
         "~com.microsoft.MatMulNBits Add Add"},
        {{BITS_ROW("1"), "input u f32 1", "Add p u > y", "output y"},
         "~com.microsoft.MatMulNBits Add"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

TEST(test_program_row_products__rows_of_few_bits) {
#define BITS_HEAD(rows)                                                                        \
    "input x f16 " rows ",64", "const g f16 64", "const w i4 64,7", "const s f16 2,7",         \
        "const v i4 64,7", "const t f16 2,7", "DequantizeLinear axis=0 block_size=32 w s > f", \
        "DequantizeLinear axis=0 block_size=32 v t > h"
#define LONG_BITS(rows)                                                                        \
    "input x f16 " rows ",2112", "const w i4 2112,7", "const s f16 66,7", "const v i4 2112,7", \
        "const t f16 66,7", "DequantizeLinear axis=0 block_size=32 w s > f",                   \
        "DequantizeLinear axis=0 block_size=32 v t > h", "MatMul x f > a", "Relu a > r",       \
        "MatMul x h > b", "Mul r b > m", "Tanh m > y", "output y"
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_elementwise = true, .fuse_rows = true, .fuse_few_rows = true};
    static const program_row rows[] = {
        // gated, normalised, both; several products of one normalised row, one with an addend
        {{BITS_HEAD("1"), "MatMul x f > a", "Sigmoid a > i", "Mul a i > c", "MatMul x h > b",
          "Mul c b > y", "output y"},
         "~rondo.BitsRow"},
        {{BITS_HEAD("1"), HALF_NORMAL, "MatMul n f > y", "output y"}, "~rondo.BitsRow"},
        {{BITS_HEAD("1"), HALF_NORMAL, "MatMul n f > a", "MatMul n h > b", "Relu b > r",
          "Mul a r > y", "output y"},
         "~rondo.BitsRow"},
        {{BITS_HEAD("1"), HALF_NORMAL, "MatMul n f > y", "MatMul n h > z", "output y", "output z"},
         "~rondo.BitsRow rondo.BitsRow"},
        // several rows, with an addend for each number
        {{BITS_HEAD("2"), HALF_NORMAL, "MatMul n f > y", "output y"}, "~rondo.BitsRow"},
        {{BITS_HEAD("2"), "input z f16 2,7", "MatMul x f > a", "Add z a > y", "output y"},
         "~rondo.BitsRow"},
        // long rows and a gate, of which sums of 16 fit
        {{LONG_BITS("16")}, "~rondo.BitsRow Tanh"},
        {{LONG_BITS("17")},
         "~com.microsoft.MatMulNBits com.microsoft.MatMulNBits rondo.Elementwise"},
        // more rows; somebody else reads the row, or a product; no activation; single precision
        {{BITS_HEAD("9"), HALF_NORMAL, "MatMul n f > y", "output y"},
         "~RMSNormalization com.microsoft.MatMulNBits"},
        {{BITS_HEAD("1"), HALF_NORMAL, "MatMul n f > y", "output y", "output n"},
         "~RMSNormalization com.microsoft.MatMulNBits"},
        {{BITS_HEAD("1"), "MatMul x f > a", "Relu a > r", "MatMul x h > b", "Mul r b > y",
          "output y", "output a"},
         "~com.microsoft.MatMulNBits com.microsoft.MatMulNBits rondo.Elementwise"},
        {{BITS_HEAD("1"), "MatMul x f > a", "MatMul x h > b", "Mul a b > y", "output y"},
         "~com.microsoft.MatMulNBits com.microsoft.MatMulNBits Mul"},
        {{"input x f32 1,64", "const g f32 64", "const w i4 64,7", "const s f32 2,7",
          "DequantizeLinear axis=0 block_size=32 w s > f", NORMAL, "MatMul n f > y", "output y"},
         "~RMSNormalization com.microsoft.MatMulNBits"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

TEST_MAIN()
