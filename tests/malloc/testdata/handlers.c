/* A library whose fork handlers allocate, and take a lock under which a thread of its allocates. Its
 * constructor runs before those of libraries that are loaded after it. */
#include <pthread.h>
#include <stdlib.h>

static void *volatile block;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *allocate(void *arg) {
    for (;;) {
        pthread_mutex_lock(&lock);
        block = malloc(1000);
        free(block);
        pthread_mutex_unlock(&lock);
    }
    return arg;
}

static void prepare(void) {
    pthread_mutex_lock(&lock);
    free(malloc(3000));
}

static void parent(void) {
    free(malloc(2000));
    pthread_mutex_unlock(&lock);
}

static void child(void) {
    free(malloc(70000));
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void start(void) { pthread_atfork(prepare, parent, child); }

/* Starts the thread. */
void handlers_start(void) {
    pthread_t t;
    pthread_create(&t, NULL, allocate, NULL);
}
