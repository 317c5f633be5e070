// suite_sweep.c — fail the nth over a whole suite.
//
//   suite_sweep [--every N [--offset N]] [--alike N] [--every-code] [--device NAME] [--case TEXT]
//               [--verbose]
//   suite_sweep --alone KIND N CODE --device NAME --case TEXT    one point, in this process
//
// Each case of the conformance suite, and of tests/inside, runs on the fake driver and on the host,
// again and again, each time with one allocation or driver call failing. A point is a process:
//
//   fork ── open the device ── arm the failure ── run the case ── give everything back ── look
//                                                  |                |
//                                                  stops at its     objects of the case, which the
//                                                  first assertion  calls in suite_track.h listed
//
// A case may pass all the same (the failure was in something optional, or was recovered from) or
// stop; either is right. What is wrong at any point:
//
//   crash   the process died, or cmocka caught a signal
//   hang    it did not finish within its time
//   leak    an object of the fake driver or an allocation of the library is left after everything
//           was destroyed
//   illegal the fake driver was asked for something undefined
//   lost    a call failed without a record of its own, or the case stopped though no call of its
//           own thread said that anything was wrong (what other threads are told is theirs to keep)
//
// Every call and every allocation of a case is a point, with one of four codes in turn;
// --every-code takes each with all four. --every N takes each Nth point of the whole suite,
// beginning at --offset, or at the number of the day, so that N days see all of them; the offset is
// printed. Calls that come from one place by one way (the same stack of return addresses), round
// after round of a loop, are points the first --alike times, and the last. Of cases with threads,
// where the nth is another each time, 200 of either kind are points. Cases that repeat themselves
// do so less often here (suite_rounds). The number of points is printed. Why a process each: a case
// that stops leaves the suite's own state anywhere, and a crash should cost one point and not the
// sweep.
// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create
#endif
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "conformance/conformance.h"
#include "support/fake/fake_cuda.h"
#include "support/sweep.h"

#define SUITE_TRACK_PLAIN
#include "suite_track.h"

enum {
    THREAD_POINTS = 200,                 // of either kind, of a case with threads
    POINT_SECONDS_MAX = 60,              // load may make it as long as that
    LEFT_MICROSECONDS_MAX = 100 * 1000,  // after a thread of the case has asserted
    SAID_BYTES_MAX = 1 << 16,
    STACK_MAX = 48,         // return addresses that tell points apart
    WAYS_MAX = 256 * 1024,  // points of a kind that are looked at so
};

typedef enum kind { KIND_NONE, KIND_DRIVER, KIND_HEAP, KIND_COUNT } kind;

// By which way each point came, a hash of its stack.
typedef struct ways {
    size_t count;
    uint64_t hash[WAYS_MAX];
} ways;

// What a process tells its parent, in shared memory.
typedef struct outcome {
    bool is_finished;
    bool has_failed;   // the planned failure came
    bool has_stopped;  // the case did not pass
    bool was_said;     // some call of the case's thread failed after that, or unexpectedly
    bool has_threads;  // the case made some
    // A thread of the case asserted: what it had open is left, and others may wait for it.
    bool has_left_thread;
    // The driver frees the graph of a body whose capture broke, and would free it again with the
    // graph around; then Rondo gives those graphs up, and says so in the log.
    bool has_lost_body;
    bool has_given_way;  // a gate did, so that the case could not show what it wanted
    char lost[256];      // a failure without a record of its own; empty when none
    char failed_call[64];
    size_t driver_calls;
    size_t allocations;
    size_t objects_left;
    int64_t allocations_left;
    char violations[256];
} outcome;

typedef struct choice {
    size_t every;   // each so many-th point; 1: all
    size_t offset;  // of the first; less than `every`
    size_t alike;   // points of one way; 0: all
    bool every_code;
    const char *filter;  // part of a case's name; NULL: all
} choice;

typedef struct point {
    const char *device;
    const suite_entry *entry;
    suite_mode mode;
    kind kind;
    size_t n;
    rondo__cu_result code;
} point;

