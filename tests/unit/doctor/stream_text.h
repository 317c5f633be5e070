// unit/doctor/stream_text.h — streams of calls from a text, for tests of the doctor.
//
// A step is items with blanks between: CALL[:FIELD]..., where CALL is a driver call or one of
// L (cuLaunchKernel), H and D (cuMemcpyHtoDAsync, cuMemcpyDtoHAsync), W (cuStreamSynchronize), and
// FIELD is
//
//   sN  stream (7)      nNAME  kernel        gN  grid (1)       oN  object      bN  bytes
//   wV  an argument word: a number; # the step's number; @ one of two addresses; ? any number;
//       % a number behind a byte and what nobody writes
//       !, & and ~ what is left in the host's memory: small and large addresses of its heap; or a
//       number, too
//   G   the grid is 2 in two of the steps    B   so are the bytes, 8
//   K   another kernel in two of the steps   A   one of two addresses is the source
//   U   the second argument word belongs to a struct; the device's memory is known
//   E   the heap of the host is known, in which ! lies
//   P   from pageable memory                 C   inside a host function    dN  N us long
//   pN  N us later
//
// A call takes 2 us, a wait 20 us, and 1 us lies between two.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "doctor/analysis/doctor_log.h"

// Adds `count` steps. Fails the test when the text cannot be read.
void stream_add_steps(rondo__doctor_log *log, const char *step, int count);

// Adds device times: `count` works of this length, with this pause before each.
void stream_add_works(rondo__doctor_log *log, const char *name, int count, uint64_t length_ns,
                      uint64_t pause_ns);

// The number of a text, which is added when it is new.
uint32_t stream_add_text(rondo__doctor_log *log, const char *text);
