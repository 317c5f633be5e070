// The solver of learned steps over images that the test makes up: one word of a kernel's arguments,
// as a function of the arguments; which formula is found, or that none is.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "learn/solve.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { P, N, M, S, F, D, B, T, K, COUNT };

static const rondo_argument described[COUNT] = {
    [P] = {.struct_size = sizeof(rondo_argument), .name = "p", .extent = 4096},
    [N] = {.name = "n", .kind = RONDO_ARGUMENT_INT32, .most.integer = 1000000},
    [M] = {.name = "m",
           .kind = RONDO_ARGUMENT_UINT32,
           .least.unsigned_integer = 16,
           .most.unsigned_integer = 4096,
           .multiple_of = 16},
    [S] = {.name = "s", .kind = RONDO_ARGUMENT_INT16},
    [F] = {.name = "f", .kind = RONDO_ARGUMENT_FLOAT},
    [D] = {.name = "d", .kind = RONDO_ARGUMENT_DOUBLE},
    [B] = {.name = "b", .kind = RONDO_ARGUMENT_BOOL},
    [T] = {.name = "t", .kind = RONDO_ARGUMENT_STRUCT, .bytes = 16},
    [K] = {.name = "k", .kind = RONDO_ARGUMENT_INT64},
};

static rondo__arguments g_arguments;
static rondo__draws g_draws;

// ---- words ------------------------------------------------------------------------------------

typedef uint64_t (*word_function)(const rondo__values *v);
#define V(name) (v->bits[name])
#define WORD(name, expression)                            \
    static uint64_t word_##name(const rondo__values *v) { \
        return (uint64_t)(expression);                    \
    }

static uint64_t convert_to_float(uint64_t bits) {
    double number;
    float single;
    uint64_t word = 0;
    memcpy(&number, &bits, sizeof number);
    single = (float)number;
    memcpy(&word, &single, sizeof single);
    return word;
}

static uint64_t read_struct(const rondo__values *v, size_t offset, size_t bytes) {
    uint64_t word = 0;
    memcpy(&word, v->bytes + g_arguments.list[T].struct_offset + offset, bytes);
    return word;
}

WORD(pointer, V(P))
WORD(interior, V(P) + 264)
WORD(before, V(P) - 8)
WORD(row, V(P) + V(N) * 96 + 32)
WORD(low_half, (uint32_t)V(P))
WORD(no_high_half, V(P) & 0xffffffff)
WORD(distance, V(P) - UINT64_C(0x7f0000001000))
WORD(value, V(N))
WORD(signed_value, V(S))
WORD(own_width, (uint16_t)V(S))
WORD(narrow, (uint8_t)V(K))
WORD(narrow_signed, (int64_t)(int16_t)V(K))
WORD(line, V(N) * 12 + 7)
WORD(negative_line, 0 - V(S) * 3 - 1)
WORD(stride, V(N) * (UINT64_C(9) << 30))
WORD(halves, V(N) | (V(N) * 2) << 32)
WORD(beside_constant, (uint32_t)(V(S) * 2 - 5) | UINT64_C(77) << 32)
WORD(square_below_zero, (uint32_t)(V(S) * V(S) - 8))
WORD(blocks, (V(N) + 255) / 256)
WORD(blocks_exact, V(M) / 16)
WORD(blocks_prime, (V(N) + 996) / 997)
WORD(area, V(N) * V(M) * 4)
WORD(area_blocks, (V(N) * V(M) + 1023) / 1024)
WORD(single, V(F))
WORD(number, V(D))
WORD(converted, convert_to_float(V(D)))
WORD(truth, V(B))
WORD(truth_line, V(B) != 0 ? 9 : 5)
WORD(part, read_struct(v, 8, 4))
WORD(whole, read_struct(v, 8, 8))
WORD(hash, V(N) * UINT64_C(0x9e3779b97f4a7c15) >> 20)
WORD(floor, V(N) / 7)
WORD(masked, V(N) & 7)
WORD(least, V(N) < 5000 ? V(N) : 5000)
WORD(magic, (UINT64_C(1) << 40) / (V(N) + 1))
WORD(sum, V(N) + V(M))
WORD(power, UINT64_C(1) << V(B) * 3)

