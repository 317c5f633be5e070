// program/passes/pass_rows.c — moves of whole rows: many become one Gather, and what works row by
// row goes in front of them, so that a network stays in the order of its windows.
//
//   before   w = windows(roll(x))               Slice, Slice, Concat, twice; Reshape, Transpose
//            z = x + roll'(windows'(f(w)))
//            y = z + MatMul(LayerNormalization(z), W)
//   after    w = Gather(x, rows)
//            z' = w + f(w)                      in the order of w
//            y' = z' + MatMul(LayerNormalization(z'), W)
//
// What reads y next has its own order, or wants that of x: one Gather of y' is all. Rows are those
// of program/row_map.h. A move that nothing else joins stays as it is, since strides can do
// it. A LayerNormalization whose result is only moved goes behind the move: then its input in the
// new order is there for the sum.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/passes/match.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/row_map.h"

// A value that is there in some order.
typedef struct record {
    rondo__row_map map;
    int32_t value;
} record;

typedef struct ordering {
    rondo_program *program;
    size_t node_count;     // before the pass
    bool *remove;          // one for each of those
    bool *is_only_moved;   // likewise: its result has no reader but moves
    size_t value_count;    // entries of the next two
    rondo__row_map *maps;  // of values; base RONDO__VALUE_NONE: not looked at, or none
    bool *is_settled;      // the program has the value as it is
    size_t record_count, record_capacity;
    record *records;
} ordering;

