// How often a learned step misses a special case, beside what its draws foretell.
//
//   build/bench/learn_odds [SEEDS]                                                    host, 2000
//
// The step writes another number where n lies in an interval of its domain, 0 to 99999, that begins
// anywhere; nothing but a recording with such an n shows it. For each seed the step is learned with
// the fewest draws, and with 66, 200 and 688 of them; the share of seeds is printed for which it
// was learned without the case, beside (1 - share)^draws. Then with the fewest, and K compared runs
// with evenly drawn values behind it. At last n == 1 within -100 to 100, which has to be 0
// throughout.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>

#include "bench.h"

enum { SEEDS = 2000, RUNS_MAX = 688, END = 100000 };

typedef struct special {
    int64_t begin;
    int64_t end;
} special;

typedef struct work {
    uint32_t *out;
    int64_t n;
    uint64_t value;
} work;

static void run_kernel(void *arguments) {
    const work *w = arguments;
    *w->out = (uint32_t)w->value;
}

static rondo_status issue(rondo_stream *stream, const rondo_value *values, void *user_data) {
    const special *s = user_data;
    const int64_t n = values[1].integer;
    const work w = {values[0].pointer, n, n >= s->begin && n < s->end ? 2 : 1};
    return rondo_stream_call_host(stream, "write", run_kernel, &w, sizeof w);
}

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

typedef struct bench {
    rondo_device *device;
    rondo_stream *stream;
    uint32_t *memory;
    uint64_t seed_count;
} bench;

// How it is learned, and how many runs follow.
typedef struct effort {
    uint64_t draws;  // 1: the fewest
    uint64_t runs;
} effort;

typedef struct outcome {
    double missed;    // share of seeds
    double foretold;  // (1 - share)^draws
    double draws;
} outcome;

static rondo_learned_report get_report(const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    must(rondo_learned_get_report(learned, &report));
    return report;
}

// The draws that there were; *out_missed: the step was learned, and no run has shown the case.
static uint64_t try_seed(const bench *b, special *s, int64_t least, int64_t most, uint64_t seed,
                         const effort *e, bool *out_missed) {
    const rondo_argument arguments[] = {
        {.struct_size = sizeof(rondo_argument), .name = "out", .extent = 64},
        {.struct_size = sizeof(rondo_argument),
         .name = "n",
         .kind = RONDO_ARGUMENT_INT32,
         .least.integer = least,
         .most.integer = most}};
    const rondo_learned_options options = {.struct_size = sizeof options,
                                           .fallback = RONDO_LEARN_EAGER,
                                           .seed = seed,
                                           .learn_ns = e->draws > 1 ? UINT64_MAX : 1,
                                           .draws_wanted = e->runs > 0 ? UINT64_MAX : e->draws};
    rondo_learned *learned = NULL;
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    must(rondo_learned_create(b->device, &options, arguments, 2, issue, s, &learned));
    // The first run is recorded, too: it shows nothing.
    rondo_value values[] = {{.pointer = b->memory}, {.integer = s->begin > 0 ? 0 : most}};
    must(rondo_learned_learn(learned, b->stream, values, 2));
    for (uint64_t i = 0; i < e->runs && get_report(learned).state == RONDO_LEARNED_PROVED; ++i) {
        values[1].integer = least + (int64_t)(draw(&state) % (uint64_t)(most - least + 1));
        must(rondo_learned_run(learned, b->stream, values, 2));
    }
    must(rondo_stream_synchronize(b->stream));
    const rondo_learned_report report = get_report(learned);
    *out_missed = report.state == RONDO_LEARNED_PROVED;
    rondo_learned_destroy(learned);
    return report.draw_count;
}

// Those that see the case stop early: so the draws are those of a step without one.
static outcome measure(const bench *b, double share, const effort *e) {
    uint64_t missed_count = 0;
    bool missed = false;
    special none = {.begin = END, .end = END};
    outcome o = {.draws = (double)try_seed(b, &none, 0, END - 1, 1, e, &missed)};
    for (uint64_t seed = 1; seed <= b->seed_count; ++seed) {
        uint64_t state = seed * UINT64_C(0xd1b54a32d192ed03) + 7;
        const int64_t width = (int64_t)lround(share * END);
        special s = {.begin = (int64_t)(draw(&state) % (uint64_t)(END - width - 2)) + 1};
        s.end = s.begin + width;
        (void)try_seed(b, &s, 0, END - 1, seed, e, &missed);
        missed_count += missed;
    }
    o.missed = (double)missed_count / (double)b->seed_count;
    o.foretold = pow(1.0 - share, o.draws);
    return o;
}

static void print_outcome(double share, const effort *e, const outcome *o) {
    printf("| %.1f %% | %s | %llu | %.0f | %.2f %% | %.2f %% |\n", share * 100.0,
           e->draws > 1 ? "that many" : "the fewest", (unsigned long long)e->runs, o->draws,
           o->missed * 100.0, o->foretold * 100.0);
}

static uint64_t count_missed_one(const bench *b) {
    const effort fewest = {.draws = 1};
    uint64_t count = 0;
    for (uint64_t seed = 1; seed <= b->seed_count; ++seed) {
        special s = {.begin = 1, .end = 2};
        bool missed = false;
        (void)try_seed(b, &s, -100, 100, seed, &fewest, &missed);
        count += missed;
    }
    return count;
}

int main(int argc, char **argv) {
    static const double shares[] = {0.001, 0.01, 0.05, 0.10, 0.20};
    static const effort efforts[] = {{1, 0},  {66, 0},  {200, 0},     {688, 0},
                                     {1, 50}, {1, 200}, {1, RUNS_MAX}};
    bench b = {.seed_count = argc > 1 ? strtoull(argv[1], NULL, 10) : SEEDS};
    must(rondo_device_open("host", &b.device));
    must(rondo_stream_create(b.device, NULL, &b.stream));
    must(rondo_memory_allocate(b.device, RONDO_MEMORY_DEVICE, 256, (void **)&b.memory));
    rondo_log_set_level(RONDO_LOG_ERROR);
    printf("| case | proof | compared runs | draws | missed | (1 - share)^draws |\n");
    printf("|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; ++i) {
        for (size_t k = 0; k < sizeof efforts / sizeof *efforts; ++k) {
            const outcome o = measure(&b, shares[i], &efforts[k]);
            print_outcome(shares[i], &efforts[k], &o);
        }
    }
    const uint64_t missed = count_missed_one(&b);
    printf("n == 1 within -100 to 100: missed %llu of %llu\n", (unsigned long long)missed,
           (unsigned long long)b.seed_count);
    rondo_memory_free(b.device, b.memory);
    rondo_stream_destroy(b.stream);
    rondo_device_release(b.device);
    return missed > 0;
}
