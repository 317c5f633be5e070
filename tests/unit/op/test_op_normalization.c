// Awkward semantics of normalisations and softmax.
//
// Expected numbers come from ONNX Runtime on the same inputs, unless a row says
// otherwise.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row batch_normalization_rows[] = {
    {"BatchNormalization", 15, "f32[2,3,2,2]:~1 f32[3]:~2 f32[3]:~3 f32[3]:~4 f32[3]:0.5,1,2",
     "epsilon=f:0.01",
     "f32[2,3,2,2]:-2.531731,-4.697789,-1.328366,-3.494424,-0.9701458,-1.25,-1.529854,"
     "-1.094525,0.1142641,-0.9657964,-0.2714718,0.4228528,-0.8470192,-3.013077,-5.179135,"
     "-1.809712,-1.467664,-1.032336,-1.31219,-1.592044,-0.4257661,0.2685585,-0.811502,"
     "-0.1171774"},
    // Training gives running values: numbers from onnx.reference.
    {"BatchNormalization", 15, "f32[2,3,2,2]:~1 f32[3]:~2 f32[3]:~3 f32[3]:~4 f32[3]:0.5,1,2",
     "training_mode=1 momentum=f:0.75",
     "f32[2,3,2,2]:0.1890807,-1.86672,1.331192,-0.7246085,-0.8973294,-1.214733,-1.532136,"
     "-1.038398,1.135948,-0.8990865,0.4091502,1.717387,1.788037,-0.2677639,-2.323565,"
     "0.8743475,-1.461602,-0.9678636,-1.285267,-1.602671,0.1184309,1.426668,-0.6083672,"
     "0.6998695 f32[3]:0.8945312,0.09375,-0.7070312 f32[3]:0.5165405,0.9462891,1.641541"},
    {"BatchNormalization", 15, "f32[2,3,2,2]:~1 f32[2]:~2 f32[3]:~3 f32[3]:~4 f32[3]:0.5,1,2", "",
     "!BAD_DATA input 1 has shape [2]"},
    {"BatchNormalization", 15, "f32[2,3,2,2]:~1 f32[3]:~2 f32[3]:~3 f32[3]:~4 f32[3]:0.5,1,2", "",
     "!3 BAD_DATA training_mode"},
};
OP_ROWS_TEST(test_op_normalization__batch_normalization, batch_normalization_rows)

static const op_row instance_normalization_rows[] = {
    // Normalises each plane
    {"InstanceNormalization", 6, "f32[2,3,2,2]:~1 f32[3]:~2 f32[3]:~3", "",
     "f32[2,3,2,2]:0.4092008,-1.994703,1.744703,-0.6592008,-0.9617764,-1.296488,-1.631199,"
     "-1.110537,0.9881206,-0.8341963,0.3372931,1.508783,1.46023,-0.3806822,-2.221594,"
     "0.6420467,-1.389463,-0.8688011,-1.203512,-1.538224,0.160054,1.689811,-0.6898109,"
     "0.8399459"},
};
OP_ROWS_TEST(test_op_normalization__instance_normalization, instance_normalization_rows)

