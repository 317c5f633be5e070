// kernel/host/convolution/host_grid_sample.c — GridSample on images of f32, between or at pixels,
// with zeros or the border outside. Where the samples of a part of a grid lie is found once for all
// channels; planes stay as they are, so that a few samples of a large image read only what they
// need. A unit of work is such a part.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"

enum { PART = 256, TAPS = 4 };

typedef struct sample_kernel {
    rondo__host_kernel head;
    int64_t channels, height, width, span, output_span;
    int64_t unit_count, grain;
    bool is_nearest, reads_border, aligns_corners;
} sample_kernel;

typedef struct sample_run {
    const sample_kernel *kernel;
    const float *x, *grid;
    float *y;
} sample_run;

// The pixels of a plane that samples are made of, and their shares: first of samples of which all
// four count, at the end of the others, of which those that do not count are at 0 and dropped. One
// does not count that is outside or of no share: an infinity there must not become NaN.
typedef struct places {
    int64_t whole_count, cut_count, none_count;  // samples of all four, of some, of none
    int32_t to[PART];                            // whose places these are
    int32_t at[TAPS][PART];
    float share[TAPS][PART];
    uint32_t keeps[TAPS][PART];  // all bits, or none; of samples of some
} places;

// Two neighbours along an axis.
typedef struct pair {
    int32_t at[2];  // -1: does not count
    float share[2];
} pair;

// Rounds as the reference does, to f32 at each step.
static float find_place(const sample_kernel *kernel, float normalized, float extent) {
    const float moved = normalized + 1.0f, low = kernel->aligns_corners ? 0.0f : -0.5f;
    const float high = kernel->aligns_corners ? extent - 1.0f : extent - 0.5f;
    float place = moved / 2.0f * (extent - 1.0f);
    if (!kernel->aligns_corners) {
        const float scaled = moved * extent;
        place = (scaled - 1.0f) / 2.0f;
    }
    if (!isfinite(place)) {
        place = low;
    }
    if (kernel->is_nearest) {
        place = rintf(place);
    }
    if (kernel->reads_border && (place < low || place > high)) {
        place = fminf(fmaxf(place, 0.0f), extent - 1.0f);
    }
    return place;
}

static int32_t find_inside(const sample_kernel *kernel, int32_t at, int32_t last) {
    if ((uint32_t)at <= (uint32_t)last) {
        return at;
    }
    return !kernel->reads_border ? -1 : at < 0 ? 0 : last;
}

static pair find_pair(const sample_kernel *kernel, float normalized, int64_t extent) {
    const float place = find_place(kernel, normalized, (float)extent);
    pair p = {.at = {-1, -1}};
    if (!(place >= -2.0f && place < (float)extent)) {
        return p;  // outside; padding_mode border has none
    }
    int32_t base = (int32_t)place;
    base -= (float)base > place;
    const float share = place - (float)base;
    p.share[0] = 1.0f - share;
    p.share[1] = share;
    const int32_t last = (int32_t)extent - 1;
    p.at[0] = p.share[0] != 0.0f ? find_inside(kernel, base, last) : -1;
    p.at[1] = p.share[1] != 0.0f ? find_inside(kernel, base + 1, last) : -1;
    return p;
}

static void find_places(const sample_kernel *kernel, const float *grid, int64_t count, places *p) {
    const int32_t width = (int32_t)kernel->width;
    p->whole_count = p->cut_count = 0;
    for (int64_t i = 0; i < count; ++i) {
        const pair across = find_pair(kernel, grid[2 * i], kernel->width);
        const pair down = find_pair(kernel, grid[2 * i + 1], kernel->height);
        const int32_t least = across.at[0] | across.at[1] | down.at[0] | down.at[1];
        if ((across.at[0] & across.at[1]) < 0 || (down.at[0] & down.at[1]) < 0) {
            continue;
        }
        const int64_t place = least >= 0 ? p->whole_count++ : PART - ++p->cut_count;
        p->to[place] = (int32_t)i;
        const int32_t upper = down.at[0] * width, lower = down.at[1] * width;
        p->at[0][place] = upper + across.at[0];
        p->at[1][place] = upper + across.at[1];
        p->at[2][place] = lower + across.at[0];
        p->at[3][place] = lower + across.at[1];
        p->share[0][place] = down.share[0] * across.share[0];
        p->share[1][place] = down.share[0] * across.share[1];
        p->share[2][place] = down.share[1] * across.share[0];
        p->share[3][place] = down.share[1] * across.share[1];
        for (int32_t k = 0; least < 0 && k < TAPS; ++k) {
            p->keeps[k][place] = (down.at[k / 2] | across.at[k % 2]) >= 0 ? UINT32_MAX : 0;
            p->at[k][place] &= (int32_t)p->keeps[k][place];
        }
    }
    p->none_count = count - p->whole_count - p->cut_count;
}

