// rondo/report.h — what broke a capture.
//
//   if (rondo_graph_capture_end(graph) != RONDO_STATUS_OK) {
//       rondo_capture_report report = {.struct_size = sizeof report};
//       char text[2048];
//       rondo_graph_get_report(graph, &report);
//       rondo_capture_report_format(&report, text, sizeof text);
//       fputs(text, stderr);
//   }
//
// The report names the first cause, its place in the step, and what to do. docs/captures.md says
// what breaks captures.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_REPORT_H
#define RONDO_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

// Why a capture yields no graph. Values are permanent.
typedef int32_t rondo_capture_cause;
enum {
    RONDO_CAUSE_NONE = 0,               // nothing broke it
    RONDO_CAUSE_SYNCHRONIZE = 1,        // a call waited for recorded work, or asked about it
    RONDO_CAUSE_ALLOCATION = 2,         // memory was allocated outside a pool
    RONDO_CAUSE_LEGACY_STREAM = 3,      // work met the legacy default stream
    RONDO_CAUSE_PAGEABLE_COPY = 4,      // a copy from or to pageable memory
    RONDO_CAUSE_UNJOINED_STREAM = 5,    // a forked stream was not joined
    RONDO_CAUSE_OTHER_THREAD = 6,       // a call of another thread, in global mode
    RONDO_CAUSE_OTHER_DEVICE = 7,       // an object of another device
    RONDO_CAUSE_ABORTED = 8,            // the program gave it up
    RONDO_CAUSE_OUT_OF_MEMORY = 9,      // of host or device memory
    RONDO_CAUSE_WORK_REFUSED = 10,      // work that failed, which the step would lack
    RONDO_CAUSE_STREAM_DESTROYED = 11,  // a stream was destroyed while it recorded
    RONDO_CAUSE_INSTANTIATION = 12,     // no executable could be made
    RONDO_CAUSE_MERGE = 13,             // a wait for an event of another capture
    RONDO_CAUSE_OUTSIDE_WORK = 14,      // recorded work was to wait for work outside
    RONDO_CAUSE_UNSEEN_CALL = 15,       // a call that did not go through Rondo
    RONDO_CAUSE_OTHER = 16,             // see the message
};

typedef struct rondo_capture_report {
    size_t struct_size;   // sizeof(rondo_capture_report)
    rondo_status status;  // RONDO_STATUS_OK: the latest capture did not fail
    rondo_capture_cause cause;
    const char *what;     // what happened, in plain words; static text
    const char *advice;   // what to do; static text
    char message[480];    // the error record's line, with the particulars
    char call[48];        // the call that broke it; for an UNSEEN_CALL the one that noticed
    char op[64];          // the kernel or host function at fault
    char label[128];      // path of the label scopes open there
    int32_t driver_code;  // the driver's code and its symbolic name
    char driver_name[48];
    const char *file;  // source file and line of Rondo
    int32_t line;
    uint32_t stream_number;  // "stream 3" of messages; 0: none was involved
    uint64_t thread_number;  // of the thread that made the call
    char thread_name[16];
    bool is_other_thread;       // not the thread that began the capture
    bool has_last_node;         // something was recorded before
    bool is_index_exact;        // false: at least that many
    uint64_t last_node_index;   // in the order of recording, from 0; in a body its own
    char last_node_name[64];    // "memcpy", "memset" or the kernel's name
    char last_node_label[128];  // path of its label scopes
    uint32_t last_node_depth;   // bodies of conditional nodes that it lies in
} rondo_capture_report;

// Fills *out_report: on the graph's latest capture, kept until the next begin.
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_report(const rondo_graph *graph,
                                                             rondo_capture_report *out_report);

// Writes the report as lines of text, cut where `capacity` ends.
//
// Returns:   the length of the whole text, as snprintf; 0 for a struct that the library refuses.
RONDO_API size_t rondo_capture_report_format(const rondo_capture_report *report, char *text,
                                             size_t capacity);

// "SYNCHRONIZE" and so on.
RONDO_API const char *rondo_capture_cause_get_name(rondo_capture_cause cause);

RONDO_EXTERN_C_END

#endif  // RONDO_REPORT_H
