/* Cron expressions that are refused: the text says which field and what to write instead, and what
 * it says to write is accepted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cron.h"

static void check_refused(const char *text, const char *why)
{
    struct cron c;
    memset(&c, 0x5a, sizeof c);
    const struct cron untouched = c;
    struct error err = {.text = ""};
    enum status s = cron_parse(text, &c, &err);
    if (s != STATUS_INVALID || strstr(err.text, why) == NULL || strchr(err.text, '\n') != NULL) {
        fail_msg("\"%s\": %s \"%s\", wanted \"%s\"", text, status_name(s), err.text, why);
    }
    assert_memory_equal(&c, &untouched, sizeof c);
}

struct refusal {
    const char *text, *why;
};

/* table: exempt from the length limit */
static const struct refusal REFUSALS[] = {
    {"", "0 fields"},
    {"   ", "0 fields"},
    {"* * * *", "4 fields"},
    {"1 2 3 4 5 6 7 8", "at least 8 fields"},
    {"5/15 * * * *", "write \"5-59/15\""},
    {"1,5/15 * * * *", "write \"5-59/15\""},
    {"5/90 * * * *", "write \"5-59/2\""},
    {"5/ * * * *", "write \"5-59/2\""},
    {"* 8/2 * * *", "write \"8-23/2\""},
    {"0 0 1/2 * *", "write \"1-31/2\""},
    {"0 0 * MAR/3 *", "write \"3-12/3\""},
    {"0 0 0 1 1 * 2026/2", "write \"2026-2199/2\""},
    {"0 6 * * 7-1", "day of week \"7-1\": the range runs backwards; write \"0-1\""},
    {"0 6 * * 7-1/2", "write \"0-1/2\""},
    {"0 6 * * 5-1", "day of week \"5-1\": the range runs backwards; write \"5-6,0-1\""},
    {"0 6 * * 7/2", "day of week \"7/2\": a step needs a range; write \"0-6/2\""},
    {"* 22-2 * * *", "hour \"22-2\": the range runs backwards; write \"22-23,0-2\""},
    {"* 22-2/2 * * *", "write \"22,0,2\""},
    {"* 22-2/3 * * *", "write \"22,1\""},
    {"0 0 30-2/2 * *", "write \"30,1\""},
    {"0 0 * NOV-FEB *", "write \"11-12,1-2\""},
    {"0 0 * * FRI-MON", "write \"5-6,0-1\""},
    {"0 0 * * FRI-SUN", "write \"5-7\""},
    {"0 0 25-5 * *", "write \"25-31,1-5\""},
    {"0 0 0 1 1 * 2030-2027", "write \"2027-2030\""},
    {"*/61 * * * *", "/1 to /60"},
    {"1-30/61 * * * *", "such as \"1-30/2\""},
    {"*/0 * * * *", "/1 to /60"},
    {"*/90 * * * *", "every 90 minutes is no cron but kind interval, rule 90 minutes"},
    {"0/90 * * * *", "every 90 minutes is no cron but kind interval, rule 90 minutes"},
    {"0 */36 * * *", "every 36 hours is no cron but kind interval, rule 36 hours"},
    {"* */25 * * *", "/1 to /24"},
    {"0 0 */32 * *", "/1 to /31"},
    {"0 0 * */13 *", "/1 to /12"},
    {"0 0 * * */8", "/1 to /7"},
    {"*/ * * * *", "minute \"*/\""},
    {"1- * * * *", "minute \"1-\""},
    {"-1 * * * *", "minute \"-1\""},
    {"1,,2 * * * *", "beside a comma"},
    {",1 * * * *", "beside a comma"},
    {"1, * * * *", "beside a comma"},
    {"1.5 * * * *", "minute \"1.5\""},
    {"60 * * * *", "write 0 to 59"},
    {"* 24 * * *", "write 0 to 23"},
    {"99999999999999999999 * * * *", "out of range"},
    {"0 0 1 APRIL *", "write \"APR\""},
    {"0 0 * * FRIDAY", "write \"FRI\""},
    {"0 0 * XYZ *", "JAN to DEC"},
    {"0 0 * * FOOL", "SUN to SAT"},
    {"JAN 0 * * *", "minute \"JAN\""},
    {"L 0 * * *", "only for the day fields; write for example \"0-59\""},
    {"0 0 * L *", "only for the day fields; write for example \"1-12\""},
    {"0 5#2 * * *", "only for the day fields; write for example \"0-23\""},
    {"0 0 L-0 * *", "\"L\" for the last"},
    {"0 0 L-31 * *", "\"L-1\" to \"L-30\""},
    {"0 0 L-3W * *", "\"L-1\" to \"L-30\""},
    {"0 0 LX * *", "write \"L\""},
    {"0 0 0W * *", "\"1W\" to \"31W\""},
    {"0 0 32W * *", "\"1W\" to \"31W\""},
    {"0 0 1-15W * *", "write for example \"15W\""},
    {"0 0 WL * *", "unknown word"},
    {"0 0 5L * *", "\"L\" for the last day"},
    {"0 0 5#2 * *", "belong to the day of week"},
    {"0 0 * * 5W", "W is only for the day of month"},
    {"0 0 * * 8L", "8 is out of range"},
    {"0 0 * * L", "\"SAT\" or \"SUN\""},
    {"0 0 * * 5#0", "\"5#1\" to \"5#5\""},
    {"0 0 * * 5#6", "\"5#1\" to \"5#5\""},
    {"0 0 * * 5#", "\"5#1\" to \"5#5\""},
    {"0 0 * * 1-5L", "\"5#1\" to \"5#5\""},
    {"0 0 * * MON-FRI#2", "\"5#1\" to \"5#5\""},
    {"0 0 * * #2", "day of week \"#2\""},
    {"0 0 13 * +", "write for example \"+FRI\""},
    {"0 0 13 * +*", "write for example \"+FRI\""},
    {"0 0 13 * +?", "write for example \"+FRI\""},
    {"0 0 13 * ++5", "+ may only be"},
    {"0 0 13 * 1,+5", "+ may only be"},
    {"0 0 +1 * *", "+ may only be"},
    {"0 0 1 +1 *", "+ may only be"},
    {"0 0 1 * */2", "a * with a step"},
    {"0 0 */2 * 1", "\"+1\" as day of week if both must"},
    {"0 0 */2 * 1", "write \"1-31/2\" as day of month and \"1\" as day of week if either may"},
    {"0 0 */2,30 * */3", "write \"1-31/2,30\" as day of month and \"0-6/3\" as day of week"},
    {"0 0 *,5 * 1", "a * with a step"},
    {"? * * * *", "minute \"?\""},
    {"0 0 * ? *", "? may only stand alone in a day field; write \"*\""},
    {"0 0 1,? * *", "day of month \"?\""},
    {"0 0 0 1 1 * 1969", "1970 to 2199"},
    {"0 0 0 1 1 * 2200", "1970 to 2199"},
    {"H H * * *", "H (a hashed value)"},
    {"@Weekly", "write it in lower case, \"@weekly\""},
    {"@DAILY", "write it in lower case, \"@daily\""},
    {"@every 5m", "interval"},
    {"@reboot", "event"},
    {"@fortnightly", "unknown"},
    {"@daily x", "unknown"},
    {"CRON_TZ=UTC 0 0 * * *", "time zone"},
    {"0 0 * * *\n", "byte 10"},
    {"0 0 * * \xc3\xa9", "byte 9"},
    {"0 0 30 2 *", "never fires"},
    {"0 0 30 2 *", "write \"L\" as day of month"},
    {"0 0 30-31 FEB *", "never fires"},
    {"0 0 31W 4 *", "never fires"},
    {"0 0 0 29 2 * 2025-2027", "and year \"2025-2027\""},
    {"0 0 1-7 * +1#2", "days that occur together"},
    {"0 0 L-30 2,4 *", "never fires"},
    {"0 0 31 4,6,9,11 *", "never fires"},
};

