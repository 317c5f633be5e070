// collective/sockets.h — connections between ranks: whole messages, or a failure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/status.h"

// Listens at `port` (0: any that is free) of this machine alone, or of all its networks.
//
// Errors:    UNAVAILABLE (the port is taken), NO_MEMORY.
// Ownership: the caller closes *out_socket.
// Threads:   safe, as all below.
RONDO_MUST_USE rondo_status rondo__socket_listen(uint16_t port, bool is_local, int *out_socket,
                                                 uint16_t *out_port);
// Waits for the next that comes, until `deadline_ns`; -1: none came.
int rondo__socket_accept(int listening, uint64_t deadline_ns);
// Whether something can be read from it, or it has ended, until then.
bool rondo__socket_is_ready(int fd, uint64_t deadline_ns);
// Connects once; -1: no process listens there.
int rondo__socket_connect(const char *host, uint16_t port, uint64_t deadline_ns);
void rondo__socket_close(int *in_out_socket);  // -1 is fine

// All bytes, or false: the other side is gone. Signals do not end them.
bool rondo__socket_send(int fd, const void *bytes, size_t count);
bool rondo__socket_receive(int fd, void *out_bytes, size_t count);
// The same until `deadline_ns`.
bool rondo__socket_receive_by(int fd, void *out_bytes, size_t count, uint64_t deadline_ns);
