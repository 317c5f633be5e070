// doctor/inject/inject_launch.c — see inject_launch.h.
// SPDX-License-Identifier: Apache-2.0
#include "doctor/inject/inject_launch.h"

#include <string.h>

#include "doctor/inject/inject_place.h"
#include "doctor/inject/inject_real.h"
#include "doctor/inject/inject_times.h"

enum {
    FUNCTION_SLOTS = 1 << 12,
    TRIES = 8,
    PARAMETERS_MAX = 64,
    WORDS_NEAR = 23,
    SIZE_MASK = 7,
    OFFSET_MASK = 0xf8,
    EXTRA_BUFFER = 1,  // CU_LAUNCH_PARAM_BUFFER_POINTER
    EXTRA_BYTES = 2,   // CU_LAUNCH_PARAM_BUFFER_SIZE
};

#define ADDRESS(pointer) ((uint64_t)(uintptr_t)(pointer))

// ---- functions --------------------------------------------------------------------------------

// What is known of a function, in one line of the processor's cache: found once, until a module
// goes. Of each of its argument words: the parameter, and where in that it lies.
typedef struct known_function {
    _Alignas(64) _Atomic(void *) handle;
    uint32_t name;
    uint32_t epoch;  // when it was found
    uint8_t word_count;
    bool is_whole;  // the words are all of its arguments
    uint16_t words[WORDS_NEAR];
} known_function;

_Static_assert(sizeof(known_function) == 64, "a line");

static known_function g_functions[FUNCTION_SLOTS];
static uint16_t g_more_words[FUNCTION_SLOTS][RONDO__DOCTOR_WORDS_MAX - WORDS_NEAR];
static atomic_flag g_functions_busy = ATOMIC_FLAG_INIT;

typedef int (*name_getter)(const char **out_name, void *function);
typedef int (*parameter_getter)(void *function, size_t index, size_t *out_offset,
                                size_t *out_bytes);

static void add_word(known_function *known, size_t parameter, size_t offset, size_t bytes) {
    const size_t i = known->word_count++;
    uint16_t *place =
        i < WORDS_NEAR ? &known->words[i] : &g_more_words[known - g_functions][i - WORDS_NEAR];
    *place = (uint16_t)(parameter << 8 | offset | (bytes - 1));
}

// Each parameter begins a word. `in_out_structs`: which words belong to a struct, and in the upper
// half which are one byte (a struct without members, or a flag): those may be bytes that the
// program never writes.
static void add_parameter(known_function *known, size_t parameter, size_t bytes,
                          uint64_t *in_out_structs) {
    const bool is_plain = bytes == 2 || bytes == 4 || bytes == 8;
    size_t offset = 0;
    for (; offset < bytes && known->word_count < RONDO__DOCTOR_WORDS_MAX; offset += 8) {
        *in_out_structs |= is_plain ? 0 : (uint64_t)1 << known->word_count;
        *in_out_structs |=
            bytes == 1 ? (uint64_t)1 << (known->word_count + RONDO__DOCTOR_WORDS_MAX) : 0;
        add_word(known, parameter, offset, bytes - offset < 8 ? bytes - offset : 8);
    }
    known->is_whole = known->is_whole && offset >= bytes;
}

static void tell_layout(uint32_t name, uint64_t structs) {
    rondo__doctor_event event = {.call = RONDO__DOCTOR_LAYOUT,
                                 .name = name,
                                 .object = structs,
                                 .begin_ns = rondo__inject_now_ns()};
    if (event.object != 0 && event.name != 0) {
        rondo__inject_put(&event, NULL);
    }
}

static void read_function(known_function *known, void *function) {
    static const char *const getters[2][2] = {{"cuFuncGetName", "cuFuncGetParamInfo"},
                                              {"cuKernelGetName", "cuKernelGetParamInfo"}};
    known->name = 0;
    known->epoch = rondo__inject_get_epoch();
    known->word_count = 0;
    known->is_whole = false;
    for (int i = 0; i < 2 && known->name == 0; i++) {
        name_getter get_name = (name_getter)rondo__inject_find_real(getters[i][0]);
        parameter_getter get_parameter = (parameter_getter)rondo__inject_find_real(getters[i][1]);
        const char *name = NULL;
        if (get_name == NULL || get_name(&name, function) != 0) {
            continue;
        }
        char text[RONDO__DOCTOR_TEXT_MAX];
        rondo__inject_read_symbol(name, text, sizeof(text));
        known->name = rondo__inject_text(text);
        size_t offset = 0;
        size_t bytes = 0;
        uint64_t structs = 0;
        size_t parameter = 0;
        for (; get_parameter != NULL && parameter < PARAMETERS_MAX &&
               get_parameter(function, parameter, &offset, &bytes) == 0;
             parameter++) {
            known->is_whole = parameter == 0 || known->is_whole;
            add_parameter(known, parameter, bytes, &structs);
        }
        tell_layout(known->name, structs);
        rondo__inject_tell_heap();
    }
}

