// rondo_driver_truth                — asks the GPU's driver every question, and compares with what
//                                    driver 580 answered.
// rondo_driver_truth --fake         — asks the fake driver (tests/support/fake/fake_cuda.h).
// rondo_driver_truth --id TEXT ...  — only the questions whose number begins so.
// rondo_driver_truth --markdown ... — prints a table for bench/results/core.
//
// Exit status: 0 all answers are the known ones, 1 some differ, 77 there is no GPU.
// It calls nothing of Rondo's library: only the driver, by its exported names.
// SPDX-License-Identifier: Apache-2.0
#include "truth_main.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fake/fake_cuda.h"

enum { SKIPPED = 77 };

static const truth_question *const lists[] = {truth_kernels,  truth_memory, truth_updates,
                                              truth_captures, truth_bodies, truth_made,
                                              truth_taken};

// Each kernel has the parameters (u64 word, u32 us, u32 a, u32 b).
#define ENTRY(name)                                                       \
    ".visible .entry " name                                               \
    " (.param .u64 word, .param .u32 us, .param .u32 a, .param .u32 b)\n" \
    "{\n"                                                                 \
    "    .reg .pred %p<4>;\n"                                             \
    "    .reg .b32 %r<12>;\n"                                             \
    "    .reg .b64 %rd<8>;\n"                                             \
    "    ld.param.u64 %rd1, [word];\n"                                    \
    "    cvta.to.global.u64 %rd1, %rd1;\n"

