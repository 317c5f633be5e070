// graph/label/label_resolve.c — from points to labels: which segment a node lies in, and its whole
// path.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/log/hook.h"
#include "base/log/logging.h"
#include "base/memory.h"
#include "graph/label/label_set.h"
#include "graph/template.h"
#include "rondo/label.h"

#define NONE RONDO__LABEL_NONE

typedef rondo__label_segment segment;

// ---- which segment a node lies in -------------------------------------------------------------

// One level of the template, whose nodes a capture or a body recorded.
typedef struct level {
    rondo__label_set *set;
    uint64_t capture_id;
    size_t first_segment;  // the capture's lie between these two
    size_t segment_end;
    rondo__node_places places;
    rondo__edge_table edges;  // sorted
    bool is_ordered;          // indices follow the order of recording, as far as can be seen
    size_t *owner;            // by index: the segment
    size_t *first_point;  // by index, of the stream that is looked at: the segment that ends there
} level;

// The index of a node at a segment's end.
static size_t get_node(const level *l, const segment *s, size_t i) {
    return l->set->nodes[s->first_node + i];
}

// Makes indices of the handles at the ends of the level's segments.
static void find_nodes(const level *l) {
    for (size_t i = l->first_segment; i < l->segment_end; ++i) {
        const segment *s = &l->set->segments[i];
        for (size_t j = 0; s->capture_id == l->capture_id && j < s->node_count; ++j) {
            rondo__node_handle *node = &l->set->nodes[s->first_node + j];
            *node = rondo__node_places_find(&l->places, *node);
        }
    }
}

// Counts beginnings: 0 is that of the capture.
static size_t get_begin(const segment *s) {
    return s->begin + 1;
}

// The node lies in this segment, too.
static void add_segment(level *l, size_t index, size_t added) {
    segment *segments = l->set->segments;
    size_t inner = l->owner[index];
    size_t outer = added;
    if (inner == NONE || get_begin(&segments[added]) > get_begin(&segments[inner])) {
        outer = inner;
        inner = added;
    }
    l->owner[index] = inner;
    if (outer != NONE && outer > inner &&  // it ended later
        (segments[inner].outer == NONE ||
         get_begin(&segments[outer]) > get_begin(&segments[segments[inner].outer]))) {
        segments[inner].outer = outer;
    }
}

// The index from which on nodes are no older than the segment.
static size_t get_oldest(const level *l, const segment *s) {
    size_t oldest = 0;
    if (s->begin == NONE || !l->is_ordered) {
        return 0;
    }
    const segment *begin = &l->set->segments[s->begin];
    if (begin->age != NONE) {
        return begin->age;
    }
    for (size_t i = 0; i < begin->node_count; ++i) {
        size_t node = get_node(l, begin, i);
        oldest = node != NONE && node >= oldest ? node + 1 : oldest;
    }
    return oldest;
}

// Finds the stream's first point behind each node. Edges are sorted, so that one pass from the last
// one on does; where indices do not follow the order of recording there are more.
static void find_first_points(level *l, uint32_t stream_number) {
    memset(l->first_point, 0xff, l->places.count * sizeof *l->first_point);
    for (size_t i = l->segment_end; i-- > l->first_segment;) {
        const segment *s = &l->set->segments[i];
        bool is_of_stream = s->stream_number == stream_number && s->capture_id == l->capture_id;
        for (size_t j = 0; is_of_stream && j < s->node_count; ++j) {
            size_t node = get_node(l, s, j);
            if (node != NONE) {
                l->first_point[node] = i;
            }
        }
    }
    bool is_done;
    do {
        is_done = true;
        for (size_t i = l->edges.count; i-- > 0;) {
            const rondo__edge *edge = &l->edges.edges[i];
            if (l->first_point[edge->to] < l->first_point[edge->from]) {
                l->first_point[edge->from] = l->first_point[edge->to];
                is_done = l->is_ordered;
            }
        }
    } while (!is_done);
}

// The nodes in the segments of one stream.
static void add_segments(level *l, uint32_t stream_number) {
    size_t latest = NONE;
    size_t oldest = 0;
    find_first_points(l, stream_number);
    for (size_t i = 0; i < l->places.count; ++i) {
        size_t point = l->first_point[i];
        if (point == NONE || l->set->segments[point].labels_nothing) {
            continue;
        }
        if (point != latest) {
            latest = point;
            oldest = get_oldest(l, &l->set->segments[point]);
        }
        if (i >= oldest) {
            add_segment(l, i, point);
        }
    }
}

