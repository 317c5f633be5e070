// op/image/convolution.c — see convolution.h.
// SPDX-License-Identifier: Apache-2.0

#include "op/image/convolution.h"

#include <string.h>

#include "base/checked.h"
#include "op/image/filters.h"
#include "op/reference.h"

// Rank, group and channel agreement of both forms.
static rondo_status check_shapes(const rondo__op *op, const rondo_shape *x, const rondo_shape *w,
                                 int64_t channels, bool is_transposed,
                                 rondo__convolution *convolution) {
    if (x->rank < 3) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input X has rank %d, at least 3 is needed", x->rank);
    }
    if (w->rank != x->rank) {
        return RONDO_OP_FAIL(op, BAD_DATA, "input W has rank %d, input X has rank %d", w->rank,
                             x->rank);
    }
    const int64_t group = rondo__op_get_int(op, "group", 1);
    if (group < 1) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute group is %lld, it must be at least 1",
                             (long long)group);
    }
    convolution->group = group;
    convolution->channels = channels;
    if (is_transposed) {
        if (w->extent[0] != channels || channels % group != 0) {
            return RONDO_OP_FAIL(op, BAD_DATA,
                                 "input W has %lld channels, X %lld, attribute group is %lld",
                                 (long long)w->extent[0], (long long)channels, (long long)group);
        }
        if (!rondo__mul_i64(w->extent[1], group, &convolution->filters)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute group makes the output too large");
        }
        return RONDO_STATUS_OK;
    }
    convolution->filters = w->extent[0];
    // Written without w * group, which could overflow.
    if (channels % group != 0 || channels / group != w->extent[1]) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "input W has %lld channels, X %lld, attribute group is %lld",
                             (long long)w->extent[1], (long long)channels, (long long)group);
    }
    if (convolution->filters % group != 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%lld filters do not divide into attribute group = %lld",
                             (long long)convolution->filters, (long long)group);
    }
    return RONDO_STATUS_OK;
}

static rondo_status finish(const rondo__op *op, bool channels_last,
                           rondo__convolution *convolution) {
    const rondo__window *window = &convolution->window;
    rondo_shape *output = &convolution->output;
    output->rank = window->rank + 2;
    output->extent[0] = convolution->batch;
    output->extent[channels_last ? output->rank - 1 : 1] = convolution->filters;
    convolution->input_span = 1;
    convolution->output_span = 1;
    convolution->kernel_span = 1;
    for (int32_t i = 0; i < window->rank; i++) {
        output->extent[(channels_last ? 1 : 2) + i] = window->output[i];
        if (!rondo__mul_i64(convolution->input_span, window->input[i], &convolution->input_span) ||
            !rondo__mul_i64(convolution->output_span, window->output[i],
                            &convolution->output_span) ||
            !rondo__mul_i64(convolution->kernel_span, window->kernel[i],
                            &convolution->kernel_span)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "the product of extents overflows");
        }
    }
    if (rondo_shape_get_count(output) < 0) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the output has too many elements");
    }
    return RONDO_STATUS_OK;
}

rondo_shape rondo__convolution_read_filters(const rondo__op *op, const rondo_shape *w) {
    rondo_shape shape = *w;
    if (w->rank > 2 && rondo__op_get_int(op, "filters_last", 0) != 0) {
        shape.extent[1] = w->extent[w->rank - 1];
        for (int32_t d = 2; d < w->rank; d++) {
            shape.extent[d] = w->extent[d - 1];
        }
    }
    return shape;
}

rondo_status rondo__convolution_init(const rondo__op *op, const rondo_shape *x,
                                     const rondo_shape *w, bool channels_last,
                                     rondo__convolution *out_convolution) {
    memset(out_convolution, 0, sizeof *out_convolution);
    const int64_t channels = x->rank < 2 ? 0 : x->extent[channels_last ? x->rank - 1 : 1];
    RETURN_IF_ERROR(check_shapes(op, x, w, channels, false, out_convolution));
    RETURN_IF_ERROR(rondo__window_init(op, x->rank - 2, x->extent + (channels_last ? 1 : 2),
                                       w->extent + 2, &out_convolution->window));
    out_convolution->batch = x->extent[0];
    return finish(op, channels_last, out_convolution);
}

rondo_status rondo__convolution_init_transposed(const rondo__op *op, const rondo_shape *x,
                                                const rondo_shape *w,
                                                rondo__convolution *out_convolution) {
    memset(out_convolution, 0, sizeof *out_convolution);
    const int64_t channels = x->rank < 2 ? 0 : x->extent[1];
    RETURN_IF_ERROR(check_shapes(op, x, w, channels, true, out_convolution));
    RETURN_IF_ERROR(rondo__window_init_transposed(op, x->rank - 2, x->extent + 2, w->extent + 2,
                                                  &out_convolution->window));
    out_convolution->batch = x->extent[0];
    return finish(op, false, out_convolution);
}

rondo_status rondo__convolution_check_bias(const rondo__op *op, const rondo_shape *bias,
                                           int64_t filters) {
    if (bias->rank != 1 || bias->extent[0] != filters) {
        char text[96];
        return RONDO_OP_FAIL(op, BAD_DATA, "input B has shape %s, [%lld] is expected",
                             rondo_shape_format(bias, text, sizeof text), (long long)filters);
    }
    return RONDO_STATUS_OK;
}

