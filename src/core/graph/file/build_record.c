// graph/file/build_record.c — bytes to nodes; see graph_record.h. Each number of the record is
// looked at before it is used: the record may be damaged.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "device/scope_list.h"
#include "graph/file/graph_record.h"
#include "rondo/control.h"
#include "rondo/node.h"

enum { ARGUMENT_BYTES_MAX = 4096, DEPTH_MAX = 16, BRANCHES_MAX = 1024, ALIGNMENT_MAX = 256 };

// What a node of this process has taken.
typedef struct taken_memory {
    unsigned char *begin;  // NULL: it was given back
    uint64_t byte_count;
} taken_memory;

typedef struct building {
    rondo__record *record;
    const rondo__graph_symbols *symbols;
    taken_memory *taken;  // in the order of the record
    size_t taken_count, taken_capacity;
} building;

static rondo_status fail_damaged(building *b) {
    b->record->is_bad = true;
    return RONDO_FAIL_AS("rondo_graph_load", BAD_DATA, "the graph file's nodes are damaged");
}

// ---- addresses --------------------------------------------------------------------------------

// The address of a symbol of that kind; NULL: the record is damaged.
static void *get_symbol(building *b, rondo_symbol_kind kind,
                        const rondo_graph_symbol **out_symbol) {
    const uint64_t number = rondo__record_get(b->record);
    *out_symbol = NULL;
    if (b->record->is_bad || number >= b->symbols->count || b->symbols->list[number].kind != kind) {
        b->record->is_bad = true;
        return NULL;
    }
    *out_symbol = &b->symbols->list[number];
    b->record->is_bad = (*out_symbol)->address == NULL;
    return (*out_symbol)->address;
}

// Of a symbol, or what a node has taken and none has given back; NULL: the record is damaged.
static unsigned char *get_begin(building *b, uint64_t *out_byte_count) {
    const uint64_t number = rondo__record_get(b->record);
    const size_t count = b->symbols->count;
    unsigned char *begin = NULL;
    *out_byte_count = 0;
    if (number < count && b->symbols->list[number].kind == RONDO_SYMBOL_MEMORY) {
        begin = b->symbols->list[number].address;
        *out_byte_count = b->symbols->list[number].byte_count;
    } else if (number >= count && number - count < b->taken_count) {
        begin = b->taken[number - count].begin;
        *out_byte_count = b->taken[number - count].byte_count;
    }
    b->record->is_bad = b->record->is_bad || begin == NULL;
    return b->record->is_bad ? NULL : begin;
}

// Memory of which that many bytes are used.
static void *get_memory(building *b, uint64_t byte_count) {
    uint64_t has_bytes = 0;
    unsigned char *begin = get_begin(b, &has_bytes);
    const uint64_t offset = rondo__record_get_most(b->record, has_bytes);
    if (b->record->is_bad || byte_count > has_bytes - offset) {
        b->record->is_bad = true;
        return NULL;
    }
    return begin + offset;
}

// ---- nodes ------------------------------------------------------------------------------------

// Those that a launch asks for; the others are numbers to compare.
static void get_attributes(building *b, rondo_launch *launch) {
    for (int d = 0; d < 3; ++d) {
        launch->cluster[d] = (uint32_t)rondo__record_get_most(b->record, UINT32_MAX);
    }
    launch->flags = rondo__record_get_most(b->record, 1) != 0 ? RONDO_LAUNCH_COOPERATIVE : 0;
    launch->priority = (int32_t)(int64_t)rondo__record_get(b->record);
    (void)rondo__record_get(b->record);
    (void)rondo__record_get(b->record);
}

// The arguments of a call, with the addresses of this process.
static rondo_status get_arguments(building *b, unsigned char arguments[ARGUMENT_BYTES_MAX],
                                  size_t *out_byte_count) {
    const void *bytes = rondo__record_get_bytes(b->record, out_byte_count);
    if (b->record->is_bad || *out_byte_count > ARGUMENT_BYTES_MAX) {
        return fail_damaged(b);
    }
    memcpy(arguments, bytes, *out_byte_count);
    const size_t address_count = rondo__record_get_count(b->record);
    for (size_t i = 0; i < address_count && !b->record->is_bad; ++i) {
        const uint64_t at = rondo__record_get_most(b->record, ARGUMENT_BYTES_MAX);
        const uintptr_t address = (uintptr_t)get_memory(b, 0);
        if (at + sizeof address > *out_byte_count) {
            return fail_damaged(b);
        }
        memcpy(arguments + at, &address, sizeof address);
    }
    return b->record->is_bad ? fail_damaged(b) : RONDO_STATUS_OK;
}

