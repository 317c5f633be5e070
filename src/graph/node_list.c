// graph/node_list.c — a template's nodes and edges, for programs.
#include "backend/check.h"
#include "base/memory.h"
#include "graph/graph_internal.h"

_Static_assert((int)RONDO_NODE_KERNEL == (int)RONDO__NODE_KERNEL &&
                   (int)RONDO_NODE_CONDITIONAL == (int)RONDO__NODE_CONDITIONAL &&
                   (int)RONDO_NODE_OTHER == (int)RONDO__NODE_OTHER,
               "the public kinds are the internal ones");

rondo_status rondo_graph_get_node_count(rondo_graph *graph, uint64_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    size_t count = 0;
    RETURN_IF_ERROR(graph->device->backend->count_nodes(graph->recorded, &count));
    *out_count = count;
    return RONDO_STATUS_OK;
}

// Nodes of the graphs inside a node, not counting those further inside.
static rondo_status count_inner(rondo__template *recorded, size_t index,
                                const rondo__node_info *info, size_t *out_count) {
    const rondo__backend *backend = recorded->device->backend;
    *out_count = 0;
    if (info->kind == RONDO__NODE_CHILD) {
        rondo__template *child;
        RETURN_IF_ERROR(backend->get_child(recorded, index, &child));
        return backend->count_nodes(child, out_count);
    }
    for (uint32_t branch = 0; branch < info->branch_count; ++branch) {
        rondo__template *body;
        size_t count = 0;
        RETURN_IF_ERROR(backend->get_body(recorded, index, branch, &body));
        if (body != NULL) {
            RETURN_IF_ERROR(backend->count_nodes(body, &count));
        }
        *out_count += count;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo_graph_get_node(rondo_graph *graph, uint64_t index, rondo_graph_node *out_node) {
    RETURN_IF_ERROR(rondo__check_pointer(out_node, __func__, "out_node"));
    *out_node = (rondo_graph_node){.kind = RONDO_NODE_OTHER, .name = "", .label = ""};
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    const rondo__backend *backend = graph->device->backend;
    rondo__node_info info;
    RETURN_IF_ERROR(backend->describe_node(graph->recorded, (size_t)index, &info));
    size_t inner_count = 0;
    RETURN_IF_ERROR(count_inner(graph->recorded, (size_t)index, &info, &inner_count));
    *out_node = (rondo_graph_node){
        .kind = (rondo_node_kind)info.kind,
        .name = info.name != NULL ? info.name : "",
        .label = rondo__graph_get_node_label(graph, (size_t)index),
        .grid = {info.grid[0], info.grid[1], info.grid[2]},
        .block = {info.block[0], info.block[1], info.block[2]},
        .shared_bytes = info.shared_bytes,
        .copy_kind = info.copy_kind,
        .destination = info.destination,
        .source = info.source,
        .byte_count = info.byte_count,
        .fill_value = info.fill_value,
        .element_bytes = info.element_bytes,
        .width = info.width,
        .height = info.height,
        .depth = info.depth,
        .pitch_bytes = info.pitch_bytes,
        .event = info.event,
        .predicate = info.predicate,
        .branch_count = info.branch_count,
        .inner_count = inner_count,
        .native = info.native,
    };
    return RONDO_STATUS_OK;
}

// ---- edges ------------------------------------------------------------------------------------

void rondo__edge_table_deinit(rondo__edge_table *table) {
    rondo__free(table->pairs);
    rondo__free(table->kinds);
    *table = (rondo__edge_table){0};
}

rondo_status rondo__edge_table_init(rondo__template *recorded, rondo__edge_table *out_table) {
    const rondo__backend *backend = recorded->device->backend;
    *out_table = (rondo__edge_table){0};
    size_t count = 0;
    RETURN_IF_ERROR(backend->list_edges(recorded, NULL, 0, &count));
    rondo__edge_table table = {.pairs = rondo__calloc(count, 2 * sizeof *table.pairs),
                               .kinds = rondo__calloc(count, sizeof *table.kinds)};
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (table.pairs == NULL || table.kinds == NULL) {
        goto deinit;
    }
    status = backend->list_edges(recorded, table.pairs, count, &table.count);
    size_t kind_count = table.count;
    if (status == RONDO_STATUS_OK && backend->list_edge_kinds != NULL) {
        status = backend->list_edge_kinds(recorded, table.kinds, count, &kind_count);
    }
    if (status == RONDO_STATUS_OK && (table.count > count || kind_count != table.count)) {
        status =
            RONDO_FAIL(STATE, "the graph was edited through its raw handle while it was listed");
    }
    if (status == RONDO_STATUS_OK) {
        *out_table = table;
        return status;
    }
deinit:
    rondo__edge_table_deinit(&table);
    return status;
}

rondo_status rondo_graph_list_edges(rondo_graph *graph, rondo_graph_edge *edges, uint64_t capacity,
                                    uint64_t *out_count) {
    RETURN_IF_ERROR(rondo__check_pointer(out_count, __func__, "out_count"));
    *out_count = 0;
    RETURN_IF_ERROR(rondo__graph_check_template(graph, __func__));
    if (capacity > 0) {
        RETURN_IF_ERROR(rondo__check_pointer(edges, __func__, "edges"));
    }
    rondo__edge_table table;
    RETURN_IF_ERROR(rondo__edge_table_init(graph->recorded, &table));
    for (size_t i = 0; i < table.count && i < capacity; ++i) {
        edges[i] = (rondo_graph_edge){.from = table.pairs[2 * i],
                                      .to = table.pairs[2 * i + 1],
                                      .is_programmatic = table.kinds[i] != 0};
    }
    *out_count = table.count;
    rondo__edge_table_deinit(&table);
    return RONDO_STATUS_OK;
}
