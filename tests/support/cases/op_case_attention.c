// The op cases of op/attention and of what surrounds it in a transformer; see op_cases.h for their
// writing. On a GPU each is run in several of the kernel's ways (their number wraps).
// SPDX-License-Identifier: Apache-2.0
#include "support/cases/op_cases.h"

#define ONNX(inputs, attributes, outputs)                      \
    {"Attention", 25, inputs, "way=0 " attributes, outputs}, { \
        "Attention", 25, inputs, "way=2 " attributes, outputs  \
    }
#define GROUPED(inputs, attributes, outputs)                                          \
    {"com.microsoft.GroupQueryAttention", 1, inputs, "way=0 " attributes, outputs}, { \
        "com.microsoft.GroupQueryAttention", 1, inputs, "way=1 " attributes, outputs  \
    }

// A known mask, in each of the ways.
#define CAUSAL(inputs, attributes)                                            \
    {"rondo.Attention", 17, inputs, "scale=0.25 way=0 " attributes, 1},       \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=1 " attributes, 1},   \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=2 " attributes, 1},   \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=3 " attributes, 1},   \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=4 " attributes, 1},   \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=5 " attributes, 1},   \
        {"rondo.Attention", 17, inputs, "scale=0.25 way=6 " attributes, 1}, { \
        "rondo.Attention", 17, inputs, "scale=0.25 way=7 " attributes, 1      \
    }

