// What an executor says that it holds, of each kind, is what was taken for it, to the byte: on the
// host as an allocator of the program's and the mappings count it, on a GPU as the driver does.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "base/block.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/memory.h"
#include "executor/state/plan.h"
#include "executor/state/run_state.h"
#include "kernel/cuda/convolution/cudnn_api.h"
#include "kernel/cuda/product/cublaslt_api.h"
#include "rondo/allocator.h"
#include "rondo/models.h"
#include "support/on_devices.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/variables_world.h"

// ---- counting ---------------------------------------------------------------------------------

enum { NOTES_MAX = 4096 };

// A block of the library's that is there.
typedef struct note {
    const void *block;
    const rondo__budget *budget;  // that was entered; not to be followed
    rondo__owner owner;
    size_t bytes;  // that the heap or the system gave for it
} note;

static note notes[NOTES_MAX];
static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_in_block;
static _Thread_local size_t given_bytes;  // to the block at hand

static void *allocate(void *user_data, size_t bytes, size_t alignment) {
    (void)user_data;
    void *address = NULL;
    alignment = alignment < sizeof(void *) ? sizeof(void *) : alignment;
    given_bytes += is_in_block ? bytes : 0;
    return posix_memalign(&address, alignment, bytes) == 0 ? address : NULL;
}

static void *reallocate(void *user_data, void *address, size_t bytes) {
    (void)user_data;
    return realloc(address, bytes);
}

static void give_back(void *user_data, void *address) {
    (void)user_data;
    free(address);
}

void *__real_rondo__memory_map(size_t bytes);
void *__wrap_rondo__memory_map(size_t bytes);
void *__wrap_rondo__memory_map(size_t bytes) {
    given_bytes += is_in_block ? bytes : 0;
    return __real_rondo__memory_map(bytes);
}

void *__real_rondo__memory_map_again(size_t bytes);
void *__wrap_rondo__memory_map_again(size_t bytes);
void *__wrap_rondo__memory_map_again(size_t bytes) {
    given_bytes += is_in_block ? bytes : 0;
    return __real_rondo__memory_map_again(bytes);
}

static note *find_note(const void *block) {
    for (size_t i = 0; i < NOTES_MAX; ++i) {
        if (notes[i].block == block) {
            return &notes[i];
        }
    }
    return NULL;
}

typedef void *(*block_allocator)(size_t bytes, size_t alignment);

static void *note_block(block_allocator make, size_t bytes, size_t alignment) {
    is_in_block = true;
    given_bytes = 0;
    void *block = make(bytes, alignment);
    is_in_block = false;
    if (block != NULL) {
        (void)pthread_mutex_lock(&notes_lock);
        note *free_note = find_note(NULL);
        if (free_note != NULL) {
            *free_note =
                (note){block, rondo__budget_get_entered(), rondo__budget_get_owner(), given_bytes};
        }
        (void)pthread_mutex_unlock(&notes_lock);
    }
    return block;
}

void *__real_rondo__block_allocate(size_t bytes, size_t alignment);
void *__wrap_rondo__block_allocate(size_t bytes, size_t alignment);
void *__wrap_rondo__block_allocate(size_t bytes, size_t alignment) {
    return note_block(__real_rondo__block_allocate, bytes, alignment);
}

void *__real_rondo__block_allocate_result(size_t bytes, size_t alignment);
void *__wrap_rondo__block_allocate_result(size_t bytes, size_t alignment);
void *__wrap_rondo__block_allocate_result(size_t bytes, size_t alignment) {
    return note_block(__real_rondo__block_allocate_result, bytes, alignment);
}

void __real_rondo__block_free(void *block);
void __wrap_rondo__block_free(void *block);
void __wrap_rondo__block_free(void *block) {
    if (block != NULL) {
        (void)pthread_mutex_lock(&notes_lock);
        note *known = find_note(block);
        if (known != NULL) {
            *known = (note){0};
        }
        (void)pthread_mutex_unlock(&notes_lock);
    }
    __real_rondo__block_free(block);
}

// Of the blocks of a budget that are there, those of an owner; OWNER_COUNT: of all.
static uint64_t count_taken(const rondo__budget *budget, rondo__owner owner) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < NOTES_MAX; ++i) {
        const bool is_asked = owner == RONDO__OWNER_COUNT || notes[i].owner == owner;
        bytes +=
            notes[i].block != NULL && notes[i].budget == budget && is_asked ? notes[i].bytes : 0;
    }
    return bytes;
}

// Of the blocks of budgets that are not this one: what is computed ahead has one of its own.
static uint64_t count_others(const rondo__budget *budget) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < NOTES_MAX; ++i) {
        const bool is_other = notes[i].budget != NULL && notes[i].budget != budget;
        bytes += notes[i].block != NULL && is_other ? notes[i].bytes : 0;
    }
    return bytes;
}

// ---- models -----------------------------------------------------------------------------------

