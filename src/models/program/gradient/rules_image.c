// program/gradient/rules_image.c — gradients of convolutions, pools and Resize.
//
//   y = Conv(x, w):   dx = ConvTranspose(dy, w), with as much room at the end as x may have;
//                     dw = the sum over images of dy times what each tap of a window saw; or
//                          Conv(x', dy'), images and channels exchanged, steps and gaps, too.
//
// A pool that averages is a convolution with ones; one of maxima says where they are. Resize is a
// product with a matrix for each axis, which is what it makes of the unit matrix.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "op/image/window.h"
#include "program/gradient/gradient_parts.h"

#define E(...) RONDO__EMIT(g, __VA_ARGS__)
#define RULE(name) static void name(rondo__gradient *g, const rondo__gradient_call *call)
#define FIRST rondo__gradient_input(call, 0)
#define SECOND rondo__gradient_input(call, 1)
#define MADE rondo__gradient_output(call, 0)
#define DY (call->changes[0])

// The numbers of a window: without extents where those of x are not known.
typedef struct geometry {
    int32_t rank;  // spatial
    int64_t group;
    int64_t kernel[RONDO__SPATIAL_MAX], stride[RONDO__SPATIAL_MAX], dilation[RONDO__SPATIAL_MAX];
    int64_t pads[2 * RONDO__SPATIAL_MAX];  // begins, then ends
} geometry;

static bool fill_from_window(rondo__gradient *g, const rondo__gradient_call *call, bool is_turned,
                             geometry *geo) {
    rondo__window window = {0};
    const rondo__tensor_info x = *rondo__gradient_info(g, FIRST);
    if (!rondo__info_has_rank(&x)) {
        return false;
    }
    for (int32_t d = 0; d < geo->rank; ++d) {
        if (x.shape.extent[2 + d] < 0) {
            return false;
        }
    }
    const rondo_status status =
        is_turned
            ? rondo__window_init_transposed(&call->op, geo->rank, x.shape.extent + 2, geo->kernel,
                                            &window)
            : rondo__window_init(&call->op, geo->rank, x.shape.extent + 2, geo->kernel, &window);
    for (int32_t d = 0; d < geo->rank && status == RONDO_STATUS_OK; ++d) {
        geo->stride[d] = window.stride[d];
        geo->dilation[d] = window.dilation[d];
        geo->pads[d] = window.pad_begin[d];
        geo->pads[d + geo->rank] = window.pad_end[d];
    }
    g->status = status;
    return true;
}

static void fill_from_attributes(const rondo__gradient_call *call, geometry *geo) {
    static const char *const names[3] = {"strides", "dilations", "pads"};
    int64_t *const lists[3] = {geo->stride, geo->dilation, geo->pads};
    for (int k = 0; k < 3; ++k) {
        size_t count = 0;
        const int64_t *list = rondo__op_get_ints(&call->op, names[k], &count);
        const int32_t want = k == 2 ? 2 * geo->rank : geo->rank;
        for (int32_t d = 0; d < want; ++d) {
            lists[k][d] = list != NULL && (size_t)d < count ? list[d] : k == 2 ? 0 : 1;
        }
    }
}

// `weights`: whose extents are the kernel's; NONE: the attribute says it.
static bool read_geometry(rondo__gradient *g, const rondo__gradient_call *call, int32_t weights,
                          bool is_turned, geometry *out_geometry) {
    geometry geo = {.group = rondo__op_get_int(&call->op, "group", 1)};
    size_t count = 0;
    const int64_t *shape = rondo__op_get_ints(&call->op, "kernel_shape", &count);
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    geo.rank = rank - 2;
    for (int32_t d = 0; d < geo.rank; ++d) {
        geo.kernel[d] = weights >= 0 ? rondo__gradient_extent(g, weights, 2 + d)
                        : shape != NULL && (size_t)d < count ? shape[d]
                                                             : -1;
        if (geo.kernel[d] < 0) {
            rondo__gradient_refuse(g, call, "a kernel whose extents are not known");
        }
    }
    if (g->status != RONDO_STATUS_OK || geo.rank < 1) {
        return false;
    }
    if (!fill_from_window(g, call, is_turned, &geo)) {
        const char *mode = rondo__op_get_string(&call->op, "auto_pad", "NOTSET");
        if (strcmp(mode, "NOTSET") != 0 || rondo__op_find(&call->op, "output_shape") != NULL ||
            rondo__op_get_int(&call->op, "ceil_mode", 0) != 0) {
            rondo__gradient_refuse(g, call, "padding that depends on extents that are not known");
        }
        fill_from_attributes(call, &geo);
    }
    *out_geometry = geo;
    return g->status == RONDO_STATUS_OK;
}

