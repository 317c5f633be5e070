// onnx/expand/expand_rest.c — ops of com.microsoft that the standard has under another name, or
// nearly so.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "onnx/expand/expand.h"

#define NEW RONDO__VALUE_NONE

static void expand_sample(rondo__expander *e) {
    EXPAND(e, "Identity", rondo__expand_out(e, 0), rondo__expand_in(e, 0));
}

static void expand_trilu(rondo__expander *e) {
    EXPAND(e, "Trilu", rondo__expand_out(e, 0), rondo__expand_in(e, 0), rondo__expand_in(e, 1));
    rondo__expand_copy(e, (const char *const[]){"upper", NULL});
}

static void expand_gather_nd(rondo__expander *e) {
    EXPAND(e, "GatherND", rondo__expand_out(e, 0), rondo__expand_in(e, 0), rondo__expand_in(e, 1));
}

// A list as one axis, whatever it comes as.
static int32_t add_flat(rondo__expander *e, int32_t value) {
    static const int64_t all = -1;
    if (value == RONDO__VALUE_NONE || rondo__expand_get_rank(e, value) == 1) {
        return value;
    }
    return EXPAND(e, "Reshape", NEW, value, rondo__expand_ints(e, &all, 1));
}

static void expand_pad(rondo__expander *e) {
    const int32_t pads = add_flat(e, rondo__expand_in(e, 1));
    int32_t value = rondo__expand_in(e, 2);
    value = value >= 0 && rondo__expand_get_rank(e, value) != 0 ? EXPAND(e, "Squeeze", NEW, value)
                                                                : value;
    EXPAND(e, "Pad", rondo__expand_out(e, 0), rondo__expand_in(e, 0), pads, value);
    rondo__expand_copy(e, (const char *const[]){"mode", NULL});
}

static void expand_unique(rondo__expander *e) {
    const int32_t x = rondo__expand_in(e, 0);
    const int32_t outputs[] = {rondo__expand_out(e, 0), RONDO__VALUE_NONE, rondo__expand_out(e, 1),
                               rondo__expand_out(e, 2)};
    rondo__expand_node_of(e, "Unique", &x, 1, outputs, 4);
    rondo__expand_set_int(e, "sorted", 0);
}

static void expand_range(rondo__expander *e) {
    const int32_t start = rondo__expand_in(e, 0);
    int32_t delta = rondo__expand_in(e, 2);
    delta = delta >= 0 ? delta : rondo__expand_number(e, 1.0f, start);
    EXPAND(e, "Range", rondo__expand_out(e, 0), start, rondo__expand_in(e, 1), delta);
}

static void expand_dims(rondo__expander *e) {
    const int32_t axis = EXPAND(e, "Cast", NEW, add_flat(e, rondo__expand_in(e, 1)));
    rondo__expand_set_int(e, "to", 7);  // i64
    EXPAND(e, "Unsqueeze", rondo__expand_out(e, 0), rondo__expand_in(e, 0), axis);
}

static void expand_grid_sample(rondo__expander *e) {
    const rondo__op *op = rondo__expand_op(e);
    const char *mode = rondo__op_get_string(op, "mode", "bilinear");
    EXPAND(e, "GridSample", rondo__expand_out(e, 0), rondo__expand_in(e, 0),
           rondo__expand_in(e, 1));
    rondo__expand_copy(e, (const char *const[]){"align_corners", "padding_mode", NULL});
    rondo__expand_set_text(e, "mode",
                           strcmp(mode, "bilinear") == 0  ? "linear"
                           : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                          : mode);
}

// x * scale + bias, a bias for each channel.
static void expand_image_scaler(rondo__expander *e) {
    static const int64_t axes[] = {1, 2};
    const rondo__op *op = rondo__expand_op(e);
    const int32_t x = rondo__expand_in(e, 0);
    size_t count = 0;
    const float *bias = rondo__op_get_floats(op, "bias", &count);
    const int32_t factor = rondo__expand_number(e, rondo__op_get_float(op, "scale", 1.0f), x);
    if (bias == NULL) {
        EXPAND(e, "Mul", rondo__expand_out(e, 0), x, factor);
        return;
    }
    const int32_t scaled = EXPAND(e, "Mul", NEW, x, factor);
    const int32_t list = rondo__expand_floats(e, bias, count);
    const int32_t typed = EXPAND(e, "CastLike", NEW, list, x);
    const int32_t column = EXPAND(e, "Unsqueeze", NEW, typed, rondo__expand_ints(e, axes, 2));
    EXPAND(e, "Add", rondo__expand_out(e, 0), scaled, column);
}

// Distances of the rows of A to those of B.
static void expand_distances(rondo__expander *e) {
    static const int64_t first = 0, second = 1, last = -1;
    const char *metric = rondo__op_get_string(rondo__expand_op(e), "metric", "sqeuclidean");
    const bool is_squared = strcmp(metric, "sqeuclidean") == 0;
    if (!is_squared && strcmp(metric, "euclidean") != 0) {
        rondo__expand_refuse(e, "attribute metric");
    }
    const int32_t a =
        EXPAND(e, "Unsqueeze", NEW, rondo__expand_in(e, 0), rondo__expand_ints(e, &second, 1));
    const int32_t b =
        EXPAND(e, "Unsqueeze", NEW, rondo__expand_in(e, 1), rondo__expand_ints(e, &first, 1));
    const int32_t difference = EXPAND(e, "Sub", NEW, a, b);
    EXPAND(e, is_squared ? "ReduceSumSquare" : "ReduceL2", rondo__expand_out(e, 0), difference,
           rondo__expand_ints(e, &last, 1));
    rondo__expand_set_int(e, "keepdims", 0);
}

static const char *const no_attributes[] = {NULL};
static const char *const upper_attributes[] = {"upper", NULL};
static const char *const mode_attributes[] = {"mode", NULL};
static const char *const metric_attributes[] = {"metric", NULL};
static const char *const grid_attributes[] = {"align_corners", "mode", "padding_mode", NULL};
static const char *const scaler_attributes[] = {"bias", "scale", NULL};

const rondo__expansion rondo__expansions_rest[] = {
    RONDO_EXPANSION("SampleOp", 1, 1, 1, 1, no_attributes, expand_sample),
    RONDO_EXPANSION("Trilu", 1, 2, 1, 1, upper_attributes, expand_trilu),
    RONDO_EXPANSION("GatherND", 2, 2, 1, 1, no_attributes, expand_gather_nd),
    RONDO_EXPANSION("Pad", 2, 3, 1, 1, mode_attributes, expand_pad),
    RONDO_EXPANSION("Unique", 1, 1, 1, 3, no_attributes, expand_unique),
    RONDO_EXPANSION("Range", 2, 3, 1, 1, no_attributes, expand_range),
    RONDO_EXPANSION("ExpandDims", 2, 2, 1, 1, no_attributes, expand_dims),
    RONDO_EXPANSION("GridSample", 2, 2, 1, 1, grid_attributes, expand_grid_sample),
    RONDO_EXPANSION("CDist", 2, 2, 1, 1, metric_attributes, expand_distances),
    {.def = {.domain = "",
             .name = "ImageScaler",
             .opset_min = 1,
             .opset_max = RONDO_OP_OPSET_MAX,
             .input_min = 1,
             .input_max = 1,
             .output_min = 1,
             .output_max = 1,
             .attributes = scaler_attributes},
     .expand = expand_image_scaler},
    {.def = {.name = NULL}},
};
