// Choosing among ways to do the same work, over the fake driver: candidates that take known times,
// in each mode, with what was kept on disk and with tuning files.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "kernel/cuda/tune/cuda_tune.h"
#include "op/op.h"
#include "rondo/models.h"
#include "rondo/profile.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { WAY_COUNT = 5 };

// Way 0 is slow, 3 is the fastest, 2 cannot be built, 4 is for when none works.
static const char *const g_names[WAY_COUNT] = {"slow", "middle", "broken", "quick", "last"};
static uint64_t g_times_us[WAY_COUNT] = {400, 100, 0, 0, 0};
static _Atomic uint64_t g_now_ns;  // the clock of the fake driver's events

static unsigned g_launches[WAY_COUNT];
static unsigned g_timed[WAY_COUNT], g_neighbours[WAY_COUNT];
static size_t g_last_way;
static char g_cache[] = "/tmp/rondo_tune_XXXXXX";
static char g_file[64];

static void run_way(size_t way) {
    g_launches[way]++;
    g_timed[way]++;
    g_last_way = way;
    atomic_fetch_add(&g_now_ns, UINT64_C(1000) * (1 + g_times_us[way]));
}

static uint64_t get_now_ns(void) {
    return atomic_load(&g_now_ns);
}

static void run_noise(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
}
static void run_neighbour(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    g_neighbours[g_last_way]++;
}
static void run_slow(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    run_way(0);
}
static void run_middle(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    run_way(1);
}
static void run_quick(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    run_way(3);
}
static void run_last(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    run_way(4);
}

typedef struct planted {
    bool is_hopeless;        // only the last way can be built
    size_t fragile;          // this one only once
    size_t *fragile_builds;  // so far
} planted;

static size_t g_rotation;  // candidate i is way i + this

static size_t get_way(size_t index) {
    return (index + g_rotation) % WAY_COUNT;
}

static void build(rondo__cuda_kernel *kernel, const void *problem, size_t number) {
    rondo__defines defines = {0};
    const size_t index = get_way(number);
    const planted *p = problem;
    const bool is_spent = index == p->fragile && (*p->fragile_builds)++ > 0;
    if (index == 2 || (p->is_hopeless && index < 4) || is_spent) {
        (void)rondo__cuda_reserve_workspace(kernel, 256);
        (void)rondo__cuda_add_zero(kernel, rondo__address_output(0), 256);
        rondo__cuda_refuse(kernel, "a planted way");
        return;
    }
    rondo__step *step = rondo__cuda_add_launch(kernel, "planted", &defines, g_names[index], 1, 32);
    rondo__step_input(step, 0);
    rondo__step_output(step, 0);
}

// What a library makes, whether it is there, and how often that had to be known.
static uint64_t g_library;
static bool g_has_library;
static size_t g_library_loads;

static bool has_library(const rondo__cuda_kernel *kernel) {
    (void)kernel;
    g_library_loads++;
    return g_has_library;
}

static void describe(const rondo__cuda_kernel *kernel, const void *problem, size_t index,
                     char *text, size_t text_bytes) {
    (void)kernel, (void)problem;
    g_library_loads += g_library >> index & 1;
    (void)snprintf(text, text_bytes, "%s", g_names[get_way(index)]);
}

typedef struct world {
    rondo_device *device;
    rondo__tuning_choices *choices;
    rondo_tuning mode;
    bool is_hopeless;
    size_t fragile;  // 1 + its number; 0: none
} world;

