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

enum { TOKEN_BYTES = 16, HOST_BYTES = 256, HELLO_NS = 2000000000 };
static const uint32_t magic = 0x4f444e52;
static const char call_name[] = "rondo_communicator_create";

typedef struct hello {
    uint32_t magic;
    uint32_t is_data;
    int32_t rank, size;
    uint8_t token[TOKEN_BYTES];
    char traits[RONDO__TRAITS_BYTES];
} hello;

typedef struct welcome {
    uint32_t magic;
    uint32_t is_refused;
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
    char master[HOST_BYTES];
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
        (void)snprintf(p->path, sizeof p->path, "%s", p->is_file ? text : "");
        return RONDO_STATUS_OK;
    }
    if (!p->is_near) {
        return RONDO_FAIL_AS(call_name, INVALID,
                             "the ranks are on several machines, and %s does not say where they "
                             "can meet; set RONDO_MEETING to HOST:PORT of rank 0's machine",
                             ranks->launcher);
    }
    p->is_file = true;
    rondo__launcher_name_file(launcher, p->path, sizeof p->path);
    return RONDO_STATUS_OK;
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

// ---- rank 0 -------------------------------------------------------------------------------------

static rondo_status refuse(int fd, const hello *h, const hello *wanted) {
    welcome answer = {.magic = magic, .is_refused = 1};
    (void)snprintf(answer.why, sizeof answer.why,
                   "rank %d is one of %d and has %.47s, rank 0 one of %d and has %.47s",
                   (int)h->rank, (int)h->size, h->traits, (int)wanted->size, wanted->traits);
    (void)rondo__socket_send(fd, &answer, sizeof answer);
    return RONDO_FAIL_AS(call_name, INVALID, "the ranks do not fit together: %s", answer.why);
}

// Takes one connection, if it is of a rank.
static rondo_status greet(rondo__meeting *m, int fd, const hello *wanted, size_t *in_out_count) {
    hello h;
    if (!rondo__socket_receive_by(fd, &h, sizeof h, rondo__clock_now_ns() + HELLO_NS) ||
        h.magic != magic || memcmp(h.token, wanted->token, TOKEN_BYTES) != 0) {
        rondo__socket_close(&fd);
        return RONDO_STATUS_OK;
    }
    h.traits[RONDO__TRAITS_BYTES - 1] = '\0';
    if (h.size != m->size || strcmp(h.traits, wanted->traits) != 0 || h.rank < 1 ||
        h.rank >= m->size) {
        const rondo_status status = refuse(fd, &h, wanted);
        rondo__socket_close(&fd);
        return status;
    }
    int *at = h.is_data != 0 ? &m->data[h.rank] : &m->control[h.rank];
    *in_out_count += *at < 0 ? 1 : 0;
    rondo__socket_close(at);  // of an earlier try
    *at = fd;
    return RONDO_STATUS_OK;
}

static rondo_status fail_missing(const rondo__meeting *m) {
    int32_t rank = 1;
    while (rank < m->size - 1 && m->data[rank] >= 0 && m->control[rank] >= 0) {
        rank += 1;
    }
    return RONDO_FAIL_AS(call_name, UNAVAILABLE,
                         "rank %d of %d did not come in time; do all ranks run this program, with "
                         "the same RONDO_MEETING?",
                         (int)rank, (int)m->size);
}

static rondo_status receive_all(rondo__meeting *m, int listening, const hello *wanted,
                                uint64_t deadline_ns) {
    const welcome answer = {.magic = magic};
    const size_t all = 2 * (size_t)(m->size - 1);
    for (size_t count = 0; count < all;) {
        const int fd = rondo__socket_accept(listening, deadline_ns);
        if (fd < 0 && rondo__clock_now_ns() >= deadline_ns) {
            return fail_missing(m);
        }
        if (fd >= 0) {
            RETURN_IF_ERROR(greet(m, fd, wanted, &count));
        }
    }
    for (int32_t r = 1; r < m->size; ++r) {  // one that is gone is noticed later
        (void)rondo__socket_send(m->control[r], &answer, sizeof answer);
        (void)rondo__socket_send(m->data[r], &answer, sizeof answer);
    }
    return RONDO_STATUS_OK;
}

