// Mutated models: each error says what it is about. The models are ONNX's operator tests, where
// they are installed, and the small ones that ship, changed as fuzzing changes them; each is
// loaded, described and run.
//
// What a line must name is the node, or the value, tensor, input, output or attribute by its name;
// the tool adds the file. Lines about the file as a whole are listed with the reason.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "fuzz/random_values.h"
#include "rondo/models.h"
#include "support/source_dir.h"
#include "support/test.h"
#include "support/text_sink.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#define NODES "/usr/share/libonnx-testdata/data/node"

enum { MODEL_BYTES_MAX = 64 * 1024, ROUNDS = 4, PORTS_MAX = 64 };

// Lines that name no node and no value, and why they cannot.
static const char *const about_the_file[] = {
    "malformed protobuf",      // nothing is known of what stands there
    "malformed text at byte",  // the name itself is broken
    "not an ONNX model",       // there is no graph
    "the model names no ir_version",
    "unsupported: ir_version",
    "has no op type",  // a node that may have no name either: its number is told
    "has no name",     // what it is stands before that: an input, an output, an initializer
};

// libFuzzer's own mutation, which is not linked here: one byte.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)max_size;
    if (size > 0) {
        data[(size_t)rand() % size] = (uint8_t)rand();
    }
    return size;
}

typedef struct tally {
    size_t mutant_count;
    size_t refused_count;  // at load
    size_t failed_count;   // later
    size_t nameless_count;
} tally;

