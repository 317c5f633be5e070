// backend/label_walk.c — templates as labels see them: which nodes lie between two points of a
// stream's part of a capture, where nodes are, and whether one template is a copy of another.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "capture/label.h"

// A node's handle and its index, sorted by handle.
typedef struct handle_place {
    rondo__node_handle handle;
    size_t index;
} handle_place;

typedef struct walk {
    size_t node_count;
    handle_place *places;
    // The predecessors of node i are predecessors[first_edge[i]] ..
    // predecessors[first_edge[i+1]-1].
    size_t *first_edge;
    size_t *predecessors;
    size_t *segment_of;  // by node; SIZE_MAX: none yet
    size_t *stop_for;    // by node: the segment whose beginning it is, while that is walked
    size_t *jumped_for;  // by segment: the walk that went over it already
    size_t *stack;
    size_t stack_count;
    size_t stack_capacity;
    bool is_ordered;  // indices follow the order of recording
} walk;

static void deinit(walk *w) {
    rondo__free(w->places);
    rondo__free(w->first_edge);
    rondo__free(w->predecessors);
    rondo__free(w->stop_for);
    rondo__free(w->jumped_for);
    rondo__free(w->stack);
}

static int compare_places(const void *a, const void *b) {
    rondo__node_handle left = ((const handle_place *)a)->handle;
    rondo__node_handle right = ((const handle_place *)b)->handle;
    return left < right ? -1 : left > right;
}

static size_t find_index(const walk *w, rondo__node_handle handle) {
    handle_place wanted = {.handle = handle};
    const handle_place *found = w->node_count > 0 ? bsearch(&wanted, w->places, w->node_count,
                                                            sizeof wanted, compare_places)
                                                  : NULL;
    return found != NULL ? found->index : SIZE_MAX;
}

static void fill(size_t *array, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        array[i] = SIZE_MAX;
    }
}

