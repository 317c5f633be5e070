// collective/rank_watch.c — the thread that listens to the other ranks, and what they agree on. See
// communicator.h.
//
// Ranks other than 0 hear of each other through rank 0. A connection that ends without goodbye is a
// rank that has ended: the system closes it whatever the reason.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/thread.h"
#include "collective/communicator.h"
#include "collective/sockets.h"
#include "collective/transport.h"

typedef enum message_kind {
    MESSAGE_ANNOUNCE,  // to rank 0: in run `number`, `hash` and the lines
    MESSAGE_ASK,       // of rank 0: what about run `number`?
    MESSAGE_GO,        // of rank 0: run `number` is the same everywhere
    MESSAGE_LOST,      // the text says why
    MESSAGE_LEAVE,     // after `number` runs
} message_kind;

typedef struct message {
    uint32_t kind;
    int32_t rank;  // that it is about
    uint32_t is_problem;
    uint32_t bytes;  // of text, with its end
    uint64_t number;
    uint64_t hash;
} message;

static void send_to(rondo_communicator *c, int32_t rank, message m, const char *text) {
    const int fd = c->meeting.control[rank];
    m.bytes = text != NULL ? (uint32_t)strlen(text) + 1 : 0;
    // One that cannot be reached is noticed by its connection.
    if (fd >= 0 && rondo__socket_send(fd, &m, sizeof m) && m.bytes > 0) {
        (void)rondo__socket_send(fd, text, m.bytes);
    }
}

// Of rank 0 to all, of the others to rank 0.
static void send_to_others(rondo_communicator *c, message m, const char *text) {
    for (int32_t r = 0; r < c->meeting.size; ++r) {
        if (r != m.rank || m.kind != MESSAGE_LEAVE) {
            send_to(c, r, m, text);
        }
    }
}

static void wake_watch(rondo_communicator *c) {
    const char byte = 0;
    (void)!write(c->wake[1], &byte, 1);
}

// Under the lock. What is so from a later run on does not end the one at hand.
static void lose(rondo_communicator *c, bool is_problem, uint64_t from_run, const char *why) {
    if (c->has_loss) {
        return;
    }
    (void)snprintf(c->loss, sizeof c->loss, "%s", why);
    c->has_loss = true;
    c->has_problem = is_problem;
    c->loss_run = from_run;
    send_to_others(c, (message){.kind = MESSAGE_LOST, .is_problem = is_problem, .number = from_run},
                   why);
    rondo__watch_apply_loss(c);
}

void rondo__watch_apply_loss(rondo_communicator *c) {
    if (c->has_loss && c->run >= c->loss_run && !atomic_load(&c->is_lost)) {
        atomic_store(&c->is_lost, true);
        (void)pthread_cond_broadcast(&c->changed);
        wake_watch(c);
    }
}

void rondo__communicator_lose(rondo_communicator *communicator, const char *why) {
    (void)pthread_mutex_lock(&communicator->lock);
    lose(communicator, false, communicator->run, why);
    (void)pthread_mutex_unlock(&communicator->lock);
}

// ---- agreement, at rank 0 -----------------------------------------------------------------------

static const rondo__announcement *find_said(const rondo__rank_record *record, uint64_t run) {
    for (size_t i = 0; i < 2; ++i) {
        if (record->said[i].run == run) {
            return &record->said[i];
        }
    }
    return NULL;
}

static void keep_said(rondo_communicator *c, int32_t rank, uint64_t run, uint64_t hash,
                      const char *text) {
    rondo__announcement *said = c->records[rank].said;
    rondo__announcement *oldest = said[0].run <= said[1].run ? &said[0] : &said[1];
    if (find_said(&c->records[rank], run) == NULL) {
        rondo__free(oldest->text);
        *oldest = (rondo__announcement){run, hash, rondo__strdup(text)};
    }
}

static const char *get_line(const char *text, size_t index, int *out_length) {
    for (; index > 0 && *text != '\0'; --index) {
        text += strcspn(text, "\n");
        text += *text == '\n' ? 1 : 0;
    }
    *out_length = (int)strcspn(text, "\n");
    return text;
}

