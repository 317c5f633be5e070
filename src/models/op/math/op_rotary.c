// op/math/op_rotary.c — RotaryEmbedding, of ONNX and of com.microsoft: see rotary.h.
// SPDX-License-Identifier: Apache-2.0
#include "op/math/rotary.h"

#include <stdio.h>

#include "op/reference.h"

// The heads of a row, which com.microsoft's op may leave to the width of the angles.
static int64_t get_heads(const rondo__op *op, const rondo_shape *x, const rondo_shape *cosines) {
    const int64_t heads = rondo__op_get_int(op, "num_heads", 0);
    const int64_t size = cosines->rank == 2 ? 2 * cosines->extent[1] : 0;
    return heads == 0 && op->def->domain[0] != '\0' && size > 0 ? x->extent[2] / size : heads;
}

rondo_status rondo__rotary_read(const rondo__op *op, const rondo_shape *x,
                                const rondo_shape *cosines, rondo__rotary *out_form) {
    const bool is_onnx = op->def->domain[0] == '\0';
    rondo__rotary f = {
        .is_interleaved = rondo__op_get_int(op, "interleaved", 0) != 0,
        .cosines = is_onnx ? 1 : 2,
        .sines = is_onnx ? 2 : 3,
        .ids = is_onnx ? 3 : 1,
    };
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
        f.batch_step = f.heads * f.head_step;
    } else {
        f.heads = get_heads(op, x, cosines);
        if (f.heads < 1 || x->extent[2] % f.heads != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "attribute num_heads is %lld, which does not divide %lld",
                                 (long long)f.heads, (long long)x->extent[2]);
        }
        f.places = x->extent[1];
        f.size = x->extent[2] / f.heads;
        f.place_step = x->extent[2];
        f.head_step = f.size;
        f.batch_step = f.places * f.place_step;
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

