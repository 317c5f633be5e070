// learn/recording.h — what one recording of the step put into its nodes.
//
//   values ──> step ──> capture ──> nodes: image, name, label       (template.h numbers them)
//                                   structure: levels, kinds, edges
//                                   blocks: memory taken from pools, in order
//                                   tables: what stood in host memory that copies read
//
// A word of a node is a number of 8, 4, 2 or 1 bytes at a position of its image: in a field of
// rondo__node_info, or among the arguments. Two recordings agree in a word when it is the same
// number, or leads to the same position of the same block.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/node_image.h"
#include "base/error.h"
#include "capture/capture.h"
#include "learn/domain.h"

// ---- words ------------------------------------------------------------------------------------

// A range of an image that is searched for words: a field, a parameter, or packed arguments.
typedef struct rondo__region {
    bool is_field;
    uint32_t number;  // of the field, or of the parameter
    uint32_t offset;  // among the arguments
    uint32_t bytes;
} rondo__region;

typedef struct rondo__word {
    rondo__region region;
    uint32_t offset;  // in the region
    uint32_t width;   // 8, 4, 2 or 1
} rondo__word;

// How many regions the image has, and one of them.
size_t rondo__image_count_regions(const rondo__node_image *image);
rondo__region rondo__image_get_region(const rondo__node_image *image, size_t index);
unsigned char *rondo__image_find_word(const rondo__node_image *image, const rondo__word *word);
uint64_t rondo__image_read(const rondo__node_image *image, const rondo__word *word);
void rondo__image_write(rondo__node_image *image, const rondo__word *word, uint64_t value);
// The largest width that fits at a position of a region.
uint32_t rondo__region_get_width(const rondo__region *region, uint32_t offset);
// "grid.x", "parameter 2, bytes 0 to 7", "arguments, bytes 8 to 11".
void rondo__word_format(const rondo__word *word, const rondo__node_image *image, char *text,
                        size_t capacity);

// ---- recordings -------------------------------------------------------------------------------

typedef struct rondo__recorded_node {
    rondo__node_image image;  // its strings are not valid: see the next two
    char *name;
    char *label;             // NULL: none
    bool is_inner;           // inside another node
    uint64_t first_ignored;  // bytes at the beginning of the arguments that name the node itself
    uint64_t table_bytes;    // it copies from host memory of the program's: so much of that
    uint64_t table;          // is hashed here
    bool has_unknown_table;  // it copies from unknown host memory, which is not read
} rondo__recorded_node;

typedef struct rondo__recording {
    rondo__values values;
    rondo__recorded_node *nodes;
    size_t count;
    size_t capacity;
    uint64_t *structure;  // levels, kinds and edges, one after the other
    size_t structure_count;
    size_t structure_capacity;
    rondo__capture_blocks blocks;
} rondo__recording;

// Addresses that were made up for the trial; what they lead to is not read.
typedef struct rondo__made_up {
    uintptr_t begin;
    size_t bytes;
} rondo__made_up;

// The made-up memory that a trial was recorded with, and an earlier trial.
typedef struct rondo__trial_memory {
    const rondo__made_up *made_up;
    size_t made_up_count;
    const rondo__recording
        *reference;  // an earlier trial; as much of a table is hashed as both copy
} rondo__trial_memory;

// Reads all nodes of the template into a recording whose values and blocks are set.
//
// trial      NULL: a run's, whose tables may be others each time; they are not looked at.
//
// Errors:    NO_MEMORY, UNSUPPORTED, DRIVER.
RONDO_MUST_USE rondo_status rondo__recording_read(rondo__recording *recording,
                                                  rondo__template *recorded,
                                                  const rondo__participant *labels,
                                                  const rondo__trial_memory *trial);
void rondo__recording_deinit(rondo__recording *recording);

// Whether the word of `after` is what it was in `before`.
bool rondo__recordings_agree(const rondo__recording *before, const rondo__recording *after,
                             uint64_t word_before, uint64_t word_after, uint32_t width);

// ---- refusals ---------------------------------------------------------------------------------

// Why a step cannot be learned, or what is to be said about one that can.
typedef struct rondo__finding {
    rondo_refusal refusal;
    bool is_warning;
    bool has_node;
    size_t node;
    bool has_word;
    rondo__word word;
    char message[RONDO__MESSAGE_BYTES];
} rondo__finding;

RONDO_PRINTF(4, 5)
void rondo__finding_set(rondo__finding *finding, rondo_refusal refusal, size_t node,
                        const char *format, ...);  // SIZE_MAX: no node

typedef struct rondo__findings {
    rondo__finding *list;
    size_t count;
    size_t capacity;
} rondo__findings;

enum { RONDO__FINDINGS_MAX = 64 };

// Adds one, unless there are RONDO__FINDINGS_MAX.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__findings_add(rondo__findings *findings,
                                                const rondo__finding *finding);
// Adds all of the others.
RONDO_MUST_USE rondo_status rondo__findings_take(rondo__findings *findings,
                                                 const rondo__findings *others);
void rondo__findings_deinit(rondo__findings *findings);

// Whether two recordings of the step have the same nodes, edges, functions and block sizes, and
// read the same tables. False: *out_finding says what differs.
bool rondo__recordings_match(const rondo__recording *before, const rondo__recording *after,
                             rondo__finding *out_finding);
// All that differs between two that do not match.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__recordings_list_differences(const rondo__recording *before,
                                                               const rondo__recording *after,
                                                               rondo__findings *findings);
