// profile/graph_names.h — what the nodes of graphs are called that are replayed while a profile
// runs, kept until its end: the graphs may be gone by then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
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

// CUPTI's number of a node is that of its executable and an index there: 0x500000002. The index
// counts all nodes (seen on driver 580): first those of the graph itself, in the order of its
// template, then for each node that holds others, in order, these and whatever they hold: so the
// nodes of one level (rondo__label_visit) lie side by side, the levels in their order.
//
// The label of a node of the graph that the span replays; "" where it is not known.
//
// Threads:   when no span is noted any more, as all below.
const char *rondo__graph_names_find(uint64_t span, uint64_t graph_node);
// Whether the node is held by another: in a body, it may not have run at all.
bool rondo__graph_names_is_inside(uint64_t span, uint64_t graph_node);
void rondo__graph_names_clear(void);
