// doctor/inject/inject_record.c — see inject_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_record.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "doctor/stream/doctor_ring.h"

enum { TEXT_SLOTS = 1 << 14, TRIES_MAX = 1000 };

// A text that was told, by its hash; two with one hash share a number, which 64 bits make unlikely.
typedef struct known_text {
    uint64_t hash;
    uint32_t number;
} known_text;

enum { SAMPLE_MAX_NS = 100000, TICKS_MIN_NS = 50000000, SPINS_MAX = 1000, NAP_NS = 50000 };

// What a call in short writes, in one line of the processor's cache.
static struct {
    _Alignas(64) atomic_int lock;  // a leaf, held for some writes
    bool has_lost;
    rondo__doctor_ring *ring;
    _Atomic uint64_t written;  // where the next record begins
    uint64_t end;              // and where the last one has to end, as far as is known
} g_end;

static struct {
    known_text texts[TEXT_SLOTS];
    uint32_t text_count;
    atomic_uint fork_count;
} g_record;

// Calls that were told whole, by their hash; 0: none.
static uint64_t g_known[RONDO__DOCTOR_KNOWN_MAX];

rondo__inject_common_state rondo__inject_common;
_Thread_local rondo__inject_thread_state rondo__inject_thread;

static inline void relax(void) {
#ifdef __x86_64__
    _mm_pause();
#endif
}