const op_case op_attention_cases[] = {
    CAUSAL("T[1,2,150,64] T[1,2,150,64] T[1,2,150,64] T[150,150]:t", ""),
    CAUSAL("T[2,1,70,20] T[2,1,300,20] T[2,1,300,24] T[70,300]:t", ""),
    // groups, causal, past and present
    ONNX("T[2,4,5,16] T[2,2,7,16] T[2,2,7,24]", "", 1),
    ONNX("T[2,4,21,16] T[2,4,21,16] T[2,4,21,16]", "is_causal=1", 1),
    ONNX("T[1,6,3,16] T[1,2,3,16] T[1,2,3,16] - T[1,2,40,16] T[1,2,40,16]", "is_causal=1", 3),
    ONNX("T[2,1,96] T[2,1,32] T[2,1,32] - T[2,2,70,16] T[2,2,70,16]",
         "q_num_heads=6 kv_num_heads=2 softcap=2.5", 3),
    ONNX("T[2,4,3,16] T[2,2,50,16] T[2,2,50,16] - - - i64[2]:i51", "is_causal=1", 1),
    ONNX("T[3,2,2,8] T[3,1,140,8] T[3,1,140,8] - - - i64[3]:=0,140,77", "", 1),
    ONNX("T[1,1,65,16] T[1,1,65,16] T[1,1,65,16]", "left_window_size=3 right_window_size=2", 1),
    ONNX("T[1,2,33,16] T[1,2,70,16] T[1,2,70,16] - - - i64[1]:=66",
         "left_window_size=20 is_causal=1", 1),
    // masks
    ONNX("T[2,4,5,16] T[2,2,9,16] T[2,2,9,16] T[5,9]", "", 1),
    ONNX("T[2,4,5,16] T[2,2,9,16] T[2,2,9,16] bool[4,5,9]", "is_causal=1", 1),
    ONNX("T[2,4,5,16] T[2,2,9,16] T[2,2,9,16] bool[2,1,1,6]", "", 1),
    ONNX("T[1,3,17,16] T[1,3,40,16] T[1,3,40,16] T[1,3,17,40]", "scale=0.5", 1),
    ONNX("T[1,3,17,16] T[1,3,40,16] T[1,3,40,16] bool[17,40]:=0", "", 1),
    // the way back
    {"rondo.AttentionGradient", 17, "T[2,70,64] T[2,70,64] T[2,70,64] T[2,70,64]",
     "num_heads=4 scale=0.25 is_causal=1", 3},
    {"rondo.AttentionGradient", 17, "f16[1,130,128] f16[1,130,128] f16[1,75,128] f16[1,75,128]",
     "num_heads=2 scale=0.125", 3},
    {"rondo.AttentionGradient", 17, "T[1,140,96] T[1,140,96] T[1,33,96] T[1,33,96]",
     "num_heads=1 scale=0.1 is_causal=1", 3},
    {"rondo.AttentionGradient", 17, "T[2,20,32] T[2,20,32] T[2,20,32] T[2,20,32]",
     "num_heads=2 scale=0.25 is_causal=1 joined=1", 1},
    {"rondo.AttentionGradient", 17, "T[1,5,12] T[1,5,20] T[1,9,20] T[1,9,12]",
     "num_heads=4 scale=0.5", 3},
    // scores
    {"Attention", 24, "T[1,4,3,8] T[1,2,5,8] T[1,2,5,8] T[3,5]",
     "qk_matmul_output_mode=0 softcap=1.5", 4},
    {"Attention", 24, "T[1,4,3,8] T[1,2,5,8] T[1,2,5,8] T[3,5]",
     "qk_matmul_output_mode=1 softcap=1.5", 4},
    {"Attention", 24, "T[1,4,3,8] T[1,2,5,8] T[1,2,5,8] T[3,5]",
     "qk_matmul_output_mode=2 is_causal=1", 4},
    {"Attention", 24, "T[1,4,3,8] T[1,2,5,8] T[1,2,5,8] bool[3,5]:=0,0,0,0,0,1,0",
     "qk_matmul_output_mode=3 softmax_precision=1", 4},
    {"Attention", 24, "bf16[1,4,3,16] bf16[1,2,20,16] bf16[1,2,20,16] bf16[3,20]", "is_causal=1",
     3},
    // com.microsoft: a prompt, a step in a shared buffer, a chunk
    GROUPED("T[2,3,64] T[2,3,32] T[2,3,32] T[2,2,0,16] T[2,2,0,16] i32[2]:=2,1 i32[1]:=3",
            "num_heads=4 kv_num_heads=2", 3),
    GROUPED("T[2,1,128] - - T[2,2,80,16] T[2,2,80,16] i32[2]:=66,5 i32[1]:=80 T[90,8]:w T[90,8]:w",
            "num_heads=4 kv_num_heads=2 do_rotary=1", 3),
    GROUPED("T[1,4,64] T[1,4,16] T[1,4,16] T[1,1,9,16] T[1,1,9,16] i32[1]:=8 i32[1]:=9 T[90,4]:w "
            "T[90,4]:w i64[1,4]:=3,7,1,0",
            "num_heads=4 kv_num_heads=1 do_rotary=1 rotary_interleaved=1 local_window_size=3", 3),
    GROUPED("T[1,2,64] T[1,2,32] T[1,2,32] T[1,2,3,16] T[1,2,3,16] i32[1]:=4 i32[1]:=5 - - - "
            "T[1,4,2,5] T[4] - - T[16] T[16]",
            "num_heads=4 kv_num_heads=2 softcap=2.0", 3),
    GROUPED("T[1,2,64] T[1,2,32] T[1,2,32] T[1,2,70,16] T[1,2,70,16] i32[1]:=71 i32[1]:=72",
            "num_heads=4 kv_num_heads=2 smooth_softmax=1 qk_output=2", 4),
    {"com.microsoft.GroupQueryAttention", 1,
     "f32[1,2,64] f32[1,2,32] f32[1,2,32] - - i32[1]:=1 i32[1]:=2",
     "num_heads=4 kv_num_heads=2 qk_output=1 causal=0", 4},
    {"com.microsoft.MultiHeadAttention", 1, "T[2,5,32] T[2,7,32] T[2,7,48] T[112]", "num_heads=2",
     3},
    {"com.microsoft.MultiHeadAttention", 1,
     "T[2,5,32] T[2,3,32] T[2,3,32] - i32[2,7]:i2 T[1,2,5,7] T[2,2,4,16] T[2,2,4,16]",
     "num_heads=2 mask_filter_value=-30.0", 3},
    {"com.microsoft.MultiHeadAttention", 1, "T[2,5,32] T[2,2,3,16] T[2,2,3,16] T[96] i32[2]:=2,3",
     "num_heads=2", 1},
    {"com.microsoft.MultiHeadAttention", 1, "T[2,5,2,3,16] - - - i32[2,5,5]:i2",
     "num_heads=2 unidirectional=1", 1},
    {"com.microsoft.MultiHeadAttention", 1, "T[2,5,32] T[2,3,2,2,16]", "num_heads=2", 1},
    {"com.microsoft.Attention", 1,
     "T[2,5,24] T[24,96]:w T[96] i32[4]:=4,5,1,0 T[2,2,2,3,16] T[2,2,5,8]",
     "num_heads=2 mask_filter_value=-30.0", 2},
    {"com.microsoft.Attention", 1, "T[2,5,24] T[24,80] - i32[2,5]:i2",
     "num_heads=2 qkv_hidden_sizes=32,32,16 unidirectional=1 mask_filter_value=-30.0", 1},
    {"com.microsoft.DecoderMaskedMultiHeadAttention", 1,
     "T[2,1,32] T[2,1,32] T[2,1,32] i32[2,5]:i2 - T[2,2,4,16] T[2,2,4,16] - - - T[96]",
     "num_heads=2", 3},
    // what stands around it
    {"RotaryEmbedding", 23, "T[2,3,5,16] T[9,6]:w T[9,6]:w i64[2,5]:i9", "rotary_embedding_dim=12",
     1},
    {"RotaryEmbedding", 23, "T[2,5,48] T[2,5,8] T[2,5,8]", "num_heads=3 interleaved=1", 1},
    {"RotaryEmbedding", 23, "bf16[2,5,48] bf16[2,5,8] bf16[2,5,8]", "num_heads=3", 1},
    {"com.microsoft.RotaryEmbedding", 1, "T[2,5,48] i64[1]:=3 T[9,8]:w T[9,8]:w", "", 1},
    {"com.microsoft.RotaryEmbedding", 1, "T[2,3,5,16] i64[2,5]:i9 T[9,8]:w T[9,8]:w",
     "interleaved=1", 1},
    {"TensorScatter", 24, "T[2,3,9,5] T[2,3,4,5] i64[2]:i6", "", 1},
    {"TensorScatter", 24, "T[2,3,9,5] T[2,3,4,5] i64[2]:=7,25", "mode=circular", 1},
    {"TensorScatter", 24, "u8[2,9,5]:i250 u8[2,2,5]:i250", "axis=1", 1},
    {"LinearAttention", 27, "T[2,5,48] T[2,5,24] T[2,5,80] T[2,2,12,40] - T[2,5,2]",
     "q_num_heads=4 kv_num_heads=2 update_rule=delta", 2},
    {"LinearAttention", 27, "T[2,5,48] T[2,5,24] T[2,5,80] f32[2,2,12,40] T[2,5,24] T[2,5,1]",
     "q_num_heads=4 kv_num_heads=2", 2},
    {"LinearAttention", 27, "T[1,1,32] T[1,1,32] T[1,1,32] - T[1,1,2]",
     "q_num_heads=2 kv_num_heads=2 update_rule=gated scale=0.5", 2},
    {"LinearAttention", 27, "T[1,3,32] T[1,3,32] T[1,3,32]",
     "q_num_heads=2 kv_num_heads=2 update_rule=linear", 1},
    {"CausalConvWithState", 27, "T[2,5,7] T[5,1,4] T[5] T[2,5,3]", "activation=silu", 2},
    {"CausalConvWithState", 27, "T[2,5,2] T[5,1,4]", "", 2},
    {"CausalConvWithState", 27, "T[2,5,2] T[5,1,1]", "activation=swish", 1},
    // queries, keys and values side by side, of which attention reads some where they lie
    {"Split", 13, "T[2,5,24] i64[3]:=8,6,10", "axis=2 unread=4", 3},
    {"Split", 13, "T[2,5,24] i64[3]:=8,6,10", "axis=-1 unread=1", 3},
    {"Split", 13, "T[6,8] i64[3]:=2,3,1", "axis=0 unread=2", 3},
    {"Split", 18, "T[7,3]", "axis=0 num_outputs=3 unread=6", 3},
    {"Split", 11, "T[7,3]", "axis=0 split=1,2,4 unread=3", 3},
    {"Swish", 24, "T[3,50]", "alpha=1.5", 1},
    {"Swish", 24, "f64[50]", "", 1},
    {"SwiGLU", 28, "T[3,50] T[3,50]", "", 1},
    {"SwiGLU", 28, "T[3000] T[3000]", "alpha=0.7", 1},
    {"CumProd", 26, "T[3,7,5]:p i32[1]:=1", "", 1},
    {"CumProd", 26, "T[3,7,5]:p i64[]:=-1", "exclusive=1 reverse=1", 1},
    {"CumProd", 26, "i64[4,6]:n4 i64[]:=0", "", 1},
    {"BitCast", 26, "f32[3,7]", "to=6", 1},
    {"BitCast", 26, "f16[3,7]", "to=16", 1},
};

const size_t op_attention_case_count = sizeof(op_attention_cases) / sizeof(op_attention_cases[0]);
