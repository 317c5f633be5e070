// inside_objects.h — what the inside suite makes past the public calls.
//
// The suite says what the library promises itself: what the backend's table does by itself, who is
// told of a capture, what is kept. It runs as the conformance suite does, whose harness it uses
// (conformance/conformance.h), on every device; what public calls reach is tested there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "conformance/conformance.h"
#include "device/device.h"

// What the backend's table gives: remembered by the suite, then destroyed and forgotten.
void inside_keep_template(rondo__template *recorded);
void inside_drop_template(rondo__template *recorded);
void inside_keep_executable(rondo__executable *executable);
void inside_drop_executable(rondo__executable *executable);

// A capture that no graph began, as a program's own on the native stream; the end keeps the
// template.
void inside_begin_bare(rondo_stream *stream);
rondo__template *inside_end_bare(rondo_stream *stream);

// Adds a participant to the capture that counts how often it was asked, told of a replay, and
// destroyed.
void inside_add_witness(rondo_stream *stream, int counts[3]);
// x = x * 2 + 1 as a deferred graph with such a participant.
rondo_graph *inside_capture_with_witness(suite_context *context, uint32_t *x, int counts[3]);
