// kernel/cuda/arrange/cuda_suppress.c — NonMaxSuppression; see suppress.cu.
// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "cu_sources.h"
#include "kernel/cuda/arrange/cuda_select.h"
#include "kernel/cuda/arrange/cuda_sort.h"
#include "kernel/cuda/cuda_families.h"

enum { THREADS = 512, SORTED = 2048 };  // as in the text
// As in suppress_spread.cu; and what the bits of a strip and the words of a line may take.
enum { WALKERS = 1024, TILE_ROWS = 64, TILE_WORDS = 4, STRIP_MIN = 256, STRIP_MAX = 2048 };
enum { STRIP_BYTES_MAX = 32 << 20, WORDS_MAX = 8192, SPREAD_LINES_MAX = 32 };

enum { BOXES, SCORES, MOST, OVERLAP, SCORE };

typedef struct suppression {
    int64_t lines, classes, count;  // lines: of all batches
    int64_t limit;                  // boxes that may be kept of one
    rondo__address kept, kept_counts, found;
} suppression;

static void add_classes(rondo__cuda_kernel *kernel, const suppression *s,
                        const rondo__defines *defines) {
    const rondo__op *op = kernel->request->op;
    rondo__address keys = {0}, spare = {0};
    const bool is_long = s->count > SORTED;
    if (is_long) {
        keys = rondo__cuda_reserve(kernel, s->lines * s->count, sizeof(uint64_t));
        spare = rondo__cuda_reserve(kernel, s->lines * s->count, sizeof(uint64_t));
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_suppress, defines,
                                               "suppress_class", s->lines, THREADS);
    rondo__step_int(step, s->lines);
    rondo__step_int(step, s->classes);
    rondo__step_int(step, s->count);
    rondo__step_input(step, BOXES);
    rondo__step_input(step, SCORES);
    rondo__step_optional_input(step, kernel, MOST);
    rondo__step_optional_input(step, kernel, OVERLAP);
    rondo__step_optional_input(step, kernel, SCORE);
    rondo__step_optional(step, is_long ? &keys : NULL);
    rondo__step_optional(step, is_long ? &spare : NULL);
    rondo__step_address(step, s->kept);
    rondo__step_address(step, s->kept_counts);
    rondo__step_int(step, s->limit);
    rondo__step_int(step, rondo__op_get_int(op, "center_point_box", 0) != 0);
}

// ---- a few lines of many boxes -----------------------------------------------------------------

typedef struct spread {
    const suppression *s;
    int64_t words, strip;
    rondo__address keys, sorted, corners, gone, covered;
} spread;

// How many boxes are walked through at a time; 0: a block a line is better, or must do.
static int64_t choose_strip(const suppression *s) {
    const int64_t words = (s->count + 31) / 32;
    if (s->count <= SORTED || s->lines > SPREAD_LINES_MAX || words > WORDS_MAX) {
        return 0;
    }
    int64_t strip = STRIP_MAX;
    while (strip >= STRIP_MIN &&
           s->lines * strip * words * (int64_t)sizeof(uint32_t) > STRIP_BYTES_MAX) {
        strip /= 2;
    }
    return strip >= STRIP_MIN ? strip : 0;
}

static rondo__step *add_spread(rondo__cuda_kernel *kernel, const spread *p,
                               const rondo__defines *defines, const char *name, int64_t blocks,
                               uint32_t threads, int64_t first) {
    const suppression *s = p->s;
    rondo__step *step =
        rondo__cuda_add_launch(kernel, rondo__cu_suppress_spread, defines, name, blocks, threads);
    rondo__step_int(step, s->lines);
    rondo__step_int(step, s->classes);
    rondo__step_int(step, s->count);
    rondo__step_int(step, p->words);
    rondo__step_input(step, BOXES);
    rondo__step_input(step, SCORES);
    rondo__step_optional_input(step, kernel, MOST);
    rondo__step_optional_input(step, kernel, OVERLAP);
    rondo__step_optional_input(step, kernel, SCORE);
    rondo__step_address(step, p->keys);
    rondo__step_address(step, p->sorted);
    rondo__step_address(step, p->corners);
    rondo__step_address(step, p->gone);
    rondo__step_address(step, p->covered);
    rondo__step_address(step, s->kept);
    rondo__step_address(step, s->kept_counts);
    rondo__step_int(step, s->limit);
    rondo__step_int(step, rondo__op_get_int(kernel->request->op, "center_point_box", 0) != 0);
    rondo__step_int(step, p->strip);
    rondo__step_int(step, first);
    return step;
}

