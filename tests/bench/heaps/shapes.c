/* shapes.c - work H: two programs like public benchmarks of malloc. One allocates many blocks of
 * one size and frees them all, half in the order of allocation and half in reverse, as glibc's
 * own benchmark does. The other factors numbers of a few words, and allocates each result. */
#include "count.h"
#include "heaps.h"

#include <stdio.h>
#include <string.h>

/* The heap parks as many blocks as the program frees at once. */
enum { AT_ONCE = 1600, SIZE = 32, TIMES = 200, BITS = 32, LIMBS = 8, STEPS_OF_FACTOR = 12000 };

/* A number of up to 2 * LIMBS limbs, the lowest first. */
typedef struct number {
    uint32_t count;
    uint32_t limbs[];
} number;

typedef struct numbers {
    void *(*take)(size_t size);
    void (*give)(void *p);
} numbers;

static number *number_new(const numbers *of, uint32_t count) {
    number *n = of->take(sizeof *n + count * sizeof(uint32_t));
    if (n == NULL)
        fail("numbers", "full");
    n->count = count;
    return n;
}

/* Removes limbs that are 0 at its top. */
static number *trimmed(number *b) {
    while (b->count > 1 && b->limbs[b->count - 1] == 0)
        b->count--;
    return b;
}

static number *product(const numbers *of, const number *a, const number *b) {
    number *p = number_new(of, a->count + b->count);
    memset(p->limbs, 0, p->count * sizeof(uint32_t));
    for (uint32_t i = 0; i < a->count; i++) {
        uint64_t carry = 0;
        for (uint32_t k = 0; k < b->count; k++) {
            carry += (uint64_t)a->limbs[i] * b->limbs[k] + p->limbs[i + k];
            p->limbs[i + k] = (uint32_t)carry;
            carry >>= BITS;
        }
        p->limbs[i + b->count] = (uint32_t)carry;
    }
    return trimmed(p);
}

static number *sum(const numbers *of, const number *a, uint32_t b) {
    number *s = number_new(of, a->count + 1);
    uint64_t carry = b;
    for (uint32_t i = 0; i < a->count; i++) {
        carry += a->limbs[i];
        s->limbs[i] = (uint32_t)carry;
        carry >>= BITS;
    }
    s->limbs[a->count] = (uint32_t)carry;
    return trimmed(s);
}

/* Returns a modulo m, whose highest bit is set, limb by limb with an estimate of each (Knuth's
 * D). */
static number *rest(const numbers *of, const number *a, const number *m) {
    uint32_t n = m->count, r[2 * LIMBS + 2] = {0};
    number *out = number_new(of, n);
    memcpy(r, a->limbs, a->count * sizeof(uint32_t));
    for (uint32_t at = a->count >= n ? a->count - n + 1 : 0; at-- > 0;) {
        uint64_t top = (uint64_t)r[at + n] << BITS | r[at + n - 1], q = top / m->limbs[n - 1], carry = 0;
        int64_t borrow = 0;
        if (q > UINT32_MAX)
            q = UINT32_MAX;
        for (uint32_t k = 0; k < n; k++) {
            carry += q * m->limbs[k];
            borrow += (int64_t)r[at + k] - (uint32_t)carry;
            r[at + k] = (uint32_t)borrow;
            borrow >>= BITS;
            carry >>= BITS;
        }
        borrow += (int64_t)r[at + n] - (int64_t)carry;
        r[at + n] = (uint32_t)borrow;
        while ((int32_t)r[at + n] < 0 || borrow >> BITS != 0) { /* the estimate was too high */
            uint64_t back = 0;
            for (uint32_t k = 0; k < n; k++) {
                back += (uint64_t)r[at + k] + m->limbs[k];
                r[at + k] = (uint32_t)back;
                back >>= BITS;
            }
            r[at + n] += (uint32_t)back;
            borrow = 0;
        }
    }
    memcpy(out->limbs, r, n * sizeof(uint32_t));
    return trimmed(out);
}

