// A library that allocates where a walk of the stack is difficult. It is built without frame
// pointers.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

// The loader allocates it at its first use in a thread, and frees it with the library.
static thread_local volatile char late[5000];

// the library's own block, from dlopen to dlclose
static const std::string *const kept = new std::string(6000, 'k');
__attribute__((destructor)) static void end() { delete kept; }

// recursion and throws keep a block in each frame.
static __attribute__((noinline)) std::uint64_t recurse(int depth) {
    std::string text(100 + static_cast<std::size_t>(depth) % 900, 'x');
    if (depth == 0)
        return text.size();
    return recurse(depth - 1) + text.size();
}

static __attribute__((noinline)) void throws(int depth) {
    std::vector<char> block(2000);
    if (depth == 0)
        throw std::runtime_error(std::string(3000, 'e'));
    throws(depth - 1);
    block[0] = 1;
}

// allocates while an exception passes its frame
struct noisy {
    ~noisy() { std::free(std::malloc(5000)); }
};

extern "C" int storm_throw(int depth) {
    late[depth] = kept->back();
    try {
        noisy n;
        throws(depth);
    } catch (const std::exception &e) {
        return e.what()[0] == 'e' ? 0 : 1;
    }
    return 2;
}

extern "C" std::uint64_t storm_deep(int depth) { return recurse(depth); }

// uses its stack down to `least` bytes above `end`, with an allocation in each frame
static __attribute__((noinline)) int descend(std::uintptr_t end, std::uintptr_t least) {
    volatile char pad[200];
    pad[0] = 1;
    void *p = std::malloc(3000);
    if (p == nullptr)
        return 1;
    int fault = 0;
    if (reinterpret_cast<std::uintptr_t>(&pad[0]) - end > least)
        fault = descend(end, least);
    std::free(p);
    return fault + pad[0] - 1;
}

extern "C" int storm_edge(void *end, std::uintptr_t least) {
    return descend(reinterpret_cast<std::uintptr_t>(end), least);
}
