// op/image/op_sampling.c — GridSample and AffineGrid: reading at computed positions; see
// sampling.h.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/image/sampling.h"
#include "op/image/window.h"
#include "op/op.h"
#include "op/reference.h"

double *rondo__sample_turn_planes(rondo__scratch *scratch, const rondo_tensor *x) {
    enum { TILE = 16 };
    const int64_t channels = x->shape.extent[1];
    const int64_t span = rondo__shape_multiply(&x->shape, 2, x->shape.rank);
    double *y = rondo__scratch_create(scratch, rondo_shape_get_count(&x->shape));
    const double *from = channels > 1 ? rondo__scratch_widen(scratch, x) : NULL;
    if (scratch->status != RONDO_STATUS_OK) {
        return NULL;
    }
    if (channels <= 1) {
        rondo__convert_elements(x->dtype, x->data, RONDO_DTYPE_F64, y,
                                (size_t)rondo_shape_get_count(&x->shape));
        return y;
    }
    for (int64_t n = 0; n < x->shape.extent[0]; n++) {
        for (int64_t first = 0; first < span; first += TILE) {
            const int64_t end = span - first < TILE ? span : first + TILE;
            for (int64_t c = 0; c < channels; c++) {
                const double *plane = from + (n * channels + c) * span;
                for (int64_t i = first; i < end; i++) {
                    y[(n * span + i) * channels + c] = plane[i];
                }
            }
        }
    }
    return y;
}

// ---- GridSample -------------------------------------------------------------------------------

typedef enum sample_mode { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC } sample_mode;
typedef enum sample_padding { PADDING_ZEROS, PADDING_BORDER, PADDING_REFLECTION } sample_padding;

typedef struct sample_plan {
    sample_mode mode;
    sample_padding padding;
    bool aligns_corners;
    bool is_wide;  // positions are f64
    int32_t rank;  // spatial
    int64_t extent[RONDO__SPATIAL_MAX];
} sample_plan;

static rondo_status read_sampler(const rondo__op *op, const rondo_shape *x,
                                 sample_plan *out_sampler) {
    // Version 20 renamed two modes.
    static const struct {
        const char *name;
        sample_mode mode;
    } modes[] = {{"bilinear", SAMPLE_LINEAR},
                 {"linear", SAMPLE_LINEAR},
                 {"nearest", SAMPLE_NEAREST},
                 {"bicubic", SAMPLE_CUBIC},
                 {"cubic", SAMPLE_CUBIC}};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    memset(out_sampler, 0, sizeof *out_sampler);
    const char *mode = rondo__op_get_string(op, "mode", "linear");
    const char *padding = rondo__op_get_string(op, "padding_mode", "zeros");
    bool has_mode = false;
    bool has_padding = false;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(mode, modes[i].name) == 0) {
            out_sampler->mode = modes[i].mode;
            has_mode = true;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (strcmp(padding, paddings[i]) == 0) {
            out_sampler->padding = (sample_padding)i;
            has_padding = true;
        }
    }
    if (!has_mode || !has_padding) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is \"%.40s\", which is unknown",
                             has_mode ? "padding_mode" : "mode", has_mode ? padding : mode);
    }
    out_sampler->aligns_corners = rondo__op_get_int(op, "align_corners", 0) != 0;
    out_sampler->rank = x->rank - 2;
    for (int32_t i = 0; i < x->rank - 2; i++) {
        out_sampler->extent[i] = x->extent[2 + i];
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_grid_sample(rondo__infer *infer) {
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *grid = &infer->inputs[1].shape;
    if (!rondo__dtype_is_float(infer->inputs[1].dtype)) {
        return rondo__op_fail_dtype(infer->op, 1, infer->inputs[1].dtype);
    }
    if (x->rank < 3 || x->rank != grid->rank || x->extent[0] != grid->extent[0] ||
        grid->extent[grid->rank - 1] != x->rank - 2) {
        char x_text[96];
        char grid_text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "grid of shape %s does not fit X of shape %s",
                             rondo_shape_format(grid, grid_text, sizeof grid_text),
                             rondo_shape_format(x, x_text, sizeof x_text));
    }
    sample_plan ignored;
    RETURN_IF_ERROR(read_sampler(infer->op, x, &ignored));
    rondo_shape shape = *x;
    for (int32_t i = 0; i < x->rank - 2; i++) {
        shape.extent[2 + i] = grid->extent[1 + i];
        if (x->extent[2 + i] == 0 && grid->extent[1 + i] != 0) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "X has an empty spatial axis");
        }
    }
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// Folds x into [low, high] as between two mirrors.
static double reflect(double x, double low, double high) {
    const double range = high - low;
    if (range <= 0.0) {
        return low;
    }
    const double beyond = x < low ? low - x : x > high ? x - high : -1.0;
    if (beyond < 0.0) {
        return x;
    }
    const bool is_even = fmod(floor(beyond / range), 2.0) == 0.0;
    const double rest = fmod(beyond, range);
    return (x < low) == is_even ? low + rest : high - rest;
}

