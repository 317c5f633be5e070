// kernel/cuda/convolution/cuda_conv_weights.c — rondo.ConvWeights (cu/convolution/conv_weights.cu),
// in half precision also by cuDNN, whose filters have their channels last as images do.
// `may_round`: sums may become f16.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/convolution/cuda_conv_cudnn.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/tune/cuda_tune.h"

enum {
    IMAGE_RANK = 4,
    STEP = 32,  // pixels at a time
    STAGES = 4,
    BLOCKS_WANTED = 264,
    STEPS_MIN = 8,  // of a part
    PART_BYTES_MAX = 64 << 20,
    PAD = 8,         // halves behind a row of shared memory
    TAPS_HELD = 64,  // by a block that joins parts
    CHANNELS_HELD = 128,
    CHANNELS_LEAST = 32,
    MENUS = 2,  // of cuDNN: filters in f32, in f16
    PLANS = 4,  // of each
};

typedef struct plan {
    rondo__window window;
    int64_t columns, pixels;
    int64_t tile_m, tile_n, parts, part_pixels;
    bool is_tensor;
} plan;

typedef struct weights_problem {
    plan plan;
    struct menu {
        rondo__cuda_convolution convolution;
        bool was_tried;
        rondo__cudnn_menu *opened;
    } * menus;
} weights_problem;

static void choose_tiles(rondo__cuda_kernel *kernel, plan *p) {
    rondo_device_info info = {.struct_size = sizeof info};
    const int64_t filters = p->window.channels_out;
    if (!rondo__cuda_check(kernel, rondo_device_get_info(kernel->device, &info))) {
        return;
    }
    p->is_tensor = p->window.channels_last && filters % 8 == 0 && info.arch_major >= 8 &&
                   rondo__cuda_input(kernel, 0)->dtype == RONDO_DTYPE_F16 &&
                   rondo__cuda_input(kernel, 1)->dtype == RONDO_DTYPE_F16;
    if (p->is_tensor) {
        p->tile_m = filters <= 64 ? 64 : 128;
        p->tile_n = p->columns <= 64 ? 64 : 128;
    } else {
        p->tile_m = filters <= 32 ? 32 : 64;
        p->tile_n = p->columns <= 16 ? 16 : 64;
    }
    const int64_t tiles =
        rondo__divide_up(filters, p->tile_m) * rondo__divide_up(p->columns, p->tile_n);
    const int64_t steps = rondo__divide_up(p->pixels, STEP);
    const int64_t room = PART_BYTES_MAX / (filters * p->columns * (int64_t)sizeof(float));
    int64_t parts = BLOCKS_WANTED / tiles;
    parts = parts < steps / STEPS_MIN ? parts : steps / STEPS_MIN;
    parts = parts < room ? parts : room;
    parts = parts < 1 ? 1 : parts;
    p->part_pixels = rondo__divide_up(steps, parts) * STEP;
    p->parts = rondo__divide_up(p->pixels, p->part_pixels);
}

static bool read_plan(rondo__cuda_kernel *kernel, plan *p) {
    const rondo_shape *dy = &rondo__cuda_input(kernel, 0)->shape;
    const rondo_shape *x = &rondo__cuda_input(kernel, 1)->shape;
    const bool is_last = rondo__op_get_int(kernel->request->op, "channels_last", 0) != 0;
    rondo__window *w = &p->window;
    if (x->rank != IMAGE_RANK || !rondo__cuda_is_float(rondo__cuda_input(kernel, 0)->dtype) ||
        !rondo__cuda_is_float(rondo__cuda_input(kernel, 1)->dtype)) {
        rondo__cuda_refuse(kernel, "images of this type or rank");
        return false;
    }
    if (!rondo__cuda_spread_window(kernel, x, dy, is_last, NULL, w)) {
        return false;
    }
    p->columns = w->channels_in * w->kernel[1] * w->kernel[2];
    p->pixels = w->batch * w->out[1] * w->out[2];
    if (w->batch * w->in[1] * w->in[2] >= INT32_MAX || p->columns >= INT32_MAX / 2) {
        rondo__cuda_refuse(kernel, "images of so many pixels");
        return false;
    }
    choose_tiles(kernel, p);
    return kernel->status == RONDO_STATUS_OK;
}

