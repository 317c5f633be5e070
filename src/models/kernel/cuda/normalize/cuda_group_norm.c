// kernel/cuda/normalize/cuda_group_norm.c — rondo.GroupNormalization with channels last: which
// slices of the channels, clusters and parts (see kernel/cuda/cu/include/rondo_group_norm.cuh) are
// worth timing.
//
// An image that a cluster's registers hold is read once, by one launch, but a cluster is 8 of the
// chip's multiprocessors; the second way takes two launches, and all of them. Which is faster for a
// few images of some hundred KiB is close, so it is timed.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/cuda_families.h"
#include "kernel/cuda/elementwise/cuda_epilogue.h"
#include "kernel/cuda/tune/cuda_tune.h"

enum {
    WAYS_MAX = 24,
    HELD_TIMED = 2,
    THREADS_MAX = 512,
    THREADS_LEAST = 64,
    PARTS_THREADS = 256,
    PACKS_MAX = 8,    // pieces that a thread holds
    PACKS_GOOD = 4,   // enough of them on their way at once
    CLUSTER_MAX = 8,  // blocks that every chip with clusters takes
    PARTS_MAX = 512,
    SECTOR_BYTES = 32,
    WIDE_BYTES = 128,  // of a pixel, as much as a line of the cache
    SHARED_MAX = 48 << 10,
};

// How one block sees the channels; the names are those of rondo_group_norm.cuh.
typedef struct norm_slice {
    int64_t width, unit, group, pieces;
    int64_t count;  // of slices
} norm_slice;

typedef struct norm_way {
    norm_slice slice;
    bool is_held;
    int64_t threads, packs;
    int64_t parts;   // blocks of a cluster, or parts of the pixels
    double cost_ns;  // estimated
} norm_way;

typedef struct norm_problem {
    rondo_dtype dtype, gain_dtype;
    int64_t images, pixels, channels, groups;
    double epsilon;
    rondo__cuda_epilogue epilogue;
    int64_t units;  // multiprocessors
    bool has_clusters;
    size_t way_count;
    norm_way ways[WAYS_MAX];
} norm_problem;

static bool read_problem(rondo__cuda_kernel *kernel, norm_problem *out_problem) {
    const rondo__op *op = kernel->request->op;
    const rondo__tensor_info *x = rondo__cuda_input(kernel, 0);
    const rondo__tensor_info *gain = rondo__cuda_input(kernel, 1);
    rondo_device_info info = {.struct_size = sizeof info};
    *out_problem = (norm_problem){
        .dtype = x->dtype,
        .gain_dtype = gain->dtype,
        .images = x->shape.extent[0],
        .pixels = rondo__cuda_product(&x->shape, 1, x->shape.rank - 1),
        .channels = x->shape.extent[x->shape.rank - 1],
        .groups = rondo__op_get_int(op, "groups", 1),
        .epsilon = (double)rondo__op_get_float(op, "epsilon", 1e-5f),
        .units = 1,
    };
    if (!rondo__cuda_is_float(x->dtype) || !rondo__cuda_is_float(gain->dtype) ||
        rondo__cuda_input(kernel, 2)->dtype != gain->dtype) {
        rondo__cuda_refuse(kernel, "a gain or shift of this type");
        return false;
    }
    if (rondo_device_get_info(kernel->device, &info) == RONDO_STATUS_OK) {
        out_problem->units = info.compute_units > 0 ? info.compute_units : 1;
        out_problem->has_clusters = info.arch_major >= 9;
    }
    return rondo__cuda_read_epilogue(kernel, &out_problem->epilogue);
}

// ---- ways -------------------------------------------------------------------------------------

static int64_t get_rows(const norm_way *way) {
    return way->threads / way->slice.pieces;
}

static int64_t get_groups(const norm_slice *slice) {
    return slice->pieces * slice->width / slice->group;
}

// Of a block: moments of units, then two numbers for each group twice.
static int64_t get_shared_bytes(const norm_way *way) {
    const int64_t columns = way->slice.pieces * way->slice.width / way->slice.unit;
    return (columns * (get_rows(way) | 1) + 2 * get_groups(&way->slice)) * 8;
}

// The smallest slice of whole groups and pieces, as often as it makes `bytes` of a pixel; false:
// too wide for a block.
static bool make_slice(const norm_problem *problem, int64_t bytes, norm_slice *out_slice) {
    const int64_t element_bytes = (int64_t)rondo_dtype_get_bytes(problem->dtype);
    const int64_t group = problem->channels / problem->groups;
    int64_t width = 16 / element_bytes;
    while (problem->channels % width != 0) {
        width /= 2;
    }
    const int64_t least = group / rondo__find_divisor(group, width) * width;
    int64_t times = 1;
    for (int64_t t = 2; t * least <= problem->channels && times * least * element_bytes < bytes;
         t++) {
        times = problem->channels % (t * least) == 0 ? t : times;
    }
    *out_slice = (norm_slice){.width = width,
                              .unit = rondo__find_divisor(group, width),
                              .group = group,
                              .pieces = times * least / width,
                              .count = problem->channels / (times * least)};
    return out_slice->pieces <= THREADS_MAX;
}

