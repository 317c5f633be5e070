// kernel/host/convolution/conv_windows.h — where the numbers that the windows of a convolution see
// stand in x, which has channels last.
//
// A window's taps are found by their positions from its first one. Where some lie in the padding a
// tap stands at zeros that are kept for it; or x is copied once with its padding around it, and all
// windows are inside of that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel/host/simd/simd.h"
#include "op/image/convolution.h"
#include "rondo/status.h"

enum { RONDO__VIEW_ROWS_MAX = 12 };

typedef struct rondo__conv_windows {
    rondo__window window;  // over x, or over its padded copy
    int64_t batch, channels, output_span;
    int64_t image;  // floats of x or of its copy
    int64_t taps;
    int64_t *tap_at;      // [taps, rank]: from the window's first tap, in elements of x
    int64_t *tap_offset;  // [taps]: the same as one number, in floats
    float *zeros;         // of all channels
    bool is_copied;
    rondo__window original;  // over x
} rondo__conv_windows;

// Prepares; with `copies`, the windows are those over a padded copy.
//
// Errors:    NO_MEMORY.
// Ownership: end with rondo__conv_windows_deinit, also after a failure.
RONDO_MUST_USE rondo_status rondo__conv_windows_init(rondo__conv_windows *windows,
                                                     const rondo__convolution *shape, bool copies);
void rondo__conv_windows_deinit(rondo__conv_windows *windows);

size_t rondo__conv_windows_get_copy_bytes(const rondo__conv_windows *windows);
// Makes the padded copy, with the workers' help, also of an x with channels first.
void rondo__conv_windows_copy(const rondo__conv_windows *windows, const float *x,
                              bool channels_last, float *out_copy);

// The windows of a few positions that follow each other, counted through all images.
typedef struct rondo__conv_view {
    int32_t rows;
    bool is_inside;                                           // all of them
    const float *at[RONDO__VIEW_ROWS_MAX];                    // tap 0, where it is inside
    int64_t place[RONDO__VIEW_ROWS_MAX][RONDO__SPATIAL_MAX];  // of tap 0, in elements of x
} rondo__conv_view;

void rondo__conv_windows_find(const rondo__conv_windows *windows, const float *x, int64_t position,
                              int32_t rows, rondo__conv_view *out_view);

// Lists where tap `tap` of each window stands, from channel `channel` on.
void rondo__conv_view_list_tap(const rondo__conv_windows *windows, const rondo__conv_view *view,
                               int64_t tap, int64_t channel, const float **out_starts);

// Positions that follow each other along the last axis, and whose windows have the same taps.
typedef struct rondo__conv_line {
    int64_t count;
    const float *x;     // from which the first window's taps are counted
    int64_t x_step;     // floats from one window to the next
    int32_t tap_count;  // as many as lie in x
} rondo__conv_line;

// The line that begins at `position`, of at most `most` positions. `out_taps` has room for all.
void rondo__conv_windows_find_line(const rondo__conv_windows *windows, const float *x,
                                   int64_t position, int64_t most, rondo__conv_line *out_line,
                                   rondo__tap *out_taps);