// A thread that lost the processor while it held the lock gets it back soon.
static __attribute__((cold, noinline)) void wait_for_lock(void) {
    for (unsigned i = 0; atomic_exchange_explicit(&g_end.lock, 1, memory_order_acquire) != 0; i++) {
        if (i < SPINS_MAX) {
            relax();
        } else {
            (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
}

static inline void lock(void) {
    if (atomic_exchange_explicit(&g_end.lock, 1, memory_order_acquire) != 0) {
        wait_for_lock();
    }
}

// Costs no locked write, unlike a mutex.
static inline void unlock(void) {
    atomic_store_explicit(&g_end.lock, 0, memory_order_release);
}

// ---- the clock --------------------------------------------------------------------------------

uint64_t rondo__inject_ask_clock(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__
// When the recorder started; no time: the counter is of no use.
static struct { uint64_t first_ns, first_ticks; } g_ticks;

// Reads both clocks at one moment: takes the shortest of some tries, because a thread may lose the
// processor in between.
static void ask_both(uint64_t *out_ns, uint64_t *out_ticks) {
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        const uint64_t before = __rdtsc();
        const uint64_t now = rondo__inject_ask_clock();
        const uint64_t after = __rdtsc();
        if (after - before < shortest) {
            shortest = after - before;
            *out_ns = now;
            *out_ticks = before + (after - before) / 2;
        }
    }
}

// Processors whose counters differ have another clock, as the kernel finds out.
static bool is_clock_apart(void) {
    char name[16] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    const bool is_read = file != NULL && fgets(name, sizeof(name), file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    return is_read && strncmp(name, "tsc", 3) != 0 && strncmp(name, "kvm-clock", 9) != 0;
}

static void start_ticks(void) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    const bool is_steady =
        __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0 && !is_clock_apart();
    ask_both(&g_ticks.first_ns, &g_ticks.first_ticks);
    g_ticks.first_ns = is_steady ? g_ticks.first_ns : 0;
}

// The caller holds the lock. Once enough time has gone by to know how fast the counter runs.
static void learn_ticks(void) {
    rondo__inject_common_state *common = &rondo__inject_common;
    uint64_t ticks = 0;
    if (g_ticks.first_ns == 0 || atomic_load(&common->has_ticks) ||
        rondo__inject_ask_clock() - g_ticks.first_ns < TICKS_MIN_NS) {
        return;
    }
    ask_both(&common->base_ns, &ticks);
    const double since = (double)(common->base_ns - g_ticks.first_ns);
    common->ns_in_ticks = (uint64_t)(since / (double)(ticks - g_ticks.first_ticks) * 4294967296.0);
    common->base_ticks = ticks;
    atomic_store_explicit(&common->has_ticks, true, memory_order_release);
}
#else
static void start_ticks(void) {
}

static void learn_ticks(void) {
}
#endif

// ---- the ring ---------------------------------------------------------------------------------

static void read_program(char *out_program, size_t bytes) {
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, out_program, bytes - 1) : 0;
    for (ssize_t i = 0; i + 1 < length; i++) {
        out_program[i] = out_program[i] == '\0' ? ' ' : out_program[i];
    }
    out_program[length > 0 ? length : 0] = '\0';
    if (file >= 0) {
        (void)close(file);
    }
}

// Where the heap of malloc begins; 0: it has none yet.
static uintptr_t find_heap(void) {
    char line[512];
    uintptr_t found = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && found == 0 && fgets(line, sizeof(line), maps) != NULL) {
        found = strstr(line, "[heap]") != NULL ? (uintptr_t)strtoull(line, NULL, 16) : 0;
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

// A file of this name for each image of the process: exec keeps the number of the process.
static int create_file(const char *folder) {
    char path[4096];
    for (int i = 0; i < TRIES_MAX; i++) {
        const int length = snprintf(path, sizeof(path), "%s/%ld.%d", folder, (long)getpid(), i);
        if (length < 0 || (size_t)length >= sizeof(path)) {
            return -1;
        }
        const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) {
            return file;
        }
    }
    return -1;
}

// The doctor reads why there is no ring from the front, for which there may be room.
static void write_problem(int file, int problem) {
    rondo__doctor_ring front = {
        .header = {RONDO__DOCTOR_MAGIC, RONDO__DOCTOR_VERSION, sizeof(rondo__doctor_event)},
        .process = (uint32_t)getpid(),
        .problem = problem,
    };
    (void)!pwrite(file, &front, sizeof(front), 0);
}

// A limit on the size of files must not end the program: its signal is kept away, and taken back.
static int reserve(int file, size_t bytes) {
    sigset_t limit;
    sigset_t before;
    sigset_t pending;
    (void)sigemptyset(&limit);
    (void)sigaddset(&limit, SIGXFSZ);
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, &limit, &before);
    const int problem = posix_fallocate(file, 0, (off_t)bytes);
    if (problem == EFBIG && sigismember(&pending, SIGXFSZ) == 0) {
        (void)sigtimedwait(&limit, NULL, &(struct timespec){.tv_sec = 0});
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static rondo__doctor_ring *make_ring(const char *folder) {
    const int file = create_file(folder);
    if (file < 0) {
        return NULL;
    }
    const size_t bytes = (size_t)RONDO__DOCTOR_RING_FRONT + RONDO__DOCTOR_RING_BYTES;
    const int problem = reserve(file, bytes);
    void *memory = MAP_FAILED;
    if (problem != 0) {
        write_problem(file, problem);
    } else {
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    }
    (void)close(file);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    rondo__doctor_ring *ring = memory;
    ring->process = (uint32_t)getpid();
    read_program(ring->program, sizeof(ring->program));
    ring->header.version = RONDO__DOCTOR_VERSION;
    ring->header.event_bytes = sizeof(rondo__doctor_event);
    atomic_thread_fence(memory_order_release);
    ring->header.magic = RONDO__DOCTOR_MAGIC;
    return ring;
}

static void before_fork(void) {
    lock();
}

static void after_fork(void) {
    unlock();
}

// The child leaves its parent's ring alone.
static void after_fork_in_child(void) {
    if (g_end.ring != NULL) {
        (void)munmap(g_end.ring, (size_t)RONDO__DOCTOR_RING_FRONT + RONDO__DOCTOR_RING_BYTES);
    }
    g_end.ring = NULL;
    g_record.text_count = 0;
    memset(g_record.texts, 0, sizeof(g_record.texts));
    memset(g_known, 0, sizeof(g_known));
    rondo__inject_thread.thread = 0;
    atomic_fetch_add(&g_record.fork_count, 1);
    atomic_fetch_add(&rondo__inject_common.epoch, 1);
    atomic_store(&rondo__inject_common.is_timed, false);
    atomic_store(&rondo__inject_common.capture_count, 0);
    atomic_store(&rondo__inject_common.state, RONDO__INJECT_UNKNOWN);
    unlock();
}

bool rondo__inject_start(void) {
    const int saved = errno;
    lock();
    if (atomic_load(&rondo__inject_common.state) == RONDO__INJECT_UNKNOWN) {
        static atomic_bool has_handlers;
        const char *folder = getenv("RONDO_DOCTOR_FOLDER");
        g_end.ring = folder != NULL ? make_ring(folder) : NULL;
        g_end.end = 0;
        g_end.has_lost = false;
        atomic_store(&g_end.written, 0);
        start_ticks();
        atomic_store(&rondo__inject_common.state,
                     g_end.ring != NULL ? RONDO__INJECT_ON : RONDO__INJECT_OFF);
        if (!atomic_exchange(&has_handlers, true)) {
            (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
        }
    }
    const bool is_on = atomic_load(&rondo__inject_common.state) == RONDO__INJECT_ON;
    unlock();
    errno = saved;
    return is_on;
}

// The caller holds the lock. Whether there is room for so many bytes.
static inline bool has_room(size_t bytes) {
    const uint64_t end = atomic_load_explicit(&g_end.written, memory_order_relaxed) + bytes;
    if (end > g_end.end) {
        g_end.end = atomic_load_explicit(&g_end.ring->read, memory_order_acquire) +
                    RONDO__DOCTOR_RING_BYTES;
    }
    return end <= g_end.end;
}

// The caller holds the lock.
static inline void show(uint64_t written) {
    atomic_store_explicit(&g_end.written, written, memory_order_relaxed);
    atomic_store_explicit(&g_end.ring->written, written, memory_order_release);
}

// The caller holds the lock. False: there was no room.
static bool append(const rondo__doctor_event *event, const void *tail) {
    const size_t tail_bytes = rondo__doctor_tail_bytes(event);
    if (g_end.ring == NULL) {
        return false;
    }
    if (!has_room(sizeof(*event) + tail_bytes)) {
        atomic_fetch_add(&g_end.ring->lost_count, 1);
        return false;
    }
    const uint64_t from = atomic_load_explicit(&g_end.written, memory_order_relaxed);
    rondo__doctor_ring_put(g_end.ring, from, event, sizeof(*event));
    rondo__doctor_ring_put(g_end.ring, from + sizeof(*event), tail, tail_bytes);
    show(from + sizeof(*event) + tail_bytes);
    return true;
}

// ---- records ----------------------------------------------------------------------------------

void rondo__inject_put(rondo__doctor_event *event, const uint64_t *words) {
    lock();
    if (g_end.has_lost) {
        event->flags |= RONDO__DOCTOR_AFTER_LOSS;
    }
    g_end.has_lost = !append(event, words);
    unlock();
}

static inline size_t find_known(uint64_t hash) {
    return (size_t)(hash / 2 % RONDO__DOCTOR_KNOWN_MAX);
}

// Records are whole words, and so is the ring: no word lies across its end.
static inline void put_word(uint64_t position, uint64_t word) {
    memcpy(rondo__doctor_ring_data(g_end.ring) + position % RONDO__DOCTOR_RING_BYTES, &word,
           sizeof(word));
}

bool rondo__inject_put_again(uint64_t hash, uint64_t begin_ns, uint64_t duration_ns) {
    const size_t place = find_known(hash);
    bool is_put = false;
    lock();
    if (g_known[place] == hash && !g_end.has_lost && g_end.ring != NULL &&
        has_room(sizeof(rondo__doctor_again))) {
        const uint64_t from = atomic_load_explicit(&g_end.written, memory_order_relaxed);
        put_word(from, begin_ns | RONDO__DOCTOR_AGAIN);
        put_word(from + 8, duration_ns * RONDO__DOCTOR_KNOWN_MAX + place);
        show(from + sizeof(rondo__doctor_again));
        is_put = true;
    }
    unlock();
    return is_put;
}

void rondo__inject_put_whole(rondo__doctor_event *event, const uint64_t *words, uint64_t hash) {
    const size_t place = find_known(hash);
    lock();
    event->flags |= g_end.has_lost ? RONDO__DOCTOR_AFTER_LOSS : 0;
    event->line = hash != 0 ? (uint32_t)place + 1 : 0;
    g_end.has_lost = !append(event, words);
    // A call that reports lost records is recorded whole the next time.
    const bool is_kept = !g_end.has_lost && (event->flags & RONDO__DOCTOR_AFTER_LOSS) == 0;
    if (hash != 0) {
        g_known[place] = is_kept ? hash : 0;
    }
    unlock();
}

// ---- calls ------------------------------------------------------------------------------------

// The hash of a call without its times. Two calls with the same hash would be taken for one, which
// 64 bits make unlikely.
static uint64_t hash_call(const rondo__doctor_event *event) {
    enum { FIXED_BEGIN = offsetof(rondo__doctor_event, stream) / sizeof(uint64_t), FIXED_END = 13 };
    _Static_assert(sizeof(*event) == FIXED_END * sizeof(uint64_t), "whole words");
    uint64_t fixed[FIXED_END];
    uint64_t hash = 0xc2b2ae3d27d4eb4fu;
    memcpy(fixed, event, sizeof(fixed));
    for (size_t i = FIXED_BEGIN; i < FIXED_END; i++) {
        hash = (hash ^ fixed[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return (hash ^ hash >> 29) | 1;
}

uint32_t rondo__inject_ask_thread(void) {
    rondo__inject_thread.thread = (uint32_t)syscall(SYS_gettid);
    return rondo__inject_thread.thread;
}

uint64_t rondo__inject_begin_sample(void) {
    const bool is_timed =
        atomic_load_explicit(&rondo__inject_common.is_timed, memory_order_relaxed);
    return is_timed ? 0 : rondo__inject_now_ns();
}

static __attribute__((cold, noinline)) void count_cost(uint64_t entered_ns, uint64_t duration_ns) {
    const uint64_t whole = rondo__inject_now_ns() - entered_ns;
    const uint64_t cost = whole > duration_ns ? whole - duration_ns : 0;
    lock();
    learn_ticks();
    unlock();
    // In a longer one the thread did not run, or symbols were looked up for the first time.
    if (cost < SAMPLE_MAX_NS && g_end.ring != NULL) {
        atomic_fetch_add(&g_end.ring->cost_ns, cost);
        atomic_fetch_add(&g_end.ring->sample_count, 1);
    }
}

uint32_t rondo__inject_leave(uint64_t entered_ns, uint64_t duration_ns) {
    const rondo__doctor_ring *ring = g_end.ring;
    if (__builtin_expect(entered_ns != 0, 0)) {
        count_cost(entered_ns, duration_ns);
    }
    return ring != NULL ? atomic_load_explicit(&ring->times, memory_order_relaxed) : 0;
}

uint64_t rondo__inject_begin(rondo__doctor_event *event, uint16_t call, bool is_per_thread) {
    uint64_t entered_ns = 0;
    const uint32_t thread = rondo__inject_enter(&entered_ns);
    *event = (rondo__doctor_event){
        .call = call, .thread = thread, .flags = rondo__inject_find_flags(is_per_thread)};
    return entered_ns;
}

uint32_t rondo__inject_end(rondo__doctor_event *event, int status, uint64_t entered_ns) {
    event->duration_ns = rondo__inject_now_ns() - event->begin_ns;
    event->status = status;
    const uint64_t hash = hash_call(event);
    if (!rondo__inject_put_again(hash, event->begin_ns, event->duration_ns)) {
        rondo__inject_put_whole(event, NULL, hash);
    }
    return rondo__inject_leave(entered_ns, event->duration_ns);
}

// ---- texts ------------------------------------------------------------------------------------

static uint64_t hash_text(const char *text, size_t length) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    }
    return hash | 1;
}

uint32_t rondo__inject_text(const char *text) {
    if (text == NULL || text[0] == '\0') {
        return 0;
    }
    const size_t length = strnlen(text, RONDO__DOCTOR_TEXT_MAX);
    const uint64_t hash = hash_text(text, length);
    uint32_t number = 0;
    lock();
    size_t place = (size_t)(hash % TEXT_SLOTS);
    while (g_record.texts[place].hash != 0 && g_record.texts[place].hash != hash) {
        place = (place + 1) % TEXT_SLOTS;
    }
    known_text *known = &g_record.texts[place];
    if (known->hash == hash) {
        number = known->number;
    } else if (g_record.text_count < TEXT_SLOTS / 2) {
        char tail[RONDO__DOCTOR_TEXT_MAX + 8] = {0};
        memcpy(tail, text, length);
        rondo__doctor_event event = {.call = RONDO__DOCTOR_TEXT,
                                     .name = g_record.text_count + 1,
                                     .word_count = (uint32_t)length};
        if (append(&event, tail)) {
            number = ++g_record.text_count;
            *known = (known_text){hash, number};
        }
    }
    unlock();
    return number;
}

uint32_t rondo__inject_count_forks(void) {
    return atomic_load_explicit(&g_record.fork_count, memory_order_relaxed);
}

void rondo__inject_note(const char *text) {
    rondo__doctor_event event = {.call = RONDO__DOCTOR_NOTE,
                                 .name = rondo__inject_text(text),
                                 .begin_ns = rondo__inject_now_ns()};
    rondo__inject_put(&event, NULL);
}

void rondo__inject_tell_heap(void) {
    static atomic_uintptr_t start;
    static atomic_uintptr_t told;
    const uintptr_t end = (uintptr_t)sbrk(0);
    uintptr_t begin = atomic_load(&start);
    if (begin == 0) {
        begin = find_heap();
        atomic_store(&start, begin);
    }
    if (begin == 0 || end <= begin || atomic_exchange(&told, end) == end) {
        return;
    }
    rondo__doctor_event event = {.call = RONDO__DOCTOR_HEAP,
                                 .object = begin,
                                 .bytes = end - begin,
                                 .begin_ns = rondo__inject_now_ns()};
    rondo__inject_put(&event, NULL);
}

void rondo__inject_count_captures(int change) {
    atomic_fetch_add(&rondo__inject_common.capture_count, change);
}

void rondo__inject_set_timed(bool is_timed) {
    atomic_store(&rondo__inject_common.is_timed, is_timed);
}

void rondo__inject_enter_callback(bool is_inside) {
    rondo__inject_thread.is_in_callback = is_inside;
}