typedef struct row {
    const char *name;
    word_function compute;
    uint32_t width;
    const char *formula;  // NULL: refused; "": two words
} row;

#define ROW(name, width, formula) \
    { #name, word_##name, width, formula }
static const row rows[] = {
    ROW(pointer, 8, "p"),
    ROW(interior, 8, "p + 264"),
    ROW(before, 8, "p - 8"),
    ROW(row, 8, "p + n * 96 + 32"),
    ROW(low_half, 4, NULL),
    ROW(no_high_half, 8, NULL),
    ROW(distance, 8, "p - 139637976731648"),
    ROW(value, 4, "n"),
    ROW(value, 8, "n"),
    ROW(value, 2, "(uint16)n"),
    ROW(signed_value, 8, "s"),
    ROW(own_width, 8, "(uint16)s"),
    ROW(narrow, 4, "(uint8)k"),
    ROW(narrow, 1, "(uint8)k"),
    ROW(narrow_signed, 8, "(int16)k"),
    ROW(line, 4, "n * 12 + 7"),
    ROW(line, 1, "n * 12 + 7"),
    ROW(negative_line, 8, "s * -3 - 1"),
    ROW(stride, 8, "n * 9663676416"),
    ROW(halves, 8, ""),
    ROW(beside_constant, 8, ""),
    ROW(square_below_zero, 8, ""),
    ROW(blocks, 4, "ceil(n / 256)"),
    ROW(blocks_exact, 4, "ceil(m / 16)"),
    ROW(blocks_prime, 8, "ceil(n / 997)"),
    ROW(area, 8, "n * m * 4"),
    ROW(area_blocks, 4, "ceil(n * m / 1024)"),
    ROW(single, 4, "f"),
    ROW(number, 8, "d"),
    ROW(converted, 4, "(float)d"),
    ROW(truth, 1, "b"),
    ROW(truth_line, 4, "b * 4 + 5"),
    ROW(part, 4, "bytes of t from 8 on"),
    ROW(whole, 8, "bytes of t from 8 on"),
    ROW(hash, 8, NULL),
    ROW(floor, 4, NULL),
    ROW(masked, 4, NULL),
    ROW(least, 4, NULL),
    ROW(magic, 8, NULL),
    ROW(sum, 8, NULL),
    ROW(power, 1, "b * 7 + 1"),
};

// ---- recordings -------------------------------------------------------------------------------

typedef struct trials {
    rondo__recording recordings[RONDO__RECORDINGS_MAX];
    size_t count;
} trials;

static void draw_values(rondo__values *values, rondo__draw_kind kind) {
    for (size_t i = 0; i < COUNT; ++i) {
        const rondo__argument *argument = &g_arguments.list[i];
        if (i == P) {
            values->bits[i] = (rondo__draw(&g_draws) >> 17) & ~UINT64_C(255);
        } else {
            rondo__argument_draw(argument, &g_draws, kind, &values->bits[i],
                                 values->bytes + argument->struct_offset);
        }
    }
}

// A kernel with one word of the row between two that are constant.
static void make_recording(rondo__recording *recording, const row *r) {
    recording->nodes = rondo__calloc(1, sizeof *recording->nodes);
    assert_non_null(recording->nodes);
    recording->count = 1;
    recording->nodes[0].image = (rondo__node_image){.info.kind = RONDO__NODE_KERNEL,
                                                    .info.grid = {3, 1, 1},
                                                    .is_enabled = true,
                                                    .argument_bytes = 24};
    rondo__node_image *image = &recording->nodes[0].image;
    image->arguments = rondo__malloc_aligned(image->argument_bytes, 16);
    assert_non_null(image->arguments);
    memset(image->arguments, 0x11, image->argument_bytes);
    memset(image->arguments + 8, 0, 8);
    const uint64_t word = r->compute(&recording->values);
    memcpy(image->arguments + 8, &word, r->width);
}

static rondo__recording *add_recording(trials *t, const row *r, rondo__draw_kind kind) {
    assert_true(t->count < RONDO__RECORDINGS_MAX);
    rondo__recording *recording = &t->recordings[t->count++];
    *recording = (rondo__recording){0};
    OK(rondo__values_init(&g_arguments, &recording->values));
    draw_values(&recording->values, kind);
    make_recording(recording, r);
    return recording;
}

static void add_wanted(trials *t, const row *r, const rondo__values *wanted) {
    rondo__recording *recording = add_recording(t, r, RONDO__DRAW_ANY);
    const uint64_t address = recording->values.bits[P];
    rondo__values_copy(&g_arguments, &recording->values, wanted);
    recording->values.bits[P] = address;
    const uint64_t word = r->compute(&recording->values);
    memcpy(recording->nodes[0].image.arguments + 8, &word, r->width);
}

static rondo__verdict solve(trials *t, const row *r, rondo__solution *solution,
                            rondo__finding *finding) {
    rondo__verdict verdict = RONDO__WANTS_TRIAL;
    rondo__values wanted;
    OK(rondo__values_init(&g_arguments, &wanted));
    for (int i = 0; i < 6; ++i) {
        (void)add_recording(t, r,
                            i == 0   ? RONDO__DRAW_LEAST
                            : i == 1 ? RONDO__DRAW_MOST
                                     : RONDO__DRAW_ANY);
    }
    while (verdict == RONDO__WANTS_TRIAL) {
        rondo__solution_deinit(solution);
        draw_values(&wanted, RONDO__DRAW_ANY);
        OK(rondo__solve(&g_arguments, t->recordings, t->count, &g_draws, solution, &wanted,
                        &verdict, finding));
        if (verdict == RONDO__WANTS_TRIAL) {
            add_wanted(t, r, &wanted);
        }
    }
    rondo__values_deinit(&wanted);
    return verdict;
}

// How many of a thousand fresh recordings were foretold.
static int count_right(trials *t, const row *r, const rondo__solution *solution) {
    int right = 0;
    for (int i = 0; i < 1000; ++i) {
        rondo__finding finding;
        bool is_right = false;
        rondo__recording *fresh = add_recording(t, r, RONDO__DRAW_ANY);
        OK(rondo__solution_check(solution, &g_arguments, &t->recordings[0], fresh, NULL, &is_right,
                                 &finding));
        right += is_right;
        rondo__recording_deinit(fresh);
        --t->count;
    }
    return right;
}

static void free_trials(trials *t) {
    for (size_t i = 0; i < t->count; ++i) {
        rondo__recording_deinit(&t->recordings[i]);
    }
}

// ---- cases ------------------------------------------------------------------------------------

static int set_up(void **state) {
    (void)state;
    g_draws.state = 5;
    rondo_argument arguments[COUNT];
    memcpy(arguments, described, sizeof described);
    for (size_t i = 0; i < COUNT; ++i) {
        arguments[i].struct_size = sizeof arguments[i];
    }
    OK(rondo__arguments_init(arguments, COUNT, &g_arguments));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rondo__arguments_deinit(&g_arguments);
    return 0;
}

TEST(words_are_explained_or_refused) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
        static trials t;
        t.count = 0;
        rondo__solution solution = {0};
        rondo__finding finding;
        char formula[128] = "";
        const rondo__verdict verdict = solve(&t, &rows[i], &solution, &finding);
        if (solution.count == 1) {
            rondo__formula_format(&solution.slots[0].formula, &g_arguments, formula,
                                  sizeof formula);
            // Of an argument as it is no formula is evaluated.
            assert_int_equal(rondo__formula_is_plain(&solution.slots[0].formula, &g_arguments),
                             strlen(formula) == 1);
        }
        const bool is_solved = verdict == RONDO__SOLVED;
        const int right = is_solved ? count_right(&t, &rows[i], &solution) : 0;
        const bool is_expected =
            rows[i].formula == NULL
                ? !is_solved || right < 1000
                : is_solved && right == 1000 &&
                      (rows[i].formula[0] == '\0' || strcmp(formula, rows[i].formula) == 0);
        if (!is_expected) {
            print_error("%s, %u bytes: %s \"%s\", %d of 1000 right, %s\n", rows[i].name,
                        (unsigned)rows[i].width, is_solved ? "solved" : "refused", formula, right,
                        finding.message);
        }
        assert_true(is_expected);
        if (rows[i].formula == NULL) {
            assert_false(is_solved);
        }
        rondo__solution_deinit(&solution);
        free_trials(&t);
    }
}

