// Moves of whole rows: which become one Gather, and what goes in front of them; constants that are
// added to scores; rows by their lengths; products whose result is turned.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "program/half/half_pass.h"
#include "program/passes/passes.h"
#include "support/cases/interpret.h"
#include "support/cases/pass_program.h"
#include "support/cases/program_lines.h"
#include "support/expect_ok.h"
#include "support/test.h"

// x [1, 4, 4, 8] by one row and one column, as an image is shifted whose windows overlap.
#define SHIFT(x, y, first, last)                                                           \
    "Slice " x " " first " four one > " y "a", "Slice " x " zero " first " one > " y "b",  \
        "Concat axis=1 " y "a " y "b > " y "c", "Slice " y "c " last " four two > " y "d", \
        "Slice " y "c zero " last " two > " y "e", "Concat axis=2 " y "d " y "e > " y
#define WINDOWS(x, y)                                                             \
    "Reshape " x " parts > " y "p", "Transpose perm=0,1,3,2,4,5 " y "p > " y "t", \
        "Reshape " y "t rows > " y
#define IMAGE(x, y)                                                               \
    "Reshape " x " parts > " y "p", "Transpose perm=0,1,3,2,4,5 " y "p > " y "t", \
        "Reshape " y "t whole > " y
#define LISTS                                                                          \
    "list parts 1,2,2,2,2,8", "list rows 4,4,8", "list whole 1,4,4,8", "list zero 0,", \
        "list one 1,", "list two 2,", "list three 3,", "list four 4,"
#define IMAGE_INPUT LISTS, "input x f32 1,4,4,8"
#define WEIGHTS "const w f32 8,8", "const g f32 8", "const b f32 8"

TEST(test_program_rows__moves) {
    static const rondo__pass_options bare = {0};
    static const program_row rows[] = {
        // a shift, and windows of it
        {{IMAGE_INPUT, SHIFT("x", "y", "one", "one"), "Relu y > z", "output z"},
         "Reshape Gather Reshape Relu"},
        {{IMAGE_INPUT, SHIFT("x", "y", "one", "three"), WINDOWS("y", "z"), "Relu z > r",
          "output r"},
         "Reshape Gather Reshape Relu"},
        // there and back
        {{IMAGE_INPUT, SHIFT("x", "y", "one", "one"), SHIFT("y", "z", "three", "three"),
          "Relu z > r", "output r"},
         "Reshape Relu"},
        // what an output shows
        {{IMAGE_INPUT, SHIFT("x", "y", "one", "one"), "output y"}, "Reshape Gather Reshape"},
        // one move, which strides can make
        {{IMAGE_INPUT, WINDOWS("x", "y"), "Relu y > z", "output z"},
         "Reshape Transpose Reshape Relu"},
        {{IMAGE_INPUT, "Slice x one four one two > y", "Relu y > z", "output z"}, "Slice Relu"},
        // four parts of an image beside each other
        {{IMAGE_INPUT, "Slice x zero four one two > e", "Slice x one four one two > o",
          "Slice e zero four two two > p", "Slice o zero four two two > q",
          "Slice e one four two two > r", "Slice o one four two two > s",
          "Concat axis=-1 p q r s > y", "Relu y > z", "output z"},
         "Reshape Gather Reshape Relu"},
        // rows of two values; narrow rows; columns
        {{IMAGE_INPUT, "input u f32 1,4,4,8", "Slice x one four one > y",
          "Slice u zero one one > v", "Concat axis=1 y v > z", "Relu z > r", "output r"},
         "Slice Slice Concat Relu"},
        {{LISTS, "input x f32 1,4,4,4", SHIFT("x", "y", "one", "one"), "Relu y > z", "output z"},
         "Slice Slice Concat Slice Slice Concat Relu"},
        {{IMAGE_INPUT, "Slice x one four three > y", "Slice x zero one three > z",
          "Concat axis=3 y z > r", "Relu r > s", "output s"},
         "Slice Slice Concat Relu"},
    };
    program_rows_check(rows, sizeof rows / sizeof *rows, &bare);
}

