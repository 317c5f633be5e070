// op/image/op_pad.c — Pad, CenterCropPad and Col2Im.
//
// Padding is described by one table for each axis: which input position an output position shows,
// or -1 for the constant. All modes, and cropping by negative pads, are ways to fill these tables.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/image/pad.h"
#include "op/image/window.h"
#include "op/op.h"
#include "op/support.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP, PAD_UNKNOWN } pad_mode;

static pad_mode get_mode(const rondo__op *op) {
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    const char *mode = rondo__op_get_string(op, "mode", "constant");
    for (int i = 0; i < 4; ++i) {
        if (strcmp(mode, names[i]) == 0 && (i != PAD_WRAP || op->opset >= 19)) {
            return (pad_mode)i;
        }
    }
    return PAD_UNKNOWN;
}

static rondo_status check_pad(const rondo__op *op) {
    return get_mode(op) == PAD_UNKNOWN ? rondo__op_fail_unsupported(op, "attribute mode")
                                       : RONDO_STATUS_OK;
}

// The input position that `position` (counted from the input's start) shows; extent is above 0.
static int64_t map_position(pad_mode mode, int64_t position, int64_t extent) {
    if (position >= 0 && position < extent) {
        return position;
    }
    int64_t period = 0;
    switch (mode) {
        case PAD_EDGE:
            return position < 0 ? 0 : extent - 1;
        case PAD_WRAP:
            return ((position % extent) + extent) % extent;
        case PAD_REFLECT:
            if (extent == 1) {
                return 0;
            }
            period = 2 * (extent - 1);
            position = ((position % period) + period) % period;
            return position < extent ? position : period - position;
        default:
            return -1;
    }
}

// A row of the result, along the innermost axis, by its table: elements [first, end) are neighbours
// in the input, too.
typedef struct pad_row {
    const int64_t *table;
    int64_t length, first, end;
    size_t bytes;  // of an element
    const void *constant;
} pad_row;

static pad_row find_row(const int64_t *table, int64_t length, size_t bytes, const void *constant) {
    pad_row row = {table, length, 0, 0, bytes, constant};
    for (int64_t i = 0, end; i < length; i = end) {
        for (end = i + 1; end < length && table[i] >= 0 && table[end] == table[i] + end - i;) {
            ++end;
        }
        if (end - i > row.end - row.first) {
            row.first = i;
            row.end = end;
        }
    }
    return row;
}

// One by one. `source` NULL: nothing but the constant.
static void pad_elements(const pad_row *row, const char *source, int64_t first, int64_t end,
                         char *destination) {
    const size_t bytes = row->bytes;
    for (int64_t i = first; i < end; ++i) {
        const bool is_inside = source != NULL && row->table[i] >= 0;
        const void *from = is_inside ? source + row->table[i] * (int64_t)bytes : row->constant;
        char *to = destination + (size_t)i * bytes;
        if (bytes == 4) {
            memcpy(to, from, 4);
        } else {
            memcpy(to, from, bytes);
        }
    }
}

static void fill_row(const pad_row *row, const char *source, char *destination) {
    if (source == NULL || row->table[row->first] < 0) {
        pad_elements(row, source, 0, row->length, destination);
        return;
    }
    pad_elements(row, source, 0, row->first, destination);
    memcpy(destination + (size_t)row->first * row->bytes,
           source + row->table[row->first] * (int64_t)row->bytes,
           (size_t)(row->end - row->first) * row->bytes);
    pad_elements(row, source, row->end, row->length, destination);
}

