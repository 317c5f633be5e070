// rondo/rondo.h — capture GPU work once, replay it at hardware speed.
//
// Read the headers in this order; each needs only those above it.
//
// Structs that begin with `struct_size` may grow in later releases. The program sets it, and zeroes
// stand for the defaults:  rondo_graph_options options = {.struct_size = sizeof options};
// A shorter struct than the library's is an older program's and is read, or filled in, as far as it
// goes; a longer one is refused (INVALID). Structs marked "ABI: fixed" never change.
//
// Where a comment says nothing of threads, any thread may call. Where it says nothing of captures,
// the call may be made while streams record, in any mode; it is not recorded and breaks no capture.
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

// clang-format off
#include "rondo/export.h"    // how symbols are marked
#include "rondo/status.h"    // what can fail, and the record of the last failure
#include "rondo/log.h"       // where messages go
#include "rondo/text.h"      // names from strangers, made fit to show
#include "rondo/tensor.h"    // element types, shapes, tensors
#include "rondo/device.h"    // devices, streams, events, memory, work
#include "rondo/dlpack.h"    // tensors from and to other libraries
#include "rondo/label.h"     // scopes that name what is put on a stream
#include "rondo/pool.h"      // memory in stream order, cached
#include "rondo/graph.h"     // capture and replay
#include "rondo/random.h"    // random numbers that replays draw anew
#include "rondo/report.h"    // what broke a capture
#include "rondo/control.h"   // if, switch and while, decided on the device
#include "rondo/program.h"   // a model as data
#include "rondo/onnx.h"      // models and tensors from files
#include "rondo/executor.h"  // a program on a device
#include "rondo/version.h"   // which Rondo this is
// clang-format on

#endif  // RONDO_RONDO_H
