// graph/dump.c — a template's nodes and edges as Graphviz DOT or JSON.
//
// Graphs inside nodes are written inside: in DOT as clusters whose nodes are named by the way to
// them (n3_0 is node 0 inside node 3), in JSON as objects with nodes and edges of their own.
#include <inttypes.h>
#include <string.h>

#include "backend/check.h"
#include "base/escape.h"
#include "base/memory.h"
#include "base/text.h"
#include "capture/label.h"
#include "graph/graph_internal.h"

enum { FLUSH_BYTES = 16 * 1024 };

// One dump under way.
typedef struct dump {
    rondo_dump_format format;
    rondo_write_function write;
    void *user_data;
    bool is_stopped;  // the reader wants no more
    rondo__text text;
} dump;

static const char *get_kind_name(rondo__node_kind kind) {
    static const char *const names[] = {
        [RONDO__NODE_KERNEL] = "kernel",
        [RONDO__NODE_HOST] = "host",
        [RONDO__NODE_COPY] = "memcpy",
        [RONDO__NODE_FILL] = "memset",
        [RONDO__NODE_EMPTY] = "empty",
        [RONDO__NODE_EVENT_WAIT] = "event_wait",
        [RONDO__NODE_EVENT_RECORD] = "event_record",
        [RONDO__NODE_CHILD] = "child",
        [RONDO__NODE_CONDITIONAL] = "conditional",
        [RONDO__NODE_OTHER] = "other",
    };
    return names[kind];
}

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

// A graph that is written: the whole one, or one inside a node.
typedef struct level {
    rondo__template *recorded;
    const char *name;               // of its nodes, before their index: "n", "n3_0_"; JSON: unused
    const char *label;              // of the node that it is inside; "" outside
    const rondo__label_part *part;  // the labels of its nodes behind that; NULL: they have none
} level;

static rondo_status dump_level(dump *d, const level *here);