static rondo_status build_kernel(building *b, rondo_stream *stream, bool overlaps) {
    _Alignas(128) unsigned char arguments[ARGUMENT_BYTES_MAX];
    const rondo_graph_symbol *symbol;
    rondo_launch launch = {.struct_size = sizeof launch, .arguments = arguments};
    launch.function = get_symbol(b, RONDO_SYMBOL_FUNCTION, &symbol);
    for (int d = 0; d < 3; ++d) {
        launch.grid[d] = (uint32_t)rondo__record_get_most(b->record, UINT32_MAX);
        launch.block[d] = (uint32_t)rondo__record_get_most(b->record, UINT32_MAX);
    }
    launch.shared_bytes = (uint32_t)rondo__record_get_most(b->record, UINT32_MAX);
    get_attributes(b, &launch);
    launch.flags |= overlaps ? RONDO_LAUNCH_OVERLAP : 0;
    RETURN_IF_ERROR(get_arguments(b, arguments, &launch.argument_bytes));
    launch.name = symbol->name;
    return rondo_stream_launch(stream, &launch);
}

static rondo_status build_host(building *b, rondo_stream *stream) {
    _Alignas(128) unsigned char arguments[ARGUMENT_BYTES_MAX];
    const rondo_graph_symbol *symbol;
    union {
        void *address;
        rondo_host_function function;
    } target = {.address = get_symbol(b, RONDO_SYMBOL_HOST_FUNCTION, &symbol)};
    size_t byte_count = 0;
    RETURN_IF_ERROR(get_arguments(b, arguments, &byte_count));
    return rondo_stream_call_host(stream, symbol->name, target.function, arguments, byte_count);
}

static rondo_status build_copy(building *b, rondo_stream *stream) {
    const rondo_copy_kind kind =
        (rondo_copy_kind)rondo__record_get_most(b->record, RONDO_COPY_DEVICE_TO_DEVICE);
    const uint64_t byte_count = rondo__record_get_most(b->record, SIZE_MAX);
    const void *source = get_memory(b, byte_count);
    void *destination = get_memory(b, byte_count);
    return b->record->is_bad || byte_count == 0
               ? fail_damaged(b)
               : rondo_stream_copy(stream, destination, source, (size_t)byte_count, kind);
}

static rondo_status build_fill(building *b, rondo_stream *stream) {
    const uint32_t value = (uint32_t)rondo__record_get_most(b->record, UINT32_MAX);
    const uint32_t element_bytes = (uint32_t)rondo__record_get_most(b->record, 4);
    const uint64_t count = rondo__record_get_most(b->record, SIZE_MAX / 4);
    void *destination = get_memory(b, count * element_bytes);
    return b->record->is_bad || count == 0 || element_bytes == 0 || element_bytes == 3
               ? fail_damaged(b)
               : rondo_stream_fill(stream, destination, value, element_bytes, (size_t)count);
}

static rondo_status build_event(building *b, rondo_stream *stream, bool is_record) {
    const rondo_graph_symbol *symbol;
    rondo_event *event = get_symbol(b, RONDO_SYMBOL_EVENT, &symbol);
    if (event == NULL) {
        return fail_damaged(b);
    }
    const rondo_device *device = b->symbols->device;
    const bool fits =
        is_record ? event->device == device : event->device->backend == device->backend;
    if ((event->flags & RONDO_EVENT_EXTERNAL) == 0) {
        return RONDO_FAIL_AS("rondo_graph_load", INVALID,
                             "event %.100s is not external (RONDO_EVENT_EXTERNAL)", symbol->name);
    }
    if (!fits) {
        return RONDO_FAIL_AS("rondo_graph_load", INVALID,
                             "event %.100s is of %s; a graph of %s cannot %s it", symbol->name,
                             event->device->name, device->name, is_record ? "record" : "wait for");
    }
    return is_record ? rondo_event_record(event, stream) : rondo_stream_wait_event(stream, event);
}

