// doctor/inject/inject_record.c — see inject_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_record.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
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

enum { STATE_UNKNOWN, STATE_ON, STATE_OFF };
enum { SAMPLE_EVERY = 64, SAMPLE_MAX_NS = 100000, TICKS_MIN_NS = 50000000 };

static struct {
    pthread_mutex_t lock;  // a leaf
    atomic_int state;
    rondo__doctor_ring *ring;
    known_text texts[TEXT_SLOTS];
    uint32_t text_count;
    uint64_t known[RONDO__DOCTOR_KNOWN_MAX];  // calls that were told whole, by their hash; 0: none
    bool has_lost;
    atomic_uint fork_count;
    atomic_int capture_count;
    atomic_bool is_timed;
} g_record = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local uint32_t t_thread;
static _Thread_local uint32_t t_call_count;
static _Thread_local uint64_t t_entered_ns;  // 0: this call is no sample of what watching takes
static _Thread_local bool t_is_in_callback;

// ---- the clock --------------------------------------------------------------------------------

static uint64_t ask_clock(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef __x86_64__
// Set once, when enough time has gone by to know how fast the counter runs.
static struct {
    uint64_t first_ns, first_ticks;  // when the recorder started; 0: the counter is of no use
    uint64_t base_ns, base_ticks;
    uint64_t ns_in_ticks;  // 32 bits of it behind the point
    atomic_bool is_known;
} g_ticks;

// Reads both clocks at one moment: takes the shortest of some tries, because a thread may lose the
// processor in between.
static void ask_both(uint64_t *out_ns, uint64_t *out_ticks) {
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        const uint64_t before = __rdtsc();
        const uint64_t now = ask_clock();
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

// The caller holds the lock.
static void learn_ticks(void) {
    uint64_t now = 0;
    uint64_t ticks = 0;
    if (g_ticks.first_ns == 0 || atomic_load(&g_ticks.is_known) ||
        ask_clock() - g_ticks.first_ns < TICKS_MIN_NS) {
        return;
    }
    ask_both(&now, &ticks);
    const uint64_t since = now - g_ticks.first_ns;
    g_ticks.ns_in_ticks =
        (uint64_t)((double)since / (double)(ticks - g_ticks.first_ticks) * 4294967296.0);
    g_ticks.base_ns = now;
    g_ticks.base_ticks = ticks;
    atomic_store_explicit(&g_ticks.is_known, true, memory_order_release);
}

uint64_t rondo__inject_now_ns(void) {
    if (!atomic_load_explicit(&g_ticks.is_known, memory_order_acquire)) {
        return ask_clock();
    }
    const uint64_t ticks = __rdtsc();
    const uint64_t way = ticks > g_ticks.base_ticks ? ticks - g_ticks.base_ticks : 0;
    return g_ticks.base_ns + (uint64_t)((unsigned __int128)way * g_ticks.ns_in_ticks >> 32);
}
#else
static void start_ticks(void) {
}

static void learn_ticks(void) {
}

uint64_t rondo__inject_now_ns(void) {
    return ask_clock();
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
    (void)pthread_mutex_lock(&g_record.lock);
}

static void after_fork(void) {
    (void)pthread_mutex_unlock(&g_record.lock);
}

// The child leaves its parent's ring alone.
static void after_fork_in_child(void) {
    if (g_record.ring != NULL) {
        (void)munmap(g_record.ring, (size_t)RONDO__DOCTOR_RING_FRONT + RONDO__DOCTOR_RING_BYTES);
    }
    g_record.ring = NULL;
    g_record.text_count = 0;
    memset(g_record.texts, 0, sizeof(g_record.texts));
    memset(g_record.known, 0, sizeof(g_record.known));
    t_thread = 0;
    atomic_fetch_add(&g_record.fork_count, 1);
    atomic_store(&g_record.is_timed, false);
    atomic_store(&g_record.capture_count, 0);
    atomic_store(&g_record.state, STATE_UNKNOWN);
    (void)pthread_mutex_unlock(&g_record.lock);
}

static bool start(void) {
    const int saved = errno;
    (void)pthread_mutex_lock(&g_record.lock);
    if (atomic_load(&g_record.state) == STATE_UNKNOWN) {
        static atomic_bool has_handlers;
        const char *folder = getenv("RONDO_DOCTOR_FOLDER");
        g_record.ring = folder != NULL ? make_ring(folder) : NULL;
        start_ticks();
        atomic_store(&g_record.state, g_record.ring != NULL ? STATE_ON : STATE_OFF);
        if (!atomic_exchange(&has_handlers, true)) {
            (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
        }
    }
    const bool is_on = atomic_load(&g_record.state) == STATE_ON;
    (void)pthread_mutex_unlock(&g_record.lock);
    errno = saved;
    return is_on;
}

bool rondo__inject_is_on(void) {
    const int state = atomic_load_explicit(&g_record.state, memory_order_relaxed);
    return state == STATE_UNKNOWN ? start() : state == STATE_ON;
}

// The caller holds the lock. Where the record begins; UINT64_MAX: there was no room.
static uint64_t reserve_record(rondo__doctor_ring *ring, size_t bytes) {
    const uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    const uint64_t used = written - atomic_load_explicit(&ring->read, memory_order_acquire);
    if (used + bytes > RONDO__DOCTOR_RING_BYTES) {
        atomic_fetch_add(&ring->lost_count, 1);
        return UINT64_MAX;
    }
    return written;
}

// The caller holds the lock. False: there was no room.
static bool append(const rondo__doctor_event *event, const void *tail) {
    rondo__doctor_ring *ring = g_record.ring;
    const size_t tail_bytes = rondo__doctor_tail_bytes(event);
    const uint64_t from =
        ring != NULL ? reserve_record(ring, sizeof(*event) + tail_bytes) : UINT64_MAX;
    if (from == UINT64_MAX) {
        return false;
    }
    rondo__doctor_ring_put(ring, from, event, sizeof(*event));
    rondo__doctor_ring_put(ring, from + sizeof(*event), tail, tail_bytes);
    atomic_store_explicit(&ring->written, from + sizeof(*event) + tail_bytes, memory_order_release);
    return true;
}

// Records in short a call that an earlier record has whole.
static bool append_again(const rondo__doctor_event *event, uint64_t place) {
    rondo__doctor_ring *ring = g_record.ring;
    const uint64_t words[2] = {event->begin_ns | RONDO__DOCTOR_AGAIN,
                               event->duration_ns * RONDO__DOCTOR_KNOWN_MAX + place};
    const uint64_t from = reserve_record(ring, sizeof(words));
    if (from == UINT64_MAX) {
        return false;
    }
    rondo__doctor_ring_put(ring, from, &words[0], sizeof(words[0]));
    rondo__doctor_ring_put(ring, from + sizeof(words[0]), &words[1], sizeof(words[1]));
    atomic_store_explicit(&ring->written, from + sizeof(words), memory_order_release);
    return true;
}

// ---- records ----------------------------------------------------------------------------------

void rondo__inject_put(rondo__doctor_event *event, const uint64_t *words) {
    (void)pthread_mutex_lock(&g_record.lock);
    if (g_record.has_lost) {
        event->flags |= RONDO__DOCTOR_AFTER_LOSS;
    }
    g_record.has_lost = !append(event, words);
    (void)pthread_mutex_unlock(&g_record.lock);
}

// The hash of a call without its times. Two calls with the same hash would be taken for one, which
// 64 bits make unlikely.
static uint64_t hash_call(const rondo__doctor_event *event, const uint64_t *words) {
    enum { FIXED_BEGIN = offsetof(rondo__doctor_event, stream) / sizeof(uint64_t), FIXED_END = 13 };
    _Static_assert(sizeof(*event) == FIXED_END * sizeof(uint64_t), "whole words");
    uint64_t fixed[FIXED_END];
    uint64_t hashes[2] = {0x9e3779b97f4a7c15u,
                          0xc2b2ae3d27d4eb4fu};  // side by side in the processor
    memcpy(fixed, event, sizeof(fixed));
    for (size_t i = FIXED_BEGIN; i < FIXED_END; i++) {
        hashes[i % 2] = (hashes[i % 2] ^ fixed[i]) * 0xff51afd7ed558ccdu;
        hashes[i % 2] ^= hashes[i % 2] >> 32;
    }
    for (uint32_t i = 0; i < event->word_count; i++) {
        hashes[i % 2] = (hashes[i % 2] ^ words[i]) * 0xff51afd7ed558ccdu;
        hashes[i % 2] ^= hashes[i % 2] >> 32;
    }
    const uint64_t hash = (hashes[0] ^ (hashes[1] << 31 | hashes[1] >> 33)) * 0xc4ceb9fe1a85ec53u;
    return (hash ^ hash >> 29) | 1;
}

// Records a call in short if it was recorded whole before.
static void put_call(rondo__doctor_event *event, const uint64_t *words) {
    const uint64_t hash = hash_call(event, words);
    const uint64_t place = hash / 2 % RONDO__DOCTOR_KNOWN_MAX;
    (void)pthread_mutex_lock(&g_record.lock);
    if (g_record.known[place] == hash && !g_record.has_lost && g_record.ring != NULL) {
        g_record.has_lost = !append_again(event, place);
    } else {
        event->flags |= g_record.has_lost ? RONDO__DOCTOR_AFTER_LOSS : 0;
        event->line = (uint32_t)place + 1;
        g_record.has_lost = !append(event, words);
        // A call that reports lost records is recorded whole the next time.
        const bool is_kept = !g_record.has_lost && (event->flags & RONDO__DOCTOR_AFTER_LOSS) == 0;
        g_record.known[place] = is_kept ? hash : 0;
    }
    (void)pthread_mutex_unlock(&g_record.lock);
}

void rondo__inject_begin(rondo__doctor_event *event, uint16_t call, bool is_per_thread) {
    if (t_thread == 0) {
        t_thread = (uint32_t)syscall(SYS_gettid);
    }
    t_entered_ns = ++t_call_count % SAMPLE_EVERY == 0 ? rondo__inject_now_ns() : 0;
    memset(event, 0, sizeof(*event));
    event->call = call;
    event->thread = t_thread;
    event->flags = (uint8_t)((is_per_thread ? RONDO__DOCTOR_PER_THREAD : 0) |
                             (t_is_in_callback ? RONDO__DOCTOR_IN_CALLBACK : 0));
    if (atomic_load_explicit(&g_record.capture_count, memory_order_relaxed) > 0) {
        event->flags |= RONDO__DOCTOR_IN_CAPTURE;
    }
    if (atomic_load_explicit(&g_record.is_timed, memory_order_relaxed)) {
        event->flags |= RONDO__DOCTOR_TIMED;
    }
}

void rondo__inject_end(rondo__doctor_event *event, int status, const uint64_t *words) {
    event->duration_ns = rondo__inject_now_ns() - event->begin_ns;
    event->status = status;
    put_call(event, words);
    rondo__doctor_ring *ring = g_record.ring;
    if (t_entered_ns != 0 && ring != NULL) {
        const uint64_t whole = rondo__inject_now_ns() - t_entered_ns;
        const uint64_t cost = whole > event->duration_ns ? whole - event->duration_ns : 0;
        (void)pthread_mutex_lock(&g_record.lock);
        learn_ticks();
        (void)pthread_mutex_unlock(&g_record.lock);
        // In a longer one the thread did not run, or symbols were looked up for the first time.
        if (cost < SAMPLE_MAX_NS) {
            atomic_fetch_add(&ring->cost_ns, cost);
            atomic_fetch_add(&ring->sample_count, 1);
        }
    }
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
    (void)pthread_mutex_lock(&g_record.lock);
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
    (void)pthread_mutex_unlock(&g_record.lock);
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

uint32_t rondo__inject_wanted_times(void) {
    rondo__doctor_ring *ring = g_record.ring;
    return ring != NULL ? atomic_load_explicit(&ring->times, memory_order_relaxed) : 0;
}

void rondo__inject_count_captures(int change) {
    atomic_fetch_add(&g_record.capture_count, change);
}

void rondo__inject_set_timed(bool is_timed) {
    atomic_store(&g_record.is_timed, is_timed);
}

void rondo__inject_enter_callback(bool is_inside) {
    t_is_in_callback = is_inside;
}