static void test_a_refusal_names_the_field_and_what_to_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++) {
        check_refused(REFUSALS[i].text, REFUSALS[i].why);
    }
    char text[CRON_TEXT_MAX + 8];
    memset(text, ' ', sizeof text);
    memcpy(text, "0 0 * * *", 9);
    text[sizeof text - 1] = '\0';
    check_refused(text, "longer than 255 bytes");
    struct cron c;
    text[CRON_TEXT_MAX - 1] = '\0';
    assert_int_equal(cron_parse(text, &c, NULL), STATUS_OK);
}

/* The text of `words` with the one at `place` replaced. */
static void words_join(char *const words[8], int count, int place, const char *instead,
                       char text[512])
{
    size_t used = 0;
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, 512 - used, "%s%s", i > 0 ? " " : "",
                                 i == place ? instead : words[i]);
    }
}

/* Which word a field's name stands for, or -1. */
static int word_of_field(const char *name, int count)
{
    static const char *const names[] = {"second", "minute",      "hour", "day of month",
                                        "month",  "day of week", "year"};
    for (int i = 0; i < 7; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(name, names[i], n) == 0 && (name[n] == ' ' || name[n] == '\0')) {
            return count == 5 ? i - 1 : i;
        }
    }
    return -1;
}

/* The quoted text at p, behind its opening quote. Returns what follows the closing one. */
static const char *quoted_read(const char *p, char text[256])
{
    size_t n = strcspn(p, "\"");
    assert_true(n < 256);
    memcpy(text, p, n);
    text[n] = '\0';
    return p[n] == '"' ? p + n + 1 : p + n;
}

