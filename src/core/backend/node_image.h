// backend/node_image.h — all that can change in a node: read from a template, written to its
// executable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

// Where a parameter lies among a kernel's arguments.
typedef struct rondo__parameter {
    size_t offset;
    size_t bytes;
} rondo__parameter;

struct rondo__node_image {
    // The members that a patch of a kernel reads come first: two lines of the processor's cache.
    size_t index;  // in its level of the template
    // The backend's own: what is called, how it is found.
    void *function;
    void *kernel;
    void *context;
    // KERNEL and HOST: arguments as they lie in memory, owned.
    unsigned char *arguments;
    size_t argument_bytes;
    // CUDA kernels: the parameters; bytes between them mean nothing. None where the arguments are
    // packed and the driver does not tell the layout, and on the host.
    size_t parameter_count;
    void **parameter_addresses;  // in `arguments`, as the driver takes them; owned; NULL: a copy
    rondo__node_info info;       // KERNEL, HOST, COPY and FILL can be patched; strings are borrowed
    rondo__parameter *parameters;         // owned
    rondo__launch_attributes attributes;  // KERNEL; no patch changes them
    unsigned char *former_arguments;      // room for what was saved, as many; owned; NULL: none yet
    const char *fixed;   // why the node cannot be patched, "a copy of several rows"; NULL: it can
    uint64_t last_call;  // of graph/node/patch_calls.c
    uint64_t named_at;   // the call that named its work last; 0: the recording
    bool is_enabled;
    bool is_opaque;      // the driver does not show the arguments, or what memory a copy reads
    bool is_switchable;  // though it is fixed
    bool has_rows;       // a fill of several: though it is fixed, value and destination can change
};

// What a fill writes of a value: as many low bytes as an element has. The driver (580) does not cut
// a value that is patched, and writes the rest, too.
static inline uint32_t rondo__cut_to_element(uint32_t value, uint32_t element_bytes) {
    return element_bytes >= sizeof value ? value : value & ((1u << 8 * element_bytes) - 1);
}

// A copy with arguments and parameters of its own, to compare with: no kernel is patched from it.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__node_image_copy(const rondo__node_image *image,
                                                   rondo__node_image *out_copy);
void rondo__node_image_deinit(rondo__node_image *image);

// Room in the image for the arguments that a save keeps, so that a patch of a node takes nothing
// from the heap but once.
//
// Errors:    NO_MEMORY.
RONDO_MUST_USE rondo_status rondo__node_image_reserve_former(rondo__node_image *image);
// The image's present contents, to read or to restore; it borrows all that it points to.
void rondo__node_image_save(const rondo__node_image *image, rondo__node_image *out_former);
