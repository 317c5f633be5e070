// backend/cuda/graph/cuda_conditional.h — conditional nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/driver/cuda_device.h"

rondo_status rondo__cuda_check_feature(rondo_device *device, rondo_feature feature);
rondo_status rondo__cuda_add_conditional(rondo_stream *parent, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional);
rondo_status rondo__cuda_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index);
rondo_status rondo__cuda_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body);
void rondo__cuda_release_conditional(rondo__conditional *conditional);
// Loads the kernel that sets conditions, which a capture in global mode would not survive. A
// failure is reported when a call needs the kernel.
void rondo__cuda_prepare_conditions(rondo__cuda_device *device);
