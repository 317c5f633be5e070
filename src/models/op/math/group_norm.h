// op/math/group_norm.h — normalisation of groups of channels, which three ops do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct rondo__group_norm {
    int64_t batch, channels, span;  // of the values: [batch, channels, span]
    int64_t groups;                 // channels / groups neighbours have one mean and one variance
    bool is_by_group;  // scale and shift have one number for each group; otherwise for each channel
    double epsilon;
} rondo__group_norm;

// In place. No extent is 0.
void rondo__normalize_groups(const rondo__group_norm *norm, const double *scale,
                             const double *shift, double *values);