// Pads `input` (begin[d] may be negative) into a dense `output` of `shape`.
static rondo_status pad_tensor(const rondo_tensor *input, const rondo_shape *shape,
                               const int64_t *begin, pad_mode mode, const void *constant,
                               void *output) {
    int32_t rank = shape->rank;
    int64_t count = rondo_shape_get_count(shape);
    size_t bytes = rondo_dtype_get_bytes(input->dtype);
    if (count == 0) {
        return RONDO_STATUS_OK;
    }
    if (rank == 0) {
        memcpy(output, input->data, bytes);
        return RONDO_STATUS_OK;
    }
    // The sum of extents is at most their product plus the rank: it fits.
    size_t entries = 0;
    for (int32_t d = 0; d < rank; ++d) {
        entries += (size_t)shape->extent[d];
    }
    int64_t *tables = rondo__calloc(entries, sizeof *tables);
    if (tables == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const int64_t *table[RONDO_RANK_MAX] = {NULL};
    int64_t *next = tables;
    for (int32_t d = 0; d < rank; ++d) {
        table[d] = next;
        rondo__kept_range kept =
            rondo__pad_get_kept(input->shape.extent[d], shape->extent[d], begin[d]);
        for (int64_t i = 0; i < shape->extent[d]; ++i) {
            int64_t at =
                kept.extent == 0 ? -1 : map_position(mode, i - begin[d] - kept.first, kept.extent);
            *next++ = at < 0 ? -1 : at + kept.first;
        }
    }
    int64_t strides[RONDO_RANK_MAX];
    rondo__shape_get_strides(&input->shape, strides);
    int64_t index[RONDO_RANK_MAX] = {0};
    const int64_t length = shape->extent[rank - 1];
    const pad_row rows = find_row(table[rank - 1], length, bytes, constant);
    char *to = output;
    for (int64_t row = 0; row < count / length; ++row) {
        int64_t offset = 0;
        bool is_inside = true;
        for (int32_t d = 0; is_inside && d < rank - 1; ++d) {
            is_inside = table[d][index[d]] >= 0;
            offset += table[d][index[d]] * strides[d];
        }
        fill_row(&rows, is_inside ? (const char *)input->data + offset * (int64_t)bytes : NULL, to);
        to += (size_t)length * bytes;
        for (int32_t d = rank - 2; d >= 0; --d) {
            if (++index[d] < shape->extent[d]) {
                break;
            }
            index[d] = 0;
        }
    }
    rondo__free(tables);
    return RONDO_STATUS_OK;
}

// ---- Pad --------------------------------------------------------------------------------------

// Far from overflow when positions are shifted by it.
#define PAD_MAX (INT64_MAX / 4)

typedef struct pad_plan {
    rondo_shape shape;
    int64_t begin[RONDO_RANK_MAX];
} pad_plan;

// `pads` (begins, then ends) is for all axes, or for those in `axes`.
static rondo_status make_pad_plan(const rondo__op *op, const rondo_shape *x, const int64_t *pads,
                                  size_t pad_count, const int64_t *axes, size_t axis_count,
                                  pad_plan *out_plan) {
    pad_plan plan = {.shape = *x};
    size_t padded = axes != NULL ? axis_count : (size_t)x->rank;
    uint32_t mask = 0;
    if (pad_count != 2 * padded) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%zu pads are given for %zu axes", pad_count, padded);
    }
    if (axes != NULL) {
        RETURN_IF_ERROR(rondo__op_resolve_axes(op, axes, axis_count, x->rank, &mask));
    }
    for (size_t i = 0; i < padded; ++i) {
        int32_t d = (int32_t)i;
        if (axes != NULL) {
            d = (int32_t)(axes[i] < 0 ? axes[i] + x->rank : axes[i]);
        }
        plan.begin[d] = pads[i];
        if (pads[i] < -PAD_MAX || pads[i] > PAD_MAX ||
            !rondo__add_i64(x->extent[d], pads[i], &plan.shape.extent[d]) ||
            !rondo__add_i64(plan.shape.extent[d], pads[padded + i], &plan.shape.extent[d]) ||
            plan.shape.extent[d] < 0) {
            return RONDO_OP_FAIL(
                op, BAD_DATA, "pads %lld and %lld do not fit extent %lld of axis %d",
                (long long)pads[i], (long long)pads[padded + i], (long long)x->extent[d], d);
        }
        rondo__kept_range kept =
            rondo__pad_get_kept(x->extent[d], plan.shape.extent[d], plan.begin[d]);
        if (kept.extent == 0 && plan.shape.extent[d] > 0 && get_mode(op) != PAD_CONSTANT) {
            return RONDO_OP_FAIL(op, BAD_DATA, "axis %d is empty: there is nothing to repeat", d);
        }
    }
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

static rondo_status plan_pad(const rondo__op *op, const rondo_shape *x, const rondo_tensor *pads,
                             const rondo_tensor *axes, pad_plan *out_plan) {
    size_t pad_count = 0;
    if (op->opset < 11) {
        const int64_t *values = rondo__op_get_ints(op, "pads", &pad_count);
        return make_pad_plan(op, x, values, pad_count, NULL, 0, out_plan);
    }
    int64_t pad_values[2 * RONDO_RANK_MAX];
    int64_t axis_values[RONDO_RANK_MAX];
    size_t axis_count = 0;
    RETURN_IF_ERROR(
        rondo__op_read_ints(op, "pads", pads, 2 * RONDO_RANK_MAX, pad_values, &pad_count));
    if (axes != NULL) {
        RETURN_IF_ERROR(
            rondo__op_read_ints(op, "axes", axes, RONDO_RANK_MAX, axis_values, &axis_count));
    }
    return make_pad_plan(op, x, pad_values, pad_count, axes != NULL ? axis_values : NULL,
                         axis_count, out_plan);
}

static rondo_status infer_pad(rondo__infer *infer) {
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    RETURN_IF_ERROR(check_pad(infer->op));
    const rondo_tensor *pads = NULL;
    const rondo_tensor *axes = NULL;
    const rondo_dtype dtype = infer->inputs[0].dtype;
    if (infer->op->opset < 11 && (dtype == RONDO_DTYPE_C64 || dtype == RONDO_DTYPE_C128)) {
        return rondo__op_fail_dtype(infer->op, 0, dtype);  // its value is a float
    }
    if (infer->op->opset >= 11) {
        pads = infer->inputs[1].constant;
        if (pads == NULL) {
            return rondo__infer_needs_value(infer, 1);
        }
        if (rondo__infer_has_input(infer, 2)) {
            RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, 2));
            if (rondo_shape_get_count(&infer->inputs[2].shape) != 1) {
                return RONDO_OP_FAIL(infer->op, BAD_DATA, "the constant must be one number");
            }
        }
        if (rondo__infer_has_input(infer, 3)) {
            axes = infer->inputs[3].constant;
            if (axes == NULL) {
                return rondo__infer_needs_value(infer, 3);
            }
        }
    }
    pad_plan plan;
    RETURN_IF_ERROR(plan_pad(infer->op, &infer->inputs[0].shape, pads, axes, &plan));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &plan.shape);
}

