// graph/node/put.h — work of any kind put on a stream.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_GRAPH_NODE_PUT_H
#define RONDO_GRAPH_NODE_PUT_H

#include "rondo/node.h"

// Reads work that makes a node.
//
// Errors:    INVALID (NULL, another kind, a copy or fill of nothing).
RONDO_MUST_USE rondo_status rondo__put_check(const rondo_work *given, const char *call,
                                             rondo_work *out_work);
// The public call of its kind.
//
// Errors:    that call's.
RONDO_MUST_USE rondo_status rondo__put_work(rondo_stream *stream, const rondo_work *work);

#endif  // RONDO_GRAPH_NODE_PUT_H