// Names the first collective in which rank 0 and `rank` differ.
static void tell_difference(rondo_communicator *c, uint64_t run, int32_t rank) {
    const rondo__announcement *a = find_said(&c->records[0], run);
    const rondo__announcement *b = find_said(&c->records[rank], run);
    const char *first = a->text != NULL ? a->text : "";
    const char *second = b->text != NULL ? b->text : "";
    char why[RONDO__LOSS_BYTES];
    int length_a;
    int length_b;
    size_t at = 0;
    const char *line_a = get_line(first, at, &length_a);
    const char *line_b = get_line(second, at, &length_b);
    while (length_a > 0 && length_a == length_b && memcmp(line_a, line_b, (size_t)length_a) == 0) {
        at += 1;
        line_a = get_line(first, at, &length_a);
        line_b = get_line(second, at, &length_b);
    }
    (void)snprintf(
        why, sizeof why,
        "the ranks differ in run %llu, line %zu: rank 0 has %.*s, rank %d has "
        "%.*s; all ranks must run the same program",
        (unsigned long long)run, at + 1, length_a > 0 ? (length_a < 56 ? length_a : 56) : 4,
        length_a > 0 ? line_a : "none", (int)rank,
        length_b > 0 ? (length_b < 56 ? length_b : 56) : 4, length_b > 0 ? line_b : "none");
    lose(c, true, run, why);
}

static void answer(rondo_communicator *c, uint64_t run);

// Looks whether all have said what they do in `run`, and asks those that have not. Under the lock.
static void decide(rondo_communicator *c, uint64_t run) {
    bool is_complete = true;
    for (int32_t r = 0; r < c->meeting.size; ++r) {
        rondo__rank_record *record = &c->records[r];
        if (find_said(record, run) == NULL && record->asked_run != run) {
            record->asked_run = run;
            if (r == 0) {
                answer(c, run);
            } else {
                send_to(c, r, (message){.kind = MESSAGE_ASK, .number = run}, NULL);
            }
        }
        is_complete = is_complete && find_said(record, run) != NULL;
    }
    if (!is_complete || atomic_load(&c->is_lost) || c->agreed_run >= run) {
        return;
    }
    const uint64_t hash = find_said(&c->records[0], run)->hash;
    for (int32_t r = 1; r < c->meeting.size; ++r) {
        if (find_said(&c->records[r], run)->hash != hash) {
            tell_difference(c, run, r);
            return;
        }
    }
    c->agreed_run = run;
    (void)pthread_cond_broadcast(&c->changed);
    send_to_others(c, (message){.kind = MESSAGE_GO, .number = run}, NULL);
}

void rondo__watch_announce(rondo_communicator *c, uint64_t run, uint64_t hash, const char *text) {
    if (c->meeting.rank == 0) {
        keep_said(c, 0, run, hash, text);
        decide(c, run);
    } else {
        send_to(c, 0,
                (message){
                    .kind = MESSAGE_ANNOUNCE, .rank = c->meeting.rank, .number = run, .hash = hash},
                text);
    }
}

// What this rank does in `run`, as soon as it is known: it stays as it is where nothing changes.
static void answer(rondo_communicator *c, uint64_t run) {
    if (c->run < run) {
        c->asked_run = run;  // the run says it when it begins
        return;
    }
    const rondo__announcement *said = c->changed_run <= run ? &c->now : &c->before;
    const char *text = said->text != NULL ? said->text : "";
    if (c->meeting.rank == 0) {
        keep_said(c, 0, run, said->hash, text);
    } else {
        rondo__watch_announce(c, run, said->hash, text);
    }
}

// ---- what comes in ------------------------------------------------------------------------------

static void note_leave(rondo_communicator *c, const message *m) {
    char why[RONDO__LOSS_BYTES];
    c->records[m->rank].has_left = true;
    c->records[m->rank].left_runs = m->number;
    if (c->meeting.rank == 0) {
        send_to_others(c, *m, NULL);
    }
    if (c->run > m->number) {
        (void)snprintf(why, sizeof why, RONDO__HAS_LEFT, (int)m->rank, (int)c->meeting.size,
                       (unsigned long long)m->number, (unsigned long long)c->run);
        lose(c, false, m->number + 1, why);
    }
}