static rondo_status take_memory(building *b, rondo_stream *stream) {
    const uint64_t byte_count = rondo__record_get_most(b->record, SIZE_MAX);
    const uint64_t alignment = rondo__record_get_most(b->record, ALIGNMENT_MAX);
    void *begin = NULL;
    if (b->record->is_bad || byte_count == 0 || alignment == 0) {
        return fail_damaged(b);
    }
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(b->taken, b->taken_capacity, b->taken_count + 1));
    RETURN_IF_ERROR(stream->device->backend->take_memory(stream, byte_count, &begin));
    if ((uintptr_t)begin % alignment != 0) {
        return RONDO_FAIL_AS("rondo_graph_load", UNSUPPORTED,
                             "%s gave the graph memory at %p, no multiple of %u bytes as it was "
                             "when the graph was recorded: record it on this device",
                             stream->device->name, begin, (unsigned)alignment);
    }
    b->taken[b->taken_count++] = (taken_memory){begin, byte_count};
    return RONDO_STATUS_OK;
}

static rondo_status give_memory_back(building *b, rondo_stream *stream) {
    const uint64_t number = rondo__record_get(b->record);
    if (b->record->is_bad || number >= b->taken_count || b->taken[number].begin == NULL) {
        return fail_damaged(b);
    }
    RETURN_IF_ERROR(stream->device->backend->give_memory_back(stream, b->taken[number].begin));
    b->taken[number].begin = NULL;
    return RONDO_STATUS_OK;
}

static rondo_status build_memory(building *b, rondo_stream *stream, unsigned depth) {
    const bool takes = rondo__record_get_most(b->record, 1) != 0;
    if (b->record->is_bad || depth > 0 || stream->device->backend->take_memory == NULL) {
        return fail_damaged(b);
    }
    return takes ? take_memory(b, stream) : give_memory_back(b, stream);
}

static rondo_status build_level(building *b, rondo_stream *stream, unsigned depth);

static rondo_status build_child(building *b, rondo_stream *stream, unsigned depth) {
    const rondo_graph_options options = {
        .struct_size = sizeof options, .keep = RONDO_KEEP_TEMPLATE_ONLY, .label = "child"};
    rondo_graph *graph = NULL;
    if (rondo__record_get_most(b->record, 1) != 1) {
        return fail_damaged(b);
    }
    rondo_status status = rondo_graph_create(stream->device, &options, &graph);
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_build_begin(graph);
    }
    if (status == RONDO_STATUS_OK) {
        status = build_level(b, graph->builder, depth + 1);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_capture_end(graph);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_add_graph(stream, graph);
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo_graph_destroy(graph);
    rondo__error_restore(&saved);
    return status;
}

static rondo_status build_body(building *b, rondo_scope scope, uint32_t branch, unsigned depth) {
    rondo_stream *body = NULL;
    RETURN_IF_ERROR(rondo_scope_enter(scope, branch, &body));
    RETURN_IF_ERROR(build_level(b, body, depth + 1));
    return rondo_scope_leave(scope);
}

static rondo_status build_conditional(building *b, rondo_stream *stream, unsigned depth) {
    const rondo_scope_kind kind =
        (rondo_scope_kind)rondo__record_get_most(b->record, RONDO_SCOPE_WHILE);
    const uint32_t branch_count = (uint32_t)rondo__record_get_most(b->record, BRANCHES_MAX);
    const void *predicate = get_memory(b, sizeof(uint32_t));
    const uint32_t expected = kind == RONDO_SCOPE_IF_ELSE ? 2 : 1;
    rondo_scope scope;
    if (b->record->is_bad || branch_count == 0 ||
        (kind != RONDO_SCOPE_SWITCH && branch_count != expected)) {
        return fail_damaged(b);
    }
    RETURN_IF_ERROR(rondo_scope_begin(stream, kind, predicate,
                                      kind == RONDO_SCOPE_SWITCH ? branch_count : 0, &scope));
    rondo_status status = RONDO_STATUS_OK;
    for (uint32_t branch = 0; branch < branch_count && status == RONDO_STATUS_OK; ++branch) {
        if (rondo__record_get_most(b->record, 1) != 0) {
            status = build_body(b, scope, branch, depth);
        }
    }
    if (status == RONDO_STATUS_OK) {
        return b->record->is_bad ? fail_damaged(b) : rondo_scope_end(scope);
    }
    rondo__scope_abandon(scope);
    return status;
}

