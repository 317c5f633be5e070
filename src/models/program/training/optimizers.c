// program/training/optimizers.c — the new value of a weight. See step_parts.h.
//
// Each line is one rounded operation of the weight's type, in PyTorch's order; factors are computed
// in f64 and rounded once. The forms matter to the last bit: the mean is m + w (g - m), or
// g - (g - m) (1 - w) from w = 0.5 on; the square v b2 + ((1 - b2) g) g; the weight
// p + (-step m) / (sqrt(v) / root + epsilon).
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/training/step_parts.h"

#define E(...) RONDO__EMIT(&step->g, __VA_ARGS__)

static int32_t num(rondo__step *step, double number, int32_t like) {
    return rondo__gradient_number(&step->g, number, like);
}

static int32_t add_state(rondo__step *step, const rondo__trained *t, const char *what) {
    const rondo__value *weight = &step->program->values[t->weight];
    return rondo__step_add_state(step, step->program->values[t->used].name, what, weight->dtype,
                                 t->weight, 0.0);
}

static void apply_sgd(rondo__step *step, const rondo__trained *t) {
    const rondo_minimize_options *o = &step->options;
    const int32_t p = t->weight;
    int32_t change = t->change;
    int32_t before = RONDO__VALUE_NONE;
    int32_t now = RONDO__VALUE_NONE;
    if (o->weight_decay != 0.0) {
        change = E("Add", change, E("Mul", p, num(step, o->weight_decay, p)));
    }
    if (o->momentum != 0.0) {
        before = add_state(step, t, "momentum");
        const int32_t kept = E("Mul", before, num(step, o->momentum, p));
        now = o->dampening == 0.0
                  ? E("Add", kept, change)
                  : E("Add", kept, E("Mul", change, num(step, 1.0 - o->dampening, p)));
        if (o->dampening != 0.0) {
            // The first step takes the gradient whole.
            const int32_t is_first = E("Equal", step->steps, num(step, 0.0, step->steps));
            now = E("Where", is_first, change, now);
        }
        change = o->nesterov ? E("Add", change, E("Mul", now, num(step, o->momentum, p))) : now;
    }
    if (step->size < 0) {
        step->size = E("Neg", step->rate);
    }
    const int32_t rate = rondo__step_narrow(step, step->size, t->weight);
    const int32_t next = E("Add", p, E("Mul", change, rate));
    if (before >= 0) {
        rondo__step_update_if(step, step->applies, before, now);
    }
    rondo__step_update_if(step, step->applies, p, next);
}

static int32_t find_mean(rondo__step *step, int32_t before, int32_t change, double beta) {
    const double weight = 1.0 - beta;
    const int32_t way = E("Sub", change, before);
    return weight < 0.5 ? E("Add", before, E("Mul", way, num(step, weight, before)))
                        : E("Sub", change, E("Mul", way, num(step, 1.0 - weight, before)));
}

static int32_t find_square(rondo__step *step, int32_t before, int32_t change, double beta) {
    const int32_t part = E("Mul", E("Mul", change, num(step, 1.0 - beta, change)), change);
    return E("Add", E("Mul", before, num(step, beta, before)), part);
}

// What all weights have in common: -rate / (1 - beta1^n), sqrt(1 - beta2^n), 1 - rate x decay.
static void find_factors(rondo__step *step) {
    const rondo_minimize_options *o = &step->options;
    if (step->size >= 0) {
        return;
    }
    step->size = E("Neg", E("Div", step->rate, rondo__step_correction(step, o->beta1)));
    step->root = E("Sqrt", rondo__step_correction(step, o->beta2));
    if (o->weight_decay != 0.0 && o->optimizer == RONDO_OPTIMIZER_ADAMW) {
        const int32_t shrink = E("Mul", step->rate, num(step, o->weight_decay, step->rate));
        step->rest = E("Sub", num(step, 1.0, shrink), shrink);
    }
}

static void apply_adam(rondo__step *step, const rondo__trained *t) {
    const rondo_minimize_options *o = &step->options;
    const bool is_apart = o->optimizer == RONDO_OPTIMIZER_ADAMW;
    int32_t p = t->weight;
    int32_t change = t->change;
    find_factors(step);
    if (o->weight_decay != 0.0 && is_apart) {
        p = E("Mul", p, rondo__step_narrow(step, step->rest, t->weight));
    } else if (o->weight_decay != 0.0) {
        change = E("Add", change, E("Mul", p, num(step, o->weight_decay, p)));
    }
    const int32_t mean_before = add_state(step, t, "mean");
    const int32_t square_before = add_state(step, t, "square");
    const int32_t mean = find_mean(step, mean_before, change, o->beta1);
    const int32_t square = find_square(step, square_before, change, o->beta2);
    const int32_t below =
        E("Add", E("Div", E("Sqrt", square), rondo__step_narrow(step, step->root, t->weight)),
          num(step, o->epsilon, p));
    const int32_t way =
        E("Div", E("Mul", mean, rondo__step_narrow(step, step->size, t->weight)), below);
    const int32_t next = E("Add", p, way);
    rondo__step_update_if(step, step->applies, mean_before, mean);
    rondo__step_update_if(step, step->applies, square_before, square);
    rondo__step_update_if(step, step->applies, t->weight, next);
}

static void apply_adagrad(rondo__step *step, const rondo__trained *t) {
    const rondo_minimize_options *o = &step->options;
    const int32_t p = t->weight;
    int32_t change = t->change;
    if (o->weight_decay != 0.0) {
        change = E("Add", change, E("Mul", p, num(step, o->weight_decay, p)));
    }
    const int32_t before = add_state(step, t, "square");
    const int32_t square = E("Add", before, E("Mul", change, change));
    const int32_t below = E("Add", E("Sqrt", square), num(step, o->epsilon, p));
    if (step->size < 0) {
        step->size = E("Neg", step->rate);
    }
    const int32_t rate = rondo__step_narrow(step, step->size, t->weight);
    const int32_t next = E("Add", p, E("Div", E("Mul", change, rate), below));
    rondo__step_update_if(step, step->applies, before, square);
    rondo__step_update_if(step, step->applies, p, next);
}

void rondo__step_apply(rondo__step *step, const rondo__trained *trained) {
    if (trained->rows >= 0) {
        rondo__step_apply_rows(step, trained);
    } else if (step->options.optimizer == RONDO_OPTIMIZER_ADAGRAD) {
        apply_adagrad(step, trained);
    } else if (step->options.optimizer == RONDO_OPTIMIZER_SGD) {
        apply_sgd(step, trained);
    } else {
        apply_adam(step, trained);
    }
}
