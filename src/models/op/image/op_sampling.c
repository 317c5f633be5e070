// op/image/op_sampling.c — GridSample, AffineGrid, RoiAlign and MaxRoiPool: reading at computed
// positions.
//
// Which elements a position means, how many samples a bin has and whether a position lies outside
// may hang on the last bit. So positions are calculated in the type of the grid or the boxes, each
// step rounded as ONNX Runtime rounds it: f64 for f64, f32 for all others. Compiled without fused
// multiply-adds.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/image/window.h"
#include "op/op.h"
#include "op/reference.h"

// A product, quotient, sum or difference of two positions, rounded to their type. Doubles have more
// than twice the digits of a float, so rounding twice is rounding once.
static double round_place(bool is_wide, double place) {
    return is_wide ? place : (double)(float)place;
}

// The planes [N, C, span] of x as [N, span, C], in f64: what all channels do alike stands side by
// side, which is vector code.
static double *turn_planes(rondo__scratch *scratch, const rondo_tensor *x) {
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
    const double moved = round_place(is_wide, normalized + 1.0);
    if (sampler->aligns_corners) {
        return round_place(is_wide, moved / 2.0 * (extent - 1.0));
    }
    return round_place(is_wide, round_place(is_wide, moved * extent) - 1.0) / 2.0;
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
    const double *x = turn_planes(&scratch, compute->inputs[0]);
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

// ---- RoiAlign ---------------------------------------------------------------------------------

enum {
    ROI_GRID_MAX = 4096,  // samples along one side of a bin; a box that asks for more is absurd
};

static rondo_status check_extent(const rondo__op *op, const char *name, int64_t value,
                                 int64_t minimum) {
    if (value < minimum || value > INT32_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s is %lld, it must be at least %lld", name,
                             (long long)value, (long long)minimum);
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_roi_align(rondo__infer *infer) {
    const rondo__op *op = infer->op;
    const rondo__tensor_info *inputs = infer->inputs;
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    const int64_t height = rondo__op_get_int(op, "output_height", 1);
    const int64_t width = rondo__op_get_int(op, "output_width", 1);
    const int64_t ratio = rondo__op_get_int(op, "sampling_ratio", 0);
    RETURN_IF_ERROR(check_extent(op, "output_height", height, 1));
    RETURN_IF_ERROR(check_extent(op, "output_width", width, 1));
    RETURN_IF_ERROR(check_extent(op, "sampling_ratio", ratio, 0));
    if (ratio > ROI_GRID_MAX) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute sampling_ratio is %lld, at most %d",
                             (long long)ratio, ROI_GRID_MAX);
    }
    const char *mode = rondo__op_get_string(op, "mode", "avg");
    const char *transform =
        rondo__op_get_string(op, "coordinate_transformation_mode", "half_pixel");
    if (strcmp(mode, "avg") != 0 && strcmp(mode, "max") != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute mode is \"%.40s\", not avg or max", mode);
    }
    if (strcmp(transform, "half_pixel") != 0 && strcmp(transform, "output_half_pixel") != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "attribute coordinate_transformation_mode is \"%.40s\", unknown",
                             transform);
    }
    const rondo_shape *x = &inputs[0].shape;
    const rondo_shape *rois = &inputs[1].shape;
    if (x->rank != 4 || rois->rank != 2 || rois->extent[1] != 4 || inputs[2].shape.rank != 1 ||
        inputs[2].shape.extent[0] != rois->extent[0] || inputs[2].dtype != RONDO_DTYPE_I64) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "X must be [N, C, H, W], rois [n, 4] and batch_indices i64 [n]");
    }
    const rondo_shape shape = {.rank = 4, .extent = {rois->extent[0], x->extent[1], height, width}};
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &shape);
}

typedef struct roi_bin {
    double top, left, height, width;  // of the bin
    int64_t rows, columns;            // samples in it
    bool is_wide;                     // positions are f64
} roi_bin;

// Sample `index` of `count` in a bin that begins at `start`.
static double place_sample(const roi_bin *bin, double start, double size, int64_t index,
                           int64_t count) {
    const double parts = round_place(bin->is_wide, ((double)index + 0.5) * size);
    return round_place(bin->is_wide, start + round_place(bin->is_wide, parts / (double)count));
}

// A sample: shares of its four neighbours; at[0] is -1 where it lies outside, which is 0.
typedef struct roi_sample {
    int64_t at[4];
    double share[4];
} roi_sample;

