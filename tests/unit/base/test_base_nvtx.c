// Ranges for NVIDIA's tools, seen by a tool of our own (nvtx_tool.c). Whether a tool listens is
// decided once in a process, so each form of it gets a process of its own.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dlfcn.h>

#include "base/log/nvtx.h"
#include "rondo/control.h"
#include "rondo/graph.h"
#include "rondo/label.h"
#include "rondo/log.h"
#include "support/test.h"

static char tool_path[4096];

// The tool lies beside this program.
static void find_tool(void) {
    ssize_t length = readlink("/proc/self/exe", tool_path, sizeof tool_path - 64);
    assert_true(length > 0);
    tool_path[length] = '\0';
    snprintf(strrchr(tool_path, '/') + 1, 64, "librondo_nvtx_tool.so");
    if (access(tool_path, R_OK) != 0) {
        print_message("skipped: %s is not there\n", tool_path);
        skip();
    }
}

static char warnings[1024];

static void keep_warning(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    snprintf(warnings, sizeof warnings, "%s", message);
}

static void do_nothing(void *arguments) {
    (void)arguments;
}

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            return 1;                                                       \
        }                                                                   \
    } while (0)

// The bodies of an if; the scope that the first leaves open ends with it.
static int use_bodies(rondo_stream *stream) {
    static const uint32_t predicate = 0;
    rondo_scope scope;
    rondo_stream *body = NULL;
    CHECK(rondo_scope_begin(stream, RONDO_SCOPE_IF_ELSE, &predicate, 0, &scope) == RONDO_STATUS_OK);
    CHECK(rondo_scope_enter(scope, 0, &body) == RONDO_STATUS_OK);
    CHECK(rondo_label_push(body, "then") == RONDO_STATUS_OK);
    CHECK(rondo_scope_leave(scope) == RONDO_STATUS_OK);
    CHECK(rondo_scope_enter(scope, 1, &body) == RONDO_STATUS_OK);
    CHECK(rondo_label_push(body, "else") == RONDO_STATUS_OK);
    CHECK(rondo_label_pop(body) == RONDO_STATUS_OK);
    CHECK(rondo_scope_leave(scope) == RONDO_STATUS_OK);
    CHECK(rondo_scope_end(scope) == RONDO_STATUS_OK);
    return 0;
}

// A session: labels outside and inside a capture, replays.
static int use_ranges(void) {
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    rondo_graph_options options = {.struct_size = sizeof options};
    options.label = "step";
    CHECK(rondo_device_open("host", &device) == RONDO_STATUS_OK);
    CHECK(rondo_stream_create(device, NULL, &stream) == RONDO_STATUS_OK);
    CHECK(rondo_graph_create(device, &options, &graph) == RONDO_STATUS_OK);
    CHECK(rondo_label_push(stream, "warm-up") == RONDO_STATUS_OK);
    CHECK(rondo_label_pop(stream) == RONDO_STATUS_OK);
    CHECK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL) == RONDO_STATUS_OK);
    CHECK(rondo_label_push(stream, "layer3") == RONDO_STATUS_OK);
    CHECK(rondo_label_push(stream, "attention") == RONDO_STATUS_OK);
    CHECK(rondo_stream_call_host(stream, "nothing", do_nothing, NULL, 0) == RONDO_STATUS_OK);
    CHECK(rondo_label_pop(stream) == RONDO_STATUS_OK);
    CHECK(use_bodies(stream) == 0);
    CHECK(rondo_label_pop(stream) == RONDO_STATUS_OK);
    CHECK(rondo_graph_capture_end(graph) == RONDO_STATUS_OK);
    CHECK(rondo_graph_replay(graph, stream) == RONDO_STATUS_OK);
    CHECK(rondo_graph_replay(graph, stream) == RONDO_STATUS_OK);
    CHECK(rondo_stream_synchronize(stream) == RONDO_STATUS_OK);
    CHECK(rondo_graph_reset(graph) == RONDO_STATUS_OK);
    // A capture that is given up closes its ranges.
    CHECK(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL) == RONDO_STATUS_OK);
    CHECK(rondo_label_push(stream, "lost") == RONDO_STATUS_OK);
    rondo_graph_capture_abort(graph);
    rondo_graph_destroy(graph);
    // And so does a stream that is destroyed.
    CHECK(rondo_label_push(stream, "left open") == RONDO_STATUS_OK);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    return 0;
}

