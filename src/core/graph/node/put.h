// graph/node/put.h — work of any kind put on a stream.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/node.h"

// Bits of the kinds that a call takes.
enum {
    RONDO__PUT_STEPS = 1u << RONDO_NODE_KERNEL | 1u << RONDO_NODE_HOST | 1u << RONDO_NODE_COPY |
                       1u << RONDO_NODE_FILL | 1u << RONDO_NODE_CHILD,
    RONDO__PUT_ALL = RONDO__PUT_STEPS | 1u << RONDO_NODE_EVENT_WAIT |
                     1u << RONDO_NODE_EVENT_RECORD | 1u << RONDO_NODE_CONDITIONAL,
};

// Reads work that makes a node.
//
// Errors:    INVALID (NULL, another kind, a copy or fill of nothing, an event that is not
//            external, another number of bodies).
RONDO_MUST_USE rondo_status rondo__put_check(const rondo_work *given, uint32_t kinds,
                                             const char *call, rondo_work *out_work);
// The public call of its kind.
//
// Errors:    that call's.
RONDO_MUST_USE rondo_status rondo__put_work(rondo_stream *stream, const rondo_work *work);
