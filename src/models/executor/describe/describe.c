// executor/describe/describe.c — a plan as text, JSON or DOT; as a picture: describe_svg.c.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "executor/compile/schedule.h"
#include "executor/describe/describe_half.h"
#include "executor/describe/describe_placement.h"
#include "executor/describe/describe_steps.h"
#include "executor/describe/describe_svg.h"
#include "executor/devices/transfers.h"
#include "executor/foresee.h"
#include "executor/plan_visit.h"
#include "executor/state/governed.h"
#include "rondo/text.h"
#include "tensor/elements.h"

// "f32 [3, 4]"; values whose shape depends on data may have no known type either.
static void append_shape(rondo__text *text, rondo_dtype dtype, const rondo__slot *slot) {
    char shape[96];
    if (rondo__dtype_is_nested(dtype)) {
        rondo__text_append(text, "%s", rondo_dtype_get_name(dtype));
        return;
    }
    if (dtype != RONDO_DTYPE_NONE) {
        rondo__text_append(text, "%s ", rondo_dtype_get_name(dtype));
    }
    rondo__text_append(text, "%s",
                       !slot->is_shape_known
                           ? "[depends on data]"
                           : rondo_shape_format(&slot->shape, shape, sizeof shape));
}

// The type of a node's output: of If, Loop and Scan, whose bodies are planned by themselves, the
// one that a body declares.
static rondo_dtype get_output_dtype(const rondo__plan *plan, const rondo__node *node, size_t k) {
    const rondo_dtype dtype = plan->slots[node->outputs[k]].dtype;
    if (dtype != RONDO_DTYPE_NONE || (node->op.def->flags & RONDO__OP_CONTROL) == 0) {
        return dtype;
    }
    const size_t shift = node->op.def->id == RONDO__OP_Loop ? 1 : 0;  // the condition
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind == RONDO__ATTRIBUTE_BODY && k + shift < attribute->body->output_count) {
            const rondo_program *body = attribute->body;
            const rondo_dtype declared = body->values[body->outputs[k + shift]].dtype;
            if (declared != RONDO_DTYPE_NONE) {
                return declared;
            }
        }
    }
    return dtype;
}

// ---- text -------------------------------------------------------------------------------------

// A name as a column: escaped, and at least `width` wide.
static void append_column(rondo__text *text, const char *name, int width) {
    size_t start = text->length;
    rondo__text_append_escaped(text, name);
    int used = text->length - start < (size_t)width ? (int)(text->length - start) : width;
    rondo__text_append(text, "%*s", width - used, "");
}

// " of f32", " of sequence of f32"; nothing where the model does not say.
static void append_items(rondo__text *text, const rondo__value *declared) {
    for (size_t i = 0; i < 2 && declared->item_dtype[i] != RONDO_DTYPE_NONE; ++i) {
        rondo__text_append(text, " of %s", rondo_dtype_get_name(declared->item_dtype[i]));
    }
}

// The columns of a classifier's scores, the first few by name.
static void append_labels(rondo__text *text, const rondo_tensor *labels) {
    enum { SHOWN_MAX = 8 };
    const int64_t count =
        labels->dtype != RONDO_DTYPE_NONE ? rondo_shape_get_count(&labels->shape) : 0;
    for (int64_t i = 0; i < count && i < SHOWN_MAX; ++i) {
        rondo__text_append(text, "%s", i > 0 ? ", " : "  columns: ");
        if (labels->dtype == RONDO_DTYPE_STRING) {
            rondo__text_append_escaped(text, ((const rondo_string *)labels->data)[i].data);
        } else {
            rondo__text_append(text, "%lld", (long long)((const int64_t *)labels->data)[i]);
        }
    }
    rondo__text_append(text, "%s", count > SHOWN_MAX ? ", ..." : "");
}

