// collective/meeting.c — see meeting.h.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "collective/meeting.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "collective/sockets.h"

enum { TOKEN_BYTES = 16, HOST_BYTES = 256 };
static const uint64_t hello_ns = 3000000000;  // for a hello, or for a word that it has come
static const uint64_t tick_ns = 200000000;    // between two looks at what else there is to do
static const uint32_t magic = 0x4f444e52;
static const char call_name[] = "rondo_communicator_create";

typedef struct hello {
    uint32_t magic;
    uint32_t is_data;
    int32_t rank, size;
    uint8_t token[TOKEN_BYTES];
    char traits[RONDO__TRAITS_BYTES];
} hello;

typedef enum answer { ANSWER_GO, ANSWER_NOTED, ANSWER_REFUSED } answer;

typedef struct welcome {
    uint32_t magic;
    uint32_t answer;
    char why[200];
} welcome;

// Where the ranks meet.
typedef struct place {
    bool is_file;
    bool is_near;  // all ranks are on this machine
    char path[PATH_MAX];
    char host[HOST_BYTES];
    uint16_t port;
    uint8_t token[TOKEN_BYTES];
} place;

// ---- the place ----------------------------------------------------------------------------------

static bool parse_address(const char *text, place *p) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon == text || strchr(text, '/') != NULL ||
        (size_t)(colon - text) >= sizeof p->host) {
        return false;
    }
    char *end;
    const long port = strtol(colon + 1, &end, 10);
    if (*end != '\0' || end == colon + 1 || port < 1 || port > 65535) {
        return false;
    }
    memcpy(p->host, text, (size_t)(colon - text));
    p->host[colon - text] = '\0';
    p->port = (uint16_t)port;
    return true;
}

static rondo_status choose_place(const rondo_ranks *ranks, rondo__launcher_id launcher,
                                 const char *text, place *p) {
    char master[2 * HOST_BYTES];
    const char *variable = getenv("RONDO_MEETING");
    text = text == NULL && variable != NULL && variable[0] != '\0' ? variable : text;
    // Where the launcher does not say, the ranks are taken to be on one machine.
    p->is_near = ranks->local_size == 0 || ranks->local_size == ranks->size;
    if (text == NULL && rondo__launcher_get_master(master, sizeof master)) {
        text = master;
    }
    if (text != NULL) {
        p->is_file = strchr(text, '/') != NULL;
        if (!p->is_file && !parse_address(text, p)) {
            return RONDO_FAIL_AS(call_name, INVALID,
                                 "the ranks are to meet at \"%.100s\", which is neither HOST:PORT "
                                 "nor a path with a /",
                                 text);
        }
        const int used = snprintf(p->path, sizeof p->path, "%s", p->is_file ? text : "");
        return used >= 0 && (size_t)used < sizeof p->path
                   ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(call_name, INVALID,
                                   "the path where the ranks are to meet has %zu bytes; name one "
                                   "of fewer than %zu",
                                   strlen(text), sizeof p->path);
    }
    if (!p->is_near) {
        return RONDO_FAIL_AS(call_name, INVALID,
                             "the ranks are on several machines, and %s does not say where they "
                             "can meet; set RONDO_MEETING to HOST:PORT of rank 0's machine",
                             ranks->launcher);
    }
    p->is_file = true;
    return rondo__launcher_name_file(launcher, p->path, sizeof p->path);
}