// Tunes the problem `key` and launches the choice once; returns its number, or WAY_COUNT.
static size_t choose(world *w, const char *key) {
    char name[] = "planted";
    rondo__op op = {.name = name, .def = rondo__op_lookup("", "Relu", 14)};
    const rondo__tensor_info info = {
        .dtype = RONDO_DTYPE_F32, .is_shape_known = true, .shape = {.rank = 1, .extent = {64}}};
    const rondo__kernel_request request = {.device = w->device,
                                           .op = &op,
                                           .input_count = 1,
                                           .inputs = &info,
                                           .output_count = 1,
                                           .outputs = &info,
                                           .tuning = w->mode,
                                           .choices = w->choices};
    size_t fragile_builds = 0;
    const planted problem = {w->is_hopeless, w->fragile > 0 ? w->fragile - 1 : WAY_COUNT,
                             &fragile_builds};
    const rondo__tuning tuning = {.key = key,
                                  .candidate_count = WAY_COUNT,
                                  .fast = 1 << 0 | 1 << 1 | 1 << 2,
                                  .last = 1 << 4,
                                  .library = g_library,
                                  .has_library = has_library,
                                  .problem = &problem,
                                  .build = build,
                                  .describe = describe};
    rondo__cuda_kernel *kernel = NULL;
    rondo__kernel *ready = NULL;
    rondo_stream *stream = NULL;
    float x[64] = {0}, y[64];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    OK(rondo__cuda_begin_kernel(&request, &kernel));
    rondo__cuda_add_fastest(kernel, &tuning);
    OK(rondo__cuda_finish_kernel(kernel, &ready));
    assert_int_equal(ready->workspace_bytes, 0);  // of those that were refused
    assert_int_equal(((const rondo__cuda_kernel *)ready)->step_count, 1);
    OK(rondo_stream_create(w->device, NULL, &stream));
    memset(g_launches, 0, sizeof g_launches);
    OK(ready->launch(ready, stream, inputs, outputs, NULL));
    OK(rondo_stream_synchronize(stream));
    rondo_stream_destroy(stream);
    rondo__kernel_destroy(ready);
    size_t way = 0;
    while (way < WAY_COUNT && g_launches[way] == 0) {
        way++;
    }
    return way;
}

static void write_file(const char *choice) {
    FILE *file = fopen(g_file, "w");
    assert_non_null(file);
    rondo_device *device = NULL;
    rondo_device_info info = {.struct_size = sizeof info};
    OK(rondo_device_open("cuda:0", &device));
    OK(rondo_device_get_info(device, &info));
    assert_true(fprintf(file, "rondo tuning 1\n%s, %d multiprocessors\tfiled\t%s\n",
                        info.description, info.compute_units, choice) > 0);
    assert_int_equal(fclose(file), 0);
    rondo_device_release(device);
}

TEST(test_kernel_cuda_tune__modes) {
    world w = {.mode = RONDO_TUNING_OFF};
    OK(rondo_device_open("cuda:0", &w.device));
    assert_int_equal(choose(&w, "first"), 0);  // the best guess, nothing timed
    w.mode = RONDO_TUNING_FAST;
    assert_int_equal(choose(&w, "first"), 1);  // of 0 and 1
    w.mode = RONDO_TUNING_OFF;
    assert_int_equal(choose(&w, "first"), 1);  // kept
    w.mode = RONDO_TUNING_FULL;
    assert_int_equal(choose(&w, "first"), 3);
    w.mode = RONDO_TUNING_FAST;
    assert_int_equal(choose(&w, "first"), 3);  // a wider contest's winner stands
    w.is_hopeless = true;
    assert_int_equal(choose(&w, "second"), 4);
    rondo_device_release(w.device);
}

// Who is not among the best guesses has to be faster by more than times vary.
TEST(test_kernel_cuda_tune__margin) {
    world w = {.mode = RONDO_TUNING_FULL};
    uint64_t kept[WAY_COUNT];
    memcpy(kept, g_times_us, sizeof kept);
    OK(rondo_device_open("cuda:0", &w.device));
    g_times_us[0] = 6000;
    g_times_us[1] = 5000;
    g_times_us[3] = 4950;
    assert_int_equal(choose(&w, "close"), 1);
    g_times_us[3] = 3000;
    assert_int_equal(choose(&w, "far"), 3);
    memcpy(g_times_us, kept, sizeof kept);
    rondo_device_release(w.device);
}