static roi_sample find_sample(int64_t height, int64_t width, double y, double x) {
    if (!(y >= -1.0 && y <= (double)height && x >= -1.0 && x <= (double)width)) {
        return (roi_sample){.at = {-1}};
    }
    y = fmin(fmax(y, 0.0), (double)(height - 1));
    x = fmin(fmax(x, 0.0), (double)(width - 1));
    const int64_t top = (int64_t)y;
    const int64_t left = (int64_t)x;
    const int64_t bottom = top + 1 < height ? top + 1 : top;
    const int64_t right = left + 1 < width ? left + 1 : left;
    const double down = y - (double)top;
    const double across = x - (double)left;
    return (roi_sample){.at = {top * width + left, top * width + right, bottom * width + left,
                               bottom * width + right},
                        .share = {(1.0 - down) * (1.0 - across), (1.0 - down) * across,
                                  down * (1.0 - across), down * across}};
}

// Adds a sample of each channel to the sums (average mode), or keeps the greatest of its four
// products (max mode). A sample that lies outside is 0.
static void take_sample(const roi_sample *sample, const double *x, int64_t channels, bool is_max,
                        double *sums) {
    const double *shares = sample->share;
    const double *rows[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = x + (sample->at[0] < 0 ? 0 : sample->at[i]) * channels;
    }
    if (!is_max) {
        for (int64_t c = 0; sample->at[0] >= 0 && c < channels; c++) {
            sums[c] += shares[0] * rows[0][c] + shares[1] * rows[1][c] + shares[2] * rows[2][c] +
                       shares[3] * rows[3][c];
        }
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        double value = 0.0;
        if (sample->at[0] >= 0) {
            value = rondo__maximum(rondo__maximum(shares[0] * rows[0][c], shares[1] * rows[1][c]),
                                   rondo__maximum(shares[2] * rows[2][c], shares[3] * rows[3][c]));
        }
        sums[c] = rondo__maximum(sums[c], value);
    }
}

// Pools a bin of the image x [height * width, channels]: all channels see the same samples.
static void pool_bin(const roi_bin *bin, const double *x, int64_t height, int64_t width,
                     int64_t channels, bool is_max, double *sums) {
    const int64_t count = bin->rows * bin->columns;
    for (int64_t c = 0; c < channels; c++) {
        sums[c] = is_max && count > 0 ? -(double)INFINITY : 0.0;
    }
    for (int64_t i = 0; i < count; i++) {
        const roi_sample sample = find_sample(
            height, width, place_sample(bin, bin->top, bin->height, i / bin->columns, bin->rows),
            place_sample(bin, bin->left, bin->width, i % bin->columns, bin->columns));
        take_sample(&sample, x, channels, is_max, sums);
    }
    for (int64_t c = 0; c < channels && count > 0 && !is_max; c++) {
        sums[c] /= (double)count;
    }
}

