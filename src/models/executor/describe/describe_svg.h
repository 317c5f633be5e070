// executor/describe/describe_svg.h — a plan as a picture: segments with their ops, and what is
// bypassed between them.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_EXECUTOR_DESCRIBE_DESCRIBE_SVG_H
#define RONDO_EXECUTOR_DESCRIBE_DESCRIBE_SVG_H

#include "executor/state/plan.h"

void rondo__describe_svg(rondo__text *text, rondo__unit *unit, rondo__plan *plan);

#endif  // RONDO_EXECUTOR_DESCRIBE_DESCRIBE_SVG_H
