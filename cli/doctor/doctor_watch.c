// doctor_watch.c — see doctor_watch.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor_watch.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "console.h"
#include "doctor/analysis/doctor_steps.h"
#include "doctor/stream/doctor_ring.h"

enum {
    NAPS_A_LOOK = 8,  // naps between looks into the folder
    SAMPLES_MIN = 16,
    WINDOWS_MAX = 6,
    CANNOT_RUN = 126,
    NOT_FOUND = 127,
    RECORD_TAIL_MAX = RONDO__DOCTOR_TEXT_MAX + 8,
};

static const long NAP_NS = 2000000;
static const uint64_t UNTIMED_NS = 300000000u;  // at least so long without them, first
static const uint64_t TIMED_NS = 500000000u;    // and so long with them, or four steps
static const uint64_t TIMED_MAX_NS = 8000000000u;
static const size_t RING_FILE_BYTES = (size_t)RONDO__DOCTOR_RING_FRONT + RONDO__DOCTOR_RING_BYTES;

typedef struct known_call {
    rondo__doctor_event event;
    uint64_t words[RONDO__DOCTOR_WORDS_MAX];
} known_call;

// What watching took, of so many calls.
typedef struct spent {
    uint64_t cost_ns;
    uint32_t samples;
} spent;

// A ring that is being read.
typedef struct source {
    char name[64];
    rondo__doctor_ring *ring;  // NULL: it could not be mapped
    known_call *known;         // RONDO__DOCTOR_KNOWN_MAX, that were told whole
    uint64_t times_ns;         // when device times were asked for; 0: not yet
    uint64_t window_ns;        // how long they are taken
    size_t window_count;       // how often they were asked for
    size_t period;             // of the step that they are of
    bool has_old_works;        // and the log has times of an earlier one
    uint64_t looked_ns;        // when steps were last looked for
    size_t looked_count;       // of calls
    spent looked;              // until then
    spent quiet;               // from the look before to the one that found a step
} source;

typedef struct watcher {
    cli_watch *watch;
    source sources[CLI_WATCH_PROCESSES_MAX];
    char folder[PATH_MAX];
    bool with_times;
} watcher;

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// ---- the recorder -----------------------------------------------------------------------------

static bool is_there(const char *folder, const char *place, char *out_path) {
    const int length = snprintf(out_path, PATH_MAX, "%s%s/librondo_doctor.so", folder, place);
    return length > 0 && length < PATH_MAX && access(out_path, R_OK) == 0;
}

// Beside the tool as it is built, or where it is installed.
static bool find_recorder(char *out_path) {
    char self[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0) {
        return false;
    }
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    return is_there(self, "", out_path) || is_there(self, "/lib", out_path) ||
           is_there(self, "/../" RONDO_DOCTOR_LIBDIR, out_path);
}

// Memory rather than a disk, where there is a file system of it.
static bool make_folder(char *out_folder) {
    const char *own = getenv("TMPDIR");
    const char *const places[] = {own != NULL && own[0] != '\0' ? own : "/dev/shm", "/dev/shm",
                                  "/tmp"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const int length = snprintf(out_folder, PATH_MAX, "%s/rondo-doctor-XXXXXX", places[i]);
        if (length > 0 && length < PATH_MAX && mkdtemp(out_folder) != NULL) {
            return true;
        }
    }
    cli_print_error("no folder for the records could be made in %s: %s", places[0],
                    strerror(errno));
    return false;
}

// ---- what can be watched ----------------------------------------------------------------------

static bool find_program(const char *name, char *out_path) {
    if (strchr(name, '/') != NULL) {
        (void)snprintf(out_path, PATH_MAX, "%s", name);
        return true;
    }
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        const size_t length = strcspn(path, ":");
        const int written =
            snprintf(out_path, PATH_MAX, "%.*s/%s", (int)length, length > 0 ? path : ".", name);
        if (written > 0 && written < PATH_MAX && access(out_path, X_OK) == 0) {
            return true;
        }
        path += length + (path[length] == ':' ? 1 : 0);
    }
    return false;
}

