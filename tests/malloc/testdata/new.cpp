// C++'s operators new and delete, which the standard library makes of malloc.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

static int handled;

static void handler() {
    if (++handled == 3)
        std::set_new_handler(nullptr);
}

struct alignas(256) wide {
    char bytes[512];
};

#define WANT(is)                                    \
    do {                                            \
        if (!(is)) {                                \
            std::printf("line %d\n", __LINE__);     \
            return 1;                               \
        }                                           \
    } while (0)

int main() {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 2000; i++)
        m[std::to_string(i) + " and a text that is too long for its object"].assign(static_cast<size_t>(i % 100), i);
    m.clear();

    wide *w = new wide[3];
    WANT(reinterpret_cast<std::uintptr_t>(w) % 256 == 0);
    delete[] w;
    w = new (std::nothrow) wide;
    WANT(w != nullptr && reinterpret_cast<std::uintptr_t>(w) % 256 == 0);
    delete w;

    volatile std::size_t huge = std::size_t{1} << 40;
    WANT(new (std::nothrow) char[huge] == nullptr);
    WANT(new (std::align_val_t{64}, std::nothrow) char[huge] == nullptr);
    std::set_new_handler(handler);
    try {
        delete[] new char[huge];
        return 2;
    } catch (const std::bad_alloc &) {
        WANT(handled == 3);
    }

    std::vector<char *> all;
    all.reserve(1 << 16);
    try {
        for (;;)
            all.push_back(new char[10000]);
    } catch (const std::bad_alloc &) {
        WANT(all.size() > 100);
    }
    std::size_t first = all.size();
    for (char *p : all)
        delete[] p;
    all.clear();
    try {
        for (;;)
            all.push_back(new char[10000]);
    } catch (const std::bad_alloc &) {
        WANT(all.size() + 1 >= first);
    }
    std::printf("%zu blocks\n", first);
    return 0;
}
