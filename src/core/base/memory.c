// base/memory.c — the heap, the program's or the C library's, with a hook that lets tests fail the
// nth allocation.
// SPDX-License-Identifier: Apache-2.0
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

#include "base/checked.h"
#include "base/error.h"
#include "base/read_options.h"
#include "rondo/allocator.h"

enum { SMALL_BYTES = 1024 };

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

// Set once, before the first allocation.
static rondo_allocator program_heap;
static atomic_bool is_in_use;

rondo_status rondo_set_allocator(const rondo_allocator *allocator) {
    rondo_allocator wanted = {.struct_size = sizeof wanted};
    RETURN_IF_ERROR(
        rondo__read_options(allocator, &wanted, sizeof wanted, __func__, "rondo_allocator"));
    if (wanted.allocate == NULL || wanted.reallocate == NULL || wanted.free == NULL) {
        return RONDO_FAIL(INVALID, "an allocator with allocate, reallocate and free is needed");
    }
    if (atomic_load(&is_in_use)) {
        return RONDO_FAIL(STATE, "the library has taken memory already; set the allocator first");
    }
    program_heap = wanted;
    return RONDO_STATUS_OK;
}

static void begin_use(void) {
    if (!atomic_load_explicit(&is_in_use, memory_order_relaxed)) {
        atomic_store(&is_in_use, true);
    }
}

static void *take(size_t bytes, size_t alignment) {
    begin_use();
    if (program_heap.allocate != NULL) {
        return program_heap.allocate(program_heap.user_data, bytes, alignment);
    }
    if (alignment <= _Alignof(max_align_t)) {
        return malloc(bytes);
    }
    void *address = NULL;
    return posix_memalign(&address, alignment, bytes) == 0 ? address : NULL;
}

static void *take_zeroed(size_t bytes) {
    // glibc before 2.41 serves small blocks faster from malloc than from calloc.
    if (bytes > SMALL_BYTES && program_heap.allocate == NULL) {
        begin_use();
        return calloc(1, bytes);
    }
    void *address = take(bytes, _Alignof(max_align_t));
    return address != NULL ? memset(address, 0, bytes) : NULL;
}

static void *move(void *address, size_t bytes) {
    if (address == NULL) {
        return take(bytes, _Alignof(max_align_t));
    }
    return program_heap.reallocate != NULL
               ? program_heap.reallocate(program_heap.user_data, address, bytes)
               : realloc(address, bytes);
}

static bool must_fail(void) {
    rondo__fault_function function = atomic_load_explicit(&fault_function, memory_order_acquire);
    return function != NULL && function(atomic_load(&fault_user_data));
}

// Asking the heap for the size of a block costs as much as a fifth of taking it. So a thread counts
// from the first question on; only differences mean something.
static _Thread_local bool is_counting;
static _Thread_local int64_t thread_bytes;

int64_t rondo__memory_get_thread_bytes(void) {
    is_counting = true;
    return thread_bytes;
}

void rondo__memory_set_thread_bytes(int64_t bytes) {
    thread_bytes = bytes;
}

// The bytes that a block takes of the C library's heap; an allocator of the program does not tell.
static int64_t measure(void *address) {
#if defined(__GLIBC__)
    return is_counting && program_heap.allocate == NULL ? (int64_t)malloc_usable_size(address) : 0;
#else
    (void)address;
    return 0;
#endif
}

// Counts an allocation, and gives it back unchanged.
static void *note(void *address) {
    if (atomic_load_explicit(&is_balanced, memory_order_relaxed) && address != NULL) {
        atomic_fetch_add_explicit(&balance, 1, memory_order_relaxed);
    }
    return address;
}

static void forget(const void *address) {
    if (atomic_load_explicit(&is_balanced, memory_order_relaxed) && address != NULL) {
        atomic_fetch_sub_explicit(&balance, 1, memory_order_relaxed);
    }
}

int64_t rondo__memory_get_balance(void) {
    return atomic_load(&balance);
}

static void report(size_t count, size_t bytes) {
    (void)RONDO_FAIL_AS("malloc", NO_MEMORY, "cannot allocate %zu x %zu bytes of host memory",
                        count, bytes);
}

void *rondo__malloc(size_t bytes) {
    void *address = must_fail() ? NULL : note(take(bytes != 0 ? bytes : 1, _Alignof(max_align_t)));
    thread_bytes += measure(address);
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
        address = note(take_zeroed(total != 0 ? total : 1));
        thread_bytes += measure(address);
    }
    if (address == NULL) {
        report(count, bytes);
    }
    return address;
}

void *rondo__realloc(void *address, size_t bytes) {
    const int64_t former = measure(address);
    void *moved = must_fail() ? NULL : move(address, bytes != 0 ? bytes : 1);
    if (moved == NULL) {
        report(1, bytes);
        return NULL;
    }
    thread_bytes += measure(moved) - former;
    if (address == NULL) {
        (void)note(moved);
    }
    return moved;
}

void *rondo__malloc_aligned(size_t bytes, size_t alignment) {
    if (alignment < sizeof(void *)) {
        alignment = sizeof(void *);
    }
    void *address = must_fail() ? NULL : note(take(bytes != 0 ? bytes : 1, alignment));
    thread_bytes += measure(address);
    if (address == NULL) {
        report(1, bytes);
    }
    return address;
}

