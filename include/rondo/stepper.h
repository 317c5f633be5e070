// rondo/stepper.h — one call at the place of each launch: it runs, is recorded, or is patched.
//
// A loop whose steps put the same work with other arguments changes by one line a launch:
//
//   rondo_stepper_begin(stepper, stream);
//   rondo_stepper_put(stepper, &scale);      // was: rondo_stream_launch(stream, ...)
//   rondo_stepper_put(stepper, &add);
//   rondo_stepper_end(stepper);
//
// The first step runs eagerly, the second is recorded and replayed, from the third on each put
// patches its node where the work has changed, and the end replays the graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_STEPPER_H
#define RONDO_STEPPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/node.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_stepper rondo_stepper;

typedef struct rondo_stepper_options {
    size_t struct_size;       // sizeof(rondo_stepper_options)
    uint32_t eager_steps;     // that run before one is recorded; 0 means 1
    bool records_at_once;     // none does: the first step is recorded
    rondo_capture_mode mode;  // of the recording
    const char *label;        // of the graph; copied; NULL means "step"
    // The first steps are eager, at least 16. What steps take is measured in blocks of one way in a
    // row, from the start of one step to the start of another, or on the device where that is
    // longer; then the other way is tried, and what is slower by more than an eighth does not stay.
    // The first trials cost at most 5/16 of what all steps so far have taken, and one step, if
    // a recording takes no longer than four eager steps or than an earlier one; later ones are made
    // only while all of them cost no more than a hundredth. Where the first 16 steps or more are
    // slow, a graph that is slower than later eager steps may stay for some 130 steps. A step may
    // be EAGER again at any time. Not with records_at_once.
    bool measures;
} rondo_stepper_options;

// What puts do in the present step; after its end, what they did in the last one.
typedef int32_t rondo_stepper_mode;
enum {
    RONDO_STEPPER_EAGER = 0,
    RONDO_STEPPER_RECORDS = 1,
    RONDO_STEPPER_PATCHES = 2,
};

// Makes a stepper; its graph is recorded by one of the first steps.
//
// Errors:    INVALID (options.mode is no capture mode; options that do not go together).
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_create(rondo_device *device,
                                                           const rondo_stepper_options *options,
                                                           rondo_stepper **out_stepper);
// Gives up a step that was begun, waits for replays in flight.
RONDO_API void rondo_stepper_destroy(rondo_stepper *stepper);

// Begins a step on the stream, which is borrowed to its end.
//
// Errors:    STATE (a step was begun already; `stream` records).
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_begin(rondo_stepper *stepper,
                                                          rondo_stream *stream);

// Puts the step's next work. Each step puts the same kinds of work in the same order. A recorded
// graph (CHILD) stays what it was when the step was recorded.
//
// Errors:    STATE (no step was begun; more work than was recorded), those of rondo_stream_add_node
//            and rondo_graph_patch. From then on the step is spoilt: its end fails, too.
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_put(rondo_stepper *stepper,
                                                        const rondo_work *work);

// Leaves out the step's next work: it is named as for a put, for it may have to be recorded, and
// does nothing in this step. What comes behind it runs as ever.
//
// Errors:    as rondo_stepper_put; UNSUPPORTED (host functions and graphs, which no driver switches
//            off).
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_skip(rondo_stepper *stepper,
                                                         const rondo_work *work);

// Ends the step; what was put is on the stream. After a failure nothing of a step that was recorded
// or patched runs, and the next step is the first again: it runs eagerly, or is recorded at once
// where the options say so.
//
// Errors:    STATE (no step was begun; a put failed; less work than was recorded), those of
//            rondo_graph_capture_end and rondo_graph_replay.
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_end(rondo_stepper *stepper);

// The next step is the first again.
//
// Errors:    STATE (a step was begun).
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_reset(rondo_stepper *stepper);

// Work that never changes need not be put: it is issued as ever, where this says EAGER or RECORDS,
// and left out where it says PATCHES.
RONDO_API rondo_stepper_mode rondo_stepper_get_mode(const rondo_stepper *stepper);

// Writes what options.measures has chosen for the next step, and why, as RONDO_TEXT_PLAIN or
// RONDO_TEXT_JSON.
//
// Errors:    INVALID (another format).
RONDO_API RONDO_MUST_USE rondo_status rondo_stepper_describe(const rondo_stepper *stepper,
                                                             rondo_text_format format,
                                                             rondo_write_function write,
                                                             void *user_data);

// The graph, for dumps and statistics; borrowed.
RONDO_API rondo_graph *rondo_stepper_get_graph(const rondo_stepper *stepper);

RONDO_EXTERN_C_END

#endif  // RONDO_STEPPER_H
