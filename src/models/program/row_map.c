// program/row_map.c — see row_map.h.
// SPDX-License-Identifier: Apache-2.0
#include "program/row_map.h"

#include <string.h>

#include "base/memory.h"
#include "program/passes/match.h"

enum {
    ROWS_MOST = 65536,  // of a list
    WIDTH_LEAST = 8,    // narrower rows are better moved by strides
};

// Extents with the last counted in rows: of a value and of what a move makes of it.
typedef struct row_shape {
    int32_t rank;
    int64_t extent[RONDO_RANK_MAX];
} row_shape;

static bool get_row_shape(const rondo_program *program, int32_t value, int64_t width,
                          row_shape *out_shape) {
    rondo_shape shape;
    if (value < 0 || !rondo__value_get_shape(&program->values[value], &shape) || shape.rank < 1 ||
        shape.extent[shape.rank - 1] % width != 0 || rondo_shape_get_count(&shape) == 0) {
        return false;
    }
    *out_shape = (row_shape){.rank = shape.rank};
    memcpy(out_shape->extent, shape.extent, sizeof out_shape->extent);
    out_shape->extent[shape.rank - 1] /= width;
    return true;
}

static int64_t count_rows(const row_shape *shape) {
    int64_t count = 1;
    for (int32_t d = 0; d < shape->rank; ++d) {
        count *= shape->extent[d];
    }
    return count;
}

bool rondo__row_map_begin(const rondo_program *program, int32_t value, rondo__row_map *out_map) {
    *out_map = (rondo__row_map){.base = RONDO__VALUE_NONE};
    rondo_shape shape;
    if (value < 0 || rondo__value_is_constant(&program->values[value]) ||
        !rondo__value_get_shape(&program->values[value], &shape) || shape.rank < 2) {
        return false;
    }
    const int64_t width = shape.extent[shape.rank - 1];
    const int64_t count = rondo_shape_get_count(&shape);
    if (width < WIDTH_LEAST || count < 1 || count / width > ROWS_MOST) {
        return false;
    }
    *out_map = (rondo__row_map){
        .base = value, .width = width, .rows = count / width, .count = count / width};
    return true;
}

void rondo__row_map_deinit(rondo__row_map *map) {
    rondo__free(map->index);
    *map = (rondo__row_map){.base = RONDO__VALUE_NONE};
}

static rondo_status make_list(int64_t count, int32_t **out_list) {
    *out_list = rondo__calloc((size_t)count, sizeof **out_list);
    return *out_list != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
}

static int32_t get_row(const rondo__row_map *map, int64_t i) {
    return map->index != NULL ? map->index[i] : (int32_t)i;
}

// A list of all rows in order needs no memory.
static void forget_order(rondo__row_map *map) {
    bool is_in_order = map->index != NULL && map->count == map->rows;
    for (int64_t i = 0; is_in_order && i < map->count; ++i) {
        is_in_order = map->index[i] == (int32_t)i;
    }
    if (is_in_order) {
        rondo__free(map->index);
        map->index = NULL;
    }
}

rondo_status rondo__row_map_copy(const rondo__row_map *map, rondo__row_map *out_copy) {
    *out_copy = *map;
    if (map->index == NULL) {
        return RONDO_STATUS_OK;
    }
    const rondo_status status = make_list(map->count, &out_copy->index);
    if (status != RONDO_STATUS_OK) {
        *out_copy = (rondo__row_map){.base = RONDO__VALUE_NONE};
        return status;
    }
    memcpy(out_copy->index, map->index, (size_t)map->count * sizeof *map->index);
    return RONDO_STATUS_OK;
}

// ---- moves ------------------------------------------------------------------------------------

// Steps through the rows of the input: those of the output, one extent after the other.
typedef struct row_walk {
    row_shape shape;
    int64_t offset;
    int64_t stride[RONDO_RANK_MAX];
} row_walk;

static rondo_status follow_walk(const rondo__row_map *from, const row_walk *walk,
                                rondo__row_map *out_map) {
    *out_map = *from;
    out_map->count = count_rows(&walk->shape);
    out_map->moves = from->moves + 1;
    out_map->is_free = false;
    const rondo_status status = make_list(out_map->count, &out_map->index);
    if (status != RONDO_STATUS_OK) {
        *out_map = (rondo__row_map){.base = RONDO__VALUE_NONE};
        return status;
    }
    for (int64_t i = 0; i < out_map->count; ++i) {
        int64_t rest = i, at = walk->offset;
        for (int32_t d = walk->shape.rank - 1; d >= 0; --d) {
            at += rest % walk->shape.extent[d] * walk->stride[d];
            rest /= walk->shape.extent[d];
        }
        out_map->index[i] = get_row(from, at);
    }
    forget_order(out_map);
    return RONDO_STATUS_OK;
}