TEST(test_program_rows__orders) {
    static const rondo__pass_options bare = {0};
    static const program_row rows[] = {
        // a sum in the order of the windows, and what works row by row behind it
        {{IMAGE_INPUT, WEIGHTS, WINDOWS("x", "y"), "Softmax axis=1 y > a", IMAGE("a", "z"),
          "Add x z > s", "LayerNormalization axis=3 s g b > n", "MatMul n w > m", "Add m b > o",
          "Gelu o > q", "Add q s > t", "output t"},
         "~Reshape Transpose Reshape Softmax Add LayerNormalization MatMul Add Gelu Add Reshape "
         "Gather Reshape"},
        // a norm goes behind the windows, so that its input is there for the sum
        {{IMAGE_INPUT, WEIGHTS, "LayerNormalization axis=-1 x g b > n", WINDOWS("n", "y"),
          "Softmax axis=1 y > a", IMAGE("a", "z"), "Add z x > s", "Relu s > t",
          SHIFT("t", "u", "one", "one"), WINDOWS("u", "v"), "Softmax axis=1 v > o", "output o"},
         "~Reshape Gather Reshape LayerNormalization Softmax Add Relu Reshape Gather Reshape "
         "Softmax"},
        // a norm of wider rows than those that were moved before it stays where it is
        {{IMAGE_INPUT, "list wide 1,4,2,16", "const e f32 16", "Transpose perm=0,2,1,3 x > y",
          "Reshape y wide > z", "LayerNormalization axis=-1 z e e > n",
          "Transpose perm=0,2,1,3 n > t", "output t"},
         "~Transpose Reshape LayerNormalization Transpose"},
        // nothing is there in that order
        {{IMAGE_INPUT, "input u f32 1,4,4,8", WINDOWS("u", "y"), "Softmax axis=1 y > a",
          IMAGE("a", "z"), "Add x z > s", "output s"},
         "Reshape Transpose Reshape Softmax Reshape Transpose Reshape Add"},
        // not all rows
        {{IMAGE_INPUT, WEIGHTS, "Slice x one four one > y", "LayerNormalization y g b > z",
          "output z"},
         "Slice LayerNormalization"},
        // a scale or a shift of its own for each row
        {{IMAGE_INPUT, "const h f32 4,8", "const b f32 8", SHIFT("x", "y", "one", "one"),
          "LayerNormalization y h b > z", "output z"},
         "Reshape Gather Reshape LayerNormalization"},
        {{IMAGE_INPUT, "const g f32 8", "const h f32 4,8", "LayerNormalization x g h > n",
          SHIFT("n", "y", "one", "one"), "Relu y > z", "output z"},
         "LayerNormalization Reshape Gather Reshape Relu"},
        // three rows beside each other have one norm
        {{LISTS, "const g f32 24", "input x f32 1,4,4,8", "Concat axis=3 x x x > u",
          "LayerNormalization u g > n", SHIFT("n", "y", "one", "one"), "Relu y > z", "output z"},
         "Concat LayerNormalization Reshape Gather Reshape Relu"},
        // rows of a constant
        {{LISTS, "const x f32 1,4,4,8", "input g f32 8", "LayerNormalization x g > n",
          SHIFT("n", "y", "one", "one"), "Relu y > z", "output z"},
         "LayerNormalization Reshape Gather Reshape Relu"},
    };
    program_rows_check(rows, sizeof rows / sizeof *rows, &bare);
}

TEST(test_program_rows__masks) {
    static const rondo__pass_options gpu = {.fuse_matmul = true, .fuse_attention = true};
#define SCORES                                                                             \
    "input q f32 4,2,3,8", "input k f32 4,2,8,3", "input v f32 4,2,3,8", "MatMul q k > s", \
        "const b f32 1,2,3,3", "const m f32 1,4,1,3,3", "list wide 1,4,2,3,3", "list flat 4,2,3,3"
    static const program_row rows[] = {
        {{SCORES, "Add s b > t", "Reshape t wide > u", "Add u m > w", "Reshape w flat > x",
          "Softmax axis=-1 x > y", "MatMul y v > o", "output o"},
         "~rondo.Attention"},
        {{SCORES, "const c f32 3", "Add b s > t", "Add c t > u", "Softmax axis=-1 u > y",
          "MatMul y v > o", "output o"},
         "~rondo.Attention"},
        // another shape; a sum that is read elsewhere
        {{SCORES, "Add s b > t", "Reshape t wide > u", "Add u m > w", "Softmax axis=-1 w > y",
          "output y"},
         "~rondo.MatMul Add Reshape Add Softmax"},
        {{SCORES, "const c f32 3", "Add b s > t", "Add c t > u", "Softmax axis=-1 u > y",
          "MatMul y v > o", "output o", "output t"},
         "~rondo.MatMul Add Add Softmax rondo.MatMul"},
    };
    program_rows_check(rows, sizeof rows / sizeof *rows, &gpu);
}

