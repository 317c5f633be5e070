// backend/cuda/graph/cuda_line.h — templates that are made node by node, without a capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"

rondo_status rondo__cuda_begin_line(rondo_stream *stream, rondo__template **out_template);
rondo_status rondo__cuda_append_node(rondo__template *template_, const rondo__line_node *node);
