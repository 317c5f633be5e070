// base/budget.c — see budget.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/use_count.h"

struct rondo__budget {
    atomic_int reference_count;
    _Atomic uint64_t limit_bytes;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t refusal_count;
    _Atomic uint64_t owned_bytes[RONDO__OWNER_COUNT];
    const char *option;
};

static _Thread_local rondo__budget *entered;
static _Thread_local rondo__owner entered_owner;

rondo_status rondo__budget_create(uint64_t limit_bytes, const char *option,
                                  rondo__budget **out_budget) {
    rondo__budget *budget = rondo__calloc(1, sizeof *budget);
    *out_budget = budget;
    if (budget == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    atomic_init(&budget->reference_count, 1);
    atomic_init(&budget->limit_bytes, limit_bytes);
    budget->option = option;
    return RONDO_STATUS_OK;
}

rondo_status rondo__budget_copy(const rondo__budget *budget, rondo__budget **out_budget) {
    RETURN_IF_ERROR(
        rondo__budget_create(rondo__budget_get_limit(budget), budget->option, out_budget));
    atomic_store(&(*out_budget)->used_bytes, rondo__budget_get_used(budget));
    for (int owner = 0; owner < RONDO__OWNER_COUNT; ++owner) {
        atomic_store(&(*out_budget)->owned_bytes[owner],
                     rondo__budget_get_owned(budget, (rondo__owner)owner));
    }
    return RONDO_STATUS_OK;
}

void rondo__budget_retain(rondo__budget *budget) {
    if (budget != NULL) {
        rondo__reference_take(&budget->reference_count);
    }
}

void rondo__budget_release(rondo__budget *budget) {
    if (budget != NULL && rondo__reference_drop(&budget->reference_count)) {
        rondo__free(budget);
    }
}

rondo__budget *rondo__budget_enter(rondo__budget *budget) {
    rondo__budget *before = entered;
    entered = budget;
    return before;
}

rondo__budget *rondo__budget_get_entered(void) {
    return entered;
}

rondo__owner rondo__budget_enter_owner(rondo__owner owner) {
    const rondo__owner before = entered_owner;
    entered_owner = owner;
    return before;
}

rondo__owner rondo__budget_get_owner(void) {
    return entered_owner;
}

uint64_t rondo__budget_get_owned(const rondo__budget *budget, rondo__owner owner) {
    return atomic_load_explicit(&budget->owned_bytes[owner], memory_order_relaxed);
}

void rondo__budget_name_largest(const rondo__budget *budget) {
    static const char *const names[RONDO__OWNER_COUNT] = {
        [RONDO__OWNER_TENSOR] = "tensors",         [RONDO__OWNER_ARENA] = "arenas",
        [RONDO__OWNER_STATE] = "states",           [RONDO__OWNER_STAGING] = "staging",
        [RONDO__OWNER_PINNED] = "pinned staging",  [RONDO__OWNER_WEIGHT] = "weights",
        [RONDO__OWNER_PACKED] = "packed weights",  [RONDO__OWNER_FOLDED] = "folded constants",
        [RONDO__OWNER_RECORDED] = "recorded runs",
    };
    uint64_t most = 0;
    int largest = 0;
    for (int owner = 0; budget != NULL && owner < RONDO__OWNER_COUNT; ++owner) {
        const uint64_t bytes = rondo__budget_get_owned(budget, (rondo__owner)owner);
        largest = bytes > most ? owner : largest;
        most = bytes > most ? bytes : most;
    }
    if (most > 0) {
        rondo__error_suffix("; the largest owner is %s with %" PRIu64 " bytes", names[largest],
                            most);
    }
}

bool rondo__budget_take(rondo__budget *budget, rondo__owner owner, uint64_t bytes) {
    if (budget == NULL) {
        return true;
    }
    const uint64_t limit = atomic_load_explicit(&budget->limit_bytes, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&budget->used_bytes, memory_order_relaxed);
    while (used <= limit && bytes <= limit - used) {
        if (atomic_compare_exchange_weak(&budget->used_bytes, &used, used + bytes)) {
            atomic_fetch_add_explicit(&budget->owned_bytes[owner], bytes, memory_order_relaxed);
            return true;
        }
    }
    atomic_fetch_add_explicit(&budget->refusal_count, 1, memory_order_relaxed);
    (void)RONDO_FAIL_AS("malloc", NO_MEMORY,
                        "%" PRIu64 " bytes beside the %" PRIu64 " in use pass the limit of %" PRIu64
                        "; raise %s",
                        bytes, used, limit, budget->option);
    rondo__budget_name_largest(budget);
    return false;
}

void rondo__budget_give_back(rondo__budget *budget, rondo__owner owner, uint64_t bytes) {
    if (budget != NULL) {
        atomic_fetch_sub_explicit(&budget->owned_bytes[owner], bytes, memory_order_relaxed);
        atomic_fetch_sub_explicit(&budget->used_bytes, bytes, memory_order_relaxed);
    }
}

void rondo__budget_set_limit(rondo__budget *budget, uint64_t limit_bytes) {
    atomic_store(&budget->limit_bytes, limit_bytes);
}

uint64_t rondo__budget_get_limit(const rondo__budget *budget) {
    return atomic_load(&budget->limit_bytes);
}

uint64_t rondo__budget_get_used(const rondo__budget *budget) {
    return atomic_load(&budget->used_bytes);
}

uint64_t rondo__budget_get_refusals(const rondo__budget *budget) {
    return budget != NULL ? atomic_load(&budget->refusal_count) : 0;
}

// The number in a control group's file; UINT64_MAX when there is none ("max", or no such file).
static uint64_t read_limit(const char *path) {
    uint64_t bytes = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%" SCNu64, &bytes) != 1) {
            bytes = UINT64_MAX;
        }
        fclose(file);
    }
    return bytes;
}

uint64_t rondo__machine_get_memory(void) {
    struct sysinfo facts;
    uint64_t bytes = sysinfo(&facts) == 0 ? (uint64_t)facts.totalram * facts.mem_unit : UINT64_MAX;
    // Inside a container its own group is mounted at the root, in the second version or the first.
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; ++i) {
        const uint64_t limit = read_limit(paths[i]);
        bytes = limit < bytes ? limit : bytes;
    }
    return bytes;
}

uint64_t rondo__budget_choose_limit(uint64_t base_bytes, uint64_t scale_bytes, uint64_t factor) {
    uint64_t limit;
    const uint64_t most = rondo__machine_get_memory() / 4 * 3;
    if (__builtin_mul_overflow(scale_bytes, factor, &limit) ||
        __builtin_add_overflow(limit, base_bytes, &limit)) {
        return most;
    }
    return limit < most ? limit : most;
}
