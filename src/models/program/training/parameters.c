// program/training/parameters.c — the trained parameters, as variables. See step_parts.h.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "op/support.h"
#include "program/edit.h"
#include "program/node_pattern.h"
#include "program/training/step_parts.h"
#include "tensor/elements.h"

// ---- variables ----------------------------------------------------------------------------------

static rondo_status append_variable(rondo_program *program, rondo__variable *variable) {
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(program->variables, program->variable_capacity,
                                         program->variable_count + 1));
    program->variables[program->variable_count++] = *variable;
    *variable = (rondo__variable){0};
    return RONDO_STATUS_OK;
}

int32_t rondo__step_add_state(rondo__step *step, const char *owner, const char *what,
                              rondo_dtype dtype, int32_t like, double start) {
    rondo_shape shape = {0};
    if (step->g.status == RONDO_STATUS_OK && like >= 0 &&
        !rondo__value_get_shape(&step->program->values[like], &shape)) {
        step->g.status = RONDO_FAIL(INTERNAL, "a variable without a shape");
    }
    return rondo__step_add_shaped_state(step, owner, what, dtype, &shape, start);
}

int32_t rondo__step_add_shaped_state(rondo__step *step, const char *owner, const char *what,
                                     rondo_dtype dtype, const rondo_shape *shape, double start) {
    rondo_program *program = step->program;
    rondo__gradient *g = &step->g;
    int32_t value = RONDO__VALUE_NONE;
    if (g->status != RONDO_STATUS_OK) {
        return value;
    }
    char *name = rondo__strformat("%s.%s", owner, what);
    if (name == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return value;
    }
    if (rondo__program_find_value(program, name) >= 0) {
        g->status =
            RONDO_FAIL_AS("rondo_builder_minimize", INVALID,
                          "the program has a value \"%.80s\" already; a step needs the name", name);
    } else {
        g->status = rondo__program_add_shaped(program, name, dtype, shape, &value);
    }
    rondo__free(name);
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__program_add_input(program, value);
    }
    rondo__variable variable = {
        .value = value,
        .update = RONDO__VALUE_NONE,
        .start = {.struct_size = sizeof(rondo_start), .kind = RONDO_START_CONSTANT, .a = start}};
    if (g->status == RONDO_STATUS_OK) {
        g->status = append_variable(program, &variable);
    }
    return g->status == RONDO_STATUS_OK ? value : RONDO__VALUE_NONE;
}

void rondo__step_update(rondo__step *step, int32_t variable, int32_t value) {
    rondo__gradient *g = &step->g;
    int32_t named = RONDO__VALUE_NONE;
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    char *name = rondo__strformat("%s.next", step->program->values[variable].name);
    if (name == NULL) {
        g->status = RONDO_STATUS_NO_MEMORY;
        return;
    }
    // The node that makes it gets the name: a copy behind it would not be made in place.
    g->status = rondo__program_add_value(step->program, name, &named);
    rondo__free(name);
    if (g->status != RONDO_STATUS_OK) {
        return;
    }
    const int32_t maker = step->program->values[value].producer;
    step->program->values[named].dtype = step->program->values[variable].dtype;
    if (maker >= 0) {
        rondo__node *node = &step->program->nodes[maker];
        for (size_t i = 0; i < node->output_count; ++i) {
            node->outputs[i] = node->outputs[i] == value ? named : node->outputs[i];
        }
        step->program->values[named].producer = maker;
        step->program->values[value].producer = -1;
        rondo__program_replace_uses(step->program, value, named);
    }
    g->status = rondo__program_add_output(step->program, named);
    for (size_t i = 0; i < step->program->variable_count; ++i) {
        if (step->program->variables[i].value == variable) {
            step->program->variables[i].update = named;
        }
    }
}

void rondo__step_update_if(rondo__step *step, int32_t condition, int32_t variable, int32_t value) {
    rondo__step_update(
        step, variable,
        condition < 0 ? value : RONDO__EMIT(&step->g, "Where", condition, value, variable));
}

