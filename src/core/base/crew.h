// base/crew.h — plain work on large memory, shared among threads: what loading a model and making
// a plan do with weights.
//
// A caller with such work opens a scope on its thread. The first large piece of work in the scope
// starts the threads, the crew; they sleep between two pieces and end with the scope. Outside of a
// scope, for little work, and if threads cannot be started, the caller does all of it. The result
// is the same, because each item is made by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// Opens a scope on this thread, and closes it. Scopes nest; the outermost one counts.
void rondo__crew_enter(void);
void rondo__crew_leave(void);

// Calls `work` for all items from 0 to `count` - 1, a range at a time, from several threads at
// once. It returns when all of them are done.
//
// item_bytes  about how many bytes are read and written for an item; it decides how many are worth
//             a thread.
// work        makes the items from `first` to `last` - 1. It touches memory that is there: it
//             allocates nothing, calls no driver, writes no error record, and calls no crew.
//
// Threads:    as many as host work may use (base/thread_count.h), sixteen at most, the caller
//             included.
void rondo__crew_run(size_t count, size_t item_bytes,
                     void (*work)(void *data, size_t first, size_t last), void *data);

// memcpy by the crew.
void rondo__crew_copy(void *to, const void *from, size_t bytes);
