/* Texts of faults: names of threads, and lines of the program where code and accesses stand. */
#include "machine.h"

#include <cinttypes>
#include <cstdio>
#include <link.h>

namespace emulator {

static std::string triple(Index i) {
    return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

std::string name(const Thread &thread) {
    return "thread " + triple(thread.index);
}

std::string name_of(Stamp stamp) {
    std::string text = "thread " + triple(index_in(machine.launch.size, thread_of(stamp)));
    if (block_of(stamp) == machine.block.serial) return text;
    const Launch &launch = machine.launch;
    uint32_t block = launch.blocks[block_of(stamp) - launch.first];
    return text + " of block " + triple(index_in(launch.grid, block));
}

Site site_of(void *return_address) {
    uintptr_t place = reinterpret_cast<uintptr_t>(return_address) - 1; /* within the call */
    uintptr_t offset = place - machine.image.begin;
    return offset < machine.image.end - machine.image.begin && offset < LINE ? Site(offset) : 0;
}

/* The line of the device's text, of those of the functions inlined around a place; 0 unknown. */
static int device_line(uintptr_t place) {
    if (machine.image.path.find('\'') != std::string::npos) return 0; /* not for a shell */
    char command[4096];
    int length = snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%" PRIxPTR " 2>/dev/null",
                          machine.image.path.c_str(), place);
    if (length >= int(sizeof command)) return 0;
    FILE *pipe = popen(command, "r");
    if (!pipe) return 0;
    char answer[4096];
    int line = 0, found;
    while (fgets(answer, sizeof answer, pipe)) {
        std::string text(answer);
        size_t colon = text.rfind(':');
        if (line || colon == std::string::npos) continue;
        std::string file = text.substr(0, colon);
        if (file.substr(file.rfind('/') + 1) != "device") continue;
        if (sscanf(text.c_str() + colon, ":%d", &found) == 1) line = found;
    }
    pclose(pipe);
    return line;
}

std::string at(Site site) {
    if (site & LINE) return "line " + std::to_string(site & ~LINE);
    if (!site) return "an unknown line";
    uintptr_t place = machine.image.begin + site - machine.image.bias;
    if (int line = device_line(place)) return "line " + std::to_string(line);
    char text[64];
    snprintf(text, sizeof text, "pc 0x%" PRIxPTR " (addr2line has no line)", place);
    return text;
}

static int look_for(dl_phdr_info *info, size_t, void *data) {
    uintptr_t code = *static_cast<uintptr_t *>(data), begin = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &part = info->dlpi_phdr[i];
        if (part.p_type != PT_LOAD) continue;
        uintptr_t first = info->dlpi_addr + part.p_vaddr;
        begin = first < begin ? first : begin;
        end = first + part.p_memsz > end ? first + part.p_memsz : end;
    }
    if (code < begin || code >= end) return 0;
    machine.image = {begin, end, info->dlpi_addr, info->dlpi_name};
    return 1;
}

void find_image(const void *code) {
    uintptr_t place = reinterpret_cast<uintptr_t>(code);
    if (place >= machine.image.begin && place < machine.image.end) return;
    machine.image = {};
    dl_iterate_phdr(look_for, &place);
}

void report(const std::string &text) {
    machine.failed = true;
    machine.error = std::string("kernel ") + machine.launch.kernel->name + ", block " +
                    triple(machine.block.index) + ": " + text;
}

void fault(const std::string &text) {
    report(text);
    yield(); /* and is never resumed */
    __builtin_unreachable();
}

void suspect(const std::string &text) {
    if (machine.suspicion.empty()) machine.suspicion = text;
    machine.current->state = State::STOPPED;
    yield(); /* and is never resumed */
    __builtin_unreachable();
}

} // namespace emulator
