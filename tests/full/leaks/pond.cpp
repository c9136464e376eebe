//go:build linux && cgo

#include <string>
#include <vector>

struct pond {
    std::vector<std::string> frogs;
};

extern "C" void *pond_new(int frogs) {
    pond *p = new pond;
    for (int i = 0; i < frogs; i++)
        p->frogs.push_back("a frog with a name that has a block of its own, number " + std::to_string(i));
    return p;
}

extern "C" int pond_size(void *p) { return static_cast<int>(static_cast<pond *>(p)->frogs.size()); }

extern "C" void pond_delete(void *p) { delete static_cast<pond *>(p); }
