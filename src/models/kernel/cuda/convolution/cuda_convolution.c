// kernel/cuda/convolution/cuda_convolution.c — Conv and rondo.Conv: packs the weights once and
// picks the fastest of the ways that apply.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/cuda/convolution/cuda_convolution.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_copy.h"
#include "kernel/cuda/convolution/cuda_conv_cudnn.h"
#include "kernel/cuda/convolution/cuda_conv_tensor.h"
#include "kernel/cuda/convolution/cuda_conv_tma.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/tune/cuda_tune.h"
#include "kernel/turn.h"
#include "op/image/filters.h"

// ---- what is asked ----------------------------------------------------------------------------

enum { INPUT_SECOND_X = 4, INPUT_SECOND_W = 5 };

// Adds the second convolution, whose weights are known.
static bool read_second(rondo__cuda_kernel *kernel, rondo__cuda_convolution *c) {
    const rondo__tensor_info *x = rondo__cuda_input(kernel, INPUT_SECOND_X);
    const rondo__tensor_info *w = rondo__cuda_input(kernel, INPUT_SECOND_W);
    size_t count = 0;
    const int64_t *strides = rondo__op_get_ints(kernel->request->op, "second_strides", &count);
    if (c->window.spatial_rank != 2 || !c->window.channels_last || w->constant == NULL ||
        rondo__cuda_input(kernel, 1)->constant == NULL || x->dtype != c->dtype ||
        w->dtype != c->dtype) {
        rondo__cuda_refuse(kernel, "such a second convolution");
        return false;
    }
    c->has_second = true;
    c->second = (rondo__window){
        .channels_last = true,
        .spatial_rank = 2,
        .batch = c->window.batch,
        .channels_in = x->shape.extent[3],
        .channels_out = c->window.channels_out,
        .in = {1, x->shape.extent[1], x->shape.extent[2]},
        .out = {1, c->window.out[1], c->window.out[2]},
        .kernel = {1, 1, 1},
        .stride = {1, count > 0 ? strides[0] : 1, count > 1 ? strides[1] : 1},
        .dilation = {1, 1, 1},
    };
    c->second_x = rondo__address_input(INPUT_SECOND_X);
    c->second_at = rondo__cuda_align_second(&c->window);
    c->weight_pitch = c->second_at + c->second.channels_in;
    return true;
}

static bool read_convolution(rondo__cuda_kernel *kernel, rondo__cuda_convolution *out_convolution) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *w = rondo__cuda_input(kernel, 1);
    rondo__cuda_convolution c = {.dtype = x->dtype, .y_dtype = x->dtype};

    if (!rondo__cuda_is_float(x->dtype) || w->dtype != x->dtype) {
        rondo__cuda_refuse(kernel, "tensors of this type");
        return false;
    }
    const rondo_shape filters = rondo__convolution_read_filters(op, &w->shape);
    if (!rondo__cuda_read_window(kernel, filters.extent + 2, &c.window) ||
        !rondo__cuda_read_epilogue(kernel, &c.epilogue)) {
        return false;
    }
    // rondo.Conv says its layout; the default of a pool does not hold for it.
    if ((op->def->flags & RONDO__OP_INTERNAL) != 0 && rondo__op_find(op, "channels_last") == NULL) {
        rondo__cuda_refuse(kernel, "no attribute channels_last");
        return false;
    }
    c.groups = rondo__op_get_int(op, "group", 1);
    c.taps = rondo__cuda_product(&filters, 2, filters.rank);
    c.pixels = c.window.batch * c.window.out[0] * c.window.out[1] * c.window.out[2];
    const int64_t channels = c.window.channels_in / c.groups;
    c.is_depthwise = c.window.channels_last && channels == 1 && c.window.channels_out == c.groups &&
                     c.window.spatial_rank == 2 && c.groups > 1 &&
                     c.pixels * c.groups < INT64_C(1) << 31;
    c.weight_pitch = c.taps * channels;
    c.x = rondo__address_input(0);
    c.y = rondo__address_output(0);
    if (rondo__cuda_has_input(kernel, INPUT_SECOND_X) && !read_second(kernel, &c)) {
        return false;
    }
    *out_convolution = c;
    return true;
}

// ---- weights ----------------------------------------------------------------------------------

