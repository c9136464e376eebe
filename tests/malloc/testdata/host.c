/* Loads the library late and prints the answer of its Begin. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void (*begin)(char *, int);
    char text[1000] = "";
    if (library == NULL) {
        puts(dlerror());
        return 1;
    }
    *(void **)&begin = dlsym(library, "Begin");
    begin(text, sizeof text);
    puts(text);
    return 0;
}
