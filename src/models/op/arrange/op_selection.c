// op/arrange/op_selection.c — picking elements by value: Compress, NonMaxSuppression, NonZero.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "op/arrange/sort_key.h"
#include "op/bounds.h"
#include "op/op.h"
#include "op/support.h"

// ---- Compress ---------------------------------------------------------------------------------

static rondo_status infer_compress(rondo__infer *infer) {
    const rondo__tensor_info *condition = &infer->inputs[1];
    if (condition->dtype != RONDO_DTYPE_BOOL || condition->shape.rank != 1) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "the condition must be a list of bool");
    }
    rondo_shape shape = {.rank = 1, .extent = {-1}};
    if (rondo__op_find(infer->op, "axis") != NULL) {
        int32_t axis = 0;
        RETURN_IF_ERROR(rondo__op_resolve_axis(infer->op, rondo__op_get_int(infer->op, "axis", 0),
                                               infer->inputs[0].shape.rank, &axis));
        shape = infer->inputs[0].shape;
        shape.extent[axis] = -1;
    }
    (void)rondo__infer_set_data_dependent(infer, infer->inputs[0].dtype);
    return rondo__infer_set_partial(infer, 0, &shape);
}

static rondo_status compute_compress(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *condition = compute->inputs[1];
    const uint8_t *keeps = condition->data;
    // Without an axis the input counts as a list.
    rondo_shape x = {.rank = 1, .extent = {rondo_shape_get_count(&input->shape)}};
    int32_t axis = 0;
    if (rondo__op_find(compute->op, "axis") != NULL) {
        x = input->shape;
        RETURN_IF_ERROR(rondo__op_resolve_axis(
            compute->op, rondo__op_get_int(compute->op, "axis", 0), x.rank, &axis));
    }
    int64_t condition_count = condition->shape.extent[0];
    int64_t extent = x.extent[axis];
    int64_t kept = 0;
    for (int64_t i = 0; i < condition_count; ++i) {
        if (keeps[i] != 0) {
            ++kept;
            if (i >= extent) {
                return RONDO_OP_FAIL(compute->op, BAD_DATA,
                                     "the condition picks element %lld of %lld", (long long)i,
                                     (long long)extent);
            }
        }
    }
    rondo_shape shape = x;
    shape.extent[axis] = kept;
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, input->dtype, &shape, &output));
    int64_t outer = rondo__shape_multiply(&x, 0, axis);
    size_t bytes =
        (size_t)rondo__shape_multiply(&x, axis + 1, x.rank) * rondo_dtype_get_bytes(input->dtype);
    uint8_t *to = output;
    for (int64_t o = 0; bytes > 0 && o < outer; ++o) {
        for (int64_t i = 0; i < condition_count && i < extent; ++i) {
            if (keeps[i] != 0) {
                memcpy(to, (const uint8_t *)input->data + (size_t)(o * extent + i) * bytes, bytes);
                to += bytes;
            }
        }
    }
    return RONDO_STATUS_OK;
}

// ---- NonZero ----------------------------------------------------------------------------------

static rondo_status infer_non_zero(rondo__infer *infer) {
    // A scalar counts as a list of one.
    const int32_t rank = infer->inputs[0].shape.rank > 0 ? infer->inputs[0].shape.rank : 1;
    (void)rondo__infer_set_data_dependent(infer, RONDO_DTYPE_I64);
    return rondo__infer_set_partial(infer, 0, &(rondo_shape){.rank = 2, .extent = {rank, -1}});
}

enum { LOOK_PART = 512 };  // elements that are looked at together

// 1 for each of `count` elements that is not zero, else 0.
static void mark_elements(const rondo_tensor *x, int64_t first, int64_t count, uint8_t *marks) {
    const uint8_t *from =
        (const uint8_t *)x->data + (size_t)first * rondo_dtype_get_bytes(x->dtype);
    rondo__convert_elements(x->dtype, from, RONDO_DTYPE_BOOL, marks, (size_t)count);
}

// Writes the positions of the marked elements; *column counts those of `found` that are written.
static void list_marks(const uint8_t *marks, int64_t count, int64_t first, int64_t found,
                       int64_t *places, int64_t *column) {
    int64_t at = *column;
    for (int64_t i = 0; i < count && at < found; ++i) {
        places[at] = first + i;
        at += marks[i] != 0;
    }
    *column = at;
}