static const op_row group_normalization_rows[] = {
    // Version 18 scales by group: numbers from onnx.reference.
    {"GroupNormalization", 18, "f32[1,4,3]:~1 f32[2]:~2 f32[2]:~3", "num_groups=2 epsilon=f:0.01",
     "f32[1,4,3]:-0.2371835,-2.256487,0.8846519,-1.134652,2.006487,-0.01281645,-1.54537,"
     "-1.039021,-1.364531,-0.8581823,-1.183692,-1.509202"},
    {"BatchNormalization", 6, "f32[1,1,2]:1,3 f32[1]:2 f32[1]:1 f32[1]:1 f32[1]:4",
     "is_test=1 epsilon=f:0", "f32[1,1,2]:1,3"},
    {"BatchNormalization", 6, "f32[1,1,2] f32[1] f32[1] f32[1] f32[1]", "",
     "!UNSUPPORTED attribute is_test is 0"},
    {"RMSNormalization", 23, "f32[2,2]:3,4,-6,8 f32[2]:1,2", "epsilon=f:0",
     "f32[2,2]:0.8485281,2.2627417,-0.8485281,2.2627417"},
    {"RMSNormalization", 23, "f32[1,2,2]:1,1,1,1 f32[2,1]:1,2", "axis=1 epsilon=f:3",
     "f32[1,2,2]:0.5,0.5,1,1"},
    {"RMSNormalization", 23, "f16[1,2]:3,4 f32[1]:1", "epsilon=f:0",
     "f32[1,2]:0.8485281,1.1313708"},
    {"RMSNormalization", 23, "f32[2,2] f32[3]", "", "!BAD_DATA input 1 of shape [3] does not"},
    {"RMSNormalization", 23, "f32[2,2] f32[2]", "stash_type=7", "!UNSUPPORTED stash_type"},
    // Pairs of halves, and pairs of neighbours: a quarter turn at place 0, none at place 1.
    {"RotaryEmbedding", 23,
     "f32[1,1,2,4]:1,2,3,4,5,6,7,8 f32[2,2]:1,1,0,0 f32[2,2]:0,0,1,1 i64[1,2]:1,0", "",
     "f32[1,1,2,4]:-3,-4,1,2,5,6,7,8"},
    {"RotaryEmbedding", 23, "f32[1,2,4]:1,2,3,4,5,6,7,8 f32[1,2,1]:0,1 f32[1,2,1]:1,0",
     "num_heads=2 interleaved=1", "f32[1,2,4]:-2,1,-4,3,5,6,7,8"},
    {"RotaryEmbedding", 23, "f32[1,2,1,4]:1,2,3,4,5,6,7,8 f32[1,1,1]:0 f32[1,1,1]:1",
     "rotary_embedding_dim=2", "f32[1,2,1,4]:-2,1,3,4,-6,5,7,8"},
    {"RotaryEmbedding", 23, "f32[1,1,4] f32[1,1,2] f32[1,1,2]", "", "!BAD_DATA num_heads is 0"},
    {"RotaryEmbedding", 23, "f32[1,1,1,3] f32[1,1,1] f32[1,1,1]", "", "!BAD_DATA cannot turn"},
    {"RotaryEmbedding", 23, "f32[1,1,1,2] f32[1,1,2] f32[1,1,2]", "", "!BAD_DATA does not fit"},
    {"RotaryEmbedding", 23, "f32[1,1,1,2] f32[2,1] f32[2,1] i64[1,1]:2", "",
     "!BAD_DATA position 2 is outside [0, 2)"},
    {"RotaryEmbedding", 23, "f32[1,1,1,2] f32[2,1] f32[2,1] i64[1,1]:-1", "",
     "!BAD_DATA position -1 is outside [0, 2)"},
    // Version 21 scales by channel: numbers from onnx.reference.
    {"GroupNormalization", 21, "f32[1,4,3]:~1 f32[4]:~2 f32[4]:~3", "num_groups=2 epsilon=f:0.01",
     "f32[1,4,3]:-0.2371835,-2.256487,0.8846519,-1.433573,-0.8624568,-1.229603,1.533796,"
     "-0.2384257,0.9008597,0.746362,-0.3929233,-1.532209"},
    {"GroupNormalization", 18, "f32[2,3,2,2]:~1 f32[3]:~1 f32[3]:~2", "num_groups=0",
     "!BAD_DATA attribute num_groups is 0"},
    {"GroupNormalization", 18, "f32[2,3,2,2]:~1 f32[3]:~1 f32[3]:~2", "num_groups=2",
     "!BAD_DATA attribute num_groups is 2"},
};
OP_ROWS_TEST(test_op_normalization__group_normalization, group_normalization_rows)

static const op_row layer_normalization_rows[] = {
    // Over two axes with statistics
    {"LayerNormalization", 17, "f32[2,3,2,2]:~1 f32[2,2]:~2 f32[2,2]:~3", "axis=-2",
     "f32[2,3,2,2]:0.4092008,-1.589946,-0.6898108,-0.9649459,1.46023,-1.296488,1.834196,"
     "-0.1368794,-0.8920466,-0.8688011,0.3372931,-1.633783,1.46023,-1.296488,1.834196,"
     "-0.1368794,-0.8920466,-0.8688011,0.3372931,-1.633783,0.4092008,-1.589946,-0.6898108,"
     "-0.9649459 f32[2,3,1,1]:-0.25,0.28125,0.09375,-0.09375,-0.28125,0.25 "
     "f32[2,3,1,1]:1.554039,1.190084,1.190084,1.190084,1.190084,1.554039"},
    // Scale may broadcast: numbers from onnx.reference.
    {"LayerNormalization", 17, "f32[2,3,2]:~1 f32[3,1]:~2", "axis=1",
     "f32[2,3,2]:-0.1131508,-2.149865,0.1851559,-0.1851559,-1.368096,-0.07200506,-1.635516,"
     "1.168226,-0.1153054,0.3944659,-0.2336452,0.9133403"},
    {"LayerNormalization", 17, "f32[2,3,2,2]:~1 f32[3]:~1", "axis=4", "!BAD_DATA axis"},
    {"LayerNormalization", 17, "f32[2,3,2,2]:~1 f32[3]:~1", "", "!BAD_DATA does not fit X"},
};
OP_ROWS_TEST(test_op_normalization__layer_normalization, layer_normalization_rows)