static rondo_status grow(ordering *o) {
    const size_t wanted = o->program->value_count;
    if (wanted <= o->value_count) {
        return RONDO_STATUS_OK;
    }
    rondo__row_map *maps = rondo__realloc(o->maps, wanted * sizeof *maps);
    if (maps == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    o->maps = maps;
    bool *is_settled = rondo__realloc(o->is_settled, wanted * sizeof *is_settled);
    if (is_settled == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    o->is_settled = is_settled;
    for (size_t v = o->value_count; v < wanted; ++v) {
        o->maps[v] = (rondo__row_map){.base = RONDO__VALUE_NONE};
        o->is_settled[v] = false;
    }
    o->value_count = wanted;
    return RONDO_STATUS_OK;
}

static const rondo__row_map *get_map(ordering *o, int32_t value) {
    static const rondo__row_map none = {.base = RONDO__VALUE_NONE};
    if (value < 0) {
        return &none;
    }
    if (o->maps[value].base < 0) {
        (void)rondo__row_map_begin(o->program, value, &o->maps[value]);
    }
    return &o->maps[value];
}

// Whether the value is in the program under another order than its own.
static bool is_pending(ordering *o, int32_t value) {
    return value >= 0 && !o->is_settled[value] && o->maps[value].base >= 0 &&
           o->maps[value].base != value;
}

// ---- records ----------------------------------------------------------------------------------

static rondo_status add_record(ordering *o, const rondo__row_map *map, int32_t value) {
    if (o->record_count == o->record_capacity) {
        const size_t capacity = o->record_capacity * 2 + 16;
        record *records = rondo__realloc(o->records, capacity * sizeof *records);
        if (records == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        o->records = records;
        o->record_capacity = capacity;
    }
    record *made = &o->records[o->record_count];
    RETURN_IF_ERROR(rondo__row_map_copy(map, &made->map));
    made->value = value;
    o->record_count += 1;
    return RONDO_STATUS_OK;
}

// The value that has these rows in this order; RONDO__VALUE_NONE: none has.
static int32_t find_record(const ordering *o, const rondo__row_map *map) {
    for (size_t i = o->record_count; i > 0; --i) {
        if (rondo__row_map_is_equal(&o->records[i - 1].map, map)) {
            return o->records[i - 1].value;
        }
    }
    return map->index == NULL ? map->base : RONDO__VALUE_NONE;
}

// ---- values in an order -----------------------------------------------------------------------

// `value` itself where it has the shape, otherwise a Reshape of it.
static rondo_status reshape(ordering *o, int32_t value, const rondo_shape *shape,
                            int32_t *out_value) {
    rondo_shape own;
    *out_value = value;
    if (rondo__program_get_shape(o->program, value, &own) && rondo_shape_is_equal(&own, shape)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(o->program, "rows", o->program->values[value].dtype,
                                              shape, out_value));
    return rondo__program_add_reshape(o->program, value, *out_value, shape);
}

static rondo_status add_list(ordering *o, const rondo__row_map *map, int32_t *out_list) {
    const rondo_shape shape = {.rank = 1, .extent = {map->count}};
    rondo_tensor list;
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_I32, &shape, &list));
    memcpy(list.data, map->index, (size_t)map->count * sizeof *map->index);
    const rondo_status status = rondo__program_add_constant(o->program, "order", &list, out_list);
    rondo_tensor_deinit(&list);
    return status;
}

// Makes `to`, which has no maker and a shape of as many rows, the rows of the map.
static rondo_status gather(ordering *o, const rondo__row_map *map, int32_t to) {
    rondo_program *program = o->program;
    const rondo_shape flat = {.rank = 2, .extent = {map->rows, map->width}};
    const rondo_shape rows = {.rank = 2, .extent = {map->count, map->width}};
    rondo_shape shape;
    int32_t inputs[2], result = to;
    RETURN_IF_ERROR(reshape(o, map->base, &flat, &inputs[0]));
    RETURN_IF_ERROR(add_list(o, map, &inputs[1]));
    if (!rondo__program_get_shape(o->program, to, &shape) || !rondo_shape_is_equal(&shape, &rows)) {
        RETURN_IF_ERROR(rondo__program_add_shaped(program, "rows", program->values[map->base].dtype,
                                                  &rows, &result));
    }
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Gather", NULL, inputs, 2, &result, 1));
    return result == to ? RONDO_STATUS_OK : rondo__program_add_reshape(program, result, to, &shape);
}

// The rows of the map with this shape: those that are there, or new ones.
static rondo_status find_or_gather(ordering *o, const rondo__row_map *map, const rondo_shape *shape,
                                   int32_t *out_value) {
    const int32_t found = find_record(o, map);
    if (found >= 0) {
        return reshape(o, found, shape, out_value);
    }
    RETURN_IF_ERROR(rondo__program_add_shaped(
        o->program, "rows", o->program->values[map->base].dtype, shape, out_value));
    RETURN_IF_ERROR(gather(o, map, *out_value));
    return add_record(o, map, *out_value);
}

// The map of rows of rows.
static rondo_status compose(const rondo__row_map *inner, const rondo__row_map *outer,
                            rondo__row_map *out_map) {
    RETURN_IF_ERROR(rondo__row_map_copy(outer, out_map));
    out_map->base = inner->base;
    out_map->rows = inner->rows;
    for (int64_t i = 0; inner->index != NULL && i < out_map->count; ++i) {
        out_map->index[i] = inner->index[out_map->index[i]];
    }
    return RONDO_STATUS_OK;
}

// Whether the value, if there is one, is a list: no other numbers for other rows.
static bool is_list(const ordering *o, int32_t value) {
    rondo_shape shape;
    return value < 0 || (rondo__program_get_shape(o->program, value, &shape) && shape.rank == 1);
}

static bool is_row_norm(const ordering *o, const rondo__node *node) {
    rondo_shape x;
    if ((!rondo__node_is(node, RONDO__OP_LayerNormalization) &&
         !rondo__node_is(node, RONDO__OP_RMSNormalization)) ||
        !rondo__program_get_shape(o->program, node->inputs[0], &x) || x.rank < 1) {
        return false;
    }
    for (size_t i = 1; i < node->output_count; ++i) {
        if (node->outputs[i] >= 0) {
            return false;
        }
    }
    for (size_t i = 1; i < node->input_count; ++i) {
        if (!is_list(o, node->inputs[i])) {
            return false;
        }
    }
    const int64_t axis = rondo__op_get_int(&node->op, "axis", -1);
    return axis == -1 || axis == x.rank - 1;
}

// The norm that makes the base of the map, if it may work on moved rows instead: of a value whose
// rows are known, and are as wide as the norm's.
static int32_t find_norm(ordering *o, const rondo__row_map *map, const rondo_shape *shape) {
    const int32_t maker = o->program->values[map->base].producer;
    if (maker < 0 || (size_t)maker >= o->node_count || !o->is_only_moved[maker] ||
        shape->extent[shape->rank - 1] != map->width || map->count > map->rows ||
        !is_row_norm(o, &o->program->nodes[maker])) {
        return -1;
    }
    const rondo__row_map *rows = get_map(o, o->program->nodes[maker].inputs[0]);
    return rows->base >= 0 && rows->width == map->width ? maker : -1;
}

// Makes `value` the norm of moved rows.
static rondo_status norm_moved_rows(ordering *o, int32_t norm, const rondo__row_map *map,
                                    const rondo_shape *shape, int32_t value) {
    rondo_program *program = o->program;
    const size_t count = program->nodes[norm].input_count;
    rondo__row_map moved;
    int32_t *inputs = rondo__calloc(count, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(inputs, program->nodes[norm].inputs, count * sizeof *inputs);
    rondo_status status = compose(get_map(o, inputs[0]), map, &moved);
    if (status != RONDO_STATUS_OK) {
        goto free_inputs;
    }
    status = find_or_gather(o, &moved, shape, &inputs[0]);
    rondo__row_map_deinit(&moved);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_int(&program->nodes[norm].op, "axis", -1);
    }
    if (status == RONDO_STATUS_OK) {
        const rondo__node source = program->nodes[norm];  // a view: what is added moves the nodes
        status = rondo__program_add_copy(program, &source, inputs, &value);
    }

free_inputs:
    rondo__free(inputs);
    return status;
}

// Whether strides can tell the order, so that one copy makes it.
static bool is_strided(const ordering *o, const rondo__row_map *map, int32_t value) {
    rondo_shape shape;
    if (!rondo__program_get_shape(o->program, value, &shape) || map->index == NULL) {
        return false;
    }
    shape.extent[shape.rank - 1] /= map->width;
    int64_t step = map->count, stride[RONDO_RANK_MAX] = {0};
    for (int32_t d = 0; d < shape.rank; ++d) {
        step /= shape.extent[d];
        stride[d] = shape.extent[d] > 1 ? map->index[step] - map->index[0] : 0;
    }
    for (int64_t i = 0; i < map->count; ++i) {
        int64_t rest = i, at = map->index[0];
        for (int32_t d = shape.rank - 1; d >= 0; --d) {
            at += rest % shape.extent[d] * stride[d];
            rest /= shape.extent[d];
        }
        if (at != map->index[i]) {
            return false;
        }
    }
    return true;
}

// Lets the program have the value as it is.
static rondo_status settle(ordering *o, int32_t value) {
    if (!is_pending(o, value)) {
        return RONDO_STATUS_OK;
    }
    rondo_program *program = o->program;
    const rondo__row_map *map = &o->maps[value];
    rondo_shape shape;
    if (!rondo__program_get_shape(o->program, value, &shape)) {
        return RONDO_FAIL(INTERNAL, "rows in an order have no shape");
    }
    const int32_t norm = map->index != NULL ? find_norm(o, map, &shape) : -1;
    const int32_t maker = program->values[value].producer;
    const bool is_one_step = maker >= 0 && program->nodes[maker].inputs[0] == map->base;
    const bool stays =
        !map->is_moved && norm < 0 &&
        (map->index == NULL ? is_one_step : map->moves <= 1 || is_strided(o, map, value));
    o->is_settled[value] = true;
    if (!stays) {
        if (maker >= 0 && (size_t)maker < o->node_count) {
            o->remove[maker] = true;
        }
        program->values[value].producer = -1;
        const rondo__row_map found = *map;  // a view: what follows may move the table
        rondo_status status;
        if (norm >= 0) {
            status = norm_moved_rows(o, norm, &found, &shape, value);
        } else if (found.index == NULL) {
            status = rondo__program_add_reshape(program, found.base, value, &shape);
        } else {
            status = gather(o, &found, value);
        }
        if (status == RONDO_STATUS_OK) {
            status = grow(o);
        }
        RETURN_IF_ERROR(status);
    }
    return add_record(o, &o->maps[value], value);
}

// ---- nodes ------------------------------------------------------------------------------------

// A move; its output waits for a reader. *out_is_done: it is one.
static rondo_status try_move(ordering *o, const rondo__node *node, bool *out_is_done) {
    *out_is_done = false;
    if (node->input_count < 1 || node->output_count != 1 || node->outputs[0] < 0) {
        return RONDO_STATUS_OK;
    }
    const rondo__row_map **inputs = rondo__calloc(node->input_count, sizeof *inputs);
    if (inputs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        inputs[i] = get_map(o, node->inputs[i]);
    }
    rondo__row_map made;
    const rondo_status status = rondo__row_map_apply(o->program, node, inputs, &made);
    if (status == RONDO_STATUS_OK && made.base >= 0) {
        o->maps[node->outputs[0]] = made;
        *out_is_done = true;
    }
    rondo__free(inputs);
    return status;
}

// A constant of one number, or one for each column.
static bool is_for_columns(const ordering *o, int32_t value, const rondo_shape *rows,
                           int32_t rank) {
    rondo_shape shape;
    if (value < 0 || !rondo__value_is_constant(&o->program->values[value]) ||
        !rondo__program_get_shape(o->program, value, &shape) || shape.rank > rank) {
        return false;
    }
    const int64_t count = rondo_shape_get_count(&shape);
    return count == 1 ||
           (count == rows->extent[rows->rank - 1] && shape.extent[shape.rank - 1] == count);
}

// The input whose rows the node works on one by one; -1: it does not work so.
static int find_rows(const ordering *o, const rondo__node *node, int32_t rank) {
    rondo_shape x, b;
    rondo__activation activation;
    float alpha, beta;
    if (is_row_norm(o, node)) {
        return 0;
    }
    if (rondo__node_is(node, RONDO__OP_MatMul)) {
        return rondo__value_is_constant(&o->program->values[node->inputs[1]]) &&
                       rondo__program_get_shape(o->program, node->inputs[1], &b) && b.rank == 2
                   ? 0
                   : -1;
    }
    if (rondo__node_is(node, RONDO__OP_Add) || rondo__node_is(node, RONDO__OP_Mul)) {
        for (int i = 0; i < 2; ++i) {
            if (rondo__program_get_shape(o->program, node->inputs[i], &x) && x.rank > 0 &&
                is_for_columns(o, node->inputs[1 - i], &x, rank)) {
                return i;
            }
        }
        return -1;
    }
    return rondo__match_activation(o->program, node, &activation, &alpha, &beta) ? 0 : -1;
}

// Gives the node other rows, and a new result of the shape of `base` with as many columns as it
// had; what its result was waits for a reader.
static rondo_status move_node(ordering *o, size_t n, const rondo__row_map *map) {
    rondo_program *program = o->program;
    const int32_t result = program->nodes[n].outputs[0];
    rondo_shape shape, columns;
    rondo__row_map made;
    int32_t value;
    if (!rondo__program_get_shape(o->program, map->base, &shape) ||
        !rondo__program_get_shape(o->program, result, &columns)) {
        return RONDO_FAIL(INTERNAL, "rows in an order have no shape");
    }
    shape.extent[shape.rank - 1] = columns.extent[columns.rank - 1];
    RETURN_IF_ERROR(rondo__program_add_shaped(program, program->values[result].name,
                                              program->values[result].dtype, &shape, &value));
    RETURN_IF_ERROR(grow(o));
    RETURN_IF_ERROR(rondo__row_map_copy(map, &made));
    made.base = value;
    made.width = shape.extent[shape.rank - 1];
    made.is_moved = true;
    o->maps[result] = made;
    program->nodes[n].outputs[0] = value;
    program->values[value].producer = (int32_t)n;
    program->values[result].producer = -1;
    return RONDO_STATUS_OK;
}

static rondo_status try_row_op(ordering *o, size_t n, bool *out_is_done) {
    *out_is_done = false;
    rondo__node *node = &o->program->nodes[n];
    rondo_shape base, x, y;
    int rows = -1;
    for (size_t i = 0; i < node->input_count && rows < 0; ++i) {
        rows =
            is_pending(o, node->inputs[i]) && o->maps[node->inputs[i]].index != NULL ? (int)i : -1;
    }
    if (rows < 0 || !rondo__program_get_shape(o->program, node->inputs[rows], &x) ||
        !rondo__program_get_shape(o->program, node->outputs[0], &y)) {
        return RONDO_STATUS_OK;
    }
    const rondo__row_map map = o->maps[node->inputs[rows]];
    bool is_whole = false;
    if (x.extent[x.rank - 1] != map.width ||
        !rondo__program_get_shape(o->program, map.base, &base) || y.rank != x.rank ||
        (!map.is_free && !is_row_norm(o, node)) || find_rows(o, node, base.rank) != rows) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__row_map_is_whole(&map, &is_whole));
    if (!is_whole) {
        return RONDO_STATUS_OK;
    }
    *out_is_done = true;
    if (is_row_norm(o, node)) {
        RETURN_IF_ERROR(rondo__op_set_int(&node->op, "axis", -1));
    }
    node->inputs[rows] = map.base;
    return move_node(o, n, &map);
}

