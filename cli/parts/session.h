// session.h — a model loaded for a device, with something to feed it: what run, bench and inspect
// share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "assign.h"
#include "command.h"
#include "image_input.h"
#include "path_list.h"
#include "rondo/models.h"

// Options that every command on a model has. Choices are in the order of their option rows.
typedef struct cli_model_settings {
    const char *device;
    int graphs;  // a rondo_graphs_mode; -1: not said
    int dtype;   // 0: fp32, 1: fp16; -1: not said
    uint64_t thread_count;
    int branches;  // a rondo_branches_mode
    int tuning;    // a rondo_tuning
    const char *tuning_file;
    uint64_t memory_limit;  // bytes; 0: the default
    bool allow_newer_opset;
    uint64_t weight_limit;  // bytes; 0: none
    uint64_t loop_limit;    // turns; 0: the default
    cli_list dimensions;
    cli_list shapes;
    cli_list inputs;
    bool casts;
    uint64_t seed;
    cli_image_settings image;
    bool is_quiet;
    bool is_verbose;
    cli_list keep_f32;  // patterns; with fp16 only
    cli_list use_f16;
    cli_list place;
    bool is_unfolded;
    bool allow_remake;  // of what a plan file has for something else
} cli_model_settings;

#define CLI_MODEL_SETTINGS_DEFAULT \
    { .device = "auto", .graphs = -1, .dtype = -1 }

// Rows of an option table, for a settings struct that holds a cli_model_settings named `member`.
// clang-format off
// Patterns that --dtype fp16 reads.
#define CLI_PRECISION_OPTION_ROWS(type, keep, use)                                                 \
    {"--keep-f32", "PATTERN", CLI_LIST, offsetof(type, keep), NULL,                                \
     "with fp16: ops that stay in single precision, by name or\ntype (* any characters, ? one); "  \
     "may be repeated"},                                                                           \
    {"--use-f16", "PATTERN", CLI_LIST, offsetof(type, use), NULL,                                  \
     "with fp16: ops that become half precision against the\nrules that keep them; may be "        \
     "repeated"}
#define CLI_PLACE_OPTION_ROW(type, field)                                                          \
    {"--place", "PATTERN=PLACE", CLI_LIST, offsetof(type, field), NULL,                            \
     "where ops run, by name or type (* any characters, ? one):\n'Gather*=cpu', or =gpu, =gpu:1, " \
     "=all; may be repeated"}
#define CLI_MEMORY_OPTION_ROW(type, field)                                                         \
    {"--memory-limit", "SIZE", CLI_BYTES, offsetof(type, field), NULL,                             \
     "memory for loading, for plans and for runs: 512MiB, 4GiB\n(default: in proportion to the "   \
     "model, its inputs and\nthis machine)"}
#define CLI_NEWER_OPTION_ROW(type, field)                                                          \
    {"--allow-newer-opset", NULL, CLI_SWITCH, offsetof(type, field), NULL,                         \
     "read ops of opsets that came later by their newest known\ndefinition"}
