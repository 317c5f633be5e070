// onnx/expand/expand_gated.c — what onnxruntime makes of the newest language models: norms and sums
// with a gate, gates of linear attention, rotations by three positions.
//
// Numbers in between are f32, whatever the type of the model, where onnxruntime says so.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "onnx/expand/expand.h"
#include "rondo/tensor.h"

#define NEW RONDO__VALUE_NONE

enum { POSITIONS = 3, HALF_MAX = 1024 };  // T, H, W; columns of a cache

static bool is_f32(const rondo__expander *e, int32_t value) {
    return rondo__expand_get_dtype(e, value) == RONDO_DTYPE_F32;
}

static int32_t widen(rondo__expander *e, int32_t value) {
    if (is_f32(e, value)) {
        return value;
    }
    const int32_t wide = EXPAND(e, "Cast", NEW, value);
    rondo__expand_set_int(e, "to", 1);
    return wide;
}

// The op on f32, in the type of `like`.
#define EXPAND_AS(e, like, op, result, ...)                                               \
    do {                                                                                  \
        if (is_f32((e), (like))) {                                                        \
            EXPAND((e), op, (result), __VA_ARGS__);                                       \
        } else {                                                                          \
            EXPAND((e), "CastLike", (result), EXPAND((e), op, NEW, __VA_ARGS__), (like)); \
        }                                                                                 \
    } while (0)

// x / rms(x) * scale * activation(gate), over rows as long as `scale`.
static void expand_gated_norm(rondo__expander *e) {
    static const int64_t zero = 0, last = -1;
    const rondo__op *op = rondo__expand_op(e);
    const char *activation = rondo__op_get_string(op, "activation", "silu");
    const bool is_silu = strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
    if (!is_silu && strcmp(activation, "sigmoid") != 0) {
        rondo__expand_refuse(e, "its activation is none of silu, swish and sigmoid");
        return;
    }
    const int32_t x = rondo__expand_in(e, 0), scale = widen(e, rondo__expand_in(e, 1));
    const int32_t gate = widen(e, rondo__expand_in(e, 2)), shape = EXPAND(e, "Shape", NEW, x);
    const int32_t ends = rondo__expand_ints(e, &last, 1);
    const int32_t front = EXPAND(e, "Slice", NEW, shape, rondo__expand_ints(e, &zero, 1), ends);
    const int32_t width = EXPAND(e, "Shape", NEW, scale);
    const int32_t rows = EXPAND(e, "Concat", NEW, front, ends, width);
    rondo__expand_set_int(e, "axis", 0);
    const int32_t heads = EXPAND(e, "Reshape", NEW, widen(e, x), rows);
    const int32_t normed = EXPAND(e, "RMSNormalization", NEW, heads, scale);
    rondo__expand_set_float(e, "epsilon", rondo__op_get_float(op, "epsilon", 1e-5f));
    const int32_t flat = EXPAND(e, "Reshape", NEW, normed, shape);
    int32_t open = EXPAND(e, "Sigmoid", NEW, gate);
    open = is_silu ? EXPAND(e, "Mul", NEW, gate, open) : open;
    EXPAND_AS(e, x, "Mul", rondo__expand_out(e, 0), flat, open);
}

static void expand_attention_gate(rondo__expander *e) {
    const int32_t a = rondo__expand_in(e, 0), b = rondo__expand_in(e, 3);
    const int32_t decay = rondo__expand_out(e, 0), beta = rondo__expand_out(e, 1);
    if (decay != RONDO__VALUE_NONE) {
        const int32_t sum = EXPAND(e, "Add", NEW, widen(e, a), rondo__expand_in(e, 1));
        const int32_t soft = EXPAND(e, "Softplus", NEW, sum);
        EXPAND_AS(e, a, "Mul", decay, soft, rondo__expand_in(e, 2));
    }
    if (beta != RONDO__VALUE_NONE && b == RONDO__VALUE_NONE) {
        rondo__expand_refuse(e, "output beta without input b");
    } else if (beta != RONDO__VALUE_NONE) {
        EXPAND(e, "Sigmoid", beta, b);
    }
}

static void expand_scaled_silu(rondo__expander *e) {
    const int32_t x = rondo__expand_in(e, 0);
    int32_t scale = rondo__expand_in(e, 1);
    if (scale == RONDO__VALUE_NONE) {
        const float alpha = rondo__op_get_float(rondo__expand_op(e), "alpha", 1.0f);
        scale = rondo__expand_number(e, alpha, RONDO__VALUE_NONE);
    }
    int32_t z = EXPAND(e, "Mul", NEW, widen(e, x), widen(e, scale));
    z = is_f32(e, x) ? z : EXPAND(e, "CastLike", NEW, z, x);
    EXPAND(e, "Mul", rondo__expand_out(e, 0), z, EXPAND(e, "Sigmoid", NEW, z));
}

static void expand_gated_add(rondo__expander *e) {
    if (rondo__expand_in(e, 3) != RONDO__VALUE_NONE) {
        rondo__expand_refuse(e, "input gate_weight");
    }
    const int32_t gated = EXPAND(e, "Mul", NEW, rondo__expand_in(e, 1), rondo__expand_in(e, 2));
    EXPAND(e, "Add", rondo__expand_out(e, 0), rondo__expand_in(e, 0), gated);
}