// What stands beside `second` in the order of its base, if the program has it.
static rondo_status find_beside(ordering *o, const rondo__row_map *first,
                                const rondo__row_map *second, int32_t *out_value) {
    rondo__row_map beside;
    *out_value = RONDO__VALUE_NONE;
    RETURN_IF_ERROR(rondo__row_map_beside(first, second, &beside));
    if (beside.base >= 0) {
        *out_value = find_record(o, &beside);
    }
    rondo__row_map_deinit(&beside);
    return RONDO_STATUS_OK;
}

// A sum of two values' rows is made in the order of one of them, where the other has it, too.
static rondo_status try_sum(ordering *o, size_t n, bool *out_is_done) {
    *out_is_done = false;
    rondo_program *program = o->program;
    const rondo__node *node = &program->nodes[n];
    rondo_shape shapes[2], result, base;
    if (!rondo__node_is(node, RONDO__OP_Add) ||
        !rondo__program_get_shape(o->program, node->inputs[0], &shapes[0]) ||
        !rondo__program_get_shape(o->program, node->inputs[1], &shapes[1]) ||
        !rondo__program_get_shape(o->program, node->outputs[0], &result) ||
        !rondo_shape_is_equal(&shapes[0], &shapes[1]) ||
        !rondo_shape_is_equal(&shapes[0], &result) || result.rank < 1) {
        return RONDO_STATUS_OK;
    }
    for (int i = 1; i >= 0; --i) {
        const rondo__row_map first = *get_map(o, node->inputs[1 - i]);
        rondo__row_map second = *get_map(o, node->inputs[i]);
        int32_t beside = RONDO__VALUE_NONE;
        if (!is_pending(o, node->inputs[i]) || second.index == NULL || first.base < 0 ||
            first.width != second.width || second.width != result.extent[result.rank - 1] ||
            !rondo__program_get_shape(o->program, second.base, &base)) {
            continue;
        }
        RETURN_IF_ERROR(find_beside(o, &first, &second, &beside));
        if (beside < 0) {
            continue;
        }
        *out_is_done = true;
        second.is_free = true;
        RETURN_IF_ERROR(reshape(o, beside, &base, &beside));
        RETURN_IF_ERROR(grow(o));
        program->nodes[n].inputs[i] = second.base;
        program->nodes[n].inputs[1 - i] = beside;
        return move_node(o, n, &second);
    }
    return RONDO_STATUS_OK;
}