// Memory from a pool lies elsewhere in each recording. What leads there is no dependence; what
// leads to a place in it that an argument chooses is one, and an address cut to 32 bits is refused.
TEST(blocks_are_not_dependences) {
    enum { PLAIN, INDEXED, CUT, HOW_COUNT };
    for (int how = PLAIN; how < HOW_COUNT; ++how) {
        static trials t;
        static struct rondo__capture_block blocks[RONDO__RECORDINGS_MAX];
        const row plain = {"block", word_value, 0, NULL};
        rondo__solution solution = {0};
        rondo__finding finding;
        rondo__verdict verdict;
        rondo__values wanted;
        t.count = 0;
        for (int i = 0; i < 6; ++i) {
            rondo__recording *recording = add_recording(&t, &plain, RONDO__DRAW_ANY);
            blocks[i] = (struct rondo__capture_block){
                .begin = (rondo__draw(&g_draws) >> 17) & ~UINT64_C(511), .bytes = 65536};
            recording->blocks.list = &blocks[i];
            recording->blocks.count = 1;
            uint64_t word = blocks[i].begin + 48;
            word += how == INDEXED ? 16 * (recording->values.bits[M] / 16) : 0;
            word = how == CUT ? (uint32_t)word : word;
            memcpy(recording->nodes[0].image.arguments + 8, &word, sizeof word);
        }
        OK(rondo__values_init(&g_arguments, &wanted));
        OK(rondo__solve(&g_arguments, t.recordings, t.count, &g_draws, &solution, &wanted, &verdict,
                        &finding));
        assert_int_equal(verdict, how != PLAIN ? RONDO__REFUSED : RONDO__SOLVED);
        if (how == CUT) {
            assert_non_null(strstr(finding.message, "from a pool that was cut to 32 bits"));
        }
        assert_int_equal(solution.count, 0);
        rondo__solution_deinit(&solution);
        rondo__values_deinit(&wanted);
        for (size_t i = 0; i < t.count; ++i) {
            t.recordings[i].blocks = (rondo__capture_blocks){0};
        }
        free_trials(&t);
    }
}

