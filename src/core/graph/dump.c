// graph/dump.c — a template's nodes and edges as Graphviz DOT or JSON.
//
// Graphs inside nodes are written inside: in DOT as clusters whose nodes are named by the way to
// them (n3_0 is node 0 inside node 3), in JSON as objects with nodes and edges of their own.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/check.h"
#include "base/escape.h"
#include "base/text.h"
#include "graph/graph_share.h"
#include "graph/label/label.h"
#include "graph/template.h"
#include "rondo/inspect.h"

enum { FLUSH_BYTES = 16 * 1024 };

// One dump under way.
typedef struct dump {
    rondo_text_format format;
    rondo_write_function write;
    void *user_data;
    bool is_stopped;  // the reader wants no more
    rondo__text text;
    rondo__text name;                  // of the nodes of this level, before their index: "n3_0_"
    const rondo__participant *labels;  // who knows them
} dump;

static const char *get_copy_name(rondo_copy_kind kind) {
    static const char *const names[] = {
        [RONDO_COPY_HOST_TO_DEVICE] = "host_to_device",
        [RONDO_COPY_DEVICE_TO_HOST] = "device_to_host",
        [RONDO_COPY_DEVICE_TO_DEVICE] = "device_to_device",
    };
    return names[kind];
}

// Hands the text on, piece by piece, so that a dump of a large graph needs little memory.
static void flush(dump *d, size_t threshold) {
    if (d->text.length > threshold && !d->text.failed && !d->is_stopped) {
        d->is_stopped = !d->write(d->user_data, d->text.bytes, d->text.length);
        d->text.length = 0;
    }
}

static bool is_event(const rondo__node_info *info) {
    return info->kind == RONDO__NODE_EVENT_RECORD || info->kind == RONDO__NODE_EVENT_WAIT;
}

// ---- nodes in JSON ----------------------------------------------------------------------------

static void append_json_address(rondo__text *text, const char *name, const void *address) {
    rondo__text_append(text, ", \"%s\": \"0x%" PRIxPTR "\"", name, (uintptr_t)address);
}

static void append_json_fields(rondo__text *text, const rondo__node_info *info) {
    if (info->name != NULL && info->name[0] != '\0') {
        rondo__text_append(text, ", \"name\": ");
        rondo__text_append_json(text, info->name);
    }
    if (info->kind == RONDO__NODE_KERNEL) {
        rondo__text_append(text,
                           ", \"grid\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32
                           "], \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32
                           "], \"shared_bytes\": %" PRIu32,
                           info->grid[0], info->grid[1], info->grid[2], info->block[0],
                           info->block[1], info->block[2], info->shared_bytes);
    } else if (info->kind == RONDO__NODE_COPY) {
        rondo__text_append(text, ", \"copy\": \"%s\", \"bytes\": %" PRIu64,
                           get_copy_name(info->copy_kind), info->byte_count);
        if (info->height > 1 || info->depth > 1) {
            rondo__text_append(
                text, ", \"width\": %" PRIu64 ", \"height\": %" PRIu64 ", \"depth\": %" PRIu64,
                info->width, info->height, info->depth);
        }
        append_json_address(text, "source", info->source);
        append_json_address(text, "destination", info->destination);
    } else if (info->kind == RONDO__NODE_FILL) {
        rondo__text_append(text,
                           ", \"value\": %" PRIu32 ", \"bytes\": %" PRIu64
                           ", \"element_bytes\": %" PRIu32 ", \"width\": %" PRIu64
                           ", \"height\": %" PRIu64 ", \"pitch\": %" PRIu64,
                           info->fill_value, info->byte_count, info->element_bytes, info->width,
                           info->height, info->pitch_bytes);
        append_json_address(text, "destination", info->destination);
    } else if (is_event(info)) {
        append_json_address(text, "event", info->event);
    } else if (info->kind == RONDO__NODE_CONDITIONAL) {
        append_json_address(text, "predicate", info->predicate);
    }
}

// ---- nodes in DOT -----------------------------------------------------------------------------

// Graphviz takes no string of 16 KiB: of each text in one that many bytes.
enum { DOT_TEXT_MAX = 4000 };

// Inside a quoted DOT string, where backslashes have a meaning of their own.
static void append_dot_text(rondo__text *text, const char *string) {
    size_t begin = text->length;
    while (*string != '\0') {
        if (text->length - begin > DOT_TEXT_MAX) {
            rondo__text_append(text, "...");
            return;
        }
        char piece[RONDO__ESCAPED_MAX];
        string += rondo__escape_next(string, piece);
        if (piece[0] == '"' || piece[0] == '\\') {
            rondo__text_append_bytes(text, "\\", 1);
        }
        rondo__text_append_bytes(text, piece, strlen(piece));
    }
}

