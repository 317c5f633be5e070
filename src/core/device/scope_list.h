// device/scope_list.h — open scopes: how they are listed, found and closed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"
#include "rondo/control.h"

typedef struct rondo__scope rondo__scope;

struct rondo__scope {
    rondo__scope *next;  // guarded by device->capture_list_lock
    uint64_t id;
    rondo_device *device;     // kept alive by the parent stream
    rondo__capture *capture;  // NULL: a capture that no graph began
    rondo_stream *parent;     // borrowed
    rondo_stream *body;       // owned; records while a body is open; NULL before the first
    char *label_path;         // open on the parent where the node stands; NULL: none
    rondo__conditional *conditional;
    uint32_t open_branch;
    bool is_body_open;
    bool was_entered[];  // by branch
};

extern const char *const rondo__scope_kind_names[];

// Enters a scope that has just been made; its id is set. Threads: safe.
void rondo__scope_list(rondo__scope *scope);

// The latest open scope with this id (if not 0), capture (if not NULL) and parent (if not NULL).
// Threads: safe.
rondo__scope *rondo__scope_find(rondo_device *device, uint64_t id, const rondo__capture *capture,
                                const rondo_stream *parent);
// A scope inside an open body of this one.  Threads: safe.
rondo__scope *rondo__scope_find_inner(const rondo__scope *outer);
// The scope that the program means.
//
// Errors:    INVALID, STATE (it is over), LOST.
RONDO_MUST_USE rondo_status rondo__scope_get(rondo_scope handle, const char *call,
                                             rondo__scope **out_scope);

// The stream that the program used last, as far as the scope goes.
rondo_stream *rondo__scope_get_place(const rondo__scope *scope);
// Breaks the capture, if there is one: this thread's latest record is the cause and stays. It came
// to light on `place`.
void rondo__scope_break_at(rondo__capture *capture, rondo_stream *place);

// The body has ended, well or badly. Label scopes that were left open in it end with it.
void rondo__scope_close_body(rondo__scope *scope);
// Around the function of a body: its stream stays until that has returned, though the function may
// have ended the capture.
void rondo__scope_hold_body(rondo_stream *body);
void rondo__scope_let_go_of_body(rondo_stream *body);
// Takes a scope with no open body off the list and frees it.
void rondo__scope_free(rondo__scope *scope);
// Closes the scopes of the capture that hang on the stream (NULL: all), what is inside first. The
// error record stays as it was.
void rondo__scopes_close(rondo__capture *capture, const rondo_stream *stream);
// The same for all that hang on the stream, in captures of the program's own, too.
void rondo__scopes_close_on(const rondo_stream *stream);

// Closes the scopes of the capture that are still open, bodies included, and breaks the capture if
// there were any: it is about to end with a scope in it.
//
// Threads:   the thread that ends the capture.
void rondo__scopes_refuse_open(rondo__capture *capture);

// `call` gives the capture up: where a body is open, the report will say that it happened there.
void rondo__scopes_note_place(rondo__capture *capture, const char *call);
// Closes them because the capture is given up. The error record stays as it was.
void rondo__scopes_roll_back(rondo__capture *capture);

// Closes the scope with its open body and the scopes inside that, and breaks its capture; this
// thread's latest record is the cause and stays.
void rondo__scope_abandon(rondo_scope scope);