#define CLI_DEVICE_OPTION_ROWS(type, member)                                                       \
    {"--device", "NAME", CLI_TEXT, offsetof(type, member.device), NULL,                            \
     "auto (default: the first usable GPU, otherwise the host),\nhost, or cuda:N"},                \
    {"--dtype", NULL, CLI_CHOICE, offsetof(type, member.dtype), "fp32|fp16",                       \
     "compute in single (default) or half precision"},                                             \
    CLI_PRECISION_OPTION_ROWS(type, member.keep_f32, member.use_f16),                              \
    CLI_PLACE_OPTION_ROW(type, member.place),                                                      \
    {"--no-folding", NULL, CLI_SWITCH, offsetof(type, member.is_unfolded), NULL,                   \
     "compute nothing ahead: all ops of the model run each time,\nshapes and constants, too"},     \
    {"--threads", "N", CLI_COUNT, offsetof(type, member.thread_count), NULL,                       \
     "threads for one op on the host, 1 to 1024\n(default: see rondo help environment)"},          \
    {"--branches", NULL, CLI_CHOICE, offsetof(type, member.branches), "auto|on|off",               \
     "run ops side by side that do not need each other: where\nmeasured to be faster (default), "  \
     "always, or never"},                                                                          \
    {"--tune", NULL, CLI_CHOICE, offsetof(type, member.tuning), "auto|off|fast|full",              \
     "how much is timed to find the fastest GPU kernels:\nnothing, the best guesses (default) or " \
     "everything; what\nwas found is kept and used again"},                                        \
    {"--tuning-file", "FILE", CLI_TEXT, offsetof(type, member.tuning_file), NULL,                  \
     "what rondo tune found for this model and GPU"},                                              \
    CLI_MEMORY_OPTION_ROW(type, member.memory_limit),                                              \
    CLI_NEWER_OPTION_ROW(type, member.allow_newer_opset),                                          \
    {"--weight-limit", "SIZE", CLI_BYTES, offsetof(type, member.weight_limit), NULL,               \
     "of weights on a GPU: what exceeds it stays in pinned\nmemory and is brought in each run "    \
     "(default: all\nare on the GPU)"},                                                            \
    {"--remake", NULL, CLI_SWITCH, offsetof(type, member.allow_remake), NULL,                      \
     "where MODEL is a plan file (rondo compile) made for\nanother device, version or other "      \
     "options: make anew\nwhat does not fit"},                                                     \
    {"--loop-limit", "N", CLI_COUNT, offsetof(type, member.loop_limit), NULL,                      \
     "turns of all loops in one run, more of which are an error\n(default: 10 million)"},          \
    {"--set", "DIM=N", CLI_LIST, offsetof(type, member.dimensions), NULL,                          \
     "give a symbolic dimension a number (batch=4); those\nthat neither this, --shape nor a file " \
     "tells count as 1"},                                                                          \
    {"--shape", "NAME=AxBxC", CLI_LIST, offsetof(type, member.shapes), NULL,                       \
     "the shape of an input (x=1x3x224x224), also where its\ndimensions have no names"},           \
    {"--input", "NAME=FILE|random", CLI_LIST, offsetof(type, member.inputs), NULL,                 \
     "an input's values: .npy, .npz (FILE.npz:ENTRY picks one),\n.pb, or .bin, .raw, .dat (bytes " \
     "as they are); for a\n"                                                                      \
     "sequence a .pb, or a folder with 0.npy, 1.npy and so on"},  \
    {"--cast", NULL, CLI_SWITCH, offsetof(type, member.casts), NULL,                               \
     "convert files of another element type, where every\nvalue survives"}
#define CLI_RUN_OPTION_ROWS(type, member)                                                          \
    {"--graphs", NULL, CLI_CHOICE, offsetof(type, member.graphs), "auto|on|off|measured",          \
     "auto (default) captures where it can, on makes a failed\ncapture an error, off is eager, "   \
     "measured ends replays that\nare slower than eager runs"},                                    \
    {"--seed", "N", CLI_COUNT, offsetof(type, member.seed), NULL,                                  \
     "seed of random inputs and of random ops (0); reals are\nin [-1, 1), whole numbers 0 or 1"}
#define CLI_LEVEL_OPTION_ROWS(type, member, quiet_help)                                            \
    {"--quiet", NULL, CLI_SWITCH, offsetof(type, member.is_quiet), NULL, quiet_help},              \
    {"--verbose", NULL, CLI_SWITCH, offsetof(type, member.is_verbose), NULL,                       \
     "also say what is loaded, fed and planned"}
// clang-format on

// Where a symbolic dimension has its number from.
typedef struct cli_dimension {
    const char *symbol;  // borrowed from the program
    int64_t extent;
    char origin[160];  // "--set batch=4", a file
} cli_dimension;