static void define_plan(rondo__defines *defines, const rondo__cuda_kernel *kernel, const plan *p,
                        rondo_dtype parts_dtype) {
    const rondo__window *w = &p->window;
    const struct {
        const char *name;
        int64_t value;
    } list[] = {{"FILTERS", w->channels_out}, {"CHANNELS", w->channels_in},
                {"HEIGHT", w->in[1]},         {"WIDE", w->in[2]},
                {"OUT_HEIGHT", w->out[1]},    {"OUT_WIDE", w->out[2]},
                {"TAPS_Y", w->kernel[1]},     {"TAPS_X", w->kernel[2]},
                {"STRIDE_Y", w->stride[1]},   {"STRIDE_X", w->stride[2]},
                {"GAP_Y", w->dilation[1]},    {"GAP_X", w->dilation[2]},
                {"BEFORE_Y", w->before[1]},   {"BEFORE_X", w->before[2]},
                {"TILE_M", p->tile_m},        {"TILE_N", p->tile_n},
                {"LAST", w->channels_last},   {"PACKED", w->channels_in % 8 == 0}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        rondo__define_int(defines, list[i].name, list[i].value);
    }
    rondo__define_type(defines, "D", rondo__cuda_input(kernel, 0)->dtype);
    rondo__define_type(defines, "T", rondo__cuda_input(kernel, 1)->dtype);
    rondo__define_type(defines, "P", parts_dtype);
}

static void push(rondo__step *step, const plan *p, rondo__address parts, int64_t part_count) {
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_address(step, parts);
    rondo__step_output(step, 0);
    rondo__step_int(step, p->pixels);
    rondo__step_int(step, part_count);
    rondo__step_int(step, p->part_pixels);
}

static void add_join(rondo__cuda_kernel *kernel, const plan *p, rondo__address parts,
                     int64_t part_count, rondo_dtype parts_dtype) {
    rondo__defines defines = {0};
    const rondo__window *w = &p->window;
    const int64_t taps = w->kernel[1] * w->kernel[2];
    int64_t chunk = taps > 1 && taps <= TAPS_HELD ? CHANNELS_HELD : 0;
    while (chunk > CHANNELS_LEAST &&
           w->channels_out * rondo__divide_up(w->channels_in, chunk) < 2 * BLOCKS_WANTED) {
        chunk /= 2;
    }
    const int64_t blocks = chunk > 0 ? w->channels_out * rondo__divide_up(w->channels_in, chunk)
                                     : rondo__cuda_blocks(w->channels_out * p->columns);
    define_plan(&defines, kernel, p, parts_dtype);
    rondo__define_int(&defines, "CHUNK", chunk);
    rondo__define_int(&defines, "IS_WHOLE", part_count == 1);
    push(rondo__cuda_add_launch(kernel, rondo__cu_conv_weights, &defines, "weights_join", blocks,
                                RONDO__CUDA_BLOCK),
         p, parts, part_count);
}

static void add_own(rondo__cuda_kernel *kernel, const plan *p) {
    rondo__defines defines = {0};
    const int64_t filters = p->window.channels_out;
    const rondo__address parts = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel, (size_t)(p->parts * filters * p->columns) * sizeof(float)));
    define_plan(&defines, kernel, p, RONDO_DTYPE_F32);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, p->is_tensor ? rondo__cu_conv_weights_tensor : rondo__cu_conv_weights, &defines,
        p->is_tensor ? "weights_tensor" : "weights_plain", rondo__divide_up(p->columns, p->tile_n),
        RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)rondo__divide_up(filters, p->tile_m);
        step->launch.grid[2] = (uint32_t)p->parts;
        step->launch.shared_bytes =
            p->is_tensor ? (uint32_t)(STAGES * STEP * (p->tile_m + p->tile_n + 2 * PAD) * 2) : 0;
    }
    push(step, p, parts, p->parts);
    add_join(kernel, p, parts, p->parts, RONDO_DTYPE_F32);
}

// ---- cuDNN --------------------------------------------------------------------------------------