static int32_t set_geometry(rondo__gradient *g, int32_t value, const geometry *geo) {
    const size_t rank = (size_t)geo->rank;
    value = rondo__gradient_set_int(g, value, "group", geo->group);
    value = rondo__gradient_set_ints(g, value, "strides", geo->stride, rank);
    value = rondo__gradient_set_ints(g, value, "dilations", geo->dilation, rank);
    return rondo__gradient_set_ints(g, value, "pads", geo->pads, 2 * rank);
}

// The first extents of `value` along the spatial axes: as many as `like` has.
static int32_t cut_like(rondo__gradient *g, int32_t value, int32_t like, int32_t rank) {
    int64_t axes[RONDO__SPATIAL_MAX];
    int64_t starts[RONDO__SPATIAL_MAX] = {0};
    int32_t ends[RONDO__SPATIAL_MAX];
    bool is_same = true;
    for (int32_t d = 0; d < rank; ++d) {
        axes[d] = 2 + d;
        const int64_t have = rondo__gradient_extent(g, value, 2 + d);
        is_same = is_same && have >= 0 && have == rondo__gradient_extent(g, like, 2 + d);
    }
    if (is_same || g->status != RONDO_STATUS_OK) {
        return value;
    }
    for (int32_t d = 0; d < rank; ++d) {
        ends[d] = rondo__gradient_axis_size(g, like, 2 + d);
    }
    const int32_t last =
        rank == 1 ? ends[0]
                  : rondo__gradient_set_int(
                        g, rondo__gradient_emit(g, "Concat", ends, (size_t)rank), "axis", 0);
    return E("Slice", value, rondo__gradient_ints(g, starts, (size_t)rank), last,
             rondo__gradient_ints(g, axes, (size_t)rank));
}

// The weights of the convolution that goes back: turned round, in and out exchanged in each group.
static int32_t turn_weights(rondo__gradient *g, const geometry *geo, int32_t weights) {
    int64_t starts[RONDO__SPATIAL_MAX];
    int64_t ends[RONDO__SPATIAL_MAX];
    int64_t axes[RONDO__SPATIAL_MAX];
    int64_t steps[RONDO__SPATIAL_MAX];
    int64_t order[RONDO_RANK_MAX] = {1, 0};
    const size_t rank = (size_t)geo->rank;
    for (int32_t d = 0; d < geo->rank; ++d) {
        starts[d] = -1;
        ends[d] = INT64_MIN / 2;
        axes[d] = 2 + d;
        steps[d] = -1;
        order[2 + d] = 2 + d;
    }
    const int32_t turned =
        E("Slice", weights, rondo__gradient_ints(g, starts, rank),
          rondo__gradient_ints(g, ends, rank), rondo__gradient_ints(g, axes, rank),
          rondo__gradient_ints(g, steps, rank));
    return rondo__gradient_transpose(g, turned, order, geo->rank + 2);
}

