/* Launches: blocks one after the other, their threads in the order that was chosen. */
#include "machine.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace emulator {

Machine machine;

static constexpr unsigned MOST_SHARED = 227 * 1024; /* what one block of an H100 can have */
static uint32_t next_serial = 1;

/* Orders in which things run: 0 as they are numbered, 1 backwards, others shuffled. */
class Order {
public:
    Order(unsigned seed, size_t count) : numbers(count), seed(seed), random(seed) {
        for (size_t i = 0; i < count; ++i) numbers[i] = uint32_t(seed == 1 ? count - 1 - i : i);
    }
    const std::vector<uint32_t> &next() {
        if (seed > 1) std::shuffle(numbers.begin(), numbers.end(), random);
        return numbers;
    }

private:
    std::vector<uint32_t> numbers;
    unsigned seed;
    std::minstd_rand random;
};

Index index_in(Index size, uint64_t number) {
    return {unsigned(number % size.x), unsigned(number / size.x % size.y),
            unsigned(number / size.x / size.y)};
}

uint64_t count(Index size) {
    return uint64_t(size.x) * size.y * size.z;
}

static void run_thread() {
    machine.launch.kernel->call(machine.launch.arguments);
    machine.current->state = State::FINISHED;
    yield();
}

static void begin_block(Index index) {
    machine.block = {next_serial++, index, 0, 0};
    machine.suspicion.clear();
    begin_block_memory();
    for (unsigned i = 0; i < machine.launch.threads; ++i) {
        Thread &thread = machine.threads[i];
        thread.state = State::READY;
        thread.copies.clear();
        thread.groups = 0;
        set_time(thread, 1);
        memset(thread.seen, 0, sizeof thread.seen);
        start(thread, run_thread);
    }
}

/* Let each thread that can go on do so once. Returns whether there was one. */
static bool round(const std::vector<uint32_t> &order) {
    bool any = false;
    for (uint32_t number : order) {
        Thread &thread = machine.threads[number];
        if (thread.state != State::READY) continue;
        any = true;
        resume(thread);
        if (machine.failed) return true;
    }
    return any;
}

static void run_block(Order &order) {
    while (round(order.next()))
        if (machine.failed) return;
    std::string text = machine.suspicion.empty() ? why_stuck() : machine.suspicion;
    if (!text.empty()) report(text);
}

static std::string wrong_size(Index grid, Index size, unsigned shared) {
    auto text = [](const char *what, Index i) {
        return std::string(what) + " of " + std::to_string(i.x) + " x " + std::to_string(i.y) +
               " x " + std::to_string(i.z);
    };
    if (!count(grid) || count(grid) > INT32_MAX || grid.y > 65535 || grid.z > 65535)
        return text("a grid", grid) + " blocks cannot be launched";
    if (!count(size) || count(size) > MOST_THREADS || size.z > 64)
        return text("a block", size) + " threads cannot be launched";
    if (shared > MOST_SHARED)
        return std::to_string(shared) + " bytes of shared memory are more than the " +
               std::to_string(MOST_SHARED) + " that a block can have";
    return "";
}

static void begin_launch(const Kernel *kernel, Index grid, Index size, void **arguments) {
    uint32_t blocks = uint32_t(count(grid));
    if (blocks > UINT32_MAX - next_serial) { /* numbers begin anew */
        forget_accesses();
        next_serial = 1;
    }
    unsigned threads = unsigned(count(size));
    machine.launch = {kernel, grid, size, arguments, threads, next_serial, {}};
    machine.launch.blocks = Order(machine.seed, blocks).next();
    while (machine.threads.size() < threads) machine.threads.emplace_back();
    for (unsigned i = 0; i < threads; ++i) {
        machine.threads[i].number = i;
        machine.threads[i].index = index_in(size, i);
    }
}

static void launch(const Kernel *kernel, Index grid, Index size, unsigned shared,
                   void **arguments) {
    if (std::string text = wrong_size(grid, size, shared); !text.empty()) {
        machine.failed = true;
        machine.error = std::string("kernel ") + kernel->name + ": " + text;
        return;
    }
    find_image(reinterpret_cast<const void *>(kernel->call));
    begin_launch(kernel, grid, size, arguments);
    begin_launch_memory(shared);
    Order order(machine.seed, machine.launch.threads);
    for (uint32_t number : machine.launch.blocks) {
        begin_block(index_in(grid, number));
        run_block(order);
        if (machine.failed) return;
    }
}

} // namespace emulator

using namespace emulator;

EXPORT int emulated_launch(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                           void *, void **arguments, void **) {
    Index grid = {grid_x, grid_y, grid_z}, size = {block_x, block_y, block_z};
    if (!machine.failed)
        launch(static_cast<const Kernel *>(kernel), grid, size, shared, arguments);
    return machine.failed;
}

EXPORT const char *emulated_error(void) {
    return machine.failed ? machine.error.c_str() : nullptr;
}

EXPORT void emulated_reset(void) {
    machine.failed = false;
}

EXPORT void emulated_order(unsigned seed) {
    machine.seed = seed;
}

EXPORT unsigned emulated_seed(void) {
    return machine.seed;
}

EXPORT Index emulated_thread_index() {
    return machine.current->index;
}

EXPORT Index emulated_block_index() {
    return machine.block.index;
}

EXPORT Index emulated_block_size() {
    return machine.launch.size;
}

EXPORT Index emulated_grid_size() {
    return machine.launch.grid;
}
