#include "notify.h"

#include <systemd/sd-daemon.h>

void notify_ready(void)
{
    (void)sd_notify(0, "READY=1");
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