static outcome *g_outcome;  // shared
static ways *g_ways;        // shared: KIND_COUNT of them, of the case's run in which nothing fails
static int g_said;          // file with what the process printed
static bool g_is_verbose;
static size_t g_problem_count;
static bool g_is_alone;
static point g_alone;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

// ---- in the process of a point ----------------------------------------------------------------

static atomic_bool heap_is_armed;
static _Atomic(int64_t) heap_countdown;  // allocations until the one that fails; negative: none
static atomic_size_t heap_count;
static atomic_bool heap_has_failed;

static bool is_counting;  // ways, in this process

static void note_way(kind what) {
    void *stack[STACK_MAX];
    int depth = backtrace(stack, STACK_MAX);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < depth; ++i) {
        hash = (hash ^ (uint64_t)(uintptr_t)stack[i]) * UINT64_C(0x100000001b3);
    }
    ways *all = &g_ways[what];
    if (all->count < WAYS_MAX) {
        all->hash[all->count] = hash;
    }
    ++all->count;
}

static void note_call(void) {
    if (atomic_load(&heap_is_armed)) {
        note_way(KIND_DRIVER);
    }
}

static bool fail_allocation(void *user_data) {
    (void)user_data;
    if (!atomic_load(&heap_is_armed)) {
        return false;
    }
    if (is_counting) {
        note_way(KIND_HEAP);
    }
    atomic_fetch_add(&heap_count, 1);
    if (atomic_fetch_sub(&heap_countdown, 1) != 0) {
        return false;
    }
    atomic_store(&heap_has_failed, true);
    return true;
}

static bool has_come(void) {
    return atomic_load(&heap_has_failed) || fake_cuda_has_failed();
}

static pthread_t case_thread;
static uint64_t last_sequence;  // of case_thread's records while nothing had failed yet

// Every status that a case asserts passes here: an unexpected failure must have written a record
// since the planned one came. A thread of the case that asserts ends here, as cmocka would end the
// process.
static void look_at_status(rondo_status status, rondo_status expected, const char *call) {
    const rondo_error *error = rondo_error_get_last();
    if (!pthread_equal(pthread_self(), case_thread)) {
        if (status != expected) {
            g_outcome->has_left_thread = true;
            ualarm(LEFT_MICROSECONDS_MAX, 0);
            pthread_exit(NULL);
        }
        return;
    }
    if (!has_come()) {
        last_sequence = error->sequence;
        return;
    }
    g_outcome->was_said = g_outcome->was_said || status != RONDO_STATUS_OK;
    // A status that was kept in a variable may be older than the latest record; driver_...() are a
    // program's own calls of the driver.
    bool is_call = strchr(call, '(') != NULL && strncmp(call, "driver_", strlen("driver_")) != 0;
    if (is_call && status != expected && status != RONDO_STATUS_OK &&
        (error->status != status || error->sequence <= last_sequence ||
         error->message[0] == '\0')) {
        snprintf(g_outcome->lost, sizeof g_outcome->lost,
                 "%.120s gave %s, the record says %s: %.60s", call, rondo_status_get_name(status),
                 rondo_status_get_name(error->status), error->message);
    }
}

// A case that stopped left its frames behind; threads and streams may still write into them. So
// what follows keeps away from them.
__attribute__((noinline)) static void unwind_far_away(void) {
    volatile char gap[256 * 1024];
    gap[0] = 0;
    gap[sizeof gap - 1] = gap[0];
    suite_gate_open_all();
    suite_destroy_remembered();
    suite_track_unwind();
}

static void arm(const point *p) {
    if (p->kind == KIND_DRIVER) {
        fake_cuda_fail_nth((long)p->n, p->code);
    }
    atomic_store(&heap_countdown, p->kind == KIND_HEAP ? (int64_t)p->n : -1);
    atomic_store(&heap_is_armed, true);
}

