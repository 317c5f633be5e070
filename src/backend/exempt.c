// backend/exempt.c — see exempt.h.
#include "backend/exempt.h"

static _Thread_local int depth;

void rondo__exempt_enter(void) {
    ++depth;
}

void rondo__exempt_leave(void) {
    --depth;
}

bool rondo__exempt_is_entered(void) {
    return depth > 0;
}
