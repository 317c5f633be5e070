// program/training/parts.c — each rank updates its part of the variables (known as weight-update
// sharding, or ZeRO stage 1). See step_parts.h.
//
//   gradients ── AllReduce: each rank gets its part ──> Update of that part
//   weights   ── AllGather ──> what the model reads, at the beginning of the next step
//
// The program is the same for all ranks and any number of them: shapes stay whole, and a kernel
// knows which elements are its rank's (op/rank_part.h). What an op by element makes of the
// others is not looked at. Between steps the truth of such a variable lies in parts, each at its
// rank.
//
// Small parameters, those of bodies, and those that are outputs themselves, stay whole at all
// ranks.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/edit.h"
#include "program/training/step_parts.h"

enum { LEAST_ELEMENTS = 4096, GATHER_BYTES = 50 << 20 };

static bool is_in_body(const rondo__node *node, int32_t value) {
    bool is = false;
    for (size_t a = 0; a < node->op.attribute_count && !is; ++a) {
        const rondo_program *body = node->op.attributes[a].body;
        if (node->op.attributes[a].kind != RONDO__ATTRIBUTE_BODY || body == NULL) {
            continue;
        }
        for (size_t v = 0; v < body->value_count && !is; ++v) {
            is = body->values[v].origin == value;
        }
    }
    return is;
}

// Whether ranks may have parts of a parameter, and who reads it first.
static bool may_split(const rondo__step *step, const rondo__trained *t, rondo__bucketed *out_read) {
    const rondo_program *program = step->program;
    const rondo__value *weight = &program->values[t->weight];
    rondo_shape shape;
    bool may =
        rondo__value_get_shape(weight, &shape) && rondo_shape_get_count(&shape) >= LEAST_ELEMENTS;
    out_read->at = SIZE_MAX;
    for (size_t n = 0; n < program->node_count && may; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            if (node->inputs[i] == t->weight && n < out_read->at) {
                out_read->at = n;
            }
        }
        may = !is_in_body(node, t->weight);
    }
    for (size_t i = 0; i < program->output_count && may; ++i) {
        may = program->outputs[i] != t->weight;
    }
    out_read->dtype = weight->dtype;
    out_read->bytes =
        may ? (size_t)rondo_shape_get_count(&shape) * rondo_dtype_get_bytes(weight->dtype) : 0;
    return may && out_read->at != SIZE_MAX;
}

static void replace_inputs(rondo_program *program, size_t node_count, int32_t from, int32_t to) {
    for (size_t n = 0; n < node_count; ++n) {
        for (size_t i = 0; i < program->nodes[n].input_count; ++i) {
            int32_t *input = &program->nodes[n].inputs[i];
            *input = *input == from ? to : *input;
        }
    }
}

static rondo_status gather_bucket(rondo__step *step, size_t node_count, const rondo__bucketed *list,
                                  size_t count) {
    rondo_program *program = step->program;
    int32_t inputs[RONDO__BUCKET_TENSORS];
    int32_t outputs[RONDO__BUCKET_TENSORS];
    for (size_t i = 0; i < count; ++i) {
        rondo__trained *t = &step->trained[list[i].index];
        const rondo_dtype dtype = program->values[t->weight].dtype;
        rondo_shape shape = {0};
        (void)rondo__value_get_shape(&program->values[t->weight], &shape);
        char *name = rondo__strformat("%s.whole", program->values[t->weight].name);
        if (name == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        rondo_status status =
            rondo__program_find_value(program, name) >= 0
                ? RONDO_FAIL_AS("rondo_builder_minimize", INVALID,
                                "the program has a value \"%.80s\" already; a step needs the name",
                                name)
                : rondo__program_add_shaped(program, name, dtype, &shape, &outputs[i]);
        rondo__free(name);
        RETURN_IF_ERROR(status);
        inputs[i] = t->weight;
        replace_inputs(program, node_count, t->weight, outputs[i]);
        t->is_split = true;
        t->read = t->used == t->weight ? outputs[i] : t->read;
    }
    return rondo__program_add_simple(program, "rondo", "AllGather", NULL, inputs, count, outputs,
                                     count);
}

// In the order in which the model reads them. A bucket is read when all of it is there, so the
// first takes little along behind a large table.
static rondo_status gather_all(rondo__step *step, const rondo__bucketed *list, size_t count) {
    const size_t node_count = step->program->node_count;
    for (size_t first = 0; first < count;) {
        const size_t least = list[first].bytes / 8 * 9;
        const size_t most = least > GATHER_BYTES ? least : GATHER_BYTES;
        const size_t end = rondo__bucket_find_end(list, count, first, RONDO__BUCKET_TENSORS, most);
        RETURN_IF_ERROR(gather_bucket(step, node_count, list + first, end - first));
        first = end;
    }
    // Nodes of the gradient come behind what they are made of.
    return count > 0 ? rondo__program_verify(step->program) : RONDO_STATUS_OK;
}

rondo_status rondo__step_split(rondo__step *step) {
    size_t count = 0;
    for (size_t i = 0; i < step->count; ++i) {
        step->trained[i].read = step->trained[i].used;
    }
    if (!step->options.shard_updates) {
        return RONDO_STATUS_OK;
    }
    rondo__bucketed *list = rondo__calloc(step->count + 1, sizeof *list);
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < step->count; ++i) {
        list[count].index = i;
        count += may_split(step, &step->trained[i], &list[count]) ? 1 : 0;
    }
    rondo__buckets_sort(list, count);
    const rondo_status status = gather_all(step, list, count);
    rondo__free(list);
    return status;
}

