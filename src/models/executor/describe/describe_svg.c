// executor/describe/describe_svg.c — one box for each plan step, from top to bottom, with its ops
// as tiles:
//
//   ┌ segment 0: 3 ops, captured ────────────┐   the work of one replay
//   │ Conv  conv1 │ Relu  relu1 │ Gemm  fc   │
//   └────────────────────────────────────────┘
//     cut: NonZero "nz" has an output whose shape depends on data
//   ┌╌ bypassed 1 ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┐
//   ╎ NonZero  nz                            ╎
//
// Colours are classes, so that a page around the picture may have others; alone it follows the
// reader's light or dark setting. Names are escaped twice: for the eye, and for XML.
// SPDX-License-Identifier: Apache-2.0
#include "executor/describe/describe_svg.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "executor/describe/describe_steps.h"
#include "rondo/text.h"

enum {
    PICTURE_WIDTH = 960,
    MARGIN = 12,
    LINE_HEIGHT = 18,
    TILE_WIDTH = 224,  // at least
    TILE_HEIGHT = 26,
    TILE_GAP = 6,
    BOX_PADDING = 10,
    BODY_INDENT = 14,
    NARROWEST = 2 * TILE_WIDTH,    // bodies in bodies are indented no further
    WIDTH_OF_TEN_CHARACTERS = 68,  // of the small font, at most
};

static const char style[] =
    "<style>"
    ".rondo-plan{color-scheme:light dark}"
    ".rp{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:11px;fill:#1d2433}"
    ".rp-head{font-weight:600;font-size:12px}"
    ".rp-note{fill:#5b6475}"
    ".rp-segment{fill:#e8f0fe;stroke:#3b6fd4}"
    ".rp-open{fill:#f1f3f7;stroke:#8a93a6}"
    ".rp-bypass{fill:#fff3e0;stroke:#c77700;stroke-dasharray:5 3}"
    ".rp-tile{fill:#fff;stroke:#c5cbd8}"
    ".rp-host{stroke:#c77700}"
    ".rp-copy{stroke-dasharray:2 2}"
    ".rp-arrow{stroke:#8a93a6;stroke-width:1.5;fill:none}"
    "@media (prefers-color-scheme:dark){"
    ".rp{fill:#e4e8f0}"
    ".rp-note{fill:#a3adbf}"
    ".rp-segment{fill:#182642;stroke:#6d9bf5}"
    ".rp-open{fill:#22262e;stroke:#7d8799}"
    ".rp-bypass{fill:#33260f;stroke:#e0a040}"
    ".rp-tile{fill:#11151c;stroke:#47505f}"
    ".rp-host{stroke:#e0a040}"
    ".rp-arrow{stroke:#7d8799}"
    "}</style>\n";

typedef struct picture {
    rondo__text *text;
    int y;  // where the next thing goes
} picture;

static void append_xml(picture *p, const char *string) {
    rondo__text_append_markup(p->text, string);
}

static void open_text(picture *p, int x, int y, const char *css) {
    rondo__text_append(p->text, "<text class=\"rp %s\" x=\"%d\" y=\"%d\">", css, x, y);
}

static void close_text(picture *p) {
    rondo__text_append(p->text, "</text>\n");
}

// ---- texts ------------------------------------------------------------------------------------

// Bytes of the line that `string` (escaped) begins with: up to `room` characters, at a space if
// there is one.
static size_t measure_line(const char *string, size_t room) {
    size_t at = 0;
    size_t space = 0;
    for (size_t count = 0; string[at] != '\0' && count < room; ++count) {
        space = string[at] == ' ' ? at : space;
        do {
            ++at;
        } while (((unsigned char)string[at] & 0xC0) == 0x80);
    }
    return string[at] == '\0' || space == 0 ? at : space;
}

// A text that may be long, in as many lines as it takes.
static void draw_lines(picture *p, int x, int width, const char *css, const char *string) {
    char shown[1024];
    rondo_text_escape(string, shown, sizeof shown);
    for (const char *rest = shown; *rest != '\0';) {
        char line[1024];
        const size_t bytes = measure_line(rest, (size_t)(width * 10 / WIDTH_OF_TEN_CHARACTERS));
        memcpy(line, rest, bytes);
        line[bytes] = '\0';
        open_text(p, x, p->y + LINE_HEIGHT - 5, css);
        append_xml(p, line);
        close_text(p);
        p->y += LINE_HEIGHT;
        rest += bytes + (rest[bytes] == ' ' ? 1 : 0);
    }
}

// The end of a name, which says more than its beginning; `room` is in characters.
static void append_tail(picture *p, const char *name, size_t room) {
    char shown[1024];
    size_t count = 0;
    rondo_text_escape(name, shown, sizeof shown);
    const char *at = shown + strlen(shown);
    while (at > shown && count < room) {
        do {
            --at;
        } while (at > shown && ((unsigned char)*at & 0xC0) == 0x80);
        ++count;
    }
    if (at > shown) {
        rondo__text_append(p->text, "&#8230;");
    }
    append_xml(p, at);
}

// ---- ops --------------------------------------------------------------------------------------

