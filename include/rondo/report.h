// rondo/report.h — what broke a capture, and a capture that finishes the step either way.
//
//   if (rondo_graph_capture_end(graph) != RONDO_STATUS_OK) {
//       rondo_capture_report report = {.struct_size = sizeof report};
//       char text[2048];
//       rondo_graph_get_report(graph, &report);
//       rondo_capture_report_format(&report, text, sizeof text);
//       fputs(text, stderr);
//   }
//
// A failed or aborted capture is rolled back: its streams can be used, generators stand where they
// stood, no block changes hands, and the same graph can record again. The report names the first
// cause, its place in the step, and what to do.
//
// A call on a recording stream that fails breaks the capture when the step would lack what was
// asked for; so does waiting for recorded work or asking about it, and what the mode forbids
// (rondo_capture_mode). Any other failure breaks nothing. docs/concepts.md has the list.
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

// Why a capture yields no graph: RONDO_CAUSE_<name>, what happened, what to do. Values are
// permanent.
#define RONDO_CAPTURE_CAUSE_MAP(X)                                                               \
    X(NONE, 0, "nothing broke it", "")                                                           \
    X(SYNCHRONIZE, 1, "a call waited for, or asked about, work that is only being recorded",     \
      "make that call before the capture or after its end; inside, order work with events")      \
    X(ALLOCATION, 2,                                                                             \
      "memory was allocated outside a pool, which the mode of the capture "                      \
      "forbids",                                                                                 \
      "allocate before the capture or from a rondo_pool, or record in thread_local mode")        \
    X(LEGACY_STREAM, 3, "work met the legacy default stream, which waits for other streams",     \
      "use streams of your own, made with the non-blocking flag, also for library handles")      \
    X(PAGEABLE_COPY, 4, "a copy from or to pageable host memory, which may be gone at a replay", \
      "allocate that memory with RONDO_MEMORY_PINNED, or copy before the capture")               \
    X(UNJOINED_STREAM, 5, "a stream forked inside the capture was not joined again",             \
      "record an event on it and let the first stream wait for that before the end")             \
    X(OTHER_THREAD, 6, "another thread made a call that global mode forbids to every thread",    \
      "record in thread_local mode, or hold that thread's call back until the end")              \
    X(OTHER_DEVICE, 7, "a call mixed the capture with an object of another device",              \
      "keep one capture to streams, events and memory of one device")                            \
    X(ABORTED, 8, "the program gave the capture up", "mend what made the program give it up")    \
    X(OUT_OF_MEMORY, 9, "host or device memory is exhausted",                                    \
      "free some, use a smaller batch, or raise the limit of the pool")                          \
    X(WORK_REFUSED, 10, "work was refused, or what orders it, so the step would lack it",        \
      "mend that call; it fails outside a capture, too")                                         \
    X(STREAM_DESTROYED, 11, "a stream was destroyed while it recorded",                          \
      "destroy streams after the end of the capture")                                            \
    X(INSTANTIATION, 12, "the recorded step could not be made executable",                       \
      "see the driver's code; free memory, or split the step")                                   \
    X(MERGE, 13, "a stream waited for an event of another capture",                              \
      "wait only for events recorded in the same capture")                                       \
    X(OUTSIDE_WORK, 14, "recorded work was to wait for work outside the capture",                \
      "record that event inside the capture, or wait for it before")                             \
    X(UNSEEN_CALL, 15, "a call that did not go through Rondo broke it",                          \
      "look between the last good node and where it was noticed for calls that wait, query, "    \
      "allocate or use the legacy stream; more label scopes narrow it down")                     \
    X(OTHER, 16, "see the message", "see the message")

typedef int32_t rondo_capture_cause;
enum {
#define RONDO_CAPTURE_CAUSE_ENUM(name, value, what, advice) RONDO_CAUSE_##name = (value),
    RONDO_CAPTURE_CAUSE_MAP(RONDO_CAPTURE_CAUSE_ENUM)
#undef RONDO_CAPTURE_CAUSE_ENUM
};

// What is known of a capture that failed. Plain data.
typedef struct rondo_capture_report {
    size_t struct_size;   // sizeof(rondo_capture_report), set by the caller
    rondo_status status;  // of the failure; RONDO_STATUS_OK: the latest capture did not fail
    rondo_capture_cause cause;
    const char *what;      // what happened, in plain words; static text
    const char *advice;    // what to do; static text
    char message[240];     // the error record's line, with the particulars
    char call[48];         // the call that broke it; for an UNSEEN_CALL the one that noticed
    char op[64];           // the kernel or host function at fault; "" when none is known
    char label[128];       // path of the scopes open there, also in a body (rondo/label.h)
    int32_t driver_code;   // the driver's code; 0 when none was involved
    char driver_name[48];  // its symbolic name
    const char *file;      // source file and line of Rondo where it was found
    int32_t line;
    uint32_t stream_number;     // "stream 3" of messages; 0 when no stream was involved
    uint64_t thread_number;     // of the thread that made the call
    char thread_name[16];       // its name, when it has one
    bool is_other_thread;       // not the thread that began the capture
    bool has_last_node;         // something was recorded before
    bool is_index_exact;        // false: at least that many, because the driver would not say
    uint64_t last_node_index;   // in the order of recording; the first, also of a body, is 0
    char last_node_name[64];    // "memcpy", "memset" or the kernel's name; "" when not known
    char last_node_label[128];  // path of its scope
    // Bodies of conditional nodes (rondo/control.h) that it lies in, one inside the other; its
    // index counts in the innermost. 0: it is a node of the graph itself.
    uint32_t last_node_depth;
} rondo_capture_report;

// The report on the graph's latest capture. Kept until the next begin, also across a reset.
//
// out_report   its struct_size says how much of it is filled in.
//
// Errors:    INVALID (unknown size).
RONDO_API RONDO_MUST_USE rondo_status rondo_graph_get_report(const rondo_graph *graph,
                                                             rondo_capture_report *out_report);

// Writes the report as a few lines of text, ended by a null byte and cut where `capacity` ends.
//
// Returns:   the length of the whole text without the null byte, as snprintf does; 0 for NULL and
//            for a struct_size beyond this library's. An older program's smaller one will do.
RONDO_API size_t rondo_capture_report_format(const rondo_capture_report *report, char *text,
                                             size_t capacity);

// "SYNCHRONIZE" and so on; "UNKNOWN" for a value not in the list.
RONDO_API const char *rondo_capture_cause_get_name(rondo_capture_cause cause);

RONDO_EXTERN_C_END

#endif  // RONDO_REPORT_H