// Fills `chosen`. The call does not wait for a place that another thread is filling.
static __attribute__((cold, noinline)) const known_function *learn_function(known_function *chosen,
                                                                            void *function) {
    if (atomic_flag_test_and_set(&g_functions_busy)) {
        return NULL;
    }
    atomic_store(&chosen->handle, NULL);
    read_function(chosen, function);
    atomic_store_explicit(&chosen->handle, function, memory_order_release);
    atomic_flag_clear(&g_functions_busy);
    return chosen;
}

// A function lies in one of a few places from its own on. If all of those are taken one is
// replaced.
static __attribute__((noinline)) const known_function *search_function(void *function,
                                                                       uint64_t hash,
                                                                       uint32_t epoch) {
    known_function *chosen = &g_functions[hash >> 52];
    for (size_t i = 0; i < TRIES; i++) {
        known_function *known = &g_functions[((hash >> 52) + i) % FUNCTION_SLOTS];
        const void *found = atomic_load_explicit(&known->handle, memory_order_acquire);
        if (found == function && known->epoch == epoch) {
            return known;
        }
        if (found == NULL || known->epoch != epoch) {
            chosen = known;
            break;
        }
        chosen = i == (hash >> 40) % TRIES ? known : chosen;
    }
    return learn_function(chosen, function);
}

static inline const known_function *find_function(void *function, uint32_t epoch) {
    const uint64_t hash = (ADDRESS(function) >> 4) * 0x9e3779b97f4a7c15u;
    const known_function *known = &g_functions[hash >> 52];
    const void *found = atomic_load_explicit(&known->handle, memory_order_acquire);
    return found == function && known->epoch == epoch ? known
                                                      : search_function(function, hash, epoch);
}

void rondo__inject_forget_functions(void) {
    atomic_fetch_add(&rondo__inject_common.epoch, 1);
}

// ---- the hash ---------------------------------------------------------------------------------

static inline uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static inline uint64_t join(uint64_t low, uint64_t high) {
    return low | high << 32;
}

// Two halves, side by side in the processor.
typedef struct launch_hash {
    uint64_t now, next;
} launch_hash;

static inline void add_to_hash(launch_hash *hash, uint64_t word) {
    const uint64_t mixed = mix(hash->now, word);
    hash->now = hash->next;
    hash->next = mixed;
}

// Reads a number alone: the program may just have written it, and two that were written one by one
// are not there for one read until both have left the processor's queue.
static inline uint64_t read_alone(const unsigned *number) {
    return *(const volatile unsigned *)number;
}

static inline launch_hash hash_shape(const rondo__inject_launch *launch, uint32_t thread) {
    const rondo__cu_launch_config *config = launch->config;
    launch_hash hash = {0x9e3779b97f4a7c15u, 0xc2b2ae3d27d4eb4fu};
    add_to_hash(&hash, ADDRESS(launch->function));
    add_to_hash(&hash, ADDRESS(config->stream));
    add_to_hash(&hash, join(read_alone(&config->grid[0]), read_alone(&config->grid[1])));
    add_to_hash(&hash, join(read_alone(&config->grid[2]), read_alone(&config->block[0])));
    add_to_hash(&hash, join(read_alone(&config->block[1]), read_alone(&config->block[2])));
    add_to_hash(&hash, join(config->shared_bytes, thread));
    add_to_hash(&hash, join(launch->name, launch->call | (uint32_t)launch->flags << 16));
    return hash;
}

// Two launches with the same hash would be taken for one, which 64 bits make unlikely.
static inline uint64_t end_hash(launch_hash hash, uint32_t word_count) {
    return mix(mix(hash.now, hash.next * 0xc4ceb9fe1a85ec53u), word_count) | 1;
}

// ---- arguments --------------------------------------------------------------------------------

static __attribute__((noinline)) uint64_t read_bytes(const char *from, size_t bytes) {
    uint64_t word = 0;
    memcpy(&word, from, bytes);
    return word;
}