static const char *const models[] = {
    "bert_mini",    "branch_and_loop", "columns_and_classes",
    "flower_trees", "convnext_mini",   "found_rows",
    "gpt2_mini",    "gpt_mini",        "lstm_tagger",
    "narrow_mini",  "shortcut_mini",   "unet_mini",
    "vit_mini",     "words_and_lists", "quantise_blocks_of_one",
};

typedef struct world {
    rondo_device *device;
    rondo_program *program;
    rondo_executor *executor;
    rondo_binding feeds[8];
    size_t feed_count;
    uint64_t other_bytes;  // in blocks of other budgets, before the executor was there
} world;

static void open_world(world *w, const char *model) {
    char path[512];
    rondo_port port = {.struct_size = sizeof port};
    *w = (world){0};
    OK(rondo_device_open(on_devices_get_name(), &w->device));
    (void)snprintf(path, sizeof path, "%s/tests/models/%s/model.onnx", get_source_dir(), model);
    OK(rondo_program_load_onnx(path, &w->program));
    w->feed_count = rondo_program_get_input_count(w->program);
    assert_true(w->feed_count <= 8);
    for (size_t i = 0; i < w->feed_count; ++i) {
        OK(rondo_program_get_input(w->program, i, &port));
        w->feeds[i].name = port.name;
        (void)snprintf(path, sizeof path, "%s/tests/models/%s/test_data_set_0/input_%zu.pb",
                       get_source_dir(), model, i);
        OK(rondo_port_load_onnx(&port, path, &w->feeds[i].tensor));
    }
}

static void open_executor(world *w) {
    w->other_bytes = count_others(NULL);
    OK(rondo_executor_create(w->program, w->device, NULL, &w->executor));
}

static void close_world(world *w) {
    for (size_t i = 0; i < w->feed_count; ++i) {
        rondo_tensor_deinit(&w->feeds[i].tensor);
    }
    rondo_program_destroy(w->program);
    rondo_device_release(w->device);
}

static void run(world *w) {
    rondo_binding fetch = {0};
    rondo_port port = {.struct_size = sizeof port};
    OK(rondo_program_get_output(w->program, 0, &port));
    fetch.name = port.name;
    OK(rondo_executor_run(w->executor, w->feeds, w->feed_count, &fetch, 1));
    rondo_tensor_deinit(&fetch.tensor);
}

// On the host: each kind by itself, and all of them.
static void expect_counted(const world *w, const char *model) {
    const rondo__budget *budget = w->executor->resources.budget;
    const rondo_executor_stats stats = variables_get_stats(w->executor);
    const uint64_t forms = rondo__budget_get_owned(budget, RONDO__OWNER_WEIGHT) +
                           rondo__budget_get_owned(budget, RONDO__OWNER_PACKED);
    uint64_t all = forms + rondo__budget_get_owned(budget, RONDO__OWNER_FOLDED);
    for (int owner = 0; owner < RONDO__OWNER_COUNT; ++owner) {
        const bool is_shared = owner == RONDO__OWNER_WEIGHT || owner == RONDO__OWNER_PACKED ||
                               owner == RONDO__OWNER_FOLDED;
        const uint64_t taken = count_taken(budget, (rondo__owner)owner);
        if (!is_shared && taken != rondo__budget_get_owned(budget, (rondo__owner)owner)) {
            fail_msg("%s: owner %d holds %llu bytes, %llu are said", model, owner,
                     (unsigned long long)taken,
                     (unsigned long long)rondo__budget_get_owned(budget, (rondo__owner)owner));
        }
        all += is_shared ? 0 : taken;
    }
    assert_int_equal(stats.memory_bytes, all);
    assert_int_equal(rondo__budget_get_owned(budget, RONDO__OWNER_FOLDED),
                     count_others(budget) - w->other_bytes);
    assert_int_equal(stats.device_memory_bytes, 0);
    // Forms of weights share blocks, which count by what the forms need.
    assert_int_equal(forms, w->executor->resources.weights.bytes);
    assert_true(count_taken(NULL, RONDO__OWNER_COUNT) >= forms);
}

TEST(test_program_owners__host_memory_is_counted_to_the_byte) {
    for (size_t m = 0; m < sizeof models / sizeof models[0]; ++m) {
        world w;
        open_world(&w, models[m]);
        const uint64_t before = count_taken(NULL, RONDO__OWNER_COUNT);
        open_executor(&w);
        for (int i = 0; i < 4; ++i) {
            run(&w);
            expect_counted(&w, models[m]);
        }
        const rondo__budget *budget = w.executor->resources.budget;
        rondo_executor_destroy(w.executor);
        assert_int_equal(count_taken(budget, RONDO__OWNER_COUNT), 0);
        assert_int_equal(count_taken(NULL, RONDO__OWNER_COUNT), before);
        close_world(&w);
    }
}

