// rondo/rondo.h — capture GPU work once, replay it at hardware speed.
//
// Read the headers in this order; each includes what it needs. The core is enough to capture and
// replay; the models tier runs ONNX files; what is advanced can wait until it is needed.
//
// What holds for every call, unless its comment says otherwise:
//
//   Errors     A call that returns a rondo_status may fail with INVALID (an argument is NULL, or of
//              another device, or out of range), NO_MEMORY (host memory), DRIVER and LOST. "Errors"
//              names others, and what is special. After a failure outputs are zero and
//              rondo_error_get_last() says why. Release and destroy take NULL.
//   Threads    A stream, a graph, a graph cache and an executor are used by one thread at a time,
//              whichever it is. All else any thread may call, several at once.
//   Captures   The call may be made while streams record, in any mode; it is not recorded and
//              breaks no capture.
//   Ownership  create ... destroy: the object has one owner. Those that are shared are counted:
//              create or open gives one reference, retain adds one, release gives one up, the last
//              frees. What an object needs it retains by itself: a program may be destroyed before
//              its executors. init ... deinit: a struct in the caller's memory. get: borrowed.
//   Sizes      Counts, indices and bytes in arguments are size_t; what statistics and descriptions
//              say is uint64_t; times are in nanoseconds.
//
// Structs that begin with `struct_size` may grow in later releases. The program sets it, and zeroes
// stand for the defaults:  rondo_graph_options options = {.struct_size = sizeof options};
// A shorter struct than the library's is an older program's and is read, or filled in, as far as it
// goes; a longer one is refused (INVALID). Of an array the first entry's size holds for all.
// Structs marked "ABI: fixed" never change. Enumerations are int32_t. docs/platforms.md says what
// stays compatible.
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

// Models: ONNX files on a device.
#include "rondo/tensor.h"     // element types, shapes, tensors
#include "rondo/program.h"    // a model as data
#include "rondo/onnx.h"       // models and tensors from files
#include "rondo/executor.h"   // a program on a device

// Advanced.
#include "rondo/text.h"       // text formats; names from strangers, made fit to show
#include "rondo/label.h"      // scopes that name what is put on a stream
#include "rondo/pool.h"       // memory in stream order, cached
#include "rondo/random.h"     // random numbers that replays draw anew
#include "rondo/graph_cache.h"  // graphs by key, captured where that pays
#include "rondo/dlpack.h"     // tensors from and to other libraries
#include "rondo/allocator.h"  // whose heap the library uses

// Experimental: may change in any release.
#include "rondo/control.h"    // if, switch and while, decided on the device
// clang-format on

#endif  // RONDO_RONDO_H
