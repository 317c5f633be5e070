// backend/cuda/graph/cuda_patch.h — nodes that do something else from the next replay on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/graph/cuda_executable.h"
#include "backend/node_image.h"

rondo_status rondo__cuda_read_node(rondo__template *template_, size_t index,
                                   rondo__node_image *out_image);
rondo_status rondo__cuda_patch_nodes(rondo__executable *executable, rondo__template *template_,
                                     rondo__node_image *const *images, size_t count,
                                     size_t *out_done);
rondo_status rondo__cuda_enable_node(rondo__executable *executable, rondo__template *template_,
                                     const rondo__node_image *image);
// Host nodes call what the template says again: the calls that they were patched to are freed as
// soon as the replays of them have run.
void rondo__cuda_end_calls(rondo__cuda_executable *executable);
// The executable is destroyed: gives up the calls that its host nodes were patched to.
void rondo__cuda_drop_calls(rondo__cuda_executable *executable);
