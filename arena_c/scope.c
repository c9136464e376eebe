#include "scope.h"

upfront_scope upfront_scope_open(upfront_row *r) {
    upfront_scope s = {NULL, 0};
    if (r == NULL || r->open == r->slots)
        return s;
    if (r->open != 0) {
        const upfront_linear *top = upfront_row_slot(r, r->open - 1);
        if (top->limit == upfront_tag(top))
            return s;
    }
    s.slot = upfront_row_slot(r, r->open);
    s.tag = upfront_row_open(r);
    return s;
}

upfront_pool *upfront_scope_pool(upfront_scope s, uint64_t size, uint64_t align, uint64_t count) {
    upfront_node *node;
    upfront_pool *p;
    if (s.slot == NULL || !upfront_scope_is_open(s))
        return NULL;
    node = upfront_row_node(s.slot, s.tag);
    if (node == NULL || upfront_row_pool_open(s.slot, s.tag, size, align, count, 0, &p) != UPFRONT_OK)
        return NULL;
    upfront_row_link(s.slot, node, UPFRONT_CLASS_POOL, (uint64_t)(p - upfront_row_pool(upfront_row_of(s.slot), 0)));
    return p;
}

void *upfront_scope_temp(upfront_scope s, uint64_t size, uint64_t align) {
    upfront_row *r;
    upfront_scope temp;
    uint64_t before;
    void *p;
    if (s.slot == NULL || !upfront_scope_is_open(s))
        return NULL;
    r = upfront_row_of(s.slot);
    temp.slot = upfront_row_far(r);
    temp.tag = r->far_of == 0 ? upfront_row_far_open(r) : upfront_tag(temp.slot);
    before = temp.slot->refused;
    p = upfront_scope_alloc(temp, size, align);
    if (p == NULL && upfront_row_far_grow(r, size, align) == UPFRONT_OK) {
        temp.slot->refused = before; /* a new piece mends that: nobody was refused */
        p = upfront_scope_alloc(temp, size, align);
    }
    return p;
}

int upfront_scope_close(upfront_scope s) {
    upfront_row *r;
    upfront_linear *far_slot;
    if (s.slot == NULL)
        return UPFRONT_BAD_ARGUMENT;
    if (upfront_tag(s.slot) != s.tag)
        return UPFRONT_STALE;
    r = upfront_row_of(s.slot);
    far_slot = upfront_row_far(r);
    if (!upfront_scope_is_open(s) || s.slot == far_slot || !upfront_scope_is_c(s.slot) ||
        (r->far_of == r->open && !upfront_scope_is_c(far_slot)))
        return UPFRONT_ORDER;
    if (r->far_of == r->open) {
        upfront_row_freeze(far_slot);
        upfront_scope_run(far_slot, 0);
        upfront_row_far_close(r);
    }
    upfront_row_freeze(s.slot);
    upfront_scope_run(s.slot, 0);
    upfront_row_close(r);
    return UPFRONT_OK;
}

static upfront_pool *pool_of(const upfront_linear *slot, const upfront_node *node) {
    return upfront_row_pool(upfront_row_of(slot), node->what & 0xFFFFF);
}

static int is_c(const upfront_linear *slot, const upfront_node *node) {
    uint64_t class_ = node->below / UPFRONT_GENERATION;
    return class_ == UPFRONT_CLASS_C || (class_ == UPFRONT_CLASS_POOL && pool_of(slot, node)->kind == 0);
}

static const upfront_node *node_at(const upfront_linear *slot, uint64_t place) {
    return (const upfront_node *)upfront_at(slot, place);
}

int upfront_scope_is_c(const upfront_linear *slot) {
    uint64_t at = slot->chain;
    while (at != 0 && is_c(slot, node_at(slot, at)))
        at = node_at(slot, at)->below & UPFRONT_OFFSETS;
    return at == 0;
}

uint64_t upfront_scope_run(upfront_linear *slot, uint64_t until) {
    uint64_t count = 0;
    while (slot->chain != until && is_c(slot, node_at(slot, slot->chain))) {
        const upfront_node *node = node_at(slot, slot->chain);
        slot->chain = node->below & UPFRONT_OFFSETS; /* first: it runs once, whatever it does */
        if (node->below / UPFRONT_GENERATION == UPFRONT_CLASS_POOL) {
            upfront_pool_close(pool_of(slot, node));
        } else {
            const upfront_deferred *d = (const upfront_deferred *)node;
            d->finalizer(d->arg);
            count++;
        }
    }
    return count;
}
