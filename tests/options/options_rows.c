// options/options_rows.c — rows of options that have all pairs of levels among them.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options/options.h"
#include "support/expect_ok.h"

enum { LEVELS_MAX = 16, TRIES = 60 };

static const struct {
    const char *name;
    uint8_t levels;
} kinds[OPTION_COUNT] = {
    [OPTION_MODEL] = {"model", MODELS},
    [OPTION_FAULTS] = {"faults", 2},
    [OPTION_STATES] = {"states", 2},
    [OPTION_GRAPHS] = {"graphs", 3},
    [OPTION_DTYPE] = {"dtype", 4},
    [OPTION_OP_BY_OP] = {"op_by_op", 2},
    [OPTION_REFERENCE] = {"reference", 2},
    [OPTION_PLANS] = {"plans", 3},
    [OPTION_PLAN_BYTES] = {"plan_bytes", 3},
    [OPTION_THREADS] = {"threads", 3},
    [OPTION_MEMORY] = {"memory", 4},
    [OPTION_LOOPS] = {"loops", 3},
    [OPTION_SELF_CHECK] = {"self_check", 4},
    [OPTION_STREAM] = {"stream", 2},
    [OPTION_TRAINING] = {"training", 2},
    [OPTION_BRANCHES] = {"branches", 3},
    [OPTION_PLACE] = {"place", 3},
    [OPTION_NO_FOLDING] = {"no_folding", 2},
    [OPTION_TUNING] = {"tuning", 3},
    [OPTION_WEIGHTS] = {"weights", 3},
    [OPTION_WORKERS] = {"workers", 3},
    [OPTION_PROGRESS] = {"progress", 2},
};

// ---- draws ------------------------------------------------------------------------------------

dice dice_make(uint64_t seed, uint64_t index) {
    dice d = {seed * UINT64_C(0x9e3779b97f4a7c15) + index * UINT64_C(0xbf58476d1ce4e5b9) + 1};
    (void)dice_draw(&d, 2);
    return d;
}

uint64_t dice_draw(dice *d, uint64_t below) {
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = d->state;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % below;
}

uint64_t dice_draw_size(dice *d, uint64_t low, uint64_t high) {
    uint64_t powers = 0;
    while (low << (powers + 1) <= high) {
        powers += 1;
    }
    const uint64_t from = low << dice_draw(d, powers + 1);
    return from + dice_draw(d, from);
}

// ---- pairs ------------------------------------------------------------------------------------

typedef struct pair_table {
    bool is_covered[OPTION_COUNT][LEVELS_MAX][OPTION_COUNT][LEVELS_MAX];
} pair_table;

static size_t count_new(const pair_table *table, const option_row *row) {
    size_t count = 0;
    for (size_t a = 0; a < OPTION_COUNT; ++a) {
        for (size_t b = a + 1; b < OPTION_COUNT; ++b) {
            count += table->is_covered[a][row->level[a]][b][row->level[b]] ? 0 : 1;
        }
    }
    return count;
}

static void cover(pair_table *table, const option_row *row) {
    for (size_t a = 0; a < OPTION_COUNT; ++a) {
        for (size_t b = a + 1; b < OPTION_COUNT; ++b) {
            table->is_covered[a][row->level[a]][b][row->level[b]] = true;
        }
    }
}

// Half of all levels are the first, the default: what options do is not hidden by one another.
static option_row draw_row(dice *d) {
    option_row row;
    for (size_t o = 0; o < OPTION_COUNT; ++o) {
        const bool is_plain = o != OPTION_MODEL && dice_draw(d, 2) == 0;
        row.level[o] = is_plain ? 0 : (uint8_t)dice_draw(d, kinds[o].levels);
    }
    return row;
}

size_t option_rows_draw(option_row *rows, size_t count, uint64_t seed, size_t *out_pairs) {
    dice d = dice_make(seed, UINT64_MAX);
    pair_table *table = calloc(1, sizeof *table);
    size_t missing = 0;
    assert_non_null(table);
    for (size_t i = 0; i < count; ++i) {
        rows[i] = draw_row(&d);
        size_t most = count_new(table, &rows[i]);
        for (int n = 0; n < TRIES; ++n) {
            const option_row other = draw_row(&d);
            const size_t number = count_new(table, &other);
            rows[i] = number > most ? other : rows[i];
            most = number > most ? number : most;
        }
        cover(table, &rows[i]);
    }
    *out_pairs = 0;
    for (size_t a = 0; a < OPTION_COUNT; ++a) {
        for (size_t b = a + 1; b < OPTION_COUNT; ++b) {
            *out_pairs += (size_t)kinds[a].levels * kinds[b].levels;
            for (size_t k = 0; k < kinds[a].levels; ++k) {
                for (size_t l = 0; l < kinds[b].levels; ++l) {
                    missing += table->is_covered[a][k][b][l] ? 0 : 1;
                }
            }
        }
    }
    free(table);
    return missing;
}

