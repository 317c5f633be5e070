// graph/label/label_set.h — a graph's labels: while it is recorded, and afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include "graph/label/label.h"

#define RONDO__LABEL_NONE SIZE_MAX

// The work of a stream between two of its points; listed in the order in which they end.
typedef struct rondo__label_segment {
    uint64_t capture_id;  // of the capture or body
    uint32_t stream_number;
    bool labels_nothing;  // see graph/label/label.h
    size_t begin;         // the stream's segment before it; NONE: it begins with the capture
    char *path;           // open in it, behind the path of the node whose body this is
    size_t first_node;    // into the set's nodes: those at its end
    size_t node_count;
    size_t age;         // nodes of the capture at its end; NONE: not counted
    size_t outer;       // resolving: the segment of another stream around it; NONE: there is none
    size_t path_index;  // resolving: into the set's paths
} rondo__label_segment;

// A recorded graph with labels.
typedef struct rondo__label_child {
    uint64_t capture_id;
    rondo__node_handle node;
    const struct rondo__label_set *labels;  // alive as long as the graph that it was recorded into
    uint64_t hash;                          // of the template it came from
} rondo__label_child;

// Where a node is.
typedef struct rondo__label_place {
    uint32_t level;  // level_number of its key
    uint32_t index;
} rondo__label_place;

// The participant.
typedef struct rondo__label_set {
    rondo__participant head;
    pthread_mutex_t lock;  // streams of one capture may be used by several threads
    uint32_t origin_number;
    // While it records.
    rondo__label_segment *segments;
    size_t segment_count;
    size_t segment_capacity;
    rondo__node_handle *nodes;  // while it is resolved, their indices
    size_t node_count;
    size_t node_capacity;
    rondo__label_child *children;
    size_t child_count;
    size_t child_capacity;
    // Once resolved.
    char **paths;  // the first is ""
    size_t path_count;
    size_t path_capacity;
    size_t *path_of_id;  // of all nodes, by id; NULL: not resolved
    rondo__label_place *place_of_id;
    uint64_t number;  // that no other set of the process has; 0: not resolved
    size_t id_count;
    size_t *id_of_index;  // of the graph's own nodes
    size_t index_count;
} rondo__label_set;

// An empty one; NULL: no memory.
rondo__label_set *rondo__label_create_set(void);
// NULL: there are no labels.
rondo__label_set *rondo__label_find_set(const rondo__participant *participants);
void rondo__label_free_points(rondo__label_set *set);