// From [filters, channels, taps] on the host: known weights are packed once.
typedef struct weight_form {
    char kind[8];
    int64_t filters, channels, taps;
    int64_t is_depthwise;
    int64_t element_bytes;
} weight_form;

// A row is a filter, or of depthwise filters a tap.
static void fill_weights(const rondo__weight_want *want, size_t first, size_t last, void *packed) {
    const weight_form *form = want->form;
    const size_t bytes = (size_t)form->element_bytes;
    const size_t taps = (size_t)form->taps, channels = (size_t)form->channels;
    const size_t filter_bytes = channels * taps * bytes;
    const uint8_t *from = want->constant->data;
    uint8_t *to = packed;
    if (form->is_depthwise != 0) {
        rondo__turn(from + first * bytes, taps, to, (size_t)form->filters, (size_t)form->filters,
                    last - first, bytes);
        return;
    }
    for (size_t f = first; f < last; f++, to += filter_bytes) {
        rondo__turn(from + f * filter_bytes, taps, to, channels, channels, taps, bytes);
    }
}

// Filters with those of a second convolution behind them.
typedef struct pair_form {
    char kind[8];
    int64_t filters, channels, taps, second_at, second_channels;
    rondo__hash128 second;
} pair_form;

static void fill_pairs(const rondo__weight_want *want, size_t first, size_t last, void *packed) {
    const pair_form *form = want->form;
    const rondo_tensor *second = want->data;
    const size_t taps = (size_t)form->taps, channels = (size_t)form->channels;
    const size_t second_channels = (size_t)form->second_channels;
    const size_t pitch = (size_t)form->second_at + second_channels;
    const uint16_t *from = want->constant->data, *behind = second->data;
    uint16_t *to = packed;
    for (size_t f = first; f < last; f++, to += pitch) {
        rondo__turn(from + f * channels * taps, taps, to, channels, channels, taps, sizeof *to);
        memset(to + channels * taps, 0, ((size_t)form->second_at - channels * taps) * sizeof *to);
        memcpy(to + form->second_at, behind + f * second_channels, second_channels * sizeof *to);
    }
}

static void pack_pair(rondo__cuda_kernel *kernel, rondo__cuda_convolution *c) {
    const rondo_tensor *second = rondo__cuda_input(kernel, INPUT_SECOND_W)->constant;
    pair_form form;
    memset(&form, 0, sizeof form);  // compared byte by byte
    memcpy(form.kind, "pair", sizeof "pair");
    form.filters = c->window.channels_out;
    form.channels = c->window.channels_in;
    form.taps = c->taps;
    form.second_at = c->second_at;
    form.second_channels = c->second.channels_in;
    form.second = rondo__hash128_bytes(second->data, rondo_tensor_get_bytes(second));
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(form.filters * c->weight_pitch) * sizeof(uint16_t),
        .fill_rows = fill_pairs,
        .row_count = (size_t)form.filters,
        .data = second,
    };
    (void)rondo__cuda_own_input(kernel, 1, &want, &c->w);
}

static void pack_constant(rondo__cuda_kernel *kernel, rondo__cuda_convolution *c) {
    if (c->has_second) {
        pack_pair(kernel, c);
        return;
    }
    const weight_form form = {
        .kind = "conv",
        .filters = c->window.channels_out,
        .channels = c->window.channels_in / c->groups,
        .taps = c->taps,
        .is_depthwise = c->is_depthwise ? 1 : 0,
        .element_bytes = (int64_t)rondo_dtype_get_bytes(c->dtype),
    };
    rondo__weight_want want = {
        .form = &form,
        .form_bytes = sizeof form,
        .bytes = (size_t)(form.filters * c->weight_pitch * form.element_bytes),
        .fill_rows = fill_weights,
        .row_count = (size_t)(c->is_depthwise ? form.taps : form.filters),
    };
    (void)rondo__cuda_own_input(kernel, 1, &want, &c->w);
}

// The same on the device before each convolution, for weights that are computed.
enum { PACKED_TAPS = 64, PACKED_CHUNK = 64 };