static rondo_status compute_non_zero(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    const int64_t count = rondo_shape_get_count(&input->shape);
    uint8_t marks[LOOK_PART];
    int64_t found = 0;
    for (int64_t i = 0; i < count; i += LOOK_PART) {
        const int64_t part = count - i < LOOK_PART ? count - i : LOOK_PART;
        mark_elements(input, i, part, marks);
        for (int64_t k = 0; k < part; ++k) {
            found += marks[k] != 0;
        }
    }
    // A scalar counts as a list of one.
    rondo_shape x = input->shape;
    if (x.rank == 0) {
        x = (rondo_shape){.rank = 1, .extent = {1}};
    }
    rondo_shape shape = {.rank = 2, .extent = {x.rank, found}};
    void *output = NULL;
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, RONDO_DTYPE_I64, &shape, &output));
    int64_t *y = output;
    const int32_t last = x.rank - 1;
    const int64_t width = x.extent[last];
    int64_t column = 0;
    for (int64_t row = 0; column < found; ++row) {
        const int64_t begin = column;
        for (int64_t i = 0; i < width; i += LOOK_PART) {
            const int64_t part = width - i < LOOK_PART ? width - i : LOOK_PART;
            mark_elements(input, row * width + i, part, marks);
            list_marks(marks, part, i, found, y + last * found, &column);
        }
        int64_t rest = row;
        for (int32_t d = last - 1; d >= 0; --d) {
            for (int64_t k = begin; k < column; ++k) {
                y[d * found + k] = rest % x.extent[d];
            }
            rest /= x.extent[d];
        }
    }
    return RONDO_STATUS_OK;
}

// ---- NonMaxSuppression ------------------------------------------------------------------------

static rondo_status infer_suppression(rondo__infer *infer) {
    const rondo_shape *boxes = &infer->inputs[0].shape;
    const rondo_shape *scores = &infer->inputs[1].shape;
    if (infer->inputs[0].dtype != RONDO_DTYPE_F32 || infer->inputs[1].dtype != RONDO_DTYPE_F32) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA, "boxes and scores must be f32");
    }
    if (boxes->rank != 3 || scores->rank != 3 || boxes->extent[2] != 4 ||
        boxes->extent[0] != scores->extent[0] || boxes->extent[1] != scores->extent[2]) {
        return RONDO_OP_FAIL(infer->op, BAD_DATA,
                             "boxes must be [batches, n, 4] and scores [batches, classes, n]");
    }
    for (size_t i = 2; i < infer->input_count; ++i) {
        rondo_dtype wanted = i == 2 ? RONDO_DTYPE_I64 : RONDO_DTYPE_F32;
        if (rondo__infer_has_input(infer, i) &&
            (infer->inputs[i].dtype != wanted ||
             rondo_shape_get_count(&infer->inputs[i].shape) != 1)) {
            return RONDO_OP_FAIL(infer->op, BAD_DATA, "input %zu must be one %s number", i,
                                 rondo_dtype_get_name(wanted));
        }
    }
    (void)rondo__infer_set_data_dependent(infer, RONDO_DTYPE_I64);
    return rondo__infer_set_partial(infer, 0, &(rondo_shape){.rank = 2, .extent = {-1, 3}});
}

// All in f32, as ONNX Runtime and the reference of ONNX compare it: an overlap that equals the
// threshold in f32 does not exceed it.
enum { LOW_0, LOW_1, HIGH_0, HIGH_1, AREA, BOX_MEMBERS };
typedef struct box {
    float member[BOX_MEMBERS];
} box;

// Corners may come in either order; a center box is (x, y, width, height), and one of a negative
// extent covers nothing.
static box read_box(const float *values, bool is_center) {
    box b = {.member[AREA] = 1.0f};
    for (int i = 0; i < 2; ++i) {
        const float first = values[i];
        const float second = values[i + 2];
        float *low = &b.member[LOW_0 + i], *high = &b.member[HIGH_0 + i];
        if (is_center) {
            *low = first - second / 2.0f;
            *high = first + second / 2.0f;
        } else {
            *low = first < second ? first : second;
            *high = first < second ? second : first;
        }
        b.member[AREA] *= *high - *low;
    }
    return b;
}

typedef struct suppression {
    int64_t box_count;
    int64_t most;  // boxes to keep of each class
    float overlap_threshold;
    bool has_score_threshold;
    float score_threshold;
    bool is_center;
    rondo__sort_item *items;  // box_count
    uint64_t *keys;           // box_count
    int64_t *kept;            // box_count
    float *kept_boxes;        // [BOX_MEMBERS, box_count]
} suppression;

static float get_greater(float a, float b) {
    return a > b ? a : b;
}