// The graph inside node `index`, or its body `branch`, as part of that node, whose label is given.
static rondo_status dump_inner(dump *d, const level *outer, size_t index, bool is_body,
                               uint32_t branch, rondo__template *inner, const char *label) {
    bool is_dot = d->format == RONDO_DUMP_DOT;
    char *name = is_body ? rondo__strformat("%s%zu_%" PRIu32 "_", outer->name, index, branch)
                         : rondo__strformat("%s%zu_", outer->name, index);
    if (name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (is_dot) {
        int length = (int)strlen(name) - 1;
        rondo__text_append(&d->text,
                           "  subgraph cluster_%.*s {\n  label=\"inside %.*s\"; style=rounded;\n",
                           length, name, length, name);
    } else {
        rondo__text_append(&d->text, "{\"nodes\": [");
    }
    const level here = {.recorded = inner,
                        .name = name,
                        .label = label,
                        .part = rondo__label_get_inner(outer->part, index, branch)};
    rondo_status status = dump_level(d, &here);
    rondo__text_append(&d->text, is_dot ? "  }\n" : "}");
    rondo__free(name);
    return status;
}

// The bodies of a conditional node; an empty one is null in JSON and nothing in DOT.
static rondo_status dump_bodies(dump *d, const level *here, size_t index, uint32_t count,
                                const char *label) {
    rondo__template *recorded = here->recorded;
    bool is_json = d->format == RONDO_DUMP_JSON;
    if (is_json) {
        rondo__text_append(&d->text, ", \"bodies\": [");
    }
    for (uint32_t branch = 0; branch < count; ++branch) {
        if (is_json && branch > 0) {
            rondo__text_append(&d->text, ", ");
        }
        rondo__template *body;
        RETURN_IF_ERROR(recorded->device->backend->get_body(recorded, index, branch, &body));
        if (body != NULL) {
            RETURN_IF_ERROR(dump_inner(d, here, index, true, branch, body, label));
        } else if (is_json) {
            rondo__text_append(&d->text, "null");
        }
    }
    if (is_json) {
        rondo__text_append(&d->text, "]");
    }
    return RONDO_STATUS_OK;
}

// The node's own fields and what is inside.
static rondo_status dump_labelled(dump *d, const level *here, size_t index, const char *label) {
    const rondo__backend *backend = here->recorded->device->backend;
    rondo__node_info info;
    RETURN_IF_ERROR(backend->describe_node(here->recorded, index, &info));
    if (d->format == RONDO_DUMP_DOT) {
        rondo__text_append(&d->text, "  %s%zu [label=\"%zu %s", here->name, index, index,
                           get_kind_name(info.kind));
        append_dot_fields(&d->text, &info);
        if (label[0] != '\0') {
            rondo__text_append(&d->text, "\\nin ");
            append_dot_text(&d->text, label);
        }
        rondo__text_append(&d->text, "\"];\n");
    } else {
        rondo__text_append(&d->text, "%s\n    {\"index\": %zu, \"kind\": \"%s\"",
                           index > 0 ? "," : "", index, get_kind_name(info.kind));
        append_json_fields(&d->text, &info);
        if (label[0] != '\0') {
            rondo__text_append(&d->text, ", \"label\": ");
            rondo__text_append_json(&d->text, label);
        }
    }
    if (info.kind == RONDO__NODE_CHILD) {
        rondo__template *child;
        RETURN_IF_ERROR(backend->get_child(here->recorded, index, &child));
        if (d->format == RONDO_DUMP_JSON) {
            rondo__text_append(&d->text, ", \"graph\": ");
        }
        RETURN_IF_ERROR(dump_inner(d, here, index, false, 0, child, label));
    }
    if (info.kind == RONDO__NODE_CONDITIONAL) {
        RETURN_IF_ERROR(dump_bodies(d, here, index, info.branch_count, label));
    }
    if (d->format == RONDO_DUMP_JSON) {
        rondo__text_append(&d->text, "}");
    }
    return RONDO_STATUS_OK;
}

static rondo_status dump_node(dump *d, const level *here, size_t index) {
    const char *own = rondo__label_of_node(here->part, index);
    if (own[0] == '\0' || here->label[0] == '\0') {
        return dump_labelled(d, here, index, own[0] != '\0' ? own : here->label);
    }
    char *label = rondo__strformat("%s/%s", here->label, own);
    if (label == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = dump_labelled(d, here, index, label);
    rondo__free(label);
    return status;
}

static void append_edges(dump *d, const rondo__edge_table *edges, const char *name) {
    if (d->format == RONDO_DUMP_JSON) {
        rondo__text_append(&d->text, "\n  ],\n  \"edges\": [");
    }
    for (size_t i = 0; i < edges->count; ++i) {
        size_t from = edges->pairs[2 * i];
        size_t to = edges->pairs[2 * i + 1];
        bool is_programmatic = edges->kinds[i] != 0;
        if (d->format == RONDO_DUMP_DOT) {
            rondo__text_append(&d->text, "  %s%zu -> %s%zu%s;\n", name, from, name, to,
                               is_programmatic ? " [style=dashed, label=\"programmatic\"]" : "");
        } else {
            rondo__text_append(&d->text, "%s[%zu, %zu%s]", i > 0 ? ", " : "", from, to,
                               is_programmatic ? ", \"programmatic\"" : "");
        }
        flush(d, FLUSH_BYTES);
    }
    if (d->format == RONDO_DUMP_JSON) {
        rondo__text_append(&d->text, "]");
    }
}

// The nodes and the edges, between the brackets that the caller writes.
static rondo_status dump_level(dump *d, const level *here) {
    size_t node_count = 0;
    RETURN_IF_ERROR(here->recorded->device->backend->count_nodes(here->recorded, &node_count));
    rondo__edge_table edges;
    RETURN_IF_ERROR(rondo__edge_table_init(here->recorded, &edges));
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < node_count && status == RONDO_STATUS_OK && !d->is_stopped; ++i) {
        status = dump_node(d, here, i);
        flush(d, FLUSH_BYTES);
    }
    if (status == RONDO_STATUS_OK) {
        append_edges(d, &edges, here->name);
    }
    rondo__edge_table_deinit(&edges);
    return status;
}

// ---- the whole --------------------------------------------------------------------------------

static void append_head(dump *d, const rondo_graph *graph, const rondo_graph_stats *stats) {
    rondo__text *text = &d->text;
    if (d->format == RONDO_DUMP_DOT) {
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

rondo_status rondo_graph_dump(rondo_graph *graph, rondo_dump_format format,
                              rondo_write_function write, void *user_data) {
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    if (write == NULL) {
        return rondo__check_fail_null(__func__, "write");
    }
    if (format != RONDO_DUMP_DOT && format != RONDO_DUMP_JSON) {
        return RONDO_FAIL(INVALID, "%d is not a dump format", (int)format);
    }
    dump d = {.format = format, .write = write, .user_data = user_data};
    const level whole = {.recorded = graph->recorded,
                         .name = "n",
                         .label = "",
                         .part = rondo__label_get_part(rondo__graph_get_participants(graph))};
    rondo_graph_stats stats;
    RETURN_IF_ERROR(rondo_graph_get_stats(graph, &stats));
    append_head(&d, graph, &stats);
    rondo_status status = dump_level(&d, &whole);
    rondo__text_append(&d.text, format == RONDO_DUMP_DOT ? "}\n" : "\n}\n");
    if (status == RONDO_STATUS_OK) {
        status = rondo__text_get_status(&d.text);
    }
    if (status == RONDO_STATUS_OK) {
        flush(&d, 0);
    }
    rondo__text_deinit(&d.text);
    return status;
}
