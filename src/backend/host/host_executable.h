// backend/host/host_executable.h — programs that replays run.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_BACKEND_HOST_HOST_EXECUTABLE_H
#define RONDO_BACKEND_HOST_HOST_EXECUTABLE_H

#include "backend/backend.h"

rondo_status rondo__host_instantiate(rondo__template *template_,
                                     rondo__executable **out_executable);
rondo_status rondo__host_update(rondo__executable *executable, rondo__template *template_,
                                bool *out_was_updated);
rondo_status rondo__host_upload(rondo__executable *executable, rondo_stream *stream);
rondo_status rondo__host_replay(rondo__executable *executable, rondo_stream *stream);
uint64_t rondo__host_count_executed(rondo__executable *executable);
void rondo__host_destroy_executable(rondo__executable *executable);

#endif  // RONDO_BACKEND_HOST_HOST_EXECUTABLE_H