static bool is_in_order(const level *l) {
    bool is_ordered = true;
    for (size_t i = 0; i < l->edges.count; ++i) {
        is_ordered = is_ordered && l->edges.edges[i].from < l->edges.edges[i].to;
    }
    for (size_t i = l->first_segment; i < l->segment_end; ++i) {
        const segment *s = &l->set->segments[i];
        for (size_t j = 0; s->capture_id == l->capture_id && j < s->node_count; ++j) {
            size_t node = get_node(l, s, j);
            is_ordered = is_ordered && (node == NONE || node < s->age);
        }
    }
    return is_ordered;
}

static void find_owners(level *l) {
    memset(l->owner, 0xff, l->places.count * sizeof *l->owner);
    find_nodes(l);
    rondo__edge_table_sort(&l->edges);
    l->is_ordered = is_in_order(l);
    for (size_t i = l->first_segment; i < l->segment_end; ++i) {
        const segment *s = &l->set->segments[i];
        if (s->capture_id == l->capture_id && s->begin == NONE) {
            add_segments(l, s->stream_number);
        }
    }
}

// ---- paths ------------------------------------------------------------------------------------

// The path `own` behind the path `outer`.
static rondo_status add_path(rondo__label_set *set, size_t outer, const char *own,
                             size_t *out_path) {
    *out_path = outer;
    if (own[0] == '\0' && set->path_count > 0) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = RONDO__ARRAY_RESERVE(set->paths, set->path_capacity, set->path_count + 1);
    RETURN_IF_ERROR(status);
    const char *before = set->path_count > 0 ? set->paths[outer] : "";
    char *text = rondo__strformat("%s%s%s", before, before[0] != '\0' ? "/" : "", own);
    if (text == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    *out_path = set->path_count;
    set->paths[set->path_count++] = text;
    return RONDO_STATUS_OK;
}

// Names the segments of a level whose nodes have the path `base`.
static rondo_status name_segments(const level *l, size_t base) {
    // Those around others ended later.
    for (size_t i = l->segment_end; i-- > l->first_segment;) {
        segment *s = &l->set->segments[i];
        if (s->capture_id == l->capture_id) {
            size_t outer = s->outer != NONE ? l->set->segments[s->outer].path_index : base;
            RETURN_IF_ERROR(add_path(l->set, outer, s->path, &s->path_index));
        }
    }
    return RONDO_STATUS_OK;
}

// ---- levels -----------------------------------------------------------------------------------

// The template whose nodes are labelled, level by level, as the first node of each is met.
typedef struct naming {
    rondo__label_set *set;
    const rondo__capture *capture;
    rondo__node_table table;
    uint64_t *capture_ids;  // by id; 0: labelled by what is around it
} naming;

static void label_ids(naming *n, const level *l, size_t first, size_t base) {
    const rondo__node_key *keys = n->table.keys;
    for (size_t id = first, met = 0; met < l->places.count; ++id) {
        if (keys[id].level == keys[first].level) {
            size_t owner = l->owner[keys[id].index];
            n->set->path_of_id[id] = owner != NONE ? n->set->segments[owner].path_index : base;
            n->capture_ids[id] = l->capture_id;
            ++met;
        }
    }
}

// The nodes that a capture or a body recorded, from the first of them on.
static rondo_status label_recorded(naming *n, size_t first, uint64_t capture_id, size_t base) {
    level l = {.set = n->set, .capture_id = capture_id};
    rondo__template *recorded = n->table.keys[first].level;
    for (size_t i = 0; i < n->set->segment_count; ++i) {
        if (n->set->segments[i].capture_id == capture_id) {
            l.first_segment = l.segment_end == 0 ? i : l.first_segment;
            l.segment_end = i + 1;
        }
    }
    RETURN_IF_ERROR(rondo__node_places_init(recorded, &l.places));
    rondo_status status = rondo__edge_table_init(recorded, &l.edges);
    l.owner = rondo__calloc(l.places.count, sizeof *l.owner);
    l.first_point = rondo__calloc(l.places.count, sizeof *l.first_point);
    if (l.owner == NULL || l.first_point == NULL) {
        status = RONDO_STATUS_NO_MEMORY;
    }
    if (status == RONDO_STATUS_OK) {
        find_owners(&l);
        status = name_segments(&l, base);
    }
    if (status == RONDO_STATUS_OK) {
        label_ids(n, &l, first, base);
    }
    rondo__free(l.first_point);
    rondo__free(l.owner);
    rondo__edge_table_deinit(&l.edges);
    rondo__node_places_deinit(&l.places);
    return status;
}

// The graph that was recorded as this node of the capture; NULL: it had no labels.
static const rondo__label_child *find_child(const rondo__label_set *set, uint64_t capture_id,
                                            rondo__node_handle node) {
    for (size_t i = 0; i < set->child_count; ++i) {
        if (set->children[i].capture_id == capture_id && set->children[i].node == node) {
            return &set->children[i];
        }
    }
    return NULL;
}

// A recorded graph's nodes, at any depth, from the first of them on. A driver that lists those of a
// copy in another order must not lead to wrong labels.
static rondo_status label_child(naming *n, size_t first, const rondo__label_child *child,
                                size_t base) {
    const rondo__label_set *labels = child->labels;
    rondo__template *recorded = n->table.keys[first].level;
    rondo__template_hash hash;
    RETURN_IF_ERROR(rondo__template_get_hash(recorded, &hash));
    if (hash.content != child->hash) {
        RONDO_LOG_DEBUG_F(
            "%s: the copy of a recorded graph differs from it, so that nodes in there have no "
            "labels of their own",
            recorded->device->name);
        return RONDO_STATUS_OK;
    }
    size_t *path_of_path = rondo__calloc(labels->path_count, sizeof *path_of_path);
    rondo_status status = path_of_path != NULL ? RONDO_STATUS_OK : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < labels->path_count && status == RONDO_STATUS_OK; ++i) {
        status = add_path(n->set, base, labels->paths[i], &path_of_path[i]);
    }
    for (size_t i = 0; i < labels->id_count && status == RONDO_STATUS_OK; ++i) {
        n->set->path_of_id[first + i] = path_of_path[labels->path_of_id[i]];
    }
    rondo__free(path_of_path);
    return status;
}