// Brings a tap's index into the plane; false when it reads as 0.
static bool place_tap(const sample_plan *sampler, int32_t axis, double index, int64_t *out_index) {
    const double last = (double)(sampler->extent[axis] - 1);
    switch (sampler->padding) {
        case PADDING_ZEROS:
            if (index < 0.0 || index > last) {
                return false;
            }
            break;
        case PADDING_BORDER:
            break;
        case PADDING_REFLECTION:
            index = sampler->aligns_corners ? reflect(index, 0.0, last)
                                            : reflect(index, -0.5, last + 0.5);
            break;
    }
    *out_index = (int64_t)fmin(fmax(index, 0.0), last);
    return true;
}

typedef struct sample_taps {
    int count;
    int64_t index[4];
    double weight[4];  // 0 for a tap that reads as 0
} sample_taps;

// Keys' kernel with a = -0.75, at four distances.
static void get_cubic_weights(double x, double *weights) {
    const double a = -0.75;
    const double y = 1.0 - x;
    weights[0] = ((a * (x + 1.0) - 5.0 * a) * (x + 1.0) + 8.0 * a) * (x + 1.0) - 4.0 * a;
    weights[1] = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
    weights[2] = ((a + 2.0) * y - (a + 3.0)) * y * y + 1.0;
    weights[3] = ((a * (y + 1.0) - 5.0 * a) * (y + 1.0) + 8.0 * a) * (y + 1.0) - 4.0 * a;
}

// From [-1, 1] to elements.
static double get_place(const sample_plan *sampler, double extent, double normalized) {
    const bool is_wide = sampler->is_wide;
    const double moved = rondo__sample_round(is_wide, normalized + 1.0);
    if (sampler->aligns_corners) {
        return rondo__sample_round(is_wide, moved / 2.0 * (extent - 1.0));
    }
    return rondo__sample_round(is_wide, rondo__sample_round(is_wide, moved * extent) - 1.0) / 2.0;
}

static void find_taps(const sample_plan *sampler, int32_t axis, double normalized,
                      sample_taps *taps) {
    const double extent = (double)sampler->extent[axis];
    const double low = sampler->aligns_corners ? 0.0 : -0.5;
    const double high = sampler->aligns_corners ? extent - 1.0 : extent - 0.5;
    double x = get_place(sampler, extent, normalized);
    if (!isfinite(x)) {
        x = low;  // as PyTorch: NaN and infinity read at the edge
    }
    if (sampler->mode == SAMPLE_NEAREST) {
        x = rint(x);
    }
    if (x < low || x > high) {
        if (sampler->padding == PADDING_BORDER && sampler->mode != SAMPLE_CUBIC) {
            // Cubic taps are placed one by one, as PyTorch and ONNX Runtime do: just beyond the
            // edge that is not the edge's value.
            x = fmin(fmax(x, 0.0), extent - 1.0);
        } else if (sampler->padding == PADDING_REFLECTION) {
            x = reflect(x, low, high);
        }
    }
    const double base = floor(x);
    double first = base;
    taps->count = 2;
    switch (sampler->mode) {
        case SAMPLE_NEAREST:
            taps->count = 1;
            taps->weight[0] = 1.0;
            first = trunc(x);
            break;
        case SAMPLE_LINEAR:
            taps->weight[0] = 1.0 - (x - base);
            taps->weight[1] = x - base;
            break;
        case SAMPLE_CUBIC:
            taps->count = 4;
            first = base - 1.0;
            get_cubic_weights(x - base, taps->weight);
            break;
    }
    for (int i = 0; i < taps->count; i++) {
        if (!place_tap(sampler, axis, first + i, &taps->index[i])) {
            taps->index[i] = 0;
            taps->weight[i] = 0.0;
        }
    }
}

// The weighted sums of all channels over the taps of all axes; `x` is an image [span, channels].
static void sample_channels(const sample_plan *sampler, const sample_taps *taps, const double *x,
                            int64_t channels, double *sums) {
    int64_t counts[RONDO__SPATIAL_MAX];
    int64_t index[RONDO__SPATIAL_MAX] = {0};
    for (int32_t i = 0; i < sampler->rank; i++) {
        counts[i] = taps[i].count;
    }
    memset(sums, 0, (size_t)channels * sizeof *sums);
    do {
        double weight = 1.0;
        int64_t at = 0;
        for (int32_t i = 0; i < sampler->rank; i++) {
            weight *= taps[i].weight[index[i]];
            at = at * sampler->extent[i] + taps[i].index[index[i]];
        }
        const double *row = x + at * channels;
        for (int64_t c = 0; weight != 0.0 && c < channels; c++) {
            sums[c] += weight * row[c];  // an infinity that does not count must not become NaN
        }
    } while (rondo__index_advance(sampler->rank, counts, index));
}