static rondo_status compute_pad(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *pads = rondo__compute_has_input(compute, 1) ? compute->inputs[1] : NULL;
    const rondo_tensor *axes = rondo__compute_has_input(compute, 3) ? compute->inputs[3] : NULL;
    pad_plan plan;
    RETURN_IF_ERROR(plan_pad(compute->op, &input->shape, pads, axes, &plan));
    uint64_t constant[2] = {0};  // an element of up to 16 bytes
    if (compute->op->opset < 11) {
        float value = rondo__op_get_float(compute->op, "value", 0.0f);
        rondo__convert_elements(RONDO_DTYPE_F32, &value, input->dtype, constant, 1);
    } else if (rondo__compute_has_input(compute, 2)) {
        memcpy(constant, compute->inputs[2]->data, rondo_dtype_get_bytes(input->dtype));
    }
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    return pad_tensor(input, &plan.shape, plan.begin, get_mode(compute->op), constant, output);
}

// ---- CenterCropPad ----------------------------------------------------------------------------

static rondo_status plan_center(const rondo__op *op, const rondo_shape *x,
                                const rondo_tensor *target, pad_plan *out_plan) {
    pad_plan plan = {.shape = *x};
    int64_t extents[RONDO_RANK_MAX];
    size_t count = 0;
    size_t axis_count = 0;
    const int64_t *axes = rondo__op_get_ints(op, "axes", &axis_count);
    uint32_t mask = 0;
    RETURN_IF_ERROR(rondo__op_read_ints(op, "the shape", target, RONDO_RANK_MAX, extents, &count));
    if (count != (axes != NULL ? axis_count : (size_t)x->rank)) {
        return RONDO_OP_FAIL(op, BAD_DATA, "the shape has %zu entries, which are not the axes",
                             count);
    }
    if (axes != NULL) {
        RETURN_IF_ERROR(rondo__op_resolve_axes(op, axes, axis_count, x->rank, &mask));
    }
    for (size_t i = 0; i < count; ++i) {
        int32_t d = (int32_t)i;
        if (axes != NULL) {
            d = (int32_t)(axes[i] < 0 ? axes[i] + x->rank : axes[i]);
        }
        if (extents[i] < 0) {
            return RONDO_OP_FAIL(op, BAD_DATA, "extent %zu is %lld", i, (long long)extents[i]);
        }
        plan.shape.extent[d] = extents[i];
        // Halves round down before the data, so that an odd element goes behind it.
        plan.begin[d] = extents[i] >= x->extent[d] ? (extents[i] - x->extent[d]) / 2
                                                   : -((x->extent[d] - extents[i]) / 2);
    }
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

static rondo_status infer_center(rondo__infer *infer) {
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    if (infer->inputs[1].constant == NULL) {
        return rondo__infer_needs_value(infer, 1);
    }
    pad_plan plan;
    RETURN_IF_ERROR(
        plan_center(infer->op, &infer->inputs[0].shape, infer->inputs[1].constant, &plan));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &plan.shape);
}

