/* The zones of a run: files of our own, so that the installed tzdata decides nothing. */
#ifndef RS_SIMULATE_ZONES_H
#define RS_SIMULATE_ZONES_H

#include <stdbool.h>
#include <stddef.h>

/* Write tzdata.zi, UTC and Europe/Berlin into a fresh directory. False: it could not be written. */
bool zones_make(char *ret_directory, size_t size);
void zones_remove(const char *directory);

#endif
