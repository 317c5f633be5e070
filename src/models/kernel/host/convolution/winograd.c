// kernel/host/convolution/winograd.c — see winograd.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/host/convolution/winograd.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"

enum {
    N_MAX = RONDO__WINOGRAD_N_MAX,
    M_MAX = N_MAX - 2,
    TAPS = 3,
    LEAST_TILES = 4,   // of a block: with fewer, sums of a product are split (packed_matrix.c)
    BLOCK_TILES = 24,  // of the smallest block that pays for reading all filters
    APART = 16,        // floats between matrices, so that they do not meet in the same sets
};

// ---- planning ---------------------------------------------------------------------------------

static int64_t count_tiles(int64_t positions, int32_t m) {
    return (positions + m - 1) / m;
}

// What a convolution takes, in multiply-adds, by `rows` of channels that meet so many matrices of
// filters each: a tile of registers takes some steps to begin and end; and a number of the filters
// that is not in the cache arrives in the time of one and a half vectors.
static double find_cost(const rondo__simd *simd, const rondo__convolution *shape, double rows,
                        double matrices) {
    enum { BEGINNING = 12 };
    const double arrival = 1.5 * (double)simd->panel_columns / 2.0;
    const double channels = (double)shape->channels, filters = (double)shape->filters;
    const double work = rows * matrices * (channels + BEGINNING) * filters;
    const double weights = matrices * channels * filters;
    const bool arrives = weights * sizeof(float) > (double)rondo__panels_get_cache_bytes();
    return arrives && weights * arrival > work ? weights * arrival : work;
}

static double find_tile_cost(const rondo__simd *simd, const rondo__convolution *shape, int32_t m) {
    enum { TURNING = 10 };  // a number of x or y, in multiply-adds
    const double n = (double)(m + 2) * (m + 2);
    const double tiles = (double)(shape->batch * count_tiles(shape->window.output[0], m) *
                                  count_tiles(shape->window.output[1], m));
    return find_cost(simd, shape, tiles, n) +
           TURNING * n * tiles * (double)(shape->channels + shape->filters);
}

static bool fits(const rondo__simd *simd, const rondo__convolution *shape) {
    const rondo__window *w = &shape->window;
    const int64_t lanes = simd->panel_columns / 2;
    return w->rank == 2 && shape->group == 1 && w->kernel[0] == TAPS && w->kernel[1] == TAPS &&
           w->stride[0] == 1 && w->stride[1] == 1 && w->dilation[0] == 1 && w->dilation[1] == 1 &&
           shape->channels % lanes == 0 && shape->filters % lanes == 0 && shape->batch > 0;
}

static void cut(rondo__winograd *w) {
    const int64_t n = w->m + 2, channels = w->shape.channels, filters = w->shape.filters;
    const int64_t tile_floats = n * n * (channels + filters);
    const double work = (double)(w->tiles * n * n) * (double)channels * (double)filters;
    int64_t held = rondo__panels_get_cache_bytes() / (tile_floats * (int64_t)sizeof(float));
    held = held > BLOCK_TILES ? held : BLOCK_TILES;
    w->blocks = count_tiles(w->tiles, (int32_t)(held < w->tiles ? held : w->tiles));
    w->parts = rondo__host_count_parts(w->tiles / LEAST_TILES, 0.0, work);
    w->parts = w->parts > 1 ? w->parts : 1;
    // Sums do not depend on the blocks, so there may be one for each thread.
    w->blocks = w->blocks > w->parts ? w->blocks : w->parts;
    w->block_tiles = (w->tiles + w->blocks - 1) / w->blocks;
    w->part_floats = (size_t)(n * n * (w->block_tiles * (channels + filters) + 2 * APART));
    w->streams =
        n * n * channels * filters * (int64_t)sizeof(float) > rondo__panels_get_cache_bytes();
}

void rondo__winograd_plan(const rondo__simd *simd, const rondo__convolution *shape,
                          rondo__winograd *out_winograd) {
    const double positions = (double)(shape->batch * shape->output_span);
    double least = 0.85 * find_cost(simd, shape, positions, TAPS * TAPS);
    *out_winograd = (rondo__winograd){.simd = simd, .shape = *shape};
    for (int32_t m = 2; m <= M_MAX && fits(simd, shape); m += 2) {
        const int64_t rows = count_tiles(shape->window.output[0], m);
        const int64_t columns = count_tiles(shape->window.output[1], m);
        const double cost = find_tile_cost(simd, shape, m);
        if (cost < least && shape->batch * rows * columns >= LEAST_TILES) {
            least = cost;
            out_winograd->m = m;
            out_winograd->rows = rows;
            out_winograd->columns = columns;
            out_winograd->tiles = shape->batch * rows * columns;
        }
    }
    if (out_winograd->m > 0) {
        cut(out_winograd);
    }
}

