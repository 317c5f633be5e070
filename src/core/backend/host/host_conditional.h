// backend/host/host_conditional.h — conditional nodes that are being recorded.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__host_check_feature(rondo_device *device, rondo_feature feature);
rondo_status rondo__host_add_conditional(rondo_stream *parent, rondo_scope_kind kind,
                                         const void *predicate, uint32_t branch_count,
                                         rondo__conditional **out_conditional);
rondo_status rondo__host_begin_body(rondo__conditional *conditional, uint32_t branch,
                                    rondo_stream *body, rondo__node_handle *out_node,
                                    uint32_t *out_index);
rondo_status rondo__host_end_body(rondo__conditional *conditional, uint32_t branch,
                                  rondo_stream *body);
void rondo__host_release_conditional(rondo__conditional *conditional);
