// Attention and its family. What ONNX's own suite has is not repeated here: these are the corners
// where it says nothing, and what is refused.
// SPDX-License-Identifier: Apache-2.0

#include "support/cases/op_attention_cases.h"
#include "support/cases/op_rows.h"
#include "support/test.h"

static const op_row onnx_rows[] = {
    // Mode 0 shows scores before the soft cap: the text of the standard, not its reference.
    {"Attention", 25, "f32[1,1,1,1]:4 f32[1,1,1,1]:1 f32[1,1,1,1]:7",
     "scale=f:1 softcap=f:2 qk_matmul_output_mode=0", "f32[1,1,1,1]:7 - - f32[1,1,1,1]:4"},
    {"Attention", 25, "f32[1,1,1,1]:4 f32[1,1,1,1]:1 f32[1,1,1,1]:7",
     "scale=f:1 softcap=f:2 qk_matmul_output_mode=1", "f32[1,1,1,1]:7 - - f32[1,1,1,1]:1.928055"},
    // A mask of one column repeats in opset 23 and is filled up from 24 on.
    {"Attention", 23, "f32[1,1,1,1]:1 f32[1,1,2,1]:0,0 f32[1,1,2,1]:2,4 f32[1,1]:3", "",
     "f32[1,1,1,1]:3"},
    {"Attention", 24, "f32[1,1,1,1]:1 f32[1,1,2,1]:0,0 f32[1,1,2,1]:2,4 f32[1,1]:3", "",
     "f32[1,1,1,1]:2"},
    // Whoever sees nothing is zero; what is masked out does not matter, not even a NaN.
    {"Attention", 24, "f32[1,1,2,1]:1 f32[1,1,2,1]:1,nan f32[1,1,2,1]:5,6 bool[2,2]:1,0,0,0", "",
     "f32[1,1,2,1]:5,0"},
    {"Attention", 24, "f32[1,1,2,1]:1 f32[1,1,2,1]:1 f32[1,1,2,1]:5,6 - - - i64[1]:1",
     "is_causal=1", "f32[1,1,2,1]:0,5"},
    {"Attention", 24, "f32[1,1,1,1]:1 f32[1,1,2,1]:1 f32[1,1,2,1]:5,6 - - - i64[1]:0", "",
     "f32[1,1,1,1]:0"},
    // Windows on both sides, in the middle of what is there.
    {"Attention", 25, "f32[1,1,3,1]:0 f32[1,1,3,1]:0 f32[1,1,3,1]:1,2,4",
     "left_window_size=0 right_window_size=1", "f32[1,1,3,1]:1.5,3,4"},
    {"Attention", 25, "f64[1,1,1,2]:1,1 f64[1,1,2,2]:1,0,0,2 f64[1,1,2,1]:0,1", "scale=f:1",
     "~1e-15 f64[1,1,1,1]:0.73105857863000487"},
    // The score 0.33325 of f16 is 0.3332519531 there; weights are rounded, too.
    {"Attention", 24, "f32[1,1,1,1]:1 f32[1,1,2,1]:0.33333,0 f32[1,1,2,1]:0,1",
     "scale=f:1 softmax_precision=10 qk_matmul_output_mode=3",
     "~1e-7 f32[1,1,1,1]:0.41748046875 - - f32[1,1,1,2]:0.58251953125,0.41748046875"},
    // Refused
    {"Attention", 24, "f32[1,1,2]:1 f32[1,1,2]:1 f32[1,1,2]:1", "", "!BAD_DATA q_num_heads is 0"},
    {"Attention", 24, "f32[1,3,1,2]:1 f32[1,2,1,2]:1 f32[1,2,1,2]:1", "",
     "!BAD_DATA 2 heads of K and V do not divide 3"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,3]:1 f32[1,1,1,2]:1", "",
     "!BAD_DATA input K has shape [1, 1, 1, 3]"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,2,2]:1", "",
     "!BAD_DATA input V has shape [1, 1, 2, 2]"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[3,1]:0", "",
     "!BAD_DATA input attn_mask has shape [3, 1]"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 - f32[1,1,1,2]:0", "",
     "!BAD_DATA come together"},
    {"Attention", 24,
     "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 - f32[1,1,1,2]:0 f32[1,1,2,2]:0", "",
     "!BAD_DATA input past_value has shape [1, 1, 2, 2]"},
    {"Attention", 24,
     "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 - f32[1,1,1,2]:0 f32[1,1,1,2]:0 i64[1]:1", "",
     "!BAD_DATA exclude each other"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 - - - i64[1]:2", "",
     "!BAD_DATA batch 0 has length 2, and there is room for 1"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1 - - - i64[1]:-1", "",
     "!BAD_DATA batch 0 has length -1"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1", "softmax_precision=7",
     "!UNSUPPORTED softmax_precision"},
    {"Attention", 24, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1", "qk_matmul_output_mode=4",
     "!BAD_DATA qk_matmul_output_mode is 4"},
    {"Attention", 25, "f32[1,1,1,2]:1 f32[1,1,1,2]:1 f32[1,1,1,2]:1", "left_window_size=-2",
     "!BAD_DATA left_window_size is -2"},
    {"Attention", 24, "f32[1,1,1,2]:1 f16[1,1,1,2]:1 f32[1,1,1,2]:1", "", "!BAD_DATA type"},
};
OP_ROWS_TEST(test_op_attention__onnx, onnx_rows)

