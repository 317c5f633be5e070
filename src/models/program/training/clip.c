// program/training/clip.c — limits of gradients: of each element, and of the norm of all. See
// step_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"
#include "program/edit.h"
#include "program/training/step_parts.h"

#define E(...) RONDO__EMIT(&step->g, __VA_ARGS__)

static int32_t num(rondo__step *step, double number, int32_t like) {
    return rondo__gradient_number(&step->g, number, like);
}

static void clip_values(rondo__step *step) {
    for (size_t i = 0; i < step->count; ++i) {
        const int32_t change = step->trained[i].change;
        const double limit = step->options.clip_value;
        step->trained[i].change =
            E("Clip", change, num(step, -limit, change), num(step, limit, change));
    }
}

// The square of the norm of each gradient. Of what a rank has a part of, its own squares are added
// to those of the others.
static void find_squares(rondo__step *step, int32_t *squares, int32_t *parts, int64_t *elements) {
    rondo__gradient *g = &step->g;
    size_t split = 0;
    for (size_t i = 0; i < step->count && g->status == RONDO_STATUS_OK; ++i) {
        const rondo__trained *t = &step->trained[i];
        const int32_t change = rondo__gradient_cast(&step->g, t->change, RONDO_DTYPE_F32);
        const int32_t norm = rondo__gradient_set_int(g, E("ReduceL2", change), "keepdims", 0);
        rondo_shape shape = {0};
        (void)rondo__value_get_shape(&step->program->values[t->weight], &shape);
        squares[i] = E("Mul", norm, norm);
        if (t->is_split) {
            elements[split] = rondo_shape_get_count(&shape);
            parts[split++] = squares[i];
        }
    }
    if (split > 0 && g->status == RONDO_STATUS_OK) {
        rondo__step_sum_scalars(step, parts, elements, split);
    }
    for (size_t i = step->count; i-- > 0 && split > 0;) {
        squares[i] = step->trained[i].is_split ? parts[--split] : squares[i];
    }
}

// They are added in one order, whether ranks have parts or not.
static int32_t sum_squares(rondo__step *step) {
    rondo__gradient *g = &step->g;
    int32_t all = RONDO__VALUE_NONE;
    int32_t *squares = rondo__calloc(2 * step->count + 1, sizeof *squares);
    int64_t *elements = rondo__calloc(step->count + 1, sizeof *elements);
    if (squares == NULL || elements == NULL) {
        g->status = g->status == RONDO_STATUS_OK ? RONDO_STATUS_NO_MEMORY : g->status;
    }
    if (g->status == RONDO_STATUS_OK) {
        find_squares(step, squares, squares + step->count, elements);
    }
    for (size_t i = 0; i < step->count && g->status == RONDO_STATUS_OK; ++i) {
        all = rondo__gradient_join(g, all, squares[i]);
    }
    rondo__free(squares);
    rondo__free(elements);
    return all;
}

static void clip_norm(rondo__step *step) {
    const int32_t squares = sum_squares(step);
    const int32_t norm = E("Sqrt", squares);
    const int32_t below = E("Add", norm, num(step, 1e-6, norm));
    const int32_t ratio = E("Div", num(step, step->options.clip_norm, norm), below);
    // Min lets a NaN through, so that all become NaN, as PyTorch has it.
    const int32_t factor = E("Min", ratio, num(step, 1.0, norm));
    for (size_t i = 0; i < step->count; ++i) {
        const int32_t change = step->trained[i].change;
        step->trained[i].change =
            E("Mul", change, rondo__step_narrow(step, factor, step->trained[i].weight));
    }
    rondo__step_name(step, norm, "train.norm");
}

void rondo__step_clip(rondo__step *step) {
    if (step->options.clip_value > 0.0) {
        clip_values(step);
    }
    if (step->options.clip_norm > 0.0) {
        clip_norm(step);
    }
}
