/* Forms of values that several settings share, for the rows of a settings table (`form` and
 * `around` in settings.h): pure ones, and those that look at the file's surroundings. err says
 * "what; write what instead", without the key. Returns, all: OK; INVALID. Thread: any. Blocks:
 * around_* on the file system. */
#ifndef RS_SETTINGS_FORM_H
#define RS_SETTINGS_FORM_H

#include "status.h"

MUST_USE enum status form_name(const char *value, struct error *err); /* ident.h */
MUST_USE enum status form_log_level(const char *value, struct error *err);
MUST_USE enum status form_absolute_path(const char *value, struct error *err);
MUST_USE enum status form_url(const char *value, struct error *err);     /* of a server: no path */
MUST_USE enum status form_address(const char *value, struct error *err); /* IPv4, IPv6 as numbers */
MUST_USE enum status form_variable(const char *value, struct error *err); /* NAME=value */

/* host:port,host:port; ZooKeeper's IPv6 has no brackets, Kafka's has. */
MUST_USE enum status form_zookeeper_servers(const char *value, struct error *err);
MUST_USE enum status form_kafka_brokers(const char *value, struct error *err);

MUST_USE enum status form_zookeeper_path(const char *value, struct error *err);
MUST_USE enum status form_kafka_topic(const char *value, struct error *err);

/* A secret that this user could read now, in a file that nobody else may read. */
MUST_USE enum status around_secret_file(const char *value, struct error *err);
/* A regular file that this user could read now; one that nobody else may read. */
MUST_USE enum status around_readable_file(const char *value, struct error *err);
MUST_USE enum status around_private_file(const char *value, struct error *err);
/* An existing directory; one that this user may write. */
MUST_USE enum status around_directory(const char *value, struct error *err);
MUST_USE enum status around_writable_directory(const char *value, struct error *err);

/* A file that the daemon makes: its directory is there, and this user may write it. */
MUST_USE enum status around_own_file(const char *value, struct error *err);
/* A program that this user may execute. Values that are no absolute path are not looked at. */
MUST_USE enum status around_program(const char *value, struct error *err);

#endif
