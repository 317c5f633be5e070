// Where the time of a region goes: a profile around replays, with events of the program's own. Runs
// on every machine.
//
//   profile_region [PAGE.html]
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rondo/rondo.h>

static void check(rondo_status status) {
    if (status != RONDO_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", rondo_status_get_name(status), rondo_error_get_last()->message);
        exit(EXIT_FAILURE);
    }
}

static void work(void *arguments) {
    volatile float *x = *(float **)arguments;
    for (int i = 0; i < 20000; ++i) {
        *x += 1.0f;
    }
}

static bool write_to(void *file, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, file) == bytes;
}

// ---- the region
static void profile(rondo_graph *graph, rondo_stream *stream, rondo_profile *profile) {
    check(rondo_profile_start(profile));
    check(rondo_profile_begin("steps"));
    for (int i = 0; i < 10; ++i) {
        check(rondo_graph_replay(graph, stream));
    }
    check(rondo_stream_synchronize(stream));
    check(rondo_profile_end());
    check(rondo_profile_stop(profile));
}

static void write_report(rondo_profile *profile, rondo_profile_format format, FILE *file) {
    const rondo_profile_write_options options = {.struct_size = sizeof options, .format = format};
    check(rondo_profile_write(profile, &options, write_to, file));
}

// ---- the rest
int main(int argc, char **argv) {
    float x = 0.0f, *address = &x;
    rondo_device *device;
    rondo_stream *stream;
    rondo_graph *graph;
    rondo_profile *recorder;
    check(rondo_device_open("host", &device));
    check(rondo_stream_create(device, NULL, &stream));
    check(rondo_graph_create(device, NULL, &graph));
    check(rondo_profile_create(NULL, &recorder));  // before the capture: so its nodes have names
    check(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL));
    check(rondo_stream_call_host(stream, "work", work, &address, sizeof address));
    check(rondo_graph_capture_end(graph));
    profile(graph, stream, recorder);
    write_report(recorder, RONDO_PROFILE_PLAIN, stdout);
    FILE *page = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (page) {
        write_report(recorder, RONDO_PROFILE_HTML, page);
        fclose(page);
    }

    rondo_profile_row rows[64];
    size_t count = 0;
    uint64_t calls = 0;
    rows[0].struct_size = sizeof rows[0];
    check(rondo_profile_get_rows(recorder, RONDO_PROFILE_BY_GPU, false, rows, 64, &count));
    for (size_t i = 0; i < count && i < 64; ++i) {
        calls += strcmp(rows[i].name, "work") == 0 ? rows[i].calls : 0;
    }
    rondo_profile_destroy(recorder), rondo_graph_destroy(graph);
    rondo_stream_destroy(stream), rondo_device_release(device);
    return calls == 10 ? EXIT_SUCCESS : EXIT_FAILURE;
}
