// random/generator.h — drawing from a generator, eagerly or recorded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "random/generator_capture.h"

// Calls `issue` for the next `counters` counters on `stream`, eagerly or in the stream's capture,
// and takes them if it succeeds. NULL: takes them at once. *out_relative is their distance from the
// offset.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST, and those of `issue`.
// Threads:   one thread at a time; others are refused.
RONDO_MUST_USE rondo_status rondo__generator_draw(rondo_generator *generator, rondo_stream *stream,
                                                  uint64_t counters, const char *call,
                                                  rondo__random_issue issue, void *data,
                                                  uint64_t *out_relative);
