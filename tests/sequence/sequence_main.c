// rondo_sequences [OPTION]... — random sequences of calls against a model of what must hold.
//
//   --device NAME     host (default), fake (the CUDA backend without a GPU) or cuda:0
//   --calls N         calls to make in all (default 100000)
//   --seed N          first seed (default 1; 0: drawn, see support/drawn_seed.h, and printed)
//   --length N        calls of a round (default 120)
//   --threads N       so many threads at once, which share a pool and an arena
//   --round N         this round alone, told call by call
//   --keep N,N,...    with --round: these calls only, as a shrunk failure lists them
//
// Rounds run in a process of their own. When one fails, crashes or hangs, it is run again with
// fewer and fewer calls as long as it still fails, and what is left is printed.
//
// Exit status: 0 all went well, 1 a round failed, 2 misuse, 77 there is no such device.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/random/random_support.h"
#include "rondo/pool.h"
#include "sequence/sequence.h"
#include "support/drawn_seed.h"
#include "support/fake/fake_cuda.h"
#include "support/fake/fake_random.h"

enum { HANG_SECONDS = 60, THREAD_MAX = 16, LUCKY_TRIES = 60 };

typedef struct settings {
    const char *device;
    uint64_t calls;
    uint64_t seed;
    uint32_t length;
    int threads;
    long round;  // -1: all
    bool *keep;  // of one round; NULL: all
    bool is_tracing;
} settings;

// What the process of the rounds tells the one that waits.
typedef struct progress {
    _Atomic uint64_t round;
    _Atomic uint64_t made;
    _Atomic uint64_t skipped;
    _Atomic bool has_failed;
    atomic_uint failure_lock;
    uint64_t failed_round;
    char failure[2048];
} progress;

static progress *shared;

static void note_failure(uint64_t round, const char *text) {
    if (atomic_fetch_add(&shared->failure_lock, 1) == 0) {
        shared->failed_round = round;
        snprintf(shared->failure, sizeof shared->failure, "%s", text);
        atomic_store(&shared->has_failed, true);
    }
}

// ---- in the process of the rounds -------------------------------------------------------------

typedef struct worker {
    const settings *settings;
    suite_context *context;
    int number;
    uint64_t first;  // round
    rondo_pool *pool;
    rondo_arena *arena;
    pthread_t thread;
} worker;

static void run_one(worker *self, world *w, uint64_t round) {
    static _Thread_local any_call calls[ROUND_CALLS_MAX];
    const settings *s = self->settings;
    size_t count = make_round(s->seed, round, s->length, calls);
    w->is_tracing = s->is_tracing;
    world_begin(w, self->context, self->pool, self->arena);
    (void)run_round(w, calls, count, s->keep);
    uint64_t made = w->made;
    uint64_t skipped = w->skipped;
    if (!w->has_failed) {
        w->at = SIZE_MAX;
        world_end(w);
    }
    if (w->has_failed) {
        char text[2300];
        if (w->at == SIZE_MAX) {
            snprintf(text, sizeof text, "at the end: %s", w->failure);
        } else {
            snprintf(text, sizeof text, "call %zu (%s): %s", w->at,
                     call_kinds[calls[w->at].kind].name, w->failure);
        }
        note_failure(round, text);
    }
    atomic_fetch_add(&shared->made, made);
    atomic_fetch_add(&shared->skipped, skipped);
}

static void *run_rounds(void *data) {
    worker *self = data;
    const settings *s = self->settings;
    world *w = calloc(1, sizeof *w);
    tools made;
    if (w == NULL || tools_create(self->context->device, &made) != RONDO_STATUS_OK) {
        note_failure(self->first, rondo_error_get_last()->message);
        free(w);
        return NULL;
    }
    w->tools = &made;
    uint64_t step = (uint64_t)s->threads;
    for (uint64_t round = self->first + (uint64_t)self->number; !atomic_load(&shared->has_failed);
         round += step) {
        atomic_store(&shared->round, round);
        run_one(self, w, round);
        if (s->round >= 0 || atomic_load(&shared->made) >= s->calls) {
            break;
        }
    }
    if (!atomic_load(&shared->has_failed)) {
        tools_destroy(&made);
    }
    free(w);
    return NULL;
}