// With steps of 1 the way back is a convolution, too, with the pads that are missing.
static bool find_return_pads(const geometry *geo, geometry *out_back) {
    *out_back = *geo;
    bool fits = geo->group == 1;
    for (int32_t d = 0; d < geo->rank; ++d) {
        const int64_t span = (geo->kernel[d] - 1) * geo->dilation[d];
        out_back->pads[d] = span - geo->pads[d];
        out_back->pads[d + geo->rank] = span - geo->pads[d + geo->rank];
        fits = fits && geo->stride[d] == 1 && out_back->pads[d] >= 0 &&
               out_back->pads[d + geo->rank] >= 0;
    }
    return fits;
}

// How a convolution's result changes with its image.
static int32_t change_of_image(rondo__gradient *g, const geometry *geo, int32_t change,
                               int32_t weights, int32_t image) {
    int64_t room[RONDO__SPATIAL_MAX];
    bool has_room = false;
    geometry back;
    if (find_return_pads(geo, &back)) {
        return set_geometry(g, E("Conv", change, turn_weights(g, geo, weights)), &back);
    }
    for (int32_t d = 0; d < geo->rank; ++d) {
        // The pixels that the last step left over are not known without extents: takes the most
        // there can be.
        const int64_t extent = rondo__gradient_extent(g, image, 2 + d);
        const int64_t span = (geo->kernel[d] - 1) * geo->dilation[d] + 1;
        const int64_t total = extent + geo->pads[d] + geo->pads[d + geo->rank] - span;
        room[d] = extent < 0 ? geo->stride[d] - 1 : total >= 0 ? total % geo->stride[d] : 0;
        has_room = has_room || room[d] > 0;
    }
    int32_t value = set_geometry(g, E("ConvTranspose", change, weights), geo);
    if (has_room) {
        value = rondo__gradient_set_ints(g, value, "output_padding", room, (size_t)geo->rank);
    }
    return cut_like(g, value, image, geo->rank);
}

// [n, group * c, ...] to [c, group * n, ...]; group 1: the first two axes exchanged.
static int32_t turn_images(rondo__gradient *g, int32_t value, int64_t group, int32_t spatial) {
    int64_t order[RONDO_RANK_MAX] = {1, 0};
    for (int32_t d = 2; d < spatial + 2; ++d) {
        order[d] = d;
    }
    if (group == 1) {
        return rondo__gradient_transpose(g, value, order, spatial + 2);
    }
    // One axis more than there may be is gone around: spatial axes as one.
    const int32_t n = rondo__gradient_axis_size(g, value, 0);
    const int32_t extents = rondo__gradient_shape(g, value);
    const int32_t rest = E("Slice", extents, rondo__gradient_int(g, 2), rondo__gradient_int(g, 64));
    const int32_t groups = rondo__gradient_int(g, group);
    const int32_t any = rondo__gradient_int(g, -1);
    const int32_t channels = E("Div", rondo__gradient_axis_size(g, value, 1), groups);
    const int32_t split_list[4] = {n, groups, channels, any};
    const int32_t split =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", split_list, 4), "axis", 0);
    const int64_t turn[4] = {2, 1, 0, 3};
    const int32_t turned = rondo__gradient_transpose(g, E("Reshape", value, split), turn, 4);
    const int32_t join_list[3] = {channels, E("Mul", groups, n), rest};
    const int32_t join =
        rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", join_list, 3), "axis", 0);
    return E("Reshape", turned, join);
}

enum { TAPS_MAX = 64 };

// The pixels that tap `tap` of each window saw, of an image with its pads.
static int32_t take_tap(rondo__gradient *g, const geometry *geo, int32_t padded, int32_t change,
                        int64_t tap) {
    int64_t starts[RONDO__SPATIAL_MAX];
    int64_t ends[RONDO__SPATIAL_MAX];
    int64_t axes[RONDO__SPATIAL_MAX];
    const size_t rank = (size_t)geo->rank;
    for (int32_t d = geo->rank - 1; d >= 0; --d) {
        starts[d] = tap % geo->kernel[d] * geo->dilation[d];
        tap /= geo->kernel[d];
        ends[d] = starts[d] + (rondo__gradient_extent(g, change, 2 + d) - 1) * geo->stride[d] + 1;
        axes[d] = 2 + d;
    }
    return E("Slice", padded, rondo__gradient_ints(g, starts, rank),
             rondo__gradient_ints(g, ends, rank), rondo__gradient_ints(g, axes, rank),
             rondo__gradient_ints(g, geo->stride, rank));
}

