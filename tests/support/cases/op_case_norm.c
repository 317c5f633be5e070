// The op cases of normalisations by groups, of all normalisations far from 0, of losses and
// optimisers, and of the way back through pools; see op_cases.h for their writing.
// rondo.GroupNormalization stands in both layouts and each of a GPU's ways (their number wraps):
// slices of the channels, clusters of all sizes, parts; and what none of them takes.
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

#define NORM(inputs, attributes) \
    { "rondo.GroupNormalization", 17, inputs, attributes, 1 }
#define LAST(inputs, attributes)                           \
    NORM(inputs, "channels_last=1 way=0 " attributes),     \
        NORM(inputs, "channels_last=1 way=1 " attributes), \
        NORM(inputs, "channels_last=1 way=2 " attributes), \
        NORM(inputs, "channels_last=1 way=3 " attributes)
// In all types of floats.
#define FAR(op, opset, x, gain, shift, attributes, outputs)                 \
    {op, opset, "T" x " T" gain " T" shift, attributes, outputs}, {         \
        op, opset, "bf16" x " bf16" gain " bf16" shift, attributes, outputs \
    }
#define ENDING(text)                                                                       \
    NORM("T[2,5,7,8] f32[8]:w f32[8]:w", "groups=4 channels_last=1 activation=" text),     \
        NORM("T[2,8,5,7] f32[8]:w f32[8]:w", "groups=4 channels_last=0 activation=" text), \
        NORM("T[2,8,4,8] T[8]:w T[8]:w", "groups=2 channels_last=0 activation=" text)