void option_row_print(const option_row *row) {
    for (size_t o = 0; o < OPTION_COUNT; ++o) {
        if (row->level[o] != 0 || o == OPTION_MODEL) {
            printf(" %s %d", kinds[o].name, (int)row->level[o]);
        }
    }
}

// ---- as an executor takes them ----------------------------------------------------------------

static void see_progress(void *user_data, const char *what, size_t done, size_t total) {
    (void)user_data;
    assert_true(what != NULL && done <= total);
}

void settings_make(settings *s, const option_row *row, rondo_device *device, dice *d) {
    static const rondo_graphs_mode graphs[] = {RONDO_GRAPHS_AUTO, RONDO_GRAPHS_ON,
                                               RONDO_GRAPHS_OFF};
    static const char *const places[] = {NULL, "*=cpu", "*=gpu"};
    const bool is_host = rondo_device_is_host(device);
    const uint8_t *level = row->level;
    memset(s, 0, sizeof *s);
    rondo_executor_options *o = &s->options;
    o->struct_size = sizeof *o;
    o->graphs = graphs[level[OPTION_GRAPHS]];
    o->dtype = level[OPTION_DTYPE] > 0 ? RONDO_DTYPE_F16 : RONDO_DTYPE_NONE;
    o->seed = 7;
    o->op_by_op = level[OPTION_OP_BY_OP] == 1;
    o->reference = is_host && level[OPTION_REFERENCE] == 1;
    o->plan_limit = level[OPTION_PLANS];
    o->plan_limit_bytes = level[OPTION_PLAN_BYTES] == 0 ? 0 : dice_draw_size(d, 1, 1 << 20);
    o->thread_count = level[OPTION_THREADS] == 0 ? 0 : level[OPTION_THREADS];
    static const uint64_t most[] = {0, 64 << 10, 4 << 20, 64 << 20};
    o->memory_limit_bytes =
        level[OPTION_MEMORY] == 0 ? 0 : dice_draw_size(d, 256, most[level[OPTION_MEMORY]]);
    o->loop_limit = level[OPTION_LOOPS] == 0 ? 0 : dice_draw_size(d, 1, 1 << 10);
    s->keep[0] = "*";
    s->use[0] = "*";
    o->keep_f32 = level[OPTION_DTYPE] == 2 ? s->keep : NULL;
    o->keep_f32_count = level[OPTION_DTYPE] == 2 ? 1 : 0;
    o->use_f16 = level[OPTION_DTYPE] == 3 ? s->use : NULL;
    o->use_f16_count = level[OPTION_DTYPE] == 3 ? 1 : 0;
    o->self_check_every = level[OPTION_SELF_CHECK] == 0 ? 0 : 1 + level[OPTION_SELF_CHECK] % 2;
    o->self_check_action = level[OPTION_SELF_CHECK] == 3 ? RONDO_SELF_CHECK_KEEP_EAGER
                                                         : RONDO_SELF_CHECK_FAIL;
    if (level[OPTION_STREAM] == 1) {
        OK(rondo_stream_create(device, NULL, &s->stream));
        o->stream = s->stream;
    }
    o->training = level[OPTION_TRAINING] == 1;
    o->branches = level[OPTION_BRANCHES];
    s->place[0] = is_host && level[OPTION_PLACE] == 2 ? "*=all" : places[level[OPTION_PLACE]];
    o->place = s->place[0] != NULL ? s->place : NULL;
    o->place_count = s->place[0] != NULL ? 1 : 0;
    o->no_folding = level[OPTION_NO_FOLDING] == 1;
    o->tuning = level[OPTION_TUNING] == 2 ? RONDO_TUNING_FAST : (rondo_tuning)level[OPTION_TUNING];
    o->weight_limit_bytes = level[OPTION_WEIGHTS] == 0 ? 0 : dice_draw_size(d, 64, 4 << 20);
    if (level[OPTION_WORKERS] > 0) {
        OK(rondo_workers_create(level[OPTION_WORKERS], &s->workers));
        o->workers = s->workers;
    }
    o->progress = level[OPTION_PROGRESS] == 1 ? see_progress : NULL;
}

void settings_free(settings *s) {
    rondo_workers_release(s->workers);
    rondo_stream_destroy(s->stream);
}