static void check_fake(const settings *s) {
    if (strcmp(s->device, "fake") == 0 && fake_cuda_get_violations()[0] != '\0') {
        note_failure(atomic_load(&shared->round), fake_cuda_get_violations());
    }
}

// Exit status of the process: 0, 1, 77.
static int work(const settings *s, uint64_t first) {
    suite_context context;
    if (suite_open(s->device, &context) != RONDO_STATUS_OK) {
        printf("skipped: %s: %s\n", s->device, rondo_error_get_last()->message);
        return suite_is_required(s->device) ? 1 : 77;
    }
    rondo_log_set_level(RONDO_LOG_ERROR);
    if (tools_register() != RONDO_STATUS_OK) {
        return 1;
    }
    if (context.is_fake) {
        fake_random_set_kernels();
    }
    worker workers[THREAD_MAX] = {{0}};
    rondo_pool *pool = NULL;
    rondo_arena *arena = NULL;
    bool is_shared = s->threads > 1;
    if (is_shared && (rondo_pool_create(context.device, NULL, &pool) != RONDO_STATUS_OK ||
                      rondo_arena_create(context.device, NULL, &arena) != RONDO_STATUS_OK)) {
        return 1;
    }
    for (int i = 0; i < s->threads; ++i) {
        workers[i] = (worker){.settings = s,
                              .context = &context,
                              .number = i,
                              .first = first,
                              .pool = pool,
                              .arena = arena};
        if (is_shared && pthread_create(&workers[i].thread, NULL, run_rounds, &workers[i]) != 0) {
            return 1;
        }
    }
    if (!is_shared) {
        (void)run_rounds(&workers[0]);
    }
    for (int i = 0; is_shared && i < s->threads; ++i) {
        pthread_join(workers[i].thread, NULL);
    }
    check_fake(s);
    if (atomic_load(&shared->has_failed)) {
        return 1;  // what is left of the failed round is nobody's fault
    }
    rondo_pool_release(pool);
    rondo_arena_release(arena);
    suite_close(&context);
    check_fake(s);
    return atomic_load(&shared->has_failed);
}

// ---- in the process that waits ----------------------------------------------------------------

static const char *describe_end(int status, char *text, size_t bytes) {
    if (WIFSIGNALED(status)) {
        snprintf(text, bytes, "the process ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    } else {
        snprintf(text, bytes, "the process ended with status %d", WEXITSTATUS(status));
    }
    return text;
}

static bool has_hung;

// Runs rounds in a child. 0, 1 or 77, as `work`; a crash or a hang is a failure of its round.
static int run_child(const settings *s, uint64_t first) {
    atomic_store(&shared->has_failed, false);
    atomic_store(&shared->failure_lock, 0);
    shared->failure[0] = '\0';
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        exit(work(s, first));
    }
    uint64_t last = UINT64_MAX;
    int idle = 0;
    int status = 0;
    has_hung = false;
    while (waitpid(child, &status, WNOHANG) == 0) {
        struct timespec pause = {.tv_nsec = s->round >= 0 ? 200000 : 20000000};
        nanosleep(&pause, NULL);
        uint64_t now = atomic_load(&shared->round) + atomic_load(&shared->made);
        idle = now == last ? idle + 1 : 0;
        last = now;
        if ((double)idle * (double)pause.tv_nsec * 1e-9 > HANG_SECONDS) {
            kill(child, SIGKILL);
            has_hung = true;
        }
    }
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77)) {
        return WEXITSTATUS(status);
    }
    char text[128];
    if (has_hung) {
        note_failure(atomic_load(&shared->round), "the round did not end");
    } else {
        note_failure(atomic_load(&shared->round), describe_end(status, text, sizeof text));
    }
    return 1;
}

// Some failures need luck: then the round is tried several times.
static bool still_fails(settings *s, uint64_t round, bool *keep, int tries) {
    bool fails = false;
    s->keep = keep;
    for (int i = 0; i < tries && !fails; ++i) {
        fails = run_child(s, round) == 1;
    }
    return fails;
}