// [n, taps * c, pixels]: what all taps saw.
static int32_t take_taps(rondo__gradient *g, const geometry *geo, int32_t image, int32_t change,
                         int64_t taps, const int64_t *flat) {
    int64_t pads[2 * RONDO_RANK_MAX] = {0};
    int32_t seen[TAPS_MAX];
    bool has_pads = false;
    for (int32_t d = 0; d < geo->rank; ++d) {
        pads[2 + d] = geo->pads[d];
        pads[4 + geo->rank + d] = geo->pads[d + geo->rank];
        has_pads = has_pads || geo->pads[d] != 0 || geo->pads[d + geo->rank] != 0;
    }
    const int32_t padded =
        has_pads ? E("Pad", image, rondo__gradient_ints(g, pads, 2 * (size_t)geo->rank + 4),
                     rondo__gradient_number(g, 0.0, image))
                 : image;
    for (int64_t t = 0; t < taps; ++t) {
        seen[t] = take_tap(g, geo, padded, change, t);
    }
    const int32_t all =
        taps == 1 ? seen[0]
                  : rondo__gradient_set_int(
                        g, rondo__gradient_emit(g, "Concat", seen, (size_t)taps), "axis", 1);
    return rondo__gradient_reshape(g, all, flat, 3);
}

// The change of the weights as products, one for each image; NONE where extents are not known.
static int32_t multiply_taps(rondo__gradient *g, const geometry *geo, int32_t image, int32_t change,
                             int32_t weights) {
    static const int64_t first = 0;
    int64_t flat[3] = {0, 0, 1};  // images and channels as they are, pixels in one axis
    const int64_t channels = rondo__gradient_extent(g, weights, 1);
    int64_t taps = 1;
    int64_t extents[RONDO_RANK_MAX] = {-1};
    int64_t order[RONDO_RANK_MAX] = {0, geo->rank + 1};
    bool is_known = geo->group == 1 && channels > 0;
    for (int32_t d = 0; d < geo->rank && is_known; ++d) {
        taps *= geo->kernel[d];
        extents[1 + d] = geo->kernel[d];
        order[2 + d] = 1 + d;
        flat[2] *= rondo__gradient_extent(g, change, 2 + d);
        is_known = rondo__gradient_extent(g, change, 2 + d) > 0 && taps <= TAPS_MAX &&
                   geo->pads[d] >= 0 && geo->pads[d + geo->rank] >= 0;
    }
    if (!is_known) {
        return RONDO__VALUE_NONE;
    }
    extents[1 + geo->rank] = channels;
    const int32_t seen = take_taps(g, geo, image, change, taps, flat);
    const int32_t rows = rondo__gradient_reshape(g, change, flat, 3);
    const int32_t product = E("MatMul", rows, rondo__gradient_swap(g, seen, 3));
    const int32_t sum = rondo__gradient_reduce(g, "ReduceSum", product, &first, 1);
    const int32_t split = rondo__gradient_reshape(g, sum, extents, (size_t)geo->rank + 2);
    return rondo__gradient_transpose(g, split, order, geo->rank + 2);
}

// How it changes with its weights [m, c / group, ...].
static int32_t change_of_weights(rondo__gradient *g, const geometry *geo, int32_t image,
                                 int32_t change, int32_t weights) {
    const int32_t multiplied = multiply_taps(g, geo, image, change, weights);
    if (multiplied >= 0) {
        return multiplied;
    }
    geometry turned = *geo;
    memcpy(turned.stride, geo->dilation, sizeof turned.stride);
    memcpy(turned.dilation, geo->stride, sizeof turned.dilation);
    const int32_t images = turn_images(g, image, geo->group, geo->rank);
    const int32_t filters = turn_images(g, change, 1, geo->rank);
    const int32_t value = set_geometry(g, E("Conv", images, filters), &turned);
    return cut_like(g, turn_images(g, value, 1, geo->rank), weights, geo->rank);
}

