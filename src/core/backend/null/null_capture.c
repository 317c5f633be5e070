// backend/null/null_capture.c — captures, templates and executables without anything that runs.
//
// What a capture is, and what its frontiers and branches are, host_capture.c says with a drawing.
// Here a stream and an event hold a position each: the id of a capture, and nodes of it. The
// captures in progress stand in one list; an id that is not in it is that of a capture that has
// ended.
//
// An executable is a template that is shared. One lock guards everything.
// SPDX-License-Identifier: Apache-2.0
#include "backend/null/null_capture.h"

#include <string.h>

#include "backend/cause.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct null_node {
    rondo__node_info info;
    rondo__null_place predecessors;
    void *arguments;
    size_t argument_bytes;
    uint32_t stream_number;  // of the stream that it was recorded on
    bool is_joined;          // the origin's frontier depends on it; known when the capture ends
} null_node;

typedef struct null_template {
    rondo__template head;
    size_t owner_count;  // the graph's, and each executable
    null_node *nodes;    // in an order in which predecessors come first
    size_t count;
    size_t capacity;
} null_template;

typedef struct null_executable {
    rondo__executable head;
    null_template *recorded;  // shared
} null_executable;

typedef struct null_capture {
    struct null_capture *next;
    uint64_t id;
    rondo_stream *origin;
    null_template *recorded;
} null_capture;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static null_capture *captures;  // in progress
static uint64_t last_id;

// ---- positions --------------------------------------------------------------------------------

static rondo__null_place *place_of(rondo_stream *stream) {
    return &((rondo__null_stream *)stream)->place;
}

// The capture in progress that the position is in; NULL: in none.
static null_capture *find_capture(const rondo__null_place *place) {
    null_capture *capture = captures;
    while (capture != NULL && capture->id != place->capture_id) {
        capture = capture->next;
    }
    return capture;
}

static rondo_status fail_not_recording(const rondo_stream *stream, const char *call) {
    return RONDO_FAIL_AS(call, STATE, "stream %u does not record", (unsigned)stream->number);
}

static rondo_status fail_no_node(const char *call, rondo__node_handle node) {
    return RONDO_FAIL_AS(call, INVALID, "the capture has no node %zu", (size_t)node);
}

static rondo_status reserve(rondo__null_place *place, size_t count) {
    rondo_status status = RONDO__ARRAY_RESERVE(place->nodes, place->capacity, count);
    return status;
}

// Adds nodes to those of the position, which moves to the capture `id` when it is in another.
static rondo_status add_nodes(rondo__null_place *place, uint64_t id,
                              const rondo__node_handle *nodes, size_t count) {
    size_t kept = place->capture_id == id ? place->count : 0;
    RETURN_IF_ERROR(reserve(place, kept + count));
    place->capture_id = id;
    place->count = kept;
    for (size_t i = 0; i < count; ++i) {
        size_t at = 0;
        while (at < place->count && place->nodes[at] != nodes[i]) {
            ++at;
        }
        place->nodes[at] = nodes[i];
        place->count += at == place->count;
    }
    return RONDO_STATUS_OK;
}

static size_t copy_nodes(const rondo__null_place *place, rondo__node_handle *nodes,
                         size_t capacity) {
    for (size_t i = 0; i < place->count && i < capacity; ++i) {
        nodes[i] = place->nodes[i];
    }
    return place->count;
}

// ---- recording --------------------------------------------------------------------------------