void rondo__step_name(rondo__step *step, int32_t value, const char *name) {
    int32_t named = RONDO__VALUE_NONE;
    rondo__gradient_settle(&step->g);
    if (step->g.status == RONDO_STATUS_OK) {
        step->g.status = rondo__program_add_value(step->program, name, &named);
    }
    if (step->g.status == RONDO_STATUS_OK) {
        const rondo__tensor_info info = *rondo__gradient_info(&step->g, value);
        rondo__value_set_info(&step->program->values[named], info.dtype, &info);
        step->g.status =
            rondo__program_add_simple(step->program, "", "Identity", NULL, &value, 1, &named, 1);
    }
}

// ---- parameters as variables --------------------------------------------------------------------

static rondo_status widen_tensor(const rondo_tensor *half, rondo_tensor *out_wide) {
    RETURN_IF_ERROR(rondo_tensor_init(RONDO_DTYPE_F32, &half->shape, out_wide));
    rondo__convert_elements(half->dtype, half->data, RONDO_DTYPE_F32, out_wide->data,
                            (size_t)rondo_shape_get_count(&half->shape));
    return RONDO_STATUS_OK;
}

// A half parameter is from now on what a node makes of its f32 form.
static rondo_status make_master(rondo_program *program, int32_t value, int32_t *out_master,
                                rondo_tensor *out_first) {
    rondo__value *v = &program->values[value];
    const rondo_dtype dtype = v->constant.dtype;
    const rondo_shape shape = v->constant.shape;
    char *name = rondo__strformat("%s.master", v->name);
    if (name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = widen_tensor(&v->constant, out_first);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_add_shaped(program, name, RONDO_DTYPE_F32, &shape, out_master);
    }
    rondo__free(name);
    RETURN_IF_ERROR(status);
    v = &program->values[value];
    rondo_tensor_deinit(&v->constant);
    v->constant = (rondo_tensor){0};
    rondo__value_set_shape(v, dtype, &shape);
    RETURN_IF_ERROR(rondo__program_add_simple(program, "", "Cast", NULL, out_master, 1, &value, 1));
    const int64_t number = dtype == RONDO_DTYPE_F16 ? 10 : 16;  // of TensorProto
    return rondo__op_set_int(&program->nodes[program->node_count - 1].op, "to", number);
}

// Makes a constant a variable that starts with its value. *out_weight is that of f32 where it is
// half.
static rondo_status make_variable(rondo_program *program, int32_t value, int32_t *out_weight) {
    rondo__value *v = &program->values[value];
    rondo__variable variable = {
        .value = value,
        .update = RONDO__VALUE_NONE,
        .start = {.struct_size = sizeof(rondo_start), .kind = RONDO_START_TENSOR}};
    rondo__program_drop_optional(program, value);
    if (v->constant.dtype == RONDO_DTYPE_F16 || v->constant.dtype == RONDO_DTYPE_BF16) {
        const rondo_status status = make_master(program, value, &variable.value, &variable.first);
        if (status != RONDO_STATUS_OK) {
            rondo_tensor_deinit(&variable.first);
            return status;
        }
    } else {
        const rondo_tensor constant = v->constant;
        v->constant = (rondo_tensor){0};
        variable.first = constant;
        rondo__value_set_shape(v, constant.dtype, &constant.shape);
        v->producer = -1;
    }
    *out_weight = variable.value;
    rondo_status status = rondo__program_add_input(program, variable.value);
    if (status == RONDO_STATUS_OK) {
        status = rondo__program_capture_in_bodies(program, value);
    }
    if (status == RONDO_STATUS_OK) {
        status = append_variable(program, &variable);
    }
    rondo_tensor_deinit(&variable.first);
    return status;
}

// ---- which --------------------------------------------------------------------------------------

