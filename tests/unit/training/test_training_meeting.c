// How ranks meet: options that differ, files of earlier jobs, words while they wait and an end of
// waiting; each allocation of two ranks that train failed once.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
// cmocka wants those above first
#include <cmocka.h>

#include "base/memory.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/ranks_world.h"
#include "support/short_forms.h"

enum { WIDE = 4096 };  // the fewest elements of which ranks share the updates

// One of several ranks, each in a thread.
typedef struct rank {
    int32_t number, size;
    const char *meeting;
    const char *common;
    uint64_t wait_ms, seed;
    double rate;
    rondo_dtype dtype;
    bool is_shared;         // each updates its part of WIDE elements
    size_t run_count;       // after the meeting; 0: none
    atomic_int *end;        // not 0: waiting is to end; NULL: never
    atomic_int told_count;  // words while it waited
    rondo_status status;
    char message[sizeof(((rondo_error *)NULL)->message)];
} rank;

static bool note_wait(void *user_data, const char *what, double seconds) {
    rank *r = user_data;
    if (strstr(what, "wait") != NULL && seconds >= 0.0) {
        atomic_fetch_add(&r->told_count, 1);
    }
    return r->end == NULL || atomic_load(r->end) == 0;
}

// loss = sum(w x), averaged over ranks.
static rondo_status make_step(const rank *r, rondo_program **out_program) {
    const rondo_shape shape = {1, {r->is_shared ? WIDE : 4}};
    static const float start[WIDE] = {1.0f, 2.0f, 3.0f, 4.0f};
    const rondo_tensor w = {
        .dtype = RONDO_DTYPE_F32, .shape = shape, .data = (void *)(uintptr_t)start};
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .learning_rate = r->rate > 0.0 ? r->rate : 0.1,
                                            .momentum = 0.9,
                                            .average_ranks = true,
                                            .shard_updates = r->is_shared};
    rondo_builder *b;
    rondo_status status = rondo_builder_create(NULL, &b);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, shape.extent[0]));
    status = status != RONDO_STATUS_OK
                 ? status
                 : rondo_builder_add_parameter(b, "w", &w, RONDO_PARAMETER_COPIED);
    status = status != RONDO_STATUS_OK
                 ? status
                 : rondo_builder_add_node(b, "Mul", (const char *[]){"w", "x"}, 2,
                                          (const char *[]){"p"}, 1, NULL);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_add_mean(b, "p", "loss");
    status = status != RONDO_STATUS_OK ? status : rondo_builder_add_output(b, "loss", NULL);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_minimize(b, "loss", &options);
    status = status != RONDO_STATUS_OK ? status : rondo_builder_finish(b, out_program);
    rondo_builder_destroy(b);
    return status;
}

static rondo_status train(rank *r, rondo_device *device, rondo_communicator *communicator) {
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .communicator = communicator,
                                            .seed = r->seed,
                                            .dtype = r->dtype};
    static const float x[WIDE] = {1.0f, 1.0f, 1.0f, 1.0f};
    const rondo_binding feed =
        BIND("x", RONDO_DTYPE_F32, (void *)(uintptr_t)x, r->is_shared ? WIDE : 4);
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    rondo_status status = make_step(r, &program);
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_create(program, device, &options, &executor);
    }
    for (size_t i = 0; i < r->run_count && status == RONDO_STATUS_OK; ++i) {
        status = rondo_executor_run(executor, &feed, 1, NULL, 0);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_executor_gather_variables(executor);
    }
    (void)snprintf(r->message, sizeof r->message, "%s", rondo_error_get_last()->message);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
    return status;
}

static rondo_status live(rank *r) {
    const rondo_communicator_options options = {.struct_size = sizeof options,
                                                .rank = r->number,
                                                .size = r->size,
                                                .meeting = r->meeting,
                                                .transport = RONDO_TRANSPORT_SOCKETS,
                                                .wait_ms = r->wait_ms > 0 ? r->wait_ms : 60000,
                                                .common = r->common,
                                                .waiting = note_wait,
                                                .waiting_data = r};
    rondo_device *device;
    rondo_communicator *communicator = NULL;
    rondo_status status = rondo_device_open("host", &device);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_communicator_create(device, &options, &communicator);
    if (status != RONDO_STATUS_OK) {
        (void)snprintf(r->message, sizeof r->message, "%s", rondo_error_get_last()->message);
    } else if (r->run_count > 0) {
        status = train(r, device, communicator);
    }
    rondo_communicator_destroy(communicator);
    rondo_device_release(device);
    return status;
}

static void *run_rank(void *argument) {
    rank *r = argument;
    r->status = live(r);
    if (r->status != RONDO_STATUS_OK && r->end != NULL) {
        atomic_store(r->end, 1);
    }
    return NULL;
}