static void pack_computed(rondo__cuda_kernel *kernel, rondo__cuda_convolution *c) {
    const int64_t filters = c->window.channels_out, channels = c->window.channels_in / c->groups;
    const size_t bytes = rondo_dtype_get_bytes(c->dtype);
    const size_t all = (size_t)(filters * c->weight_pitch) * bytes;
    c->w = rondo__address_workspace(rondo__cuda_reserve_workspace(kernel, all));
    if (bytes == sizeof(uint16_t) && !c->is_depthwise && c->taps > 1 && c->taps <= PACKED_TAPS &&
        channels % 2 == 0 && c->weight_pitch % 2 == 0) {
        const int64_t chunk = channels < PACKED_CHUNK ? channels : PACKED_CHUNK;
        rondo__defines defines = {0};
        rondo__define_int(&defines, "TAPS", c->taps);
        rondo__define_int(&defines, "CHUNK", chunk);
        rondo__step *step =
            rondo__cuda_add_launch(kernel, rondo__cu_pack_filters, &defines, "pack_filters",
                                   filters * ((channels + chunk - 1) / chunk), RONDO__CUDA_BLOCK);
        rondo__step_input(step, 1);
        rondo__step_address(step, c->w);
        rondo__step_int(step, filters);
        rondo__step_int(step, channels);
        rondo__step_int(step, c->weight_pitch);
        return;
    }
    rondo__strided_copy copy = {
        .element_bytes = bytes,
        .from = rondo__address_input(1),
        .to = c->w,
    };
    rondo__strided_copy_push(&copy, filters, channels * c->taps,
                             c->is_depthwise ? 1 : c->weight_pitch);
    rondo__strided_copy_push(&copy, c->taps, 1, c->is_depthwise ? filters : channels);
    rondo__strided_copy_push(&copy, channels, c->taps, 1);
    rondo__cuda_add_strided_copy(kernel, &copy);
}

// ---- the ways ---------------------------------------------------------------------------------

static void push_convolution(rondo__step *step, const rondo__cuda_convolution *c) {
    const rondo__window *w = &c->window;
    const int64_t in = w->in[0] * w->in[1] * w->in[2];
    const int64_t out = w->out[0] * w->out[1] * w->out[2];
    rondo__step_address(step, c->x);
    rondo__step_address(step, c->w);
    rondo__step_epilogue_addresses(step, &c->epilogue);
    rondo__step_address(step, c->y);
    rondo__step_int(step, w->batch);
    rondo__step_int(step, c->groups);
    rondo__step_int(step, w->channels_in / c->groups);
    rondo__step_int(step, w->channels_out / c->groups);
    rondo__step_ints(step, w->in, 3);
    rondo__step_ints(step, w->out, 3);
    rondo__step_ints(step, w->kernel, 3);
    rondo__step_ints(step, w->stride, 3);
    rondo__step_ints(step, w->dilation, 3);
    rondo__step_ints(step, w->before, 3);
    rondo__step_int(step, in * w->channels_in);
    rondo__step_int(step, w->channels_last ? 1 : in);
    rondo__step_int(step, w->channels_last ? w->channels_in : 1);
    rondo__step_int(step, out * w->channels_out);
    rondo__step_int(step, w->channels_last ? 1 : out);
    rondo__step_int(step, w->channels_last ? w->channels_out : 1);
    rondo__step_int(step, c->epilogue.activation);
    rondo__step_float(step, (double)c->epilogue.alpha);
    rondo__step_float(step, (double)c->epilogue.beta);
}

enum { ROWS_KERNEL_MAX = 9, ROWS_STRIDE_MAX = 2 };

// Filters that a thread can go through without loops.
static bool has_short_rows(const rondo__window *w) {
    for (int d = 1; d < 3; d++) {
        if (w->kernel[d] > ROWS_KERNEL_MAX || w->stride[d] > ROWS_STRIDE_MAX ||
            w->dilation[d] != 1) {
            return false;
        }
    }
    return true;
}

// What a thread makes: `width` channels of `columns` neighbours; columns 0: one position, in loops.
typedef struct depthwise_plan {
    int64_t width, columns;
} depthwise_plan;

enum { DEPTHWISE_PLANS_MAX = 8, DEPTHWISE_FAST = 2 };

static int64_t count_rows_threads(const rondo__cuda_convolution *c, const depthwise_plan *plan) {
    const rondo__window *w = &c->window;
    return c->groups / plan->width * ((w->out[2] + plan->columns - 1) / plan->columns) * w->batch *
           w->out[1];
}

