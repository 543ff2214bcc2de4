#include "session_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PASSWORD_TEXT (2 * ZK_PASSWORD_BYTES + 1)

static const char DIGITS[] = "0123456789abcdef";

enum status session_file_write(struct life_file *file, const struct zk_session *session,
                               struct error *err)
{
    char id[32], password[PASSWORD_TEXT] = "";
    (void)snprintf(id, sizeof id, "0x%" PRIx64, (uint64_t)session->id);
    for (size_t i = 0; i < ZK_PASSWORD_BYTES; i++) {
        password[2 * i] = DIGITS[session->password[i] >> 4];
        password[2 * i + 1] = DIGITS[session->password[i] & 0xf];
    }
    const struct life_field fields[] = {{"session", id}, {"password", password}};
    enum status s = life_file_write(file, fields, sizeof fields / sizeof fields[0], err);
    explicit_bzero(password, sizeof password);
    return s;
}

static bool password_parse(const char *text, unsigned char to[ZK_PASSWORD_BYTES])
{
    if (strlen(text) != PASSWORD_TEXT - 1 || text[strspn(text, DIGITS)] != '\0') {
        return false;
    }
    for (size_t i = 0; i < ZK_PASSWORD_BYTES; i++) {
        size_t high = (size_t)(strchr(DIGITS, text[2 * i]) - DIGITS);
        size_t low = (size_t)(strchr(DIGITS, text[2 * i + 1]) - DIGITS);
        to[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

static bool id_parse(const char *text, int64_t *ret_id)
{
    char *end = NULL;
    errno = 0;
    uint64_t id = strncmp(text, "0x", 2) == 0 ? strtoull(text, &end, 16) : 0;
    *ret_id = (int64_t)id;
    return id != 0 && errno == 0 && *end == '\0';
}

enum status session_file_read(const struct life_file *file, struct zk_session *ret_session,
                              struct error *err)
{
    struct life_record record;
    struct zk_session session = {.id = 0};
    enum status s = life_file_read(file, &record, err);
    if (s != STATUS_OK) {
        return s;
    }
    const char *id = life_record_get(&record, "session");
    const char *password = life_record_get(&record, "password");
    if (id == NULL || password == NULL || !id_parse(id, &session.id) ||
        !password_parse(password, session.password)) {
        s = error_set(err, STATUS_CORRUPT, "session_file: names no session; remove it");
    }
    life_record_wipe(&record);
    if (s == STATUS_OK) {
        *ret_session = session;
    }
    explicit_bzero(&session, sizeof session);
    return s;
}
