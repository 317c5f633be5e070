// program/training/minimize.c — a whole training step. See rondo/training.h.
//
//   parameters become variables        loss ──> gradients, of loss x scale
//   sums over micro-batches ──> finite? ──> / scale ──> clipped ──> optimiser ──> variables
//
// A step whose gradients are not finite is left out by a choice (Where) at each variable, not by an
// If: collectives, which cannot stand in a conditional body, may be among what computes them.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/read_options.h"
#include "program/builder/builder_parts.h"
#include "program/edit.h"
#include "program/half/half_pass.h"
#include "program/training/step_parts.h"

static const char call_name[] = "rondo_builder_minimize";

// ---- options ------------------------------------------------------------------------------------

typedef struct number_rule {
    const char *name;
    double value;
    double least, most;
    bool is_open;   // `least` itself is refused
    bool is_below;  // `most` itself is refused
} number_rule;

static rondo_status check_number(const number_rule *rule) {
    const bool is_low =
        rule->is_open ? !(rule->value > rule->least) : !(rule->value >= rule->least);
    const bool is_high =
        rule->is_below ? !(rule->value < rule->most) : !(rule->value <= rule->most);
    return is_low || is_high || !isfinite(rule->value)
               ? RONDO_FAIL_AS(call_name, INVALID, "%s is %g; it is a number %s %g and %s %g",
                               rule->name, rule->value, rule->is_open ? "above" : "from",
                               rule->least, rule->is_below ? "below" : "up to", rule->most)
               : RONDO_STATUS_OK;
}

static void fill_defaults(rondo_minimize_options *o, bool is_given) {
    o->learning_rate = is_given ? o->learning_rate : 0.01;
    o->beta1 = o->beta1 != 0.0 ? o->beta1 : 0.9;
    o->beta2 = o->beta2 != 0.0 ? o->beta2 : 0.999;
    const double least = o->optimizer == RONDO_OPTIMIZER_ADAGRAD ? 1e-10 : 1e-8;
    o->epsilon = o->epsilon != 0.0 ? o->epsilon : least;
    o->warmup_start = o->warmup_start != 0.0 ? o->warmup_start : 1.0 / 3.0;
    o->scale_start = o->scale_start != 0.0 ? o->scale_start : 65536.0;
    o->scale_growth = o->scale_growth != 0.0 ? o->scale_growth : 2.0;
    o->scale_backoff = o->scale_backoff != 0.0 ? o->scale_backoff : 0.5;
    o->scale_least = o->scale_least != 0.0 ? o->scale_least : 1.0;
    o->scale_interval = o->scale_interval != 0 ? o->scale_interval : 2000;
    o->scale_patience = o->scale_patience != 0 ? o->scale_patience : 1;
    o->accumulate = o->accumulate != 0 ? o->accumulate : 1;
}

