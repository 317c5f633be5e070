// program/attention/pass_rotary.c — names the pattern of rotary positions, as exporters write it
// out in small ops, RotaryEmbedding.
//
//   x ─┬─────────────────────────── Mul cosines ──┐
//      ├─ second half ── Neg ─┐                   ├─ Add
//      └─ first half ──────── Concat ─ Mul sines ─┘
//
// x is [batch, heads, rows, size]. Both halves of a row of cosines and of sines are the same:
// either constants that are, or made of Concat(angles, angles). The op wants one half, which is
// taken once for all layers. In a plan, where shapes are known.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "tensor/elements.h"

enum { HALVES_MAX = 64, STEPS_MAX = 16, OPSET = 23 };

// Half of a table of cosines or sines, and the rows that the op takes of it.
typedef struct half {
    int32_t table, batch;   // what it was made for
    int64_t x_batch;        // and of which x
    int32_t value, places;  // places NONE: one row for each of x
} half;

typedef struct rotary_pass {
    rondo_program *program;
    half halves[HALVES_MAX];
    size_t half_count;
} rotary_pass;

typedef struct pattern {
    int32_t x, cosines, sines;
    rondo_shape shape;  // of x
} pattern;

static bool read_number(const rondo_program *program, const rondo__node *node, size_t input,
                        int64_t *out_number) {
    const int32_t value = input < node->input_count ? node->inputs[input] : RONDO__VALUE_NONE;
    const rondo_tensor *tensor = value >= 0 ? &program->values[value].constant : NULL;
    if (tensor == NULL || tensor->dtype != RONDO_DTYPE_I64 ||
        rondo_shape_get_count(&tensor->shape) != 1) {
        return false;
    }
    *out_number = *(const int64_t *)tensor->data;
    return true;
}

// Whether the value is half `number` of a row of another one, which *out_x becomes.
static bool read_half(const rondo_program *program, int32_t value, int64_t number, int64_t size,
                      int32_t *out_x) {
    rondo_shape shape;
    const rondo__node *slice = rondo__match_maker(program, value, RONDO__OP_Slice);
    const rondo__node *split = rondo__match_maker(program, value, RONDO__OP_Split);
    if (!rondo__value_get_shape(&program->values[value], &shape) || shape.rank != 4 ||
        shape.extent[3] * 2 != size) {
        return false;
    }
    if (split != NULL) {
        const int64_t axis = rondo__op_get_int(&split->op, "axis", 0);
        *out_x = split->inputs[0];
        return split->output_count == 2 && (axis == 3 || axis == -1) &&
               split->outputs[number] == value;
    }
    int64_t start, axis, step = 1;
    if (slice == NULL || !read_number(program, slice, 1, &start) ||
        !read_number(program, slice, 3, &axis) || (axis != 3 && axis != -1) ||
        (slice->input_count > 4 && slice->inputs[4] >= 0 &&
         !read_number(program, slice, 4, &step))) {
        return false;
    }
    *out_x = slice->inputs[0];
    return step == 1 && (start < 0 ? start + size : start) == number * shape.extent[3];
}

// Whether the value is (-second half, first half) of another one.
static bool read_turned(const rondo_program *program, int32_t value, int64_t size, int32_t *out_x) {
    const rondo__node *joined = rondo__match_maker(program, value, RONDO__OP_Concat);
    if (joined == NULL || joined->input_count != 2) {
        return false;
    }
    const int64_t axis = rondo__op_get_int(&joined->op, "axis", 0);
    const rondo__node *negated = rondo__match_maker(program, joined->inputs[0], RONDO__OP_Neg);
    int32_t second = RONDO__VALUE_NONE;
    return (axis == 3 || axis == -1) && negated != NULL &&
           read_half(program, negated->inputs[0], 1, size, &second) &&
           read_half(program, joined->inputs[1], 0, size, out_x) && second == *out_x;
}

// The node's other operand, where one is `value`.
static int32_t get_other(const rondo__node *node, int32_t value) {
    return node->inputs[0] == value   ? node->inputs[1]
           : node->inputs[1] == value ? node->inputs[0]
                                      : RONDO__VALUE_NONE;
}

static bool read_pattern(const rondo_program *program, const rondo__node *sum, pattern *p) {
    if (!rondo__node_is(sum, RONDO__OP_Add) ||
        !rondo__value_get_shape(&program->values[sum->outputs[0]], &p->shape) ||
        p->shape.rank != 4 || p->shape.extent[3] % 2 != 0) {
        return false;
    }
    for (int i = 0; i < 4; ++i) {  // which product is of the turned rows, and which operand
        const rondo__node *turned = rondo__match_maker(program, sum->inputs[i / 2], RONDO__OP_Mul);
        const rondo__node *straight =
            rondo__match_maker(program, sum->inputs[1 - i / 2], RONDO__OP_Mul);
        rondo_shape x;
        if (turned == NULL || straight == NULL ||
            !read_turned(program, turned->inputs[i % 2], p->shape.extent[3], &p->x)) {
            continue;
        }
        p->sines = turned->inputs[1 - i % 2];
        p->cosines = get_other(straight, p->x);
        return p->cosines >= 0 && rondo__value_get_shape(&program->values[p->x], &x) &&
               rondo_shape_is_equal(&x, &p->shape);
    }
    return false;
}

