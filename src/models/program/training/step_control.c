// program/training/step_control.c — the numbers that control a training step: the count of steps,
// the rate, the scale of the loss. See step_parts.h.
//
// All of it is computed where the program runs, from variables: nothing is frozen by a capture, and
// nothing is read by the host.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "program/training/step_parts.h"

#define E(...) RONDO__EMIT(&step->g, __VA_ARGS__)

static int32_t num(rondo__step *step, double number, int32_t like) {
    return rondo__gradient_number(&step->g, number, like);
}

static int32_t cast(rondo__step *step, int32_t value, rondo_dtype dtype) {
    return rondo__gradient_cast(&step->g, value, dtype);
}

static int32_t state(rondo__step *step, const char *what, rondo_dtype dtype, double start) {
    return rondo__step_add_state(step, "train", what, dtype, RONDO__VALUE_NONE, start);
}

// ---- numbers for all weights --------------------------------------------------------------------

int32_t rondo__step_narrow(rondo__step *step, int32_t wide, int32_t weight) {
    const rondo_dtype dtype = step->program->values[weight].dtype;
    for (size_t i = 0; i < step->narrowed_count; ++i) {
        if (step->narrowed[i].wide == wide && step->narrowed[i].dtype == dtype) {
            return step->narrowed[i].value;
        }
    }
    const int32_t value = rondo__gradient_cast_like(&step->g, wide, weight);
    if (step->narrowed_count < sizeof step->narrowed / sizeof *step->narrowed) {
        step->narrowed[step->narrowed_count++] = (rondo__narrowed){wide, dtype, value};
    }
    return value;
}

// ---- steps and rate -----------------------------------------------------------------------------

void rondo__step_count(rondo__step *step) {
    step->steps = state(step, "step", RONDO_DTYPE_I64, 0.0);
    const int32_t next = E("Add", step->steps, num(step, 1.0, step->steps));
    step->number = cast(step, next, RONDO_DTYPE_F64);
    if (step->options.accumulate > 1) {
        const int32_t micro = state(step, "micro", RONDO_DTYPE_I64, 0.0);
        const double last = (double)(step->options.accumulate - 1);
        step->is_full = E("GreaterOrEqual", micro, num(step, last, micro));
        const int32_t more = E("Add", micro, num(step, 1.0, micro));
        rondo__step_update(step, micro, E("Where", step->is_full, num(step, 0.0, micro), more));
    }
}

// The share of the schedule that is over, 0 to 1; `at`: steps since it began.
static int32_t find_share(rondo__step *step, int32_t at) {
    const double length = (double)step->options.schedule_steps;
    return E("Min", E("Div", at, num(step, length, at)), num(step, 1.0, at));
}

static int32_t find_factor(rondo__step *step, int32_t at) {
    const rondo_minimize_options *options = &step->options;
    const double least = options->schedule_least;
    if (options->schedule == RONDO_SCHEDULE_STEP) {
        const int32_t count =
            E("Floor", E("Div", at, num(step, (double)options->schedule_steps, at)));
        return E("Pow", num(step, options->schedule_factor, at), count);
    }
    const int32_t share = find_share(step, at);
    int32_t height;  // from 1 to 0
    if (options->schedule == RONDO_SCHEDULE_COSINE) {
        const int32_t turn = E("Cos", E("Mul", share, num(step, 3.14159265358979323846, at)));
        height = E("Mul", E("Add", turn, num(step, 1.0, at)), num(step, 0.5, at));
    } else {
        height = E("Sub", num(step, 1.0, at), share);
    }
    return E("Add", E("Mul", height, num(step, 1.0 - least, at)), num(step, least, at));
}

void rondo__step_find_rate(rondo__step *step) {
    const rondo_minimize_options *options = &step->options;
    if (step->rate_given >= 0) {
        step->rate = cast(step, step->rate_given, RONDO_DTYPE_F64);
        const int32_t scalar = rondo__gradient_ints(&step->g, NULL, 0);
        step->rate = E("Reshape", step->rate, scalar);
    } else {
        const int32_t taken = cast(step, step->steps, RONDO_DTYPE_F64);
        const double warmup = (double)options->warmup_steps;
        int32_t rate = num(step, options->learning_rate, taken);
        if (options->schedule != RONDO_SCHEDULE_CONSTANT) {
            const int32_t late = E("Sub", taken, num(step, warmup, taken));
            rate = E("Mul", rate, find_factor(step, E("Max", late, num(step, 0.0, taken))));
        }
        if (options->warmup_steps > 0) {
            const double first = options->warmup_start;
            const int32_t way =
                E("Min", E("Div", taken, num(step, warmup, taken)), num(step, 1.0, taken));
            const int32_t factor =
                E("Add", E("Mul", way, num(step, 1.0 - first, taken)), num(step, first, taken));
            rate = E("Mul", rate, factor);
        }
        step->rate = rate;
    }
    rondo__step_name(step, step->rate, "train.rate");
}

