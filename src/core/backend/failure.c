// backend/failure.c — failures of work that runs later, on another thread.
// SPDX-License-Identifier: Apache-2.0

#include "backend/failure.h"

#include <stddef.h>

#include "base/error.h"

enum { SLOT_EMPTY = 0, SLOT_BUSY = 1, SLOT_FULL = 2 };

static _Thread_local rondo__failure_slot *current_slot;

rondo__failure_slot *rondo__failure_enter(rondo__failure_slot *slot) {
    rondo__failure_slot *former = current_slot;
    current_slot = slot;
    return former;
}

bool rondo__failure_is_inside(const rondo__failure_slot *slot) {
    return current_slot == slot;
}

void rondo__host_report_failure(void) {
    if (current_slot != NULL) {
        rondo__failure_put(current_slot);
    }
}

bool rondo__host_has_failure(void) {
    return current_slot != NULL && atomic_load(&current_slot->state) != SLOT_EMPTY;
}

void rondo__failure_put(rondo__failure_slot *slot) {
    int expected = SLOT_EMPTY;
    if (atomic_compare_exchange_strong(&slot->state, &expected, SLOT_BUSY)) {
        rondo__error_save(&slot->record);
        atomic_store(&slot->state, SLOT_FULL);
    }
}

rondo_status rondo__failure_take(rondo__failure_slot *slot) {
    int expected = SLOT_FULL;
    if (atomic_load_explicit(&slot->state, memory_order_acquire) != SLOT_FULL ||
        !atomic_compare_exchange_strong(&slot->state, &expected, SLOT_BUSY)) {
        return RONDO_STATUS_OK;
    }
    rondo_status status = rondo__error_adopt(&slot->record);
    atomic_store(&slot->state, SLOT_EMPTY);
    return status;
}