// All launches but the first, which is not timed, have a neighbour behind them.
TEST(test_kernel_cuda_tune__neighbours) {
    world w = {.mode = RONDO_TUNING_FAST};
    OK(rondo_device_open("cuda:0", &w.device));
    memset(g_timed, 0, sizeof g_timed);
    memset(g_neighbours, 0, sizeof g_neighbours);
    assert_int_equal(choose(&w, "neighbours"), 1);
    assert_true(g_timed[0] > 1);
    assert_int_equal(g_neighbours[0], g_timed[0] - 1);
    assert_int_equal(g_neighbours[1], g_timed[1] - 2);  // and one run by the kernel that has won
    rondo_device_release(w.device);
}

// A choice that cannot be built once more, as engines of cuDNN: the next one takes its place.
TEST(test_kernel_cuda_tune__choice_breaks) {
    world w = {.mode = RONDO_TUNING_OFF, .fragile = 1 + 0};
    OK(rondo_device_open("cuda:0", &w.device));
    assert_int_equal(choose(&w, "breaks"), 0);  // a guess is built once
    w = (world){.device = w.device, .mode = RONDO_TUNING_FAST, .fragile = 1 + 1};
    assert_int_equal(choose(&w, "breaks"), 3);
    write_file("slow");  // so is a choice of a file
    w = (world){.device = w.device, .mode = RONDO_TUNING_FAST, .fragile = 1 + 0};
    OK(rondo__tuning_choices_create(g_file, &w.choices));
    assert_int_equal(choose(&w, "filed"), 0);
    rondo__tuning_choices_destroy(w.choices);
    rondo_device_release(w.device);
}

// A library is loaded where one of its ways may be taken, and for nothing else.
TEST(test_kernel_cuda_tune__library) {
    world w = {.mode = RONDO_TUNING_OFF};
    OK(rondo_device_open("cuda:0", &w.device));
    g_library = 1 << 3;
    g_has_library = true;
    g_library_loads = 0;
    assert_int_equal(choose(&w, "library"), 0);  // the best guess is our own
    assert_int_equal(g_library_loads, 0);
    w.mode = RONDO_TUNING_FAST;
    assert_int_equal(choose(&w, "library"), 1);
    assert_true(g_library_loads > 0);  // a contest with all that there is
    g_library_loads = 0;
    assert_int_equal(choose(&w, "library"), 1);  // kept by its name
    w.mode = RONDO_TUNING_OFF;
    assert_int_equal(choose(&w, "library"), 1);
    assert_int_equal(g_library_loads, 0);
    w.mode = RONDO_TUNING_FULL;
    assert_int_equal(choose(&w, "library"), 3);
    g_library_loads = 0;
    assert_int_equal(choose(&w, "library"), 3);
    assert_true(g_library_loads > 0);
    g_library = 1 << 0;  // in front of the one that wins
    w.mode = RONDO_TUNING_FAST;
    assert_int_equal(choose(&w, "library first"), 1);
    g_library_loads = 0;
    assert_int_equal(choose(&w, "library first"), 1);
    assert_int_equal(g_library_loads, 0);
    g_library = 0;
    rondo_device_release(w.device);
}

// What a missing library would make takes no part; what is left alone needs no contest, and is
// not kept: the library may come.
TEST(test_kernel_cuda_tune__no_library) {
    world w = {.mode = RONDO_TUNING_FULL};
    OK(rondo_device_open("cuda:0", &w.device));
    g_library = 1 << 3;
    g_has_library = false;
    assert_int_equal(choose(&w, "missing"), 1);
    g_library = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4;
    assert_int_equal(choose(&w, "alone"), 0);
    g_has_library = true;
    assert_int_equal(choose(&w, "alone"), 3);
    g_library = 0;
    rondo_device_release(w.device);
}

// What does not change of a device is asked of the driver once.
TEST(test_kernel_cuda_tune__facts) {
    world w = {.mode = RONDO_TUNING_FAST};
    OK(rondo_device_open("cuda:0", &w.device));
    for (int turn = 0; turn < 3; ++turn) {
        assert_int_equal(choose(&w, "facts"), 1);
        assert_int_equal(fake_cuda_count_calls("cuDeviceGetName"), 1);
        assert_true(fake_cuda_count_calls("cuMemGetInfo") <= 1);
    }
    rondo_device_info info = {.struct_size = sizeof info};
    OK(rondo_device_get_info(w.device, &info));
    assert_true(info.free_bytes > 0);
    assert_int_equal(fake_cuda_count_calls("cuDeviceGetName"), 2);
    rondo_device_release(w.device);
}

