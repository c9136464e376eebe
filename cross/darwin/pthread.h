/* pthread.h - the part that the bindings use: POSIX's prototypes, darwin's size of a mutex. */
#include <stddef.h>
typedef struct {
    long sig;
    char opaque[56];
} pthread_mutex_t;
int pthread_mutex_init(pthread_mutex_t *lock, const void *attributes);
int pthread_mutex_destroy(pthread_mutex_t *lock);
int pthread_mutex_lock(pthread_mutex_t *lock);
int pthread_mutex_unlock(pthread_mutex_t *lock);
