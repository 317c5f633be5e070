// kernel/host/convolution/filter_panels.h — filters of a convolution in panels (packed_matrix.h):
// of each group a matrix of the numbers that a window sees (tap by tap, each with all channels) by
// filters. Where each channel has one filter (`is_depthwise`) there are no panels: [taps,
// channels].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/host/simd/simd.h"
#include "kernel/weights/weight_store.h"
#include "op/image/convolution.h"

size_t rondo__filter_panels_get_bytes(const rondo__simd *simd, const rondo__convolution *shape,
                                      bool is_depthwise);

// Packs w [filters, channels of a group, taps] with the workers' help.
void rondo__filter_panels_fill(const rondo__simd *simd, const rondo__convolution *shape,
                               bool is_depthwise, const float *w, float *out_panels);

// The panels of a constant.
//
// Errors:    as rondo__weight_list_add.
// Ownership: the list's.
RONDO_MUST_USE rondo_status rondo__filter_panels_keep(
    rondo__weight_list *list, const rondo__simd *simd, const rondo__convolution *shape,
    bool is_depthwise, const rondo_tensor *constant, const float **out_panels);
