// capture/label_set.c — what a capture keeps of label scopes: points while it lasts, then the label
// of each node.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/logging.h"
#include "base/memory.h"
#include "capture/label.h"
#include "capture/marks.h"

// CUDA counts the nodes of a graph one by one, so they are counted only while there are few.
enum { COUNTED_NODES_MAX = 1024 };

// A graph inside a node that has labels of its own.
typedef struct label_inner {
    rondo__node_handle node;  // until resolved
    size_t index;             // of the node; SIZE_MAX: not found, or not resolved
    uint32_t branch;
    bool is_child;            // a recorded graph; otherwise a body
    rondo__label_part *part;  // a body's: of the same set; a child's: of the graph it came from
    uint64_t shape;           // a child's: of the template it came from
} label_inner;

struct rondo__label_part {
    // Until resolved.
    uint64_t capture_id;
    uint32_t origin_number;  // of the stream that it began on
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
    label_inner *inner;  // once resolved, by index and branch
    size_t inner_count;
    size_t inner_capacity;
    size_t *segment_of_node;  // NULL: not resolved, or no node has a label
    size_t labelled_count;
};

// The participant: all parts of a capture, the outermost first.
typedef struct label_set {
    rondo__participant head;
    pthread_mutex_t lock;  // streams of one capture may be used by several threads
    rondo__label_part **parts;
    size_t part_count;
    size_t part_capacity;
} label_set;

// ---- life -------------------------------------------------------------------------------------

// A segment's path was allocated here; the segments do not write to it.
static void free_path(const char *path) {
    union {
        const char *read_only;
        void *address;
    } allocated = {.read_only = path};
    rondo__free(allocated.address);
}

static void destroy_part(rondo__label_part *part) {
    for (size_t i = 0; i < part->segment_count; ++i) {
        free_path(part->segments[i].path);
    }
    rondo__free(part->segments);
    rondo__free(part->nodes);
    rondo__free(part->latest);
    rondo__free(part->inner);
    rondo__free(part->segment_of_node);
    rondo__free(part);
}

static void destroy_labels(rondo__participant *participant) {
    label_set *set = (label_set *)participant;
    for (size_t i = 0; i < set->part_count; ++i) {
        destroy_part(set->parts[i]);
    }
    rondo__free(set->parts);
    pthread_mutex_destroy(&set->lock);
    rondo__free(set);
}

static rondo_status add_part(label_set *set, uint64_t capture_id, uint32_t origin_number,
                             rondo__label_part **out_part) {
    void *parts = set->parts;
    rondo_status status = rondo__array_reserve(&parts, &set->part_capacity, set->part_count + 1,
                                               sizeof(rondo__label_part *));
    set->parts = parts;
    RETURN_IF_ERROR(status);
    rondo__label_part *part = rondo__calloc(1, sizeof *part);
    if (part == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    part->capture_id = capture_id;
    part->origin_number = origin_number;
    set->parts[set->part_count++] = part;
    *out_part = part;
    return RONDO_STATUS_OK;
}

static rondo_status finish_labels(rondo__participant *participant, rondo__capture *capture);
static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body);

static const rondo__participant_type g_label_type = {
    .name = "labels", .finish = finish_labels, .leave_body = leave_body, .destroy = destroy_labels};

static label_set *find_set(rondo__capture *capture) {
    return (label_set *)rondo__capture_find_participant(capture, &g_label_type, &g_label_type);
}