// Cosines and sines: a row for each position of each batch, or for each number that a position may
// have.
static rondo_status check_cache(const rondo__infer *infer, size_t input, const rondo__rotary *f) {
    const rondo_shape *cache = &infer->inputs[input].shape;
    const bool is_fit = rondo__infer_has_input(infer, f->ids)
                            ? cache->rank == 2 && cache->extent[1] == f->turned / 2
                            : cache->rank == 3 && cache->extent[0] == f->batches &&
                                  cache->extent[1] == f->places &&
                                  cache->extent[2] == f->turned / 2;
    if (!is_fit || !rondo_shape_is_equal(cache, &infer->inputs[f->cosines].shape)) {
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

static rondo_status check_ids(const rondo__infer *infer, const rondo__rotary *f) {
    const rondo__tensor_info *ids = &infer->inputs[f->ids];
    const rondo_shape rows = {2, {f->batches, f->places}}, one = {1, {1}};
    if (!rondo__infer_has_input(infer, f->ids)) {
        return RONDO_STATUS_OK;
    }
    if (ids->dtype != RONDO_DTYPE_I64) {
        return rondo__op_fail_dtype(infer->op, f->ids, ids->dtype);
    }
    const bool may_be_one = infer->op->def->domain[0] != '\0';
    if (!rondo_shape_is_equal(&ids->shape, &rows) &&
        !(may_be_one && rondo_shape_is_equal(&ids->shape, &one))) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "input position_ids has shape %s, [%lld, %lld] is expected",
                             rondo_shape_format(&ids->shape, text, sizeof text),
                             (long long)f->batches, (long long)f->places);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_rotary(rondo__infer *infer) {
    const bool is_onnx = infer->op->def->domain[0] == '\0';
    rondo__rotary f;
    for (size_t i = 0; i < 4; i++) {
        if (i != (is_onnx ? 3 : 1)) {
            RETURN_IF_ERROR(rondo__infer_check_float(infer, i, 1));
            RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
        }
    }
    RETURN_IF_ERROR(rondo__rotary_read(infer->op, &infer->inputs[0].shape,
                                       &infer->inputs[is_onnx ? 1 : 2].shape, &f));
    RETURN_IF_ERROR(check_cache(infer, f.cosines, &f));
    RETURN_IF_ERROR(check_cache(infer, f.sines, &f));
    RETURN_IF_ERROR(check_ids(infer, &f));
    return rondo__infer_like_input(infer);
}

// Turns one head in place.
static void turn(const rondo__rotary *f, double *head, const double *cosines, const double *sines) {
    const int64_t pairs = f->turned / 2;
    for (int64_t i = 0; i < pairs; i++) {
        double *a = head + (f->is_interleaved ? 2 * i : i);
        double *b = f->is_interleaved ? a + 1 : a + pairs;
        const double real = cosines[i] * *a - sines[i] * *b;
        *b = sines[i] * *a + cosines[i] * *b;
        *a = real;
    }
}

// The row of the caches for position `at` of all positions.
static int64_t find_row(const rondo__rotary *f, const rondo_tensor *ids, int64_t at) {
    if (ids == NULL) {
        return at;
    }
    const bool is_first = rondo_shape_get_count(&ids->shape) == 1 && ids->shape.rank == 1;
    const int64_t *values = ids->data;
    return is_first ? rondo__rotary_add(values[0], at % f->places) : values[at];
}

static rondo_status compute_rotary(rondo__compute *compute) {
    const bool is_onnx = compute->op->def->domain[0] == '\0';
    rondo__rotary f;
    RETURN_IF_ERROR(rondo__rotary_read(compute->op, &compute->inputs[0]->shape,
                                       &compute->inputs[is_onnx ? 1 : 2]->shape, &f));
    const rondo_tensor *ids = rondo__compute_get_input(compute, f.ids);
    const rondo_tensor *cache = compute->inputs[f.cosines];
    rondo__scratch scratch = {0};
    double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *cosines = rondo__scratch_widen(&scratch, cache);
    const double *sines = rondo__scratch_widen(&scratch, compute->inputs[f.sines]);
    for (int64_t at = 0; scratch.status == RONDO_STATUS_OK && at < f.batches * f.places; at++) {
        const int64_t row = find_row(&f, ids, at);
        if (ids != NULL && (row < 0 || row >= cache->shape.extent[0])) {
            scratch.status =
                RONDO_OP_FAIL(compute->op, BAD_DATA, "position %lld is outside [0, %lld)",
                              (long long)row, (long long)cache->shape.extent[0]);
            break;
        }
        double *place = x + at / f.places * f.batch_step + at % f.places * f.place_step;
        for (int64_t h = 0; h < f.heads; h++) {
            turn(&f, place + h * f.head_step, cosines + row * (f.turned / 2),
                 sines + row * (f.turned / 2));
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, x);
}

static rondo_status check_microsoft(const rondo__op *op) {
    if (rondo__op_get_int(op, "is_packed_batching", 0) != 0) {
        return rondo__op_fail_unsupported(op, "attribute is_packed_batching");
    }
    return rondo__op_get_float(op, "scale", 1.0f) == 1.0f
               ? RONDO_STATUS_OK
               : rondo__op_fail_unsupported(op, "attribute scale");
}

static const char *const rotary_attributes[] = {"interleaved", "num_heads", "rotary_embedding_dim",
                                                NULL};

static const char *const microsoft_attributes[] = {
    "interleaved", "is_packed_batching", "num_heads", "rotary_embedding_dim", "scale", NULL};

const rondo__op_def rondo__op_table_rotary[] = {
    RONDO_OP_ENTRY(RotaryEmbedding, 23, 28, 3, 4, 1, 1, rotary_attributes, infer_rotary,
                   compute_rotary, .is_fallible = true),
    RONDO_OP_ROW(MS, RotaryEmbedding, 1, 1, 4, 4, 1, 1, .capture = RONDO__CAPTURE_YES,
                 .attributes = microsoft_attributes, .infer = infer_rotary,
                 .compute = compute_rotary, .check = check_microsoft, .is_fallible = true),
    {.name = NULL},
};
