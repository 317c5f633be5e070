// profile/texts.h — texts that stand once each, by number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "profile/chunk.h"

// Zeroed: empty. Number 0 is "".
typedef struct rondo__profile_texts {
    rondo__profile_list bytes;
    const char **texts;  // by number less 1
    uint32_t count;
    uint32_t capacity;
    uint32_t *slots;  // numbers by hash; a power of two of them
    uint32_t slot_count;
} rondo__profile_texts;

// The number of a text; false: no memory. NULL counts as "".
bool rondo__profile_texts_find(rondo__profile_texts *texts, const char *text, uint32_t *out_number);
static inline const char *rondo__profile_texts_get(const rondo__profile_texts *texts,
                                                   uint32_t number) {
    return number > 0 ? texts->texts[number - 1] : "";
}
// Frees all, or, with `keeps_bytes`, all but the chunks of `bytes`, which the caller takes.
void rondo__profile_texts_deinit(rondo__profile_texts *texts, bool keeps_bytes);
