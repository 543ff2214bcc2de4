#include "store_pg_heard.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void store_pg_hear(struct store_pg_heard *h, const char *channel)
{
    char *place = NULL;
    for (size_t i = 0; i < HEARD_MAX; i++) {
        if (strcmp(h->channels[i], channel) == 0) {
            return;
        }
        place = place == NULL && h->channels[i][0] == '\0' ? h->channels[i] : place;
    }
    if (place != NULL) {
        (void)snprintf(place, sizeof h->channels[0], "%s", channel);
    }
}

bool store_pg_heard_take(struct store_pg_heard *h, const char *channel)
{
    for (size_t i = 0; i < HEARD_MAX; i++) {
        if (strcmp(h->channels[i], channel) == 0) {
            h->channels[i][0] = '\0';
            return true;
        }
    }
    return false;
}