// Ops that the processor runs, and those that only move bytes, look different.
static const char *get_tile_style(const char *implementation) {
    return strcmp(implementation, "host") == 0   ? " rp-host"
           : strcmp(implementation, "copy") == 0 ? " rp-copy"
                                                 : "";
}

static void draw_tile(picture *p, const rondo__plan *plan, const rondo__step *step, size_t index,
                      int x, int width) {
    const rondo__node *node = &plan->program->nodes[rondo__describe_get_node(plan, step, index)];
    const size_t room = (size_t)((width - 2 * TILE_GAP) * 10 / WIDTH_OF_TEN_CHARACTERS);
    const size_t used = strlen(node->op.def->name) + 2;
    const char *by = rondo__describe_get_implementation(plan, step, step->first_item + index);
    rondo__text_append(p->text,
                       "<g><rect class=\"rp-tile%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
                       "rx=\"4\"/><title>",
                       get_tile_style(by), x, p->y, width, TILE_HEIGHT);
    append_xml(p, node->op.def->name);
    rondo__text_append(p->text, " ");
    append_xml(p, node->op.name);
    rondo__text_append(p->text, "\nrun by %s", by);
    for (size_t k = 0; k < node->output_count; ++k) {
        char shape[96];
        if (node->outputs[k] < 0) {
            continue;
        }
        const rondo__slot *slot = &plan->slots[node->outputs[k]];
        rondo__text_append(p->text, "\n%s %s",
                           slot->dtype != RONDO_DTYPE_NONE ? rondo_dtype_get_name(slot->dtype) : "",
                           slot->is_shape_known
                               ? rondo_shape_format(&slot->shape, shape, sizeof shape)
                               : "[depends on data]");
    }
    rondo__text_append(p->text, "</title>");
    open_text(p, x + TILE_GAP, p->y + LINE_HEIGHT - 1, "");
    rondo__text_append(p->text, "<tspan class=\"rp-head\">");
    append_xml(p, node->op.def->name);
    rondo__text_append(p->text, "</tspan> <tspan class=\"rp-note\">");
    append_tail(p, node->op.name, room > used + 4 ? room - used : 4);
    rondo__text_append(p->text, "</tspan></text></g>\n");
}

static void draw_tiles(picture *p, const rondo__plan *plan, const rondo__step *step, int x,
                       int width) {
    const size_t count = rondo__describe_count_nodes(step);
    const int columns = (width + TILE_GAP) / (TILE_WIDTH + TILE_GAP);
    const int tile = (width - (columns - 1) * TILE_GAP) / columns;
    for (size_t i = 0; i < count; ++i) {
        const int column = (int)(i % (size_t)columns);
        draw_tile(p, plan, step, i, x + column * (tile + TILE_GAP), tile);
        if (column == columns - 1 || i + 1 == count) {
            p->y += TILE_HEIGHT + TILE_GAP;
        }
    }
}

// ---- steps ------------------------------------------------------------------------------------

static void draw_steps(picture *p, rondo__unit *unit, rondo__plan *plan, int x, int width);

// The bodies of If, Loop and Scan; what cannot be planned with these shapes is said.
static void draw_bodies(picture *p, rondo__unit *unit, rondo__plan *plan, rondo__step *step,
                        size_t index, int x, int width) {
    const rondo__node *node = &plan->program->nodes[rondo__describe_get_node(plan, step, index)];
    for (size_t a = 0; a < node->op.attribute_count; ++a) {
        const rondo__attribute *attribute = &node->op.attributes[a];
        rondo__unit *body = NULL;
        rondo__plan *body_plan = NULL;
        bool is_dead;
        if (attribute->kind != RONDO__ATTRIBUTE_BODY) {
            continue;
        }
        const rondo_status status = rondo__describe_find_body(
            unit, plan, step, index, attribute->name, &body, &body_plan, &is_dead);
        p->text->failed = p->text->failed || status == RONDO_STATUS_NO_MEMORY;
        open_text(p, x, p->y + LINE_HEIGHT - 5, "");
        rondo__text_append(p->text, "%s of ", attribute->name);
        append_tail(p, node->op.name, 40);
        rondo__text_append(p->text, "%s",
                           status != RONDO_STATUS_OK    ? ""
                           : is_dead                    ? ": never taken"
                           : body_plan == NULL          ? ": planned at the first run"
                           : body_plan->step_count == 0 ? ": no ops"
                                                        : "");
        close_text(p);
        p->y += LINE_HEIGHT;
        if (status != RONDO_STATUS_OK) {
            draw_lines(p, x + BODY_INDENT, width - BODY_INDENT, "rp-note",
                       rondo_error_get_last()->message);
        } else if (body_plan != NULL) {
            const int inner = width - BODY_INDENT < NARROWEST ? width : width - BODY_INDENT;
            draw_steps(p, body, body_plan, x + width - inner, inner);  // bounded depth: program.h
        }
    }
}