// A choice that was kept is followed by its name where its number is another one's by now.
TEST(test_kernel_cuda_tune__renumbered) {
    world w = {.mode = RONDO_TUNING_FULL};
    OK(rondo_device_open("cuda:0", &w.device));
    assert_int_equal(choose(&w, "renumbered"), 3);
    g_rotation = 1;
    assert_int_equal(choose(&w, "renumbered"), 3);
    g_rotation = 0;
    rondo_device_release(w.device);
}

static size_t count_tunings(rondo_profile *profile) {
    rondo_profile_row rows[8] = {{.struct_size = sizeof rows[0]}};
    size_t row_count = 0, count = 0;
    OK(rondo_profile_get_rows(profile, RONDO_PROFILE_BY_TOTAL, false, rows, 8, &row_count));
    for (size_t i = 0; i < row_count; ++i) {
        count += rows[i].category == RONDO_PROFILE_TUNE && strcmp(rows[i].name, "tune") == 0
                     ? (size_t)rows[i].calls
                     : 0;
    }
    return count;
}

// A contest is an event of a profile; a guess, or what was kept, is none.
TEST(test_kernel_cuda_tune__event) {
    const rondo_profile_options options = {.struct_size = sizeof options,
                                           .source = RONDO_PROFILE_SOURCE_NONE};
    world w = {.mode = RONDO_TUNING_OFF};
    rondo_profile *profile = NULL;
    OK(rondo_device_open("cuda:0", &w.device));
    for (int turn = 0; turn < 3; ++turn) {
        w.mode = turn == 0 ? RONDO_TUNING_OFF : RONDO_TUNING_FAST;
        OK(rondo_profile_create(&options, &profile));
        OK(rondo_profile_start(profile));
        (void)choose(&w, "event");
        OK(rondo_profile_stop(profile));
        assert_int_equal(count_tunings(profile), turn == 1 ? 1 : 0);
        rondo_profile_destroy(profile);
    }
    rondo_device_release(w.device);
}

TEST(test_kernel_cuda_tune__variable) {
    world w = {.mode = RONDO_TUNING_AUTO};
    OK(rondo_device_open("cuda:0", &w.device));
    assert_int_equal(setenv("RONDO_TUNE", "off", 1), 0);
    assert_int_equal(choose(&w, "third"), 0);
    assert_int_equal(setenv("RONDO_TUNE", "full", 1), 0);
    assert_int_equal(choose(&w, "third"), 3);
    assert_int_equal(unsetenv("RONDO_TUNE"), 0);
    assert_int_equal(choose(&w, "fourth"), 1);
    rondo_device_release(w.device);
}

TEST(test_kernel_cuda_tune__file) {
    static const struct {
        const char *choice;
        size_t way;
    } rows[] = {{"slow", 0}, {"last", 4}, {"broken", 1}, {"of another version", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        world w = {.mode = RONDO_TUNING_FAST};
        write_file(rows[i].choice);
        OK(rondo_device_open("cuda:0", &w.device));
        OK(rondo__tuning_choices_create(g_file, &w.choices));
        assert_int_equal(choose(&w, "filed"), rows[i].way);
        rondo__tuning_choices_destroy(w.choices);
        rondo_device_release(w.device);
    }
}

// A choice of a file takes the place of what a full contest has found, for all modes; of a problem
// that the file does not hold nothing is kept.
TEST(test_kernel_cuda_tune__keep) {
    static const char *const problems[] = {"filed", "not filed"};
    world w = {.mode = RONDO_TUNING_FULL};
    char command[128];
    // As no contest was before: other tests have the problem, too.
    (void)snprintf(command, sizeof command, "rm -rf '%s'/kernels", g_cache);
    assert_int_equal(system(command), 0);
    write_file("middle");
    OK(rondo_device_open("cuda:0", &w.device));
    assert_int_equal(choose(&w, "filed"), 3);
    w.mode = RONDO_TUNING_KEEP;
    OK(rondo__tuning_choices_create(g_file, &w.choices));
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(choose(&w, problems[i]), i == 0 ? 1 : 0);
    }
    rondo__tuning_choices_destroy(w.choices);
    w.choices = NULL;
    for (w.mode = RONDO_TUNING_OFF; w.mode <= RONDO_TUNING_FULL; w.mode++) {
        assert_int_equal(choose(&w, problems[0]), 1);
    }
    w.mode = RONDO_TUNING_FULL;
    assert_int_equal(choose(&w, problems[1]), 3);
    rondo_device_release(w.device);
}

