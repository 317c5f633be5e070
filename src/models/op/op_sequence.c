// op/op_sequence.c — sequences and optionals: building them, taking them apart.
//
// A sequence is a tensor whose elements are tensors (rondo/tensor.h). Its length and items are
// known only when it exists, so inference says only that an output is a sequence; the executor runs
// these ops on the host, between segments. New sequences share the bytes of their items.
// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "op/element_types.h"
#include "op/op.h"
#include "op/reference.h"
#include "op/support.h"
#include "tensor/elements.h"

// ---- what the ops share -----------------------------------------------------------------------

static size_t count_items(const rondo_tensor *tensor) {
    return (size_t)rondo_shape_get_count(&tensor->shape);
}

static rondo_status check_sequence(const rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    return dtype == RONDO_DTYPE_SEQUENCE ? RONDO_STATUS_OK
                                         : rondo__op_fail_dtype(infer->op, 0, dtype);
}

// The type of a tensor taken from sequence `input`, where that is known.
static rondo_dtype get_item_dtype(const rondo__infer *infer, size_t input) {
    const rondo_tensor *item = rondo_tensor_get_item(infer->inputs[input].constant, 0);
    return item != NULL ? item->dtype : RONDO_DTYPE_NONE;
}

// Reads a position among `count` positions; negative ones count from the end.
static rondo_status read_position(const rondo__compute *compute, size_t input, int64_t count,
                                  int64_t *out_position) {
    const rondo_tensor *tensor = compute->inputs[input];
    if ((tensor->dtype != RONDO_DTYPE_I32 && tensor->dtype != RONDO_DTYPE_I64) ||
        rondo_shape_get_count(&tensor->shape) != 1) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "the position must be one i32 or i64 value");
    }
    int64_t position = rondo__tensor_get_int(tensor, 0);
    if (position < -count || position >= count) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "position %lld is outside [%lld, %lld)",
                             (long long)position, (long long)-count, (long long)count);
    }
    *out_position = position < 0 ? position + count : position;
    return RONDO_STATUS_OK;
}

// Hands over a sequence of `count` items; the caller filled it, or `status` says why not.
static rondo_status finish(rondo__compute *compute, rondo_status status, rondo_tensor *sequence) {
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(sequence);
        return status;
    }
    return rondo__compute_take_output(compute, 0, sequence);
}

static rondo_status infer_sequence(rondo__infer *infer) {
    return rondo__infer_set_data_dependent(infer, RONDO_DTYPE_SEQUENCE);
}

// ---- making sequences -------------------------------------------------------------------------

static rondo_status check_empty(const rondo__op *op) {
    int64_t dtype = rondo__op_get_int(op, "dtype", 1);
    return rondo__dtype_from_onnx(dtype) != RONDO_DTYPE_NONE
               ? RONDO_STATUS_OK
               : rondo__op_fail_element_type(op, "dtype", dtype);
}

static rondo_status compute_empty(rondo__compute *compute) {
    rondo_tensor sequence;
    rondo_tensor *items;
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_SEQUENCE, 0, &sequence, &items));
    return finish(compute, RONDO_STATUS_OK, &sequence);
}

static rondo_status infer_construct(rondo__infer *infer) {
    for (size_t i = 1; i < infer->input_count; ++i) {
        RETURN_IF_ERROR(rondo__infer_check_same_dtype(infer, 0, i));
    }
    return infer_sequence(infer);
}

static rondo_status compute_construct(rondo__compute *compute) {
    rondo_tensor sequence;
    rondo_tensor *items;
    RETURN_IF_ERROR(
        rondo__nested_create(RONDO_DTYPE_SEQUENCE, compute->input_count, &sequence, &items));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < compute->input_count && status == RONDO_STATUS_OK; ++i) {
        status = compute->inputs[i] != NULL
                     ? rondo__tensor_keep(compute->inputs[i], &items[i])
                     : RONDO_OP_FAIL(compute->op, BAD_DATA, "input %zu is missing", i);
    }
    return finish(compute, status, &sequence);
}

static rondo_status infer_on_sequence(rondo__infer *infer) {
    RETURN_IF_ERROR(check_sequence(infer));
    return infer_sequence(infer);
}

