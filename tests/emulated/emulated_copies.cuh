// emulated/emulated_copies.cuh — barriers in shared memory, and copies that report to them: a part of
// emulated_cuda.cuh.
// SPDX-License-Identifier: Apache-2.0

// bar.sync with a number: of `count` threads of the block; one such barrier in a text.
static inline void emulated_bar_sync(unsigned int count) {
    static struct {
        unsigned int arrived, round;
    } all[EMULATED_CLUSTER_BLOCKS];
    const unsigned int threads =
        emulated->block_size.x * emulated->block_size.y * emulated->block_size.z;
    auto &own = all[emulated->index / threads];
    const unsigned int round = own.round;
    if (++own.arrived == count) {
        own.arrived = 0;
        own.round++;
    }
    while (own.round == round) {
        emulated->yield();
    }
}

struct emulated_barrier {
    unsigned short pending, count;
    int bytes : 31;  // that are on their way
    unsigned int parity : 1;
};
static_assert(sizeof(emulated_barrier) == 8, "a barrier is one word");
static inline void emulated_advance(unsigned char *at, int arrivals, int bytes) {
    emulated_barrier b;
    memcpy(&b, at, sizeof(b));
    if ((int)b.pending < arrivals) {
        __builtin_trap();
    }
    b.pending = (unsigned short)(b.pending - arrivals);
    b.bytes += bytes;
    if (b.pending == 0 && b.bytes == 0) {
        b.pending = b.count;
        b.parity ^= 1u;
    }
    memcpy(at, &b, sizeof(b));
}
static inline void emulated_mbarrier_init_shared__cta_b64(unsigned int barrier, unsigned int count) {
    const emulated_barrier b = {(unsigned short)count, (unsigned short)count, 0, 0};
    memcpy(emulated_at_shared(barrier), &b, sizeof(b));
}
static inline void emulated_fence_mbarrier_init_release_cluster(void) {
}
static inline void emulated_mbarrier_arrive_expect_tx_shared__cta_b64(unsigned int barrier,
                                                                      unsigned int bytes) {
    emulated_advance(emulated_at_shared(barrier), 1, (int)bytes);
}
static inline void emulated_mbarrier_arrive_shared__cta_b64(unsigned int barrier) {
    emulated_advance(emulated_at_shared(barrier), 1, 0);
}

