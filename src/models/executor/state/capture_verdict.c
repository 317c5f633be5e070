// executor/state/capture_verdict.c — see capture_verdict.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/capture_verdict.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tensor/elements.h"

// An op with its attributes on a device, as a number that has no double: 128 bits.
typedef struct verdict_key {
    uint64_t words[2];
} verdict_key;

typedef struct verdict {
    verdict_key key;
    uint64_t used;  // when, by the clock below
    char why[200];
} verdict;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static verdict verdicts[RONDO__VERDICT_MAX];
static size_t verdict_count;
static uint64_t use_clock;

static void add_bytes(verdict_key *key, const void *bytes, size_t count) {
    if (count > 0) {
        key->words[0] = rondo__hash64(key->words[0], bytes, count);
        key->words[1] = rondo__hash64(key->words[1] ^ count, bytes, count);
    }
}

// With its length in front, so that no two lists of texts read the same.
static void add_text(verdict_key *key, const char *text) {
    const size_t length = text != NULL ? strlen(text) : 0;
    add_bytes(key, &length, sizeof length);
    add_bytes(key, text, length);
}

static void add_attribute(verdict_key *key, const rondo__attribute *attribute) {
    const rondo_tensor *tensor = &attribute->tensor_value;
    add_text(key, attribute->name);
    add_bytes(key, &attribute->kind, sizeof attribute->kind);
    add_bytes(key, &attribute->int_value, sizeof attribute->int_value);
    add_bytes(key, &attribute->float_value, sizeof attribute->float_value);
    add_text(key, attribute->string_value);
    add_bytes(key, &attribute->count, sizeof attribute->count);
    for (size_t i = 0; i < attribute->count; ++i) {
        if (attribute->ints != NULL) {
            add_bytes(key, &attribute->ints[i], sizeof attribute->ints[i]);
        }
        if (attribute->floats != NULL) {
            add_bytes(key, &attribute->floats[i], sizeof attribute->floats[i]);
        }
        if (attribute->strings != NULL) {
            add_text(key, attribute->strings[i]);
        }
    }
    if (tensor->dtype != RONDO_DTYPE_NONE) {
        add_bytes(key, &tensor->dtype, sizeof tensor->dtype);
        add_bytes(key, &tensor->shape.rank, sizeof tensor->shape.rank);
        add_bytes(key, tensor->shape.extent, sizeof tensor->shape.extent);
    }
    if (rondo__dtype_is_plain(tensor->dtype)) {
        add_bytes(key, tensor->data, rondo_tensor_get_bytes(tensor));
    }
}

static verdict_key make_key(rondo_device *device, const rondo__op *op) {
    verdict_key key = {{RONDO__HASH_SEED, ~RONDO__HASH_SEED}};
    add_text(&key, rondo_device_get_name(device));
    add_text(&key, op->def->domain);
    add_text(&key, op->def->name);
    add_bytes(&key, &op->opset, sizeof op->opset);
    add_bytes(&key, &op->is_training, sizeof op->is_training);
    for (size_t a = 0; a < op->attribute_count; ++a) {
        add_attribute(&key, &op->attributes[a]);
    }
    return key;
}

// The lock is held.
static verdict *find(const verdict_key *key) {
    for (size_t i = 0; i < verdict_count; ++i) {
        if (memcmp(&verdicts[i].key, key, sizeof *key) == 0) {
            return &verdicts[i];
        }
    }
    return NULL;
}

// The place of a new one: the next that is free, or that of the one used least recently. The lock
// is held.
static verdict *find_place(void) {
    if (verdict_count < RONDO__VERDICT_MAX) {
        return &verdicts[verdict_count++];
    }
    verdict *oldest = &verdicts[0];
    for (size_t i = 1; i < RONDO__VERDICT_MAX; ++i) {
        oldest = verdicts[i].used < oldest->used ? &verdicts[i] : oldest;
    }
    return oldest;
}

rondo__capture_rule rondo__verdict_get_rule(const rondo__op *op, const rondo__kernel *kernel) {
    return op->def->capture > kernel->capture ? op->def->capture : kernel->capture;
}

bool rondo__verdict_allows(rondo_device *device, const rondo__op *op, const rondo__kernel *kernel,
                           bool is_strict) {
    const rondo__capture_rule rule = rondo__verdict_get_rule(op, kernel);
    if (rule == RONDO__CAPTURE_NEVER || (is_strict && rule != RONDO__CAPTURE_PROBE)) {
        return rule != RONDO__CAPTURE_NEVER;
    }
    (void)pthread_mutex_lock(&lock);
    const bool is_empty = verdict_count == 0;
    (void)pthread_mutex_unlock(&lock);
    if (is_empty) {  // as nearly always: no attribute is read
        return true;
    }
    const verdict_key key = make_key(device, op);
    (void)pthread_mutex_lock(&lock);
    verdict *known = find(&key);
    if (known != NULL) {
        known->used = ++use_clock;
    }
    (void)pthread_mutex_unlock(&lock);
    return known == NULL;
}

void rondo__verdict_explain(rondo_device *device, const rondo__op *op, const rondo__kernel *kernel,
                            char *buffer, size_t bytes) {
    const verdict_key key = make_key(device, op);
    (void)pthread_mutex_lock(&lock);
    const verdict *known = find(&key);
    const char *why = kernel->reason != NULL ? kernel->reason
                      : known != NULL        ? known->why
                                             : "it says that it cannot be captured";
    (void)snprintf(buffer, bytes, "%.40s \"%.40s\": %.200s", op->def->name, op->name, why);
    (void)pthread_mutex_unlock(&lock);
}

void rondo__verdict_remember(rondo_device *device, const rondo__op *op, const char *why) {
    const verdict_key key = make_key(device, op);
    (void)pthread_mutex_lock(&lock);
    verdict *place = find(&key);
    place = place != NULL ? place : find_place();
    *place = (verdict){.key = key, .used = ++use_clock};
    (void)snprintf(place->why, sizeof place->why, "%s", why);
    (void)pthread_mutex_unlock(&lock);
}

void rondo__verdict_forget_all(void) {
    (void)pthread_mutex_lock(&lock);
    verdict_count = 0;
    (void)pthread_mutex_unlock(&lock);
}