TEST(test_program_rows__unit_attention) {
    static const rondo__pass_options gpu = {.fuse_matmul = true, .fuse_attention = true};
#define HEADS                                                                                 \
    "input j f32 4,3,48", "list split 4,3,3,2,8", "Reshape j split > p",                      \
        "Transpose perm=2,0,3,1,4 p > t", "list zero 0,", "value i0 i64 0", "value i1 i64 1", \
        "value i2 i64 2", "Gather axis=0 t i0 > q", "Gather axis=0 t i1 > k",                 \
        "Gather axis=0 t i2 > v", "const f f32 2,1,1", "const m f32 2,3,3"
    static const program_row rows[] = {
        {{HEADS, "LpNormalization q > a", "LpNormalization axis=-1 p=2 k > b",
          "Transpose perm=0,1,3,2 b > c", "MatMul a c > s", "Mul s f > r", "Add r m > u",
          "Softmax axis=-1 u > w", "MatMul w v > o", "Transpose perm=0,2,1,3 o > y", "output y"},
         "~rondo.Attention"},
        {{HEADS, "LpNormalization q > a", "LpNormalization k > b", "Transpose perm=0,1,3,2 b > c",
          "MatMul a c > s", "Softmax axis=-1 s > w", "MatMul w v > o", "output o"},
         "~rondo.Attention"},
        // a factor without lengths; the rows of one alone; sums in the place of lengths
        {{HEADS, "Transpose perm=0,1,3,2 k > c", "MatMul q c > s", "Mul s f > r",
          "Softmax axis=-1 r > w", "MatMul w v > o", "output o"},
         "~Reshape Transpose Gather Gather Gather rondo.MatMul Mul Softmax rondo.MatMul"},
        {{HEADS, "LpNormalization q > a", "Transpose perm=0,1,3,2 k > c", "MatMul a c > s",
          "Mul s f > r", "Softmax axis=-1 r > w", "MatMul w v > o", "output o"},
         "~Reshape Transpose Gather Gather Gather LpNormalization rondo.MatMul Mul Softmax "
         "rondo.MatMul"},
        {{HEADS, "LpNormalization p=1 q > a", "LpNormalization p=1 k > b",
          "Transpose perm=0,1,3,2 b > c", "MatMul a c > s", "Softmax axis=-1 s > w",
          "MatMul w v > o", "output o"},
         "~Reshape Transpose Gather Gather LpNormalization LpNormalization rondo.Attention"},
    };
    program_rows_check(rows, sizeof rows / sizeof *rows, &gpu);
}

TEST(test_program_rows__turned_products) {
    static const rondo__pass_options gpu = {.fuse_matmul = true, .turn_products = true};
#define MIXER "input x f16 1,16,24", "input r f16 1,10,16", "const w f16 24,10", "const b f16 10"
    static const program_row rows[] = {
        {{MIXER, "MatMul x w > p", "Add b p > s", "Transpose perm=0,2,1 s > t", "Add r t > y",
          "output y"},
         "~rondo.MatMul"},
        {{MIXER, "MatMul x w > p", "Transpose perm=0,2,1 p > t", "Add t r > y", "output y"},
         "~rondo.MatMul"},
        // a bias for each row keeps the rows as they are
        {{"const w f32 16,24", "input x f32 24,10", "const h f32 16,1", "list parts 4,4,10",
          "const m f32 4,4,10", "MatMul w x > p", "Add p h > s", "Reshape s parts > r",
          "Add r m > y", "output y"},
         "~rondo.MatMul Reshape Add"},
        // rows that are no multiple of eight; a result that is read as it is; single precision
        {{"input x f16 1,18,24", "const w f16 24,10", "MatMul x w > p",
          "Transpose perm=0,2,1 p > t", "output t"},
         "~rondo.MatMul Transpose"},
        {{MIXER, "MatMul x w > p", "Add p b > s", "Transpose perm=0,2,1 s > t", "Add t r > y",
          "output y", "output s"},
         "~rondo.MatMul Transpose Add"},
        {{"input x f32 1,16,24", "const w f32 24,10", "MatMul x w > p",
          "Transpose perm=0,2,1 p > t", "output t"},
         "~rondo.MatMul Transpose"},
    };
    program_rows_check(rows, sizeof rows / sizeof *rows, &gpu);
}

