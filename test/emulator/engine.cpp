/* engine.cpp: runs the threads of a block. See emulator.h for the rules; next: runtime.cpp. */
#include "emulator.h"

#include "cuda_runtime.h"
#include "fiber.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

#ifdef EMULATOR_ASAN
static const size_t STACK_BYTES = 1 << 20;
#else
static const size_t STACK_BYTES = 1 << 18;
#endif

namespace {
enum class Status { READY, BARRIER, COLLECTIVE, DONE };

struct Copy {
    void *shared;
    const void *global;
    size_t size, read;
    int group;
};

struct Thread {
    Fiber fiber;
    Status status = Status::DONE;
    uint3 index;
    Site site;
    Collective *posted;
    std::vector<Copy> copies; // cp.async in flight
    int group;                // of the copies not yet committed
};

Thread threads[BLOCK_THREADS_MAX];
int thread_count;
Thread *running; // NULL outside of kernels
Fiber scheduler;
const std::function<void()> *body;
const char *kernel_name;
bool in_kernel;
size_t dynamic_bytes;
uint64_t random_state = 1;
std::set<std::string> kernels_run;
} // namespace

// ---- order ------------------------------------------------------------------------------------

Order emulator_order() {
    const char *order = getenv("EMULATOR_ORDER");
    if (!order || !strcmp(order, "forward")) return Order::FORWARD;
    if (!strcmp(order, "reversed")) return Order::REVERSED;
    if (!strncmp(order, "random", 6)) {
        static bool seeded = false;
        if (!seeded && order[6] == ':') random_state = strtoull(order + 7, NULL, 10) * 2 + 1;
        seeded = true;
        return Order::RANDOM;
    }
    fprintf(stderr, "emulator: EMULATOR_ORDER is %s; forward, reversed or random[:SEED]\n", order);
    exit(2);
}

uint32_t emulator_random(uint32_t limit) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) * limit >> 31);
}

namespace {
/* Each of `count` indices once: ascending, descending, or by a random stride from a random start. */
struct Walk {
    int count, at, step;
    Walk(Order order, int n) : count(n), at(0), step(1) {
        if (order == Order::REVERSED) at = n - 1, step = n - 1;
        if (order != Order::RANDOM || n < 2) return;
        at = (int)emulator_random((uint32_t)n);
        do step = 1 + (int)emulator_random((uint32_t)n - 1);
        while (gcd(step, n) != 1);
    }
    int next() {
        int here = at;
        at = (int)(((int64_t)at + step) < count ? at + step : (int64_t)at + step - count);
        return here;
    }
    static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
};
} // namespace

// ---- memory of a block ------------------------------------------------------------------------

/* Every static __shared__ variable lies in this section of the program (cuda_runtime.h). */
extern unsigned char __start_emulated_shared[] __attribute__((weak));
extern unsigned char __stop_emulated_shared[] __attribute__((weak));

/* Ends at an inaccessible page, so that the first byte beyond the dynamic shared memory faults. */
static unsigned char *dynamic_end() {
    static unsigned char *end = NULL;
    if (!end) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE),
               bytes = (SHARED_BYTES_MAX + page - 1) / page * page;
        unsigned char *memory = (unsigned char *)mmap(
            NULL, bytes + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) emulator_fault("no memory for shared memory");
        mprotect(memory, page, PROT_NONE);
        mprotect(memory + page + bytes, page, PROT_NONE);
        end = memory + page + bytes;
    }
    return end;
}

unsigned char *emulator_shared() { return dynamic_end() - (dynamic_bytes + 15) / 16 * 16; }

bool emulator_is_shared(const void *address, size_t bytes) {
    const unsigned char *p = (const unsigned char *)address;
    return (p >= emulator_shared() && p + bytes <= emulator_shared() + dynamic_bytes) ||
           (p >= __start_emulated_shared && p + bytes <= __stop_emulated_shared);
}

__attribute__((no_sanitize("address"))) void emulator_poison(void *memory, size_t bytes) {
    volatile unsigned char *p = (volatile unsigned char *)memory;
    for (; bytes && (uintptr_t)p % 8; bytes--) *p++ = 0xff;
    for (; bytes >= 8; bytes -= 8, p += 8) *(volatile uint64_t *)p = ~(uint64_t)0;
    for (; bytes; bytes--) *p++ = 0xff;
}

// ---- threads ----------------------------------------------------------------------------------

static void thread_main() {
    for (;;) {
        (*body)();
        running->status = Status::DONE;
        fiber_switch(&running->fiber, &scheduler);
    }
}

static void resume(Thread *thread) {
    running = thread;
    threadIdx = thread->index;
    fiber_switch(&scheduler, &thread->fiber);
    running = NULL;
}

static void wait_as(Status status, Site site) {
    if (!running) emulator_fault("a device function was called outside of a kernel");
    running->status = status;
    running->site = site;
    fiber_switch(&running->fiber, &scheduler);
}

