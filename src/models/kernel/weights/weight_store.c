// kernel/weights/weight_store.c — see weight_store.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernel/weights/weight_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "kernel/weights/weight_slab.h"
#include "kernel/weights/weight_upload.h"

enum { BUCKET_COUNT_MIN = 64, WEIGHT_ALIGNMENT = 64 };

// A form of a constant.
typedef struct entry {
    struct entry *next;  // in its bucket
    uint64_t hash;
    rondo_tensor constant;  // retained
    size_t bytes;
    rondo__owner owner;
    void *address;
    rondo__slab *slab;  // host: where it is from
    rondo__weight *holders;
    size_t form_bytes;
    unsigned char form[];
} entry;

// One account's share of a form.
struct rondo__weight {
    entry *entry;
    rondo__weight_account *account;
    size_t use_count;      // lists that hold it
    uint64_t last_number;  // of the list that took it last; 0: none that still has it
    rondo__weight *next;   // of another account
};

struct rondo__weight_store {
    rondo_device *device;
    rondo_memory_kind kind;
    bool is_host;
    pthread_mutex_t lock;  // guards all below, and `bytes` of accounts
    rondo__slab_list slabs;
    rondo__weight_upload upload;
    rondo_stream *copying;  // of the account whose copies may be under way; NULL: none are
    size_t entry_count;
    size_t bucket_count;  // a power of two
    entry **buckets;
    size_t ready_count;  // of `ready`, which does not change; ascending by constant
    rondo__ready_form *ready;
};

rondo_status rondo__weight_store_create(rondo_device *device, rondo_memory_kind kind,
                                        rondo__weight_store **out_store) {
    *out_store = NULL;
    rondo__weight_store *store = rondo__calloc(1, sizeof *store);
    if (store == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    store->device = device;
    store->kind = kind;
    store->is_host = rondo_device_is_host(device);
    store->bucket_count = BUCKET_COUNT_MIN;
    store->buckets = rondo__calloc(store->bucket_count, sizeof *store->buckets);
    if (store->buckets == NULL) {
        rondo__free(store);
        return RONDO_STATUS_NO_MEMORY;
    }
    (void)pthread_mutex_init(&store->lock, NULL);
    *out_store = store;
    return RONDO_STATUS_OK;
}

void rondo__weight_store_destroy(rondo__weight_store *store) {
    if (store != NULL) {
        rondo__weight_upload_end(&store->upload, store->device);
        (void)pthread_mutex_destroy(&store->lock);
        rondo__free(store->buckets);
        rondo__free(store->ready);
        rondo__free(store);
    }
}

static int compare_ready(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const rondo__ready_form *)a)->constant;
    const uintptr_t y = (uintptr_t)((const rondo__ready_form *)b)->constant;
    return x < y ? -1 : x > y ? 1 : 0;
}

void rondo__weight_store_set_ready(rondo__weight_store *store, rondo__ready_form *forms,
                                   size_t count) {
    if (count > 0) {
        qsort(forms, count, sizeof *forms, compare_ready);
    }
    store->ready = forms;
    store->ready_count = count;
}

void rondo__weight_list_init(rondo__weight_account *account, rondo__weight_list *out_list) {
    *out_list = (rondo__weight_list){.account = account, .number = ++account->list_count};
}

// ---- finding ----------------------------------------------------------------------------------

static uint64_t hash_want(const rondo__weight_want *want) {
    const void *data = want->constant->data;
    const uint64_t hash = rondo__hash64(RONDO__HASH_SEED, &data, sizeof data);
    return rondo__hash64(hash, want->form, want->form_bytes);
}

static entry **get_bucket(const rondo__weight_store *store, uint64_t hash) {
    return &store->buckets[(size_t)(hash ^ hash >> 32) & (store->bucket_count - 1)];
}

static entry *find_entry(const rondo__weight_store *store, const rondo__weight_want *want,
                         uint64_t hash) {
    entry *e = want->constant->storage != NULL ? *get_bucket(store, hash) : NULL;
    for (; e != NULL; e = e->next) {
        if (e->hash == hash && e->constant.data == want->constant->data &&
            e->constant.storage == want->constant->storage &&
            e->constant.dtype == want->constant->dtype && e->bytes == want->bytes &&
            e->form_bytes == want->form_bytes &&
            (e->form_bytes == 0 || memcmp(e->form, want->form, e->form_bytes) == 0)) {
            break;
        }
    }
    return e;
}

