// graph/label/label.c — label scopes in captures: the points that are noted while it records.
// SPDX-License-Identifier: Apache-2.0

#include "graph/label/label.h"

#include <string.h>

#include "backend/check.h"
#include "base/memory.h"
#include "capture/label_stack.h"
#include "capture/marks.h"
#include "graph/label/label_set.h"
#include "graph/template.h"

// CUDA counts the nodes of a graph one by one, so they are counted only while there are few.
enum { COUNTED_NODES_MAX = 1024 };

// ---- the set ----------------------------------------------------------------------------------

void rondo__label_free_points(rondo__label_set *set) {
    for (size_t i = 0; i < set->segment_count; ++i) {
        rondo__free(set->segments[i].path);
    }
    rondo__free(set->segments);
    rondo__free(set->nodes);
    rondo__free(set->children);
    set->segments = NULL;
    set->nodes = NULL;
    set->children = NULL;
    set->segment_count = 0;
}

static void destroy_set(rondo__participant *participant) {
    rondo__label_set *set = (rondo__label_set *)participant;
    rondo__label_free_points(set);
    for (size_t i = 0; i < set->path_count; ++i) {
        rondo__free(set->paths[i]);
    }
    rondo__free(set->paths);
    rondo__free(set->path_of_id);
    rondo__free(set->place_of_id);
    rondo__free(set->id_of_index);
    pthread_mutex_destroy(&set->lock);
    rondo__free(set);
}

static rondo_status finish(rondo__participant *participant, rondo__capture *capture);
static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body);

static const rondo__participant_type label_type = {
    .name = "labels", .finish = finish, .leave_body = leave_body, .destroy = destroy_set};

rondo__label_set *rondo__label_find_set(const rondo__participant *participants) {
    union {
        const rondo__participant *read_only;
        rondo__label_set *set;
    } found = {.read_only = participants};
    while (found.read_only != NULL && found.read_only->type != &label_type) {
        found.read_only = found.read_only->next;
    }
    return found.set;
}

rondo__label_set *rondo__label_create_set(void) {
    rondo__label_set *set = rondo__calloc(1, sizeof *set);
    if (set != NULL) {
        set->head.type = &label_type;
        set->head.key = &label_type;
        pthread_mutex_init(&set->lock, NULL);
    }
    return set;
}

// The capture's set, with its lock held; adds one where there is none.
static rondo_status lock_set(rondo__capture *capture, rondo__label_set **out_set) {
    rondo__participant *found = rondo__capture_find_participant(capture, &label_type, &label_type);
    if (found == NULL) {
        rondo__label_set *set = rondo__label_create_set();
        if (set == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        set->origin_number = capture->origin != NULL ? capture->origin->number : 0;
        rondo__capture_add_participant(capture, &set->head);
        // The first one counts, where another thread has added one meanwhile.
        found = rondo__capture_find_participant(capture, &label_type, &label_type);
    }
    *out_set = (rondo__label_set *)found;
    pthread_mutex_lock(&(*out_set)->lock);
    return RONDO_STATUS_OK;
}

rondo_status rondo__label_join(rondo__capture *capture) {
    rondo__label_set *set = NULL;
    if (rondo__label_get_depth(capture->origin) > 0) {
        RETURN_IF_ERROR(lock_set(capture, &set));
        pthread_mutex_unlock(&set->lock);
    }
    return RONDO_STATUS_OK;
}

// ---- points -----------------------------------------------------------------------------------

// The handles that the stream's next node will depend on, at the end of set->nodes.
static rondo_status append_frontier(rondo__label_set *set, rondo_stream *stream,
                                    size_t *out_count) {
    for (size_t room = 4;; room = *out_count) {
        rondo_status status =
            RONDO__ARRAY_RESERVE(set->nodes, set->node_capacity, set->node_count + room);
        RETURN_IF_ERROR(status);
        RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, set->nodes + set->node_count,
                                                              room, out_count));
        if (*out_count <= room) {
            return RONDO_STATUS_OK;
        }
    }
}

// Whether the capture, or the body, with this id began on the stream.
static bool is_origin(const rondo__label_set *set, rondo__capture *capture, uint64_t id,
                      const rondo_stream *stream) {
    const rondo__capture_body *body = rondo__capture_find_body(capture, id);
    return stream->number == (body != NULL ? body->stream_number : set->origin_number);
}

