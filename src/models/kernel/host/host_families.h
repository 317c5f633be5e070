// kernel/host/host_families.h — the preparers of host kernels, one for each family of ops.
//
// Each makes the kernel for one op, or yields UNSUPPORTED without an error record when this request
// is not one it is made for (dtype, rank, an attribute); the next entry of the table in
// host_prepare.c is then tried, and the reference in the end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/kernel.h"

rondo_status rondo__host_prepare_convolution(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_elementwise(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_update(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_choice(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_pool_places(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_batch_training(const rondo__kernel_request *request,
                                                rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_norm_gradient(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_loss(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_conv_weights(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_pool_gradient(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_plain(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_product(const rondo__kernel_request *request,
                                         rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_transpose(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_expand(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_slice(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_concat(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_split(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_gather(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_softmax(const rondo__kernel_request *request,
                                         rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_layer_normalization(const rondo__kernel_request *request,
                                                     rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_reduction(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_global_pool(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_group_norm(const rondo__kernel_request *request,
                                            rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_batch_normalization(const rondo__kernel_request *request,
                                                     rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_byte_pool(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_max_pool(const rondo__kernel_request *request,
                                          rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_average_pool(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_recurrent(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_rotary(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_swiglu(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_attention(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_scan(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_lrn(const rondo__kernel_request *request,
                                     rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_quantize_lstm(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_trees(const rondo__kernel_request *request,
                                       rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_byte_product(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_bits_product(const rondo__kernel_request *request,
                                              rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_byte_convolution(const rondo__kernel_request *request,
                                                  rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_quantize(const rondo__kernel_request *request,
                                          rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_quantized_sum(const rondo__kernel_request *request,
                                               rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_cast(const rondo__kernel_request *request,
                                      rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_resize(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_grid_sample(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_deform(const rondo__kernel_request *request,
                                        rondo__kernel **out_kernel);
rondo_status rondo__host_prepare_conv_transpose(const rondo__kernel_request *request,
                                                rondo__kernel **out_kernel);

// The plain C reference of the op as a kernel: works for every op that has one.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__host_prepare_reference(const rondo__kernel_request *request,
                                                          rondo__kernel **out_kernel);

// A copy of the bytes of input 0, for ops whose output is a view of it.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__host_prepare_view(const rondo__kernel_request *request,
                                                     rondo__kernel **out_kernel);
