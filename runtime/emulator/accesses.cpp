/* What the compiler calls before each access of a program that is built with -fsanitize=thread; the
   sanitizer's own library is not used. */
#include "memory.h"

#include <cstring>

namespace emulator {

static std::string text_of(Access access, size_t bytes) {
    static const char *const verbs[] = {" reads ", " writes ", " changes by an atomic "};
    return name(*machine.current) + verbs[int(access)] + std::to_string(bytes) + " bytes";
}

static bool in_program(uintptr_t address) {
    return address >= machine.image.begin && address < machine.image.end;
}

[[noreturn]] static void outside(Access access, uintptr_t address, size_t bytes, Site site) {
    if (in_program(address))
        fault(text_of(access, bytes) + " of static data at " + at(site));
    fault(text_of(access, bytes) + " outside of all memory at " + at(site) + ": " + near(address));
}

static void check(Access access, uintptr_t address, size_t bytes, Site site) {
    if (address - reinterpret_cast<uintptr_t>(machine.current->stack) < STACK) return;
    Region *region = find_region(address);
    if (!region) {
        if (access == Access::READ && in_program(address)) return;
        outside(access, address, bytes, site);
    }
    size_t offset = address - region->begin;
    if (bytes > region->bytes - offset)
        outside(access, region->begin + region->bytes, offset + bytes - region->bytes, site);
    if (access != Access::READ && !region->writable)
        fault(text_of(access, bytes) + " at " + place(*region, address) + " at " + at(site) +
              ", which is only to be read");
    prepare_cells(*region, offset, bytes, access == Access::ATOMIC);
    check_cells(*region, access, address, bytes, site);
}

static void check_aligned(Access access, uintptr_t address, size_t bytes, Site site) {
    if (address % bytes)
        fault(text_of(access, bytes) + " at " + at(site) +
              ", but their address is no multiple of their number");
    check(access, address, bytes, site);
}

} // namespace emulator

using namespace emulator;

#define SITE site_of(__builtin_return_address(0))
#define PLACE(address) reinterpret_cast<uintptr_t>(address)

/* also for memory that the host reads and writes */
#define CHECK(name, check, access, bytes) \
    EXPORT void name(const void *address) { \
        if (machine.current) check(access, PLACE(address), bytes, SITE); \
    }
#define CHECKS(bytes) \
    CHECK(__tsan_read##bytes, check_aligned, Access::READ, bytes) \
    CHECK(__tsan_write##bytes, check_aligned, Access::WRITE, bytes) \
    CHECK(__tsan_unaligned_read##bytes, check, Access::READ, bytes) \
    CHECK(__tsan_unaligned_write##bytes, check, Access::WRITE, bytes)
CHECKS(1)
CHECKS(2)
CHECKS(4)
CHECKS(8)
CHECKS(16)

EXPORT void __tsan_read_range(const void *address, size_t bytes) {
    if (machine.current && bytes) check(Access::READ, PLACE(address), bytes, SITE);
}

EXPORT void __tsan_write_range(const void *address, size_t bytes) {
    if (machine.current && bytes) check(Access::WRITE, PLACE(address), bytes, SITE);
}

EXPORT void __tsan_init() {}
EXPORT void __tsan_func_entry(void *) {}
EXPORT void __tsan_func_exit() {}

EXPORT void emulated_atomic(int line, const void *address, size_t bytes) {
    if (machine.current) check_aligned(Access::ATOMIC, PLACE(address), bytes, LINE | Site(line));
}

/* The linker puts these in the place of the program's calls (--wrap); clang calls the others. */

#define COPY(name, function) \
    EXPORT void *name(void *to, const void *from, size_t bytes) { \
        if (machine.current && bytes) { \
            check(Access::READ, PLACE(from), bytes, SITE); \
            check(Access::WRITE, PLACE(to), bytes, SITE); \
        } \
        return function(to, from, bytes); \
    }
#define SET(name) \
    EXPORT void *name(void *to, int byte, size_t bytes) { \
        if (machine.current && bytes) check(Access::WRITE, PLACE(to), bytes, SITE); \
        return memset(to, byte, bytes); \
    }
COPY(__wrap_memcpy, memcpy)
COPY(__tsan_memcpy, memcpy)
COPY(__wrap_memmove, memmove)
COPY(__tsan_memmove, memmove)
SET(__wrap_memset)
SET(__tsan_memset)
