// pool/ancestors.c — see ancestors.h.
// SPDX-License-Identifier: Apache-2.0
#include "pool/ancestors.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/stream_tag.h"

enum { STACK_NODES = RONDO__POSITION_NODES };

// Handles that a query of unknown size gave.
typedef struct handle_list {
    rondo__node_handle stack[STACK_NODES];
    rondo__node_handle *handles;
    size_t count;
} handle_list;

static void deinit_handles(handle_list *list) {
    if (list->handles != list->stack) {
        rondo__free(list->handles);
    }
}

typedef rondo_status (*ask_function)(rondo_stream *stream, rondo__node_handle node,
                                     rondo__node_handle *nodes, size_t capacity, size_t *out_count);

static rondo_status ask_frontier(rondo_stream *stream, rondo__node_handle node,
                                 rondo__node_handle *nodes, size_t capacity, size_t *out_count) {
    (void)node;
    return stream->device->backend->get_frontier(stream, nodes, capacity, out_count);
}

static rondo_status ask_predecessors(rondo_stream *stream, rondo__node_handle node,
                                     rondo__node_handle *nodes, size_t capacity,
                                     size_t *out_count) {
    return stream->device->backend->get_predecessors(stream, node, nodes, capacity, out_count);
}

// The caller deinits the list, also after a failure.
static rondo_status ask(ask_function function, rondo_stream *stream, rondo__node_handle node,
                        handle_list *list) {
    list->handles = list->stack;
    list->count = 0;
    size_t capacity = STACK_NODES;
    size_t count = 0;
    RETURN_IF_ERROR(function(stream, node, list->handles, capacity, &count));
    while (count > capacity) {  // more than once if another thread records meanwhile
        deinit_handles(list);
        list->handles = rondo__calloc(count, sizeof *list->handles);
        if (list->handles == NULL) {
            list->handles = list->stack;
            return RONDO_STATUS_NO_MEMORY;
        }
        capacity = count;
        RETURN_IF_ERROR(function(stream, node, list->handles, capacity, &count));
    }
    list->count = count;
    return RONDO_STATUS_OK;
}

// ---- lists ------------------------------------------------------------------------------------

void rondo__section_nodes_deinit(rondo__section_node_list *list) {
    rondo__free(list->entries);
    memset(list, 0, sizeof *list);
}

static rondo_status append(rondo__section_node_list *list, uint64_t section,
                           const rondo__node_handle *nodes, size_t count) {
    rondo_status status = RONDO__ARRAY_RESERVE(list->entries, list->capacity, list->count + count);
    for (size_t i = 0; status == RONDO_STATUS_OK && i < count; ++i) {
        list->entries[list->count++] = (rondo__section_node){.section = section, .node = nodes[i]};
    }
    return status;
}

rondo_status rondo__section_nodes_add_body(rondo__section_node_list *list,
                                           const rondo__capture_body *body) {
    return append(list, body->parent_id, &body->node, 1);
}

// Appends what comes before a body's conditional node; when that is nothing, what comes before the
// next outer body, and so on.
static rondo_status add_entry(rondo__section_node_list *list, rondo__capture *capture,
                              uint64_t section) {
    const rondo__capture_body *body = rondo__capture_find_body(capture, section);
    size_t before = list->count;
    rondo_status status = RONDO_STATUS_OK;
    while (body != NULL && list->count == before && status == RONDO_STATUS_OK) {
        handle_list nodes;
        status = ask(ask_predecessors, body->parent, body->node, &nodes);
        if (status == RONDO_STATUS_OK) {
            status = append(list, body->parent_id, nodes.handles, nodes.count);
        }
        deinit_handles(&nodes);
        body = rondo__capture_find_body(capture, body->parent_id);
    }
    return status;
}

static rondo_status add_frontier(rondo__section_node_list *list, rondo__capture *capture,
                                 rondo_stream *stream, uint64_t section) {
    handle_list nodes;
    rondo_status status = ask(ask_frontier, stream, 0, &nodes);
    if (status == RONDO_STATUS_OK && nodes.count > 0) {
        status = append(list, section, nodes.handles, nodes.count);
    } else if (status == RONDO_STATUS_OK) {
        status = add_entry(list, capture, section);
    }
    deinit_handles(&nodes);
    return status;
}

void rondo__position_ask(rondo__stream_tag *tag, rondo__position *out_position) {
    out_position->section = 0;
    out_position->count = 0;
    if (!rondo__stream_tag_is_finished(tag)) {
        out_position->section = rondo__stream_tag_get_position(
            tag, out_position->nodes, RONDO__POSITION_NODES, &out_position->count);
    }
}

rondo_status rondo__section_nodes_add_position(rondo__section_node_list *list,
                                               rondo__capture *capture, rondo_stream *stream,
                                               const rondo__position *position) {
    if (position->count > RONDO__POSITION_NODES) {
        return add_frontier(list, capture, stream, position->section);
    }
    return position->count > 0 ? append(list, position->section, position->nodes, position->count)
                               : add_entry(list, capture, position->section);
}

