// base/memory.c — the heap, with a hook that lets tests fail the nth allocation.
#include "base/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "base/budget.h"
#include "base/checked.h"
#include "base/error.h"

enum {
    SMALL_BYTES = 1024,
    // From here on a block is a mapping of its own. Zeroing as many bytes takes as long as the
    // faults of fresh pages.
    MAPPED_BYTES_MIN = 256 * 1024,
};

// Sanitizers watch the heap, not mappings.
#if defined(__SANITIZE_ADDRESS__)
enum { CAN_MAP = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { CAN_MAP = 0 };
#else
enum { CAN_MAP = 1 };
#endif
#else
enum { CAN_MAP = 1 };
#endif

// Set by tests while no other thread allocates, so that the pair needs no lock.
static _Atomic(rondo__fault_function) fault_function;
static _Atomic(void *) fault_user_data;
static atomic_bool is_balanced;
static _Atomic(int64_t) balance;

void rondo__memory_set_fault(rondo__fault_function function, void *user_data) {
    atomic_store(&fault_function, NULL);
    atomic_store(&fault_user_data, user_data);
    atomic_store(&is_balanced, true);
    atomic_store(&fault_function, function);
}

static bool must_fail(void) {
    rondo__fault_function function = atomic_load_explicit(&fault_function, memory_order_acquire);
    return function != NULL && function(atomic_load(&fault_user_data));
}

// Counts an allocation, and gives it back unchanged.
static void *note(void *address) {
    if (atomic_load_explicit(&is_balanced, memory_order_relaxed) && address != NULL) {
        atomic_fetch_add_explicit(&balance, 1, memory_order_relaxed);
    }
    return address;
}

int64_t rondo__memory_get_balance(void) {
    return atomic_load(&balance);
}

static void report(size_t count, size_t bytes) {
    (void)RONDO_FAIL_AS("malloc", NO_MEMORY, "cannot allocate %zu x %zu bytes of host memory",
                        count, bytes);
}

void *rondo__malloc(size_t bytes) {
    void *address = must_fail() ? NULL : note(malloc(bytes != 0 ? bytes : 1));
    if (address == NULL) {
        report(1, bytes);
    }
    return address;
}

void *rondo__calloc(size_t count, size_t bytes) {
    void *address = NULL;
    size_t total;
    // The product is checked here: a sanitizer's calloc would end the process.
    if (rondo__mul_size(count, bytes, &total) && !must_fail()) {
        // glibc before 2.41 serves small blocks faster from malloc than from calloc.
        if (total > 0 && total <= SMALL_BYTES) {
            address = note(malloc(total));
            if (address != NULL) {
                memset(address, 0, total);
            }
        } else {
            address = note(calloc(1, total != 0 ? total : 1));
        }
    }
    if (address == NULL) {
        report(count, bytes);
    }
    return address;
}

void *rondo__realloc(void *address, size_t bytes) {
    void *moved = must_fail() ? NULL : realloc(address, bytes != 0 ? bytes : 1);
    if (moved == NULL) {
        report(1, bytes);
    } else if (address == NULL) {
        (void)note(moved);
    }
    return moved;
}

void *rondo__malloc_aligned(size_t bytes, size_t alignment) {
    void *address = NULL;
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    if (must_fail() || posix_memalign(&address, alignment, bytes != 0 ? bytes : 1) != 0) {
        report(1, bytes);
        return NULL;
    }
    return note(address);
}

char *rondo__strdup(const char *text) {
    return rondo__strndup(text, strlen(text));
}

char *rondo__strndup(const char *text, size_t length) {
    length = strnlen(text, length);
    char *copy = rondo__malloc(length + 1);
    if (copy != NULL) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}

char *rondo__strformat(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) {
        report(1, 0);
        return NULL;
    }
    char *text = rondo__malloc((size_t)length + 1);
    if (text != NULL) {
        va_start(arguments, format);
        vsnprintf(text, (size_t)length + 1, format, arguments);
        va_end(arguments);
    }
    return text;
}

void rondo__free(void *address) {
    if (atomic_load_explicit(&is_balanced, memory_order_relaxed) && address != NULL) {
        atomic_fetch_sub_explicit(&balance, 1, memory_order_relaxed);
    }
    free(address);
}

// Stands directly before a block.
typedef struct block_header {
    rondo__budget *budget;  // retained
    void *base;             // what the heap or the system gave
    size_t total_bytes;     // from `base` on; what counts against the budget
    bool is_mapped;
} block_header;

static void *reserve_block(size_t total, bool is_mapped) {
    if (!is_mapped) {
        return rondo__calloc(1, total);
    }
    void *base =
        must_fail() ? MAP_FAILED
                    : mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        report(1, total);
        return NULL;
    }
    return note(base);
}

void *rondo__block_allocate(size_t bytes, size_t alignment) {
    size_t total;
    alignment = alignment < sizeof(block_header) ? sizeof(block_header) : alignment;
    if (!rondo__add_size(bytes, 2 * alignment, &total)) {
        report(1, bytes);
        return NULL;
    }
    rondo__budget *budget = rondo__budget_get_entered();
    if (!rondo__budget_take(budget, total)) {
        return NULL;
    }
    const bool is_mapped = CAN_MAP && total >= MAPPED_BYTES_MIN;
    char *base = reserve_block(total, is_mapped);
    if (base == NULL) {
        rondo__budget_give_back(budget, total);
        return NULL;
    }
    rondo__budget_retain(budget);
    // The first aligned place that leaves room for the header.
    size_t skip = (size_t)(-(uintptr_t)base) & (alignment - 1);
    skip += skip < sizeof(block_header) ? alignment : 0;
    block_header header = {
        .budget = budget, .base = base, .total_bytes = total, .is_mapped = is_mapped};
    memcpy(base + skip - sizeof header, &header, sizeof header);
    return base + skip;
}

void rondo__block_free(void *block) {
    if (block == NULL) {
        return;
    }
    block_header header;
    memcpy(&header, (char *)block - sizeof header, sizeof header);
    if (!header.is_mapped) {
        rondo__free(header.base);
    } else {
        if (atomic_load_explicit(&is_balanced, memory_order_relaxed)) {
            atomic_fetch_sub_explicit(&balance, 1, memory_order_relaxed);
        }
        munmap(header.base, header.total_bytes);
    }
    rondo__budget_give_back(header.budget, header.total_bytes);
    rondo__budget_release(header.budget);
}

void rondo__memory_trim(void) {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

rondo_status rondo__array_reserve(void **array, size_t *capacity, size_t needed,
                                  size_t element_bytes) {
    if (needed <= *capacity) {
        return RONDO_STATUS_OK;
    }
    // Half as much again, so that appending one by one stays linear in the end.
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < needed) {
        wanted = needed < 8 ? 8 : needed;
    }
    size_t bytes;
    if (!rondo__mul_size(wanted, element_bytes, &bytes)) {
        return RONDO_FAIL(NO_MEMORY, "an array of %zu elements of %zu bytes is too large", needed,
                          element_bytes);
    }
    void *grown = rondo__realloc(*array, bytes);
    if (grown == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    size_t old_bytes = *capacity * element_bytes;
    memset((char *)grown + old_bytes, 0, bytes - old_bytes);
    *array = grown;
    *capacity = wanted;
    return RONDO_STATUS_OK;
}