int32_t rondo__step_correction(rondo__step *step, double beta) {
    const int32_t number = step->number;
    return E("Sub", num(step, 1.0, number), E("Pow", num(step, beta, number), number));
}

// ---- the scale ----------------------------------------------------------------------------------

void rondo__step_start_scale(rondo__step *step) {
    if (step->options.scale_loss) {
        step->scale = state(step, "scale", RONDO_DTYPE_F32, step->options.scale_start);
    }
}

// A number that is NaN where any element of the changes is not finite, and 0 otherwise: each times
// 0, added up.
static int32_t find_spoilt(rondo__step *step) {
    int32_t all = RONDO__VALUE_NONE;
    for (size_t i = 0; i < step->count; ++i) {
        const int32_t change = step->trained[i].change;
        const int32_t sum = E("ReduceSum", E("Mul", change, num(step, 0.0, change)));
        const int32_t one =
            cast(step, rondo__gradient_set_int(&step->g, sum, "keepdims", 0), RONDO_DTYPE_F32);
        all = rondo__gradient_join(&step->g, all, one);
    }
    return all;
}

// The scale after this step, as PyTorch's GradScaler has it, with patience and a floor.
static void update_scale(rondo__step *step) {
    const rondo_minimize_options *options = &step->options;
    const int32_t scale = step->scale;
    const int32_t good = state(step, "good", RONDO_DTYPE_I64, 0.0);
    const int32_t patience =
        state(step, "patience", RONDO_DTYPE_I64, (double)options->scale_patience);
    const int32_t zero = num(step, 0.0, good);
    const int32_t one = num(step, 1.0, good);
    const int32_t counted = E("Add", good, one);
    const int32_t grows =
        E("And", step->is_good,
          E("GreaterOrEqual", counted, num(step, (double)options->scale_interval, good)));
    const int32_t left = E("Sub", patience, one);
    const int32_t shrinks = E("And", E("Not", step->is_good), E("LessOrEqual", left, zero));

    const int32_t grown = E("Mul", scale, num(step, options->scale_growth, scale));
    const int32_t up = E("Where", E("IsInf", grown), scale, grown);
    const int32_t down = E("Max", E("Mul", scale, num(step, options->scale_backoff, scale)),
                           num(step, options->scale_least, scale));
    const int32_t next = E("Where", grows, up, E("Where", shrinks, down, scale));
    rondo__step_update_if(step, step->is_full, scale, next);

    const int32_t starts_again = E("Or", grows, E("Not", step->is_good));
    rondo__step_update_if(step, step->is_full, good, E("Where", starts_again, zero, counted));
    const int32_t full = num(step, (double)options->scale_patience, patience);
    const int32_t rest =
        E("Where", step->is_good, E("Where", grows, full, patience), E("Max", left, zero));
    rondo__step_update_if(step, step->is_full, patience, rest);
}

int32_t rondo__step_find_good(rondo__step *step) {
    return E("Not", E("IsNaN", find_spoilt(step)));
}

void rondo__step_check(rondo__step *step) {
    if (step->scale >= 0) {
        step->is_good = step->bad_ranks < 0
                            ? rondo__step_find_good(step)
                            : E("Equal", step->bad_ranks, num(step, 0.0, step->bad_ranks));
        const int32_t wide = cast(step, step->scale, RONDO_DTYPE_F64);
        const int32_t inverse = E("Reciprocal", wide);
        for (size_t i = 0; i < step->count; ++i) {
            const int32_t change = step->trained[i].change;
            step->trained[i].change =
                E("Mul", change, rondo__step_narrow(step, inverse, step->trained[i].weight));
        }
    }
    step->applies = step->is_full < 0   ? step->is_good
                    : step->is_good < 0 ? step->is_full
                                        : E("And", step->is_full, step->is_good);
    if (step->scale >= 0) {
        update_scale(step);
    }
    const int32_t next = E("Add", step->steps, num(step, 1.0, step->steps));
    rondo__step_update_if(step, step->applies, step->steps, next);
}