static rondo_status compute_center(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    pad_plan plan;
    RETURN_IF_ERROR(plan_center(compute->op, &input->shape, compute->inputs[1], &plan));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    const uint64_t zero[2] = {0};
    return pad_tensor(input, &plan.shape, plan.begin, PAD_CONSTANT, zero, output);
}

// ---- Col2Im -----------------------------------------------------------------------------------

typedef struct col2im_plan {
    int32_t spatial;  // number of image axes
    int64_t image[RONDO_RANK_MAX];
    int64_t block[RONDO_RANK_MAX];
    int64_t dilations[RONDO_RANK_MAX];
    int64_t begin[RONDO_RANK_MAX];
    int64_t strides[RONDO_RANK_MAX];
    int64_t positions[RONDO_RANK_MAX];  // of the block along each axis
    int64_t block_count;
    rondo_shape shape;  // [N, C, image...]
} col2im_plan;

// Reads an attribute with `count` entries within [lowest, 2^31), or repeats the default.
static rondo_status read_window(const rondo__op *op, const char *name, size_t count, int64_t lowest,
                                int64_t fallback, int64_t *out_values) {
    size_t given = 0;
    const int64_t *values = rondo__op_get_ints(op, name, &given);
    if (values != NULL && given != count) {
        return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s has %zu entries, not %zu", name, given,
                             count);
    }
    for (size_t i = 0; i < count; ++i) {
        out_values[i] = values != NULL ? values[i] : fallback;
        if (out_values[i] < lowest || out_values[i] > INT32_MAX) {
            return RONDO_OP_FAIL(op, BAD_DATA, "attribute %s holds %lld", name,
                                 (long long)out_values[i]);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status plan_col2im(const rondo__op *op, const rondo_shape *x,
                                const rondo_tensor *image, const rondo_tensor *block,
                                col2im_plan *out_plan) {
    col2im_plan plan = {0};
    size_t spatial = 0;
    size_t block_rank = 0;
    int64_t pads[2 * RONDO_RANK_MAX];
    RETURN_IF_ERROR(
        rondo__op_read_ints(op, "image_shape", image, RONDO_RANK_MAX - 2, plan.image, &spatial));
    RETURN_IF_ERROR(
        rondo__op_read_ints(op, "block_shape", block, RONDO_RANK_MAX - 2, plan.block, &block_rank));
    if (x->rank != 3 || spatial != block_rank || spatial == 0) {
        return RONDO_OP_FAIL(op, BAD_DATA,
                             "needs rank 3, and image_shape and block_shape of one length");
    }
    RETURN_IF_ERROR(read_window(op, "dilations", spatial, 1, 1, plan.dilations));
    RETURN_IF_ERROR(read_window(op, "strides", spatial, 1, 1, plan.strides));
    RETURN_IF_ERROR(read_window(op, "pads", 2 * spatial, 0, 0, pads));
    plan.spatial = (int32_t)spatial;
    plan.block_count = 1;
    int64_t columns = 1;
    for (size_t d = 0; d < spatial; ++d) {
        if (plan.block[d] < 1 || plan.block[d] > INT32_MAX || plan.image[d] < 0 ||
            plan.image[d] > INT32_MAX ||
            !rondo__mul_i64(plan.block_count, plan.block[d], &plan.block_count)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "image or block extent %zu is out of range", d);
        }
        plan.begin[d] = pads[d];
        int64_t room = plan.image[d] + pads[d] + pads[spatial + d] -
                       plan.dilations[d] * (plan.block[d] - 1) - 1;
        plan.positions[d] = room < 0 ? 0 : room / plan.strides[d] + 1;
        if (!rondo__mul_i64(columns, plan.positions[d], &columns)) {
            return RONDO_OP_FAIL(op, BAD_DATA, "the image is too large");
        }
        plan.shape.extent[2 + d] = plan.image[d];
    }
    if (x->extent[1] % plan.block_count != 0 || x->extent[2] != columns) {
        return RONDO_OP_FAIL(op, BAD_DATA, "%lld columns of %lld do not make %lld blocks of %lld",
                             (long long)x->extent[2], (long long)x->extent[1], (long long)columns,
                             (long long)plan.block_count);
    }
    plan.shape.rank = 2 + plan.spatial;
    plan.shape.extent[0] = x->extent[0];
    plan.shape.extent[1] = x->extent[1] / plan.block_count;
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

static rondo_status infer_col2im(rondo__infer *infer) {
    rondo_dtype dtype = rondo__dtype_widen(infer->inputs[0].dtype);
    if (dtype != RONDO_DTYPE_F32 && dtype != RONDO_DTYPE_F64) {
        return rondo__op_fail_dtype(infer->op, 0, infer->inputs[0].dtype);
    }
    infer->outputs[0].dtype = infer->inputs[0].dtype;
    for (size_t i = 1; i < 3; ++i) {
        if (infer->inputs[i].constant == NULL) {
            return rondo__infer_needs_value(infer, i);
        }
    }
    col2im_plan plan;
    RETURN_IF_ERROR(plan_col2im(infer->op, &infer->inputs[0].shape, infer->inputs[1].constant,
                                infer->inputs[2].constant, &plan));
    return rondo__infer_set_output(infer, 0, infer->inputs[0].dtype, &plan.shape);
}

// The positions of one element of the block. One along the last axis lies inside the image from
// `first` to before `end`.
typedef struct col2im_element {
    int64_t start[RONDO_RANK_MAX];  // the pixel of position 0 along each axis, maybe in the padding
    int64_t first, end;
} col2im_element;

static int64_t divide_up(int64_t value, int64_t by) {
    return by == 1 ? value : (value + by - 1) / by;  // a division takes as long as half a line
}

static col2im_element locate_element(const col2im_plan *plan, const int64_t *place) {
    const int32_t last = plan->spatial - 1;
    const int64_t stride = plan->strides[last];
    col2im_element found = {.first = 0};
    for (int32_t d = 0; d <= last; ++d) {
        found.start[d] = place[d] * plan->dilations[d] - plan->begin[d];
    }
    const int64_t start = found.start[last];
    found.first = start < 0 ? divide_up(-start, stride) : 0;
    found.end = plan->image[last] - start;
    found.end = found.end > 0 ? divide_up(found.end, stride) : 0;
    found.end = found.end < plan->positions[last] ? found.end : plan->positions[last];
    return found;
}

// The pixel of position 0 of the last two axes (or of the only one) at these positions of those
// before them; false: they lie in the padding.
static bool locate_lines(const col2im_plan *plan, const col2im_element *element,
                         const int64_t *position, int64_t *out_pixel) {
    int64_t pixel = 0;
    for (int32_t d = 0; d < plan->spatial - 2; ++d) {
        const int64_t at = element->start[d] + position[d] * plan->strides[d];
        if (at < 0 || at >= plan->image[d]) {
            return false;
        }
        pixel = (pixel + at) * plan->image[d + 1];
    }
    *out_pixel = pixel;
    return true;
}

#define DEFINE_COL2IM(name, type)                                                                 \
    static void add_line_##name(const type *restrict from, type *restrict to, int64_t stride,     \
                                int64_t count) {                                                  \
        if (stride == 1) {                                                                        \
            for (int64_t i = 0; i < count; ++i) {                                                 \
                to[i] += from[i];                                                                 \
            }                                                                                     \
            return;                                                                               \
        }                                                                                         \
        for (int64_t i = 0; i < count; ++i) {                                                     \
            to[i * stride] += from[i];                                                            \
        }                                                                                         \
    }                                                                                             \
    static void col2im_##name(const col2im_plan *plan, int64_t columns, const type *x, type *y) { \
        const int64_t planes = plan->shape.extent[0] * plan->shape.extent[1];                     \
        const int64_t pixels = rondo__shape_multiply(&plan->shape, 2, plan->shape.rank);          \
        const int32_t last = plan->spatial - 1;                                                   \
        const int32_t next = last > 0 ? last - 1 : RONDO_RANK_MAX - 1; /* there: one line */      \
        const int64_t length = plan->positions[last], stride = plan->strides[last];               \
        const int64_t lines = last > 0 ? plan->positions[next] : 1;                               \
        const int64_t width = plan->image[last], height = last > 0 ? plan->image[next] : 1;       \
        const int64_t down = last > 0 ? plan->strides[next] : 1;                                  \
        int64_t place[RONDO_RANK_MAX] = {0};                                                      \
        for (int64_t row = 0; row < planes * plan->block_count; ++row) {                          \
            const col2im_element element = locate_element(plan, place);                           \
            const int64_t count = element.end - element.first;                                    \
            const int64_t begin = element.start[last] + element.first * stride;                   \
            const type *from = x + row * columns;                                                 \
            int64_t position[RONDO_RANK_MAX] = {0};                                               \
            int64_t pixel;                                                                        \
            do {                                                                                  \
                if (count > 0 && locate_lines(plan, &element, position, &pixel)) {                \
                    int64_t at = last > 0 ? element.start[next] : 0;                              \
                    for (int64_t line = 0; line < lines; ++line, at += down) {                    \
                        if (at >= 0 && at < height) {                                             \
                            add_line_##name(from + line * length + element.first,                 \
                                            y + (pixel + at) * width + begin, stride, count);     \
                        }                                                                         \
                    }                                                                             \
                }                                                                                 \
                from += lines * length;                                                           \
            } while (rondo__index_advance(last > 0 ? last - 1 : 0, plan->positions, position));   \
            y += rondo__index_advance(plan->spatial, plan->block, place) ? 0 : pixels;            \
        }                                                                                         \
    }
