// program/training/all_reduce.c — what a step does together with other ranks: gradients are
// averaged, in buckets. Where ranks share the updates, each gets its part of an average (parts.c).
//
// A bucket is one node, made of gradients in the order in which they are there, so that the first
// is on its way while the others are computed. All ranks must have the same buckets in the same
// order: they depend on the program alone.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/builder/builder_parts.h"
#include "program/edit.h"
#include "program/training/step_parts.h"

enum { TENSORS_MAX = RONDO__BUCKET_TENSORS, LEAST_BUCKET_BYTES = 25 << 20 };

// Appends rondo.AllReduce. Outputs have the types and shapes of inputs.
//
// step       options that all ranks must have alike, a line for each; "": none.
// list      NULL, or an attribute of that name, a number for each input.
static rondo_status append_node(rondo_program *program, bool is_average, const char *step,
                                const int32_t *inputs, const int32_t *outputs, size_t count,
                                const char *list_name, const int64_t *list) {
    rondo__op op = {.def = rondo__op_get_def(RONDO__FUSED_AllReduce), .opset = 1};
    op.name = rondo__strformat("AllReduce_%zu", program->node_count);
    rondo_status status = op.name != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_set_int(&op, "average", is_average ? 1 : 0);
    }
    if (status == RONDO_STATUS_OK && step[0] != '\0') {
        status = rondo__op_set_string(&op, "step", step);
    }
    if (status == RONDO_STATUS_OK && list != NULL) {
        status = rondo__op_set_ints(&op, list_name, list, count);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_node(program, &op, inputs, count, count, outputs, count);
    }
    rondo__op_deinit(&op);
    return status;
}

// ---- a step -------------------------------------------------------------------------------------

// What the step does with the averages; all ranks must do the same.
static char *list_options(const rondo_minimize_options *o) {
    static const char *const optimizers[] = {"sgd", "adam", "adamw", "adagrad"};
    static const char *const schedules[] = {"constant", "step", "cosine", "linear"};
    return rondo__strformat(
        "optimizer %s\nlearning rate %.9g\nmomentum %.9g\ndampening %.9g\nnesterov %d\n"
        "betas %.9g %.9g\nepsilon %.9g\nweight decay %.9g\n"
        "schedule %s %lld %.9g %.9g\nwarm-up %lld %.9g\nclip %.9g %.9g\n"
        "scale %d %.9g %.9g %.9g %.9g %lld %lld\naccumulate %lld\nshared updates %d\n",
        optimizers[o->optimizer], o->rate != NULL ? 0.0 : o->learning_rate, o->momentum,
        o->dampening, (int)o->nesterov, o->beta1, o->beta2, o->epsilon, o->weight_decay,
        schedules[o->schedule], (long long)o->schedule_steps, o->schedule_factor, o->schedule_least,
        (long long)o->warmup_steps, o->warmup_start, o->clip_value, o->clip_norm,
        (int)o->scale_loss, o->scale_start, o->scale_growth, o->scale_backoff, o->scale_least,
        (long long)o->scale_interval, (long long)o->scale_patience, (long long)o->accumulate,
        (int)o->shard_updates);
}

static int32_t add_like(rondo__step *step, int32_t value, rondo_dtype dtype) {
    rondo__gradient *g = &step->g;
    rondo_shape shape = {0};
    int32_t made = RONDO__VALUE_NONE;
    (void)rondo__value_get_shape(&step->program->values[value], &shape);
    char *name = rondo__strformat("d.%zu", step->program->value_count);
    g->status = name == NULL ? RONDO_STATUS_NO_MEMORY
                             : rondo__program_add_shaped(step->program, name, dtype, &shape, &made);
    rondo__free(name);
    return made;
}