// ---- tables -----------------------------------------------------------------------------------

// Whether the table is [batch or 1, 1, rows, size], perhaps without leading axes of one element.
static bool fits(const rondo_program *program, int32_t table, const rondo_shape *x,
                 int64_t *out_batch) {
    rondo_shape shape;
    if (!rondo__value_get_shape(&program->values[table], &shape) || shape.rank < 2 ||
        shape.rank > 4 || shape.extent[shape.rank - 1] != x->extent[3] ||
        shape.extent[shape.rank - 2] != x->extent[2] ||
        (shape.rank > 2 && shape.extent[shape.rank - 3] != 1)) {
        return false;
    }
    *out_batch = shape.rank == 4 ? shape.extent[0] : 1;
    return *out_batch == 1 || *out_batch == x->extent[0];
}

static bool has_equal_halves(const rondo_tensor *table, int64_t size) {
    const size_t bytes = (size_t)(size / 2) * rondo_dtype_get_bytes(table->dtype);
    const int64_t rows = rondo_shape_get_count(&table->shape) / size;
    for (int64_t i = 0; i < rows; ++i) {
        const char *row = (const char *)table->data + (size_t)i * 2 * bytes;
        if (memcmp(row, row + bytes, bytes) != 0) {
            return false;
        }
    }
    return true;
}

// The operand that says what the halves of this node's rows are; NONE: they may differ.
static int32_t get_source(const rondo_program *program, const rondo__node *node) {
    float number;
    switch (node->op.def->id) {
        case RONDO__OP_Cast:
        case RONDO__OP_Cos:
        case RONDO__OP_Sin:
        case RONDO__OP_Unsqueeze:
        case RONDO__OP_Reshape:
            return node->inputs[0];
        case RONDO__OP_Mul:
            return rondo__match_scalar(program, node->inputs[1], &number)   ? node->inputs[0]
                   : rondo__match_scalar(program, node->inputs[0], &number) ? node->inputs[1]
                                                                            : RONDO__VALUE_NONE;
        default:
            return RONDO__VALUE_NONE;
    }
}

// Whether both halves of each row of the value are the same.
static bool is_twice(const rondo_program *program, int32_t value, int64_t size) {
    for (int i = 0; i < STEPS_MAX && value >= 0; ++i) {
        const rondo__value *now = &program->values[value];
        rondo_shape shape;
        if (!rondo__value_get_shape(now, &shape) || shape.rank < 1 ||
            shape.extent[shape.rank - 1] != size) {
            return false;
        }
        if (rondo__value_is_constant(now)) {
            return has_equal_halves(&now->constant, size);
        }
        if (now->producer < 0) {
            return false;
        }
        const rondo__node *node = &program->nodes[now->producer];
        const int64_t axis = rondo__op_get_int(&node->op, "axis", 0);
        if (rondo__node_is(node, RONDO__OP_Concat)) {
            return node->input_count == 2 && node->inputs[0] == node->inputs[1] &&
                   (axis == -1 || axis == shape.rank - 1);
        }
        value = get_source(program, node);
    }
    return false;
}

// ---- rewriting --------------------------------------------------------------------------------

static rondo_status add_numbers(rondo_program *program, const int64_t *numbers, int64_t count,
                                int32_t *out_value) {
    const rondo_shape shape = {1, {count}};
    rondo_tensor tensor;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &tensor));
    memcpy(tensor.data, numbers, (size_t)count * sizeof *numbers);
    const rondo_status status = rondo__program_add_constant(program, "half", &tensor, out_value);
    rondo_tensor_deinit(&tensor);
    return status;
}

// Which row of the table each row of x takes, where the table has no batch.
static rondo_status add_places(rondo_program *program, int64_t batch, int64_t rows,
                               int32_t *out_value) {
    const rondo_shape shape = {2, {batch, rows}};
    rondo_tensor tensor;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I64, &shape, &tensor));
    for (int64_t i = 0; i < batch * rows; ++i) {
        ((int64_t *)tensor.data)[i] = i % rows;
    }
    const rondo_status status = rondo__program_add_constant(program, "places", &tensor, out_value);
    rondo_tensor_deinit(&tensor);
    return status;
}

static rondo_status cut_constant(rondo_program *program, const rondo_shape *flat, int32_t table,
                                 int32_t *out_value) {
    const rondo_tensor *source = &program->values[table].constant;
    const size_t bytes =
        (size_t)flat->extent[flat->rank - 1] * rondo_dtype_get_bytes(source->dtype);
    const size_t rows = rondo_tensor_get_bytes(source) / (2 * bytes);
    rondo_tensor made;
    RETURN_IF_ERROR(rondo_tensor_init(source->dtype, flat, &made));
    for (size_t i = 0; i < rows; ++i) {
        memcpy((char *)made.data + i * bytes, (const char *)source->data + 2 * i * bytes, bytes);
    }
    const rondo_status status = rondo__program_add_constant(program, "half", &made, out_value);
    rondo_tensor_deinit(&made);
    return status;
}

