// output_file.h — files that the tool writes: whole, or not at all.
//
// A file is written under a temporary name in its folder and renamed when it is complete, so that a
// full disk leaves neither half a file nor takes away the one that was there; signals that end the
// process take the temporary file along. What is no ordinary file (a pipe, a device) is written as
// it is. "-" is standard output.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct cli_output {
    FILE *file;  // to be written to
    const char *path;
    char *target;     // what the temporary file becomes; NULL: written in place
    char *temporary;  // NULL: written in place
} cli_output;

// All functions print what goes wrong, and return false then.

// Opens and removes again, so that a place that cannot be written is known before long work. NULL
// is fine.
bool cli_output_check(const char *path);

// The same for a file that the library writes: it replaces regular files alone.
bool cli_output_check_replaced(const char *path);

// Ownership: end it with cli_output_close or cli_output_discard; `path` must outlive it.
bool cli_output_open(const char *path, cli_output *out_output);

// Completes the file.
bool cli_output_close(cli_output *output);

// Drops what was written.
void cli_output_discard(cli_output *output);

// Removes the temporary files of all that is open; for a signal handler that ends the process.
void cli_output_abandon_all(void);

// Lets `write` fill the file `path` and says so; what fails halfway is dropped. NULL is fine.
bool cli_output_save(const char *path, bool (*write)(void *data, FILE *file), void *data);

// A rondo_write_function: `file` is a FILE.
bool cli_output_write_text(void *file, const char *text, size_t bytes);

// Makes a folder and those around it, unless they are there.
bool cli_make_folders(const char *path);