static const op_row linear_rows[] = {
    // The state is 2 * 3, then half of it and 1 * 5; each head of query reads it.
    {"LinearAttention", 27,
     "f32[1,2,2]:1,2,1,-1 f32[1,2,1]:2,1 f32[1,2,1]:3,5 - f32[1,2,1]:0,-0.6931471806",
     "q_num_heads=2 kv_num_heads=1 update_rule=s:gated", "f32[1,2,2]:6,12,8,-8 f32[1,1,1,1]:8"},
    // What is known of the key is taken away first: 4 + 2 * 0.5 * (3 - 2 * 4).
    {"LinearAttention", 27,
     "f32[1,1,1]:1 f32[1,1,1]:2 f32[1,1,1]:3 f16[1,1,1,1]:4 - f32[1,1,1]:0.5",
     "q_num_heads=1 kv_num_heads=1 update_rule=s:delta scale=f:2", "f32[1,1,1]:-2 f16[1,1,1,1]:-1"},
    {"LinearAttention", 27, "f32[1,1,1] f32[1,1,1] f32[1,1,1]", "q_num_heads=1 kv_num_heads=1",
     "!BAD_DATA update_rule gated_delta takes a decay"},
    {"LinearAttention", 27, "f32[1,1,3] f32[1,1,2] f32[1,1,2]",
     "q_num_heads=3 kv_num_heads=2 update_rule=s:linear", "!BAD_DATA 2 heads of key"},
    {"LinearAttention", 27, "f32[1,1,1] f32[1,2,1] f32[1,1,1]",
     "q_num_heads=1 kv_num_heads=1 update_rule=s:linear", "!BAD_DATA input 1 has shape"},
    {"CausalConvWithState", 27, "f32[1,1,3]:1,2,3 f32[1,1,3]:1,10,100 f32[1]:0.5 f32[1,1,2]:7,8",
     "", "f32[1,1,3]:187.5,218.5,321.5 f32[1,1,2]:2,3"},
    {"CausalConvWithState", 27, "f32[1,1,1]:2 f32[1,1,1]:1", "activation=s:silu",
     "f32[1,1,1]:1.761594 f32[1,1,0]"},
    {"CausalConvWithState", 27, "f32[1,1,3] f32[1,1,3] - f32[1,1,3]", "",
     "!BAD_DATA input 3 has shape [1, 1, 3], [batch, channels, kernel - 1]"},
    {"CausalConvWithState", 27, "f32[1,2,3] f32[1,1,3]", "", "!BAD_DATA input 1 has shape"},
};
OP_ROWS_TEST(test_op_attention__linear, linear_rows)