static void add_library(rondo__cuda_kernel *kernel, const weights_problem *problem, size_t index) {
    const plan *p = &problem->plan;
    struct menu *menu = &problem->menus[index / PLANS];
    rondo__cuda_convolution *c = &menu->convolution;
    if (!kernel->request->is_survey && !menu->was_tried) {
        menu->was_tried = true;
        menu->opened = rondo__cuda_open_cudnn_menu(kernel, c, false);
    }
    if (!kernel->request->is_survey && menu->opened == NULL) {
        rondo__cuda_refuse(kernel, "filters that cuDNN does not make");
        return;
    }
    c->w = rondo__address_workspace(rondo__cuda_reserve_workspace(
        kernel,
        (size_t)(p->window.channels_out * p->columns) * rondo_dtype_get_bytes(c->weights_dtype)));
    if (!kernel->request->is_survey) {
        rondo__cuda_add_cudnn_plan(kernel, menu->opened, index % PLANS);
    }
    add_join(kernel, p, c->w, 1, c->weights_dtype);
}

static void build_candidate(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const weights_problem *problem = data;
    if (index == 0) {
        add_own(kernel, &problem->plan);
    } else {
        add_library(kernel, problem, index - 1);
    }
}

static void describe_candidate(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                               char *text, size_t text_bytes) {
    (void)data;
    if (index == 0) {
        (void)snprintf(text, text_bytes, "own");
    } else {
        (void)snprintf(text, text_bytes, "cudnn weights %s %zu of version %zu",
                       (index - 1) / PLANS == 0 ? "f32" : "f16", (index - 1) % PLANS,
                       rondo__cuda_get_cudnn_version(kernel));
    }
}

static void write_key(const plan *p, bool may_round, char *text, size_t text_bytes) {
    const rondo__window *w = &p->window;
    (void)snprintf(text, text_bytes,
                   "weights f16%s n%lld c%lld k%lld in %lldx%lld kernel %lldx%lld stride %lldx%lld "
                   "dilation %lldx%lld pads %lld %lld %lld %lld",
                   may_round ? " rounded" : "", (long long)w->batch, (long long)w->channels_in,
                   (long long)w->channels_out, (long long)w->in[1], (long long)w->in[2],
                   (long long)w->kernel[1], (long long)w->kernel[2], (long long)w->stride[1],
                   (long long)w->stride[2], (long long)w->dilation[1], (long long)w->dilation[2],
                   (long long)w->before[1], (long long)w->before[2], (long long)w->after[1],
                   (long long)w->after[2]);
}

void rondo__cuda_prepare_conv_weights(rondo__cuda_kernel *kernel) {
    static const rondo_dtype made[MENUS] = {RONDO_DTYPE_F32, RONDO_DTYPE_F16};
    struct menu menus[MENUS] = {0};
    weights_problem problem = {.menus = menus};
    char key[256];
    if (!read_plan(kernel, &problem.plan)) {
        return;
    }
    const rondo_dtype dtype = rondo__cuda_input(kernel, 0)->dtype;
    // A step takes what its products make in half precision, too; others get sums in f32 alone.
    const bool may_round = rondo__op_get_int(kernel->request->op, "may_round", 0) != 0;
    const size_t menu_count = may_round ? MENUS : 1;
    if (!problem.plan.is_tensor || !rondo__cuda_may_have_libraries(kernel)) {
        add_own(kernel, &problem.plan);
        return;
    }
    for (size_t i = 0; i < menu_count; i++) {
        menus[i].convolution = (rondo__cuda_convolution){.dtype = dtype,
                                                         .y_dtype = dtype,
                                                         .weights_dtype = made[i],
                                                         .window = problem.plan.window,
                                                         .groups = 1,
                                                         .x = rondo__address_input(1),
                                                         .y = rondo__address_input(0)};
    }
    write_key(&problem.plan, may_round, key, sizeof key);
    const uint64_t all = (UINT64_C(1) << (1 + menu_count * PLANS)) - 1;
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = 1 + menu_count * PLANS,
        .fast = all,
        .library = all - 1,
        .has_library = rondo__cuda_has_cudnn,
        .problem = &problem,
        .build = build_candidate,
        .describe = describe_candidate,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
    for (size_t i = 0; i < menu_count; i++) {
        rondo__cuda_close_cudnn_menu(menus[i].opened);
    }
}