static inline uint64_t read_word(const char *from, size_t bytes) {
    uint64_t whole = 0;
    uint32_t half = 0;
    if (bytes == 8) {
        memcpy(&whole, from, 8);
        return whole;
    }
    if (bytes == 4) {
        memcpy(&half, from, 4);
        return half;
    }
    return read_bytes(from, bytes);
}

// Returns how many words there are.
static inline uint32_t read_parameters(rondo__inject_launch *launch, const known_function *known,
                                       void **parameters, launch_hash *in_out_hash) {
    launch_hash hash = *in_out_hash;
    uint32_t count = 0;
    for (; count < known->word_count; count++) {
        const size_t place = __builtin_expect(count < WORDS_NEAR, 1)
                                 ? known->words[count]
                                 : g_more_words[known - g_functions][count - WORDS_NEAR];
        const char *from = parameters[place >> 8];
        if (from == NULL) {
            launch->flags &= (uint8_t)~RONDO__DOCTOR_WORDS_WHOLE;
            break;
        }
        const uint64_t word = read_word(from + (place & OFFSET_MASK), (place & SIZE_MASK) + 1);
        launch->words[count] = word;
        add_to_hash(&hash, word);
    }
    *in_out_hash = hash;
    return count;
}

static __attribute__((cold, noinline)) uint32_t read_extra(rondo__inject_launch *launch,
                                                           void **extra, launch_hash *hash) {
    const char *buffer = NULL;
    size_t bytes = 0;
    uint32_t count = 0;
    for (size_t i = 0; extra[i] != NULL && i < 8; i += 2) {
        buffer = ADDRESS(extra[i]) == EXTRA_BUFFER ? extra[i + 1] : buffer;
        bytes = ADDRESS(extra[i]) == EXTRA_BYTES ? *(const size_t *)extra[i + 1] : bytes;
    }
    for (size_t done = 0; buffer != NULL && done < bytes && count < RONDO__DOCTOR_WORDS_MAX;
         done += 8) {
        uint64_t word = 0;
        memcpy(&word, buffer + done, bytes - done < 8 ? bytes - done : 8);
        launch->words[count++] = word;
        add_to_hash(hash, word);
    }
    const bool is_whole = buffer != NULL && bytes <= sizeof(launch->words);
    launch->flags |= is_whole ? RONDO__DOCTOR_WORDS_WHOLE : 0;
    add_to_hash(hash, bytes);
    return count;
}

// ---- the launch -------------------------------------------------------------------------------

void rondo__inject_begin_launch(rondo__inject_launch *launch, bool is_per_thread, void **parameters,
                                void **extra) {
    const uint32_t thread = rondo__inject_enter(&launch->entered_ns);
    launch->flags = rondo__inject_find_flags(is_per_thread);
    const known_function *known = find_function(launch->function, rondo__inject_get_epoch());
    const bool has_words = parameters != NULL && known != NULL;
    launch->name = known != NULL ? known->name : 0;
    launch->flags |= has_words && known->is_whole ? RONDO__DOCTOR_WORDS_WHOLE : 0;
    launch_hash hash = hash_shape(launch, thread);
    launch->word_count = has_words       ? read_parameters(launch, known, parameters, &hash)
                         : extra != NULL ? read_extra(launch, extra, &hash)
                                         : 0;
    launch->hash = end_hash(hash, launch->word_count);
    launch->begin_ns = rondo__inject_now_ns();
}

static __attribute__((cold, noinline)) void record_whole(const rondo__inject_launch *launch,
                                                         int status, uint64_t duration_ns) {
    const rondo__cu_launch_config *config = launch->config;
    rondo__doctor_event event = {
        .begin_ns = launch->begin_ns,
        .duration_ns = duration_ns,
        .stream = ADDRESS(config->stream),
        .object = ADDRESS(launch->function),
        .grid = {config->grid[0], config->grid[1], config->grid[2]},
        .block = {config->block[0], config->block[1], config->block[2]},
        .shared_bytes = config->shared_bytes,
        .name = launch->name,
        .thread = rondo__inject_thread.thread,
        .status = status,
        .call = launch->call,
        .flags = launch->flags,
        .word_count = launch->word_count,
    };
    rondo__inject_put_whole(&event, launch->words, status == 0 ? launch->hash : 0);
}

void rondo__inject_end_launch(rondo__inject_launch *launch, int status) {
    const uint64_t duration_ns = rondo__inject_now_ns() - launch->begin_ns;
    if (status != 0 || !rondo__inject_put_again(launch->hash, launch->begin_ns, duration_ns)) {
        record_whole(launch, status, duration_ns);
    }
    rondo__inject_follow(rondo__inject_leave(launch->entered_ns, duration_ns));
}
