// profile/page_texts.h — the page of a profile without its data: the files in profile/page, which
// the build turns into arrays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern const char rondo__page_body[];  // the body; the picture goes where it says @picture@
extern const char rondo__page_style[];
extern const char rondo__page_model[];  // scripts, in the order in which they run
extern const char rondo__page_timeline[];
extern const char rondo__page_table[];
extern const char rondo__page_main[];
extern const char rondo__page_test[];
