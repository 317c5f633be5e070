// executor/state/program_share.c — see program_share.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/program_share.h"

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "executor/state/prepared.h"

// A store and how many executors use it.
typedef struct device_store {
    struct device_store *next;
    rondo_device *device;
    rondo_memory_kind kind;
    rondo__weight_store *store;
    size_t use_count;
} device_store;

typedef struct shared {
    rondo__program_attachment head;
    pthread_mutex_t lock;  // guards all below
    device_store *stores;
    rondo__base *bases;
} shared;

// With the program, which outlives all that executors hold.
static void free_shared(rondo__program_attachment *head) {
    shared *s = (shared *)head;
    (void)pthread_mutex_destroy(&s->lock);
    rondo__free(s);
}

static rondo_status get_shared(rondo_program *program, shared **out_shared) {
    rondo__program_attachment *there = atomic_load(&program->attachment);
    if (there == NULL) {
        shared *fresh = rondo__calloc(1, sizeof *fresh);
        if (fresh == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        fresh->head.free = free_shared;
        (void)pthread_mutex_init(&fresh->lock, NULL);
        if (atomic_compare_exchange_strong(&program->attachment, &there, &fresh->head)) {
            there = &fresh->head;
        } else {
            free_shared(&fresh->head);
        }
    }
    *out_shared = (shared *)there;
    return RONDO_STATUS_OK;
}

// ---- weights ----------------------------------------------------------------------------------

static rondo_status add_store(const rondo_program *program, shared *s, rondo_device *device,
                              rondo_memory_kind kind, device_store **out_store) {
    device_store *fresh = rondo__calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = rondo__weight_store_create(device, kind, &fresh->store);
    if (status == RONDO_STATUS_OK && kind == RONDO_MEMORY_DEVICE) {
        status = rondo__prepared_give_forms(program, device, fresh->store);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__weight_store_destroy(fresh->store);
        rondo__free(fresh);
        return status;
    }
    fresh->device = device;
    fresh->kind = kind;
    fresh->next = s->stores;
    s->stores = fresh;
    *out_store = fresh;
    return RONDO_STATUS_OK;
}

rondo_status rondo__shared_acquire_store(rondo_program *program, rondo_device *device,
                                         rondo_memory_kind kind, rondo__weight_store **out_store) {
    shared *s = NULL;
    *out_store = NULL;
    rondo_status status = get_shared(program, &s);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&s->lock);
    device_store *known = s->stores;
    while (known != NULL && (known->device != device || known->kind != kind)) {
        known = known->next;
    }
    if (known == NULL) {
        status = add_store(program, s, device, kind, &known);
    }
    if (status == RONDO_STATUS_OK) {
        known->use_count += 1;
        *out_store = known->store;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return status;
}

void rondo__shared_release_store(rondo_program *program, rondo__weight_store *store) {
    if (store == NULL) {
        return;
    }
    shared *s = (shared *)atomic_load(&program->attachment);
    (void)pthread_mutex_lock(&s->lock);
    device_store **link = &s->stores;
    while ((*link)->store != store) {
        link = &(*link)->next;
    }
    device_store *known = *link;
    if (--known->use_count == 0) {
        *link = known->next;
        rondo__weight_store_destroy(store);
        rondo__free(known);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

// ---- bases ------------------------------------------------------------------------------------

static void free_base(rondo__base *base) {
    rondo__half_cache_destroy(base->halves);
    rondo_program_destroy(base->program);
    rondo__free(base);
}

// Folded constants count in a budget of their own, which says how much they take: they stay when
// the executor that made them is destroyed. The budget starts from the executor's count.
static rondo_status make_program(rondo__budget *budget, rondo__base_maker make, void *user_data,
                                 rondo__base *base) {
    rondo__budget *own = NULL;
    const uint64_t used = rondo__budget_get_used(budget);
    RETURN_IF_ERROR(rondo__budget_copy(budget, &own));
    rondo__budget *before = rondo__budget_enter(own);
    const rondo_status status = make(user_data, &base->program, &base->halves);
    (void)rondo__budget_enter(before);
    base->bytes = rondo__budget_get_used(own) - used;
    rondo__budget_release(own);
    return status;
}

static rondo_status make_base(const void *key, size_t key_bytes, rondo__budget *budget,
                              rondo__base_maker make, void *user_data, rondo__base **out_base) {
    rondo__base *base = rondo__calloc(1, sizeof *base + key_bytes);
    if (base == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    const rondo_status status = make_program(budget, make, user_data, base);
    if (status != RONDO_STATUS_OK) {
        rondo__free(base);
        return status;
    }
    base->key_bytes = key_bytes;
    if (key_bytes > 0) {
        memcpy(base->key, key, key_bytes);
    }
    *out_base = base;
    return RONDO_STATUS_OK;
}

static rondo__base *find_base(const shared *s, const void *key, size_t key_bytes) {
    rondo__base *base = s->bases;
    while (base != NULL &&
           (base->key_bytes != key_bytes || memcmp(base->key, key, key_bytes) != 0)) {
        base = base->next;
    }
    return base;
}

rondo_status rondo__shared_acquire_base(rondo_program *program, const void *key, size_t key_bytes,
                                        rondo__budget *budget, rondo__base_maker make,
                                        void *user_data, rondo__base **out_base) {
    shared *s = NULL;
    *out_base = NULL;
    rondo_status status = get_shared(program, &s);
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    key_bytes = key != NULL ? key_bytes : 0;
    (void)pthread_mutex_lock(&s->lock);
    rondo__base *base = key != NULL ? find_base(s, key, key_bytes) : NULL;
    const bool is_known = base != NULL;
    if (!is_known) {
        status = make_base(key, key_bytes, budget, make, user_data, &base);
    }
    if (status == RONDO_STATUS_OK &&
        !rondo__budget_take(budget, RONDO__OWNER_FOLDED, base->bytes)) {
        status = RONDO_STATUS_NO_MEMORY;
        if (!is_known) {
            free_base(base);
        }
    }
    if (status == RONDO_STATUS_OK) {
        if (!is_known && key != NULL) {
            base->next = s->bases;
            s->bases = base;
        }
        base->use_count += 1;
        *out_base = base;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return status;
}

void rondo__shared_release_base(rondo_program *program, rondo__base *base, rondo__budget *budget) {
    if (base == NULL) {
        return;
    }
    shared *s = (shared *)atomic_load(&program->attachment);
    rondo__budget_give_back(budget, RONDO__OWNER_FOLDED, base->bytes);
    (void)pthread_mutex_lock(&s->lock);
    const bool is_last = --base->use_count == 0;
    for (rondo__base **link = &s->bases; is_last && *link != NULL; link = &(*link)->next) {
        if (*link == base) {
            *link = base->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (is_last) {
        free_base(base);
    }
}