void emulator_barrier(Site site) { wait_as(Status::BARRIER, site); }

void emulator_collective(Collective *collective) {
    uint32_t lane = (uint32_t)(running - threads) % WARP_SIZE;
    if (!(collective->mask >> lane & 1))
        emulator_fault("%s at %s:%d: mask %08x leaves out the calling lane", collective->name,
                       collective->site.file, collective->site.line, collective->mask);
    running->posted = collective;
    wait_as(Status::COLLECTIVE, collective->site);
}

namespace {
struct Exchange {
    uint64_t value;
    uint64_t *values; // (WARP_SIZE) of this warp; a lane reads only those of its own exchange
    uint32_t present;
};
} // namespace

static void run_exchange(void *data[WARP_SIZE]) {
    uint32_t present = 0;
    for (int i = 0; i < WARP_SIZE; i++) present |= (uint32_t)(data[i] != NULL) << i;
    for (int i = 0; i < WARP_SIZE; i++) {
        Exchange *lane = (Exchange *)data[i];
        if (!lane) continue;
        lane->present = present;
        lane->values[i] = lane->value;
    }
}

uint32_t emulator_exchange(const char *name, uint32_t mask, Site site, uint64_t value,
                           const uint64_t **values) {
    static uint64_t of_warp[BLOCK_THREADS_MAX / WARP_SIZE][WARP_SIZE];
    int warp = running ? (int)(running - threads) / WARP_SIZE : 0;
    Exchange mine = {value, of_warp[warp], 0};
    Collective collective = {name, run_exchange, mask, false, site, &mine};
    *values = mine.values;
    emulator_collective(&collective);
    return mine.present;
}

/* Whether two lanes wait for the same thing. */
static bool same_collective(const Collective *a, const Collective *b) {
    return a->site.line == b->site.line && a->mask == b->mask && a->name == b->name &&
           (a->site.file == b->site.file || !strcmp(a->site.file, b->site.file));
}

/* Completes the collectives of one warp for which all lanes have come. Returns whether any was. */
static bool complete_collectives(int warp) {
    Thread *lanes = threads + warp * WARP_SIZE;
    int count =
        thread_count - warp * WARP_SIZE < WARP_SIZE ? thread_count - warp * WARP_SIZE : WARP_SIZE;
    bool completed = false;
    for (int first = 0; first < count; first++) {
        if (lanes[first].status != Status::COLLECTIVE) continue;
        Collective *wanted = lanes[first].posted;
        void *data[WARP_SIZE] = {};
        bool complete = true;
        for (int i = 0; i < WARP_SIZE && complete; i++) {
            if (!(wanted->mask >> i & 1)) continue;
            if (i >= count || lanes[i].status == Status::DONE) {
                threadIdx = lanes[first].index;
                if (wanted->whole_warp)
                    emulator_fault("%s at %s:%d: lane %d of the warp is missing or has exited",
                                   wanted->name, wanted->site.file, wanted->site.line, i);
                continue;
            }
            complete = lanes[i].status == Status::COLLECTIVE;
            if (!complete) break;
            Collective *other = lanes[i].posted;
            threadIdx = lanes[i].index;
            if (!same_collective(other, wanted))
                emulator_fault("%s (mask %08x) at %s:%d runs together with %s (mask %08x) at %s:%d in one warp",
                               other->name, other->mask, other->site.file, other->site.line,
                               wanted->name, wanted->mask, wanted->site.file, wanted->site.line);
            data[i] = other->data;
        }
        if (!complete) continue;
        if (wanted->run) wanted->run(data);
        for (int i = 0; i < count; i++)
            if (data[i]) lanes[i].status = Status::READY;
        completed = true;
    }
    return completed;
}

/* Runs every ready thread of a warp up to its next stop. Returns whether there was one. */
static bool run_warp(int warp, Order order) {
    int first = warp * WARP_SIZE;
    int count = thread_count - first < WARP_SIZE ? thread_count - first : WARP_SIZE;
    Walk walk(order, count);
    bool ran = false;
    for (int i = 0; i < count; i++) {
        Thread *thread = &threads[first + walk.next()];
        if (thread->status != Status::READY) continue;
        resume(thread);
        ran = true;
    }
    return ran && (complete_collectives(warp), true);
}

/* Lets a warp go as far as it can, or in random order for a while. */
static bool run_turn(int warp, Order order) {
    bool ran = false;
    while (run_warp(warp, order)) {
        ran = true;
        if (order == Order::RANDOM && emulator_random(2)) break;
    }
    return ran;
}

/* All threads have stopped: either all that live are at one barrier, or the kernel is wrong. Returns
 * false when none lives. */
