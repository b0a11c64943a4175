/* Memory that kernels may use, and what each part of it remembers. */
#pragma once

#include "machine.h"

namespace emulator {

/* Threads that read a cell (or changed it by an atomic) since no other kind of access came between:
   as few as are needed to find one that a later access is not ordered after. */
struct Accesses {
    Stamp last, foreign; /* the latest of the newest block; one of another block of the launch */
    Site last_site, foreign_site;
    uint32_t lanes; /* which of `all_lanes` holds those of this block; 0 none */
};

struct Cell {
    Stamp write;
    Accesses reads;
    Site write_site;
};

/* A buffer of the device, or the shared memory of the current block. A cell stands for 4 bytes while
   all accesses are of whole words, then for one. */
struct Region {
    uintptr_t begin;
    size_t bytes;
    bool writable, shared;
    unsigned number;    /* which of the buffers, in the order of their registration */
    size_t granule;
    Cell *cells;        /* nullptr until the first access */
    Accesses *atomics;  /* nullptr until the first atomic */
};

enum class Access { READ, WRITE, ATOMIC };

/* regions.cpp */

Region *find_region(uintptr_t address); /* nullptr: in none */
std::string place(const Region &region, uintptr_t address);
std::string near(uintptr_t address); /* the nearest region, in words */
/* So that accesses of `bytes` bytes at `offset` are of whole cells, which exist. */
void prepare_cells(Region &region, size_t offset, size_t bytes, bool atomic);

/* races.cpp */

/* Check one access against earlier ones and remember it; ends the thread with a fault. */
void check_cells(Region &region, Access access, uintptr_t address, size_t bytes, Site site);
void forget_lanes();
/* Whose copy a cell's accesses become, where a cell is split. */
Accesses copy(const Accesses &accesses);

} // namespace emulator
