// SPDX-License-Identifier: Apache-2.0
#include "train_program.h"

#include <stdio.h>
#include <string.h>

#include "command.h"
#include "console.h"
#include "tensor_text.h"

// Nodes are added until one cannot be; then `is_bad`, and the reason was printed.
typedef struct maker {
    rondo_builder *builder;
    bool is_bad;
    const char *loss, *hits;  // of this process; those of all ranks have the names of outputs
} maker;

static void note(maker *m, rondo_status status) {
    if (status != RONDO_STATUS_OK && !m->is_bad) {
        m->is_bad = true;
        (void)cli_fail_with_record();
    }
}

static void add(maker *m, const char *op, const char *a, const char *b, const char *out,
                const rondo_attribute *attribute) {
    const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                .attributes = attribute,
                                                .attribute_count = attribute != NULL};
    if (!m->is_bad) {
        note(m, rondo_builder_add_node(m->builder, op, (const char *[]){a, b}, b != NULL ? 2 : 1,
                                       (const char *[]){out}, 1, &options));
    }
}

static rondo_attribute number(const char *name, int64_t value) {
    return (rondo_attribute){.name = name, .kind = RONDO_ATTRIBUTE_INT, .int_value = value};
}

// What is compared where the model ends in `op`: what went into it; otherwise the result.
static const char *look_behind(const rondo_program *model, const char *result, const char *op) {
    for (size_t n = 0; n < rondo_program_get_node_count(model); ++n) {
        rondo_program_node node = {.struct_size = sizeof node};
        if (rondo_program_get_node(model, n, &node) == RONDO_STATUS_OK &&
            strcmp(node.op, op) == 0 && node.domain[0] == '\0' &&
            strcmp(rondo_program_get_node_output(model, n, 0), result) == 0) {
            return rondo_program_get_node_input(model, n, 0);
        }
    }
    return result;
}

static void add_cross_entropy(maker *m, const rondo_program *model, const char *result) {
    const char *logits = look_behind(model, result, "Softmax");
    logits = logits == result ? look_behind(model, result, "LogSoftmax") : logits;
    // Labels of any whole type; I64 is what the loss takes.
    const rondo_attribute to = number("to", 7);
    const rondo_attribute axis = number("axis", 1);
    const rondo_attribute drop = number("keepdims", 0);
    const rondo_attribute class_axes[] = {axis, drop};
    add(m, "Cast", "train.target", NULL, "train.labels", &to);
    add(m, "SoftmaxCrossEntropyLoss", logits, "train.labels", m->loss, NULL);
    const rondo_builder_node_options options = {
        .struct_size = sizeof options, .attributes = class_axes, .attribute_count = 2};
    if (!m->is_bad) {
        note(m, rondo_builder_add_node(m->builder, "ArgMax", &logits, 1,
                                       (const char *[]){"train.best"}, 1, &options));
    }
    const rondo_attribute to_f32 = number("to", 1);
    add(m, "Equal", "train.best", "train.labels", "train.right", NULL);
    add(m, "Cast", "train.right", NULL, "train.right.f32", &to_f32);
    add(m, "ReduceSum", "train.right.f32", NULL, m->hits, &drop);
}

static void add_means(maker *m, const char *value) {
    const rondo_attribute drop = number("keepdims", 0);
    add(m, "ReduceMean", value, NULL, m->loss, &drop);
}

// The target, of the result's type and shape: [n] for a result of [n, 1] would be broadcast.
static void add_wanted(maker *m, const char *result) {
    add(m, "CastLike", "train.target", result, "train.typed", NULL);
    add(m, "Shape", result, NULL, "train.extents", NULL);
    add(m, "Reshape", "train.typed", "train.extents", "train.wanted", NULL);
}

static void add_mean_square(maker *m, const char *result) {
    add_wanted(m, result);
    add(m, "Sub", result, "train.wanted", "train.error", NULL);
    add(m, "Mul", "train.error", "train.error", "train.square", NULL);
    add_means(m, "train.square");
}