// What was timed or recalled is noted; a guess is not.
TEST(test_kernel_cuda_tune__noted) {
    world w = {.mode = RONDO_TUNING_OFF};
    rondo__text text = {0};
    OK(rondo_device_open("cuda:0", &w.device));
    OK(rondo__tuning_choices_create(NULL, &w.choices));
    assert_int_equal(choose(&w, "guessed"), 0);
    w.mode = RONDO_TUNING_FULL;
    assert_int_equal(choose(&w, "timed"), 3);
    rondo__tuning_choices_destroy(w.choices);
    OK(rondo__tuning_choices_create(NULL, &w.choices));
    assert_int_equal(choose(&w, "timed"), 3);
    rondo__tuning_choices_print(w.choices, &text);
    assert_non_null(strstr(text.bytes, "\ttimed\tquick\n"));
    assert_null(strstr(text.bytes, "guessed"));
    rondo__text_deinit(&text);
    rondo__tuning_choices_destroy(w.choices);
    rondo_device_release(w.device);
}

// ---- where constants are ----------------------------------------------------------------------

enum { TOUCHED_MAX = 256, CANDIDATES = 2 };

// What each launch was given: an input, a form of a constant, a constant as it is, the output.
typedef struct touched {
    uint64_t words[4];
} touched;

static touched g_touched[TOUCHED_MAX];
static size_t g_touched_count, g_look_count;

static void run_touch(const void *arguments, size_t bytes) {
    assert_int_equal(bytes, sizeof(touched));
    assert_true(g_touched_count < TOUCHED_MAX);
    memcpy(&g_touched[g_touched_count++], arguments, bytes);
}

static void run_look(const void *arguments, size_t bytes) {
    (void)arguments, (void)bytes;
    g_look_count++;
}

static size_t count_distinct(size_t word, size_t count) {
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        while (before < i && g_touched[before].words[word] != g_touched[i].words[word]) {
            before++;
        }
        distinct += before == i ? 1 : 0;
    }
    return distinct;
}

static const char g_form[8] = "planted";

static bool own_constant(rondo__cuda_kernel *kernel, rondo__address *out_address) {
    rondo__weight_want want = {.form = g_form, .form_bytes = sizeof g_form, .bytes = 256};
    return rondo__cuda_own_input(kernel, 1, &want, out_address);
}

// `problem`: the form's address, or NULL where candidates ask for the form.
static void build_touch(rondo__cuda_kernel *kernel, const void *problem, size_t index) {
    rondo__defines defines = {0};
    rondo__address form = {0};
    (void)index;
    if (problem != NULL) {
        form = *(const rondo__address *)problem;
    } else if (!own_constant(kernel, &form)) {
        return;
    }
    assert_true(rondo__address_is_fixed(&form));
    rondo__step *step = rondo__cuda_add_launch(kernel, "planted", &defines, "touch", 1, 32);
    rondo__step_input(step, 0);
    rondo__step_address(step, form);
    rondo__step_input(step, 2);
    rondo__step_output(step, 0);
}

typedef struct constants_row {
    const char *key;
    uint64_t constant_bytes;
    bool is_early;   // the form is made before the contest
    size_t places;   // of each constant, while candidates are timed
    size_t replays;  // before which the cache was filled
} constants_row;

// A kernel of one input that is computed and two that are constants, of which it owns the first.
typedef struct constants_world {
    rondo_tensor weights;
    rondo__tensor_info infos[3];
    rondo__weight_account account;
    rondo__weight_list list;
    char name[8];
    rondo__op op;
    rondo__kernel_request request;
} constants_world;