// Whether a use of a constant says that it is a setting, not a weight.
static bool is_setting(const rondo__node *node, size_t input) {
    switch (node->op.def->id) {
        case RONDO__OP_BatchNormalization:
            return input >= 3;
        case RONDO__OP_Resize:
        case RONDO__OP_Upsample:
        case RONDO__OP_Dropout:
        case RONDO__OP_Clip:
            return input >= 1;
        case RONDO__OP_Pad:
        case RONDO__OP_SoftmaxCrossEntropyLoss:
        case RONDO__OP_NegativeLogLikelihoodLoss:
            return input >= 2;
        case RONDO__OP_OneHot:
        case RONDO__OP_Range:
            return true;
        default:
            return false;
    }
}

// Whether nothing but its gradient changes a row, and nothing looks at all of them.
static bool may_have_rows(const rondo_minimize_options *options) {
    return options->weight_decay == 0.0 && options->clip_norm == 0.0 &&
           options->clip_value == 0.0 && options->accumulate == 1 && !options->average_ranks;
}

// Finds the Gather that is the only one to read a table, where its rows change alone: because
// options.rows say so, or because a step of plain SGD leaves the others as they are.
static rondo_status find_rows(const rondo__step *step, rondo__trained *trained, bool is_named) {
    const rondo_minimize_options *o = &step->options;
    const bool is_plain = o->optimizer == RONDO_OPTIMIZER_SGD && o->momentum == 0.0;
    const char *reason = NULL;
    const rondo_program *program = step->program;
    size_t uses = 0;
    size_t found = SIZE_MAX;
    trained->rows = RONDO__VALUE_NONE;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] == trained->weight) {
                uses += 1;
                found = n;
            }
        }
    }
    for (size_t i = 0; i < program->output_count; ++i) {
        uses += program->outputs[i] == trained->weight;
    }
    const rondo__node *node = uses == 1 && found != SIZE_MAX ? &program->nodes[found] : NULL;
    if (!may_have_rows(o)) {
        reason = "decay, clipping, accumulation and ranks look at all of it";
    } else if (trained->used != trained->weight) {
        reason = "it is of half precision";
    } else if (node == NULL || !rondo__node_is(node, RONDO__OP_Gather) ||
               node->inputs[0] != trained->weight || rondo__op_get_int(&node->op, "axis", 0) != 0) {
        reason = "it is not read by one Gather of axis 0 alone";
    } else if (is_named || is_plain) {
        trained->rows = node->outputs[0];
        trained->ids = node->inputs[1];
        trained->gather = found;
    }
    return is_named && reason != NULL
               ? RONDO_FAIL_AS("rondo_builder_minimize", UNSUPPORTED,
                               "options.rows: rows of \"%.80s\" cannot change alone, since %s",
                               program->values[trained->weight].name, reason)
               : RONDO_STATUS_OK;
}

typedef struct marks {
    bool *reached;            // the loss depends on it
    bool *is_bad;             // an op reads it as a setting
    const char **out_frozen;  // a constant that a body has for itself, which no step can change
} marks;

static void mark_inputs(const rondo__node *node, const int32_t *numbers, const marks *m) {
    for (size_t i = 0; i < node->input_count; ++i) {
        const int32_t value =
            node->inputs[i] < 0 || numbers == NULL ? node->inputs[i] : numbers[node->inputs[i]];
        if (value >= 0) {
            m->reached[value] = true;
            m->is_bad[value] = m->is_bad[value] || is_setting(node, i);
        }
    }
}

static void look_for_frozen(const rondo_program *body, const rondo__node *node, const marks *m) {
    for (size_t i = 0; i < node->input_count; ++i) {
        const rondo__value *v = node->inputs[i] >= 0 ? &body->values[node->inputs[i]] : NULL;
        if (v != NULL && v->origin < 0 && rondo__dtype_is_float(v->constant.dtype) &&
            rondo_shape_get_count(&v->constant.shape) > 1 && !is_setting(node, i)) {
            *m->out_frozen = v->name;
        }
    }
}