static const char module_text[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ENTRY("truth_work")
    "    ld.param.u32 %r1, [us];\n"
    "    ld.param.u32 %r2, [a];\n"
    "    ld.param.u32 %r3, [b];\n"
    "    mul.wide.u32 %rd2, %r1, 1000;\n"
    "    mov.u64 %rd3, %globaltimer;\n"
    "again:\n"
    "    mov.u64 %rd4, %globaltimer;\n"
    "    sub.u64 %rd5, %rd4, %rd3;\n"
    "    setp.lt.u64 %p1, %rd5, %rd2;\n"
    "    @%p1 bra again;\n"
    "    ld.volatile.global.u32 %r4, [%rd1];\n"
    "    mad.lo.u32 %r5, %r4, %r2, %r3;\n"
    "    st.volatile.global.u32 [%rd1], %r5;\n"
    "    ret;\n"
    "}\n"
    ENTRY("truth_negate")
    "    mov.u32 %r1, %ctaid.x;\n"
    "    mov.u32 %r2, %ctaid.y;\n"
    "    or.b32 %r3, %r1, %r2;\n"
    "    setp.ne.u32 %p1, %r3, 0;\n"
    "    @%p1 bra done;\n"
    "    ld.volatile.global.u32 %r4, [%rd1];\n"
    "    not.b32 %r5, %r4;\n"
    "    st.volatile.global.u32 [%rd1], %r5;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

// Of which a launch may bring fewer bytes than it declares.
static const char wide_text[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".visible .entry truth_wide (.param .align 8 .b8 arguments[4096])\n"
    "{\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [arguments];\n"
    "    ld.param.u32 %r1, [arguments+8];\n"
    "    cvta.to.global.u64 %rd2, %rd1;\n"
    "    st.volatile.global.u32 [%rd2], %r1;\n"
    "    ret;\n"
    "}\n";

static const char cluster_text[] =
    ".version 7.8\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ENTRY("truth_cluster")
    "    mov.u32 %r1, %ctaid.x;\n"
    "    setp.ne.u32 %p1, %r1, 0;\n"
    "    @%p1 bra done;\n"
    "    mov.u32 %r2, %cluster_nctaid.x;\n"
    "    st.volatile.global.u32 [%rd1], %r2;\n"
    "done:\n"
    "    ret;\n"
    "}\n";

// rondo_condition(handle, predicate, how, wanted), with a `how` of 0: the handle is the predicate.
static const char condition_text[] =
    ".version 7.0\n"
    ".target sm_50\n"
    ".address_size 64\n"
    ".extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);\n"
    ".visible .entry rondo_condition (.param .u64 handle, .param .u64 predicate,\n"
    "                                 .param .u32 how, .param .u32 wanted)\n"
    "{\n"
    "    .reg .b32 %r<4>;\n"
    "    .reg .b64 %rd<4>;\n"
    "    ld.param.u64 %rd1, [handle];\n"
    "    ld.param.u64 %rd2, [predicate];\n"
    "    cvta.to.global.u64 %rd3, %rd2;\n"
    "    ld.volatile.global.u32 %r1, [%rd3];\n"
    "    {\n"
    "    .param .b64 first;\n"
    "    st.param.b64 [first+0], %rd1;\n"
    "    .param .b32 second;\n"
    "    st.param.b32 [second+0], %r1;\n"
    "    call.uni cudaGraphSetConditional, (first, second);\n"
    "    }\n"
    "    ret;\n"
    "}\n";

// ---- the driver -------------------------------------------------------------------------------

static void *library;

static void *find(const char *symbol) {
    return w.is_fake ? fake_cuda_resolve(NULL, symbol) : dlsym(library, symbol);
}

// The name of a function that the driver lacks; NULL: it has all.
static const char *fill_table(void) {
    const char *missing = NULL;
#define RONDO__CUDA_SYMBOL(need, name, version, exported, arguments) \
    *(void **)&d.name = find(exported);                              \
    missing = d.name == NULL ? exported : missing;
#include "backend/cuda/driver/cuda_symbols.h"
#include "support/driver_symbols.h"
#undef RONDO__CUDA_SYMBOL
    return missing;
}

typedef struct fake_arguments {
    uint32_t *word;
    uint32_t us, a, b;
} fake_arguments;

static fake_arguments read_arguments(const void *arguments, size_t bytes) {
    fake_arguments copy = {0};
    memcpy(&copy, arguments, bytes < sizeof copy ? bytes : sizeof copy);
    return copy;
}

static void fake_work(const void *arguments, size_t bytes) {
    const fake_arguments own = read_arguments(arguments, bytes);
    *own.word = *own.word * own.a + own.b;
}

static void fake_negate(const void *arguments, size_t bytes) {
    const fake_arguments own = read_arguments(arguments, bytes);
    *own.word = ~*own.word;
}

static void fake_wide(const void *arguments, size_t bytes) {
    const fake_arguments own = read_arguments(arguments, bytes);
    *own.word = own.us;  // the first number
}

static void fake_cluster(const void *arguments, size_t bytes) {
    *read_arguments(arguments, bytes).word = fake_cuda_get_cluster();
}

// What is missing or fails; NULL: nothing.
static const char *open_driver(void) {
    if (w.is_fake) {
        fake_cuda_reset(NULL);
        fake_cuda_set_kernel("truth_work", fake_work);
        fake_cuda_set_kernel("truth_negate", fake_negate);
        fake_cuda_set_kernel("truth_wide", fake_wide);
        fake_cuda_set_kernel("truth_cluster", fake_cluster);
    } else {
        library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == NULL) {
            return "libcuda.so.1";
        }
    }
    const char *missing = fill_table();
    if (missing != NULL) {
        return missing;
    }
    return d.cuInit(0) != RONDO__CU_SUCCESS ? "cuInit" : NULL;
}

static bool load(const char *text, const char *name, rondo__cu_module *out_module,
                 rondo__cu_function *out_function) {
    return must(d.cuModuleLoadData(out_module, text), name) &&
           must(d.cuModuleGetFunction(out_function, *out_module, name), name);
}

static rondo__cu_module modules[4];

static bool open_world(void) {
    void *pinned = NULL;
    int capability = 0;
    w.module_text = module_text;
    if (!must(d.cuDeviceGet(&w.device, 0), "cuDeviceGet") ||
        !must(d.cuDevicePrimaryCtxRetain(&w.context, w.device), "context") ||
        !must(d.cuCtxPushCurrent(w.context), "context") ||
        !must(d.cuMemAlloc(&w.words, TRUTH_WORDS * sizeof(uint32_t)), "memory") ||
        !must(d.cuMemHostAlloc(&pinned, TRUTH_WORDS * sizeof(uint32_t), 0), "memory")) {
        return false;
    }
    w.pinned = pinned;
    (void)d.cuDeviceGetAttribute(&capability, RONDO__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                 w.device);
    return load(module_text, "truth_work", &modules[0], &w.work) &&
           must(d.cuModuleGetFunction(&w.negate, modules[0], "truth_negate"), "truth_negate") &&
           load(condition_text, "rondo_condition", &modules[1], &w.condition) &&
           load(wide_text, "truth_wide", &modules[3], &w.wide) &&
           (capability < 9 || load(cluster_text, "truth_cluster", &modules[2], &w.cluster));
}

static void close_world(void) {
    rondo__cu_context popped = NULL;
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; ++i) {
        if (modules[i] != NULL) {
            (void)d.cuModuleUnload(modules[i]);
        }
    }
    (void)d.cuMemFreeHost(w.pinned);
    (void)d.cuMemFree(w.words);
    (void)d.cuCtxPopCurrent(&popped);
    (void)d.cuDevicePrimaryCtxRelease(w.device);
}