// ---- names --------------------------------------------------------------------------------------

// The weight, and what the optimiser keeps of it: NAME.mean, say.
static bool belongs_to(const rondo_program *program, const rondo__trained *t, int32_t value) {
    static const char *const endings[] = {".momentum", ".mean", ".square"};
    const char *owner = program->values[t->used].name;
    const char *name = program->values[value].name;
    const size_t length = strlen(owner);
    bool does = value == t->weight;
    for (size_t i = 0; i < sizeof endings / sizeof *endings && !does; ++i) {
        does = strncmp(name, owner, length) == 0 && strcmp(name + length, endings[i]) == 0;
    }
    return does;
}

static bool is_part(const rondo__step *step, int32_t value) {
    bool is = false;
    for (size_t i = 0; i < step->count && !is; ++i) {
        is = step->trained[i].is_split && belongs_to(step->program, &step->trained[i], value);
    }
    return is;
}

// Whether each rank adds up its own gradients there, until a step is full.
static bool is_sum(const rondo__step *step, int32_t value) {
    bool is = false;
    for (size_t i = 0; i < step->count && !is; ++i) {
        is = step->is_full >= 0 && step->trained[i].sum == value;
    }
    return is;
}

// Tells in a node of the variables that `is_of` picks; nothing where there is no such node.
static rondo_status name_variables(rondo__step *step, rondo__node *node,
                                   bool (*is_of)(const rondo__step *step, int32_t value)) {
    const rondo_program *program = step->program;
    if (node == NULL) {
        return RONDO_STATUS_OK;
    }
    const char **names = rondo__calloc(program->variable_count + 1, sizeof *names);
    size_t count = 0;
    for (size_t v = 0; v < program->variable_count && names != NULL; ++v) {
        const int32_t value = program->variables[v].value;
        if (is_of(step, value)) {
            names[count++] = program->values[value].name;
        }
    }
    const rondo_status status = names != NULL
                                    ? rondo__op_set_strings(&node->op, "variables", names, count)
                                    : RONDO_STATUS_NO_MEMORY;
    rondo__free(names);
    return status;
}

rondo_status rondo__step_name_parts(rondo__step *step) {
    rondo__node *gather = NULL;
    rondo__node *average = NULL;
    for (size_t n = 0; n < step->program->node_count; ++n) {
        rondo__node *node = &step->program->nodes[n];
        if (gather == NULL && rondo__node_is(node, RONDO__FUSED_AllGather)) {
            gather = node;
        } else if (average == NULL && rondo__node_is(node, RONDO__FUSED_AllReduce) &&
                   rondo__op_find(&node->op, "step") != NULL) {
            average = node;
        }
    }
    RETURN_IF_ERROR(name_variables(step, gather, is_part));
    return name_variables(step, step->is_full >= 0 ? average : NULL, is_sum);
}

// ---- who reads them later -------------------------------------------------------------------

// What all have of a variable, at the beginning of a run; NONE: nobody gathers it.
static int32_t find_gathered(const rondo_program *program, int32_t value) {
    int32_t found = RONDO__VALUE_NONE;
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; rondo__node_is(node, RONDO__FUSED_AllGather) && i < node->input_count;
             ++i) {
            found = node->inputs[i] == value ? node->outputs[i] : found;
        }
    }
    return found;
}

static const rondo__attribute *find_names(const rondo_program *program) {
    const rondo__attribute *names = NULL;
    for (size_t n = 0; n < program->node_count && names == NULL; ++n) {
        const rondo__node *node = &program->nodes[n];
        names = rondo__node_is(node, RONDO__FUSED_AllGather)
                    ? rondo__op_find(&node->op, "variables")
                    : NULL;
    }
    return names;
}

static bool is_listed(const rondo__attribute *names, const char *name) {
    bool is = false;
    for (size_t i = 0; i < names->count && !is; ++i) {
        is = strcmp(names->strings[i], name) == 0;
    }
    return is;
}

rondo_status rondo__step_check_reader(const rondo_program *program, int32_t value,
                                      const char *call) {
    // Most programs have no step, and large ones are built node by node.
    const bool has_step = rondo__program_find_value(program, "train.rate") >= 0;
    const rondo__attribute *names = has_step ? find_names(program) : NULL;
    for (size_t v = 0; names != NULL && v < program->variable_count; ++v) {
        const rondo__variable *variable = &program->variables[v];
        if ((variable->value != value && variable->update != value) ||
            !is_listed(names, program->values[variable->value].name)) {
            continue;
        }
        const int32_t gathered = find_gathered(program, variable->value);
        return RONDO_FAIL_AS(call, UNSUPPORTED,
                             "with options.shard_updates each rank has its part of \"%.60s\" "
                             "alone; what all have of "
                             "it when a run begins is %s%.70s%s",
                             program->values[value].name, gathered >= 0 ? "\"" : "not gathered",
                             gathered >= 0 ? program->values[gathered].name : "",
                             gathered >= 0 ? "\"" : "");
    }
    return RONDO_STATUS_OK;
}