// The items of input 0 without those at [from, from + removed), and `added` (may be NULL) there.
static rondo_status splice(rondo__compute *compute, size_t from, size_t removed,
                           const rondo_tensor *added) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *old = input->data;
    size_t old_count = count_items(input);
    size_t count = old_count - removed + (added != NULL);
    rondo_tensor sequence;
    rondo_tensor *items;
    RETURN_IF_ERROR(rondo__nested_create(RONDO_DTYPE_SEQUENCE, count, &sequence, &items));
    rondo_status status = RONDO_STATUS_OK;
    size_t to = 0;
    for (size_t i = 0; i <= old_count && status == RONDO_STATUS_OK; ++i) {
        if (i == from && added != NULL) {
            status = rondo__tensor_keep(added, &items[to++]);
        }
        bool is_kept = i < old_count && !(i >= from && i < from + removed);
        if (status == RONDO_STATUS_OK && is_kept) {
            status = rondo__tensor_keep(&old[i], &items[to++]);
        }
    }
    return finish(compute, status, &sequence);
}

static rondo_status compute_insert(rondo__compute *compute) {
    const rondo_tensor *added = compute->inputs[1];
    const rondo_tensor *first = rondo_tensor_get_item(compute->inputs[0], 0);
    int64_t count = (int64_t)count_items(compute->inputs[0]);
    int64_t position = count;
    if (first != NULL && first->dtype != added->dtype) {
        return RONDO_OP_FAIL(
            compute->op, BAD_DATA, "the sequence holds %s, the tensor to insert is %s",
            rondo_dtype_get_name(first->dtype), rondo_dtype_get_name(added->dtype));
    }
    if (rondo__compute_has_input(compute, 2)) {
        // Behind the last item is a position, too, but it has no negative number.
        RETURN_IF_ERROR(read_position(compute, 2, count + 1, &position));
        if (rondo__tensor_get_int(compute->inputs[2], 0) < 0) {
            if (position == 0) {
                return RONDO_OP_FAIL(compute->op, BAD_DATA, "position %lld is outside [%lld, %lld]",
                                     (long long)-count - 1, (long long)-count, (long long)count);
            }
            position -= 1;
        }
    }
    return splice(compute, (size_t)position, 0, added);
}

static rondo_status compute_erase(rondo__compute *compute) {
    int64_t count = (int64_t)count_items(compute->inputs[0]);
    int64_t position = count - 1;
    if (rondo__compute_has_input(compute, 1)) {
        RETURN_IF_ERROR(read_position(compute, 1, count, &position));
    } else if (count == 0) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "the sequence is empty");
    }
    return splice(compute, (size_t)position, 1, NULL);
}

// ---- taking sequences apart -------------------------------------------------------------------

static rondo_status infer_at(rondo__infer *infer) {
    RETURN_IF_ERROR(check_sequence(infer));
    return rondo__infer_set_data_dependent(infer, get_item_dtype(infer, 0));
}

static rondo_status give_item(rondo__compute *compute, const rondo_tensor *item) {
    rondo_tensor kept;
    RETURN_IF_ERROR(rondo__tensor_keep(item, &kept));
    return rondo__compute_take_output(compute, 0, &kept);
}

static rondo_status compute_at(rondo__compute *compute) {
    const rondo_tensor *items = compute->inputs[0]->data;
    int64_t position = 0;
    RETURN_IF_ERROR(read_position(compute, 1, (int64_t)count_items(compute->inputs[0]), &position));
    return give_item(compute, &items[position]);
}

static rondo_status infer_length(rondo__infer *infer) {
    RETURN_IF_ERROR(check_sequence(infer));
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_I64, &(rondo_shape){0});
}

static rondo_status compute_length(rondo__compute *compute) {
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    *(int64_t *)output = (int64_t)count_items(compute->inputs[0]);
    return RONDO_STATUS_OK;
}