static bool is_named(const rondo_error *error) {
    if (error->op[0] != '\0') {
        return true;
    }
    // A name in quotes, not an empty one.
    for (const char *quote = strchr(error->message, '"'); quote != NULL;) {
        const char *end = strchr(quote + 1, '"');
        if (end == NULL || end > quote + 1) {
            return true;
        }
        quote = strchr(end + 1, '"');
    }
    for (size_t i = 0; i < sizeof about_the_file / sizeof about_the_file[0]; ++i) {
        if (strstr(error->message, about_the_file[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void look_at_error(tally *t, const char *file, unsigned seed, const char *what) {
    const rondo_error *error = rondo_error_get_last();
    if (!is_named(error)) {
        t->nameless_count += 1;
        print_error("%s, seed %u, %s: %s\n", file, seed, what, error->message);
    }
}

// Small values of the declared type and shape; false where it says too little, or asks for much.
static bool make_feed(const rondo_port *port, rondo_binding *out_feed) {
    rondo_shape shape = {.rank = port->rank};
    for (int32_t d = 0; d < port->rank; ++d) {
        shape.extent[d] = port->extent[d] < 0 ? 2 : port->extent[d];
    }
    const bool is_tensor =
        port->dtype != RONDO_DTYPE_SEQUENCE && port->dtype != RONDO_DTYPE_OPTIONAL;
    const int64_t count = rondo_shape_get_count(&shape);
    out_feed->name = port->name;
    return (!is_tensor || (port->rank >= 0 && count >= 0 && count < 100000)) &&
           fuzz_make_value(port->dtype, port->item_dtype, &shape, &out_feed->tensor);
}

static void run_program(tally *t, rondo_program *program, rondo_executor *executor,
                        const char *file, unsigned seed) {
    rondo_binding feeds[PORTS_MAX] = {{0}};
    const size_t count = rondo_program_get_input_count(program);
    bool is_fed = count <= PORTS_MAX;
    for (size_t i = 0; i < count && is_fed; ++i) {
        rondo_port port = {.struct_size = sizeof port};
        is_fed = rondo_program_get_input(program, i, &port) == RONDO_STATUS_OK &&
                 make_feed(&port, &feeds[i]);
    }
    if (is_fed && rondo_executor_run(executor, feeds, count, NULL, 0) != RONDO_STATUS_OK) {
        t->failed_count += 1;
        look_at_error(t, file, seed, "run");
    }
    for (size_t i = 0; i < count && i < PORTS_MAX; ++i) {
        rondo_tensor_deinit(&feeds[i].tensor);
    }
}

static void try_model(tally *t, rondo_device *device, const char *path, const char *file,
                      unsigned seed) {
    rondo_program *program = NULL;
    rondo_executor *executor = NULL;
    rondo_executor_options options = {.struct_size = sizeof options};
    options.memory_limit_bytes = 64 << 20;
    options.loop_limit = 1000;
    t->mutant_count += 1;
    const rondo_status status = rondo_program_load_onnx(path, &program);
    if (status != RONDO_STATUS_OK) {
        t->refused_count += 1;
        look_at_error(t, file, seed, "load");
        // What is unsupported is said in one wording, and the tool puts the file in front.
        assert_true(status == RONDO_STATUS_UNSUPPORTED ||
                    strstr(rondo_error_get_last()->message, path) != NULL);
        return;
    }
    if (rondo_executor_create(program, device, &options, &executor) != RONDO_STATUS_OK) {
        t->failed_count += 1;
        look_at_error(t, file, seed, "create");
    } else {
        if (rondo_executor_describe(executor, RONDO_TEXT_PLAIN, text_sink_ignore, NULL) !=
            RONDO_STATUS_OK) {
            t->failed_count += 1;
            look_at_error(t, file, seed, "describe");
        }
        run_program(t, program, executor, file, seed);
    }
    rondo_executor_destroy(executor);
    rondo_program_destroy(program);
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t count) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, count, stream), count);
    fclose(stream);
}

// Mutates one model again and again, each time on top of the last that still loads.
static void mutate_model(tally *t, rondo_device *device, const char *folder, const char *name,
                         const char *scratch, unsigned rounds) {
    static uint8_t bytes[MODEL_BYTES_MAX];
    char path[1024];
    rondo__file source;
    (void)snprintf(path, sizeof path, "%s/%s/model.onnx", folder, name);
    if (rondo__file_map(path, &source) != RONDO_STATUS_OK ||
        source.byte_count > MODEL_BYTES_MAX / 2) {
        rondo__file_unmap(&source);
        return;
    }
    for (unsigned seed = 1; seed <= rounds; ++seed) {
        size_t size = source.byte_count;
        memcpy(bytes, source.bytes, size);
        srand(seed);
        for (unsigned step = 0; step < 1 + seed % 3; ++step) {
            size = LLVMFuzzerCustomMutator(bytes, size, sizeof bytes, seed * 7919 + step);
        }
        write_bytes(scratch, bytes, size);
        try_model(t, device, scratch, name, seed);
    }
    rondo__file_unmap(&source);
}

// Mutates FOLDER/*/model.onnx; returns false when there is no such folder.
static bool mutate_folder(tally *t, rondo_device *device, const char *folder, const char *scratch,
                          unsigned rounds) {
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; ++i) {
        if (entries[i]->d_name[0] != '.') {
            mutate_model(t, device, folder, entries[i]->d_name, scratch, rounds);
        }
        free(entries[i]);
    }
    free(entries);
    return count > 0;
}

static void drop_message(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

TEST(test_onnx_mutations__each_error_names_what_it_is_about) {
    const char *wanted = getenv("RONDO_MUTATIONS");  // rounds for each model
    const unsigned rounds = wanted != NULL ? (unsigned)atoi(wanted) : ROUNDS;
    char folder[512];
    char scratch[] = "/tmp/rondo_mutant_XXXXXX";
    const int descriptor = mkstemp(scratch);
    assert_true(descriptor >= 0);
    fclose(fdopen(descriptor, "wb"));
    rondo_device *device;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    rondo_log_set_sink(drop_message, NULL);
    tally t = {0};
    (void)snprintf(folder, sizeof folder, "%s/tests/models", get_source_dir());
    assert_true(mutate_folder(&t, device, folder, scratch, rounds));
    if (!mutate_folder(&t, device, NODES, scratch, rounds)) {
        print_message("without " NODES " (Debian and Ubuntu: libonnx-testdata)\n");
    }
    remove(scratch);
    rondo_log_set_sink(NULL, NULL);
    rondo_device_release(device);
    print_message("%zu mutants: %zu refused, %zu failed later, %zu errors name nothing\n",
                  t.mutant_count, t.refused_count, t.failed_count, t.nameless_count);
    assert_true(t.refused_count > t.mutant_count / 50 && t.failed_count > t.mutant_count / 50);
    assert_int_equal(t.nameless_count, 0);
}

TEST_MAIN()
