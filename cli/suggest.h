// suggest.h — which known word a misspelt one was meant to be.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>

// Set `word`, offer every known word in turn, then ask for the sentence.
typedef struct cli_suggestion {
    const char *word;
    const char *best;  // borrowed from an offer; NULL while none is near
    size_t best_distance;
} cli_suggestion;

// Letters inserted, left out, changed or swapped with their neighbour between two words; words
// longer than 63 characters are never near.
size_t cli_suggest_measure(const char *a, const char *b);

void cli_suggest_offer(cli_suggestion *suggestion, const char *known);

// Writes "; did you mean \"batch\"?" into `buffer`, or "" when nothing was near. Returns `buffer`.
char *cli_suggest_format(const cli_suggestion *suggestion, char *buffer, size_t buffer_bytes);
