// profile/chunk.c — see chunk.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/chunk.h"

#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"

enum { ROOM_BYTES = RONDO__PROFILE_CHUNK_BYTES - (int)sizeof(rondo__profile_chunk) };

void *rondo__profile_take(size_t bytes) {
    rondo_error saved;
    rondo__error_save(&saved);
    const int64_t before = rondo__memory_get_thread_bytes();
    void *address = rondo__malloc(bytes);
    rondo__memory_set_thread_bytes(before);
    rondo__error_restore(&saved);
    return address;
}

void rondo__profile_give_back(void *address) {
    const int64_t before = rondo__memory_get_thread_bytes();
    rondo__free(address);
    rondo__memory_set_thread_bytes(before);
}

static void *add_bytes(rondo__profile_list *list, size_t bytes) {
    rondo__profile_chunk *chunk = list->last;
    if (chunk == NULL || chunk->used + bytes > ROOM_BYTES) {
        chunk = rondo__profile_take(RONDO__PROFILE_CHUNK_BYTES);
        if (chunk == NULL) {
            return NULL;
        }
        chunk->next = NULL;
        chunk->used = 0;
        if (list->last != NULL) {
            list->last->next = chunk;
        } else {
            list->first = chunk;
        }
        list->last = chunk;
    }
    void *room = chunk->bytes + chunk->used;
    chunk->used += bytes;
    list->count += 1;
    return room;
}

void *rondo__profile_list_add(rondo__profile_list *list, size_t bytes) {
    return add_bytes(list, rondo__align_up(bytes, (size_t)8));
}

const char *rondo__profile_list_add_text(rondo__profile_list *list, const char *text) {
    const size_t length = strnlen(text, ROOM_BYTES - 1);
    char *copy = add_bytes(list, length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

void rondo__profile_chunks_free(rondo__profile_chunk *first) {
    while (first != NULL) {
        rondo__profile_chunk *next = first->next;
        rondo__profile_give_back(first);
        first = next;
    }
}