static void disarm(const point *p, size_t calls_before) {
    atomic_store(&heap_is_armed, false);
    bool is_fake = strcmp(p->device, "fake") == 0;
    g_outcome->allocations = atomic_load(&heap_count);
    g_outcome->driver_calls = is_fake ? fake_cuda_count_calls(NULL) - calls_before : 0;
    g_outcome->has_failed = atomic_load(&heap_has_failed);
    if (p->kind == KIND_DRIVER) {
        g_outcome->has_failed = fake_cuda_has_failed();
        snprintf(g_outcome->failed_call, sizeof g_outcome->failed_call, "%s",
                 fake_cuda_get_failed_call());
        if (!g_outcome->has_failed) {
            fake_cuda_fail_nth(-1, RONDO__CU_SUCCESS);
        }
    }
}

static void run_process(const point *p) {
    static suite_context context;
    static suite_case run;
    static struct CMUnitTest test;
    if (!g_is_alone) {
        dup2(g_said, STDOUT_FILENO);
        dup2(g_said, STDERR_FILENO);
    }
    alarm(POINT_SECONDS_MAX);
    rondo_log_set_sink(sweep_ignore_line, NULL);
    rondo__memory_set_fault(fail_allocation, NULL);
    if (suite_open(p->device, &context) != RONDO_STATUS_OK) {
        _exit(1);
    }
    bool is_fake = context.is_fake;
    run = (suite_case){.context = &context, .mode = p->mode};
    test = (struct CMUnitTest){
        .name = p->entry->name, .test_func = p->entry->function, .initial_state = &run};
    case_thread = pthread_self();
    last_sequence = rondo_error_get_last()->sequence;
    suite_status_hook = look_at_status;
    suite_is_swept = true;
    suite_gate_patience_s = 1;
    size_t calls_before = is_fake ? fake_cuda_count_calls(NULL) : 0;
    is_counting = p->kind == KIND_NONE;
    if (is_counting) {
        void *stack[2];
        (void)backtrace(stack, 2);  // its first call allocates
        fake_cuda_set_watch(note_call);
    }
    arm(p);
    g_outcome->has_stopped = _cmocka_run_group_tests("point", &test, 1, NULL, NULL) != 0;
    disarm(p, calls_before);
    g_outcome->has_threads = suite_track_has_made_threads();
    g_outcome->has_given_way = suite_gate_gave_way;
    g_outcome->was_said = g_outcome->was_said || (p->kind == KIND_DRIVER &&
                                                  rondo_error_get_last()->sequence > last_sequence);
    unwind_far_away();  // the suite's own stream and device, too
    g_outcome->allocations_left = rondo__memory_get_balance();
    if (is_fake) {
        g_outcome->objects_left = fake_cuda_count_objects();
        snprintf(g_outcome->violations, sizeof g_outcome->violations, "%s",
                 fake_cuda_get_violations());
    }
    g_outcome->has_lost_body = sweep_take_lost_body();
    g_outcome->is_finished = true;
    fflush(NULL);
    _exit(0);
}

// ---- in the parent ----------------------------------------------------------------------------

// What the process printed, ended by a zero.
static char *read_said(void) {
    static char said[SAID_BYTES_MAX];
    ssize_t count = pread(g_said, said, sizeof said - 1, 0);
    said[count > 0 ? count : 0] = '\0';
    return said;
}

static void complain(const point *p, const char *what, const char *detail) {
    static const char *const modes[] = {"eager", "captured", "replayed"};
    static const char *const kinds[] = {"nothing", "driver call", "allocation"};
    ++g_problem_count;
    printf("%s: %s%s%s on %s, %s %zu failing", what, p->entry->name, p->entry->has_modes ? "." : "",
           p->entry->has_modes ? modes[p->mode] : "", p->device, kinds[p->kind], p->n);
    if (p->kind == KIND_DRIVER) {
        printf(" (%s, code %d)", g_outcome->failed_call, (int)p->code);
    }
    printf(": %s\n", detail);
    if (g_is_verbose) {
        printf("%s\n", read_said());
    }
    fflush(stdout);
}