// Makes room for one more: as many buckets as entries, at least.
static rondo_status reserve_bucket(rondo__weight_store *store) {
    if (store->entry_count < store->bucket_count) {
        return RONDO_STATUS_OK;
    }
    const size_t former_count = store->bucket_count;
    entry **former = store->buckets;
    entry **buckets = rondo__calloc(2 * former_count, sizeof *buckets);
    if (buckets == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    store->buckets = buckets;
    store->bucket_count = 2 * former_count;
    for (size_t i = 0; i < former_count; ++i) {
        for (entry *now = former[i], *next; now != NULL; now = next) {
            entry **bucket = get_bucket(store, now->hash);
            next = now->next;
            now->next = *bucket;
            *bucket = now;
        }
    }
    rondo__free(former);
    return RONDO_STATUS_OK;
}

// The form as a plan file has it; NULL: it has none.
static const rondo__ready_form *find_ready(const rondo__weight_store *store,
                                           const rondo__weight_want *want) {
    const rondo__ready_form key = {.constant = want->constant->data};
    if (store->ready_count == 0) {
        return NULL;
    }
    const rondo__ready_form *first =
        bsearch(&key, store->ready, store->ready_count, sizeof key, compare_ready);
    const rondo__ready_form *end = store->ready + store->ready_count;
    while (first != NULL && first > store->ready && first[-1].constant == key.constant) {
        --first;
    }
    for (; first != NULL && first < end && first->constant == key.constant; ++first) {
        if (first->dtype == want->constant->dtype && first->byte_count == want->bytes &&
            first->form_bytes == want->form_bytes &&
            memcmp(first->form, want->form, want->form_bytes) == 0) {
            return first;
        }
    }
    return NULL;
}

// ---- making -----------------------------------------------------------------------------------

static rondo__owner get_owner(const rondo__weight_want *want) {
    const bool is_copy = want->fill == NULL && want->fill_rows == NULL;
    return is_copy ? RONDO__OWNER_WEIGHT : RONDO__OWNER_PACKED;
}

static size_t get_device_bytes(size_t bytes) {
    return bytes > 0 ? bytes : 1;  // an empty tensor has an address, too: NULL means absent
}

// Bytes that count against no budget by themselves: each account counts them.
static rondo_status make_on_host(const rondo__weight_want *want, void **out_address) {
    rondo__budget *entered = rondo__budget_enter(NULL);
    void *bytes = rondo__block_allocate(get_device_bytes(want->bytes), WEIGHT_ALIGNMENT);
    (void)rondo__budget_enter(entered);
    rondo_status status = bytes == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK && want->fill != NULL) {
        status = want->fill(want, bytes);
    } else if (status == RONDO_STATUS_OK && want->bytes > 0) {
        rondo__weight_fill_rows(want, bytes);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__block_free(bytes);
        return status;
    }
    *out_address = bytes;
    return RONDO_STATUS_OK;
}

static rondo_status make_in_slab(rondo__weight_store *store, const rondo__weight_want *want,
                                 entry *e) {
    rondo__slab *slab = NULL;
    void *bytes = rondo__slab_take(&store->slabs, want->bytes, &slab);
    rondo_status status = bytes == NULL ? RONDO_STATUS_NO_MEMORY : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK && want->fill != NULL) {
        status = want->fill(want, bytes);
    } else if (status == RONDO_STATUS_OK && want->bytes > 0) {
        rondo__weight_fill_rows(want, bytes);
    }
    if (status != RONDO_STATUS_OK) {
        if (bytes != NULL) {
            rondo__slab_give_back(&store->slabs, slab);
        }
        return status;
    }
    e->slab = slab;
    e->address = bytes;
    return RONDO_STATUS_OK;
}

