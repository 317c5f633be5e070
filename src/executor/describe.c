// executor/describe.c — a plan as text, JSON or DOT.
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "executor/plan.h"

static void append_shape(rondo__text *text, const rondo__slot *slot) {
    char shape[96];
    if (slot->kind == RONDO__SLOT_DYNAMIC) {
        rondo__text_append(text, "%s [depends on data]", rondo_dtype_get_name(slot->dtype));
        return;
    }
    rondo__text_append(text, "%s %s", rondo_dtype_get_name(slot->dtype),
                       rondo_shape_format(&slot->shape, shape, sizeof shape));
}

static const char *get_implementation(const rondo__plan *plan, const rondo__step *step,
                                      size_t item) {
    return step->kind == RONDO__STEP_SEGMENT ? plan->items[item].kernel->implementation : "host";
}

static size_t count_step_nodes(const rondo__step *step) {
    return step->kind == RONDO__STEP_SEGMENT ? step->item_count : 1;
}

static size_t get_step_node(const rondo__plan *plan, const rondo__step *step, size_t index) {
    return step->kind == RONDO__STEP_SEGMENT ? plan->items[step->first_item + index].node
                                             : step->node;
}

// ---- text -------------------------------------------------------------------------------------

// A name as a column: escaped, and at least `width` wide.
static void append_column(rondo__text *text, const char *name, int width) {
    size_t start = text->length;
    rondo__text_append_escaped(text, name);
    int used = text->length - start < (size_t)width ? (int)(text->length - start) : width;
    rondo__text_append(text, "%*s", width - used, "");
}

static void append_ports(rondo__text *text, const rondo__plan *plan, const char *title,
                         const int32_t *values, size_t count) {
    rondo__text_append(text, "%s\n", title);
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append_bytes(text, "  ", 2);
        append_column(text, plan->program->values[values[i]].name, 24);
        rondo__text_append_bytes(text, " ", 1);
        append_shape(text, &plan->slots[values[i]]);
        rondo__text_append(text, "\n");
    }
}

static void append_text(rondo__text *text, const rondo_executor *executor,
                        const rondo__plan *plan) {
    const rondo_program *program = plan->program;
    append_ports(text, plan, "inputs", program->inputs, program->input_count);
    append_ports(text, plan, "outputs", program->outputs, program->output_count);
    rondo__text_append(text, "device %s, %zu ops in %zu segments, %zu bypassed\n",
                       rondo_device_get_name(executor->device),
                       plan->item_count + plan->bypassed_count,
                       plan->step_count - plan->bypassed_count, plan->bypassed_count);
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        if (step->kind == RONDO__STEP_SEGMENT) {
            rondo__text_append(text, "segment %zu: %zu ops, %s", s, step->item_count,
                               step->is_capturable ? "captured" : "not captured");
            rondo__text_append(text, "%s",
                               step->reason[0] != '\0' ? "; ends at " : "; ends with the model");
        } else {
            rondo__text_append(text, "bypass %zu: ", s);
        }
        rondo__text_append_escaped(text, step->reason);
        rondo__text_append_bytes(text, "\n", 1);
        for (size_t i = 0; i < count_step_nodes(step); ++i) {
            const rondo__node *node = &program->nodes[get_step_node(plan, step, i)];
            bool is_internal = node->op.def->domain[0] != '\0';
            rondo__text_append(text, "  %s%s%-*s %-10s ", node->op.def->domain,
                               is_internal ? "." : "", is_internal ? 14 : 20, node->op.def->name,
                               get_implementation(plan, step, step->first_item + i));
            append_column(text, node->op.name, 32);
            for (size_t k = 0; k < node->output_count; ++k) {
                if (node->outputs[k] >= 0) {
                    rondo__text_append_bytes(text, " ", 1);
                    append_shape(text, &plan->slots[node->outputs[k]]);
                }
            }
            rondo__text_append(text, "\n");
        }
    }
    rondo__text_append(
        text, "memory: arena %zu bytes (%zu without sharing), constants on the device %zu bytes\n",
        plan->arena_bytes, plan->arena_naive_bytes, plan->constant_bytes);
}

// ---- JSON -------------------------------------------------------------------------------------

