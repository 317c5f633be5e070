// backend/cuda/graph/cuda_use.h — what recorded work uses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/graph/cuda_template.h"
#include "backend/node_image.h"

// The clusters of all kernels of a template, those inside nodes, too, and whether their priorities
// differ.
typedef struct rondo__cuda_attribute_sum {
    uint64_t hash;
    bool is_known;           // otherwise there are bodies that Rondo did not record
    bool wants_priorities;   // the next three are asked for
    bool has_priorities;     // kernels outside of bodies differ in their priority
    bool has_kernels;        // outside of bodies, so far
    int64_t first_priority;  // of one of them
    uint32_t body_depth;     // of bodies around, while they are gone through
} rondo__cuda_attribute_sum;

rondo_status rondo__cuda_find_allocation(rondo_device *device, const void *address,
                                         rondo__allocation *out_allocation);
rondo_status rondo__cuda_find_owner(rondo_device *device, const void *address,
                                    int32_t *out_ordinal);
rondo_status rondo__cuda_visit_arguments(rondo__template *template_, size_t index,
                                         rondo__visit_bytes visit, void *user_data);

// Whether the driver shows the arguments of the kernel, if it has any.
bool rondo__cuda_shows_parameters(const rondo__cuda_device *device,
                                  const rondo__cu_kernel_node *params);
// Shows them: each parameter by itself, or, of a launch with packed arguments, all as one.
typedef rondo_status (*rondo__visit_parameter)(void *user_data, rondo__parameter place,
                                               const void *bytes);
rondo_status rondo__cuda_visit_parameters(rondo__cuda_device *device,
                                          const rondo__cu_kernel_node *params,
                                          rondo__visit_parameter visit, void *user_data);

rondo_status rondo__cuda_read_attributes(rondo__template *template_, size_t index,
                                         rondo__launch_attributes *out_attributes);
// The same for a kernel node by its handle.
rondo_status rondo__cuda_read_native_attributes(rondo__cuda_device *device,
                                                rondo__cu_graph_node node,
                                                rondo__launch_attributes *out_attributes);

// Templates whose kernels have the same clusters, in the order of their nodes, have equal hashes.
rondo_status rondo__cuda_sum_up_attributes(rondo__cuda_template *recorded, bool wants_priorities,
                                           rondo__cuda_attribute_sum *out_sum);
