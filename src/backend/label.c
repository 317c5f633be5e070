// backend/label.c — label scopes on streams, and the points they leave in captures.
#include "backend/label.h"

#include <stdio.h>
#include <string.h>

#include "backend/blame.h"
#include "backend/check.h"
#include "base/memory.h"
#include "base/nvtx.h"

// CUDA counts the nodes of a graph one by one, so they are counted only while there are few.
enum { COUNTED_NODES_MAX = 1024 };

struct rondo__label_stack {
    char *path;  // of all open scopes
    size_t capacity;
    size_t *lengths;  // of the path before each open scope
    size_t depth;
    size_t depth_capacity;
};

// ---- paths ------------------------------------------------------------------------------------

void rondo__label_stack_destroy(rondo__label_stack *stack) {
    if (stack != NULL) {
        rondo__free(stack->path);
        rondo__free(stack->lengths);
        rondo__free(stack);
    }
}

const char *rondo_label_get_path(const rondo_stream *stream) {
    return stream != NULL && stream->labels != NULL && stream->labels->depth > 0
               ? stream->labels->path
               : "";
}

size_t rondo__label_get_depth(const rondo_stream *stream) {
    return stream->labels != NULL ? stream->labels->depth : 0;
}

static void close_scope(rondo_stream *stream) {
    rondo__label_stack *stack = stream->labels;
    stack->path[stack->lengths[--stack->depth]] = '\0';
    if (rondo__nvtx_is_on()) {
        rondo__nvtx_pop();
    }
}

void rondo__label_close_above(rondo_stream *stream, size_t depth) {
    while (rondo__label_get_depth(stream) > depth) {
        close_scope(stream);
    }
}

// Room for one more scope with this text; nothing is opened yet.
static rondo_status reserve(rondo_stream *stream, size_t text_length) {
    if (stream->labels == NULL) {
        stream->labels = rondo__calloc(1, sizeof *stream->labels);
        if (stream->labels == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
    }
    rondo__label_stack *stack = stream->labels;
    size_t length = strlen(rondo_label_get_path(stream));
    void *path = stack->path;
    rondo_status status =
        rondo__array_reserve(&path, &stack->capacity, length + text_length + 2, 1);
    stack->path = path;
    RETURN_IF_ERROR(status);
    void *lengths = stack->lengths;
    status = rondo__array_reserve(&lengths, &stack->depth_capacity, stack->depth + 1,
                                  sizeof *stack->lengths);
    stack->lengths = lengths;
    return status;
}

static void open_scope(rondo_stream *stream, const char *text, size_t text_length) {
    rondo__label_stack *stack = stream->labels;
    size_t length = stack->depth > 0 ? strlen(stack->path) : 0;
    stack->lengths[stack->depth++] = length;
    if (length > 0) {
        stack->path[length++] = '/';
    }
    memcpy(stack->path + length, text, text_length + 1);
}

// ---- points in captures -----------------------------------------------------------------------

// What a capture with scopes in it keeps.
typedef struct label_set {
    rondo__participant head;
    pthread_mutex_t lock;  // streams of one capture may be used by several threads
    // Until resolved.
    uint64_t capture_id;
    rondo__node_handle *nodes;
    size_t node_count;
    size_t node_capacity;
    size_t counted_nodes;  // of the capture, when they were counted last
    // The latest segment of each stream.
    size_t *latest;
    size_t latest_count;
    size_t latest_capacity;
    // For good.
    rondo__label_segment *segments;
    size_t segment_count;
    size_t segment_capacity;
    size_t *segment_of_node;  // NULL: not resolved
    size_t labelled_count;
} label_set;

static rondo_status finish_labels(rondo__participant *participant, rondo__capture *capture);

static void destroy_labels(rondo__participant *participant) {
    label_set *set = (label_set *)participant;
    for (size_t i = 0; i < set->segment_count; ++i) {
        // The path was allocated here; the segments do not write to it.
        union {
            const char *read_only;
            void *address;
        } path = {.read_only = set->segments[i].path};
        rondo__free(path.address);
    }
    rondo__free(set->segments);
    rondo__free(set->nodes);
    rondo__free(set->latest);
    rondo__free(set->segment_of_node);
    pthread_mutex_destroy(&set->lock);
    rondo__free(set);
}

static const rondo__participant_type g_label_type = {
    .name = "labels", .finish = finish_labels, .destroy = destroy_labels};

static rondo_status get_set(rondo__capture *capture, label_set **out_set) {
    label_set *set =
        (label_set *)rondo__capture_find_participant(capture, &g_label_type, &g_label_type);
    if (set == NULL) {
        set = rondo__calloc(1, sizeof *set);
        if (set == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        set->head.type = &g_label_type;
        set->head.key = &g_label_type;
        set->capture_id = capture->id;
        pthread_mutex_init(&set->lock, NULL);
        rondo__capture_add_participant(capture, &set->head);
    }
    *out_set = set;
    return RONDO_STATUS_OK;
}

// The handles that the stream's next node will depend on, at the end of set->nodes.
static rondo_status append_frontier(label_set *set, rondo_stream *stream, size_t *out_count) {
    size_t room = 4;
    size_t count = 0;
    for (;;) {
        void *nodes = set->nodes;
        rondo_status status = rondo__array_reserve(&nodes, &set->node_capacity,
                                                   set->node_count + room, sizeof *set->nodes);
        set->nodes = nodes;
        RETURN_IF_ERROR(status);
        RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, set->nodes + set->node_count,
                                                              room, &count));
        if (count <= room) {
            *out_count = count;
            return RONDO_STATUS_OK;
        }
        room = count;
    }
}