// Marks what bodies of a node use as constants; `numbers` (NULL: the same) has the number in the
// main program for each value around the node. Bodies nest only so deep, so this may recurse.
static rondo_status mark_bodies(const rondo__node *node, const int32_t *numbers, const marks *m) {
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo_program *body = node->op.attributes[a].body;
        if (node->op.attributes[a].kind != RONDO__ATTRIBUTE_BODY || body == NULL) {
            continue;
        }
        int32_t *inner = rondo__calloc(body->value_count + 1, sizeof *inner);
        rondo_status status = inner != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
        for (size_t v = 0; inner != NULL && v < body->value_count; ++v) {
            const int32_t origin = body->values[v].origin;
            inner[v] = origin < 0 || numbers == NULL ? origin : numbers[origin];
        }
        for (size_t n = 0; n < body->node_count && status == RONDO_STATUS_OK; ++n) {
            mark_inputs(&body->nodes[n], inner, m);
            look_for_frozen(body, &body->nodes[n], m);
            status = mark_bodies(&body->nodes[n], inner, m);
        }
        rondo__free(inner);
        RETURN_IF_ERROR(status);
    }
    return RONDO_STATUS_OK;
}

static rondo_status mark(const rondo_program *program, int32_t loss, const marks *m) {
    m->reached[loss] = true;
    for (size_t n = program->node_count; n-- > 0;) {
        const rondo__node *node = &program->nodes[n];
        bool is_needed = false;
        for (size_t i = 0; i < node->output_count; ++i) {
            is_needed = is_needed || (node->outputs[i] >= 0 && m->reached[node->outputs[i]]);
        }
        if (is_needed) {
            mark_inputs(node, NULL, m);
            RETURN_IF_ERROR(mark_bodies(node, NULL, m));
        }
    }
    return RONDO_STATUS_OK;
}

// Whether `use` is `value`, or that in another form.
static bool comes_from(const rondo_program *program, int32_t use, int32_t value) {
    while (use >= 0 && use != value) {
        const int32_t maker = program->values[use].producer;
        const rondo__node *node = maker >= 0 ? &program->nodes[maker] : NULL;
        const bool is_form =
            node != NULL &&
            (rondo__node_is(node, RONDO__OP_Unsqueeze) || rondo__node_is(node, RONDO__OP_Reshape) ||
             rondo__node_is(node, RONDO__OP_Expand) || rondo__node_is(node, RONDO__OP_Slice));
        use = is_form ? node->inputs[0] : -1;
    }
    return use >= 0;
}

// Of one element a constant is trained as the bias of a product, as PRelu's slope, or where it is
// named.
static bool is_bias_or_slope(const rondo_program *program, int32_t value) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        const bool is_product = rondo__node_is(node, RONDO__OP_Gemm) ||
                                rondo__node_is(node, RONDO__OP_Conv) ||
                                rondo__node_is(node, RONDO__OP_ConvTranspose);
        if (is_product && node->input_count > 2 && node->inputs[2] == value) {
            return true;
        }
        if (rondo__node_is(node, RONDO__OP_PRelu) && comes_from(program, node->inputs[1], value)) {
            return true;
        }
        const bool is_sum = rondo__node_is(node, RONDO__OP_Add);
        if (is_sum && (node->inputs[0] == value || node->inputs[1] == value)) {
            const int32_t other = node->inputs[node->inputs[0] == value];
            const int32_t maker = other >= 0 ? program->values[other].producer : -1;
            if (maker >= 0 && rondo__node_is(&program->nodes[maker], RONDO__OP_MatMul)) {
                return true;
            }
        }
    }
    return false;
}

