// emulated/emulated_fiber.h — functions that stop in the middle and go on later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// 0 is the caller's own stack, the others run `main` from its beginning.
enum { EMULATED_FIBERS = 1 + 8192 };

// Prepares fiber `index` to run `main`, which must switch away at its end and never return.
void emulated_fiber_start(unsigned int index, void (*main)(void));
// Leaves `from`, until something switches to it, and goes on in `to`.
void emulated_fiber_switch(unsigned int from, unsigned int to);