// "f32 [batch=4, ?=1, 3]": the declared names of extents, "?" where there is none, with the plan's
// numbers. `declared` is NULL for ports of bodies.
static void append_port(rondo__text *text, const rondo_program *source,
                        const rondo__value *declared, const rondo__slot *slot) {
    const bool is_known = slot->is_shape_known;
    const rondo_dtype dtype =
        slot->dtype == RONDO_DTYPE_NONE && declared != NULL ? declared->dtype : slot->dtype;
    bool has_names = false;
    if (declared != NULL && declared->has_shape &&
        (!is_known || declared->rank == slot->shape.rank)) {
        for (int32_t d = 0; d < declared->rank; ++d) {
            has_names = has_names || declared->dims[d].number < 0;
        }
    }
    if (!has_names) {
        append_shape(text, dtype, slot);
        if (declared != NULL) {
            append_items(text, declared);
        }
        return;
    }
    rondo__text_append(text, "%s [", rondo_dtype_get_name(dtype));
    for (int32_t d = 0; d < declared->rank; ++d) {
        const rondo__dimension *dim = &declared->dims[d];
        const bool is_fixed = dim->number >= 0;
        rondo__text_append_bytes(text, ", ", d > 0 ? 2 : 0);
        if (!is_fixed) {
            rondo__text_append_escaped(text,
                                       dim->symbol >= 0 ? source->symbols[dim->symbol].name : "?");
        }
        if (is_known || is_fixed) {
            const int64_t extent = is_known ? slot->shape.extent[d] : dim->number;
            rondo__text_append(text, "%s%lld", is_fixed ? "" : "=", (long long)extent);
        }
    }
    rondo__text_append(text, is_known ? "]" : "] (depends on data)");
}

static void append_ports(rondo__text *text, const rondo__unit *unit, const rondo__plan *plan,
                         const char *title, const int32_t *values, const int32_t *declared,
                         size_t count) {
    const rondo_program *source = unit->source;
    rondo__text_append(text, "%s\n", title);
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append_bytes(text, "  ", 2);
        append_column(text, source->values[declared[i]].name, 24);  // not that of what it came to
        rondo__text_append_bytes(text, " ", 1);
        append_port(text, source, &source->values[declared[i]], &plan->slots[values[i]]);
        append_labels(text, &source->values[declared[i]].labels);
        rondo__text_append(text, "\n");
    }
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static void append_counts(rondo__text *text, const rondo__plan *plan) {
    const size_t ops = rondo__plan_count_ops(plan);
    const size_t segments = rondo__plan_count_segments(plan);
    rondo__text_append(text, "%zu op%s in %zu segment%s, %zu bypassed\n", ops, plural(ops),
                       segments, plural(segments), plan->bypassed_count);
}

static void append_op_name(rondo__text *text, const rondo__node *node) {
    bool is_internal = node->op.def->domain[0] != '\0';
    int width = is_internal ? 19 - (int)strlen(node->op.def->domain) : 20;
    rondo__text_append(text, "%s%s%-*s ", node->op.def->domain, is_internal ? "." : "",
                       width > 0 ? width : 0, node->op.def->name);
}

static void append_steps(rondo__text *text, rondo__unit *unit, rondo__plan *plan, int indent);

// The ops of a body that is planned when it first runs, because its shapes depend on data.
static void append_unplanned(rondo__text *text, const rondo_program *body, int indent) {
    rondo__text_append(text, "%zu op%s, planned at the first run\n", body->node_count,
                       plural(body->node_count));
    for (size_t n = 0; n < body->node_count; ++n) {
        const rondo__node *node = &body->nodes[n];
        rondo__text_append(text, "%*s", indent + 2, "");
        append_op_name(text, node);
        rondo__text_append_escaped(text, node->op.name);
        rondo__text_append_bytes(text, "\n", 1);
        for (size_t a = 0; a < node->op.attribute_count; ++a) {
            const rondo__attribute *attribute = &node->op.attributes[a];
            if (attribute->kind == RONDO__ATTRIBUTE_BODY) {
                rondo__text_append(text, "%*s%s: ", indent + 4, "", attribute->name);
                append_unplanned(text, attribute->body, indent + 4);  // bounded depth: program.h
            }
        }
    }
}