static rondo_status hold_as_first(rondo__meeting *m, place *p, hello *wanted,
                                  uint64_t deadline_ns) {
    int listening = -1;
    uint16_t port = 0;
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
        status = receive_all(m, listening, wanted, deadline_ns);
        if (p->is_file) {
            (void)unlink(p->path);
        }
    }
    rondo__socket_close(&listening);
    return status;
}

// ---- the others ---------------------------------------------------------------------------------

// One connection, and its hello; -1: rank 0 is not there yet.
static int visit(const place *p, hello *h, bool is_data, uint64_t deadline_ns) {
    int fd = rondo__socket_connect(p->host, p->port, deadline_ns);
    h->is_data = is_data;
    if (fd >= 0 && !rondo__socket_send(fd, h, sizeof *h)) {
        rondo__socket_close(&fd);
    }
    return fd;
}

// Whether rank 0 has answered, and if so, what.
static bool hear(int fd, uint64_t deadline_ns, welcome *out_answer) {
    const bool has_come = rondo__socket_receive_by(fd, out_answer, sizeof *out_answer, deadline_ns);
    out_answer->why[sizeof out_answer->why - 1] = '\0';
    return has_come && out_answer->magic == magic;
}

static bool try_once(rondo__meeting *m, place *p, hello *h, uint64_t deadline_ns,
                     welcome *out_answer) {
    out_answer->is_refused = 0;
    if (p->is_file && !read_file(p)) {
        return false;
    }
    memcpy(h->token, p->token, TOKEN_BYTES);
    m->control[0] = visit(p, h, false, deadline_ns);
    m->data[0] = m->control[0] >= 0 ? visit(p, h, true, deadline_ns) : -1;
    const bool is_good = m->data[0] >= 0 && hear(m->control[0], deadline_ns, out_answer) &&
                         (out_answer->is_refused != 0 || hear(m->data[0], deadline_ns, out_answer));
    if (!is_good) {
        rondo__socket_close(&m->control[0]);
        rondo__socket_close(&m->data[0]);
    }
    return is_good;
}

static rondo_status hold_as_other(rondo__meeting *m, place *p, hello *h, uint64_t deadline_ns) {
    const struct timespec pause = {.tv_nsec = 20000000};
    welcome answer = {0};
    while (!try_once(m, p, h, deadline_ns, &answer)) {
        if (rondo__clock_now_ns() >= deadline_ns) {
            return RONDO_FAIL_AS(call_name, UNAVAILABLE,
                                 "rank %d of %d met nobody at %.120s in time; is rank 0 there, "
                                 "with the same RONDO_MEETING?",
                                 (int)m->rank, (int)m->size, p->is_file ? p->path : p->host);
        }
        (void)nanosleep(&pause, NULL);
    }
    return answer.is_refused == 0
               ? RONDO_STATUS_OK
               : RONDO_FAIL_AS(call_name, INVALID, "the ranks do not fit together: %s", answer.why);
}

// ---- both ---------------------------------------------------------------------------------------

rondo_status rondo__meeting_hold(const rondo_ranks *ranks, rondo__launcher_id launcher,
                                 const char *place_text, const char *traits, uint64_t deadline_ns,
                                 rondo__meeting *out_meeting) {
    rondo__meeting m = {.rank = ranks->rank, .size = ranks->size};
    const size_t count = (size_t)ranks->size;
    hello h = {.magic = magic, .rank = m.rank, .size = m.size};
    place p = {0};
    *out_meeting = (rondo__meeting){0};
    (void)snprintf(h.traits, sizeof h.traits, "%.47s", traits);
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
        status = m.rank == 0 ? hold_as_first(&m, &p, &h, deadline_ns)
                             : hold_as_other(&m, &p, &h, deadline_ns);
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