static rondo_status order_node(ordering *o, size_t n) {
    bool is_done = false;
    RETURN_IF_ERROR(try_move(o, &o->program->nodes[n], &is_done));
    if (!is_done) {
        RETURN_IF_ERROR(try_row_op(o, n, &is_done));
    }
    if (!is_done) {
        RETURN_IF_ERROR(try_sum(o, n, &is_done));
    }
    for (size_t i = 0; !is_done && i < o->program->nodes[n].input_count; ++i) {
        RETURN_IF_ERROR(settle(o, o->program->nodes[n].inputs[i]));
    }
    return RONDO_STATUS_OK;
}

static bool is_move(const rondo__node *node) {
    return (node->op.def->flags & RONDO__OP_VIEW) != 0 ||
           rondo__node_is(node, RONDO__OP_Transpose) || rondo__node_is(node, RONDO__OP_Slice) ||
           rondo__node_is(node, RONDO__OP_Concat);
}

static rondo_status find_only_moved(ordering *o) {
    rondo__uses uses;
    RETURN_IF_ERROR(rondo__uses_init(o->program, &uses));
    for (size_t n = 0; n < o->node_count; ++n) {
        const rondo__node *node = &o->program->nodes[n];
        const int32_t value = node->output_count > 0 ? node->outputs[0] : RONDO__VALUE_NONE;
        bool is_so = value >= 0 && !uses.is_output[value];
        for (size_t i = is_so ? uses.first[value] : 0; is_so && i < uses.first[value + 1]; ++i) {
            is_so = is_move(&o->program->nodes[uses.users[i]]);
        }
        o->is_only_moved[n] = is_so;
    }
    rondo__uses_deinit(&uses);
    return RONDO_STATUS_OK;
}