TEST(test_op_attention__microsoft) {
    OP_ROWS_CHECK(g_microsoft_rows);
    static const op_row rows[] = {
        // Heads are normalised before they turn: rows become 0.6, 0.8 times the root of 2.
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,2]:3,4 f32[1,1,2]:6,8 f32[1,1,2]:1,2 - - i32[1]:0 i32[1]:1 - - - - - - - "
         "f32[2]:1,1 f32[2]:1,2",
         "num_heads=1 kv_num_heads=1",
         "f32[1,1,2]:1,2 f32[1,1,1,2]:0.8485281,2.262742 f32[1,1,1,2]:1,2"},
        // A shared buffer keeps what lies behind the rows that count.
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,1]:0 f32[1,1,1]:5 f32[1,1,1]:6 f32[1,1,4,1]:1,2,3,4 f32[1,1,4,1]:2,4,6,8 "
         "i32[1]:1 i32[1]:4",
         "num_heads=1 kv_num_heads=1", "f32[1,1,1]:4 f32[1,1,4,1]:1,5,3,4 f32[1,1,4,1]:2,6,6,8"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,1] f32[1,1,1] f32[1,1,1] - - i32[1]:1 i32[1]:1", "num_heads=1 kv_num_heads=1",
         "!BAD_DATA batch 0 has length 1, and there is room for 1"},
        // As ONNX Runtime: lengths below what is new are refused, but for a padded first prompt.
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,1] f32[1,1,1] f32[1,1,1] - - i32[1]:-1 i32[1]:1", "num_heads=1 kv_num_heads=1",
         "!BAD_DATA batch 0 has length -1, and there is room for 1"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,2,1] f32[1,2,1] f32[1,2,1] - - i32[1]:0 i32[1]:1", "num_heads=1 kv_num_heads=1",
         "!BAD_DATA total_sequence_length is 1, with 2 new rows"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,2,1] f32[1,2,1] f32[1,2,1] f32[1,1,4,1] f32[1,1,4,1] i32[1]:0 i32[1]:3",
         "num_heads=1 kv_num_heads=1",
         "!BAD_DATA batch 0 has seqlens_k 0, too small for 2 new rows behind a past"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,2,1] f32[1,2,1]:5,7 f32[1,2,1]:6,8 f32[1,1,3,1]:1 f32[1,1,3,1]:2 i32[1]:0 i32[1]:2",
         "num_heads=1 kv_num_heads=1", "f32[1,2,1]:6,6 f32[1,1,3,1]:5,7,1 f32[1,1,3,1]:6,8,2"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,3] f32[1,1,2] f32[1,1,2] - - i32[1] i32[1]:1", "num_heads=3 kv_num_heads=2",
         "!BAD_DATA kv_num_heads 2 does not divide num_heads 3"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,1] f32[1,1,1] f32[1,1,1] - - i32[1]:0 i32[1]:1",
         "num_heads=1 kv_num_heads=1 sliding_window_cache=1",
         "!UNSUPPORTED attribute sliding_window_cache"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,1] f32[1,1,1] f32[1,1,1] - - i32[1]:0 i32[1]:1",
         "num_heads=1 kv_num_heads=1 do_rotary=1", "!BAD_DATA do_rotary needs cos_cache"},
        {"com.microsoft.GroupQueryAttention", 1,
         "f32[1,1,2] f32[1,1,2] f32[1,1,2] - - i32[1]:0 i32[1]:1 f32[1,1] f32[1,1] i64[1,1]:1",
         "num_heads=1 kv_num_heads=1 do_rotary=1", "!BAD_DATA position 1 is outside [0, 1)"},
        {"com.microsoft.MultiHeadAttention", 1, "f32[1,1,2] f32[1,1,2] f32[1,1,2] - i32[5]",
         "num_heads=1", "!UNSUPPORTED a padding mask of this shape"},
        {"com.microsoft.Attention", 1, "f32[1,1,2] f32[2,3] f32[3]", "num_heads=1 do_rotary=1",
         "!UNSUPPORTED attribute do_rotary"},
        {"com.microsoft.RotaryEmbedding", 1, "f32[1,1,2] i64[1]:0 f32[1,1] f32[1,1]", "scale=f:2",
         "!UNSUPPORTED attribute scale"},
        {"com.microsoft.RotaryEmbedding", 1, "f32[1,1,2] i64[1]:1 f32[1,1] f32[1,1]", "",
         "!BAD_DATA position 1 is outside [0, 1)"},
    };
    OP_ROWS_CHECK(rows);
}

TEST_MAIN()
