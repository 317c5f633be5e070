// profile/graph_names.h — what the nodes of graphs are called that are replayed while a profile
// runs, kept until its end: the graphs may be gone by then.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PROFILE_GRAPH_NAMES_H
#define RONDO_PROFILE_GRAPH_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/graph.h"

// The span replays the graph; the first of a graph copies its labels. One without labels, or for
// which there is no memory, has no names.
//
// executable  CUPTI's number of it; 0: not known.
//
// Threads:   safe; one thread per graph.
void rondo__graph_names_note(uint64_t span, const rondo_graph *graph, uint32_t executable);

// CUPTI's number of a node is that of its graph and its index there: 0x500000002. An executable has
// numbers of its own, the first for itself, those after it for what its nodes hold, in the order in
// which a walk enters them. Where its number is not known, the least of a replay stands for it. A
// CUPTI that counts otherwise is understood as far as the graph's own nodes go.
//
// Threads:   when no span is noted any more, as all below.
void rondo__graph_names_learn(uint64_t span, uint64_t graph_node);
// The label of a node of the graph that the span replays, after all were learned; "" where it is
// not known.
const char *rondo__graph_names_find(uint64_t span, uint64_t graph_node);
void rondo__graph_names_clear(void);

#endif  // RONDO_PROFILE_GRAPH_NAMES_H