// ---- the set ----------------------------------------------------------------------------------

void rondo__ancestors_deinit(rondo__ancestors *ancestors) {
    rondo__free(ancestors->slots);
    rondo__section_nodes_deinit(&ancestors->to_walk);
    memset(ancestors, 0, sizeof *ancestors);
}

static size_t find_slot(const rondo__ancestors *ancestors, rondo__section_node at) {
    uint64_t bits = ((uint64_t)at.node + at.section * UINT64_C(0xD1B54A32D192ED03)) *
                    UINT64_C(0x9E3779B97F4A7C15);
    size_t i = (size_t)(bits >> 20) & (ancestors->capacity - 1);
    while (ancestors->slots[i].section != 0 &&
           (ancestors->slots[i].section != at.section || ancestors->slots[i].node != at.node)) {
        i = (i + 1) & (ancestors->capacity - 1);
    }
    return i;
}

static bool holds(const rondo__ancestors *ancestors, rondo__section_node at) {
    return ancestors->capacity > 0 &&
           ancestors->slots[find_slot(ancestors, at)].section == at.section;
}

static rondo_status insert(rondo__ancestors *ancestors, rondo__section_node at) {
    if (2 * (ancestors->count + 1) > ancestors->capacity) {
        rondo__ancestors grown = {.capacity =
                                      ancestors->capacity > 0 ? 2 * ancestors->capacity : 64};
        grown.slots = rondo__calloc(grown.capacity, sizeof *grown.slots);
        if (grown.slots == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        for (size_t i = 0; i < ancestors->capacity; ++i) {
            if (ancestors->slots[i].section != 0) {
                grown.slots[find_slot(&grown, ancestors->slots[i])] = ancestors->slots[i];
            }
        }
        rondo__free(ancestors->slots);
        ancestors->slots = grown.slots;
        ancestors->capacity = grown.capacity;
    }
    ancestors->slots[find_slot(ancestors, at)] = at;
    ancestors->count += 1;
    return RONDO_STATUS_OK;
}

// Walks from the nodes on the list back to nodes that are known.
static rondo_status walk(rondo__ancestors *ancestors, rondo__capture *capture, rondo_stream *stream,
                         uint64_t section) {
    rondo__section_node_list *list = &ancestors->to_walk;
    while (list->count > 0) {
        rondo__section_node at = list->entries[--list->count];
        if (holds(ancestors, at)) {
            continue;
        }
        RETURN_IF_ERROR(insert(ancestors, at));
        // A node outside the body is asked for on the stream that the body hangs on.
        rondo_stream *teller = stream;
        for (uint64_t s = section; s != at.section;) {
            const rondo__capture_body *body = rondo__capture_find_body(capture, s);
            if (body == NULL) {
                break;
            }
            teller = body->parent;
            s = body->parent_id;
        }
        handle_list nodes;
        rondo_status status = ask(ask_predecessors, teller, at.node, &nodes);
        if (status == RONDO_STATUS_OK && nodes.count > 0) {
            status = append(list, at.section, nodes.handles, nodes.count);
        } else if (status == RONDO_STATUS_OK && at.section != section) {
            status = add_entry(list, capture, at.section);  // the first node of an outer body
        }
        deinit_handles(&nodes);
        RETURN_IF_ERROR(status);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__ancestors_extend(rondo__ancestors *ancestors, rondo__capture *capture,
                                     rondo_stream *stream, uint64_t section) {
    rondo_status status = RONDO_STATUS_OK;
    ancestors->to_walk.count = 0;
    if (!ancestors->has_entered) {
        status = add_entry(&ancestors->to_walk, capture, section);
        ancestors->has_entered = status == RONDO_STATUS_OK;
    }
    if (status == RONDO_STATUS_OK) {
        status = add_frontier(&ancestors->to_walk, capture, stream, section);
    }
    if (status == RONDO_STATUS_OK) {
        status = walk(ancestors, capture, stream, section);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__ancestors_deinit(ancestors);  // later walks must not stop at half walked nodes
    }
    return status;
}

static bool comes_before(const rondo__ancestors *ancestors, rondo__capture *capture,
                         rondo__section_node at) {
    for (;;) {
        if (holds(ancestors, at)) {
            return true;
        }
        const rondo__capture_body *body = rondo__capture_find_body(capture, at.section);
        if (body == NULL) {
            return false;
        }
        at = (rondo__section_node){.section = body->parent_id, .node = body->node};
    }
}

bool rondo__ancestors_hold(const rondo__ancestors *ancestors, rondo__capture *capture,
                           const rondo__section_node *nodes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (!comes_before(ancestors, capture, nodes[i])) {
            return false;
        }
    }
    return true;
}
