// backend/exempt.h — calls that captures forbid to programs, and the library must make.
//
// A capture in global mode breaks when any thread asks the driver for memory, waits or queries. A
// pool must ask all the same when the capture itself wants a block, and what is given back must be
// waited for: CUDA has a thread mode for just that. Between enter and leave the backends use it, so
// that the call breaks no capture.
#ifndef RONDO_BACKEND_EXEMPT_H
#define RONDO_BACKEND_EXEMPT_H

#include <stdbool.h>

// Enters and leaves nest.  Threads: of the calling thread only.
void rondo__exempt_enter(void);
void rondo__exempt_leave(void);
bool rondo__exempt_is_entered(void);

#endif  // RONDO_BACKEND_EXEMPT_H