static int expect_log(const char *expected) {
    void *tool = dlopen(tool_path, RTLD_NOW | RTLD_NOLOAD);
    CHECK(tool != NULL);
    union {
        void *address;
        const char *(*get_log)(void);
    } entry = {.address = dlsym(tool, "nvtx_tool_get_log")};
    CHECK(entry.address != NULL);
    if (strcmp(entry.get_log(), expected) != 0) {
        fprintf(stderr, "the tool saw:\n%swanted:\n%s", entry.get_log(), expected);
        return 1;
    }
    return 0;
}

static int run_in_domain(void) {
    CHECK(use_ranges() == 0);
    CHECK(rondo__nvtx_is_on());
    return expect_log(
        "domain rondo\n"
        "rondo: push warm-up\nrondo: pop\n"
        "rondo: start capture step 0\n"
        "rondo: push layer3\nrondo: push attention\nrondo: pop\n"
        "rondo: push then\nrondo: pop\nrondo: push else\nrondo: pop\nrondo: pop\n"
        "rondo: end 0\n"
        "rondo: push replay step\nrondo: pop\n"
        "rondo: push replay step\nrondo: pop\n"
        "rondo: start capture step 1\nrondo: push lost\nrondo: pop\nrondo: end 1\n"
        "rondo: push left open\nrondo: pop\n");
}

static int run_plain(void) {
    CHECK(use_ranges() == 0);
    return expect_log(
        "push warm-up\npop\n"
        "start capture step 0\npush layer3\npush attention\npop\n"
        "push then\npop\npush else\npop\npop\nend 0\n"
        "push replay step\npop\npush replay step\npop\n"
        "start capture step 1\npush lost\npop\nend 1\n"
        "push left open\npop\n");
}

// A tool that wants nothing gets nothing, and nothing else changes.
static int run_without_functions(void) {
    CHECK(use_ranges() == 0);
    CHECK(rondo__nvtx_is_on());
    return expect_log("");
}

static int run_off(void) {
    CHECK(use_ranges() == 0);
    CHECK(!rondo__nvtx_is_on());
    CHECK(atomic_load(&rondo__nvtx_state) == RONDO__NVTX_OFF);
    return 0;
}

static int run_off_with_warning(void) {
    rondo_log_set_sink(keep_warning, NULL);
    CHECK(run_off() == 0);
    CHECK(strstr(warnings, "NVTX_INJECTION64_PATH") != NULL);
    return 0;
}

static void run_process(const char *path, const char *form, int (*run)(void)) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (path != NULL) {
            setenv("NVTX_INJECTION64_PATH", path, 1);
        } else {
            unsetenv("NVTX_INJECTION64_PATH");
        }
        setenv("NVTX_TOOL_FORM", form, 1);
        _exit(run());
    }
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

TEST(test_base_nvtx__ranges_have_a_domain) {
    find_tool();
    run_process(tool_path, "all", run_in_domain);
}

TEST(test_base_nvtx__plain_functions_serve_too) {
    find_tool();
    run_process(tool_path, "plain", run_plain);
}

TEST(test_base_nvtx__a_tool_may_want_nothing) {
    find_tool();
    run_process(tool_path, "none", run_without_functions);
}

TEST(test_base_nvtx__no_tool) {
    run_process(NULL, "", run_off);
    run_process("", "", run_off);
}

TEST(test_base_nvtx__tools_that_do_not_work) {
    find_tool();
    run_process(tool_path, "broken", run_off_with_warning);
    run_process("/nonexistent/librondo_nvtx_tool.so", "", run_off_with_warning);
    run_process("libm.so.6", "", run_off_with_warning);
}

TEST_MAIN()