// Counts the ranks whose gradients are not finite, so that all leave such a step out: an average of
// finite numbers is finite. Each looks at its own while buckets are under way. The last bucket
// comes behind the count, so that what is made of the others need not wait for it: where a table is
// both looked up and a factor, as in GPT-2, its bucket is the last and the largest.
static void count_bad_ranks(rondo__step *step) {
    rondo__gradient *g = &step->g;
    const int32_t good = rondo__step_find_good(step);
    const int32_t bad = rondo__gradient_cast(g, RONDO__EMIT(g, "Not", good), RONDO_DTYPE_F32);
    rondo__gradient_settle(g);
    int32_t sum = RONDO__VALUE_NONE;
    if (g->status == RONDO_STATUS_OK) {
        sum = add_like(step, bad, RONDO_DTYPE_F32);
    }
    if (g->status == RONDO_STATUS_OK) {
        g->status = append_node(step->program, false, "", &bad, &sum, 1, "", NULL);
    }
    step->bad_ranks = sum;
}

// `behind`: a scalar that the bucket takes along, so that it comes behind what makes that; NONE.
static void average_bucket(rondo__step *step, const char *options, const rondo__bucketed *list,
                           size_t count, int32_t behind) {
    rondo__gradient *g = &step->g;
    int32_t inputs[TENSORS_MAX + 1];
    int32_t outputs[TENSORS_MAX + 1];
    int64_t parts[TENSORS_MAX + 1] = {0};
    bool has_parts = false;
    for (size_t i = 0; i < count && g->status == RONDO_STATUS_OK; ++i) {
        const rondo__trained *t = &step->trained[list[i].index];
        parts[i] = t->is_split;
        has_parts = has_parts || t->is_split;
        inputs[i] = t->change;
        outputs[i] = add_like(step, t->weight, list[i].dtype);
    }
    const size_t all = behind >= 0 ? count + 1 : count;
    if (behind >= 0 && g->status == RONDO_STATUS_OK) {
        inputs[count] = behind;
        outputs[count] = add_like(step, behind, RONDO_DTYPE_F32);
    }
    if (g->status == RONDO_STATUS_OK) {
        g->status = append_node(step->program, true, options, inputs, outputs, all, "parts",
                                has_parts ? parts : NULL);
    }
    if (g->status == RONDO_STATUS_OK && has_parts && step->options.clip_norm > 0.0) {
        // The norm is of all elements: those of others count 0 here.
        rondo__op *op = &step->program->nodes[step->program->node_count - 1].op;
        g->status = rondo__op_set_int(op, "zeros", 1);
    }
    for (size_t i = 0; i < count && g->status == RONDO_STATUS_OK; ++i) {
        step->trained[list[i].index].change = outputs[i];
    }
}

// Large buckets slow the way back less, but it has to go on beside them. Where a rank gets its part
// alone, fewer bytes go round.
static size_t choose_bucket_bytes(const rondo__step *step, const rondo__bucketed *list) {
    size_t all = 0;
    for (size_t i = 0; i < step->count; ++i) {
        all += list[i].bytes;
    }
    const size_t share = all / 5 * (step->options.shard_updates ? 1 : 2);
    return step->options.bucket_bytes > 0 ? step->options.bucket_bytes
           : share > LEAST_BUCKET_BYTES   ? share
                                          : LEAST_BUCKET_BYTES;
}

static void average_all(rondo__step *step, const char *options, const rondo__bucketed *list) {
    const size_t most = choose_bucket_bytes(step, list);
    for (size_t first = 0; first < step->count;) {
        const size_t end = rondo__bucket_find_end(list, step->count, first, TENSORS_MAX - 1, most);
        const bool is_last = end == step->count && first > 0;
        average_bucket(step, first == 0 ? options : "", list + first, end - first,
                       is_last ? step->bad_ranks : RONDO__VALUE_NONE);
        first = end;
    }
}