static void make_dense(const row_shape *shape, int64_t stride[RONDO_RANK_MAX]) {
    int64_t step = 1;
    for (int32_t d = shape->rank - 1; d >= 0; --d) {
        stride[d] = step;
        step *= shape->extent[d];
    }
}

static bool turn(const rondo__node *node, const row_shape *from, row_walk *walk) {
    size_t count = 0;
    const int64_t *perm = rondo__op_get_ints(&node->op, "perm", &count);
    int64_t stride[RONDO_RANK_MAX];
    if (perm == NULL || count != (size_t)from->rank || perm[from->rank - 1] != from->rank - 1) {
        return false;
    }
    make_dense(from, stride);
    for (int32_t d = 0; d < from->rank; ++d) {
        if (perm[d] < 0 || perm[d] >= from->rank) {
            return false;
        }
        walk->stride[d] = stride[perm[d]];
    }
    return true;
}

// A constant list of whole numbers; its length, or -1.
static int64_t get_numbers(const rondo_program *program, int32_t value,
                           int64_t numbers[RONDO_RANK_MAX]) {
    const rondo_tensor *list = value >= 0 ? &program->values[value].constant : NULL;
    if (list == NULL || (list->dtype != RONDO_DTYPE_I64 && list->dtype != RONDO_DTYPE_I32) ||
        rondo_shape_get_count(&list->shape) > RONDO_RANK_MAX) {
        return -1;
    }
    const int64_t count = rondo_shape_get_count(&list->shape);
    for (int64_t i = 0; i < count; ++i) {
        numbers[i] = list->dtype == RONDO_DTYPE_I64 ? ((const int64_t *)list->data)[i]
                                                    : ((const int32_t *)list->data)[i];
    }
    return count;
}

// Ranges of step 1; their lengths are those of the result.
static bool slice(const rondo_program *program, const rondo__node *node, const row_shape *from,
                  row_walk *walk) {
    int64_t starts[RONDO_RANK_MAX], axes[RONDO_RANK_MAX], steps[RONDO_RANK_MAX];
    if (node->op.opset < 10 || walk->shape.rank != from->rank) {
        return false;
    }
    const int32_t of_axes = rondo__match_input(node, 3), of_steps = rondo__match_input(node, 4);
    const int64_t count = get_numbers(program, rondo__match_input(node, 1), starts);
    if (count < 0 || (of_axes >= 0 && get_numbers(program, of_axes, axes) != count) ||
        (of_steps >= 0 && get_numbers(program, of_steps, steps) != count)) {
        return false;
    }
    make_dense(from, walk->stride);
    for (int64_t i = 0; i < count; ++i) {
        int64_t axis = of_axes >= 0 ? axes[i] : i;
        axis += axis < 0 ? from->rank : 0;
        const int64_t step = of_steps >= 0 ? steps[i] : 1;
        if (axis < 0 || axis >= from->rank) {
            return false;
        }
        const bool is_whole = walk->shape.extent[axis] == from->extent[axis];
        const int64_t extent = from->extent[axis];
        int64_t start = starts[i] < 0 ? starts[i] + extent : starts[i];
        start = start < 0 ? 0 : start;
        if (step < 1 || (axis == from->rank - 1 && !is_whole) ||
            start + (walk->shape.extent[axis] - 1) * step >= extent) {
            return false;
        }
        walk->offset += start * walk->stride[axis];
        walk->stride[axis] *= step;
    }
    return true;
}