// "580.159.04"; "" where the system does not say.
static void read_driver_version(char *out_text, size_t capacity) {
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    out_text[0] = '\0';
    if (file != NULL) {
        const char *number = fgets(line, sizeof line, file) != NULL ? strstr(line, "  ") : NULL;
        if (number != NULL) {
            number += strspn(number, " ");
            (void)snprintf(out_text, capacity, "%.*s", (int)strcspn(number, " \n"), number);
        }
        (void)fclose(file);
    }
}

// ---- asking -----------------------------------------------------------------------------------

typedef struct outcome {
    size_t same, differing, not_asked;
} outcome;

static bool is_markdown;
static const char *wanted = "";

static void print_row(const truth_question *question, const char *word, const char *answer) {
    if (is_markdown) {
        printf("| %s | %s | %s | %s |\n", question->id, question->text, answer, word);
    } else {
        printf("%-8s %-6s %s: %s\n", word, question->id, question->text, answer);
    }
}

static void ask(const truth_question *question, outcome *result) {
    if (w.is_fake && question->not_fake != NULL) {
        ++result->not_asked;
        print_row(question, "not here", question->not_fake);
        return;
    }
    const char *answer = truth_ask(question);
    const bool is_same = strcmp(answer, question->known) == 0;
    print_row(question, is_same ? "same" : "differs", answer);
    if (!is_same) {
        ++result->differing;
        if (is_markdown) {
            printf("| | | known: %s | |\n", question->known);
        } else {
            printf("%-15s known: %s\n", "", question->known);
        }
        return;
    }
    ++result->same;
}

static bool check_fake(void) {
    static const char known[] = "nothing keeps what is behind a fill that is switched off\n";
    const char *rest = fake_cuda_get_violations();
    while (strncmp(rest, known, sizeof known - 1) == 0) {
        rest += sizeof known - 1;
    }
    if (rest[0] != '\0' || fake_cuda_count_objects() != 0) {
        printf("the fake driver counts %zu objects that are left, and saw:\n%s",
               fake_cuda_count_objects(), rest);
        return false;
    }
    return true;
}

static outcome ask_all(void) {
    outcome result = {0};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; ++i) {
        for (const truth_question *question = lists[i]; question->id != NULL; ++question) {
            if (strncmp(question->id, wanted, strlen(wanted)) == 0) {
                ask(question, &result);
                (void)fflush(stdout);
            }
        }
    }
    return result;
}

static void print_head(void) {
    char name[128] = "";
    char driver[64];
    int version = 0;
    (void)d.cuDeviceGetName(name, sizeof name, w.device);
    (void)d.cuDriverGetVersion(&version);
    read_driver_version(driver, sizeof driver);
    printf("%s, driver %s, CUDA %d.%d; known: driver 580, CUDA 13.0\n", name,
           driver[0] != '\0' ? driver : "unknown", version / 1000, version % 1000 / 10);
    if (is_markdown) {
        printf("\n| Q | question | answer | |\n|---|---|---|---|\n");
    }
}

static bool read_options(int argc, char **argv) {
    for (int i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--fake") == 0) {
            w.is_fake = true;
        } else if (strcmp(argv[i], "--markdown") == 0) {
            is_markdown = true;
        } else if (strcmp(argv[i], "--id") == 0 && i + 1 < argc) {
            wanted = argv[++i];
        } else {
            (void)fprintf(stderr, "usage: %s [--fake] [--markdown] [--id TEXT]\n", argv[0]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv) {
    if (!read_options(argc, argv)) {
        return 2;
    }
    const char *problem = open_driver();
    if (problem != NULL) {
        printf("skipped: the driver lacks %s, or that fails\n", problem);
        return SKIPPED;
    }
    if (!open_world()) {
        printf("the questions cannot be asked: %s\n", truth_get_answer());
        return 1;
    }
    print_head();
    const outcome result = ask_all();
    close_world();
    printf("%s%zu answers as known, %zu differ, %zu not asked\n", is_markdown ? "\n" : "",
           result.same, result.differing, result.not_asked);
    return result.differing != 0 || (w.is_fake && !check_fake());
}