static rondo_status order_rows(ordering *o) {
    RETURN_IF_ERROR(find_only_moved(o));
    for (size_t n = 0; n < o->node_count; ++n) {
        RETURN_IF_ERROR(order_node(o, n));
        RETURN_IF_ERROR(grow(o));
    }
    for (size_t i = 0; i < o->program->output_count; ++i) {
        RETURN_IF_ERROR(settle(o, o->program->outputs[i]));
    }
    for (size_t n = 0; n < o->node_count; ++n) {  // moves of what is not there any more
        const rondo__node *node = &o->program->nodes[n];
        const int32_t value = node->output_count > 0 ? node->outputs[0] : RONDO__VALUE_NONE;
        o->remove[n] =
            o->remove[n] || (value >= 0 && o->maps[value].is_moved && !o->is_settled[value]);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__pass_rows(rondo_program *program) {
    ordering o = {.program = program, .node_count = program->node_count};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    o.remove = rondo__calloc(o.node_count + 1, sizeof *o.remove);
    o.is_only_moved = rondo__calloc(o.node_count + 1, sizeof *o.is_only_moved);
    if (o.remove != NULL && o.is_only_moved != NULL) {
        status = grow(&o);
    }
    if (status == RONDO_STATUS_OK) {
        status = order_rows(&o);
        status = rondo__program_finish_rewrite(program, o.remove, o.node_count, status);
    }
    for (size_t v = 0; v < o.value_count; ++v) {
        rondo__row_map_deinit(&o.maps[v]);
    }
    for (size_t i = 0; i < o.record_count; ++i) {
        rondo__row_map_deinit(&o.records[i].map);
    }
    rondo__free(o.records);
    rondo__free(o.maps);
    rondo__free(o.is_settled);
    rondo__free(o.is_only_moved);
    rondo__free(o.remove);
    return status;
}
