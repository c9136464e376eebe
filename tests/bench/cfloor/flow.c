/* The runner of scope/flow in C, for the nodes of work O: the same blob, data and bounds. */
#include "flow.h"
#include <stddef.h>

typedef struct { uint32_t offset, count; } cf_span;
typedef struct { uint32_t at, constant; } cf_in;
typedef struct { uint32_t hash; int32_t key; uint32_t node; } cf_entry;
typedef struct { uint32_t node, port; } cf_to;

typedef struct { uint32_t tag; cf_span then; } cf_node_head;
typedef struct { cf_node_head n; uint32_t of; int32_t key; cf_span out; } cf_event;
typedef struct { cf_node_head n; cf_span otherwise; cf_in in; } cf_branch;
typedef struct { cf_node_head n; uint32_t closed; } cf_gate;
typedef struct { cf_node_head n; cf_in limit; uint32_t count; } cf_counter;
typedef struct { cf_node_head n; uint32_t to; cf_in value; } cf_set;
typedef struct { cf_node_head n; cf_span otherwise; cf_in a, b; } cf_two;
typedef struct { cf_node_head n; uint32_t of; cf_span parameters; } cf_action;

/* The tags of package flow. */
enum { TAG_BRANCH = 1, TAG_GATE = 2, TAG_COUNTER = 4, TAG_SET = 10, TAG_ADD = 13, TAG_EQUAL = 16, TAG_LESS = 19,
    TAG_ACTION = 21 };

enum { ROOT_AT = 16, ROOT_EVENTS = 24 }; /* in the blob's header, in the root */

static inline int32_t in(const cf_in *p, const char *data) {
	return p->at == 0 ? (int32_t)p->constant : *(const int32_t *)(const void *)(data + p->at);
}

static void touch(cf_runner *r, const char *data, const void *parameters) {
    r->touched += (uint64_t)in(parameters, data);
}

/* read through a volatile so that the compiler cannot see the callee */
static void (*volatile calls[1])(cf_runner *, const char *, const void *) = {touch};

static const cf_event *find(const char *blob, uint64_t key) {
	const cf_span *events = (const void *)(blob + *(const uint32_t *)(const void *)(blob + ROOT_AT) + ROOT_EVENTS);
	const cf_entry *list = (const void *)(blob + events->offset);
	uint32_t low = 0, high = events->count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		uint64_t at = (uint64_t)list[middle].hash << 32 | ((uint32_t)list[middle].key ^ UINT32_C(1) << 31);
		if (at == key)
			return (const void *)(blob + list[middle].node);
		if (at < key)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

static int run(cf_runner *r, const char *blob, char *data, cf_span then) {
	uint32_t next = then.offset, end = next + then.count * (uint32_t)sizeof(cf_to), top = 0, left = r->steps;
	for (;;) {
		const cf_to *to = (const void *)(blob + next);
		const cf_node_head *n;
		if (next == end) {
			if (top == 0)
				return 1;
			top--;
			next = r->stack[top].next;
			end = r->stack[top].end;
			continue;
		}
		if (left == 0)
			return 0;
		left--;
		next += (uint32_t)sizeof *to;
		n = (const void *)(blob + to->node);
		then = n->then;
		switch (n->tag) {
		case TAG_BRANCH: {
			const cf_branch *b = (const void *)n;
			if ((b->in.at == 0 ? (char)b->in.constant : data[b->in.at]) == 0)
				then = b->otherwise;
			break;
		}
		case TAG_GATE: {
			uint32_t *closed = (void *)(data + ((const cf_gate *)(const void *)n)->closed);
			if (to->port != 0) {
				*closed = to->port == 3 ? *closed ^ 1 : to->port - 1;
				continue;
			}
			if (*closed != 0)
				continue;
			break;
		}
		case TAG_COUNTER: {
			const cf_counter *c = (const void *)n;
			int32_t *count = (void *)(data + c->count);
			++*count;
			if (to->port == 1) {
				*count = 0;
				continue;
			}
			if (*count < in(&c->limit, data))
				continue;
			*count = 0;
			break;
		}
		case TAG_SET: {
			const cf_set *s = (const void *)n;
			*(int32_t *)(void *)(data + s->to) = in(&s->value, data);
			break;
		}
		case TAG_ADD: {
			const cf_set *s = (const void *)n;
			*(uint32_t *)(void *)(data + s->to) += (uint32_t)in(&s->value, data);
			break;
		}
		case TAG_EQUAL: {
			const cf_two *t = (const void *)n;
			if (in(&t->a, data) != in(&t->b, data))
				then = t->otherwise;
			break;
		}
		case TAG_LESS: {
			const cf_two *t = (const void *)n;
			if (in(&t->a, data) >= in(&t->b, data))
				then = t->otherwise;
			break;
		}
		case TAG_ACTION: {
			const cf_action *a = (const void *)n;
			calls[a->of](r, data, blob + a->parameters.offset);
			break;
		}
		default:
			return 0;
		}
		if (then.count == 0)
			continue;
		if (next != end) {
			r->stack[top].next = next;
			r->stack[top++].end = end;
		}
		next = then.offset;
		end = next + then.count * (uint32_t)sizeof *to;
	}
}

static char *chunk_at(const cf_instances *p, uint64_t handle) {
	uint32_t i = (uint32_t)handle;
	if (i >= p->count || p->generations[i] != handle >> 32 || p->states[i] != 1)
		return 0;
	return p->chunks + (size_t)i * p->size;
}

static __attribute__((noinline)) int fire(cf_runner *r, const char *blob, const cf_instances *p, uint64_t handle,
    uint64_t key) {
	uint32_t ready = 0;
	const cf_event *e;
	char *data;
	int done = 1;
	if (!__atomic_compare_exchange_n(&r->word, &ready, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return 0;
	data = chunk_at(p, handle);
	e = find(blob, key);
	if (data != 0 && e != 0)
		done = run(r, blob, data, e->n.then);
	__atomic_store_n(&r->word, 0, __ATOMIC_SEQ_CST);
	return done;
}

void cf_fire(cf_runner *r, const char *blob, const cf_instances *p, uint64_t handle, uint64_t key, int n) {
	for (int i = 0; i < n; i++)
		if (!fire(r, blob, p, handle, key))
			return;
}
