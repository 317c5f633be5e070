// kernel/host/convolution/conv_windows.c — see conv_windows.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/convolution/conv_windows.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_threads.h"

// ---- preparing --------------------------------------------------------------------------------

static void list_taps(rondo__conv_windows *w) {
    const rondo__window *window = &w->window;
    int64_t index[RONDO__SPATIAL_MAX] = {0};
    int64_t tap = 0;
    do {
        int64_t offset = 0;
        for (int32_t i = 0; i < window->rank; ++i) {
            const int64_t at = index[i] * window->dilation[i];
            w->tap_at[tap * window->rank + i] = at;
            offset = offset * window->input[i] + at;
        }
        w->tap_offset[tap++] = offset * w->channels;
    } while (rondo__index_advance(window->rank, window->kernel, index));
}

rondo_status rondo__conv_windows_init(rondo__conv_windows *w, const rondo__convolution *shape,
                                      bool copies) {
    *w = (rondo__conv_windows){.window = shape->window,
                               .batch = shape->batch,
                               .channels = shape->channels,
                               .output_span = shape->output_span,
                               .image = shape->channels,
                               .taps = shape->kernel_span,
                               .is_copied = copies,
                               .original = shape->window};
    rondo__window *window = &w->window;
    for (int32_t i = 0; i < window->rank; ++i) {
        if (copies) {
            window->input[i] += window->pad_begin[i] + window->pad_end[i];
            window->pad_begin[i] = 0;
            window->pad_end[i] = 0;
        }
        w->image *= window->input[i];
    }
    w->tap_at = rondo__calloc((size_t)(w->taps * (window->rank + 1)), sizeof *w->tap_at);
    w->zeros = rondo__calloc((size_t)w->channels, sizeof *w->zeros);
    if (w->tap_at == NULL || w->zeros == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    w->tap_offset = w->tap_at + w->taps * window->rank;
    list_taps(w);
    return RONDO_STATUS_OK;
}

void rondo__conv_windows_deinit(rondo__conv_windows *w) {
    rondo__free(w->tap_at);
    rondo__free(w->zeros);
}

// ---- the padded copy --------------------------------------------------------------------------

size_t rondo__conv_windows_get_copy_bytes(const rondo__conv_windows *w) {
    return w->is_copied ? (size_t)(w->batch * w->image) * sizeof(float) : 0;
}

typedef struct copying {
    const rondo__conv_windows *windows;
    const float *x;
    bool channels_last;
    float *to;
} copying;

// Which row of x along the last axis row `row` of a padded image is; -1: it is padding.
static int64_t find_source(const rondo__conv_windows *w, int64_t row) {
    int64_t result = 0, scale = 1;
    for (int32_t i = w->window.rank - 2; i >= 0; --i) {
        const int64_t at = row % w->window.input[i] - w->original.pad_begin[i];
        row /= w->window.input[i];
        if (at < 0 || at >= w->original.input[i]) {
            return -1;
        }
        result += at * scale;
        scale *= w->original.input[i];
    }
    return result;
}

static void copy_rows(void *data, int64_t first, int64_t end) {
    const copying *c = data;
    const rondo__conv_windows *w = c->windows;
    const int32_t last = w->window.rank - 1;
    const int64_t channels = w->channels, width = w->original.input[last];
    const int64_t row_floats = w->window.input[last] * channels;
    const int64_t rows = w->image / row_floats;
    int64_t span = 1;
    for (int32_t i = 0; i <= last; ++i) {
        span *= w->original.input[i];
    }
    for (int64_t row = first; row < end; ++row) {
        float *to = c->to + row * row_floats;
        const int64_t source = find_source(w, row % rows);
        if (source < 0) {
            memset(to, 0, (size_t)row_floats * sizeof(float));
            continue;
        }
        const float *x = c->x + row / rows * span * channels;
        float *inside = to + w->original.pad_begin[last] * channels;
        float *behind = inside + width * channels;
        memset(to, 0, (size_t)(inside - to) * sizeof(float));
        memset(behind, 0, (size_t)(to + row_floats - behind) * sizeof(float));
        if (c->channels_last || channels == 1) {
            memcpy(inside, x + source * width * channels,
                   (size_t)(width * channels) * sizeof(float));
            continue;
        }
        for (int64_t channel = 0; channel < channels; ++channel) {
            const float *plane = x + channel * span + source * width;
            for (int64_t i = 0; i < width; ++i) {
                inside[i * channels + channel] = plane[i];
            }
        }
    }
}

void rondo__conv_windows_copy(const rondo__conv_windows *w, const float *x, bool channels_last,
                              float *out_copy) {
    const int64_t row_floats = w->window.input[w->window.rank - 1] * w->channels;
    const int64_t rows = w->batch * w->image / row_floats;
    const double bytes = 2.0 * (double)(w->batch * w->image) * sizeof(float);
    copying c = {w, x, channels_last, out_copy};
    rondo__workers_loop(rows, rondo__host_get_grain(rows, bytes, 0.0), copy_rows, &c);
}

// ---- finding ----------------------------------------------------------------------------------

// What all positions of one row along the last axis have in common.
typedef struct line {
    bool is_inside;
    const float *at;  // where x would have the row's element 0, for its first taps
} line;

static line find_line(const rondo__conv_windows *w, const float *x, int64_t image,
                      const int64_t *index) {
    const rondo__window *window = &w->window;
    bool is_inside = true;
    int64_t row = 0;
    for (int32_t i = 0; i < window->rank - 1; ++i) {
        const int64_t at = index[i] * window->stride[i] - window->pad_begin[i];
        const int64_t last = at + (window->kernel[i] - 1) * window->dilation[i];
        is_inside = is_inside && at >= 0 && last < window->input[i];
        row = row * window->input[i] + at;
    }
    // A window that is partly outside has no single address: it is read tap by tap.
    const int64_t first = is_inside ? row * window->input[window->rank - 1] * w->channels : 0;
    return (line){is_inside, x + image * w->image + first};
}

// A position, counted through all images.
typedef struct cursor {
    int64_t image;
    int64_t index[RONDO__SPATIAL_MAX];
} cursor;

static cursor find_cursor(const rondo__conv_windows *w, int64_t position) {
    cursor at = {.image = position / w->output_span};
    int64_t rest = position % w->output_span;
    for (int32_t i = w->window.rank - 1; i >= 0; --i) {
        at.index[i] = rest % w->window.output[i];
        rest /= w->window.output[i];
    }
    return at;
}

// To the first position of the next line.
static void advance_line(const rondo__conv_windows *w, cursor *at) {
    int32_t i = w->window.rank - 2;
    at->index[i + 1] = 0;
    while (i >= 0 && ++at->index[i] == w->window.output[i]) {
        at->index[i--] = 0;
    }
    at->image += i < 0 ? 1 : 0;
}

// Where the windows' first taps are, also in the padding.
static void find_places(const rondo__conv_windows *w, const float *x, int64_t position,
                        rondo__conv_view *view) {
    const rondo__window *window = &w->window;
    const int32_t last = window->rank - 1;
    cursor at = find_cursor(w, position);
    for (int32_t r = 0; r < view->rows; ++r) {
        view->at[r] = x + at.image * w->image;
        for (int32_t i = 0; i <= last; ++i) {
            view->place[r][i] = at.index[i] * window->stride[i] - window->pad_begin[i];
        }
        if (++at.index[last] == window->output[last]) {
            advance_line(w, &at);
        }
    }
}

void rondo__conv_windows_find(const rondo__conv_windows *w, const float *x, int64_t position,
                              int32_t rows, rondo__conv_view *out_view) {
    const rondo__window *window = &w->window;
    const int32_t last = window->rank - 1;
    const int64_t step = window->stride[last] * w->channels;
    cursor at = find_cursor(w, position);
    out_view->rows = rows;
    out_view->is_inside = true;
    for (int32_t r = 0; r < rows && out_view->is_inside;) {
        const line now = find_line(w, x, at.image, at.index);
        const int64_t rest = window->output[last] - at.index[last];
        const int32_t end = r + (int32_t)(rest < rows - r ? rest : rows - r);
        const int64_t first = at.index[last] * window->stride[last] - window->pad_begin[last];
        const int64_t extent = (window->kernel[last] - 1) * window->dilation[last];
        const float *from = now.at + (first > 0 ? first : 0) * w->channels;
        out_view->is_inside =
            now.is_inside && first >= 0 &&
            first + (end - r - 1) * window->stride[last] + extent < window->input[last];
        for (; r < end; ++r, from += out_view->is_inside ? step : 0) {
            out_view->at[r] = from;
        }
        if (r < rows) {
            advance_line(w, &at);
        }
    }
    if (!out_view->is_inside) {
        find_places(w, x, position, out_view);
    }
}

// If the view is not wholly inside, `at` is the image.
static const float *find_tap(const rondo__conv_windows *w, const rondo__conv_view *view, int32_t r,
                             int64_t tap, int64_t channel) {
    const rondo__window *window = &w->window;
    int64_t at = 0;
    for (int32_t i = 0; i < window->rank; ++i) {
        const int64_t place = view->place[r][i] + w->tap_at[tap * window->rank + i];
        if ((uint64_t)place >= (uint64_t)window->input[i]) {
            return w->zeros + channel;
        }
        at = at * window->input[i] + place;
    }
    return view->at[r] + at * w->channels + channel;
}

void rondo__conv_view_list_tap(const rondo__conv_windows *w, const rondo__conv_view *view,
                               int64_t tap, int64_t channel, const float **out_starts) {
    const int64_t offset = w->tap_offset[tap] + channel;
    for (int32_t r = 0; r < view->rows; ++r) {
        out_starts[r] = view->is_inside ? view->at[r] + offset : find_tap(w, view, r, tap, channel);
    }
}

// ---- lines ------------------------------------------------------------------------------------

// Whether tap `tap` lies inside along all axes but the last; then, in which row of the image.
static bool find_row(const rondo__conv_windows *w, const cursor *at, int64_t tap,
                     int64_t *out_row) {
    const rondo__window *window = &w->window;
    *out_row = 0;
    for (int32_t i = 0; i < window->rank - 1; ++i) {
        const int64_t place = at->index[i] * window->stride[i] - window->pad_begin[i] +
                              w->tap_at[tap * window->rank + i];
        if ((uint64_t)place >= (uint64_t)window->input[i]) {
            return false;
        }
        *out_row = *out_row * window->input[i] + place;
    }
    return true;
}

// How many positions from `index` on along the last axis have all their taps inside; 0: not even
// the first has.
static int64_t count_inside(const rondo__window *window, int64_t index) {
    const int32_t last = window->rank - 1;
    const int64_t stride = window->stride[last];
    const int64_t first = index * stride - window->pad_begin[last];
    const int64_t extent = (window->kernel[last] - 1) * window->dilation[last];
    const int64_t room = window->input[last] - 1 - extent - first;  // for further windows
    return first < 0 || room < 0 ? 0 : room / stride + 1;
}

void rondo__conv_windows_find_line(const rondo__conv_windows *w, const float *x, int64_t position,
                                   int64_t most, rondo__conv_line *out_line, rondo__tap *out_taps) {
    const rondo__window *window = &w->window;
    const int32_t last = window->rank - 1;
    const cursor at = find_cursor(w, position);
    const int64_t first = at.index[last] * window->stride[last] - window->pad_begin[last];
    const int64_t inside = count_inside(window, at.index[last]);
    const int64_t rest = window->output[last] - at.index[last];
    int64_t count = inside > 0 ? inside : 1;
    count = count < rest ? count : rest;
    *out_line = (rondo__conv_line){
        .count = count < most ? count : most,
        .x = x + at.image * w->image,
        .x_step = window->stride[last] * w->channels,
    };
    for (int64_t tap = 0; tap < w->taps; ++tap) {
        const int64_t place = first + w->tap_at[tap * window->rank + last];
        int64_t row;
        if ((uint64_t)place < (uint64_t)window->input[last] && find_row(w, &at, tap, &row)) {
            out_taps[out_line->tap_count++] =
                (rondo__tap){(row * window->input[last] + place) * w->channels, tap};
        }
    }
}
