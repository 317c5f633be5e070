// session.h — a model loaded for a device, with something to feed it: what run, bench and inspect
// share.
#ifndef RONDO_CLI_SESSION_H
#define RONDO_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command.h"
#include "rondo/rondo.h"

// Options that every command on a model has. Choices are in the order of their option rows.
typedef struct cli_model_settings {
    const char *device;
    int graphs;  // a rondo_graphs_mode
    int dtype;   // 0: fp32, 1: fp16
    cli_list dimensions;
    uint64_t seed;
    cli_list inputs;
    cli_list keep_f32;  // patterns; with fp16 only
    cli_list use_f16;
} cli_model_settings;

#define CLI_MODEL_SETTINGS_DEFAULT \
    { .device = "auto" }

// Patterns that --dtype fp16 reads.
#define CLI_PRECISION_OPTION_ROWS(type, keep, use)                                                 \
    {"--keep-f32",                                                                                 \
     "PATTERN",                                                                                    \
     CLI_LIST,                                                                                     \
     offsetof(type, keep),                                                                         \
     NULL,                                                                                         \
     "with fp16: ops that stay in single precision, by name or\ntype (* any characters, ? one); "  \
     "may be repeated"},                                                                           \
    {                                                                                              \
        "--use-f16", "PATTERN", CLI_LIST, offsetof(type, use), NULL,                               \
            "with fp16: ops that become half precision against the\nrules that keep them; may be " \
            "repeated"                                                                             \
    }

// Rows of an option table, for a settings struct that holds a cli_model_settings named `member`.
#define CLI_DEVICE_OPTION_ROWS(type, member)                                                    \
    {"--device", "NAME",                                                                        \
     CLI_TEXT,   offsetof(type, member.device),                                                 \
     NULL,       "auto (default: the first usable GPU, otherwise the host),\nhost, or cuda:N"}, \
        {"--dtype",   NULL,                                                                     \
         CLI_CHOICE,  offsetof(type, member.dtype),                                             \
         "fp32|fp16", "compute in single (default) or half precision"},                         \
        CLI_PRECISION_OPTION_ROWS(type, member.keep_f32, member.use_f16), {                     \
        "--set", "DIM=N", CLI_LIST, offsetof(type, member.dimensions), NULL,                    \
            "give a symbolic dimension a number (batch=4);\nthose not set count as 1"           \
    }
#define CLI_INPUT_OPTION_ROWS(type, member)                                                      \
    {"--graphs",                                                                                 \
     NULL,                                                                                       \
     CLI_CHOICE,                                                                                 \
     offsetof(type, member.graphs),                                                              \
     "auto|on|off",                                                                              \
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager"}, \
        {"--input",                                                                              \
         "NAME=FILE.npy|random",                                                                 \
         CLI_LIST,                                                                               \
         offsetof(type, member.inputs),                                                          \
         NULL,                                                                                   \
         "an input's values; those not given are random:\nreals in [-1, 1), whole numbers 0 or " \
         "1"},                                                                                   \
    {                                                                                            \
        "--seed", "N", CLI_COUNT, offsetof(type, member.seed), NULL,                             \
            "seed of random inputs and of random ops (0)"                                        \
    }

typedef struct cli_session {
    rondo_program *program;
    rondo_device *device;
    rondo_device_info device_info;
    rondo_executor *executor;
    size_t feed_count;
    rondo_binding *feeds;
    size_t fetch_count;
    rondo_binding *fetches;  // tensors are allocated by the first run and reused by later ones
} cli_session;

// Puts the patterns into the options. On failure (patterns without fp16) prints why.
bool cli_set_precision(rondo_executor_options *options, rondo_dtype dtype, const cli_list *keep_f32,
                       const cli_list *use_f16);

// Loads the model, sets dimensions, opens the device and makes the executor. On failure prints why.
//
// Ownership: close with cli_session_close, also after a failure.
bool cli_session_open(const char *path, const cli_model_settings *settings, cli_session *session);

// Fills feeds from --input, randomly where none is given, and names the fetches. On failure prints
// why.
bool cli_session_make_bindings(cli_session *session, const cli_model_settings *settings);

// Runs once. On failure prints why.
bool cli_session_run(cli_session *session);

void cli_session_close(cli_session *session);

// Writes "f32 [batch=1, 3, 224, 224]" into `buffer` and returns it.
char *cli_format_port(const rondo_port *port, char *buffer, size_t buffer_bytes);

#endif  // RONDO_CLI_SESSION_H
