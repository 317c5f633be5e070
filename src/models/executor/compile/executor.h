// executor/compile/executor.h — making executors, and the options they are made with.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_COMPILE_EXECUTOR_H
#define RONDO_EXECUTOR_COMPILE_EXECUTOR_H

#include "executor/state/plan.h"

// Makes an executor for a body of `parent`'s program, with the same device and options. `stream` is
// the parent's, or NULL: the body gets one of its own.
//
// Errors:    as rondo_executor_create; BAD_DATA when bodies are nested too deeply.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_create_body(rondo_executor *parent, rondo_program *body,
                                                        rondo_stream *stream,
                                                        rondo_executor **out_executor);

// Makes an executor of `program` that serves `root`, with whose options and limits it runs.
//
// Errors:    as rondo_executor_create.
// Ownership: destroy it with rondo_executor_destroy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_create_variant(rondo_executor *root,
                                                           rondo_program *program,
                                                           rondo_executor **out_executor);

#endif  // RONDO_EXECUTOR_COMPILE_EXECUTOR_H
