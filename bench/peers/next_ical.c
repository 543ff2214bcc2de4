/* Peer of bench/next in C: libical's recurrence rules, without a zone. Prints `peer figure rate` by
 * processor time.
 *
 * Usage: next_ical SECONDS      (of each figure) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <libical/ical.h>

static double cpu_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void rate(const char *figure, const char *text, double seconds)
{
    struct icalrecurrencetype rule = icalrecurrencetype_from_string(text);
    struct icaltimetype start = icaltime_from_string("20190107T093000");
    icalrecur_iterator *it = icalrecur_iterator_new(rule, start);
    uint64_t state = 20261130;
    long count = 0;
    double begin = cpu_s();
    while (cpu_s() - begin < seconds) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        time_t at = 1577836800 + (time_t)(state % 631152000u); /* 2020 to 2040 */
        struct icaltimetype from = icaltime_from_timet_with_zone(at, 0, NULL);
        if (it == NULL || !icalrecur_iterator_set_start(it, from)) {
            (void)fprintf(stderr, "next_ical: %s does not start\n", figure);
            exit(1);
        }
        (void)icalrecur_iterator_next(it);
        count++;
    }
    (void)printf("libical %s %.0f\n", figure, (double)count / (cpu_s() - begin));
    icalrecur_iterator_free(it);
}

int main(int count, char **arguments)
{
    double seconds = count > 1 ? strtod(arguments[1], NULL) : 1;
    rate("rrule_weekly", "FREQ=WEEKLY;BYDAY=MO,WE,FR", seconds);
    rate("rrule_monthly", "FREQ=MONTHLY;BYDAY=-1FR", seconds);
    return 0;
}
