// rondo/rondo.h — capture GPU work once, replay it at hardware speed.
//
// Read the headers in this order. The core is enough to capture and replay; docs/concepts.md has
// the ideas, docs/glossary.md the words. Models, from ONNX files or made in code, are in
// rondo/models.h.
//
// What holds for every call, unless its comment says otherwise:
//
//   Errors     A call that returns a rondo_status may fail with INVALID (an argument NULL, out
//              of range, or of another device), NO_MEMORY (host memory), DRIVER and LOST; "Errors"
//              names others. After a failure outputs are zero and rondo_error_get_last() says why.
//   Arguments  Options that are NULL mean the defaults. Retain, release and destroy take NULL.
//   Threads    One thread at a time uses a stream, graph, graph cache, generator, learned step,
//              stepper, builder, op, profile or executor. All else any thread may call, several at
//              once.
//   Capture    The call may be made while streams record; it is not recorded and breaks nothing.
//   Ownership  create ... destroy: one owner. create or open, retain, release: counted, the last
//              release frees. What an object needs it retains by itself. init ... deinit: a struct
//              in the caller's memory. get: borrowed for as long as the object lives.
//   Lists      Calls that list write at most `capacity` entries and set *out_count to how many
//              there are: a first call may pass NULL and 0.
//   Sizes      size_t in arguments, uint64_t in statistics; times in nanoseconds.
//
// What stands behind the fence, #if defined(RONDO_EXPERIMENTAL), may change or go in any release.
// A program that uses it defines that before it includes Rondo.
//
// Structs that begin with `struct_size` may grow. The program sets it; zeroes are the
// defaults:  rondo_graph_options options = {.struct_size = sizeof options};
// A shorter struct is an older program's, and is read or filled as far as it goes; a longer one is
// refused. In an array the first entry's counts. Structs marked "ABI: fixed" have none, and never
// change.
// Enumerations are int32_t. docs/platforms.md says what stays compatible.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

// clang-format off
// Core: devices, and what is captured and replayed on them.
#include "rondo/export.h"     // how symbols are marked
#include "rondo/version.h"    // which Rondo this is
#include "rondo/status.h"     // what can fail, and the record of the last failure
#include "rondo/log.h"        // where messages go
#include "rondo/device.h"     // devices, streams, events, memory, work
#include "rondo/graph.h"      // capture and replay
#include "rondo/report.h"     // what broke a capture

// Advanced.
#include "rondo/tensor.h"     // element types, shapes, tensors
#include "rondo/inspect.h"    // inside a graph: nodes, dumps, handles; watchdogs
#include "rondo/text.h"       // text formats; names from strangers, made fit to show
#include "rondo/update.h"     // another recording taken over; graphs in files
#include "rondo/node.h"       // nodes by handle: added, patched, switched off
#include "rondo/stepper.h"    // one call at the place of each launch
#include "rondo/label.h"      // scopes that name what is put on a stream
#include "rondo/profile.h"    // where the time of a region goes
#include "rondo/log_record.h" // messages with time, thread and place; levels by room
#include "rondo/pool.h"       // memory in stream order, cached
#include "rondo/copy.h"       // copies from one device to another
#include "rondo/random.h"     // random numbers that replays draw anew
#include "rondo/graph_cache.h"  // graphs by key, captured where that pays
#include "rondo/dlpack.h"     // tensors from and to other libraries
#include "rondo/learn.h"      // a step whose arguments change, with its code unchanged
#include "rondo/allocator.h"  // whose heap the library uses
#include "rondo/workers.h"    // shared threads
#include "rondo/control.h"    // if, switch and while, decided on the device
// clang-format on

#endif  // RONDO_RONDO_H
