// random/generator_capture.h — what is drawn from a generator on a stream that records.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "rondo/random.h"

// Launches a kernel that draws from `stream`'s next counters, which are at the distance `relative`
// from the offset.
typedef rondo_status (*rondo__random_issue)(rondo_generator *generator, rondo_stream *stream,
                                            uint64_t relative, void *data);

// rondo__generator_draw for a stream that records into `id` of `capture`.
RONDO_MUST_USE rondo_status rondo__generator_draw_recorded(
    rondo_generator *generator, rondo_stream *stream, rondo__capture *capture, uint64_t id,
    uint64_t counters, rondo__random_issue issue, void *data, uint64_t *out_relative);
// rondo_generator_get_mark and rondo_generator_rewind there.
RONDO_MUST_USE rondo_status rondo__generator_mark_recorded(rondo_generator *generator,
                                                           rondo__capture *capture, uint64_t id,
                                                           rondo_generator_mark *out_mark);
RONDO_MUST_USE rondo_status rondo__generator_rewind_recorded(rondo_generator *generator,
                                                             rondo__capture *capture, uint64_t id,
                                                             const rondo_generator_mark *mark);
// Refuses `call` while a capture in progress draws from the generator.
//
// Errors:    STATE: the message names the graph.
RONDO_MUST_USE rondo_status rondo__generator_refuse_recording(const rondo_generator *generator,
                                                              const char *call);
