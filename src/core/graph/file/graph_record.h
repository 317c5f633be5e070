// graph/file/graph_record.h — a template as bytes that hold no address of the process: what nodes
// name by address is a symbol there, memory a symbol and how far behind its begin.
//
//   level    number of nodes, then the nodes, predecessors first
//   node     kind, what it comes behind (how many nodes before), what belongs to the kind
//   kernel   function, launch shape, attributes, arguments with zeros for addresses, where these
//            stand, which they are
//
// Nodes that nobody asked for are left out, and made again by what needs them: empty ones, and the
// launches that set the condition of a conditional node.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_FILE_GRAPH_RECORD_H
#define RONDO_GRAPH_FILE_GRAPH_RECORD_H

#include "graph/file/graph_symbols.h"
#include "graph/graph_object.h"
#include "saved/saved_record.h"

// Errors:    UNSUPPORTED (names the node and what of it cannot be made elsewhere), INVALID (symbols
//            that overlap), NO_MEMORY, DRIVER.
// Threads:   one thread per template.
RONDO_MUST_USE rondo_status rondo__graph_record_write(rondo__template *recorded,
                                                      rondo__graph_symbols *symbols,
                                                      rondo__text *out);

// Records the nodes on a stream that records nothing but these, in a capture of a graph by hand.
//
// Errors:    BAD_DATA, those of the calls that record. The capture is to be given up then.
RONDO_MUST_USE rondo_status rondo__graph_record_build(rondo_stream *stream, rondo__record *record,
                                                      const rondo__graph_symbols *symbols);

#endif  // RONDO_GRAPH_FILE_GRAPH_RECORD_H