static rondo_status list_places(walk *w, rondo__template *template_) {
    const rondo__backend *backend = template_->device->backend;
    rondo__node_handle *handles = rondo__calloc(w->node_count, sizeof *handles);
    if (handles == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = backend->list_handles(template_, handles, w->node_count);
    for (size_t i = 0; i < w->node_count && status == RONDO_STATUS_OK; ++i) {
        w->places[i] = (handle_place){.handle = handles[i], .index = i};
    }
    rondo__free(handles);
    qsort(w->places, w->node_count, sizeof *w->places, compare_places);
    return status;
}

static rondo_status list_predecessors(walk *w, rondo__template *template_) {
    const rondo__backend *backend = template_->device->backend;
    size_t edge_count = 0;
    RETURN_IF_ERROR(backend->list_edges(template_, NULL, 0, &edge_count));
    w->predecessors = rondo__calloc(edge_count, sizeof *w->predecessors);
    size_t *pairs = rondo__calloc(edge_count, 2 * sizeof *pairs);
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    if (w->predecessors == NULL || pairs == NULL) {
        goto free_pairs;
    }
    status = backend->list_edges(template_, pairs, edge_count, &edge_count);
    if (status != RONDO_STATUS_OK) {
        goto free_pairs;
    }
    // Counting sort by the later node.
    for (size_t i = 0; i < edge_count; ++i) {
        ++w->first_edge[pairs[2 * i + 1] + 1];
        w->is_ordered = w->is_ordered && pairs[2 * i] < pairs[2 * i + 1];
    }
    for (size_t i = 0; i < w->node_count; ++i) {
        w->first_edge[i + 1] += w->first_edge[i];
    }
    for (size_t i = edge_count; i-- > 0;) {
        // first_edge[n + 1] counts down to where the list of n begins, then is shifted back below.
        w->predecessors[--w->first_edge[pairs[2 * i + 1] + 1]] = pairs[2 * i];
    }
    // Now first_edge[n + 1] is the beginning of n's list.
    memmove(w->first_edge, w->first_edge + 1, w->node_count * sizeof *w->first_edge);
    w->first_edge[w->node_count] = edge_count;

free_pairs:
    rondo__free(pairs);
    return status;
}

static rondo_status init(walk *w, rondo__template *template_, size_t segment_count) {
    w->is_ordered = true;
    RETURN_IF_ERROR(template_->device->backend->count_nodes(template_, &w->node_count));
    w->places = rondo__calloc(w->node_count, sizeof *w->places);
    w->first_edge = rondo__calloc(w->node_count + 1, sizeof *w->first_edge);
    w->segment_of = rondo__calloc(w->node_count, sizeof *w->segment_of);
    w->stop_for = rondo__calloc(w->node_count, sizeof *w->stop_for);
    w->jumped_for = rondo__calloc(segment_count, sizeof *w->jumped_for);
    if (w->places == NULL || w->first_edge == NULL || w->segment_of == NULL ||
        w->stop_for == NULL || w->jumped_for == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    fill(w->segment_of, w->node_count);
    fill(w->stop_for, w->node_count);
    fill(w->jumped_for, segment_count);
    RETURN_IF_ERROR(list_places(w, template_));
    return list_predecessors(w, template_);
}

static rondo_status push(walk *w, size_t node) {
    void *stack = w->stack;
    rondo_status status =
        rondo__array_reserve(&stack, &w->stack_capacity, w->stack_count + 1, sizeof *w->stack);
    w->stack = stack;
    RETURN_IF_ERROR(status);
    w->stack[w->stack_count++] = node;
    return RONDO_STATUS_OK;
}

// Goes on behind a segment: at the point where it began.
static rondo_status push_point(walk *w, const rondo__label_segment *point,
                               const rondo__node_handle *nodes) {
    for (size_t i = 0; i < point->node_count; ++i) {
        size_t node = find_index(w, nodes[point->first_node + i]);
        if (node != SIZE_MAX) {
            RETURN_IF_ERROR(push(w, node));
        }
    }
    return RONDO_STATUS_OK;
}

// Meets a node of the segment `other` while `index` is walked.
static rondo_status jump_over(walk *w, rondo__label_segment *segments, size_t index, size_t other,
                              const rondo__node_handle *nodes) {
    if (w->jumped_for[other] == index) {
        return RONDO_STATUS_OK;
    }
    w->jumped_for[other] = index;
    rondo__label_segment *inner = &segments[other];
    const rondo__label_segment *outer = &segments[index];
    // Inside only when it also began inside.
    bool began_inside = inner->previous != SIZE_MAX &&
                        (outer->previous == SIZE_MAX || inner->previous > outer->previous);
    if (inner->stream_number != outer->stream_number && inner->prefix == SIZE_MAX && began_inside) {
        inner->prefix = index;
    }
    return inner->previous != SIZE_MAX ? push_point(w, &segments[inner->previous], nodes)
                                       : RONDO_STATUS_OK;
}

static rondo_status walk_segment(walk *w, rondo__label_segment *segments, size_t index,
                                 const rondo__node_handle *nodes) {
    const rondo__label_segment *segment = &segments[index];
    size_t oldest = 0;
    if (segment->previous != SIZE_MAX) {
        const rondo__label_segment *begin = &segments[segment->previous];
        for (size_t i = 0; i < begin->node_count; ++i) {
            size_t node = find_index(w, nodes[begin->first_node + i]);
            if (node != SIZE_MAX) {
                w->stop_for[node] = index;
                oldest = node + 1 > oldest ? node + 1 : oldest;
            }
        }
        if (begin->recorded_count != SIZE_MAX) {
            oldest = begin->recorded_count;
        }
        oldest = w->is_ordered ? oldest : 0;
    }
    w->stack_count = 0;
    RETURN_IF_ERROR(push_point(w, segment, nodes));
    while (w->stack_count > 0) {
        size_t node = w->stack[--w->stack_count];
        size_t owner = w->segment_of[node];
        if (node < oldest || w->stop_for[node] == index || owner == index) {
            continue;
        }
        if (owner != SIZE_MAX) {
            RETURN_IF_ERROR(jump_over(w, segments, index, owner, nodes));
            continue;
        }
        w->segment_of[node] = index;
        for (size_t i = w->first_edge[node]; i < w->first_edge[node + 1]; ++i) {
            RETURN_IF_ERROR(push(w, w->predecessors[i]));
        }
    }
    return RONDO_STATUS_OK;
}

// Whether each point knew only nodes with smaller indices than it had counted.
static bool are_points_ordered(const walk *w, const rondo__label_segment *segments, size_t count,
                               const rondo__node_handle *nodes) {
    for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < segments[i].node_count; ++j) {
            size_t node = find_index(w, nodes[segments[i].first_node + j]);
            if (node != SIZE_MAX && node >= segments[i].recorded_count) {
                return false;
            }
        }
    }
    return true;
}