// In pinned memory beside a GPU.
static rondo_status make_pinned(const rondo__weight_account *account,
                                const rondo__weight_want *want, void **out_address) {
    rondo_device *device = account->store->device;
    void *bytes = NULL;
    rondo_status status =
        rondo_memory_allocate(device, RONDO_MEMORY_PINNED, get_device_bytes(want->bytes), &bytes);
    if (status == RONDO_STATUS_OK && want->fill != NULL) {
        memset(bytes, 0, want->bytes);
        status = want->fill(want, bytes);
    } else if (status == RONDO_STATUS_OK && want->bytes > 0) {
        rondo__weight_fill_rows(want, bytes);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_memory_free(device, bytes);
        return status;
    }
    *out_address = bytes;
    return RONDO_STATUS_OK;
}

// Copied from where it is, or from a form that is whole on the host meanwhile.
static rondo_status copy_to_gpu(rondo_stream *stream, const rondo__weight_want *want,
                                void *memory) {
    void *filled = NULL;
    if (want->fill != NULL || want->fill_rows != NULL) {
        RETURN_IF_ERROR(make_on_host(want, &filled));
    }
    rondo_status status =
        rondo_stream_copy(stream, memory, filled != NULL ? filled : want->constant->data,
                          want->bytes, RONDO_COPY_HOST_TO_DEVICE);
    if (filled != NULL) {
        const rondo_status waited = rondo_stream_synchronize(stream);
        status = status != RONDO_STATUS_OK ? status : waited;
        rondo__block_free(filled);
    }
    return status;
}

// Waits for copies that nobody has waited for: others read forms on streams of their own as soon as
// they find them.
static rondo_status end_copies(rondo__weight_store *store) {
    rondo_stream *stream = store->copying;
    store->copying = NULL;
    return stream != NULL ? rondo_stream_synchronize(stream) : RONDO_STATUS_OK;
}

// Copies of constants' own bytes may be under way together; rondo__weight_list_settle waits. Three
// small ones with a wait each took 83 us of a plan's 1000 on an H200.
static rondo_status make_on_gpu(const rondo__weight_account *account,
                                const rondo__weight_want *want, void **out_address) {
    rondo__weight_store *store = account->store;
    rondo_device *device = store->device;
    void *memory = NULL;
    rondo_status status =
        rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, get_device_bytes(want->bytes), &memory);
    if (status == RONDO_STATUS_OK && want->bytes > 0) {
        const bool is_sent = rondo__weight_upload_suits(&store->upload, want);
        status = is_sent ? rondo__weight_upload_send(&store->upload, account->stream, want, memory)
                         : copy_to_gpu(account->stream, want, memory);
        store->copying = is_sent ? store->copying : account->stream;
    }
    if (status != RONDO_STATUS_OK) {
        rondo_memory_free(device, memory);
        return status;
    }
    *out_address = memory;
    return RONDO_STATUS_OK;
}

static void free_entry(rondo__weight_store *store, entry *e) {
    if (store->is_host) {
        if (e->slab != NULL) {  // otherwise it lies in a plan file
            rondo__slab_give_back(&store->slabs, e->slab);
        }
    } else {
        rondo_memory_free(store->device, e->address);
    }
    rondo_tensor_deinit(&e->constant);
    rondo__free(e);
}

// Bytes that are ready are a constant by themselves, which is used where it lies or copied.
static rondo_status make_form(rondo__weight_account *account, const rondo__weight_want *want,
                              entry *e) {
    rondo__weight_store *store = account->store;
    const rondo__ready_form *ready = want->form_bytes > 0 ? find_ready(store, want) : NULL;
    rondo_tensor constant = *want->constant;
    rondo__weight_want copy = *want;
    if (ready != NULL && store->is_host) {
        e->address = (void *)(uintptr_t)ready->bytes;
        return RONDO_STATUS_OK;
    }
    if (ready != NULL) {
        constant.data = (void *)(uintptr_t)ready->bytes;
        copy.constant = &constant;
        copy.fill = NULL;
        copy.fill_rows = NULL;
        want = &copy;
    }
    return store->is_host                       ? make_in_slab(store, want, e)
           : store->kind == RONDO_MEMORY_PINNED ? make_pinned(account, want, &e->address)
                                                : make_on_gpu(account, want, &e->address);
}

