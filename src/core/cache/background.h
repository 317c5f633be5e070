// cache/background.h — captures on a thread of the cache's own, one at a time.
//
//   user of the cache           the thread
//   start --------------------> step on its own stream, capture, executable
//   (runs go on eagerly)            |
//   take <--------------------------+ a graph, or why there is none
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "cache/cache_graph.h"
#include "rondo/graph_cache.h"

typedef struct rondo__background rondo__background;

// The result of a capture.
typedef struct rondo__background_result {
    void *subject;                       // as given to rondo__background_start
    rondo_graph *graph;                  // the caller's now; NULL: it failed
    char message[RONDO__MESSAGE_BYTES];  // why
    uint64_t capture_ns;
    uint64_t executable_ns;
} rondo__background_result;

// Starts the thread.
//
// options    of the cache, which outlives the result.
//
// Errors:    NO_MEMORY, DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__background_create(rondo_device *device,
                                                     const rondo_graph_cache_options *options,
                                                     rondo__background **out_background);
// Whether the calling thread is the background's own: in a step.
bool rondo__background_is_here(const rondo__background *background);
// Waits for the capture under way, and gives up what came of it. NULL is fine.
void rondo__background_destroy(rondo__background *background);

// Begins a capture. False: one is under way, or its result was not taken yet.
bool rondo__background_start(rondo__background *background, void *subject, rondo__cache_clock clock,
                             rondo_step_function step, void *user_data);
// Takes a result. False: there is none (yet).  Cost: one load then.
bool rondo__background_take(rondo__background *background, rondo__background_result *out_result);
// Waits until no capture is under way.
void rondo__background_wait(rondo__background *background);