static rondo_status compute_grid_sample(rondo__compute *compute) {
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    const rondo_shape *y_shape = &compute->inferred[0].shape;
    sample_plan sampler;
    RETURN_IF_ERROR(read_sampler(compute->op, x_shape, &sampler));
    sampler.is_wide = compute->inputs[1]->dtype == RONDO_DTYPE_F64;
    const int64_t channels = x_shape->extent[1];
    const int64_t input_span = rondo__shape_multiply(x_shape, 2, x_shape->rank);
    const int64_t output_span = rondo__shape_multiply(y_shape, 2, y_shape->rank);
    rondo__scratch scratch = {0};
    const double *x = rondo__sample_turn_planes(&scratch, compute->inputs[0]);
    const double *grid = rondo__scratch_widen(&scratch, compute->inputs[1]);
    double *sums = rondo__scratch_create(&scratch, channels);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(y_shape));
    if (scratch.status == RONDO_STATUS_OK) {
        for (int64_t n = 0; n < x_shape->extent[0]; n++) {
            for (int64_t i = 0; i < output_span; i++) {
                sample_taps taps[RONDO__SPATIAL_MAX];
                const double *place = grid + (n * output_span + i) * sampler.rank;
                for (int32_t axis = 0; axis < sampler.rank; axis++) {
                    // The grid lists the last axis first (x before y).
                    find_taps(&sampler, axis, place[sampler.rank - 1 - axis], &taps[axis]);
                }
                sample_channels(&sampler, taps, x + n * input_span * channels, channels, sums);
                for (int64_t c = 0; c < channels; c++) {
                    y[(n * channels + c) * output_span + i] = sums[c];
                }
            }
        }
        scratch.status = rondo__narrow_rounded(compute, 0, y);
    }
    return rondo__scratch_end(&scratch);
}

// ---- AffineGrid -------------------------------------------------------------------------------

static rondo_status infer_affine_grid(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 1));
    infer->outputs[0].dtype = inputs[0].dtype;
    if (inputs[1].constant == NULL) {
        return rondo__infer_needs_value(infer, 1);
    }
    int64_t sizes[RONDO_RANK_MAX];
    size_t count;
    RETURN_IF_ERROR(
        rondo__op_read_ints(infer->op, "size", inputs[1].constant, RONDO_RANK_MAX, sizes, &count));
    const rondo_shape *theta = &inputs[0].shape;
    if ((count != 4 && count != 5) || theta->rank != 3 || theta->extent[0] != sizes[0] ||
        theta->extent[1] != (int64_t)count - 2 || theta->extent[2] != (int64_t)count - 1) {
        char text[96];
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "theta of shape %s does not fit %zu sizes",
                             rondo_shape_format(theta, text, sizeof text), count);
    }
    rondo_shape shape = {.rank = (int32_t)count};
    shape.extent[0] = sizes[0];
    for (size_t i = 2; i < count; i++) {
        shape.extent[i - 1] = sizes[i];
    }
    shape.extent[count - 1] = (int64_t)count - 2;
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &shape);
}

static rondo_status compute_affine_grid(rondo__compute *compute) {
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int32_t rank = shape->rank - 2;  // spatial
    const bool aligns_corners = rondo__op_get_int(compute->op, "align_corners", 0) != 0;
    const int64_t span = rondo__shape_multiply(shape, 1, shape->rank - 1);
    rondo__scratch scratch = {0};
    const double *theta = rondo__scratch_widen(&scratch, compute->inputs[0]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    if (scratch.status == RONDO_STATUS_OK && span > 0) {
        double *target = y;
        for (int64_t n = 0; n < shape->extent[0]; n++) {
            int64_t index[RONDO__SPATIAL_MAX] = {0};
            do {
                for (int32_t row = 0; row < rank; row++) {
                    const double *factors = theta + (n * rank + row) * (rank + 1);
                    double sum = factors[rank];
                    for (int32_t k = 0; k < rank; k++) {
                        // Column k belongs to axis rank - 1 - k: x first.
                        const int32_t axis = rank - 1 - k;
                        const double extent = (double)shape->extent[1 + axis];
                        const double at = (double)index[axis];
                        const double place = !aligns_corners ? (2.0 * at + 1.0) / extent - 1.0
                                             : extent > 1.0  ? 2.0 * at / (extent - 1.0) - 1.0
                                                             : 0.0;
                        sum += factors[k] * place;
                    }
                    *target++ = sum;
                }
            } while (rondo__index_advance(rank, shape->extent + 1, index));
        }
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

static const char *const grid_attributes[] = {"align_corners", "mode", "padding_mode", NULL};
static const char *const affine_attributes[] = {"align_corners", NULL};

const rondo__op_def rondo__op_table_sampling[] = {
    RONDO_OP_ENTRY(GridSample, 16, 28, 2, 2, 1, 1, grid_attributes, infer_grid_sample,
                   compute_grid_sample, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED}),
    RONDO_OP_ENTRY(AffineGrid, 20, 28, 2, 2, 1, 1, affine_attributes, infer_affine_grid,
                   compute_affine_grid, .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_BOXED}),
    {.name = NULL},
};
