// collective/sockets.c — see sockets.h.
//
// A machine that vanishes sends nothing, so the system asks after two seconds of silence, and gives
// a connection up after five more.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "collective/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"

static void set_option(int fd, int level, int name, int value) {
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

static void set_options(int fd) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 2);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 7000);
}

void rondo__socket_close(int *in_out_socket) {
    if (*in_out_socket >= 0) {
        (void)close(*in_out_socket);
        *in_out_socket = -1;
    }
}

rondo_status rondo__socket_listen(uint16_t port, bool is_local, int *out_socket,
                                  uint16_t *out_port) {
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t bytes = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, SOMAXCONN) != 0 || getsockname(fd, (struct sockaddr *)&address, &bytes) != 0) {
        const int code = errno;
        rondo__socket_close(&fd);
        return RONDO_FAIL_AS("rondo_communicator_create", UNAVAILABLE,
                             "rank 0 cannot listen at port %u: %s; name another in "
                             "RONDO_MEETING, or MASTER_PORT",
                             (unsigned)port, strerror(code));
    }
    *out_socket = fd;
    *out_port = ntohs(address.sin_port);
    return RONDO_STATUS_OK;
}

// Milliseconds until then, for poll.
static int get_left(uint64_t deadline_ns) {
    const uint64_t now = rondo__clock_now_ns();
    const uint64_t left = deadline_ns > now ? (deadline_ns - now) / 1000000 + 1 : 0;
    return left < 3600000 ? (int)left : 3600000;
}

// Whether something of `events` happened until then.
static bool wait_for(int fd, short events, uint64_t deadline_ns) {
    struct pollfd polled = {.fd = fd, .events = events};
    int count;
    do {
        count = poll(&polled, 1, get_left(deadline_ns));
    } while ((count < 0 && errno == EINTR) || (count == 0 && rondo__clock_now_ns() < deadline_ns));
    return count > 0;
}

bool rondo__socket_is_ready(int fd, uint64_t deadline_ns) {
    return wait_for(fd, POLLIN, deadline_ns);
}

int rondo__socket_accept(int listening, uint64_t deadline_ns) {
    if (!wait_for(listening, POLLIN, deadline_ns)) {
        return -1;
    }
    const int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        set_options(fd);
    }
    return fd;
}

static bool finish_connect(int fd, uint64_t deadline_ns) {
    int code = 0;
    socklen_t bytes = sizeof code;
    return wait_for(fd, POLLOUT, deadline_ns) &&
           getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &bytes) == 0 && code == 0;
}

int rondo__socket_connect(const char *host, uint16_t port, uint64_t deadline_ns) {
    const struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];
    (void)snprintf(service, sizeof service, "%u", (unsigned)port);
    if (getaddrinfo(host, service, &wanted, &found) != 0) {
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_there = fd >= 0 && (connect(fd, found->ai_addr, found->ai_addrlen) == 0 ||
                                (errno == EINPROGRESS && finish_connect(fd, deadline_ns)));
    freeaddrinfo(found);
    is_there = is_there && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0;
    if (!is_there) {
        rondo__socket_close(&fd);
    } else {
        set_options(fd);
    }
    return fd;
}

bool rondo__socket_send(int fd, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        const ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

bool rondo__socket_receive_by(int fd, void *out_bytes, size_t count, uint64_t deadline_ns) {
    char *at = out_bytes;
    while (count > 0) {
        if (deadline_ns != UINT64_MAX && !wait_for(fd, POLLIN, deadline_ns)) {
            return false;
        }
        const ssize_t got = recv(fd, at, count, 0);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        count -= (size_t)got;
    }
    return true;
}

bool rondo__socket_receive(int fd, void *out_bytes, size_t count) {
    return rondo__socket_receive_by(fd, out_bytes, count, UINT64_MAX);
}
