// graph/dump.c — a template's nodes and edges as Graphviz DOT or JSON.
#include <inttypes.h>

#include "backend/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "graph/graph_internal.h"

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

// ---- JSON -------------------------------------------------------------------------------------

static void append_json_node(rondo__text *text, size_t index, const rondo__node_info *info) {
    rondo__text_append(text, "%s\n    {\"index\": %zu, \"kind\": \"%s\"", index > 0 ? "," : "",
                       index, get_kind_name(info->kind));
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
        rondo__text_append(text,
                           ", \"copy\": \"%s\", \"bytes\": %" PRIu64 ", \"source\": \"0x%" PRIxPTR
                           "\", \"destination\": \"0x%" PRIxPTR "\"",
                           get_copy_name(info->copy_kind), info->byte_count,
                           (uintptr_t)info->source, (uintptr_t)info->destination);
    } else if (info->kind == RONDO__NODE_FILL) {
        rondo__text_append(text,
                           ", \"value\": %" PRIu32 ", \"bytes\": %" PRIu64
                           ", \"destination\": \"0x%" PRIxPTR "\"",
                           info->fill_value, info->byte_count, (uintptr_t)info->destination);
    }
    rondo__text_append(text, "}");
}

static void append_json_edges(rondo__text *text, const size_t *pairs, size_t count) {
    rondo__text_append(text, "\n  ],\n  \"edges\": [");
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append(text, "%s[%zu, %zu]", i > 0 ? ", " : "", pairs[2 * i], pairs[2 * i + 1]);
    }
    rondo__text_append(text, "]\n}\n");
}

// ---- DOT --------------------------------------------------------------------------------------

// Inside a quoted DOT string.
static void append_dot_text(rondo__text *text, const char *string) {
    for (const char *cursor = string; *cursor != '\0'; ++cursor) {
        if (*cursor == '"' || *cursor == '\\') {
            rondo__text_append_bytes(text, "\\", 1);
        }
        if ((unsigned char)*cursor >= 0x20) {
            rondo__text_append_bytes(text, cursor, 1);
        }
    }
}

static void append_dot_node(rondo__text *text, size_t index, const rondo__node_info *info) {
    rondo__text_append(text, "  n%zu [label=\"%zu %s", index, index, get_kind_name(info->kind));
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
        rondo__text_append(text, "\\n%s %" PRIu64 " bytes\\n0x%" PRIxPTR " to 0x%" PRIxPTR,
                           get_copy_name(info->copy_kind), info->byte_count,
                           (uintptr_t)info->source, (uintptr_t)info->destination);
    } else if (info->kind == RONDO__NODE_FILL) {
        rondo__text_append(text, "\\nvalue %" PRIu32 ", %" PRIu64 " bytes\\nat 0x%" PRIxPTR,
                           info->fill_value, info->byte_count, (uintptr_t)info->destination);
    }
    rondo__text_append(text, "\"];\n");
}

static void append_dot_edges(rondo__text *text, const size_t *pairs, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        rondo__text_append(text, "  n%zu -> n%zu;\n", pairs[2 * i], pairs[2 * i + 1]);
    }
    rondo__text_append(text, "}\n");
}

// ---- both -------------------------------------------------------------------------------------

static void append_head(rondo__text *text, rondo_dump_format format, const rondo_graph *graph) {
    if (format == RONDO_DUMP_DOT) {
        rondo__text_append(text, "digraph \"");
        append_dot_text(text, graph->label);
        rondo__text_append(text, "\" {\n  node [shape=box, fontname=\"monospace\"];\n");
    } else {
        rondo__text_append(text, "{\n  \"label\": ");
        rondo__text_append_json(text, graph->label);
        rondo__text_append(text, ",\n  \"device\": ");
        rondo__text_append_json(text, graph->device->name);
        rondo__text_append(text, ",\n  \"nodes\": [");
    }
}

// Hands the text on and empties it; false when the reader wants no more.
static bool flush(rondo__text *text, rondo_write_function write, void *user_data) {
    bool goes_on = text->length == 0 || write(user_data, text->bytes, text->length);
    text->length = 0;
    return goes_on;
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
    const rondo__backend *backend = graph->device->backend;
    size_t node_count = 0;
    size_t edge_count = 0;
    RETURN_IF_ERROR(backend->count_nodes(graph->recorded, &node_count));
    RETURN_IF_ERROR(backend->list_edges(graph->recorded, NULL, 0, &edge_count));

    rondo__text text = {0};
    size_t *pairs = rondo__calloc(edge_count, 2 * sizeof *pairs);
    if (pairs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t listed = 0;
    rondo_status status = backend->list_edges(graph->recorded, pairs, edge_count, &listed);
    if (status != RONDO_STATUS_OK) {
        goto free_pairs;
    }
    listed = listed < edge_count ? listed : edge_count;
    append_head(&text, format, graph);
    for (size_t i = 0; i < node_count; ++i) {
        rondo__node_info info;
        status = backend->describe_node(graph->recorded, i, &info);
        if (status != RONDO_STATUS_OK) {
            goto free_pairs;
        }
        if (format == RONDO_DUMP_DOT) {
            append_dot_node(&text, i, &info);
        } else {
            append_json_node(&text, i, &info);
        }
        // Piece by piece, so that a dump of a large graph needs little memory.
        if (text.length > 16 * 1024 && !text.failed && !flush(&text, write, user_data)) {
            goto free_pairs;
        }
    }
    if (format == RONDO_DUMP_DOT) {
        append_dot_edges(&text, pairs, listed);
    } else {
        append_json_edges(&text, pairs, listed);
    }
    status = rondo__text_get_status(&text);
    if (status == RONDO_STATUS_OK) {
        (void)flush(&text, write, user_data);
    }
free_pairs:
    rondo__text_deinit(&text);
    rondo__free(pairs);
    return status;
}