static rondo_status make_entry(rondo__weight_account *account, const rondo__weight_want *want,
                               uint64_t hash, entry **out_entry) {
    rondo__weight_store *store = account->store;
    RETURN_IF_ERROR(reserve_bucket(store));
    entry *e = rondo__calloc(1, sizeof *e + want->form_bytes);
    if (e == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    e->hash = hash;
    e->bytes = want->bytes;
    e->owner = get_owner(want);
    e->form_bytes = want->form_bytes;
    if (want->form_bytes > 0) {
        memcpy(e->form, want->form, want->form_bytes);
    }
    rondo_status status = make_form(account, want, e);
    if (status != RONDO_STATUS_OK) {
        rondo__free(e);
        return status;
    }
    rondo_tensor_share(want->constant, &e->constant);
    entry **bucket = get_bucket(store, hash);
    e->next = *bucket;
    *bucket = e;
    store->entry_count += 1;
    *out_entry = e;
    return RONDO_STATUS_OK;
}

static void drop_entry(rondo__weight_store *store, entry *e) {
    entry **link = get_bucket(store, e->hash);
    while (*link != e) {
        link = &(*link)->next;
    }
    *link = e->next;
    store->entry_count -= 1;
    free_entry(store, e);
}

// ---- holding ----------------------------------------------------------------------------------

// The account's share of the form, made when it has none.
static rondo_status get_weight(rondo__weight_account *account, const rondo__weight_want *want,
                               rondo__weight **out_weight) {
    rondo__weight_store *store = account->store;
    const uint64_t hash = hash_want(want);
    entry *e = find_entry(store, want, hash);
    for (rondo__weight *w = e != NULL ? e->holders : NULL; w != NULL; w = w->next) {
        if (w->account == account) {
            *out_weight = w;
            return RONDO_STATUS_OK;
        }
    }
    const rondo__owner owner = get_owner(want);
    if (!rondo__budget_take(account->budget, owner, want->bytes)) {
        return RONDO_STATUS_NO_MEMORY;
    }
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    rondo__weight *weight = rondo__calloc(1, sizeof *weight);
    if (weight == NULL) {
        goto give_back;
    }
    status = e != NULL ? RONDO_STATUS_OK : make_entry(account, want, hash, &e);
    if (status != RONDO_STATUS_OK) {
        goto free_weight;
    }
    *weight = (rondo__weight){.entry = e, .account = account, .next = e->holders};
    e->holders = weight;
    account->bytes += e->bytes;
    *out_weight = weight;
    return RONDO_STATUS_OK;

free_weight:
    rondo__free(weight);
give_back:
    rondo__budget_give_back(account->budget, owner, want->bytes);
    if (status == RONDO_STATUS_NO_DEVICE_MEMORY) {
        rondo__budget_name_largest(account->budget);
    }
    return status;
}

rondo_status rondo__weight_list_add(rondo__weight_list *list, const rondo__weight_want *want,
                                    void **out_address) {
    *out_address = NULL;
    rondo__weight_store *store = list->account->store;
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(list->weights, list->capacity, list->count + 1));
    rondo__weight *weight = NULL;
    const int64_t taken = rondo__memory_get_thread_bytes();
    const uint64_t start_ns = rondo__clock_now_ns();
    (void)pthread_mutex_lock(&store->lock);
    const size_t entry_count = store->entry_count;
    rondo_status status = store->copying != NULL && store->copying != list->account->stream
                              ? end_copies(store)
                              : RONDO_STATUS_OK;
    if (status == RONDO_STATUS_OK) {
        status = get_weight(list->account, want, &weight);
    }
    if (store->entry_count > entry_count) {
        list->made_bytes += want->bytes;
        list->made_ns += rondo__clock_now_ns() - start_ns;
    }
    rondo__memory_set_thread_bytes(taken);  // a form is counted here, and is no part of a plan
    if (status == RONDO_STATUS_OK) {
        if (weight->last_number != list->number) {
            weight->last_number = list->number;
            weight->use_count += 1;
            list->weights[list->count++] = weight;
            list->bytes += weight->entry->bytes;
        }
        *out_address = weight->entry->address;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

const void *rondo__weight_list_find(const rondo__weight_list *list, const void *address,
                                    size_t *out_form_bytes) {
    for (size_t i = 0; i < list->count; i++) {
        const entry *e = list->weights[i]->entry;
        if (e->address == address) {
            *out_form_bytes = e->form_bytes;
            return e->form;
        }
    }
    return NULL;
}

// The last list of an account gives up the account's share, the last account the form.
static void release(rondo__weight_store *store, rondo__weight *weight, uint64_t list_number) {
    entry *e = weight->entry;
    if (weight->last_number == list_number) {
        weight->last_number = 0;
    }
    if (--weight->use_count > 0) {
        return;
    }
    rondo__weight **link = &e->holders;
    while (*link != weight) {
        link = &(*link)->next;
    }
    *link = weight->next;
    weight->account->bytes -= e->bytes;
    rondo__budget_give_back(weight->account->budget, e->owner, e->bytes);
    rondo__free(weight);
    if (e->holders == NULL) {
        drop_entry(store, e);
    }
}

void rondo__weight_list_cut(rondo__weight_list *list, size_t count) {
    if (list->count > count) {
        rondo__weight_store *store = list->account->store;
        (void)pthread_mutex_lock(&store->lock);
        while (list->count > count) {
            rondo__weight *weight = list->weights[--list->count];
            list->bytes -= weight->entry->bytes;
            release(store, weight, list->number);
        }
        (void)pthread_mutex_unlock(&store->lock);
    }
    if (count == 0) {
        rondo__free(list->weights);
        list->weights = NULL;
        list->capacity = 0;
    }
}

rondo_status rondo__weight_list_settle(rondo__weight_list *list) {
    rondo__weight_store *store = list->account->store;
    (void)pthread_mutex_lock(&store->lock);
    const rondo_status status = end_copies(store);
    rondo__weight_upload_end(&store->upload, store->device);
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}

uint64_t rondo__weight_list_get_shared_bytes(const rondo__weight_list *list) {
    uint64_t bytes = 0;
    if (list->count == 0) {
        return 0;
    }
    rondo__weight_store *store = list->account->store;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t i = 0; i < list->count; ++i) {
        const rondo__weight *weight = list->weights[i];
        const bool is_shared = weight->use_count > 1 || weight->entry->holders->next != NULL;
        bytes += is_shared ? weight->entry->bytes : 0;
    }
    (void)pthread_mutex_unlock(&store->lock);
    return bytes;
}

// ---- showing ----------------------------------------------------------------------------------

static rondo_status show(const rondo__weight_store *store, const entry *e, rondo_stream *stream,
                         rondo__form_visit visit, void *user_data) {
    rondo__ready_form form = {.dtype = e->constant.dtype,
                              .constant = e->constant.data,
                              .constant_bytes = rondo_tensor_get_bytes(&e->constant),
                              .form = e->form,
                              .form_bytes = e->form_bytes,
                              .bytes = e->address,
                              .byte_count = e->bytes};
    void *copy = NULL;
    rondo_status status = RONDO_STATUS_OK;
    if (!store->is_host) {
        copy = rondo__block_allocate(e->bytes, WEIGHT_ALIGNMENT);
        if (copy == NULL) {
            return RONDO_STATUS_NO_MEMORY;
        }
        form.bytes = copy;
        status = rondo_stream_copy(stream, copy, e->address, e->bytes, RONDO_COPY_DEVICE_TO_HOST);
        if (status == RONDO_STATUS_OK) {
            status = rondo_stream_synchronize(stream);
        }
    }
    if (status == RONDO_STATUS_OK) {
        status = visit(user_data, &form);
    }
    rondo__block_free(copy);
    return status;
}

static bool is_held_by(const entry *e, const rondo__weight_account *account) {
    const rondo__weight *w = e->holders;
    while (w != NULL && w->account != account) {
        w = w->next;
    }
    return w != NULL;
}

rondo_status rondo__weight_account_visit(const rondo__weight_account *account,
                                         rondo__form_visit visit, void *user_data) {
    rondo__weight_store *store = account->store;
    rondo_status status = RONDO_STATUS_OK;
    (void)pthread_mutex_lock(&store->lock);
    for (size_t b = 0; b < store->bucket_count; ++b) {
        const entry *e = store->buckets[b];
        for (; e != NULL && status == RONDO_STATUS_OK; e = e->next) {
            if (e->owner == RONDO__OWNER_PACKED && e->form_bytes > 0 && e->bytes > 0 &&
                is_held_by(e, account)) {
                status = show(store, e, account->stream, visit, user_data);
            }
        }
    }
    (void)pthread_mutex_unlock(&store->lock);
    return status;
}