// The bodies of If, Loop and Scan. If a body does not fit these shapes, the text says so; that is
// no failure, because the body may never run.
static void append_bodies(rondo__text *text, rondo__unit *unit, rondo__plan *plan,
                          rondo__step *step, size_t index, int indent) {
    const rondo__node *node = &plan->program->nodes[rondo__describe_get_node(plan, step, index)];
    bool is_dead;
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        rondo__unit *body = NULL;
        rondo__plan *body_plan = NULL;
        rondo__text_append(text, "%*s%s: ", indent, "", attribute->name);
        const rondo_status status = rondo__describe_find_body(
            unit, plan, step, index, attribute->name, &body, &body_plan, &is_dead);
        text->failed = text->failed || status == RONDO_STATUS_NO_MEMORY;
        if (status != RONDO_STATUS_OK) {
            rondo__text_append_escaped(text, rondo_error_get_last()->message);
            rondo__text_append_bytes(text, "\n", 1);
        } else if (is_dead) {
            rondo__text_append(text, "never taken\n");
        } else if (body_plan == NULL) {
            append_unplanned(text, attribute->body, indent);
        } else {
            append_counts(text, body_plan);
            append_steps(text, body, body_plan, indent + 2);
        }
    }
}

// Said once: at the bypass, not at the segment that it ends.
static void append_remedy(rondo__text *text, const rondo__plan *plan, size_t s) {
    const rondo__step *step = &plan->steps[s];
    const bool is_next = step->kind == RONDO__STEP_SEGMENT && s + 1 < plan->step_count &&
                         plan->steps[s + 1].kind != RONDO__STEP_SEGMENT &&
                         strcmp(plan->steps[s + 1].reason, step->reason) == 0;
    if (step->reason[0] != '\0' && !is_next) {
        rondo__text_append(text, ". It would be captured with %s",
                           rondo__step_get_remedy(plan, step));
    }
}

static void append_steps(rondo__text *text, rondo__unit *unit, rondo__plan *plan, int indent) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        if (step->kind == RONDO__STEP_SEGMENT) {
            const rondo__transfer_counts *copied = rondo__transfers_count_step(plan, step);
            const size_t copies = (size_t)rondo__transfers_get_total(copied);
            const rondo__plan_peer *peer = rondo__step_get_peer(plan, step);
            const size_t ops = step->item_count - copies;
            rondo__text_append(text, "%*s%s %zu: %zu op%s, ", indent, "",
                               rondo__describe_get_kind(step), s, ops, plural(ops));
            if (copies > 0) {
                rondo__text_append(text, "%zu %s, ", copies, copies == 1 ? "copy" : "copies");
            }
            if (peer != NULL) {
                rondo__text_append(text, "on %s, ", rondo_device_get_name(peer->peer->device));
            }
            rondo__text_append(text, "%s", rondo__describe_get_state(step));
            if (step->run.branch_count > 1) {
                rondo__text_append(text, " in %u branches", (unsigned)step->run.branch_count);
            }
            rondo__text_append(text, "%s",
                               step->reason[0] != '\0'    ? "; ends at "
                               : s + 1 < plan->step_count ? "; the next op is on another device"
                                                          : "; ends with the model");
        } else {
            rondo__text_append(text, "%*s%s %zu: ", indent, "", rondo__describe_get_kind(step), s);
        }
        rondo__text_append_escaped(text, step->reason);
        append_remedy(text, plan, s);
        rondo__text_append_bytes(text, "\n", 1);
        for (size_t i = 0; i < rondo__describe_count_nodes(step); ++i) {
            const rondo__node *node =
                &plan->program->nodes[rondo__describe_get_node(plan, step, i)];
            rondo__text_append(text, "%*s", indent + 2, "");
            append_op_name(text, node);
            rondo__text_append(
                text, "%-10s ",
                rondo__describe_get_implementation(plan, step, step->first_item + i));
            append_column(text, node->op.name, 32);
            for (size_t k = 0; k < node->output_count; ++k) {
                if (node->outputs[k] >= 0) {
                    rondo__text_append_bytes(text, " ", 1);
                    append_shape(text, get_output_dtype(plan, node, k),
                                 &plan->slots[node->outputs[k]]);
                }
            }
            rondo__text_append(text, "\n");
            if (rondo__describe_has_bodies(plan, step, i)) {
                append_bodies(text, unit, plan, step, i, indent + 4);
            }
        }
    }
}

