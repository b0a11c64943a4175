/* Races: two accesses to one byte by different threads, one of them a write, that no barrier orders.

   A cell remembers the last write, which all later accesses must come after, and accesses that only
   a write must come after. Blocks run one after the other and a barrier orders all of a block, so a
   few of these stand for all: one of another block; of this block, since its last barrier, those of
   the lanes of one warp, and one of another warp. Whatever a later access is not ordered after, one
   of those it is not ordered after either. */
#include "memory.h"

namespace emulator {

/* Accesses of this block to a cell, by more than one thread since a barrier. */
struct Lanes {
    uint32_t since; /* that barrier's time: older entries are past */
    unsigned warp;
    uint32_t time[WARP]; /* 0: none */
    Site site[WARP];
    Stamp other; /* by another warp; 0: none */
    Site other_site;
};
static std::vector<Lanes> all_lanes(1); /* the first is no one's */

void forget_lanes() {
    all_lanes.resize(1);
}

Accesses copy(const Accesses &accesses) {
    Accesses copied = accesses;
    if (!accesses.lanes || block_of(accesses.last) != machine.block.serial) {
        copied.lanes = 0;
        return copied;
    }
    Lanes lanes = all_lanes[accesses.lanes];
    copied.lanes = uint32_t(all_lanes.size());
    all_lanes.push_back(lanes);
    return copied;
}

struct Earlier {
    Stamp stamp; /* 0: there is none */
    Site site;
};

/* Who accesses a cell now, and the first block whose accesses count: shared memory is a new one for
   each block. */
struct View {
    const Thread &me;
    uint32_t first;
};

static bool past(Stamp stamp, const View &view) {
    return block_of(stamp) < view.first;
}

static bool of_this_block(Stamp stamp) {
    return block_of(stamp) == machine.block.serial;
}

static bool ordered(unsigned thread, uint32_t time, const Thread &me) {
    if (thread == me.number || time < machine.block.barrier_time) return true;
    return thread / WARP == me.number / WARP && time <= me.seen[thread % WARP];
}

/* Whether what was done is ordered before what `view.me` does now. */
static bool before(Stamp stamp, const View &view) {
    if (past(stamp, view)) return true;
    return of_this_block(stamp) && ordered(thread_of(stamp), time_of(stamp), view.me);
}

static Lanes *lanes_of(const Accesses &accesses) {
    Lanes &lanes = all_lanes[accesses.lanes];
    bool live = accesses.lanes && lanes.since == machine.block.barrier_time;
    return live ? &lanes : nullptr;
}

static Earlier unordered_lane(const Lanes &lanes, const View &view) {
    for (unsigned i = 0; i < WARP; ++i) {
        unsigned thread = lanes.warp * WARP + i;
        if (lanes.time[i] && !ordered(thread, lanes.time[i], view.me))
            return {Stamp(machine.block.serial) << 32 | Stamp(thread) << TIME_BITS | lanes.time[i],
                    lanes.site[i]};
    }
    if (lanes.other && !before(lanes.other, view)) return {lanes.other, lanes.other_site};
    return {};
}

/* One of the accesses that `view.me` is not ordered after. */
static Earlier unordered(const Accesses &accesses, const View &view) {
    if (past(accesses.last, view)) return {};
    if (!before(accesses.last, view)) return {accesses.last, accesses.last_site};
    if (!past(accesses.foreign, view)) return {accesses.foreign, accesses.foreign_site};
    const Lanes *lanes = lanes_of(accesses);
    return lanes ? unordered_lane(*lanes, view) : Earlier();
}

static Lanes &begin_lanes(Accesses &accesses) {
    if (!accesses.lanes) {
        accesses.lanes = uint32_t(all_lanes.size());
        all_lanes.emplace_back();
    }
    Lanes &lanes = all_lanes[accesses.lanes];
    unsigned thread = thread_of(accesses.last);
    lanes = {machine.block.barrier_time, thread / WARP, {}, {}, 0, 0};
    lanes.time[thread % WARP] = time_of(accesses.last);
    lanes.site[thread % WARP] = accesses.last_site;
    return lanes;
}

static void remember(Accesses &accesses, const View &view, Site site) {
    const Thread &me = view.me;
    if (!of_this_block(accesses.last)) {
        accesses.foreign = past(accesses.last, view) ? 0 : accesses.last;
        accesses.foreign_site = accesses.last_site;
        accesses.lanes = 0;
    }
    Lanes *lanes = lanes_of(accesses);
    bool alone = thread_of(accesses.last) == me.number && !lanes;
    bool renewed = !of_this_block(accesses.last) ||
                   time_of(accesses.last) < machine.block.barrier_time;
    if (renewed || alone) {
        accesses.last = me.stamp;
        accesses.last_site = site;
        return;
    }
    if (!lanes) lanes = &begin_lanes(accesses);
    if (lanes->warp == me.number / WARP) {
        lanes->time[me.number % WARP] = me.time;
        lanes->site[me.number % WARP] = site;
    } else if (!lanes->other) {
        lanes->other = me.stamp;
        lanes->other_site = site;
    }
}

/* texts */

static const char *verb(Access access) {
    static const char *const verbs[] = {"reads", "writes", "changes by an atomic"};
    return verbs[int(access)];
}

[[noreturn]] static void race(const Region &region, uintptr_t address, Access access, Site site,
                              Access earlier_access, Earlier earlier) {
    const char *why = of_this_block(earlier.stamp) ? "no barrier orders the two"
                                                   : "blocks are not ordered";
    fault("race: " + name(*machine.current) + " " + verb(access) + " " + place(region, address) +
          " at " + at(site) + ", which " + name_of(earlier.stamp) + " " + verb(earlier_access) +
          " at " + at(earlier.site) + ": " + why);
}

void check_cells(Region &region, Access access, uintptr_t address, size_t bytes, Site site) {
    const Thread &me = *machine.current;
    const View view = {me, region.shared ? machine.block.serial : machine.launch.first};
    size_t first = (address - region.begin) / region.granule;
    size_t end = first + bytes / region.granule;
    for (size_t i = first; i < end; ++i) {
        Cell &cell = region.cells[i];
        if (cell.write == me.stamp && access != Access::ATOMIC) continue;
        if (access == Access::READ && cell.reads.last == me.stamp) continue;
        uintptr_t byte = region.begin + i * region.granule;
        if (!before(cell.write, view))
            race(region, byte, access, site, Access::WRITE, {cell.write, cell.write_site});
        if (access != Access::READ)
            if (Earlier e = unordered(cell.reads, view); e.stamp)
                race(region, byte, access, site, Access::READ, e);
        if (access != Access::ATOMIC && region.atomics)
            if (Earlier e = unordered(region.atomics[i], view); e.stamp)
                race(region, byte, access, site, Access::ATOMIC, e);
        if (access == Access::WRITE) {
            cell.write = me.stamp;
            cell.write_site = site;
            continue;
        }
        remember(access == Access::READ ? cell.reads : region.atomics[i], view, site);
        /* a thread that writes it later has raced with this one */
        if (region.shared && !of_this_block(cell.write))
            suspect(name(me) + " " + verb(access) + " " + place(region, byte) + " at " + at(site) +
                    ", which no thread of the block has written");
    }
}

} // namespace emulator
