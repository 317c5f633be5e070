// graph/capture_report.h — the report on a capture that yields nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph_object.h"

// Fills graph->report for a capture that yields nothing. `blame` is what was known when it ended;
// the thread's error record is what the end, or a later part, said. When the blame knows better,
// the record and the status become those of the first failure.
//
// Returns:   the status of the failure.
rondo_status rondo__graph_report_failure(rondo_graph *graph, const rondo__blame *blame,
                                         rondo_capture_cause fallback);
// The same for a capture that the program gave up; the thread's error record stays.
void rondo__graph_report_abort(rondo_graph *graph, const rondo__blame *blame);