// Nodes of which a word depends on an argument, and cannot be patched.
TEST(nodes_that_cannot_be_patched_are_refused) {
    static const rondo_refusal refusals[] = {RONDO_REFUSAL_FIXED, RONDO_REFUSAL_INNER,
                                             RONDO_REFUSAL_OPAQUE};
    const row line = ROW(line, 4, "");
    for (int which = 0; which < 3; ++which) {
        static trials t;
        rondo__solution solution = {0};
        rondo__finding finding;
        rondo__verdict verdict;
        rondo__values wanted;
        t.count = 0;
        for (int i = 0; i < 6; ++i) {
            rondo__recorded_node *node = add_recording(&t, &line, RONDO__DRAW_ANY)->nodes;
            node->image.fixed = which == 0 ? "a copy of several rows" : NULL;
            node->is_inner = which == 1;
            node->image.is_opaque = which == 2;
        }
        OK(rondo__values_init(&g_arguments, &wanted));
        OK(rondo__solve(&g_arguments, t.recordings, t.count, &g_draws, &solution, &wanted, &verdict,
                        &finding));
        assert_int_equal(verdict, RONDO__REFUSED);
        assert_int_equal(finding.refusal, refusals[which]);
        rondo__solution_deinit(&solution);
        rondo__values_deinit(&wanted);
        free_trials(&t);
    }
}

TEST_MAIN_WITH(set_up, tear_down)