static rondo_status compute_roi_align(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t channels = shape->extent[1];
    const int64_t pooled_height = shape->extent[2];
    const int64_t pooled_width = shape->extent[3];
    const int64_t height = x_shape->extent[2];
    const int64_t width = x_shape->extent[3];
    const int64_t ratio = rondo__op_get_int(op, "sampling_ratio", 0);
    const double spatial_scale = (double)rondo__op_get_float(op, "spatial_scale", 1.0f);
    const bool is_max = strcmp(rondo__op_get_string(op, "mode", "avg"), "max") == 0;
    // Version 10 knew neither the attribute nor the half pixel.
    const char *transform = rondo__op_get_string(
        op, "coordinate_transformation_mode", op->opset < 16 ? "output_half_pixel" : "half_pixel");
    const bool is_half_pixel = strcmp(transform, "half_pixel") == 0;
    const bool is_wide = compute->inputs[1]->dtype == RONDO_DTYPE_F64;
    const int64_t *batch_indices = compute->inputs[2]->data;
    rondo__scratch scratch = {0};
    const double *x = turn_planes(&scratch, compute->inputs[0]);
    double *sums = rondo__scratch_create(&scratch, channels);
    const double *rois = rondo__scratch_widen(&scratch, compute->inputs[1]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    double *target = y;
    for (int64_t r = 0; r < shape->extent[0]; r++) {
        const int64_t n = batch_indices[r];
        if (n < 0 || n >= x_shape->extent[0] || height == 0 || width == 0) {
            scratch.status =
                RONDO_OP_FAIL(op, BAD_DATA, "batch_indices[%lld] is %lld of %lld", (long long)r,
                              (long long)n, (long long)x_shape->extent[0]);
            return rondo__scratch_end(&scratch);
        }
        double box[4];
        for (int i = 0; i < 4; i++) {
            box[i] = round_place(is_wide, rois[4 * r + i] * spatial_scale);
            box[i] = round_place(is_wide, box[i] - (is_half_pixel ? 0.5 : 0.0));
        }
        double box_width = round_place(is_wide, box[2] - box[0]);
        double box_height = round_place(is_wide, box[3] - box[1]);
        if (!is_half_pixel) {
            box_width = fmax(box_width, 1.0);
            box_height = fmax(box_height, 1.0);
        }
        roi_bin bin = {.height = round_place(is_wide, box_height / (double)pooled_height),
                       .width = round_place(is_wide, box_width / (double)pooled_width),
                       .is_wide = is_wide};
        if (!(fabs(bin.height) < ROI_GRID_MAX && fabs(bin.width) < ROI_GRID_MAX)) {
            scratch.status = RONDO_OP_FAIL(op, BAD_DATA, "box %lld of input rois is %g x %g",
                                           (long long)r, box_height, box_width);
            return rondo__scratch_end(&scratch);
        }
        bin.rows = ratio > 0 ? ratio : (int64_t)fmax(ceil(bin.height), 0.0);
        bin.columns = ratio > 0 ? ratio : (int64_t)fmax(ceil(bin.width), 0.0);
        const int64_t bins = pooled_height * pooled_width;
        for (int64_t i = 0; i < bins; i++) {
            const double down = (double)(i / pooled_width) * bin.height;
            const double across = (double)(i % pooled_width) * bin.width;
            bin.top = round_place(is_wide, box[1] + round_place(is_wide, down));
            bin.left = round_place(is_wide, box[0] + round_place(is_wide, across));
            pool_bin(&bin, x + n * channels * height * width, height, width, channels, is_max,
                     sums);
            for (int64_t c = 0; c < channels; c++) {
                target[c * bins + i] = sums[c];
            }
        }
        target += channels * bins;
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

// ---- CropAndResize ----------------------------------------------------------------------------

// Boxes (y1, x1, y2, x2) count the image's sides as 1.
static rondo_status infer_crop(rondo__infer *infer) {
    const rondo__tensor_info *inputs = infer->inputs;
    const rondo_shape *x = &inputs[0].shape, *rois = &inputs[1].shape;
    const char *mode = rondo__op_get_string(infer->op, "mode", "bilinear");
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    if (strcmp(mode, "bilinear") != 0 && strcmp(mode, "nearest") != 0) {
        return rondo__op_fail_unsupported(infer->op, "attribute mode is not known");
    }
    if (x->rank != 4 || rois->rank != 2 || rois->extent[1] != 4 || inputs[2].shape.rank != 1 ||
        inputs[2].shape.extent[0] != rois->extent[0] || inputs[2].dtype != RONDO_DTYPE_I32 ||
        inputs[3].dtype != RONDO_DTYPE_I32 || rondo_shape_get_count(&inputs[3].shape) != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "X must be [N, C, H, W], rois [n, 4], batch_indices i32 [n] and "
                             "crop_size i32 [2]");
    }
    rondo_shape shape = {.rank = 4, .extent = {rois->extent[0], x->extent[1], -1, -1}};
    infer->outputs[0].dtype = inputs[0].dtype;
    if (inputs[3].constant == NULL) {
        (void)rondo__infer_needs_value(infer, 3);
        return rondo__infer_set_partial(infer, 0, &shape);
    }
    for (int i = 0; i < 2; i++) {
        shape.extent[2 + i] = rondo__tensor_get_int(inputs[3].constant, i);
        if (shape.extent[2 + i] < 1) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "crop_size holds %lld",
                                 (long long)shape.extent[2 + i]);
        }
    }
    return rondo__infer_set_output(infer, 0, inputs[0].dtype, &shape);
}

// Where row or column `index` of `count` of a crop lies in the image. In f32, as ONNX Runtime has
// it: that decides about the nearest pixel.
static double place_crop(const double *box, int side, int64_t extent, int64_t index,
                         int64_t count) {
    const float first = (float)box[side], last = (float)box[2 + side];
    const float scale = (float)(extent - 1);
    if (count == 1) {
        return (double)(0.5f * (first + last) * scale);
    }
    const float step = (last - first) * scale / (float)(count - 1);
    return (double)(index == count - 1 ? last * scale : first * scale + (float)index * step);
}