/* Put a suggestion where the message says it belongs: into a named field, for the item that was
 * refused, or for the whole. */
static void suggestion_place(const char *text, const char *message, const char *suggestion,
                             const char *behind, char ret_text[512])
{
    char copy[512];
    char item[256] = "";
    char *words[8];
    int count = 0;
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    for (char *w = strtok_r(copy, " ", &rest); w != NULL && count < 8;
         w = strtok_r(NULL, " ", &rest)) {
        words[count++] = w;
    }
    int place = strncmp(behind, " as ", 4) == 0 ? word_of_field(behind + 4, count) : -1;
    if (place >= 0) {
        words_join(words, count, place, suggestion, ret_text);
        return;
    }
    place = word_of_field(message, count);
    if (place < 0) {
        (void)snprintf(ret_text, 512, "%s", suggestion);
        return;
    }
    (void)quoted_read(strchr(message, '"') + 1, item);
    char *at = strstr(words[place], item);
    assert_non_null(at);
    char field[1024];
    (void)snprintf(field, sizeof field, "%.*s%s%s", (int)(at - words[place]), words[place],
                   suggestion, at + strlen(item));
    words_join(words, count, place, field, ret_text);
}

static void test_every_text_that_a_refusal_suggests_is_accepted(void **state)
{
    (void)state;
    int suggested = 0;
    for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++) {
        struct cron c;
        struct error err = {.text = ""};
        assert_int_equal(cron_parse(REFUSALS[i].text, &c, &err), STATUS_INVALID);
        char text[512];
        (void)snprintf(text, sizeof text, "%s", REFUSALS[i].text);
        /* Both day fields may have to change together. */
        const char *p = strstr(err.text, "write");
        assert_true(p != NULL || strstr(err.text, "remove it") != NULL);
        for (p = p != NULL ? strchr(p, '"') : NULL; p != NULL; p = strchr(p, '"')) {
            char suggestion[256];
            const char *message = err.text;
            p = quoted_read(p + 1, suggestion);
            bool more = strncmp(p, " as day of month and", 20) == 0;
            suggestion_place(
                more || strncmp(p, " as day of week if either", 25) == 0 ? text : REFUSALS[i].text,
                message, suggestion, p, text);
            if (more) {
                continue;
            }
            suggested++;
            struct error why = {.text = ""};
            if (cron_parse(text, &c, &why) != STATUS_OK) {
                fail_msg("\"%s\": %s; but \"%s\": %s", REFUSALS[i].text, err.text, text, why.text);
            }
        }
    }
    print_message("%d suggested texts\n", suggested);
    assert_true(suggested > 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refusal_names_the_field_and_what_to_write),
        cmocka_unit_test(test_every_text_that_a_refusal_suggests_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