static int32_t sum_channels(rondo__gradient *g, int32_t value, int32_t spatial) {
    return rondo__gradient_sum_channels(g, value, spatial + 2);
}

RULE(rule_conv) {
    geometry geo;
    if (!read_geometry(g, call, SECOND, false, &geo)) {
        return;
    }
    if (rondo__gradient_wants(g, call, 0)) {
        rondo__gradient_give(g, call, 0, change_of_image(g, &geo, DY, SECOND, FIRST));
    }
    if (rondo__gradient_wants(g, call, 1)) {
        rondo__gradient_give(g, call, 1, change_of_weights(g, &geo, FIRST, DY, SECOND));
    }
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_give(g, call, 2, sum_channels(g, DY, geo.rank));
    }
}

RULE(rule_conv_transpose) {
    // The convolution that it turns round: of dy, with the same weights, to x.
    geometry geo;
    if (!read_geometry(g, call, SECOND, true, &geo)) {
        return;
    }
    // Where x or y has no elements, neither x nor w changes anything.
    bool is_empty = false;
    for (int32_t d = 0; d < geo.rank; ++d) {
        is_empty = is_empty || rondo__gradient_extent(g, FIRST, 2 + d) == 0 ||
                   rondo__gradient_extent(g, MADE, 2 + d) == 0;
    }
    if (rondo__gradient_wants(g, call, 0) && !is_empty) {
        const int32_t change = set_geometry(g, E("Conv", DY, SECOND), &geo);
        rondo__gradient_give(g, call, 0, cut_like(g, change, FIRST, geo.rank));
    }
    if (rondo__gradient_wants(g, call, 1) && !is_empty) {
        rondo__gradient_give(g, call, 1, change_of_weights(g, &geo, DY, FIRST, SECOND));
    }
    if (rondo__gradient_wants(g, call, 2)) {
        rondo__gradient_give(g, call, 2, sum_channels(g, DY, geo.rank));
    }
}

// ---- pools --------------------------------------------------------------------------------------

enum { CLASSES_MAX = 8 };

// Every steps[d]-th window along each axis, from `which` on, with their places.
static int32_t scatter_class(rondo__gradient *g, const rondo__gradient_call *call, int32_t places,
                             const geometry *geo, const int64_t *steps, int64_t which) {
    int64_t starts[RONDO__SPATIAL_MAX];
    int64_t ends[RONDO__SPATIAL_MAX];
    int64_t axes[RONDO__SPATIAL_MAX];
    const size_t rank = (size_t)geo->rank;
    for (int32_t d = 0; d < geo->rank; ++d) {
        starts[d] = which % steps[d];
        which /= steps[d];
        ends[d] = INT64_MAX;
        axes[d] = 2 + d;
    }
    const int32_t list[4] = {
        rondo__gradient_ints(g, starts, rank), rondo__gradient_ints(g, ends, rank),
        rondo__gradient_ints(g, axes, rank), rondo__gradient_ints(g, steps, rank)};
    const int32_t chosen = E("Slice", places, list[0], list[1], list[2], list[3]);
    const int32_t change = E("Slice", DY, list[0], list[1], list[2], list[3]);
    return rondo__gradient_scatter_flat(g, chosen, change, FIRST, true);
}