// Two masks of f16, which together are beyond its range, hide rows and make no infinity.
TEST(test_program_rows__masks_stay_finite) {
    const rondo_shape shape = {2, {2, 4}};
    const float lows[2] = {-65504.0f, -20.0f};
    rondo_program *program;
    OK(rondo__program_create("masks", &program));
    int32_t sum = pass_add_input(program, RONDO_DTYPE_F16, &shape);
    for (int i = 0; i < 2; ++i) {
        rondo_tensor mask;
        OK(rondo_tensor_init(RONDO_DTYPE_F16, &shape, &mask));
        for (int64_t e = 0; e < 8; ++e) {
            ((uint16_t *)mask.data)[e] = rondo_f16_from_float(e == 7 ? -INFINITY : lows[i]);
        }
        const int32_t operands[2] = {sum, pass_add_constant(program, &mask)};
        rondo_tensor_deinit(&mask);
        sum = pass_add_node(program, "", "Add", operands, 2);
    }
    OK(rondo__program_add_output(program, pass_add_node(program, "", "Softmax", &sum, 1)));
    program = pass_specialise(program);
    OK(rondo__pass_masks(program));
    assert_int_equal(program->node_count, 2);
    const rondo_tensor *mask = &program->values[program->nodes[0].inputs[1]].constant;
    assert_int_equal(rondo_shape_get_count(&mask->shape), 8);
    for (int64_t e = 0; e < 8; ++e) {
        assert_int_equal(((const uint16_t *)mask->data)[e],
                         rondo_f16_from_float(e == 7 ? -INFINITY : -65504.0f));
    }
    rondo_program_destroy(program);
}

typedef struct length_row {
    const char *what;
    float least;
    int64_t axis;
    bool has_most, has_expand, is_kept, is_named;
} length_row;

static int32_t add_number(rondo_program *program, float number) {
    const rondo_shape shape = {.rank = 0};
    rondo_tensor tensor;
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &tensor));
    *(float *)tensor.data = number;
    const int32_t value = pass_add_constant(program, &tensor);
    rondo_tensor_deinit(&tensor);
    return value;
}

static rondo_program *make_lengths(const length_row *row, const rondo_shape *shape) {
    rondo_program *program;
    OK(rondo__program_create("lengths", &program));
    const int32_t x = pass_add_input(program, RONDO_DTYPE_F32, shape);
    const int32_t of_length[2] = {x, pass_add_list(program, &row->axis, 1)};
    const int32_t length = pass_add_node(program, "", "ReduceL2", of_length, 2);
    if (row->is_kept) {
        program->nodes[program->node_count - 1].precision = RONDO__PRECISION_SINGLE;
    }
    const int32_t of_clip[3] = {length, add_number(program, row->least),
                                row->has_most ? add_number(program, 1e9f) : RONDO__VALUE_NONE};
    int32_t divisor = pass_add_node(program, "", "Clip", of_clip, row->has_most ? 3 : 2);
    if (row->has_expand) {
        const int32_t of_expand[2] = {divisor, pass_add_list(program, shape->extent, 3)};
        divisor = pass_add_node(program, "", "Expand", of_expand, 2);
    }
    const int32_t of_div[2] = {x, divisor};
    OK(rondo__program_add_output(program, pass_add_node(program, "", "Div", of_div, 2)));
    return pass_specialise(program);
}

TEST(test_program_rows__unit_rows) {
    static const length_row rows[] = {
        {.what = "as PyTorch exports it",
         .least = 1e-12f,
         .axis = -1,
         .has_expand = true,
         .is_named = true},
        {.what = "the axis by its number", .least = 1e-12f, .axis = 2, .is_named = true},
        {.what = "a least length that counts", .least = 0.5f, .axis = -1},
        {.what = "no least length", .least = 0.0f, .axis = -1},
        {.what = "a greatest length", .least = 1e-12f, .axis = -1, .has_most = true},
        {.what = "another axis", .least = 1e-12f, .axis = 1},
        {.what = "what the caller keeps in f32", .least = 1e-12f, .axis = -1, .is_kept = true},
    };
    const rondo_shape shape = {3, {2, 3, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        rondo_program *program = make_lengths(&rows[i], &shape);
        rondo_tensor x;
        OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &x));
        for (int64_t e = 8; e < 48; ++e) {  // the first row is zeros
            ((float *)x.data)[e] = (float)(e * 7 % 23) / 8.0f - 1.25f;
        }
        pass_rewrite(program, rondo__pass_unit_rows, &x, 1e-6, rows[i].what);
        assert_int_equal(interpret_count(program, RONDO__OP_LpNormalization),
                         rows[i].is_named ? 1 : 0);
        rondo_tensor_deinit(&x);
        rondo_program_destroy(program);
    }
}

TEST_MAIN()
