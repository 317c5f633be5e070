// learn/learned.h — the object behind rondo_learned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/governed_step.h"
#include "learn/fallback.h"
#include "learn/learn.h"
#include "learn/watch.h"

// Whether the executable has to be told of a node's image.
typedef enum rondo__dirt {
    RONDO__CLEAN,
    RONDO__DIRTY,
    RONDO__DIRTY_SAVED,  // and its former image is known
} rondo__dirt;

// A word that depends on an argument.
typedef struct rondo__changing_word {
    unsigned char *place;           // in its node's image
    const rondo__formula *formula;  // NULL: the argument's low bytes, as they are
    size_t node;
    uint32_t width;
} rondo__changing_word;

struct rondo_learned {
    // The members that a run with changed arguments reads stand together, in few lines of the
    // processor's cache.
    rondo_graph *graph;
    rondo_device *device;  // retained
    rondo__arguments arguments;
    rondo_learned_state state;
    bool is_current;  // the executable holds the values given last
    bool is_running;  // a call runs or learns it, and may be in the step
    bool *ran_here;   // not NULL: of a run whose caller waits for it
    bool has_structs;
    bool has_copies;  // among the nodes with slots
    // PROVED: what the executable holds, or will when the dirty nodes have been written.
    rondo__values values;
    rondo__values next;           // of a run, while it is checked
    rondo_value *given;           // as the program gave them last
    rondo__changing_word *words;  // by the argument that they depend on
    size_t *first_words;          // by argument, into these; one more than arguments
    rondo__node_image **images;   // by node; NULL: without slots; the graph's
    rondo__dirt *dirt;            // by node
    rondo__node_image *formers;  // by node: what it did before it became dirty; NULL: not saved yet
    rondo__node_image **dirty;   // that have to be written
    size_t *dirty_nodes;         // the same, by number
    size_t dirty_count;
    uint64_t removal_count;  // of the device's areas, when the memory of all was looked at
    rondo__watch watch;
    rondo_learned_stats stats;
    // The rest.
    size_t changing_count;  // nodes with slots
    rondo__step step;
    rondo__fallback fallback;
    rondo__governed_step *governed;  // NULL: runs are not measured
    bool has_exclusive;              // a pointer that shares no memory with others
    bool has_warned;
    uint64_t seed;
    uint64_t spare_ns;
    rondo__lesson lesson;  // its reference: of the trials until the step was recorded for a run,
                           // then that recording
    uint64_t learn_ns;
};