static void open_world(constants_world *w, rondo_device *device, uint64_t constant_bytes) {
    const rondo_shape shape = {.rank = 1, .extent = {64}};
    *w = (constants_world){.name = "planted"};
    w->op = (rondo__op){.name = w->name, .def = rondo__op_lookup("", "Add", 14)};
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &w->weights));
    for (size_t i = 0; i < 3; i++) {
        w->infos[i] = (rondo__tensor_info){.dtype = RONDO_DTYPE_F32,
                                           .is_shape_known = true,
                                           .shape = shape,
                                           .constant = i > 0 ? &w->weights : NULL};
    }
    OK(rondo_stream_create(device, NULL, &w->account.stream));
    OK(rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &w->account.store));
    rondo__weight_list_init(&w->account, &w->list);
    w->request = (rondo__kernel_request){.device = device,
                                         .op = &w->op,
                                         .input_count = 3,
                                         .inputs = w->infos,
                                         .output_count = 1,
                                         .outputs = w->infos,
                                         .weights = &w->list,
                                         .tuning = RONDO_TUNING_FULL,
                                         .constant_bytes = constant_bytes};
}

static void close_world(constants_world *w) {
    rondo__weight_list_cut(&w->list, 0);
    rondo__weight_store_destroy(w->account.store);
    rondo_stream_destroy(w->account.stream);
    rondo_tensor_deinit(&w->weights);
}

// Builds the fastest; `early`: the form's address, or NULL where candidates ask for it.
static void add_fastest(rondo__cuda_kernel *kernel, const char *key, const rondo__address *early) {
    const rondo__tuning tuning = {.key = key,
                                  .candidate_count = CANDIDATES,
                                  .fast = 3,
                                  .problem = early,
                                  .build = build_touch,
                                  .describe = describe};
    g_touched_count = g_look_count = 0;
    rondo__cuda_add_fastest(kernel, &tuning);
}

static void check_constants(rondo_device *device, const constants_row *row) {
    constants_world w;
    rondo__cuda_kernel *kernel = NULL;
    rondo__kernel *ready = NULL;
    rondo__address early = {0};
    open_world(&w, device, row->constant_bytes);
    OK(rondo__cuda_begin_kernel(&w.request, &kernel));
    assert_true(!row->is_early || own_constant(kernel, &early));
    add_fastest(kernel, row->key, row->is_early ? &early : NULL);
    OK(rondo__cuda_finish_kernel(kernel, &ready));
    const size_t timed = g_touched_count;
    assert_true(timed > CANDIDATES * row->places);
    assert_int_equal(count_distinct(0, timed), 1);
    assert_int_equal(count_distinct(1, timed), row->places);
    assert_int_equal(count_distinct(2, timed), row->places);
    assert_int_equal(count_distinct(3, timed), 1);
    assert_int_equal(g_look_count, CANDIDATES * row->replays);
    assert_int_equal(w.list.count, 1);  // candidates made none

    const void *const inputs[] = {&early, NULL, &w.account};
    void *const outputs[] = {&w.list};
    void *form = NULL;
    const rondo__weight_want want = {
        .constant = &w.weights, .form = g_form, .form_bytes = sizeof g_form, .bytes = 256};
    OK(ready->launch(ready, w.account.stream, inputs, outputs, NULL));
    OK(rondo_stream_synchronize(w.account.stream));
    OK(rondo__weight_list_add(&w.list, &want, &form));
    const uint64_t expected[] = {(uintptr_t)&early, (uintptr_t)form, (uintptr_t)&w.account,
                                 (uintptr_t)&w.list};
    assert_memory_equal(g_touched[g_touched_count - 1].words, expected, sizeof expected);
    for (size_t i = 0; i < timed && row->is_early; i++) {
        assert_true(g_touched[i].words[1] != (uintptr_t)form);
    }
    rondo__kernel_destroy(ready);
    close_world(&w);
}