static void handle(rondo_communicator *c, const message *m, const char *text) {
    switch ((message_kind)m->kind) {
        case MESSAGE_ANNOUNCE:
            keep_said(c, m->rank, m->number, m->hash, text);
            decide(c, m->number);
            break;
        case MESSAGE_ASK:
            answer(c, m->number);
            break;
        case MESSAGE_GO:
            c->agreed_run = m->number > c->agreed_run ? m->number : c->agreed_run;
            (void)pthread_cond_broadcast(&c->changed);
            break;
        case MESSAGE_LOST:
            lose(c, m->is_problem != 0, m->number, text);
            break;
        case MESSAGE_LEAVE:
            note_leave(c, m);
            break;
    }
}

static void note_end(rondo_communicator *c, int32_t rank) {
    char why[RONDO__LOSS_BYTES];
    rondo__socket_close(&c->meeting.control[rank]);
    if (!c->records[rank].has_left && !c->is_closing) {
        (void)snprintf(why, sizeof why,
                       "rank %d of %d has ended, or its machine is gone; look at what it said, and "
                       "start all ranks again from the last checkpoint",
                       (int)rank, (int)c->meeting.size);
        lose(c, false, 0, why);
    }
}

// Takes one message of `rank`.
static void take(rondo_communicator *c, int32_t rank) {
    message m;
    char text[RONDO__COLLECTIVES_TEXT_BYTES + 1] = "";
    const int fd = c->meeting.control[rank];
    const bool has_come = rondo__socket_receive(fd, &m, sizeof m) &&
                          m.bytes <= RONDO__COLLECTIVES_TEXT_BYTES && m.rank >= 0 &&
                          m.rank < c->meeting.size && rondo__socket_receive(fd, text, m.bytes);
    (void)pthread_mutex_lock(&c->lock);
    if (has_come) {
        handle(c, &m, text);
    } else {
        note_end(c, rank);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static bool is_closing(rondo_communicator *c) {
    (void)pthread_mutex_lock(&c->lock);
    const bool is = c->is_closing;
    (void)pthread_mutex_unlock(&c->lock);
    return is;
}

static void *run_watch(void *argument) {
    rondo_communicator *c = argument;
    const int32_t size = c->meeting.size;
    struct pollfd *polled = c->polled;
    bool was_interrupted = false;
    while (!is_closing(c)) {
        for (int32_t r = 0; r < size; ++r) {
            polled[r] = (struct pollfd){.fd = c->meeting.control[r], .events = POLLIN};
        }
        polled[size] = (struct pollfd){.fd = c->wake[0], .events = POLLIN};
        if (poll(polled, (nfds_t)size + 1, -1) < 0) {
            continue;
        }
        char bytes[64];
        if (polled[size].revents != 0) {
            (void)!read(c->wake[0], bytes, sizeof bytes);
        }
        for (int32_t r = 0; r < size; ++r) {
            if (polled[r].revents != 0) {
                take(c, r);
            }
        }
        if (atomic_load(&c->is_lost) && !was_interrupted) {
            was_interrupted = true;
            c->transport->interrupt(c);
        }
    }
    return NULL;
}

rondo_status rondo__watch_start(rondo_communicator *c) {
    c->polled = rondo__calloc((size_t)c->meeting.size + 1, sizeof *c->polled);
    if (c->polled == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    if (pipe2(c->wake, O_CLOEXEC) != 0) {
        c->wake[0] = c->wake[1] = -1;
        return RONDO_FAIL_AS("rondo_communicator_create", NO_MEMORY, "no pipe: %s",
                             strerror(errno));
    }
    RETURN_IF_ERROR(rondo__thread_start("rondo-ranks", run_watch, c, &c->watch));
    c->has_watch = true;
    return RONDO_STATUS_OK;
}

void rondo__watch_leave(rondo_communicator *c) {
    (void)pthread_mutex_lock(&c->lock);
    c->is_closing = true;
    send_to_others(c, (message){.kind = MESSAGE_LEAVE, .rank = c->meeting.rank, .number = c->run},
                   NULL);
    (void)pthread_mutex_unlock(&c->lock);
}

void rondo__watch_stop(rondo_communicator *c) {
    if (c->has_watch) {
        wake_watch(c);
        (void)pthread_join(c->watch, NULL);
    }
    for (size_t i = 0; i < 2; ++i) {
        rondo__socket_close(&c->wake[i]);
    }
    rondo__free(c->polled);
}