RONDO_OP_FLOAT_MAP(DEFINE_COL2IM)

static rondo_status compute_col2im(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    col2im_plan plan;
    RETURN_IF_ERROR(
        plan_col2im(compute->op, &input->shape, compute->inputs[1], compute->inputs[2], &plan));
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    size_t bytes = rondo_tensor_get_bytes(&compute->outputs[0]);
    if (bytes == 0) {
        return RONDO_STATUS_OK;
    }
    memset(output, 0, bytes);
    if (input->shape.extent[2] == 0) {
        return RONDO_STATUS_OK;
    }
    if (input->dtype == RONDO_DTYPE_F32) {
        col2im_F32(&plan, input->shape.extent[2], input->data, output);
    } else {
        col2im_F64(&plan, input->shape.extent[2], input->data, output);
    }
    return RONDO_STATUS_OK;
}

// ---- the table --------------------------------------------------------------------------------

static const char *const pad_attributes[] = {"mode", "pads", "value", NULL};
static const char *const pad_11_attributes[] = {"mode", NULL};
static const char *const center_attributes[] = {"axes", NULL};
static const char *const col2im_attributes[] = {"dilations", "pads", "strides", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, half, attribute_list, infer_function, \
              compute_function, ...)                                                         \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, 1, .flags = half,           \
                 .capture = RONDO__CAPTURE_YES, .attributes = attribute_list,                \
                 .infer = infer_function, .compute = compute_function, .check = __VA_ARGS__)
#define HALF RONDO__OP_NATIVE_HALF

const rondo__op_def rondo__op_table_pad[] = {
    ENTRY(CenterCropPad, 18, 28, 2, 2, HALF, center_attributes, infer_center, compute_center, NULL,
          .moved = RONDO__INPUT_0),
    ENTRY(Col2Im, 18, 28, 3, 3, 0, col2im_attributes, infer_col2im, compute_col2im, NULL),
    ENTRY(Pad, 2, 10, 1, 1, HALF, pad_attributes, infer_pad, compute_pad, check_pad,
          .moved = RONDO__INPUT_0 | RONDO__INPUT_2),
    ENTRY(Pad, 11, 28, 2, 4, HALF, pad_11_attributes, infer_pad, compute_pad, check_pad,
          .moved = RONDO__INPUT_0 | RONDO__INPUT_2),
    {0},
};
