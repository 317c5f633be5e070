// kernel/weights/weight_store.h — constants in the forms that kernels read: packed for the products
// of the host, copied to a GPU, turned for its kernels. Each form is made once for a program and
// device, and shared by all nodes, plans and executors that want it.
//
//   store     of one program on one device          constant + form -> bytes, and who holds them
//   account   of one executor, its bodies included  its budget, where each form counts once
//   list      of one plan the forms that its kernels asked for, given up together
//
// A constant is known by the address of its bytes, which the store keeps alive as long as the form
// is held; programs share the bytes of their constants, so clones ask for the same. A tensor that
// does not own its bytes gets a form, too, but no other caller shares it.
//
// The store's lock is held while a form is made, so that a caller that asks for the same form waits
// for it instead of making it again. Runs do not ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "rondo/device.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

typedef struct rondo__weight_store rondo__weight_store;
typedef struct rondo__weight rondo__weight;

// kind       of the memory that forms are in; PINNED: on the processor's side of a GPU.
//
// Errors:    NO_MEMORY.
// Ownership: destroy it when all lists are empty; `device` is borrowed.
RONDO_MUST_USE rondo_status rondo__weight_store_create(rondo_device *device, rondo_memory_kind kind,
                                                       rondo__weight_store **out_store);
void rondo__weight_store_destroy(rondo__weight_store *store);  // NULL is fine

// A form that is ready: read from a plan file, which stays in memory as long as the constant.
typedef struct rondo__ready_form {
    rondo_dtype dtype;     // of the constant
    const void *constant;  // its bytes
    size_t constant_bytes;
    const void *form;
    size_t form_bytes;
    const void *bytes;  // aligned to 64
    size_t byte_count;
} rondo__ready_form;

// Forms that the store takes instead of making them; before anyone asks for one.
//
// forms      any order, of which it is the store's from now on; rondo__free frees it.
void rondo__weight_store_set_ready(rondo__weight_store *store, rondo__ready_form *forms,
                                   size_t count);

// Fill it in: the struct is the caller's, and outlives the lists made from it.
typedef struct rondo__weight_account {
    rondo__weight_store *store;
    rondo__budget *budget;  // of the device's memory; NULL: no limit
    rondo_stream *stream;   // for copies to a GPU; idle after each
    uint64_t bytes;         // what all lists hold; guarded by the store's lock
    uint64_t list_count;    // so far
} rondo__weight_account;

// Shows each form that an account holds, but for plain copies. Those of a GPU are copied to host
// memory for the visit.
//
// Errors:    NO_MEMORY, DRIVER, LOST, and what `visit` returns.
// Threads:   as rondo__weight_list_add; no other caller of the store goes on meanwhile.
typedef rondo_status (*rondo__form_visit)(void *user_data, const rondo__ready_form *form);
RONDO_MUST_USE rondo_status rondo__weight_account_visit(const rondo__weight_account *account,
                                                        rondo__form_visit visit, void *user_data);

typedef struct rondo__weight_list {
    rondo__weight_account *account;
    uint64_t number;  // among the account's lists; from 1 on
    size_t count, capacity;
    rondo__weight **weights;  // each once, if no other list of the account was filled meanwhile
    uint64_t bytes;
    uint64_t made_bytes, made_ns;  // of forms that were not there when this list wanted them
} rondo__weight_list;

// One form of one constant. Borrowed for the call.
typedef struct rondo__weight_want rondo__weight_want;
struct rondo__weight_want {
    const rondo_tensor *constant;
    const void *form;   // all that decides the bytes beside the constant, compared byte by byte; a
    size_t form_bytes;  // word of its own in front tells kinds apart
    size_t bytes;       // that the form has
    // Writes the form into zeroed host memory, aligned to 64. Both NULL: it is the constant's own
    // bytes.
    rondo_status (*fill)(const rondo__weight_want *want, void *bytes);
    // Instead, for a form of equal rows, of which each is made by itself: writes every byte of the
    // rows `first` to `last` - 1, the first of them at `rows`. Called as base/crew.h says.
    void (*fill_rows)(const rondo__weight_want *want, size_t first, size_t last, void *rows);
    size_t row_count;
    const void *data;  // for both
};

void rondo__weight_list_init(rondo__weight_account *account, rondo__weight_list *out_list);

// Finds the form or makes it, and holds it until the list is cut. *out_address is in the memory of
// the store's device and kind, never NULL, and not to be written. On a GPU the bytes may be under
// way, on the account's stream, until the list is settled.
//
// Errors:    NO_MEMORY, NO_DEVICE_MEMORY, DRIVER, LOST, and what `fill` returns.
// Threads:   one thread per account; several accounts of a store at a time.
// Capture:   not legal while a stream of the device records.
RONDO_MUST_USE rondo_status rondo__weight_list_add(rondo__weight_list *list,
                                                   const rondo__weight_want *want,
                                                   void **out_address);

// The form, as `want` named it, that the list holds at this address; NULL: none. Of a plain copy
// the form has no bytes.
const void *rondo__weight_list_find(const rondo__weight_list *list, const void *address,
                                    size_t *out_form_bytes);

// Gives up all but the first `count` of the list; with 0 the list is as after init.
void rondo__weight_list_cut(rondo__weight_list *list, size_t count);

// Waits until all forms are where their addresses say, and frees what the store holds for making
// them, until one is made again. To be called when a plan has all that it wants, before anything
// reads them.
//
// Errors:    DRIVER, LOST.
RONDO_MUST_USE rondo_status rondo__weight_list_settle(rondo__weight_list *list);

// Of the list's bytes those that other lists hold as well.
uint64_t rondo__weight_list_get_shared_bytes(const rondo__weight_list *list);