// A state, its spare room, a run that does not wait, and a self-check.
TEST(test_program_owners__each_kind_is_told_apart) {
    world w;
    open_world(&w, "gpt_mini");
    open_executor(&w);
    const rondo__budget *budget = w.executor->resources.budget;
    OK(rondo_executor_bind(w.executor, "present", "past"));
    run(&w);
    expect_counted(&w, "gpt_mini");
    const uint64_t states = rondo__budget_get_owned(budget, RONDO__OWNER_STATE);
    OK(rondo_executor_reserve_variable(w.executor, "past", 400000));
    expect_counted(&w, "gpt_mini");
    assert_true(rondo__budget_get_owned(budget, RONDO__OWNER_STATE) >= states + 300000);
    assert_true(rondo__budget_get_owned(budget, RONDO__OWNER_ARENA) > 0);
    rondo_binding fetch = {.name = "logits"};
    OK(rondo_executor_run_async(w.executor, w.feeds, w.feed_count, &fetch, 1, NULL));
    OK(rondo_executor_wait(w.executor));
    rondo_tensor_deinit(&fetch.tensor);
    assert_true(rondo__budget_get_owned(budget, RONDO__OWNER_PINNED) > 0);
    expect_counted(&w, "gpt_mini");
    OK(rondo_executor_bind(w.executor, NULL, "past"));
    assert_int_equal(rondo__budget_get_owned(budget, RONDO__OWNER_STATE), 0);
    rondo_executor_destroy(w.executor);
    close_world(&w);
}

static void expect_as_driver(const world *w, const char *model, size_t device, size_t pinned) {
    const rondo_executor_stats stats = variables_get_stats(w->executor);
    const rondo__budget *budget = w->executor->resources.budget;
    const uint64_t on_host = rondo__budget_get_owned(budget, RONDO__OWNER_PINNED);
    if (stats.device_memory_bytes != fake_cuda_count_bytes(false) - device ||
        on_host != fake_cuda_count_bytes(true) - pinned) {
        fail_msg("%s: %llu and %llu bytes are said, the driver gave %zu and %zu", model,
                 (unsigned long long)stats.device_memory_bytes, (unsigned long long)on_host,
                 fake_cuda_count_bytes(false) - device, fake_cuda_count_bytes(true) - pinned);
    }
}

static void do_nothing(const void *arguments, size_t argument_bytes) {
    (void)arguments;
    (void)argument_bytes;
}

// The machine's cuBLASLt and cuDNN have a driver of their own, not the fake one.
rondo_status __wrap_rondo__cublaslt_get_api(const rondo__lt_api **out_api);
rondo_status __wrap_rondo__cublaslt_get_api(const rondo__lt_api **out_api) {
    *out_api = NULL;
    return RONDO_FAIL(UNAVAILABLE, "there is none here");
}

rondo_status __wrap_rondo__cudnn_get_api(const rondo__dnn_api **out_api);
rondo_status __wrap_rondo__cudnn_get_api(const rondo__dnn_api **out_api) {
    *out_api = NULL;
    return RONDO_FAIL(UNAVAILABLE, "there is none here");
}

// Kernels do nothing there, so these are models whose control flow no data decides.
TEST(test_program_owners__a_gpus_memory_is_counted_to_the_byte) {
    static const char *const plain[] = {"bert_mini",     "convnext_mini", "gpt2_mini", "gpt_mini",
                                        "shortcut_mini", "unet_mini",     "vit_mini"};
    fake_cuda_install_compiler();
    fake_cuda_set_kernel("pointwise", do_nothing);  // of on_devices.h, for adding alone
    fake_cuda_set_kernel("", do_nothing);
    for (size_t m = 0; m < sizeof plain / sizeof plain[0]; ++m) {
        world w;
        open_world(&w, plain[m]);
        const size_t device = fake_cuda_count_bytes(false);
        const size_t pinned = fake_cuda_count_bytes(true);
        open_executor(&w);
        for (int i = 0; i < 4; ++i) {
            run(&w);
            expect_as_driver(&w, plain[m], device, pinned);
        }
        rondo_executor_destroy(w.executor);
        assert_int_equal(fake_cuda_count_bytes(false), device);
        assert_int_equal(fake_cuda_count_bytes(true), pinned);
        close_world(&w);
    }
}

int main(void) {
    const rondo_allocator counting = {.struct_size = sizeof counting,
                                      .allocate = allocate,
                                      .reallocate = reallocate,
                                      .free = give_back};
    if (rondo_set_allocator(&counting) != RONDO_STATUS_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_owners__host_memory_is_counted_to_the_byte),
        cmocka_unit_test(test_program_owners__each_kind_is_told_apart),
    };
    const test_listed on_gpu = {
        .test = cmocka_unit_test(test_program_owners__a_gpus_memory_is_counted_to_the_byte)};
    return cmocka_run_group_tests(tests, NULL, NULL) + on_devices_run_fake(&on_gpu, NULL);
}
