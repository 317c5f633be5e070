// rondo/profile.h — where the time of a region goes.
//
//   rondo_profile *profile = NULL;
//   rondo_profile_create(NULL, &profile);      // before captures, so that nodes have names
//   ... warm up ...
//   rondo_profile_start(profile);
//   rondo_profile_begin("step");               // an event of the program's own; they nest
//   ... runs, replays, launches, copies ...
//   rondo_profile_end();
//   rondo_stream_synchronize(stream);          // work still under way does not count
//   rondo_profile_stop(profile);
//   rondo_profile_write(profile, NULL, write, user_data);
//   rondo_profile_destroy(profile);
//
// Between start and stop the library takes down what the processor does in it (events: runs, plans,
// captures, patches, replays, launches of ops, copies, waits, label scopes) and what devices do
// (work: kernels, copies, fills, host functions). Outside of that a profile costs nothing.
//
// Times mean:
//
//   total      of an event: from its begin to its end on its thread, with what is nested in it. Of
//              device work: the time it took there.
//   CPU time   what the processor spent in the event: its total without the waits for devices that
//              are nested in it, copies that wait included.
//   GPU time   busy time on devices of what the event put there, also when that ran behind the end
//              of the event. Work that overlaps other work of the same row counts once. On the host
//              device the worker of a stream is what is busy.
//   region     from start to stop by the clock. Its computation is the time in which at least one
//              op was computed, on a device or the processor (copies do not compute); the rest is
//              the framework's overhead. The two add up to the region.
//
// CPU time and GPU time of one row overlap wherever the processor goes on while a device works, so
// they do not add up to the total. Top-level events of a thread, with a row for the time outside of
// events, add up to the region; of several threads in one table, to the region times the threads.
//
// Times of devices other than the host's come from a source that the summary names. Where events
// enclose each other by halves (a capture that a thread begins inside of a label scope and ends
// behind it), the inner one ends with the outer one.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PROFILE_H
#define RONDO_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_profile rondo_profile;

// Where times of device work come from.
typedef int32_t rondo_profile_source;
enum {
    RONDO_PROFILE_SOURCE_AUTO = 0,    // CUPTI where there is one, otherwise events
    RONDO_PROFILE_SOURCE_CUPTI = 1,   // each kernel and copy, also inside replayed graphs
    RONDO_PROFILE_SOURCE_EVENTS = 2,  // timing events around each op, copy and replay, one event
                                      // between two ops that follow each other: if the processor is
                                      // slower than the device, the time in which the device waits
                                      // counts for the op that it waits for
    RONDO_PROFILE_SOURCE_NONE = 3,    // the processor's own work only
};

typedef struct rondo_profile_options {
    size_t struct_size;  // sizeof(rondo_profile_options)
    rondo_profile_source source;
    uint64_t record_limit;  // events, work and samples kept; 0: 1 million. More are counted and
                            // dropped
} rondo_profile_options;

// Makes a profile that has not started.
//
// While a profile exists, captures keep the label and name of each node, which costs each some
// microseconds; a graph that was captured before is one piece of work in each replay.
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_create(const rondo_profile_options *options,
                                                           rondo_profile **out_profile);

// Stops the profile if it runs, and frees it.
RONDO_API void rondo_profile_destroy(rondo_profile *profile);

// Begins the region. Records of an earlier region of the same profile are freed.
//
// Errors:    STATE (a profile runs already: there is one at a time in a process; or something
//            records, as a graph cache may in the background: rondo_graph_cache_wait waits for
//            that), UNAVAILABLE (the source asked for is not to be had; AUTO never fails for
//            that).
// Threads:   the events of all threads are taken down.
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_start(rondo_profile *profile);

// Ends the region. Work of devices that is still under way is not in it.
//
// Errors:    STATE (the profile does not run; or an event that this thread has begun since the
//            start is open: then it goes on running).
// Threads:   as start.
// Cost:      sorts what was kept: about a second for a million records.
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_stop(rondo_profile *profile);

// Begins an event of the program's own on this thread. Where no profile runs it costs a few
// nanoseconds, as does its end, so programs keep both. Tools that listen through NVTX see a range.
//
// name       copied.
//
// Errors:    INVALID (NULL or empty); STATE (64 are open already).
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_begin(const char *name);

// Ends the event that this thread began last.
//
// Errors:    STATE (none is open).
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_end(void);

// ---- the numbers ------------------------------------------------------------------------------

typedef struct rondo_profile_summary {
    size_t struct_size;       // sizeof(rondo_profile_summary)
    uint64_t total_ns;        // of the region
    uint64_t computation_ns;  // at least one op was computed
    uint64_t framework_ns;    // the rest
    uint64_t device_ns;       // at least one device was busy, copies included
    uint64_t async_calls;     // copies from, to and on devices without a wait
    uint64_t async_ns;        // by the device's clock where that is known
    uint64_t async_bytes;
    uint64_t sync_calls;  // copies whose call waited, or for which a run waited before it went on
    uint64_t sync_ns;
    uint64_t sync_bytes;
    uint64_t thread_count;   // that had events
    uint64_t span_count;     // events kept
    uint64_t work_count;     // work of devices kept
    uint64_t dropped_count;  // records that did not fit
    const char *source;      // where the times of devices come from, in words
} rondo_profile_summary;