// Ends the stream's present segment here; `path` was open in it.
static rondo_status add_point(label_set *set, rondo_stream *stream, bool is_origin) {
    size_t slot = 0;
    while (slot < set->latest_count &&
           set->segments[set->latest[slot]].stream_number != stream->number) {
        ++slot;
    }
    rondo__label_segment segment = {
        .stream_number = stream->number,
        .previous = slot < set->latest_count ? set->latest[slot] : SIZE_MAX,
        .is_open = slot == set->latest_count && !is_origin,
        .first_node = set->node_count,
        .recorded_count = SIZE_MAX,
        .prefix = SIZE_MAX,
    };
    void *latest = set->latest;
    rondo_status status = rondo__array_reserve(&latest, &set->latest_capacity,
                                               set->latest_count + 1, sizeof *set->latest);
    set->latest = latest;
    RETURN_IF_ERROR(status);
    void *segments = set->segments;
    status = rondo__array_reserve(&segments, &set->segment_capacity, set->segment_count + 1,
                                  sizeof *set->segments);
    set->segments = segments;
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(append_frontier(set, stream, &segment.node_count));
    if (set->counted_nodes <= COUNTED_NODES_MAX) {
        RETURN_IF_ERROR(stream->device->backend->count_recorded(stream, &segment.recorded_count));
        set->counted_nodes = segment.recorded_count;
    }
    segment.path = rondo__strdup(rondo_label_get_path(stream));
    if (segment.path == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    set->node_count += segment.node_count;
    if (slot == set->latest_count) {
        ++set->latest_count;
    }
    set->latest[slot] = set->segment_count;
    set->segments[set->segment_count++] = segment;
    return RONDO_STATUS_OK;
}

static rondo_status finish_labels(rondo__participant *participant, rondo__capture *capture) {
    label_set *set = (label_set *)participant;
    pthread_mutex_lock(&set->lock);
    rondo_status status = add_point(set, capture->origin, true);
    pthread_mutex_unlock(&set->lock);
    return status;
}

rondo_status rondo__label_begin(rondo__capture *capture) {
    label_set *set = NULL;
    return rondo__label_get_depth(capture->origin) > 0 ? get_set(capture, &set) : RONDO_STATUS_OK;
}

// Before the path of the stream changes.
static rondo_status mark_change(rondo_stream *stream, const char *call) {
    if (atomic_load_explicit(&stream->device->open_capture_count, memory_order_acquire) == 0) {
        return RONDO_STATUS_OK;
    }
    rondo_error saved;
    rondo__error_save(&saved);
    rondo__capture *capture = NULL;
    uint64_t id = 0;
    rondo_status status = rondo__capture_find(stream, &capture, &id);
    if (status != RONDO_STATUS_OK) {
        // Broken, or the driver does not answer: labels do not matter any more, but the place does.
        rondo__blame_notice(stream, call);
        rondo__error_restore(&saved);
        return RONDO_STATUS_OK;
    }
    if (capture == NULL || id != capture->id) {
        return RONDO_STATUS_OK;  // no capture of a graph, or a conditional body
    }
    label_set *set = NULL;
    RETURN_IF_ERROR(get_set(capture, &set));
    rondo__marks_begin(stream, id);
    rondo__marks_take(stream);
    pthread_mutex_lock(&set->lock);
    status = add_point(set, stream, capture->origin == stream);
    pthread_mutex_unlock(&set->lock);
    return status;
}

// ---- the public calls -------------------------------------------------------------------------

rondo_status rondo_label_push(rondo_stream *stream, const char *text) {
    RETURN_IF_ERROR(rondo__check_stream(stream, __func__));
    RETURN_IF_ERROR(rondo__check_pointer(text, __func__, "text"));
    size_t length = strlen(text);
    if (length == 0) {
        return RONDO_FAIL(INVALID, "a label has at least one character");
    }
    RETURN_IF_ERROR(reserve(stream, length));
    RETURN_IF_ERROR(mark_change(stream, __func__));
    open_scope(stream, text, length);
    if (rondo__nvtx_is_on()) {
        rondo__nvtx_push(text);
    }
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
    RETURN_IF_ERROR(mark_change(stream, __func__));
    close_scope(stream);
    return RONDO_STATUS_OK;
}

// ---- after the capture ------------------------------------------------------------------------

static label_set *find_set(const rondo__participant *participants) {
    union {
        const rondo__participant *read_only;
        label_set *set;
    } found = {.read_only = participants};
    while (found.read_only != NULL && found.read_only->type != &g_label_type) {
        found.read_only = found.read_only->next;
    }
    return found.set;
}

// A segment's own path behind that of the segment it lies in.
static rondo_status join_prefix(label_set *set, size_t index) {
    rondo__label_segment *segment = &set->segments[index];
    if (segment->prefix == SIZE_MAX) {
        return RONDO_STATUS_OK;
    }
    // Later segments have their prefix by now: those are what earlier ones lie in.
    const char *prefix = set->segments[segment->prefix].path;
    segment->prefix = SIZE_MAX;
    if (prefix[0] == '\0') {
        return RONDO_STATUS_OK;
    }
    char *joined =
        rondo__strformat("%s%s%s", prefix, segment->path[0] != '\0' ? "/" : "", segment->path);
    if (joined == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    union {
        const char *read_only;
        void *address;
    } former = {.read_only = segment->path};
    rondo__free(former.address);
    segment->path = joined;
    return RONDO_STATUS_OK;
}

rondo_status rondo__label_resolve(rondo__participant *participants, rondo__template *template_) {
    label_set *set = find_set(participants);
    if (set == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__label_walk(template_, set->segments, set->segment_count, set->nodes,
                                      &set->segment_of_node, &set->labelled_count));
    for (size_t i = set->segment_count; i-- > 0;) {
        RETURN_IF_ERROR(join_prefix(set, i));
    }
    rondo__free(set->nodes);
    set->nodes = NULL;
    set->node_count = 0;
    set->node_capacity = 0;
    return RONDO_STATUS_OK;
}

const char *rondo__label_of_node(const rondo__participant *participants, size_t index) {
    const label_set *set = find_set(participants);
    if (set == NULL || set->segment_of_node == NULL || index >= set->labelled_count ||
        set->segment_of_node[index] == SIZE_MAX) {
        return "";
    }
    return set->segments[set->segment_of_node[index]].path;
}