const op_case op_norm_cases[] = {
    // each channel by itself, each image by itself, groups within pieces, of pieces, across pieces
    LAST("T[1,16,16,16] f32[16]:w f32[16]:w", "groups=16 activation=leaky_relu alpha=0.2"),
    LAST("T[2,12,11,16] f32[16]:w f32[16]:w", "groups=4 activation=silu"),
    LAST("T[3,9,9,32] T[32]:w T[32]:w", "groups=1 epsilon=0.001"),
    LAST("T[1,32,32,64] f32[64]:w f32[64]:w", "groups=4 activation=silu"),
    LAST("T[1,20,20,96] f32[96]:w f32[96]:w", "groups=32 activation=relu"),
    LAST("T[1,70,9,40] f32[40]:w f32[40]:w", "groups=8"),
    LAST("T[2,6,5,72] T[72] T[72]", "groups=8"),
    LAST("T[1,8,8,320] f32[320]:w f32[320]:w", "groups=32 activation=silu"),
    // numbers of channels that no wide load goes into; one axis, three
    LAST("T[2,7,9,3] T[3]:w T[3]:w", "groups=3"),
    LAST("T[1,9,9,3] T[3]:w T[3]:w", "groups=1"),
    LAST("T[2,33,10] T[10]:w T[10]:w", "groups=5 activation=tanh"),
    LAST("T[1,5,6,7,20] f32[20]:w f32[20]:w", "groups=10"),
    LAST("T[1,4,5,66] f32[66]:w f32[66]:w", "groups=2"),
    // one pixel, fewer than blocks of a cluster, one channel
    LAST("T[3,1,1,16] T[16]:w T[16]:w", "groups=2"),
    LAST("T[1,3,1,16] T[16]:w T[16]:w", "groups=16"),
    LAST("T[2,5,5,1] T[1]:w T[1]:w", "groups=1"),
    // more than clusters hold
    LAST("T[1,190,181,8] f32[8]:w f32[8]:w", "groups=8 activation=silu"),
    LAST("T[2,60,70,24] f32[24]:w f32[24]:w", "groups=8"),
    // a mean that is far from 0: in f32 only what is seen from a pivot keeps the digits
    LAST("T[1,15,16,8]:=10000,10001,10003,9999.5,10002 f32[8]:w f32[8]:w", "groups=8"),
    // groups so wide, or so odd, that a slice fills a block, or more
    LAST("T[2,3,3,2048] T[2048]:w T[2048]:w", "groups=1"),
    LAST("T[1,2,3,2040] f32[2040]:w f32[2040]:w", "groups=8"),
    LAST("T[2,2,3,4104] T[4104]:w T[4104]:w", "groups=1 activation=relu"),
    NORM("T[2,3,5,1030] T[1030]:w T[1030]:w", "groups=2 channels_last=1 activation=relu"),
    NORM("bf16[2,9,9,24] bf16[24]:w bf16[24]:w", "groups=3 channels_last=1 activation=silu"),
    NORM("bf16[2,24,9,8] f32[24]:w f32[24]:w", "groups=3 channels_last=0 activation=silu"),
    ENDING("none"),
    ENDING("relu"),
    ENDING("clip alpha=-0.5 beta=0.75"),
    ENDING("leaky_relu alpha=0.2"),
    ENDING("sigmoid"),
    ENDING("tanh"),
    ENDING("gelu"),
    ENDING("silu"),
    ENDING("hard_swish"),
    ENDING("gelu_tanh"),
    // positions of a transformer
    {"rondo.Rotate", 17, "T[2,3,5,16] T[1,1,5,16] T[5,16]", "", 1},
    {"rondo.Rotate", 17, "T[1,8,1,64] T[1,1,1,64] T[1,1,1,64]", "", 1},
    {"rondo.Rotate", 17, "T[2,7,6] T[2,7,1] T[6]", "", 1},
    {"rondo.Rotate", 17, "T[3,40,9,256] T[3,1,9,256] T[3,40,9,1]", "", 1},
    // one token over a cache: a head for each, heads that share, parts of the keys, wide heads
    {"rondo.AppendAttention", 17, "T[1,1,192] T[1,2,5,32] T[1,2,5,32] T[32] T[1,1,1,32]",
     "heads=2 shape=1,1,64 scale=0.2", 3},
    {"rondo.AppendAttention", 17, "T[2,1,384] T[2,2,37,32] T[2,2,37,32] T[32] T[32]",
     "heads=8 shape=2,8,1,32 scale=0.17", 3},
    {"rondo.AppendAttention", 17, "T[1,1,768] T[1,2,511,64] T[1,2,511,64] T[64] T[64]",
     "heads=8 shape=1,8,64 scale=0.125", 3},
    {"rondo.AppendAttention", 17, "T[1,768] T[1,1,130,128] T[1,1,130,128] T[128] T[128]",
     "heads=4 shape=1,512 scale=0.09", 3},
    {"rondo.AppendAttention", 17, "T[1,1,320] T[1,1,1029,32] T[1,1,1029,32] T[32] T[32]",
     "heads=8 shape=1,256 scale=0.2", 3},
    // heads that two blocks share, three each, and an odd number of them, which one block has
    {"rondo.AppendAttention", 17, "T[2,1,512] T[2,2,70,32] T[2,2,70,32] T[32] T[32]",
     "heads=12 shape=2,12,32 scale=0.2", 3},
    {"rondo.AppendAttention", 17,
     "f16[1,1,768] f16[1,1,150,256] f16[1,1,150,256] f16[256] f16[256]",
     "heads=1 shape=1,256 scale=0.06", 3},
    {"rondo.AppendAttention", 17, "T[1,1,320] T[1,1,64,64] T[1,1,64,64] T[64] T[64]",
     "heads=3 shape=1,192 scale=0.12", 3},
    // what stands behind a ConvTranspose beside its skip
    {"rondo.Concat", 17, "T[1,4,6,32] T[1,8,12,24]", "blocks=2,1", 1},
    {"rondo.Concat", 17, "T[2,9,6,5] T[2,3,2,63] T[2,9,6,1]", "blocks=1,3,1", 1},
    {"rondo.Concat", 17, "T[2,3,5,16]", "blocks=4,", 1},
    {"rondo.Concat", 17, "f64[1,2,2,8] f64[1,4,4,3]", "blocks=2,1", 1},
    NORM("T[1,16,64,66] f32[16]:w f32[16]:w", "groups=16 channels_last=0 activation=silu"),

    // ---- a mean that is far from 0 costs no digits, in no form: a warp, a block, any place
    FAR("LayerNormalization", 17, "[9,192]:f", "[192]", "[192]", "", 3),
    FAR("LayerNormalization", 17, "[3,5000]:f", "[5000]", "[5000]", "", 3),
    FAR("LayerNormalization", 17, "[4,7,33]:f", "[7,33]", "[33]", "axis=1", 3),
    {"LayerNormalization", 17, "T[5,7,31]:f T[31]", "", 1},
    FAR("InstanceNormalization", 6, "[2,3,24,25]:f", "[3]", "[3]", "", 1),
    FAR("InstanceNormalization", 6, "[2,3,7]:f", "[3]", "[3]", "", 1),
    FAR("InstanceNormalization", 6, "[1,2,300,301]:f", "[2]", "[2]", "", 1),
    FAR("GroupNormalization", 18, "[2,8,6,6]:f", "[4]", "[4]", "num_groups=4", 1),
    FAR("GroupNormalization", 21, "[2,8,5,7]:f", "[8]", "[8]", "num_groups=2", 1),
    FAR("GroupNormalization", 21, "[1,4,170,171]:f", "[4]", "[4]", "num_groups=2", 1),
    FAR("rondo.GroupNormalization", 17, "[2,8,5,7]:f", "[8]", "[8]",
        "groups=4 channels_last=0 activation=silu", 1),
    FAR("rondo.GroupNormalization", 17, "[2,2,3,1030]:f", "[1030]", "[1030]",
        "groups=2 channels_last=1", 1),
    LAST("T[1,16,16,16]:f f32[16]:w f32[16]:w", "groups=16"),
    LAST("T[2,12,11,16]:f f32[16]:w f32[16]:w", "groups=4"),
    LAST("T[2,33,10]:f T[10]:w T[10]:w", "groups=5"),
    LAST("T[2,60,70,24]:f f32[24]:w f32[24]:w", "groups=8"),
    LAST("bf16[2,9,9,24]:f bf16[24]:w bf16[24]:w", "groups=3"),
    {"MeanVarianceNormalization", 13, "T[2,3,5,7]:f", "", 1},
    {"MeanVarianceNormalization", 13, "T[2,3,50,70]:f", "axes=2,3", 1},
    {"MeanVarianceNormalization", 13, "bf16[2,3,50,7]:f", "axes=1,3", 1},
    {"BatchNormalization", 15, "T[4,3,6,5]:f T[3]:p T[3] T[3]:f T[3]:p", "training_mode=1", 3},
    {"BatchNormalization", 15, "bf16[4,3,6,5]:f bf16[3]:p bf16[3] bf16[3]:f bf16[3]:p",
     "training_mode=1", 3},
    {"BatchNormalization", 9, "T[4,3,6,5]:f T[3]:p T[3] T[3]:f T[3]:p", "", 5},
    {"BatchNormalization", 15, "T[4,3,6,5]:f T[3]:p T[3] T[3]:f T[3]:p", "", 1},
    {"BatchNormalization", 15, "T[40,3]:f T[3]:p T[3] T[3]:f T[3]:p", "", 1},
    {"BatchNormalization", 15, "bf16[4,3,6]:f bf16[3]:p bf16[3] bf16[3]:f bf16[3]:p", "", 1},
    {"rondo.BatchNormalization", 17, "T[5,7,6,3]:f f32[3]:p f32[3] f32[3]:f f32[3]:p",
     "channels_last=1", 5},
    {"rondo.BatchNormalization", 17, "T[9,40,5,16]:f f32[16]:p f32[16] f32[16] f32[16]:p",
     "channels_last=1", 5},
    {"rondo.BatchNormalization", 17, "T[64,30,31,5]:f f32[5]:p f32[5] f32[5]:f f32[5]:p",
     "channels_last=1", 5},
    {"rondo.BatchNormalization", 17, "T[3,16,8,8] f32[16]:p f32[16] f32[16] f32[16]:p", "", 3},
    {"rondo.BatchNormalization", 17, "T[3,16,8,8] f32[16]:p f32[16] f32[16] f32[16]:p", "relu=1",
     5},
    {"rondo.BatchNormalization", 17, "T[3,5,9,7]:f f32[5]:p f32[5] f32[5] f32[5]:p T[3,5,9,7]",
     "relu=1", 5},
    {"rondo.BatchNormalization", 17,
     "T[9,40,5,16]:f f32[16]:p f32[16] f32[16] f32[16]:p T[9,40,5,16]", "channels_last=1 relu=1",
     5},
    {"rondo.BatchNormalization", 17,
     "T[9,7,5,24]:f f32[24]:p f32[24] f32[24] f32[24]:p T[9,7,5,24]", "channels_last=1", 5},
    {"rondo.NormGradient", 17, "T[3,4,5,6] T[3,4,5,6] f32[4] f32[4] f32[4]:p", "", 3},
    {"rondo.NormGradient", 17, "f32[3,16,4,8] T[3,16,4,8] f32[16] f32[16] f32[16]:p T[3,16,4,8]",
     "", 3},
    {"rondo.NormGradient", 17, "T[7,9,5,24] T[7,9,5,24] f32[24] f32[24] f32[24]:p T[7,9,5,24]",
     "channels_last=1", 3},
    {"rondo.NormGradient", 17, "T[65,30,31,5] T[65,30,31,5] f32[5] f32[5] f32[5]:p T[65,30,31,5]",
     "channels_last=1", 3},
    {"rondo.NormGradient", 17, "f32[40,3] T[40,3] f32[3] f32[3] f32[3]:p", "", 3},
    {"rondo.NormGradient", 17, "T[3,5,70] T[3,5,70] f32[70]", "", 3},
    {"rondo.NormGradient", 17, "f32[37,768] T[37,768] f32[768]", "epsilon=0.001", 3},
    {"rondo.NormGradient", 17, "T[9,2056] T[9,2056] f32[2056]", "", 3},
    // Winograd's tiles of 4 x 4 and 2 x 2 that end behind y, several blocks, all that is added
    {"rondo.Conv", 17, "T[2,13,10,32] T[48,32,3,3]:w T[48] T[2,13,10,48]",
     "dilations=1,1 channels_last=1 kernel_shape=3,3 strides=1,1 pads=1,1,1,1 activation=relu", 1},
    {"rondo.Conv", 17, "T[1,18,7,64] T[32,64,3,3]:w - T[1,16,9,32]",
     "dilations=1,1 channels_last=1 kernel_shape=3,3 strides=1,1 pads=0,1,0,3 activation=gelu", 1},
    {"rondo.Conv", 17, "T[1,4,4,32] T[64,32,3,3]:w T[64]",
     "dilations=1,1 channels_last=1 kernel_shape=3,3 strides=1,1 pads=1,1,1,1", 1},
    {"rondo.Conv", 17, "T[1,7,7,16] T[16,16,3,3]:w",
     "dilations=1,1 channels_last=1 kernel_shape=3,3 strides=1,1 pads=2,2,2,2", 1},
    {"rondo.Conv", 17, "T[1,65,66,16] T[32,16,3,3]:w T[32]",
     "dilations=1,1 channels_last=1 kernel_shape=3,3 strides=1,1 pads=1,1,1,1", 1},
    {"rondo.Conv", 17, "T[2,11,9,40]:v T[5,8,7,6]:v",
     "group=5 kernel_shape=7,6 strides=1,1 dilations=1,2 pads=1,2,0,3 channels_last=1", 1},
    {"ConvTranspose", 11, "T[2,6,7,5] T[6,8,3,3] T[24]", "group=3 strides=2,2 pads=1,0,1,1", 1},
    {"ConvTranspose", 11, "T[3,20,9,11] T[20,33,2,2]", "strides=2,2 output_padding=1,0", 1},
    {"ConvTranspose", 11, "T[1,5,70] T[5,7,5]:w T[7]", "strides=2 pads=3,2", 1},
    {"Gather", 13, "T[2,3,9] i64[2,4]:n9", "axis=2", 1},
    {"Gather", 13, "i64[3,9]:n99 i32[4]:n9", "axis=1", 1},
    {"rondo.LossGradient", 17, "T[9,33]:n9 i64[9,1]:i33 T[9,1]", "", 1},
    {"rondo.LossGradient", 17, "f32[3,2000]:n9 i32[3,1]:i2000 f32[3,1]:=0,1,2", "to=10", 1},
    {"rondo.LossGradient", 17, "T[3,5,4]:n9 i64[3,1,4]:i5 T[3,1,4]", "", 1},
    {"LogSoftmax", 13, "T[9,33]:f", "", 1},
    {"LogSoftmax", 13, "T[2,3000]:f", "", 1},
    {"LogSoftmax", 13, "T[3,9,5]:f", "axis=1", 1},
    {"LogSoftmax", 11, "T[3,9,5]:f", "axis=1", 1},
    {"LogSoftmax", 13, "bf16[9,33]:f", "", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[5,7]:f i64[5]:i7", "reduction=none", 2},
    {"SoftmaxCrossEntropyLoss", 13, "T[5,7,3]:f i64[5,3]:i7", "", 2},
    {"ReduceLogSumExp", 18, "T[5,70]:f i64[1]:=1", "", 1},
    // folded into a product, with moments that a product left and without
    {"rondo.NormMatMul", 17, "T[20,64]:f T[64,48]:w T[48] - T[64]:w T[64]:w", "", 1},
    {"rondo.NormMatMul", 17, "T[20,64]:f T[64,48]:w - T[20,48] T[64]:w -", "", 2},
    // ---- losses and optimisers
    {"NegativeLogLikelihoodLoss", 13, "T[7,5] i64[7]:i5", "", 1},
    {"NegativeLogLikelihoodLoss", 13, "T[3,5,6,2] i32[3,6,2]:i5 T[5]:p",
     "reduction=sum ignore_index=2", 1},
    {"NegativeLogLikelihoodLoss", 13, "T[3,5,6] i64[3,6]:i5 T[5]:p", "reduction=none", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[70,50] i64[70]:i50", "", 2},
    {"SoftmaxCrossEntropyLoss", 13, "T[3,5,6] i64[3,6]:i5 T[5]:p", "ignore_index=0", 2},
    {"SoftmaxCrossEntropyLoss", 13, "T[3,5,6] i64[3,6]:i5", "reduction=none", 1},
    {"SoftmaxCrossEntropyLoss", 13, "T[41,700]:n9 i32[41]:i700", "ignore_index=3 reduction=sum", 1},
    {"ai.onnx.preview.training.Adagrad", 1, "f32[] i64[]:=3 T[5,7] T[5,7] T[5,7]:p",
     "decay_factor=0.1 norm_coefficient=0.01", 2},
    {"ai.onnx.preview.training.Adam", 1,
     "f32[] i64[]:i9 T[5] T[3] T[5] T[3] T[5] T[3] T[5]:p T[3]:p",
     "epsilon=0.001 norm_coefficient=0.01 norm_coefficient_post=0.02", 6},
    {"ai.onnx.preview.training.Momentum", 1, "f32[] i64[]:=0 T[5,7] T[5,7] T[5,7]",
     "alpha=0.9 beta=0.8 mode=nesterov norm_coefficient=0.01", 2},
    {"ai.onnx.preview.training.Momentum", 1, "f32[] i64[]:=4 T[5,7] T[5,7] T[5,7]",
     "alpha=0.9 beta=0.8 mode=standard norm_coefficient=0.01", 2},
    {"rondo.PoolGradient", 17, "T[2,3,4,5] T[2,3,9,8]", "kernel_shape=3,2 strides=2,2 pads=0,1,0,1",
     1},
    {"rondo.PoolGradient", 17, "f32[2,4,5,24] T[2,8,9,24]",
     "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 channels_last=1", 1},
    {"rondo.PoolGradient", 17, "T[1,2,10,18]:n2 T[1,2,19,35]:n2",
     "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 1},
    {"rondo.PoolGradient", 17, "T[1,9,9,144]:n2 T[1,18,18,144]:n2",
     "kernel_shape=3,3 strides=2,2 pads=1,1,1,1 channels_last=1", 1},
    {"rondo.PoolGradient", 17, "T[2,4,4,6]:n2 T[2,8,8,6]:n2",
     "kernel_shape=2,2 strides=2,2 channels_last=1", 1},
};

const size_t op_norm_case_count = sizeof(op_norm_cases) / sizeof(op_norm_cases[0]);