// The result of joining items along `axis`, which is a new one when `is_stacked`.
static rondo_status measure_join(const rondo__compute *compute, bool is_stacked, int32_t *out_axis,
                                 rondo_shape *out_shape) {
    const rondo_tensor *items = compute->inputs[0]->data;
    size_t count = count_items(compute->inputs[0]);
    if (count == 0) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "the sequence is empty");
    }
    int32_t rank = items[0].shape.rank + (is_stacked ? 1 : 0);
    if (rank > RONDO_RANK_MAX) {
        return rondo__op_fail_unsupported(compute->op, "result of rank above 8");
    }
    int32_t axis = 0;
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           rank, &axis));
    rondo_shape shape = {.rank = rank};
    for (int32_t d = 0; d < rank; ++d) {
        shape.extent[d] =
            is_stacked && d == axis ? 0 : items[0].shape.extent[is_stacked && d > axis ? d - 1 : d];
    }
    shape.extent[axis] = 0;
    for (size_t i = 0; i < count; ++i) {
        rondo_shape other = items[i].shape;
        bool fits = items[i].dtype == items[0].dtype && other.rank == items[0].shape.rank;
        for (int32_t d = 0; fits && d < other.rank; ++d) {
            fits = other.extent[d] == items[0].shape.extent[d] || (!is_stacked && d == axis);
        }
        if (!fits || !rondo__add_i64(shape.extent[axis], is_stacked ? 1 : other.extent[axis],
                                     &shape.extent[axis])) {
            char a[96];
            char b[96];
            return RONDO_OP_FAIL(compute->op, BAD_DATA,
                                 "items 0 %s %s and %zu %s %s do not join along axis %d",
                                 rondo_dtype_get_name(items[0].dtype),
                                 rondo_shape_format(&items[0].shape, a, sizeof a), i,
                                 rondo_dtype_get_name(items[i].dtype),
                                 rondo_shape_format(&other, b, sizeof b), (int)axis);
        }
    }
    *out_axis = axis;
    *out_shape = shape;
    return RONDO_STATUS_OK;
}

static rondo_status compute_join(rondo__compute *compute) {
    const rondo_tensor *items = compute->inputs[0]->data;
    bool is_stacked = rondo__op_get_int(compute->op, "new_axis", 0) != 0;
    int32_t axis = 0;
    rondo_shape shape;
    void *output;
    RETURN_IF_ERROR(measure_join(compute, is_stacked, &axis, &shape));
    RETURN_IF_ERROR(rondo__compute_get_output(compute, 0, items[0].dtype, &shape, &output));
    if (rondo_tensor_get_bytes(&compute->outputs[0]) == 0) {
        return RONDO_STATUS_OK;
    }
    size_t rows = (size_t)rondo__shape_multiply(&shape, 0, axis);
    size_t inner = (size_t)rondo__shape_multiply(&shape, axis + 1, shape.rank) *
                   rondo_dtype_get_bytes(items[0].dtype);
    size_t pitch = (size_t)shape.extent[axis] * inner;
    size_t at = 0;
    for (size_t i = 0; i < count_items(compute->inputs[0]); ++i) {
        size_t bytes = is_stacked ? inner : (size_t)items[i].shape.extent[axis] * inner;
        for (size_t row = 0; row < rows && bytes > 0; ++row) {
            memcpy((char *)output + row * pitch + at, (const char *)items[i].data + row * bytes,
                   bytes);
        }
        at += bytes;
    }
    return RONDO_STATUS_OK;
}

// ---- SplitToSequence --------------------------------------------------------------------------

enum { EMPTY_PARTS_MAX = 1 << 16 };

// How the input is cut: `sizes` lists the parts; NULL: each of `size`, the last of what is left.
typedef struct split_plan {
    int32_t axis;
    bool keeps_axis;
    const rondo_tensor *sizes;
    int64_t size;
    int64_t part_count;
} split_plan;

static rondo_status plan_split(const rondo__compute *compute, split_plan *out_plan) {
    const rondo_tensor *input = compute->inputs[0];
    const rondo_tensor *split = rondo__compute_get_input(compute, 1);
    split_plan plan = {.keeps_axis = true, .size = 1};
    RETURN_IF_ERROR(rondo__op_resolve_axis(compute->op, rondo__op_get_int(compute->op, "axis", 0),
                                           input->shape.rank, &plan.axis));
    int64_t extent = input->shape.extent[plan.axis];
    if (split == NULL) {
        plan.keeps_axis = rondo__op_get_int(compute->op, "keepdims", 1) != 0;
    } else if (!rondo__dtype_is_integer(split->dtype) || split->shape.rank > 1) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "split must be an integer or a list of them");
    } else if (split->shape.rank == 1) {
        int64_t total = 0;
        plan.sizes = split;
        plan.part_count = split->shape.extent[0];
        for (int64_t i = 0; i < plan.part_count; ++i) {
            int64_t size = rondo__tensor_get_int(split, i);
            if (size < 0 || !rondo__add_i64(total, size, &total)) {
                return RONDO_OP_FAIL(compute->op, BAD_DATA, "entry %lld of split is %lld",
                                     (long long)i, (long long)size);
            }
        }
        if (total != extent) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "split adds up to %lld, axis %d has %lld",
                                 (long long)total, (int)plan.axis, (long long)extent);
        }
        *out_plan = plan;
        return RONDO_STATUS_OK;
    } else {
        plan.size = rondo__tensor_get_int(split, 0);
        if (plan.size < 1) {
            return RONDO_OP_FAIL(compute->op, BAD_DATA, "split is %lld; parts have at least 1",
                                 (long long)plan.size);
        }
    }
    plan.part_count = extent / plan.size + (extent % plan.size != 0);
    // The parts of a tensor without elements take memory all the same; a file must not ask for more
    // of them than it is worth.
    if (plan.part_count > EMPTY_PARTS_MAX && rondo_shape_get_count(&input->shape) == 0) {
        return RONDO_OP_FAIL(compute->op, BAD_DATA, "%lld parts of a tensor without elements",
                             (long long)plan.part_count);
    }
    *out_plan = plan;
    return RONDO_STATUS_OK;
}

