/* Copies that threads begin and await later. */
#include "machine.h"

using namespace emulator;

EXPORT void emulated_copy_begin(void *to, const void *from, int bytes) {
    Thread &thread = *machine.current;
    thread.copies.push_back({to, from, bytes, thread.groups});
}

EXPORT void emulated_copies_leave(void) {
    ++machine.current->groups;
}

EXPORT int emulated_copy_end(int groups, void **to, const void **from, int *bytes) {
    Thread &thread = *machine.current;
    if (thread.copies.empty() || thread.copies.front().group + groups >= thread.groups) return 0;
    const Copy copy = thread.copies.front();
    thread.copies.pop_front();
    *to = copy.to;
    *from = copy.from;
    *bytes = copy.bytes;
    return 1;
}