// Copies the node behind the others. On failure nothing has changed.
static rondo_status append(null_template *recorded, const rondo__node_info *info,
                           const void *arguments, size_t argument_bytes,
                           const rondo__null_place *predecessors) {
    rondo_status status =
        RONDO__ARRAY_RESERVE(recorded->nodes, recorded->capacity, recorded->count + 1);
    RETURN_IF_ERROR(status);
    null_node node = {.info = *info, .argument_bytes = argument_bytes};
    node.arguments = rondo__malloc(argument_bytes);
    if (node.arguments == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (argument_bytes > 0) {
        memcpy(node.arguments, arguments, argument_bytes);
    }
    status = add_nodes(&node.predecessors, 0, predecessors->nodes, predecessors->count);
    if (status != RONDO_STATUS_OK) {
        rondo__free(node.arguments);
        return status;
    }
    recorded->nodes[recorded->count++] = node;
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_record(rondo_stream *stream, const rondo__node_info *info,
                                const void *arguments, size_t argument_bytes) {
    rondo__null_place *place = place_of(stream);
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&lock);
    null_capture *capture = find_capture(place);
    if (capture == NULL) {
        goto unlock;
    }
    status = reserve(place, 1);
    if (status == RONDO_STATUS_OK) {
        status = append(capture->recorded, info, arguments, argument_bytes, place);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__error_set_op(info->name);
        goto unlock;
    }
    size_t index = capture->recorded->count - 1;
    capture->recorded->nodes[index].stream_number = stream->number;
    place->nodes[0] = index;
    place->count = 1;
unlock:
    pthread_mutex_unlock(&lock);
    return status;
}

rondo_status rondo__null_record_event(rondo_event *event, rondo_stream *stream) {
    rondo__null_place *from = place_of(stream);
    rondo__null_place *to = &((rondo__null_event *)event)->place;
    pthread_mutex_lock(&lock);
    bool records = find_capture(from) != NULL;
    rondo_status status = records ? reserve(to, from->count) : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        to->capture_id = records ? from->capture_id : 0;
        to->count = records ? copy_nodes(from, to->nodes, from->count) : 0;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

rondo_status rondo__null_record_from_outside(rondo_event *event, rondo_stream *stream) {
    rondo__capture_state state;
    (void)rondo__null_get_capture_state(stream, &state);
    return state == RONDO__CAPTURE_NONE ? rondo__null_record_event(event, stream)
                                        : rondo__stream_fail_recording(stream);
}

rondo_status rondo__null_wait_event(rondo_stream *stream, rondo_event *event) {
    rondo__null_place *own = place_of(stream);
    const rondo__null_place *other = &((rondo__null_event *)event)->place;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&lock);
    bool records = find_capture(own) != NULL;
    if (records ? own->capture_id != other->capture_id
                : other->capture_id != 0 && find_capture(other) == NULL) {
        status = RONDO_FAIL_AS("rondo_stream_wait_event", STATE,
                               "stream %u cannot wait for an event that is not of its capture",
                               (unsigned)stream->number);
    } else if (other->capture_id != 0) {
        status = add_nodes(own, other->capture_id, other->nodes, other->count);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

rondo_status rondo__null_add_dependencies(rondo_stream *stream, const rondo__node_handle *nodes,
                                          size_t count) {
    rondo__null_place *place = place_of(stream);
    pthread_mutex_lock(&lock);
    const null_capture *capture = find_capture(place);
    rondo_status status = capture != NULL ? RONDO_STATUS_OK : fail_not_recording(stream, __func__);
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = nodes[i] < capture->recorded->count ? add_nodes(place, capture->id, &nodes[i], 1)
                                                     : fail_no_node(__func__, nodes[i]);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// ---- beginning and ending ---------------------------------------------------------------------

rondo_status rondo__null_begin_capture(rondo_stream *stream, rondo_capture_mode mode,
                                       uint64_t *out_id) {
    (void)mode;  // says what is forbidden to others
    rondo__null_place *place = place_of(stream);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    null_capture *capture = rondo__calloc(1, sizeof *capture);
    null_template *recorded = rondo__calloc(1, sizeof *recorded);
    pthread_mutex_lock(&lock);
    if (capture == NULL || recorded == NULL) {
        goto unlock;
    }
    if (find_capture(place) != NULL) {
        status = RONDO_FAIL_AS("rondo_graph_capture_begin", STATE,
                               "stream %u records already; end that capture first",
                               (unsigned)stream->number);
        goto unlock;
    }
    recorded->head.device = stream->device;
    recorded->owner_count = 1;
    *capture =
        (null_capture){.next = captures, .id = ++last_id, .origin = stream, .recorded = recorded};
    captures = capture;
    place->capture_id = capture->id;
    place->count = 0;
    if (out_id != NULL) {
        *out_id = capture->id;
    }
    pthread_mutex_unlock(&lock);
    return RONDO_STATUS_OK;
unlock:
    pthread_mutex_unlock(&lock);
    rondo__free(recorded);
    rondo__free(capture);
    return status;
}

// Takes the capture out of the list. Yields its template.
static null_template *close_capture(null_capture *capture) {
    null_capture **link = &captures;
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    null_template *recorded = capture->recorded;
    rondo__free(capture);
    return recorded;
}

// The caller holds the lock.
static void release(null_template *recorded) {
    if (--recorded->owner_count > 0) {
        return;
    }
    for (size_t i = 0; i < recorded->count; ++i) {
        rondo__free(recorded->nodes[i].predecessors.nodes);
        rondo__free(recorded->nodes[i].arguments);
    }
    rondo__free(recorded->nodes);
    rondo__free(recorded);
}

static void mark_joined(null_template *recorded, const rondo__null_place *nodes) {
    for (size_t i = 0; i < nodes->count; ++i) {
        recorded->nodes[nodes->nodes[i]].is_joined = true;
    }
}

// OK when every branch came back to the origin. Predecessors have smaller indices, so one sweep
// from the back finds all that the origin's frontier depends on, and the end of another branch
// before what that depends on.
static rondo_status check_joined(const null_capture *capture) {
    unsigned origin = capture->origin->number;
    mark_joined(capture->recorded, place_of(capture->origin));
    for (size_t i = capture->recorded->count; i-- > 0;) {
        const null_node *node = &capture->recorded->nodes[i];
        if (!node->is_joined) {
            rondo_status status = RONDO_FAIL_AS(
                "rondo_graph_capture_end", STATE,
                "stream %u was forked from stream %u and not joined: record an event on it and "
                "let stream %u wait for that before the end",
                (unsigned)node->stream_number, origin, origin);
            rondo__cause_set_unjoined(node->stream_number);
            rondo__error_set_op(node->info.name);
            return status;
        }
        mark_joined(capture->recorded, &node->predecessors);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_end_capture(rondo_stream *stream, rondo__template **out_template) {
    static const char call[] = "rondo_graph_capture_end";
    *out_template = NULL;
    rondo_status status = RONDO_STATUS_OK;
    pthread_mutex_lock(&lock);
    null_capture *capture = find_capture(place_of(stream));
    if (capture == NULL) {
        status = fail_not_recording(stream, call);
    } else if (capture->origin != stream) {
        status = RONDO_FAIL_AS(call, STATE,
                               "the capture began on stream %u and ends there, not on stream %u "
                               "that joined it",
                               (unsigned)capture->origin->number, (unsigned)stream->number);
    } else {
        status = check_joined(capture);
        null_template *recorded = close_capture(capture);
        if (status == RONDO_STATUS_OK) {
            *out_template = &recorded->head;
        } else {
            release(recorded);
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void rondo__null_leave(rondo_stream *stream) {
    pthread_mutex_lock(&lock);
    null_capture *capture = find_capture(place_of(stream));
    if (capture != NULL && capture->origin == stream) {
        release(close_capture(capture));
    }
    pthread_mutex_unlock(&lock);
}

// ---- asking a stream that records -------------------------------------------------------------

rondo_status rondo__null_get_position(rondo_stream *stream, rondo__capture_state *out_state,
                                      uint64_t *out_id, rondo__node_handle *nodes, size_t capacity,
                                      size_t *out_count) {
    const rondo__null_place *place = place_of(stream);
    pthread_mutex_lock(&lock);
    bool records = find_capture(place) != NULL;
    *out_state = records ? RONDO__CAPTURE_ACTIVE : RONDO__CAPTURE_NONE;
    *out_id = records ? place->capture_id : 0;
    *out_count = records ? copy_nodes(place, nodes, capacity) : 0;
    pthread_mutex_unlock(&lock);
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_get_capture_id(rondo_stream *stream, rondo__capture_state *out_state,
                                        uint64_t *out_id) {
    size_t count;
    return rondo__null_get_position(stream, out_state, out_id, NULL, 0, &count);
}

rondo_status rondo__null_get_capture_state(rondo_stream *stream, rondo__capture_state *out_state) {
    uint64_t id;
    return rondo__null_get_capture_id(stream, out_state, &id);
}

rondo_status rondo__null_get_frontier(rondo_stream *stream, rondo__node_handle *nodes,
                                      size_t capacity, size_t *out_count) {
    rondo__capture_state state;
    uint64_t id;
    (void)rondo__null_get_position(stream, &state, &id, nodes, capacity, out_count);
    return state == RONDO__CAPTURE_ACTIVE ? RONDO_STATUS_OK : fail_not_recording(stream, __func__);
}

static null_template *find_recorded(rondo_stream *stream, const char *call) {
    const null_capture *capture = find_capture(place_of(stream));
    if (capture == NULL) {
        (void)fail_not_recording(stream, call);
    }
    return capture != NULL ? capture->recorded : NULL;
}

rondo_status rondo__null_count_recorded(rondo_stream *stream, size_t *out_count) {
    pthread_mutex_lock(&lock);
    const null_template *recorded = find_recorded(stream, __func__);
    *out_count = recorded != NULL ? recorded->count : 0;
    pthread_mutex_unlock(&lock);
    return recorded != NULL ? RONDO_STATUS_OK : RONDO_STATUS_STATE;
}

rondo_status rondo__null_describe_recorded(rondo_stream *stream, rondo__node_handle node,
                                           rondo__node_info *out_info) {
    pthread_mutex_lock(&lock);
    null_template *recorded = find_recorded(stream, __func__);
    rondo_status status = recorded != NULL
                              ? rondo__null_describe_node(&recorded->head, node, out_info)
                              : RONDO_STATUS_STATE;
    pthread_mutex_unlock(&lock);
    return status;
}

rondo_status rondo__null_get_predecessors(rondo_stream *stream, rondo__node_handle node,
                                          rondo__node_handle *nodes, size_t capacity,
                                          size_t *out_count) {
    rondo_status status = RONDO_STATUS_OK;
    *out_count = 0;
    pthread_mutex_lock(&lock);
    const null_template *recorded = find_recorded(stream, __func__);
    if (recorded == NULL) {
        status = RONDO_STATUS_STATE;
    } else if (node >= recorded->count) {
        status = fail_no_node(__func__, node);
    } else {
        *out_count = copy_nodes(&recorded->nodes[node].predecessors, nodes, capacity);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

// ---- templates --------------------------------------------------------------------------------

void rondo__null_destroy_template(rondo__template *template_) {
    pthread_mutex_lock(&lock);
    release((null_template *)template_);
    pthread_mutex_unlock(&lock);
}

rondo_status rondo__null_count_nodes(rondo__template *template_, size_t *out_count) {
    *out_count = ((null_template *)template_)->count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_count_kinds(rondo__template *template_,
                                     size_t counts[RONDO__NODE_KIND_COUNT]) {
    const null_template *recorded = (const null_template *)template_;
    for (size_t i = 0; i < recorded->count; ++i) {
        ++counts[recorded->nodes[i].info.kind];
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_describe_node(rondo__template *template_, size_t index,
                                       rondo__node_info *out_info) {
    const null_template *recorded = (const null_template *)template_;
    if (index >= recorded->count) {
        return RONDO_FAIL_AS("rondo_graph_get_node", INVALID,
                             "there is no node %zu, the graph has %zu", index, recorded->count);
    }
    *out_info = recorded->nodes[index].info;
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_list_handles(rondo__template *template_, rondo__node_handle *handles,
                                      size_t count) {
    (void)template_;
    for (size_t i = 0; i < count; ++i) {
        handles[i] = i;
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_list_edges(rondo__template *template_, size_t *out_pairs, size_t capacity,
                                    size_t *out_count) {
    const null_template *recorded = (const null_template *)template_;
    size_t count = 0;
    for (size_t i = 0; i < recorded->count; ++i) {
        const rondo__null_place *predecessors = &recorded->nodes[i].predecessors;
        for (size_t edge = 0; edge < predecessors->count; ++edge, ++count) {
            if (out_pairs != NULL && count < capacity) {
                out_pairs[2 * count] = predecessors->nodes[edge];
                out_pairs[2 * count + 1] = i;
            }
        }
    }
    *out_count = count;
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data) {
    const null_node *node = &((const null_template *)template_)->nodes[index];
    return node->argument_bytes > 0 ? visit(user_data, node->arguments, node->argument_bytes)
                                    : RONDO_STATUS_OK;
}

// ---- executables ------------------------------------------------------------------------------

// The executable becomes one of the template's owners, and no longer one of its former template's.
static void share(null_executable *executable, null_template *recorded) {
    pthread_mutex_lock(&lock);
    ++recorded->owner_count;
    if (executable->recorded != NULL) {
        release(executable->recorded);
    }
    executable->recorded = recorded;
    pthread_mutex_unlock(&lock);
}

rondo_status rondo__null_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable) {
    null_executable *executable = rondo__calloc(1, sizeof *executable);
    if (executable == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    executable->head.device = template_->device;
    share(executable, (null_template *)template_);
    *out_executable = &executable->head;
    return RONDO_STATUS_OK;
}

static bool has_same_shape(const null_template *a, const null_template *b) {
    bool is_same = a->count == b->count;
    for (size_t i = 0; i < a->count && is_same; ++i) {
        const rondo__null_place *from = &a->nodes[i].predecessors;
        const rondo__null_place *to = &b->nodes[i].predecessors;
        is_same = a->nodes[i].info.kind == b->nodes[i].info.kind && from->count == to->count;
        for (size_t edge = 0; is_same && edge < from->count; ++edge) {
            is_same = from->nodes[edge] == to->nodes[edge];
        }
    }
    return is_same;
}

rondo_status rondo__null_update(rondo__executable *executable_, rondo__template *template_,
                                bool *out_was_updated) {
    null_executable *executable = (null_executable *)executable_;
    null_template *recorded = (null_template *)template_;
    *out_was_updated = has_same_shape(executable->recorded, recorded);
    if (*out_was_updated) {
        share(executable, recorded);
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__null_run(rondo__executable *executable, rondo_stream *stream) {
    (void)executable;
    (void)stream;
    return RONDO_STATUS_OK;
}

void rondo__null_destroy_executable(rondo__executable *executable_) {
    null_executable *executable = (null_executable *)executable_;
    rondo__null_destroy_template(&executable->recorded->head);
    rondo__free(executable);
}