static void append_json_slot(rondo__text *text, const rondo__slot *slot) {
    rondo__text_append(text, "\"dtype\": \"%s\", \"shape\": ", rondo_dtype_get_name(slot->dtype));
    if (slot->kind == RONDO__SLOT_DYNAMIC) {
        rondo__text_append(text, "null");
        return;
    }
    rondo__text_append(text, "[");
    for (int32_t d = 0; d < slot->shape.rank; ++d) {
        rondo__text_append(text, "%s%lld", d > 0 ? ", " : "", (long long)slot->shape.extent[d]);
    }
    rondo__text_append(text, "]");
}

static void append_json_ports(rondo__text *text, const rondo__plan *plan, const char *key,
                              const int32_t *values, size_t count) {
    rondo__text_append(text, "  \"%s\": [", key);
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append(text, "%s{\"name\": ", i > 0 ? ", " : "");
        rondo__text_append_json(text, plan->program->values[values[i]].name);
        rondo__text_append(text, ", ");
        append_json_slot(text, &plan->slots[values[i]]);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "],\n");
}

static const char *name_slot_kind(rondo__slot_kind kind) {
    static const char *const names[] = {"none", "constant", "arena", "dynamic"};
    return names[kind];
}

static void append_json_node(rondo__text *text, const rondo__plan *plan, const rondo__step *step,
                             size_t index) {
    const rondo__node *node = &plan->program->nodes[get_step_node(plan, step, index)];
    rondo__text_append(text, "%s\n      {\"op\": \"%s%s%s\", \"name\": ", index > 0 ? "," : "",
                       node->op.def->domain, node->op.def->domain[0] != '\0' ? "." : "",
                       node->op.def->name);
    rondo__text_append_json(text, node->op.name);
    rondo__text_append(text, ", \"implementation\": \"%s\", \"inputs\": [",
                       get_implementation(plan, step, step->first_item + index));
    for (size_t k = 0; k < node->input_count; ++k) {
        rondo__text_append(text, "%s", k > 0 ? ", " : "");
        if (node->inputs[k] >= 0) {
            rondo__text_append_json(text, plan->program->values[node->inputs[k]].name);
        } else {
            rondo__text_append(text, "null");
        }
    }
    rondo__text_append(text, "], \"outputs\": [");
    for (size_t k = 0; k < node->output_count; ++k) {
        rondo__text_append(text, "%s", k > 0 ? ", " : "");
        if (node->outputs[k] < 0) {
            rondo__text_append(text, "null");
            continue;
        }
        const rondo__slot *slot = &plan->slots[node->outputs[k]];
        rondo__text_append(text, "{\"name\": ");
        rondo__text_append_json(text, plan->program->values[node->outputs[k]].name);
        rondo__text_append(text, ", ");
        append_json_slot(text, slot);
        rondo__text_append(text, ", \"place\": \"%s\", \"offset\": %zu, \"bytes\": %zu}",
                           name_slot_kind(slot->kind), slot->offset, slot->bytes);
    }
    rondo__text_append(text, "]}");
}

static void append_json(rondo__text *text, const rondo_executor *executor,
                        const rondo__plan *plan) {
    rondo__text_append(text, "{\n  \"device\": \"%s\",\n", rondo_device_get_name(executor->device));
    append_json_ports(text, plan, "inputs", plan->program->inputs, plan->program->input_count);
    append_json_ports(text, plan, "outputs", plan->program->outputs, plan->program->output_count);
    rondo__text_append(
        text,
        "  \"arena_bytes\": %zu,\n  \"arena_naive_bytes\": %zu,\n  \"constant_bytes\": %zu,\n"
        "  \"segment_count\": %zu,\n  \"bypassed_count\": %zu,\n  \"steps\": [",
        plan->arena_bytes, plan->arena_naive_bytes, plan->constant_bytes,
        plan->step_count - plan->bypassed_count, plan->bypassed_count);
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo__text_append(
            text, "%s\n    {\"kind\": \"%s\", \"is_captured\": %s, \"reason\": ", s > 0 ? "," : "",
            step->kind == RONDO__STEP_SEGMENT ? "segment" : "bypass",
            step->kind == RONDO__STEP_SEGMENT && step->is_capturable ? "true" : "false");
        rondo__text_append_json(text, step->reason);
        rondo__text_append(text, ", \"ops\": [");
        for (size_t i = 0; i < count_step_nodes(step); ++i) {
            append_json_node(text, plan, step, i);
        }
        rondo__text_append(text, "]}");
    }
    rondo__text_append(text, "\n  ]\n}\n");
}

