/* stretch_end.h - for stretch*.c alone: one end of a stretched row, as it is now. */
#ifndef UPFRONT_STRETCH_END_H
#define UPFRONT_STRETCH_END_H

#include "stretch.h"

#ifdef UPFRONT_STRETCHED

#ifdef __cplusplus
extern "C" {
#endif

/* Bit of `entered` beside those of the windows: a scope is open in the current one. */
#define UPFRONT_IN_USE (UINT64_C(1) << UPFRONT_WINDOWS)

/* A gap is so many bytes, and of a larger thing a quarter of it up to UPFRONT_GAP_MORE more. Behind a chunk of a pool it is the least. */
#define UPFRONT_GAP_LEAST UINT64_C(16)
#define UPFRONT_GAP_MORE UINT64_C(240)

/* A thing that is aligned to a line lies so far from where it lies elsewhere, or a multiple: alignments up to it are the same in it. */
#define UPFRONT_PAGE UINT64_C(4096)

/* Behind what is in use so many bytes are looked at by a check. */
#define UPFRONT_TAIL UINT64_C(4096)

typedef struct upfront_stretch_end {
    upfront_stretch *stretch;
    upfront_row *row;
    const upfront_linear *slot;
    upfront_part *part;
    char *map;
    uint64_t start;  /* place of the part's first byte */
    uint64_t shift;  /* place of offset 0, as the newest byte has it */
    uint64_t cursor; /* place of the slot's cursor */
    uint64_t last;   /* offset past the last byte that may be asked for */
    uint64_t bound;  /* place that they stay below, whatever is asked for */
    uint64_t twin;   /* place where the part has its last R bytes: see upfront_stretch_twin */
    uint64_t *records;
    upfront_record *log; /* NULL: none is kept */
    uint64_t room;       /* records that the log has room for */
} upfront_stretch_end;

/* The row's stretch; NULL: it isn't stretched. */
static inline upfront_stretch *upfront_stretch_of(const upfront_row *r) {
    return r->space == 0 ? NULL : (upfront_stretch *)((uintptr_t)r + (uintptr_t)r->space);
}

/* The row of a slot; NULL: the header is that of an arena that stands alone. */
static inline upfront_row *upfront_stretch_row(const upfront_linear *slot) {
    return upfront_row_index(slot) <= 65535 ? upfront_row_of(slot) : NULL;
}

static inline char *upfront_stretch_map(const upfront_stretch *s) { return (char *)((uintptr_t)s + (uintptr_t)s->map); }

/* Bytes of the row, up to its edge. */
static inline uint64_t upfront_stretch_bytes(const upfront_stretch *s) { return (s->part - UPFRONT_EDGE) / 3; }

/* Place of a part of a window. */
static inline uint64_t upfront_stretch_part(const upfront_stretch *s, uint64_t window, uint64_t far_part) {
    return s->place + window * s->window + far_part * s->part;
}

/* Bytes of a window of a row that has so many up to its edge. Sums of it over some rows depend on their number and the sum of their bytes
 * alone: so edges can be redrawn. */
static inline uint64_t upfront_stretch_window_size(uint64_t bytes) {
#ifdef UPFRONT_MEMDEBUG
    return 3 * (3 * bytes + UPFRONT_EDGE); /* a log is half a part */
#else
    return 2 * (3 * bytes + UPFRONT_EDGE);
#endif
}

/* With the shift at a boundary of UPFRONT_EDGE things lie as in a row that isn't stretched. So with the shift rounded up there, and up to
 * `last` behind it, there is room for whatever comes, if it comes without gaps. That is so always. */
static inline int upfront_stretch_has_room(const upfront_stretch_end *e, uint64_t shift) {
    return upfront_round_edge(shift) + e->last <= e->bound;
}

/* Index of a row in its map. */
static inline uint64_t upfront_stretch_index(const upfront_row *r, const upfront_map *m) {
    return ((uintptr_t)r - (uintptr_t)(m + 1)) / upfront_row_size(m->slots, m->pools);
}

/* The log of a part, and how many records it has room for; NULL where none is kept. */
upfront_record *upfront_stretch_log(const upfront_stretch *s, uint64_t window, uint64_t far_part, uint64_t *room);

/* Sees the end that a slot is of; false when its row isn't stretched. */
int upfront_stretch_see(const upfront_linear *slot, upfront_stretch_end *e);

/* The shift of a far end in its twin: the last R bytes of a far part have the layout of the row itself. When the part runs short its pieces
 * lie there, and go down as they do elsewhere. */
static inline uint64_t upfront_stretch_twin(const upfront_stretch_end *e) { return e->twin - e->row->start; }

static inline int upfront_stretch_is_twin(const upfront_stretch_end *e) {
    return e->slot == upfront_row_far(e->row) && e->shift == upfront_stretch_twin(e);
}

/* The first byte of a range that isn't `value`; NULL: all are. The range may be poisoned. */
const unsigned char *upfront_stretch_differs(const void *p, uint64_t size, unsigned char value);

/* True, and the damage, when the bytes of a range that nobody has aren't as they were left: dead up to the highest that was ever handed
 * out, 0 beyond; or in a twin 0 below the lowest, dead above. */
int upfront_stretch_free_differs(const upfront_stretch_end *e, uint64_t from, uint64_t to, upfront_damage *d);

/* True, and the damage, when a range isn't gap. The records are those of the things around it, or NULL. */
int upfront_stretch_gap_differs(const upfront_stretch_end *e, uint64_t from, uint64_t to, const upfront_record *before,
                                const upfront_record *after, upfront_damage *d);

/* Keeps the first damage, and tells of each. */
void upfront_stretch_damaged(const upfront_damage *d);

/* Finds a place in a part, whose log has `live` live records. */
void upfront_stretch_search(const upfront_record *log, uint64_t room, uint64_t live, uint64_t place, upfront_found *out);

#ifdef __cplusplus
}
#endif
#endif
#endif
