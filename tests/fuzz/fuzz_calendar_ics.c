/* Any bytes as an iCalendar file: refused with one line, or days that a calendar can be made of. */
#include <string.h>

#include "calendar_ics.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct calendar_source source = {.text = (const char *)data, .size = size, .file = "f"};
    struct calendar_definition d;
    struct error err = {.text = ""};
    struct calendar *c = NULL;
    calendar_definition_init(&d);
    enum status s = calendar_ics_parse(&source, &d, &err);
    if (s != STATUS_OK) {
        MUST_HOLD(err.text[0] == 'f');
        fuzz_refusal(&err);
    } else {
        MUST_HOLD(d.entry_count > 0 && calendar_definition_compile(&d, &c, &err) == STATUS_OK);
        for (size_t i = 0; i < d.entry_count; i++) {
            MUST_HOLD(!calendar_is_business_day(c, d.entries[i].day));
            MUST_HOLD(calendar_text_is_clean(d.entries[i].label));
            MUST_HOLD(i == 0 || d.entries[i].day > d.entries[i - 1].day);
        }
        calendar_free(c);
    }
    calendar_definition_done(&d);
    return 0;
}