static rondo_status check_patterns(const char *name, const char *const *list, size_t count) {
    if (count > 65536 || (list == NULL && count > 0)) {
        return RONDO_FAIL_AS(call_name, INVALID, "options.%s is NULL, or over 65536", name);
    }
    for (size_t i = 0; i < count; ++i) {
        if (list[i] == NULL) {
            return RONDO_FAIL_AS(call_name, INVALID, "a pattern of %s is NULL", name);
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status check_kinds(const rondo_minimize_options *o) {
    if (o->optimizer < RONDO_OPTIMIZER_SGD || o->optimizer > RONDO_OPTIMIZER_ADAGRAD) {
        return RONDO_FAIL_AS(call_name, INVALID, "%d is not a rondo_optimizer", (int)o->optimizer);
    }
    if (o->schedule < RONDO_SCHEDULE_CONSTANT || o->schedule > RONDO_SCHEDULE_LINEAR) {
        return RONDO_FAIL_AS(call_name, INVALID, "%d is not a rondo_schedule", (int)o->schedule);
    }
    if (o->nesterov && (o->momentum == 0.0 || o->dampening != 0.0)) {
        return RONDO_FAIL_AS(call_name, INVALID, "nesterov needs a momentum, and no dampening");
    }
    if (o->shard_updates && !o->average_ranks) {
        return RONDO_FAIL_AS(call_name, INVALID,
                             "options.shard_updates shares the updates of variables among ranks, "
                             "and so needs options.average_ranks");
    }
    RETURN_IF_ERROR(check_patterns("train", o->train, o->train_count));
    RETURN_IF_ERROR(check_patterns("recompute", o->recompute, o->recompute_count));
    return check_patterns("rows", o->rows, o->rows_count);
}

static rondo_status check_options(const rondo_minimize_options *o) {
    const double much = 1e30;
    const double long_ = 9e15;
    const bool has_schedule = o->schedule != RONDO_SCHEDULE_CONSTANT;
    const bool has_factor = o->schedule == RONDO_SCHEDULE_STEP;
    const number_rule rules[] = {
        {"learning_rate", o->rate != NULL ? 1.0 : o->learning_rate, 0.0, much, true, false},
        {"momentum", o->momentum, 0.0, 1.0, false, true},
        {"dampening", o->dampening, 0.0, 1.0, false, false},
        {"beta1", o->beta1, 0.0, 1.0, false, true},
        {"beta2", o->beta2, 0.0, 1.0, false, true},
        {"epsilon", o->epsilon, 0.0, 1.0, true, false},
        {"weight_decay", o->weight_decay, 0.0, much, false, false},
        {"schedule_steps", has_schedule ? (double)o->schedule_steps : 1.0, 1.0, long_, false,
         false},
        {"schedule_factor", has_factor ? o->schedule_factor : 1.0, 0.0, much, true, false},
        {"schedule_least", o->schedule_least, 0.0, 1.0, false, false},
        {"warmup_steps", (double)o->warmup_steps, 0.0, long_, false, false},
        {"warmup_start", o->warmup_start, 0.0, 1.0, true, false},
        {"clip_value", o->clip_value, 0.0, much, false, false},
        {"clip_norm", o->clip_norm, 0.0, much, false, false},
        {"scale_start", o->scale_start, 0.0, much, true, false},
        {"scale_growth", o->scale_growth, 1.0, much, true, false},
        {"scale_backoff", o->scale_backoff, 0.0, 1.0, true, true},
        {"scale_least", o->scale_least, 1e-30, o->scale_start, false, false},
        {"scale_interval", (double)o->scale_interval, 1.0, long_, false, false},
        {"scale_patience", (double)o->scale_patience, 1.0, long_, false, false},
        {"accumulate", (double)o->accumulate, 1.0, 1e6, false, false},
    };
    RETURN_IF_ERROR(check_kinds(o));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; ++i) {
        RETURN_IF_ERROR(check_number(&rules[i]));
    }
    return RONDO_STATUS_OK;
}

// ---- the step -----------------------------------------------------------------------------------

// How the loss counts: times the scale, by the number of micro-batches.
static int32_t make_seed(rondo__step *step) {
    rondo__gradient *g = &step->g;
    int32_t seed = RONDO__VALUE_NONE;
    if (step->scale >= 0) {
        seed = rondo__gradient_cast_like(g, step->scale, step->loss);
    }
    if (step->options.accumulate > 1) {
        const int32_t one = seed >= 0 ? seed : rondo__gradient_number(g, 1.0, step->loss);
        const double count = (double)step->options.accumulate;
        seed = RONDO__EMIT(g, "Div", one, rondo__gradient_number(g, count, one));
    }
    return seed >= 0 ? rondo__gradient_reshape_like(g, seed, step->loss) : seed;
}

static rondo_status differentiate(rondo__step *step, int32_t seed) {
    int32_t *lists = rondo__calloc(2 * step->count + 1, sizeof *lists);
    if (lists == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    int32_t *changes = lists + step->count;
    for (size_t i = 0; i < step->count; ++i) {
        const rondo__trained *t = &step->trained[i];
        lists[i] = t->rows >= 0 ? t->rows : t->read;
    }
    const rondo__gradient_request request = {.y = step->loss,
                                             .seed = seed,
                                             .xs = lists,
                                             .x_count = step->count,
                                             .recompute = step->options.recompute,
                                             .recompute_count = step->options.recompute_count};
    const rondo_status status = rondo__program_add_gradients(step->program, &request, changes);
    for (size_t i = 0; i < step->count && status == RONDO_STATUS_OK; ++i) {
        step->trained[i].change = changes[i];
        // The gradient has the weight's shape, also where that was not seen.
        rondo_shape shape;
        const rondo__value *weight = &step->program->values[step->trained[i].weight];
        if (step->trained[i].rows < 0 && rondo__value_get_shape(weight, &shape)) {
            rondo__value *v = &step->program->values[changes[i]];
            rondo__value_set_shape(v, v->dtype, &shape);
        }
    }
    rondo__free(lists);
    return status;
}

static void accumulate(rondo__step *step) {
    rondo__gradient *g = &step->g;
    for (size_t i = 0; i < step->count && step->is_full >= 0; ++i) {
        rondo__trained *t = &step->trained[i];
        const rondo__value *weight = &step->program->values[t->weight];
        const int32_t sum = rondo__step_add_state(step, step->program->values[t->used].name, "sum",
                                                  weight->dtype, t->weight, 0.0);
        t->sum = sum;
        t->change = RONDO__EMIT(g, "Add", sum, t->change);
        const int32_t zero = rondo__gradient_number(g, 0.0, sum);
        rondo__step_update(step, sum, RONDO__EMIT(g, "Where", step->is_full, zero, t->change));
    }
}

// What is done with nodes from `first` on where the program computes in half precision.
static void set_precision(rondo__step *step, size_t first, uint8_t precision) {
    rondo__gradient_settle(&step->g);
    for (size_t n = first; n < step->program->node_count; ++n) {
        step->program->nodes[n].precision = precision;
    }
}

static void append_step(rondo__step *step) {
    rondo__gradient *g = &step->g;
    rondo__step_train_norms(step);
    size_t first = step->program->node_count;
    rondo__step_count(step);
    rondo__step_find_rate(step);
    rondo__step_start_scale(step);
    const int32_t seed = make_seed(step);
    set_precision(step, first, RONDO__PRECISION_TRAINED);
    first = step->program->node_count;
    if (g->status == RONDO_STATUS_OK) {
        g->status = differentiate(step, seed);
    }
    if (step->options.scale_loss) {
        set_precision(step, first, RONDO__PRECISION_GRADIENT);
    }
    first = step->program->node_count;
    for (size_t i = 0; i < step->count && g->status == RONDO_STATUS_OK; ++i) {
        rondo__trained *t = &step->trained[i];
        t->change = rondo__gradient_cast_like(g, t->change, t->weight);
    }
    accumulate(step);
    rondo__step_average(step);
    rondo__step_check(step);
    rondo__step_clip(step);
    for (size_t i = 0; i < step->count && g->status == RONDO_STATUS_OK; ++i) {
        rondo__step_apply(step, &step->trained[i]);
    }
    set_precision(step, first, RONDO__PRECISION_TRAINED);
}

static rondo_status minimize(rondo_builder *builder, const char *loss, rondo__step *step) {
    RETURN_IF_ERROR(rondo__builder_find(builder, loss, call_name, &step->loss));
    if (step->options.rate != NULL) {
        RETURN_IF_ERROR(
            rondo__builder_find(builder, step->options.rate, call_name, &step->rate_given));
    }
    if (rondo__program_find_value(step->program, "train.rate") >= 0) {
        return RONDO_FAIL_AS(call_name, INVALID, "the program has a training step already");
    }
    rondo__program_set_training(step->program);
    RETURN_IF_ERROR(rondo__step_choose(step));
    RETURN_IF_ERROR(rondo__step_split(step));
    append_step(step);
    RETURN_IF_ERROR(step->g.status);
    RETURN_IF_ERROR(rondo__step_name_parts(step));
    return rondo__program_verify(step->program);
}

rondo_status rondo_builder_minimize(rondo_builder *builder, const char *loss,
                                    const rondo_minimize_options *options) {
    rondo_minimize_options merged = {.struct_size = sizeof merged};
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    RETURN_IF_ERROR(
        rondo__read_options(options, &merged, sizeof merged, __func__, "rondo_minimize_options"));
    fill_defaults(&merged, options != NULL);
    if (loss == NULL) {
        return RONDO_FAIL(INVALID, "loss is NULL");
    }
    if (builder->parent != NULL) {
        return RONDO_FAIL(INVALID, "a step is added to the program, not to a body");
    }
    RETURN_IF_ERROR(check_options(&merged));
    rondo_program *before = builder->program;
    rondo_program *copy = NULL;
    RETURN_IF_ERROR(rondo__program_clone_whole(before, &copy));
    const rondo__gradient_request none = {.y = RONDO__VALUE_NONE};
    rondo__step step = {.g = {.program = copy, .request = &none},
                        .program = copy,
                        .options = merged,
                        .rate_given = RONDO__VALUE_NONE,
                        .scale = RONDO__VALUE_NONE,
                        .is_full = RONDO__VALUE_NONE,
                        .is_good = RONDO__VALUE_NONE,
                        .bad_ranks = RONDO__VALUE_NONE,
                        .applies = RONDO__VALUE_NONE,
                        .size = RONDO__VALUE_NONE,
                        .root = RONDO__VALUE_NONE,
                        .rest = RONDO__VALUE_NONE,
                        .rows_size = RONDO__VALUE_NONE};
    builder->program = copy;
    const rondo_status status = minimize(builder, loss, &step);
    rondo__gradient_deinit(&step.g);
    rondo__free(step.trained);
    builder->program = status == RONDO_STATUS_OK ? copy : before;
    rondo_program_destroy(status == RONDO_STATUS_OK ? before : copy);
    return status;
}
