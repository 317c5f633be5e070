// Source: Damerau, "A technique for computer detection and correction of spelling errors", 1964;
// the restricted distance, in which no part is edited twice.
// SPDX-License-Identifier: Apache-2.0
#include "suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX = 63 };

size_t cli_suggest_measure(const char *a, const char *b) {
    const size_t a_length = strlen(a);
    const size_t b_length = strlen(b);
    size_t rows[3][WORD_MAX + 1];  // two before, one before, this one; by the place in b
    if (a_length > WORD_MAX || b_length > WORD_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
        rows[1][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        rows[2][0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = rows[1][j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);
            best = rows[1][j] + 1 < best ? rows[1][j] + 1 : best;
            best = rows[2][j - 1] + 1 < best ? rows[2][j - 1] + 1 : best;
            const bool are_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (are_swapped && rows[0][j - 2] + 1 < best) {
                best = rows[0][j - 2] + 1;
            }
            rows[2][j] = best;
        }
        memcpy(rows[0], rows[1], sizeof rows[0]);
        memcpy(rows[1], rows[2], sizeof rows[1]);
    }
    return rows[1][b_length];
}

void cli_suggest_offer(cli_suggestion *suggestion, const char *known) {
    // A third of the letters may be wrong, but never so many that any short word is near. Dashes
    // in front are no letters: all options have them.
    const size_t letters = strlen(suggestion->word + strspn(suggestion->word, "-"));
    const size_t limit = letters <= 5 ? 1 : letters / 3 + (letters % 3 != 0 ? 1 : 0);
    const size_t distance = cli_suggest_measure(suggestion->word, known);
    if (distance <= limit && distance < letters &&
        (suggestion->best == NULL || distance < suggestion->best_distance)) {
        suggestion->best = known;
        suggestion->best_distance = distance;
    }
}

char *cli_suggest_format(const cli_suggestion *suggestion, char *buffer, size_t buffer_bytes) {
    if (suggestion->best == NULL) {
        snprintf(buffer, buffer_bytes, "%s", "");
    } else {
        snprintf(buffer, buffer_bytes, "; did you mean \"%.80s\"?", suggestion->best);
    }
    return buffer;
}
