// device/event.h — external events in captures.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// An external event that is used while `stream` records: keeps it alive for the graph. Does nothing
// for other events and streams.
RONDO_MUST_USE rondo_status rondo__event_keep_for_graph(rondo_event *event, rondo_stream *stream,
                                                        const char *call);
