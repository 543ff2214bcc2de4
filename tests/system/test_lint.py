"""dev/lint finds what it says it finds: each rule on a small tree that breaks it, and one that
breaks none."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MARKER = "/* table: exempt from the length limit */\n"
LONG_TABLE = "const char *const names[] = {\n" + f"    \"{'x' * 60}\",\n" * 600 + "};\n"
LONG_FUNCTION = "int f(void)\n{\n    int a = 0;\n" + "    a++;\n" * 60 + "    return a;\n}\n"


def lint(directory, files, *rules):
    for name, text in {".clang-format": (ROOT / ".clang-format").read_text(), **files}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", directory], check=True)
    result = subprocess.run([ROOT / "dev" / "lint", "--root", directory, *rules], text=True,
                            capture_output=True, timeout=60, check=False)
    assert result.stderr == ""
    return result.returncode, result.stdout.splitlines()[:-1]


# name: (rule, file, text, the line and the words of the complaint)
BROKEN = {
    "format": ("format", "common/a.c", "int  a;\n", "1: 1 places are not in the house format"),
    "long function": ("length", "common/a.c", LONG_FUNCTION, "1: f() has 65 lines"),
    "long file": ("length", "common/a.c", "int a;\n" * 501, "501: the file has 501 lines"),
    "unmarked table": ("length", "common/a.c", LONG_TABLE, "501: the file has 602 lines"),
    "marker on a function": ("length", "common/a.c", MARKER + LONG_FUNCTION, "2: f() has 65 lines"),
    "marker on nothing": ("length", "common/a.c", MARKER + "int a;\n", "1: this exempts nothing"),
    "foreign header": ("headers", "worker/a.c", "#include <libpq-fe.h>\n",
                       "1: <libpq-fe.h> may be included in"),
    "foreign header in a comment's shadow": (
        "headers", "worker/a.c", "/* x */ #include <zookeeper/zookeeper.h>\n",
        "1: <zookeeper/zookeeper.h> may be included in"),
    "unknown library": ("headers", "common/a.c", "#include <curl/curl.h>\n",
                        "1: <curl/curl.h> is of an unknown library"),
    "impure": ("pure", "common/a.h", '/* Adds. Pure. */\n#include "log.h"\n', "2: common/a.h says that it is pure"),
    "banned call": ("calls", "tests/unit/test_a.c", "void f(void)\n{\n    sleep(1);\n}\n",
                    "3: sleep() is banned"),
    "clock": ("calls", "scheduler/a.c", "long f(void)\n{\n    return time (NULL);\n}\n",
              "3: time() reads a clock"),
    "shell": ("shell", "dev/a", "#!/bin/bash\ncd $1\n", "2: "),
    "python": ("shell", "dev/a.py", "x = 1\nif x\n", "2: Python refuses it"),
    "tab in SQL": ("text", "sql/0001_a.sql", "SELECT\n\t1;\n", "2: a tab"),
    "path of a machine": ("text", "docs/a.md", "see\n/ho" + "me/joe/x\n", "2: /ho" + "me/joe is a path"),
    "registry": ("text", "docs/a.md", "from deb.deb" + "ian.org\n", "1: deb.deb" + "ian.org is a package"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_rule_is_named_with_file_and_line(tmp_path, case):
    rule, name, text, words = BROKEN[case]
    status, complaints = lint(tmp_path, {name: text}, rule)
    assert status == 1
    assert any(c.startswith(f"{name}:{words}") for c in complaints), complaints


@pytest.mark.parametrize("including, included", [
    ("common", "scheduler"), ("common", "admin"), ("scheduler", "worker"), ("worker", "scheduler"),
    ("scheduler", "admin")])
def test_dependency_against_the_direction_is_refused(tmp_path, including, included):
    status, complaints = lint(tmp_path, {f"{included}/x.h": "int x(void);\n",
                                         f"{including}/a.c": '#include "x.h"\n'}, "direction")
    assert status == 1
    assert complaints[0].startswith(f"{including}/a.c:1: {including}/ must not know {included}/x.h")


@pytest.mark.parametrize("including, included", [("common/base", "common/time"), ("scheduler/planner", "scheduler/store"),
                                                 ("worker/report", "worker"), ("admin/table", "admin/command")])
def test_folder_that_sees_one_above_it_is_refused(tmp_path, including, included):
    files = {f"{included}/x.h": "int x(void);\n", f"{including}/a.c": '#include "x.h"\n'}
    assert lint(tmp_path / "up", files, "direction")[1][0].startswith(f"{including}/a.c:1: {including}/ must not know {included}/x.h")
    files = {f"{including}/x.h": "int x(void);\n", f"{included}/a.c": '#include "x.h"\n'}
    assert lint(tmp_path / "down", files, "direction") == (0, [])


def test_folder_that_nobody_placed_is_refused(tmp_path):
    assert lint(tmp_path, {"common/misc/a.c": "int a;\n"}, "direction")[1][0].startswith("common/misc/a.c:1: common/misc/ is not in FOLDERS")


def test_header_of_the_same_name_elsewhere_is_refused_once(tmp_path):
    status, complaints = lint(tmp_path, {"scheduler/x.h": "int x(void);\n",
                                         "worker/x.h": "int x(void);\n",
                                         "worker/a.c": '#include "x.h"\n'}, "direction")
    assert status == 1
    assert [c.split(";")[0] for c in complaints] == [
        "worker/x.h:1: scheduler/x.h has the same name, and which one an #include gets depends on "
        "the search path"]


def test_header_that_only_includes_others_is_refused(tmp_path):
    status, complaints = lint(tmp_path, {
        "common/x.h": "int x(void);\n", "common/y.h": "int y(void);\n",
        "common/all.h": '#ifndef A\n#define A\n#include "x.h"\n#include "y.h"\n#endif\n'},
        "direction")
    assert status == 1
    assert complaints == ["common/all.h:1: this header only gathers others; include what is needed "
                          "where it is needed"]


def test_pure_module_ends_where_another_has_a_header(tmp_path):
    status, complaints = lint(tmp_path, {
        "common/a.h": "/* Adds. Pure: no clock. */\nint a(void);\n", "common/a_tail.c": "#include <time.h>\n",
        "common/a_shell.h": "/* Calls it. */\nint b(void);\n", "common/a_shell.c": "#include <time.h>\n"}, "pure")
    assert status == 1
    assert [c.split(";")[0] for c in complaints] == ["common/a_tail.c:1: common/a.h says that it is pure, and time.h is not"]


def test_clean_tree_passes_every_rule(tmp_path):
    status, complaints = lint(tmp_path, {
        "common/base/x.h": "#ifndef X\n#define X\n\nint x(void);\n\n#endif\n",
        # Names of banned functions in comments, strings, members and longer names are no calls.
        "common/base/clock_posix.c": "#include <time.h>\n\nlong now(void)\n{\n    return time(NULL);\n}\n",
        "common/store/store_pg.c": '#include <libpq-fe.h>\n\n#include "x.h"\n',
        "scheduler/a.c": '#include "x.h"\n\n/* sleep(1) */\nconst char *s = "system(1)";\n'
                         "int f(struct t *t)\n{\n    return t->time(1) + my_sleep(2);\n}\n",
        "admin/table/table.c": MARKER + LONG_TABLE,
        "dev/run": "#!/bin/bash\nset -e\necho \"$1\"\n",
        "sql/0001_a.sql": "SELECT 1;\n" * 600})
    assert (status, complaints) == (0, [])
