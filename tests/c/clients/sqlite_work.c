/* sqlite_work.c - a database in memory, timed: glibc's malloc against a heap.
 *
 *   sqlite_work glibc | heap [PARKED]
 *
 * It prints nanoseconds of the processor, a sum of all results, which must be equal for both, and
 * the heap's peak. One thread; the heap's calls lock. Inserts, updates and deletes in transactions
 * of a thousand, selects by key, by range and by index: 200,000 steps. */
#define MOST (256u << 20)

#include "sqlite_memory.h"

enum { FROGS = 50000, PONDS = 1009 };

static uint64_t seed = 88172645463325252u;

static int below(int n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int)(seed % (uint64_t)n);
}

static void must(int code, int want) {
    if (code != want) {
        fprintf(stderr, "SQLite says %d: %s\n", code, sqlite3_errstr(code));
        exit(1);
    }
}

static void run_sql(sqlite3 *db, const char *sql) { must(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK); }

/* Steps a statement `times` times, with `bind` before each; returns the sum of all rows' first
 * columns. */
static uint64_t steps(sqlite3 *db, const char *sql, int times, void (*bind)(sqlite3_stmt *, int)) {
    sqlite3_stmt *statement;
    uint64_t sum = 0;
    int i, code;
    must(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    for (i = 0; i < times; i++) {
        if (i % 1000 == 0)
            run_sql(db, "BEGIN");
        bind(statement, i);
        while ((code = sqlite3_step(statement)) == SQLITE_ROW)
            sum += (uint64_t)sqlite3_column_int64(statement, 0);
        must(code, SQLITE_DONE);
        must(sqlite3_reset(statement), SQLITE_OK);
        if (i % 1000 == 999 || i + 1 == times)
            run_sql(db, "COMMIT");
    }
    must(sqlite3_finalize(statement), SQLITE_OK);
    return sum;
}

static void frog(sqlite3_stmt *s, int i) {
    char text[200];
    int length = snprintf(text, sizeof text, "frog %d of pond %d", i * 7919 % FROGS, below(PONDS));
    must(sqlite3_bind_text(s, 1, text, length, SQLITE_TRANSIENT), SQLITE_OK);
    must(sqlite3_bind_int(s, 2, below(PONDS)), SQLITE_OK);
    memset(text, 'x', sizeof text);
    must(sqlite3_bind_text(s, 3, text, below(sizeof text), SQLITE_TRANSIENT), SQLITE_OK);
}

static void key(sqlite3_stmt *s, int i) {
    (void)i;
    must(sqlite3_bind_int(s, 1, 1 + below(FROGS)), SQLITE_OK);
}

static void pond(sqlite3_stmt *s, int i) { must(sqlite3_bind_int(s, 1, i % PONDS), SQLITE_OK); }

static void range(sqlite3_stmt *s, int i) {
    int from = below(FROGS);
    (void)i;
    must(sqlite3_bind_int(s, 1, from), SQLITE_OK);
    must(sqlite3_bind_int(s, 2, from + 20), SQLITE_OK);
}

static void note(sqlite3_stmt *s, int i) {
    char text[400];
    key(s, i);
    memset(text, 'y', sizeof text);
    must(sqlite3_bind_text(s, 2, text, below(sizeof text), SQLITE_TRANSIENT), SQLITE_OK);
}

static uint64_t work(void) {
    sqlite3 *db;
    uint64_t sum = 0;
    must(sqlite3_open(":memory:", &db), SQLITE_OK);
    run_sql(db, "CREATE TABLE frogs(id INTEGER PRIMARY KEY, name TEXT, pond INT, notes TEXT)");
    run_sql(db, "CREATE INDEX by_pond ON frogs(pond)");
    sum += steps(db, "INSERT INTO frogs(name, pond, notes) VALUES (?1, ?2, ?3)", FROGS, frog);
    run_sql(db, "CREATE INDEX by_name ON frogs(name)");
    sum += steps(db, "SELECT pond FROM frogs WHERE id = ?1", 60000, key);
    sum += steps(db, "SELECT count(*), max(name) FROM frogs WHERE pond = ?1", 4 * PONDS, pond);
    sum += steps(db, "SELECT length(name) FROM frogs WHERE id BETWEEN ?1 AND ?2 ORDER BY name", 5000, range);
    sum += steps(db, "UPDATE frogs SET notes = ?2 WHERE id = ?1", 40000, note);
    sum += steps(db, "DELETE FROM frogs WHERE id = ?1", 25000, key);
    sum += steps(db, "INSERT INTO frogs(name, pond, notes) VALUES (?1, ?2, ?3)", 20000, frog);
    sum += steps(db, "SELECT sum(n) FROM (SELECT count(*) AS n FROM frogs GROUP BY name ORDER BY n DESC) WHERE n <> ?1",
                 1, key);
    must(sqlite3_close(db), SQLITE_OK);
    return sum;
}

int main(int argc, char **argv) {
    int heap = argc > 1 && strcmp(argv[1], "heap") == 0;
    uint64_t from, ns, sum;
    if (heap) {
        client_sizes(argc - 1, argv + 1);
        client_begin(MOST, 0);
        must(sqlite_take_client(), SQLITE_OK);
    }
    must(sqlite3_initialize(), SQLITE_OK);
    from = client_ns();
    sum = work();
    ns = client_ns() - from;
    must(sqlite3_shutdown(), SQLITE_OK);
    printf("%llu %llu %llu\n", (unsigned long long)ns, (unsigned long long)sum,
        heap ? (unsigned long long)upfront_heap_peak(client.arena) : 0);
    return heap && (client_end(), client_failures != 0);
}