// What a block's threads take, in nanoseconds on an H200: some thirty instructions for an element,
// and the multiprocessor's way to the cache, there and back.
static double estimate_share_ns(const norm_problem *problem, const norm_way *way, int64_t blocks,
                                int64_t span) {
    const double per_ns = 128 * 1.7 / 30, bytes_per_ns = 110;
    const int64_t element_bytes = (int64_t)rondo_dtype_get_bytes(problem->dtype);
    const int64_t bytes = way->slice.pieces * way->slice.width * element_bytes;
    const int64_t moved = rondo__divide_up(bytes, SECTOR_BYTES) * SECTOR_BYTES;
    const double pixels = (double)rondo__divide_up(blocks, problem->units) * (double)span;
    return pixels *
           ((double)bytes / (double)element_bytes / per_ns + 2 * (double)moved / bytes_per_ns);
}

static void add_way(norm_problem *problem, const norm_way *way) {
    if (problem->way_count < WAYS_MAX && get_rows(way) > 0 && get_shared_bytes(way) <= SHARED_MAX) {
        problem->ways[problem->way_count++] = *way;
    }
}

static void add_held(norm_problem *problem, const norm_slice *slice, int64_t cluster) {
    const double launch_ns = 2000, cluster_ns = 500;
    const int64_t span = rondo__divide_up(problem->pixels, cluster);
    norm_way way = {.slice = *slice, .is_held = true, .threads = THREADS_LEAST, .parts = cluster};
    while (way.threads < THREADS_MAX &&
           (way.threads < slice->pieces || span * slice->pieces > way.threads * PACKS_GOOD)) {
        way.threads *= 2;
    }
    way.packs = rondo__divide_up(span, get_rows(&way));
    const int64_t blocks = problem->images * slice->count * cluster;
    if (way.packs > PACKS_MAX || blocks >= INT64_C(1) << 30) {
        return;
    }
    way.cost_ns =
        launch_ns + (cluster > 1 ? cluster_ns : 0) + estimate_share_ns(problem, &way, blocks, span);
    add_way(problem, &way);
}

// Two blocks for each multiprocessor, as far as each thread has a piece then.
static void add_parts(norm_problem *problem, const norm_slice *slice) {
    const double launches_ns = 3000;
    norm_way way = {.slice = *slice, .threads = PARTS_THREADS};
    while (way.threads < slice->pieces) {
        way.threads *= 2;
    }
    const int64_t tasks = problem->images * slice->count;
    const int64_t wanted = rondo__divide_up(2 * problem->units, tasks);
    const int64_t most = rondo__divide_up(problem->pixels, get_rows(&way));
    way.parts = wanted < most ? wanted : most;
    way.parts = way.parts < PARTS_MAX ? way.parts : PARTS_MAX;
    const int64_t blocks = tasks * way.parts, span = rondo__divide_up(problem->pixels, way.parts);
    if (blocks >= INT64_C(1) << 30) {
        return;
    }
    way.packs = rondo__divide_up(span, get_rows(&way));
    way.packs = way.packs < PACKS_GOOD ? way.packs : PACKS_GOOD;
    way.cost_ns = launches_ns + estimate_share_ns(problem, &way, blocks, span);
    if (way.parts > 1 || problem->way_count == 0) {
        add_way(problem, &way);
    }
}

static int compare_costs(const void *a, const void *b) {
    const norm_way *x = a;
    const norm_way *y = b;
    if (x->cost_ns != y->cost_ns) {
        return x->cost_ns < y->cost_ns ? -1 : 1;
    }
    return x->is_held != y->is_held ? (x->is_held ? -1 : 1) : (int)(x->parts - y->parts);
}

// The best by estimate first; that of two launches, which takes all numbers of pixels, is one.
static void list_ways(norm_problem *problem) {
    norm_slice narrow, sector, wide;
    if (problem->pixels >= INT64_C(1) << 31 || !make_slice(problem, 1, &narrow)) {
        return;
    }
    const bool has_sector =
        make_slice(problem, SECTOR_BYTES, &sector) && sector.pieces != narrow.pieces;
    for (int64_t cluster = 1; cluster <= (problem->has_clusters ? CLUSTER_MAX : 1); cluster *= 2) {
        if (cluster > 1 && problem->pixels < cluster) {
            break;
        }
        add_held(problem, &narrow, cluster);
        if (has_sector) {
            add_held(problem, &sector, cluster);
        }
    }
    qsort(problem->ways, problem->way_count, sizeof problem->ways[0], compare_costs);
    problem->way_count = problem->way_count < HELD_TIMED ? problem->way_count : HELD_TIMED;
    add_parts(problem, make_slice(problem, WIDE_BYTES, &wide) ? &wide : &narrow);
    qsort(problem->ways, problem->way_count, sizeof problem->ways[0], compare_costs);
}