static bool release_barrier() {
    Thread *waiting = NULL;
    for (int i = 0; i < thread_count; i++) {
        Thread *t = &threads[i];
        if (t->status == Status::DONE) continue;
        threadIdx = t->index;
        if (t->status == Status::COLLECTIVE)
            emulator_fault("%s (mask %08x) at %s:%d: other lanes of the mask never come",
                           t->posted->name, t->posted->mask, t->site.file, t->site.line);
        if (waiting &&
            (t->site.line != waiting->site.line || strcmp(t->site.file, waiting->site.file)))
            emulator_fault("divergent barrier: waits at %s:%d, thread (%u,%u,%u) at %s:%d",
                           t->site.file, t->site.line, waiting->index.x, waiting->index.y,
                           waiting->index.z, waiting->site.file, waiting->site.line);
        waiting = t;
    }
    if (!waiting) return false;
    for (int i = 0; i < thread_count; i++)
        if (threads[i].status == Status::BARRIER) threads[i].status = Status::READY;
    return true;
}

static void run_block(Order order) {
    emulator_poison(__start_emulated_shared,
                    (size_t)(__stop_emulated_shared - __start_emulated_shared));
    emulator_poison(emulator_shared(), (dynamic_bytes + 15) / 16 * 16);
    for (int i = 0; i < thread_count; i++) {
        threads[i].status = Status::READY;
        threads[i].copies.clear();
        threads[i].group = 0;
    }
    int warps = (thread_count + WARP_SIZE - 1) / WARP_SIZE;
    do {
        for (bool ran = true; ran;) { // until all threads wait for the block, or have ended
            ran = false;
            Walk walk(order, warps);
            for (int i = 0; i < warps; i++) ran = run_turn(walk.next(), order) || ran;
        }
    } while (release_barrier());
}

static void prepare_threads() {
    static char *stacks = NULL;
    if (!stacks) {
        stacks = stacks_new(BLOCK_THREADS_MAX, STACK_BYTES);
        for (int i = 0; i < BLOCK_THREADS_MAX;
             i++) // staggered: equal offsets would share cache sets
            fiber_prepare(&threads[i].fiber, stacks + (size_t)i * stack_stride(STACK_BYTES),
                          STACK_BYTES - (size_t)(i % 61) * 192, thread_main);
        emulator_watch_signals();
    }
    for (int i = 0; i < thread_count; i++)
        threads[i].index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                            i / blockDim.x / blockDim.y};
}

static void write_kernel_names() {
    FILE *file = fopen(getenv("EMULATOR_KERNELS"), "a");
    for (const std::string &name : kernels_run)
        if (file) fprintf(file, "%s\n", name.c_str());
    if (file) fclose(file);
}

void emulator_run(const char *kernel, const Grid &grid, const std::function<void()> &thread) {
    if (kernels_run.empty() && getenv("EMULATOR_KERNELS")) atexit(write_kernel_names);
    static const char *const order_names[] = {"forward", "reversed", "random"};
    Order order = emulator_order();
    kernels_run.insert(std::string(kernel) + " " + order_names[(int)order]);
    kernel_name = kernel;
    body = &thread;
    gridDim = dim3(grid.blocks[0], grid.blocks[1], grid.blocks[2]);
    blockDim = dim3(grid.threads[0], grid.threads[1], grid.threads[2]);
    thread_count = (int)(blockDim.x * blockDim.y * blockDim.z);
    dynamic_bytes = grid.shared_bytes;
    prepare_threads();
    in_kernel = true;
    int blocks = (int)(gridDim.x * gridDim.y * gridDim.z);
    Walk walk(order, blocks);
    for (int i = 0; i < blocks; i++) {
        unsigned b = (unsigned)walk.next();
        blockIdx = {b % gridDim.x, b / gridDim.x % gridDim.y, b / gridDim.x / gridDim.y};
        run_block(order);
    }
    in_kernel = false;
}

const char *emulator_kernel() { return in_kernel ? kernel_name : NULL; }

// ---- cp.async ---------------------------------------------------------------------------------

void emulator_copy_async(void *shared, const void *global, size_t size, size_t read) {
    if ((uintptr_t)shared % size || (uintptr_t)global % size)
        emulator_fault("cp.async of %zu bytes: misaligned (%p from %p)", size, shared, global);
    if (!emulator_is_shared(shared, size))
        emulator_fault("cp.async: destination is not shared memory");
    if (read > size) emulator_fault("cp.async reads %zu bytes into %zu", read, size);
    emulator_poison(shared, size); // a read before the wait gives NaN
    running->copies.push_back({shared, global, size, read, running->group});
}

void emulator_copy_commit() { running->group++; }

/* Copies land here and not sooner: the source is read now, whatever became of it meanwhile. */
void emulator_copy_wait(int newest_left) {
    std::vector<Copy> left;
    for (const Copy &copy : running->copies) {
        if (copy.group >= running->group - newest_left) {
            left.push_back(copy);
            continue;
        }
        memcpy(copy.shared, copy.global, copy.read);
        memset((char *)copy.shared + copy.read, 0, copy.size - copy.read);
    }
    running->copies.swap(left);
}
