// backend/host/host_patch.h — nodes that do something else from the next replay on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/host/host_executable.h"
#include "backend/node_image.h"

rondo_status rondo__host_read_node(rondo__template *template_, size_t index,
                                   rondo__node_image *out_image);
rondo_status rondo__host_patch_nodes(rondo__executable *executable, rondo__template *template_,
                                     rondo__node_image *const *images, size_t count,
                                     size_t *out_done);
rondo_status rondo__host_enable_node(rondo__executable *executable, rondo__template *template_,
                                     const rondo__node_image *image);
// Makes the changes in the program and frees them; NULL is fine. By the replay that brings them,
// behind all earlier ones.
void rondo__host_make_changes(rondo__host_program *program, rondo__host_changes *changes);