static double take_crop(const double *plane, int64_t width, double y, double x, bool is_nearest) {
    if (is_nearest) {
        return plane[(int64_t)round(y) * width + (int64_t)round(x)];
    }
    const double *top = plane + (int64_t)floor(y) * width;
    const double *bottom = plane + (int64_t)ceil(y) * width;
    const int64_t left = (int64_t)floor(x), right = (int64_t)ceil(x);
    const double down = y - floor(y), across = x - floor(x);
    const double above = top[left] + (top[right] - top[left]) * across;
    const double below = bottom[left] + (bottom[right] - bottom[left]) * across;
    return above + (below - above) * down;
}

static rondo_status compute_crop(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *image = &compute->inputs[0]->shape;
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t height = image->extent[2], width = image->extent[3];
    const int64_t rows = shape->extent[2], columns = shape->extent[3];
    const int32_t *batches = compute->inputs[2]->data;
    const double outside = (double)rondo__op_get_float(op, "extrapolation_value", 0.0f);
    const bool is_nearest = strcmp(rondo__op_get_string(op, "mode", "bilinear"), "nearest") == 0;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *rois = rondo__scratch_widen(&scratch, compute->inputs[1]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    for (int64_t r = 0; r < shape->extent[0] && scratch.status == RONDO_STATUS_OK; r++) {
        if (batches[r] < 0 || batches[r] >= image->extent[0]) {
            scratch.status = RONDO_OP_FAIL(op, BAD_DATA, "batch_indices[%lld] is %d of %lld",
                                           (long long)r, batches[r], (long long)image->extent[0]);
        }
    }
    for (int64_t i = 0; scratch.status == RONDO_STATUS_OK && i < rondo_shape_get_count(shape);
         i++) {
        const int64_t r = i / (columns * rows * shape->extent[1]);
        const int64_t c = i / (columns * rows) % shape->extent[1];
        const double at = place_crop(rois + 4 * r, 0, height, i / columns % rows, rows);
        const double across = place_crop(rois + 4 * r, 1, width, i % columns, columns);
        const bool is_inside = at >= 0.0 && at <= (double)(height - 1) && across >= 0.0 &&
                               across <= (double)(width - 1);
        y[i] = is_inside ? take_crop(x + (batches[r] * image->extent[1] + c) * height * width,
                                     width, at, across, is_nearest)
                         : outside;
    }
    return rondo__scratch_end_as(&scratch, compute, 0, y);
}

// ---- MaxRoiPool -------------------------------------------------------------------------------

static rondo_status infer_max_roi_pool(rondo__infer *infer) {
    RETURN_IF_ERROR(rondo__infer_check_float(infer, 0, 2));
    const rondo_shape *x = &infer->inputs[0].shape;
    const rondo_shape *rois = &infer->inputs[1].shape;
    size_t count;
    const int64_t *pooled = rondo__op_get_ints(infer->op, "pooled_shape", &count);
    if (pooled == NULL || count != 2) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "attribute pooled_shape must have 2 entries");
    }
    RETURN_IF_ERROR(check_extent(infer->op, "pooled_shape", pooled[0], 1));
    RETURN_IF_ERROR(check_extent(infer->op, "pooled_shape", pooled[1], 1));
    if (x->rank != 4 || rois->rank != 2 || rois->extent[1] != 5) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "X must be [N, C, H, W] and rois [n, 5]");
    }
    const rondo_shape shape = {.rank = 4,
                               .extent = {rois->extent[0], x->extent[1], pooled[0], pooled[1]}};
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &shape);
}

// The cells [begin, end) of bin `index` when [start, start + length) is cut into `count` bins.
static void get_cells(bool is_wide, double start, double length, int64_t count, int64_t index,
                      int64_t extent, int64_t *out_begin, int64_t *out_end) {
    const double size = round_place(is_wide, length / (double)count);
    const double begin = round_place(is_wide, (double)index * size);
    const double end = round_place(is_wide, (double)(index + 1) * size);
    const double last = (double)extent;
    *out_begin = (int64_t)fmin(fmax(floor(begin) + start, 0.0), last);
    *out_end = (int64_t)fmin(fmax(ceil(end) + start, 0.0), last);
}

