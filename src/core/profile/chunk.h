// profile/chunk.h — lists that grow without moving what they hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { RONDO__PROFILE_CHUNK_BYTES = 64 << 10 };

typedef struct rondo__profile_chunk {
    struct rondo__profile_chunk *next;
    size_t used;  // bytes
    _Alignas(16) unsigned char bytes[];
} rondo__profile_chunk;

typedef struct rondo__profile_list {
    rondo__profile_chunk *first;
    rondo__profile_chunk *last;
    size_t count;
} rondo__profile_list;

// Memory that belongs to no plan or budget of the thread that happens to need it, and whose want
// leaves no error record: NULL then.
void *rondo__profile_take(size_t bytes);
void rondo__profile_give_back(void *address);

// Room for one more of so many bytes, at most a chunk's, all of one list alike; NULL: no memory.
void *rondo__profile_list_add(rondo__profile_list *list, size_t bytes);
// A copy of a text; NULL: no memory. What is longer than a chunk is cut.
const char *rondo__profile_list_add_text(rondo__profile_list *list, const char *text);
void rondo__profile_chunks_free(rondo__profile_chunk *first);