// Each call that may run out of memory does so once: a contest goes on with what there is, and
// leaves nothing behind.
TEST(test_kernel_cuda_tune__short_of_memory) {
    enum { OUT_OF_MEMORY = 2, CALLS_MAX = 4096 };
    static struct { size_t timed, places, looks; } seen[CALLS_MAX];
    rondo_device *device = NULL;
    size_t count = 0;
    bool has_failed = true, has_one_copy = false, stays_warm = false;
    fake_cuda_set_kernel("touch", run_touch);
    fake_cuda_set_kernel("look", run_look);
    OK(rondo_device_open("cuda:0", &device));
    for (; has_failed; ++count) {
        constants_world w;
        rondo__cuda_kernel *kernel = NULL;
        rondo__kernel *ready = NULL;
        char key[32];
        assert_true(count < CALLS_MAX);
        (void)snprintf(key, sizeof key, "short %zu", count);
        open_world(&w, device, 200 << 20);
        OK(rondo__cuda_begin_kernel(&w.request, &kernel));
        fake_cuda_fail_nth((long)count, OUT_OF_MEMORY);
        add_fastest(kernel, key, NULL);
        has_failed = fake_cuda_has_failed();
        fake_cuda_fail_nth(-1, 0);
        seen[count].timed = g_touched_count;
        seen[count].places = count_distinct(1, g_touched_count);
        seen[count].looks = g_look_count;
        if (rondo__cuda_finish_kernel(kernel, &ready) != RONDO_STATUS_OK) {
            ready = NULL;
        }
        rondo__kernel_destroy(ready);
        close_world(&w);
    }
    // Where copies or other data found no room, both candidates were timed all the same.
    for (size_t i = 0; i + 1 < count; ++i) {
        const bool is_whole = seen[i].timed == seen[count - 1].timed;
        has_one_copy = has_one_copy || (is_whole && seen[i].places == 1 && seen[i].looks > 0);
        stays_warm = stays_warm || (is_whole && seen[i].places > 1 && seen[i].looks == 0);
    }
    assert_true(has_one_copy);
    assert_true(stays_warm);
    rondo_device_release(device);
}

TEST(test_kernel_cuda_tune__constants) {
    static const constants_row rows[] = {
        {.key = "warm", .places = 1},
        {.key = "warm, early", .is_early = true, .places = 1},
        {.key = "cold", .constant_bytes = 200 << 20, .places = 10, .replays = 5},
        {.key = "cold, early",
         .constant_bytes = 200 << 20,
         .is_early = true,
         .places = 10,
         .replays = 5},
    };
    rondo_device *device = NULL;
    fake_cuda_set_kernel("touch", run_touch);
    fake_cuda_set_kernel("look", run_look);
    OK(rondo_device_open("cuda:0", &device));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        check_constants(device, &rows[i]);
    }
    rondo_device_release(device);
}

static int open_fake(void **state) {
    static const fake_cuda_options options = {
        .device_count = 1, .driver_version = 13000, .has_get_proc_address = true};
    (void)state;
    fake_cuda_reset(&options);
    fake_cuda_install();
    fake_cuda_install_compiler();
    fake_cuda_set_clock(get_now_ns);
    fake_cuda_set_kernel("noise", run_noise);
    fake_cuda_set_kernel("neighbour", run_neighbour);
    fake_cuda_set_kernel("slow", run_slow);
    fake_cuda_set_kernel("middle", run_middle);
    fake_cuda_set_kernel("quick", run_quick);
    fake_cuda_set_kernel("last", run_last);
    return 0;
}

static int close_fake(void **state) {
    (void)state;
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_set_clock(NULL);
    fake_cuda_uninstall();
    return 0;
}

int main(void) {
    if (mkdtemp(g_cache) == NULL || setenv("RONDO_CACHE_DIR", g_cache, 1) != 0 ||
        unsetenv("RONDO_TUNE") != 0) {
        return 1;
    }
    (void)snprintf(g_file, sizeof g_file, "%s/model.tuning", g_cache);
    const int failed = test_run("tests", g_listed, open_fake, close_fake, NULL, NULL);
    char command[96];
    (void)snprintf(command, sizeof command, "rm -r '%s'", g_cache);
    return system(command) == 0 ? failed : 1;
}