// The more neighbours a thread makes the less is read, as long as threads are left for all
// multiprocessors.
static depthwise_plan guess_plan(const rondo__cuda_convolution *c) {
    static const int64_t thread_count_min = 16384;
    depthwise_plan plan = {.width = c->groups % 2 == 0 ? 2 : 1, .columns = 4};
    while (plan.columns > 1 && count_rows_threads(c, &plan) < thread_count_min) {
        plan.columns /= 2;
    }
    return plan;
}

// The best guess first.
static size_t list_depthwise_plans(const rondo__cuda_convolution *c, depthwise_plan *out_plans) {
    static const depthwise_plan forms[] = {{2, 2}, {2, 4}, {2, 1}, {4, 2}, {4, 1}, {1, 4}};
    size_t count = 0;
    if (has_short_rows(&c->window)) {
        const depthwise_plan guess = guess_plan(c);
        out_plans[count++] = guess;
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            const bool is_guess =
                forms[i].width == guess.width && forms[i].columns == guess.columns;
            if (!is_guess && c->groups % forms[i].width == 0) {
                out_plans[count++] = forms[i];
            }
        }
    }
    int64_t width = 16 / (int64_t)rondo_dtype_get_bytes(c->dtype);
    while (c->groups % width != 0) {
        width /= 2;
    }
    out_plans[count++] = (depthwise_plan){.width = width};
    return count;
}

static void build_depthwise(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    static const int64_t filter_bytes_max = 256;  // that a thread holds
    const rondo__cuda_convolution *c = data;
    const rondo__window *w = &c->window;
    depthwise_plan plans[DEPTHWISE_PLANS_MAX];
    rondo__defines defines = {0};
    (void)list_depthwise_plans(c, plans);
    const depthwise_plan *plan = &plans[index];
    const bool is_rows = plan->columns > 0;
    rondo__define_type(&defines, "T", c->dtype);
    rondo__define_int(&defines, "WIDTH", plan->width);
    if (is_rows) {
        const int64_t filter_bytes =
            c->taps * plan->width * (int64_t)rondo_dtype_get_bytes(c->dtype);
        rondo__define_int(&defines, "COLUMNS", plan->columns);
        rondo__define_int(&defines, "KERNEL1", w->kernel[1]);
        rondo__define_int(&defines, "KERNEL2", w->kernel[2]);
        rondo__define_int(&defines, "STRIDE1", w->stride[1]);
        rondo__define_int(&defines, "STRIDE2", w->stride[2]);
        rondo__define_int(&defines, "EAGER_WEIGHTS",
                          c->w.space == RONDO__ADDRESS_FIXED && filter_bytes <= filter_bytes_max);
    }
    const int64_t threads =
        is_rows ? count_rows_threads(c, plan) : c->pixels * c->groups / plan->width;
    push_convolution(rondo__cuda_add_launch(kernel, rondo__cu_conv_depthwise, &defines,
                                            is_rows ? "conv_depthwise_rows" : "conv_depthwise",
                                            (threads + 127) / 128, 128),
                     c);
}

static void describe_depthwise(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                               char *text, size_t text_bytes) {
    depthwise_plan plans[DEPTHWISE_PLANS_MAX];
    (void)kernel;
    (void)list_depthwise_plans(data, plans);
    (void)snprintf(text, text_bytes, "depthwise %lldx%lld", (long long)plans[index].width,
                   (long long)plans[index].columns);
}

static void add_depthwise(rondo__cuda_kernel *kernel, const rondo__cuda_convolution *c,
                          const char *key) {
    depthwise_plan plans[DEPTHWISE_PLANS_MAX];
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = list_depthwise_plans(c, plans),
        .fast = (UINT64_C(1) << DEPTHWISE_FAST) - 1,
        .problem = c,
        .build = build_depthwise,
        .describe = describe_depthwise,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
}

