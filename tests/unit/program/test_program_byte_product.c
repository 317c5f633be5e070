// Products of 8-bit integers take in what scales their sums, and their images have channels last:
// small programs computed op by op before and after, bit for bit, and the ops that are left.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/program_lines.h"
#include "support/test.h"

// In single precision on a GPU.
static const rondo__pass_options single = {.fuse_convolution = true,
                                           .fuse_bytes = true,
                                           .fuse_matmul = true,
                                           .fuse_attention = true,
                                           .fuse_elementwise = true};

typedef program_row row;

static void check_rows(const row *rows, size_t count) {
    program_rows_check(rows, count, &single);
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

// ---- matrices ---------------------------------------------------------------------------------

#define QUANTISED                                                                            \
    "input x f32 2,3,8", "const w i8 8,5", "const ws f32", "const wz i8", "const b f32 5",   \
        "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > s", "MatMulInteger q w xz wz > i", \
        "Cast to=1 i > c"

TEST(test_program_byte_product__matrices) {
    static const row rows[] = {
        {{QUANTISED, "Mul c s > y", "output y"}, "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "Mul s c > p", "Add b p > a", "Relu a > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        // a residual; one before the bias; others than the result's shape
        {{QUANTISED, "input z f32 2,3,5", "Mul c s > p", "Add p b > a", "Add z a > r", "Tanh r > y",
          "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "input z f32 2,3,5", "Mul c s > p", "Add p z > a", "Add a b > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
        {{QUANTISED, "input z f32 3,5", "Mul c s > p", "Add p z > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
        {{QUANTISED, "input z f32 4,2,3,5", "Mul c s > p", "Add p z > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger Add"},
    };
    check_rows(rows, COUNT(rows));
}

TEST(test_program_byte_product__factors) {
    static const row rows[] = {
        // a scale for each column, one that nobody makes, and one that is not of columns
        {{"input x f32 3,8", "const w u8 8,5", "const ws f32 5", "const wz u8 5",
          "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > s", "MatMulInteger q w xz wz > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger"},
        {{"input q u8 3,8", "input s f32 1,5", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "rondo.MatMulInteger"},
        {{"input q u8 3,8", "input s f32 3,1", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
        {{"input q u8 5,8", "input s f32 5,1", "const w i8 8,5", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
        // computed weights, of several matrices
        {{"input q u8 2,3,8", "input w i8 2,8,5", "input s f32", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > p", "Sigmoid p > y", "output y"},
         "rondo.MatMulInteger"},
        // another type; sums that somebody else wants; no factor; nothing to scale
        {{"input q u8 3,8", "const w i8 8,5", "MatMulInteger q w > i", "Cast to=7 i > y",
          "output y"},
         "MatMulInteger Cast"},
        {{QUANTISED, "Mul c s > y", "output y", "output i"},
         "DynamicQuantizeLinear Mul MatMulInteger Cast Mul"},
        {{QUANTISED, "Mul c s > y", "output y", "output c"},
         "DynamicQuantizeLinear Mul MatMulInteger Cast Mul"},
        {{QUANTISED, "Add c b > y", "output y"}, "DynamicQuantizeLinear MatMulInteger Cast Add"},
        {{"input q u8 8", "const w i8 8,5", "input s f32", "MatMulInteger q w > i",
          "Cast to=1 i > c", "Mul c s > y", "output y"},
         "MatMulInteger Cast Mul"},
    };
    check_rows(rows, COUNT(rows));
}

TEST(test_program_byte_product__silu) {
    static const row rows[] = {
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Mul p g > y", "output y"},
         "~DynamicQuantizeLinear rondo.MatMulInteger"},
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Mul g p > y", "output y", "output g"},
         "DynamicQuantizeLinear rondo.MatMulInteger Sigmoid Mul"},
        {{QUANTISED, "Mul c s > p", "Sigmoid p > g", "Sub p g > y", "output y"},
         "DynamicQuantizeLinear rondo.MatMulInteger rondo.Elementwise"},
    };
    check_rows(rows, COUNT(rows));
}

// ---- convolutions -----------------------------------------------------------------------------

// As quantise_dynamic writes a convolution with a bias.
#define CONVOLVED(shape, window)                                                                   \
    "input x f32 " shape, "const w u8 16,16,3,3", "const ws f32", "const wz u8", "const b f32 16", \
        "list extents 1,16,1,1", "DynamicQuantizeLinear x > q xs xz", "Mul xs ws > bs",            \
        "Div b bs > t", "Floor t > f", "Cast to=6 f > fi", "Reshape fi extents > rb",              \
        "ConvInteger " window " q w xz wz > i"

TEST(test_program_byte_product__convolutions) {
    static const row rows[] = {
        {{CONVOLVED("2,16,5,6", "pads=1,1,1,1"), "Add i rb > a", "Cast to=1 a > c", "Mul ws xs > s",
          "Mul c s > p", "Sigmoid p > g", "Mul p g > y", "output y"},
         "~DynamicQuantizeLinear Transpose rondo.ConvInteger Transpose"},
        // another step than the bias has
        {{CONVOLVED("2,16,5,6", "strides=2,2"), "Add i rb > a", "Cast to=1 a > c", "Mul c xs > y",
          "output y"},
         "DynamicQuantizeLinear Mul rondo.Elementwise Cast Reshape Transpose rondo.ConvInteger "
         "Transpose Add Cast Mul"},
        // one after the other, with what lies between them
        {{CONVOLVED("1,16,9,9", "pads=1,1,1,1"), "Add i rb > a", "Cast to=1 a > c", "Mul c bs > p",
          "MaxPool kernel_shape=3,3 strides=2,2 p > m", "DynamicQuantizeLinear m > q2 xs2 xz2",
          "ConvInteger q2 w xz2 wz > i2", "Cast to=1 i2 > c2", "Mul c2 xs2 > y", "output y"},
         "DynamicQuantizeLinear Transpose rondo.ConvInteger rondo.MaxPool DynamicQuantizeLinear "
         "rondo.ConvInteger Transpose"},
        // no image
        {{"input q u8 1,8,30", "const w i8 6,8,3", "input s f32", "const b f32 6,1",
          "ConvInteger pads=1,1 q w > i", "Cast to=1 i > c", "Mul c s > p", "Add p b > y",
          "output y"},
         "rondo.ConvInteger"},
    };
    check_rows(rows, COUNT(rows));
}

TEST(test_program_byte_product__steps_between_images) {
    static const row rows[] = {
        {{"input x f32 1,3,8,8", "const xs f32", "const xz u8", "const w i8 8,3,3,3",
          "const ws f32 8", "const wz i8 8", "const ys f32 8", "const yz u8 8",
          "QuantizeLinear x xs xz > q", "QLinearConv pads=1,1,1,1 q xs xz w ws wz xs xz > c",
          "MaxPool kernel_shape=2,2 c > m", "DequantizeLinear axis=1 m ys yz > d", "Relu d > r",
          "QuantizeLinear r xs xz > q2", "const v u8 5,8,1,1",
          "QLinearConv q2 xs xz v xs xz xs xz > y", "output y"},
         "QuantizeLinear Transpose rondo.QLinearConv rondo.MaxPool DequantizeLinear Relu "
         "QuantizeLinear rondo.QLinearConv Transpose"},
    };
    check_rows(rows, COUNT(rows));
}

// Convolutions of reals keep their layout where only bytes want another.
TEST(test_program_byte_product__reals_beside_bytes) {
    static const row rows[] = {
        {{"input x f32 1,4,6,6", "const f f32 16,4,1,1", "const w i8 8,16,1,1",
          "const g f32 3,8,1,1", "Conv x f > r", "DynamicQuantizeLinear r > q xs xz",
          "ConvInteger q w xz > i", "Cast to=1 i > c", "Mul c xs > p", "Conv p g > y", "output y"},
         "rondo.Conv DynamicQuantizeLinear Transpose rondo.ConvInteger Transpose rondo.Conv"},
        {{"input x f32 1,4,6,6", "const f f32 4,4,1,1", "Conv x f > r",
          "MaxPool kernel_shape=2,2 r > y", "output y"},
         "rondo.Conv MaxPool"},
    };
    check_rows(rows, COUNT(rows));
}

TEST_MAIN()