static rondo_status compute_max_roi_pool(rondo__compute *compute) {
    const rondo__op *op = compute->op;
    const rondo_shape *x_shape = &compute->inputs[0]->shape;
    const rondo_shape *shape = &compute->inferred[0].shape;
    const int64_t height = x_shape->extent[2];
    const int64_t width = x_shape->extent[3];
    const double scale = (double)rondo__op_get_float(op, "spatial_scale", 1.0f);
    const bool is_wide = compute->inputs[1]->dtype == RONDO_DTYPE_F64;
    rondo__scratch scratch = {0};
    const double *x = rondo__scratch_widen(&scratch, compute->inputs[0]);
    const double *rois = rondo__scratch_widen(&scratch, compute->inputs[1]);
    double *y = rondo__scratch_create(&scratch, rondo_shape_get_count(shape));
    if (scratch.status != RONDO_STATUS_OK) {
        return rondo__scratch_end(&scratch);
    }
    double *target = y;
    for (int64_t r = 0; r < shape->extent[0]; r++) {
        const double *roi = rois + 5 * r;
        if (!(roi[0] >= 0.0 && roi[0] < (double)x_shape->extent[0])) {
            scratch.status = RONDO_OP_FAIL(op, BAD_DATA, "box %lld of input rois names batch %g",
                                           (long long)r, roi[0]);
            return rondo__scratch_end(&scratch);
        }
        double box[4];  // left, top, right, bottom
        for (int i = 0; i < 4; i++) {
            box[i] = round(round_place(is_wide, roi[1 + i] * scale));
        }
        const double box_width = fmax(box[2] - box[0] + 1.0, 1.0);
        const double box_height = fmax(box[3] - box[1] + 1.0, 1.0);
        for (int64_t c = 0; c < shape->extent[1]; c++) {
            const double *plane = x + ((int64_t)roi[0] * x_shape->extent[1] + c) * height * width;
            for (int64_t i = 0; i < shape->extent[2] * shape->extent[3]; i++) {
                int64_t row, row_end, column_begin, column_end;
                get_cells(is_wide, box[1], box_height, shape->extent[2], i / shape->extent[3],
                          height, &row, &row_end);
                get_cells(is_wide, box[0], box_width, shape->extent[3], i % shape->extent[3], width,
                          &column_begin, &column_end);
                bool is_empty = true;
                double best = 0.0;  // of an empty bin
                for (; row < row_end; row++) {
                    for (int64_t k = column_begin; k < column_end; k++) {
                        const double value = plane[row * width + k];
                        best = is_empty ? value : rondo__maximum(best, value);
                        is_empty = false;
                    }
                }
                *target++ = best;
            }
        }
    }
    scratch.status = rondo__narrow(compute, 0, y);
    return rondo__scratch_end(&scratch);
}

static const char *const grid_attributes[] = {"align_corners", "mode", "padding_mode", NULL};
static const char *const affine_attributes[] = {"align_corners", NULL};
static const char *const align_attributes[] = {"coordinate_transformation_mode",
                                               "mode",
                                               "output_height",
                                               "output_width",
                                               "sampling_ratio",
                                               "spatial_scale",
                                               NULL};
static const char *const max_roi_attributes[] = {"pooled_shape", "spatial_scale", NULL};

static const char *const crop_attributes[] = {"extrapolation_value", "mode", NULL};

const rondo__op_def rondo__op_table_sampling[] = {
    RONDO_OP_ROW(MS, CropAndResize, 1, 1, 4, 4, 1, 1, .capture = RONDO__CAPTURE_YES,
                 .attributes = crop_attributes, .infer = infer_crop, .compute = compute_crop,
                 .is_fallible = true),
    RONDO_OP_ENTRY(GridSample, 16, 28, 2, 2, 1, 1, grid_attributes, infer_grid_sample,
                   compute_grid_sample, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED}),
    RONDO_OP_ENTRY(AffineGrid, 20, 28, 2, 2, 1, 1, affine_attributes, infer_affine_grid,
                   compute_affine_grid, .half = {HALF_STAYS | HALF_TRACED, HALF_EXACT, HALF_BOXED}),
    RONDO_OP_ENTRY(RoiAlign, 10, 28, 3, 3, 1, 1, align_attributes, infer_roi_align,
                   compute_roi_align, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED},
                   .is_fallible = true),
    RONDO_OP_ENTRY(MaxRoiPool, 1, 28, 2, 2, 1, 1, max_roi_attributes, infer_max_roi_pool,
                   compute_max_roi_pool, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED},
                   .is_fallible = true),
    {.name = NULL},
};
