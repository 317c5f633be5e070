// pool/pool_free.h — freeing blocks, now or at the end of a capture.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pool/pool_blocks.h"

// Frees a live block. When the block's stream records a capture that began after the block was
// taken, the free waits for the end of the capture.
//
// Errors:    NO_MEMORY; the block is as live as before.
// Threads:   holds the pool's lock.
RONDO_MUST_USE rondo_status rondo__pool_free_block(rondo_pool *pool, rondo__block *block);
