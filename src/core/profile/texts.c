// profile/texts.c — see texts.h.
// SPDX-License-Identifier: Apache-2.0
#include "profile/texts.h"

#include <string.h>

#include "base/hash.h"

enum { FIRST_COUNT = 64 };

static uint32_t find_slot(const rondo__profile_texts *texts, const char *text) {
    const uint32_t mask = texts->slot_count - 1;
    uint32_t slot = (uint32_t)rondo__hash64(0, text, strlen(text)) & mask;
    while (texts->slots[slot] != 0 && strcmp(texts->texts[texts->slots[slot] - 1], text) != 0) {
        slot = (slot + 1) & mask;
    }
    return slot;
}

// Room for twice as many texts, and slots for four times as many.
static bool grow(rondo__profile_texts *texts) {
    const uint32_t capacity = texts->capacity > 0 ? texts->capacity * 2 : FIRST_COUNT;
    const char **moved = rondo__profile_take(capacity * sizeof *moved);
    uint32_t *slots = rondo__profile_take((size_t)capacity * 2 * sizeof *slots);
    if (moved == NULL || slots == NULL) {
        rondo__profile_give_back((void *)moved);
        rondo__profile_give_back(slots);
        return false;
    }
    if (texts->count > 0) {
        memcpy((void *)moved, (const void *)texts->texts, texts->count * sizeof *moved);
    }
    memset(slots, 0, (size_t)capacity * 2 * sizeof *slots);
    rondo__profile_give_back((void *)texts->texts);
    rondo__profile_give_back(texts->slots);
    texts->texts = moved;
    texts->capacity = capacity;
    texts->slots = slots;
    texts->slot_count = capacity * 2;
    for (uint32_t i = 0; i < texts->count; ++i) {
        slots[find_slot(texts, texts->texts[i])] = i + 1;
    }
    return true;
}

bool rondo__profile_texts_find(rondo__profile_texts *texts, const char *text,
                               uint32_t *out_number) {
    *out_number = 0;
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    if (texts->count == texts->capacity && !grow(texts)) {
        return false;
    }
    const uint32_t slot = find_slot(texts, text);
    if (texts->slots[slot] == 0) {
        const char *copy = rondo__profile_list_add_text(&texts->bytes, text);
        if (copy == NULL) {
            return false;
        }
        texts->texts[texts->count++] = copy;
        texts->slots[slot] = texts->count;
    }
    *out_number = texts->slots[slot];
    return true;
}

void rondo__profile_texts_deinit(rondo__profile_texts *texts, bool keeps_bytes) {
    if (!keeps_bytes) {
        rondo__profile_chunks_free(texts->bytes.first);
    }
    rondo__profile_give_back((void *)texts->texts);
    rondo__profile_give_back(texts->slots);
    *texts = (rondo__profile_texts){0};
}