static rondo_status get_set(rondo__capture *capture, label_set **out_set) {
    *out_set = find_set(capture);
    if (*out_set != NULL) {
        return RONDO_STATUS_OK;
    }
    label_set *set = rondo__calloc(1, sizeof *set);
    if (set == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo__label_part *root;
    uint32_t origin_number = capture->origin != NULL ? capture->origin->number : 0;
    rondo_status status = add_part(set, capture->id, origin_number, &root);
    if (status != RONDO_STATUS_OK) {
        rondo__free(set->parts);
        rondo__free(set);
        return status;
    }
    set->head.type = &g_label_type;
    set->head.key = &g_label_type;
    pthread_mutex_init(&set->lock, NULL);
    rondo__capture_add_participant(capture, &set->head);
    // The first one counts, where another thread has added one meanwhile.
    *out_set = find_set(capture);
    return RONDO_STATUS_OK;
}

// ---- parts ------------------------------------------------------------------------------------

static rondo_status add_inner(rondo__label_part *part, const label_inner *inner) {
    void *array = part->inner;
    rondo_status status = rondo__array_reserve(&array, &part->inner_capacity, part->inner_count + 1,
                                               sizeof *part->inner);
    part->inner = array;
    RETURN_IF_ERROR(status);
    part->inner[part->inner_count++] = *inner;
    return RONDO_STATUS_OK;
}

// Those of the body that is being recorded are the latest.
static rondo__label_part *find_part(const label_set *set, uint64_t id) {
    size_t i = set->part_count;
    while (i > 0 && set->parts[i - 1]->capture_id != id) {
        --i;
    }
    return i > 0 ? set->parts[i - 1] : NULL;
}

// The part of the capture, or of the body, with this id; makes it, and those around it. The caller
// holds the set's lock.
static rondo_status get_part(label_set *set, rondo__capture *capture, uint64_t id,
                             rondo__label_part **out_part) {
    *out_part = find_part(set, id);
    if (*out_part != NULL) {
        return RONDO_STATUS_OK;
    }
    const rondo__capture_body *body = rondo__capture_find_body(capture, id);
    if (body == NULL) {
        return RONDO_FAIL(INTERNAL, "a stream records a body that its capture does not know");
    }
    rondo__label_part *around;
    RETURN_IF_ERROR(get_part(set, capture, body->parent_id, &around));
    rondo__label_part *part;
    RETURN_IF_ERROR(add_part(set, id, body->stream_number, &part));
    const label_inner inner = {
        .node = body->node, .index = SIZE_MAX, .branch = body->branch, .part = part};
    RETURN_IF_ERROR(add_inner(around, &inner));
    *out_part = part;
    return RONDO_STATUS_OK;
}

// ---- points -----------------------------------------------------------------------------------

// The handles that the stream's next node will depend on, at the end of part->nodes.
static rondo_status append_frontier(rondo__label_part *part, rondo_stream *stream,
                                    size_t *out_count) {
    size_t room = 4;
    size_t count = 0;
    for (;;) {
        void *nodes = part->nodes;
        rondo_status status = rondo__array_reserve(&nodes, &part->node_capacity,
                                                   part->node_count + room, sizeof *part->nodes);
        part->nodes = nodes;
        RETURN_IF_ERROR(status);
        RETURN_IF_ERROR(stream->device->backend->get_frontier(
            stream, part->nodes + part->node_count, room, &count));
        if (count <= room) {
            *out_count = count;
            return RONDO_STATUS_OK;
        }
        room = count;
    }
}

// Ends the stream's present segment here; its path was open in it.
static rondo_status add_point(rondo__label_part *part, rondo_stream *stream) {
    size_t slot = 0;
    while (slot < part->latest_count &&
           part->segments[part->latest[slot]].stream_number != stream->number) {
        ++slot;
    }
    rondo__label_segment segment = {
        .stream_number = stream->number,
        .previous = slot < part->latest_count ? part->latest[slot] : SIZE_MAX,
        .is_open = slot == part->latest_count && stream->number != part->origin_number,
        .first_node = part->node_count,
        .recorded_count = SIZE_MAX,
        .prefix = SIZE_MAX,
    };
    void *latest = part->latest;
    rondo_status status = rondo__array_reserve(&latest, &part->latest_capacity,
                                               part->latest_count + 1, sizeof *part->latest);
    part->latest = latest;
    RETURN_IF_ERROR(status);
    void *segments = part->segments;
    status = rondo__array_reserve(&segments, &part->segment_capacity, part->segment_count + 1,
                                  sizeof *part->segments);
    part->segments = segments;
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(append_frontier(part, stream, &segment.node_count));
    if (part->counted_nodes <= COUNTED_NODES_MAX) {
        RETURN_IF_ERROR(stream->device->backend->count_recorded(stream, &segment.recorded_count));
        part->counted_nodes = segment.recorded_count;
    }
    segment.path = rondo__strdup(rondo__label_get_own_path(stream));
    if (segment.path == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    part->node_count += segment.node_count;
    if (slot == part->latest_count) {
        ++part->latest_count;
    }
    part->latest[slot] = part->segment_count;
    part->segments[part->segment_count++] = segment;
    return RONDO_STATUS_OK;
}

static rondo_status finish_labels(rondo__participant *participant, rondo__capture *capture) {
    label_set *set = (label_set *)participant;
    pthread_mutex_lock(&set->lock);
    rondo_status status = add_point(set->parts[0], capture->origin);
    pthread_mutex_unlock(&set->lock);
    return status;
}

static rondo_status leave_body(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body) {
    label_set *set = (label_set *)participant;
    rondo__capture_state state;
    uint64_t id = 0;
    RETURN_IF_ERROR(capture->device->backend->get_capture_id(body, &state, &id));
    pthread_mutex_lock(&set->lock);
    rondo__label_part *part = find_part(set, id);
    rondo_status status = part != NULL ? add_point(part, body) : RONDO_STATUS_OK;
    pthread_mutex_unlock(&set->lock);
    return status;
}

rondo_status rondo__label_begin(rondo__capture *capture) {
    label_set *set = NULL;
    return rondo__label_get_depth(capture->origin) > 0 ? get_set(capture, &set) : RONDO_STATUS_OK;
}

static rondo_status add_point_at(rondo__capture *capture, uint64_t id, rondo_stream *stream) {
    label_set *set = NULL;
    RETURN_IF_ERROR(get_set(capture, &set));
    rondo__label_part *part;
    pthread_mutex_lock(&set->lock);
    rondo_status status = get_part(set, capture, id, &part);
    if (status == RONDO_STATUS_OK) {
        status = add_point(part, stream);
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

rondo_status rondo__label_note_change(rondo_stream *stream, const char *call) {
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

rondo_status rondo__label_enter_body(rondo__capture *capture, uint64_t id, rondo_stream *body) {
    // What is open outside stands on the conditional node.
    if (rondo__label_get_own_path(body)[0] == '\0') {
        return RONDO_STATUS_OK;
    }
    label_set *set = NULL;
    RETURN_IF_ERROR(get_set(capture, &set));
    rondo__label_part *part;
    pthread_mutex_lock(&set->lock);
    rondo_status status = get_part(set, capture, id, &part);
    pthread_mutex_unlock(&set->lock);
    return status;
}

// ---- recorded graphs --------------------------------------------------------------------------

static label_set *find_set_of(const rondo__participant *participants) {
    union {
        const rondo__participant *read_only;
        label_set *set;
    } found = {.read_only = participants};
    while (found.read_only != NULL && found.read_only->type != &g_label_type) {
        found.read_only = found.read_only->next;
    }
    return found.set;
}

rondo_status rondo__label_note_child(rondo__capture *capture, uint64_t id, rondo_stream *stream,
                                     const rondo__participant *participants,
                                     rondo__template *source) {
    const label_set *labels = find_set_of(participants);
    if (labels == NULL) {
        return RONDO_STATUS_OK;
    }
    label_inner inner = {.index = SIZE_MAX, .is_child = true, .part = labels->parts[0]};
    size_t count = 0;
    RETURN_IF_ERROR(rondo__label_get_shape(source, &inner.shape));
    RETURN_IF_ERROR(stream->device->backend->get_frontier(stream, &inner.node, 1, &count));
    label_set *set = NULL;
    RETURN_IF_ERROR(get_set(capture, &set));
    rondo__label_part *part;
    pthread_mutex_lock(&set->lock);
    rondo_status status = get_part(set, capture, id, &part);
    if (status == RONDO_STATUS_OK && count == 1) {
        status = add_inner(part, &inner);
    }
    pthread_mutex_unlock(&set->lock);
    return status;
}

// ---- resolving --------------------------------------------------------------------------------

// A segment's own path behind that of the segment it lies in.
static rondo_status join_prefix(rondo__label_part *part, size_t index) {
    rondo__label_segment *segment = &part->segments[index];
    if (segment->prefix == SIZE_MAX) {
        return RONDO_STATUS_OK;
    }
    // Later segments have their prefix by now: those are what earlier ones lie in.
    const char *prefix = part->segments[segment->prefix].path;
    segment->prefix = SIZE_MAX;
    if (prefix[0] == '\0') {
        return RONDO_STATUS_OK;
    }
    char *joined =
        rondo__strformat("%s%s%s", prefix, segment->path[0] != '\0' ? "/" : "", segment->path);
    if (joined == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    free_path(segment->path);
    segment->path = joined;
    return RONDO_STATUS_OK;
}

static bool has_paths(const rondo__label_part *part) {
    for (size_t i = 0; i < part->segment_count; ++i) {
        if (part->segments[i].path[0] != '\0') {
            return true;
        }
    }
    return false;
}

static rondo_status resolve_nodes(rondo__label_part *part, rondo__template *template_) {
    if (!has_paths(part)) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__label_walk(template_, part->segments, part->segment_count, part->nodes,
                                      &part->segment_of_node, &part->labelled_count));
    for (size_t i = part->segment_count; i-- > 0;) {
        RETURN_IF_ERROR(join_prefix(part, i));
    }
    return RONDO_STATUS_OK;
}

static int compare_inner(const void *a, const void *b) {
    const label_inner *left = a;
    const label_inner *right = b;
    if (left->index != right->index) {
        return left->index < right->index ? -1 : 1;
    }
    return left->branch < right->branch ? -1 : left->branch > right->branch;
}

static rondo_status find_inner_nodes(rondo__label_part *part, rondo__template *template_) {
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__node_handle *handles = rondo__calloc(part->inner_count, sizeof *handles);
    size_t *indices = rondo__calloc(part->inner_count, sizeof *indices);
    if (handles == NULL || indices == NULL) {
        goto free_both;
    }
    for (size_t i = 0; i < part->inner_count; ++i) {
        handles[i] = part->inner[i].node;
    }
    status = rondo__label_find_nodes(template_, handles, part->inner_count, indices);
    for (size_t i = 0; i < part->inner_count && status == RONDO_STATUS_OK; ++i) {
        part->inner[i].index = indices[i];
    }
free_both:
    rondo__free(indices);
    rondo__free(handles);
    return status;
}

// A driver that lists the nodes of a copy in another order must not lead to wrong labels.
static rondo_status check_child(label_inner *inner, rondo__template *template_) {
    rondo__template *child;
    uint64_t shape;
    RETURN_IF_ERROR(template_->device->backend->get_child(template_, inner->index, &child));
    RETURN_IF_ERROR(rondo__label_get_shape(child, &shape));
    if (shape != inner->shape) {
        RONDO_LOG_DEBUG_F(
            "%s: the copy of a recorded graph differs from it, so that nodes in "
            "there have no labels of their own",
            template_->device->name);
        inner->part = NULL;
    }
    return RONDO_STATUS_OK;
}

static rondo_status resolve_part(rondo__label_part *part, rondo__template *template_) {
    RETURN_IF_ERROR(resolve_nodes(part, template_));
    if (part->inner_count > 0) {
        RETURN_IF_ERROR(find_inner_nodes(part, template_));
    }
    for (size_t i = 0; i < part->inner_count; ++i) {
        label_inner *inner = &part->inner[i];
        if (inner->index == SIZE_MAX) {
            continue;
        }
        if (inner->is_child) {
            RETURN_IF_ERROR(check_child(inner, template_));
            continue;
        }
        rondo__template *body;
        RETURN_IF_ERROR(
            template_->device->backend->get_body(template_, inner->index, inner->branch, &body));
        if (body != NULL) {
            RETURN_IF_ERROR(resolve_part(inner->part, body));
        }
    }
    if (part->inner_count > 1) {
        qsort(part->inner, part->inner_count, sizeof *part->inner, compare_inner);
    }
    rondo__free(part->nodes);
    part->nodes = NULL;
    part->node_count = 0;
    part->node_capacity = 0;
    return RONDO_STATUS_OK;
}

rondo_status rondo__label_resolve(rondo__participant *participants, rondo__template *template_) {
    label_set *set = find_set_of(participants);
    return set != NULL ? resolve_part(set->parts[0], template_) : RONDO_STATUS_OK;
}

// ---- after the capture ------------------------------------------------------------------------

const rondo__label_part *rondo__label_get_part(const rondo__participant *participants) {
    const label_set *set = find_set_of(participants);
    return set != NULL ? set->parts[0] : NULL;
}

const rondo__label_part *rondo__label_get_inner(const rondo__label_part *part, size_t index,
                                                uint32_t branch) {
    if (part == NULL || part->inner_count == 0) {
        return NULL;
    }
    const label_inner wanted = {.index = index, .branch = branch};
    const label_inner *found =
        bsearch(&wanted, part->inner, part->inner_count, sizeof wanted, compare_inner);
    return found != NULL ? found->part : NULL;
}

const char *rondo__label_of_node(const rondo__label_part *part, size_t index) {
    if (part == NULL || part->segment_of_node == NULL || index >= part->labelled_count ||
        part->segment_of_node[index] == SIZE_MAX) {
        return "";
    }
    return part->segments[part->segment_of_node[index]].path;
}