static const op_row lrn_rows[] = {
    // Of even size reaches further up: numbers computed with numpy from the definition.
    {"LRN", 13, "f32[1,4,2,1]:~1", "size=2 alpha=f:0.5 beta=f:0.5 bias=f:2.0",
     "f32[1,4,2,1]:0,-0.7293968,0.3962144,-0.3478261,0.7692308,0.08535792,-0.6666667,"
     "0.5126146"},
    {"LRN", 13, "f32[2,3,2,2]:~1", "size=0", "!BAD_DATA attribute size is 0"},
    // Survives huge size
    {"LRN", 13, "f32[2,3,2,2]:~1", "size=-4611686018427387904", "!BAD_DATA attribute size"},
};
OP_ROWS_TEST(test_op_normalization__lrn, lrn_rows)

static const op_row lp_normalization_rows[] = {
    {"LpNormalization", 1, "f32[3,2]:~1", "p=1 axis=0",
     "f32[3,2]:0,-0.6428571,0.3333333,-0.2857143,0.6666667,0.07142857"},
    // ONNX 1.17: a zero norm gives zeros.
    {"LpNormalization", 1, "f32[1,3]", "p=2", "f32[1,3]"},
    {"LpNormalization", 1, "f32[2,3,2,2]:~1", "p=3", "!BAD_DATA attribute p is 3"},
};
OP_ROWS_TEST(test_op_normalization__lp_normalization, lp_normalization_rows)

static const op_row mean_variance_normalization_rows[] = {
    // Variance over chosen axes
    {"MeanVarianceNormalization", 13, "f32[2,3]:~1", "axes=I:1",
     "~0.0001 f32[2,3]:0.2301741,-1.323501,1.093327,-1.093327,1.323501,-0.2301741"},
    {"MeanVarianceNormalization", 13, "f32[2,3]:~1", "", "!BAD_DATA MeanVarianceNormalization"},
};
OP_ROWS_TEST(test_op_normalization__mean_variance_normalization, mean_variance_normalization_rows)

static const op_row softmax_rows[] = {
    // Version 12 flattens
    {"Softmax", 11, "f32[2,2,3]:~1", "",
     "f32[2,2,3]:0.1187237,0.03854393,0.221805,0.07200955,0.4143863,0.1345315,0.04167126,"
     "0.2398016,0.07785217,0.4480083,0.145447,0.04721973"},
    // Version 13 takes one axis
    {"Softmax", 13, "f32[2,2,3]:~1", "axis=1",
     "f32[2,2,3]:0.6224594,0.08509904,0.6224594,0.3775407,0.914901,0.3775407,0.08509904,"
     "0.6224594,0.6224594,0.914901,0.3775407"},
    // Survives large numbers
    {"Softmax", 13, "f32[1,3]:1000,999,-1000", "", "f32[1,3]:0.7310586,0.2689414,0"},
    // axis may equal the rank: rows of one element.
    {"Softmax", 11, "f32[2,2]:~1", "axis=2", "f32[2,2]:1"},
    {"Softmax", 13, "f32[2,3,2,2]:~1", "axis=-5", "!BAD_DATA axis"},
};
OP_ROWS_TEST(test_op_normalization__softmax, softmax_rows)

static const op_row log_softmax_rows[] = {
    // Softmax survives large numbers
    {"LogSoftmax", 13, "f32[1,3]:1000,999,-1000", "", "f32[1,3]:-0.3132617,-1.313262,-2000.313"},
    // The logarithm does not vanish beside the maximum: exact arithmetic.
    {"LogSoftmax", 13, "f32[1,2]:1e9", "", "f32[1,2]:-0.6931472"},
    {"LogSoftmax", 13, "f64[1,2]:1e16", "", "f64[1,2]:-0.69314718055994531"},
    {"SoftmaxCrossEntropyLoss", 13, "f64[1,2]:1e16 i64[1]:0", "", "f64[]:0.69314718055994531 -"},
};
OP_ROWS_TEST(test_op_normalization__log_softmax, log_softmax_rows)

static const op_row hardmax_rows[] = {
    // Takes the first of equals
    {"Hardmax", 13, "f32[2,3]:1,3,3,2,2,1", "", "f32[2,3]:0,1,0,1,0"},
};
OP_ROWS_TEST(test_op_normalization__hardmax, hardmax_rows)

TEST_MAIN()
