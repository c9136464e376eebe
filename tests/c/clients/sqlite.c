/* sqlite.c - SQLite with all its memory in a heap: until SQLITE_NOMEM, from which the reserve helps
 * it out. */
#include "sqlite_memory.h"

/* The memory for ROLLBACK, DROP and a check of the whole database. */
#define RESERVE (384u << 10)

static int run_sql(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL); }

/* Inserts frogs up to a number, or until an error. */
static int insert(sqlite3 *db, int from, int to) {
    sqlite3_stmt *statement;
    int i, code = sqlite3_prepare_v2(db, "INSERT INTO frogs(name, pond, notes) VALUES (?1, ?2, zeroblob(?3))", -1,
        &statement, NULL);
    for (i = from; i < to && code == SQLITE_OK; i++) {
        char name[32];
        snprintf(name, sizeof name, "frog %d", i * 7919 % 10007);
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(statement, 2, i % 37);
        sqlite3_bind_int(statement, 3, i * 31 % 700);
        code = sqlite3_step(statement);
        if (code == SQLITE_DONE)
            code = sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    return code;
}

/* Returns the first column of the first row; -1: an error. */
static int number(sqlite3 *db, const char *sql) {
    sqlite3_stmt *statement;
    int n = -1;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        n = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return n;
}

static int is_sound(sqlite3 *db) {
    sqlite3_stmt *statement;
    int sound = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(statement, 0),
                    "ok") == 0;
    sqlite3_finalize(statement);
    return sound;
}

static const char *const day[] = {
    "CREATE TABLE frogs(id INTEGER PRIMARY KEY, name TEXT, pond INT, notes BLOB)",
    "CREATE INDEX by_pond ON frogs(pond, name)",
    "BEGIN",
    NULL, /* inserts */
    "COMMIT",
    "UPDATE frogs SET notes = zeroblob(900) WHERE pond < 9",
    "CREATE TEMP TABLE ponds AS SELECT pond, count(*) AS n, max(name) AS last FROM frogs GROUP BY pond ORDER BY last",
    "DELETE FROM frogs WHERE pond % 3 = 1",
    "VACUUM",
};

/* Does all the work and returns its last code. */
static int work(sqlite3 *db) {
    size_t i;
    int code = SQLITE_OK;
    for (i = 0; i < sizeof day / sizeof *day && code == SQLITE_OK; i++)
        code = day[i] == NULL ? insert(db, 0, 500) : run_sql(db, day[i]);
    return code;
}

static int drops_refused;

/* Runs a transaction that is too large, then commits rows until there is no room for one more. */
static void to_the_brim(sqlite3 *db) {
    int before = number(db, "SELECT count(*) FROM frogs"), code = run_sql(db, "BEGIN");
    if (code == SQLITE_OK)
        code = insert(db, 0, 1 << 30);
    check(code == SQLITE_NOMEM, "the brim is SQLITE_NOMEM");
    check(sqlite3_get_autocommit(db) || run_sql(db, "ROLLBACK") == SQLITE_OK, "ROLLBACK takes no memory");
    check(insert(db, 0, 1 << 30) == SQLITE_NOMEM, "the brim is SQLITE_NOMEM again");
    drops_refused += run_sql(db, "DROP TABLE frogs") == SQLITE_NOMEM;
    client_clean_up();
    check(is_sound(db), "integrity_check at the brim");
    check(number(db, "SELECT count(*) FROM frogs") > before, "committed rows are there");
    check(number(db, "SELECT count(*) FROM frogs WHERE pond % 3 = 1 AND id <= 500") == 0, "deleted rows aren't");
}

static int run(uint64_t size) {
    sqlite3 *db = NULL;
    int code, done;
    client_begin(size, RESERVE);
    code = sqlite3_initialize();
    if (code == SQLITE_OK)
        code = sqlite3_open(":memory:", &db);
    if (code == SQLITE_OK)
        code = work(db);
    check(code == SQLITE_OK || code == SQLITE_NOMEM, "SQLite's own error");
    done = code == SQLITE_OK;
    if (done)
        to_the_brim(db);
    client_clean_up();
    if (db != NULL && !done) {
        check(sqlite3_get_autocommit(db) || run_sql(db, "ROLLBACK") == SQLITE_OK,
            "ROLLBACK of a transaction that didn't fit");
        check(is_sound(db), "integrity_check of the rest");
    }
    if (db != NULL) {
        /* Debian's SQLite overwrites deleted rows and keeps a copy of each page for that: a DROP
         * would need as much memory as it frees. */
        code = run_sql(db, "PRAGMA secure_delete = OFF; DROP TABLE IF EXISTS frogs");
        check(code == SQLITE_OK && is_sound(db), "DROP");
    }
    check(sqlite3_close(db) == SQLITE_OK && sqlite3_shutdown() == SQLITE_OK, "closed");
    client_end();
    return done;
}

static void *one_database(void *arg) {
    sqlite3 *db;
    int *wrong = (int *)arg, i;
    for (i = 0; i < 3; i++) {
        *wrong += sqlite3_open(":memory:", &db) != SQLITE_OK || work(db) != SQLITE_OK || !is_sound(db);
        sqlite3_close(db);
    }
    return NULL;
}

/* Without its own statistics SQLite takes no lock around its memory: callbacks.h has the only
 * lock. */
static void threads(void) {
    enum { THREADS = 4 };
    pthread_t ids[THREADS];
    int wrong[THREADS] = {0}, i;
    client_begin(MOST, 0);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    for (i = 0; i < THREADS; i++)
        check(pthread_create(&ids[i], NULL, one_database, &wrong[i]) == 0, "a thread");
    for (i = 0; i < THREADS; i++) {
        pthread_join(ids[i], NULL);
        check(wrong[i] == 0, "a database of a thread's own");
    }
    check(sqlite3_shutdown() == SQLITE_OK, "closed");
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1);
    client_end();
}

int main(int argc, char **argv) {
    int sizes = client_sizes(argc, argv);
    check(sqlite_take_client() == SQLITE_OK, "SQLITE_CONFIG_MALLOC");
    client_shrink(sizes, 5 << 19, RESERVE, run);
    check(drops_refused > 0, "without the reserve a full database can't even DROP");
    threads();
    return client_done();
}