void *rondo__calloc_lines(size_t bytes) {
    void *address = rondo__malloc_aligned(bytes, RONDO__CACHE_LINE_BYTES);
    if (address != NULL) {
        memset(address, 0, bytes);
    }
    return address;
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
    forget(address);
    thread_bytes -= measure(address);
    if (program_heap.free == NULL) {
        free(address);
    } else if (address != NULL) {
        program_heap.free(program_heap.user_data, address);
    }
}

enum { LARGE_MAPPING_BYTES = 4 * 1024 * 1024 };

static void *map_pages(size_t bytes) {
    void *address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (bytes >= LARGE_MAPPING_BYTES) {  // a wish: finding small pages takes longer than reading
        (void)madvise(address, bytes, MADV_HUGEPAGE);
    }
#endif
    return address;
}

// Counts a mapping; NULL, with a record, where there is none.
static void *note_mapping(void *address, size_t bytes) {
    if (address == NULL) {
        report(1, bytes);
        return NULL;
    }
    thread_bytes += (int64_t)bytes;
    return note(address);
}

void *rondo__memory_map(size_t bytes) {
    return note_mapping(must_fail() ? NULL : map_pages(bytes), bytes);
}

void rondo__memory_unmap(void *address, size_t bytes) {
    forget(address);
    thread_bytes -= (int64_t)bytes;
    munmap(address, bytes);
}

// ---- mappings that are kept -------------------------------------------------------------------

// Begins a mapping that is kept. A slot is emptied before any thread reads what it points to.
typedef struct kept_mapping {
    size_t bytes;
} kept_mapping;

static _Atomic(kept_mapping *) kept_mappings[RONDO__KEPT_MAPPINGS];
static atomic_uint next_kept;  // the slot that makes room

static void unmap_kept(kept_mapping *kept) {
    if (kept != NULL) {
        munmap(kept, kept->bytes);
    }
}

static void *take_kept(size_t bytes) {
    for (size_t i = 0; i < RONDO__KEPT_MAPPINGS; ++i) {
        kept_mapping *kept = atomic_exchange(&kept_mappings[i], NULL);
        if (kept != NULL && kept->bytes == bytes) {
            return kept;
        }
        unmap_kept(kept != NULL ? atomic_exchange(&kept_mappings[i], kept) : NULL);
    }
    return NULL;
}

void *rondo__memory_map_again(size_t bytes) {
    if (must_fail()) {
        return note_mapping(NULL, bytes);
    }
    void *kept = bytes <= RONDO__KEPT_BYTES_MAX ? take_kept(bytes) : NULL;
    return note_mapping(kept != NULL ? kept : map_pages(bytes), bytes);
}

void rondo__memory_unmap_later(void *address, size_t bytes) {
    if (bytes > RONDO__KEPT_BYTES_MAX) {
        rondo__memory_unmap(address, bytes);
        return;
    }
    forget(address);
    thread_bytes -= (int64_t)bytes;
    kept_mapping *kept = address;
    kept->bytes = bytes;
    for (size_t i = 0; i < RONDO__KEPT_MAPPINGS; ++i) {
        kept_mapping *empty = NULL;
        if (atomic_compare_exchange_strong(&kept_mappings[i], &empty, kept)) {
            return;
        }
    }
    const unsigned slot = atomic_fetch_add(&next_kept, 1u) % RONDO__KEPT_MAPPINGS;
    unmap_kept(atomic_exchange(&kept_mappings[slot], kept));
}

void rondo__memory_trim(void) {
    for (size_t i = 0; i < RONDO__KEPT_MAPPINGS; ++i) {
        unmap_kept(atomic_exchange(&kept_mappings[i], NULL));
    }
#if defined(__GLIBC__)
    // One thread at a time: where another allocator was loaded in front of the C library's, this
    // may be the first call of the latter, which begins itself then and is not made for two threads
    // (glibc 2.36). A thread that comes meanwhile does not wait, as a lock might be held where a
    // process forks.
    static atomic_flag is_trimming = ATOMIC_FLAG_INIT;
    if (program_heap.allocate == NULL && !atomic_flag_test_and_set(&is_trimming)) {
        (void)malloc_trim(0);
        atomic_flag_clear(&is_trimming);
    }
#endif
}

// The array with `wanted` elements, or as it was, with a record.
static void *resize(void *array, size_t *capacity, size_t wanted, size_t element_bytes) {
    size_t bytes;
    if (!rondo__mul_size(wanted, element_bytes, &bytes)) {
        (void)RONDO_FAIL(NO_MEMORY, "an array of %zu elements of %zu bytes is too large", wanted,
                         element_bytes);
        return array;
    }
    void *grown = rondo__realloc(array, bytes);
    if (grown == NULL) {
        return array;
    }
    *capacity = wanted;
    return grown;
}

void *rondo__array_make_room(void *array, size_t *capacity, size_t needed, size_t element_bytes) {
    return needed <= *capacity ? array : resize(array, capacity, needed, element_bytes);
}

void *rondo__array_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes) {
    if (needed <= *capacity) {
        return array;
    }
    // Half as much again, so that appending one by one stays linear in the end.
    size_t wanted = *capacity + *capacity / 2;
    if (wanted < needed) {
        wanted = needed < 8 ? 8 : needed;
    }
    const size_t former = *capacity;
    char *grown = resize(array, capacity, wanted, element_bytes);
    if (*capacity > former) {
        memset(grown + former * element_bytes, 0, (*capacity - former) * element_bytes);
    }
    return grown;
}