// Such copies happen when somebody looks at their barrier, as late as they may.
struct emulated_bulk_copy {
    unsigned char *barrier, *to;
    unsigned int to_address;
    const unsigned char *from;  // NULL: from a tensor
    unsigned int bytes;
    emulated_map map;
    int at[4];
    unsigned int tap[2];
};
static struct {
    emulated_bulk_copy copy[2048];
    unsigned int count;
} emulated_bulk;
static inline emulated_bulk_copy &emulated_add_bulk(unsigned int to, unsigned int barrier) {
    if (emulated_bulk.count == 2048 || to % 16 != 0) {
        __builtin_trap();
    }
    emulated_bulk_copy &copy = emulated_bulk.copy[emulated_bulk.count++];
    copy = {};
    copy.barrier = emulated_at_cluster(barrier);
    copy.to = emulated_at_cluster(to);
    copy.to_address = to;
    return copy;
}
static inline void emulated_add_tensor(unsigned int to, const void *map, unsigned int barrier,
                                       int x, int y, int z, int w, unsigned int tap_x,
                                       unsigned int tap_y) {
    emulated_bulk_copy &copy = emulated_add_bulk(to, barrier);
    memcpy(&copy.map, map, sizeof(copy.map));
    if (copy.map.magic != EMULATED_MAP || to % 256 != 0) {
        __builtin_trap();
    }
    copy.at[0] = x, copy.at[1] = y, copy.at[2] = z, copy.at[3] = w;
    copy.tap[0] = tap_x, copy.tap[1] = tap_y;
}
static inline void emulated_cp_async_bulk_tensor_2d_shared__cluster_global_mbarrier__complete_tx__bytes(
    unsigned int to, const void *map, int x, int y, unsigned int barrier) {
    emulated_add_tensor(to, map, barrier, x, y, 0, 0, 0, 0);
}
static inline void
emulated_cp_async_bulk_tensor_4d_shared__cluster_global_im2col_mbarrier__complete_tx__bytes(
    unsigned int to, const void *map, int channel, int x, int y, int image, unsigned int barrier,
    unsigned short tap_x, unsigned short tap_y) {
    emulated_add_tensor(to, map, barrier, channel, x, y, image, tap_x, tap_y);
}
static inline void emulated_cp_async_bulk_shared__cluster_shared__cta_mbarrier__complete_tx__bytes(
    unsigned int to, unsigned int from, unsigned int bytes, unsigned int barrier) {
    emulated_bulk_copy &copy = emulated_add_bulk(to, barrier);
    copy.from = emulated_at_shared(from);
    copy.bytes = bytes;
}
static inline void emulated_cp_async_bulk_shared__cluster_global_mbarrier__complete_tx__bytes(
    unsigned int to, const void *from, unsigned int bytes, unsigned int barrier) {
    emulated_bulk_copy &copy = emulated_add_bulk(to, barrier);
    if ((unsigned long)from % 16 != 0 || bytes % 16 != 0) {
        __builtin_trap();
    }
    copy.from = (const unsigned char *)from;
    copy.bytes = bytes;
}
// A row of a box, or zeros where there is none.
static inline void emulated_copy_row(const emulated_bulk_copy &copy, unsigned int row,
                                     const unsigned char *from) {
    const emulated_map &m = copy.map;
    for (unsigned int c = 0; c < m.box_columns; c++) {
        const unsigned int at = copy.to_address + (row * m.box_columns + c) * 2;
        const long column = (long)copy.at[0] + c;
        unsigned short value = 0;
        if (from != nullptr && column >= 0 && column < (long)m.extent[0]) {
            memcpy(&value, from + column * 2, sizeof(value));
        }
        memcpy(copy.to + (emulated_swizzle(at, m.box_columns * 2) - copy.to_address), &value,
               sizeof(value));
    }
}
static inline void emulated_copy_matrix(const emulated_bulk_copy &copy) {
    for (unsigned int r = 0; r < copy.map.box_rows; r++) {
        const long row = (long)copy.at[1] + r;
        const bool is_there = row >= 0 && row < (long)copy.map.extent[1];
        emulated_copy_row(copy, r,
                          is_there ? copy.map.base + (unsigned long)row * copy.map.stride_bytes[0]
                                   : nullptr);
    }
}
static inline void emulated_copy_image(const emulated_bulk_copy &copy) {
    const emulated_map &m = copy.map;
    const long width = (long)m.extent[1], height = (long)m.extent[2];
    long x = copy.at[1], y = copy.at[2], image = copy.at[3];
    for (unsigned int r = 0; r < m.box_rows; r++) {
        const long at_x = x + copy.tap[0], at_y = y + copy.tap[1];
        const bool is_there = at_x >= 0 && at_x < width && at_y >= 0 && at_y < height && image >= 0 &&
                              image < (long)m.extent[3];
        emulated_copy_row(copy, r,
                          is_there ? m.base + (unsigned long)at_x * m.stride_bytes[0] +
                                         (unsigned long)at_y * m.stride_bytes[1] +
                                         (unsigned long)image * m.stride_bytes[2]
                                   : nullptr);
        x += m.step[0];
        if (x > width - 1 + m.upper[0]) {
            x = m.lower[0];
            y += m.step[1];
        }
        if (y > height - 1 + m.upper[1]) {
            y = m.lower[1];
            image++;
        }
    }
}
static inline void emulated_copy_for(const unsigned char *barrier) {
    unsigned int kept = 0;
    for (unsigned int i = 0; i < emulated_bulk.count; i++) {
        const emulated_bulk_copy &copy = emulated_bulk.copy[i];
        if (copy.barrier != barrier) {
            emulated_bulk.copy[kept++] = copy;
            continue;
        }
        if (copy.from != nullptr) {
            memcpy(copy.to, copy.from, copy.bytes);
            emulated_advance(copy.barrier, 0, -(int)copy.bytes);
        } else {
            copy.map.is_image != 0 ? emulated_copy_image(copy) : emulated_copy_matrix(copy);
            emulated_advance(copy.barrier, 0, -(int)(copy.map.box_rows * copy.map.box_columns * 2));
        }
    }
    emulated_bulk.count = kept;
}
static inline void emulated_mbarrier_try_wait_parity_shared__cta_b64(unsigned int &is_over,
                                                                     unsigned int barrier,
                                                                     unsigned int parity) {
    unsigned char *at = emulated_at_shared(barrier);
    emulated_barrier b;
    emulated_copy_for(at);
    memcpy(&b, at, sizeof(b));
    is_over = b.parity != parity ? 1u : 0u;
    if (is_over == 0) {
        emulated->yield();
    }
}