static float get_lesser(float a, float b) {
    return a < b ? a : b;
}

// Whether one of the boxes that have been kept covers too much of this one; without branches inside
// of a part, which becomes vector code.
static bool is_covered(const suppression *s, const box *mine, int64_t kept) {
    enum { COVER_PART = 16 };
    const float *m = mine->member;
    const float *low_0 = s->kept_boxes + LOW_0 * s->box_count;
    const float *low_1 = s->kept_boxes + LOW_1 * s->box_count;
    const float *high_0 = s->kept_boxes + HIGH_0 * s->box_count;
    const float *high_1 = s->kept_boxes + HIGH_1 * s->box_count;
    const float *areas = s->kept_boxes + AREA * s->box_count;
    int covered = 0;
    for (int64_t first = 0; first < kept && covered == 0; first += COVER_PART) {
        const int64_t end = kept - first < COVER_PART ? kept : first + COVER_PART;
        for (int64_t k = first; k < end; ++k) {
            const float across = get_lesser(m[HIGH_0], high_0[k]) - get_greater(m[LOW_0], low_0[k]);
            const float down = get_lesser(m[HIGH_1], high_1[k]) - get_greater(m[LOW_1], low_1[k]);
            const float shared = (across > 0.0f ? across : 0.0f) * (down > 0.0f ? down : 0.0f);
            const float all = m[AREA] + areas[k] - shared;
            const int meets = (shared > 0.0f) & (m[AREA] > 0.0f) & (areas[k] > 0.0f) & (all > 0.0f);
            covered |= (meets ? shared / all : 0.0f) > s->overlap_threshold;
        }
    }
    return covered != 0;
}

// Keeps boxes of one class, best score first. Returns how many stand in s->kept.
static int64_t suppress_class(const suppression *s, const float *boxes, const rondo_tensor *scores,
                              int64_t first_score) {
    const float *score = (const float *)scores->data + first_score;
    int64_t candidates = 0;
    rondo__sort_keys(scores, first_score, 1, s->box_count, s->keys);
    for (int64_t i = 0; i < s->box_count; ++i) {
        if (!s->has_score_threshold || score[i] > s->score_threshold) {
            s->items[candidates++] = (rondo__sort_item){.key = ~s->keys[i], .index = i};
        }
    }
    for (int64_t at = candidates / 2 - 1; at >= 0; --at) {  // a heap: mostly few of them are taken
        rondo__sort_sift_down(s->items, candidates, at);
    }
    int64_t kept = 0;
    while (candidates > 0 && kept < s->most) {
        const int64_t index = s->items[0].index;
        const box mine = read_box(boxes + 4 * index, s->is_center);
        if (!is_covered(s, &mine, kept)) {
            for (int i = 0; i < BOX_MEMBERS; ++i) {
                s->kept_boxes[i * s->box_count + kept] = mine.member[i];
            }
            s->kept[kept++] = index;
        }
        s->items[0] = s->items[--candidates];
        rondo__sort_sift_down(s->items, candidates, 0);
    }
    return kept;
}

static float get_option(const rondo__compute *compute, size_t input) {
    return rondo__compute_has_input(compute, input) ? *(const float *)compute->inputs[input]->data
                                                    : 0.0f;
}