static void append_dot_fields(rondo__text *text, const rondo__node_info *info) {
    if (info->name != NULL && info->name[0] != '\0') {
        rondo__text_append(text, "\\n");
        append_dot_text(text, info->name);
    }
    if (info->kind == RONDO__NODE_KERNEL) {
        rondo__text_append(text,
                           "\\ngrid %" PRIu32 "x%" PRIu32 "x%" PRIu32 " block %" PRIu32 "x%" PRIu32
                           "x%" PRIu32 "\\nshared %" PRIu32 " bytes",
                           info->grid[0], info->grid[1], info->grid[2], info->block[0],
                           info->block[1], info->block[2], info->shared_bytes);
    } else if (info->kind == RONDO__NODE_COPY) {
        rondo__text_append(text, "\\n%s %" PRIu64 " bytes", get_copy_name(info->copy_kind),
                           info->byte_count);
        if (info->height > 1 || info->depth > 1) {
            rondo__text_append(text, " (%" PRIu64 " x %" PRIu64 " x %" PRIu64 ")", info->width,
                               info->height, info->depth);
        }
        rondo__text_append(text, "\\n0x%" PRIxPTR " to 0x%" PRIxPTR, (uintptr_t)info->source,
                           (uintptr_t)info->destination);
    } else if (info->kind == RONDO__NODE_FILL) {
        rondo__text_append(text,
                           "\\nvalue %" PRIu32 ", %" PRIu64 " bytes\\n%" PRIu64 " x %" PRIu64
                           " elements of %" PRIu32 "\\nat 0x%" PRIxPTR,
                           info->fill_value, info->byte_count, info->width, info->height,
                           info->element_bytes, (uintptr_t)info->destination);
    } else if (is_event(info)) {
        rondo__text_append(text, "\\n0x%" PRIxPTR, (uintptr_t)info->event);
    } else if (info->kind == RONDO__NODE_CONDITIONAL) {
        rondo__text_append(text, "\\npredicate at 0x%" PRIxPTR, (uintptr_t)info->predicate);
    }
}

// ---- templates --------------------------------------------------------------------------------

static rondo_status enter_node(void *user_data, const rondo__template_node *node) {
    dump *d = user_data;
    rondo__text *text = &d->text;
    const char *kind = rondo__node_kind_get_name(node->info.kind);
    const char *label = rondo__label_of_node(d->labels, node->id);
    if (d->format == RONDO_TEXT_DOT) {
        rondo__text_append(text, "  %s%zu [label=\"%zu %s", d->name.bytes, node->index, node->index,
                           kind);
        append_dot_fields(text, &node->info);
        if (label[0] != '\0') {
            rondo__text_append(text, "\\nin ");
            append_dot_text(text, label);
        }
        rondo__text_append(text, "\"];\n");
        return RONDO_STATUS_OK;
    }
    rondo__text_append(text, "%s\n    {\"index\": %zu, \"kind\": \"%s\"",
                       node->index > 0 ? "," : "", node->index, kind);
    append_json_fields(text, &node->info);
    if (label[0] != '\0') {
        rondo__text_append(text, ", \"label\": ");
        rondo__text_append_json(text, label);
    }
    if (node->info.kind == RONDO__NODE_CHILD) {
        rondo__text_append(text, ", \"graph\": ");
    } else if (node->info.kind == RONDO__NODE_CONDITIONAL) {
        rondo__text_append(text, ", \"bodies\": [");
    }
    return RONDO_STATUS_OK;
}

static rondo_status leave_node(void *user_data, const rondo__template_node *node) {
    dump *d = user_data;
    if (d->format == RONDO_TEXT_JSON) {
        rondo__text_append(&d->text, node->info.kind == RONDO__NODE_CONDITIONAL ? "]}" : "}");
    }
    flush(d, FLUSH_BYTES);
    node->level->skips_rest = d->is_stopped;
    return RONDO_STATUS_OK;
}

// A level inside a node is a part of it; an empty body is null in JSON and nothing in DOT.
static rondo_status enter_level(void *user_data, rondo__template_level *level) {
    dump *d = user_data;
    const rondo__template_node *node = level->node;
    bool is_dot = d->format == RONDO_TEXT_DOT;
    if (node == NULL) {
        rondo__text_append(&d->name, "n");
        return rondo__text_get_status(&d->name);
    }
    if (!is_dot && level->branch > 0) {
        rondo__text_append(&d->text, ", ");
    }
    if (level->recorded == NULL) {
        rondo__text_append(&d->text, "%s", is_dot ? "" : "null");
        return RONDO_STATUS_OK;
    }
    rondo__text_append(&d->name, "%zu_", node->index);
    if (node->info.kind == RONDO__NODE_CONDITIONAL) {
        rondo__text_append(&d->name, "%" PRIu32 "_", level->branch);
    }
    RETURN_IF_ERROR(rondo__text_get_status(&d->name));
    if (is_dot) {
        int length = (int)d->name.length - 1;
        rondo__text_append(&d->text,
                           "  subgraph cluster_%.*s {\n  label=\"inside %.*s\"; style=rounded;\n",
                           length, d->name.bytes, length, d->name.bytes);
    } else {
        rondo__text_append(&d->text, "{\"nodes\": [");
    }
    return RONDO_STATUS_OK;
}