// What the words of the second column mean.
static void append_legend(rondo__text *text, bool is_host) {
    rondo__text_append(
        text, "%s",
        is_host ? "run by: simd (vector code), reference (plain C, slow), "
                  "copy (moves bytes),\n        philox (random numbers), trees (decision trees), "
                  "own (the program's),\n        control (branches and loops on the device); host: "
                  "bypassed, plain C between segments\n"
                : "run by: nvrtc (own kernels), cublaslt, cudnn (NVIDIA's libraries), philox "
                  "(random numbers),\n        own (the program's), control (branches and loops on "
                  "the device), body (ops there\n        that are planned when their shapes are "
                  "known); "
                  "host: on the processor;\n        copy: between it and the device\n");
}

static void append_text(rondo__text *text, rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    const rondo_program *source = unit->source;
    append_ports(text, unit, plan, "inputs", program->inputs, source->inputs, program->input_count);
    append_ports(text, unit, plan, "outputs", program->outputs, source->outputs,
                 program->output_count);
    rondo__text_append(text, "device %s, ", rondo_device_get_name(unit->executor->device));
    append_counts(text, plan);
    rondo__governed_describe(text, unit, plan, false);
    append_steps(text, unit, plan, 0);
    rondo__describe_half(text, unit->executor, plan, false);
    rondo__placement_describe(text, unit, plan);
    rondo__text_append(
        text, "memory: arena %zu bytes (%zu without sharing), constants on the device %zu bytes\n",
        plan->memory.arena_bytes, plan->memory.arena_naive_bytes,
        rondo__plan_get_constant_bytes(plan));
    append_legend(text, rondo_device_is_host(unit->executor->device));
}

// ---- JSON -------------------------------------------------------------------------------------

static void append_json_slot(rondo__text *text, rondo_dtype dtype, const rondo__slot *slot) {
    const char *quote = dtype != RONDO_DTYPE_NONE ? "\"" : "";
    rondo__text_append(text, "\"dtype\": %s%s%s, \"shape\": ", quote,
                       dtype != RONDO_DTYPE_NONE ? rondo_dtype_get_name(dtype) : "null", quote);
    if (!slot->is_shape_known || rondo__dtype_is_nested(dtype)) {
        rondo__text_append(text, "null");
        return;
    }
    rondo__text_append(text, "[");
    for (int32_t d = 0; d < slot->shape.rank; ++d) {
        rondo__text_append(text, "%s%lld", d > 0 ? ", " : "", (long long)slot->shape.extent[d]);
    }
    rondo__text_append(text, "]");
}

// declared   the same in the program as it was read; NULL: of a body
static void append_json_ports(rondo__text *text, const rondo__unit *unit, const rondo__plan *plan,
                              const char *key, const int32_t *values, const int32_t *declared,
                              size_t count) {
    rondo__text_append(text, "  \"%s\": [", key);
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append(text, "%s{\"name\": ", i > 0 ? ", " : "");
        rondo__text_append_json(text, declared != NULL ? unit->source->values[declared[i]].name
                                                       : plan->program->values[values[i]].name);
        rondo__text_append(text, ", ");
        append_json_slot(text, plan->slots[values[i]].dtype, &plan->slots[values[i]]);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "],\n");
}

static const char *name_slot_kind(rondo__slot_kind kind) {
    static const char *const names[] = {"none", "constant", "arena", "dynamic"};
    return names[kind];
}