// The id of the body's capture; 0: a body that Rondo did not record.
static uint64_t find_body(const naming *n, uint64_t parent_id, rondo__node_handle node,
                          uint32_t branch) {
    const rondo__capture_body *body = n->capture->closed_bodies;
    while (body != NULL &&
           (body->parent_id != parent_id || body->node != node || body->branch != branch)) {
        body = body->next;
    }
    return body != NULL ? body->id : 0;
}

static rondo_status label_level(naming *n, size_t first) {
    const rondo__node_key *keys = n->table.keys;
    size_t parent = keys[first].parent;
    if (parent == NONE) {
        return label_recorded(n, first, n->capture->id, 0);
    }
    uint64_t around = n->capture_ids[parent];
    size_t base = n->set->path_of_id[parent];
    if (around == 0) {
        return RONDO_STATUS_OK;
    }
    if (keys[parent].kind == RONDO__NODE_CHILD) {
        const rondo__label_child *child = find_child(n->set, around, keys[parent].handle);
        return child != NULL ? label_child(n, first, child, base) : RONDO_STATUS_OK;
    }
    uint64_t body = find_body(n, around, keys[parent].handle, keys[first].branch);
    return body != 0 ? label_recorded(n, first, body, base) : RONDO_STATUS_OK;
}

static atomic_uint_fast64_t g_last_number;