static void add_plain(rondo__cuda_kernel *kernel, const rondo__cuda_convolution *c) {
    rondo__defines defines = {0};
    const int64_t filter_tiles = (c->window.channels_out / c->groups + 63) / 64;
    if (filter_tiles > 65535 || c->groups > 65535 || c->weight_pitch >= INT64_C(1) << 31) {
        rondo__cuda_refuse(kernel, "more filters or groups than a grid holds");
        return;
    }
    rondo__define_type(&defines, "T", c->dtype);
    rondo__define_int(&defines, "CHANNELS_LAST", c->window.channels_last);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_conv_plain, &defines, "conv_plain",
                                               (c->pixels + 63) / 64, RONDO__CUDA_BLOCK);
    if (step != NULL) {
        step->launch.grid[1] = (uint32_t)filter_tiles;
        step->launch.grid[2] = (uint32_t)c->groups;
    }
    push_convolution(step, c);
}

enum {
    CUDNN_FUSED_PLANS = RONDO__CUDNN_PLANS,
    CUDNN_BARE_PLANS = 4,
    // The candidates of each way that a fast contest tries. Over the 198 problems of
    // bench/results/models/tuning_h200.md the winner among these takes 1.04 times what the winner
    // of all takes.
    TENSOR_FAST = 4,
    CUDNN_FAST = 2,
};

typedef enum conv_way { WAY_TENSOR, WAY_CUDNN_FUSED, WAY_CUDNN_BARE, WAY_PLAIN } conv_way;

typedef struct conv_problem {
    rondo__cuda_convolution convolution;
    rondo__candidates candidates;
    struct conv_menus *menus;
} conv_problem;

// Opened when first needed: a choice remembered from an earlier run needs one of them at most.
typedef struct conv_menus {
    bool was_tried[2];
    rondo__cudnn_menu *opened[2];  // bare, fused
} conv_menus;

static void add_cudnn(rondo__cuda_kernel *kernel, const conv_problem *problem, bool fuses,
                      size_t plan) {
    conv_menus *menus = problem->menus;
    if (kernel->request->is_survey) {
        return;  // cuDNN compiles for itself
    }
    if (!menus->was_tried[fuses]) {
        menus->was_tried[fuses] = true;
        menus->opened[fuses] = rondo__cuda_open_cudnn_menu(kernel, &problem->convolution, fuses);
    }
    if (menus->opened[fuses] == NULL) {
        rondo__cuda_refuse(kernel, "a convolution that cuDNN does not do");
        return;
    }
    rondo__cuda_add_cudnn_plan(kernel, menus->opened[fuses], plan);
}

static void build_candidate(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const conv_problem *problem = data;
    const rondo__cuda_convolution *c = &problem->convolution;
    const size_t plan = problem->candidates.list[index].plan;
    switch ((conv_way)problem->candidates.list[index].way) {
        case WAY_TENSOR:
            rondo__cuda_add_tensor_plan(kernel, c, plan);
            break;
        case WAY_CUDNN_FUSED:
            add_cudnn(kernel, problem, true, plan);
            break;
        case WAY_CUDNN_BARE:
            add_cudnn(kernel, problem, false, plan);
            break;
        case WAY_PLAIN:
            add_plain(kernel, c);
            break;
    }
}

static void describe_candidate(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                               char *text, size_t text_bytes) {
    const conv_problem *problem = data;
    const conv_way way = (conv_way)problem->candidates.list[index].way;
    const size_t plan = problem->candidates.list[index].plan;
    if (way == WAY_TENSOR) {
        rondo__cuda_describe_tensor_plan(kernel, &problem->convolution, plan, text, text_bytes);
    } else if (way == WAY_PLAIN) {
        (void)snprintf(text, text_bytes, "plain");
    } else {
        (void)snprintf(text, text_bytes, "cudnn%s %zu of version %zu",
                       way == WAY_CUDNN_FUSED ? " fused" : "", plan,
                       rondo__cuda_get_cudnn_version(kernel));
    }
}

