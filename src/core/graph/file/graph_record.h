// graph/file/graph_record.h — a template as bytes that hold no address of the process: the record
// has a symbol in the place of each address, and for memory an offset from its begin, too.
//
//   level    number of nodes, then the nodes, predecessors first
//   node     kind; its predecessors, each as the number of nodes between; the fields of the kind
//   kernel   function, launch shape, attributes, arguments with zeros for addresses; then place and
//            symbol of each address
//   host     function, and arguments as those of a kernel
//   memory   whether it takes some; then its bytes and alignment, or else the number of what it
//            gives back
//
// Memory that nodes take is numbered in their order, behind the symbols.
//
// The record leaves out empty nodes, and the launches that set the condition of a conditional node:
// the calls that build edges and conditional nodes make them again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/file/graph_symbols.h"
#include "graph/graph_object.h"
#include "saved/saved_record.h"

// Errors:    UNSUPPORTED (names the node and the field that cannot be recorded), INVALID (symbols
//            that overlap), NO_MEMORY, DRIVER.
// Returns:   *out_takes_memory: nodes of it take memory, which the form before the last has not.
// Threads:   one thread per template.
RONDO_MUST_USE rondo_status rondo__graph_record_write(rondo__template *recorded,
                                                      rondo__graph_symbols *symbols,
                                                      rondo__text *out, bool *out_takes_memory);

// Records the nodes on a stream that has recorded nothing else, in a capture of a graph by hand.
//
// Errors:    BAD_DATA, those of the calls that record. The caller then aborts the capture.
RONDO_MUST_USE rondo_status rondo__graph_record_build(rondo_stream *stream, rondo__record *record,
                                                      const rondo__graph_symbols *symbols);