// Which of the three positions each column of a cache belongs to.
static void find_owners(const int64_t *sections, int64_t half, bool is_interleaved,
                        float owners[POSITIONS][HALF_MAX]) {
    for (int64_t j = 0; j < half; ++j) {
        int64_t owner = j < sections[0] ? 0 : j < sections[0] + sections[1] ? 1 : 2;
        if (is_interleaved) {
            owner =
                j % POSITIONS != 0 && j < POSITIONS * sections[j % POSITIONS] ? j % POSITIONS : 0;
        }
        for (int64_t k = 0; k < POSITIONS; ++k) {
            owners[k][j] = k == owner ? 1.0f : 0.0f;
        }
    }
}

// The rows of a cache that the three positions name, of each column one: [B * S, half].
static int32_t add_rows(rondo__expander *e, int32_t cache, int32_t positions, int32_t owners,
                        int64_t half) {
    static const int64_t first = 0;
    const int64_t flat[] = {-1, half};
    const int32_t rows = EXPAND(e, "Gather", NEW, cache, positions);
    owners = is_f32(e, cache) ? owners : EXPAND(e, "CastLike", NEW, owners, cache);
    const int32_t chosen = EXPAND(e, "Mul", NEW, rows, owners);
    const int32_t sum = EXPAND(e, "ReduceSum", NEW, chosen, rondo__expand_ints(e, &first, 1));
    rondo__expand_set_int(e, "keepdims", 0);
    return EXPAND(e, "Reshape", NEW, sum, rondo__expand_ints(e, flat, 2));
}

// A rotation by caches whose rows are made for each token, which is then at row 0, 1, ...
static void expand_three_positions(rondo__expander *e) {
    const rondo__op *op = rondo__expand_op(e);
    size_t count = 0;
    const int64_t *sections = rondo__op_get_ints(op, "mrope_section", &count);
    int64_t half = 0;
    for (size_t i = 0; i < count; ++i) {
        half = sections[i] < 0 || sections[i] > HALF_MAX ? HALF_MAX + 1 : half + sections[i];
    }
    if (count != POSITIONS || half < 1 || half > HALF_MAX) {
        rondo__expand_refuse(e, "mrope_section is not three numbers from 0 whose sum is 1 to 1024");
        return;
    }
    if (rondo__op_get_float(op, "scale", 1.0f) != 1.0f) {
        rondo__expand_refuse(e, "a scale that is not 1");
    }
    float owners[POSITIONS][HALF_MAX], numbers[POSITIONS * HALF_MAX];
    find_owners(sections, half, rondo__op_get_int(op, "mrope_layout", 0) != 0, owners);
    for (int64_t k = 0; k < POSITIONS; ++k) {
        memcpy(numbers + k * half, owners[k], (size_t)half * sizeof(float));
    }
    const int64_t by_position[] = {POSITIONS, 1, 1, half}, zero = 0, one = 1;
    const int32_t positions = rondo__expand_in(e, 1);
    const int32_t list = rondo__expand_floats(e, numbers, (size_t)(POSITIONS * half));
    const int32_t owner = EXPAND(e, "Reshape", NEW, list, rondo__expand_ints(e, by_position, 4));
    const int32_t cosines = add_rows(e, rondo__expand_in(e, 2), positions, owner, half);
    const int32_t sines = add_rows(e, rondo__expand_in(e, 3), positions, owner, half);
    const int32_t tokens = EXPAND(e, "Shape", NEW, positions);  // [batch, length]
    rondo__expand_set_int(e, "start", 1);
    const int32_t product = EXPAND(e, "ReduceProd", NEW, tokens, rondo__expand_ints(e, &zero, 1));
    rondo__expand_set_int(e, "keepdims", 0);
    const int32_t step = EXPAND(e, "Squeeze", NEW, rondo__expand_ints(e, &one, 1));
    const int32_t start = EXPAND(e, "Squeeze", NEW, rondo__expand_ints(e, &zero, 1));
    const int32_t numbered = EXPAND(e, "Range", NEW, start, product, step);
    const int32_t places = EXPAND(e, "Reshape", NEW, numbered, tokens);
    EXPAND(e, "com.microsoft.RotaryEmbedding", rondo__expand_out(e, 0), rondo__expand_in(e, 0),
           places, cosines, sines);
    rondo__expand_copy(e, (const char *const[]){"interleaved", "is_packed_batching", "num_heads",
                                                "rotary_embedding_dim", NULL});
}

static const char *const no_attributes[] = {NULL};
static const char *const norm_attributes[] = {"activation", "epsilon", NULL};
static const char *const alpha_attributes[] = {"alpha", NULL};
static const char *const rotary_attributes[] = {
    "interleaved", "is_packed_batching",   "mrope_layout", "mrope_section",
    "num_heads",   "rotary_embedding_dim", "scale",        NULL};

const rondo__expansion rondo__expansions_gated[] = {
    RONDO_EXPANSION("GatedRMSNorm", 3, 3, 1, 1, norm_attributes, expand_gated_norm),
    RONDO_EXPANSION("LinearAttentionGate", 3, 4, 1, 2, no_attributes, expand_attention_gate),
    RONDO_EXPANSION("ScaledSiLU", 1, 2, 1, 1, alpha_attributes, expand_scaled_silu),
    RONDO_EXPANSION("GatedAdd", 3, 4, 1, 1, no_attributes, expand_gated_add),
    RONDO_EXPANSION("MRotaryEmbedding", 4, 4, 1, 1, rotary_attributes, expand_three_positions),
    {.def = {.name = NULL}},
};
