// learn/learn_main.c — random steps are learned, patched, and compared with what they do eagerly.
//
//   rondo_learn [--device host|fake] [--steps N] [--seed S] [--only INDEX] [--without-proof]
//
// Prints "learned N, refused M, wrong 0". Pointers are equal, overlap and touch, floats are 0, 1,
// infinite and NaN. Half of the steps are trusted once they were learned, by the fewest recordings;
// the runs of the others are compared, so what was learned wrongly must be found out before a wrong
// run. Where the step itself refuses values, so must the learned one. All the memory that the steps
// share is compared, so what lies between and around the buffers is, too. A step of listed formulas
// alone that is refused is a failure. Without the proof some steps are learned that must not be:
// then the program fails, which a test wants to see.
// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "learn/learn.h"
#include "learn/learn_random.h"
#include "rondo/rondo.h"
#include "support/fake/fake_cuda.h"
#include "support/short_forms.h"

enum { WORLD = (SLOTS + 3) * EXTENT, KERNEL_BYTES = 64, BLOCK_BYTES = 512, RUNS = 8, LISTS = 4 };

typedef struct world {
    rondo_device *device;
    rondo_stream *stream;
    rondo_pool *pool;
    unsigned char *memory;
    void *function;
    bool is_fake;
} world;

typedef struct counts {
    uint64_t learned;
    uint64_t refused;
    uint64_t wrong;
    uint64_t missed;   // refused, though made of listed formulas
    uint64_t failing;  // not learned: the step itself fails for the first values
} counts;

static world g_world;

static void must(rondo_status status, const char *what) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", what, rondo_error_get_last()->message);
        exit(2);
    }
}
#define MUST(call) must((call), #call)

// ---- kernels ----------------------------------------------------------------------------------

typedef struct head {
    unsigned char *out;
    const unsigned char *in;
    uint32_t total;  // bytes of all arguments
    uint32_t zero;
} head;

enum { ARGUMENT_BYTES = sizeof(head) + 8 * WORDS_MAX };

// Whatever its arguments hold shows in what it writes.
static void run_kernel(void *arguments) {
    head h;
    memcpy(&h, arguments, sizeof h);
    uint64_t hash = 1;
    for (uint32_t i = sizeof h; i < h.total; ++i) {
        hash = (hash ^ ((unsigned char *)arguments)[i]) * UINT64_C(0x100000001b3);
        hash ^= hash >> 29;
    }
    for (size_t i = 0; i < KERNEL_BYTES; ++i) {
        h.out[i] = (unsigned char)(h.out[i] * 31U + h.in[i] + (hash >> (i % 8 * 8)));
    }
}

static void run_fake_kernel(const void *arguments, size_t bytes) {
    unsigned char copy[ARGUMENT_BYTES];
    memcpy(copy, arguments, bytes < sizeof copy ? bytes : sizeof copy);
    run_kernel(copy);
}

// Words side by side, each at a multiple of its width; what lies between is zero.
static size_t pack(const step *s, const node *n, const rondo_value *values, const void *block,
                   unsigned char bytes[ARGUMENT_BYTES]) {
    head h = {.out = (unsigned char *)values[n->out].pointer + n->out_offset,
              .in = n->reads_block ? (const unsigned char *)block + n->in_offset % 256
                                   : (const unsigned char *)values[n->in].pointer + n->in_offset};
    size_t at = sizeof h;
    memset(bytes, 0, ARGUMENT_BYTES);
    for (size_t i = 0; i < n->word_count; ++i) {
        const word *w = &n->words[i];
        const uint64_t bits = word_compute(s, w, values);
        at = (at + w->width - 1) & ~(size_t)(w->width - 1);
        memcpy(bytes + at, &bits, w->width);
        at += w->width;
    }
    // CUDA kernels of the fake driver have parameters of eight bytes.
    h.total = (uint32_t)((at + 7) & ~(size_t)7);
    memcpy(bytes, &h, sizeof h);
    return h.total;
}

// ---- the step ---------------------------------------------------------------------------------

static uint64_t get_size(const step *s, const node *n, const rondo_value *values) {
    const uint64_t size = word_compute(s, &n->size, values);
    return size > 0 ? size : 1;
}

