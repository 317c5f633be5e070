// onnx/missing.h — the list of what a model needs and Rondo does not have.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "program/names.h"
#include "rondo/status.h"

typedef struct rondo__missing_entry {
    const char *domain;  // borrowed from the model
    const char *op;      // borrowed from the model; "" for all ops of an unknown opset
    int64_t version;
    char *node;    // name of the first node that needs it; "" for none
    char *detail;  // "attribute A"
    char *key;     // all of it but names in quotes, to be found again
    size_t count;  // of nodes
} rondo__missing_entry;

// Zero-initialise to start. Entries stand in the order in which the model needs them.
typedef struct rondo__missing {
    rondo__missing_entry *entries;
    size_t count;
    size_t capacity;
    rondo__namemap index;
} rondo__missing;

// The detail of ops that are known, but not in the opset of the model. All of them are one entry.
#define RONDO__MISSING_OPSET "opsets 9 to 28 are known: " RONDO__NEWER_CURE
// The advice for a version that is too new.
#define RONDO__NEWER_CURE \
    "export the model for one of them, or try allow_newer_opset (--allow-newer-opset)"

// Counts one node. Its name and the detail are taken from the latest error record, which says that
// its op is unsupported. `domain` and `op` must outlive the list.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per list.
RONDO_MUST_USE rondo_status rondo__missing_add(rondo__missing *missing, const char *domain,
                                               const char *op, int64_t version);

// Fails with a message that names all of them, in the order of the list, as far as it holds them.
//
// Errors:    UNSUPPORTED.
// Threads:   one thread per list.
RONDO_MUST_USE rondo_status rondo__missing_fail(const rondo__missing *missing);

void rondo__missing_deinit(rondo__missing *missing);