// A program of 64 bits without a loader.
static bool is_static(const char *path) {
    Elf64_Ehdr header;
    Elf64_Phdr part;
    bool has_loader = false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_program = file >= 0 && read(file, &header, sizeof header) == sizeof header &&
                      memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                      header.e_ident[EI_CLASS] == ELFCLASS64;
    for (int i = 0; is_program && i < header.e_phnum; i++) {
        const off_t place = (off_t)header.e_phoff + (off_t)i * header.e_phentsize;
        is_program = pread(file, &part, sizeof part, place) == sizeof part;
        has_loader = has_loader || part.p_type == PT_INTERP;
    }
    if (file >= 0) {
        (void)close(file);
    }
    return is_program && !has_loader;
}

static void look_at_program(const char *name, cli_watch *watch) {
    char path[PATH_MAX];
    struct stat info;
    if (find_program(name, path) && stat(path, &info) == 0) {
        watch->is_static = is_static(path);
        watch->is_privileged = (info.st_mode & (S_ISUID | S_ISGID)) != 0 && geteuid() != 0;
    }
}

// ---- rings ------------------------------------------------------------------------------------

static void map_ring(watcher *w, source *from, cli_watched *to) {
    char path[PATH_MAX + 80];
    (void)snprintf(path, sizeof path, "%s/%s", w->folder, from->name);
    const int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat info;
    rondo__doctor_ring front = {.problem = 0};
    if (file < 0 || fstat(file, &info) != 0) {
        to->problem = errno;
    } else if ((size_t)info.st_size < RING_FILE_BYTES) {
        to->problem = pread(file, &front, sizeof front, 0) == sizeof front && front.problem != 0
                          ? front.problem
                          : ENOSPC;
    } else {
        void *memory = mmap(NULL, RING_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        to->problem = memory != MAP_FAILED ? 0 : errno;
        from->known = calloc(RONDO__DOCTOR_KNOWN_MAX, sizeof *from->known);
        to->problem = from->known == NULL ? ENOMEM : to->problem;
        from->ring = to->problem == 0 ? memory : NULL;
    }
    if (file >= 0) {
        (void)close(file);
    }
}

static bool is_known(const watcher *w, const char *name) {
    for (size_t i = 0; i < w->watch->count; i++) {
        if (strcmp(w->sources[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

// A file that is being made is too short; it is taken when the process has gone on or ended.
static bool is_made(const watcher *w, const char *name) {
    char path[PATH_MAX + 80];
    struct stat info;
    uint64_t magic = 0;
    (void)snprintf(path, sizeof path, "%s/%s", w->folder, name);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool is_done = file >= 0 && fstat(file, &info) == 0 && info.st_size > 0 &&
                         pread(file, &magic, sizeof magic, 0) == sizeof magic &&
                         magic == RONDO__DOCTOR_MAGIC;
    if (file >= 0) {
        (void)close(file);
    }
    return is_done;
}

static void look_for_rings(watcher *w, bool is_end) {
    DIR *folder = opendir(w->folder);
    const struct dirent *entry = NULL;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        cli_watch *watch = w->watch;
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof w->sources[0].name ||
            watch->count == CLI_WATCH_PROCESSES_MAX || is_known(w, entry->d_name) ||
            !(is_end || is_made(w, entry->d_name))) {
            continue;
        }
        source *from = &w->sources[watch->count];
        cli_watched *to = &watch->processes[watch->count++];
        memset(from, 0, sizeof *from);
        (void)snprintf(from->name, sizeof from->name, "%s", entry->d_name);
        map_ring(w, from, to);
        to->process = (uint32_t)strtoul(entry->d_name, NULL, 10);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

// Which bytes a record has; 0: it is none. What another process wrote is checked like a file.
static size_t take_whole(source *from, uint64_t read, uint64_t room, rondo__doctor_event *event,
                         char *tail) {
    if (room < sizeof *event) {
        return 0;
    }
    rondo__doctor_ring_get(from->ring, read, event, sizeof *event);
    const size_t bytes = rondo__doctor_tail_bytes(event);
    if (event->word_count > RONDO__DOCTOR_TEXT_MAX || bytes > RECORD_TAIL_MAX ||
        room < sizeof *event + bytes) {
        return 0;
    }
    rondo__doctor_ring_get(from->ring, read + sizeof *event, tail, bytes);
    const uint32_t place = event->line - 1;
    if (event->line > 0 && place < RONDO__DOCTOR_KNOWN_MAX &&
        event->word_count <= RONDO__DOCTOR_WORDS_MAX) {
        event->line = 0;
        from->known[place].event = *event;
        memcpy(from->known[place].words, tail, bytes);
    }
    return sizeof *event + bytes;
}

static size_t take_record(source *from, uint64_t read, uint64_t room, rondo__doctor_event *event,
                          char *tail) {
    rondo__doctor_again again;
    if (room < sizeof again) {
        return 0;
    }
    rondo__doctor_ring_get(from->ring, read, &again, sizeof again);
    if ((again.begin_ns & RONDO__DOCTOR_AGAIN) == 0) {
        return take_whole(from, read, room, event, tail);
    }
    const known_call *known = &from->known[again.duration_and_place % RONDO__DOCTOR_KNOWN_MAX];
    *event = known->event;
    memcpy(tail, known->words, rondo__doctor_tail_bytes(event));
    event->begin_ns = again.begin_ns & ~RONDO__DOCTOR_AGAIN;
    event->duration_ns = again.duration_and_place / RONDO__DOCTOR_KNOWN_MAX;
    return sizeof again;
}

// Takes all records that are there.
static void drain(source *from, cli_watched *to) {
    rondo__doctor_ring *ring = from->ring;
    uint64_t read = ring != NULL ? atomic_load(&ring->read) : 0;
    const uint64_t written = ring != NULL ? atomic_load(&ring->written) : 0;
    while (read < written && written - read <= RONDO__DOCTOR_RING_BYTES) {
        rondo__doctor_event event;
        char tail[RECORD_TAIL_MAX];
        const size_t bytes = take_record(from, read, written - read, &event, tail);
        if (bytes == 0) {
            break;
        }
        read += bytes;
        if (event.call == RONDO__DOCTOR_WORK && from->has_old_works) {
            from->has_old_works = false;
            to->log.work_count = 0;
        }
        (void)rondo__doctor_log_add(&to->log, &event, tail);
    }
    if (ring != NULL) {
        atomic_store(&ring->read, read);
    }
}

static spent read_spent(rondo__doctor_ring *ring, spent before) {
    return (spent){atomic_load(&ring->cost_ns) - before.cost_ns,
                   atomic_load(&ring->sample_count) - before.samples};
}

static void read_front(const source *from, cli_watched *to) {
    rondo__doctor_ring *ring = from->ring;
    if (ring == NULL) {
        return;
    }
    // Without the first calls, in which symbols are looked up, and ahead of device times.
    const bool is_steady = from->quiet.samples >= SAMPLES_MIN;
    const spent all = is_steady ? from->quiet : read_spent(ring, (spent){0});
    to->cost_us = all.samples > 0 ? (double)all.cost_ns * 1e-3 / all.samples : 0.0;
    to->lost_count = atomic_load(&ring->lost_count);
    memcpy(to->program, ring->program, sizeof to->program);
    to->program[sizeof to->program - 1] = '\0';
}

// ---- device times -----------------------------------------------------------------------------

// Whether a step is known that has no device times yet, and was seen without them for long enough.
// One that launches graphs is left alone: CUPTI would make their replays slower.
static bool has_enough(source *from, const rondo__doctor_log *log) {
    rondo__doctor_steps steps;
    if (!rondo__doctor_find_steps(log, &steps)) {
        return false;
    }
    uint64_t length = 0;
    uint64_t longest = 0;
    size_t count = 0;
    for (size_t i = 0; i < steps.count; i++) {
        const uint64_t own = steps.steps[i].is_typical ? steps.steps[i].length_ns : 0;
        count += steps.steps[i].is_typical;
        length += own;
        longest = own > longest ? own : longest;
    }
    length -= longest;  // the first one loads modules and tunes
    const bool is_enough = count >= 3 && (length >= UNTIMED_NS || count >= 200) &&
                           steps.period != from->period && !rondo__doctor_launches_graphs(&steps);
    const uint64_t four = count > 1 ? 4 * length / (count - 1) : TIMED_NS;
    if (is_enough) {
        from->period = steps.period;
        from->window_ns = four > TIMED_MAX_NS ? TIMED_MAX_NS : four > TIMED_NS ? four : TIMED_NS;
    }
    rondo__doctor_steps_clear(&steps);
    return is_enough;
}

// What repeats while a program starts is no step of it: times that were taken then are forgotten
// once there are others.
static void open_window(source *from, uint64_t now) {
    rondo__doctor_ring *ring = from->ring;
    from->has_old_works = true;
    from->times_ns = now;
    from->window_count += 1;
    atomic_fetch_add(&ring->times, 1);
}

static void ask_for_times(source *from, cli_watched *to) {
    const uint64_t now = now_ns();
    const uint64_t since = to->log.seen_count > 0 ? now - to->log.first_ns : 0;
    if (from->times_ns != 0) {
        if (now - from->times_ns > from->window_ns) {
            atomic_fetch_add(&from->ring->times, 1);
            from->times_ns = 0;
        }
        return;
    }
    // Looking costs a few milliseconds, so it waits until there is twice as much to look at.
    const bool is_due = to->log.seen_count >= 2 * from->looked_count + 32 ||
                        (now - from->looked_ns > UNTIMED_NS && from->looked_count > 0);
    if (from->window_count == WINDOWS_MAX || !is_due || since < UNTIMED_NS / 2) {
        return;
    }
    const spent since_last = read_spent(from->ring, from->looked);
    from->looked_ns = now;
    from->looked_count = (size_t)to->log.seen_count;
    from->looked = read_spent(from->ring, (spent){0});
    if (has_enough(from, &to->log)) {
        from->quiet = from->window_count == 0 ? since_last : from->quiet;
        open_window(from, now);
    }
}

static void read_all(watcher *w) {
    for (size_t i = 0; i < w->watch->count; i++) {
        drain(&w->sources[i], &w->watch->processes[i]);
        if (w->with_times && w->sources[i].ring != NULL) {
            ask_for_times(&w->sources[i], &w->watch->processes[i]);
        }
    }
}

// ---- the program ------------------------------------------------------------------------------

static volatile sig_atomic_t g_program;

// Ctrl-C of a terminal reaches the program by itself; what another process sends does not.
static void pass_on(int number, siginfo_t *info, void *context) {
    (void)context;
    if (g_program > 0 && info->si_code <= 0) {
        (void)kill((pid_t)g_program, number);
    }
}

// The doctor stays for its report.
static void set_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGQUIT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
}

static void put_in_front(const char *recorder) {
    char list[2 * PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    (void)snprintf(list, sizeof list, "%s%s%s", recorder,
                   before != NULL && before[0] != '\0' ? ":" : "", before != NULL ? before : "");
    (void)setenv("LD_PRELOAD", list, 1);
}

static void become(const watcher *w, const char *recorder, char *const *program, int report) {
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)signal(SIGXFSZ, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
    (void)setenv("RONDO_DOCTOR_FOLDER", w->folder, 1);
    (void)setenv("NVTX_INJECTION64_PATH", recorder, 0);
    put_in_front(recorder);
    (void)execvp(program[0], program);
    const int problem = errno;
    (void)!write(report, &problem, sizeof problem);
    _exit(problem == ENOENT ? NOT_FOUND : CANNOT_RUN);
}

static bool start(const watcher *w, const char *recorder, char *const *program, pid_t *out_child) {
    int report[2];
    int problem = 0;
    if (pipe(report) != 0 || fcntl(report[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(report[1], F_SETFD, FD_CLOEXEC) != 0) {
        cli_print_error("no pipe could be made: %s", strerror(errno));
        return false;
    }
    fflush(stdout);
    *out_child = fork();
    if (*out_child == 0) {
        become(w, recorder, program, report[1]);
    }
    (void)close(report[1]);
    if (*out_child < 0) {
        problem = errno;
    } else if (read(report[0], &problem, sizeof problem) != (ssize_t)sizeof problem) {
        problem = 0;
    }
    (void)close(report[0]);
    if (problem == 0) {
        return true;
    }
    if (*out_child > 0) {
        (void)waitpid(*out_child, NULL, 0);
    }
    const char *end = strrchr(program[0], '.');
    const bool is_script = end != NULL && strcmp(end, ".py") == 0;
    cli_print_error(
        "%s cannot be started: %s%s", program[0], strerror(problem),
        is_script ? "; a script is started by its interpreter: python3 and its name" : "");
    w->watch->status = problem == ENOENT ? NOT_FOUND : CANNOT_RUN;
    return false;
}

static void follow(watcher *w, pid_t child) {
    int status = 0;
    bool is_running = true;
    for (unsigned nap = 0; is_running; nap++) {
        if (nap % NAPS_A_LOOK == 0) {
            look_for_rings(w, false);
        }
        read_all(w);
        const pid_t ended = waitpid(child, &status, WNOHANG);
        is_running = ended == 0 || (ended < 0 && errno == EINTR);
        if (is_running) {
            (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
    }
    g_program = 0;
    look_for_rings(w, true);
    read_all(w);
    w->watch->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void remove_folder(watcher *w) {
    char path[PATH_MAX + 80];
    for (size_t i = 0; i < w->watch->count; i++) {
        read_front(&w->sources[i], &w->watch->processes[i]);
        if (w->sources[i].ring != NULL) {
            (void)munmap(w->sources[i].ring, RING_FILE_BYTES);
        }
        free(w->sources[i].known);
        (void)snprintf(path, sizeof path, "%s/%s", w->folder, w->sources[i].name);
        (void)unlink(path);
    }
    (void)rmdir(w->folder);
}

bool cli_watch_program(char *const *program, bool with_times, cli_watch *out_watch) {
    char recorder[PATH_MAX];
    pid_t child = -1;
    *out_watch = (cli_watch){.status = CANNOT_RUN};
    watcher *w = calloc(1, sizeof *w);
    out_watch->processes = calloc(CLI_WATCH_PROCESSES_MAX, sizeof *out_watch->processes);
    if (w == NULL || out_watch->processes == NULL) {
        (void)cli_fail_memory();
        free(w);
        return false;
    }
    w->watch = out_watch;
    w->with_times = with_times;
    bool is_started = find_recorder(recorder);
    if (!is_started) {
        cli_print_error(
            "librondo_doctor.so, which is put into the program, is not beside the tool "
            "nor where it is installed");
    }
    is_started = is_started && make_folder(w->folder);
    if (is_started) {
        look_at_program(program[0], out_watch);
        is_started = start(w, recorder, program, &child);
        if (is_started) {
            g_program = (sig_atomic_t)child;
            set_signals();
            follow(w, child);
        }
        remove_folder(w);
    }
    free(w);
    return is_started;
}

cli_watched *cli_watch_choose(const cli_watch *watch) {
    cli_watched *best = NULL;
    for (size_t i = 0; i < watch->count; i++) {
        cli_watched *one = &watch->processes[i];
        if (best == NULL || one->log.launch_count > best->log.launch_count ||
            (one->log.launch_count == best->log.launch_count &&
             one->log.seen_count > best->log.seen_count)) {
            best = one;
        }
    }
    return best;
}

void cli_watch_clear(cli_watch *watch) {
    for (size_t i = 0; i < watch->count; i++) {
        rondo__doctor_log_clear(&watch->processes[i].log);
    }
    free(watch->processes);
    memset(watch, 0, sizeof *watch);
}