typedef struct cli_session {
    const char *path;  // of the model, for messages
    rondo_program *program;
    rondo_device *device;
    rondo_device_info device_info;
    rondo_executor *executor;
    rondo_graphs_mode graphs;  // what --graphs or RONDO_GRAPHS say
    cli_assignments sets;
    cli_assignments shapes;
    cli_assignments files;
    cli_assignments images;
    cli_image_options image_options;
    cli_path_list image_files;  // of the folder that an image is; otherwise none
    size_t image_at;            // the first of these that could be read
    const char *image_name;     // whose they are
    const char *data_folder;    // of a test data set, whose input_K.pb are read; NULL: none
    size_t dimension_count;
    cli_dimension *dimensions;
    size_t feed_count;
    rondo_binding *feeds;  // of each input; without data where nothing was read
    size_t fetch_count;
    rondo_binding *fetches;  // tensors are allocated by the first run and reused by later ones
    bool *varies;            // of each fetch: its size depends on data; NULL before a second run
    bool was_cancelled;      // a run was ended by Ctrl-C
    char hint[400];          // dimensions that count as 1 because nobody set them; may be ""
} cli_session;

// Puts the patterns of half precision into the options.
void cli_set_precision(rondo_executor_options *options, rondo_dtype dtype, const cli_list *keep_f32,
                       const cli_list *use_f16);

// False, and a misuse printed, when there are patterns without --dtype fp16.
bool cli_check_precision(const cli_command *command, bool is_half, const cli_list *keep_f32,
                         const cli_list *use_f16);

// Makes `count` the number of threads of all that follows, loading models included; 0: what the
// environment says. A number beyond 1024 is printed as a misuse, and false is returned.
bool cli_choose_threads(const cli_command *command, uint64_t count);

// Reads the settings: lists are split, levels set. A misuse is printed.
//
// Returns:   CLI_DONE, CLI_FAILED or CLI_MISUSE.
// Ownership: close with cli_session_close, also after a failure.
int cli_session_begin(const cli_command *command, const cli_model_settings *settings,
                      cli_session *session);

// Loads the model ("-": from standard input), reads the inputs, sets dimensions, opens the device
// and makes the executor. On failure prints why. `path` must outlive the session.
bool cli_session_open(const char *path, const cli_model_settings *settings, cli_session *session);

// Makes an executor of the session's program, in place of none. On failure prints why.
bool cli_session_make_executor(const cli_model_settings *settings, cli_session *session);

// Makes the plan of these feeds, without a run. On failure prints why.
bool cli_session_plan(cli_session *session, const rondo_binding *feeds, size_t feed_count);

// Makes the other inputs random, and names the fetches. On failure prints why.
bool cli_session_complete_feeds(cli_session *session, const cli_model_settings *settings);

// Runs once. On failure prints why; a run that Ctrl-C ended is told by was_cancelled alone.
bool cli_session_run(cli_session *session);

// The same with the inputs that the last run left on the device; nothing is fetched.
bool cli_session_rerun(cli_session *session);

// Frees the outputs whose sizes depend on data: the next run may make others. cli_session_run does
// it; whoever runs the executor otherwise calls this before each run. On failure prints why.
bool cli_session_free_varying(cli_session *session);

void cli_session_close(cli_session *session);

// ---- inputs.c: what session.c asks for ----------------------------------------------------------

// Gives symbols the numbers of --set.
bool cli_inputs_set_dimensions(cli_session *session);

// Reads files into the feeds, takes shapes from --shape, and learns symbols from both.
bool cli_inputs_read(cli_session *session, const cli_model_settings *settings);

// Gives the feeds of a session that has run other values, from the picture `file` or, where that is
// NULL, from a test data set. They have the shapes of those before. On failure prints why.
bool cli_inputs_exchange(cli_session *session, const cli_model_settings *settings, const char *file,
                         const char *data_folder);
