// rondo/label.h — scopes that name what a program puts on a stream.
//
//   rondo_label_push(stream, "layer3");
//   rondo_label_push(stream, "attention");
//   ... launches, library calls, work on streams forked from this one and joined again ...
//   rondo_label_pop(stream);
//   rondo_label_pop(stream);
//
// Nodes recorded inside a scope carry its path, "layer3/attention": in dumps of the graph, and in
// the report on a capture that failed (rondo/report.h). That holds for work put on the stream by
// any means, Rondo's calls, the program's own launches or a library's, and for other streams that
// are forked and joined inside the scope. The innermost scope counts.
//
// Rondo finds the scope of a node by the edges between nodes, which has two limits. If a forked
// stream without a scope of its own is joined only behind the scope, its work has no label. If a
// forked stream waits for another stream while its own scope is open, the work that the other
// stream recorded meanwhile may carry that scope.
//
// Bodies of conditional nodes (rondo/control.h) lie in the scopes that were open around them, and
// may open scopes of their own: "update" in a body, inside "solver", is "solver/update".
//
// A graph that is recorded into another capture (rondo_stream_add_graph) brings the labels of its
// nodes along: "gemm" in there, recorded inside "model", is "model/gemm" in the other graph's
// dumps.
//
// Tools that listen through NVTX (Nsight Systems) see each scope as a range, in the domain "rondo",
// inside a capture and outside.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LABEL_H
#define RONDO_LABEL_H

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// Opens a scope on the stream.
//
// text       copied; its path should stay below 128 bytes, of which reports show the beginning.
//
// Errors:    INVALID (NULL or empty); then no scope was opened.
// Capture:   records nothing. A capture that is already broken stays broken; its report names this
//            call as the one that noticed.
// Cost:      no driver call outside captures; a few inside. Work inside scopes costs what it costs
//            elsewhere; labels are worked out when the capture ends, if the template is kept.
RONDO_API RONDO_MUST_USE rondo_status rondo_label_push(rondo_stream *stream, const char *text);

// Closes the scope opened last on the stream.
//
// A capture that fails or is aborted closes the scopes opened on its first stream since it began;
// one that succeeds leaves them open.
// The end of a body closes those opened on its stream; those open outside cannot be closed there.
//
// Errors:    STATE (no scope is open); then the scope stays open.
// Capture:   records nothing.
// Cost:      as for push.
RONDO_API rondo_status rondo_label_pop(rondo_stream *stream);

#if defined(RONDO_EXPERIMENTAL)

// The path of the scopes open on the stream, "layer3/attention"; "" when none is.
//
// On the stream of a body it begins with the path that was open outside when the body began.
//
// Returns:   borrowed until the next push or pop on the stream.
RONDO_API const char *rondo_label_get_path(const rondo_stream *stream);

#endif  // RONDO_EXPERIMENTAL

RONDO_EXTERN_C_END

#endif  // RONDO_LABEL_H