// Leaves calls out, in runs of halving length, as long as the round still fails.
static void shrink(const settings *found, uint64_t round) {
    settings s = *found;
    bool keep[ROUND_CALLS_MAX];
    s.round = (long)round;
    s.is_tracing = false;
    for (uint32_t i = 0; i < s.length; ++i) {
        keep[i] = true;
    }
    char first[2048];
    snprintf(first, sizeof first, "%s", shared->failure);
    int tries = still_fails(&s, round, keep, 1) ? 1 : LUCKY_TRIES;
    if (tries > 1 && !still_fails(&s, round, keep, tries)) {
        printf("Run alone, round %llu does not fail in %d tries: it needs what came before it.\n",
               (unsigned long long)round, tries);
        return;
    }
    for (uint32_t run = s.length / 2; run > 0; run = run > 1 ? run / 2 : 0) {
        for (uint32_t at = 0; at < s.length; at += run) {
            bool former[ROUND_CALLS_MAX];
            bool changes = false;
            memcpy(former, keep, sizeof former);
            for (uint32_t i = at; i < at + run && i < s.length; ++i) {
                changes = changes || keep[i];
                keep[i] = false;
            }
            if (changes && !still_fails(&s, round, keep, tries)) {
                memcpy(keep, former, sizeof keep);
            }
        }
    }
    printf("The shortest part that fails (--seed %llu --length %u --round %llu --keep ",
           (unsigned long long)s.seed, (unsigned)s.length, (unsigned long long)round);
    const char *comma = "";
    for (uint32_t i = 0; i < s.length; ++i) {
        if (keep[i]) {
            printf("%s%u", comma, (unsigned)i);
            comma = ",";
        }
    }
    printf("):\n");
    s.is_tracing = true;
    s.keep = keep;
    (void)still_fails(&s, round, keep, 1);
    printf("  -> %s%s\n", first, tries > 1 ? " (sometimes)" : "");
}

// ---- options ----------------------------------------------------------------------------------

static int misuse(const char *what) {
    fprintf(stderr, "rondo_sequences: %s; the first lines of sequence_main.c list the options\n",
            what);
    return 2;
}

static bool *parse_keep(char *text) {
    bool *keep = calloc(ROUND_CALLS_MAX, sizeof *keep);
    for (char *part = strtok(text, ","); keep != NULL && part != NULL; part = strtok(NULL, ",")) {
        unsigned long at = strtoul(part, NULL, 10);
        keep[at < ROUND_CALLS_MAX ? at : 0] = true;
    }
    return keep;
}

int main(int argc, char **argv) {
    settings s = {
        .device = "host", .calls = 100000, .seed = 1, .length = 120, .threads = 1, .round = -1};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            return misuse("an option without a value");
        }
        char *value = argv[i + 1];
        if (strcmp(argv[i], "--device") == 0) {
            s.device = value;
        } else if (strcmp(argv[i], "--calls") == 0) {
            s.calls = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            s.seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--length") == 0) {
            s.length = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            s.threads = atoi(value);
        } else if (strcmp(argv[i], "--round") == 0) {
            s.round = atol(value);
            s.is_tracing = true;
        } else if (strcmp(argv[i], "--keep") == 0) {
            s.keep = parse_keep(value);
        } else {
            return misuse("an unknown option");
        }
    }
    if (s.length == 0 || s.length > ROUND_CALLS_MAX || s.threads < 1 || s.threads > THREAD_MAX) {
        return misuse("a length or a number of threads out of range");
    }
    s.seed = s.seed > 0 ? s.seed : draw_seed();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return misuse("no shared memory");
    }
    int result = run_child(&s, s.round >= 0 ? (uint64_t)s.round : 0);
    if (result == 77) {
        return 77;
    }
    printf("rondo_sequences: seed %llu on %s, %d thread%s: %llu calls made, %llu left out\n",
           (unsigned long long)s.seed, s.device, s.threads, s.threads == 1 ? "" : "s",
           (unsigned long long)atomic_load(&shared->made),
           (unsigned long long)atomic_load(&shared->skipped));
    if (result != 0) {
        uint64_t round = shared->failed_round;
        printf("round %llu failed: %s\n", (unsigned long long)round, shared->failure);
        if (s.round < 0 && s.threads == 1) {
            shrink(&s, round);
        }
    }
    return result;
}