// Of logits z: log(1 + e^z) - z * target.
static void add_binary(maker *m, const rondo_program *model, const char *result) {
    const char *logits = look_behind(model, result, "Sigmoid");
    add_wanted(m, logits);
    add(m, "Softplus", logits, NULL, "train.soft", NULL);
    add(m, "Mul", logits, "train.wanted", "train.product", NULL);
    add(m, "Sub", "train.soft", "train.product", "train.each", NULL);
    add_means(m, "train.each");
}

bool cli_train_program_check_target(const cli_train_plan *plan) {
    const rondo_dtype dtype = plan->target->dtype;
    if (plan->loss == CLI_CROSS_ENTROPY && cli_is_real(dtype)) {
        cli_print_error("the target is %s; cross entropy takes labels, which are whole numbers",
                        rondo_dtype_get_name(dtype));
        return false;
    }
    return true;
}

static void add_output(maker *m, const char *name) {
    if (!m->is_bad) {
        note(m, rondo_builder_add_output(m->builder, name, NULL));
    }
}

static void add_scalar_input(maker *m, const char *name) {
    const rondo_port port = {.struct_size = sizeof port, .name = name, .dtype = RONDO_DTYPE_F32};
    if (!m->is_bad) {
        note(m, rondo_builder_add_input(m->builder, &port));
    }
}

static void reduce(maker *m, rondo_reduction reduction, const char *from, const char *to) {
    if (!m->is_bad) {
        note(m, rondo_builder_add_all_reduce(m->builder, reduction, &from, &to, 1));
    }
}

// What this rank's loss counts; "train.own" is what it minimises. A share of 0 is a sample that
// another rank has, too.
static void share_loss(maker *m, bool has_hits) {
    add_scalar_input(m, "train.share");
    add_scalar_input(m, "train.stop");
    add(m, "CastLike", "train.share", m->loss, "train.weight", NULL);
    add(m, "Mul", m->loss, "train.weight", "train.own", NULL);
    reduce(m, RONDO_REDUCTION_AVERAGE, "train.own", "train.loss");
    if (has_hits) {
        add(m, "Sign", "train.share", NULL, "train.counts", NULL);
        add(m, "Mul", m->hits, "train.counts", "train.hits.own", NULL);
        reduce(m, RONDO_REDUCTION_SUM, "train.hits.own", "train.hits");
    }
    reduce(m, RONDO_REDUCTION_SUM, "train.stop", "train.stopped");
}

static bool begin(const rondo_program *model, const cli_train_plan *plan, bool has_ranks,
                  maker *m) {
    rondo_port result = {.struct_size = sizeof result};
    rondo_port target = {.struct_size = sizeof target,
                         .name = "train.target",
                         .dtype = plan->target->dtype,
                         .rank = plan->target->shape.rank};
    *m = (maker){.loss = has_ranks ? "train.loss.part" : "train.loss",
                 .hits = has_ranks ? "train.hits.part" : "train.hits"};
    memcpy(target.extent, plan->target->shape.extent, sizeof target.extent);
    target.extent[0] = -1;
    note(m, rondo_program_get_output(model, 0, &result));
    if (m->is_bad) {
        return false;
    }
    const char *name = plan->result != NULL ? plan->result : result.name;
    note(m, rondo_builder_create_from(model, &m->builder));
    if (!m->is_bad) {
        note(m, rondo_builder_add_input(m->builder, &target));
    }
    if (plan->loss == CLI_CROSS_ENTROPY) {
        add_cross_entropy(m, model, name);
    } else if (plan->loss == CLI_MEAN_SQUARE) {
        add_mean_square(m, name);
    } else {
        add_binary(m, model, name);
    }
    if (has_ranks) {
        share_loss(m, plan->loss == CLI_CROSS_ENTROPY);
    }
    add_output(m, "train.loss");
    if (plan->loss == CLI_CROSS_ENTROPY) {
        add_output(m, "train.hits");
    }
    if (has_ranks) {
        add_output(m, "train.stopped");
    }
    return !m->is_bad;
}