void rondo__convolution_fill_bias(const rondo__convolution *convolution, const double *bias,
                                  double *y) {
    for (int64_t n = 0; n < convolution->batch; n++) {
        for (int64_t m = 0; m < convolution->filters; m++) {
            for (int64_t i = 0; i < convolution->output_span; i++) {
                *y++ = bias[m];
            }
        }
    }
}

// Where one tap of the kernel meets the planes: positions [begin, end) of the window on each axis.
typedef struct tap_range {
    int64_t begin[RONDO__SPATIAL_MAX];
    int64_t end[RONDO__SPATIAL_MAX];
    int64_t extent[RONDO__SPATIAL_MAX];  // end - begin, of all axes but the last
} tap_range;

static bool clip_tap(const rondo__window *window, const int64_t *tap, tap_range *range) {
    bool is_inside = true;
    for (int32_t i = 0; i < window->rank; i++) {
        rondo__window_clip_positions(window, i, tap[i], &range->begin[i], &range->end[i]);
        range->extent[i] = range->end[i] - range->begin[i];
        is_inside = is_inside && range->extent[i] > 0;
    }
    return is_inside;
}

// One tap over one plane: `dense` is indexed by the window position, `strided` by what the tap sees
// from there. Forward: dense += weight * strided; transposed: strided += weight * dense.
static void run_tap(const rondo__window *window, const int64_t *tap, const tap_range *range,
                    double weight, const double *input, double *output, bool is_transposed) {
    const int32_t last = window->rank - 1;
    const int64_t stride = window->stride[last];
    const int64_t length = range->extent[last];
    int64_t row[RONDO__SPATIAL_MAX] = {0};
    do {
        int64_t dense = 0;
        int64_t strided = 0;
        for (int32_t i = 0; i <= last; i++) {
            const int64_t position = range->begin[i] + (i == last ? 0 : row[i]);
            dense = dense * window->output[i] + position;
            strided = strided * window->input[i] + position * window->stride[i] +
                      tap[i] * window->dilation[i] - window->pad_begin[i];
        }
        if (is_transposed) {
            const double *source = input + dense;
            double *target = output + strided;
            for (int64_t i = 0; i < length; i++) {
                target[i * stride] += weight * source[i];
            }
        } else if (stride == 1) {
            const double *source = input + strided;
            double *target = output + dense;
            for (int64_t i = 0; i < length; i++) {
                target[i] += weight * source[i];
            }
        } else {
            const double *source = input + strided;
            double *target = output + dense;
            for (int64_t i = 0; i < length; i++) {
                target[i] += weight * source[i * stride];
            }
        }
    } while (rondo__index_advance(last, range->extent, row));
}

void rondo__convolution_run(const rondo__convolution *convolution, const double *x, const double *w,
                            double *y) {
    const rondo__window *window = &convolution->window;
    const int64_t inner = convolution->channels / convolution->group;
    const int64_t outer = convolution->filters / convolution->group;
    if (inner == 0 || convolution->input_span == 0) {
        return;
    }
    for (int64_t n = 0; n < convolution->batch; n++) {
        for (int64_t m = 0; m < convolution->filters; m++) {
            const int64_t first = m / outer * inner;
            double *plane = y + (n * convolution->filters + m) * convolution->output_span;
            int64_t tap[RONDO__SPATIAL_MAX] = {0};
            int64_t tap_index = 0;
            do {
                tap_range range;
                if (clip_tap(window, tap, &range)) {
                    for (int64_t c = 0; c < inner; c++) {
                        const double weight =
                            w[(m * inner + c) * convolution->kernel_span + tap_index];
                        const double *source =
                            x + (n * convolution->channels + first + c) * convolution->input_span;
                        run_tap(window, tap, &range, weight, source, plane, false);
                    }
                }
                tap_index++;
            } while (rondo__index_advance(window->rank, window->kernel, tap));
        }
    }
}

void rondo__convolution_run_transposed(const rondo__convolution *convolution, const double *x,
                                       const double *w, double *y) {
    // A transposed convolution is the scatter form of the convolution that leads from y to x.
    rondo__window window = convolution->window;
    memcpy(window.input, convolution->window.output, sizeof window.input);
    memcpy(window.output, convolution->window.input, sizeof window.output);
    const int64_t inner = convolution->channels / convolution->group;
    const int64_t outer = convolution->filters / convolution->group;
    if (inner == 0 || outer == 0 || convolution->input_span == 0) {
        return;
    }
    for (int64_t n = 0; n < convolution->batch; n++) {
        for (int64_t c = 0; c < convolution->channels; c++) {
            const int64_t first = c / inner * outer;
            const double *source = x + (n * convolution->channels + c) * convolution->input_span;
            int64_t tap[RONDO__SPATIAL_MAX] = {0};
            int64_t tap_index = 0;
            do {
                tap_range range;
                if (clip_tap(&window, tap, &range)) {
                    for (int64_t m = 0; m < outer; m++) {
                        const double weight =
                            w[(c * outer + m) * convolution->kernel_span + tap_index];
                        double *plane =
                            y + (n * convolution->filters + first + m) * convolution->output_span;
                        run_tap(&window, tap, &range, weight, source, plane, true);
                    }
                }
                tap_index++;
            } while (rondo__index_advance(window.rank, window.kernel, tap));
        }
    }
}

void rondo__transpose_planes(const double *source, int64_t batch, int64_t rows, int64_t columns,
                             double *target) {
    for (int64_t n = 0; n < batch; n++) {
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t r = 0; r < rows; r++) {
                *target++ = source[r * columns + c];
            }
        }
        source += rows * columns;
    }
}