// Leaves the object open: bodies may follow.
static void append_json_node(rondo__text *text, const rondo_executor *executor,
                             const rondo__plan *plan, const rondo__step *step, size_t index) {
    const rondo__node *node = &plan->program->nodes[rondo__describe_get_node(plan, step, index)];
    rondo__text_append(text, "%s\n      {\"op\": \"%s%s%s\", \"name\": ", index > 0 ? "," : "",
                       node->op.def->domain, node->op.def->domain[0] != '\0' ? "." : "",
                       node->op.def->name);
    rondo__text_append_json(text, node->op.name);
    rondo__text_append(text, ", \"implementation\": \"%s\", \"on\": \"%s\", \"inputs\": [",
                       rondo__describe_get_implementation(plan, step, step->first_item + index),
                       rondo__placement_get_side(executor, plan, step, index));
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
        append_json_slot(text, get_output_dtype(plan, node, k), slot);
        rondo__text_append(text, ", \"place\": \"%s\", \"offset\": %zu, \"bytes\": %zu}",
                           name_slot_kind(slot->kind), slot->offset, slot->bytes);
    }
    rondo__text_append(text, "]");
}

static void append_json(rondo__text *text, rondo__unit *unit, rondo__plan *plan);

// Ops of a body that is not planned yet: what the model says.
static void append_json_unplanned(rondo__text *text, const rondo_program *body) {
    for (size_t n = 0; n < body->node_count; ++n) {
        const rondo__op *op = &body->nodes[n].op;
        rondo__text_append(text, "%s{\"op\": \"%s%s%s\", \"name\": ", n > 0 ? ", " : "",
                           op->def->domain, op->def->domain[0] != '\0' ? "." : "", op->def->name);
        rondo__text_append_json(text, op->name);
        rondo__text_append(text, "}");
    }
}

// Each with its plan; with the model's ops where the plan waits for shapes, or is not possible.
static void append_json_bodies(rondo__text *text, rondo__unit *unit, rondo__plan *plan,
                               rondo__step *step, size_t index) {
    const rondo__node *node = &plan->program->nodes[rondo__describe_get_node(plan, step, index)];
    size_t count = 0;
    bool is_dead;
    rondo__text_append(text, ", \"bodies\": [");
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        rondo__unit *body = NULL;
        rondo__plan *body_plan = NULL;
        rondo__text_append(text, "%s\n      {\"name\": ", count++ > 0 ? "," : "");
        rondo__text_append_json(text, attribute->name);
        const rondo_status status = rondo__describe_find_body(
            unit, plan, step, index, attribute->name, &body, &body_plan, &is_dead);
        text->failed = text->failed || status == RONDO_STATUS_NO_MEMORY;
        if (status != RONDO_STATUS_OK) {
            rondo__text_append(text, ", \"error\": ");
            rondo__text_append_json(text, rondo_error_get_last()->message);
        }
        rondo__text_append(text, body_plan != NULL ? ", \"plan\": " : ", \"ops\": [");
        if (body_plan != NULL) {
            append_json(text, body, body_plan);
        } else {
            append_json_unplanned(text, attribute->body);
        }
        rondo__text_append(text, body_plan != NULL ? "}" : "]}");
    }
    rondo__text_append(text, "]");
}

static void append_json(rondo__text *text, rondo__unit *unit, rondo__plan *plan) {
    rondo__text_append(text, "{\n  \"device\": \"%s\",\n",
                       rondo_device_get_name(unit->executor->device));
    const rondo_program *program = plan->program, *source = unit->depth == 0 ? unit->source : NULL;
    append_json_ports(text, unit, plan, "inputs", program->inputs,
                      source != NULL ? source->inputs : NULL, program->input_count);
    append_json_ports(text, unit, plan, "outputs", program->outputs,
                      source != NULL ? source->outputs : NULL, program->output_count);
    if (unit->depth == 0) {  // which tells of the bodies, too
        rondo__describe_half(text, unit->executor, plan, true);
        rondo__governed_describe(text, unit, plan, true);
    }
    rondo__text_append(
        text,
        "  \"arena_bytes\": %zu,\n  \"arena_naive_bytes\": %zu,\n  \"constant_bytes\": %zu,\n"
        "  \"segment_count\": %zu,\n  \"bypassed_count\": %zu,\n  \"steps\": [",
        plan->memory.arena_bytes, plan->memory.arena_naive_bytes,
        rondo__plan_get_constant_bytes(plan), rondo__plan_count_segments(plan),
        plan->bypassed_count);
    for (size_t s = 0; s < plan->step_count; ++s) {
        rondo__step *step = &plan->steps[s];
        rondo__text_append(
            text, "%s\n    {\"kind\": \"%s\", \"is_captured\": %s, \"reason\": ", s > 0 ? "," : "",
            rondo__describe_get_kind(step), rondo__step_is_captured(step) ? "true" : "false");
        rondo__text_append_json(text, step->reason);
        rondo__text_append(text, ", \"remedy\": ");
        rondo__text_append_json(text,
                                step->reason[0] != '\0' ? rondo__step_get_remedy(plan, step) : "");
        rondo__text_append(text, ", \"ops\": [");
        for (size_t i = 0; i < rondo__describe_count_nodes(step); ++i) {
            append_json_node(text, unit->executor, plan, step, i);
            if (rondo__describe_has_bodies(plan, step, i)) {
                append_json_bodies(text, unit, plan, step, i);
            }
            rondo__text_append_bytes(text, "}", 1);
        }
        rondo__text_append(text, "]}");
    }
    rondo__text_append(text, "\n  ]\n}\n");
}