// ---- DOT --------------------------------------------------------------------------------------

static void append_dot(rondo__text *text, const rondo_executor *executor, const rondo__plan *plan) {
    const rondo_program *program = plan->program;
    rondo__text_append(
        text, "digraph plan {\n  label=\"%s\";\n  node [shape=box, fontname=\"sans-serif\"];\n",
        rondo_device_get_name(executor->device));
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo__text_append(text, "  subgraph cluster_%zu {\n    label=", s);
        rondo__text_append_json(text, step->kind == RONDO__STEP_SEGMENT ? "segment" : step->reason);
        rondo__text_append(
            text, ";\n    style=%s;\n",
            step->kind == RONDO__STEP_SEGMENT && step->is_capturable ? "solid" : "dashed");
        for (size_t i = 0; i < count_step_nodes(step); ++i) {
            size_t n = get_step_node(plan, step, i);
            rondo__text_append(text, "    n%zu [label=\"%s\", tooltip=", n,
                               program->nodes[n].op.def->name);
            rondo__text_append_json(text, program->nodes[n].op.name);
            rondo__text_append(text, "];\n");
        }
        rondo__text_append(text, "  }\n");
    }
    for (size_t n = 0; n < program->node_count; ++n) {
        const rondo__node *node = &program->nodes[n];
        for (size_t i = 0; i < node->input_count; ++i) {
            int32_t value = node->inputs[i];
            if (value < 0 || program->values[value].producer < 0) {
                continue;
            }
            char shape[96];
            const rondo__slot *slot = &plan->slots[value];
            rondo__text_append(text, "  n%zu -> n%zu [label=\"%s\"];\n",
                               (size_t)program->values[value].producer, n,
                               slot->kind == RONDO__SLOT_DYNAMIC
                                   ? "?"
                                   : rondo_shape_format(&slot->shape, shape, sizeof shape));
        }
    }
    rondo__text_append(text, "}\n");
}

// Feeds of the declared shapes; extents that nothing fixes count as 1.
static rondo_status declare_feeds(const rondo_executor *executor, rondo_tensor *feeds) {
    const rondo_program *program = executor->source;
    for (size_t i = 0; i < program->input_count; ++i) {
        const rondo__value *value = &program->values[program->inputs[i]];
        if (value->dtype == RONDO_DTYPE_NONE) {
            return RONDO_FAIL(UNSUPPORTED, "input \"%s\" declares no element type", value->name);
        }
        rondo_shape shape = {.rank = value->has_shape ? value->rank : 0};
        for (int32_t d = 0; d < shape.rank; ++d) {
            int64_t extent = value->dims[d].number;
            if (extent < 0 && value->dims[d].symbol >= 0) {
                extent = program->symbols[value->dims[d].symbol].extent;
            }
            shape.extent[d] = extent >= 0 ? extent : 1;
        }
        RETURN_IF_ERROR(rondo_tensor_init(value->dtype, &shape, &feeds[i]));
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_executor_describe(rondo_executor *executor, rondo_describe_format format,
                                     rondo_write_function write, void *user_data) {
    if (executor == NULL || write == NULL) {
        return RONDO_FAIL(INVALID, "%s is NULL", executor == NULL ? "executor" : "write");
    }
    if ((int)format < RONDO_DESCRIBE_TEXT || format > RONDO_DESCRIBE_DOT) {
        return RONDO_FAIL(INVALID, "format %d is not a rondo_describe_format", (int)format);
    }
    rondo__text text = {0};
    rondo__plan *plan;
    rondo_tensor *feeds = rondo__calloc(executor->source->input_count + 1, sizeof *feeds);
    if (feeds == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = declare_feeds(executor, feeds);
    if (status == RONDO_STATUS_OK) {
        status = rondo__executor_find_plan(executor, feeds, &plan);
    }
    if (status == RONDO_STATUS_OK) {
        static void (*const writers[])(rondo__text *, const rondo_executor *,
                                       const rondo__plan *) = {append_text, append_json,
                                                               append_dot};
        writers[format](&text, executor, plan);
        status = rondo__text_get_status(&text);
    }
    if (status == RONDO_STATUS_OK) {
        (void)write(user_data, text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    for (size_t i = 0; i < executor->source->input_count; ++i) {
        rondo_tensor_deinit(&feeds[i]);
    }
    rondo__free(feeds);
    return status;
}
