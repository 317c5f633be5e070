// program/saved/saved.h — a plan file while a program that was read from it lives: what it was made
// for, and its sections, which executors look into.
//
//   about     what the file was made for: library, device, options of the executor
//   program   the program as the model has it
//   bases     that program after the passes that need no shapes, by the options that decide it
//   plans     a base after all passes for fixed shapes, by the key that plans are found by, and the
//             kernels of its nodes as lists of steps
//   tuning    choices of kernels, a tuning file
//   kernels   machine code for one kind of GPU, by the hash of what it was compiled of
//   forms     constants as kernels read them: packed, turned
//   data      the bytes of all tensors and forms; always the last
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "program/saved/saved_program.h"

// To be raised when the form of the section changes: a section of another version is not read.
enum {
    RONDO__SAVED_ABOUT_VERSION = 1,
    RONDO__SAVED_PROGRAM_VERSION = 1,
    RONDO__SAVED_BASES_VERSION = 1,
    RONDO__SAVED_PLANS_VERSION = 2,
    RONDO__SAVED_TUNING_VERSION = 1,
    RONDO__SAVED_KERNELS_VERSION = 1,
    RONDO__SAVED_FORMS_VERSION = 1,
    RONDO__SAVED_DATA_VERSION = 1,
};

// This library: its version, and a hash of the sources that decide what is in a file (made by
// cmake/identity.cmake).
extern const char rondo__saved_library[];

enum { RONDO__SAVED_GROUPS = 3 };  // of patterns: keep_f32, use_f16, place

// Texts lie in the file.
typedef struct rondo__saved_about {
    const char *library;      // its version
    const char *device;       // "host", "cuda"
    const char *level;        // instruction sets, or the GPU's generation
    const char *description;  // of the device, for people
    rondo_dtype dtype;
    bool op_by_op, no_folding, is_training;
    uint32_t tuning;  // a rondo_tuning; what it has not timed is not timed by default
    size_t pattern_counts[RONDO__SAVED_GROUPS];
    const char *const *patterns;  // of all groups, one behind the other
    void *owned;                  // that list, where it was read
} rondo__saved_about;

typedef struct rondo__saved {
    rondo__program_attachment head;
    rondo__section_file file;
    rondo__saved_data data;
    rondo__saved_about about;
    bool allow_remake;  // what does not fit is made anew, and not refused
} rondo__saved;

// Opens a plan file and reads what it is about.
//
// Errors:    as rondo__section_file_open; BAD_DATA (a section is missing or damaged), UNSUPPORTED
//            (a section of another version).
// Ownership: end with rondo__saved_destroy.
RONDO_MUST_USE rondo_status rondo__saved_open(const char *path, rondo__saved **out_saved);
void rondo__saved_destroy(rondo__saved *saved);  // NULL is fine

// NULL where the program comes from elsewhere.
static inline const rondo__saved *rondo__program_get_saved(const rondo_program *program) {
    return (const rondo__saved *)program->saved;
}

// The program of the file, which takes the plan file along, also when it fails.
//
// Errors:    as rondo__program_read.
// Ownership: caller destroys *out_program.
// Threads:   safe on different files.
RONDO_MUST_USE rondo_status rondo__saved_read_program(rondo__saved *saved,
                                                      rondo_program **out_program);

// A section, to be read from its start; false where there is none of this version.
bool rondo__saved_find(const rondo__saved *saved, const char *name, uint32_t version,
                       rondo__record *out_record);

void rondo__saved_about_write(const rondo__saved_about *about, rondo__text *out);
