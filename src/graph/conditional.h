// graph/conditional.h — open scopes, for those who begin and end captures.
#ifndef RONDO_GRAPH_CONDITIONAL_H
#define RONDO_GRAPH_CONDITIONAL_H

#include "capture/capture.h"
#include "rondo/control.h"

// Closes the scopes of the capture that are still open, bodies included, and breaks the capture if
// there were any: it is about to end with a scope in it.
//
// Threads:   the thread that ends the capture.
void rondo__scopes_refuse_open(rondo__capture *capture);

// `call` gives the capture up: where a body is open, the report will say that it happened there.
void rondo__scopes_note_place(rondo__capture *capture, const char *call);
// Closes them because the capture is given up. The error record stays as it was.
void rondo__scopes_roll_back(rondo__capture *capture);

// What every form of a predicate, and of a switch, has to be; `call` is what messages name.
//
// Errors:    INVALID.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__scope_check_predicate(const void *predicate, const char *call);
RONDO_MUST_USE rondo_status rondo__scope_check_switch(uint32_t branch_count, const char *call);

// Closes the scope with its open body and the scopes inside that, and breaks its capture; this
// thread's latest record is the cause and stays.
void rondo__scope_abandon(rondo_scope scope);

#endif  // RONDO_GRAPH_CONDITIONAL_H
