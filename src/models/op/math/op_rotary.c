// op/math/op_rotary.c — RotaryEmbedding: pairs of each head turned by the angle of their place.
// SPDX-License-Identifier: Apache-2.0
#include "op/op.h"
#include "op/reference.h"

// X as batches, places and heads. Of each head the first `turned` elements turn, in pairs.
typedef struct rotary {
    int64_t batches, places, heads, size, turned;
    int64_t place_step, head_step;  // of elements of X, within a batch
    bool is_interleaved;
} rotary;

static rondo_status get_form(const rondo__op *op, const rondo_shape *x, rotary *out_form) {
    rotary f = {.is_interleaved = rondo__op_get_int(op, "interleaved", 0) != 0};
    if (x->rank != 3 && x->rank != 4) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, 3 or 4 is expected", x->rank);
    }
    f.batches = x->extent[0];
    if (x->rank == 4) {
        f.heads = x->extent[1];
        f.places = x->extent[2];
        f.size = x->extent[3];
        f.place_step = f.size;
        f.head_step = f.places * f.size;
    } else {
        f.heads = rondo__op_get_int(op, "num_heads", 0);
        if (f.heads < 1 || x->extent[2] % f.heads != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute num_heads is %lld, which does not divide %lld",
                                 (long long)f.heads, (long long)x->extent[2]);
        }
        f.places = x->extent[1];
        f.size = x->extent[2] / f.heads;
        f.place_step = x->extent[2];
        f.head_step = f.size;
    }
    const int64_t turned = rondo__op_get_int(op, "rotary_embedding_dim", 0);
    f.turned = turned == 0 ? f.size : turned;
    if (f.turned < 0 || f.turned > f.size || f.turned % 2 != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%lld of %lld elements of a head cannot turn in pairs",
                             (long long)f.turned, (long long)f.size);
    }
    *out_form = f;
    return RONDO_STATUS_OK;
}

// Cosines and sines: a row for each place of each batch, or for each number that a place may have.
static rondo_status check_cache(const rondo__infer *infer, size_t input, const rotary *f) {
    const rondo_shape *cache = &infer->inputs[input].shape;
    const bool is_fit = rondo__infer_has_input(infer, 3)
                            ? cache->rank == 2 && cache->extent[1] == f->turned / 2
                            : cache->rank == 3 && cache->extent[0] == f->batches &&
                                  cache->extent[1] == f->places &&
                                  cache->extent[2] == f->turned / 2;
    if (!is_fit || !rondo_shape_is_equal(cache, &infer->inputs[1].shape)) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "input %zu has shape %s, which does not fit %lld batches of %lld "
                             "places and %lld pairs",
                             input, rondo_shape_format(cache, text, sizeof text),
                             (long long)f->batches, (long long)f->places,
                             (long long)(f->turned / 2));
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_rotary(rondo__infer *infer) {
    rotary f;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 3));
    RETURN_IF_ERROR(get_form(infer->op, &infer->inputs[0].shape, &f));
    RETURN_IF_ERROR(check_cache(infer, 1, &f));
    RETURN_IF_ERROR(check_cache(infer, 2, &f));
    if (rondo__infer_has_input(infer, 3)) {
        const rondo__tensor_info *ids = &infer->inputs[3];
        if (ids->dtype != RONDO_DTYPE_I64) {
            return rondo__op_fail_dtype(infer->op, 3, ids->dtype);
        }
        if (ids->shape.rank != 2 || ids->shape.extent[0] != f.batches ||
            ids->shape.extent[1] != f.places) {
            char text[96];
            return RONDO_OP_FAIL(infer->op, BAD_DATA,
                                 "input position_ids has shape %s, [%lld, %lld] is expected",
                                 rondo_shape_format(&ids->shape, text, sizeof text),
                                 (long long)f.batches, (long long)f.places);
        }
    }
    return rondo__infer_like_input(infer);
}

// Turns one head in place.
static void turn(const rotary *f, double *head, const double *cosines, const double *sines) {
    const int64_t pairs = f->turned / 2;
    for (int64_t i = 0; i < pairs; i++) {
        double *a = head + (f->is_interleaved ? 2 * i : i);
        double *b = f->is_interleaved ? a + 1 : a + pairs;
        const double real = cosines[i] * *a - sines[i] * *b;
        *b = sines[i] * *a + cosines[i] * *b;
        *a = real;
    }
}

// The row of the caches for place `at` of all places; -1 where its number is outside of them.
static int64_t find_row(const rondo_tensor *ids, const rondo_tensor *cache, int64_t at) {
    const int64_t row = ids != NULL ? ((const int64_t *)ids->data)[at] : at;
    return ids != NULL && (row < 0 || row >= cache->shape.extent[0]) ? -1 : row;
}

static rondo_status compute_rotary(rondo__compute *compute) {
    const rondo_tensor *ids = rondo__compute_get_input(compute, 3);
    rotary f;
    RETURN_IF_ERROR(get_form(compute->op, &compute->inputs[0]->shape, &f));
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *cosines = rondo__scratch_widen(&scratch, compute->inputs[1]);
    const double *sines = rondo__scratch_widen(&scratch, compute->inputs[2]);
    for (int64_t at = 0; scratch.status == RONDO_STATUS_OK && at < f.batches * f.places; at++) {
        const int64_t row = find_row(ids, compute->inputs[1], at);
        if (row < 0) {
            scratch.status =
                RONDO_OP_FAIL(compute->op, BAD_DATA, "position %lld is outside [0, %lld)",
                              (long long)((const int64_t *)ids->data)[at],
                              (long long)compute->inputs[1]->shape.extent[0]);
            break;
        }
        double *place =
            x + at / f.places * f.heads * f.places * f.size + at % f.places * f.place_step;
        for (int64_t h = 0; h < f.heads; h++) {
            turn(&f, place + h * f.head_step, cosines + row * (f.turned / 2),
                 sines + row * (f.turned / 2));
        }
    }
    if (scratch.status == RONDO_STATUS_OK) {
        scratch.status = rondo__narrow(compute, 0, x);
    }
    return rondo__scratch_end(&scratch);
}

static const char *const rotary_attributes[] = {"interleaved", "num_heads", "rotary_embedding_dim",
                                                NULL};

const rondo__op_def rondo__op_table_rotary[] = {
    RONDO_OP_ENTRY(RotaryEmbedding, 23, 28, 3, 4, 1, 1, rotary_attributes, infer_rotary,
                   compute_rotary),
    {.name = NULL},
};