rondo_status rondo__label_walk(rondo__template *template_, rondo__label_segment *segments,
                               size_t segment_count, const rondo__node_handle *frontier_nodes,
                               size_t **out_segment_of_node, size_t *out_node_count) {
    walk w = {0};
    rondo_status status = init(&w, template_, segment_count);
    if (status == RONDO_STATUS_OK) {
        w.is_ordered =
            w.is_ordered && are_points_ordered(&w, segments, segment_count, frontier_nodes);
    }
    for (size_t i = 0; i < segment_count && status == RONDO_STATUS_OK; ++i) {
        if (!segments[i].is_open) {
            status = walk_segment(&w, segments, i, frontier_nodes);
        }
    }
    if (status == RONDO_STATUS_OK) {
        *out_segment_of_node = w.segment_of;
        *out_node_count = w.node_count;
    } else {
        rondo__free(w.segment_of);
    }
    deinit(&w);
    return status;
}

// ---- where nodes are --------------------------------------------------------------------------

rondo_status rondo__label_find_nodes(rondo__template *template_, const rondo__node_handle *handles,
                                     size_t count, size_t *out_indices) {
    walk w = {0};
    RETURN_IF_ERROR(template_->device->backend->count_nodes(template_, &w.node_count));
    w.places = rondo__calloc(w.node_count, sizeof *w.places);
    rondo_status status = w.places != NULL ? list_places(&w, template_) : RONDO_STATUS_NO_MEMORY;
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        out_indices[i] = find_index(&w, handles[i]);
    }
    deinit(&w);
    return status;
}

// ---- shapes -----------------------------------------------------------------------------------

static uint64_t hash_node(size_t index, const rondo__node_info *info) {
    const uint64_t numbers[] = {
        index,
        (uint64_t)info->kind,
        info->grid[0],
        info->grid[1],
        info->grid[2],
        info->block[0],
        info->block[1],
        info->block[2],
        info->shared_bytes,
        info->width,
        (uintptr_t)info->destination,
        (uintptr_t)info->source,
        info->height,
        (uintptr_t)info->event,
        info->fill_value,
    };
    uint64_t hash = rondo__hash64(RONDO__HASH_SEED, numbers, sizeof numbers);
    return info->name != NULL ? rondo__hash64(hash, info->name, strlen(info->name)) : hash;
}

// A sum, because the driver may list the edges of a copy in another order.
static rondo_status add_edges(rondo__template *template_, uint64_t *in_out_sum) {
    const rondo__backend *backend = template_->device->backend;
    size_t count = 0;
    RETURN_IF_ERROR(backend->list_edges(template_, NULL, 0, &count));
    size_t *pairs = rondo__calloc(count, 2 * sizeof *pairs);
    if (pairs == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = backend->list_edges(template_, pairs, count, &count);
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        *in_out_sum += rondo__hash64(RONDO__HASH_SEED, &pairs[2 * i], 2 * sizeof *pairs);
    }
    rondo__free(pairs);
    return status;
}

rondo_status rondo__label_get_shape(rondo__template *template_, uint64_t *out_shape) {
    const rondo__backend *backend = template_->device->backend;
    size_t count = 0;
    uint64_t sum = 0;
    *out_shape = 0;
    RETURN_IF_ERROR(backend->count_nodes(template_, &count));
    for (size_t i = 0; i < count; ++i) {
        rondo__node_info info;
        RETURN_IF_ERROR(backend->describe_node(template_, i, &info));
        uint64_t node = hash_node(i, &info);
        if (info.kind == RONDO__NODE_CHILD) {
            rondo__template *child;
            uint64_t inner;
            RETURN_IF_ERROR(backend->get_child(template_, i, &child));
            RETURN_IF_ERROR(rondo__label_get_shape(child, &inner));
            node = rondo__hash64(node, &inner, sizeof inner);
        }
        sum += node;
    }
    RETURN_IF_ERROR(add_edges(template_, &sum));
    *out_shape = sum + count;
    return RONDO_STATUS_OK;
}
