/* simulate: runs the product's schedulers and workers in a simulated cluster, one seed after
 * another, and judges each run. A seed that fails is told with the command that runs it again. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "shrink.h"
#include "world.h"
#include "zones.h"

#define TAIL            40
#define SHRINK_RUNS_MAX 400

struct wish {
    uint64_t seed, count, fresh;
    int64_t steps;
    bool trace, shrink, list, quiet;
    const char *fixed; /* file of seeds */
};

struct sum {
    uint64_t runs, failed;
    int64_t steps, simulated_us, jobs, succeeded;
    struct checker_tally tally;
};

static void usage(void)
{
    (void)puts("simulate [--seed S] [--count K] [--fixed FILE] [--fresh N] [--steps N] [--trace]\n"
               "         [--shrink] [--faults] [--quiet]\n"
               "  --seed S      the first seed (1)\n"
               "  --count K     so many seeds from it on (1, or 0 with --fixed or --fresh)\n"
               "  --fixed FILE  the seeds in this file, one a line, # begins a comment\n"
               "  --fresh N     N seeds that nobody has run, told first\n"
               "  --steps N     end each run after N steps\n"
               "  --trace       print all that happens\n"
               "  --shrink      make the list of faults of a seed that fails as short as it gets\n"
               "  --faults      print the list of faults of each seed and do not run it\n"
               "  --quiet       print only what fails, and the sum\n"
               "Exit status: 0 all went well, 1 a seed failed, 2 usage.");
}

static uint64_t number(const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text) {
        (void)fprintf(stderr, "simulate: \"%s\" is not a number\n", text);
        exit(2);
    }
    return n;
}

static struct wish wish_read(int argc, char **argv)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'c'},
        {"fixed", required_argument, NULL, 'F'},
        {"fresh", required_argument, NULL, 'n'},
        {"steps", required_argument, NULL, 'N'},
        {"trace", no_argument, NULL, 't'},
        {"shrink", no_argument, NULL, 'k'},
        {"faults", no_argument, NULL, 'l'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct wish w = {.seed = 1, .count = UINT64_MAX};
    int c = 0;
    while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (c == 's') {
            w.seed = number(optarg);
        } else if (c == 'c') {
            w.count = number(optarg);
        } else if (c == 'F') {
            w.fixed = optarg;
        } else if (c == 'n') {
            w.fresh = number(optarg);
        } else if (c == 'N') {
            w.steps = (int64_t)number(optarg);
        } else if (c == 't') {
            w.trace = true;
        } else if (c == 'k') {
            w.shrink = true;
        } else if (c == 'l') {
            w.list = true;
        } else if (c == 'q') {
            w.quiet = true;
        } else {
            usage();
            exit(c == 'h' ? 0 : 2);
        }
    }
    if (w.count == UINT64_MAX) {
        w.count = w.fixed != NULL || w.fresh > 0 ? 0 : 1;
    }
    return w;
}

static void faults_print(uint64_t seed, const bool *keep)
{
    struct fault_list list;
    faults_make(seed, &list);
    for (size_t i = 0; i < list.count; i++) {
        char text[200];
        fault_format(&list.faults[i], text, sizeof text);
        if (keep == NULL || keep[i]) {
            (void)printf("  %2zu  %s\n", i, text);
        }
    }
}

/* Shrinking ---------------------------------------------------------------------------------------
 */

struct shrinking {
    uint64_t seed;
    char invariant[16];
};

static bool fails_again(void *context, const bool *keep, size_t count)
{
    const struct shrinking *s = context;
    struct run run = {.seed = s->seed, .keep = keep, .is_checked = true};
    struct outcome_of_run o;
    (void)count;
    world_run(&run, &o);
    return o.failed && strcmp(o.invariant, s->invariant) == 0;
}

static void shrink(uint64_t seed, const struct outcome_of_run *o)
{
    struct shrinking s = {.seed = seed};
    struct fault_list list;
    bool keep[FAULTS_MAX];
    size_t runs = 0;
    memcpy(s.invariant, o->invariant, sizeof s.invariant);
    faults_make(seed, &list);
    for (size_t i = 0; i < list.count; i++) {
        keep[i] = true;
    }
    size_t left = shrink_list(fails_again, &s, keep, list.count, SHRINK_RUNS_MAX, &runs);
    (void)printf("%zu of %zu faults are enough (%zu runs):\n", left, list.count, runs);
    faults_print(seed, keep);
    struct run run = {.seed = seed, .keep = keep, .is_checked = true};
    struct outcome_of_run again;
    world_run(&run, &again);
    (void)printf("%s: %s\nthe last of %zu facts:\n", again.invariant, again.text,
                 (size_t)again.tally.facts);
    world_tail(TAIL);
}

/* Seeds -------------------------------------------------------------------------------------------
 */