void rondo__step_average(rondo__step *step) {
    rondo__gradient *g = &step->g;
    if (!step->options.average_ranks || g->status != RONDO_STATUS_OK) {
        return;
    }
    rondo__gradient_settle(g);
    rondo__bucketed *list = rondo__calloc(step->count + 1, sizeof *list);
    char *options = list_options(&step->options);
    if (list == NULL || options == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        rondo__free(list);
        rondo__free(options);
        return;
    }
    for (size_t i = 0; i < step->count; ++i) {
        const rondo__trained *t = &step->trained[i];
        const rondo__value *weight = &step->program->values[t->weight];
        rondo_shape shape = {0};
        (void)rondo__value_get_shape(weight, &shape);
        list[i] = (rondo__bucketed){
            .at = (size_t)step->program->values[t->change].producer,
            .index = i,
            .bytes = (size_t)rondo_shape_get_count(&shape) * rondo_dtype_get_bytes(weight->dtype),
            .dtype = weight->dtype};
    }
    rondo__buckets_sort(list, step->count);
    if (step->scale >= 0) {
        count_bad_ranks(step);
    }
    average_all(step, options, list);
    rondo__free(list);
    rondo__free(options);
    rondo__gradient_settle(g);
}

void rondo__step_sum_scalars(rondo__step *step, int32_t *scalars, const int64_t *elements,
                             size_t count) {
    rondo__gradient *g = &step->g;
    rondo__gradient_settle(g);
    for (size_t first = 0; first < count; first += TENSORS_MAX) {
        const size_t some = count - first < TENSORS_MAX ? count - first : TENSORS_MAX;
        int32_t sums[TENSORS_MAX];
        for (size_t i = 0; i < some && g->status == RONDO_STATUS_OK; ++i) {
            sums[i] = add_like(step, scalars[first + i], RONDO_DTYPE_F32);
        }
        if (g->status == RONDO_STATUS_OK) {
            g->status = append_node(step->program, false, "", scalars + first, sums, some,
                                    "elements", elements + first);
        }
        if (g->status == RONDO_STATUS_OK) {
            memcpy(scalars + first, sums, some * sizeof *sums);
        }
    }
    rondo__gradient_settle(g);
}

// ---- in any program -----------------------------------------------------------------------------

static rondo_status add_outputs(rondo_builder *builder, const char *const *names,
                                const int32_t *inputs, size_t count, int32_t *out_values) {
    rondo_program *program = builder->program;
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(
            rondo__builder_check_name(builder, names[i], "rondo_builder_add_all_reduce"));
        RETURN_IF_ERROR(rondo__program_add_value(program, names[i], &out_values[i]));
        const rondo__value *input = &program->values[inputs[i]];
        rondo_shape shape;
        if (rondo__value_get_shape(input, &shape)) {
            rondo__value_set_shape(&program->values[out_values[i]], input->dtype, &shape);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_builder_add_all_reduce(rondo_builder *builder, rondo_reduction reduction,
                                          const char *const *inputs, const char *const *outputs,
                                          size_t count) {
    int32_t values[TENSORS_MAX];
    int32_t made[TENSORS_MAX];
    RETURN_IF_ERROR(rondo__builder_check(builder, __func__));
    if (inputs == NULL || outputs == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", inputs == NULL ? "inputs" : "outputs");
    }
    if (count < 1 || count > TENSORS_MAX) {
        return RONDO_FAIL(INVALID, "%zu tensors; it takes 1 to %d", count, TENSORS_MAX);
    }
    if (reduction != RONDO_REDUCTION_SUM && reduction != RONDO_REDUCTION_AVERAGE) {
        return RONDO_FAIL(INVALID, "%d is not a rondo_reduction", (int)reduction);
    }
    if (builder->parent != NULL) {
        return RONDO_FAIL(INVALID,
                          "ranks meet in the program, not in a body, to which not all may "
                          "come");
    }
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(rondo__builder_find(builder, inputs[i], __func__, &values[i]));
    }
    const rondo__builder_mark mark = rondo__builder_get_mark(builder);
    rondo_status status = add_outputs(builder, outputs, values, count, made);
    if (status == RONDO_STATUS_OK) {
        status = append_node(builder->program, reduction == RONDO_REDUCTION_AVERAGE, "", values,
                             made, count, "", NULL);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__builder_take_back(builder, &mark);
    } else {
        rondo__builder_place_node(builder);
    }
    return status;
}