static rondo_status cut_value(rondo_program *program, const rondo_shape *flat, int32_t table,
                              int32_t *out_value) {
    const rondo_dtype dtype = program->values[table].dtype;
    int32_t inputs[4] = {table, RONDO__VALUE_NONE, RONDO__VALUE_NONE, RONDO__VALUE_NONE};
    int32_t cut;
    rondo_shape shape;
    (void)rondo__value_get_shape(&program->values[table], &shape);
    const int64_t start = 0, axis = shape.rank - 1, size = flat->extent[flat->rank - 1];
    shape.extent[axis] = size;
    RETURN_IF_ERROR(add_numbers(program, &start, 1, &inputs[1]));
    RETURN_IF_ERROR(add_numbers(program, &size, 1, &inputs[2]));
    RETURN_IF_ERROR(add_numbers(program, &axis, 1, &inputs[3]));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "half", dtype, &shape, &cut));
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Slice", NULL, inputs, 4, &cut, 1));
    RETURN_IF_ERROR(rondo__program_add_shaped(program, "half", dtype, flat, out_value));
    return rondo__program_add_reshape(program, cut, *out_value, flat);
}

// The first halves of the table's rows, as a list of rows or with the batch before it.
static rondo_status make_half(rondo_program *program, const rondo_shape *x, int64_t batch,
                              half *made) {
    const int64_t rows = x->extent[2], size = x->extent[3] / 2;
    const bool has_places = batch != x->extent[0];
    const rondo_shape flat =
        has_places ? (rondo_shape){2, {rows, size}} : (rondo_shape){3, {batch, rows, size}};
    RETURN_IF_ERROR(rondo__value_is_constant(&program->values[made->table])
                        ? cut_constant(program, &flat, made->table, &made->value)
                        : cut_value(program, &flat, made->table, &made->value));
    return has_places ? add_places(program, x->extent[0], rows, &made->places) : RONDO_STATUS_OK;
}

static rondo_status get_half(rotary_pass *pass, const rondo_shape *x, int32_t table, int64_t batch,
                             half *out_half) {
    half made = {table, (int32_t)batch, x->extent[0], RONDO__VALUE_NONE, RONDO__VALUE_NONE};
    for (size_t i = 0; i < pass->half_count; ++i) {
        const half *other = &pass->halves[i];
        if (other->table == table && other->batch == made.batch && other->x_batch == made.x_batch) {
            *out_half = *other;
            return RONDO_STATUS_OK;
        }
    }
    RETURN_IF_ERROR(make_half(pass->program, x, batch, &made));
    if (pass->half_count < HALVES_MAX) {
        pass->halves[pass->half_count++] = made;
    }
    *out_half = made;
    return RONDO_STATUS_OK;
}

static rondo_status rewrite_sum(rotary_pass *pass, size_t n, const pattern *p, int64_t batch) {
    rondo_program *program = pass->program;
    half cosines, sines;
    RETURN_IF_ERROR(get_half(pass, &p->shape, p->cosines, batch, &cosines));
    RETURN_IF_ERROR(get_half(pass, &p->shape, p->sines, batch, &sines));
    const int32_t inputs[4] = {p->x, cosines.value, sines.value, cosines.places};
    const size_t count = cosines.places >= 0 ? 4 : 3;
    rondo__op op = {.opset = OPSET};
    op.def = rondo__op_lookup("", "RotaryEmbedding", OPSET);
    int32_t *list = rondo__calloc(count, sizeof *list);
    if (list == NULL || op.def == NULL) {
        rondo__free(list);
        return op.def == NULL ? RONDO_FAIL(INTERNAL, "RotaryEmbedding has no such version")
                              : RONDO_STATUS_NO_MEMORY;
    }
    memcpy(list, inputs, count * sizeof *list);
    rondo__node_become(&program->nodes[n], &op, list, count);
    return RONDO_STATUS_OK;
}

static bool is_wanted_type(const rondo_program *program, const pattern *p) {
    const rondo_dtype dtype = program->values[p->x].dtype;
    return rondo__dtype_is_f32_or_f16(dtype) && program->values[p->cosines].dtype == dtype &&
           program->values[p->sines].dtype == dtype;
}

rondo_status rondo__pass_rotary(rondo_program *program) {
    rotary_pass pass = {.program = program};
    const size_t node_count = program->node_count;
    rondo_status status = RONDO_STATUS_OK;
    for (size_t n = 0; n < node_count && status == RONDO_STATUS_OK; ++n) {
        int64_t batches[2];
        pattern p;
        if (read_pattern(program, &program->nodes[n], &p) && is_wanted_type(program, &p) &&
            fits(program, p.cosines, &p.shape, &batches[0]) &&
            fits(program, p.sines, &p.shape, &batches[1]) && batches[0] == batches[1] &&
            is_twice(program, p.cosines, p.shape.extent[3]) &&
            is_twice(program, p.sines, p.shape.extent[3])) {
            status = rewrite_sum(&pass, n, &p, batches[0]);
        }
    }
    return rondo__program_finish_rewrite(program, NULL, 0, status);
}
