/* Barriers of a block, and operations of lanes of a warp: who waits for whom, and what they order.

   A barrier orders all that the block did before it, __syncwarp what the named lanes did. Shuffles
   and votes order no accesses to memory, as CUDA's manual has it. */
#include "machine.h"

#include <algorithm>
#include <cstdio>

namespace emulator {

static unsigned lane_of(const Thread &thread) {
    return thread.number % WARP;
}

/* Lane `lane` of the thread's warp, or nullptr where the block ends before it. */
static Thread *lane(const Thread &thread, unsigned lane) {
    unsigned number = thread.number - lane_of(thread) + lane;
    return number < machine.launch.threads ? &machine.threads[number] : nullptr;
}

/* The same for a lane that is known to be there. */
static Thread &present(const Thread &thread, unsigned lane) {
    return machine.threads[thread.number - lane_of(thread) + lane];
}

static bool has(unsigned mask, unsigned lane) {
    return mask >> lane & 1;
}

static std::string line(int number) {
    return "line " + std::to_string(number);
}

static std::string text_of(const Operation &operation) {
    static const char *const names[] = {"__syncwarp",       "__shfl_sync",     "__shfl_up_sync",
                                        "__shfl_down_sync", "__shfl_xor_sync", "__ballot_sync",
                                        "__any_sync",       "__all_sync"};
    char mask[32];
    snprintf(mask, sizeof mask, "0x%08x", operation.mask);
    return std::string(names[operation.kind]) + " of " + line(operation.line) + " with mask " + mask;
}

static void advance(Thread &thread, uint32_t time) {
    if (time >> TIME_BITS) fault(name(thread) + " has waited too often for the emulator");
    set_time(thread, time);
}

/* what nobody can get out of */

static std::string where(const Thread &thread) {
    if (thread.state == State::FINISHED) return name(thread) + " has returned";
    if (thread.state == State::AT_BARRIER)
        return name(thread) + " waits at the barrier of " + line(thread.line);
    return name(thread) + " waits at the " + text_of(thread.operation);
}

static const Thread *missing_lane(const Thread &thread) {
    unsigned mask = thread.operation.mask;
    for (unsigned i = 0; i < WARP; ++i) {
        const Thread *other = lane(thread, i);
        if (!has(mask, i) || !other) continue;
        if (other->state != State::IN_WARP || other->operation.mask != mask) return other;
    }
    return nullptr;
}

std::string why_stuck() {
    const Thread *waiting = nullptr, *finished = nullptr;
    for (unsigned i = 0; i < machine.launch.threads; ++i) {
        const Thread &thread = machine.threads[i];
        const Thread *missing = thread.state == State::IN_WARP ? missing_lane(thread) : nullptr;
        if (missing) return where(thread) + " for " + name(*missing) + ", but " + where(*missing);
        if (thread.state == State::AT_BARRIER && !waiting) waiting = &thread;
        if (thread.state == State::FINISHED && !finished) finished = &thread;
    }
    return waiting ? where(*waiting) + ", but " + where(*finished) : "";
}

/* barriers */

static void pass_barrier() {
    Block &block = machine.block;
    unsigned threads = machine.launch.threads;
    uint32_t latest = 0;
    for (unsigned i = 0; i < threads; ++i) latest = std::max(latest, machine.threads[i].time);
    block.waiting = 0;
    block.barrier_time = latest + 1;
    for (unsigned i = 0; i < threads; ++i) {
        advance(machine.threads[i], block.barrier_time);
        machine.threads[i].state = State::READY;
    }
}

static const Thread *at_another_barrier(int number) {
    for (unsigned i = 0; i < machine.launch.threads; ++i) {
        const Thread &other = machine.threads[i];
        if (other.state == State::AT_BARRIER && other.line != number) return &other;
    }
    return nullptr;
}

static void barrier(Thread &me, int number) {
    if (machine.block.waiting)
        if (const Thread *other = at_another_barrier(number))
            fault(name(me) + " is at the barrier of " + line(number) + ", but " + where(*other));
    me.state = State::AT_BARRIER;
    me.line = number;
    if (++machine.block.waiting == machine.launch.threads)
        pass_barrier();
    else
        yield();
}

/* operations of a warp */

static void check_arrival(const Thread &me, const Operation &operation) {
    if (!has(operation.mask, lane_of(me)))
        fault(name(me) + " calls the " + text_of(operation) + ", which does not name its lane " +
              std::to_string(lane_of(me)));
    if (operation.width < 1 || operation.width > int(WARP) || operation.width & (operation.width - 1))
        fault(name(me) + " calls the " + text_of(operation) + " with a width of " +
              std::to_string(operation.width));
    for (unsigned i = 0; i < WARP; ++i) {
        if (!has(operation.mask, i)) continue;
        const Thread *other = lane(me, i);
        if (!other)
            fault(name(me) + " calls the " + text_of(operation) + ", which names lane " +
                  std::to_string(i) + ", but the block ends before it");
        if (other->state != State::IN_WARP || other->operation.mask != operation.mask) continue;
        if (other->operation.kind != operation.kind || other->operation.line != operation.line)
            fault(name(me) + " is at the " + text_of(operation) + ", but " + where(*other));
    }
}

static bool all_arrived(const Thread &me, unsigned mask) {
    for (unsigned i = 0; i < WARP; ++i) {
        if (!has(mask, i)) continue;
        const Thread &other = present(me, i);
        if (other.state != State::IN_WARP || other.operation.mask != mask) return false;
    }
    return true;
}

/* The lane that a shuffle reads from: its own where the other is beyond its part of the warp. */
static unsigned source(unsigned lane, const Operation &shuffle) {
    unsigned width = unsigned(shuffle.width), begin = lane & ~(width - 1), end = begin + width;
    unsigned argument = unsigned(shuffle.argument);
    switch (shuffle.kind) {
    case UP:
        return lane - begin >= argument ? lane - argument : lane;
    case DOWN:
        return argument < end - lane ? lane + argument : lane;
    case XOR:
        return (lane ^ argument) < end ? lane ^ argument : lane;
    default:
        return begin | (argument & (width - 1));
    }
}

static void shuffle(Thread &me) {
    Operation &operation = me.operation;
    unsigned from = source(lane_of(me), operation);
    if (!has(operation.mask, from))
        fault(name(me) + " reads lane " + std::to_string(from) + " in the " + text_of(operation) +
              ", which does not name that lane");
    operation.result = present(me, from).operation.value;
}

static uint64_t vote(const Thread &me) {
    const Operation &operation = me.operation;
    unsigned ballot = 0;
    for (unsigned i = 0; i < WARP; ++i)
        if (has(operation.mask, i) && present(me, i).operation.value) ballot |= 1u << i;
    if (operation.kind == ANY) return ballot != 0;
    return operation.kind == ALL ? ballot == operation.mask : ballot;
}

static void order_lanes(const Thread &me, unsigned mask) {
    uint32_t seen[WARP] = {};
    for (unsigned i = 0; i < WARP; ++i) {
        if (!has(mask, i)) continue;
        const Thread &other = present(me, i);
        for (unsigned j = 0; j < WARP; ++j) seen[j] = std::max(seen[j], other.seen[j]);
    }
    for (unsigned i = 0; i < WARP; ++i)
        if (has(mask, i)) seen[i] = present(me, i).time;
    for (unsigned i = 0; i < WARP; ++i) {
        if (!has(mask, i)) continue;
        Thread &other = present(me, i);
        for (unsigned j = 0; j < WARP; ++j) other.seen[j] = seen[j];
        advance(other, other.time + 1);
    }
}

static void complete(Thread &me) {
    unsigned mask = me.operation.mask;
    uint64_t result = me.operation.kind >= BALLOT ? vote(me) : 0;
    for (unsigned i = 0; i < WARP; ++i) {
        if (!has(mask, i)) continue;
        Thread &other = present(me, i);
        if (me.operation.kind >= BALLOT)
            other.operation.result = result;
        else if (me.operation.kind != SYNC)
            shuffle(other);
        other.state = State::READY;
    }
    if (me.operation.kind == SYNC) order_lanes(me, mask);
}

} // namespace emulator

using namespace emulator;

EXPORT void emulated_barrier(int line) {
    barrier(*machine.current, line);
}

EXPORT uint64_t emulated_warp(int line, int kind, unsigned mask, uint64_t value, int argument,
                              int width) {
    Thread &me = *machine.current;
    Operation operation = {Kind(kind), line, mask, value, argument, width, 0};
    check_arrival(me, operation);
    me.operation = operation;
    me.state = State::IN_WARP;
    if (all_arrived(me, mask))
        complete(me);
    else
        yield();
    return me.operation.result;
}