size_t rondo__winograd_get_bytes(const rondo__winograd *winograd) {
    return (size_t)winograd->parts * winograd->part_floats * sizeof(float);
}

// ---- filters ----------------------------------------------------------------------------------

typedef struct filter_form {
    char kind[8];
    int64_t m, width, channels, filters;
} filter_form;

// G: a row for each point p, [1, p, p^2] by the product of its distances to the others; and [0, 0,
// 1] for infinity.
static void make_points(int64_t m, double g[N_MAX][TAPS]) {
    static const double points[2][N_MAX - 1] = {{0, 1, -1}, {0, 0.75, -0.75, 1.5, -1.5}};
    const double *p = points[m == 4];
    for (int64_t i = 0; i <= m; ++i) {
        double distance = 1.0;
        for (int64_t j = 0; j <= m; ++j) {
            distance *= j != i ? p[i] - p[j] : 1.0;
        }
        g[i][0] = 1.0 / distance;
        g[i][1] = p[i] / distance;
        g[i][2] = p[i] * p[i] / distance;
    }
    g[m + 1][0] = g[m + 1][1] = 0.0;
    g[m + 1][2] = 1.0;
}

// G w G' of one filter's channel, numbers `step` elements apart.
static void turn_filter(int64_t n, double g[N_MAX][TAPS], const float *w, float *to, int64_t step) {
    double half[N_MAX][TAPS];
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < TAPS; ++j) {
            half[i][j] = g[i][0] * (double)w[j] + g[i][1] * (double)w[TAPS + j] +
                         g[i][2] * (double)w[2 * TAPS + j];
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
            to[(i * n + j) * step] =
                (float)(half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2]);
        }
    }
}

static int64_t count_panels(int64_t filters, int64_t width) {
    return (filters + width - 1) / width;
}

static rondo_status fill_filters(const rondo__weight_want *want, void *bytes) {
    const filter_form *form = want->form;
    const float *w = want->constant->data;
    const int64_t panel_floats = form->channels * form->width;
    const int64_t step = count_panels(form->filters, form->width) * panel_floats;
    double g[N_MAX][TAPS];
    make_points(form->m, g);
    for (int64_t f = 0; f < form->filters; ++f) {
        float *to = (float *)bytes + f / form->width * panel_floats + f % form->width;
        for (int64_t c = 0; c < form->channels; ++c) {
            turn_filter(form->m + 2, g, w + (f * form->channels + c) * TAPS * TAPS,
                        to + c * form->width, step);
        }
    }
    return RONDO_STATUS_OK;
}

rondo_status rondo__winograd_keep(rondo__winograd *winograd, rondo__weight_list *list,
                                  const rondo_tensor *constant) {
    const int64_t width = winograd->simd->panel_columns, n = winograd->m + 2;
    const int64_t channels = winograd->shape.channels, filters = winograd->shape.filters;
    const filter_form form = {"winogr", winograd->m, width, channels, filters};
    const rondo__weight_want want = {
        .constant = constant,
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(n * n * count_panels(filters, width) * width * channels) * sizeof(float),
        .fill = fill_filters,
    };
    void *panels = NULL;
    const rondo_status status = rondo__weight_list_add(list, &want, &panels);
    winograd->panels = panels;
    return status;
}

// ---- running ----------------------------------------------------------------------------------

typedef struct winograd_run {
    const rondo__winograd *w;
    const rondo__winograd_call *call;
    atomic_bool has_strays;  // sums that are not finite
} winograd_run;

// Where a tile begins in y.
typedef struct tile_place {
    int64_t image, row, column;
} tile_place;

static tile_place find_place(const rondo__winograd *w, int64_t number) {
    const int64_t of_image = w->rows * w->columns, at = number % of_image;
    return (tile_place){number / of_image, at / w->columns * w->m, at % w->columns * w->m};
}

static void list_x(const winograd_run *run, tile_place at, const float **x) {
    const rondo__convolution *shape = &run->w->shape;
    const rondo__window *window = &shape->window;
    const float *image = run->call->x + at.image * shape->input_span * shape->channels;
    const int64_t n = run->w->m + 2;
    for (int64_t i = 0; i < n; ++i) {
        const int64_t row = at.row + i - window->pad_begin[0];
        for (int64_t j = 0; j < n; ++j) {
            const int64_t column = at.column + j - window->pad_begin[1];
            const bool is_inside = (uint64_t)row < (uint64_t)window->input[0] &&
                                   (uint64_t)column < (uint64_t)window->input[1];
            x[i * n + j] = is_inside ? image + (row * window->input[1] + column) * shape->channels
                                     : run->call->zeros;
        }
    }
}

