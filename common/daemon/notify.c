#include "notify.h"

#include <inttypes.h>

#include <systemd/sd-daemon.h>

#include "clock.h"

void notify_ready(void)
{
    (void)sd_notify(0, "READY=1");
}

/* MONOTONIC_USEC is what Type=notify-reload of systemd 253 and later wants as well. */
void notify_reloading(void)
{
    struct timespec now = clock_wait_end(0);
    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
                     (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

void notify_stopping(void)
{
    (void)sd_notify(0, "STOPPING=1");
}

void notify_status(const char *text)
{
    (void)sd_notifyf(0, "STATUS=%s", text);
}

void notify_watchdog(void)
{
    (void)sd_notify(0, "WATCHDOG=1");
}

int64_t notify_watchdog_ms(void)
{
    uint64_t us = 0;
    return sd_watchdog_enabled(0, &us) > 0 ? (int64_t)(us / 1000) : 0;
}
