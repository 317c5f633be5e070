// executor/describe/describe_half.c — see describe_half.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/describe/describe_half.h"

#include <stdio.h>

#include "executor/compile/device_control.h"

static void append_text(rondo__text *text, const char *place, const rondo__half_report *report) {
    rondo__text_append_bytes(text, "half precision", 14);
    rondo__text_append_escaped(text, place);
    rondo__text_append_bytes(text, ": ", 2);
    if (report->note != NULL) {
        rondo__text_append(text, "%s\n", report->note);
        return;
    }
    rondo__text_append(text, "%zu ops of the model compute in %s, %zu stay in f32\n",
                       report->half_count, rondo_dtype_get_name(report->dtype), report->kept_count);
    for (size_t i = 0; i < report->kept_count; ++i) {
        const size_t start = text->length;
        rondo__text_append(text, "  f32 %-16s ", report->kept[i].op);
        rondo__text_append_escaped(text, report->kept[i].name);
        const int width = text->length - start < 55 ? (int)(55 - (text->length - start)) : 0;
        rondo__text_append(text, "%*s %s\n", width, "", report->kept[i].reason);
    }
}

static void append_json(rondo__text *text, const rondo__half_report *report) {
    rondo__text_append(text, "\"note\": ");
    if (report->note != NULL) {
        rondo__text_append_json(text, report->note);
    } else {
        rondo__text_append(text, "null");
    }
    rondo__text_append(text, ", \"%s_count\": %zu, \"f32\": [", rondo_dtype_get_name(report->dtype),
                       report->half_count);
    for (size_t i = 0; i < report->kept_count; ++i) {
        rondo__text_append(text, "%s\n    {\"op\": \"%s\", \"name\": ", i > 0 ? "," : "",
                           report->kept[i].op);
        rondo__text_append_json(text, report->kept[i].name);
        rondo__text_append(text, ", \"reason\": ");
        rondo__text_append_json(text, report->kept[i].reason);
        rondo__text_append(text, "}");
    }
    rondo__text_append(text, "]");
}

static void append_plan(rondo__text *text, const rondo__plan *plan, const char *place,
                        bool is_json);

// `inner` is the body's plan, or NULL when it has none yet.
static void append_body(rondo__text *text, const char *node, const char *body,
                        const rondo__plan *inner, bool is_json) {
    if (is_json) {
        rondo__text_append(text, "{\"node\": ");
        rondo__text_append_json(text, node);
        rondo__text_append(text, ", \"body\": \"%s\", \"is_decided\": %s", body,
                           inner != NULL ? "true, " : "false");
    }
    char place[256];
    (void)snprintf(place, sizeof place, " in %s of %.200s", body, node);
    if (inner != NULL) {
        append_plan(text, inner, place, is_json);
    } else if (!is_json) {
        rondo__text_append_bytes(text, "half precision", 14);
        rondo__text_append_escaped(text, place);
        rondo__text_append(text, ": decided when it runs; its shapes are not known yet\n");
    }
    rondo__text_append(text, "%s", is_json ? "}" : "");
}

// Those of one op: item `item` of a segment, or the bypassed one.
static void append_bodies(rondo__text *text, const rondo__plan *plan, const rondo__step *step,
                          size_t item, size_t *in_out_count, bool is_json) {
    const bool is_segment = step->kind == RONDO__STEP_SEGMENT;
    const size_t n = is_segment ? plan->items[item].node : step->node;
    const rondo__node *node = &plan->program->nodes[n];
    size_t b = 0;
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        const rondo__body_plan *part =
            is_segment ? rondo__device_control_get_part(plan->items[item].kernel, attribute->name)
                       : NULL;
        const rondo__unit *body = b < step->run.body_count ? step->run.bodies[b] : NULL;
        const rondo__plan *inner = part != NULL ? part->plan : body != NULL ? body->current : NULL;
        b += 1;
        if (is_segment && part == NULL) {
            continue;  // never taken
        }
        rondo__text_append(text, "%s", is_json && *in_out_count > 0 ? ",\n    " : "");
        append_body(text, node->op.name, attribute->name, inner, is_json);
        *in_out_count += 1;
    }
}

// Bodies nest at most as deep as programs do.
static void append_plan(rondo__text *text, const rondo__plan *plan, const char *place,
                        bool is_json) {
    size_t count = 0;
    if (is_json) {
        append_json(text, &plan->halves);
        rondo__text_append(text, ", \"bodies\": [");
    } else {
        append_text(text, place, &plan->halves);
    }
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        const bool is_segment = step->kind == RONDO__STEP_SEGMENT;
        for (size_t i = 0; i < (is_segment ? step->item_count : 1); ++i) {
            append_bodies(text, plan, step, step->first_item + i, &count, is_json);
        }
    }
    rondo__text_append(text, "%s", is_json ? "]" : "");
}

void rondo__describe_half(rondo__text *text, const rondo_executor *executor,
                          const rondo__plan *plan, bool is_json) {
    if (executor->options.dtype == RONDO_DTYPE_F32) {
        return;
    }
    rondo__text_append(text, "%s", is_json ? "  \"half\": {" : "");
    append_plan(text, plan, "", is_json);
    rondo__text_append(text, "%s", is_json ? "},\n" : "");
}