static void sum_add(struct sum *sum, const struct outcome_of_run *o)
{
    struct checker_tally *t = &sum->tally;
    const struct checker_tally *u = &o->tally;
    sum->runs++;
    sum->failed += o->failed ? 1 : 0;
    sum->steps += o->steps;
    sum->simulated_us += o->simulated_us;
    sum->jobs += (int64_t)o->jobs;
    sum->succeeded += (int64_t)o->succeeded;
    t->facts += u->facts;
    t->calls += u->calls;
    t->fenced += u->fenced;
    t->establishes += u->establishes;
    t->takeovers += u->takeovers;
    t->occurrences += u->occurrences;
    t->gaps += u->gaps;
    t->firings_covered += u->firings_covered;
    t->claims += u->claims;
    t->reaps += u->reaps;
    t->artifacts += u->artifacts;
    t->failovers += u->failovers;
    t->commits_lost += u->commits_lost;
    t->resumes += u->resumes;
}

static void seed_run(const struct wish *w, uint64_t seed, struct sum *sum)
{
    struct run run = {.seed = seed, .steps_max = w->steps, .trace = w->trace, .is_checked = true};
    struct outcome_of_run o;
    if (w->list) {
        const struct run begun = {.seed = seed,
                                  .steps_max = 1}; /* draws the cluster they are for */
        world_run(&begun, &o);
        (void)printf("seed %" PRIu64 "\n", seed);
        faults_print(seed, NULL);
        return;
    }
    world_run(&run, &o);
    sum_add(sum, &o);
    if (!o.failed) {
        if (!w->quiet) {
            (void)printf("seed %" PRIu64 ": %.1f s, %" PRId64 " steps, %zu jobs, %zu succeeded, "
                         "%" PRId64 " takeovers\n",
                         seed, (double)o.simulated_us / 1e6, o.steps, o.jobs, o.succeeded,
                         o.tally.takeovers);
        }
        return;
    }
    (void)printf("seed %" PRIu64 " FAILED at %.6f s: %s: %s\n", seed, (double)o.simulated_us / 1e6,
                 o.invariant, o.text);
    if (w->shrink) {
        shrink(seed, &o);
    } else {
        faults_print(seed, NULL);
        world_tail(TAIL);
    }
    (void)printf("run it again: simulate --seed %" PRIu64 " [--trace | --shrink]\n", seed);
    (void)fflush(stdout);
}

static int fixed_run(const struct wish *w, struct sum *sum)
{
    char line[128];
    FILE *f = fopen(w->fixed, "r");
    if (f == NULL) {
        (void)fprintf(stderr, "simulate: cannot read %s: %s\n", w->fixed, strerror(errno));
        return 2;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        char *end = NULL;
        uint64_t seed = strtoull(line, &end, 10);
        if (end != line) {
            seed_run(w, seed, sum);
        }
    }
    (void)fclose(f);
    return 0;
}

static void sum_print(const struct sum *s)
{
    const struct checker_tally *t = &s->tally;
    (void)printf("%" PRIu64 " seeds, %" PRIu64 " failed; %.0f simulated seconds, %" PRId64
                 " steps, %" PRId64 " facts\n",
                 s->runs, s->failed, (double)s->simulated_us / 1e6, s->steps, t->facts);
    (void)printf("%" PRId64 " calls (%" PRId64 " fenced), %" PRId64 " establishes, %" PRId64
                 " takeovers, %" PRId64 " resumes, %" PRId64 " failovers (%" PRId64
                 " commits lost)\n",
                 t->calls, t->fenced, t->establishes, t->takeovers, t->resumes, t->failovers,
                 t->commits_lost);
    (void)printf("%" PRId64 " occurrences, %" PRId64 " gaps, %" PRId64 " firings covered, %" PRId64
                 " claims, %" PRId64 " reaps, %" PRId64 " artifacts, %" PRId64 " of %" PRId64
                 " jobs succeeded\n",
                 t->occurrences, t->gaps, t->firings_covered, t->claims, t->reaps, t->artifacts,
                 s->succeeded, s->jobs);
}

static uint64_t fresh_seed(void)
{
    uint32_t seed = 0;
    FILE *f = fopen("/dev/urandom", "r");
    if (f == NULL || fread(&seed, sizeof seed, 1, f) != 1) {
        (void)fprintf(stderr, "simulate: no fresh seeds to be had from /dev/urandom\n");
        exit(2);
    }
    (void)fclose(f);
    return (uint64_t)seed * 1000;
}

int main(int argc, char **argv)
{
    struct wish w = wish_read(argc, argv);
    struct sum sum = {.runs = 0};
    int status = 0;
    kernel_memory_begin();
    if (!zones_make(world.zone_directory, sizeof world.zone_directory)) {
        (void)fprintf(stderr, "simulate: cannot write time zones to %s\n", world.zone_directory);
        return 2;
    }
    for (uint64_t i = 0; i < w.count; i++) {
        seed_run(&w, w.seed + i, &sum);
    }
    if (w.fixed != NULL) {
        status = fixed_run(&w, &sum);
    }
    if (w.fresh > 0) {
        uint64_t from = fresh_seed();
        (void)printf("fresh seeds: %" PRIu64 " to %" PRIu64 "\n", from, from + w.fresh - 1);
        for (uint64_t i = 0; i < w.fresh; i++) {
            seed_run(&w, from + i, &sum);
        }
    }
    if (!w.list) {
        sum_print(&sum);
    }
    world_end();
    zones_remove(world.zone_directory);
    return status != 0 ? status : sum.failed > 0 ? 1 : 0;
}
