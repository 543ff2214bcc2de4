#include "settings_shared.h"

#include <string.h>

#include "notify.h"

void shared_check_tls(struct settings_judge *judge, const char *certificate_file,
                      const char *key_file)
{
    if (certificate_file[0] != '\0' && key_file[0] == '\0') {
        settings_fault(judge, "http_tls_certificate_file",
                       "has no key beside it; write http_tls_key_file as well");
    } else if (key_file[0] != '\0' && certificate_file[0] == '\0') {
        settings_fault(judge, "http_tls_key_file",
                       "has no certificate beside it; write http_tls_certificate_file as well");
    }
}

void shared_check_names(struct settings_judge *judge, const char *key,
                        const struct setting_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(list->items[i], list->items[k]) == 0) {
                settings_fault(judge, key, "\"%s\" is named twice; remove one", list->items[i]);
            }
        }
    }
}

void shared_check_watchdog(struct settings_judge *judge, int64_t stuck_ms, const char *consequence)
{
    int64_t watchdog_ms = notify_watchdog_ms();
    if (watchdog_ms > 0 && settings_sound(judge, "stuck_ms") && stuck_ms >= watchdog_ms) {
        settings_warn(judge, "stuck_ms",
                      "%lld is not below WatchdogSec of the unit (%lld ms): %s; raise WatchdogSec "
                      "in a drop-in",
                      (long long)stuck_ms, (long long)watchdog_ms, consequence);
    }
}