// Copies [from, from + size) of the plan's axis into a tensor of its own.
static rondo_status cut_part(const rondo_tensor *input, const split_plan *plan, int64_t from,
                             int64_t size, rondo_tensor *out_part) {
    rondo_shape shape = input->shape;
    shape.extent[plan->axis] = size;
    size_t rows = (size_t)rondo__shape_multiply(&shape, 0, plan->axis);
    size_t inner = (size_t)rondo__shape_multiply(&shape, plan->axis + 1, shape.rank) *
                   rondo_dtype_get_bytes(input->dtype);
    size_t pitch = (size_t)input->shape.extent[plan->axis] * inner;
    if (!plan->keeps_axis) {
        for (int32_t d = plan->axis; d + 1 < shape.rank; ++d) {
            shape.extent[d] = shape.extent[d + 1];
        }
        shape.extent[--shape.rank] = 0;
    }
    RETURN_IF_ERROR(rondo_tensor_init(input->dtype, &shape, out_part));
    size_t bytes = (size_t)size * inner;
    for (size_t row = 0; row < rows && bytes > 0; ++row) {
        memcpy((char *)out_part->data + row * bytes,
               (const char *)input->data + row * pitch + (size_t)from * inner, bytes);
    }
    return input->dtype == RONDO_DTYPE_STRING ? rondo__tensor_own_strings(out_part)
                                              : RONDO_STATUS_OK;
}

static rondo_status compute_split(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    split_plan plan = {0};
    rondo_tensor sequence;
    rondo_tensor *items;
    RETURN_IF_ERROR(plan_split(compute, &plan));
    RETURN_IF_ERROR(
        rondo__nested_create(RONDO_DTYPE_SEQUENCE, (size_t)plan.part_count, &sequence, &items));
    rondo_status status = RONDO_STATUS_OK;
    int64_t from = 0;
    for (int64_t i = 0; i < plan.part_count && status == RONDO_STATUS_OK; ++i) {
        int64_t left = input->shape.extent[plan.axis] - from;
        int64_t size = plan.sizes != NULL ? rondo__tensor_get_int(plan.sizes, i)
                       : plan.size < left ? plan.size
                                          : left;
        status = cut_part(input, &plan, from, size, &items[i]);
        from += size;
    }
    return finish(compute, status, &sequence);
}

// ---- optionals --------------------------------------------------------------------------------

static rondo_status infer_optional(rondo__infer *infer) {
    if (rondo__infer_has_input(infer, 0) && infer->inputs[0].dtype == RONDO_DTYPE_OPTIONAL) {
        return rondo__op_fail_dtype(infer->op, 0, RONDO_DTYPE_OPTIONAL);
    }
    return rondo__infer_set_data_dependent(infer, RONDO_DTYPE_OPTIONAL);
}

static rondo_status compute_optional(rondo__compute *compute) {
    const rondo_tensor *input = rondo__compute_get_input(compute, 0);
    rondo_tensor optional;
    rondo_tensor *item;
    RETURN_IF_ERROR(
        rondo__nested_create(RONDO_DTYPE_OPTIONAL, input != NULL ? 1 : 0, &optional, &item));
    rondo_status status = input != NULL ? rondo__tensor_keep(input, item) : RONDO_STATUS_OK;
    return finish(compute, status, &optional);
}

static rondo_status infer_has_element(rondo__infer *infer) {
    return rondo__infer_set_output(infer, 0, RONDO_DTYPE_BOOL, &(rondo_shape){0});
}

