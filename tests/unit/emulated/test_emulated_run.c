// The emulated GPU itself (tests/emulated): threads that meet, threads that cannot, and how kernel
// texts are rewritten. The kernels here are C functions, as a compiled text's are.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "emulated/emulated_run.h"
#include "emulated/emulated_text.h"
#include "support/test.h"

enum { THREADS = 96, BLOCKS = 4 };

static unsigned int results[BLOCKS][THREADS];

static bool run(emulated_thread thread, unsigned int cluster, const char **out_problem) {
    const emulated_kernel kernel = {.thread = thread, .cluster = cluster};
    const unsigned int shape[7] = {BLOCKS, 1, 1, THREADS, 1, 1, 1024};
    memset(results, 0, sizeof(results));
    return emulated_run(&kernel, shape, NULL, out_problem);
}

static unsigned int *get_shared(const emulated_machine *m) {
    return (unsigned int *)(void *)m->shared;
}

// Each thread reads what another one left, once with the barrier that this needs.
static void exchange(emulated_machine *m, bool has_barrier) {
    unsigned int *const shared = get_shared(m);
    for (unsigned int round = 0; round < 2; round++) {
        shared[m->thread.x] = m->thread.x + round * 1000;
        if (has_barrier || round == 0) {
            m->meet_block();
        }
        results[m->block.x][m->thread.x] = shared[THREADS - 1 - m->thread.x];
        m->meet_block();
    }
}
static void exchange_with_barrier(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    exchange(m, true);
}
static void exchange_without(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    exchange(m, false);
}

static size_t count_wrong(void) {
    size_t count = 0;
    for (unsigned int block = 0; block < BLOCKS; block++) {
        for (unsigned int i = 0; i < THREADS; i++) {
            count += results[block][i] != THREADS - 1 - i + 1000;
        }
    }
    return count;
}

TEST(test_emulated_run__a_barrier_is_met_by_all) {
    const char *problem;
    assert_true(run(exchange_with_barrier, 1, &problem));
    assert_int_equal(count_wrong(), 0);
    assert_true(run(exchange_without, 1, &problem));
    assert_int_not_equal(count_wrong(), 0);
}

// Threads go on forwards after one barrier and backwards after the next, so that none can rely on
// those before it.
static void note_order(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    static unsigned int turn;
    for (unsigned int phase = 0; phase < 2; phase++) {
        m->meet_block();
        results[phase][m->thread.x] = ++turn;
    }
}
TEST(test_emulated_run__the_order_of_threads_changes) {
    const char *problem;
    assert_true(run(note_order, 1, &problem));
    assert_true(results[0][0] > results[0][THREADS - 1]);
    assert_true(results[1][0] < results[1][THREADS - 1]);
}

// Lanes below 16 meet by themselves; others have ended or wait for the block.
static void meet_in_half(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    const unsigned int lane = m->thread.x % EMULATED_WARP;
    if (m->thread.x >= 64) {
        return;
    }
    if (lane < 16) {
        unsigned int lanes;
        const emulated_words own = {{m->thread.x + 1}};
        const emulated_words *all = m->meet_warp(0xffffu, &own, &lanes);
        results[m->block.x][m->thread.x] = (unsigned int)all[15 - lane].word[0] + (lanes << 16);
    }
    m->meet_block();
}
TEST(test_emulated_run__some_lanes_meet) {
    const char *problem;
    assert_true(run(meet_in_half, 1, &problem));
    assert_int_equal(results[3][0], 16 + 0xffff0000u);
    assert_int_equal(results[3][32 + 15], 33 + 0xffff0000u);
    assert_int_equal(results[3][16], 0);
}

static void add_up_cluster(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    get_shared(m)[m->thread.x] = m->block.x * 100;
    m->meet_cluster();
    for (unsigned int rank = 0; rank < 2; rank++) {
        const unsigned char *other = m->cluster_shared + (size_t)rank * EMULATED_BLOCK_SHARED;
        unsigned int value;
        memcpy(&value, other + 4 * (THREADS - 1 - m->thread.x), sizeof(value));
        results[m->block.x][m->thread.x] += value;
    }
    m->meet_cluster();
}
TEST(test_emulated_run__blocks_of_a_cluster_run_together) {
    const char *problem;
    assert_true(run(add_up_cluster, 2, &problem));
    assert_int_equal(results[0][0], 100);
    assert_int_equal(results[1][5], 100);
    assert_int_equal(results[2][5], 500);
}

static void wait_apart(emulated_machine *m, const unsigned char *arguments) {
    (void)arguments;
    unsigned int lanes;
    const emulated_words nothing = {{0}};
    if (m->thread.x % 2 == 0) {
        m->meet_block();
    } else {
        (void)m->meet_warp(~0u, &nothing, &lanes);
    }
}
TEST(test_emulated_run__waiting_for_ever_is_refused) {
    const char *problem = NULL;
    const emulated_kernel kernel = {.thread = wait_apart, .cluster = 1};
    const unsigned int too_large[7] = {1, 1, 1, 1025, 1, 1, 0};
    assert_false(run(wait_apart, 1, &problem));
    assert_non_null(strstr(problem, "barrier"));
    assert_false(emulated_run(&kernel, too_large, NULL, &problem));
    assert_non_null(strstr(problem, "cannot be launched"));
}

TEST(test_emulated_run__texts_are_rewritten) {
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(y.bits) : \"f\"(x));",
         "emulated_cvt_rn_f16_f32((y.bits), (x));"},
        {"asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");",
         "emulated_griddepcontrol_wait();"},
        {"asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(now));",
         "emulated_mov_u64_globaltimer((now));"},
        {"asm volatile(\"a.b {%0, %1}, \"\n  \"[%2];\" : \"=r\"(r[0]), \"=r\"(f(1))\n : \"n\"(S - "
         "2));",
         "emulated_a_b((r[0]), (f(1)), (S - 2));"},
        {"extern __shared__ __align__(16) float sums[];",
         "float *const sums = (float *)emulated->shared;"},
        {"// asm(\"x\");", "// asm(\"x\");"},
        {"extern \"C\" __global__ void\n#if N > 1\n__cluster_dims__(N, 1, 1)\n#endif\n"
         "__launch_bounds__(T(2)) work(int x) {}",
         "EMULATED_KERNEL(work, emulated_count_blocks(N, 1, 1))"},
        {"extern \"C\" __global__ void plain(int x) {}", "EMULATED_KERNEL(plain, 1)"},
    };
    const char *const define = "-DCOLUMNS=3";
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        emulated_buffer out = {0};
        emulated_translate(&out, rows[i].text, &define, 1);
        if (strstr(out.bytes, rows[i].expected) == NULL) {
            fail_msg("\"%s\" became \"%s\", which lacks \"%s\"", rows[i].text, out.bytes,
                     rows[i].expected);
        }
        // Behind the prelude, whose own names are safe from it.
        assert_true(strstr(out.bytes, "#define COLUMNS 3\n") > strstr(out.bytes, "#include"));
        free(out.bytes);
    }
}

TEST_MAIN()