// ---- DOT --------------------------------------------------------------------------------------

static void append_dot(rondo__text *text, rondo__unit *unit, rondo__plan *plan) {
    const rondo_program *program = plan->program;
    rondo__text_append(
        text, "digraph plan {\n  label=\"%s\";\n  node [shape=box, fontname=\"sans-serif\"];\n",
        rondo_device_get_name(unit->executor->device));
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        rondo__text_append(text, "  subgraph cluster_%zu {\n    label=", s);
        rondo__text_append_json(text, step->kind == RONDO__STEP_SEGMENT
                                          ? rondo__describe_get_kind(step)
                                          : step->reason);
        rondo__text_append(text, ";\n    style=%s;\n",
                           rondo__step_is_captured(step) ? "solid" : "dashed");
        for (size_t i = 0; i < rondo__describe_count_nodes(step); ++i) {
            size_t n = rondo__describe_get_node(plan, step, i);
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
                               !slot->is_shape_known
                                   ? "?"
                                   : rondo_shape_format(&slot->shape, shape, sizeof shape));
        }
    }
    rondo__text_append(text, "}\n");
}

// ---- the call ---------------------------------------------------------------------------------

typedef struct request {
    rondo_text_format format;
    rondo_write_function write;
    void *user_data;
} request;

static rondo_status describe(rondo__unit *unit, rondo__plan *plan, void *user_data) {
    static void (*const writers[])(rondo__text *, rondo__unit *, rondo__plan *) = {
        append_text, append_json, append_dot, rondo__describe_svg};
    const request *r = user_data;
    rondo__text text = {0};
    if (unit->executor->options.dtype != RONDO_DTYPE_F32) {
        RETURN_IF_ERROR(rondo__control_foresee(unit, plan));
    }
    writers[r->format](&text, unit, plan);
    const rondo_status status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        (void)r->write(r->user_data, text.bytes, text.length);
    }
    rondo__text_deinit(&text);
    return status;
}

rondo_status rondo_executor_describe_feeds(rondo_executor *executor, const rondo_binding *feeds,
                                           size_t feed_count, rondo_text_format format,
                                           rondo_write_function write, void *user_data) {
    if (executor == NULL || write == NULL || (feeds == NULL && feed_count > 0)) {
        return RONDO_FAIL(INVALID, "%s is NULL",
                          executor == NULL ? "executor"
                          : write == NULL  ? "write"
                                           : "feeds");
    }
    if ((int)format < RONDO_TEXT_PLAIN || format > RONDO_TEXT_SVG) {
        return RONDO_FAIL(INVALID, "format %d is not a rondo_text_format", (int)format);
    }
    request r = {format, write, user_data};
    return rondo__executor_visit_plan(executor, feeds, feed_count, __func__, describe, &r);
}

rondo_status rondo_executor_describe(rondo_executor *executor, rondo_text_format format,
                                     rondo_write_function write, void *user_data) {
    return rondo_executor_describe_feeds(executor, NULL, 0, format, write, user_data);
}
