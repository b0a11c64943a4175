/* The registered buffers and the shared memory, with their cells. */
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace emulator {

static std::vector<Region> buffers; /* by address, disjoint */
static Region shared;
static unsigned next_number;
static constexpr size_t FAR = 1 << 16; /* an address so far away has nothing to do with a buffer */

/* Zeros that take no memory until they are used. */
static void *zeros(size_t bytes) {
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "the emulator finds no memory for %zu bytes of its own\n", bytes);
        abort();
    }
    return memory;
}

static size_t cell_count(const Region &region) {
    return (region.bytes + region.granule - 1) / region.granule;
}

static void free_cells(Region &region) {
    if (region.cells) munmap(region.cells, cell_count(region) * sizeof(Cell));
    if (region.atomics) munmap(region.atomics, cell_count(region) * sizeof(Accesses));
    region.cells = nullptr;
    region.atomics = nullptr;
}

static bool holds(const Region &region, uintptr_t address) {
    return address - region.begin < region.bytes;
}

Region *find_region(uintptr_t address) {
    if (holds(shared, address)) return &shared;
    auto after = std::upper_bound(
        buffers.begin(), buffers.end(), address,
        [](uintptr_t a, const Region &region) { return a < region.begin; });
    if (after == buffers.begin() || !holds(after[-1], address)) return nullptr;
    return &after[-1];
}

/* Cells of single bytes in the place of those of words. */
static void split(Region &region) {
    Region bytes = region;
    bytes.granule = 1;
    bytes.cells = static_cast<Cell *>(zeros(cell_count(bytes) * sizeof(Cell)));
    if (region.atomics)
        bytes.atomics = static_cast<Accesses *>(zeros(cell_count(bytes) * sizeof(Accesses)));
    for (size_t i = 0; i < region.bytes; ++i) {
        const Cell &cell = region.cells[i / region.granule];
        if (cell.write || cell.reads.last)
            bytes.cells[i] = {cell.write, copy(cell.reads), cell.write_site};
        if (region.atomics && region.atomics[i / region.granule].last)
            bytes.atomics[i] = copy(region.atomics[i / region.granule]);
    }
    free_cells(region);
    region = bytes;
}

void prepare_cells(Region &region, size_t offset, size_t bytes, bool atomic) {
    bool whole = offset % region.granule == 0 && bytes % region.granule == 0;
    if (!region.cells) {
        region.granule = whole ? region.granule : 1;
        region.cells = static_cast<Cell *>(zeros(cell_count(region) * sizeof(Cell)));
    } else if (!whole) {
        split(region);
    }
    if (atomic && !region.atomics)
        region.atomics = static_cast<Accesses *>(zeros(cell_count(region) * sizeof(Accesses)));
}

static std::string name(const Region &region) {
    std::string bytes = std::to_string(region.bytes) + " bytes";
    if (region.shared) return "the shared memory (" + bytes + ")";
    return "buffer " + std::to_string(region.number) + " (" + bytes + ")";
}

std::string place(const Region &region, uintptr_t address) {
    return "byte " + std::to_string(address - region.begin) + " of " + name(region);
}

static size_t distance(const Region &region, uintptr_t address) {
    return address < region.begin ? region.begin - address : address - region.begin - region.bytes;
}

std::string near(uintptr_t address) {
    const Region *nearest = shared.bytes || buffers.empty() ? &shared : &buffers[0];
    for (const Region &region : buffers)
        if (distance(region, address) < distance(*nearest, address)) nearest = &region;
    if (distance(*nearest, address) > FAR) return "no buffer is near it";
    return std::to_string(distance(*nearest, address)) + " bytes " +
           (address < nearest->begin ? "before the first byte of " : "behind the last byte of ") +
           name(*nearest);
}

/* The memory is as long as asked for, so that the address sanitizer sees what lies behind. */
void begin_launch_memory(unsigned bytes) {
    if (bytes == shared.bytes && shared.begin) return;
    free_cells(shared);
    free(reinterpret_cast<void *>(shared.begin));
    void *memory = nullptr;
    if (posix_memalign(&memory, 128, bytes ? bytes : 1)) abort();
    shared = {reinterpret_cast<uintptr_t>(memory), bytes, true, true, 0, 4, nullptr, nullptr};
}

void begin_block_memory() {
    forget_lanes();
    /* not numbers, for programs whose reads are not seen */
    memset(reinterpret_cast<void *>(shared.begin), 0xff, shared.bytes);
}

void forget_accesses() {
    free_cells(shared);
    for (Region &region : buffers) free_cells(region);
}

static void allow(uintptr_t begin, size_t bytes, bool writable) {
    uintptr_t end = begin + bytes;
    unsigned number = next_number++;
    std::vector<Region> others;
    for (Region &region : buffers) {
        if (region.begin >= end || region.begin + region.bytes <= begin) {
            others.push_back(region);
            continue;
        }
        free_cells(region);
        begin = std::min(begin, region.begin);
        end = std::max(end, region.begin + region.bytes);
        writable = writable || region.writable;
        number = std::min(number, region.number);
    }
    others.push_back({begin, end - begin, writable, false, number, 4, nullptr, nullptr});
    std::sort(others.begin(), others.end(),
              [](const Region &a, const Region &b) { return a.begin < b.begin; });
    buffers = others;
}

} // namespace emulator

using namespace emulator;

EXPORT void emulated_allow(const void *address, int64_t bytes, int writable) {
    if (bytes > 0) allow(reinterpret_cast<uintptr_t>(address), size_t(bytes), writable != 0);
}

EXPORT void emulated_forget_all(void) {
    for (Region &region : buffers) free_cells(region);
    buffers.clear();
    next_number = 0;
}

EXPORT unsigned char *emulated_shared_memory() {
    return reinterpret_cast<unsigned char *>(shared.begin);
}
