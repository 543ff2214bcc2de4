/* What systemd is told (sd_notify). Without systemd every call does nothing. */
#ifndef RS_NOTIFY_H
#define RS_NOTIFY_H

#include <stdint.h>

/* The daemon is up: its loops turn. Thread: any. Blocks: never. */
void notify_ready(void);
/* Reading settings again: between it and the next notify_ready. */
void notify_reloading(void);
void notify_stopping(void);

/* One line for `systemctl status`. */
void notify_status(const char *text);

/* Feed the watchdog. Call only while every loop turns. */
void notify_watchdog(void);

/* How often systemd wants to be fed, in milliseconds (feed at half of it); 0: no watchdog. */
int64_t notify_watchdog_ms(void);

#endif
