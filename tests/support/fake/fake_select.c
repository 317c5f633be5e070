// The fake driver's way to run the library's kernels that pick elements (select.cu): NonZero and
// Compress, of f32, i64 and bool. It works through their arguments as the kernels would, one tile
// after the other.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda_state.h"

enum { TILE = 2048, FIRST_EXTENT = 5, RANK_MAX = 8, WORDS_MAX = FIRST_EXTENT + RANK_MAX };

typedef struct call {
    const char *text;
    size_t word_count;
    uint64_t words[WORDS_MAX];
} call;

typedef struct row {
    const char *name;
    void (*run)(const call *c);
} row;

static void *get_pointer(const call *c, size_t word) {
    return (void *)(uintptr_t)c->words[word];
}

// ---- elements ---------------------------------------------------------------------------------

// The type that -DRONDO_T names; "": none, or one that is not known here.
static const char *get_type(const char *text) {
    static const char *const types[] = {"float", "i64", "b8"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char option[32];
        snprintf(option, sizeof(option), "-DRONDO_T=%s\n", types[i]);
        if (strstr(text, option) != NULL) {
            return types[i];
        }
    }
    return "";
}

static bool is_picked(const call *c, size_t index) {
    const char *type = get_type(c->text);
    if (type[0] == 'f') {
        return ((const float *)get_pointer(c, 1))[index] != 0;
    }
    return type[0] == 'i' ? ((const int64_t *)get_pointer(c, 1))[index] != 0
                          : ((const uint8_t *)get_pointer(c, 1))[index] != 0;
}

// The bytes of a word that -DRONDO_W names.
static size_t get_word_bytes(const char *text) {
    unsigned bits = 0;
    const char *option = strstr(text, "-DRONDO_W=u");
    return option != NULL && sscanf(option, "-DRONDO_W=u%u\n", &bits) == 1 ? bits / 8 : 16;
}

// ---- kernels ----------------------------------------------------------------------------------

static void run_count(const call *c) {
    uint32_t *sums = get_pointer(c, 2);
    for (size_t i = 0; i < c->words[0]; i++) {
        sums[i / TILE] = (i % TILE == 0 ? 0 : sums[i / TILE]) + (is_picked(c, i) ? 1 : 0);
    }
}

static void run_scan(const call *c) {
    uint32_t *sums = get_pointer(c, 1);
    uint32_t before = 0;
    for (size_t t = 0; t < c->words[0]; t++) {
        const uint32_t own = sums[t];
        sums[t] = before;
        before += own;
    }
    *(int64_t *)get_pointer(c, 2) = before;
}

// How many stand before a tile; where there is only one, nobody has counted.
static uint32_t get_rank(const call *c, size_t tile) {
    const uint32_t *sums = get_pointer(c, 2);
    return sums != NULL ? sums[tile] : 0;
}

static int64_t get_found(const call *c) {
    int64_t *found = get_pointer(c, 3);
    if (get_pointer(c, 2) == NULL) {
        *found = 0;
        for (size_t i = 0; i < c->words[0]; i++) {
            *found += is_picked(c, i) ? 1 : 0;
        }
    }
    return *found;
}

static void run_non_zero(const call *c) {
    const size_t found = (size_t)get_found(c);
    int64_t *y = get_pointer(c, 4);
    size_t rank = 0;
    for (size_t i = 0; i < c->words[0]; i++) {
        rank = i % TILE == 0 ? get_rank(c, i / TILE) : rank;
        if (!is_picked(c, i)) {
            continue;
        }
        size_t rest = i;
        for (size_t d = c->word_count; d-- > FIRST_EXTENT;) {
            y[(d - FIRST_EXTENT) * found + rank] = (int64_t)(rest % c->words[d]);
            rest /= c->words[d];
        }
        rank++;
    }
}

static void run_places(const call *c) {
    uint32_t *places = get_pointer(c, 4);
    uint32_t *ranks = get_pointer(c, 5);
    uint32_t rank = 0;
    (void)get_found(c);
    for (size_t i = 0; i < c->words[0]; i++) {
        rank = i % TILE == 0 ? get_rank(c, i / TILE) : rank;
        if (is_picked(c, i)) {
            places[rank++] = (uint32_t)i;
        }
        if (ranks != NULL) {
            ranks[i] = rank - 1;
        }
    }
}

static void run_rows(const call *c) {
    const size_t bytes = get_word_bytes(c->text) * c->words[2];
    const uint32_t *places = get_pointer(c, 4);
    const size_t found = (size_t) * (const int64_t *)get_pointer(c, 5);
    for (size_t n = 0; n < c->words[0] * found; n++) {
        const size_t from = n / found * c->words[1] + places[n % found];
        memcpy((char *)get_pointer(c, 6) + n * bytes,
               (const char *)get_pointer(c, 3) + from * bytes, bytes);
    }
}

static const row rows[] = {{"select_count", run_count},
                           {"select_scan", run_scan},
                           {"select_non_zero", run_non_zero},
                           {"select_places", run_places},
                           {"select_rows", run_rows}};

static const row *find_row(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

bool fake_select_is_known(const char *name, const char *text) {
    return find_row(name) != NULL && get_type(text)[0] != '\0';
}

void fake_select_run(const char *name, const char *text, const void *arguments,
                     size_t argument_bytes) {
    call c = {.text = text, .word_count = argument_bytes / sizeof(uint64_t)};
    const row *known = find_row(name);
    if (known == NULL || c.word_count > WORDS_MAX) {
        fake_violation("kernel %s cannot be run here", name);
        return;
    }
    memcpy(c.words, arguments, c.word_count * sizeof(uint64_t));
    known->run(&c);
}
