// decoder_ports.h — which ports of a language model are what, as the builders of onnxruntime-genai
// and optimum name them, and what the files beside it say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/models.h"

enum { CLI_STOP_MAX = 16 };

// A cache of keys or values [batch, heads, rows, width].
typedef struct cli_cache {
    const char *past;     // input; borrowed from the program
    const char *present;  // output that it becomes
    rondo_dtype dtype;
    int64_t heads, width;
} cli_cache;

typedef struct cli_decoder_ports {
    const char *ids, *mask, *places, *logits;  // borrowed from the program; NULL: there is none
    rondo_dtype ids_dtype, mask_dtype, places_dtype;
    size_t cache_count;
    cli_cache *caches;
    // The caches have room for all rows from the start, the mask's sums are the lengths, and
    // prompts are padded on the right. Otherwise each step makes longer caches, and prompts are
    // padded on the left.
    bool is_shared;
    size_t stop_count;  // ids that end a text
    int64_t stops[CLI_STOP_MAX];
    int64_t context;  // the most tokens; 0: not said
} cli_decoder_ports;

// Puts the path of the model into `path`; of a folder it is what genai_config.json says, or
// model.onnx. On failure prints why.
bool cli_decoder_find_model(const char *operand, char *path, size_t path_bytes);

// Finds the ports of the program that was loaded from `path`. genai_config.json or config.json
// beside it are read where they are there. On failure prints what is missing.
//
// head_size  where neither the model nor a file says how wide a head is; 0: they do.
//
// Ownership: free with cli_decoder_ports_free, also after a failure.
bool cli_decoder_ports_find(const char *path, const rondo_program *program, int64_t head_size,
                            cli_decoder_ports *out_ports);
void cli_decoder_ports_free(cli_decoder_ports *ports);