static rondo_status label_nodes(naming *n) {
    rondo__label_set *set = n->set;
    const rondo__node_table *table = &n->table;
    size_t root = 0;
    n->capture_ids = rondo__calloc(table->count, sizeof *n->capture_ids);
    set->path_of_id = rondo__calloc(table->count, sizeof *set->path_of_id);
    set->place_of_id = rondo__calloc(table->count, sizeof *set->place_of_id);
    set->id_of_index = rondo__calloc(table->count, sizeof *set->id_of_index);
    if (n->capture_ids == NULL || set->path_of_id == NULL || set->place_of_id == NULL ||
        set->id_of_index == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memset(set->path_of_id, 0xff, table->count * sizeof *set->path_of_id);
    RETURN_IF_ERROR(add_path(set, 0, "", &root));
    for (size_t id = 0; id < table->count; ++id) {
        const rondo__node_key *key = &table->keys[id];
        if (key->index == 0) {
            RETURN_IF_ERROR(label_level(n, id));
        }
        if (set->path_of_id[id] == NONE) {
            set->path_of_id[id] = set->path_of_id[key->parent];
        }
        if (key->parent == NONE) {
            set->id_of_index[set->index_count++] = id;
        }
        set->place_of_id[id] = (rondo__label_place){key->level_number, (uint32_t)key->index};
    }
    set->id_count = table->count;
    set->number = atomic_fetch_add(&g_last_number, 1) + 1;
    return RONDO_STATUS_OK;
}

// The backend may want labels for profiles of what it makes of the template.
static void tell_backend(const naming *n, const rondo_device *device) {
    const rondo__label_set *set = n->set;
    if (device->backend->label_node == NULL || !rondo__hook_is_on(RONDO__HOOK_LABELS)) {
        return;
    }
    for (size_t id = 0; id < set->id_count; ++id) {
        const rondo__node_key *key = &n->table.keys[id];
        device->backend->label_node(key->level, key->index, set->paths[set->path_of_id[id]]);
    }
}

rondo_status rondo__label_resolve(rondo__capture *capture, rondo__template *recorded) {
    naming n = {.set = rondo__label_find_set(atomic_load(&capture->participants)),
                .capture = capture};
    if (n.set == NULL) {
        return RONDO_STATUS_OK;
    }
    RETURN_IF_ERROR(rondo__node_table_init(recorded, &n.table));
    rondo_status status = label_nodes(&n);
    if (status == RONDO_STATUS_OK) {
        tell_backend(&n, recorded->device);
    }
    rondo__free(n.capture_ids);
    rondo__node_table_deinit(&n.table);
    rondo__label_free_points(n.set);
    return status;
}

// ---- lines ------------------------------------------------------------------------------------

struct rondo__label_line {
    rondo__label_set *set;  // its paths, and the path of each node so far
    size_t id_capacity;
    size_t path;  // of the nodes from here on
};

rondo_status rondo__label_line_create(rondo__label_line **out_line) {
    rondo__label_line *line = rondo__calloc(1, sizeof *line);
    *out_line = line;
    if (line == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    line->set = rondo__label_create_set();
    const rondo_status status =
        line->set == NULL ? RONDO_STATUS_NO_MEMORY : add_path(line->set, 0, "", &line->path);
    if (status != RONDO_STATUS_OK) {
        rondo__label_line_destroy(line);
        *out_line = NULL;
    }
    return status;
}

rondo_status rondo__label_line_open(rondo__label_line *line, const rondo_stream *stream,
                                    const char *text) {
    size_t outer = 0;
    RETURN_IF_ERROR(add_path(line->set, 0, rondo_label_get_path(stream), &outer));
    return add_path(line->set, outer, text, &line->path);
}

rondo_status rondo__label_line_add(rondo__label_line *line) {
    rondo__label_set *set = line->set;
    const rondo_status status =
        RONDO__ARRAY_RESERVE(set->path_of_id, line->id_capacity, set->id_count + 1);
    RETURN_IF_ERROR(status);
    set->path_of_id[set->id_count++] = line->path;
    return RONDO_STATUS_OK;
}

rondo_status rondo__label_line_end(rondo__label_line *line, rondo__template *recorded,
                                   rondo__participant **out_participant) {
    rondo__label_set *set = line->set;
    const rondo_device *device = recorded->device;
    if (set->id_count == 0) {
        return RONDO_STATUS_OK;
    }
    set->place_of_id = rondo__calloc(set->id_count, sizeof *set->place_of_id);
    set->id_of_index = rondo__calloc(set->id_count, sizeof *set->id_of_index);
    if (set->place_of_id == NULL || set->id_of_index == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t id = 0; id < set->id_count; ++id) {
        set->place_of_id[id].index = (uint32_t)id;
        set->id_of_index[id] = id;
        if (device->backend->label_node != NULL && rondo__hook_is_on(RONDO__HOOK_LABELS)) {
            device->backend->label_node(recorded, id, set->paths[set->path_of_id[id]]);
        }
    }
    set->index_count = set->id_count;
    set->number = atomic_fetch_add(&g_last_number, 1) + 1;
    *out_participant = &set->head;
    line->set = NULL;
    return RONDO_STATUS_OK;
}

void rondo__label_line_destroy(rondo__label_line *line) {
    if (line != NULL) {
        if (line->set != NULL) {
            line->set->head.type->destroy(&line->set->head);
        }
        rondo__free(line);
    }
}

// ---- after the capture ------------------------------------------------------------------------

const char *rondo__label_of_node(const rondo__participant *participants, size_t id) {
    const rondo__label_set *set = rondo__label_find_set(participants);
    return set != NULL && id < set->id_count ? set->paths[set->path_of_id[id]] : "";
}

const char *rondo__label_of_index(const rondo__participant *participants, size_t index) {
    const rondo__label_set *set = rondo__label_find_set(participants);
    return set != NULL && index < set->index_count
               ? rondo__label_of_node(participants, set->id_of_index[index])
               : "";
}

uint64_t rondo__label_get_number(const rondo__participant *participants) {
    const rondo__label_set *set = rondo__label_find_set(participants);
    return set != NULL ? set->number : 0;
}

void rondo__label_visit(const rondo__participant *participants,
                        void (*visit)(void *user_data, uint32_t level, uint32_t index,
                                      const char *label),
                        void *user_data) {
    const rondo__label_set *set = rondo__label_find_set(participants);
    for (size_t id = 0; set != NULL && id < set->id_count; ++id) {
        visit(user_data, set->place_of_id[id].level, set->place_of_id[id].index,
              set->paths[set->path_of_id[id]]);
    }
}