// Fills *out_summary.
//
// Errors:    STATE (the profile was not stopped).
// Ownership: texts live until the profile is started again or destroyed.
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_summary(rondo_profile *profile,
                                                                rondo_profile_summary *out_summary);

// By what rows are sorted, the largest first.
typedef int32_t rondo_profile_key;
enum {
    RONDO_PROFILE_BY_TOTAL = 0,
    RONDO_PROFILE_BY_CALLS = 1,
    RONDO_PROFILE_BY_MIN = 2,
    RONDO_PROFILE_BY_MAX = 3,
    RONDO_PROFILE_BY_AVERAGE = 4,
    RONDO_PROFILE_BY_GPU = 5,  // GPU time; of rows without any, the total
};

// What an event is.
typedef int32_t rondo_profile_category;
enum {
    RONDO_PROFILE_USER = 0,         // rondo_profile_begin, label scopes; time outside of events
    RONDO_PROFILE_RUN = 1,          // a call of an executor
    RONDO_PROFILE_PLAN = 2,         // compiling a plan
    RONDO_PROFILE_TUNE = 3,         // compiling and choosing kernels
    RONDO_PROFILE_CAPTURE = 4,      // from begin to end
    RONDO_PROFILE_INSTANTIATE = 5,  // and updating
    RONDO_PROFILE_PATCH = 6,
    RONDO_PROFILE_REPLAY = 7,     // putting a replay on a stream
    RONDO_PROFILE_OP = 8,         // launching an op's kernels
    RONDO_PROFILE_COMPUTE = 9,    // an op computed on the processor
    RONDO_PROFILE_COPY = 10,      // putting a copy on a stream, or doing one
    RONDO_PROFILE_WAIT = 11,      // for a device
    RONDO_PROFILE_ALLOCATE = 12,  // and freeing
};

// One row of the table: events of the same name under the same row, or what they put on devices,
// one row for each label, or name where there is no label.
typedef struct rondo_profile_row {
    size_t struct_size;  // sizeof(rondo_profile_row)
    uint64_t parent;     // index of the row around it, which stands before it; UINT64_MAX: none
    uint32_t depth;      // 0: top level
    // Which of the threads that had events since the process began, in the order of their first, as
    // "threads" of the JSON form lists them; so it may be more than this region's thread_count.
    // UINT32_MAX: of all threads.
    uint32_t thread;
    rondo_profile_category category;
    bool is_device_work;  // then cpu_ns is 0 and category that of the events
    const char *name;
    const char *detail;  // of copies: variable, type and shape, where all agree; otherwise ""
    uint64_t calls;
    uint64_t total_ns;  // the average is total_ns / calls
    uint64_t cpu_ns;
    uint64_t gpu_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t bytes;  // copies, allocations
} rondo_profile_row;

// The rows of the table in the order in which a report shows them: each followed by those under it,
// which stand in the order of `key`.
//
// per_thread   a table for each thread, one behind the other; otherwise one.
//
// Errors:    STATE (the profile was not stopped).
// Ownership: as the summary's.
RONDO_API RONDO_MUST_USE rondo_status rondo_profile_get_rows(rondo_profile *profile,
                                                             rondo_profile_key key, bool per_thread,
                                                             rondo_profile_row *rows,
                                                             size_t capacity, size_t *out_count);

// ---- the report -------------------------------------------------------------------------------

typedef int32_t rondo_profile_format;
enum {
    RONDO_PROFILE_PLAIN = 0,  // for people
    RONDO_PROFILE_JSON = 1,   // the report and all records, for programs; `rondo profile --compare`
    RONDO_PROFILE_TRACE = 2,  // for Perfetto and chrome://tracing
    RONDO_PROFILE_HTML = 3,   // one page
};

typedef struct rondo_profile_write_options {
    size_t struct_size;  // sizeof(rondo_profile_write_options)
    rondo_profile_format format;
    rondo_profile_key key;
    bool per_thread;      // a table for each thread; otherwise merged
    const char *title;    // NULL: none
    const char *event;    // only what lies in the first of the program's outermost events of this
                          // name, as if the region were that event; NULL: the whole region
    const char *picture;  // HTML: SVG that the page shows as it is, as the description of a plan
                          // (RONDO_TEXT_SVG); NULL: none
    size_t row_limit;     // plain: so many rows under each row, the largest first, and one line for
                          // the rest; 0: all
} rondo_profile_write_options;

// Writes the report. JSON is one object: "format" (1), "title", "source", "total_ns",
// "computation_ns", "framework_ns", "device_ns", "dropped_count", "memcpy" ({"async": {"calls",
// "ns", "bytes"}, "sync": ...}), "threads" ([{"id", "name"}]), "rows" (rondo_profile_row's fields;
// parent -1: none), "spans" ([id, parent, thread, category, name, detail, begin_ns, end_ns, bytes,
// way, is_async]), "works" ([span, kind, way, name, label, device, stream, bytes, begin_ns,
// end_ns]) and "samples" ([name, time_ns, value]); names and labels there are numbers in "texts",
// and times count from the region's begin. The page has a table of each outermost event of the
// program whose name occurs once, and two of them side by side; so that a program marks what it
// wants to compare.
//
// write        returns false to stop early, which is no failure.
//
// Errors:    INVALID (there is no such event), STATE (the profile was not stopped).
RONDO_API RONDO_MUST_USE rondo_status
rondo_profile_write(rondo_profile *profile, const rondo_profile_write_options *options,
                    rondo_write_function write, void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_PROFILE_H