static rondo_status join(const rondo_program *program, const rondo__node *node,
                         const rondo__row_map *const *inputs, const row_shape *result,
                         rondo__row_map *out_map) {
    int64_t axis = rondo__op_get_int(&node->op, "axis", 0);
    axis += axis < 0 ? result->rank : 0;
    const rondo__row_map *first = inputs[0];
    bool fits = axis >= 0 && axis < result->rank;
    for (size_t i = 0; fits && i < node->input_count; ++i) {
        row_shape shape;
        fits = inputs[i]->base >= 0 && inputs[i]->base == first->base &&
               inputs[i]->width == first->width &&
               get_row_shape(program, node->inputs[i], first->width, &shape) &&
               shape.rank == result->rank && count_rows(&shape) == inputs[i]->count;
    }
    if (!fits) {
        return RONDO_STATUS_OK;
    }
    int64_t outer = 1, to = 0;
    for (int32_t d = 0; d < axis; ++d) {
        outer *= result->extent[d];
    }
    *out_map = *first;
    out_map->is_free = false;
    out_map->count = count_rows(result);
    const rondo_status status = make_list(out_map->count, &out_map->index);
    if (status != RONDO_STATUS_OK) {
        *out_map = (rondo__row_map){.base = RONDO__VALUE_NONE};
        return status;
    }
    for (int64_t o = 0; o < outer; ++o) {
        for (size_t i = 0; i < node->input_count; ++i) {
            const int64_t length = inputs[i]->count / outer;  // extents along the axis times inner
            for (int64_t j = 0; j < length && to < out_map->count; ++j) {
                out_map->index[to++] = get_row(inputs[i], o * length + j);
            }
        }
    }
    for (size_t i = 0; i < node->input_count; ++i) {
        out_map->moves = inputs[i]->moves > out_map->moves ? inputs[i]->moves : out_map->moves;
        out_map->is_moved = out_map->is_moved || inputs[i]->is_moved;
    }
    out_map->moves += 1;
    forget_order(out_map);
    return RONDO_STATUS_OK;
}

rondo_status rondo__row_map_apply(const rondo_program *program, const rondo__node *node,
                                  const rondo__row_map *const *inputs, rondo__row_map *out_map) {
    *out_map = (rondo__row_map){.base = RONDO__VALUE_NONE};
    row_walk walk = {0};
    row_shape from;
    if (node->input_count < 1 || node->output_count < 1 || inputs[0]->base < 0 ||
        !get_row_shape(program, node->inputs[0], inputs[0]->width, &from) ||
        !get_row_shape(program, node->outputs[0], inputs[0]->width, &walk.shape) ||
        count_rows(&walk.shape) > ROWS_MOST || count_rows(&from) != inputs[0]->count) {
        return RONDO_STATUS_OK;
    }
    if ((node->op.def->flags & RONDO__OP_VIEW) != 0) {
        return rondo__row_map_copy(inputs[0], out_map);
    }
    if (rondo__node_is(node, RONDO__OP_Concat)) {
        return join(program, node, inputs, &walk.shape, out_map);
    }
    const bool is_move =
        (rondo__node_is(node, RONDO__OP_Transpose) && turn(node, &from, &walk)) ||
        (rondo__node_is(node, RONDO__OP_Slice) && slice(program, node, &from, &walk));
    return is_move ? follow_walk(inputs[0], &walk, out_map) : RONDO_STATUS_OK;
}

// ---- orders -----------------------------------------------------------------------------------

// Where the list has each row of the base; NULL in *out_places: not each row is there once.
static rondo_status find_places(const rondo__row_map *map, int32_t **out_places) {
    *out_places = NULL;
    if (map->count != map->rows) {
        return RONDO_STATUS_OK;
    }
    int32_t *places = NULL;
    const rondo_status status = make_list(map->count, &places);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    bool is_whole = true;
    memset(places, 0xff, (size_t)map->count * sizeof *places);
    for (int64_t i = 0; is_whole && i < map->count; ++i) {
        int32_t *place = &places[get_row(map, i)];
        is_whole = *place < 0;
        *place = (int32_t)i;
    }
    if (!is_whole) {
        rondo__free(places);
        return RONDO_STATUS_OK;
    }
    *out_places = places;
    return RONDO_STATUS_OK;
}

rondo_status rondo__row_map_is_whole(const rondo__row_map *map, bool *out_is_whole) {
    int32_t *places = NULL;
    const rondo_status status = find_places(map, &places);
    *out_is_whole = places != NULL;
    rondo__free(places);
    return status;
}

rondo_status rondo__row_map_beside(const rondo__row_map *first, const rondo__row_map *second,
                                   rondo__row_map *out_map) {
    *out_map = (rondo__row_map){.base = RONDO__VALUE_NONE};
    int32_t *places = NULL;
    const rondo_status status = find_places(second, &places);
    if (status != RONDO_STATUS_OK || places == NULL || first->count != second->count) {
        rondo__free(places);
        return status;
    }
    for (int64_t j = 0; j < second->count; ++j) {
        places[j] = get_row(first, places[j]);
    }
    *out_map = *first;
    out_map->index = places;
    forget_order(out_map);
    return RONDO_STATUS_OK;
}

bool rondo__row_map_is_equal(const rondo__row_map *map, const rondo__row_map *other) {
    if (map->base != other->base || map->width != other->width || map->count != other->count) {
        return false;
    }
    if (map->index == NULL || other->index == NULL) {
        return map->index == other->index;
    }
    return memcmp(map->index, other->index, (size_t)map->count * sizeof *map->index) == 0;
}