static bool has_part(const point *p, const char *const *parts, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        if (strstr(p->entry->name, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

// Cases that play a program with driver calls of its own, or record through the backend's table
// without a graph: what they have open is theirs to close, and only their end is looked at.
static bool is_outside(const point *p) {
    static const char *const parts[] = {"test_inside_bodies__are_listed",
                                        "test_inside_bodies__executables_take_updates",
                                        "__foreign_",
                                        "_through_the_raw_handle",
                                        "_legacy_stream",
                                        "__a_second_capture_is_refused",
                                        "__bare_captures_are_not_followed",
                                        "torch_29_"};
    return has_part(p, parts, sizeof parts / sizeof *parts);
}

// Cases that want to see memory reused, or taken in large regions: where the driver cannot be asked
// whether streams have joined, or a region is not to be had, the pool goes on with other memory,
// which is right and no failure.
static bool wants_reuse(const point *p) {
    static const char *const parts[] = {"torch_15_", "torch_18_", "torch_38_",
                                        "torch_39_", "torch_44_", "memory_bodies__"};
    return has_part(p, parts, sizeof parts / sizeof *parts);
}

// What only adds to a dump, and is left out where the driver does not tell.
static bool was_optional(const point *p) {
    return p->kind == KIND_DRIVER && strcmp(g_outcome->failed_call, "cuPointerGetAttribute") == 0;
}

// Cases that keep statuses aside and look at them later.
static bool keeps_statuses(const point *p) {
    static const char prefix[] = "test_conformance_step__";
    return p->kind == KIND_HEAP &&
           (strncmp(p->entry->name, prefix, sizeof prefix - 1) == 0 ||
            strstr(p->entry->name, "a_broken_body_breaks_the_capture") != NULL);
}

static void judge(const point *p, int status) {
    char text[320];
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
        if (!g_outcome->has_left_thread) {
            complain(p, "hang", "did not finish in time");
        }
        return;
    }
    if (!g_outcome->is_finished) {
        snprintf(text, sizeof text, "the process ended with status 0x%x", (unsigned)status);
        complain(p, "crash", text);
        return;
    }
    if (strstr(read_said(), "failed with exception") != NULL) {
        complain(p, "crash", "cmocka caught a signal");
    }
    if (is_outside(p) || g_outcome->has_left_thread) {
        return;
    }
    if ((g_outcome->objects_left != 0 && !g_outcome->has_lost_body) ||
        g_outcome->allocations_left != 0) {
        snprintf(text, sizeof text, "%zu objects of the driver and %lld allocations are left",
                 g_outcome->objects_left, (long long)g_outcome->allocations_left);
        complain(p, "leak", text);
    }
    if (g_outcome->violations[0] != '\0') {
        complain(p, "illegal", g_outcome->violations);
    }
    if (g_outcome->lost[0] != '\0') {
        complain(p, "lost", g_outcome->lost);
    }
    if (g_outcome->has_stopped && g_outcome->has_failed && !g_outcome->was_said &&
        !g_outcome->has_threads && !g_outcome->has_given_way && !wants_reuse(p) &&
        !was_optional(p) && !keeps_statuses(p)) {
        complain(p, "lost", "the case found something wrong, but no call had said so");
    }
}

// Runs one point; the outcome is in *g_outcome.
static void run_point(const point *p) {
    memset(g_outcome, 0, sizeof *g_outcome);
    if (p->kind == KIND_NONE) {
        g_ways[KIND_DRIVER].count = 0;
        g_ways[KIND_HEAP].count = 0;
    }
    if (ftruncate(g_said, 0) != 0 || lseek(g_said, 0, SEEK_SET) != 0) {
        perror("suite_sweep");
        exit(1);
    }
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("suite_sweep: fork");
        exit(1);
    }
    if (child == 0) {
        run_process(p);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    judge(p, status);
}

typedef struct totals {
    size_t cases;
    size_t driver_points;
    size_t heap_points;
    size_t stopped;  // points at which the case stopped
    size_t alike;    // points that were left out, as they came by a way that had been taken
} totals;

static void take_point(const point *p, totals *sum) {
    run_point(p);
    if (!g_outcome->has_failed) {
        return;  // threads: this time there were fewer
    }
    sum->driver_points += p->kind == KIND_DRIVER;
    sum->heap_points += p->kind == KIND_HEAP;
    sum->stopped += g_outcome->has_stopped;
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t left = g_ways[KIND_NONE].hash[*(const uint32_t *)a];
    const uint64_t right = g_ways[KIND_NONE].hash[*(const uint32_t *)b];
    const uint32_t first = *(const uint32_t *)a;
    const uint32_t second = *(const uint32_t *)b;
    return left != right ? (left < right ? -1 : 1) : first < second ? -1 : first > second;
}

// Marks in `is_left_out` the points between the first `alike` of a way and its last.
static void leave_out_alike(kind what, size_t count, size_t alike, bool *is_left_out) {
    static uint32_t order[WAYS_MAX];
    memset(is_left_out, 0, count * sizeof *is_left_out);
    if (alike == 0 || count != g_ways[what].count) {
        return;  // threads: the counts differ from run to run
    }
    memcpy(g_ways[KIND_NONE].hash, g_ways[what].hash, count * sizeof(uint64_t));
    const uint64_t *hash = g_ways[KIND_NONE].hash;
    for (size_t i = 0; i < count; ++i) {
        order[i] = (uint32_t)i;
    }
    qsort(order, count, sizeof *order, compare_hashes);
    size_t before = 0;  // of the same way
    for (size_t i = 0; i < count; ++i) {
        before = i > 0 && hash[order[i]] == hash[order[i - 1]] ? before + 1 : 0;
        const bool is_last = i + 1 == count || hash[order[i]] != hash[order[i + 1]];
        is_left_out[order[i]] = before >= alike && !is_last;
    }
}

static void sweep_kind(point p, kind what, size_t count, size_t limit, const choice *wanted,
                       totals *sum) {
    static bool is_left_out[WAYS_MAX];
    static const rondo__cu_result codes[] = {RONDO__CU_ERROR_OUT_OF_MEMORY, RONDO__CU_ERROR_UNKNOWN,
                                             RONDO__CU_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                             RONDO__CU_ERROR_LAUNCH_FAILED};
    enum { CODE_COUNT = sizeof codes / sizeof *codes };
    static size_t turn;
    static size_t number;  // of the point, in the whole suite
    bool takes_all = limit >= count;
    size_t taken = takes_all ? count : limit;
    size_t code_count = what == KIND_DRIVER && wanted->every_code ? CODE_COUNT : 1;
    p.kind = what;
    const bool has_ways = takes_all && count <= WAYS_MAX;
    if (has_ways) {
        leave_out_alike(what, count, wanted->alike, is_left_out);
    }
    for (size_t i = 0; i < taken; ++i) {
        if ((has_ways && is_left_out[i]) || number++ % wanted->every != wanted->offset) {
            sum->alike += has_ways && is_left_out[i];
            continue;
        }
        p.n = takes_all ? i : (2 * i + 1) * count / (2 * taken);
        for (size_t c = 0; c < code_count; ++c) {
            p.code = codes[turn++ % CODE_COUNT];
            take_point(&p, sum);
        }
        // Otherwise a call that comes at every fourth place would always get the same one.
        turn += i % CODE_COUNT == 0;
    }
}

static void sweep_case(point p, const choice *wanted, totals *sum) {
    if (g_is_alone) {
        p.kind = g_alone.kind;
        p.n = g_alone.n;
        p.code = g_alone.code;
        run_process(&p);
    }
    uint64_t start = now_ns();
    size_t problems = g_problem_count;
    run_point(&p);
    if (g_outcome->has_stopped && g_problem_count == problems) {
        complain(&p, "fails", "the case does not pass with nothing failing");
    }
    if (g_problem_count != problems) {
        return;
    }
    ++sum->cases;
    size_t limit = g_outcome->has_threads ? THREAD_POINTS : SIZE_MAX;
    size_t calls = g_outcome->driver_calls;
    size_t allocations = g_outcome->allocations;
    sweep_kind(p, KIND_DRIVER, calls, limit, wanted, sum);
    sweep_kind(p, KIND_HEAP, allocations, limit, wanted, sum);
    if (g_is_verbose) {
        printf("%s on %s: %zu driver calls, %zu allocations, %.1f s\n", p.entry->name, p.device,
               calls, allocations, (double)(now_ns() - start) / 1e9);
        fflush(stdout);
    }
}

static void sweep_device(const char *device, const choice *wanted, totals *sum) {
    for (const suite_entry *entry = suite_entries; entry != NULL; entry = entry->next) {
        for (int mode = 0; mode < (entry->has_modes ? 3 : 1); ++mode) {
            if (wanted->filter == NULL || strstr(entry->name, wanted->filter) != NULL) {
                point p = {.device = device, .entry = entry, .mode = (suite_mode)mode};
                sweep_case(p, wanted, sum);
            }
        }
    }
}

// Reads the options into *out_wanted, *out_device and g_alone.
static bool read_options(int argc, char **argv, choice *out_wanted, const char **out_device) {
    size_t offset = (size_t)time(NULL) / (24 * 60 * 60);
    *out_wanted = (choice){.every = 1};
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
            out_wanted->every = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--offset") == 0 && i + 1 < argc) {
            offset = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--alike") == 0 && i + 1 < argc) {
            out_wanted->alike = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--every-code") == 0) {
            out_wanted->every_code = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            g_is_verbose = true;
        } else if (strcmp(argv[i], "--alone") == 0 && i + 3 < argc) {
            g_alone.kind = (kind)strtol(argv[++i], NULL, 10);
            g_alone.n = strtoul(argv[++i], NULL, 10);
            g_alone.code = (rondo__cu_result)strtol(argv[++i], NULL, 10);
            g_is_alone = true;
        } else if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
            *out_device = argv[++i];
        } else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) {
            out_wanted->filter = argv[++i];
        } else {
            return false;
        }
    }
    if (out_wanted->every > 0) {
        out_wanted->offset = offset % out_wanted->every;
    }
    return out_wanted->every > 0;
}

