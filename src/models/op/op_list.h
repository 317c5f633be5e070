// op/op_list.h — every op by its domain: the identities by which the rest of the library knows ops.
//
// X(domain, name) makes RONDO__<domain>_<name>: RONDO__OP_Conv is Conv of ONNX, RONDO__FUSED_Conv
// the one that passes make. All rows of one op, whatever their versions, have one identity.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#define RONDO_OP_DOMAIN_OP ""
#define RONDO_OP_DOMAIN_FUSED "rondo"
#define RONDO_OP_DOMAIN_ML "ai.onnx.ml"
#define RONDO_OP_DOMAIN_MS "com.microsoft"
#define RONDO_OP_DOMAIN_TRAINING "ai.onnx.preview.training"

// clang-format off
#define RONDO_OP_LIST(X) \
    X(OP, Abs) X(OP, Acos) X(OP, Acosh) X(OP, Add) X(OP, AffineGrid) X(OP, And) X(OP, ArgMax) \
    X(OP, ArgMin) X(OP, Asin) X(OP, Asinh) \
    X(OP, Atan) X(OP, Atanh) X(OP, Attention) X(OP, AveragePool) \
    X(OP, BatchNormalization) X(OP, Bernoulli) X(OP, BitCast) X(OP, BitShift) X(OP, BitwiseAnd) \
    X(OP, BitwiseNot) X(OP, BitwiseOr) X(OP, BitwiseXor) X(OP, BlackmanWindow) \
    X(OP, Cast) X(OP, CastLike) X(OP, CausalConvWithState) \
    X(OP, Ceil) X(OP, Celu) X(OP, CenterCropPad) X(OP, Clip) \
    X(OP, Col2Im) X(OP, Compress) X(OP, Concat) X(OP, ConcatFromSequence) X(OP, Constant) \
    X(OP, ConstantOfShape) X(OP, Conv) X(OP, ConvInteger) X(OP, ConvTranspose) X(OP, Cos) \
    X(OP, Cosh) X(OP, CumProd) X(OP, CumSum) X(OP, DFT) X(OP, DeformConv) X(OP, DepthToSpace) \
    X(OP, DequantizeLinear) X(OP, Det) X(OP, Div) X(OP, Dropout) X(OP, DynamicQuantizeLinear) \
    X(OP, Einsum) X(OP, Elu) X(OP, Equal) X(OP, Erf) X(OP, Exp) X(OP, Expand) X(OP, EyeLike) \
    X(OP, Flatten) X(OP, Floor) X(OP, GRU) X(OP, Gather) X(OP, GatherElements) X(OP, GatherND) \
    X(OP, Gelu) X(OP, Gemm) X(OP, GlobalAveragePool) X(OP, GlobalLpPool) X(OP, GlobalMaxPool) \
    X(OP, Greater) X(OP, GreaterOrEqual) X(OP, GridSample) X(OP, GroupNormalization) \
    X(OP, HammingWindow) X(OP, HannWindow) X(OP, HardSigmoid) X(OP, HardSwish) X(OP, Hardmax) \
    X(OP, Identity) X(OP, If) X(OP, InstanceNormalization) X(OP, IsInf) X(OP, IsNaN) \
    X(OP, LRN) X(OP, LSTM) X(OP, LayerNormalization) X(OP, LeakyRelu) X(OP, Less) \
    X(OP, LessOrEqual) X(OP, LinearAttention) X(OP, Log) \
    X(OP, LogSoftmax) X(OP, Loop) X(OP, LpNormalization) \
    X(OP, LpPool) X(OP, MatMul) X(OP, MatMulInteger) X(OP, Max) X(OP, MaxPool) X(OP, MaxRoiPool) \
    X(OP, MaxUnpool) X(OP, Mean) X(OP, MeanVarianceNormalization) X(OP, MelWeightMatrix) \
    X(OP, Min) X(OP, Mish) X(OP, Mod) X(OP, Mul) X(OP, Multinomial) X(OP, Neg) \
    X(OP, NegativeLogLikelihoodLoss) X(OP, NonMaxSuppression) X(OP, NonZero) X(OP, Not) \
    X(OP, OneHot) X(OP, Optional) X(OP, OptionalGetElement) X(OP, OptionalHasElement) X(OP, Or) \
    X(OP, PRelu) X(OP, Pad) X(OP, Pow) X(OP, QLinearConv) X(OP, QLinearMatMul) \
    X(OP, QuantizeLinear) X(OP, RMSNormalization) X(OP, RNN) X(OP, RandomNormal) \
    X(OP, RandomNormalLike) X(OP, RandomUniform) X(OP, RandomUniformLike) X(OP, Range) \
    X(OP, Reciprocal) X(OP, ReduceL1) X(OP, ReduceL2) X(OP, ReduceLogSum) X(OP, ReduceLogSumExp) \
    X(OP, ReduceMax) X(OP, ReduceMean) X(OP, ReduceMin) X(OP, ReduceProd) X(OP, ReduceSum) \
    X(OP, ReduceSumSquare) X(OP, RegexFullMatch) X(OP, Relu) X(OP, Reshape) X(OP, Resize) \
    X(OP, ReverseSequence) X(OP, RoiAlign) X(OP, RotaryEmbedding) X(OP, Round) \
    X(OP, STFT) X(OP, Scan) X(OP, Scatter) X(OP, ScatterElements) X(OP, ScatterND) X(OP, Selu) \
    X(OP, SequenceAt) X(OP, SequenceConstruct) X(OP, SequenceEmpty) X(OP, SequenceErase) \
    X(OP, SequenceInsert) X(OP, SequenceLength) X(OP, SequenceMap) X(OP, Shape) X(OP, Shrink) \
    X(OP, Sigmoid) X(OP, Sign) X(OP, Sin) X(OP, Sinh) X(OP, Size) X(OP, Slice) X(OP, Softmax) \
    X(OP, SoftmaxCrossEntropyLoss) X(OP, Softplus) X(OP, Softsign) X(OP, SpaceToDepth) \
    X(OP, Split) X(OP, SplitToSequence) X(OP, Sqrt) X(OP, Squeeze) X(OP, StringConcat) \
    X(OP, StringNormalizer) X(OP, StringSplit) X(OP, Sub) X(OP, Sum) X(OP, SwiGLU) X(OP, Swish) \
    X(OP, Tan) X(OP, Tanh) X(OP, TensorScatter) X(OP, TfIdfVectorizer) X(OP, ThresholdedRelu) \
    X(OP, Tile) X(OP, TopK) X(OP, Transpose) X(OP, Trilu) X(OP, Unique) X(OP, Unsqueeze) \
    X(OP, Upsample) X(OP, Where) X(OP, Xor) \
    X(FUSED, AllGather) X(FUSED, AllReduce) X(FUSED, AppendAttention) X(FUSED, Attention) \
    X(FUSED, AttentionGradient) \
    X(FUSED, AveragePool) X(FUSED, BatchNormalization) X(FUSED, BestRows) X(FUSED, BitsRow) \
    X(FUSED, Concat) X(FUSED, Conv) X(FUSED, ConvInteger) X(FUSED, ConvWeights) X(FUSED, Counted) \
    X(FUSED, Elementwise) X(FUSED, Finite) X(FUSED, RoundParts) \
    X(FUSED, GlobalAveragePool) X(FUSED, GroupNormalization) X(FUSED, InsertZeros) \
    X(FUSED, LayFilters) X(FUSED, LossGradient) X(FUSED, MatMul) X(FUSED, MatMulInteger) \
    X(FUSED, MaxPool) \
    X(FUSED, NormGradient) X(FUSED, NormMatMul) X(FUSED, PoolGradient) \
    X(FUSED, QLinearAdd) X(FUSED, QLinearConv) X(FUSED, Rest) X(FUSED, Rotate) \
    X(FUSED, RowProduct) X(FUSED, Softmax) \
    X(FUSED, SpaceToDepth) \
    X(FUSED, Transfer) X(FUSED, TurnFilters) X(FUSED, Unfold) X(FUSED, Update) \
    X(ML, ArrayFeatureExtractor) X(ML, Binarizer) X(ML, CategoryMapper) X(ML, FeatureVectorizer) \
    X(ML, Imputer) X(ML, LabelEncoder) X(ML, LinearClassifier) X(ML, LinearRegressor) \
    X(ML, Normalizer) X(ML, OneHotEncoder) X(ML, SVMClassifier) X(ML, SVMRegressor) \
    X(ML, Scaler) X(ML, TreeEnsemble) X(ML, TreeEnsembleClassifier) X(ML, TreeEnsembleRegressor) \
    X(ML, ZipMap) \
    X(MS, Attention) X(MS, CropAndResize) X(MS, DecoderMaskedMultiHeadAttention) \
    X(MS, DynamicQuantizeLSTM) \
    X(MS, FusedMatMul) X(MS, GatherBlockQuantized) X(MS, GroupQueryAttention) X(MS, Inverse) \
    X(MS, MatMulNBits) X(MS, MoE) X(MS, MultiHeadAttention) X(MS, QMoE) X(MS, RotaryEmbedding) \
    X(MS, Tokenizer) X(MS, TransposeMatMul) \
    X(TRAINING, Adagrad) X(TRAINING, Adam) X(TRAINING, Momentum)
// clang-format on

typedef enum rondo__op_id {
    RONDO__OP_NONE,  // an op of the program's own
#define RONDO_OP_LIST_ID(domain, name) RONDO__##domain##_##name,
    RONDO_OP_LIST(RONDO_OP_LIST_ID)
#undef RONDO_OP_LIST_ID
        RONDO__OP_ID_COUNT
} rondo__op_id;