static void run_ranks(rank *ranks, int32_t size) {
    pthread_t threads[4];
    char meeting[200];
    ranks_world_name_meeting(meeting, sizeof meeting);
    for (int32_t i = 0; i < size; ++i) {
        ranks[i].number = i;
        ranks[i].size = size;
        ranks[i].meeting = ranks[i].meeting != NULL ? ranks[i].meeting : meeting;
        assert_int_equal(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (int32_t i = 0; i < size; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_not_equal(access(meeting, F_OK), 0);
}

static void expect_rank(const rank *r, rondo_status status, const char *words) {
    if (r->status != status || strstr(r->message, words) == NULL) {
        fail_msg("rank %d: \"%s\" is not in %s: %s", (int)r->number, words,
                 rondo_status_get_name(r->status), r->message);
    }
}

// ---- what differs -------------------------------------------------------------------------------

// All ranks hear of it, not only those that differ.
TEST(what_differs_is_named) {
    static const struct {
        const char *common[3];
        const char *words;
    } cases[] = {
        {{"--seed 0\n--batch 8\n", "--seed 0\n--batch 8\n", "--seed 0\n--batch 9\n"},
         "rank 2 has --batch 9, rank 0 has --batch 8"},
        {{"--seed 0\n", "--seed 1\n", "--seed 0\n"}, "rank 1 has --seed 1, rank 0 has --seed 0"},
        {{"a", "a", NULL}, "rank 2 has nothing more, rank 0 has a"},
        {{"a\nb", "a\nb", "a"}, "rank 2 has nothing more, rank 0 has b"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        rank ranks[3] = {{.common = cases[c].common[0]},
                         {.common = cases[c].common[1]},
                         {.common = cases[c].common[2]}};
        run_ranks(ranks, 3);
        for (size_t i = 0; i < 3; ++i) {
            expect_rank(&ranks[i], RONDO_STATUS_INVALID, cases[c].words);
        }
    }
    rank same[2] = {{.common = "--seed 0\n"}, {.common = "--seed 0\n"}};
    run_ranks(same, 2);
    assert_true(same[0].status == RONDO_STATUS_OK && same[1].status == RONDO_STATUS_OK);
}

// What a step was made with, and what its executor computes with, before the first step.
TEST(steps_that_differ_are_named) {
    static const struct {
        rank one;
        const char *words[2];
    } cases[] = {
        {{.rate = 0.2}, {"rank 0 has learning rate 0.1", "rank 1 has learning rate 0.2"}},
        {{.seed = 7}, {"rank 0 has seed 0", "rank 1 has seed 7"}},
        {{.dtype = RONDO_DTYPE_F16}, {"rank 0 has dtype f32", "rank 1 has dtype f16"}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
        rank ranks[2] = {{.run_count = 2}, cases[c].one};
        ranks[1].run_count = 2;
        run_ranks(ranks, 2);
        for (size_t i = 0; i < 2; ++i) {
            expect_rank(&ranks[i], RONDO_STATUS_MISMATCH, cases[c].words[0]);
            expect_rank(&ranks[i], RONDO_STATUS_MISMATCH, cases[c].words[1]);
        }
    }
}

// ---- waiting ------------------------------------------------------------------------------------

// A port that takes connections, and says nothing.
static int listen_silently(uint16_t *out_port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
    *out_port = ntohs(address.sin_port);
    return fd;
}

typedef struct late {
    rank first;
    rank *other;
} late;

// Rank 0 comes when the other has waited for a while.
static void *come_late(void *argument) {
    late *l = argument;
    while (atomic_load(&l->other->told_count) < 2) {
        (void)usleep(1000);
    }
    return run_rank(&l->first);
}

// A file of an earlier job names a port where somebody else listens now.
TEST(silent_listeners_are_left) {
    char meeting[200];
    uint16_t port;
    pthread_t threads[2];
    const int fd = listen_silently(&port);
    ranks_world_name_meeting(meeting, sizeof meeting);
    FILE *file = fopen(meeting, "w");
    assert_non_null(file);
    assert_true(fprintf(file, "rondo-ranks 1 127.0.0.1 %u 00112233445566778899aabbccddeeff",
                        (unsigned)port) > 0);
    assert_int_equal(fclose(file), 0);
    rank other = {.number = 1, .size = 2, .meeting = meeting};
    late l = {.first = {.number = 0, .size = 2, .meeting = meeting}, .other = &other};
    assert_int_equal(pthread_create(&threads[0], NULL, run_rank, &other), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, come_late, &l), 0);
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    assert_int_equal(other.status, RONDO_STATUS_OK);
    assert_int_equal(l.first.status, RONDO_STATUS_OK);
    (void)close(fd);
}

// Who waits is asked; an end of it leaves no file.
// Names of places are taken whole, or refused.
TEST(places_are_not_cut) {
    static char folder[5000];
    static char address[5000];
    static const struct {
        const char *variable;
        size_t bytes;
        const char *text;
    } cases[] = {
        {"TMPDIR", 4090, "TMPDIR has 4090 bytes"},
        {"RONDO_MEETING", 4096, "where the ranks are to meet has 4096 bytes"},
        {"MASTER_ADDR", 299, "neither HOST:PORT nor a path"},
        {"MASTER_ADDR", 400, "neither HOST:PORT nor a path"},
    };
    const char *own = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%s", own != NULL ? own : "");
    assert_int_equal(setenv("MASTER_PORT", "1234", 1), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        rondo_device *device;
        rondo_communicator *communicator;
        const rondo_communicator_options options = {
            .struct_size = sizeof options, .size = 2, .wait_ms = 50};
        memset(address, 'a', cases[i].bytes);
        address[cases[i].bytes] = '\0';
        address[0] = cases[i].variable[0] == 'M' ? 'a' : '/';
        assert_int_equal(setenv(cases[i].variable, address, 1), 0);
        OK(rondo_device_open("host", &device));
        assert_int_not_equal(rondo_communicator_create(device, &options, &communicator),
                             RONDO_STATUS_OK);
        if (strstr(rondo_error_get_last()->message, cases[i].text) == NULL) {
            fail_msg("case %zu: %s", i, rondo_error_get_last()->message);
        }
        rondo_device_release(device);
        assert_int_equal(unsetenv(cases[i].variable), 0);
    }
    assert_int_equal(unsetenv("MASTER_PORT"), 0);

    // One of more than 200 bytes is taken: rank 0 waits there.
    const int used = snprintf(address, sizeof address, "/tmp/rondo_meeting_%ld", (long)getpid());
    assert_int_equal(mkdir(address, 0700), 0);
    memset(address + used, '/', 1);
    memset(address + used + 1, 'b', 230);
    address[used + 231] = '\0';
    assert_int_equal(mkdir(address, 0700), 0);
    assert_int_equal(setenv("TMPDIR", address, 1), 0);
    rank first = {.size = 2, .wait_ms = 50};
    (void)!live(&first);
    assert_non_null(strstr(first.message, "rank 1 of 2 did not come in time"));
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(rmdir(address), 0);
    address[used] = '\0';
    assert_int_equal(rmdir(address), 0);
    if (own != NULL) {
        assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    }
}

TEST(waiting_is_told_and_ends) {
    for (int32_t number = 0; number < 2; ++number) {
        char meeting[200];
        atomic_int end = 1;
        rank alone = {.number = number, .size = 2, .end = &end};
        ranks_world_name_meeting(meeting, sizeof meeting);
        alone.meeting = meeting;
        (void)run_rank(&alone);
        assert_int_equal(alone.status, RONDO_STATUS_CANCELLED);
        assert_int_equal(atomic_load(&alone.told_count), 1);
        assert_non_null(strstr(
            alone.message, number == 0 ? "rank 0 of 2 waits for rank 1" : "rank 1 of 2 waits at"));
        assert_int_not_equal(access(meeting, F_OK), 0);
    }
}

// ---- allocations --------------------------------------------------------------------------------

typedef struct fault {
    atomic_llong left;  // allocations until the one that fails
    atomic_int came;
} fault;

static bool fail_once(void *user_data) {
    fault *f = user_data;
    const bool fails = atomic_fetch_sub(&f->left, 1) == 0;
    if (fails) {
        atomic_store(&f->came, 1);
    }
    return fails;
}

// Two ranks meet, train and leave, and each allocation fails once: that rank says so, the other
// hears of it or has come to its end, and nothing is lost. One in STRIDE of them, from another each
// time that a number is given.
static int64_t stride = 7;
static int64_t first_fault;

static void fail_each(const rank *like) {
    fault f = {.came = 1};
    rank warm[2] = {*like, *like};
    run_ranks(warm, 2);  // what is kept for the process
    int64_t failures = 0;
    for (int64_t n = first_fault; atomic_load(&f.came) != 0; n += stride) {
        atomic_int end = 0;
        rank ranks[2] = {*like, *like};
        ranks[0].end = &end;
        ranks[1].end = &end;
        const int64_t before = rondo__memory_get_balance();
        atomic_store(&f.left, n);
        atomic_store(&f.came, 0);
        rondo__memory_set_fault(fail_once, &f);
        run_ranks(ranks, 2);
        rondo__memory_set_fault(NULL, NULL);
        if (rondo__memory_get_balance() != before) {
            fail_msg("allocation %lld: %lld are left", (long long)n,
                     (long long)(rondo__memory_get_balance() - before));
        }
        int bad = 0;
        for (size_t i = 0; i < 2; ++i) {
            const rondo_status s = ranks[i].status;
            bad += s != RONDO_STATUS_OK;
            if (s != RONDO_STATUS_OK && s != RONDO_STATUS_NO_MEMORY &&
                s != RONDO_STATUS_NO_DEVICE_MEMORY && s != RONDO_STATUS_UNAVAILABLE &&
                s != RONDO_STATUS_CANCELLED) {
                fail_msg("allocation %lld: %s: %s", (long long)n, rondo_status_get_name(s),
                         ranks[i].message);
            }
        }
        failures += bad > 0;
    }
    assert_true(failures > 0);
}

TEST(allocations_may_fail) {
    const rank like = {.run_count = 3};
    fail_each(&like);
}

TEST(allocations_of_ranks_that_share_may_fail) {
    const rank like = {.run_count = 2, .is_shared = true, .dtype = RONDO_DTYPE_F16};
    fail_each(&like);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "all") == 0) {
        stride = 1;
    }
    return test_run("ranks that meet", g_listed, NULL, NULL, NULL, NULL);
}