int main(int argc, char **argv) {
    static const char *const devices[] = {"fake", "host"};
    const char *device = NULL;
    choice wanted;
    if (!read_options(argc, argv, &wanted, &device)) {
        fprintf(stderr,
                "usage: suite_sweep [--every N [--offset N]] [--alike N] [--every-code] [--device "
                "fake|host] [--case TEXT] [--verbose]\n");
        return 2;
    }
    if (wanted.every > 1) {
        printf("suite_sweep: a sample, --every %zu --offset %zu\n", wanted.every, wanted.offset);
    }
    g_outcome =
        mmap(NULL, sizeof *g_outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_ways = mmap(NULL, KIND_COUNT * sizeof *g_ways, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_said = memfd_create("said", MFD_CLOEXEC);
    if (g_outcome == MAP_FAILED || g_ways == MAP_FAILED || g_said < 0) {
        perror("suite_sweep");
        return 1;
    }
    uint64_t start = now_ns();
    size_t points = 0;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; ++i) {
        if (device != NULL && strcmp(device, devices[i]) != 0) {
            continue;
        }
        totals sum = {0};
        sweep_device(devices[i], &wanted, &sum);
        printf(
            "%s: %zu cases, swept %zu points (%zu driver calls, %zu allocations); the case "
            "stopped at %zu of them; %zu that came by a way taken before were left out\n",
            devices[i], sum.cases, sum.driver_points + sum.heap_points, sum.driver_points,
            sum.heap_points, sum.stopped, sum.alike);
        points += sum.driver_points + sum.heap_points;
    }
    printf("suite_sweep: %zu points, %zu problems, %.1f s\n", points, g_problem_count,
           (double)(now_ns() - start) / 1e9);
    return g_problem_count != 0 || points == 0 ? 1 : 0;
}