static rondo_status issue(rondo_stream *stream, const step *s, const node *n,
                          const rondo_value *values, const void *block) {
    unsigned char bytes[ARGUMENT_BYTES];
    const size_t total = pack(s, n, values, block, bytes);
    unsigned char *out = (unsigned char *)values[n->out].pointer + n->out_offset;
    if (n->kind == NODE_COPY) {
        return rondo_stream_copy(stream, out,
                                 (const unsigned char *)values[n->in].pointer + n->in_offset,
                                 get_size(s, n, values), RONDO_COPY_DEVICE_TO_DEVICE);
    }
    if (n->kind == NODE_FILL) {
        const uint32_t value = (uint32_t)word_compute(s, &n->value, values);
        return rondo_stream_fill(stream, out, value, n->element_bytes, get_size(s, n, values));
    }
    if (n->kind == NODE_HOST) {
        return rondo_stream_call_host(stream, "mix", run_kernel, bytes, total);
    }
    const rondo_launch launch =
        LAUNCH("mix", g_world.function, (uint32_t)get_size(s, n, values), 64, bytes, total);
    return rondo_stream_launch(stream, &launch);
}

// A number that an argument gives, for what must not depend on one.
static uint64_t get_hidden(const step *s, const rondo_value *values) {
    for (size_t i = s->pointer_count; i < s->argument_count; ++i) {
        if (s->arguments[i].kind <= RONDO_ARGUMENT_BOOL) {
            return values[i].unsigned_integer;
        }
    }
    return 0;
}

static rondo_status run_step(rondo_stream *stream, const rondo_value *values, void *user_data) {
    step *s = user_data;
    void *block = NULL;
    ++s->calls;
    const uint64_t hidden = get_hidden(s, values) & 1;
    if (s->uses_block) {
        const size_t larger = s->has_larger_block ? 4096 * (size_t)hidden : 0;
        RETURN_IF_ERROR(rondo_pool_allocate(g_world.pool, stream, BLOCK_BYTES + larger, &block));
        RETURN_IF_ERROR(rondo_stream_copy(stream, block, values[0].pointer, BLOCK_BYTES,
                                          RONDO_COPY_DEVICE_TO_DEVICE));
    }
    rondo_status status = RONDO_STATUS_OK;
    for (size_t i = 0; i < s->node_count && status == RONDO_STATUS_OK; ++i) {
        status = issue(stream, s, &s->nodes[i], values, block);
    }
    if (s->has_more_nodes && hidden != 0 && status == RONDO_STATUS_OK) {
        status = issue(stream, s, &s->nodes[0], values, block);
    }
    if (block != NULL) {
        rondo_error failure = *rondo_error_get_last();
        MUST(rondo_pool_free(g_world.pool, block));
        rondo__error_restore(&failure);
    }
    return status;
}

// ---- one step ---------------------------------------------------------------------------------

static void fill_world(uint64_t salt) {
    for (size_t i = 0; i < WORLD; ++i) {
        g_world.memory[i] = (unsigned char)((i + salt) * 2654435761U >> 13);
    }
}

static bool draw_one_in_four(rng *r) {
    return draw_below(r, 4) == 0;
}

// Buffers anywhere, also the same for several, one right behind another, or within it.
static void draw_pointers(const step *s, rng *r, rondo_value *values) {
    for (size_t i = 0; i < s->pointer_count; ++i) {
        size_t place = (1 + draw_below(r, SLOTS)) * EXTENT;
        if (i > 0 && draw_below(r, 3) == 0) {
            place = (size_t)((unsigned char *)values[i - 1].pointer - g_world.memory);
            place =
                draw_below(r, 2) == 0 && place + EXTENT <= SLOTS * EXTENT ? place + EXTENT : place;
            place += draw_one_in_four(r) ? 256 * (size_t)draw_below(r, EXTENT / 256) : 0;
            place = place < SLOTS * EXTENT ? place & ~(size_t)255 : SLOTS * EXTENT;
        } else if (s->arguments[i].alignment == 16) {
            place += 16 * draw_below(r, 16);
        }
        values[i].pointer = g_world.memory + place;
    }
}

typedef enum outcome { RIGHT, WRONG, REFUSED } outcome;

static rondo_learned_state get_state(const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    MUST(rondo_learned_get_report(learned, &report));
    return report.state;
}

