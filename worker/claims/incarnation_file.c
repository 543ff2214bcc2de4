#include "incarnation_file.h"

#include <string.h>

enum status incarnation_file_write(struct life_file *file, const char *worker, struct error *err)
{
    const struct life_field fields[] = {{"worker", worker}};
    return life_file_write(file, fields, 1, err);
}

enum status incarnation_file_read(const struct life_file *file, char ret_worker[UUID_TEXT_MAX],
                                  struct error *err)
{
    struct life_record record;
    enum status s = life_file_read(file, &record, err);
    if (s != STATUS_OK) {
        return s;
    }
    const char *worker = life_record_get(&record, "worker");
    if (worker == NULL || !uuid_is_valid(worker)) {
        return error_set(err, STATUS_CORRUPT, "incarnation_file: names no worker; remove it");
    }
    memcpy(ret_worker, worker, UUID_TEXT_MAX);
    return STATUS_OK;
}