RULE(rule_max_pool) {
    const int32_t places = rondo__gradient_take_output(g, call, 1, RONDO_DTYPE_I64);
    if (rondo__op_get_int(&call->op, "storage_order", 0) != 0) {
        rondo__gradient_refuse(g, call, "attribute storage_order=1");
        return;
    }
    // Windows that do not overlap name no position twice.
    size_t count = 0;
    const int64_t *kernel = rondo__op_get_ints(&call->op, "kernel_shape", &count);
    geometry geo = {.rank = count <= RONDO__SPATIAL_MAX ? (int32_t)count : 0};
    fill_from_attributes(call, &geo);
    bool is_apart = geo.rank > 0;
    int64_t classes = 1;
    int64_t steps[RONDO__SPATIAL_MAX];
    for (int32_t d = 0; d < geo.rank; ++d) {
        const int64_t span = (kernel[d] - 1) * geo.dilation[d] + 1;
        steps[d] = (span - 1) / geo.stride[d] + 1;
        classes = classes <= CLASSES_MAX && steps[d] <= CLASSES_MAX ? classes * steps[d]
                                                                    : CLASSES_MAX + 1;
        is_apart = is_apart && steps[d] == 1;
    }
    if (geo.rank > 0 && !is_apart && classes <= CLASSES_MAX) {
        // Windows that overlap, in classes of those that do not.
        int32_t sum = RONDO__VALUE_NONE;
        for (int64_t c = 0; c < classes; ++c) {
            const int32_t part = scatter_class(g, call, places, &geo, steps, c);
            sum = rondo__gradient_join(g, sum, part);
        }
        rondo__gradient_give(g, call, 0, sum);
        return;
    }
    rondo__gradient_give(g, call, 0, rondo__gradient_scatter_flat(g, places, DY, FIRST, is_apart));
}

