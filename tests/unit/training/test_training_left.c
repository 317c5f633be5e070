// A rank is killed, or leaves, between two runs: the others' next run cannot begin, and they keep
// what they have, bit for bit, to be saved and to go on from.
//
// Ranks are processes, on the host. --processes 2: of GPUs, as the emulated ones need.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collective/communicator.h"
#include "rondo/models.h"
#include "support/expect_ok.h"
#include "support/ranks_world.h"
#include "support/short_forms.h"
#include "support/test.h"

extern char **environ;

// w is dealt out among two and three ranks; b is too small.
enum { ROWS = 4, WIDTH = 96, RUNS = 3, FILE_BYTES = 1 << 18 };
static const char *device_name = "host";

typedef enum ending { KILLED, LEAVES } ending;

typedef struct lesson {
    ending ending;
    bool is_shared;
    bool gathers;  // before a rank ends
    int32_t size;
} lesson;

static const lesson lessons[] = {
    {KILLED, false, false, 2}, {LEAVES, false, false, 2}, {KILLED, true, true, 2},
    {LEAVES, true, true, 2},   {KILLED, true, false, 2},  {LEAVES, true, false, 2},
    {KILLED, false, false, 3}, {LEAVES, true, true, 3},
};
enum { LESSONS = sizeof lessons / sizeof *lessons };

// loss = mean((x w + b)^2)
static rondo_status make_lesson(bool is_shared, rondo_program **out_program) {
    static float values[WIDTH * WIDTH];
    const rondo_minimize_options options = {.struct_size = sizeof options,
                                            .optimizer = RONDO_OPTIMIZER_ADAM,
                                            .learning_rate = 0.01,
                                            .average_ranks = true,
                                            .shard_updates = is_shared};
    const struct {
        const char *name, *op, *from;
        rondo_shape shape;
    } steps[] = {{"w", "MatMul", "x", {2, {WIDTH, WIDTH}}}, {"b", "Add", "w.out", {1, {WIDTH}}}};
    rondo_builder *b;
    for (int i = 0; i < WIDTH * WIDTH; ++i) {
        values[i] = (float)(i % 17) * 0.125f - 1.0f;
    }
    rondo_status status = rondo_builder_create(NULL, &b);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    status = rondo_builder_add_input(b, &PORT("x", RONDO_DTYPE_F32, ROWS, WIDTH));
    for (size_t i = 0; i < 2 && status == RONDO_STATUS_OK; ++i) {
        const rondo_tensor tensor = {
            .dtype = RONDO_DTYPE_F32, .shape = steps[i].shape, .data = values};
        const char *out = i == 0 ? "w.out" : "b.out";
        status = rondo_builder_add_parameter(b, steps[i].name, &tensor, RONDO_PARAMETER_COPIED);
        if (status == RONDO_STATUS_OK) {
            status = rondo_builder_add_node(
                b, steps[i].op, (const char *[]){steps[i].from, steps[i].name}, 2, &out, 1, NULL);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_node(b, "Mul", (const char *[]){"b.out", "b.out"}, 2,
                                        (const char *[]){"q"}, 1, NULL);
    }
    status = status == RONDO_STATUS_OK ? rondo_builder_add_mean(b, "q", "loss") : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_add_output(b, "loss", NULL) : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_minimize(b, "loss", &options) : status;
    status = status == RONDO_STATUS_OK ? rondo_builder_finish(b, out_program) : status;
    rondo_builder_destroy(b);
    return status;
}

static rondo_status run(const rank_world *w, rondo_executor *executor, int number) {
    float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; ++i) {
        x[i] = (float)((i * 7 + number * 5 + w->rank * 3) % 11) * 0.25f - 1.0f;
    }
    const rondo_binding feed = BIND("x", RONDO_DTYPE_F32, x, ROWS, WIDTH);
    return rondo_executor_run(executor, &feed, 1, NULL, 0);
}

// Looks again until `has_come` says so, or another rank must have failed.
static void wait_for(rank_world *w, bool (*has_come)(rank_world *w)) {
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int turns = 0; !has_come(w); ++turns) {
        RANK_TRUE(w, turns < 12000);
        (void)nanosleep(&pause, NULL);
    }
}

// Whether this rank has heard that the last one is gone.
static bool has_heard(rank_world *w) {
    rondo_communicator *c = w->communicator;
    (void)pthread_mutex_lock(&c->lock);
    const bool has = c->has_loss || c->records[w->size - 1].has_left;
    (void)pthread_mutex_unlock(&c->lock);
    return has;
}

// Rank 0 has started the others.
static void name_file(const rank_world *w, int32_t rank, const char *what, char out_path[100]) {
    const pid_t job = w->rank == 0 ? getpid() : getppid();
    (void)snprintf(out_path, 100, "/tmp/rondo_left_%ld_%d_%s", (long)job, (int)rank, what);
}

// Whether the runs of all others have ended: a kill before would end those, too.
static bool are_behind(rank_world *w) {
    bool are = true;
    for (int32_t r = 0; r < w->size - 1; ++r) {
        char path[100];
        name_file(w, r, "before", path);
        are = are && access(path, F_OK) == 0;
    }
    return are;
}

static size_t read_file(const char *path, char *out_bytes) {
    FILE *file = fopen(path, "rb");
    const size_t count = file != NULL ? fread(out_bytes, 1, FILE_BYTES, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}

static void expect_lost(rank_world *w, rondo_status status) {
    char text[40];
    (void)snprintf(text, sizeof text, "rank %d of %d has", (int)w->size - 1, (int)w->size);
    RANK_TRUE(w, status == RONDO_STATUS_UNAVAILABLE);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, text) != NULL);
}

