// cache_window.h — caches of one length for a model whose own caches grow.
//
// Such a model joins the rows of a cache with the new one. Which row stands where does not matter
// to it, as positions are an input and a mask says which rows count. So it is fed caches of one
// length, and the row that it adds is written into the next free one where they lie: all steps are
// one plan and one graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder_ports.h"
#include "rondo/models.h"

typedef struct cli_window {
    const cli_decoder_ports *ports;  // borrowed
    size_t batch, rows;
    rondo_program *program;    // writes rows
    rondo_executor *executor;  // its variables are the caches
    rondo_binding *pasts;      // one for each cache: it, lent by the executor
    rondo_binding *presents;   // it and the new row, made by the model; on the device
} cli_window;

// Makes caches of `rows` rows that begin with `first`, in host memory and of no more rows.
//
// Ownership: close with cli_window_close, also after a failure; a zeroed one is fine.
rondo_status cli_window_open(rondo_device *device, const cli_decoder_ports *ports, size_t batch,
                             size_t rows, const rondo_tensor *first, cli_window *out_window);

// Writes the last row of each of `presents` into row `row` of the caches.
rondo_status cli_window_keep(cli_window *window, size_t row);

void cli_window_close(cli_window *window);
