#include "instant_text.h"

#include <stdio.h>
#include <string.h>

#include "civil.h"

bool text_is_date(const char *text)
{
    return strlen(text) == 10 && text[4] == '-' && text[7] == '-';
}

enum status instant_text_parse(const char *text, utc_us *ret, struct error *err)
{
    if (!text_is_date(text)) {
        return rfc3339_parse(text, ret, err);
    }
    char whole[RFC3339_TEXT_MAX];
    (void)snprintf(whole, sizeof whole, "%.10sT00:00:00Z", text);
    return rfc3339_parse(whole, ret, err);
}
