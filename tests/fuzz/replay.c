/* Runs each target on the files of its corpus, in builds without libFuzzer: one program, so that
 * the targets keep building and what they once found stays mended. CMake names the targets. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FILE_MAX_BYTES (1024 * 1024)
#define FILES_MAX      39 /* of one corpus: it comes along with the source */

#define TARGET(name) int target_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS
#undef TARGET

struct target {
    const char *name;
    int (*run)(const uint8_t *data, size_t size);
};

static struct target targets[] = {
#define TARGET(name) {#name, target_##name},
    FUZZ_TARGETS
#undef TARGET
};

static void file_try(const struct target *t, const char *path)
{
    FILE *f = fopen(path, "re");
    uint8_t *data = malloc(FILE_MAX_BYTES);
    assert_non_null(f);
    assert_non_null(data);
    size_t size = fread(data, 1, FILE_MAX_BYTES, f);
    assert_int_equal(fclose(f), 0);
    /* A block of just this size, so that a sanitizer sees a step beyond its end. */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    memcpy(exact, data, size);
    free(data);
    (void)t->run(exact, size);
    free(exact);
}

static void test_target_takes_its_corpus(void **state)
{
    const struct target *t = *state;
    char path[4096];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/%s", CORPORA, t->name);
    DIR *directory = opendir(path);
    if (directory == NULL) {
        fail_msg("%s is missing: each target needs a corpus", path);
    }
    for (const struct dirent *entry = readdir(directory); entry != NULL;
         entry = readdir(directory)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s/%s", CORPORA, t->name, entry->d_name);
        print_message("%s/%s\n", t->name, entry->d_name); /* the last one is what broke it */
        (void)fflush(stdout);
        file_try(t, path);
        count++;
    }
    assert_int_equal(closedir(directory), 0);
    assert_in_range(count, 1, FILES_MAX);
}

int main(void)
{
    struct CMUnitTest tests[sizeof targets / sizeof targets[0]];
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        tests[i] = (struct CMUnitTest){
            .name = targets[i].name,
            .test_func = test_target_takes_its_corpus,
            .initial_state = &targets[i],
        };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
