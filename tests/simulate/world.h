/* A simulated cluster: its parts, how they are connected, and what of it is told to the history. */
#ifndef RS_SIMULATE_WORLD_H
#define RS_SIMULATE_WORLD_H

#include "checker.h"
#include "history.h"
#include "kernel.h"

#define WORLD_SCHEDULES_MAX 24

/* Whom a process can be cut from. */
enum service {
    SERVICE_ZOOKEEPER,
    SERVICE_POSTGRESQL,
    SERVICE_KAFKA,
};
#define SERVICES 3

enum cut {
    CUT_NOTHING = 0,
    CUT_TO = 1,   /* what the process sends is lost */
    CUT_FROM = 2, /* what it should get is lost */
};

struct world {
    struct setup setup;
    struct history *history; /* NULL: nobody listens */
    bool trace;
    int64_t base_us; /* UTC at true time 0 */
    unsigned cut[KERNEL_PROCESSES_MAX][SERVICES];
    int64_t slow[KERNEL_PROCESSES_MAX][SERVICES]; /* further latency, ns */
    int64_t calls;                                /* numbers given */
    char zone_directory[128];
    char violation[200]; /* what the world itself has seen; "": nothing */
};
extern struct world world;

/* One message's way between a process and a service, ns. */
int64_t world_latency(int node, enum service service);
bool world_is_cut(int node, enum service service, enum cut direction);

/* Add a fact; at_us, and node and node_us where node is a process's, are filled in. */
void world_fact(struct fact fact);
/* The same of the process that runs now. */
void world_own_fact(struct fact fact);

int64_t world_us(void);                    /* true time */
uint64_t world_identity(const char *uuid); /* as one number; never 0 for a uuid */
int world_scope(const char *name);         /* -1: none of that name */
const char *world_scope_name(int scope);

/* An artifact's file is gone: it must be nobody's (I7). */
void world_file_gone(const char *path);
/* Somebody establishes: is the mark in ZooKeeper ahead of this database? */
struct transaction;
void world_mark_looked_at(const struct transaction *t);

/* One run. */
struct run {
    uint64_t seed;
    int64_t steps_max; /* 0: until its time is over */
    bool trace;
    const bool *keep; /* of its faults; NULL: all */
    bool is_checked;
};

struct outcome_of_run {
    bool failed;
    char invariant[16];
    char text[VIOLATION_TEXT_MAX];
    struct checker_tally tally;
    int64_t steps, simulated_us;
    size_t jobs, succeeded;
};

/* The history stays until the next run, for whoever wants its end. */
void world_run(const struct run *run, struct outcome_of_run *ret_outcome);
void world_tail(size_t lines);
void world_end(void);

#endif
