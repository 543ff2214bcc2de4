#include "backfill_json.h"

#include <jansson.h>
#include <string.h>

#include "civil.h"

static json_t *instant_json(utc_us t)
{
    char text[RFC3339_TEXT_MAX];
    if (utc_is_none(t)) {
        return json_null();
    }
    rfc3339_format_utc(t, text);
    return json_string(text);
}

char *backfill_firings_json(const struct plan_candidates *list,
                            const struct backfill_window *windows)
{
    json_t *all = json_array();
    for (size_t i = 0; all != NULL && i < list->count; i++) {
        const struct firing *f = &list->firings[i];
        char nominal[RFC3339_TEXT_MAX];
        char date[DATE_TEXT_MAX];
        rfc3339_format_utc(utc_from_seconds(f->nominal.s), nominal);
        nominal[strlen(nominal) - 1] = '\0'; /* the Z */
        business_date_format(f, date);
        json_t *one = json_pack("[s,o,s,i,s,o,o]", list->keys[i], instant_json(f->at), nominal,
                                (int)f->offset_s, date, instant_json(windows[i].start),
                                instant_json(windows[i].end));
        if (one == NULL || json_array_append_new(all, one) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    char *text = all != NULL ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return text;
}