static bool finish(maker *m, rondo_program **out_program) {
    if (!m->is_bad) {
        note(m, rondo_builder_finish(m->builder, out_program));
    }
    rondo_builder_destroy(m->builder);
    return !m->is_bad;
}

bool cli_train_program_measure(const rondo_program *model, const cli_train_plan *plan,
                               rondo_program **out_program) {
    maker m;
    *out_program = NULL;
    (void)begin(model, plan, false, &m);
    return finish(&m, out_program);
}

// A variable that nothing changes.
static void add_variable(maker *m, const char *name, rondo_dtype dtype, const rondo_shape *shape,
                         void *first) {
    rondo_port port = {
        .struct_size = sizeof port, .name = name, .dtype = dtype, .rank = shape->rank};
    const rondo_tensor tensor = {.dtype = dtype, .shape = *shape, .data = first};
    const rondo_start start = {
        .struct_size = sizeof start, .kind = RONDO_START_TENSOR, .tensor = &tensor};
    memcpy(port.extent, shape->extent, sizeof port.extent);
    if (!m->is_bad) {
        note(m, rondo_builder_add_variable(m->builder, &port, &start));
    }
}

static void count_runs(maker *m, char *settings) {
    static const rondo_shape scalar = {0};
    static const rondo_shape text = {.rank = 1, .extent = {CLI_TRAIN_SETTINGS_BYTES}};
    int64_t zero = 0;
    const int64_t one = 1;
    add_variable(m, "train.run", RONDO_DTYPE_I64, &scalar, &zero);
    add_variable(m, "train.settings", RONDO_DTYPE_U8, &text, settings);
    if (!m->is_bad) {
        note(m,
             rondo_builder_add_constant(m->builder, "train.one", RONDO_DTYPE_I64, &scalar, &one));
    }
    add(m, "Add", "train.run", "train.one", "train.run.next", NULL);
    if (!m->is_bad) {
        note(m, rondo_builder_set_update(m->builder, "train.run", "train.run.next"));
    }
}

// Tells which option it was.
static int note_step(maker *m, rondo_status status, const char *option, const char *hint) {
    if (status == RONDO_STATUS_OK || m->is_bad) {
        return CLI_DONE;
    }
    m->is_bad = true;
    const bool is_misuse = status == RONDO_STATUS_INVALID ||
                           strstr(rondo_error_get_last()->message, "options.rows") != NULL;
    (void)cli_fail_about(is_misuse ? option : NULL, hint);
    return is_misuse ? CLI_MISUSE : CLI_FAILED;
}

static int add_step(maker *m, const cli_train_plan *plan) {
    static const char *const adapters[] = {"*.lora_a", "*.lora_b"};
    rondo_minimize_options step = plan->step;
    char option[32];
    if (plan->rank > 0) {
        (void)snprintf(option, sizeof option, "--lora %llu", (unsigned long long)plan->rank);
        const int status =
            note_step(m,
                      rondo_builder_add_adapters(m->builder, step.train, step.train_count,
                                                 (int64_t)plan->rank),
                      option, "; give a smaller rank, or other patterns to --train");
        if (status != CLI_DONE) {
            return status;
        }
        step.train = adapters;
        step.train_count = 2;
    }
    const char *loss = plan->has_ranks ? "train.own" : "train.loss";
    const char *named = plan->step.train_count == 0 ? NULL : "--train";
    named = plan->step.rows_count == 0 ? named : named == NULL ? "--rows" : "--train or --rows";
    return note_step(m, rondo_builder_minimize(m->builder, loss, &step), named, "");
}

int cli_train_program_train(const rondo_program *model, const cli_train_plan *plan,
                            rondo_program **out_program) {
    maker m;
    int status = CLI_DONE;
    *out_program = NULL;
    if (begin(model, plan, plan->has_ranks, &m)) {
        status = add_step(&m, plan);
        add_output(&m, "train.rate");
        count_runs(&m, plan->settings);
    }
    const bool is_done = finish(&m, out_program);
    return status != CLI_DONE ? status : is_done ? CLI_DONE : CLI_FAILED;
}