// "segment 0: 3 ops, captured in 2 branches"
static void draw_head(picture *p, const rondo__step *step, size_t index, int x) {
    open_text(p, x, p->y + LINE_HEIGHT - 4, "rp-head");
    if (step->kind == RONDO__STEP_SEGMENT) {
        rondo__text_append(p->text, "%s %zu: %zu op%s, %s", rondo__describe_get_kind(step), index,
                           step->item_count, step->item_count == 1 ? "" : "s",
                           rondo__describe_get_state(step));
        if (step->run.branch_count > 1) {
            rondo__text_append(p->text, " in %u branches", (unsigned)step->run.branch_count);
        }
    } else {
        rondo__text_append(p->text, "%s %zu", rondo__describe_get_kind(step), index);
    }
    close_text(p);
    p->y += LINE_HEIGHT + 2;
}

// The frame is drawn before what is in it, whose height is known only afterwards; so its piece of
// text is put in between.
static void draw_step(picture *p, rondo__unit *unit, rondo__plan *plan, size_t index, int x,
                      int width) {
    rondo__step *step = &plan->steps[index];
    rondo__text *outer = p->text;
    rondo__text inner = {0};
    const int top = p->y;
    const bool is_segment = step->kind == RONDO__STEP_SEGMENT;
    p->text = &inner;
    p->y += BOX_PADDING - 4;
    draw_head(p, step, index, x + BOX_PADDING);
    // A segment before it has said why it ends here.
    const bool is_said = index > 0 && step[-1].kind == RONDO__STEP_SEGMENT &&
                         strcmp(step->reason, step[-1].reason) == 0;
    if (!is_segment && !is_said) {
        draw_lines(p, x + BOX_PADDING, width - 2 * BOX_PADDING, "rp-note", step->reason);
    }
    draw_tiles(p, plan, step, x + BOX_PADDING, width - 2 * BOX_PADDING);
    for (size_t i = 0; i < rondo__describe_count_nodes(step); ++i) {
        if (rondo__describe_has_bodies(plan, step, i)) {
            draw_bodies(p, unit, plan, step, i, x + BOX_PADDING, width - 2 * BOX_PADDING);
            p->y += TILE_GAP;
        }
    }
    p->y += BOX_PADDING - TILE_GAP;
    p->text = outer;
    rondo__text_append(
        outer, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
        !is_segment                     ? "rp-bypass"
        : rondo__step_is_captured(step) ? "rp-segment"
                                        : "rp-open",
        x, top, width, p->y - top);
    rondo__text_append_bytes(outer, inner.bytes != NULL ? inner.bytes : "", inner.length);
    outer->failed = outer->failed || inner.failed;
    rondo__text_deinit(&inner);
}

static void draw_steps(picture *p, rondo__unit *unit, rondo__plan *plan, int x, int width) {
    for (size_t s = 0; s < plan->step_count; ++s) {
        const rondo__step *step = &plan->steps[s];
        draw_step(p, unit, plan, s, x, width);
        if (step->kind == RONDO__STEP_SEGMENT && step->reason[0] != '\0') {
            char cut[sizeof step->reason + 8] = "cut: ";
            rondo__text_fit(cut + strlen(cut), sizeof step->reason, step->reason);
            draw_lines(p, x + 2 * BOX_PADDING, width - 2 * BOX_PADDING, "rp-note", cut);
        } else if (s + 1 < plan->step_count) {
            p->y += LINE_HEIGHT / 2;
        }
        if (s + 1 < plan->step_count) {
            rondo__text_append(p->text, "<path class=\"rp-arrow\" d=\"M%d %dv%dm-4-5l4 5l4-5\"/>\n",
                               x + BOX_PADDING, p->y - LINE_HEIGHT / 2, LINE_HEIGHT / 2 + 4);
            p->y += 6;
        }
    }
    p->y += TILE_GAP;
}

void rondo__describe_svg(rondo__text *text, rondo__unit *unit, rondo__plan *plan) {
    rondo__text body = {0};
    picture p = {.text = &body, .y = MARGIN};
    const size_t ops = rondo__plan_count_ops(plan);
    const size_t segments = rondo__plan_count_segments(plan);
    open_text(&p, MARGIN, p.y + LINE_HEIGHT - 4, "rp-head");
    rondo__text_append(&body, "device %s: %zu op%s in %zu segment%s, %zu bypassed",
                       rondo_device_get_name(unit->executor->device), ops, ops == 1 ? "" : "s",
                       segments, segments == 1 ? "" : "s", plan->bypassed_count);
    close_text(&p);
    p.y += LINE_HEIGHT + TILE_GAP;
    draw_steps(&p, unit, plan, MARGIN, PICTURE_WIDTH - 2 * MARGIN);
    rondo__text_append(text,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rondo-plan\" "
                       "viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
                       "aria-label=\"segments of the plan\">\n%s",
                       PICTURE_WIDTH, p.y + MARGIN, PICTURE_WIDTH, p.y + MARGIN, style);
    rondo__text_append_bytes(text, body.bytes != NULL ? body.bytes : "", body.length);
    rondo__text_append(text, "</svg>\n");
    text->failed = text->failed || body.failed;
    rondo__text_deinit(&body);
}
