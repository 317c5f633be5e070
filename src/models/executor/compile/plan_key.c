// executor/compile/plan_key.c — reads what write_key of plan_cache.c has written.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "executor/compile/plan_cache.h"
#include "tensor/elements.h"

enum {
    FLAG_VALUE = 1,
    FLAG_PLACED = 2,
    FLAG_WITHIN = 4,
    FLAG_BITS = 3,
};

typedef struct key_reader {
    const uint8_t *at;
    size_t left;
    bool is_bad;
} key_reader;

static void take(key_reader *r, void *to, size_t bytes) {
    r->is_bad = r->is_bad || bytes > r->left;
    if (!r->is_bad && bytes > 0) {
        memcpy(to, r->at, bytes);
        r->at += bytes;
        r->left -= bytes;
    }
}

static void read_input(key_reader *r, rondo__key_input *out_input) {
    int32_t head[2] = {0};
    take(r, head, sizeof head);
    rondo_tensor *tensor = &out_input->tensor;
    *out_input = (rondo__key_input){.is_within = (head[1] & FLAG_WITHIN) != 0};
    r->is_bad = r->is_bad || head[0] < 0 || head[0] >= RONDO_DTYPE_COUNT || head[1] < 0 ||
                head[1] >> FLAG_BITS > RONDO_RANK_MAX || (head[1] & FLAG_PLACED) != 0 ||
                rondo__dtype_is_nested(head[0]);
    if (r->is_bad) {
        return;  // where it lies, and shapes of every kind, are no use elsewhere
    }
    tensor->dtype = head[0];
    tensor->shape.rank = head[1] >> FLAG_BITS;
    take(r, tensor->shape.extent, (size_t)tensor->shape.rank * sizeof tensor->shape.extent[0]);
    r->is_bad = r->is_bad || rondo_shape_get_count(&tensor->shape) < 0;
    if (!r->is_bad && (head[1] & FLAG_VALUE) != 0) {
        const size_t bytes = rondo_tensor_get_bytes(tensor);
        tensor->data = (void *)(uintptr_t)r->at;
        r->is_bad = bytes > r->left || tensor->dtype == RONDO_DTYPE_STRING;
        r->at += r->is_bad ? 0 : bytes;
        r->left -= r->is_bad ? 0 : bytes;
    }
}

bool rondo__plan_key_read(const void *key, size_t key_bytes, rondo__key_input *out_inputs,
                          size_t input_count) {
    key_reader r = {.at = key, .left = key_bytes};
    for (size_t i = 0; i < input_count && !r.is_bad; ++i) {
        read_input(&r, &out_inputs[i]);
    }
    return !r.is_bad && r.left == 0;
}