static rondo_status build_node(building *b, rondo_stream *stream, rondo__node_kind kind,
                               bool overlaps, unsigned depth) {
    switch (kind) {
        case RONDO__NODE_KERNEL:
            return build_kernel(b, stream, overlaps);
        case RONDO__NODE_HOST:
            return build_host(b, stream);
        case RONDO__NODE_COPY:
            return build_copy(b, stream);
        case RONDO__NODE_FILL:
            return build_fill(b, stream);
        case RONDO__NODE_EVENT_RECORD:
        case RONDO__NODE_EVENT_WAIT:
            return build_event(b, stream, kind == RONDO__NODE_EVENT_RECORD);
        case RONDO__NODE_CHILD:
            return build_child(b, stream, depth);
        case RONDO__NODE_CONDITIONAL:
            return build_conditional(b, stream, depth);
        case RONDO__NODE_OTHER:
            return build_memory(b, stream, depth);
        default:
            return fail_damaged(b);
    }
}

// ---- levels -----------------------------------------------------------------------------------

// The nodes of a level so far.
typedef struct level {
    rondo__node_handle *handles;
    rondo__node_handle *before;  // room for what one comes behind
    bool *has_next;
} level;

// Lets the stream come behind what the record says; behind the last node it stands already.
static rondo_status place_node(building *b, rondo_stream *stream, level *l, size_t number) {
    const size_t count = rondo__record_get_count(b->record);
    if (count > number) {
        return fail_damaged(b);
    }
    for (size_t i = 0; i < count; ++i) {
        const uint64_t distance = rondo__record_get_most(b->record, number);
        if (b->record->is_bad || distance == 0) {
            return fail_damaged(b);
        }
        l->before[i] = l->handles[number - distance];
        l->has_next[number - distance] = true;
    }
    const bool is_there = number == 0 || (count == 1 && l->before[0] == l->handles[number - 1]);
    return is_there ? RONDO_STATUS_OK
                    : stream->device->backend->set_frontier(stream, l->before, count);
}

static rondo_status add_node(building *b, rondo_stream *stream, level *l, size_t number,
                             unsigned depth) {
    const rondo__node_kind kind =
        (rondo__node_kind)rondo__record_get_most(b->record, RONDO__NODE_KIND_COUNT - 1);
    const bool overlaps = rondo__record_get_most(b->record, 1) != 0;
    size_t count = 0;
    RETURN_IF_ERROR(place_node(b, stream, l, number));
    RETURN_IF_ERROR(build_node(b, stream, kind, overlaps, depth));
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &l->handles[number], 1, &count));
    return count == 1 ? RONDO_STATUS_OK : fail_damaged(b);
}

// All ends of the level.
static rondo_status join(rondo_stream *stream, level *l, size_t count) {
    size_t end_count = 0;
    for (size_t i = 0; i < count; ++i) {
        if (!l->has_next[i]) {
            l->before[end_count++] = l->handles[i];
        }
    }
    return end_count > 1 ? stream->device->backend->set_frontier(stream, l->before, end_count)
                         : RONDO_STATUS_OK;
}

static rondo_status build_level(building *b, rondo_stream *stream, unsigned depth) {
    const size_t count = rondo__record_get_count(b->record);
    level l = {.handles = rondo__calloc(2 * count + 2, sizeof *l.handles),
               .has_next = rondo__calloc(count + 1, sizeof *l.has_next)};
    rondo_status status =
        l.handles != NULL && l.has_next != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    l.before = l.handles != NULL ? l.handles + count + 1 : NULL;
    if (status == RONDO_STATUS_OK && (b->record->is_bad || depth > DEPTH_MAX)) {
        status = fail_damaged(b);
    }
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = add_node(b, stream, &l, i, depth);
    }
    if (status == RONDO_STATUS_OK) {
        status = join(stream, &l, count);
    }
    rondo__free(l.handles);
    rondo__free(l.has_next);
    return status;
}

rondo_status rondo__graph_record_build(rondo_stream *stream, rondo__record *record,
                                       const rondo__graph_symbols *symbols) {
    building b = {.record = record, .symbols = symbols};
    rondo_status status = build_level(&b, stream, 0);
    bool is_whole = record->at == record->past;
    for (size_t i = 0; i < b.taken_count; ++i) {
        is_whole = is_whole && b.taken[i].begin == NULL;
    }
    if (status == RONDO_STATUS_OK && !is_whole) {
        status = fail_damaged(&b);
    }
    rondo__free(b.taken);
    return status;
}
