/* The emulated device, within its runtime part: one for a process. Blocks of a launch run one after
   the other, the threads of a block as fibers of one thread of the host. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace emulator {

constexpr unsigned WARP = 32;
constexpr unsigned MOST_THREADS = 1024;

/* As emulator.h has them. */
struct Index {
    unsigned x, y, z;
};
struct Kernel {
    void (*call)(void **arguments);
    const char *name;
};
enum Kind : int { SYNC, INDEX, UP, DOWN, XOR, BALLOT, ANY, ALL };

/* A place in the text: a line where a macro knows it (with the highest bit), else a return address
   less the start of the program's image. 0 is unknown. */
using Site = uint32_t;
constexpr Site LINE = 1u << 31;

/* Who did something, and when: the serial number of the block (32 bits), the number of the thread
   in the block (10), the thread's own time (22), which each synchronization advances. */
using Stamp = uint64_t;
constexpr unsigned TIME_BITS = 22;
inline uint32_t block_of(Stamp stamp) { return uint32_t(stamp >> 32); }
inline unsigned thread_of(Stamp stamp) { return unsigned(stamp >> TIME_BITS) % MOST_THREADS; }
inline uint32_t time_of(Stamp stamp) { return uint32_t(stamp) & ((1u << TIME_BITS) - 1); }

enum class State { READY, IN_WARP, AT_BARRIER, STOPPED, FINISHED };

/* An operation of a warp that a thread has arrived at. */
struct Operation {
    Kind kind;
    int line;
    unsigned mask;
    uint64_t value;
    int argument, width;
    uint64_t result;
};

/* A copy that a thread has begun and not awaited, and which of its groups it belongs to. */
struct Copy {
    void *to;
    const void *from;
    int bytes;
    uint64_t group;
};

struct Thread {
    unsigned number;
    Index index;
    State state;
    int line; /* of the barrier or operation it waits at */
    Operation operation;
    uint32_t time;
    Stamp stamp;
    uint32_t seen[WARP]; /* what other lanes did up to these times comes before what it does now */
    char *stack;
    void *context;
    std::deque<Copy> copies;
    uint64_t groups; /* that have left */
};

struct Block {
    uint32_t serial;
    Index index;
    unsigned waiting;       /* threads at the barrier */
    uint32_t barrier_time;  /* all that has an earlier time comes before the last barrier */
};

struct Launch {
    const Kernel *kernel;
    Index grid, size;
    void **arguments;
    unsigned threads; /* in a block */
    uint32_t first;   /* serial number of its first block: what earlier blocks did is past */
    std::vector<uint32_t> blocks; /* their numbers, in the order in which they run */
};

/* The loaded program: its static data may be read, its line numbers are wanted in faults. */
struct Image {
    uintptr_t begin, end, bias;
    std::string path;
};

struct Machine {
    Launch launch;
    Block block;
    Image image;
    std::vector<Thread> threads; /* as many as the largest block so far had */
    Thread *current; /* nullptr outside of kernels */
    unsigned seed;
    bool failed;
    std::string error;
    std::string suspicion; /* a fault, unless the rest of the block shows a worse one */
};
extern Machine machine;

inline void set_time(Thread &thread, uint32_t time) {
    thread.time = time;
    thread.stamp =
        Stamp(machine.block.serial) << 32 | Stamp(thread.number) << TIME_BITS | Stamp(time);
}

/* launch.cpp */

uint64_t count(Index size);
Index index_in(Index size, uint64_t number);

/* faults.cpp */

std::string at(Site site);                /* "line 7" */
std::string name(const Thread &thread);   /* "thread (3, 0, 0)" */
std::string name_of(Stamp stamp);         /* the same, with the block where it is another */
Site site_of(void *return_address);
void find_image(const void *code);
/* Keep the text, below the kernel's and the block's name. */
void report(const std::string &text);
/* The same from within a thread, which ends there; the block is abandoned. */
[[noreturn]] void fault(const std::string &text);
/* The thread ends, but others of the block go on as far as they can: `text` is the fault if they
   show no other. */
[[noreturn]] void suspect(const std::string &text);

/* fibers.cpp */

constexpr size_t STACK = 256 * 1024; /* bytes for each thread */
void start(Thread &thread, void (*entry)());
void resume(Thread &thread); /* until it yields */
void yield();

/* shadow.cpp */

void begin_launch_memory(unsigned shared_bytes);
void begin_block_memory();
void forget_accesses();

/* synchronization.cpp */

/* What threads wait for, none of them can go on: the text of the fault. */
std::string why_stuck();

} // namespace emulator