// Since opset 18 the input may be no optional at all, which then is there, or be left out.
static rondo_status compute_has_element(rondo__compute *compute) {
    const rondo_tensor *input = rondo__compute_get_input(compute, 0);
    void *output;
    RETURN_IF_ERROR(rondo__compute_get_inferred(compute, 0, &output));
    bool is_there =
        input != NULL && (input->dtype != RONDO_DTYPE_OPTIONAL || count_items(input) > 0);
    *(uint8_t *)output = is_there;
    return RONDO_STATUS_OK;
}

static rondo_status infer_get_element(rondo__infer *infer) {
    rondo_dtype dtype = infer->inputs[0].dtype;
    return rondo__infer_set_data_dependent(
        infer, dtype == RONDO_DTYPE_OPTIONAL ? get_item_dtype(infer, 0) : dtype);
}

static rondo_status compute_get_element(rondo__compute *compute) {
    const rondo_tensor *input = compute->inputs[0];
    if (input->dtype != RONDO_DTYPE_OPTIONAL) {
        return give_item(compute, input);
    }
    const rondo_tensor *item = rondo_tensor_get_item(input, 0);
    return item != NULL ? give_item(compute, item)
                        : RONDO_OP_FAIL(compute->op, BAD_DATA, "the optional has no element");
}

// ---- the table --------------------------------------------------------------------------------

static const char *const no_attributes[] = {NULL};
static const char *const empty_attributes[] = {"dtype", NULL};
static const char *const join_attributes[] = {"axis", "new_axis", NULL};
static const char *const split_attributes[] = {"axis", "keepdims", NULL};
static const char *const optional_attributes[] = {"type", NULL};

#define ENTRY(op, first, inputs_min, inputs_max, attribute_list, infer_function, ...) \
    RONDO_OP_ROW(OP, op, first, RONDO_OP_OPSET_MAX, inputs_min, inputs_max, 1, 1,     \
                 .flags = RONDO__OP_NATIVE_HALF, .attributes = attribute_list,        \
                 .infer = infer_function, .compute = __VA_ARGS__)

const rondo__op_def rondo__op_table_sequence[] = {
    ENTRY(ConcatFromSequence, 11, 1, 1, join_attributes, infer_at, compute_join,
          .nested = RONDO__INPUT_0, .makes_strings = true, .makes_narrow = true),
    ENTRY(Optional, 15, 0, 1, optional_attributes, infer_optional, compute_optional,
          .strings = RONDO__INPUT_0, .nested = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(OptionalGetElement, 15, 1, 1, no_attributes, infer_get_element, compute_get_element,
          .strings = RONDO__INPUT_0, .nested = RONDO__INPUT_0, .makes_strings = true,
          .moved = RONDO__INPUT_0, .makes_narrow = true),
    ENTRY(OptionalHasElement, 15, 0, 1, no_attributes, infer_has_element, compute_has_element,
          .strings = RONDO__INPUT_0, .nested = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    ENTRY(SequenceAt, 11, 2, 2, no_attributes, infer_at, compute_at, .nested = RONDO__INPUT_0,
          .makes_strings = true, .makes_narrow = true),
    ENTRY(SequenceConstruct, 11, 1, RONDO_OP_ANY_COUNT, no_attributes, infer_construct,
          compute_construct, .strings = RONDO__INPUTS_ALL, .moved = RONDO__INPUTS_ALL),
    RONDO_OP_ROW(OP, SequenceEmpty, 11, RONDO_OP_OPSET_MAX, 0, 0, 1, 1,
                 .attributes = empty_attributes, .infer = infer_sequence, .compute = compute_empty,
                 .check = check_empty),
    ENTRY(SequenceErase, 11, 1, 2, no_attributes, infer_on_sequence, compute_erase,
          .nested = RONDO__INPUT_0),
    ENTRY(SequenceInsert, 11, 2, 3, no_attributes, infer_on_sequence, compute_insert,
          .strings = RONDO__INPUT_1, .nested = RONDO__INPUT_0, .moved = RONDO__INPUT_1),
    ENTRY(SequenceLength, 11, 1, 1, no_attributes, infer_length, compute_length,
          .nested = RONDO__INPUT_0),
    ENTRY(SplitToSequence, 11, 1, 2, split_attributes, infer_sequence, compute_split,
          .strings = RONDO__INPUT_0, .moved = RONDO__INPUT_0),
    {0},
};
