// executor/state/generators.h — what the random ops of an executor draw from.
//
// One generator serves every op without a seed of its own. An op with a seed has a generator that
// is found by the node's name, so that it goes on drawing when another plan is made for other
// shapes. Bodies use those of the executor around them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "executor/state/plan.h"

// The generator that `node`, which draws, uses; made when it is first asked for.
//
// Errors:    as rondo_generator_create.
// Ownership: the executor's.
// Threads:   one thread per executor.
RONDO_MUST_USE rondo_status rondo__executor_get_generator(rondo_executor *executor,
                                                          const rondo__node *node,
                                                          rondo_generator **out_generator);
// The one of the node `name`, or of all ops without a seed (NULL); one that is made starts at
// `seed`.
RONDO_MUST_USE rondo_status rondo__executor_find_generator(rondo_executor *executor,
                                                           const char *name, uint64_t seed,
                                                           rondo_generator **out_generator);
void rondo__executor_release_generators(rondo_executor *executor);
