// cache/cache_graph.c — see cache_graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/cache_graph.h"

rondo_status rondo__cache_create_graph(rondo_device *device,
                                       const rondo_graph_cache_options *options,
                                       rondo_graph_keeps keep, rondo_graph **out_graph) {
    rondo_graph_options wanted = {.struct_size = sizeof wanted,
                                  .keep = keep,
                                  .label = options->label,
                                  .arena = options->arena,
                                  .pageable_sources = options->pageable_sources};
    return rondo_graph_create(device, &wanted, out_graph);
}