static void list_y(const winograd_run *run, tile_place at, float **y, const float **z) {
    const rondo__winograd_call *call = run->call;
    const rondo__convolution *shape = &run->w->shape;
    const int64_t m = run->w->m, *output = shape->window.output;
    for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < m; ++j) {
            const int64_t row = at.row + i, column = at.column + j;
            const int64_t position = at.image * shape->output_span + row * output[1] + column;
            const bool is_inside = row < output[0] && column < output[1];
            y[i * m + j] = is_inside ? call->y + position * call->y_row : NULL;
            z[i * m + j] =
                call->z != NULL && is_inside ? call->z + position * shape->filters : NULL;
        }
    }
}

static void multiply(const rondo__winograd *w, const float *v, int64_t v_step, int64_t count,
                     float *sums, int64_t sums_step) {
    const int64_t n = w->m + 2, channels = w->shape.channels, filters = w->shape.filters;
    const int64_t width = w->simd->panel_columns, panel_floats = channels * width;
    for (int64_t i = 0; i < n * n; ++i) {
        const rondo__row_product product = {
            .simd = w->simd,
            .m = count,
            .k = channels,
            .n = filters,
            .a = v + i * v_step,
            .a_row = channels,
            .panels = w->panels + i * count_panels(filters, width) * panel_floats,
            .panel_step = panel_floats,
            .b_row = width,
            .streams = w->streams,
            .scale = 1.0f,
            .low = -INFINITY,
            .high = INFINITY,
            .y = sums + i * sums_step,
            .y_row = filters,
        };
        rondo__multiply_rows(&product);
    }
}

static void activate(const winograd_run *run, float *const *y) {
    const rondo__winograd_call *call = run->call;
    for (int32_t i = 0; i < run->w->m * run->w->m; ++i) {
        if (call->activation != RONDO__ACTIVATION_NONE && y[i] != NULL) {
            rondo__simd_activate(run->w->simd, call->activation, call->alpha, call->beta, y[i],
                                 run->w->shape.filters);
        }
    }
}

// Tiles [first, end); false: a sum is not finite.
static bool run_block(const winograd_run *run, int64_t first, int64_t end, float *work) {
    const rondo__winograd *w = run->w;
    const rondo__winograd_call *call = run->call;
    const int64_t channels = w->shape.channels, filters = w->shape.filters, n = w->m + 2;
    const float *x[N_MAX * N_MAX], *z[M_MAX * M_MAX];
    float *y[M_MAX * M_MAX];
    rondo__winograd_tile tile = {
        .m = w->m,
        .channels = channels,
        .x = x,
        .v_step = w->block_tiles * channels + APART,
        .filters = filters,
        .sums_step = w->block_tiles * filters + APART,
        .bias = call->bias,
        .z = call->z != NULL ? z : NULL,
        .low = call->low,
        .high = call->high,
        .y = y,
    };
    float *v = work, *sums = work + n * n * tile.v_step;
    for (int64_t t = first; t < end; ++t) {
        list_x(run, find_place(w, t), x);
        tile.v = v + (t - first) * channels;
        w->simd->winograd_in(&tile);
    }
    multiply(w, v, tile.v_step, end - first, sums, tile.sums_step);
    bool is_finite = true;
    for (int64_t t = first; t < end && is_finite; ++t) {
        list_y(run, find_place(w, t), y, z);
        tile.sums = sums + (t - first) * filters;
        is_finite = w->simd->winograd_back(&tile);
        activate(run, y);
    }
    return is_finite;
}

static void run_parts(void *data, int64_t first, int64_t end) {
    winograd_run *run = data;
    const rondo__winograd *w = run->w;
    bool is_finite = true;
    for (int64_t part = first; part < end; ++part) {
        float *work = run->call->work + (size_t)part * w->part_floats;
        const int64_t last = rondo__host_part(w->blocks, part + 1, w->parts);
        for (int64_t b = rondo__host_part(w->blocks, part, w->parts); b < last && is_finite; ++b) {
            is_finite = run_block(run, rondo__host_part(w->tiles, b, w->blocks),
                                  rondo__host_part(w->tiles, b + 1, w->blocks), work);
        }
    }
    if (!is_finite) {
        atomic_store_explicit(&run->has_strays, true, memory_order_relaxed);
    }
}

bool rondo__winograd_run(const rondo__winograd *winograd, const rondo__winograd_call *call) {
    winograd_run run = {.w = winograd, .call = call};
    rondo__workers_loop(winograd->parts, 1, run_parts, &run);
    return !atomic_load_explicit(&run.has_strays, memory_order_relaxed);
}
