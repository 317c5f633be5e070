// npz.h — NumPy's .npz archives: .npy files in a zip file, stored or deflated.
//
// Deflated entries need zlib, which a build may lack; then they are refused with a word.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/tensor.h"

typedef struct cli_npz_entry {
    char *name;  // without ".npy"
    uint64_t offset;
    uint64_t packed_bytes;
    uint64_t bytes;
    uint32_t checksum;
    uint16_t method;
} cli_npz_entry;

typedef struct cli_npz {
    const char *label;  // for messages; borrowed
    const uint8_t *data;
    size_t byte_count;
    cli_npz_entry *entries;
    size_t count;
} cli_npz;

// True when the bytes begin as a zip file does.
bool cli_npz_is(const uint8_t *bytes, size_t byte_count);

// Lists the entries. On failure prints why.
//
// Ownership: `data` and `label` are borrowed; end with cli_npz_close.
bool cli_npz_open(const uint8_t *data, size_t byte_count, const char *label, cli_npz *out_npz);
void cli_npz_close(cli_npz *npz);

// The entry of this name; NULL when there is none.
const cli_npz_entry *cli_npz_find(const cli_npz *npz, const char *name);

// Reads one entry; `wanted` is as that of cli_npy_parse. On failure prints why.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_npz_read(const cli_npz *npz, const cli_npz_entry *entry, rondo_dtype wanted,
                  rondo_tensor *out_tensor);