static rondo_status append_edges(dump *d, rondo__template *recorded) {
    rondo__edge_table table;
    RETURN_IF_ERROR(rondo__edge_table_init(recorded, &table));
    if (d->format == RONDO_TEXT_JSON) {
        rondo__text_append(&d->text, "\n  ],\n  \"edges\": [");
    }
    for (size_t i = 0; i < table.count; ++i) {
        const rondo__edge *edge = &table.edges[i];
        bool is_programmatic = edge->kind != 0;
        if (d->format == RONDO_TEXT_DOT) {
            rondo__text_append(&d->text, "  %s%zu -> %s%zu%s;\n", d->name.bytes, edge->from,
                               d->name.bytes, edge->to,
                               is_programmatic ? " [style=dashed, label=\"programmatic\"]" : "");
        } else {
            rondo__text_append(&d->text, "%s[%zu, %zu%s]", i > 0 ? ", " : "", edge->from, edge->to,
                               is_programmatic ? ", \"programmatic\"" : "");
        }
        flush(d, FLUSH_BYTES);
    }
    rondo__edge_table_deinit(&table);
    if (d->format == RONDO_TEXT_JSON) {
        rondo__text_append(&d->text, "]");
    }
    return RONDO_STATUS_OK;
}

// Takes the level's own part off the name.
static void shorten_name(rondo__text *name, const rondo__template_level *level) {
    int length = snprintf(NULL, 0, "%zu_", level->node->index);
    if (level->node->info.kind == RONDO__NODE_CONDITIONAL) {
        length += snprintf(NULL, 0, "%" PRIu32 "_", level->branch);
    }
    name->length -= (size_t)length;
    name->bytes[name->length] = '\0';
}

static rondo_status leave_level(void *user_data, const rondo__template_level *level) {
    dump *d = user_data;
    if (level->recorded == NULL || d->is_stopped) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(append_edges(d, level->recorded));
    if (level->node != NULL) {
        rondo__text_append(&d->text, d->format == RONDO_TEXT_DOT ? "  }\n" : "}");
        shorten_name(&d->name, level);
    }
    return RONDO_STATUS_OK;
}

// ---- the whole --------------------------------------------------------------------------------

static void append_head(dump *d, const rondo_graph *graph, const rondo_graph_stats *stats) {
    rondo__text *text = &d->text;
    if (d->format == RONDO_TEXT_DOT) {
        rondo__text_append(text, "digraph \"");
        append_dot_text(text, graph->label);
        rondo__text_append(text, "\" {\n  label=\"");
        append_dot_text(text, graph->label);
        rondo__text_append(text,
                           " on %s: %" PRIu64 " nodes, %" PRIu64 " kernels, %" PRIu64
                           " copies; replayed %" PRIu64
                           " times\";\n"
                           "  node [shape=box, fontname=\"monospace\"];\n",
                           graph->device->name, stats->node_count, stats->kernel_count,
                           stats->copy_count, stats->replay_count);
        return;
    }
    rondo__text_append(text, "{\n  \"label\": ");
    rondo__text_append_json(text, graph->label);
    rondo__text_append(text, ",\n  \"device\": ");
    rondo__text_append_json(text, graph->device->name);
    rondo__text_append(
        text,
        ",\n  \"stats\": {\"nodes\": %" PRIu64 ", \"kernels\": %" PRIu64 ", \"copies\": %" PRIu64
        ", \"replays\": %" PRIu64 ", \"capture_ns\": %" PRIu64 ", \"instantiate_ns\": %" PRIu64
        ", \"device_bytes\": %" PRIu64 "},\n  \"nodes\": [",
        stats->node_count, stats->kernel_count, stats->copy_count, stats->replay_count,
        stats->capture_ns, stats->instantiate_ns, stats->device_bytes);
}

rondo_status rondo_graph_dump(rondo_graph *graph, rondo_text_format format,
                              rondo_write_function write, void *user_data) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    if (write == NULL) {
        return rondo__check_fail_null(__func__, "write");
    }
    if (format != RONDO_TEXT_DOT && format != RONDO_TEXT_JSON) {
        return RONDO_FAIL(INVALID, "%d is not a dump format", (int)format);
    }
    static const rondo__template_visitor visitor = {.enter_level = enter_level,
                                                    .enter_node = enter_node,
                                                    .leave_node = leave_node,
                                                    .leave_level = leave_level};
    dump d = {.format = format,
              .write = write,
              .user_data = user_data,
              .labels = rondo__graph_get_participants(graph)};
    rondo_graph_stats stats = {.struct_size = sizeof stats};
    RETURN_IF_ERROR(rondo_graph_get_stats(graph, &stats));
    append_head(&d, graph, &stats);
    rondo_status status = rondo__template_visit(graph->recorded, &visitor, &d);
    rondo__text_append(&d.text, format == RONDO_TEXT_DOT ? "}\n" : "\n}\n");
    if (status == RONDO_STATUS_OK) {
        status = rondo__text_get_status(&d.text);
    }
    if (status == RONDO_STATUS_OK) {
        flush(&d, 0);
    }
    rondo__text_deinit(&d.name);
    rondo__text_deinit(&d.text);
    return status;
}