static void add_strips(rondo__cuda_kernel *kernel, const spread *p, const rondo__defines *defines) {
    const int64_t lines = p->s->lines;
    for (int64_t first = 0; first < p->s->count; first += p->strip) {
        rondo__step *step =
            add_spread(kernel, p, defines, "spread_cover", (p->words + TILE_WORDS - 1) / TILE_WORDS,
                       RONDO__CUDA_BLOCK, first);
        if (step != NULL) {
            step->launch.grid[1] = (uint32_t)(p->strip / TILE_ROWS);
            step->launch.grid[2] = (uint32_t)lines;
        }
        step = add_spread(kernel, p, defines, "spread_walk", lines, WALKERS, first);
        if (step != NULL) {
            step->launch.shared_bytes = (uint32_t)(p->words * (int64_t)sizeof(uint32_t));
        }
    }
}

static void add_spread_classes(rondo__cuda_kernel *kernel, const suppression *s, int64_t strip,
                               const rondo__defines *defines) {
    spread p = {.s = s, .words = (s->count + 31) / 32, .strip = strip};
    rondo__cuda_sorted sorted;
    const int64_t all = s->lines * s->count;
    p.keys = rondo__cuda_reserve(kernel, all, sizeof(uint64_t));
    p.sorted = p.keys;
    p.corners = rondo__cuda_reserve(kernel, all, 4 * sizeof(float));
    p.gone = rondo__cuda_reserve(kernel, s->lines * p.words, sizeof(uint32_t));
    p.covered = rondo__cuda_reserve(kernel, s->lines * strip * p.words, sizeof(uint32_t));
    (void)add_spread(kernel, &p, defines, "spread_keys", rondo__cuda_blocks(all), RONDO__CUDA_BLOCK,
                     0);
    if (!rondo__cuda_add_sort(kernel, p.keys, s->lines, s->count, s->count, &sorted)) {
        return;
    }
    p.sorted = sorted.keys;
    (void)add_spread(kernel, &p, defines, "spread_boxes",
                     rondo__cuda_blocks(s->lines * p.words * 32), RONDO__CUDA_BLOCK, 0);
    add_strips(kernel, &p, defines);
}

void rondo__cuda_prepare_suppression(rondo__cuda_kernel *kernel) {
    const rondo_shape *scores = &rondo__cuda_input(kernel, SCORES)->shape;
    const int64_t most = rondo__cuda_output(kernel, 0)->shape.extent[0];
    suppression s = {.lines = scores->extent[0] * scores->extent[1],
                     .classes = scores->extent[1],
                     .count = scores->extent[2]};
    const rondo__defines plain = {0};
    rondo__defines defines = {0};
    int64_t bytes;
    if (s.count >= INT32_MAX || !rondo__mul_i64(s.lines, s.count, &bytes) ||
        !rondo__mul_i64(bytes, 4 * (int64_t)sizeof(uint64_t), &bytes) || most >= UINT32_MAX) {
        rondo__cuda_refuse(kernel, "2^31 boxes");
        return;
    }
    s.found = rondo__cuda_find_count(kernel);
    s.limit = most / s.lines;
    s.kept = rondo__cuda_reserve(kernel, most, sizeof(uint32_t));
    s.kept_counts = rondo__cuda_reserve(kernel, s.lines, sizeof(uint32_t));
    rondo__define_option(&defines, "-fmad=false");  // as the reference rounds
    const int64_t strip = choose_strip(&s);
    if (strip > 0) {
        add_spread_classes(kernel, &s, strip, &defines);
    } else {
        add_classes(kernel, &s, &defines);
    }
    rondo__cuda_add_scan(kernel, &plain, s.kept_counts, s.lines, s.found);
    rondo__step *step = rondo__cuda_add_launch(kernel, rondo__cu_suppress, &defines,
                                               "suppress_write", s.lines, RONDO__CUDA_BLOCK);
    rondo__step_int(step, s.lines);
    rondo__step_int(step, s.classes);
    rondo__step_address(step, s.kept);
    rondo__step_address(step, s.kept_counts);
    rondo__step_address(step, s.found);
    rondo__step_output(step, 0);
    rondo__step_int(step, s.limit);
}