// What the step does itself, then the learned one. A step that fails leaves what it got to.
static outcome run_and_compare(step *s, rondo_learned *learned, const rondo_value *values,
                               uint64_t salt) {
    static unsigned char expected[WORLD];
    const uint64_t calls = s->calls;
    fill_world(salt);
    const rondo_status wanted = run_step(g_world.stream, values, s);
    MUST(rondo_stream_synchronize(g_world.stream));
    memcpy(expected, g_world.memory, WORLD);
    s->calls = calls;
    fill_world(salt);
    const rondo_status status =
        rondo_learned_run(learned, g_world.stream, values, s->argument_count);
    MUST(rondo_stream_synchronize(g_world.stream));
    if (status != RONDO_STATUS_OK && get_state(learned) == RONDO_LEARNED_REFUSED) {
        return REFUSED;
    }
    if ((status == RONDO_STATUS_OK) != (wanted == RONDO_STATUS_OK)) {
        printf("  status %d, expected %d: %s\n", (int)status, (int)wanted,
               rondo_error_get_last()->message);
        return WRONG;
    }
    for (size_t i = 0; i < WORLD && status == RONDO_STATUS_OK; ++i) {
        if (expected[i] != g_world.memory[i]) {
            printf("  at %p (%zu): %u, expected %u\n", (void *)&g_world.memory[i], i,
                   g_world.memory[i], expected[i]);
            return WRONG;
        }
    }
    return RIGHT;
}

static void draw_all(const step *s, rng *r, rondo_value *values, unsigned char *struct_bytes) {
    draw_pointers(s, r, values);
    step_draw_values(s, r, values, struct_bytes);
}

// Values a, b, a, a again, c, b, d, c.
static outcome try_values(step *s, rng *r, rondo_learned *learned, const rondo_value *first) {
    static const int order[RUNS] = {0, 1, 0, 0, 2, 1, 3, 2};
    rondo_value values[LISTS][ARGUMENTS_MAX];
    unsigned char struct_bytes[LISTS][STRUCT_BYTES];
    memcpy(values[0], first, sizeof values[0]);
    for (int i = 1; i < LISTS; ++i) {
        draw_all(s, r, values[i], struct_bytes[i]);
    }
    outcome result = RIGHT;
    for (int i = 0; i < RUNS && result == RIGHT; ++i) {
        result = run_and_compare(s, learned, values[order[i]], (uint64_t)i);
        for (size_t k = 0; k < s->argument_count && result == WRONG; ++k) {
            printf("  run %d: %s is 0x%" PRIx64 "\n", i, s->names[k],
                   values[order[i]][k].unsigned_integer);
        }
    }
    return result;
}

static void print_words(const step *s) {
    for (size_t i = 0; i < s->argument_count; ++i) {
        const rondo_argument *a = &s->arguments[i];
        printf("  %s: kind %d, %" PRId64 " to %" PRId64 ", multiple of %" PRIu64 ", %zu values\n",
               a->name, (int)a->kind, a->least.integer, a->most.integer, a->multiple_of,
               a->value_count);
    }
    for (size_t i = 0; i < s->node_count; ++i) {
        const node *n = &s->nodes[i];
        printf("  node %d:", (int)n->kind);
        for (size_t k = 0; k < n->word_count; ++k) {
            const word *w = &n->words[k];
            printf(" [kind %d, %u bytes, %s %s, a %" PRId64 " c %" PRId64 " d %" PRId64 "]",
                   (int)w->kind, (unsigned)w->width, s->names[w->first], s->names[w->second], w->a,
                   w->c, w->d);
        }
        printf(" value kind %d size kind %d\n", (int)n->value.kind, (int)n->size.kind);
    }
}

static bool write_text(void *user_data, const char *text, size_t bytes) {
    (void)user_data;
    return fwrite(text, 1, bytes, stdout) == bytes;
}

static void print_step(const step *s, uint64_t index, const char *what,
                       const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    MUST(rondo_learned_get_report(learned, &report));
    printf("step %" PRIu64 " (%zu arguments, %zu nodes): %s: %s: %s %s\n", index, s->argument_count,
           s->node_count, what, rondo_refusal_get_name(report.refusal), report.word,
           report.message);
    print_words(s);
    printf("  %s%s%s%s\n", s->is_learnable ? "listed formulas only" : "spoiled",
           s->uses_block ? ", a block" : "", s->has_larger_block ? " of any size" : "",
           s->has_more_nodes ? ", more nodes" : "");
    MUST(rondo_learned_describe(learned, RONDO_TEXT_PLAIN, write_text, NULL));
}

// Which draws there are must not depend on the machine's speed.
static rondo_learned_options get_options(const step *s, uint64_t index) {
    rondo_learned_options options = {.struct_size = sizeof options,
                                     .fallback = RONDO_LEARN_REFUSE,
                                     .seed = index + 1,
                                     .learn_ns = 1,
                                     .draws_wanted = 1};
    if (rondo__learn_proves && (index % 2 == 1 || s->has_interval)) {
        options.draws_wanted = index % 16 == 3 ? 128 : 688;
        options.learn_ns = index % 16 == 3 ? UINT64_MAX : 1;
    }
    return options;
}