// A file that stands there may be one of an earlier job's, and nothing else.
static rondo_status check_free(const place *p) {
    static const char begin[] = "rondo-ranks ";
    char text[sizeof begin] = "";
    struct stat info;
    if (lstat(p->path, &info) != 0) {
        return RONDO_STATUS_OK;  // to write there says more
    }
    const int fd = S_ISREG(info.st_mode) ? open(p->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    const bool is_ours = fd >= 0 && read(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1 &&
                         strcmp(text, begin) == 0;
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_ours ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(call_name, INVALID,
                                   "the ranks cannot meet at %.150s: something else is there; "
                                   "name a file that is not there yet",
                                   p->path);
}

// Says in the file where rank 0 listens: whole, and for the user alone.
static rondo_status write_file(place *p) {
    const rondo_status status = check_free(p);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    char text[HOST_BYTES + 80];
    char temporary[PATH_MAX + 16];
    int used = snprintf(text, sizeof text, "rondo-ranks 1 %s %u ", p->host, (unsigned)p->port);
    for (size_t i = 0; i < TOKEN_BYTES; ++i) {
        used += snprintf(text + used, sizeof text - (size_t)used, "%02x", p->token[i]);
    }
    (void)snprintf(temporary, sizeof temporary, "%s.%ld", p->path, (long)getpid());
    (void)unlink(temporary);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool is_written = fd >= 0 && write(fd, text, (size_t)used) == used;
    const bool is_closed = fd < 0 || close(fd) == 0;
    if (!is_written || !is_closed || rename(temporary, p->path) != 0) {
        const int code = errno;
        (void)unlink(temporary);
        return RONDO_FAIL_AS(call_name, UNAVAILABLE, "the ranks cannot meet at %.150s: %s", p->path,
                             strerror(code));
    }
    return RONDO_STATUS_OK;
}

static bool parse_file(const char *text, place *p) {
    unsigned port = 0;
    int at = 0;
    if (sscanf(text, "rondo-ranks 1 %255s %u %n", p->host, &port, &at) != 2 || port > 65535) {
        return false;
    }
    p->port = (uint16_t)port;
    for (size_t i = 0; i < TOKEN_BYTES; ++i) {
        unsigned byte;
        if (sscanf(text + at + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        p->token[i] = (uint8_t)byte;
    }
    return true;
}

// Not there yet, or another user's: false.
static bool read_file(place *p) {
    char text[HOST_BYTES + 80] = "";
    struct stat info;
    const int fd = open(p->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const bool is_ours = fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid();
    const ssize_t got = is_ours ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return got > 0 && parse_file(text, p);
}

// ---- waiting ------------------------------------------------------------------------------------

static uint64_t get_sooner(uint64_t deadline_ns, uint64_t from_now_ns) {
    const uint64_t then = rondo__clock_now_ns() + from_now_ns;
    return then < deadline_ns ? then : deadline_ns;
}

// Lets the caller say that it waits, or end it.
static rondo_status tell(const rondo__patience *patience, const char *what) {
    const uint64_t passed = rondo__clock_now_ns() - patience->begun_ns;
    const bool goes_on =
        patience->waiting == NULL || patience->waiting(patience->data, what, (double)passed * 1e-9);
    return goes_on ? RONDO_STATUS_OK
                   : RONDO_FAIL_AS(call_name, CANCELLED, "options.waiting ended it: %.150s", what);
}

// ---- rank 0 -------------------------------------------------------------------------------------

static int measure_line(const char *line) {
    const size_t length = strcspn(line, "\n");
    return length < 60 ? (int)length : 60;
}

// Writes what first differs in the lines of both.
static void name_difference(const hello *h, const hello *wanted, char *out, size_t bytes) {
    static const char nothing[] = "nothing more";
    const char *a = h->traits;
    const char *b = wanted->traits;
    size_t length = strcspn(a, "\n");
    while (length == strcspn(b, "\n") && strncmp(a, b, length) == 0 &&
           (a[length] != '\0' || b[length] != '\0')) {
        a += length + (a[length] != '\0' ? 1 : 0);
        b += length + (b[length] != '\0' ? 1 : 0);
        length = strcspn(a, "\n");
    }
    const char *has = length > 0 ? a : nothing;
    const char *should = strcspn(b, "\n") > 0 ? b : nothing;
    (void)snprintf(out, bytes, "rank %d has %.*s, rank 0 has %.*s", (int)h->rank, measure_line(has),
                   has, measure_line(should), should);
}

static void answer_rank(int fd, answer kind, const char *why) {
    welcome w = {.magic = magic, .answer = (uint32_t)kind};
    (void)snprintf(w.why, sizeof w.why, "%s", why);
    (void)rondo__socket_send(fd, &w, sizeof w);  // one that is gone is noticed later
}

static rondo_status fail_unlike(const char *why) {
    return RONDO_FAIL_AS(call_name, INVALID, "the ranks do not fit together: %s", why);
}

// Takes one connection, if it is of a rank. `why` gets the first difference.
static rondo_status greet(rondo__meeting *m, int fd, const hello *wanted, size_t *in_out_count,
                          char *why, size_t why_bytes) {
    hello h;
    if (!rondo__socket_receive_by(fd, &h, sizeof h, rondo__clock_now_ns() + hello_ns) ||
        h.magic != magic || memcmp(h.token, wanted->token, TOKEN_BYTES) != 0) {
        rondo__socket_close(&fd);
        return RONDO_STATUS_OK;
    }
    h.traits[RONDO__TRAITS_BYTES - 1] = '\0';
    if (h.size != m->size || h.rank < 1 || h.rank >= m->size) {
        (void)snprintf(why, why_bytes, "rank %d is one of %d, rank 0 one of %d", (int)h.rank,
                       (int)h.size, (int)m->size);
        answer_rank(fd, ANSWER_REFUSED, why);
        rondo__socket_close(&fd);
        return fail_unlike(why);
    }
    if (why[0] == '\0' && strcmp(h.traits, wanted->traits) != 0) {
        name_difference(&h, wanted, why, why_bytes);  // all hear of it when they are there
    }
    int *at = h.is_data != 0 ? &m->data[h.rank] : &m->control[h.rank];
    *in_out_count += *at < 0 ? 1 : 0;
    rondo__socket_close(at);  // of an earlier try
    *at = fd;
    answer_rank(fd, ANSWER_NOTED, "");
    return RONDO_STATUS_OK;
}

static int32_t find_missing(const rondo__meeting *m) {
    int32_t rank = 1;
    while (rank < m->size - 1 && m->data[rank] >= 0 && m->control[rank] >= 0) {
        rank += 1;
    }
    return rank;
}

static rondo_status fail_missing(const rondo__meeting *m) {
    return RONDO_FAIL_AS(call_name, UNAVAILABLE,
                         "rank %d of %d did not come in time; do all ranks run this program, with "
                         "the same RONDO_MEETING?",
                         (int)find_missing(m), (int)m->size);
}

static rondo_status receive_all(rondo__meeting *m, int listening, const hello *wanted,
                                const rondo__patience *patience, char *why, size_t why_bytes) {
    const size_t all = 2 * (size_t)(m->size - 1);
    char what[80];
    for (size_t count = 0; count < all;) {
        const int fd = rondo__socket_accept(listening, get_sooner(patience->deadline_ns, tick_ns));
        if (fd >= 0) {
            RETURN_IF_ERROR(greet(m, fd, wanted, &count, why, why_bytes));
        } else if (rondo__clock_now_ns() >= patience->deadline_ns) {
            return why[0] != '\0' ? fail_unlike(why) : fail_missing(m);
        } else {
            (void)snprintf(what, sizeof what, "rank 0 of %d waits for rank %d", (int)m->size,
                           (int)find_missing(m));
            RETURN_IF_ERROR(tell(patience, what));
        }
    }
    return why[0] != '\0' ? fail_unlike(why) : RONDO_STATUS_OK;
}

static rondo_status hold_as_first(rondo__meeting *m, place *p, hello *wanted,
                                  const rondo__patience *patience) {
    int listening = -1;
    uint16_t port = 0;
    char why[160] = "";
    if (p->is_file && getrandom(p->token, TOKEN_BYTES, 0) != TOKEN_BYTES) {
        return RONDO_FAIL_AS(call_name, UNAVAILABLE, "the system gives no random numbers");
    }
    memcpy(wanted->token, p->token, TOKEN_BYTES);
    RETURN_IF_ERROR(rondo__socket_listen(p->port, p->is_file && p->is_near, &listening, &port));
    rondo_status status = RONDO_STATUS_OK;
    if (p->is_file) {
        p->port = port;
        (void)snprintf(p->host, sizeof p->host, "127.0.0.1");
        if (!p->is_near && gethostname(p->host, sizeof p->host - 1) != 0) {
            status = RONDO_FAIL_AS(call_name, UNAVAILABLE, "this machine has no name");
        }
        status = status == RONDO_STATUS_OK ? write_file(p) : status;
    }
    if (status == RONDO_STATUS_OK) {
        status = receive_all(m, listening, wanted, patience, why, sizeof why);
        if (p->is_file) {
            (void)unlink(p->path);
        }
    }
    for (int32_t r = 1; r < m->size && (status == RONDO_STATUS_OK || why[0] != '\0'); ++r) {
        const answer kind = status == RONDO_STATUS_OK ? ANSWER_GO : ANSWER_REFUSED;
        answer_rank(m->control[r], kind, why);
        answer_rank(m->data[r], kind, why);
    }
    rondo__socket_close(&listening);
    return status;
}

// ---- the others ---------------------------------------------------------------------------------

// One that is not rank 0, on its way to it.
typedef struct visitor {
    rondo__meeting *m;
    place *p;
    hello *h;
    const rondo__patience *patience;
    welcome said;  // by rank 0, at last
    char what[160];
} visitor;

// Waits until then for rank 0's message; *out_came is false if none came, or one of another sender.
static rondo_status hear(visitor *v, int fd, uint64_t until_ns, bool *out_came) {
    *out_came = false;
    while (!rondo__socket_is_ready(fd, get_sooner(until_ns, tick_ns))) {
        if (rondo__clock_now_ns() >= until_ns) {
            return RONDO_STATUS_OK;
        }
        RETURN_IF_ERROR(tell(v->patience, v->what));
    }
    *out_came =
        rondo__socket_receive_by(fd, &v->said, sizeof v->said, rondo__clock_now_ns() + hello_ns) &&
        v->said.magic == magic;
    v->said.why[sizeof v->said.why - 1] = '\0';
    return RONDO_STATUS_OK;
}

// One connection, its hello, and the word that it has come: a listener that says nothing is not
// rank 0, but one that has the port of an earlier job, perhaps.
static rondo_status visit(visitor *v, bool is_data, int *out_socket, bool *out_came) {
    const uint64_t until_ns = get_sooner(v->patience->deadline_ns, hello_ns);
    *out_came = false;
    v->h->is_data = is_data;
    *out_socket = rondo__socket_connect(v->p->host, v->p->port, until_ns);
    return *out_socket >= 0 && rondo__socket_send(*out_socket, v->h, sizeof *v->h)
               ? hear(v, *out_socket, until_ns, out_came)
               : RONDO_STATUS_OK;
}

// Both connections, then the word that all are there.
static rondo_status try_once(visitor *v, bool *out_met) {
    rondo__meeting *m = v->m;
    const uint64_t deadline_ns = v->patience->deadline_ns;
    *out_met = false;
    if (v->p->is_file && !read_file(v->p)) {
        return RONDO_STATUS_OK;
    }
    memcpy(v->h->token, v->p->token, TOKEN_BYTES);
    RETURN_IF_ERROR(visit(v, false, &m->control[0], out_met));
    if (*out_met && v->said.answer == ANSWER_NOTED) {
        RETURN_IF_ERROR(visit(v, true, &m->data[0], out_met));
    }
    for (int i = 0; i < 2 && *out_met && v->said.answer != ANSWER_REFUSED; ++i) {
        RETURN_IF_ERROR(hear(v, i == 0 ? m->control[0] : m->data[0], deadline_ns, out_met));
    }
    if (!*out_met) {
        rondo__socket_close(&m->control[0]);
        rondo__socket_close(&m->data[0]);
    }
    return RONDO_STATUS_OK;
}

static rondo_status hold_as_other(rondo__meeting *m, place *p, hello *h,
                                  const rondo__patience *patience) {
    const struct timespec pause = {.tv_nsec = 20000000};
    visitor v = {.m = m, .p = p, .h = h, .patience = patience};
    const char *where = p->is_file ? p->path : p->host;
    (void)snprintf(v.what, sizeof v.what, "rank %d of %d waits at %.100s", (int)m->rank,
                   (int)m->size, where);
    for (bool has_met = false; !has_met;) {
        RETURN_IF_ERROR(try_once(&v, &has_met));
        if (!has_met && rondo__clock_now_ns() >= patience->deadline_ns) {
            return RONDO_FAIL_AS(call_name, UNAVAILABLE,
                                 "rank %d of %d met nobody at %.120s in time; is rank 0 there, "
                                 "with the same RONDO_MEETING?",
                                 (int)m->rank, (int)m->size, where);
        }
        if (!has_met) {
            RETURN_IF_ERROR(tell(patience, v.what));
            (void)nanosleep(&pause, NULL);
        }
    }
    return v.said.answer == ANSWER_GO ? RONDO_STATUS_OK : fail_unlike(v.said.why);
}

// ---- both ---------------------------------------------------------------------------------------

rondo_status rondo__meeting_hold(const rondo_ranks *ranks, rondo__launcher_id launcher,
                                 const char *place_text, const char *traits,
                                 const rondo__patience *patience, rondo__meeting *out_meeting) {
    rondo__meeting m = {.rank = ranks->rank, .size = ranks->size};
    const size_t count = (size_t)ranks->size;
    hello h = {.magic = magic, .rank = m.rank, .size = m.size};
    place p = {0};
    *out_meeting = (rondo__meeting){0};
    (void)snprintf(h.traits, sizeof h.traits, "%s", traits);
    if (m.size > 1) {
        RETURN_IF_ERROR(choose_place(ranks, launcher, place_text, &p));
    }
    m.control = rondo__calloc(2 * count, sizeof *m.control);
    if (m.control == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    m.data = m.control + count;
    for (size_t i = 0; i < 2 * count; ++i) {
        m.control[i] = -1;
    }
    rondo_status status = RONDO_STATUS_OK;
    if (m.size > 1) {
        status =
            m.rank == 0 ? hold_as_first(&m, &p, &h, patience) : hold_as_other(&m, &p, &h, patience);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__meeting_end(&m);
        return status;
    }
    *out_meeting = m;
    return RONDO_STATUS_OK;
}

void rondo__meeting_end(rondo__meeting *meeting) {
    for (int32_t r = 0; meeting->control != NULL && r < meeting->size; ++r) {
        rondo__socket_close(&meeting->control[r]);
        rondo__socket_close(&meeting->data[r]);
    }
    rondo__free(meeting->control);
    *meeting = (rondo__meeting){0};
}