// Ends the stream's present segment here; its path was open in it.
static rondo_status add_point(rondo__label_set *set, rondo__capture *capture, uint64_t id,
                              rondo_stream *stream) {
    size_t before = set->segment_count;
    size_t last_age = 0;
    while (before > 0 && (set->segments[before - 1].capture_id != id ||
                          set->segments[before - 1].stream_number != stream->number)) {
        --before;
    }
    for (size_t i = set->segment_count; i-- > 0 && last_age == 0;) {
        last_age = set->segments[i].capture_id == id ? set->segments[i].age : 0;
    }
    const char *path = rondo__label_get_own_path(stream);
    rondo__label_segment added = {
        .capture_id = id,
        .stream_number = stream->number,
        .begin = before - 1,  // NONE when it is the first
        .labels_nothing = (before == 0 || path[0] == '\0') && !is_origin(set, capture, id, stream),
        .first_node = set->node_count,
        .age = RONDO__LABEL_NONE,
        .outer = RONDO__LABEL_NONE,
    };
    rondo_status status =
        RONDO__ARRAY_RESERVE(set->segments, set->segment_capacity, set->segment_count + 1);
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(append_frontier(set, stream, &added.node_count));
    if (last_age <= COUNTED_NODES_MAX) {
        RETURN_IF_ERROR(stream->device->backend->count_recorded(stream, &added.age));
    }
    added.path = rondo__strdup(path);
    if (added.path == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    set->node_count += added.node_count;
    set->segments[set->segment_count++] = added;
    return RONDO_STATUS_OK;
}

static rondo_status add_point_at(rondo__capture *capture, uint64_t id, rondo_stream *stream) {
    rondo__label_set *set;
    RETURN_IF_ERROR(lock_set(capture, &set));
    rondo_status status = add_point(set, capture, id, stream);
    pthread_mutex_unlock(&set->lock);
    return status;
}

static rondo_status finish(rondo__participant *participant, rondo__capture *capture) {
    (void)participant;
    return add_point_at(capture, capture->id, capture->origin);
}

static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body) {
    (void)participant;
    rondo__capture_state state;
    uint64_t id = 0;
    RETURN_IF_ERROR(capture->device->backend->get_capture_id(body, &state, &id));
    return add_point_at(capture, id, body);
}

// The path of the stream is about to change, in `call`.
static rondo_status note_change(rondo_stream *stream, const char *call) {
    if (atomic_load_explicit(&stream->device->open_capture_count, memory_order_acquire) == 0) {
        return RONDO_STATUS_OK;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__capture *capture = NULL;
    uint64_t id = 0;
    rondo_status status = rondo__capture_find(stream, &capture, &id);
    if (status != RONDO_STATUS_OK && rondo__blame_notice(stream, call)) {
        // Labels do not matter any more, but the place did.
        rondo__error_restore(&saved);
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(status);
    if (capture == NULL) {
        return RONDO_STATUS_OK;  // no capture of a graph
    }
    rondo__marks_begin(stream, id);
    rondo__marks_take(stream);
    return add_point_at(capture, id, stream);
}

rondo_status rondo__label_note_child(rondo__capture *capture, uint64_t id, rondo_stream *stream,
                                     const rondo__participant *participants,
                                     rondo__template *source) {
    rondo__label_child child = {.capture_id = id, .labels = rondo__label_find_set(participants)};
    rondo__template_hash hash;
    rondo__label_set *set;
    size_t count = 0;
    if (child.labels == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__template_get_hash(source, &hash));
    child.hash = hash.content;
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &child.node, 1, &count));
    RETURN_IF_ERROR(lock_set(capture, &set));
    rondo_status status =
        RONDO__ARRAY_RESERVE(set->children, set->child_capacity, set->child_count + 1);
    if (status == RONDO_STATUS_OK) {
        set->children[set->child_count++] = child;
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

// ---- the public calls -------------------------------------------------------------------------

rondo_status rondo_label_push(rondo_stream *stream, const char *text) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__check_pointer(text, __func__, "text"));
    if (text[0] == '\0') {
        return RONDO_FAIL(INVALID, "a label has at least one character");
    }
    RETURN_IF_ERROR(rondo__label_reserve(stream, strlen(text)));
    RETURN_IF_ERROR(note_change(stream, __func__));
    rondo__label_open(stream, text);
    return RONDO_STATUS_OK;
}

rondo_status rondo_label_pop(rondo_stream *stream) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    if (rondo__label_get_depth(stream) == 0) {
        return RONDO_FAIL(STATE,
                          "no label is open on stream %u: there were more pops than pushes, or a "
                          "capture that failed has closed what was opened inside it",
                          (unsigned)stream->number);
    }
    RETURN_IF_ERROR(note_change(stream, __func__));
    rondo__label_close(stream);
    return RONDO_STATUS_OK;
}
