// saved/section_file.h — a file of sections, each with a version, a length and a checksum:
// the frame of plan files and graph files, which knows nothing of what is inside.
//
//   head     magic, version of the frame, number of sections, length of the file, checksum of all
//            that stands before the first section
//   table    for each section: name, version, where, how long, checksum
//   section  from a multiple of its alignment on
//
// Numbers are little-endian, as all machines are that Rondo runs on. Checksums find damage. They do
// not keep out an attacker, who can write a file with fitting checksums.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

enum {
    RONDO__SECTION_NAME_BYTES = 8,
    RONDO__SECTION_COUNT_MAX = 16,
    RONDO__SECTION_ALIGNMENT = 4096,  // of the last section, whose bytes are used where they lie
};

// What the files are: the first eight bytes, and what messages call them.
typedef struct rondo__section_kind {
    char magic[9];
    const char *name;
} rondo__section_kind;

extern const rondo__section_kind rondo__plan_file_kind;
extern const rondo__section_kind rondo__graph_file_kind;

// A section to be written: pieces one behind the other, with zeros in between where `offset` says
// so.
typedef struct rondo__section_piece {
    const void *bytes;
    size_t byte_count;
    uint64_t offset;  // in the section, ascending
} rondo__section_piece;

typedef struct rondo__section_source {
    const char *name;  // of at most RONDO__SECTION_NAME_BYTES characters
    uint32_t version;
    const rondo__section_piece *pieces;
    size_t piece_count;
} rondo__section_source;

// Writes the file, whole or not at all.
//
// Errors:    UNAVAILABLE, NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__section_file_write(const rondo__section_kind *kind,
                                                      const char *path,
                                                      const rondo__section_source *sections,
                                                      size_t section_count);

typedef struct rondo__section {
    char name[RONDO__SECTION_NAME_BYTES + 1];
    uint32_t version;
    const uint8_t *bytes;
    size_t byte_count;
    rondo__hash128 sum;
} rondo__section;

// A file in memory; `storage` keeps it there.
typedef struct rondo__section_file {
    const rondo__section_kind *kind;
    rondo_storage *storage;
    size_t byte_count;
    size_t section_count;
    rondo__section sections[RONDO__SECTION_COUNT_MAX];
} rondo__section_file;

// Maps a file and checks all of it.
//
// Errors:    UNAVAILABLE (it cannot be read), BAD_DATA (no such file, cut short, altered: says what
//            and where), UNSUPPORTED (another version of the frame), NO_MEMORY.
// Ownership: close it; tensors over its bytes retain the storage.
// Cost:      reads the whole file, on several threads.
RONDO_MUST_USE rondo_status rondo__section_file_open(const rondo__section_kind *kind,
                                                     const char *path,
                                                     rondo__section_file *out_file);
void rondo__section_file_close(rondo__section_file *file);  // zeroed is fine

// NULL: there is none of this name.
const rondo__section *rondo__section_file_find(const rondo__section_file *file, const char *name);