// Whether the step refused the values of the first run.
static bool fails_first(const rondo_learned *learned) {
    rondo_learned_report report = {.struct_size = sizeof report};
    MUST(rondo_learned_get_report(learned, &report));
    return report.refusal == RONDO_REFUSAL_STEP_FAILED;
}

static void try_step(uint64_t seed, uint64_t index, counts *c) {
    rng r = {(seed * UINT64_C(0x9e3779b97f4a7c15)) ^ ((index + 1) * UINT64_C(0xd1b54a32d192ed03))};
    for (int i = 0; i < 4; ++i) {
        (void)draw(&r);
    }
    step s;
    rondo_learned *learned = NULL;
    rondo_value values[ARGUMENTS_MAX];
    unsigned char struct_bytes[STRUCT_BYTES];
    step_make(&s, &r);
    const rondo_learned_options options = get_options(&s, index);
    memset(values, 0, sizeof values);
    draw_all(&s, &r, values, struct_bytes);
    MUST(rondo_learned_create(g_world.device, &options, s.arguments, s.argument_count, run_step, &s,
                              &learned));
    if (rondo_learned_learn(learned, g_world.stream, values, s.argument_count) != RONDO_STATUS_OK) {
        ++c->failing;  // its first run's values are none that it takes
        rondo_learned_destroy(learned);
        return;
    }
    const bool is_refused = get_state(learned) == RONDO_LEARNED_REFUSED;
    const outcome result = is_refused ? REFUSED : try_values(&s, &r, learned, values);
    c->learned += result == RIGHT;
    c->refused += result == REFUSED;
    c->wrong += result == WRONG;
    if (result == WRONG) {
        print_step(&s, index, "WRONG", learned);
    }
    if (result == REFUSED && s.is_learnable && !fails_first(learned)) {
        ++c->missed;
        print_step(&s, index, "refused, though all its formulas are listed", learned);
    }
    rondo_learned_destroy(learned);
}

// ---- the program ------------------------------------------------------------------------------

static void open_world(bool is_fake) {
    union {
        rondo_host_function function;
        void *address;
    } kernel = {.function = run_kernel};
    world *w = &g_world;
    w->is_fake = is_fake;
    w->function = kernel.address;
    if (is_fake) {
        fake_cuda_reset(NULL);
        fake_cuda_install();
        fake_cuda_install_compiler();
        fake_cuda_set_kernel("mix", run_fake_kernel);
    }
    MUST(rondo_device_open(is_fake ? "cuda:0" : "host", &w->device));
    if (is_fake) {
        MUST(rondo__device_get_function(w->device, "", NULL, 0, "mix", &w->function));
    }
    MUST(rondo_stream_create(w->device, NULL, &w->stream));
    MUST(rondo_pool_create(w->device, NULL, &w->pool));
    MUST(rondo_memory_allocate(w->device, RONDO_MEMORY_DEVICE, WORLD, (void **)&w->memory));
}

static int close_world(void) {
    world *w = &g_world;
    int failed = 0;
    rondo_memory_free(w->device, w->memory);
    rondo_pool_release(w->pool);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
    if (w->is_fake) {
        failed = fake_cuda_count_objects() != 0 || fake_cuda_get_violations()[0] != '\0';
        if (failed) {
            printf("%zu objects left; %s\n", fake_cuda_count_objects(), fake_cuda_get_violations());
        }
        fake_cuda_uninstall();
    }
    return failed;
}

int main(int argc, char **argv) {
    uint64_t step_count = 2000;
    uint64_t seed = 1;
    uint64_t only = UINT64_MAX;
    const char *device = "host";
    for (int i = 1; i < argc; ++i) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--without-proof") == 0) {
            rondo__learn_proves = false;
        } else if (strcmp(argv[i], "--device") == 0) {
            device = argv[++i] != NULL ? value : "";
        } else if (strcmp(argv[i], "--steps") == 0 && ++i < argc) {
            step_count = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0 && ++i < argc) {
            seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && ++i < argc) {
            only = strtoull(value, NULL, 10);
        } else {
            fprintf(stderr, "what is \"%s\"?\n", argv[i]);
            return 2;
        }
    }
    counts c = {0};
    open_world(strcmp(device, "fake") == 0);
    for (uint64_t i = 0; i < step_count; ++i) {
        if (only == UINT64_MAX || only == i) {
            try_step(seed, i, &c);
        }
    }
    printf("%s: learned %" PRIu64 ", refused %" PRIu64 ", failing %" PRIu64 ", wrong %" PRIu64
           "%s\n",
           device, c.learned, c.refused, c.failing, c.wrong,
           rondo__learn_proves ? "" : " (without the proof)");
    return close_world() != 0 || c.wrong > 0 || c.missed > 0;
}