static rondo_status compute_suppression(rondo__compute *compute) {
    const rondo_tensor *boxes = compute->inputs[0];
    const rondo_tensor *scores = compute->inputs[1];
    int64_t batches = scores->shape.extent[0];
    int64_t classes = scores->shape.extent[1];
    int64_t most =
        rondo__compute_has_input(compute, 2) ? rondo__tensor_get_int(compute->inputs[2], 0) : 0;
    suppression s = {
        .box_count = boxes->shape.extent[1],
        .most = most < 0 ? 0 : most,
        .overlap_threshold = get_option(compute, 3),
        .has_score_threshold = rondo__compute_has_input(compute, 4),
        .score_threshold = get_option(compute, 4),
        .is_center = rondo__op_get_int(compute->op, "center_point_box", 0) != 0,
    };
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    int64_t *picked = NULL;  // triples of batch, class, box
    size_t capacity = 0;
    size_t count = 0;
    s.kept = rondo__calloc((size_t)s.box_count, sizeof *s.kept);
    s.kept_boxes = s.kept != NULL ? rondo__calloc((size_t)s.box_count, sizeof(box)) : NULL;
    s.keys = s.kept_boxes != NULL ? rondo__calloc((size_t)s.box_count, sizeof *s.keys) : NULL;
    s.items = s.keys != NULL ? rondo__calloc((size_t)s.box_count, sizeof *s.items) : NULL;
    if (s.items == NULL) {
        goto done;
    }
    for (int64_t line = 0; line < batches * classes; ++line) {
        int64_t batch = line / classes;
        int64_t kept = suppress_class(&s, (const float *)boxes->data + batch * s.box_count * 4,
                                      scores, line * s.box_count);
        status = RONDO__ARRAY_RESERVE(picked, capacity, count + 3 * (size_t)kept);
        if (status != RONDO_STATUS_OK) {
            goto done;
        }
        for (int64_t i = 0; i < kept; ++i) {
            int64_t *triple = picked + count;
            triple[0] = batch;
            triple[1] = line % classes;
            triple[2] = s.kept[i];
            count += 3;
        }
    }
    rondo_shape shape = {.rank = 2, .extent = {(int64_t)(count / 3), 3}};
    void *output = NULL;
    status = rondo__compute_get_output(compute, 0, RONDO_DTYPE_I64, &shape, &output);
    if (status == RONDO_STATUS_OK && count > 0) {
        memcpy(output, picked, count * sizeof(int64_t));
    }
done:
    rondo__free(picked);
    rondo__free(s.items);
    rondo__free(s.keys);
    rondo__free(s.kept_boxes);
    rondo__free(s.kept);
    return status;
}

// ---- bounds ------------------------------------------------------------------------------------

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool bound_non_zero(const rondo__bounding *b, rondo__op_bound *out_bound) {
    const rondo_shape *x = &b->inputs[0].shape;
    // A scalar counts as a list of one.
    *out_bound = (rondo__op_bound){
        .shape = {.rank = 2, .extent = {x->rank > 0 ? x->rank : 1, rondo_shape_get_count(x)}},
        .axis = 1};
    return true;
}

static bool bound_compress(const rondo__bounding *b, rondo__op_bound *out_bound) {
    if (!rondo__bound_axis(b, out_bound)) {
        return false;
    }
    int64_t *extent = &out_bound->shape.extent[out_bound->axis];
    *extent = least(*extent, b->inputs[1].shape.extent[0]);
    return true;
}

static bool bound_suppression(const rondo__bounding *b, rondo__op_bound *out_bound) {
    enum { MOST = 2 };  // boxes to keep of each class; absent: none
    const rondo_shape *scores = &b->inputs[1].shape;
    const bool has_most = MOST < b->input_count && b->inputs[MOST].dtype != RONDO_DTYPE_NONE;
    const rondo_tensor *most = has_most ? b->inputs[MOST].constant : NULL;
    int64_t kept = has_most ? scores->extent[2] : 0;
    if (most != NULL) {
        const int64_t wanted = rondo__tensor_get_int(most, 0);
        kept = least(kept, wanted < 0 ? 0 : wanted);
    }
    int64_t lines;
    *out_bound = (rondo__op_bound){.shape = {.rank = 2, .extent = {0, 3}}, .axis = 0};
    return rondo__mul_i64(scores->extent[0], scores->extent[1], &lines) &&
           rondo__mul_i64(lines, kept, &out_bound->shape.extent[0]);
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const axis_attributes[] = {"axis", NULL};
static const char *const suppression_attributes[] = {"center_point_box", NULL};

#define ENTRY(op, first, last, inputs_min, inputs_max, outputs, half, attribute_list,    \
              infer_function, ...)                                                       \
    RONDO_OP_ROW(OP, op, first, last, inputs_min, inputs_max, 1, outputs, .flags = half, \
                 .attributes = attribute_list, .infer = infer_function, .compute = __VA_ARGS__)
#define HALF RONDO__OP_NATIVE_HALF

const rondo__op_def rondo__op_table_selection[] = {
    ENTRY(Compress, 9, 28, 2, 2, 1, HALF, axis_attributes, infer_compress, compute_compress,
          .strings = RONDO__INPUT_0, .bound = bound_compress, .moved = RONDO__INPUT_0),
    ENTRY(NonMaxSuppression, 10, 28, 2, 5, 1, 0, suppression_attributes, infer_suppression,
          compute_suppression, .bound = bound_suppression,
          .half = {HALF_STAYS | HALF_TRACED, HALF_PLAIN, HALF_BOXED}),
    ENTRY(NonZero, 9, 28, 1, 1, 1, HALF, no_attributes, infer_non_zero, compute_non_zero,
          .bound = bound_non_zero),
    {0},
};