// All that can be saved is what it was before the runs that did not begin.
static void expect_kept(rank_world *w, rondo_executor *executor, const char *before) {
    static char kept[2][FILE_BYTES];
    char after[100];
    name_file(w, w->rank, "after", after);
    RANK_OK(w, rondo_checkpoint_save(executor, after));
    const size_t count = read_file(before, kept[0]);
    RANK_TRUE(w, count > 4096 && count < FILE_BYTES && read_file(after, kept[1]) == count);
    RANK_TRUE(w, memcmp(kept[0], kept[1], count) == 0);
    (void)unlink(after);
}

// What is left in parts is named as such, and nothing else is said of it.
static void expect_parts(rank_world *w, rondo_executor *executor) {
    rondo_tensor now = {0};
    rondo_status status = rondo_executor_get_variable(executor, "w", &now);
    RANK_TRUE(w, status == RONDO_STATUS_STATE);
    RANK_TRUE(w, strstr(rondo_error_get_last()->message, "rondo_executor_gather_variables"));
    status = rondo_executor_gather_variables(executor);
    expect_lost(w, status);
    RANK_OK(w, rondo_executor_get_variable(executor, "b", &now));
    rondo_tensor_deinit(&now);
}

static void lose_last(rank_world *w, rondo_executor *executor, const lesson *l) {
    const bool is_whole = !l->is_shared || l->gathers;
    char before[100];
    name_file(w, w->rank, "before", before);
    for (int i = 0; i < RUNS; ++i) {
        RANK_OK(w, run(w, executor, i));
    }
    if (l->gathers) {
        RANK_OK(w, rondo_executor_gather_variables(executor));
    }
    if (w->rank == w->size - 1) {
        wait_for(w, are_behind);
        if (l->ending == KILLED && w->problem[0] == '\0') {
            (void)raise(SIGKILL);
        }
        return;
    }
    if (is_whole) {
        RANK_OK(w, rondo_checkpoint_save(executor, before));
    } else {
        FILE *file = fopen(before, "w");
        RANK_TRUE(w, file != NULL && fclose(file) == 0);
    }
    wait_for(w, has_heard);
    for (int i = 0; i < 2 && w->problem[0] == '\0'; ++i) {
        expect_lost(w, run(w, executor, RUNS));
    }
    if (w->problem[0] == '\0' && is_whole) {
        expect_kept(w, executor, before);
    } else if (w->problem[0] == '\0') {
        expect_parts(w, executor);
    }
    (void)unlink(before);
}

static void learn(rank_world *w) {
    const lesson *l = w->data;
    const rondo_executor_options options = {.struct_size = sizeof options,
                                            .communicator = w->communicator};
    rondo_program *program;
    rondo_executor *executor;
    RANK_OK(w, make_lesson(l->is_shared, &program));
    RANK_OK(w, rondo_executor_create(program, w->device, &options, &executor));
    lose_last(w, executor, l);
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static bool be_rank(int32_t rank, int32_t size, int index, const char *meeting) {
    lesson l = lessons[index];
    char device[24];
    (void)snprintf(device, sizeof device, strcmp(device_name, "cuda") == 0 ? "cuda:%d" : "host",
                   (int)rank);
    return ranks_world_run_one(rank, size, device, meeting, learn, &l);
}

static pid_t start_rank(int32_t rank, int32_t size, int index, char *meeting) {
    char words[5][24];
    char name[] = "test_training_left";
    char *argv[] = {name, words[0], words[1], words[2], words[3], words[4], meeting, NULL};
    pid_t child;
    (void)snprintf(words[0], sizeof words[0], "--rank");
    (void)snprintf(words[1], sizeof words[1], "%d", (int)rank);
    (void)snprintf(words[2], sizeof words[2], "%d", (int)size);
    (void)snprintf(words[3], sizeof words[3], "%d", index);
    (void)snprintf(words[4], sizeof words[4], "%s", device_name);
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    return child;
}

TEST(test_training_left__the_others_keep_what_they_have) {
    const int32_t most = strcmp(device_name, "host") == 0 ? 3 : 2;
    for (int i = 0; i < LESSONS; ++i) {
        const lesson *l = &lessons[i];
        char meeting[200];
        pid_t children[3];
        if (l->size > most) {
            continue;
        }
        ranks_world_name_meeting(meeting, sizeof meeting);
        for (int32_t r = 1; r < l->size; ++r) {
            children[r] = start_rank(r, l->size, i, meeting);
        }
        bool is_good = be_rank(0, l->size, i, meeting);
        for (int32_t r = 1; r < l->size; ++r) {
            int ended;
            assert_int_equal(waitpid(children[r], &ended, 0), children[r]);
            is_good = is_good && (r == l->size - 1 && l->ending == KILLED
                                      ? WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL
                                      : WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
        }
        if (!is_good) {
            fail_msg("lesson %d", i);
        }
    }
}

int main(int argc, char **argv) {
    if (argc == 7 && strcmp(argv[1], "--rank") == 0) {
        const int index = atoi(argv[4]);
        device_name = argv[5];
        return index >= 0 && index < LESSONS &&
                       be_rank(atoi(argv[2]), atoi(argv[3]), index, argv[6])
                   ? 0
                   : 1;
    }
    device_name = argc == 3 ? "cuda" : "host";
    return RUN_TESTS(NULL, NULL);
}
