#include "digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#define BLOCK_BYTES  65536
#define SHA256_BYTES 32

struct digest {
    EVP_MD_CTX *context;
};

struct digest *digest_new(void)
{
    struct digest *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return NULL;
    }
    d->context = EVP_MD_CTX_new();
    if (d->context == NULL || EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) != 1) {
        digest_free(d);
        return NULL;
    }
    return d;
}

void digest_free(struct digest *d)
{
    if (d != NULL) {
        EVP_MD_CTX_free(d->context);
        free(d);
    }
}

enum status digest_add(struct digest *d, const void *bytes, size_t n)
{
    return n == 0 || EVP_DigestUpdate(d->context, bytes, n) == 1 ? STATUS_OK : STATUS_FATAL;
}

enum status digest_finish(struct digest *d, char ret_text[DIGEST_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (EVP_DigestFinal_ex(d->context, sum, &n) != 1 || n != SHA256_BYTES ||
        EVP_DigestInit_ex(d->context, EVP_sha256(), NULL) != 1) {
        return STATUS_FATAL;
    }
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret_text[2 * i] = digits[sum[i] >> 4];
        ret_text[2 * i + 1] = digits[sum[i] & 0xf];
    }
    ret_text[2 * SHA256_BYTES] = '\0';
    return STATUS_OK;
}

enum status digest_memory(const void *bytes, size_t n, char ret_text[DIGEST_TEXT_MAX])
{
    struct digest *d = digest_new();
    if (d == NULL) {
        return STATUS_FATAL;
    }
    enum status s = digest_add(d, bytes, n);
    if (s == STATUS_OK) {
        s = digest_finish(d, ret_text);
    }
    digest_free(d);
    return s;
}

static enum status descriptor_add(struct digest *d, int fd, const char *path, struct error *err)
{
    char *block = malloc(BLOCK_BYTES);
    if (block == NULL) {
        return error_set(err, STATUS_FATAL, "%s: out of memory", path);
    }
    enum status s = STATUS_OK;
    while (s == STATUS_OK) {
        ssize_t n = read(fd, block, BLOCK_BYTES);
        if (n == 0) {
            break;
        }
        if (n > 0) {
            s = digest_add(d, block, (size_t)n);
        } else if (errno != EINTR) {
            s = error_set(err, STATUS_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
        }
    }
    free(block);
    return s;
}

enum status digest_file(const char *path, char ret_text[DIGEST_TEXT_MAX], struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
    }
    struct digest *d = digest_new();
    enum status s = d != NULL ? descriptor_add(d, fd, path, err)
                              : error_set(err, STATUS_FATAL, "%s: out of memory", path);
    (void)close(fd);
    if (s == STATUS_OK) {
        s = digest_finish(d, ret_text);
    }
    digest_free(d);
    return s;
}
