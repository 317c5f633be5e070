// Patterns that exporters write out in small ops become one op each, and what only looks like one
// does not.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/program_lines.h"
#include "support/test.h"

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

// ---- softmax whose empty rows are zeros -------------------------------------------------------

#define MASKED "input x f32 2,3,5 empty", "value zero f32 0", "Softmax axis=-1 x > s", "IsNaN s > n"

TEST(test_program_patterns__masked_softmax) {
    static const program_row rows[] = {
        // as torch 2.15 writes attention with a mask
        {{MASKED, "Where n zero s > y", "output y"}, "rondo.Softmax"},
        {{"input x f32 2,3,5 empty", "value zero f32 0 1", "Softmax axis=1 x > s", "IsNaN s > n",
          "Where n zero s > y", "output y"},
         "rondo.Softmax"},
        // another number, -0, axes that it adds, the branches swapped, of another value
        {{MASKED, "value one f32 1", "Where n one s > y", "output y"}, "Softmax IsNaN Where"},
        {{MASKED, "value negative f32 -0.0", "Where n negative s > y", "output y"},
         "Softmax IsNaN Where"},
        {{MASKED, "value wide f32 0 1,1,1,1", "Where n wide s > y", "output y"},
         "Softmax IsNaN Where"},
        {{MASKED, "Where n s zero > y", "output y"}, "Softmax IsNaN Where"},
        {{MASKED, "input z f32 2,3,5", "Where n zero z > y", "output y"}, "Softmax IsNaN Where"},
        // somebody else looks at what lies between
        {{MASKED, "Where n zero s > y", "output y", "output s"}, "Softmax IsNaN Where"},
        {{MASKED, "Where n zero s > y", "output y", "output n"}, "Softmax IsNaN Where"},
        {{MASKED, "Where n zero s > y", "Relu s > z", "output y", "output z"},
         "Softmax IsNaN Where Relu"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// On a GPU the products around it are taken in, too.
TEST(test_program_patterns__masked_attention) {
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_attention = true, .fuse_elementwise = true};
#define SCORED                                                                                  \
    "input q f32 2,3,5,8", "input k f32 2,3,8,7", "input v f32 2,3,7,4",                        \
        "input mask f32 2,1,5,7 empty", "value zero f32 0", "MatMul q k > p", "Add p mask > a", \
        "Softmax axis=-1 a > s"
    static const program_row rows[] = {
        {{SCORED, "IsNaN s > n", "Where n zero s > w", "MatMul w v > y", "output y"},
         "~rondo.Attention"},
        {{SCORED, "IsNaN s > n", "Where n zero s > w", "MatMul w v > o",
          "Transpose perm=0,2,1,3 o > y", "output y"},
         "~rondo.Attention"},
        {{SCORED, "IsNaN s > n", "Where n zero s > w", "MatMul w v > y", "output y", "output w"},
         "~rondo.MatMul Add rondo.Softmax rondo.MatMul"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

// Keys and values that several heads share are read where they lie.
TEST(test_program_patterns__shared_keys) {
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_attention = true, .fuse_elementwise = true};
#define SHARED(batch, rows)                                                                        \
    "input q f32 " batch ",6," rows ",8", "input k f32 " batch ",2,7,8",                           \
        "input v f32 " batch ",2,7,4", "list two 2,", "list ke " batch ",2,3,7,8",                 \
        "list ve " batch ",2,3,7,4", "list kr " batch ",6,7,8", "list vr " batch ",6,7,4",         \
        "Unsqueeze k two > ku", "Expand ku ke > kx", "Reshape kx kr > kk", "Unsqueeze v two > vu", \
        "Expand vu ve > vx", "Reshape vx vr > vv", "Transpose perm=0,1,3,2 kk > kt",               \
        "MatMul q kt > p"
    static const program_row rows[] = {
        // of one row, of one batch with a mask, and as exporters turn the result
        {{SHARED("3", "1"), "Softmax axis=-1 p > s", "MatMul s vv > y", "output y"},
         "~rondo.Attention"},
        {{SHARED("1", "5"), "input mask f32 5,7", "Add p mask > a", "Softmax axis=-1 a > s",
          "MatMul s vv > o", "Transpose perm=0,2,1,3 o > y", "output y"},
         "~rondo.Attention"},
        {{SHARED("3", "1"), "Softmax axis=-1 p > s", "MatMul s vv > o",
          "Transpose perm=0,2,1,3 o > y", "output y"},
         "~rondo.Attention Reshape"},
        // several rows of several batches, and masks that differ by head
        {{SHARED("3", "5"), "Softmax axis=-1 p > s", "MatMul s vv > y", "output y"},
         "~Unsqueeze Expand Unsqueeze Expand rondo.Attention"},
        {{SHARED("1", "1"), "input mask f32 6,1,7", "Add p mask > a", "Softmax axis=-1 a > s",
          "MatMul s vv > y", "output y"},
         "~Unsqueeze Expand Unsqueeze Expand rondo.Attention"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

// ---- detections -------------------------------------------------------------------------------

#define DETECTOR                                                                              \
    "input s f32 40,4", "input r f32 40,2", "value t f32 0.25", "value t2 f32 0.5",           \
        "list most 5,", "list less 4,", "list minus -1,", "value c0 i64 0", "value c1 i64 1", \
        "value c2 i64 2"
#define CLASS_OF(k, column, threshold, limit)                                                    \
    "Gather axis=1 s " column " > s" k, "Greater s" k " " threshold " > g" k,                    \
        "NonZero g" k " > n" k, "Transpose n" k " > w" k, "GatherND s" k " w" k " > a" k,        \
        "GatherND r w" k " > b" k, "Shape a" k " > l" k, "Concat axis=0 " limit " l" k " > m" k, \
        "ReduceMin keepdims=0 m" k " > q" k, "Reshape q" k " minus > k" k,                       \
        "TopK a" k " k" k " > v" k " i" k, "Gather axis=0 b" k " i" k " > x" k
#define JOINED(a, b) \
    "Concat axis=0 x" a " x" b " > y", "Concat axis=0 v" a " v" b " > z", "output y", "output z"
#define CLASS_OPS                                                                        \
    "Gather Greater NonZero Transpose GatherND GatherND Shape Concat ReduceMin Reshape " \
    "TopK Gather "

// The best of each class, as torchvision writes it; not where classes differ or are out of order.
TEST(test_program_patterns__detections) {
    static const program_row rows[] = {
        {{DETECTOR, CLASS_OF("1", "c1", "t", "most"), CLASS_OF("2", "c2", "t", "most"),
          JOINED("1", "2")},
         "rondo.BestRows"},
        {{DETECTOR, CLASS_OF("1", "c1", "t", "most"), CLASS_OF("2", "c2", "t2", "most"),
          JOINED("1", "2")},
         CLASS_OPS CLASS_OPS "Concat Concat"},
        {{DETECTOR, CLASS_OF("1", "c1", "t", "most"), CLASS_OF("2", "c2", "t", "less"),
          JOINED("1", "2")},
         CLASS_OPS CLASS_OPS "Concat Concat"},
        {{DETECTOR, CLASS_OF("1", "c1", "t", "most"), CLASS_OF("2", "c2", "t", "most"),
          JOINED("2", "1")},
         CLASS_OPS CLASS_OPS "Concat Concat"},
        {{DETECTOR, CLASS_OF("1", "c0", "t", "most"), CLASS_OF("2", "c2", "t", "most"),
          JOINED("1", "2")},
         CLASS_OPS CLASS_OPS "Concat Concat"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// No more boxes than are taken, where one class alone is looked at.
TEST(test_program_patterns__boxes_that_are_taken) {
#define BOXES(classes)                                                                         \
    "input b f32 1,9,4", "input s f32 1," classes ",9", "list all 100,", "value over f32 0.5", \
        "list two 2,", "list one 1,", "list zero 0,", "list first 3,",                         \
        "NonMaxSuppression b s all over > f", "Gather axis=1 f two > g", "Squeeze g one > k",  \
        "Slice k zero first > y"
    static const program_row rows[] = {
        {{BOXES("1"), "output y"}, "3NonMaxSuppression Gather Squeeze Slice"},
        {{BOXES("2"), "output y"}, "100NonMaxSuppression Gather Squeeze Slice"},
        {{BOXES("1"), "output y", "output k"}, "100NonMaxSuppression Gather Squeeze Slice"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// ---- rotations by position --------------------------------------------------------------------

#define ROTATED                                                                       \
    "input x f32 2,3,5,8", "input c f32 1,1,5,8", "input s f32 5,8", "list axis -1,", \
        "list zero 0,", "list half 4,", "list end 8,", "Slice x zero half axis > a",  \
        "Slice x half end axis > b", "Neg b > m"

TEST(test_program_patterns__rotations) {
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_attention = true, .fuse_elementwise = true};
    static const program_row rows[] = {
        {{ROTATED, "Concat axis=-1 m a > t", "Mul x c > p", "Mul t s > q", "Add p q > y",
          "output y"},
         "~rondo.Rotate"},
        {{"input x f32 2,3,5,8", "input c f32 1,1,5,8", "input s f32 5,1",
          "Split axis=3 num_outputs=2 x > a b", "Neg b > m", "Concat axis=3 m a > t", "Mul s t > q",
          "Mul c x > p", "Add q p > y", "output y"},
         "~rondo.Rotate"},
        // the halves in another order or not negated, angles that are larger, another user
        {{ROTATED, "Concat axis=-1 a m > t", "Mul x c > p", "Mul t s > q", "Add p q > y",
          "output y"},
         "~Slice Slice Neg Concat rondo.Elementwise"},
        {{ROTATED, "Concat axis=-1 b a > t", "Mul x c > p", "Mul t s > q", "Add p q > y",
          "output y"},
         "~Slice Slice Concat rondo.Elementwise"},
        {{ROTATED, "input w f32 4,1,1,5,8", "Concat axis=-1 m a > t", "Mul x w > p", "Mul t s > q",
          "Add p q > y", "output y"},
         "~Slice Slice Neg Concat Mul rondo.Elementwise"},
        {{ROTATED, "Concat axis=-1 m a > t", "Mul x c > p", "Mul t s > q", "Add p q > y",
          "output y", "output t"},
         "~Slice Slice Neg Concat rondo.Elementwise"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

// ---- RMSNormalization -------------------------------------------------------------------------

#define MEAN                                                                        \
    "input x f32 2,3,8", "const w f32 8", "value two f32 2", "value e f32 0.00001", \
        "list last -1,", "Pow x two > p", "ReduceMean p last > m", "Add m e > a"

#define WIDE_MEAN                                                                         \
    "input h f16 2,3,8", "Cast to=1 h > x", "const w f16 8", "value two f32 2",           \
        "value e f32 0.00001", "list last -1,", "Pow x two > p", "ReduceMean p last > m", \
        "Add m e > a"

TEST(test_program_patterns__rms_norm) {
    static const program_row rows[] = {
        // as torch, keras and others write it
        {{MEAN, "Sqrt a > s", "Reciprocal s > r", "Mul x r > n", "Mul w n > y", "output y"},
         "~RMSNormalization"},
        {{MEAN, "value one f32 1", "Sqrt a > s", "Div one s > r", "Mul r x > n", "Mul n w > y",
          "output y"},
         "~RMSNormalization"},
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y"}, "~RMSNormalization"},
        {{MEAN, "value half f32 -0.5", "Pow a half > r", "Mul x r > n", "Mul n w > y", "output y"},
         "~RMSNormalization"},
        {{"input x f32 2,8", "const w f32 8", "value e f32 0.00001", "list last 1,", "Mul x x > p",
          "ReduceMean p last > m", "Add e m > a", "Sqrt a > s", "Div x s > n", "Mul n w > y",
          "output y"},
         "~RMSNormalization"},
        // in half precision, widened for the mean
        {{WIDE_MEAN, "Sqrt a > s", "Div x s > n", "Cast to=10 n > c", "Mul w c > y", "output y"},
         "~RMSNormalization"},
        {{WIDE_MEAN, "Sqrt a > s", "Reciprocal s > r", "Mul x r > n", "Cast to=10 n > c",
          "Mul c w > y", "output y"},
         "~RMSNormalization"},
        {{WIDE_MEAN, "const g f32 8", "Sqrt a > s", "Div x s > n", "Mul n g > y", "output y"},
         "~Cast RMSNormalization"},
        // another power, axis or numerator; no epsilon; a gain of another shape, or computed
        {{"input x f32 2,8", "const w f32 8", "value three f32 3", "value e f32 9", "list last -1,",
          "Pow x three > p", "ReduceMean p last > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 8,8", "const w f32 8", "value two f32 2", "value e f32 1", "list first 0,",
          "Pow x two > p", "ReduceMean p first > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "input z f32 2,3,8", "Sqrt a > s", "Div z s > n", "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 2,8", "const w f32 8", "value two f32 2", "list last -1,", "Pow x two > p",
          "ReduceMean p last > m", "Sqrt m > s", "Div x s > n", "Mul n w > y", "output y"},
         "Pow ReduceMean Sqrt Div Mul"},
        {{MEAN, "const g f32 3,1", "Sqrt a > s", "Div x s > n", "Mul n g > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{"input x f32 2,3,1", "const w f32 8", "value two f32 2", "value e f32 1", "list last -1,",
          "Pow x two > p", "ReduceMean p last > m", "Add m e > a", "Sqrt a > s", "Div x s > n",
          "Mul n w > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "input g f32 8", "Sqrt a > s", "Div x s > n", "Mul n g > y", "output y"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        // somebody else looks at what lies between
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y", "output n"},
         "Pow ReduceMean Add Sqrt Div Mul"},
        {{MEAN, "Sqrt a > s", "Div x s > n", "Mul n w > y", "output y", "output m"},
         "Pow ReduceMean Add Sqrt Div Mul"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// ---- real ops between DequantizeLinear and QuantizeLinear -------------------------------------

#define BYTES                                                                                    \
    "input x u8 1,3,6,6", "const w i8 4,3,3,3", "const b i32 4", "value xs f32 0.02",            \
        "value xz u8 117", "value ws f32 0.01", "value wz i8 0", "value bs f32 0.0002",          \
        "value bz i32 0", "value ys f32 0.05", "value yz u8 0", "DequantizeLinear x xs xz > xf", \
        "DequantizeLinear w ws wz > wf", "DequantizeLinear b bs bz > bf"
#define OF_CONV BYTES, "Conv pads=1,1,1,1 xf wf bf > c"

TEST(test_program_patterns__quantised_convolutions) {
    static const program_row rows[] = {
        {{OF_CONV, "QuantizeLinear c ys yz > y", "output y"}, "QLinearConv"},
        {{BYTES, "Conv xf wf > c", "QuantizeLinear c ys yz > y", "output y"}, "QLinearConv"},
        // a scale for each filter
        {{BYTES, "value fs f32 0.01 4", "value fz i8 0 4", "DequantizeLinear axis=0 w fs fz > ff",
          "Conv xf ff bf > c", "QuantizeLinear c ys yz > y", "output y"},
         "QLinearConv"},
        // what the bytes imply: nothing below 0, nothing above 255 steps
        {{OF_CONV, "Relu c > r", "QuantizeLinear r ys yz > y", "output y"}, "QLinearConv"},
        {{OF_CONV, "value low f32 0", "value high f32 12.75", "Clip c low high > r",
          "QuantizeLinear r ys yz > y", "output y"},
         "QLinearConv"},
        {{OF_CONV, "value low f32 0", "value high f32 6", "Clip c low high > r",
          "QuantizeLinear r ys yz > y", "output y"},
         "DequantizeLinear Conv Clip QuantizeLinear"},
        {{OF_CONV, "value mid u8 9", "Relu c > r", "QuantizeLinear r ys mid > y", "output y"},
         "DequantizeLinear Conv Relu QuantizeLinear"},
        {{OF_CONV, "Sigmoid c > r", "QuantizeLinear r ys yz > y", "output y"},
         "DequantizeLinear Conv Sigmoid QuantizeLinear"},
        // a bias in other steps, or with a zero point; scales along another axis
        {{BYTES, "value other f32 0.0003", "DequantizeLinear b other bz > g", "Conv xf wf g > c",
          "QuantizeLinear c ys yz > y", "output y"},
         "DequantizeLinear Conv QuantizeLinear"},
        {{BYTES, "value one i32 1", "DequantizeLinear b bs one > g", "Conv xf wf g > c",
          "QuantizeLinear c ys yz > y", "output y"},
         "DequantizeLinear Conv QuantizeLinear"},
        {{BYTES, "value fs f32 0.01 3", "value fz i8 0 3", "DequantizeLinear axis=1 w fs fz > ff",
          "Conv xf ff > c", "QuantizeLinear c ys yz > y", "output y"},
         "DequantizeLinear Conv QuantizeLinear"},
        // windows of one channel; somebody else wants the real result; a scale that is computed
        {{"input x u8 1,3,6,6", "const w i8 3,1,3,3", "value s f32 0.02", "value xz u8 7",
          "value wz i8 0", "DequantizeLinear x s xz > xf", "DequantizeLinear w s wz > wf",
          "Conv group=3 xf wf > c", "QuantizeLinear c s xz > y", "output y"},
         "QLinearConv"},
        // volumes, for which no kernel of bytes is
        {{"input x u8 1,3,4,4,4", "const w i8 2,3,1,1,1", "value s f32 0.02", "value xz u8 7",
          "value wz i8 0", "DequantizeLinear x s xz > xf", "DequantizeLinear w s wz > wf",
          "Conv xf wf > c", "QuantizeLinear c s xz > y", "output y"},
         "DequantizeLinear Conv QuantizeLinear"},
        {{OF_CONV, "QuantizeLinear c ys yz > y", "output y", "output c"},
         "DequantizeLinear Conv QuantizeLinear"},
        {{OF_CONV, "input s f32", "QuantizeLinear c s yz > y", "output y"},
         "DequantizeLinear Conv QuantizeLinear"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

TEST(test_program_patterns__quantised_sums) {
#define OF_TWO                                                                       \
    "input a u8 2,3,5", "input b i8 2,3,5", "value as f32 0.02", "value az u8 117",  \
        "value bs f32 0.01", "value bz i8 -3", "value ys f32 0.03", "value yz u8 0", \
        "DequantizeLinear a as az > af", "DequantizeLinear b bs bz > bf"
    static const program_row rows[] = {
        {{OF_TWO, "Add af bf > s", "QuantizeLinear s ys yz > y", "output y"}, "rondo.QLinearAdd"},
        {{OF_TWO, "Add bf af > s", "Relu s > r", "QuantizeLinear r ys yz > y", "output y"},
         "rondo.QLinearAdd"},
        {{"input a u16 2,3,5", "value as f32 0.0002", "value az u16 30000", "value ys f32 0.0003",
          "value yz u16 0", "DequantizeLinear a as az > af", "Add af af > s", "Relu s > r",
          "QuantizeLinear r ys yz > y", "output y"},
         "rondo.QLinearAdd"},
        // not implied; real on one side; the sum is wanted; a scale for each channel
        {{OF_TWO, "value mid u8 9", "Add af bf > s", "Relu s > r", "QuantizeLinear r ys mid > y",
          "output y"},
         "DequantizeLinear DequantizeLinear Add Relu QuantizeLinear"},
        {{OF_TWO, "input f f32 2,3,5", "Add af f > s", "QuantizeLinear s ys yz > y", "output y"},
         "DequantizeLinear Add QuantizeLinear"},
        {{OF_TWO, "Add af bf > s", "QuantizeLinear s ys yz > y", "output y", "output s"},
         "DequantizeLinear DequantizeLinear Add QuantizeLinear"},
        {{OF_TWO, "value cs f32 0.01 3", "value cz i8 0 3", "DequantizeLinear axis=1 b cs cz > cf",
          "Add af cf > s", "QuantizeLinear s ys yz > y", "output y"},
         "DequantizeLinear DequantizeLinear Add QuantizeLinear"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

TEST(test_program_patterns__quantised_products) {
#define PRODUCT                                                                              \
    "input x u8 2,5,16", "input z i8 2,16,7", "const w i8 16,7", "value xs f32 0.02",        \
        "value xz u8 117", "value ws f32 0.01", "value wz i8 3", "value ys f32 0.2",         \
        "value yz u8 100", "DequantizeLinear x xs xz > xf", "DequantizeLinear w ws wz > wf", \
        "DequantizeLinear z ws wz > zf"
    static const program_row rows[] = {
        {{PRODUCT, "MatMul xf wf > p", "QuantizeLinear p ys yz > y", "output y"}, "QLinearMatMul"},
        {{PRODUCT, "MatMul xf zf > p", "QuantizeLinear p ys yz > y", "output y"}, "QLinearMatMul"},
        {{PRODUCT, "value cs f32 0.01 7", "value cz i8 0 7", "DequantizeLinear w cs cz > cf",
          "MatMul xf cf > p", "QuantizeLinear p ys yz > y", "output y"},
         "QLinearMatMul"},
        {{PRODUCT, "value rs f32 0.01 16", "value rz i8 0 16",
          "DequantizeLinear axis=0 w rs rz > rf", "MatMul xf rf > p", "QuantizeLinear p ys yz > y",
          "output y"},
         "DequantizeLinear MatMul QuantizeLinear"},
        {{PRODUCT, "MatMul xf wf > y", "output y"}, "DequantizeLinear MatMul"},
        {{PRODUCT, "input f f32 2,5,16", "MatMul f wf > p", "QuantizeLinear p ys yz > y",
          "output y"},
         "MatMul QuantizeLinear"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

TEST(test_program_patterns__quantised_moves) {
#define MOVED                                                                      \
    "input x u8 2,6", "input z u8 2,6", "value s f32 0.02", "value t f32 0.02 1",  \
        "value zero u8 117", "value other u8 9", "DequantizeLinear x s zero > xf", \
        "DequantizeLinear z s zero > zf", "list shape 3,4"
    static const program_row rows[] = {
        {{MOVED, "Reshape xf shape > m", "QuantizeLinear m s zero > y", "output y"}, "Reshape"},
        {{MOVED, "Transpose xf > m", "QuantizeLinear m t zero > y", "output y"}, "Transpose"},
        {{MOVED, "Concat axis=0 xf zf xf > m", "QuantizeLinear m s zero > y", "output y"},
         "Concat"},
        // another step; what is no byte among them; what does more; who else wants it
        {{MOVED, "Transpose xf > m", "QuantizeLinear m s other > y", "output y"},
         "DequantizeLinear Transpose QuantizeLinear"},
        {{MOVED, "input f f32 2,6", "Concat axis=0 xf f > m", "QuantizeLinear m s zero > y",
          "output y"},
         "DequantizeLinear Concat QuantizeLinear"},
        {{MOVED, "ReduceMax xf > m", "QuantizeLinear m s zero > y", "output y"},
         "DequantizeLinear ReduceMax QuantizeLinear"},
        {{MOVED, "Transpose xf > m", "QuantizeLinear m s zero > y", "output y", "output m"},
         "DequantizeLinear Transpose QuantizeLinear"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// ---- weights of a few bits in front of a product ----------------------------------------------

#define FOUR_BITS "input x f32 2,5,64", "const w i4 64,7", "const s f32 2,7", "const z i4 2,7"
#define TURNED "input x f32 3,40", "const w u4 7,40", "const s f32 7,3", "const z u4 7,3"

TEST(test_program_patterns__products_of_few_bits) {
    static const program_row rows[] = {
        {{FOUR_BITS, "DequantizeLinear axis=0 block_size=32 w s > f", "MatMul x f > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        {{FOUR_BITS, "DequantizeLinear axis=-2 block_size=32 w s z > f", "MatMul x f > y",
          "output y"},
         "~com.microsoft.MatMulNBits"},
        {{TURNED, "DequantizeLinear axis=1 block_size=16 w s z > f", "Transpose perm=1,0 f > t",
          "MatMul x t > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        {{TURNED, "DequantizeLinear axis=1 block_size=16 w s > f", "Transpose f > t",
          "MatMul x t > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        // one scale, one for each column; 2 bits; 8 bits in blocks
        {{FOUR_BITS, "value one f32 0.1", "DequantizeLinear w one > f", "MatMul x f > y",
          "output y"},
         "~com.microsoft.MatMulNBits"},
        {{FOUR_BITS, "const c f32 7", "const cz i4 7", "DequantizeLinear axis=1 w c cz > f",
          "MatMul x f > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        {{FOUR_BITS, "const v i2 64,7", "DequantizeLinear axis=0 block_size=32 v s > f",
          "MatMul x f > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        {{FOUR_BITS, "const v i8 64,7", "const vz i8 2,7",
          "DequantizeLinear axis=0 block_size=32 v s vz > f", "MatMul x f > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        {{FOUR_BITS, "const v u8 64,7", "DequantizeLinear axis=0 block_size=32 v s > f",
          "MatMul x f > y", "output y"},
         "~com.microsoft.MatMulNBits"},
        // another user takes the real weights
        {{FOUR_BITS, "DequantizeLinear axis=0 block_size=32 w s > f", "MatMul x f > y",
          "ReduceMax f > m", "output y", "output m"},
         "~com.microsoft.MatMulNBits"},
        // blocks along the columns, or short ones; scales along K; the other factor; bytes
        {{"input x f32 5,64", "const w i4 64,32", "const s f32 64,2",
          "DequantizeLinear axis=1 block_size=16 w s > f", "MatMul x f > y", "output y"},
         "MatMul"},
        {{"input x f32 5,64", "const w i4 64,7", "const s f32 8,7",
          "DequantizeLinear axis=0 block_size=8 w s > f", "MatMul x f > y", "output y"},
         "MatMul"},
        {{FOUR_BITS, "const c f32 64", "DequantizeLinear axis=0 w c > f", "MatMul x f > y",
          "output y"},
         "MatMul"},
        {{"input x f32 7,5", "const w i4 64,7", "value s f32 0.1", "DequantizeLinear w s > f",
          "MatMul f x > y", "output y"},
         "MatMul"},
        {{FOUR_BITS, "const v i8 64,7", "value one f32 0.1", "DequantizeLinear v one > f",
          "MatMul x f > y", "output y"},
         "MatMul"},
    };
    program_rows_check(rows, COUNT(rows), NULL);
}

// ---- rotary positions -------------------------------------------------------------------------

#define ANGLES(shape)                                                                           \
    "input x f32 2,3,5,8", "input a f32 " shape, "list zero 0,", "list half 4,", "list end 8,", \
        "list last 3,", "Concat axis=-1 a a > t", "Cos t > c", "Sin t > s"
#define HALVES "Slice x zero half last > first", "Slice x half end last > second"
#define TURN "Neg second > n", "Concat axis=3 n first > r"
#define SUM "Mul x c > xc", "Mul r s > rs", "Add xc rs > y", "output y"

// Computed halves are cut out of the tables; the angles of one batch serve all.
TEST(test_program_patterns__rotary) {
    static const rondo__pass_options plain = {0};
    static const program_row rows[] = {
        {{ANGLES("2,1,5,4"), HALVES, TURN, SUM},
         "~Concat Cos Sin Slice Reshape Slice Reshape RotaryEmbedding"},
        {{ANGLES("1,1,5,4"), HALVES, TURN, "Mul c x > xc", "Mul s r > rs", "Add rs xc > y",
          "output y"},
         "~Concat Cos Sin Slice Reshape Slice Reshape RotaryEmbedding"},
        {{ANGLES("1,5,4"), "Split axis=-1 x > first second", TURN, SUM},
         "~Concat Cos Sin Slice Reshape Slice Reshape RotaryEmbedding"},
        {{"input x f32 2,3,5,8", "value c f32 0.5 5,8", "value s f32 0.7 5,8", "list zero 0,",
          "list half 4,", "list end 8,", "list last 3,", HALVES, TURN, SUM},
         "~RotaryEmbedding"},
        // two batches share the table, and not the list of places
        {{"input x f32 2,3,5,8", "input z f32 7,3,5,8", "value c f32 0.5 5,8",
          "value s f32 0.7 5,8", "list zero 0,", "list half 4,", "list end 8,", "list last 3,",
          HALVES, TURN, SUM, "Slice z zero half last > f2", "Slice z half end last > s2",
          "Neg s2 > n2", "Concat axis=3 n2 f2 > r2", "Mul z c > zc", "Mul r2 s > zs",
          "Add zc zs > w", "output w"},
         "~RotaryEmbedding RotaryEmbedding"},
        // halves that differ, or the same ones twice; no sign; tables for each head
        {{"input x f32 2,3,5,8", "const c f32 5,8", "const s f32 5,8", "list zero 0,",
          "list half 4,", "list end 8,", "list last 3,", HALVES, TURN, SUM},
         "Slice Slice Neg Concat Mul Mul Add"},
        {{ANGLES("2,1,5,4"), "Slice x half end last > second", "Neg second > n",
          "Concat axis=3 n second > r", SUM},
         "Concat Cos Sin Slice Neg Concat Mul Mul Add"},
        {{ANGLES("2,1,5,4"), HALVES, "Concat axis=3 second first > r", SUM},
         "Concat Cos Sin Slice Slice Concat Mul Mul Add"},
        {{ANGLES("2,3,5,4"), HALVES, TURN, SUM},
         "Concat Cos Sin Slice Slice Neg Concat Mul Mul Add"},
    };
    program_rows_check(rows, COUNT(rows), &plain);
}

// ---- gates ------------------------------------------------------------------------------------

// SwiGLU in small ops: the gate's product ends with the activation.
TEST(test_program_patterns__gates) {
    static const rondo__pass_options all = {.fuse_matmul = true, .fuse_elementwise = true};
#define GATE                                                                       \
    "input x f32 2,5,8", "const g f32 8,12", "const u f32 8,12", "MatMul x g > a", \
        "MatMul x u > b", "Sigmoid a > s"
    static const program_row rows[] = {
        {{GATE, "Mul a s > w", "Mul w b > y", "output y"}, "~rondo.MatMul rondo.MatMul Mul"},
        {{GATE, "Mul s a > w", "Mul b w > y", "output y"}, "~rondo.MatMul rondo.MatMul Mul"},
        {{GATE, "Mul a s > w", "Mul w b > y", "output y", "output s"},
         "~rondo.MatMul rondo.MatMul Sigmoid rondo.Elementwise"},
    };
    program_rows_check(rows, COUNT(rows), &all);
}

// ---- Einsum -----------------------------------------------------------------------------------

#define EINSUM(a, b, equation) \
    { "input a f32 " a, "input b f32 " b, "Einsum equation=" equation " a b > y", "output y" }

TEST(test_program_patterns__einsum) {
    static const rondo__pass_options products = {.fuse_matmul = true};
    static const program_row rows[] = {
        {EINSUM("2,3,4", "2,4,5", "bij,bjk->bik"), "~rondo.MatMul"},
        {EINSUM("3,4", "4,5", "ij,jk->ik"), "~rondo.MatMul"},
        // operands and result in other orders, the result's rows of the second operand
        {EINSUM("2,4,3,5", "4,6,5", "bhwc,hkc->bhwk"),
         "~Transpose Reshape rondo.MatMul Reshape Transpose"},
        {EINSUM("2,3,4", "5,4", "bij,kj->kbi"), "~Reshape rondo.MatMul Reshape"},
        {EINSUM("2,3,4,5", "2,3,6,5", "nbhc,nbwc->nbhw"), "~Reshape Reshape rondo.MatMul Reshape"},
        {EINSUM("4,3", "4,5", "ki,kj->ji"), "~rondo.MatMul"},
        // several labels summed over, none, all, axes of one element, an ellipsis, no arrow
        {EINSUM("3,4,5", "5,4,2", "iab,bak->ik"), "~Reshape Transpose Reshape rondo.MatMul"},
        {EINSUM("3", "4", "i,j->ji"), "~Reshape Reshape rondo.MatMul"},
        {EINSUM("7", "7", "i,i->"), "~Reshape Reshape rondo.MatMul Reshape"},
        {EINSUM("2,1,4", "1,4,5", "bij,hjk->bihk"), "~Reshape Reshape rondo.MatMul Reshape"},
        {EINSUM("2,3,4,5", "2,3,5,6", "...ij,...jk->...ik"),
         "~Reshape Reshape rondo.MatMul Reshape"},
        {EINSUM("3,4", "4,5", "ij,jk"), "~rondo.MatMul"},
        // a batch that one operand is broadcast over
        {EINSUM("1,3,4", "2,4,5", "bij,bjk->bik"),
         "~Transpose Reshape Reshape rondo.MatMul Reshape Transpose"},
        // a diagonal, a label of one operand alone, other types, one operand
        {EINSUM("3,3", "3,5", "ii,ik->k"), "Einsum"},
        {EINSUM("3,4,2", "4,5", "ijx,jk->ik"), "Einsum"},
        {{"input a i64 3,4", "input b i64 4,5", "Einsum equation=ij,jk->ik a b > y", "output y"},
         "Einsum"},
        {{"input a f32 3,4", "Einsum equation=ij->ji a > y", "output y"}, "Einsum"},
    };
    program_rows_check(rows, COUNT(rows), &products);
}

// ---- one token --------------------------------------------------------------------------------

TEST(test_program_patterns__appended_attention) {
#define TURNED_HEADS(x)                                                                         \
    "Slice " x " zero half axis > " x "a", "Slice " x " half end axis > " x "b",                \
        "Neg " x "b > " x "m", "Concat axis=-1 " x "m " x "a > " x "t", "Mul " x " c > " x "p", \
        "Mul " x "t s > " x "q", "Add " x "p " x "q > " x "r"
#define TOKEN(sizes)                                                                            \
    "input j f32 1,1,32", "list parts " sizes, "list axis -1,", "list zero 0,", "list half 4,", \
        "list end 8,", "list two 2,", "input c f32 1,1,1,8", "input s f32 1,1,1,8",             \
        "list qs 1,1,2,8", "list ks 1,1,1,8", "list wide 1,1,2,6,8", "list flat 1,2,6,8",       \
        "input K f32 1,1,5,8", "input V f32 1,1,5,8"
#define SPLIT(names)                                                                         \
    "Split axis=-1 j parts > " names, "Reshape q0 qs > q1", "Transpose perm=0,2,1,3 q1 > q", \
        "Reshape k0 ks > k1", "Transpose perm=0,2,1,3 k1 > k", "Reshape v0 ks > v1",         \
        "Transpose perm=0,2,1,3 v1 > v"
#define SHARED_HEADS                                                                   \
    "Unsqueeze kk two > ku", "Expand ku wide > kx", "Reshape kx flat > kf",            \
        "Unsqueeze vv two > vu", "Expand vu wide > vx", "Reshape vx flat > vf",        \
        "Transpose perm=0,1,3,2 kf > ky", "MatMul qr ky > p", "Softmax axis=-1 p > w", \
        "MatMul w vf > o", "Transpose perm=0,2,1,3 o > y", "output y", "output kk", "output vv"
    static const rondo__pass_options gpu = {.fuse_matmul = true,
                                            .fuse_attention = true,
                                            .fuse_elementwise = true,
                                            .append_attention = true};
    static const program_row rows[] = {
        {{TOKEN("16,8,8"), SPLIT("q0 k0 v0"), TURNED_HEADS("q"), TURNED_HEADS("k"),
          "Concat axis=2 K kr > kk", "Concat axis=2 V v > vv", SHARED_HEADS},
         "~rondo.AppendAttention Reshape"},
        // the parts in another order, a row in front of the past, keys that are not turned
        {{TOKEN("8,8,16"), SPLIT("k0 v0 q0"), TURNED_HEADS("q"), TURNED_HEADS("k"),
          "Concat axis=2 K kr > kk", "Concat axis=2 V v > vv", SHARED_HEADS},
         "~Split Reshape Reshape rondo.Rotate Reshape rondo.Rotate Concat Reshape "
         "Concat rondo.Attention Reshape"},
        {{TOKEN("16,8,8"), SPLIT("q0 k0 v0"), TURNED_HEADS("q"), TURNED_HEADS("k"),
          "Concat axis=2 kr K > kk", "Concat axis=2 v V > vv", SHARED_HEADS},
         "~Split Reshape Reshape rondo.Rotate Reshape rondo.Rotate Concat Reshape "
         "Concat rondo.Attention Reshape"},
        {{TOKEN("16,8,8"), SPLIT("q0 k0 v0"), TURNED_HEADS("q"), "Concat axis=2 K k > kk",
          "Concat axis=2 V v > vv", SHARED_HEADS},
         "~Split Reshape Reshape rondo.Rotate Reshape Concat Reshape Concat "
         "rondo.Attention Reshape"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

// ---- many tokens ------------------------------------------------------------------------------

TEST(test_program_patterns__heads_of_many_tokens) {
#define TOKENS(rows)                                                                           \
    "input j f32 1," rows ",32", "list parts 16,8,8", "list axis -1,", "list zero 0,",         \
        "list half 4,", "list end 8,", "input c f32 1,1," rows ",8", "input s f32 " rows ",8", \
        "list qs 1," rows ",2,8", "list ks 1," rows ",1,8", SPLIT("q0 k0 v0")
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_attention = true, .fuse_elementwise = true, .fuse_rows = true};
    static const program_row rows[] = {
        {{TOKENS("5"), TURNED_HEADS("q"), TURNED_HEADS("k"), "output qr", "output kr", "output v"},
         "~rondo.Rotate"},
        // the last part is turned, too; only the first one is
        {{TOKENS("5"), TURNED_HEADS("q"), TURNED_HEADS("k"), TURNED_HEADS("v"), "output qr",
          "output kr", "output vr"},
         "~rondo.Rotate"},
        {{TOKENS("5"), TURNED_HEADS("q"), "output qr", "output k", "output v"}, "~rondo.Rotate"},
        // a part before a turned one is not, a part that others read, one token
        {{TOKENS("5"), TURNED_HEADS("k"), "output q", "output kr", "output v"},
         "~Split Reshape Transpose Reshape rondo.Rotate Reshape"},
        {{TOKENS("5"), TURNED_HEADS("q"), TURNED_HEADS("k"), "output qr", "output kr", "output v",
          "output v0"},
         "~Split Reshape Transpose rondo.Rotate Reshape rondo.Rotate Reshape"},
        {{TOKENS("1"), TURNED_HEADS("q"), TURNED_HEADS("k"), "output qr", "output kr", "output v"},
         "~Split Reshape Reshape rondo.Rotate Reshape rondo.Rotate Reshape"},
        // angles made of a part
        {{"input j f32 1,5,32", "list parts 16,8,8", "list axis -1,", "list zero 0,",
          "list half 4,", "list end 8,", "input c f32 5,8", "list qs 1,5,2,8", "list ks 1,5,1,8",
          SPLIT("q0 k0 v0"), "Cos v > s", TURNED_HEADS("q"), "output qr", "output k", "output v"},
         "~Split Reshape Transpose Reshape Cos rondo.Rotate Reshape"},
        // the place of what makes the heads is not theirs
        {{"input x f32 1,5,4", "const w f32 4,32", "MatMul x w > j", "list parts 16,8,8",
          "list axis -1,", "list zero 0,", "list half 4,", "list end 8,", "input c f32 5,8",
          "input s f32 5,8", "list qs 1,5,2,8", "list ks 1,5,1,8", SPLIT("q0 k0 v0"),
          TURNED_HEADS("q"), TURNED_HEADS("k"), "output qr", "output kr", "output v",
          "place MatMul cpu"},
         "~MatMul@cpu rondo.Rotate"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

TEST(test_program_patterns__gated_products) {
#define GATED(type, rows)                                                            \
    "input x " type " " rows ",8", "const w " type " 8,12", "const v " type " 8,12", \
        "MatMul x w > a", "MatMul x v > b", "Sigmoid a > s", "Mul a s > t"
    static const rondo__pass_options gpu = {
        .fuse_matmul = true, .fuse_elementwise = true, .fuse_rows = true};
    static const program_row rows[] = {
        {{GATED("f16", "16"), "Mul t b > y", "output y"}, "~rondo.MatMul rondo.MatMul"},
        {{GATED("f16", "16"), "Mul b t > y", "output y"}, "~rondo.MatMul rondo.MatMul"},
        {{GATED("f16", "16"), "Mul b t > y", "output y", "output t"}, "~rondo.MatMul rondo.MatMul"},
        {{"input x f16 16,8", "input z f16 16,12", "const w f16 8,12", "MatMul x w > a",
          "Mul z a > y", "output y"},
         "~rondo.MatMul"},
        // few rows, f32, a product that others read, a factor of another shape
        {{GATED("f16", "15"), "Mul t b > y", "output y"}, "~rondo.MatMul rondo.MatMul Mul"},
        {{GATED("f32", "16"), "Mul t b > y", "output y"}, "~rondo.MatMul rondo.MatMul Mul"},
        {{GATED("f16", "16"), "Mul t b > y", "output y", "output b"},
         "~rondo.MatMul rondo.MatMul Mul"},
        {{"input x f16 16,8", "input z f16 12", "const w f16 8,12", "MatMul x w > a", "Mul z a > y",
          "output y"},
         "~rondo.MatMul Mul"},
    };
    program_rows_check(rows, COUNT(rows), &gpu);
}

// ---- roundings that are written out -----------------------------------------------------------

// A Cast to f16 and back is kept in front of a chain of element-wise ops, which calculates in f32.
TEST(test_program_patterns__written_roundings) {
    static const rondo__pass_options chains = {.fuse_elementwise = true};
#define ROUNDED "input x f32 3,8", "input z f32 3,8", "Cast to=10 x > h", "Cast to=1 h > r"
    static const program_row rows[] = {
        {{ROUNDED, "output r"}, "Cast Cast"},
        {{ROUNDED, "Sub x r > y", "output y"}, "Cast rondo.Elementwise"},
        {{ROUNDED, "Add r z > a", "Mul a r > y", "output y"}, "Cast rondo.Elementwise"},
        // what is rounded is a chain of its own
        {{"input x f32 3,8", "input z f32 3,8", "Mul x z > p", "Add p x > s", "Cast to=10 s > h",
          "Cast to=1 h > r", "Sub r s > d", "Abs d > y", "output y"},
         "rondo.Elementwise Cast rondo.Elementwise"},
        {{"input x f32 3,8", "input z f32 3,8", "Mul x z > p", "Add p x > s", "Cast to=10 s > h",
          "Cast to=1 h > r", "Sub r x > d", "Abs d > y", "output y"},
         "rondo.Elementwise rondo.Elementwise"},
        // a chain in f16 has one rounding, at its end
        {{"input x f32 3,8", "input z f16 3,8", "Cast to=10 x > h", "Add h z > y", "output y"},
         "~rondo.Elementwise"},
    };
    program_rows_check(rows, COUNT(rows), &chains);
}

TEST_MAIN()
