// op/image/op_regions.c — RoiAlign, CropAndResize and MaxRoiPool: boxes of an image, pooled or
// resized.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "op/image/sampling.h"
#include "op/op.h"

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
    const double parts = rondo__sample_round(bin->is_wide, ((double)index + 0.5) * size);
    return rondo__sample_round(bin->is_wide,
                               start + rondo__sample_round(bin->is_wide, parts / (double)count));
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

// Box `r`, as corners in the image's pixels, and the size of its bins with their samples.
static rondo_status read_box(const rondo__op *op, const double *rois, int64_t r, int64_t rows,
                             int64_t columns, double *out_box, roi_bin *bin) {
    const int64_t ratio = rondo__op_get_int(op, "sampling_ratio", 0);
    const double scale = (double)rondo__op_get_float(op, "spatial_scale", 1.0f);
    const bool is_wide = bin->is_wide;
    // Version 10 knew neither the attribute nor the half pixel.
    const char *transform = rondo__op_get_string(
        op, "coordinate_transformation_mode", op->opset < 16 ? "output_half_pixel" : "half_pixel");
    const bool is_half_pixel = strcmp(transform, "half_pixel") == 0;
    for (int i = 0; i < 4; i++) {
        out_box[i] = rondo__sample_round(is_wide, rois[4 * r + i] * scale);
        out_box[i] = rondo__sample_round(is_wide, out_box[i] - (is_half_pixel ? 0.5 : 0.0));
    }
    double width = rondo__sample_round(is_wide, out_box[2] - out_box[0]);
    double height = rondo__sample_round(is_wide, out_box[3] - out_box[1]);
    if (!is_half_pixel) {
        width = fmax(width, 1.0);
        height = fmax(height, 1.0);
    }
    bin->height = rondo__sample_round(is_wide, height / (double)rows);
    bin->width = rondo__sample_round(is_wide, width / (double)columns);
    if (!(fabs(bin->height) < ROI_GRID_MAX && fabs(bin->width) < ROI_GRID_MAX)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "box %lld of input rois is %g x %g", (long long)r,
                             height, width);
    }
    bin->rows = ratio > 0 ? ratio : (int64_t)fmax(ceil(bin->height), 0.0);
    bin->columns = ratio > 0 ? ratio : (int64_t)fmax(ceil(bin->width), 0.0);
    return RONDO_STATUS_OK;
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
    const bool is_max = strcmp(rondo__op_get_string(op, "mode", "avg"), "max") == 0;
    const bool is_wide = compute->inputs[1]->dtype == RONDO_DTYPE_F64;
    const int64_t *batch_indices = compute->inputs[2]->data;
    rondo__scratch scratch = {0};
    const double *x = rondo__sample_turn_planes(&scratch, compute->inputs[0]);
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
        roi_bin bin = {.is_wide = is_wide};
        scratch.status = read_box(op, rois, r, pooled_height, pooled_width, box, &bin);
        if (scratch.status != RONDO_STATUS_OK) {
            return rondo__scratch_end(&scratch);
        }
        const int64_t bins = pooled_height * pooled_width;
        for (int64_t i = 0; i < bins; i++) {
            const double down = (double)(i / pooled_width) * bin.height;
            const double across = (double)(i % pooled_width) * bin.width;
            bin.top = rondo__sample_round(is_wide, box[1] + rondo__sample_round(is_wide, down));
            bin.left = rondo__sample_round(is_wide, box[0] + rondo__sample_round(is_wide, across));
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
    const double size = rondo__sample_round(is_wide, length / (double)count);
    const double begin = rondo__sample_round(is_wide, (double)index * size);
    const double end = rondo__sample_round(is_wide, (double)(index + 1) * size);
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
            box[i] = round(rondo__sample_round(is_wide, roi[1 + i] * scale));
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

static const char *const align_attributes[] = {"coordinate_transformation_mode",
                                               "mode",
                                               "output_height",
                                               "output_width",
                                               "sampling_ratio",
                                               "spatial_scale",
                                               NULL};
static const char *const max_roi_attributes[] = {"pooled_shape", "spatial_scale", NULL};
static const char *const crop_attributes[] = {"extrapolation_value", "mode", NULL};

const rondo__op_def rondo__op_table_regions[] = {
    RONDO_OP_ROW(MS, CropAndResize, 1, 1, 4, 4, 1, 1, .capture = RONDO__CAPTURE_YES,
                 .attributes = crop_attributes, .infer = infer_crop, .compute = compute_crop,
                 .is_fallible = true),
    RONDO_OP_ENTRY(RoiAlign, 10, 28, 3, 3, 1, 1, align_attributes, infer_roi_align,
                   compute_roi_align, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED},
                   .is_fallible = true),
    RONDO_OP_ENTRY(MaxRoiPool, 1, 28, 2, 2, 1, 1, max_roi_attributes, infer_max_roi_pool,
                   compute_max_roi_pool, .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED},
                   .is_fallible = true),
    {.name = NULL},
};
