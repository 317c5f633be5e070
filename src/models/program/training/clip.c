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

// Of what a rank has a part of, its own squares are added to those of the others.
static int32_t sum_squares(rondo__step *step) {
    rondo__gradient *g = &step->g;
    int32_t squares = RONDO__VALUE_NONE;
    size_t split = 0;
    int32_t *scalars = rondo__calloc(step->count + 1, sizeof *scalars);
    int64_t *elements = rondo__calloc(step->count + 1, sizeof *elements);
    if (scalars == NULL || elements == NULL) {
        g->status = g->status == RONDO_STATUS_OK ? RONDO_STATUS_NO_MEMORY : g->status;
    }
    for (size_t i = 0; i < step->count && g->status == RONDO_STATUS_OK; ++i) {
        const rondo__trained *t = &step->trained[i];
        const int32_t change = rondo__gradient_cast(&step->g, t->change, RONDO_DTYPE_F32);
        const int32_t norm = rondo__gradient_set_int(g, E("ReduceL2", change), "keepdims", 0);
        const int32_t square = E("Mul", norm, norm);
        rondo_shape shape = {0};
        (void)rondo__value_get_shape(&step->program->values[t->weight], &shape);
        if (t->is_split) {
            elements[split] = rondo_shape_get_count(&shape);
            scalars[split++] = square;
        } else {
            squares = rondo__gradient_join(g, squares, square);
        }
    }
    if (split > 0 && g->status == RONDO_STATUS_OK) {
        const int32_t shared = rondo__step_sum_scalars(step, scalars, elements, split);
        squares = rondo__gradient_join(g, squares, shared);
    }
    rondo__free(scalars);
    rondo__free(elements);
    return squares;
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