// [n, c, ...] as [n * c, 1, ...], of which a convolution has one channel.
static int32_t take_single(rondo__gradient *g, int32_t value) {
    const int64_t front[2] = {-1, 1};
    const int32_t rest = E("Slice", rondo__gradient_shape(g, value), rondo__gradient_int(g, 2),
                           rondo__gradient_int(g, 64));
    const int32_t list[2] = {rondo__gradient_ints(g, front, 2), rest};
    return E("Reshape", value,
             rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", list, 2), "axis", 0));
}

static int32_t make_ones(rondo__gradient *g, const geometry *geo, int32_t like) {
    int64_t extents[RONDO_RANK_MAX] = {1, 1};
    memcpy(extents + 2, geo->kernel, (size_t)geo->rank * sizeof *extents);
    const int32_t one = rondo__gradient_number(g, 1.0, like);
    return E("Expand", one, rondo__gradient_ints(g, extents, (size_t)geo->rank + 2));
}

// How many elements each window has, in the shape [1, 1, ...]; a number where it is the same.
// `asked`: without what ceil_mode adds.
static int32_t count_taps(rondo__gradient *g, const rondo__gradient_call *call, const geometry *geo,
                          const geometry *asked, int32_t ones) {
    const bool counts_pads = rondo__op_get_int(&call->op, "count_include_pad", 0) != 0;
    const bool has_ceil = rondo__op_get_int(&call->op, "ceil_mode", 0) != 0;
    bool has_pads = false;
    double all = 1.0;
    for (int32_t d = 0; d < geo->rank; ++d) {
        all *= (double)geo->kernel[d];
        has_pads = has_pads || geo->pads[d] != 0 || geo->pads[d + geo->rank] != 0;
    }
    if (!has_ceil && (counts_pads || !has_pads)) {
        return rondo__gradient_number(g, all, DY);
    }
    int32_t image = take_single(g, rondo__gradient_fill_like(g, 1.0, FIRST));
    const int64_t zero = 0;
    const int64_t one = 1;
    image = E("Slice", image, rondo__gradient_ints(g, &zero, 1), rondo__gradient_ints(g, &one, 1));
    geometry bare = *geo;
    bare.group = 1;
    if (counts_pads) {
        // Pads that the node asks for count; what ceil_mode adds does not.
        int64_t pads[2 * RONDO_RANK_MAX] = {0};
        for (int32_t d = 0; d < geo->rank; ++d) {
            pads[2 + d] = asked->pads[d];
            pads[4 + geo->rank + d] = asked->pads[d + geo->rank];
            bare.pads[d] -= asked->pads[d];
            bare.pads[d + geo->rank] -= asked->pads[d + geo->rank];
        }
        image = E("Pad", image, rondo__gradient_ints(g, pads, 2 * (size_t)geo->rank + 4),
                  rondo__gradient_number(g, 1.0, image));
    }
    return set_geometry(g, E("Conv", image, ones), &bare);
}

// The last window of ceil_mode hangs over the end, as if there were more pads.
static void add_ceil(rondo__gradient *g, const rondo__gradient_call *call, geometry *geo) {
    for (int32_t d = 0; d < geo->rank; ++d) {
        const int64_t in = rondo__gradient_extent(g, FIRST, 2 + d);
        const int64_t out = rondo__gradient_extent(g, MADE, 2 + d);
        const int64_t span = (geo->kernel[d] - 1) * geo->dilation[d] + 1;
        const int64_t have = in + geo->pads[d] + geo->pads[d + geo->rank];
        const int64_t want = (out - 1) * geo->stride[d] + span;
        if (in >= 0 && out > 0 && want > have) {
            geo->pads[d + geo->rank] += want - have;
        }
    }
}

RULE(rule_average_pool) {
    geometry geo;
    if (!read_geometry(g, call, RONDO__VALUE_NONE, false, &geo)) {
        return;
    }
    geo.group = 1;
    const geometry asked = geo;
    add_ceil(g, call, &geo);
    const int32_t ones = make_ones(g, &geo, DY);
    const int32_t share = take_single(g, E("Div", DY, count_taps(g, call, &geo, &asked, ones)));
    const int32_t image = take_single(g, rondo__gradient_fill_like(g, 0.0, FIRST));
    const int32_t change = change_of_image(g, &geo, share, ones, image);
    rondo__gradient_give(g, call, 0, rondo__gradient_reshape_like(g, change, FIRST));
}

static void expand_global(rondo__gradient *g, const rondo__gradient_call *call, const char *op) {
    int64_t axes[RONDO_RANK_MAX];
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    for (int32_t d = 2; d < rank; ++d) {
        axes[d - 2] = d;
    }
    if (rank > 2) {
        const size_t begin = rondo__gradient_begin(g);
        const int32_t y = rondo__gradient_reduce(g, op, FIRST, axes, (size_t)rank - 2);
        rondo__gradient_expand(g, begin, &y, call->changes, 1);
    } else {
        rondo__gradient_give(g, call, 0, DY);
    }
}

RULE(rule_global_average) {
    expand_global(g, call, "ReduceMean");
}

RULE(rule_global_max) {
    expand_global(g, call, "ReduceMax");
}

// ---- Resize -------------------------------------------------------------------------------------

static void copy_resize(rondo__gradient *g, int32_t value, const rondo__gradient_call *call) {
    static const char *const names[] = {"mode",          "coordinate_transformation_mode",
                                        "cubic_coeff_a", "exclude_outside",
                                        "nearest_mode",  "antialias"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        rondo__gradient_copy_attribute(g, value, call, names[i]);
    }
}

// The unit matrix as an image, resized along its last axis: row i says where element i goes.
static int32_t make_matrix(rondo__gradient *g, const rondo__gradient_call *call, int64_t extent,
                           int64_t axis, int32_t scales, int32_t sizes) {
    const int64_t square[2] = {extent, extent};
    const int64_t image[4] = {1, 1, extent, extent};
    const int32_t plain =
        E("Expand", rondo__gradient_number(g, 1.0, DY), rondo__gradient_ints(g, square, 2));
    const int32_t unit = rondo__gradient_reshape(g, E("EyeLike", plain), image, 4);
    int32_t value;
    if (sizes >= 0) {
        const int32_t list[2] = {rondo__gradient_ints(g, image, 3),
                                 E("Gather", sizes, rondo__gradient_int(g, axis))};
        const int32_t all =
            rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", list, 2), "axis", 0);
        value = E("Resize", unit, RONDO__VALUE_NONE, RONDO__VALUE_NONE, all);
    } else {
        const int32_t ones =
            E("Expand", rondo__gradient_number(g, 1.0, scales), rondo__gradient_int(g, 3));
        const int32_t list[2] = {ones, E("Gather", scales, rondo__gradient_int(g, axis))};
        const int32_t all =
            rondo__gradient_set_int(g, rondo__gradient_emit(g, "Concat", list, 2), "axis", 0);
        value = E("Resize", unit, RONDO__VALUE_NONE, all);
    }
    copy_resize(g, value, call);
    const int64_t flat[2] = {extent, -1};
    return rondo__gradient_reshape(g, value, flat, 2);
}

static int32_t multiply_axis(rondo__gradient *g, int32_t value, int32_t matrix, int32_t axis,
                             int32_t rank) {
    int64_t order[RONDO_RANK_MAX];
    for (int32_t d = 0; d < rank; ++d) {
        order[d] = d == axis ? rank - 1 : d == rank - 1 ? axis : d;
    }
    const int32_t turned = rondo__gradient_transpose(g, value, order, rank);
    const int32_t product = E("MatMul", turned, rondo__gradient_swap(g, matrix, 2));
    return rondo__gradient_transpose(g, product, order, rank);
}

RULE(rule_resize) {
    const char *mode =
        rondo__op_get_string(&call->op, "coordinate_transformation_mode", "half_pixel");
    const char *policy = rondo__op_get_string(&call->op, "keep_aspect_ratio_policy", "stretch");
    const int32_t rank = rondo__gradient_need_rank(g, call, FIRST);
    const bool is_old = call->op.opset < 11;
    const int32_t scales = rondo__gradient_input(call, is_old ? 1 : 2);
    const int32_t sizes = is_old ? RONDO__VALUE_NONE : rondo__gradient_input(call, 3);
    if (strcmp(mode, "tf_crop_and_resize") == 0 || strcmp(policy, "stretch") != 0 ||
        rondo__op_find(&call->op, "axes") != NULL || is_old) {
        rondo__gradient_refuse(g, call,
                               "tf_crop_and_resize, a kept aspect ratio, axes, or of version 10");
        return;
    }
    int32_t change = DY;
    for (int32_t d = 0; d < rank && g->status == RONDO_STATUS_OK; ++d) {
        const int64_t extent = rondo__gradient_extent(g, FIRST, d);
        double scale = 0.0;
        const int32_t one = scales >= 0 && sizes < 0
                                ? E("Gather", scales, rondo__gradient_index(g, d))
                                : RONDO__VALUE_NONE;
        const bool is_known = one >= 0 && rondo__gradient_read_number(g, one, &scale);
        const int64_t made = rondo__gradient_extent(g, MADE, d);
        if ((is_known && scale == 1.0) || (sizes >= 0 && extent >= 0 && extent == made) ||
            (d < 2 && (extent < 0 || extent == made))) {
            continue;
        }
        if (extent < 0) {
            rondo__gradient_refuse(g, call, "extents that are not known");
            return;
        }
        const int32_t matrix = make_matrix(g, call, extent, d, scales, sizes);
        change = multiply_axis(g, change, matrix, d, rank);
    }
    rondo__gradient_give(g, call, 0, change);
}

const rondo__gradient_row rondo__gradient_rows_image[] = {
    {RONDO__OP_Conv, rule_conv},
    {RONDO__OP_ConvTranspose, rule_conv_transpose},
    {RONDO__OP_MaxPool, rule_max_pool},
    {RONDO__OP_AveragePool, rule_average_pool},
    {RONDO__OP_GlobalAveragePool, rule_global_average},
    {RONDO__OP_GlobalMaxPool, rule_global_max},
    {RONDO__OP_Resize, rule_resize},
    {RONDO__OP_NONE, NULL},
};
