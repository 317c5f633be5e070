// file_bytes.h — a whole file in memory, to be read only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_bytes {
    const uint8_t *data;  // never NULL once loaded
    size_t count;
    void *mapping;  // what is unmapped; NULL when `owned` holds the bytes
    void *owned;
} cli_bytes;

// Maps an ordinary file; reads what is none (a pipe) to its end. "-" is standard input. On failure
// prints why.
//
// Ownership: free with cli_bytes_free; the file must not be cut short meanwhile.
bool cli_bytes_load(const char *path, cli_bytes *out_bytes);
void cli_bytes_free(cli_bytes *bytes);