// Exporters write the zeros that a recurrent op starts from as a constant like its weights.
static bool is_first_state(const rondo_program *program, int32_t value) {
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        if (!rondo__node_is(node, RONDO__OP_RNN) && !rondo__node_is(node, RONDO__OP_GRU) &&
            !rondo__node_is(node, RONDO__OP_LSTM)) {
            continue;
        }
        for (size_t i = 5; i < node->input_count && i < 7; ++i) {  // initial_h, initial_c
            if (comes_from(program, node->inputs[i], value)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_named(const rondo_minimize_options *o, const char *name) {
    for (size_t i = 0; i < o->train_count; ++i) {
        if (strcmp(o->train[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_parameter(const rondo__step *step, int32_t v) {
    const rondo__value *value = &step->program->values[v];
    const int64_t count = rondo_shape_get_count(&value->constant.shape);
    const bool looks_trained = count > 1 ? !is_first_state(step->program, v)
                                         : count == 1 && is_bias_or_slope(step->program, v);
    return value->origin < 0 && count > 0 &&
           (looks_trained || is_named(&step->options, value->name));
}

static bool matches(const char *const *patterns, size_t count, const char *name, size_t *used) {
    bool is_match = false;
    for (size_t i = 0; i < count; ++i) {
        if (rondo__pattern_matches(patterns[i], name)) {
            used[i] += 1;
            is_match = true;
        }
    }
    return is_match;
}

static rondo_status check_used(const rondo_minimize_options *o, const size_t *used, size_t count) {
    for (size_t i = 0; i < o->train_count + o->rows_count; ++i) {
        if (used[i] == 0) {
            return RONDO_FAIL_AS("rondo_builder_minimize", INVALID,
                                 "no parameter on which the loss depends matches \"%.80s\"",
                                 i < o->train_count ? o->train[i] : o->rows[i - o->train_count]);
        }
    }
    return count > 0 ? RONDO_STATUS_OK
                     : RONDO_FAIL_AS("rondo_builder_minimize", INVALID,
                                     "the loss depends on no parameter that could be trained");
}

static rondo_status choose(rondo__step *step, bool *reached, bool *is_bad, size_t *used) {
    rondo_program *program = step->program;
    const rondo_minimize_options *o = &step->options;
    const size_t values = program->value_count;
    const char *frozen = NULL;
    const marks m = {reached, is_bad, &frozen};
    RETURN_IF_ERROR(mark(program, step->loss, &m));
    if (frozen != NULL && o->train_count == 0) {
        RONDO_LOG_WARN_F(
            "\"%.80s\" stands in a body of If, Loop or Scan and is not trained: move it "
            "to the model's own parameters",
            frozen);
    }
    for (size_t v = 0; v < values; ++v) {
        const rondo__value *value = &program->values[v];
        const rondo_tensor *constant = &value->constant;
        const rondo__variable *known = rondo__program_find_variable(program, (int32_t)v);
        const bool is_free = known != NULL && known->update == RONDO__VALUE_NONE &&
                             known->start.kind != RONDO_START_NONE;
        const rondo_dtype dtype = known != NULL ? value->dtype : constant->dtype;
        const bool is_fit = known != NULL ? is_free : is_parameter(step, (int32_t)v);
        if (!reached[v] || is_bad[v] || !rondo__dtype_is_float(dtype) || !is_fit ||
            (o->train_count > 0 && !matches(o->train, o->train_count, value->name, used))) {
            continue;
        }
        const bool has_rows = matches(o->rows, o->rows_count, value->name, used + o->train_count);
        rondo__trained *trained = &step->trained[step->count];
        trained->used = (int32_t)v;
        trained->weight = (int32_t)v;
        if (known == NULL) {
            RETURN_IF_ERROR(make_variable(program, (int32_t)v, &trained->weight));
        }
        RETURN_IF_ERROR(find_rows(step, trained, has_rows));
        step->count += 1;
    }
    return check_used(&step->options, used, step->count);
}

rondo_status rondo__step_choose(rondo__step *step) {
    const size_t count = step->program->value_count;
    bool *reached = rondo__calloc(2 * count + 1, sizeof *reached);
    size_t *used =
        rondo__calloc(step->options.train_count + step->options.rows_count + 1, sizeof *used);
    step->trained = rondo__calloc(count + 1, sizeof *step->trained);
    rondo_status status = reached != NULL && used != NULL && step->trained != NULL
                              ? choose(step, reached, reached + count, used)
                              : RONDO_STATUS_NO_MEMORY;
    rondo__free(reached);
    rondo__free(used);
    return status;
}

// ---- statistics ---------------------------------------------------------------------------------

// Norms of older versions say that they train by naming outputs; they become those of version 15.
static rondo_status renew_norm(rondo__node *node) {
    if (node->op.opset >= 14) {
        return RONDO_STATUS_OK;
    }
    rondo__op op = {.def = rondo__op_lookup("", "BatchNormalization", 15), .opset = 15};
    op.name = rondo__strdup(node->op.name);
    if (op.name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status =
        rondo__op_set_float(&op, "epsilon", rondo__op_get_float(&node->op, "epsilon", 1e-5f));
    if (status == RONDO_STATUS_OK) {
        status =
            rondo__op_set_float(&op, "momentum", rondo__op_get_float(&node->op, "momentum", 0.9f));
    }
    if (status == RONDO_STATUS_OK) {
        rondo__op_deinit(&node->op);
        node->op = op;
    } else {
        rondo__op_deinit(&op);
    }
    return status;
}

// Outputs 1 and 2 become what inputs 3 and 4 are after the run.
static void update_statistic(rondo__step *step, size_t n, size_t index) {
    rondo_program *program = step->program;
    rondo__gradient *g = &step->g;
    const int32_t input = program->nodes[n].inputs[2 + index];
    int32_t weight = RONDO__VALUE_NONE;
    int32_t made = RONDO__VALUE_NONE;
    if (g->status != RONDO_STATUS_OK || !rondo__value_is_constant(&program->values[input])) {
        return;
    }
    const rondo_dtype dtype = program->values[input].constant.dtype;
    g->status = make_variable(program, input, &weight);
    if (g->status == RONDO_STATUS_OK) {
        g->status = rondo__program_add_value(program, "statistic", &made);
    }
    rondo__node *node = &program->nodes[n];
    int32_t *outputs = rondo__calloc(3, sizeof *outputs);
    if (g->status != RONDO_STATUS_OK || outputs == NULL) {
        g->status = g->status == RONDO_STATUS_OK ? RONDO_STATUS_NO_MEMORY : g->status;
        rondo__free(outputs);
        return;
    }
    for (size_t i = 0; i < 3; ++i) {
        outputs[i] = i < node->output_count ? node->outputs[i] : RONDO__VALUE_NONE;
    }
    outputs[index] = made;
    rondo__free(node->outputs);
    node->outputs = outputs;
    node->output_count = 3;
    program->values[made].producer = (int32_t)n;
    program->values[made].dtype = dtype;
    if (weight != input) {
        made = rondo__gradient_cast(g, made, RONDO_DTYPE_F32);
    }
    rondo__step_update(step, weight, made);
}

void rondo__step_train_norms(rondo__step *step) {
    rondo_program *program = step->program;
    const size_t count = program->node_count;
    for (size_t n = 0; n < count && step->g.status == RONDO_STATUS_OK; ++n) {
        rondo__node *node = &program->nodes[n];
        if (!rondo__node_is(node, RONDO__OP_BatchNormalization) || node->input_count < 5) {
            continue;
        }
        const rondo__attribute *mode = rondo__op_find(&node->op, "training_mode");
        if (mode == NULL) {
            step->g.status = renew_norm(node);
        }
        program->nodes[n].op.is_training = true;
        if (rondo__op_trains(&program->nodes[n].op)) {
            update_statistic(step, n, 1);
            update_statistic(step, n, 2);
        }
    }
}