static void list_candidates(const rondo__cuda_kernel *kernel, conv_problem *problem) {
    const rondo__cuda_convolution *c = &problem->convolution;
    rondo__candidates *list = &problem->candidates;
    const double work =
        (double)c->pixels * (double)c->window.channels_out * (double)c->weight_pitch;
    const size_t tensor_count = rondo__cuda_count_tensor_plans(kernel, c);
    rondo__candidates_add(list, WAY_TENSOR, tensor_count, TENSOR_FAST);
    if (c->has_second) {
        return;
    }
    if (rondo__cuda_may_have_libraries(kernel)) {
        const size_t own_count = list->count;
        const rondo__cuda_epilogue *e = &c->epilogue;
        const bool has_ending =
            e->has_bias || e->has_residual || e->activation != RONDO__ACTIVATION_NONE;
        const bool is_fused = has_ending && e->activation <= RONDO__ACTIVATION_CLIP;
        if (is_fused) {
            rondo__candidates_add(list, WAY_CUDNN_FUSED, CUDNN_FUSED_PLANS, CUDNN_FAST);
        }
        rondo__candidates_add(list, WAY_CUDNN_BARE, CUDNN_BARE_PLANS, is_fused ? 1 : CUDNN_FAST);
        rondo__candidates_mark_library(list, own_count);
    }
    rondo__candidates_add_plain(list, WAY_PLAIN, work >= 1e7 && tensor_count > 0);
}

static void write_key(const rondo__cuda_convolution *c, char *text, size_t text_bytes) {
    const rondo__window *w = &c->window;
    (void)snprintf(text, text_bytes,
                   "conv %s %s n%lld c%lld k%lld g%lld in %lldx%lldx%lld out %lldx%lldx%lld "
                   "kernel %lldx%lldx%lld stride %lldx%lldx%lld dilation %lldx%lldx%lld "
                   "pads %lldx%lldx%lld act %d bias %d add %d",
                   rondo_dtype_get_name(c->dtype), w->channels_last ? "last" : "first",
                   (long long)w->batch, (long long)w->channels_in, (long long)w->channels_out,
                   (long long)c->groups, (long long)w->in[0], (long long)w->in[1],
                   (long long)w->in[2], (long long)w->out[0], (long long)w->out[1],
                   (long long)w->out[2], (long long)w->kernel[0], (long long)w->kernel[1],
                   (long long)w->kernel[2], (long long)w->stride[0], (long long)w->stride[1],
                   (long long)w->stride[2], (long long)w->dilation[0], (long long)w->dilation[1],
                   (long long)w->dilation[2], (long long)w->before[0], (long long)w->before[1],
                   (long long)w->before[2], (int)c->epilogue.activation, (int)c->epilogue.has_bias,
                   (int)c->epilogue.has_residual);
    const size_t length = strlen(text);
    if (c->has_second) {
        (void)snprintf(text + length, text_bytes - length, " second c%lld in %lldx%lld",
                       (long long)c->second.channels_in, (long long)c->second.in[1],
                       (long long)c->second.in[2]);
    }
}

void rondo__cuda_prepare_convolution(rondo__cuda_kernel *kernel) {
    conv_menus menus = {0};
    conv_problem problem = {.menus = &menus};
    char key[480];

    if (!read_convolution(kernel, &problem.convolution)) {
        return;
    }
    rondo__cuda_convolution *c = &problem.convolution;
    const rondo_tensor *weights = rondo__cuda_input(kernel, 1)->constant;
    const bool filters_last = rondo__op_get_int(kernel->request->op, "filters_last", 0) != 0;
    if (filters_last && (!c->window.channels_last || c->is_depthwise || c->has_second)) {
        rondo__cuda_refuse(kernel, "filters of this layout");
        return;
    }
    if (!c->window.channels_last || filters_last) {
        c->w = rondo__address_input(1);
    } else if (weights != NULL && weights->dtype == c->dtype) {
        pack_constant(kernel, c);
    } else {
        pack_computed(kernel, c);
    }
    if (kernel->status != RONDO_STATUS_OK) {
        return;
    }
    write_key(c, key, sizeof(key));
    if (c->is_depthwise) {
        add_depthwise(kernel, c, key);
        return;
    }
    list_candidates(kernel, &problem);
    if (problem.candidates.count == 0) {
        rondo__cuda_refuse(kernel, "a second convolution on this device");
        return;
    }
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = problem.candidates.count,
        .fast = problem.candidates.fast,
        .last = problem.candidates.last,
        .library = problem.candidates.library,
        .has_library = rondo__cuda_has_cudnn,
        .problem = &problem,
        .build = build_candidate,
        .describe = describe_candidate,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
    rondo__cuda_close_cudnn_menu(menus.opened[0]);
    rondo__cuda_close_cudnn_menu(menus.opened[1]);
}
