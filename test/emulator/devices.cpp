/* devices.cpp: the emulated machine's devices: how many there are, which of them this process sees
 * (CUDA_VISIBLE_DEVICES), what they are called, and the faults that they have (EMULATOR_FAULT). */
#include "devices.h"
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

double emulator_setting(const char *name, double otherwise) {
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

namespace {
struct Card {
    int number, slice; // slice: of MIG, or -1
};
Card current = {0, -1};
} // namespace

/* The cards that CUDA_VISIBLE_DEVICES shows, in its order; the list ends at the first entry that is none. */
static std::vector<Card> visible_cards() {
    std::vector<Card> cards;
    int there = (int)emulator_setting("EMULATOR_DEVICES", 8);
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    bool mig = emulator_setting("EMULATOR_MIG", 0) > 0;
    if (!list) {
        for (int i = 0; i < (mig ? 1 : there); i++) cards.push_back({i, mig ? 0 : -1});
        return cards;
    }
    for (std::string left = list; !left.empty();) {
        std::string entry = left.substr(0, left.find(','));
        left = left.size() > entry.size() ? left.substr(entry.size() + 1) : "";
        Card card = {-1, -1};
        char end;
        bool good = mig ? sscanf(entry.c_str(), "MIG-%d-%d%c", &card.number, &card.slice, &end) == 2
                        : sscanf(entry.c_str(), "GPU-%d%c", &card.number, &end) == 1 ||
                              sscanf(entry.c_str(), "%d%c", &card.number, &end) == 1;
        if (!good || card.number < 0 || card.number >= there) break;
        cards.push_back(card);
        if (mig) break; // CUDA shows one slice to a process
    }
    return cards;
}

cudaError_t cudaGetDeviceCount(int *count) {
    if (emulator_setting("EMULATOR_DEVICES", 8) < 0)
        return cudaErrorInsufficientDriver; // and *count stays as it was
    size_t devices = visible_cards().size();
    if (devices == 0) return cudaErrorNoDevice;
    *count = (int)devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    std::vector<Card> cards = visible_cards();
    if (device < 0 || device >= (int)cards.size()) return cudaErrorInvalidDevice;
    current = cards[(size_t)device];
    return cudaSuccess;
}

/* A card's own sixteen bytes. */
static cudaUUID_t uuid_of(Card card) {
    cudaUUID_t uuid = {};
    snprintf(uuid.bytes, sizeof uuid.bytes, "GPU-%02d/%02d", card.number, card.slice);
    return uuid;
}

const unsigned char *emulator_device_uuid() {
    static cudaUUID_t uuid;
    uuid = uuid_of(current);
    return (const unsigned char *)uuid.bytes;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device) {
    std::vector<Card> cards = visible_cards();
    if (device < 0 || device >= (int)cards.size()) return cudaErrorInvalidDevice;
    int capability = (int)emulator_setting("EMULATOR_CAPABILITY", 80);
    const char *name = getenv("EMULATOR_NAME");
    *properties = cudaDeviceProp();
    snprintf(properties->name, sizeof properties->name, "%s", name ? name : "emulated device");
    properties->uuid = uuid_of(cards[(size_t)device]);
    properties->major = capability / 10;
    properties->minor = capability % 10;
    properties->multiProcessorCount = (int)emulator_setting("EMULATOR_SMS", 4);
    properties->totalGlobalMem = (size_t)emulator_setting("EMULATOR_MEMORY", 16e9);
    properties->sharedMemPerBlockOptin = SHARED_BYTES_MAX;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr, int) {
    *value = (int)emulator_setting("EMULATOR_CLOCK", 1000000);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int size, int device) {
    std::vector<Card> cards = visible_cards();
    if (device < 0 || device >= (int)cards.size()) return cudaErrorInvalidDevice;
    snprintf(text, (size_t)size, "0000:%02X:00.0", 16 + cards[(size_t)device].number);
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    *version = emulator_setting("EMULATOR_DEVICES", 8) < 0 ? 0 : 13000;
    return cudaSuccess;
}

// ---- faults -------------------------------------------------------------------------------------

bool emulator_fault_is(const char *variable, const char *kind, long calls, bool later_too) {
    const char *text = getenv(variable), *rank = getenv("OMPI_COMM_WORLD_RANK");
    char wanted[16];
    long at, on;
    if (!text || sscanf(text, "%15[^:]:%ld:%ld", wanted, &at, &on) != 3) return false;
    return strcmp(wanted, kind) == 0 && on == (rank ? atol(rank) : 0) && (calls == at || (later_too && calls > at));
}

std::function<bool()> emulator_faulty(std::function<void()> launch) {
    static long launches;
    launches++;
    if (emulator_fault_is("EMULATOR_FAULT", "hang", launches, false)) return [] { return false; };
    bool fails = emulator_fault_is("EMULATOR_FAULT", "fail", launches, false);
    bool slow = emulator_fault_is("EMULATOR_FAULT", "slow", launches, true);
    return [=] {
        if (slow) usleep(50000);
        launch();
        if (fails) emulator_device_fails(cudaErrorIllegalAddress);
        return true;
    };
}