// ---- launches ---------------------------------------------------------------------------------

static void define_way(const norm_problem *problem, const norm_way *way, rondo__defines *defines) {
    rondo__define_type(defines, "T", problem->dtype);
    rondo__define_type(defines, "G", problem->gain_dtype);
    if (way->is_held) {
        rondo__define_int(defines, "CLUSTER", way->parts);
    }
    rondo__define_int(defines, "THREADS", way->threads);
    rondo__define_int(defines, "PACKS", way->packs);
    rondo__define_int(defines, "WIDTH", way->slice.width);
    rondo__define_int(defines, "UNIT", way->slice.unit);
    rondo__define_int(defines, "GROUP", way->slice.group);
    rondo__define_int(defines, "PIECES", way->slice.pieces);
    rondo__define_int(defines, "ACTIVATION", problem->epilogue.activation);
}

static void add_launch(rondo__cuda_kernel *kernel, const norm_problem *problem, const norm_way *way,
                       const char *name, size_t workspace) {
    rondo__defines defines = {0};
    define_way(problem, way, &defines);
    rondo__step *step = rondo__cuda_add_launch(
        kernel, way->is_held ? rondo__cu_group_norm_held : rondo__cu_group_norm_parts, &defines,
        name, problem->images * way->slice.count * way->parts, (uint32_t)way->threads);
    if (step != NULL) {
        step->launch.shared_bytes = (uint32_t)get_shared_bytes(way);
    }
    rondo__step_input(step, 0);
    rondo__step_input(step, 1);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
    if (way->is_held) {
        rondo__step_int(step, 0);
    } else {
        rondo__step_address(step, rondo__address_workspace(workspace));
    }
    rondo__step_int(step, problem->pixels);
    rondo__step_int(step, problem->channels);
    rondo__step_int(step, way->slice.count);
    rondo__step_int(step, way->parts);
    rondo__step_int(step, rondo__divide_up(problem->pixels, way->parts));
    rondo__step_float(step, problem->epsilon);
    rondo__step_float(step, (double)problem->epilogue.alpha);
    rondo__step_float(step, (double)problem->epilogue.beta);
}

static void build_way(rondo__cuda_kernel *kernel, const void *data, size_t index) {
    const norm_problem *problem = data;
    const norm_way *way = &problem->ways[index];
    if (way->is_held) {
        add_launch(kernel, problem, way, "image_normalization_held", 0);
        return;
    }
    const size_t workspace = rondo__cuda_reserve_workspace(
        kernel, (size_t)(problem->images * problem->groups * way->parts) * 8);
    add_launch(kernel, problem, way, "image_moments", workspace);
    add_launch(kernel, problem, way, "image_normalization", workspace);
}

static void describe_way(const rondo__cuda_kernel *kernel, const void *data, size_t index,
                         char *text, size_t text_bytes) {
    const norm_problem *problem = data;
    const norm_way *way = &problem->ways[index];
    (void)kernel;
    (void)snprintf(text, text_bytes, "%s %lld, %lld slices", way->is_held ? "clusters of" : "parts",
                   (long long)way->parts, (long long)way->slice.count);
}

void rondo__cuda_prepare_fused_group_normalization(rondo__cuda_kernel *kernel) {
    const rondo__op *op = kernel->request->op;
    norm_problem problem;
    char key[160];
    if (rondo__op_get_int(op, "channels_last", 0) == 0) {
        rondo__cuda_prepare_group_normalization(kernel);
        return;
    }
    if (!read_problem(kernel, &problem)) {
        return;
    }
    list_ways(&problem);
    if (problem.way_count == 0) {
        rondo__cuda_add_strided_norm(kernel);
        return;
    }
    const int64_t forced = rondo__op_get_int(op, "way", -1);
    if (forced >= 0) {
        build_way(kernel, &problem, (size_t)forced % problem.way_count);
        return;
    }
    (void)snprintf(key, sizeof key,
                   "group norm %s %s images %lld pixels %lld channels %lld groups "
                   "%lld activation %d",
                   rondo_dtype_get_name(problem.dtype), rondo_dtype_get_name(problem.gain_dtype),
                   (long long)problem.images, (long long)problem.pixels,
                   (long long)problem.channels, (long long)problem.groups,
                   (int)problem.epilogue.activation);
    const rondo__tuning tuning = {
        .key = key,
        .candidate_count = problem.way_count,
        .fast = (UINT64_C(1) << problem.way_count) - 1,
        .problem = &problem,
        .build = build_way,
        .describe = describe_way,
    };
    rondo__cuda_add_fastest(kernel, &tuning);
}
