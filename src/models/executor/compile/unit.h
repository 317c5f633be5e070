// executor/compile/unit.h — making units: one program each, with its plans.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// Makes what runs need: the base, the stream (NULL: one of its own), events.
//
// Errors:    as rondo_executor_create.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_prepare(rondo__unit *unit, rondo_stream *stream);

// Makes the unit of a body of `parent`'s program. `stream` is the parent's, or NULL: the body gets
// one of its own.
//
// Errors:    as rondo_executor_create; BAD_DATA when bodies are nested too deeply.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_create_body(const rondo__unit *parent, rondo_program *body,
                                                    rondo_stream *stream, rondo__unit **out_unit);

// Makes the unit of a variant of the caller's program; it shares the stream.
//
// Errors:    as rondo_executor_create.
// Ownership: destroy it with rondo__unit_destroy.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__unit_create_variant(rondo_executor *executor,
                                                       rondo_program *program,
                                                       rondo__unit **out_unit);