static float keep_bits(float x, uint32_t mask) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= mask;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void sample_plane(const places *p, const float *plane, int64_t count, float *y) {
    if (p->none_count > 0) {
        memset(y, 0, (size_t)count * sizeof *y);
    }
    for (int64_t i = 0; i < p->whole_count; ++i) {
        y[p->to[i]] = p->share[0][i] * plane[p->at[0][i]] + p->share[1][i] * plane[p->at[1][i]] +
                      p->share[2][i] * plane[p->at[2][i]] + p->share[3][i] * plane[p->at[3][i]];
    }
    for (int64_t i = PART - p->cut_count; i < PART; ++i) {
        float sum = 0.0f;
        for (int32_t k = 0; k < TAPS; ++k) {
            sum += keep_bits(p->share[k][i] * plane[p->at[k][i]], p->keeps[k][i]);
        }
        y[p->to[i]] = sum;
    }
}

static void run_units(void *data, int64_t first, int64_t end) {
    const sample_run *run = data;
    const sample_kernel *kernel = run->kernel;
    const int64_t parts = (kernel->output_span + PART - 1) / PART;
    places p;
    for (int64_t unit = first; unit < end; ++unit) {
        const int64_t image = unit / parts, begin = unit % parts * PART;
        const int64_t rest = kernel->output_span - begin, count = rest < PART ? rest : PART;
        find_places(kernel, run->grid + (image * kernel->output_span + begin) * 2, count, &p);
        for (int64_t c = 0; c < kernel->channels; ++c) {
            const int64_t plane = image * kernel->channels + c;
            sample_plane(&p, run->x + plane * kernel->span, count,
                         run->y + plane * kernel->output_span + begin);
        }
    }
}

static rondo_status run_grid_sample(rondo__host_kernel *head, const void *const *inputs,
                                    void *const *outputs, void *workspace) {
    const sample_kernel *kernel = (const sample_kernel *)head;
    sample_run run = {kernel, inputs[0], inputs[1], outputs[0]};
    (void)workspace;
    rondo__workers_loop(kernel->unit_count, kernel->grain, run_units, &run);
    return RONDO_STATUS_OK;
}

rondo_status rondo__host_prepare_grid_sample(const rondo__kernel_request *request,
                                             rondo__kernel **out_kernel) {
    const rondo_shape *x = &request->inputs[0].shape, *y = &request->outputs[0].shape;
    const char *mode = rondo__op_get_string(request->op, "mode", "linear");
    const char *padding = rondo__op_get_string(request->op, "padding_mode", "zeros");
    const bool is_nearest = strcmp(mode, "nearest") == 0;
    const bool is_linear = strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0;
    if (request->inputs[0].dtype != RONDO_DTYPE_F32 ||
        request->inputs[1].dtype != RONDO_DTYPE_F32 || x->rank != 4 || !(is_nearest || is_linear) ||
        strcmp(padding, "reflection") == 0) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    const int64_t height = x->extent[2], width = x->extent[3], span = height * width;
    // Sides are whole numbers in f32, and places fit into 32 bits.
    if (height > 1 << 23 || width > 1 << 23 || span > INT32_MAX) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head =
        rondo__host_kernel_create(request, sizeof(sample_kernel), "simd", run_grid_sample, NULL);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    sample_kernel *kernel = (sample_kernel *)head;
    kernel->channels = x->extent[1];
    kernel->height = height;
    kernel->width = width;
    kernel->span = span;
    kernel->output_span = y->extent[2] * y->extent[3];
    kernel->unit_count = x->extent[0] * ((kernel->output_span + PART - 1) / PART);
    kernel->is_nearest = is_nearest;
    kernel->reads_border = strcmp(padding, "border") == 0;
    kernel->aligns_corners = rondo__op_get_int(request->op, "align_corners", 0) != 0;
    const double samples = (double)x->extent[0] * (double)kernel->output_span;
    kernel->grain = rondo__host_get_grain(kernel->unit_count, 0.0,
                                          samples * (16.0 * (double)kernel->channels + 64.0));
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
