// rondo/models.h — models on a device: read from ONNX files or made in code, run, replayed.
//
// What rondo/rondo.h says of calls, structs and arguments holds here, too. A library that was built
// with RONDO_MODELS=OFF has none of this.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_MODELS_H
#define RONDO_MODELS_H

// clang-format off
#include "rondo/rondo.h"      // what captures and replays
#include "rondo/program.h"    // a model as data
#include "rondo/onnx.h"       // models and tensors from files, and to files
#include "rondo/builder.h"    // a model made in code, and read back
#include "rondo/variable.h"   // inputs that executors keep from run to run
#include "rondo/user_op.h"    // ops of the program's own
#include "rondo/executor.h"   // a program on a device
#include "rondo/tuning.h"     // choices of kernels as a file; plan files: a model made ready
#include "rondo/placement.h"  // where ops run, and what is copied in between
#include "rondo/self_check.h"  // replays compared with eager runs
#include "rondo/executor_stream.h"  // runs on the program's stream, not waited for, recorded
#include "rondo/executor_state.h"   // weights and states by name, kept from run to run
#include "rondo/op.h"         // ops one by one
#include "rondo/training.h"   // gradients, steps that train, ranks of several GPUs
// clang-format on

#endif  // RONDO_MODELS_H