/* The allocations of Pollard's rho: x = x * x + 1 modulo m, and the product of all x. */
static uint32_t factor(const numbers *of, int steps) {
    number *m = number_new(of, 4), *x = number_new(of, 1), *all = number_new(of, 1);
    uint32_t check;
    m->limbs[0] = 0x3b9aca07, m->limbs[1] = 0x12345677, m->limbs[2] = 0x9e3779b9, m->limbs[3] = 0xfedcba98;
    x->limbs[0] = 2, all->limbs[0] = 1;
    while (steps-- > 0) {
        number *square = product(of, x, x), *more = sum(of, square, 1), *next = rest(of, more, m), *p;
        of->give(square), of->give(more), of->give(x);
        x = next;
        p = product(of, all, x);
        of->give(all);
        all = rest(of, p, m);
        of->give(p);
    }
    check = x->limbs[0] ^ all->limbs[0];
    of->give(m), of->give(x), of->give(all);
    return check;
}

enum { NUMBERS = 5 }; /* made and freed in a step */

#define SHAPES(id, name, begin, take, give, resize)                                      \
    FUNCTIONS(id, name, begin, take, give, resize)                                       \
    static void *id##_taker(size_t n) { return id##_take(n); }                          \
    static void id##_giver(void *p) { id##_give(p); }                                    \
    static void id##_times(size_t size, int times) {                                     \
        while (times-- > 0) {                                                            \
            int i;                                                                       \
            for (i = 0; i < AT_ONCE; i++) {                                              \
                if ((things[i] = id##_take(size)) == NULL)                               \
                    fail(name, "full");                                                  \
                *(int *)things[i] = i;                                                   \
            }                                                                            \
            for (i = 0; i < AT_ONCE / 2; i++)                                            \
                id##_give(things[i]);                                                    \
            for (i = AT_ONCE; i-- > AT_ONCE / 2;)                                        \
                id##_give(things[i]);                                                    \
        }                                                                                \
    }                                                                                    \
    static double id##_one_size(void) {                                                  \
        double took;                                                                     \
        if (!id##_begin(room(), ROOM))                                                   \
            return -1;                                                                   \
        id##_times(SIZE, 2);                                                             \
        CALLGRIND_ZERO_STATS;                                                            \
        took = now();                                                                    \
        id##_times(SIZE, TIMES);                                                         \
        took = (now() - took) / (TIMES * AT_ONCE);                                       \
        counted(name, TIMES *AT_ONCE);                                                   \
        return took;                                                                     \
    }                                                                                    \
    static double id##_factor(void) {                                                    \
        static uint32_t answer;                                                          \
        const numbers of = {id##_taker, id##_giver};                                     \
        uint32_t check;                                                                  \
        double took;                                                                     \
        if (!id##_begin(room(), ROOM))                                                   \
            return -1;                                                                   \
        answer = factor(&of, STEPS_OF_FACTOR);                                           \
        CALLGRIND_ZERO_STATS;                                                            \
        took = now();                                                                    \
        check = factor(&of, STEPS_OF_FACTOR);                                            \
        took = (now() - took) / (NUMBERS * STEPS_OF_FACTOR);                             \
        counted(name, NUMBERS *STEPS_OF_FACTOR);                                         \
        if (check != answer)                                                             \
            fail(name, "another number");                                                \
        return took;                                                                     \
    }
IN_BLOCK(SHAPES)
OUTSIDE(SHAPES)

static const struct contestant {
    const char *name;
    double (*one_size)(void), (*factor)(void);
} contestants[] = {
#define CONTESTANT(id, name, begin, take, give, resize) {name, id##_one_size, id##_factor},
    IN_BLOCK(CONTESTANT) OUTSIDE(CONTESTANT)};

enum { COUNT = sizeof contestants / sizeof contestants[0] };

/* Each contestant runs once a round, starting with another one each time. */
void shapes(int rounds, int factors, char **who) {
    parked = factors ? PARKED : AT_ONCE;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < COUNT; i++) {
            const struct contestant *c = &contestants[(i + round) % COUNT];
            double ns;
            if (!wanted(c->name, who))
                continue;
            ns = factors ? c->factor() : c->one_size();
            if (ns >= 0)
                printf("%s\t%.3f\n", c->name, ns);
        }
}
